"""What each move would do, against playing it on the slow board and on the fast one."""

import os
from collections.abc import Iterator
from random import Random

import numpy as np
import pytest
from area_boards import drawn, fast_board, random_board
from random_games import Line, games_of, positions, random_line
from slow_board import Point, SlowBoard
from slow_planes import outcomes, present

from pipeline import board as fast
from pipeline.board import EMPTY, WORDS, Board
from pipeline.trace import frame_table
from pipeline.whatif import Moves, enemies_beside, fill_moves, trace_moves, what_if

WITHOUT_JIT = os.environ.get("NUMBA_DISABLE_JIT") == "1"
SIZES = [(1, 1), (1, 2), (2, 1), (1, 7), (2, 2), (3, 3), (3, 8), (5, 5), (9, 5), (9, 9), (19, 19), (25, 25)]

Size = tuple[int, int]
Numbers = tuple[int, ...]


def expected_moves(board: SlowBoard, colour: int) -> dict[Point, Numbers]:
    """Return (liberties, stones, captured, joined, enemy, target) of every legal move, at most 255, from playing it."""

    def capped(*numbers: int) -> Numbers:
        return tuple(min(number, 255) for number in numbers)

    return {
        point: capped(move.liberties, move.stones, move.captured, move.joined, move.enemy, move.target)
        for point, move in outcomes(board, colour).items()
    }


def found_moves(moves: Moves, at: int, cols: int) -> dict[Point, Numbers]:
    """Return row ``at`` of ``moves``; fails where a move that is not legal has a number."""
    table = np.stack([values[at] for values in moves], axis=-1)
    assert not table[table[:, 0] == 0].any()
    return {divmod(int(index), cols): tuple(table[index].tolist()) for index in np.flatnonzero(table[:, 0])}


def new_moves(size: Size, positions: int = 1) -> Moves:
    """Return numbers to be filled in, wrong ones before."""
    return Moves(*(np.full((positions, size[0] * size[1]), 99, dtype=np.uint8) for _ in Moves._fields))


