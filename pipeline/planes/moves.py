"""What the moves of the side to move would do: captures, size and liberties of the chain made."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.jit import kernel
from pipeline.planes.group import Draw, Group, Plane, counted
from pipeline.traces import Traces

_STONES, _LIBERTIES = ("stone", "stones"), ("liberty", "liberties")
CAPTURED, SELF_ATARI, LIBERTIES, LEGAL, ENEMY, TARGET, CAPTURES, CONNECTS, MAKES_KO = range(9)


@kernel
def _plane_of(what, most, moves, now, index):
    """Return which of a family's planes a legal move is in, -1 for none; see ``_draw_moves``."""
    liberties, stones = np.int64(moves.liberties[now, index]), np.int64(moves.stones[now, index])
    captured = np.int64(moves.captured[now, index])
    if what == CAPTURED:
        return min(captured, most - 1)
    if what == LIBERTIES:
        return min(liberties, most) - 1
    if what == SELF_ATARI:
        return min(stones, most) - 1 if liberties == 1 else -1
    if what == ENEMY:
        return min(np.int64(moves.enemy[now, index]), most) - 1
    if what == TARGET:
        return min(np.int64(moves.target[now, index]), most) - 1
    if what == CAPTURES:
        return 0 if captured > 0 else -1
    if what == CONNECTS:
        return 0 if moves.joined[now, index] > 1 else -1
    if what == MAKES_KO:
        return 0 if captured == 1 and stones == 1 and liberties == 1 else -1
    return 0


@kernel
def _draw_moves(what, most, moves, positions, out, first):
    """Draw one-hot planes of the legal moves, by stones captured (0 to ``most - 1`` or more), or by one of the
    other numbers of ``Moves`` (1 to ``most`` or more); or one plane of those that do something."""
    for i in range(positions.shape[0]):
        now = positions[i]
        for index in range(moves.liberties.shape[1]):
            if moves.liberties[now, index] > 0:
                plane = _plane_of(what, most, moves, now, index)
                if plane >= 0:
                    out[i, first + plane, index >> 3] |= 0x80 >> (index & 7)


def _draw(what: int, most: int = 1, opponent: bool = False) -> Draw:
    def draw(traces: Traces, positions: NDArray[np.int64], out: NDArray[np.uint8], first: int) -> Any:
        moves = traces.opponent_moves if opponent else traces.moves
        _draw_moves(what, most, moves, positions, out, first)

    return draw


def _one_hot(name: str, meaning: str, thing: tuple[str, str], numbers: range, source: str) -> tuple[Plane, ...]:
    """Return a plane for each number, the last one for more too; ``meaning`` has a {} for so many of ``thing``."""
    last = numbers[-1]
    names = [str(number) for number in numbers[:-1]] + [f"{last}_or_more"]
    return tuple(Plane(f"{name}_{text}", meaning.format(counted(text, *thing)), "mover", source) for text in names)


def capture_size(most: int, source: str) -> Group:
    """Legal moves that capture 0, 1, ..., ``most`` or more stones."""
    planes = _one_hot("capture", "legal moves that capture {}", _STONES, range(most + 1), source)
    return Group(planes, _draw(CAPTURED, most + 1))


def self_atari_size(most: int, source: str) -> Group:
    """Legal moves after which the chain with the new stone has one liberty: its size 1, ..., ``most`` or more."""
    planes = _one_hot(
        "self_atari", "legal moves that put their chain of {} in atari", _STONES, range(1, most + 1), source
    )
    return Group(planes, _draw(SELF_ATARI, most))


def liberties_after(most: int, source: str) -> Group:
    """Legal moves by the liberties of the chain with the new stone, captures done: 1, ..., ``most`` or more."""
    planes = _one_hot("liberties_after", "legal moves whose chain then has {}", _LIBERTIES, range(1, most + 1), source)
    return Group(planes, _draw(LIBERTIES, most))


def legal(source: str) -> Group:
    """Legal moves: empty, not the simple-ko point, no suicide."""
    return Group((Plane("legal", "legal moves", "mover", source),), _draw(LEGAL))


def enemy_liberties(most: int, source: str) -> Group:
    """Legal moves by the fewest liberties, after the move, of an opp chain beside it: 1, ..., ``most`` or more."""
    planes = _one_hot(
        "enemy_liberties",
        "legal moves beside opp chains that leave the weakest of them {}",
        _LIBERTIES,
        range(1, most + 1),
        source,
    )
    return Group(planes, _draw(ENEMY, most))


def target_size(most: int, source: str, opponent: bool = False) -> Group:
    """Legal moves beside an opp chain of two liberties: the size of the largest, 1, ..., ``most`` or more.

    ``opponent``: the same with the sides exchanged.
    """
    side, other = ("opp", "own") if opponent else ("own", "opp")
    meaning = f"legal moves of {side} beside {other} chains with 2 liberties, the largest of {{}}"
    planes = _one_hot(f"{side}_target", meaning, _STONES, range(1, most + 1), source)
    return Group(planes, _draw(TARGET, most, opponent))


def can_capture(source: str) -> Group:
    """Legal moves that take at least one stone."""
    plane = Plane("can_capture", "legal moves that take at least one stone", "mover", source)
    return Group((plane,), _draw(CAPTURES))


def can_connect(source: str) -> Group:
    """Legal moves that join two or more own chains."""
    plane = Plane("can_connect", "legal moves that join two or more own chains", "mover", source)
    return Group((plane,), _draw(CONNECTS))


def makes_ko(source: str, opponent: bool = False) -> Group:
    """Legal moves after which there is a simple-ko point. ``opponent``: those of the other side."""
    side = "opp" if opponent else "own"
    plane = Plane(f"{side}_makes_ko", f"legal moves of {side} after which there is a simple-ko point", "mover", source)
    return Group((plane,), _draw(MAKES_KO, opponent=opponent))
