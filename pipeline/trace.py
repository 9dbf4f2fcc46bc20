"""Games to boards that planes are drawn from: the packed stones of every position, ko points, liberties."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.board import CHAIN, COLOUR, EMPTY, KO, LIBERTIES, REMOVED, clear, new_board, play, play_pass, spot_of
from pipeline.games import Games
from pipeline.jit import kernel
from pipeline.replay import apply_setup

SET_UP = 255  # in place of an age


class Trace(NamedTuple):
    """Boards of consecutive positions of games of one size, for the plane kernels.

    For T positions, the board being the one before the move: ``stones`` uint8[T, 2, B]: packed frame
    planes of the black and of the white stones, B = ceil(frame area / 8); ``begin`` int64[T]: the
    first position of the game, or after its last setup; ``ko`` int32[T]: frame index of the ko
    point, -1 none; ``to_play`` int8[T]; ``move`` int32[T]: frame index of the move made next, -1 for a
    pass; ``liberties`` uint8[T, frame area]: of the chain on each point, at most 255, 0 where empty;
    ``ages`` uint8[T, frame area]: turns since the stone on each point was played, passes counted, at
    most 254, SET_UP for one that was set up or played before the last setup, 0 where empty (both have no
    rows where no plane asks for them); ``mask`` uint8[B]: the points of the board.
    """

    stones: NDArray[np.uint8]
    begin: NDArray[np.int64]
    ko: NDArray[np.int32]
    to_play: NDArray[np.int8]
    move: NDArray[np.int32]
    liberties: NDArray[np.uint8]
    ages: NDArray[np.uint8]
    mask: NDArray[np.uint8]


@kernel
def _flip_bit(plane, index):
    plane[index >> 3] ^= np.uint8(0x80 >> (index & 7))


@kernel
def _pack_stones(board, frame_of, stones):
    """Set ``stones`` to the packed planes of both colours."""
    stones[:] = np.uint8(0)
    for spot in range(frame_of.shape[0]):
        colour = board.points[COLOUR + spot]
        if colour == 1 or colour == 2:
            _flip_bit(stones[colour - 1], frame_of[spot])


@kernel
def _trace_liberties(board, frame_of, liberties):
    liberties[:] = np.uint8(0)
    for spot in range(frame_of.shape[0]):
        colour = board.points[COLOUR + spot]
        if colour == 1 or colour == 2:
            liberties[frame_of[spot]] = min(np.int64(board.points[LIBERTIES + board.points[CHAIN + spot]]), 255)


@kernel
def _trace_ages(board, frame_of, born, ply, ages):
    ages[:] = np.uint8(0)
    for spot in range(frame_of.shape[0]):
        colour = board.points[COLOUR + spot]
        if colour == 1 or colour == 2:
            ages[frame_of[spot]] = SET_UP if born[spot] < 0 else min(ply - born[spot], SET_UP - 1)


@kernel
def _trace_games(games, order, plies, board, frame_of, stones, born, trace):
    """Fill ``trace`` with all positions of the games in ``order``, one game after the other.

    ``born`` int64[spots] is scratch: the ply at which the stone on each spot was played, -1 where it was set up.
    """
    rows, cols = np.int64(games.rows[order[0]]), np.int64(games.cols[order[0]])
    at = 0
    for game in order:
        clear(board, rows, cols)
        stones[:] = np.uint8(0)
        born[:] = -1
        first, cursor, begin = games.move_start[game], games.setup_start[game], at
        for ply in range(plies[game]):
            cursor, changed, _sound = apply_setup(board, games, game, cursor, ply)
            if changed:
                begin = at
                _pack_stones(board, frame_of, stones)
                born[:] = -1
            move, colour = np.int64(games.moves[first + ply]), np.int64(games.colours[first + ply])
            ko = np.int64(board.points[KO])
            for byte in range(stones.shape[1]):
                trace.stones[at, 0, byte] = stones[0, byte]
                trace.stones[at, 1, byte] = stones[1, byte]
            trace.begin[at] = begin
            trace.ko[at] = frame_of[ko] if ko != EMPTY else -1
            trace.to_play[at] = colour
            trace.move[at] = frame_of[spot_of(board, move)] if move != rows * cols else -1
            if trace.ages.shape[0] > 0:
                _trace_ages(board, frame_of, born, ply, trace.ages[at])
            if trace.liberties.shape[0] > 0:
                _trace_liberties(board, frame_of, trace.liberties[at])
            at += 1
            if move == rows * cols:
                play_pass(board, None)
                continue
            spot = spot_of(board, move)
            captured = play(board, spot, colour, None)
            born[spot] = ply
            _flip_bit(stones[colour - 1], frame_of[spot])
            removed_colour = 3 - colour if captured > 0 else colour
            for i in range(abs(captured)):
                _flip_bit(stones[removed_colour - 1], frame_of[np.int64(board.points[REMOVED + i])])
    return at


def frame_table(rows: int, cols: int, frame_cols: int) -> NDArray[np.int32]:
    """Return int32[spots]: the frame index of each spot of a rows x cols board (0 off the board)."""
    table = np.zeros((rows + 2) * (cols + 1) + 1, dtype=np.int32)
    for row in range(rows):
        first = (row + 1) * (cols + 1) + 1
        table[first : first + cols] = np.arange(row * frame_cols, row * frame_cols + cols)
    return table


def trace(
    games: Games,
    order: NDArray[np.int64],
    plies: NDArray[np.int64],
    frame: tuple[int, int],
    liberties: bool = False,
    ages: bool = False,
) -> Trace:
    """Trace the games in ``order`` (one size, legal throughout) over their first ``plies[g]`` positions."""
    rows, cols = int(games.rows[order[0]]), int(games.cols[order[0]])
    area = frame[0] * frame[1]
    total = int(plies[order].sum())
    on_board = np.zeros(frame, dtype=np.uint8)
    on_board[:rows, :cols] = 1
    traced = Trace(
        np.empty((total, 2, (area + 7) // 8), dtype=np.uint8),
        np.empty(total, dtype=np.int64),
        np.empty(total, dtype=np.int32),
        np.empty(total, dtype=np.int8),
        np.empty(total, dtype=np.int32),
        np.empty((total if liberties else 0, area), dtype=np.uint8),
        np.empty((total if ages else 0, area), dtype=np.uint8),
        np.packbits(on_board),
    )
    stones = np.zeros(traced.stones.shape[1:], dtype=np.uint8)
    frame_of = frame_table(rows, cols, frame[1])
    born = np.zeros(len(frame_of), dtype=np.int64)
    _trace_games(games, order, plies, new_board(rows, cols), frame_of, stones, born, traced)
    return traced
