"""The symmetries of the board's rectangle: numbers, composition, and where each point goes.

Symmetry ``s`` maps the game's orientation to the stored one: bit 0 flips the rows, bit 1 flips the
columns, bit 2 transposes, applied in that order (the numbers of KataGo's C++). A square has 8, any
other rectangle the first 4. All are their own inverse except 5 and 6, which are each other's.
"""

from functools import cache

import numpy as np
from numpy.typing import NDArray

SYMMETRIES = 8
NAMES = (
    "identity",
    "flip rows",
    "flip columns",
    "rotate 180",
    "transpose",
    "rotate 90 clockwise",
    "rotate 90 counter-clockwise",
    "anti-transpose",
)
INVERSE = (0, 1, 2, 3, 4, 6, 5, 7)

# Other programs' numbers -> ours (SCHEMES.md section 6). KataGo's trainer augments with its own
# numbers; Leela Zero's act on rows counted from the bottom, as its files store them.
FROM_KATAGO_TRAINER = (0, 6, 3, 5, 4, 2, 7, 1)
FROM_LEELA_ZERO = (0, 2, 1, 3, 4, 6, 5, 7)


def count(rows: int, cols: int) -> int:
    """Return how many symmetries a board has: 8 for a square, 4 for another rectangle."""
    return SYMMETRIES if rows == cols else 4


def require_turns(rows: NDArray[np.uint8], cols: NDArray[np.uint8], turns: NDArray[np.uint8]) -> None:
    """Raise ValueError where a board that is not square is to be transposed; all are uint8[N]."""
    wrong = np.flatnonzero((turns >= 4) & (rows != cols))
    if len(wrong):
        raise ValueError(f"a board of {rows[wrong[0]]}x{cols[wrong[0]]} is not square: it has no symmetries 4 to 7")


def image_point(row: int, col: int, rows: int, cols: int, symmetry: int) -> tuple[int, int]:
    """Return where symmetry ``symmetry`` puts the point (row, col) of a rows x cols board."""
    if symmetry & 1:
        row = rows - 1 - row
    if symmetry & 2:
        col = cols - 1 - col
    return (col, row) if symmetry & 4 else (row, col)


@cache
def destinations(rows: int, cols: int, frame_cols: int, symmetry: int) -> NDArray[np.int32]:
    """Return int32[rows, cols]: the frame index (row * frame_cols + col) of each point's image.

    Raises ValueError for a transposing symmetry on a board that is not square.
    """
    if not 0 <= symmetry < count(rows, cols):
        raise ValueError(f"a {rows}x{cols} board has symmetries 0 to {count(rows, cols) - 1}, not {symmetry}")
    table = np.empty((rows, cols), dtype=np.int32)
    for row in range(rows):
        for col in range(cols):
            image_row, image_col = image_point(row, col, rows, cols, symmetry)
            table[row, col] = image_row * frame_cols + image_col
    table.setflags(write=False)
    return table


def compose(first: int, second: int) -> int:
    """Return the symmetry that equals ``first`` followed by ``second``."""
    # A transposition exchanges the meaning of the two flips that come after it.
    flips = second & 3
    if first & 4:
        flips = (flips >> 1) | ((flips & 1) << 1)
    return (first ^ flips) ^ (second & 4)


@cache
def composed() -> NDArray[np.uint8]:
    """Return uint8[8, 8]: ``composed()[first, second]`` is ``compose(first, second)``."""
    table = np.array(
        [[compose(first, second) for second in range(SYMMETRIES)] for first in range(SYMMETRIES)], dtype=np.uint8
    )
    table.setflags(write=False)
    return table


def distinct_images(fixed: int, rows: int, cols: int) -> tuple[int, ...]:
    """Return the symmetries that give all images of a position once each, the smallest numbers that do.

    ``fixed`` has bit s set where symmetry s leaves the position as it is (bit 0 always).
    """
    chosen: list[int] = []
    for turn in range(count(rows, cols)):
        # Two symmetries give the same image where one followed by the other's inverse changes nothing.
        if not any(fixed >> compose(turn, INVERSE[other]) & 1 for other in chosen):
            chosen.append(turn)
    return tuple(chosen)
