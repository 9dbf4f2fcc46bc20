"""Areas of many positions at once, from their stones alone."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline import areas as fast
from pipeline.board import WORDS, clear, new_board, rebuild, set_colour, spot_at
from pipeline.jit import kernel
from pipeline.passalive import find_pass_alive
from pipeline.spotset import flip_spot, has_spot, read_stones


@kernel
def _solve_rows(board, sizes, stones, second, in_second, scoring, tax, suicide, sets, areas, out):
    """Solve many positions on a 19x19 frame: ``out`` uint8[N, 6, 361] gets what is owned, then what is
    pass-alive without and with suicide, Black first. Rules are arrays with an entry a position."""
    for i in range(stones.shape[0]):
        rows, cols = sizes[i, 0], sizes[i, 1]
        clear(board, rows, cols)
        sets[:] = np.uint64(0)
        for row in range(rows):
            for col in range(cols):
                for side in range(2):
                    if stones[i, side, row * 19 + col]:
                        set_colour(board, spot_at(board, row, col), side + 1)
                    if second[i, side, row * 19 + col]:
                        flip_spot(sets[side + 1], spot_at(board, row, col))
        rebuild(board)
        read_stones(board, areas.stones)
        for layer in range(3):
            if layer == 0:
                fast.own_areas(board, scoring[i], tax[i], suicide[i], in_second[i], sets, areas)
            for side in range(2):
                found = areas.owned[side + 1]
                if layer > 0:
                    found = areas.pass_alive[side + 1]
                    find_pass_alive(board, areas.stones, side + 1, layer == 2, areas.benson, found)
                for row in range(rows):
                    for col in range(cols):
                        out[i, 2 * layer + side, row * 19 + col] = has_spot(found, spot_at(board, row, col))


def solve_rows(
    sizes: NDArray[Any], stones: NDArray[Any], second: NDArray[Any], in_second: NDArray[Any], *rules: NDArray[Any]
) -> NDArray[np.uint8]:
    """Return ``_solve_rows``' answer for int64[N, 2] sizes and unpacked stones."""
    out = np.zeros((len(stones), 6, 361), dtype=np.uint8)
    sets = np.zeros((3, WORDS), dtype=np.uint64)
    _solve_rows(new_board(19, 19), sizes, stones, second, in_second, *rules, sets, fast.new_areas(), out)
    return out
