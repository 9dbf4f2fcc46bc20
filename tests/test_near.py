"""Near-duplicates against the definition in plain Python: boards as sets, games as lists, all images tried."""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from random_games import Line, Seen, games_of, positions, random_line, turned
from slow_board import Point, SlowBoard
from stages import LETTERS, read_parts, sgf_of, write_games

from pipeline import symmetry
from pipeline.compare import ALIKE, MARKED, OPENINGS, PAIRS, AlikeTask, find_alike
from pipeline.config import make_config
from pipeline.gamekeys import game_keys, turned_game_keys
from pipeline.gamestages import decided_games
from pipeline.near import clusters, near_games, prefix_games
from pipeline.pieces import bucket_of, read_records, routed, whole_table, write_pieces
from pipeline.replay import replay
from pipeline.steps import do_all
from pipeline.table import MARKS, OPENING_PLIES
from pipeline.words import repeated

SHORT_MARKS = (3, 5, 8)


def images(line: Line) -> list[Line]:
    return [turned(line, turn) for turn in range(symmetry.count(line.rows, line.cols))]


def same_game(one: Line, other: Line) -> bool:
    """Whether two games are equal as they stand: the order of setup stones means nothing."""
    return (one.rows, one.cols, one.moves, sorted(one.setup)) == (
        other.rows,
        other.cols,
        other.moves,
        sorted(other.setup),
    )


def beginning(line: Line, plies: int) -> Line:
    return replace(line, moves=line.moves[:plies], setup=tuple(stone for stone in line.setup if stone[0] <= plies))


def slow_prefixes(lines: list[Line], least: int) -> list[int]:
    """The definition: the longest longer game that begins with an image of each one, the first of those."""
    found = []
    for line in lines:
        plies = len(line.moves)
        longer = [
            number
            for number, other in enumerate(lines)
            if len(other.moves) > plies >= least
            and any(same_game(image, beginning(other, plies)) for image in images(line))
        ]
        found.append(min(longer, key=lambda number: (-len(lines[number].moves), number), default=-1))
    return found


def place(line: Line, seen: Seen) -> Any:
    """Return what all images of a position share, and no other position."""

    def image(turn: int) -> Any:
        def there(point: Point) -> Point:
            return symmetry.image_point(*point, line.rows, line.cols, turn)

        stones = sorted((there(point), colour) for point, colour in seen.boards[-1])
        return stones, (-1, -1) if seen.ko is None else there(seen.ko)

    board = min(image(turn) for turn in range(symmetry.count(line.rows, line.cols)))
    return str((line.rows, line.cols, seen.to_play, board))


def slow_near(
    lines: list[Line], marks: tuple[int, ...], prefix_of: list[int], known: list[bool], old: Sequence[bool] = ()
) -> list[int]:
    """The definition: pairs of games with a position in common, joined until nothing changes."""
    places = [
        {mark: place(line, seen[mark]) for mark in marks if mark < len(line.moves)}
        for line, seen in ((line, positions(line)) for line in lines)
    ]
    cluster = list(range(len(lines)))
    changed = True
    while changed:
        changed = False
        for one, mine in enumerate(places):
            for other, theirs in enumerate(places):
                if mine.keys() & theirs.keys() and any(mine[mark] == theirs.get(mark) for mark in mine):
                    least = min(cluster[one], cluster[other])
                    changed |= cluster[one] != least or cluster[other] != least
                    cluster[one] = cluster[other] = least
    old = old or [False] * len(lines)
    found = []
    for number in range(len(lines)):
        members = [other for other in range(len(lines)) if cluster[other] == cluster[number] and prefix_of[other] < 0]
        chosen = min(
            members,
            key=lambda other: (not old[other], not known[other], -len(lines[other].moves), other),
            default=number,
        )
        found.append(-1 if prefix_of[number] >= 0 or chosen == number else chosen)
    return found


def plies_of(lines: list[Line]) -> NDArray[np.int64]:
    return np.array([len(line.moves) for line in lines], dtype=np.int64)


