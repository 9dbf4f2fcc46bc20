"""Areas against boards worked out by hand, the slow areas, and KataGo's stored answers."""

import itertools
import os
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import slow_areas
from area_boards import drawn, fast_board, owners_of, points_of, random_board, spots_of
from area_rows import solve_rows
from numpy.typing import NDArray
from random_games import Line, games_of, positions, random_line
from slow_board import Point, SlowBoard, draw

from pipeline import areas as fast
from pipeline import symmetry
from pipeline.areas import Areas, trace_areas
from pipeline.board import WORDS, Board
from pipeline.passalive import find_pass_alive, new_benson
from pipeline.rules import RULE_SETS, SCORING_AREA, SCORING_TERRITORY, TAX_ALL, TAX_NONE, TAX_SEKI
from pipeline.spotset import lowest_bit, read_stones

WITHOUT_JIT = os.environ.get("NUMBA_DISABLE_JIT") == "1"
VECTORS = Path(__file__).parents[2] / "shared" / "vectors" / "katago"
SCORINGS = {"area": SCORING_AREA, "territory": SCORING_TERRITORY}
TAXES = {"none": TAX_NONE, "seki": TAX_SEKI, "all": TAX_ALL}
SIZES = [(1, 1), (1, 2), (1, 7), (7, 1), (2, 2), (2, 3), (3, 3), (4, 4), (5, 5), (6, 6), (7, 7), (8, 8), (9, 9), (5, 9)]


def alive_points(slow: SlowBoard, colour: int, suicide: bool) -> set[Point]:
    """Return the pass-alive stones and territory that the kernel finds."""
    board = fast_board(slow)
    stones, alive = np.zeros((3, WORDS), dtype=np.uint64), np.zeros(WORDS, dtype=np.uint64)
    read_stones(board, stones)
    find_pass_alive(board, stones, colour, suicide, new_benson(), alive)
    return points_of(slow, board, alive)


def solved(
    slow: SlowBoard, scoring: str, tax: str, suicide: bool, second: dict[Point, int] | None
) -> tuple[Board, Areas]:
    """Return the kernel's board and its areas under these rules."""
    board, areas = fast_board(slow), fast.new_areas()
    read_stones(board, areas.stones)
    stood = spots_of(board, second or {})
    fast.own_areas(board, SCORINGS[scoring], TAXES[tax], suicide, second is not None, stood, areas)
    return board, areas


def owned(
    slow: SlowBoard, scoring: str = "area", tax: str = "none", suicide: bool = False, second: Any = None
) -> dict[Point, int]:
    """Return the owner of each point that counts, as the kernel has it."""
    board, areas = solved(slow, scoring, tax, suicide, second)
    return owners_of(slow, board, areas.owned)


# A board, then what is pass-alive for Black (X) and for White (O): without suicide, with suicide.
PASS_ALIVE = {
    "two one-point eyes": (
        ". X . X .\nX X X X .\n. . . . .\n. . . . .",
        "X X X X .\nX X X X .\n. . . . .\n. . . . .",
        "X X X X .\nX X X X .\n. . . . .\n. . . . .",
    ),
    "one eye is not enough": (
        ". X . . .\nX X . . .\n. . . . .",
        ". . . . .\n. . . . .\n. . . . .",
        ". . . . .\n. . . . .\n. . . . .",
    ),
    "two chains that share both eyes": (
        ". X . . .\nX . X . .\n. X X . .\n. . . . .",
        ". . . . .\n. . . . .\n. . . . .\n. . . . .",
        ". . . . .\n. . . . .\n. . . . .\n. . . . .",
    ),
    "a wall with the edge behind it": (
        ". X . .\n. X . .\nX X . .\n. X . .\n. X . .",
        "X X . .\nX X . .\nX X . .\nX X . .\nX X . .",
        "X X . .\nX X . .\nX X . .\nX X . .\nX X . .",
    ),
    # The white stones stand away from the wall: with suicide the room is not vital, without it is.
    "dead stones behind a full wall": (
        "O . X .\nO . X .\nX X X .\n. X . .\nX X . .",
        "X X X .\nX X X .\nX X X .\nX X . .\nX X . .",
        ". . . .\n. . . .\n. . . .\n. . . .\n. . . .",
    ),
    # By two eyes alive, the chain owns a room with one point away from it, dead stone included, but none with several.
    "rooms by the points away from the wall": (
        ". X . X . . . X . . .\nX X X X . O . X . . O\n. . . X X X X X . . .",
        "X X X X X X X X . . .\nX X X X X X X X . . .\nX X X X X X X X . . .",
        "X X X X X X X X . . .\nX X X X X X X X . . .\nX X X X X X X X . . .",
    ),
    "both colours": (
        ". X X O .\nX X O O O\n. X O . O\nX X O O .",
        "X X X O O\nX X O O O\nX X O O O\nX X O O O",
        "X X X O O\nX X O O O\nX X O O O\nX X O O O",
    ),
}


