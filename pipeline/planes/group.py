"""What a family of planes is made of: named planes, and the kernel that draws them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.traces import Traces

# draw(traces, positions, out, first): for each i, draw the planes of traced position ``positions[i]``
# (int64[N]) into ``out[i, first : first + P]`` (uint8[N, all planes, B], packed, zero on entry).
Draw = Callable[[Traces, NDArray[np.int64], NDArray[np.uint8], int], Any]


def on_boards(kernel: Callable[..., Any], *parameters: Any) -> Draw:
    """Return the drawing by a kernel that needs no more than ``Traces.boards``."""

    def draw(traces: Traces, positions: NDArray[np.int64], out: NDArray[np.uint8], first: int) -> None:
        kernel(*parameters, traces.boards, positions, out, first)

    return draw


@dataclass(frozen=True, slots=True)
class Plane:
    """One plane: a name to ask for, its meaning, whose view it shows, and where its rule is written."""

    name: str
    meaning: str
    perspective: str  # "mover": seen from the side to move; "absolute": the same for both
    source: str


@dataclass(frozen=True, slots=True)
class Group:
    """Planes drawn together.

    ``history``: earlier boards that the planes show; ``recent``: last moves that they show, passes counted;
    ``liberties``, ``ages``: whether these fields of ``Trace`` are needed.
    """

    planes: tuple[Plane, ...]
    draw: Draw
    history: int = 0
    recent: int = 0
    liberties: bool = False
    ages: bool = False
