"""The last moves: where they were played, one plane a turn, and how long ago each stone was."""

import numpy as np

from pipeline.jit import kernel
from pipeline.planes.group import Facts, Group, Plane, counted, on_boards
from pipeline.trace import SET_UP
from pipeline.traces import Traces


@kernel
def _draw_recent(turns, trace, positions, out, first):
    for i in range(positions.shape[0]):
        now = positions[i]
        for back in range(1, min(turns, now - trace.begin[now]) + 1):
            index = trace.move[now - back]
            if index >= 0:
                out[i, first + back - 1, index >> 3] = 0x80 >> (index & 7)


@kernel
def _draw_ages(most, setup, trace, positions, out, first):
    for i in range(positions.shape[0]):
        ages = trace.ages[positions[i]]
        for index in range(ages.shape[0]):
            if ages[index] > 0 and (setup or ages[index] < SET_UP):
                out[i, first + min(ages[index], most) - 1, index >> 3] |= 0x80 >> (index & 7)


def _played_facts(traces: Traces) -> Facts:
    ages = traces.boards.ages
    return Facts(points=np.packbits((ages > 0) & (ages < SET_UP), axis=-1))


def recent_moves(turns: int, source: str) -> Group:
    """Where the moves 1 to ``turns`` turns ago were played, whoever played them, also where the stone is gone.

    A pass leaves its plane empty; nothing is shown from before the start or the last setup.
    """
    planes = tuple(
        Plane(f"move_{back}", f"the point played {counted(back, 'turn', 'turns')} ago", "absolute", source)
        for back in range(1, turns + 1)
    )
    return Group(planes, on_boards(_draw_recent, turns), recent=turns)


def ages(most: int, source: str, setup: bool = True) -> Group:
    """Stones played 1, 2, ..., ``most`` or more turns ago; a pass is a turn.

    Setup stones, and all that stood at a setup in mid-game, are in the last plane or (not ``setup``) in none.
    """
    names = [str(age) for age in range(1, most)] + [f"{most}_or_more"]
    meanings = [f"stones played {counted(name, 'turn', 'turns')} ago" for name in names]
    if setup:
        meanings[-1] += ", and setup stones"
    planes = tuple(
        Plane(f"age_{name}", meaning, "absolute", source) for name, meaning in zip(names, meanings, strict=True)
    )
    # Without setup stones, the last plane tells which of the older stones were played.
    facts = None if setup else _played_facts
    return Group(planes, on_boards(_draw_ages, most, setup), recent=most - 1, wants=frozenset({"ages"}), facts=facts)
