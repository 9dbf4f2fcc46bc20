"""Moves that do not fill an own true eye."""

import numpy as np
from numpy.typing import NDArray

from pipeline.jit import kernel
from pipeline.planes.group import Group, Plane, copy_points
from pipeline.traces import Traces


@kernel
def _draw_sensible(eyes, moves, positions, out, first):
    for i in range(positions.shape[0]):
        now = positions[i]
        for index in range(moves.liberties.shape[1]):
            byte, bit = index >> 3, 0x80 >> (index & 7)
            if moves.liberties[now, index] > 0 and not eyes[now, byte] & bit:
                out[i, first, byte] |= bit


def sensible(source: str) -> Group:
    """Legal moves that do not fill an own true eye."""

    def draw(traces: Traces, positions: NDArray[np.int64], out: NDArray[np.uint8], first: int) -> None:
        _draw_sensible(traces.own_eyes, traces.moves, positions, out, first)

    return Group((Plane("sensible", "legal moves that fill no own true eye", "mover", source),), draw)


def creates_eye(source: str) -> Group:
    """Legal moves after which some empty point beside them is an own true eye."""

    def draw(traces: Traces, positions: NDArray[np.int64], out: NDArray[np.uint8], first: int) -> None:
        copy_points(traces.new_eyes, positions, out, first)

    return Group(
        (Plane("creates_eye", "legal moves after which a point beside them is an own true eye", "mover", source),), draw
    )
