"""Distance to the edge, and the patterns of the eight points around each empty point."""

from functools import cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from pipeline import symmetry
from pipeline.board import WHITE
from pipeline.jit import kernel
from pipeline.planes.group import Group, Plane, counted
from pipeline.traces import Traces

# Around a point, most significant digit of the pattern's code first; digits are 0 empty, 1 own, 2 opp, 3 off.
_AROUND = ((-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1))
_BITS = 11  # 1,117 patterns
_OFF = 3


@cache
def pattern_numbers() -> NDArray[np.int16]:
    """Return int16[4**8]: the number of each code, 1 + its rank among the canonical codes that occur on boards.

    A canonical code is the smallest over the symmetries of the neighbourhood; codes that no board of 1x1 and
    more has around a point are 0.
    """
    images = []
    for turn in range(symmetry.SYMMETRIES):
        turned = [symmetry.image_point(row + 1, col + 1, 3, 3, turn) for row, col in _AROUND]
        images.append([_AROUND.index((row - 1, col - 1)) for row, col in turned])
    weights = 4 ** np.arange(7, -1, -1)
    canonical: dict[int, int] = {}
    for edges in product((False, True), repeat=4):
        off = [
            (row < 0 and edges[0]) or (row > 0 and edges[1]) or (col < 0 and edges[2]) or (col > 0 and edges[3])
            for row, col in _AROUND
        ]
        digits = np.array(list(product(*((_OFF,) if out else (0, 1, 2) for out in off))))
        smallest = np.min([digits @ weights[image] for image in images], axis=0)
        canonical.update(zip((digits @ weights).tolist(), smallest.tolist(), strict=True))
    numbers = np.zeros(4**8, dtype=np.int16)
    codes = np.array(list(canonical))
    numbers[codes] = 1 + np.unique(np.array(list(canonical.values())), return_inverse=True)[1]
    numbers.setflags(write=False)
    return numbers


@kernel
def _draw_patterns(frame_cols, numbers, around, trace, positions, out, first):
    """``around`` uint8[(frame rows + 2) * (frame cols + 2)] is scratch: the board with a border."""
    width = frame_cols + 2
    for i in range(positions.shape[0]):
        now = positions[i]
        own = 1 if trace.to_play[now] == WHITE else 0
        around[:] = np.uint8(_OFF)
        area = (around.shape[0] // width - 2) * frame_cols
        for index in range(area):
            byte, bit = index >> 3, 0x80 >> (index & 7)
            if trace.mask[byte] & bit:
                stone = 1 if trace.stones[now, own, byte] & bit else 2 if trace.stones[now, 1 - own, byte] & bit else 0
                around[(index // frame_cols + 1) * width + index % frame_cols + 1] = stone
        for index in range(area):
            at = (index // frame_cols + 1) * width + index % frame_cols + 1
            if around[at] != 0:
                continue
            code = 0
            for step in (-width - 1, -width, -width + 1, -1, 1, width - 1, width, width + 1):
                code = code * 4 + np.int64(around[at + step])
            number = np.int64(numbers[code])
            for bit in range(_BITS):
                if number >> bit & 1:
                    out[i, first + bit, index >> 3] |= 0x80 >> (index & 7)


def patterns(source: str) -> Group:
    """The number of the pattern around each empty point, in bits, least significant first."""

    def draw(traces: Traces, positions: NDArray[np.int64], out: NDArray[np.uint8], first: int) -> None:
        around = np.zeros((traces.frame[0] + 2) * (traces.frame[1] + 2), dtype=np.uint8)
        _draw_patterns(traces.frame[1], pattern_numbers(), around, traces.boards, positions, out, first)

    planes = tuple(
        Plane(
            f"pattern_bit_{bit}", f"bit {bit} of the number of the 3x3 pattern around an empty point", "mover", source
        )
        for bit in range(_BITS)
    )
    return Group(planes, draw)


@kernel
def _draw_distances(most, rows, cols, frame_cols, positions, out, first):
    for i in range(positions.shape[0]):
        for row in range(rows):
            for col in range(cols):
                distance = min(row, rows - 1 - row, col, cols - 1 - col)
                index = row * frame_cols + col
                out[i, first + min(distance, most - 1), index >> 3] |= 0x80 >> (index & 7)


def edge_distance(most: int, source: str) -> Group:
    """Points by their distance to the nearest edge: 0, 1, ..., ``most - 1`` or more."""

    def draw(traces: Traces, positions: NDArray[np.int64], out: NDArray[np.uint8], first: int) -> None:
        _draw_distances(most, *traces.size, traces.frame[1], positions, out, first)

    names = [str(distance) for distance in range(most - 1)] + [f"{most - 1}_or_more"]
    planes = tuple(
        Plane(
            f"edge_{name}",
            "points on the edge" if name == "0" else f"points {counted(name, 'line', 'lines')} from the edge",
            "absolute",
            source,
        )
        for name in names
    )
    return Group(planes, draw)


@kernel
def _draw_lines(rows, cols, frame_cols, positions, out, first):
    for i in range(positions.shape[0]):
        for row in range(rows):
            for col in range(cols):
                index = row * frame_cols + col
                byte, bit = index >> 3, 0x80 >> (index & 7)
                if rows == cols and (row == col or row + col == rows - 1):
                    out[i, first, byte] |= bit
                middle_row, middle_col = rows % 2 == 1 and row == rows // 2, cols % 2 == 1 and col == cols // 2
                if middle_row or middle_col:
                    out[i, first + 1, byte] |= bit
                if middle_row and middle_col:
                    out[i, first + 2, byte] |= bit


def lines(source: str) -> Group:
    """The main diagonals of a square board, the middle row and column where there is one, and the centre."""

    def draw(traces: Traces, positions: NDArray[np.int64], out: NDArray[np.uint8], first: int) -> None:
        _draw_lines(*traces.size, traces.frame[1], positions, out, first)

    planes = (
        Plane("diagonals", "the main diagonals of a square board", "absolute", source),
        Plane("middle_lines", "the middle row and the middle column, where there is one", "absolute", source),
        Plane("centre", "the centre, where there is one", "absolute", source),
    )
    return Group(planes, draw)
