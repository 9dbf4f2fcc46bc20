"""The simple-ko point."""

from pipeline.jit import kernel
from pipeline.planes.group import Group, Plane, on_boards


@kernel
def _draw_ko(trace, positions, out, first):
    for i in range(positions.shape[0]):
        ko = trace.ko[positions[i]]
        if ko >= 0:
            out[i, first, ko >> 3] = 0x80 >> (ko & 7)


def ko_point(source: str) -> Group:
    """The point banned by simple ko, whoever would play there."""
    return Group((Plane("ko", "the simple-ko point", "absolute", source),), on_boards(_draw_ko))