@pytest.mark.parametrize("name", PASS_ALIVE)
@pytest.mark.parametrize("suicide", [False, True])
def test_pass_alive_by_hand(name: str, suicide: bool) -> None:
    text, without, with_suicide = PASS_ALIVE[name]
    board, right = drawn(text), draw(with_suicide if suicide else without)
    for colour in (1, 2):
        expected = {point for point, owner in right.items() if owner == colour}
        assert alive_points(board, colour, suicide) == expected
        assert slow_areas.pass_alive(board, colour, suicide) == expected


@pytest.mark.parametrize("notches", [(2,), (13,), (2, 13), (2, 4)])
def test_points_away_from_the_wall_are_counted_far_apart(notches: tuple[int, ...]) -> None:
    """A long room between two walls: each notch in the right-hand wall leaves one point without a stone beside it."""
    rows, cols = 17, 8
    stones = {(0, 1), (0, 3), *((1, col) for col in range(4)), *((16, col) for col in range(3, 8))}
    stones |= {(row, col) for row in range(rows) for col in (3, 6, 7)} - {(row, 6) for row in notches}
    room = {(row, col) for row in range(16) for col in (4, 5)} | {(row, 6) for row in notches}
    slow = SlowBoard(rows, cols)
    slow.stones = dict.fromkeys(stones, 2)
    eyes = {(0, 0), (0, 2)}
    assert alive_points(slow, 2, False) == stones | eyes | (room if len(notches) == 1 else set())


def test_full_area_by_hand() -> None:
    """A live black corner with a dead white stone in it, a white side, and a point that is nobody's."""
    board = drawn(". X . X . . O .\nX X O X . . O .\n. X X X . . O .\nX X . . . . O .")
    assert owned(board) == draw("X X X X . . O O\nX X X X . . O O\nX X X X . . O O\nX X . . . . O O")


def test_an_empty_board_is_nobodys() -> None:
    for size in ((1, 1), (3, 4), (25, 25)):
        assert owned(SlowBoard(*size)) == {}


def test_a_seki_counts_for_its_stones_only_under_tax() -> None:
    """Two chains hold each other with an eye each and a liberty that neither fills."""
    board = drawn(". X . O .\nX X X O O\nO O O X X\n. . O X .")
    full = owned(board)
    assert full == draw("X X . O O\nX X X O O\nO O O X X\nO O O X X")
    stones_only = {point: colour for point, colour in full.items() if point in board.stones}
    with_tax = owned(board, tax="seki")
    assert with_tax == slow_areas.own_areas(board, "area", "seki", False, None)
    assert stones_only.items() <= with_tax.items() <= full.items()
    assert with_tax != full


