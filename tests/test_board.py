"""The compiled board against sgfmill's board, the slow board, and counted positions."""

import os
from random import Random
from typing import Any

import numpy as np
import pytest
import sgfmill.boards
import slow_board
from numpy.typing import NDArray
from slow_board import BLACK, WHITE, Point, SlowBoard, draw

from pipeline import board as fast
from pipeline.board import Board
from pipeline.jit import kernel

GAMES = 200
WITHOUT_JIT = os.environ.get("NUMBA_DISABLE_JIT") == "1"
FAULTS = {
    None: fast.LEGAL,
    slow_board.OCCUPIED: fast.ILLEGAL_OCCUPIED,
    slow_board.KO: fast.ILLEGAL_KO,
    slow_board.SUICIDE: fast.ILLEGAL_SUICIDE,
}


@kernel
def _legality_of_all(board, spots, answers):
    for i in range(spots.shape[0]):
        for colour in range(1, 3):
            for suicide in range(2):
                answers[i, colour - 1, suicide] = fast.legality(board, spots[i], colour, suicide == 1)


class Pair:
    """A fast and a slow board of one size, and what it takes to compare them."""

    def __init__(self, rows: int, cols: int) -> None:
        self.fast = fast.new_board(rows, cols)
        self.slow = SlowBoard(rows, cols)
        self.spot = {point: int(fast.spot_at(self.fast, *point)) for point in self.slow.neighbours}
        self.point = {spot: point for point, spot in self.spot.items()}
        self.spots = np.array(list(self.spot.values()), dtype=np.int64)
        self.journal = fast.new_journal()

    def play(self, point: Point, colour: int) -> None:
        """Play on both boards and compare what was removed; the fast one plays, takes back, plays again."""
        before = Board(self.fast.points.copy(), self.fast.bits.copy())
        mark = int(self.journal[0])
        fast.play(self.fast, self.spot[point], colour, self.journal)
        fast.undo(self.fast, self.journal, mark)
        assert self.journal[0] == mark
        assert_same_meaning(self.fast, before)
        count = int(fast.play(self.fast, self.spot[point], colour, None))
        removed = self.fast.points[fast.REMOVED : fast.REMOVED + abs(count)].tolist()
        expected = self.slow.play(point, colour)
        assert sorted(self.point[spot] for spot in removed) == sorted(expected)
        assert (count < 0) == (point in expected)

    def compare(self) -> None:
        """Compare stones, ko, and of every chain: its stones, their number, its liberties, their number."""
        points, words = self.fast.points, self.fast.bits.reshape(fast.SPOTS, fast.WORDS)
        colours = points[fast.COLOUR : fast.COLOUR + fast.SPOTS].tolist()
        assert {point: colours[spot] for point, spot in self.spot.items() if colours[spot]} == self.slow.stones
        ko = int(points[fast.KO])
        assert (None if ko == fast.NO_SPOT else self.point[ko]) == self.slow.ko
        names, ring = (points[part : part + fast.SPOTS].tolist() for part in (fast.CHAIN, fast.NEXT))
        for chain in self.slow.chains():
            expected = {self.spot[point] for point in chain.stones}
            (name,) = {names[spot] for spot in expected}
            stones, spot = {name}, ring[name]
            while spot not in stones:
                stones.add(spot)
                spot = ring[spot]
            assert spot == name
            assert stones == expected
            assert points[fast.STONES + name] == len(chain.stones)
            assert points[fast.LIBERTIES + name] == len(chain.liberties)
            assert int.from_bytes(words[name].tobytes(), "little") == sum(
                1 << self.spot[point] for point in chain.liberties
            )

    def compare_legality(self) -> list[list[Point]]:
        """Compare legality of every point for both colours, suicide off and on.

        Returns the legal moves, by colour, where suicide is allowed.
        """
        answers = np.empty((len(self.spots), 2, 2), dtype=np.int8)
        _legality_of_all(self.fast, self.spots, answers)
        legal: list[list[Point]] = [[], []]
        for point, of_point in zip(self.spot, answers.tolist(), strict=True):
            for colour in (BLACK, WHITE):
                faults = self.slow.fault(point, colour, False), self.slow.fault(point, colour, True)
                assert of_point[colour - 1] == [FAULTS[fault] for fault in faults], f"{point} {colour}"
                if faults[1] is None:
                    legal[colour - 1].append(point)
        return legal


