"""Planes and globals against the slow reference, KataGo's rows and the 48 planes; symmetry; the table."""

import os
from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from random_games import (
    HANDICAPS,
    RULES,
    Line,
    games_of,
    ko_fight,
    plain_terms,
    positions,
    random_line,
    random_record,
)
from scheme_rows import Size, all_rows, assert_turns, encode_all, unpacked
from slow_board import BLACK, WHITE, Point, draw
from slow_ladders import TooDeepError
from slow_planes import (
    SLOW_SCHEMES,
    TURNS,
    can_be_shown,
    canonical_code,
    dense,
    kata_seen,
    numbers_of,
    pattern_ranks,
)

from pipeline.encode import encode, encode_whole, plane_bytes
from pipeline.games import Games
from pipeline.keys import keyed
from pipeline.planes.edges import pattern_numbers
from pipeline.replay import replay
from pipeline.rules import RULE_SETS
from pipeline.schemes import SCHEMES, find_scheme

WITHOUT_JIT = os.environ.get("NUMBA_DISABLE_JIT") == "1"
VECTORS = Path(__file__).parents[2] / "shared" / "vectors"
needs_vectors = pytest.mark.skipif(not VECTORS.exists(), reason="the stored answers are not there")
slow_without_jit = pytest.mark.skipif(WITHOUT_JIT, reason="would take long without compiled kernels")

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


