"""The Go board as compiled kernels: play, capture, ko, exact liberties, undo.

Conventions of the whole project:

=================  ==========================================================================
colour             EMPTY 0, BLACK 1, WHITE 2; off the board 3
(row, col)         row 0 is the top line, as in SGF (sgfmill counts rows from the bottom)
point              ``row * cols + col`` on the board; a pass is ``rows * cols``
frame index        ``row * frame_cols + col``; a pass is the frame's area
human coordinates  letter without I, rows counted from the bottom: see ``coordinates.py``
spot               index into a ``Board``: one border line above, below and left of the board
=================  ==========================================================================

A board is two flat arrays. ``points`` (int16) holds sections of ``SPOTS`` entries each, one entry a
spot: colour, chain (the spot that names the chain), next (the chain's stones in a ring), and for the
spot that names a chain its number of stones and of liberties; then a list of the stones that the last
move removed, and a few numbers. ``bits`` (uint64) holds the liberties of each chain as a set of spots.

Every function takes a board of any size up to 25x25. Undo works from a journal: an int64 array that
``play`` writes each overwritten entry to, given as None where nothing is taken back.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.jit import kernel

EMPTY, BLACK, WHITE, OFF = 0, 1, 2, 3
MAX_SIDE = 25

SPOTS = 704  # (25 + 2) * (25 + 1) + 1 spots, in whole words of 64
WORDS = SPOTS // 64
COLOUR, CHAIN, NEXT, STONES, LIBERTIES, REMOVED = (section * SPOTS for section in range(6))
_NUMBERS = 6 * SPOTS
ROWS, COLS, STRIDE, KO, USED_WORDS = range(_NUMBERS, _NUMBERS + 5)
NO_SPOT = 0  # the first border spot: no stone can stand there

LEGAL, ILLEGAL_OCCUPIED, ILLEGAL_KO, ILLEGAL_SUICIDE, ILLEGAL_SUPERKO, ILLEGAL_OFF_BOARD = range(6)

# A path of a search makes at most 3/2 * 625 moves. Over such a path a stone is relabelled at most
# log2(625) times, a removed stone touches 4 chains, a merge saves 11 words: 2**18 entries hold it.
JOURNAL_LENGTH = 2**19

_ONE = np.uint64(1)
_C1 = np.uint64(0x5555555555555555)
_C2 = np.uint64(0x3333333333333333)
_C4 = np.uint64(0x0F0F0F0F0F0F0F0F)
_C8 = np.uint64(0x0101010101010101)
_SHIFT1, _SHIFT2, _SHIFT4, _SHIFT56 = np.uint64(1), np.uint64(2), np.uint64(4), np.uint64(56)


class Board(NamedTuple):
    """One board: ``points`` int16[6 * SPOTS + 8], ``bits`` uint64[SPOTS * WORDS]."""

    points: NDArray[np.int16]
    bits: NDArray[np.uint64]


def new_board(rows: int, cols: int) -> Board:
    """Return an empty board. Raises ValueError unless both sides are 1 to 25."""
    if not (1 <= rows <= MAX_SIDE and 1 <= cols <= MAX_SIDE):
        raise ValueError(f"a board side must be 1 to {MAX_SIDE}, not {rows}x{cols}")
    board = Board(np.zeros(_NUMBERS + 8, dtype=np.int16), np.zeros(SPOTS * WORDS, dtype=np.uint64))
    clear(board, rows, cols)
    return board


def new_journal() -> NDArray[np.int64]:
    """Return an empty journal for ``play`` and ``undo``; entry 0 is the length in use."""
    journal = np.zeros(JOURNAL_LENGTH, dtype=np.int64)
    journal[0] = 1
    return journal


@kernel
def clear(board, rows, cols):
    """Take all stones away and set the size."""
    points = board.points
    stride = cols + 1
    points[COLOUR : COLOUR + SPOTS] = OFF
    for row in range(rows):
        first = (row + 1) * stride + 1
        points[first : first + cols] = EMPTY
    points[ROWS] = rows
    points[COLS] = cols
    points[STRIDE] = stride
    points[KO] = NO_SPOT
    points[USED_WORDS] = ((rows + 2) * stride + 64) // 64


@kernel
def spot_at(board, row, col):
    """Return the spot of the point (row, col)."""
    return (row + 1) * np.int64(board.points[STRIDE]) + col + 1


@kernel
def spot_of(board, point):
    """Return the spot of ``point`` = row * cols + col."""
    cols = np.int64(board.points[COLS])
    row = point // cols
    return (row + 1) * (cols + 1) + point - row * cols + 1


@kernel
def _put(points, index, value, journal):
    if journal is not None:
        top = journal[0]
        journal[top] = index
        journal[top + 1] = points[index]
        journal[0] = top + 2
    points[index] = value


@kernel
def _put_bits(bits, index, value, journal):
    if journal is not None:
        top = journal[0]
        journal[top] = -1 - index
        journal[top + 1] = np.int64(bits[index])
        journal[0] = top + 2
    bits[index] = value


@kernel
def undo(board, journal, mark):
    """Take back everything written since ``journal[0]`` was ``mark``."""
    top = journal[0]
    while top > mark:
        top -= 2
        index = journal[top]
        if index >= 0:
            board.points[index] = np.int16(journal[top + 1])
        else:
            board.bits[-1 - index] = np.uint64(journal[top + 1])
    journal[0] = mark


@kernel
def count_bits(word):
    word = word - ((word >> _SHIFT1) & _C1)
    word = (word & _C2) + ((word >> _SHIFT2) & _C2)
    word = (word + (word >> _SHIFT4)) & _C4
    return np.int64((word * _C8) >> _SHIFT56)


@kernel
def has_liberty(board, chain, spot):
    """Return whether the empty ``spot`` is a liberty of ``chain``."""
    return (board.bits[chain * WORDS + (spot >> 6)] >> np.uint64(spot & 63)) & _ONE != 0


@kernel
def _add_liberty(board, chain, spot, journal):
    if not has_liberty(board, chain, spot):
        index = chain * WORDS + (spot >> 6)
        _put_bits(board.bits, index, board.bits[index] | (_ONE << np.uint64(spot & 63)), journal)
        _put(board.points, LIBERTIES + chain, board.points[LIBERTIES + chain] + 1, journal)


@kernel
def _drop_liberty(board, chain, spot, journal):
    if has_liberty(board, chain, spot):
        index = chain * WORDS + (spot >> 6)
        _put_bits(board.bits, index, board.bits[index] & ~(_ONE << np.uint64(spot & 63)), journal)
        _put(board.points, LIBERTIES + chain, board.points[LIBERTIES + chain] - 1, journal)


@kernel
def _merge(board, one, other, journal):
    """Join two chains of one colour; return the name of the joined chain (that of the larger)."""
    points = board.points
    if points[STONES + one] < points[STONES + other]:
        one, other = other, one
    spot = other
    while True:
        _put(points, CHAIN + spot, one, journal)
        spot = np.int64(points[NEXT + spot])
        if spot == other:
            break
    after_one, after_other = np.int64(points[NEXT + one]), np.int64(points[NEXT + other])
    _put(points, NEXT + one, after_other, journal)
    _put(points, NEXT + other, after_one, journal)
    liberties = 0
    for word in range(np.int64(points[USED_WORDS])):
        joined = board.bits[one * WORDS + word] | board.bits[other * WORDS + word]
        if joined != board.bits[one * WORDS + word]:
            _put_bits(board.bits, one * WORDS + word, joined, journal)
        if joined != 0:
            liberties += count_bits(joined)
    _put(points, STONES + one, points[STONES + one] + points[STONES + other], journal)
    _put(points, LIBERTIES + one, liberties, journal)
    return one


@kernel
def _start_chain(board, spot, journal):
    """Make the stone at ``spot`` a chain of its own, without liberties yet."""
    points = board.points
    _put(points, CHAIN + spot, spot, journal)
    _put(points, NEXT + spot, spot, journal)
    _put(points, STONES + spot, np.int64(1), journal)
    _put(points, LIBERTIES + spot, np.int64(0), journal)
    for word in range(np.int64(points[USED_WORDS])):
        if board.bits[spot * WORDS + word] != 0:
            _put_bits(board.bits, spot * WORDS + word, np.uint64(0), journal)


@kernel
def _add_empty_neighbours(board, chain, spot, journal):
    """Give a chain the empty neighbours of its stone at ``spot`` as liberties."""
    points = board.points
    stride = np.int64(points[STRIDE])
    for step in (-stride, -1, 1, stride):
        if points[COLOUR + spot + step] == EMPTY:
            _add_liberty(board, chain, spot + step, journal)


@kernel
def _remove_chain(board, chain, removed, journal):
    """Take a chain off, give its points to its neighbours as liberties; return the new ``removed``."""
    points = board.points
    stride = np.int64(points[STRIDE])
    other = 3 - points[COLOUR + chain]
    spot = chain
    while True:
        _put(points, COLOUR + spot, np.int64(EMPTY), journal)
        points[REMOVED + removed] = spot
        removed += 1
        for step in (-stride, -1, 1, stride):
            if points[COLOUR + spot + step] == other:
                _add_liberty(board, np.int64(points[CHAIN + spot + step]), spot, journal)
        spot = np.int64(points[NEXT + spot])
        if spot == chain:
            return removed


@kernel
def legality(board, spot, colour, suicide):
    """Return LEGAL or the reason against playing at ``spot``, superko apart.

    ``suicide``: whether suicide of two or more stones is allowed (one stone never is). The ko ban
    is the simple-ko point, whoever plays there (KataGo's rule).
    """
    points = board.points
    if points[COLOUR + spot] != EMPTY:
        return ILLEGAL_OCCUPIED
    if points[KO] == spot:
        return ILLEGAL_KO
    stride = np.int64(points[STRIDE])
    joins = False
    for step in (-stride, -1, 1, stride):
        there = points[COLOUR + spot + step]
        if there == EMPTY:
            return LEGAL
        if there != OFF:
            in_atari = points[LIBERTIES + points[CHAIN + spot + step]] == 1
            if in_atari != (there == colour):
                return LEGAL
            if there == colour:
                joins = True
    return LEGAL if joins and suicide else ILLEGAL_SUICIDE


@kernel
def _append_stone(board, chain, spot, journal):
    """Make the stone at ``spot`` part of a neighbouring chain of its colour."""
    points = board.points
    _put(points, CHAIN + spot, chain, journal)
    _put(points, NEXT + spot, np.int64(points[NEXT + chain]), journal)
    _put(points, NEXT + chain, spot, journal)
    _put(points, STONES + chain, points[STONES + chain] + 1, journal)


@kernel
def play(board, spot, colour, journal):
    """Put a stone on the empty ``spot``; remove what has no liberty, opponent first; set the ko point.

    Returns the number n of opponent stones removed, or -n where the move was suicide of n stones; the
    spots stand in ``points[REMOVED : REMOVED + n]``. The ko point is set where exactly one stone was
    captured by a lone stone that is left with exactly one liberty; any other move clears it.
    """
    points = board.points
    stride = np.int64(points[STRIDE])
    _put(points, COLOUR + spot, colour, journal)
    chain, empties, captures = np.int64(NO_SPOT), 0, 0
    for step in (-stride, -1, 1, stride):
        there = points[COLOUR + spot + step]
        if there == EMPTY:
            empties += 1
        elif there != OFF:
            neighbour = np.int64(points[CHAIN + spot + step])
            _drop_liberty(board, neighbour, spot, journal)
            if there != colour:
                captures += points[LIBERTIES + neighbour] == 0
            elif chain == NO_SPOT:
                chain = neighbour
            elif chain != neighbour:
                chain = _merge(board, chain, neighbour, journal)
    if chain == NO_SPOT:
        chain = spot
        _start_chain(board, spot, journal)
    else:
        _append_stone(board, chain, spot, journal)
    if empties > 0:
        _add_empty_neighbours(board, chain, spot, journal)
    removed = np.int64(0)
    if captures > 0:
        for step in (-stride, -1, 1, stride):
            if points[COLOUR + spot + step] == 3 - colour:
                neighbour = np.int64(points[CHAIN + spot + step])
                if points[LIBERTIES + neighbour] == 0:
                    removed = _remove_chain(board, neighbour, removed, journal)
    ko = NO_SPOT
    if removed == 1 and points[STONES + chain] == 1 and points[LIBERTIES + chain] == 1:
        ko = points[REMOVED]
    if points[KO] != ko:
        _put(points, np.int64(KO), np.int64(ko), journal)
    if points[LIBERTIES + chain] == 0:
        return -_remove_chain(board, chain, np.int64(0), journal)
    return removed


@kernel
def play_pass(board, journal):
    """Pass: nothing but the ko point changes."""
    _put(board.points, np.int64(KO), np.int64(NO_SPOT), journal)


@kernel
def set_colour(board, spot, colour):
    """Set up a stone or an empty point; chains are wrong until ``rebuild``."""
    board.points[COLOUR + spot] = colour


@kernel
def rebuild(board):
    """Find all chains and liberties anew, clear the ko point.

    Returns whether every chain has a liberty; where not, the position is not a legal one.
    """
    points = board.points
    rows, stride = np.int64(points[ROWS]), np.int64(points[STRIDE])
    points[KO] = NO_SPOT
    first, last = stride + 1, (rows + 1) * stride
    for spot in range(first, last):
        colour = points[COLOUR + spot]
        if colour == BLACK or colour == WHITE:
            _start_chain(board, spot, None)
            _add_empty_neighbours(board, spot, spot, None)
            for step in (-stride, -1):
                if points[COLOUR + spot + step] == colour:
                    if points[CHAIN + spot + step] != points[CHAIN + spot]:
                        _merge(board, np.int64(points[CHAIN + spot + step]), np.int64(points[CHAIN + spot]), None)
    for spot in range(first, last):
        colour = points[COLOUR + spot]
        if (colour == BLACK or colour == WHITE) and points[LIBERTIES + points[CHAIN + spot]] == 0:
            return False
    return True