def test_territory_counts_from_the_second_encore_on() -> None:
    """Black's chain in atari is struck out, its stones count again if they stood when the encore began."""
    board = drawn(". X O . O\nX X O O .\n. . . O O")
    assert owned(board, "territory", "seki") == {}
    first = owned(board, "territory", "seki", second={})
    assert (0, 1) not in first
    stood = owned(board, "territory", "seki", second={(0, 1): 1, (0, 2): 1})
    assert stood == {**first, (0, 1): 1}


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        (". X O . O X .\n. X O . O X .\n. X O . O X .", {1: 2, 2: 1}),
        # The gap between White and the right-hand side is nobody's: neither lives beside it.
        (". X O . O . X .\n. X O . O . X .\n. X O . O . X .", {1: 1, 2: 0}),
        # The left-hand side is in atari.
        (". X O . O X .\nX X O . O X .\nX X O . O X .", {1: 1, 2: 1}),
        (". . .\n. . .", {1: 0, 2: 0}),
    ],
)
def test_living_pieces_by_hand(text: str, pieces: dict[int, int]) -> None:
    slow = drawn(text)
    full = slow_areas.full_area(slow, False)
    assert {colour: len(slow_areas.living_pieces(slow, full, colour)) for colour in (1, 2)} == pieces


@pytest.mark.parametrize("size", SIZES)
def test_random_boards_against_the_slow_areas(size: tuple[int, int]) -> None:
    """Pass-alive, full area, independent life and every rule's areas."""
    rng, seen = Random(f"areas {size}"), Counter[str]()
    for _ in range(3 if WITHOUT_JIT else 150 if max(size) < 6 else 60):
        slow = random_board(rng, *size)
        for suicide in (False, True):
            for colour in (1, 2):
                alive = slow_areas.pass_alive(slow, colour, suicide)
                assert alive_points(slow, colour, suicide) == alive, slow.text()
                seen["alive"] += bool(alive)
                seen["dead stone"] += any(slow.stones.get(point) == 3 - colour for point in alive)
        suicide = rng.random() < 0.5
        second = {point: rng.choice((1, 2)) for point in slow.neighbours if rng.random() < 0.5}
        for scoring, tax, stood in itertools.product(SCORINGS, TAXES, (None, second)):
            right = slow_areas.own_areas(slow, scoring, tax, suicide, stood)
            assert owned(slow, scoring, tax, suicide, stood) == right, (scoring, tax, suicide, slow.text())
            seen[f"{scoring} {tax}"] += bool(right)
        full = slow_areas.full_area(slow, suicide)
        for colour in (1, 2):
            pieces = slow_areas.living_pieces(slow, full, colour)
            seen["struck out"] += len(pieces) < len(
                list(slow_areas.pieces(slow, {p for p in full if full[p] == colour}))
            )
    if not WITHOUT_JIT and min(size) >= 4:
        wanted = ["alive", "dead stone", "struck out"]
        wanted += [f"{scoring} {tax}" for scoring in SCORINGS for tax in TAXES]
        assert all(seen[name] >= 3 for name in wanted), seen


@pytest.mark.parametrize("size", [(19, 19), (13, 25), (25, 25)])
def test_large_random_boards_against_the_slow_areas(size: tuple[int, int]) -> None:
    rng = Random(f"large areas {size}")
    for _ in range(1 if WITHOUT_JIT else 8):
        slow = random_board(rng, *size)
        for scoring, tax in (("area", "none"), ("territory", "all")):
            right = slow_areas.own_areas(slow, scoring, tax, True, {})
            assert owned(slow, scoring, tax, True, {}) == right, slow.text()


@pytest.mark.parametrize("size", [(5, 5), (4, 7), (9, 9), (19, 19)])
def test_areas_turn_with_the_board_and_with_the_colours(size: tuple[int, int]) -> None:
    rng = Random(f"turned areas {size}")
    for _ in range(1 if WITHOUT_JIT else 10):
        slow = random_board(rng, *size)
        rules: Any = rng.choice(
            (("area", "none", False, None), ("area", "seki", True, None), ("territory", "all", False, {}))
        )
        right = owned(slow, *rules)
        swapped = SlowBoard(*size)
        swapped.stones = {point: 3 - colour for point, colour in slow.stones.items()}
        assert owned(swapped, *rules) == {point: 3 - colour for point, colour in right.items()}
        for turn in range(symmetry.count(*size)):

            def image(point: Point, turn: int = turn) -> Point:
                return symmetry.image_point(*point, *size, turn)

            other = SlowBoard(*(size[::-1] if turn & 4 else size))
            other.stones = {image(point): colour for point, colour in slow.stones.items()}
            assert owned(other, *rules) == {image(point): colour for point, colour in right.items()}