def fast_prefixes(lines: list[Line], least: int, chunks: int = 1) -> list[int]:
    """Return what ``prefix_games`` finds, which is given the games in so many chunks."""
    plies = plies_of(lines)
    pieces = [numbers for numbers in np.array_split(np.arange(len(lines)), chunks) if len(numbers)]
    found: list[int] = prefix_games(
        sizes_of(lines),
        plies,
        game_keys(games_of(lines), plies),
        least,
        ((games_of([lines[number] for number in numbers]), numbers) for numbers in pieces),
    ).tolist()
    return found


def sizes_of(lines: list[Line]) -> NDArray[np.uint8]:
    return np.array([(line.rows, line.cols) for line in lines], dtype=np.uint8).reshape(-1, 2)


def meetings(games: Sequence[Sequence[int]], buckets: int) -> tuple[list[tuple[int, int]], list[int]]:
    """Return the pairs of games that the buckets find at their marks, and the games they tell of.

    ``games``: the keys of each at its marks.
    """
    marked = np.zeros(sum(map(len, games)), dtype=MARKED)
    marked["ordinal"] = np.repeat(np.arange(len(games)), [len(keys) for keys in games])
    marked["mark"] = [mark for keys in games for mark in range(len(keys))]
    marked["mark_key"] = [key for keys in games for key in keys]
    pairs, alike = [], []
    with TemporaryDirectory() as name:
        compared, out = f"{name}/compared", f"{name}/alike"
        openings = [np.zeros(0, dtype=OPENINGS)] * buckets
        write_pieces(
            compared, [None, None, *openings, *routed(marked, bucket_of(marked["mark_key"], buckets), buckets)]
        )
        for number in range(buckets):
            report = find_alike(AlikeTask(number, (compared,), out, 1, buckets))
            (met,), (told,) = read_records([out], 1, PAIRS), read_records([out], 2, ALIKE)
            pairs += met[["one", "other"]].tolist()
            alike += told["ordinal"].tolist()
            assert report == {"games": len(told)}
    return pairs, sorted(set(alike))


def clusters_of(games: Sequence[Sequence[int]], buckets: int = 3) -> NDArray[np.int64]:
    """Return the first game of each one's cluster, given the keys of each at its marks."""
    pairs, alike = meetings(games, buckets)
    assert {game for pair in pairs for game in pair} == set(alike)
    one, other = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return clusters(np.ascontiguousarray(one), np.ascontiguousarray(other), len(games))


def fast_near(
    lines: list[Line], marks: tuple[int, ...], prefix_of: list[int], known: list[bool], old: Sequence[bool] = ()
) -> list[int]:
    games = games_of(lines)
    replayed = replay(games)
    assert not replayed.faults.any()
    keys = [
        replayed.keys[[start + mark for mark in marks if mark < len(line.moves)]].tolist()
        for start, line in zip_starts(games, lines)
    ]
    prefix, there = np.array(prefix_of) >= 0, np.array(old or [False] * len(lines))
    found: list[int] = near_games(clusters_of(keys), prefix, there, np.array(known), plies_of(lines)).tolist()
    return found


def zip_starts(games: Any, lines: list[Line]) -> list[tuple[int, Line]]:
    return list(zip(games.move_start[:-1].tolist(), lines, strict=True))


def different(lines: list[Line]) -> list[Line]:
    """Return games of which none is the image of another, as exact deduplication leaves them."""
    kept: list[Line] = []
    for line in lines:
        if not any(same_game(image, other) for image in images(line) for other in kept):
            kept.append(line)
    return kept


def family(rng: Random, rows: int, cols: int, count: int) -> list[Line]:
    """Return relatives: cut, lengthened, turned, with two moves exchanged, with setup stones, in any order."""
    lines: list[Line] = []
    for _ in range(count):
        kind = rng.randrange(6) if lines else 0
        base = rng.choice(lines) if lines else random_line(rng, rows, cols, 10)
        if kind == 0:
            base = random_line(rng, rows, cols, rng.randrange(2, 12), 0.1, turns=rng.random() < 0.3)
        elif kind == 1:
            base = beginning(base, rng.randrange(len(base.moves) + 1))
        elif kind == 2:
            base = exchanged(base, rng)
        elif kind == 3:
            base = lengthened(base, rng)
        elif kind == 4 and not base.setup:
            empty = (rng.randrange(rows), rng.randrange(cols))
            if all(point != empty for point, _ in base.moves):
                base = replace(base, setup=((0, empty, rng.choice((1, 2))),))
        lines.append(turned(base, rng.randrange(symmetry.count(rows, cols))))
    lines = different([line for line in lines if not replay(games_of([line])).faults[0]])
    rng.shuffle(lines)
    return lines


