"""Sets of spots as bits: what flows over a board, 64 spots at a time.

A set is uint64[WORDS], spot s being bit ``s & 63`` of word ``s >> 6``, like a chain's liberties in
``Board.bits``. Only the first ``points[USED_WORDS]`` words count: kernels take that as ``words``.
Neighbours lie one bit and one ``stride`` apart; the border spots are in no set, so nothing runs round an edge.
"""

import numpy as np

from pipeline.board import COLOUR, COLS, ROWS, STRIDE, USED_WORDS
from pipeline.jit import kernel

ONE = np.uint64(1)
NO_BITS = np.uint64(0)
_TOP = np.uint64(63)

# 2 is a primitive root of 67: 2**k % 67 is another number for each k from 0 to 65.
_BIT_NUMBERS = np.zeros(67, dtype=np.int64)
for _number in range(64):
    _BIT_NUMBERS[2**_number % 67] = _number


@kernel
def lowest_bit(word):
    """Return the number (0 to 63) of the lowest set bit of a word that is not 0."""
    return _BIT_NUMBERS[np.int64((word & (~word + ONE)) % np.uint64(67))]


@kernel
def has_spot(spots, spot):
    """Return whether ``spot`` is in the set."""
    return (spots[spot >> 6] >> np.uint64(spot & 63)) & ONE != 0


@kernel
def flip_spot(spots, spot):
    """Put ``spot`` into the set, or take it out."""
    spots[spot >> 6] ^= ONE << np.uint64(spot & 63)


@kernel
def read_stones(board, stones):
    """Set ``stones`` uint64[3, WORDS] to the empty spots, the black and the white stones."""
    points = board.points
    rows, cols, stride = np.int64(points[ROWS]), np.int64(points[COLS]), np.int64(points[STRIDE])
    stones[:] = NO_BITS
    for row in range(1, rows + 1):
        for spot in range(row * stride + 1, row * stride + 1 + cols):
            flip_spot(stones[np.int64(points[COLOUR + spot])], spot)


@kernel
def _grown(spots, word, words, up, down):
    """Return one word of a set with the neighbours of its spots."""
    here = spots[word]
    grown = here | (here << ONE) | (here >> ONE) | (here << up) | (here >> up)
    if word > 0:
        grown |= (spots[word - 1] >> _TOP) | (spots[word - 1] >> down)
    if word + 1 < words:
        grown |= (spots[word + 1] << _TOP) | (spots[word + 1] << down)
    return grown


@kernel
def spread(board, spots, out):
    """Set ``out`` (another array) to ``spots`` and their neighbours; bits off the board are anything."""
    words, stride = np.int64(board.points[USED_WORDS]), np.int64(board.points[STRIDE])
    up, down = np.uint64(stride), np.uint64(64 - stride)
    for word in range(words):
        out[word] = _grown(spots, word, words, up, down)


@kernel
def flood(board, within, flooded):
    """Grow ``flooded``, a part of ``within``, to all that is connected with it inside ``within``.

    Sweeps up and down in turn; each fills a word as far as it goes before the next.
    """
    words, stride = np.int64(board.points[USED_WORDS]), np.int64(board.points[STRIDE])
    up, down = np.uint64(stride), np.uint64(64 - stride)
    forward, changed = True, True
    while changed:
        changed = False
        for step in range(words):
            word = step if forward else words - 1 - step
            room, before = within[word], flooded[word]
            if room == before:
                continue
            here = _grown(flooded, word, words, up, down) & room
            if here == before:
                continue
            grown = here | (((here << ONE) | (here >> ONE) | (here << up) | (here >> up)) & room)
            while grown != here:
                here = grown
                grown = here | (((here << ONE) | (here >> ONE) | (here << up) | (here >> up)) & room)
            flooded[word] = here
            changed = True
        forward = not forward


@kernel
def flip_frame_bits(words, shown, now, frame_of, plane):
    """Bring a packed frame plane (uint8[B]) that shows the set ``shown`` to ``now``; set ``shown`` to it.

    ``frame_of``: ``trace.frame_table``. Costs only the spots that changed.
    """
    for word in range(words):
        changed = shown[word] ^ now[word]
        shown[word] = now[word]
        while changed != NO_BITS:
            index = frame_of[64 * word + lowest_bit(changed)]
            plane[index >> 3] ^= np.uint8(0x80 >> (index & 7))
            changed &= changed - ONE