def hostile_boards() -> dict[str, SlowBoard]:
    """Boards of 25x25 with the longest ways and the most regions."""
    spiral, comb, eyes = (SlowBoard(25, 25) for _ in range(3))
    row, col, step = 0, 0, (0, 1)
    free: list[Point] = [(row, col)]  # a way that winds inwards, walls one stone thick
    inside = spiral.neighbours
    while True:
        ahead = (row + step[0], col + step[1])
        further = (ahead[0] + step[0], ahead[1] + step[1])
        if ahead not in inside or further in free:
            step = (step[1], -step[0])
            ahead = (row + step[0], col + step[1])
            if ahead in free or (ahead[0] + step[0], ahead[1] + step[1]) in free:
                break
        row, col = ahead
        free.append(ahead)
    spiral.stones = {point: 1 for point in inside if point not in free}
    comb.stones = {
        (r, c): 1 for r, c in inside if c % 2 and not (r == 0 and c % 4 == 1) and not (r == 24 and c % 4 == 3)
    }
    eyes.stones = {(r, c): 1 for r, c in inside if (r + c) % 2}
    return {"spiral": spiral, "comb": comb, "eyes": eyes}


@pytest.mark.parametrize("name", ["spiral", "comb", "eyes"])
def test_no_board_is_slow(name: str) -> None:
    slow = hostile_boards()[name]
    board, areas = fast_board(slow), fast.new_areas()
    read_stones(board, areas.stones)
    arguments = (board, SCORING_TERRITORY, TAX_NONE, True, True, areas.stones, areas)
    fast.own_areas(*arguments)
    assert owners_of(slow, board, areas.owned) == slow_areas.own_areas(slow, "territory", "none", True, slow.stones)
    if not WITHOUT_JIT:
        times = []
        for _ in range(5):
            begun = time.perf_counter()
            fast.own_areas(*arguments)
            times.append(time.perf_counter() - begun)
        assert min(times) < 0.005


@pytest.mark.parametrize("size", [(1, 1), (3, 3), (5, 9), (9, 9), (19, 19)])
def test_trace_is_the_areas_of_each_position(size: tuple[int, int]) -> None:
    """Games with captures, passes, suicide and setup stones in mid-game; each under its own rules."""
    rng, frame = Random(f"area trace {size}"), (size[0] + 1, size[1] + 2)
    lines = []
    rules = [("area", "none"), ("area", "all"), ("territory", "seki")]
    for number in range(3):
        line = random_line(rng, *size, 40 if number or WITHOUT_JIT else 150, passes=0.1, turns=True)
        moves = (*line.moves, (None, 1), (None, 2), (None, 1))
        last = positions(replace(line, moves=moves))[-1].boards[-1]
        # After a pass half of the stones are taken away, which is always legal.
        setup = tuple((len(moves) - 1, point, 0) for point, _ in sorted(last)[::2])
        scoring, tax = rules[number]
        terms = replace(RULE_SETS["chinese"], scoring=scoring, tax=tax)
        lines.append(Line(*size, moves, setup, suicide=number != 1, rules=terms))
    games = games_of(lines)
    plies = np.array([len(line.moves) for line in lines], dtype=np.int64)
    order = np.array([2, 0, 1], dtype=np.int64)
    traced = trace_areas(games, order, plies, frame)
    planes = np.unpackbits(traced.planes, axis=-1)[..., : frame[0] * frame[1]].reshape(-1, 2, *frame)
    at = 0
    for game in order:
        for seen in positions(lines[game]):
            slow = SlowBoard(*size)
            slow.stones = dict(seen.boards[-1])
            right = slow_areas.own_areas(slow, *rules[game], lines[game].suicide, None)
            shown = {(int(r), int(c)): int(k) + 1 for k, r, c in np.argwhere(planes[at])}
            assert shown == right
            assert planes[at].sum() == len(right)
            at += 1
    assert at == len(planes)


