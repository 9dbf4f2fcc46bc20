"""Why a move is illegal, as a reason and in words."""

import numpy as np
from numpy.typing import NDArray

from pipeline.board import (
    BLACK,
    ILLEGAL_KO,
    ILLEGAL_OCCUPIED,
    ILLEGAL_OFF_BOARD,
    ILLEGAL_SUICIDE,
    ILLEGAL_SUPERKO,
)
from pipeline.coordinates import point_name
from pipeline.games import OFF_BOARD
from pipeline.reasons import Reason
from pipeline.replay import ILLEGAL_SETUP

REASONS = {
    ILLEGAL_OCCUPIED: Reason.OCCUPIED,
    ILLEGAL_KO: Reason.KO,
    ILLEGAL_SUICIDE: Reason.SUICIDE,
    ILLEGAL_SUPERKO: Reason.SUPERKO,
    ILLEGAL_OFF_BOARD: Reason.OFF_BOARD,
    ILLEGAL_SETUP: Reason.ILLEGAL_SETUP,
}


def move_name(move: int, rows: int, cols: int) -> str:
    """Return the human name of a recorded move: a point of the board, a pass or OFF_BOARD."""
    return "off the board" if move == OFF_BOARD else point_name(move, rows, cols)


def describe(
    reason: Reason, ply: int, moves: NDArray[np.uint16], colours: NDArray[np.int8], size: tuple[int, int]
) -> str:
    """Say what is illegal, and why: move ``ply`` (from 0) of ``moves``, or the setup before it."""
    if reason is Reason.ILLEGAL_SETUP:
        return f"setup before move {ply + 1}: {reason.meaning}"
    side = "B" if colours[ply] == BLACK else "W"
    return f"move {ply + 1} ({side} {move_name(int(moves[ply]), *size)}): {reason.meaning}"
