"""What the moves of the side to move would do: captures, size and liberties of the chain made."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.jit import kernel
from pipeline.planes.group import Draw, Group, Plane
from pipeline.traces import Traces

CAPTURED, SELF_ATARI, LIBERTIES, LEGAL = range(4)


@kernel
def _draw_moves(what, most, moves, positions, out, first):
    """Draw one-hot planes of the legal moves: stones captured (0 to ``most - 1`` or more), or size of the
    chain made if it is left in atari, or its liberties (both 1 to ``most`` or more), or just the moves."""
    for i in range(positions.shape[0]):
        now = positions[i]
        for index in range(moves.liberties.shape[1]):
            liberties = np.int64(moves.liberties[now, index])
            if liberties == 0:
                continue
            plane = 0
            if what == CAPTURED:
                plane = min(np.int64(moves.captured[now, index]), most - 1)
            elif what == LIBERTIES:
                plane = min(liberties, most) - 1
            elif what == SELF_ATARI:
                if liberties > 1:
                    continue
                plane = min(np.int64(moves.stones[now, index]), most) - 1
            out[i, first + plane, index >> 3] |= 0x80 >> (index & 7)


def _draw(what: int, most: int) -> Draw:
    def draw(traces: Traces, positions: NDArray[np.int64], out: NDArray[np.uint8], first: int) -> Any:
        _draw_moves(what, most, traces.moves, positions, out, first)

    return draw


def _one_hot(name: str, meaning: str, numbers: range, source: str) -> tuple[Plane, ...]:
    last = numbers[-1]
    names = [str(number) for number in numbers[:-1]] + [f"{last}_or_more"]
    return tuple(
        Plane(f"{name}_{text}", f"legal moves {meaning.format(text.replace('_', ' '))}", "mover", source)
        for text in names
    )


def capture_size(most: int, source: str) -> Group:
    """Legal moves that capture 0, 1, ..., ``most`` or more stones."""
    planes = _one_hot("capture", "that capture {} stones", range(most + 1), source)
    return Group(planes, _draw(CAPTURED, most + 1))


def self_atari_size(most: int, source: str) -> Group:
    """Legal moves after which the chain with the new stone has one liberty: its size 1, ..., ``most`` or more."""
    planes = _one_hot("self_atari", "into a chain of {} in atari", range(1, most + 1), source)
    return Group(planes, _draw(SELF_ATARI, most))


def liberties_after(most: int, source: str) -> Group:
    """Legal moves by the liberties of the chain with the new stone, captures done: 1, ..., ``most`` or more."""
    planes = _one_hot("liberties_after", "into a chain of {} liberties", range(1, most + 1), source)
    return Group(planes, _draw(LIBERTIES, most))


def legal(source: str) -> Group:
    """Legal moves: empty, not the simple-ko point, no suicide."""
    return Group((Plane("legal", "legal moves", "mover", source),), _draw(LEGAL, 1))