def records(rng: Random, size: Size, length: int, number: int) -> list[Line]:
    """Return games of every kind: a ko, plain, White first, handicap, setup in mid-game and twice in a row.

    Other rules for other ``number``s.
    """
    some = [RULES[(7 * number + 3 * kind) % len(RULES)] for kind in range(4)]
    superko = [rules for rules in RULES if rules.ko != "simple"][number % 5]
    handicap = tuple((0, point, BLACK) for point in {(0, 0), (size[0] - 1, size[1] - 1)} if size[0] * size[1] > 4)
    white_first = random_record(rng, size, 5, (), WHITE, some[0])
    on_handicap = tuple(move for move in white_first.moves if move[0] not in {point for _, point, _ in handicap})
    fight = [ko_fight(rng, size, min(length, 20), superko)] if size[0] >= 3 and size[1] >= 4 else []
    return [
        *fight,
        random_record(rng, size, length, (), BLACK, some[1], in_turn=1),
        random_record(rng, size, length, (0, length // 2), BLACK, some[2]),
        random_record(rng, size, length, (3, 4, length - 1), WHITE, some[3]),
        replace(white_first, moves=on_handicap[:1], setup=handicap),
    ]


@cache
def case_lines(size: Size, length: int) -> list[Line]:
    """Return the games of one of ``CASES``."""
    number = [(one, moves) for one, _, moves in CASES].index((size, length))
    return records(Random(f"planes {size}"), size, min(length, 12) if WITHOUT_JIT else length, number)


@pytest.mark.parametrize(("size", "frame", "length"), CASES)
@pytest.mark.parametrize("name", SCHEMES)
def test_planes_are_those_of_the_slow_reference(name: str, size: Size, frame: Size, length: int) -> None:
    """Every plane of every position, bit for bit, and its globals; but for those with a ladder on a board so small
    that it goes round in kos for ever, for which AlphaGo's definition has no answer."""
    lines = case_lines(size, length)
    games, scheme = games_of(lines), SCHEMES[name]
    planes, numbers = encode_whole(scheme, games, *all_rows(games), frame)
    shown, found = keyed(games, scheme).shown.tolist(), unpacked(planes, frame)
    endless = 0
    for at, seen in enumerate(seen for line in lines for seen in positions(line, TURNS)):
        assert shown[at] == can_be_shown(name, seen)
        if not shown[at]:
            continue
        try:
            expected = SLOW_SCHEMES[name](seen, size)
        except TooDeepError:
            endless += 1
            continue
        assert tuple(expected) == scheme.plane_names
        wrong = np.argwhere(dense(expected, frame) != found[at])
        assert not len(wrong), (seen.line, at, [(tuple(expected)[plane], row, col) for plane, row, col in wrong])
        assert numbers[at].tobytes() == numbers_of(name, seen).tobytes(), (seen.line, at)
    assert sum(shown) > 0.5 * len(shown)
    assert endless < (0.2 * len(found) if size == (3, 3) and name in {"alphago48", "alphago49"} else 1)
    assert not found[:, :, size[0] :].any()
    assert not found[:, :, :, size[1] :].any()


@slow_without_jit
def test_the_random_games_show_everything() -> None:
    """The games above hold captures, suicides, kos, bans of superko, passes, the encore, setup in mid-game, White to
    move first and a side that moves twice, all rules, komis and handicaps."""
    lines = [line for size, _, length in CASES for line in case_lines(size, length)]
    assert not replay(games_of(lines)).faults.any()
    met: Counter[str] = Counter()
    for line in lines:
        seen, kata = positions(line), kata_seen(line)
        met["no komi" if line.komi is None else "komi"] += 1
        met[f"handicap {line.handicap}"] += 1
        met["setup in mid-game"] += any(ply > 0 and colour == 0 for ply, _, colour in line.setup)
        met["White first"] += line.moves[0][1] == WHITE
        met["handicap stones"] += bool(line.setup) and {colour for _, _, colour in line.setup} == {BLACK}
        for now, later, view in zip(seen, [*seen[1:], None], kata, strict=True):
            point, colour = line.moves[now.ply]
            met["ko"] += now.ko is not None
            met["pass"] += point is None
            met["twice"] += view is not None and not view.in_turn
            met["superko"] += view is not None and bool(view.banned)
            met["encore"] += view is None
            if later is not None and later.begin < later.ply and point is not None:
                met["capture"] += len(later.boards[0]) <= len(now.boards[0])
                met["suicide"] += (point, colour) not in later.boards[0]
    assert {line.rules.name for line in lines} == {rules.name for rules in RULES}
    wanted = {f"handicap {stones}": 4 for stones in HANDICAPS}
    wanted |= {"no komi": 3, "komi": 20, "setup in mid-game": 8, "White first": 8, "handicap stones": 4, "twice": 20}
    wanted |= {"ko": 40, "pass": 50, "superko": 10, "encore": 20, "capture": 100, "suicide": 3}
    assert {what: met[what] for what, least in wanted.items() if met[what] < least} == {}


# KataGo's planes of the encore, and those that are empty by definition.
NEVER_DRAWN = {"zeros", "ko_blocked", "own_second", "opp_second"}


@pytest.mark.parametrize("name", SCHEMES)
def test_the_random_games_draw_every_plane(name: str) -> None:
    """No plane is empty in all of the games above, but those that always are."""
    drawn, scheme = np.zeros(len(SCHEMES[name].planes), dtype=np.bool_), SCHEMES[name]
    for size, frame, length in CASES[:8]:
        games = games_of(case_lines(size, length))
        planes = encode(scheme, games, *all_rows(games), frame)
        drawn |= planes[keyed(games, scheme).shown].any(axis=(0, 2))
    assert {plane for plane, found in zip(scheme.plane_names, drawn, strict=True) if not found} == (
        NEVER_DRAWN & set(scheme.plane_names)
    )


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
    planes = unpacked(encode_all(SCHEMES["seven_plane"], [Line(3, 4, moves, setup)], (3, 4))[0], (3, 4))
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
    planes, numbers = encode_whole(SCHEMES[name], games, row_games, row_plies, frame)
    chosen = np.array(sorted(rng.choices(range(len(row_games)), k=40), key=lambda row: row_games[row]))
    chosen = chosen[np.lexsort((rng.choices(range(100), k=40), row_games[chosen]))]
    assert len(set(chosen.tolist())) < 40
    part, part_numbers = encode_whole(SCHEMES[name], games, row_games[chosen], row_plies[chosen], frame)
    assert np.array_equal(part, planes[chosen])
    assert np.array_equal(part_numbers, numbers[chosen])
    none, no_numbers = encode_whole(SCHEMES[name], games, row_games[:0], row_plies[:0], frame)
    assert none.shape == (0, len(SCHEMES[name].planes), 4)
    assert none.dtype == np.uint8
    assert no_numbers.shape == (0, len(SCHEMES[name].globals))
    assert no_numbers.dtype == np.float32


@slow_without_jit
@pytest.mark.parametrize("name", SCHEMES)
def test_many_positions_are_drawn_as_few_are(name: str) -> None:
    """More positions than are traced at once, and a game that alone is longer than that."""
    rng = Random("many")
    lines = [random_line(rng, 5, 5, 300) for _ in range(20)]
    lines.insert(7, Line(5, 5, (*random_line(rng, 5, 5, 40).moves, *((None, 1), (None, 2)) * 3_000)))
    scheme = SCHEMES[name]
    planes, numbers = encode_all(scheme, lines, (5, 5))
    alone = [encode_all(scheme, [line], (5, 5)) for line in lines]
    assert np.array_equal(planes, np.concatenate([rows for rows, _ in alone]))
    assert np.array_equal(numbers, np.concatenate([rows for _, rows in alone]))


@pytest.mark.parametrize(("size", "frame"), [((5, 5), (5, 5)), ((9, 9), (9, 9)), ((5, 9), (6, 9)), ((3, 3), (4, 5))])
@pytest.mark.parametrize("name", SCHEMES)
def test_encoding_the_turned_game_turns_every_plane(name: str, size: Size, frame: Size) -> None:
    rng = Random(f"turned {size}")
    assert_turns(SCHEMES[name], random_record(rng, size, 8 if WITHOUT_JIT else 50, (0, 20)), frame)


@pytest.mark.parametrize("rules", ["tromp-taylor", "japanese", "aga-button", "stone-scoring"])
@pytest.mark.parametrize("name", SCHEMES)
def test_swapping_the_colours(name: str, rules: str) -> None:
    """The same game with the colours exchanged and the komi turned round: own and opp stay, Black and White change
    places, and what is the same for both stays as well; Black's turn becomes White's.

    White's komi and handicaps are White's alone: their planes do not follow.
    """
    line = replace(random_record(Random("colours"), (5, 5), 30, (0, 15), rules=RULE_SETS[rules]), komi=6.5)
    other = replace(
        line,
        moves=tuple((point, 3 - colour) for point, colour in line.moves),
        setup=tuple((ply, point, 3 - colour if colour else 0) for ply, point, colour in line.setup),
        komi=-6.5,
    )
    assert {colour for ply, _, colour in line.setup if ply == 0} >= {BLACK, WHITE}  # no handicap to be given points for
    scheme = SCHEMES[name]
    (ours, numbers), (theirs, other_numbers) = (encode_all(scheme, [one], (5, 5)) for one in (line, other))
    if name == "katago_v7":
        shown = keyed(games_of([line]), scheme).shown
        assert shown[10:].any()
        ours, theirs, numbers, other_numbers = (rows[shown] for rows in (ours, theirs, numbers, other_numbers))
    assert np.array_equal(numbers, other_numbers)
    partner = {"black": "white", "white": "black"}
    for number, plane in enumerate(scheme.planes):
        word, _, rest = plane.name.partition("_")
        same = f"{partner[word]}_{rest}" if word in partner else plane.name
        assert plane.perspective == "absolute" or word not in partner
        if same not in scheme.plane_names:
            assert plane.name == "black_to_move"
            assert not (ours[:, number] & theirs[:, number]).any()
        elif same not in {"komi_6", "komi_7", "handicap"}:
            assert np.array_equal(ours[:, number], theirs[:, scheme.plane_names.index(same)])


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
        "katago22_article": 22,
        "katago_v7": 22,
    }
    assert {name: len(scheme.globals) for name, scheme in SCHEMES.items() if scheme.globals} == {"katago_v7": 19}
    assert {name for name, scheme in SCHEMES.items() if scheme.komi} == {"katago22_article", "katago_v7"}
    for name, scheme in SCHEMES.items():
        assert scheme.name == name
        assert scheme.version >= 1
        assert len(set(scheme.plane_names)) == len(scheme.planes)
        assert len(set(scheme.global_names)) == len(scheme.globals)
        for plane in (*scheme.planes, *scheme.globals):
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
        "katago22_article": (0, 5),
        "katago_v7": (3, 5),  # ladders of two turns ago
    }


def test_unknown_schemes() -> None:
    assert find_scheme("agz17") is SCHEMES["agz17"]
    with pytest.raises(ValueError, match=r"'leela_zero' \(did you mean 'leela_zero18'\?\); known are board, "):
        find_scheme("leela_zero")
    with pytest.raises(ValueError, match="unknown scheme 'xyz'; known are board, "):
        find_scheme("xyz")


def test_plane_bytes() -> None:
    assert [plane_bytes(frame) for frame in ((1, 1), (2, 4), (3, 3), (19, 19), (25, 25))] == [1, 1, 2, 46, 79]
