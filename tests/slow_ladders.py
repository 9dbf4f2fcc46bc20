"""AlphaGo's ladders found by plain recursion on a slow board, from SCHEMES.md section 1.

As in ``slow_captures`` the players know of no order and no pruning; a search that gets too deep is given up.
"""

from slow_areas import is_true_eye
from slow_board import Chain, Point, SlowBoard
from slow_captures import counter_captures, legal

Points = set[Point]

MOST_LEVELS = 200


class TooDeepError(Exception):
    """The definition has no answer for a ladder this long."""


def _played(board: SlowBoard, point: Point, colour: int) -> SlowBoard:
    after = board.copy()
    after.play(point, colour)
    return after


def plausible_escapes(board: SlowBoard, chain: Chain) -> Points:
    """Return the moves that the owner of a chain in atari would think of."""
    return {
        point
        for point in counter_captures(board, chain) | chain.liberties
        if legal(board, point, chain.colour) and not is_true_eye(board, point, chain.colour)
    }


def is_ladder_capture(board: SlowBoard, move: Point, target: Point, level: int = 0) -> bool:
    """Return whether the legal ``move`` on one of its two liberties captures the chain of ``target``."""
    if level > MOST_LEVELS:
        raise TooDeepError
    after = _played(board, move, 3 - board.stones[target])
    chain = after.chain(target)
    if len(chain.liberties) >= 2:
        return False
    return not any(is_ladder_escape(after, answer, target, level + 1) for answer in plausible_escapes(after, chain))


def is_ladder_escape(board: SlowBoard, move: Point, target: Point, level: int = 0) -> bool:
    """Return whether the legal ``move`` saves the chain of ``target``, which is in atari."""
    if level > MOST_LEVELS:
        raise TooDeepError
    colour = board.stones[target]
    after = _played(board, move, colour)
    liberties = after.chain(target).liberties
    if len(liberties) != 2:
        return len(liberties) > 2
    return not any(
        is_ladder_capture(after, attack, target, level + 1) for attack in liberties if legal(after, attack, 3 - colour)
    )


def ladder_captures(board: SlowBoard, mover: int) -> Points:
    """Return plane 44 of a position."""
    return {
        move
        for chain in board.chains()
        if chain.colour == 3 - mover and len(chain.liberties) == 2
        for move in chain.liberties
        if legal(board, move, mover) and is_ladder_capture(board, move, min(chain.stones))
    }


def ladder_escapes(board: SlowBoard, mover: int, by_capture: bool = False) -> Points:
    """Return plane 45 of a position; ``by_capture``: counter-captures count."""
    return {
        move
        for chain in board.chains()
        if chain.colour == mover and len(chain.liberties) == 1
        for move in chain.liberties | (counter_captures(board, chain) if by_capture else set())
        if legal(board, move, mover) and is_ladder_escape(board, move, min(chain.stones))
    }
