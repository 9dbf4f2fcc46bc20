"""Stones: where they are now and were in the turns before, by colour or by the side to move."""

import numpy as np

from pipeline.board import WHITE
from pipeline.jit import kernel
from pipeline.planes.group import Facts, Group, Plane, counted, on_boards
from pipeline.traces import Traces
from pipeline.words import Words, mix_words, seed_word


@kernel
def _draw_history(boards, oldest, first_step, second_step, second_start, relative, trace, positions, out, first):
    """Draw the stones of ``boards`` boards: plane ``first + k * first_step`` for one side k turns ago,
    ``first + second_start + k * second_step`` for the other. Boards before the start stay zero, or (``oldest``)
    are the board at the start."""
    for i in range(positions.shape[0]):
        now = positions[i]
        one = 1 if relative and trace.to_play[now] == WHITE else 0
        known = now - trace.begin[now] + 1
        for back in range(boards if oldest else min(boards, known)):
            then = now - min(back, known - 1)
            here, there = first + back * first_step, first + second_start + back * second_step
            for byte in range(out.shape[2]):
                out[i, here, byte] = trace.stones[then, one, byte]
                out[i, there, byte] = trace.stones[then, 1 - one, byte]


@kernel
def _draw_before(boards, trace, positions, out, first):
    for i in range(positions.shape[0]):
        now = positions[i]
        for back in range(1, min(boards, now - trace.begin[now]) + 1):
            for side in range(2):
                for byte in range(out.shape[2]):
                    out[i, first + side * boards + back - 1, byte] = trace.stones[now - back, side, byte]


@kernel
def _draw_empty(trace, positions, out, first):
    for i in range(positions.shape[0]):
        now = positions[i]
        for byte in range(out.shape[2]):
            out[i, first, byte] = trace.mask[byte] & ~(trace.stones[now, 0, byte] | trace.stones[now, 1, byte])


def _turn(back: int) -> str:
    return "now" if back == 0 else f"{counted(back, 'turn', 'turns')} ago"


def _stone_planes(sides: tuple[str, str], boards: int, interleaved: bool, source: str) -> tuple[Plane, ...]:
    perspective = "mover" if sides[0] == "own" else "absolute"
    by_side = [
        [Plane(f"{side}_{back}", f"{side} stones {_turn(back)}", perspective, source) for back in range(boards)]
        for side in sides
    ]
    if interleaved:
        return tuple(plane for pair in zip(*by_side, strict=True) for plane in pair)
    return tuple(by_side[0] + by_side[1])


def own_opp(boards: int, interleaved: bool, source: str, oldest: bool = False) -> Group:
    """Own and opp stones now and in the ``boards - 1`` turns before, alternating or one side after the other.

    *own* is the side to move now, on all boards. A pass is a turn; boards before the start or before
    the last setup are zero, or (``oldest``) repeat the first board known.
    """
    return _history_group(("own", "opp"), boards, interleaved, source, oldest)


def black_white(boards: int, source: str) -> Group:
    """Black stones now and in the turns before, then White's."""
    return _history_group(("black", "white"), boards, False, source)


def black_white_before(boards: int, source: str) -> Group:
    """Black stones 1 to ``boards`` turns ago, then White's; the current board is not among them."""
    planes = tuple(
        Plane(f"{side}_{back}", f"{side} stones {_turn(back)}", "absolute", source)
        for side in ("black", "white")
        for back in range(1, boards + 1)
    )
    return Group(planes, on_boards(_draw_before, boards), history=boards)


def _history_group(sides: tuple[str, str], boards: int, interleaved: bool, source: str, oldest: bool = False) -> Group:
    step, second = (2, 1) if interleaved else (1, boards)
    draw = on_boards(_draw_history, np.int64(boards), oldest, step, step, second, sides[0] == "own")

    def facts(traces: Traces) -> Facts:
        begin = traces.boards.begin
        known = np.minimum(np.arange(len(begin)) - begin, boards - 1)
        known[~traces.boards.stones[begin].any(axis=(1, 2))] = boards - 1  # no board and an empty one are the same
        words: Words = mix_words(known.astype(np.uint64) ^ seed_word("boards known"))
        return Facts(words)

    planes = _stone_planes(sides, boards, interleaved, source)
    return Group(planes, draw, history=boards - 1, facts=facts if oldest else None)


def empty(source: str) -> Group:
    """Empty points of the board."""
    return Group((Plane("empty", "empty points", "absolute", source),), on_boards(_draw_empty))