def exchanged(line: Line, rng: Random) -> Line:
    """Return a game with two moves of one side in the other order, where there are such moves."""
    if len(line.moves) < 3:
        return line
    at, moves = rng.randrange(len(line.moves) - 2), list(line.moves)
    if moves[at][1] == moves[at + 2][1]:
        moves[at], moves[at + 2] = moves[at + 2], moves[at]
    return replace(line, moves=tuple(moves))


def lengthened(line: Line, rng: Random) -> Line:
    """Return a game with up to three more moves that are legal whatever stands on the board."""
    board = SlowBoard(line.rows, line.cols)
    for ply, (point, colour) in enumerate(line.moves):
        board.setup([(place, paint) for when, place, paint in line.setup if when == ply])
        if point is None:
            board.play_pass()
        elif board.fault(point, colour, True) is None:
            board.play(point, colour)
        else:
            return line
    moves = list(line.moves)
    for _ in range(rng.randrange(1, 4)):
        colour = 3 - moves[-1][1] if moves else 1
        points = [point for point in board.empty_points() if board.fault(point, colour, True) is None]
        if not points:
            break
        point = rng.choice(points)
        board.play(point, colour)
        moves.append((point, colour))
    return replace(line, moves=tuple(moves))


@pytest.mark.parametrize(("rows", "cols"), [(3, 3), (5, 5), (3, 4), (1, 3)])
def test_against_the_definition(rows: int, cols: int) -> None:
    rng = Random(f"near {rows} {cols}")
    prefixes = nears = 0
    for _ in range(40):
        lines = family(rng, rows, cols, 30)
        known = [rng.random() < 0.5 for _ in lines]
        prefix_of = slow_prefixes(lines, 2)
        assert fast_prefixes(lines, 2) == prefix_of
        assert fast_prefixes(lines, 2, 3) == fast_prefixes(lines, 2, len(lines)) == prefix_of
        near_of = slow_near(lines, SHORT_MARKS, prefix_of, known)
        assert fast_near(lines, SHORT_MARKS, prefix_of, known) == near_of
        old = [rng.random() < 0.3 for _ in lines]
        assert fast_near(lines, SHORT_MARKS, prefix_of, known, old) == slow_near(
            lines, SHORT_MARKS, prefix_of, known, old
        )
        prefixes += sum(other >= 0 for other in prefix_of)
        nears += sum(other >= 0 for other in near_of)
    assert prefixes > 100
    assert nears > 100


def test_games_of_other_sizes_are_not_compared() -> None:
    """Passes alone look the same on every board but for its size."""
    passes = ((None, 1), (None, 2)) * 3
    lines = [Line(rows, cols, passes[:plies]) for rows, cols in ((3, 3), (3, 5), (5, 3)) for plies in (4, 6)]
    prefix_of = fast_prefixes(lines, 2)
    assert fast_prefixes(lines, 2, 6) == prefix_of
    assert prefix_of == slow_prefixes(lines, 2) == [1, -1, 3, -1, 5, -1]
    assert fast_near(lines, (3,), [-1] * 6, [True] * 6) == [1, -1, 3, -1, 5, -1]


BASE = Line(5, 5, (((2, 2), 1), ((1, 1), 2), ((3, 3), 1), ((0, 3), 2), ((4, 4), 1), ((4, 0), 2)))


def test_the_longest_and_of_those_the_first() -> None:
    """Neither the next longer one, nor a later one of the same length."""
    longer = [replace(BASE, moves=(*BASE.moves, (point, 1))) for point in ((0, 0), (0, 1))]
    lines = [beginning(BASE, 3), BASE, turned(longer[0], 5), longer[1], turned(beginning(BASE, 4), 6)]
    assert fast_prefixes(lines, 3) == slow_prefixes(lines, 3) == [2, 2, -1, -1, 2]
    assert fast_prefixes(lines[::-1], 3) == slow_prefixes(lines[::-1], 3) == [1, -1, -1, 1, 1]


