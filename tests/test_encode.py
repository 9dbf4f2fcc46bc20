"""Packed planes against the slow reference, KataGo's rows and the 48 planes; symmetry; keys; the table."""

import os
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from random_games import Line, Seen, games_of, plain_terms, positions, random_line, turned
from slow_board import Point, SlowBoard, draw
from slow_ladders import TooDeepError
from slow_planes import SLOW_SCHEMES, TURNS, canonical_code, dense, pattern_ranks

from pipeline import symmetry
from pipeline.augment import turn_planes
from pipeline.encode import encode, plane_bytes
from pipeline.games import Games
from pipeline.planes.edges import pattern_numbers
from pipeline.replay import replay
from pipeline.schemes import SCHEMES, Scheme, find_scheme

WITHOUT_JIT = os.environ.get("NUMBA_DISABLE_JIT") == "1"
VECTORS = Path(__file__).parents[2] / "shared" / "vectors"
needs_vectors = pytest.mark.skipif(not VECTORS.exists(), reason="the stored answers are not there")
slow_without_jit = pytest.mark.skipif(WITHOUT_JIT, reason="would take long without compiled kernels")

Size = tuple[int, int]


def random_setup(rng: Random, board: SlowBoard, most: int) -> list[tuple[Point, int]]:
    """Return changes of stones, removals among them, that leave every chain a liberty."""
    points = sorted(board.neighbours)
    while True:
        chosen = rng.sample(points, rng.randint(1, max(1, min(most, len(points)))))
        changes = [(point, rng.choice((0, 1, 2))) for point in chosen]
        if board.copy().setup(changes):
            return changes


