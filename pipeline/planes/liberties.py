"""Stones by the liberties of their chain."""

from functools import partial

from pipeline.board import WHITE
from pipeline.jit import kernel
from pipeline.planes.group import Group, Plane


@kernel
def _draw_own_opp_liberties(most, trace, positions, out, first):
    for i in range(positions.shape[0]):
        now = positions[i]
        own = 1 if trace.to_play[now] == WHITE else 0
        stones, liberties = trace.stones[now], trace.liberties[now]
        for byte in range(stones.shape[1]):
            for side in range(2):
                bits = stones[own if side == 0 else 1 - own, byte]
                start = first + side * most
                for bit in range(8):
                    if bits & (0x80 >> bit):
                        plane = start + min(liberties[8 * byte + bit], most) - 1
                        out[i, plane, byte] |= 0x80 >> bit


def _liberties(name: str) -> str:
    return "1 liberty" if name == "1" else f"{name.replace('_', ' ')} liberties"


def own_opp_liberties(most: int, source: str) -> Group:
    """Own stones whose chain has 1, 2, ..., ``most`` or more liberties; then the same for opp."""
    names = [str(count) for count in range(1, most)] + [f"{most}_or_more"]
    planes = tuple(
        Plane(f"{side}_liberties_{name}", f"{side} chains with {_liberties(name)}", "mover", source)
        for side in ("own", "opp")
        for name in names
    )
    return Group(planes, partial(_draw_own_opp_liberties, most), liberties=True)
