"""What a family of planes is made of: named planes, and the kernel that draws them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.board import WHITE
from pipeline.jit import kernel
from pipeline.traces import Traces, Want
from pipeline.words import Words

# draw(traces, positions, out, first): for each i, draw the planes of traced position ``positions[i]``
# (int64[N]) into ``out[i, first : first + P]`` (uint8[N, all planes, B], packed, zero on entry).
Draw = Callable[[Traces, NDArray[np.int64], NDArray[np.uint8], int], Any]
# fill(traces, positions): the globals of the positions, float32[N, G].
Fill = Callable[[Traces, NDArray[np.int64]], NDArray[np.float32]]


class Facts(NamedTuple):
    """What planes and globals show of T traced positions beside boards and moves, for position keys.

    ``words`` uint64[T]: what is the same in every orientation; ``points`` uint8[T, B]: packed frame points
    that turn with the board; ``shown`` bool[T]: whether the position can be shown at all. None: nothing, all.
    """

    words: Words | None = None
    points: NDArray[np.uint8] | None = None
    shown: NDArray[np.bool_] | None = None


FactsOf = Callable[[Traces], Facts]


def on_boards(kernel: Callable[..., Any], *parameters: Any) -> Draw:
    """Return the drawing by a kernel that needs no more than ``Traces.boards``."""

    def draw(traces: Traces, positions: NDArray[np.int64], out: NDArray[np.uint8], first: int) -> None:
        kernel(*parameters, traces.boards, positions, out, first)

    return draw


def counted(number: int | str, one: str, many: str) -> str:
    """Return "1 turn", "2 turns" or, for the number in the name of a last plane, "8 or more turns"."""
    return f"{str(number).replace('_', ' ')} {one if str(number) == '1' else many}"


@kernel
def copy_points(points, positions, out, first):
    """Draw one plane: packed ``points`` uint8[T, B] of each position."""
    for i in range(positions.shape[0]):
        for byte in range(out.shape[2]):
            out[i, first, byte] = points[positions[i], byte]


@kernel
def copy_sides(sides, to_play, positions, out, first):
    """Draw own, then opp: packed ``sides`` uint8[T, 2, B] of Black and of White."""
    for i in range(positions.shape[0]):
        now = positions[i]
        own = 1 if to_play[now] == WHITE else 0
        for byte in range(out.shape[2]):
            out[i, first, byte] = sides[now, own, byte]
            out[i, first + 1, byte] = sides[now, 1 - own, byte]


def draw_nothing(*_: object) -> None:
    """Leave planes at zero, which they are on entry."""


@dataclass(frozen=True, slots=True)
class Plane:
    """One plane or global: a name to ask for, its meaning, whose view it shows, and where its rule is written."""

    name: str
    meaning: str
    perspective: str  # "mover": seen from the side to move; "absolute": the same for both
    source: str


@dataclass(frozen=True, slots=True)
class Group:
    """Planes drawn together, and globals filled together.

    ``history``: earlier boards that they show; ``recent``: last moves that they show, passes counted; ``facts``:
    what else they show; ``wants``: what has to be traced for them; ``komi``: whether they need one.
    """

    planes: tuple[Plane, ...]
    draw: Draw
    history: int = 0
    recent: int = 0
    wants: frozenset[Want] = frozenset()
    globals: tuple[Plane, ...] = ()
    fill: Fill | None = None
    facts: FactsOf | None = None
    komi: bool = False