def test_the_least_number_of_plies() -> None:
    lines = [beginning(BASE, 3), BASE]
    assert fast_prefixes(lines, 3) == [1, -1]
    assert fast_prefixes(lines, 4) == [-1, -1]


def test_a_beginning_that_is_its_own_image() -> None:
    """The centre point fits under all symmetries, its continuations fit under one each."""
    moves: tuple[tuple[Point | None, int], ...] = (((1, 1), 1), (None, 2), ((0, 0), 1), ((0, 1), 2))
    long = Line(3, 3, moves)
    for turn in range(8):
        lines = [turned(long, turn), beginning(long, 2), beginning(turned(long, 1), 3)]
        assert fast_prefixes(lines, 1) == slow_prefixes(lines, 1) == [-1, 0, 0]


def test_only_the_moves_that_count() -> None:
    """A game that was cut before an illegal move has its legal part compared, without setup after the cut."""
    late = ((5, (0, 0), 2),)
    lines = [replace(BASE, setup=late), beginning(BASE, 5)]
    games, plies = games_of(lines), np.array([4, 5], dtype=np.int64)
    chunks = [(games, np.arange(2))]
    assert prefix_games(sizes_of(lines), plies, game_keys(games, plies), 2, chunks).tolist() == [1, -1]


def test_no_games_at_all() -> None:
    none = np.zeros(0, dtype=np.int64)
    assert prefix_games(np.zeros((0, 2), dtype=np.uint8), none, none.astype(np.uint64), 2, []).tolist() == []
    assert clusters(none, none, 0).tolist() == []
    nothing = none.astype(np.bool_)
    assert near_games(none, nothing, nothing, nothing, none).tolist() == []


def test_other_setup_is_another_game() -> None:
    with_setup = replace(BASE, setup=((0, (0, 0), 1),))
    turned_setup = replace(beginning(BASE, 4), setup=((0, (4, 4), 1),))
    lines = [beginning(BASE, 4), with_setup, turned_setup, turned(beginning(with_setup, 5), 3)]
    assert fast_prefixes(lines, 2) == slow_prefixes(lines, 2) == [-1, -1, -1, 1]


def test_a_position_after_another_number_of_moves_is_not_near() -> None:
    """Two passes in between: the same stones, later."""
    later = replace(BASE, moves=((None, 1), (None, 2), *BASE.moves))
    assert fast_near([BASE, later], (4, 6), [-1, -1], [True, True]) == [-1, -1]


def test_the_ko_and_the_side_to_move_tell_positions_apart() -> None:
    ko_moves = (((0, 1), 1), ((0, 2), 2), ((1, 0), 1), ((1, 3), 2), ((2, 1), 1), ((2, 2), 2), (None, 1), ((1, 1), 2))
    taken = Line(5, 5, (*ko_moves, ((1, 2), 1), (None, 2)))
    quiet = (((0, 1), 1), ((0, 2), 2), ((1, 0), 1), ((1, 3), 2), ((2, 1), 1), ((2, 2), 2), ((1, 2), 1))
    left = Line(5, 5, (*quiet, (None, 2), (None, 1), (None, 2)))
    white = replace(left, moves=(*left.moves[:9], (None, 1)))
    lines = [taken, left, white]
    assert positions(taken)[9].ko is not None
    assert positions(taken)[9].boards == positions(left)[9].boards
    assert fast_near(lines, (9,), [-1] * 3, [True] * 3) == [-1, -1, -1]
    assert fast_near([left, turned(left, 6)], (9,), [-1] * 2, [True] * 2) == [-1, 0]


def test_clusters_of_chains() -> None:
    """0 meets 2 at the first mark, 2 meets 1 at the second, 3 meets nobody: the same key at another mark."""
    games = [[7, 1], [8, 2], [7, 2], [2, 9]]
    assert meetings(games, 1) == ([(0, 2), (1, 2)], [0, 1, 2])
    assert clusters_of(games).tolist() == [0, 0, 0, 3]
    assert clusters_of([]).tolist() == []
    assert clusters_of([[], [], []]).tolist() == [0, 1, 2]
    assert clusters(np.array([3, 3, 1]), np.array([1, 4, 1]), 5).tolist() == [0, 1, 2, 1, 1]


