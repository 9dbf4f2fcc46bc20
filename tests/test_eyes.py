"""True eyes against boards worked out by hand and the recursive definition."""

import os
from random import Random

import numpy as np
import pytest
import slow_areas
from area_boards import drawn, fast_board, points_of, random_board
from slow_board import Point, SlowBoard, draw

from pipeline import symmetry
from pipeline.board import WORDS
from pipeline.eyes import true_eyes
from pipeline.spotset import read_stones

WITHOUT_JIT = os.environ.get("NUMBA_DISABLE_JIT") == "1"
SIZES = [(1, 1), (1, 2), (1, 6), (6, 1), (2, 2), (2, 5), (3, 3), (4, 4), (5, 5), (7, 7), (9, 9), (5, 9)]


def eyes_of(slow: SlowBoard, colour: int) -> set[Point]:
    """Return the true eyes that the kernel finds."""
    board = fast_board(slow)
    stones, eyes = np.zeros((3, WORDS), dtype=np.uint64), np.zeros(WORDS, dtype=np.uint64)
    read_stones(board, stones)
    true_eyes(board, stones, colour, np.zeros((2, WORDS), dtype=np.uint64), eyes)
    return points_of(slow, board, eyes)


# A board, and where Black has true eyes (X) and White (O).
DRAWN = {
    "in the corner": (". X .\nX X .\n. . .", "X . .\n. . .\n. . ."),
    "in the corner, diagonal empty": (". X .\nX . .\n. . .", ". . .\n. . .\n. . ."),
    "in the corner, diagonal taken": (". X .\nX O .\n. . .", ". . .\n. . .\n. . ."),
    "on the edge": (". X . X .\n. X X X .\n. . . . .", ". . X . .\n. . . . .\n. . . . ."),
    "on the edge, a corner open": (". X . X .\n. X X . .\n. . . . .", ". . . . .\n. . . . .\n. . . . ."),
    "inside, one corner open": (
        ". . . . .\n. X X X .\n. X . X .\n. . X X .\n. . . . .",
        ". . . . .\n. . . . .\n. . X . .\n. . . . .\n. . . . .",
    ),
    "inside, one corner taken": (
        ". . . . .\n. O O X .\n. O . O .\n. O O O .\n. . . . .",
        ". . . . .\n. . . . .\n. . O . .\n. . . . .\n. . . . .",
    ),
    "inside, two corners open": (
        ". . . . .\n. . X X .\n. X . X .\n. . X X .\n. . . . .",
        ". . . . .\n. . . . .\n. . . . .\n. . . . .\n. . . . .",
    ),
    "one falls, then its neighbour, then the corner": (
        ". X O . .\nX . X . .\nX X . X .\nX X X . .",
        ". . . . .\n. . . . .\n. . . . .\n. . . . .",
    ),
    "three that hold each other": (
        ". X X . .\nX . X X .\nX X . X .\n. X X . .\n. . . . .",
        "X . . . .\n. X . . .\n. . X . .\n. . . . .\n. . . . .",
    ),
    "two that hold each other": (
        "X X X . .\nX . X X .\nX X . X .\n. X X X .\n. . . . .",
        ". . . . .\n. X . . .\n. . X . .\n. . . . .\n. . . . .",
    ),
    "both colours": (". X . O .\nX X . O O\n. . . . .", "X . . . O\n. . . . .\n. . . . ."),
    "a board of one point has no neighbours to ask": (".", "X"),
}


@pytest.mark.parametrize("name", DRAWN)
def test_eyes_by_hand(name: str) -> None:
    text, right = drawn(DRAWN[name][0]), draw(DRAWN[name][1])
    for colour in (1, 2):
        expected = {point for point, owner in right.items() if owner == colour}
        if text.rows * text.cols == 1:
            expected = {(0, 0)}
        assert eyes_of(text, colour) == expected
        assert {point for point in text.neighbours if slow_areas.is_true_eye(text, point, colour)} == expected


@pytest.mark.parametrize("size", SIZES)
def test_random_boards_against_the_recursive_definition(size: tuple[int, int]) -> None:
    rng, found, dropped = Random(f"eyes {size}"), 0, 0
    for number in range(4 if WITHOUT_JIT else 200):
        slow = checkered_board(rng, *size) if number % 2 else random_board(rng, *size)
        for colour in (1, 2):
            right = {point for point in slow.neighbours if slow_areas.is_true_eye(slow, point, colour)}
            assert eyes_of(slow, colour) == right, slow.text()
            found += len(right)
            dropped += sum(
                point not in slow.stones and point not in right and all(slow.stones.get(n) == colour for n in around)
                for point, around in slow.neighbours.items()
            )
    assert WITHOUT_JIT or min(size) < 3 or (found > 10 and dropped > 10)


def checkered_board(rng: Random, rows: int, cols: int) -> SlowBoard:
    """Return a board with many points that are eyes or not by each other: a checkerboard with some points filled.

    The larger the board the more are filled: the recursive definition walks every path between the others.
    """
    slow = SlowBoard(rows, cols)
    filled = rng.choice((0.1, 0.3, 0.5) if rows * cols <= 25 else (0.55, 0.7))
    taken = rng.choice((0.0, 0.03))
    for row, col in slow.neighbours:
        if (row + col) % 2 or rng.random() < filled:
            slow.stones[row, col] = 2 if rng.random() < taken else 1
    for chain in slow.chains():
        if not chain.liberties:
            for stone in chain.stones:
                del slow.stones[stone]
    return slow


@pytest.mark.parametrize("size", [(4, 7), (6, 6), (19, 19)])
def test_eyes_turn_with_the_board(size: tuple[int, int]) -> None:
    rng = Random(f"turned eyes {size}")
    for _ in range(1 if WITHOUT_JIT else 10):
        slow = checkered_board(rng, *size)
        right = eyes_of(slow, 1)
        for turn in range(symmetry.count(*size)):
            other = SlowBoard(*(size[::-1] if turn & 4 else size))
            other.stones = {symmetry.image_point(*p, *size, turn): colour for p, colour in slow.stones.items()}
            assert eyes_of(other, 1) == {symmetry.image_point(*point, *size, turn) for point in right}


def test_a_board_full_of_eyes() -> None:
    """A checkerboard of 25x25, where the recursion would walk every path: all points hold each other."""
    slow = SlowBoard(25, 25)
    slow.stones = {(row, col): 1 for row, col in slow.neighbours if (row + col) % 2}
    assert eyes_of(slow, 1) == {point for point in slow.neighbours if sum(point) % 2 == 0}


@pytest.mark.parametrize("size", [(25, 3), (3, 25)])
def test_eyes_fall_one_after_the_other(size: tuple[int, int]) -> None:
    """A stone is missing at one end of a checkered strip: that takes the eyes of both edges, they the next in the
    middle, and so on to the other end."""
    slow = SlowBoard(*size)
    slow.stones = {(row, col): 1 for row, col in slow.neighbours if (row + col) % 2}
    del slow.stones[(0, 1) if size[1] == 3 else (1, 0)]
    assert eyes_of(slow, 1) == set()
