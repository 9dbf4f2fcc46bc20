"""Stones by the liberties of their chain."""

import numpy as np
from numpy.typing import NDArray

from pipeline.board import WHITE
from pipeline.jit import kernel
from pipeline.planes.group import Group, Plane, counted, on_boards
from pipeline.traces import Traces


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


@kernel
def _draw_liberties(most, beyond, trace, positions, out, first):
    """Draw stones by the liberties of their chain; those of more than ``most`` in the last plane, or (not
    ``beyond``) in none."""
    for i in range(positions.shape[0]):
        liberties = trace.liberties[positions[i]]
        for index in range(liberties.shape[0]):
            if liberties[index] > 0 and (beyond or liberties[index] <= most):
                out[i, first + min(liberties[index], most) - 1, index >> 3] |= 0x80 >> (index & 7)


@kernel
def _draw_last_liberties(frame_cols, trace, positions, out, first):
    for i in range(positions.shape[0]):
        now = positions[i]
        own = 1 if trace.to_play[now] == WHITE else 0
        for index in range(trace.liberties.shape[1]):
            byte, bit = index >> 3, 0x80 >> (index & 7)
            if trace.liberties[now, index] != 1 or not trace.stones[now, 1 - own, byte] & bit:
                continue
            for step in (-frame_cols, -1, 1, frame_cols):
                beside = index + step
                if abs(step) == 1 and beside // frame_cols != index // frame_cols:
                    continue
                if beside < 0 or beside >= trace.liberties.shape[1]:
                    continue
                there, mark = beside >> 3, 0x80 >> (beside & 7)
                if trace.mask[there] & mark and not (trace.stones[now, 0, there] | trace.stones[now, 1, there]) & mark:
                    out[i, first, there] |= mark


def chain_liberties(most: int, source: str) -> Group:
    """Stones of either colour whose chain has 1, 2, ..., ``most`` or more liberties."""
    names = [str(count) for count in range(1, most)] + [f"{most}_or_more"]
    planes = tuple(Plane(f"liberties_{name}", f"chains with {_liberties(name)}", "absolute", source) for name in names)
    return Group(planes, on_boards(_draw_liberties, most, True), wants=frozenset({"liberties"}))


def few_liberties(most: int, source: str) -> Group:
    """Stones of either colour whose chain has exactly 1, 2, ..., ``most`` liberties."""
    names = [str(count) for count in range(1, most + 1)]
    planes = tuple(Plane(f"liberties_{name}", f"chains with {_liberties(name)}", "absolute", source) for name in names)
    return Group(planes, on_boards(_draw_liberties, most, False), wants=frozenset({"liberties"}))


def last_liberties(source: str) -> Group:
    """The last liberty of every opp chain in atari, the ko point included."""

    def draw(traces: Traces, positions: NDArray[np.int64], out: NDArray[np.uint8], first: int) -> None:
        _draw_last_liberties(traces.frame[1], traces.boards, positions, out, first)

    plane = Plane("would_capture", "the last liberty of an opp chain in atari", "mover", source)
    return Group((plane,), draw, wants=frozenset({"liberties"}))


def _liberties(name: str) -> str:
    return counted(name, "liberty", "liberties")


def own_opp_liberties(most: int, source: str) -> Group:
    """Own stones whose chain has 1, 2, ..., ``most`` or more liberties; then the same for opp."""
    names = [str(count) for count in range(1, most)] + [f"{most}_or_more"]
    planes = tuple(
        Plane(f"{side}_liberties_{name}", f"{side} chains with {_liberties(name)}", "mover", source)
        for side in ("own", "opp")
        for name in names
    )
    return Group(planes, on_boards(_draw_own_opp_liberties, most), wants=frozenset({"liberties"}))