@pytest.mark.parametrize("buckets", [1, 2, 7])
def test_clusters_against_dictionaries(buckets: int) -> None:
    """Games with one key at one mark are joined until nothing changes, whatever bucket a key falls into."""
    rng = Random(f"clusters {buckets}")
    for _ in range(60):
        words = [rng.getrandbits(64) for _ in range(12)]
        games = [[rng.choice(words) for _ in range(rng.randrange(4))] for _ in range(rng.randrange(20))]
        cluster = list(range(len(games)))
        for _ in games:
            for one, mine in enumerate(games):
                for other, theirs in enumerate(games):
                    if any(here == there for here, there in zip(mine, theirs, strict=False)):
                        cluster[one] = cluster[other] = min(cluster[one], cluster[other])
        assert clusters_of(games, buckets).tolist() == cluster


def test_a_long_chain_is_one_cluster() -> None:
    """Link n shares one mark with the link before it and the other with the next, games in any order."""
    count = 2000
    keys = np.arange(2 * count, dtype=np.uint64).reshape(count, 2) << np.uint64(50)
    for link in range(count - 1):
        keys[link + 1, link % 2] = keys[link, link % 2]
    order = list(range(count))
    Random("chain").shuffle(order)
    assert clusters_of(keys[order].tolist()).tolist() == [0] * count


def test_who_represents_a_cluster() -> None:
    """One that is there already, then a known result, then the most moves, then the first; never a prefix."""
    cluster, none = np.zeros(4, dtype=np.int64), [False] * 4

    def found(known: list[bool], plies: list[int], prefix: list[bool] = none, old: list[bool] = none) -> list[int]:
        flags = (np.array(each) for each in (prefix, old, known))
        numbers: list[int] = near_games(cluster, *flags, np.array(plies)).tolist()
        return numbers

    assert found([False, True, False, False], [9, 5, 9, 9]) == [1, -1, 1, 1]
    assert found([False, True, True, True], [9, 5, 7, 7]) == [2, 2, -1, 2]
    assert found([True, False, False, False], [9, 5, 7, 7], [True, False, False, False]) == [-1, 2, -1, 2]
    assert found([True, True, False, False], [9, 9, 5, 7], none, [False, False, True, False]) == [2, 2, -1, 2]
    assert found([True, True, False, False], [9, 9, 5, 7], none, [False, False, True, True]) == [3, 3, 3, -1]
    assert found([True, True, False, False], [9, 8, 5, 7], [True] * 4, [True] * 4) == [-1] * 4


def test_repeated() -> None:
    assert repeated(np.array([5, 3, 5, 4], dtype=np.uint64)).tolist() == [True, False, True, False]
    assert repeated(np.zeros(0, dtype=np.uint64)).tolist() == []


def test_the_order_of_games_changes_nothing() -> None:
    rng = Random("order")
    lines = family(rng, 3, 3, 40)
    known = [rng.random() < 0.5 for _ in lines]

    def named(order: list[int]) -> dict[int, tuple[int, int, bool]]:
        mine = [lines[number] for number in order]
        prefix_of = fast_prefixes(mine, 2)
        near_of = fast_near(mine, SHORT_MARKS, prefix_of, [known[number] for number in order])

        def what(other: int) -> tuple[int, bool]:
            return (-1, False) if other < 0 else (len(mine[other].moves), known[order[other]])

        return {
            order[at]: (what(prefix_of[at])[0], *what(near_of[at])) for at in range(len(mine))
        }  # ties go by the order, what is chosen does not

    first = named(list(range(len(lines))))
    for _ in range(5):
        order = list(range(len(lines)))
        rng.shuffle(order)
        again = named(order)
        assert {number: found[0] for number, found in again.items()} == {n: found[0] for n, found in first.items()}
        assert sorted(found[1:] for found in again.values()) == sorted(found[1:] for found in first.values())


