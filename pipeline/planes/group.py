"""What a family of planes is made of: named planes, and the kernel that draws them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.trace import Trace

# draw(trace, positions, out, first): for each i, draw the planes of trace position ``positions[i]``
# (int64[N]) into ``out[i, first : first + P]`` (uint8[N, all planes, B], packed, zero on entry).
Draw = Callable[[Trace, NDArray[np.int64], NDArray[np.uint8], int], Any]


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

    ``history``: earlier boards that the planes show; ``liberties``: whether ``Trace.liberties`` is needed.
    """

    planes: tuple[Plane, ...]
    draw: Draw
    history: int = 0
    liberties: bool = False
