"""Games as arrays for the kernels: moves, colours and setup stones of many games end to end."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

OFF_BOARD = 65_535  # in place of a move that no board can hold


class Games(NamedTuple):
    """Many games, struct of arrays. Game g has moves ``moves[move_start[g] : move_start[g + 1]]``.

    ``rows``, ``cols`` uint8[G]; ``ko_rule`` int8[G] (``rules.KO_*``); ``suicide`` bool[G];
    ``move_start``, ``setup_start`` int64[G + 1]; ``moves`` uint16 (row * cols + col, pass = area);
    ``colours`` int8; ``setup_plies`` uint16 (moves before it), ``setup_points`` uint16,
    ``setup_colours`` int8 (EMPTY, BLACK, WHITE), in the order of plies. Kernels trust that colours are
    colours and that setup points lie on the board (``parse`` and ``table`` see to it).
    """

    rows: NDArray[np.uint8]
    cols: NDArray[np.uint8]
    ko_rule: NDArray[np.int8]
    suicide: NDArray[np.bool_]
    move_start: NDArray[np.int64]
    moves: NDArray[np.uint16]
    colours: NDArray[np.int8]
    setup_start: NDArray[np.int64]
    setup_plies: NDArray[np.uint16]
    setup_points: NDArray[np.uint16]
    setup_colours: NDArray[np.int8]

    @property
    def number(self) -> int:
        """How many games there are."""
        return len(self.rows)

    def by_size(self) -> dict[tuple[int, int], NDArray[np.int64]]:
        """Return the numbers of the games of each board size, sizes in order."""
        sizes = self.rows.astype(np.int64) * 256 + self.cols
        return {
            (int(size) // 256, int(size) % 256): np.flatnonzero(sizes == size).astype(np.int64)
            for size in np.unique(sizes)
        }