def random_record(rng: Random, size: Size, length: int, setups: Sequence[int], first: int = 1) -> Line:
    """Return a legal random game with setup stones before each ply of ``setups``, and some passes."""
    board = SlowBoard(*size)
    moves: list[tuple[Point | None, int]] = []
    setup: list[tuple[int, Point, int]] = []
    colour = first
    for ply in range(length):
        if ply in setups:
            changes = random_setup(rng, board, size[0] * size[1] // 4)
            assert board.setup(changes)
            setup.extend((ply, point, paint) for point, paint in changes)
        legal = [point for point in board.empty_points() if board.fault(point, colour, True) is None]
        if not legal or rng.random() < 0.06:
            moves.append((None, colour))
            board.play_pass()
        else:
            moves.append((rng.choice(legal), colour))
            board.play(moves[-1][0] or (0, 0), colour)
        colour = 3 - colour if rng.random() < 0.95 else colour
    return Line(*size, tuple(moves), tuple(setup))


def records(rng: Random, size: Size, length: int) -> list[Line]:
    """Return games of every kind: plain, White first, handicap, setup in mid-game and twice in a row."""
    handicap = tuple((0, point, 1) for point in {(0, 0), (size[0] - 1, size[1] - 1)} if size[0] * size[1] > 4)
    white_first = random_record(rng, size, 5, (), 2)
    on_handicap = tuple(move for move in white_first.moves if move[0] not in {point for _, point, _ in handicap})
    return [
        random_line(rng, *size, length),
        random_record(rng, size, length, (0, length // 2)),
        random_record(rng, size, length, (3, 4, length - 1), 2),
        replace(white_first, moves=on_handicap[:1], setup=handicap),
    ]


def all_rows(games: Games) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return game and ply of every position."""
    lengths = np.diff(games.move_start)
    row_games = np.repeat(np.arange(games.number, dtype=np.int64), lengths)
    return row_games, np.arange(len(row_games), dtype=np.int64) - games.move_start[row_games]


def encode_all(name: str, lines: Sequence[Line], frame: Size) -> NDArray[np.uint8]:
    games = games_of(lines)
    return encode(SCHEMES[name], games, *all_rows(games), frame)


def unpacked(planes: NDArray[np.uint8], frame: Size) -> NDArray[np.uint8]:
    """Return uint8[..., *frame]; fails where a padding bit is set."""
    bits = np.unpackbits(planes, axis=-1)
    assert not bits[..., frame[0] * frame[1] :].any()
    return bits[..., : frame[0] * frame[1]].reshape(*planes.shape[:-1], *frame)


CASES = [
    ((1, 1), (1, 1), 3),
    ((3, 3), (3, 3), 30),
    ((3, 3), (5, 4), 30),
    ((5, 5), (5, 5), 60),
    ((5, 9), (5, 9), 60),
    ((5, 9), (9, 9), 40),
    ((9, 5), (9, 19), 40),
    ((9, 9), (9, 9), 90),
    ((9, 9), (25, 25), 30),
    ((19, 19), (19, 19), 110),
    ((25, 25), (25, 25), 20),
]


@pytest.mark.parametrize(("size", "frame", "length"), CASES)
@pytest.mark.parametrize("name", SCHEMES)
def test_planes_are_those_of_the_slow_reference(name: str, size: Size, frame: Size, length: int) -> None:
    """Every plane of every position, bit for bit; but for those with a ladder on a board so small that it goes round
    in kos for ever, for which AlphaGo's definition has no answer."""
    lines = records(Random(f"planes {size}"), size, min(length, 12) if WITHOUT_JIT else length)
    planes = encode_all(name, lines, frame)
    found = unpacked(planes, frame)
    at = endless = 0
    for line in lines:
        for seen in positions(line, TURNS):
            try:
                expected = SLOW_SCHEMES[name](seen, size)
            except TooDeepError:
                endless += 1
                at += 1
                continue
            assert tuple(expected) == SCHEMES[name].plane_names
            wrong = np.argwhere(dense(expected, frame) != found[at])
            assert not len(wrong), (line, at, [(tuple(expected)[plane], row, col) for plane, row, col in wrong])
            at += 1
    assert at == len(found)
    assert endless < (0.2 * at if size == (3, 3) and name in {"alphago48", "alphago49"} else 1)
    assert not found[:, :, size[0] :].any()
    assert not found[:, :, :, size[1] :].any()


def test_the_random_games_show_everything() -> None:
    """The games above hold captures, ko points, passes, setup in mid-game and White to move first."""
    lines = [line for size, _, length in CASES for line in records(Random(f"planes {size}"), size, length)]
    seen = [position for line in lines for position in positions(line)]
    assert sum(position.ko is not None for position in seen) > 5
    assert sum(point is None for line in lines for point, _ in line.moves) > 50
    assert sum(ply > 0 and colour == 0 for line in lines for ply, _, colour in line.setup) > 20
    assert any(line.moves[0][1] == 2 for line in lines)
    assert any(line.setup and {c for _, _, c in line.setup} == {1} for line in lines)
    captures = sum(
        len(later.boards[0]) < len(now.boards[0])
        for line in lines
        if not line.setup
        for now, later in zip(positions(line), positions(line)[1:], strict=False)
    )
    assert captures > 20


@pytest.mark.parametrize("name", SCHEMES)
def test_the_random_games_draw_every_plane(name: str) -> None:
    """No plane is empty in all of the games above, but the one that always is."""
    drawn = np.zeros(len(SCHEMES[name].planes), dtype=np.bool_)
    for size, frame, length in CASES[:8]:
        lines = records(Random(f"planes {size}"), size, length)
        drawn |= encode_all(name, lines, frame).any(axis=(0, 2))
    empty = ["zeros"] if "zeros" in SCHEMES[name].plane_names else []
    assert [plane for plane, found in zip(SCHEMES[name].plane_names, drawn, strict=True) if not found] == empty


def test_1117_patterns() -> None:
    """Counted over all boards up to 3x3, and each neighbourhood on them has the number that the rule gives it."""
    ranks, found = pattern_ranks(), pattern_numbers()
    assert len(ranks) == 1117
    assert found.max() == 1117
    expected = [ranks.get(canonical_code(digits), 0) for digits in product(range(4), repeat=8)]
    assert found.tolist() == expected


def test_seven_planes_of_a_ko() -> None:
    """Black has taken a ko: chains by liberties for White, who may not retake at once but after a pass each."""
    around = """. X O .
                X O . O
                . X O ."""
    setup = tuple((0, point, colour) for point, colour in draw(around).items())
    moves: tuple[tuple[Point | None, int], ...] = (((1, 2), 1), (None, 2), (None, 1))
    planes = unpacked(encode_all("seven_plane", [Line(3, 4, moves, setup)], (3, 4)), (3, 4))
    marked = [[tuple(point) for point in np.argwhere(plane).tolist()] for plane in planes[1]]
    own = [[(0, 2), (2, 2)], [(1, 3)], []]
    opp = [[(1, 2)], [(0, 1), (2, 1)], [(1, 0)]]
    assert marked == [*own, *opp, [(1, 1)]]
    assert planes[:, 6].sum(axis=(1, 2)).tolist() == [0, 1, 0]


@pytest.mark.parametrize("name", SCHEMES)
def test_rows_in_any_number_and_order_of_plies(name: str) -> None:
    """A row does not depend on the other rows asked for; sizes may change from game to game."""
    rng = Random("rows")
    sizes = [(3, 3), (5, 5), (3, 3), (3, 5), (5, 3), (5, 5)]
    games = games_of([random_record(rng, size, 12, (0, 5)) for size in sizes])
    frame = (5, 6)
    row_games, row_plies = all_rows(games)
    whole = encode(SCHEMES[name], games, row_games, row_plies, frame)
    chosen = np.array(sorted(rng.choices(range(len(row_games)), k=40), key=lambda row: row_games[row]))
    chosen = chosen[np.lexsort((rng.choices(range(100), k=40), row_games[chosen]))]
    assert len(set(chosen.tolist())) < 40
    part = encode(SCHEMES[name], games, row_games[chosen], row_plies[chosen], frame)
    assert np.array_equal(part, whole[chosen])
    none = encode(SCHEMES[name], games, row_games[:0], row_plies[:0], frame)
    assert none.shape == (0, len(SCHEMES[name].planes), 4)
    assert none.dtype == np.uint8


@slow_without_jit
@pytest.mark.parametrize("name", SCHEMES)
def test_many_positions_are_drawn_as_few_are(name: str) -> None:
    """More positions than are traced at once, and a game that alone is longer than that."""
    rng = Random("many")
    lines = [random_line(rng, 5, 5, 300) for _ in range(20)]
    lines.insert(7, Line(5, 5, (*random_line(rng, 5, 5, 40).moves, *((None, 1), (None, 2)) * 3_000)))
    whole = encode_all(name, lines, (5, 5))
    assert np.array_equal(whole, np.concatenate([encode_all(name, [line], (5, 5)) for line in lines]))


@pytest.mark.parametrize(("rows", "cols", "frame"), [(5, 5, (5, 5)), (9, 9, (9, 9)), (5, 9, (6, 9)), (3, 3, (4, 5))])
@pytest.mark.parametrize("name", SCHEMES)
def test_encoding_the_turned_game_turns_every_plane(name: str, rows: int, cols: int, frame: Size) -> None:
    rng = Random(f"turned {rows}x{cols}")
    line = random_record(rng, (rows, cols), 8 if WITHOUT_JIT else 50, (0, 20))
    planes = unpacked(encode_all(name, [line], frame), frame)
    for turn in range(symmetry.count(rows, cols)):
        image = unpacked(encode_all(name, [turned(line, turn)], frame), frame)
        expected = np.zeros_like(planes)
        for row in range(rows):
            for col in range(cols):
                there = symmetry.image_point(row, col, rows, cols, turn)
                expected[:, :, there[0], there[1]] = planes[:, :, row, col]
        assert np.array_equal(image, expected)


@pytest.mark.parametrize("name", SCHEMES)
def test_swapping_the_colours(name: str) -> None:
    """The same game with the colours exchanged: own and opp stay, Black and White change places, and what is
    the same for both stays as well; Black's turn becomes White's."""
    line = random_record(Random("colours"), (5, 5), 30, (0, 15))
    other = replace(
        line,
        moves=tuple((point, 3 - colour) for point, colour in line.moves),
        setup=tuple((ply, point, 3 - colour if colour else 0) for ply, point, colour in line.setup),
    )
    ours, theirs = encode_all(name, [line], (5, 5)), encode_all(name, [other], (5, 5))
    scheme = SCHEMES[name]
    partner = {"black": "white", "white": "black"}
    for number, plane in enumerate(scheme.planes):
        word, _, rest = plane.name.partition("_")
        same = f"{partner[word]}_{rest}" if word in partner else plane.name
        assert plane.perspective == "absolute" or word not in partner
        if same in scheme.plane_names:
            assert np.array_equal(ours[:, number], theirs[:, scheme.plane_names.index(same)])
        else:
            assert plane.name == "black_to_move"
            assert not (ours[:, number] & theirs[:, number]).any()


def transposing_games(rng: Random) -> list[Line]:
    """Return short games on small boards that meet the same positions, turned and in other orders."""
    lines = [random_line(rng, 2, 2, 12, 0.15, turns=True) for _ in range(40)]
    lines += [random_line(rng, 2, 3, 10, 0.1) for _ in range(40)]
    lines += [random_line(rng, 3, 3, 10, 0.1) for _ in range(60)]
    lines += [random_record(rng, (3, 3), 10, (0, 5)) for _ in range(30)]
    opening = random_line(rng, 5, 5, 3, 0)
    lines += [turned(replace(opening, moves=opening.moves[:k] + opening.moves[k:]), k % 8) for k in range(8)]
    lines += [replace(opening, moves=(opening.moves[2], opening.moves[1], opening.moves[0]))] * 2
    return (lines[::4] if WITHOUT_JIT else lines) + takes_or_not()


def takes_or_not() -> list[Line]:
    """Return two games of one move that end on the same board; in one it took a stone that was laddered."""
    black = tuple((0, point, 1) for point in ((3, 0), (3, 1)))
    moves: tuple[tuple[Point | None, int], ...] = (((4, 1), 1), (None, 2))
    return [Line(5, 5, moves, black), Line(5, 5, moves, (*black, (0, (4, 0), 2)))]


# Schemes whose planes show all that their keys cover. The others show less of it: gnugo's no stones, only what
# is around the empty points; a pass and no move at all are the same in planes of recent moves, not in the key.
SHOWS_ALL = {"board", "agz17", "agz17_grouped", "leela_zero18", "seven_plane"}


def covered(seen: Seen, line: Line, scheme: Scheme, turn: int) -> tuple[object, ...]:
    """Return what the key of a position covers, turned: boards, last moves, side, ko point, size."""

    def image(point: Point | None) -> Point | None:
        return None if point is None else symmetry.image_point(*point, line.rows, line.cols, turn)

    boards = tuple(
        frozenset((image(point), colour) for point, colour in board) for board in seen.boards[-1 - scheme.history :]
    )
    recent = tuple(image(point) for point in seen.recent[: scheme.recent])
    return boards, recent, seen.to_play, image(seen.ko), line.rows, line.cols


@pytest.mark.parametrize("name", SCHEMES)
def test_equal_keys_are_equal_planes(name: str) -> None:
    """After each row is turned by its key's symmetry: one key for each (boards, moves, side, ko, size) that the
    scheme covers, no more; and one set of planes for each key."""
    lines = transposing_games(Random("keys"))
    games, frame, scheme = games_of(lines), (5, 5), SCHEMES[name]
    row_games, row_plies = all_rows(games)
    replayed = replay(games, scheme.history, scheme.recent)
    assert not replayed.faults.any()
    rows, cols = games.rows[row_games], games.cols[row_games]
    planes = turn_planes(encode(scheme, games, row_games, row_plies, frame), rows, cols, 5, replayed.turns)
    seen = [(line, position) for line in lines for position in positions(line, scheme.history)]
    shown = [
        (planes[row].tobytes(), covered(position, line, scheme, int(replayed.turns[row])))
        for row, (line, position) in enumerate(seen)
    ]
    keys = replayed.keys.tolist()
    assert len(set(keys)) == len({behind for _, behind in shown})
    assert len(set(keys)) == len(set(zip(keys, shown, strict=True)))
    assert len(set(keys)) < 0.9 * len(keys)
    if name in SHOWS_ALL:
        assert len(set(keys)) == len({(drawn, *behind[2:]) for drawn, behind in shown})


def stored_games(name: str) -> tuple[Any, dict[str, Games]]:
    """Return a file of KataGo's answers and its games, suicide and simple ko, by name."""
    data = np.load(VECTORS / "katago" / f"{name}.npz")
    games = {}
    for game, title in enumerate(data["game_name"].tolist()):
        rows, cols = int(data["board_ysize"][game]), int(data["board_xsize"][game])

        def points(frame: NDArray[Any], rows: int = rows, cols: int = cols) -> NDArray[np.uint16]:
            index = frame.astype(np.int64)
            return np.where(index == 361, rows * cols, index // 19 * cols + index % 19).astype(np.uint16)

        moves = slice(*data["move_offsets"][game : game + 2])
        setup = slice(*data["setup_offsets"][game : game + 2])
        stones = points(data["setup_pos"][setup])
        games[title] = Games(
            np.array([rows], dtype=np.uint8),
            np.array([cols], dtype=np.uint8),
            np.zeros(1, dtype=np.int8),
            np.ones(1, dtype=np.bool_),
            np.array([0, len(data["move_pos"][moves])], dtype=np.int64),
            points(data["move_pos"][moves]),
            data["move_color"][moves].astype(np.int8),
            np.array([0, len(stones)], dtype=np.int64),
            np.zeros(len(stones), dtype=np.uint16),
            stones,
            data["setup_color"][setup].astype(np.int8),
            plain_terms(1),
        )
    return data, games


def sound_rows(games: Games, limit: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows of one game: the positions before its legal moves, the first illegal one, and ``limit``."""
    count = min(int(replay(games).legal[0]) + 1, len(games.moves), limit)
    return np.zeros(count, dtype=np.int64), np.arange(count, dtype=np.int64)


SEEN_BY_KATAGO = ("board", "agz17", "leela_zero18", "seven_plane")


@needs_vectors
@slow_without_jit
@pytest.mark.parametrize(("name", "view"), [("gnugo", "cn"), ("random", "tt"), ("superko", "tt")])
def test_katago_sees_the_same(name: str, view: str) -> None:
    """Stones, eight boards, ko point, side and few liberties of KataGo's own rows."""
    data, games = stored_games(name)
    compared = kos = 0
    for number, game in enumerate(games.values()):
        first, last = data[f"{view}_pos_offsets"][number : number + 2].tolist()
        row_games, row_plies = sound_rows(game, last - first)
        count = len(row_plies)
        stones = data[f"{view}_stones"][first:last]
        mover = data[f"{view}_next_player"][first : first + count].astype(np.int64)
        assert np.array_equal(mover, game.colours[:count])

        planes = {name: encode(SCHEMES[name], game, row_games, row_plies, (19, 19)) for name in SEEN_BY_KATAGO}
        assert np.array_equal(planes["board"][:, :2], stones[:count])
        own, opp = mover - 1, 2 - mover
        ply = np.arange(count)
        for back in range(TURNS):
            there = np.maximum(ply - back, 0)
            exists = (ply >= back)[:, np.newaxis]
            for side, colour in ((0, own), (1, opp)):
                expected = np.where(exists, stones[there, colour], 0)
                assert np.array_equal(planes["agz17"][:, 2 * back + side], expected)
                assert np.array_equal(planes["leela_zero18"][:, 8 * side + back], expected)
        spatial = data[f"{view}_spatial"][first : first + count]
        black = (mover == 1)[:, np.newaxis]
        assert np.array_equal(planes["agz17"][:, 16], np.where(black, spatial[:, 0], 0))
        assert np.array_equal(planes["leela_zero18"][:, 17], np.where(black, 0, spatial[:, 0]))
        seven = planes["seven_plane"]
        assert np.array_equal(seven[:, 0] | seven[:, 3], spatial[:, 3])
        assert np.array_equal(seven[:, 1] | seven[:, 4], spatial[:, 4])
        many = (spatial[:, 1] | spatial[:, 2]) & ~(spatial[:, 3] | spatial[:, 4])
        assert np.array_equal(seven[:, 2] | seven[:, 5], many)
        ko = data[f"{view}_ko_point"][first : first + count]
        expected = np.packbits(np.arange(361) == ko[:, np.newaxis], axis=-1)
        assert np.array_equal(seven[:, 6], expected)
        compared += count
        kos += int((ko >= 0).sum())
    assert compared > 1_500
    assert kos > 20


@needs_vectors
@slow_without_jit
def test_the_48_planes_share_their_stones_and_liberties() -> None:
    """What these schemes have in common with the stored rows of AlphaGo's planes."""
    rows48 = np.load(VECTORS / "alphago48" / "games.npz")
    games = stored_games("gnugo")[1] | stored_games("random")[1]
    compared = 0
    for number, title in enumerate(rows48["game_name"].tolist()):
        chosen = rows48["game"] == number
        theirs, plies = rows48["planes"][chosen], rows48["ply"][chosen].astype(np.int64)
        inside = plies < len(games[title].moves)
        theirs, plies = theirs[inside], plies[inside]
        rows = np.zeros(len(plies), dtype=np.int64), plies
        agz = encode(SCHEMES["agz17"], games[title], *rows, (19, 19))
        seven = encode(SCHEMES["seven_plane"], games[title], *rows, (19, 19))
        board = encode(SCHEMES["board"], games[title], *rows, (19, 19))
        assert np.array_equal(agz[:, :2], theirs[:, :2])
        assert np.array_equal(board[:, 2], theirs[:, 2])
        assert np.array_equal(agz[:, 16], theirs[:, 48])
        assert np.array_equal(seven[:, 0] | seven[:, 3], theirs[:, 12])
        assert np.array_equal(seven[:, 1] | seven[:, 4], theirs[:, 13])
        assert np.array_equal(seven[:, 2] | seven[:, 5], np.bitwise_or.reduce(theirs[:, 14:20], axis=1))
        compared += len(plies)
    assert compared > 1_000


def test_the_table_of_schemes() -> None:
    """Names are unique, every plane says what it is, and each scheme is in the slow reference."""
    assert set(SCHEMES) == set(SLOW_SCHEMES)
    assert {name: len(scheme.planes) for name, scheme in SCHEMES.items()} == {
        "board": 3,
        "alphago48": 48,
        "alphago49": 49,
        "agz17": 17,
        "agz17_grouped": 17,
        "leela_zero18": 18,
        "seven_plane": 7,
        "minigo21": 21,
        "gnugo": 36,
        "alphago48_strings": 48,
        "alphago48_history": 48,
    }
    for name, scheme in SCHEMES.items():
        assert scheme.name == name
        assert scheme.version >= 1
        assert len(set(scheme.plane_names)) == len(scheme.planes)
        for plane in scheme.planes:
            assert plane.name
            assert plane.meaning
            assert plane.source
            assert plane.perspective in {"mover", "absolute"}
    assert {name: (scheme.history, scheme.recent) for name, scheme in SCHEMES.items()} == {
        "board": (0, 0),
        "alphago48": (0, 7),
        "alphago49": (0, 7),
        "agz17": (7, 0),
        "agz17_grouped": (7, 0),
        "leela_zero18": (7, 0),
        "seven_plane": (0, 0),
        "minigo21": (0, 8),
        "gnugo": (0, 0),
        # The ladders of one turn ago depend on that board's ko point, which follows from the board before it.
        "alphago48_strings": (2, 8),
        "alphago48_history": (8, 1),
    }


def test_unknown_schemes() -> None:
    assert find_scheme("agz17") is SCHEMES["agz17"]
    with pytest.raises(ValueError, match=r"'leela_zero' \(did you mean 'leela_zero18'\?\); known are board, "):
        find_scheme("leela_zero")
    with pytest.raises(ValueError, match="unknown scheme 'xyz'; known are board, "):
        find_scheme("xyz")


def test_plane_bytes() -> None:
    assert [plane_bytes(frame) for frame in ((1, 1), (2, 4), (3, 3), (19, 19), (25, 25))] == [1, 1, 2, 46, 79]