def boards_of(size: Size) -> Iterator[SlowBoard]:
    rng = Random(f"what if {size}")
    for _ in range(2 if WITHOUT_JIT else max(4, min(60, 4_000 // (size[0] * size[1])))):
        yield random_board(rng, *size)


@pytest.mark.parametrize("size", SIZES)
def test_every_move_on_random_boards(size: Size) -> None:
    """Both sides, every point: the same as playing it on the slow board, and the fast board stays as it was."""
    union, friends = np.zeros(WORDS, dtype=np.uint64), np.zeros(4, dtype=np.int64)
    for slow in boards_of(size):
        board = fast_board(slow)
        points, bits = board.points.copy(), board.bits.copy()
        for colour in (1, 2):
            moves = new_moves(size)
            fill_moves(board, colour, 0, frame_table(*size, size[1]), moves, 0, union, friends)
            assert found_moves(moves, 0, size[1]) == expected_moves(slow, colour), slow.text()
        assert np.array_equal(board.points, points)
        assert np.array_equal(board.bits, bits)


def by_playing(board: Board, spot: int, colour: int) -> Numbers:
    """Return (liberties, stones, captured, enemy) of a move after playing it on the fast board, and undo it."""
    journal = fast.new_journal()
    mark = int(journal[0])
    captured = max(0, int(fast.play(board, spot, colour, journal)))
    points = board.points
    stride = int(points[fast.STRIDE])
    chain = int(points[fast.CHAIN + spot])
    beside = [spot + step for step in (-stride, -1, 1, stride) if points[fast.COLOUR + spot + step] == 3 - colour]
    enemies = [int(points[fast.LIBERTIES + points[fast.CHAIN + there]]) for there in beside]
    found = int(points[fast.LIBERTIES + chain]), int(points[fast.STONES + chain]), captured, min(enemies, default=0)
    fast.undo(board, journal, mark)
    return found


@pytest.mark.parametrize("size", SIZES)
def test_what_if_is_play_and_undo(size: Size) -> None:
    union, friends = np.zeros(WORDS, dtype=np.uint64), np.zeros(4, dtype=np.int64)
    for slow in boards_of(size):
        board = fast_board(slow)
        for point in slow.empty_points():
            spot = int(fast.spot_at(board, *point))
            for colour in (1, 2):
                liberties, stones, captured, _joined = what_if(board, spot, colour, union, friends)
                suicide = slow.suicide_size(point, colour) > 0
                assert (liberties == 0) == suicide
                if not suicide:
                    enemy, _target = enemies_beside(board, spot, colour)
                    assert (liberties, stones, captured, enemy) == by_playing(board, spot, colour)
                assert board.points[fast.COLOUR + spot] == EMPTY


@pytest.mark.parametrize("opponent", [False, True])
@pytest.mark.parametrize("size", [(3, 3), (4, 6), (5, 5), (9, 9)])
def test_moves_of_whole_games(size: Size, opponent: bool) -> None:
    """Every position; the ko point is banned for the side to move and not for the other. Any frame will do."""
    rng, kos = Random(f"traced {size}"), 0
    lines = [random_line(rng, *size, 10 if WITHOUT_JIT else 90, 0.03) for _ in range(12)]
    games, frame = games_of(lines), (size[0] + 1, size[1] + 2)
    moves = trace_moves(games, np.arange(len(lines)), np.diff(games.move_start), frame, opponent)
    seen = [position for line in lines for position in positions(line)]
    assert len(moves.liberties) == len(seen)
    for at, position in enumerate(seen):
        slow = present(position, size)
        kos += slow.ko is not None
        if opponent:
            slow.ko = None
        colour = 3 - position.to_play if opponent else position.to_play
        assert found_moves(moves, at, frame[1]) == expected_moves(slow, colour)
    assert WITHOUT_JIT or kos > 0


# A board, a point, Black's move there: liberties, stones, captured, joined, enemy, target.
DRAWN = {
    "two chains become one": ("X . X .\n. . . .\n. . . .", (0, 1), (4, 3, 0, 2, 0, 0)),
    "one chain met on two sides": ("X X .\nX . .\n. . .", (1, 1), (4, 4, 0, 1, 0, 0)),
    "four chains": (". X .\nX . X\n. X .", (1, 1), (4, 5, 0, 4, 0, 0)),
    "a capture frees liberties of the move and of what it joins": (
        "O . . .\nO X . .\nX . . .",
        (0, 1),
        (5, 2, 2, 1, 0, 0),
    ),
    "one captured chain met on two sides": (". O X\nO O X\nX X .", (0, 0), (2, 1, 3, 0, 0, 0)),
    "the fewest of two neighbours": (". O . O O .\n. . . . . .", (0, 2), (1, 1, 0, 0, 2, 0)),
    "two targets, the larger counts": (
        ". X . X .\nX O . O X\n. . X O .\n. . . X .",
        (1, 2),
        (3, 2, 0, 1, 1, 2),
    ),
    "a captured chain is left out of the fewest": ("X O . O .\n. X . . .\n. . . . .", (0, 2), (2, 1, 1, 0, 2, 0)),
}


@pytest.mark.parametrize("name", DRAWN)
def test_moves_by_hand(name: str) -> None:
    text, point, right = DRAWN[name]
    slow = drawn(text)
    moves = new_moves((slow.rows, slow.cols))
    union, friends = np.zeros(WORDS, dtype=np.uint64), np.zeros(4, dtype=np.int64)
    table = frame_table(slow.rows, slow.cols, slow.cols)
    fill_moves(fast_board(slow), 1, 0, table, moves, 0, union, friends)
    assert expected_moves(slow, 1)[point] == right
    assert found_moves(moves, 0, slow.cols)[point] == right


def test_large_numbers_stop_at_255() -> None:
    """Combs of Black's on 25x25, joined by one move: more stones than a byte holds."""
    slow = SlowBoard(25, 25)
    slow.stones = {(row, col): 1 for row, col in slow.neighbours if col % 2 == 0 or row == 12}
    del slow.stones[(12, 12)]
    line = Line(25, 25, ((None, 1),), tuple((0, point, colour) for point, colour in slow.stones.items()))
    moves = trace_moves(games_of([line]), np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.int64), (25, 25))
    move = outcomes(slow, 1)[12, 12]
    assert min(move.liberties, move.stones) > 255
    assert found_moves(moves, 0, 25)[12, 12] == (255, 255, 0, 4, 0, 0)
