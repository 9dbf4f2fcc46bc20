"""Planes that are all one or all zero on the board: the side to move."""

from pipeline.board import BLACK, WHITE
from pipeline.jit import kernel
from pipeline.planes.group import Group, Plane, draw_nothing, on_boards


@kernel
def _draw_to_play(colour, trace, positions, out, first):
    for i in range(positions.shape[0]):
        if trace.to_play[positions[i]] == colour:
            for byte in range(out.shape[2]):
                out[i, first, byte] = trace.mask[byte]


@kernel
def _draw_ones(trace, positions, out, first):
    for i in range(positions.shape[0]):
        for byte in range(out.shape[2]):
            out[i, first, byte] = trace.mask[byte]


def ones(source: str) -> Group:
    """All 1 on the board."""
    return Group((Plane("ones", "1 everywhere on the board", "absolute", source),), on_boards(_draw_ones))


def zeros(source: str) -> Group:
    """All 0."""
    return Group((Plane("zeros", "0 everywhere", "absolute", source),), draw_nothing)


def black_to_move(source: str) -> Group:
    """All 1 on the board where Black is to move."""
    plane = Plane("black_to_move", "1 everywhere if Black is to move", "absolute", source)
    return Group((plane,), on_boards(_draw_to_play, BLACK))


def white_to_move(source: str) -> Group:
    """All 1 on the board where White is to move."""
    plane = Plane("white_to_move", "1 everywhere if White is to move", "absolute", source)
    return Group((plane,), on_boards(_draw_to_play, WHITE))