def test_many_long_games_with_one_opening_take_linear_time() -> None:
    """2,000 games of 2,000 and more plies, each of another length: one walk over 6 million moves."""
    count, least = 2000, 1000
    lengths = np.arange(least, least + count)
    games = games_of([Line(3, 3, ())] * count)
    moves = np.full(int(lengths.sum()), 9, dtype=np.uint16)
    starts = np.cumsum([0, *lengths])
    colours = ((np.arange(len(moves)) - np.repeat(starts[:-1], lengths)) % 2 + 1).astype(np.int8)
    games = games._replace(move_start=starts.astype(np.int64), moves=moves, colours=colours)
    fast_prefixes([BASE], 2)  # compiled
    sizes = np.full((count, 2), 3, dtype=np.uint8)
    keys = game_keys(games, lengths)
    start = time.perf_counter()
    found = prefix_games(sizes, lengths, keys, 30, [(games, np.arange(count))])
    assert time.perf_counter() - start < 20
    assert found.tolist() == [count - 1] * (count - 1) + [-1]


# From records to the game table.


def table_rows(folder: Path, records: dict[str, str], **dedup: Any) -> list[dict[str, Any]]:
    """Return the rows of the game table of a build of records, as the read and decide stages make them."""
    config = make_config(
        {
            "input": {"paths": [str(write_games(folder, records))]},
            "filter": {"sizes": [9]},
            "rules": {"illegal": "keep-prefix"},
            "dedup": dedup,
        },
        "test",
    )
    work = folder.with_name(f"{folder.name}-work")
    work.mkdir()
    tables = decided_games(*read_parts(config, work, size=3), config, work, 0, do_all).tables
    return [row for table in tables for row in whole_table(table).to_pylist()]