def assert_same_meaning(one: Board, other: Board) -> None:
    """Assert that two boards are equal in all that counts: not the leftovers of stones that are gone."""

    def part(board: Board, section: int) -> NDArray[Any]:
        return board.points[section : section + fast.SPOTS]

    colours = part(one, fast.COLOUR)
    assert np.array_equal(colours, part(other, fast.COLOUR))
    assert np.array_equal(one.points[fast.ROWS :], other.points[fast.ROWS :])
    stones = np.flatnonzero((colours == BLACK) | (colours == WHITE))
    for section in (fast.CHAIN, fast.NEXT):
        assert np.array_equal(part(one, section)[stones], part(other, section)[stones])
    names = np.unique(part(one, fast.CHAIN)[stones])
    for section in (fast.STONES, fast.LIBERTIES):
        assert np.array_equal(part(one, section)[names], part(other, section)[names])
    words = (board.bits.reshape(fast.SPOTS, fast.WORDS)[names] for board in (one, other))
    assert np.array_equal(*words)


def fills_own_eye(board: SlowBoard, point: Point, colour: int) -> bool:
    """Return whether all neighbours are the player's own stones."""
    return all(board.stones.get(neighbour) == colour for neighbour in board.neighbours[point])


def play_random_game(rows: int, cols: int, number: int) -> None:
    """Play one game to the bitter end and compare everything after every move.

    Every second game has suicide; of each four games two never fill an eye, so that they end by
    themselves, and the others go on until the board has been filled several times. In every fifth
    game either colour may move. Where sgfmill knows the board it plays too: its ko rule (one stone
    taken by a stone that had no liberty before) says the same as ours.
    """
    rng = Random(f"{rows}x{cols} game {number}")
    pair, colour = Pair(rows, cols), BLACK
    third = sgfmill.boards.Board(rows) if rows == cols and rows >= 2 else None
    for _ in range(3 * rows * cols + 30):
        moves = [
            point
            for point in pair.compare_legality()[colour - 1]
            if (number % 2 or pair.slow.fault(point, colour, False) is None)
            and (number % 4 < 2 or not fills_own_eye(pair.slow, point, colour))
        ]
        if not moves and number % 4 >= 2:
            break
        if not moves or rng.random() < 0.02:
            fast.play_pass(pair.fast, None)
            pair.slow.play_pass()
        else:
            point = rng.choice(moves)
            pair.play(point, colour)
            if third:
                compare_with_sgfmill(pair, third, point, colour)
        pair.compare()
        colour = 3 - colour if number % 5 else rng.choice((BLACK, WHITE))


def compare_with_sgfmill(pair: Pair, third: sgfmill.boards.Board, point: Point, colour: int) -> None:
    """Play on sgfmill's board, whose rows run upwards, and compare the stones and the ko point."""
    top = third.side - 1
    ko = third.play(top - point[0], point[1], "bw"[colour - 1])
    stones = {(top - row, col): "bw".index(name) + 1 for name, (row, col) in third.list_occupied_points()}
    fast_colours = pair.fast.points[fast.COLOUR : fast.COLOUR + fast.SPOTS][pair.spots].tolist()
    assert fast_colours == [stones.get(at, 0) for at in pair.spot]
    fast_ko = int(pair.fast.points[fast.KO])
    assert (None if ko is None else (top - ko[0], ko[1])) == pair.point.get(fast_ko)


# The last number: games that always run. The rest of the 200 comes with -m full, in parts of 20.
SIZES = [(2, 2, 200), (3, 3, 200), (5, 5, 200), (9, 9, 30), (5, 9, 80), (13, 13, 8), (19, 19, 4)]


