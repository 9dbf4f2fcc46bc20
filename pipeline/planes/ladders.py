"""Ladders: the stones that are caught, now and one turn ago, the moves that catch, and those that escape.

Eight planes, four of own chains and the same four of opp chains (ARTICLES.md, "Ladders, 8 planes"): laddered
stones; stones that were laddered one turn ago; working first moves against chains of two liberties; and the
moves that save a chain in atari that is not laddered.
"""

import numpy as np
from numpy.typing import NDArray

from pipeline.board import WHITE
from pipeline.jit import kernel
from pipeline.planes.group import Group, Plane, copy_points
from pipeline.planes.katago import turn_facts
from pipeline.traces import Traces

# {0}: the side of the chains; {1}: the other side.
_KINDS = (
    ("laddered", "{0} stones caught in a ladder"),
    ("laddered_before", "{0} stones that were caught in a ladder 1 turn ago"),
    ("ladder_moves", "moves of {1} that catch {0} chains of 2 liberties in a ladder"),
    ("ladder_escapes", "moves of {0} that save {0} chains in atari from a ladder"),
)


@kernel
def _draw_ladders(ladders, trace, positions, out, first):
    for i in range(positions.shape[0]):
        now = positions[i]
        own = 1 if trace.to_play[now] == WHITE else 0
        before = max(now - 1, trace.begin[now])
        for half in range(2):
            side, plane = own if half == 0 else 1 - own, first + 4 * half
            for byte in range(out.shape[2]):
                out[i, plane, byte] = ladders.laddered[now, side, byte]
                out[i, plane + 1, byte] = ladders.laddered[before, side, byte]
                out[i, plane + 2, byte] = ladders.working[now, side, byte]
                out[i, plane + 3, byte] = ladders.escaping[now, side, byte]


def article_ladders(source: str) -> Group:
    """The eight ladder planes of the articles. Before the first move since the start or the last setup, the
    stones of one turn ago are those of now."""

    def draw(traces: Traces, positions: NDArray[np.int64], out: NDArray[np.uint8], first: int) -> None:
        _draw_ladders(traces.ladders, traces.boards, positions, out, first)

    planes = tuple(
        Plane(f"{side}_{name}", meaning.format(side, other), "mover", source)
        for side, other in (("own", "opp"), ("opp", "own"))
        for name, meaning in _KINDS
    )
    # The ko point of the board one turn ago follows from the board before that.
    return Group(planes, draw, history=2, recent=1, wants=frozenset({"escapes"}))


@kernel
def _draw_katago_ladders(ladders, katago, positions, out, first):
    for i in range(positions.shape[0]):
        now = positions[i]
        opp = 0 if katago.to_play[now] == WHITE else 1
        turns = np.int64(katago.turns[now])
        for byte in range(out.shape[2]):
            for back in range(3):
                then = now - min(back, turns)
                out[i, first + back, byte] = ladders.laddered[then, 0, byte] | ladders.laddered[then, 1, byte]
            out[i, first + 3, byte] = ladders.working[now, opp, byte]


def katago_ladders(source: str) -> Group:
    """Stones laddered now, 1 and 2 turns ago (where they stood then), and moves that catch opp chains of two
    liberties. A turn that KataGo's history does not show repeats the board before."""

    def draw(traces: Traces, positions: NDArray[np.int64], out: NDArray[np.uint8], first: int) -> None:
        _draw_katago_ladders(traces.ladders, traces.katago, positions, out, first)

    planes = (
        Plane("laddered", "stones caught in a ladder", "absolute", source),
        Plane("laddered_1", "stones that were caught in a ladder 1 turn ago", "absolute", source),
        Plane("laddered_2", "stones that were caught in a ladder 2 turns ago", "absolute", source),
        Plane("ladder_moves", "moves of own that catch opp chains of 2 liberties in a ladder", "mover", source),
    )
    # The ko point of the board two turns ago follows from the board before that.
    return Group(planes, draw, history=3, recent=2, facts=turn_facts)


def alphago_ladders(source: str, counter_captures: bool = False) -> Group:
    """AlphaGo's two planes of moves: that capture an opp chain in a working ladder, and that save an own one.

    ``counter_captures``: moves that save it by a capture beside it are marked too, not its last liberty alone.
    """

    def draw(traces: Traces, positions: NDArray[np.int64], out: NDArray[np.uint8], first: int) -> None:
        copy_points(traces.alphago_ladders.captures, positions, out, first)
        copy_points(traces.alphago_ladders.escapes, positions, out, first + 1)

    planes = (
        Plane("ladder_capture", "legal moves that capture an opp chain in a working ladder", "mover", source),
        Plane("ladder_escape", "legal moves that save an own chain in atari from a ladder", "mover", source),
    )
    return Group(planes, draw, wants=frozenset({"counter_captures"}) if counter_captures else frozenset())
