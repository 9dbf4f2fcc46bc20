"""What each move would do: stones captured, size and liberties of the chain it makes, for every point.

For one side and one board, without playing the moves: the liberties of the chain that a move makes are the
union of those of its neighbours, the empty points beside it, and what its captures set free.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.board import (
    CHAIN,
    COLOUR,
    COLS,
    EMPTY,
    KO,
    LIBERTIES,
    NEXT,
    OFF,
    ROWS,
    STONES,
    STRIDE,
    USED_WORDS,
    WORDS,
    clear,
    count_bits,
    new_board,
    play,
    play_pass,
    spot_of,
)
from pipeline.games import Games
from pipeline.jit import kernel
from pipeline.replay import apply_setup
from pipeline.trace import frame_table

_ONE = np.uint64(1)
_MOST = 255


class Moves(NamedTuple):
    """For T positions and every frame point, what a move there by one side would do.

    ``liberties`` uint8[T, frame area]: of the chain with the new stone, 0 where the move is not legal;
    ``stones``: the size of that chain; ``captured``: the stones it takes; ``joined``: the chains it joins
    into one; ``enemy``: the fewest liberties, after the move, of the other side's chains beside it that it
    does not take, 0 where there is none; ``target``: the stones of the largest chain of the other side
    beside it that has exactly two liberties, 0 where there is none. All uint8, at most 255.
    """

    liberties: NDArray[np.uint8]
    stones: NDArray[np.uint8]
    captured: NDArray[np.uint8]
    joined: NDArray[np.uint8]
    enemy: NDArray[np.uint8]
    target: NDArray[np.uint8]


@kernel
def _join_liberties(board, union, chain):
    for word in range(np.int64(board.points[USED_WORDS])):
        union[word] |= board.bits[chain * WORDS + word]


@kernel
def _free_captured(board, union, chain, spot, friends):
    """Add to ``union`` the stones of a captured chain that touch ``spot`` or one of the ``friends`` chains."""
    points = board.points
    stride = np.int64(points[STRIDE])
    colour = points[COLOUR + chain]
    stone = chain
    while True:
        for step in (-stride, -1, 1, stride):
            beside = stone + step
            touches = beside == spot
            if points[COLOUR + beside] == 3 - colour:
                name = points[CHAIN + beside]
                touches |= name == friends[0] or name == friends[1] or name == friends[2] or name == friends[3]
            if touches:
                union[stone >> 6] |= _ONE << np.uint64(stone & 63)
                break
        stone = np.int64(points[NEXT + stone])
        if stone == chain:
            return


@kernel
def what_if(board, spot, colour, union, friends):
    """Return (liberties, stones, captured, joined) of a move at the empty ``spot``; liberties 0: it is suicide.

    ``union`` uint64[WORDS] and ``friends`` int64[4] are scratch.
    """
    points = board.points
    stride = np.int64(points[STRIDE])
    empties, own, stones, captured = 0, 0, np.int64(1), 0
    for i in range(4):
        friends[i] = -1
    for step in (-stride, -1, 1, stride):
        there = points[COLOUR + spot + step]
        if there == EMPTY:
            empties += 1
        elif there == colour:
            chain = np.int64(points[CHAIN + spot + step])
            if chain != friends[0] and chain != friends[1] and chain != friends[2]:
                friends[own] = chain
                own += 1
                stones += np.int64(points[STONES + chain])
        elif there != OFF and points[LIBERTIES + points[CHAIN + spot + step]] == 1:
            captured += 1
    if own == 0 and captured == 0:
        return empties, stones, 0, 0
    for word in range(np.int64(points[USED_WORDS])):
        union[word] = np.uint64(0)
    for i in range(own):
        _join_liberties(board, union, friends[i])
    taken = np.int64(0)
    for step in (-stride, -1, 1, stride):
        beside = spot + step
        there = points[COLOUR + beside]
        if there == EMPTY:
            union[beside >> 6] |= _ONE << np.uint64(beside & 63)
        elif there == 3 - colour and points[LIBERTIES + points[CHAIN + beside]] == 1:
            chain = np.int64(points[CHAIN + beside])
            # A chain that is met twice is counted once: its stone here is then in the union already.
            if (union[beside >> 6] >> np.uint64(beside & 63)) & _ONE == 0:
                taken += np.int64(points[STONES + chain])
                _free_captured(board, union, chain, spot, friends)
    union[spot >> 6] &= ~(_ONE << np.uint64(spot & 63))
    liberties = 0
    for word in range(np.int64(points[USED_WORDS])):
        if union[word] != 0:
            liberties += count_bits(union[word])
    return liberties, stones, taken, own


@kernel
def enemies_beside(board, spot, colour):
    """Return (enemy, target) of a move at ``spot``, see ``Moves``."""
    points = board.points
    stride = np.int64(points[STRIDE])
    fewest, largest = np.int64(0), np.int64(0)
    for step in (-stride, -1, 1, stride):
        if points[COLOUR + spot + step] == 3 - colour:
            chain = np.int64(points[CHAIN + spot + step])
            # The move takes one liberty; chains it captures leave none to their neighbours of the same colour.
            left = np.int64(points[LIBERTIES + chain]) - 1
            if left > 0 and (fewest == 0 or left < fewest):
                fewest = left
            size = np.int64(points[STONES + chain])
            if left == 1 and size > largest:
                largest = size
    return fewest, largest


@kernel
def fill_moves(board, colour, ko, frame_of, moves, at, union, friends):
    """Fill row ``at`` of ``moves`` for one side; ``ko``: the spot that is banned, 0 for none."""
    points = board.points
    rows, cols = np.int64(points[ROWS]), np.int64(points[COLS])
    for values in moves:
        for index in range(values.shape[1]):
            values[at, index] = np.uint8(0)
    for row in range(rows):
        first = (row + 1) * (cols + 1) + 1
        for spot in range(first, first + cols):
            if points[COLOUR + spot] == EMPTY and spot != ko:
                liberties, stones, captured, joined = what_if(board, spot, colour, union, friends)
                if liberties > 0:
                    index = frame_of[spot]
                    moves.liberties[at, index] = min(liberties, _MOST)
                    moves.stones[at, index] = min(stones, _MOST)
                    moves.captured[at, index] = min(captured, _MOST)
                    moves.joined[at, index] = joined
                    enemy, target = enemies_beside(board, spot, colour)
                    moves.enemy[at, index] = min(enemy, _MOST)
                    moves.target[at, index] = min(target, _MOST)


@kernel
def _trace_moves(games, order, plies, board, frame_of, opponent, union, friends, moves):
    rows, cols = np.int64(games.rows[order[0]]), np.int64(games.cols[order[0]])
    at = 0
    for game in order:
        clear(board, rows, cols)
        first, cursor = games.move_start[game], games.setup_start[game]
        for ply in range(plies[game]):
            cursor, _changed, _sound = apply_setup(board, games, game, cursor, ply)
            move, colour = np.int64(games.moves[first + ply]), np.int64(games.colours[first + ply])
            if opponent:
                fill_moves(board, 3 - colour, 0, frame_of, moves, at, union, friends)
            else:
                fill_moves(board, colour, np.int64(board.points[KO]), frame_of, moves, at, union, friends)
            at += 1
            if move == rows * cols:
                play_pass(board, None)
            else:
                play(board, spot_of(board, move), colour, None)
    return at


def trace_moves(
    games: Games,
    order: NDArray[np.int64],
    plies: NDArray[np.int64],
    frame: tuple[int, int],
    opponent: bool = False,
) -> Moves:
    """Return what the moves of the side to move would do, at the positions that ``trace.trace`` gives.

    Legal is: empty, not the simple-ko point, no suicide. ``opponent``: of the other side instead, as if it
    were its turn with no ko point.
    """
    rows, cols = int(games.rows[order[0]]), int(games.cols[order[0]])
    shape = int(plies[order].sum()), frame[0] * frame[1]
    moves = Moves(*(np.empty(shape, dtype=np.uint8) for _ in Moves._fields))
    _trace_moves(
        games,
        order,
        plies,
        new_board(rows, cols),
        frame_table(rows, cols, frame[1]),
        opponent,
        np.zeros(WORDS, dtype=np.uint64),
        np.zeros(4, dtype=np.int64),
        moves,
    )
    return moves