@pytest.mark.skipif(WITHOUT_JIT, reason="compares thousands of boards")
@pytest.mark.parametrize(("rows", "cols", "games"), SIZES)
def test_random_games(rows: int, cols: int, games: int) -> None:
    for number in range(games):
        play_random_game(rows, cols, number)


@pytest.mark.full
@pytest.mark.parametrize("part", range(0, GAMES, 20))
@pytest.mark.parametrize(("rows", "cols"), [(rows, cols) for rows, cols, games in SIZES if games < GAMES])
def test_all_random_games(rows: int, cols: int, part: int) -> None:
    for number in range(part, part + 20):
        play_random_game(rows, cols, number)


@pytest.mark.parametrize(("rows", "cols"), [(1, 1), (1, 2), (1, 7), (7, 1), (2, 3), (4, 4)])
def test_small_boards(rows: int, cols: int) -> None:
    for number in range(8):
        play_random_game(rows, cols, number)


@pytest.mark.skipif(WITHOUT_JIT, reason="compares thousands of boards")
@pytest.mark.parametrize(("rows", "cols"), [(25, 25), (25, 1), (1, 25), (2, 25)])
def test_largest_boards(rows: int, cols: int) -> None:
    play_random_game(rows, cols, 3)


def test_one_point_board_has_no_move() -> None:
    pair = Pair(1, 1)
    assert pair.compare_legality() == [[], []]


@pytest.mark.parametrize(("rows", "cols"), [(0, 5), (5, 0), (26, 5), (5, 26), (-1, 19)])
def test_sizes_that_are_no_board(rows: int, cols: int) -> None:
    with pytest.raises(ValueError, match=f"{rows}x{cols}"):
        fast.new_board(rows, cols)


def test_points_and_spots() -> None:
    board = fast.new_board(5, 9)
    spots = [fast.spot_at(board, row, col) for row in range(5) for col in range(9)]
    assert len(set(spots)) == 45
    assert [fast.spot_of(board, point) for point in range(45)] == spots
    colours = board.points[fast.COLOUR : fast.COLOUR + fast.SPOTS]
    assert np.flatnonzero(colours != fast.OFF).tolist() == sorted(spots)
    assert all(abs(spots[point + 1] - spots[point]) == 1 for point in range(8))


