"""Zobrist words: two independent families of 64-bit keys under all symmetries at once.

A key vector is uint64[LANES]: lanes 0-7 are the *choosing* family under symmetries 0-7, lanes 8-15
the *stored* family. The symmetry of a position is the one with the smallest choosing key, and its key
is the stored key under that symmetry: the smallest of eight stored keys would not be uniform, so
that a file of keys with one prefix would get eight times its share and false merges were four
times as many. A board that is not square has four symmetries; its lanes 4-7 repeat lanes 0-3.

Words cover the size of the board, the stones, the side to move and the simple-ko point.
"""

from functools import cache

import numpy as np

from pipeline import symmetry
from pipeline.board import EMPTY, MAX_SIDE, WHITE
from pipeline.jit import kernel
from pipeline.words import Words, chain_words, mix, seed_word

LANES = 2 * symmetry.SYMMETRIES
STORED = symmetry.SYMMETRIES  # the first lane of the stored family
HISTORY_RING = 16  # stone keys of the last positions, a power of two

_SIZE = 3
_KINDS = 4  # KO (in the place of EMPTY), BLACK, WHITE, and the size of the board
_HISTORY_STEP = np.uint64(0xD6E8FEB86659FD93)  # any odd number: spreads the boards of a history
_RECENT_STEP = np.uint64(0xA24BAED4963EE407)  # another, for the moves
_POINT_STEP = np.uint64(0x9FB21C651E98DF25)  # a third, for marked points


@cache
def word_table(rows: int, cols: int) -> Words:
    """Return uint64[3 * spots + 2, LANES] for boards of this size.

    Row ``colour * spots + spot`` is the word of a stone, row ``spot`` that of a ko point there; the
    last two rows are the word of the size and the word of White to move.
    """
    spots = (rows + 2) * (cols + 1) + 1
    table: Words = np.zeros((3 * spots + 2, LANES), dtype=np.uint64)
    row_of, col_of = (part.ravel() for part in np.indices((rows, cols)))
    spot = (row_of + 1) * (cols + 1) + col_of + 1
    for lane in range(LANES):
        family = seed_word("zobrist choosing" if lane < STORED else "zobrist stored")
        turn = lane % STORED % symmetry.count(rows, cols)
        image = symmetry.destinations(rows, cols, MAX_SIDE, turn).ravel()
        for kind in range(_SIZE):
            table[kind * spots + spot, lane] = chain_words(family, kind, image)
        table[3 * spots, lane] = chain_words(family, _SIZE, rows * (MAX_SIDE + 1) + cols)[0]
        table[3 * spots + 1, lane] = chain_words(family, _KINDS, WHITE)[0]
    table.setflags(write=False)
    return table


@kernel
def toggle(keys, table, row):
    """Add or take away one word in every lane."""
    for lane in range(LANES):
        keys[lane] ^= table[row, lane]


@kernel
def stabiliser(keys, symmetries):
    """Return which symmetries (bit s) leave the position as it is whose finished key vector is ``keys``."""
    fixed = 1
    for turn in range(1, symmetries):
        if keys[turn] == keys[0]:
            fixed |= 1 << turn
    return fixed


@kernel
def add_recent(keys, played, now, recent, table):
    """Add the last ``recent`` moves to every lane of ``keys``; ``played[t % HISTORY_RING]`` is the spot of the
    move made at ply t, 0 for a pass."""
    step = _HISTORY_STEP
    for back in range(1, recent + 1):
        spot = played[(now - back) % HISTORY_RING]
        row = spot if spot != 0 else table.shape[0] - 2  # a pass is the word of the size of the board
        step *= _RECENT_STEP
        for lane in range(LANES):
            keys[lane] += table[row, lane] * step


@kernel
def add_point(keys, spot, table):
    """Add a point that the position marks, e.g. as banned, to every lane of ``keys``."""
    for lane in range(LANES):
        keys[lane] += table[spot, lane] * _POINT_STEP


@kernel
def choose(keys, symmetries):
    """Return (symmetry, key) of a finished key vector: the smallest choosing key, and the stored key under it."""
    chosen, least = 0, keys[0]
    for turn in range(1, symmetries):
        if keys[turn] < least:
            chosen, least = turn, keys[turn]
    return chosen, mix(keys[STORED + chosen])


@kernel
def add_boards(ring, now, history, to_play, ko, table, keys):
    """Set ``keys`` uint64[LANES] to the boards of a position: its key under every symmetry, in both families.

    ``ring`` uint64[HISTORY_RING, LANES]: the stone keys of positions ``now``, ``now - 1``, ..., each at its number
    modulo HISTORY_RING; ``history``: how many earlier ones belong to the key; ``ko``: the ko point's spot or 0.
    A history that is shorter and one that is preceded by empty boards are the same, as in the planes.
    """
    size_word = table.shape[0] - 2
    current = now % HISTORY_RING
    for lane in range(LANES):
        keys[lane] = np.uint64(0)
    for back in range(history, 0, -1):
        earlier = (now - back) % HISTORY_RING
        for lane in range(LANES):
            keys[lane] = (keys[lane] + ring[earlier, lane]) * _HISTORY_STEP
    white = np.uint64(1) if to_play == WHITE else np.uint64(0)
    banned = np.uint64(1) if ko != EMPTY else np.uint64(0)
    for lane in range(LANES):
        word = ring[current, lane] ^ table[size_word, lane]
        word ^= white * table[size_word + 1, lane]
        word ^= banned * table[ko, lane]
        keys[lane] += word
