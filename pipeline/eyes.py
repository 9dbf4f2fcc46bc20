"""True eyes: empty points that a player does well not to fill.

Definition (SCHEMES.md section 1, of RocAlphaGo): a point p is a true eye of a colour if p is empty, all its
orthogonal neighbours on the board are stones of the colour, and at most one of its diagonal points is bad,
none on an edge or in a corner. An opponent stone is bad; an empty point is bad unless it is a true eye
itself, asked recursively; points that are being asked about already are not counted as bad.

That recursion is the same as taking all points whose neighbours are of the colour and dropping those with
too many bad diagonals, an empty point being bad once it is dropped, until none drops. For if p stays, so
do all but the allowed number of its diagonal points, and no path through points that stay comes to a no.
If p drops, it does so because of points that dropped before it; the points asked about on the way to it
dropped after it, so leaving them out changes nothing. Hence no order of asking matters, and no stack is
needed.
"""

import numpy as np
from numpy.typing import NDArray

from pipeline.board import (
    BLACK,
    CHAIN,
    COLOUR,
    COLS,
    EMPTY,
    LEGAL,
    LIBERTIES,
    OFF,
    ROWS,
    STRIDE,
    USED_WORDS,
    WHITE,
    WORDS,
    clear,
    legality,
    new_board,
    new_journal,
    play,
    play_pass,
    spot_of,
    undo,
)
from pipeline.games import Games
from pipeline.jit import NO, kernel
from pipeline.replay import apply_setup
from pipeline.spotset import NO_BITS, ONE, flip_frame_bits, has_spot, read_stones
from pipeline.trace import frame_table


@kernel
def _shifted(spots, word, words, offset):
    """Return one word of a set whose spots have moved by ``offset``, -63 to 63 and not 0."""
    if offset > 0:
        moved = spots[word] << np.uint64(offset)
        if word > 0:
            moved |= spots[word - 1] >> np.uint64(64 - offset)
    else:
        moved = spots[word] >> np.uint64(-offset)
        if word + 1 < words:
            moved |= spots[word + 1] << np.uint64(64 + offset)
    return moved


@kernel
def _find_edge(board, edge):
    """Set ``edge`` to the spots of the first and last lines."""
    points = board.points
    rows, cols, stride = np.int64(points[ROWS]), np.int64(points[COLS]), np.int64(points[STRIDE])
    edge[:] = NO_BITS
    for row in range(1, rows + 1):
        step = 1 if row in (1, rows) or cols == 1 else cols - 1
        for spot in range(row * stride + 1, row * stride + cols + 1, step):
            edge[spot >> 6] |= ONE << np.uint64(spot & 63)


@kernel
def true_eyes(board, stones, colour, work, eyes):
    """Set ``eyes`` uint64[WORDS] to the true eyes of ``colour``.

    ``stones`` uint64[3, WORDS]: empty spots, black and white stones (``spotset.read_stones``);
    ``work`` uint64[2, WORDS].
    """
    words, stride = np.int64(board.points[USED_WORDS]), np.int64(board.points[STRIDE])
    bad, edge = work[0], work[1]
    opponent = stones[BLACK + WHITE - colour]
    for word in range(words):
        bad[word] = stones[EMPTY, word] | opponent[word]
    some = NO_BITS
    for word in range(words):
        beside = _shifted(bad, word, words, 1) | _shifted(bad, word, words, -1)
        beside |= _shifted(bad, word, words, stride) | _shifted(bad, word, words, -stride)
        eyes[word] = stones[EMPTY, word] & ~beside
        some |= eyes[word]
    if some == NO_BITS:
        return
    _find_edge(board, edge)
    dropped = True
    while dropped:
        for word in range(words):
            bad[word] = opponent[word] | (stones[EMPTY, word] & ~eyes[word])
        dropped = False
        for word in range(words):
            if eyes[word] != NO_BITS:
                one, several = NO_BITS, NO_BITS
                for offset in (stride + 1, stride - 1, 1 - stride, -1 - stride):
                    diagonal = _shifted(bad, word, words, offset)
                    several |= one & diagonal
                    one |= diagonal
                drop = eyes[word] & (several | (one & edge[word]))
                if drop != NO_BITS:
                    eyes[word] &= ~drop
                    dropped = True