@pytest.mark.parametrize(("rows", "cols", "length"), [(3, 3, 40), (5, 9, 90), (19, 19, 540), (25, 25, 937)])
def test_deep_undo(rows: int, cols: int, length: int) -> None:
    """Play k moves of a game, take all k back, for growing k; the journal of the longest path fits."""
    if WITHOUT_JIT and length > 90:
        pytest.skip("hundreds of moves, many times")
    rng = Random(f"deep undo {rows}x{cols}")
    pair = Pair(rows, cols)
    opening = [pair.spots[i] for i in rng.sample(range(rows * cols), rows * cols // 2)]
    for i, spot in enumerate(opening):
        if fast.legality(pair.fast, spot, 1 + i % 2, True) == fast.LEGAL:
            fast.play(pair.fast, spot, 1 + i % 2, None)
    before = Board(pair.fast.points.copy(), pair.fast.bits.copy())
    most = 0
    for depth in (1, 2, 5, length // 2, length):
        mark, colour = int(pair.journal[0]), BLACK
        for _ in range(depth):
            spots = [s for s in pair.spots if fast.legality(pair.fast, s, colour, True) == fast.LEGAL]
            if spots and rng.random() > 0.02:
                fast.play(pair.fast, rng.choice(spots), colour, pair.journal)
            else:
                fast.play_pass(pair.fast, pair.journal)
            colour = 3 - colour
        most = max(most, int(pair.journal[0]))
        fast.undo(pair.fast, pair.journal, mark)
        assert_same_meaning(pair.fast, before)
        assert pair.journal[0] == mark == 1
    assert most < fast.JOURNAL_LENGTH // 2


@pytest.mark.parametrize("suicide", [False, True])
@pytest.mark.parametrize(("side", "count"), [(2, 57), (3, 12_675)])
def test_all_positions_are_reached(side: int, count: int, suicide: bool) -> None:
    """Breadth first from the empty board, either colour moving: the counts are Tromp's of legal positions."""
    if WITHOUT_JIT and side > 2:
        pytest.skip("a quarter of a million moves")
    board, journal = fast.new_board(side, side), fast.new_journal()
    spots = [int(fast.spot_at(board, row, col)) for row in range(side) for col in range(side)]
    colours = board.points[fast.COLOUR : fast.COLOUR + fast.SPOTS]
    reached = {(0,) * (side * side)}
    to_visit = list(reached)
    for position in to_visit:
        for spot, colour in zip(spots, position, strict=True):
            fast.set_colour(board, spot, colour)
        assert fast.rebuild(board)
        for spot in spots:
            for colour in (BLACK, WHITE):
                if fast.legality(board, spot, colour, suicide) == fast.LEGAL:
                    fast.play(board, spot, colour, journal)
                    after = tuple(colours[spots].tolist())
                    if after not in reached:
                        reached.add(after)
                        to_visit.append(after)
                    fast.undo(board, journal, 1)
    assert len(reached) == count


def test_one_board_for_games_of_several_sizes() -> None:
    """A board that is cleared and given another size forgets what was on it."""
    pair, rng = Pair(19, 19), Random("cleared")
    for rows, cols in ((19, 19), (5, 9), (25, 25), (2, 2), (9, 9)):
        used = pair.fast
        pair = Pair(rows, cols)
        pair.fast = used
        fast.clear(used, rows, cols)
        for move in range(rows * cols):
            legal = pair.slow.empty_points()
            rng.shuffle(legal)
            point = next((p for p in legal if pair.slow.fault(p, 1 + move % 2, True) is None), None)
            if point is not None:
                pair.play(point, 1 + move % 2)
        pair.compare()


@pytest.mark.parametrize(("rows", "cols"), [(1, 1), (1, 4), (2, 2), (3, 3), (5, 9), (25, 25)])
def test_setup(rows: int, cols: int) -> None:
    """Any stones can be set up: sound where every chain has a liberty, and then a board like any other."""
    rng, sound = Random(f"setup {rows}x{cols}"), 0
    pair = Pair(rows, cols)
    for density in [i % 10 / 10 for i in range(60 if rows * cols < 50 else 10)]:
        changes = {point: rng.choice((1, 2)) if rng.random() < density else 0 for point in pair.spot}
        for point, colour in changes.items():
            fast.set_colour(pair.fast, pair.spot[point], colour)
        expected = pair.slow.setup(changes.items())
        assert fast.rebuild(pair.fast) == expected
        if expected:
            sound += 1
            pair.compare()
            legal = pair.compare_legality()[0]
            if legal:
                pair.play(rng.choice(legal), BLACK)
                pair.compare()
    assert sound


def set_up(text: str) -> Pair:
    """Return both boards with drawn stones."""
    rows, cols = text.count("\n") + 1, len(text.partition("\n")[0].split())
    pair = Pair(rows, cols)
    for point, colour in draw(text).items():
        fast.set_colour(pair.fast, pair.spot[point], colour)
    assert fast.rebuild(pair.fast)
    pair.slow.setup(draw(text).items())
    return pair


def legality(pair: Pair, point: Point, colour: int, suicide: bool) -> int:
    """Return the fast board's word on a move."""
    return int(fast.legality(pair.fast, pair.spot[point], colour, suicide))


def ko_point(pair: Pair) -> Point | None:
    """Return the fast board's ko point."""
    return pair.point.get(int(pair.fast.points[fast.KO]))


KOS = {
    "in the middle": (". X O .\nX O . O\n. X O .", (1, 2), (1, 1)),
    "on the edge": ("X O . O\n. X O .", (0, 2), (0, 1)),
    "in the corner": ("O . O\nX O .\n. . .", (0, 1), (0, 0)),
    "on a line": (". X O . O .", (0, 3), (0, 2)),
}
NO_KOS = {
    "the stone keeps more liberties": ("O . .\nX . .", (0, 1), 1),
    "two stones are taken": ("O O . O\nX X O .\n. . . .", (0, 2), 2),
    "two stones in two places are taken": ("O . O\nX O X\n. X .", (0, 1), 3),
    "two stones take": ("O . X O\nX O O .\n. . . .", (0, 1), 1),
}


@pytest.mark.parametrize("name", KOS)
def test_ko(name: str) -> None:
    text, move, ko = KOS[name]
    pair = set_up(text)
    pair.play(move, BLACK)
    pair.compare()
    assert ko_point(pair) == ko
    for suicide in (False, True):
        assert legality(pair, ko, WHITE, suicide) == fast.ILLEGAL_KO
        assert legality(pair, ko, BLACK, suicide) == fast.ILLEGAL_KO  # the ban names a point, not a side
    fast.play_pass(pair.fast, None)
    assert ko_point(pair) is None
    assert legality(pair, ko, WHITE, False) == fast.LEGAL


@pytest.mark.parametrize("name", NO_KOS)
def test_no_ko(name: str) -> None:
    text, move, taken = NO_KOS[name]
    pair = set_up(text)
    assert fast.play(pair.fast, pair.spot[move], BLACK, None) == taken
    assert ko_point(pair) is None


def test_pass_can_be_taken_back() -> None:
    text, move, ko = KOS["in the corner"]
    pair = set_up(text)
    pair.play(move, BLACK)
    fast.play_pass(pair.fast, pair.journal)
    fast.undo(pair.fast, pair.journal, 1)
    assert ko_point(pair) == ko


def test_setup_lifts_a_ko() -> None:
    text, move, ko = KOS["on a line"]
    pair = set_up(text)
    pair.play(move, BLACK)
    assert ko_point(pair) == ko
    assert fast.rebuild(pair.fast)
    assert ko_point(pair) is None


def test_snapback() -> None:
    """The stone just taken is retaken at once, and with it the chain that took it."""
    pair = set_up("O . X O\nX O O .\n. . . .")
    pair.play((0, 1), BLACK)
    assert legality(pair, (0, 0), WHITE, False) == fast.LEGAL
    assert fast.play(pair.fast, pair.spot[0, 0], WHITE, None) == 2
    assert ko_point(pair) is None


def test_capture_comes_before_suicide() -> None:
    """The move fills the last liberty of both sides: the opponent's chain goes first."""
    pair = set_up("X O X\n. O X\nX O X\nO X .\n. . .")
    assert legality(pair, (1, 0), BLACK, False) == fast.LEGAL
    pair.play((1, 0), BLACK)
    pair.compare()
    assert pair.slow.stones == draw("X . X\nX . X\nX . X\nO X .\n. . .")


def test_suicide_of_several_stones() -> None:
    pair = set_up("X . O\nO O .")
    assert legality(pair, (0, 1), BLACK, False) == fast.ILLEGAL_SUICIDE
    assert legality(pair, (0, 1), BLACK, True) == fast.LEGAL
    assert legality(pair, (0, 1), WHITE, False) == fast.LEGAL
    assert fast.play(pair.fast, pair.spot[0, 1], BLACK, None) == -2
    pair.slow.play((0, 1), BLACK)
    pair.compare()
    assert pair.slow.stones == draw(". . O\nO O .")


def test_suicide_of_one_stone_is_never_legal() -> None:
    pair = set_up(". O\nO .")
    for suicide in (False, True):
        assert legality(pair, (0, 0), BLACK, suicide) == fast.ILLEGAL_SUICIDE
        assert legality(pair, (0, 0), WHITE, suicide) == fast.LEGAL


def test_setup_without_liberties_is_not_sound() -> None:
    board = fast.new_board(2, 2)
    for row, col, colour in ((0, 0, BLACK), (0, 1, WHITE), (1, 0, WHITE)):
        fast.set_colour(board, fast.spot_at(board, row, col), colour)
    assert not fast.rebuild(board)