def test_lowest_bit() -> None:
    for number in range(64):
        assert lowest_bit(np.uint64(1 << number)) == number
        assert lowest_bit(np.uint64(((1 << 64) - 1) >> number << number)) == number


# KataGo's answers -------------------------------------------------------------------------------------------------

FILES = ("gnugo", "random", "hard", "superko", "encore", "variants")
# Scoring, tax, and whether suicide of several stones counts, of every view in the files.
VIEWS = {
    **dict.fromkeys(("cn", "cn_nofp", "aga", "agabutton", "cnkgs", "cn_assumeh"), ("area", "none", False)),
    **dict.fromkeys(("tt", "nz", "spight", "cn_pasui"), ("area", "none", True)),
    **dict.fromkeys(
        [f"tt_{name}" for name in ["draw02", "pda", "conserv", "hacks", "hist0", "hist1", "hist3"]],
        ("area", "none", True),
    ),
    **dict.fromkeys(("jp", "jp_pe"), ("territory", "seki", False)),
    "stone": ("area", "all", False),
    "areaseki": ("area", "seki", False),
    "ancterr": ("territory", "all", False),
    "terrnotax": ("territory", "none", False),
}


def bits(array: NDArray[Any]) -> NDArray[np.uint8]:
    """Return packed frame planes unpacked."""
    return np.unpackbits(array, axis=-1)[..., :361]


needs_vectors = pytest.mark.skipif(
    WITHOUT_JIT or not VECTORS.exists(), reason="KataGo's answers are not there, or it would take long"
)


@needs_vectors
@pytest.mark.parametrize("file", FILES)
def test_areas_are_katagos(file: str) -> None:
    """Planes 18 and 19 of every row of every view, and both readings of pass-alive where stored."""
    data = np.load(VECTORS / f"{file}.npz")
    views = [name.removesuffix("_spatial") for name in data.files if name.endswith("_spatial")]
    assert views
    for view in views:
        offsets = data[f"{view}_pos_offsets"]
        number, game = int(offsets[-1]), np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        sizes = np.stack([data["board_ysize"], data["board_xsize"]], axis=1).astype(np.int64)[game]
        scoring, tax, suicide = VIEWS[view]
        rules = (np.full(number, SCORINGS[scoring]), np.full(number, TAXES[tax]), np.full(number, suicide))
        stones, second = bits(data[f"{view}_stones"]), bits(data[f"{view}_second_encore_stones"])
        found = solve_rows(sizes, stones, second, data[f"{view}_encore_phase"] == 2, *rules)
        right = bits(data[f"{view}_spatial"][:, 18:20])
        white = data[f"{view}_next_player"] == 2
        right[white] = right[white][:, ::-1]
        assert right.any() == (scoring == "area" or bool((data[f"{view}_encore_phase"] == 2).any()))
        np.testing.assert_array_equal(found[:, :2], right, err_msg=view)
        for first, reading in ((2, "nosuicide"), (4, "suicide")):
            if f"{view}_passalive_{reading}" in data.files:
                stored = bits(data[f"{view}_passalive_{reading}"])
                assert stored.any()
                np.testing.assert_array_equal(found[:, first : first + 2], stored, err_msg=f"{view} {reading}")


@needs_vectors
def test_areas_of_katagos_own_rows() -> None:
    """512 rows, 23 combinations of rules and encore phases."""
    data = np.load(VECTORS / "katago_rows_512.npz")
    planes, numbers = bits(data["binaryInputNCHWPacked"]), data["globalInputNC"]
    board = planes[:, 0].reshape(-1, 19, 19)
    sizes = np.stack([board.any(axis=2).sum(axis=1), board.any(axis=1).sum(axis=1)], axis=1).astype(np.int64)
    scoring, tax = numbers[:, 9].astype(np.int64), (numbers[:, 10] + numbers[:, 11]).astype(np.int64)
    rules = (scoring, tax, numbers[:, 8] == 1)
    found = solve_rows(sizes, planes[:, 1:3], planes[:, 20:22], numbers[:, 13] == 1, *rules)
    np.testing.assert_array_equal(found[:, :2], planes[:, 18:20])
