"""Boards for the tests of areas and eyes: drawn, or made at random so that they have territories and eyes."""

from random import Random

import numpy as np
from numpy.typing import NDArray
from slow_board import Point, SlowBoard, draw

from pipeline import board as fast
from pipeline.board import WORDS, Board
from pipeline.spotset import has_spot


def drawn(text: str) -> SlowBoard:
    """Return the board that a text shows (X black, O white)."""
    lines = text.split("\n")
    board = SlowBoard(len(lines), len(lines[0].split()))
    assert board.setup(draw(text).items())
    return board


def random_board(rng: Random, rows: int, cols: int) -> SlowBoard:
    """Return a legal board: each point takes the colour of the nearest of a few seeds, some become the other
    colour or empty, and chains without a liberty are taken off."""
    board = SlowBoard(rows, cols)
    seeds = [(rng.uniform(-1, rows), rng.uniform(-1, cols), rng.choice((1, 2))) for _ in range(rng.randint(1, 12))]
    holes, specks = rng.choice((0.04, 0.08, 0.2, 0.35, 0.7)), rng.choice((0.0, 0.03, 0.1, 0.5))
    for row, col in board.neighbours:
        colour = min(seeds, key=lambda seed: (seed[0] - row) ** 2 + (seed[1] - col) ** 2)[2]
        if rng.random() >= holes:
            board.stones[row, col] = 3 - colour if rng.random() < specks else colour
    taken_off = True
    while taken_off:
        taken_off = False
        for chain in board.chains():
            if not chain.liberties:
                for stone in chain.stones:
                    del board.stones[stone]
                taken_off = True
                break
    return board


def fast_board(slow: SlowBoard) -> Board:
    """Return the same board for the kernels."""
    board = fast.new_board(slow.rows, slow.cols)
    for (row, col), colour in slow.stones.items():
        fast.set_colour(board, fast.spot_at(board, row, col), colour)
    assert fast.rebuild(board)
    return board


def spots_of(board: Board, points: dict[Point, int]) -> NDArray[np.uint64]:
    """Return points with colours as uint64[3, WORDS]."""
    sets = np.zeros((3, WORDS), dtype=np.uint64)
    for (row, col), colour in points.items():
        spot = int(fast.spot_at(board, row, col))
        sets[colour, spot >> 6] |= np.uint64(1 << (spot & 63))
    return sets


def points_of(slow: SlowBoard, board: Board, spots: NDArray[np.uint64]) -> set[Point]:
    """Return the points of a set of spots."""
    return {point for point in slow.neighbours if has_spot(spots, int(fast.spot_at(board, *point)))}


def owners_of(slow: SlowBoard, board: Board, sets: NDArray[np.uint64]) -> dict[Point, int]:
    """Return the colour of each point in the black or the white set of uint64[3, WORDS]; they never overlap."""
    black, white = points_of(slow, board, sets[1]), points_of(slow, board, sets[2])
    assert not black & white
    return {**dict.fromkeys(black, 1), **dict.fromkeys(white, 2)}
