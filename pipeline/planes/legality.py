"""Planes of moves that leave out what superko bans by the rules of each game."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pipeline.jit import kernel
from pipeline.planes.group import Facts, Group
from pipeline.planes.katago import banned_by_superko, main_phase
from pipeline.traces import Traces


@kernel
def _clear_points(points, positions, out, first, planes):
    for i in range(positions.shape[0]):
        for plane in range(planes):
            for byte in range(out.shape[2]):
                out[i, first + plane, byte] &= ~points[positions[i], byte]


def _bans(traces: Traces) -> NDArray[np.uint8]:
    """Return the points that superko bans, uint8[T, B]. In the encore of territory scoring it bans none.

    KataGo's bans are those of the side that moves by turns: where the other one moves there are none.
    """
    katago = traces.katago
    points = banned_by_superko(katago)
    points[~main_phase(traces) | (katago.presumed != katago.to_play)] = 0
    return points


def _ban_facts(traces: Traces) -> Facts:
    return Facts(points=_bans(traces))


def by_the_rules(group: Group) -> Group:
    """Return the same planes of legal moves of the side to move, without those that superko bans.

    Suicide stays unmarked where the rules allow it: such a move has no liberties, no captures and no chain.
    """

    def draw(traces: Traces, positions: NDArray[np.int64], out: NDArray[np.uint8], first: int) -> None:
        group.draw(traces, positions, out, first)
        _clear_points(_bans(traces), positions, out, first, len(group.planes))

    return replace(group, draw=draw, facts=_ban_facts)
