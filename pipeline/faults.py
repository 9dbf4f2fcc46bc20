"""Why a move is illegal, as a reason and in words."""

from pipeline.board import (
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


def describe_setup(ply: int) -> str:
    """Say that the setup before move ``ply + 1`` is illegal."""
    return f"setup before move {ply + 1}: {Reason.ILLEGAL_SETUP.meaning}"


def describe_move(reason: Reason, ply: int, move: int, colour: int, size: tuple[int, int]) -> str:
    """Say which move is illegal, and why; ``move`` is a point of the board or OFF_BOARD."""
    where = "off the board" if move == OFF_BOARD else point_name(move, *size)
    return f"move {ply + 1} ({'BW'[colour - 1]} {where}): {reason.meaning}"