@kernel
def _trace_eyes(games, order, plies, board, frame_of, stones, work, eyes, shown, plane, planes):
    rows, cols = np.int64(games.rows[order[0]]), np.int64(games.cols[order[0]])
    words = np.int64(board.points[USED_WORDS])
    at = 0
    for game in order:
        clear(board, rows, cols)
        first, cursor = games.move_start[game], games.setup_start[game]
        for ply in range(plies[game]):
            cursor, _changed, _sound = apply_setup(board, games, game, cursor, ply)
            move, colour = np.int64(games.moves[first + ply]), np.int64(games.colours[first + ply])
            read_stones(board, stones)
            true_eyes(board, stones, colour, work, eyes)
            flip_frame_bits(words, shown, eyes, frame_of, plane)
            for byte in range(plane.shape[0]):
                planes[at, byte] = plane[byte]
            at += 1
            if move == rows * cols:
                play_pass(board, None)
            else:
                play(board, spot_of(board, move), colour, None)
    return at


def trace_eyes(
    games: Games, order: NDArray[np.int64], plies: NDArray[np.int64], frame: tuple[int, int]
) -> NDArray[np.uint8]:
    """Return packed planes uint8[T, B] of the true eyes of the side to move, at the positions of ``trace.trace``."""
    rows, cols = int(games.rows[order[0]]), int(games.cols[order[0]])
    length = (frame[0] * frame[1] + 7) // 8
    planes = np.empty((int(plies[order].sum()), length), dtype=np.uint8)
    _trace_eyes(
        games,
        order,
        plies,
        new_board(rows, cols),
        frame_table(rows, cols, frame[1]),
        np.zeros((3, WORDS), dtype=np.uint64),
        np.zeros((2, WORDS), dtype=np.uint64),
        np.zeros(WORDS, dtype=np.uint64),
        np.zeros(WORDS, dtype=np.uint64),
        np.zeros(length, dtype=np.uint8),
        planes,
    )
    return planes


@kernel
def _may_make_eye(board, spot, colour):
    """Return whether a point beside a move at ``spot`` is empty after it and has own stones all around."""
    points = board.points
    stride = np.int64(points[STRIDE])
    for step in (-stride, -1, 1, stride):
        eye = spot + step
        there = points[COLOUR + eye]
        taken = there == 3 - colour and points[LIBERTIES + points[CHAIN + eye]] == 1
        if there != EMPTY and not taken:
            continue
        surrounded = True
        for around in (-stride, -1, 1, stride):
            beside = points[COLOUR + eye + around]
            surrounded &= eye + around == spot or beside == colour or beside == OFF
        if surrounded:
            return True
    return False


@kernel
def _makes_eye(board, spot, colour, journal, stones, work, eyes):
    """Return whether some empty point beside the move at ``spot`` is an own true eye after it."""
    mark = journal[0]
    play(board, spot, colour, journal)
    read_stones(board, stones)
    true_eyes(board, stones, colour, work, eyes)
    undo(board, journal, mark)
    stride = np.int64(board.points[STRIDE])
    for step in (-stride, -1, 1, stride):
        if has_spot(eyes, spot + step):
            return True
    return False


@kernel
def _trace_new_eyes(games, order, plies, board, frame_of, journal, stones, work, eyes, planes):
    rows, cols = np.int64(games.rows[order[0]]), np.int64(games.cols[order[0]])
    at = 0
    for game in order:
        clear(board, rows, cols)
        first, cursor = games.move_start[game], games.setup_start[game]
        for ply in range(plies[game]):
            cursor, _changed, _sound = apply_setup(board, games, game, cursor, ply)
            move, colour = np.int64(games.moves[first + ply]), np.int64(games.colours[first + ply])
            for point in range(rows * cols):
                spot = spot_of(board, point)
                if (
                    board.points[COLOUR + spot] == EMPTY
                    and _may_make_eye(board, spot, colour)
                    and legality(board, spot, colour, NO) == LEGAL
                    and _makes_eye(board, spot, colour, journal, stones, work, eyes)
                ):
                    index = frame_of[spot]
                    planes[at, index >> 3] |= 0x80 >> (index & 7)
            at += 1
            if move == rows * cols:
                play_pass(board, None)
            else:
                play(board, spot_of(board, move), colour, None)
    return at


def trace_new_eyes(
    games: Games, order: NDArray[np.int64], plies: NDArray[np.int64], frame: tuple[int, int]
) -> NDArray[np.uint8]:
    """Return packed planes uint8[T, B] of the legal moves that make an own true eye beside them."""
    rows, cols = int(games.rows[order[0]]), int(games.cols[order[0]])
    planes = np.zeros((int(plies[order].sum()), (frame[0] * frame[1] + 7) // 8), dtype=np.uint8)
    _trace_new_eyes(
        games,
        order,
        plies,
        new_board(rows, cols),
        frame_table(rows, cols, frame[1]),
        new_journal(),
        np.zeros((3, WORDS), dtype=np.uint64),
        np.zeros((2, WORDS), dtype=np.uint64),
        np.zeros(WORDS, dtype=np.uint64),
        planes,
    )
    return planes