def points(count: int) -> list[tuple[Point | None, int]]:
    """Return ``count`` moves on 9x9: Black fills the left column by column, White the right; the middle column
    stays free, so that no chain is taken; then passes."""
    left = [(row, col) for col in range(4) for row in range(9)]
    right = [(row, col) for col in range(8, 4, -1) for row in range(9)]
    moves: list[tuple[Point | None, int]] = []
    for ply in range(count):
        side = left if ply % 2 == 0 else right
        moves.append((side[ply // 2] if ply // 2 < 34 else None, ply % 2 + 1))
    return moves


LONG = Line(9, 9, tuple(points(64)))
SHORTER = beginning(LONG, 40)
# Two of Black's moves the other way round: the positions differ between them and agree from then on.
SWAPPED = replace(LONG, moves=(*LONG.moves[:20], LONG.moves[22], LONG.moves[21], LONG.moves[20], *LONG.moves[23:58]))
# The same again, the end longer than both: meets LONG at 50.
OTHER_END = replace(LONG, moves=(*LONG.moves[:30], LONG.moves[32], LONG.moves[31], LONG.moves[30], *points(66)[33:]))


def facts(rows: list[dict[str, Any]]) -> dict[str, tuple[Any, ...]]:
    """Return status, the name of the other game, detail and the flags of interest, by name."""
    names = {row["game"]: row["source"] for row in rows}
    wanted = {"prefix-of", "near-duplicate-of", "turned-copy"}
    return {
        row["source"]: (
            row["status"],
            names.get(row["duplicate_of"]),
            row["detail"],
            *sorted(wanted & set(row["flags"])),
        )
        for row in rows
    }


RECORDS = {
    "a.sgf": sgf_of(SHORTER, RE="B+R"),
    "b.sgf": sgf_of(turned(LONG, 6), RE="?"),
    "c.sgf": sgf_of(SWAPPED, RE="W+R"),
    "d.sgf": sgf_of(turned(SWAPPED, 3), RE="W+R"),
    "e.sgf": sgf_of(turned(LONG, 6), RE="?"),
    "f.sgf": sgf_of(beginning(LONG, 29), RE="B+R"),
    "g.sgf": sgf_of(turned(OTHER_END, 1), RE="?"),
}


def test_kept_by_default(tmp_path: Path) -> None:
    found = facts(table_rows(tmp_path / "games", RECORDS))
    assert found == {
        "a.sgf": ("kept", "b.sgf", "prefix-of b.sgf", "prefix-of"),
        "b.sgf": ("kept", "c.sgf", "near-duplicate-of c.sgf", "near-duplicate-of"),
        "c.sgf": ("kept", None, None),
        "d.sgf": ("duplicate", "c.sgf", "duplicate of c.sgf", "turned-copy"),
        "e.sgf": ("duplicate", "b.sgf", "duplicate of b.sgf"),
        "f.sgf": ("kept", None, None),
        "g.sgf": ("kept", "c.sgf", "near-duplicate-of c.sgf", "near-duplicate-of"),
    }


def test_dropped_if_asked_for(tmp_path: Path) -> None:
    """Nothing points to a game that is dropped: the way to the one that stays is told."""
    rows = table_rows(tmp_path / "games", RECORDS, near="drop")
    assert facts(rows) == {
        "a.sgf": ("duplicate", "c.sgf", "prefix-of b.sgf, near-duplicate-of c.sgf", "prefix-of"),
        "b.sgf": ("duplicate", "c.sgf", "near-duplicate-of c.sgf", "near-duplicate-of"),
        "c.sgf": ("kept", None, None),
        "d.sgf": ("duplicate", "c.sgf", "duplicate of c.sgf", "turned-copy"),
        "e.sgf": ("duplicate", "c.sgf", "duplicate of b.sgf, near-duplicate-of c.sgf"),
        "f.sgf": ("kept", None, None),
        "g.sgf": ("duplicate", "c.sgf", "near-duplicate-of c.sgf", "near-duplicate-of"),
    }
    kept = {row["game"] for row in rows if row["status"] == "kept"}
    assert {row["duplicate_of"] for row in rows if row["duplicate_of"] is not None} <= kept


@pytest.mark.parametrize("near", ["keep", "drop"])
def test_switched_off_with_the_deduplication_of_games(tmp_path: Path, near: str) -> None:
    found = facts(table_rows(tmp_path / "games", RECORDS, games=False, near=near))
    assert set(found.values()) == {("kept", None, None)}


def test_a_record_cut_before_an_illegal_move_is_a_prefix(tmp_path: Path) -> None:
    broken = replace(LONG, moves=(*LONG.moves[:33], LONG.moves[0]))
    rows = table_rows(tmp_path / "games", {"a.sgf": sgf_of(broken), "b.sgf": sgf_of(LONG)})
    assert rows[0]["flags"][-2:] == ["illegal-tail", "prefix-of"]
    assert rows[0]["duplicate_of"] == rows[1]["game"]


def test_the_numbers_of_the_definition() -> None:
    assert OPENING_PLIES == 30
    assert MARKS == (50, 75, 100, 150, 200, 250, 300)


@pytest.mark.parametrize(("shared", "expected"), [(49, False), (50, True)])
def test_the_mark_is_the_position_before_the_move(tmp_path: Path, shared: int, expected: bool) -> None:
    """At mark 50 both games have 50 moves behind them and one more to come: 51 moves that agree but for an
    exchange meet there, games of 50 moves are not compared at all."""
    both = (beginning(SWAPPED, shared + 1), beginning(OTHER_END, shared + 1))
    rows = table_rows(tmp_path / "games", {"a.sgf": sgf_of(both[0]), "b.sgf": sgf_of(both[1])})
    assert [row["duplicate_of"] is not None for row in rows] == [False, expected]


def test_turned_copies_of_symmetric_games() -> None:
    """A game that is its own image under some symmetry is turned only where no equal one stands."""
    centre = Line(5, 5, (((2, 2), 1), (None, 2), (None, 1)))
    axis = Line(5, 5, (((2, 2), 1), ((2, 1), 2), ((2, 3), 1)))
    for base in (centre, axis, BASE):
        lines = [base, *images(base)]
        turns, keys = turned_game_keys(games_of(lines), plies_of(lines))
        assert len(set(keys.tolist())) == 1
        for line, turn in zip(lines, turns.tolist(), strict=True):
            assert (turn == turns[0]) == same_game(line, base)


def test_a_copy_with_its_setup_in_another_order_is_not_turned(tmp_path: Path) -> None:
    def record(first: str, second: str) -> str:
        return f"(;GM[1]SZ[9]AB[{first}][{second}];W[{LETTERS[4]}{LETTERS[4]}];B[aa])"

    rows = table_rows(tmp_path / "games", {"a.sgf": record("cc", "dg"), "b.sgf": record("dg", "cc")})
    assert (rows[1]["status"], rows[1]["flags"]) == ("duplicate", [])
