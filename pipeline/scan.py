"""A compiled reading of plain records: one tree without variations, written as most programs write it.

It gives what ``trees``, ``nodes`` and ``mainline`` give for the same bytes, many times faster. Whatever it does not
recognise completely it leaves to them, so that records have one meaning and two speeds: another branch, a name in
lower case, a move that is not two letters on the board, a move and its answer in one node, setup in mid-game, junk.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.jit import kernel

_MAX_BYTES = 1_000_000  # of a record; a larger one is not plain
_MAX_ENTRIES = 64  # header values of a record
_MAX_SETUP = 625  # stones: all points of the largest board
_LEAST_MOVE = 4  # bytes: ";B[]"

# What a property is to the scan; its name is one capital letter or two.
OTHER, MOVE_BLACK, MOVE_WHITE, STONES_BLACK, STONES_WHITE, STONES_NONE, HEADER, ROOT_TEXT, PLAYER, MARK = range(10)

_OPEN, _CLOSE, _BEGIN, _END, _NODE, _ESCAPE = (ord(char) for char in "()[];\\")
_A, _Z, _SMALL_A, _SMALL_Z = (ord(char) for char in "AZaz")
_NAMES = 32 * 32


class Scanned(NamedTuple):
    """A plain record. ``end``: the byte after its closing parenthesis; ``start``: that of its opening one.

    ``colours`` int8[n]; ``moves`` uint8[n, 2]: column and row letter (0, 0: a pass written as nothing); ``setup``
    uint8[s, 3]: column and row letter and colour of each stone set up before the first move; ``entries`` int32[e, 5]
    of each header value in order: name (as ``name_code``), node, first byte, byte after the last, whether it holds a
    backslash or a blank other than the space; ``twice``: whether one side moves
    twice in a row; ``marked``: whether a property of kind MARK occurs.
    """

    start: int
    end: int
    colours: NDArray[np.int8]
    moves: NDArray[np.uint8]
    setup: NDArray[np.uint8]
    entries: NDArray[np.int32]
    twice: bool
    marked: bool


def name_code(name: str) -> int:
    """Return the number of a property name of one or two capital letters: 0 to 1023."""
    first, second = (ord(char) - _A + 1 for char in name.ljust(2, "@"))
    return 32 * first + second


def kind_table(kinds: dict[str, int]) -> NDArray[np.int8]:
    """Return int8[1024]: the kind of each name by its code, OTHER where ``kinds`` has none."""
    table = np.zeros(_NAMES, dtype=np.int8)
    for name, kind in kinds.items():
        table[name_code(name)] = kind
    return table


@kernel
def _is_blank(byte):
    return byte == 32 or (byte >= 9 and byte <= 13)


@kernel
def _end_of_value(data, at):
    """Return the place of the bracket that ends the value which begins at ``at``, -1 if there is none; and whether
    a backslash or a blank other than the space stands in it."""
    length, odd = data.shape[0], 0
    while at < length:
        byte = data[at]
        if byte == _END:
            return at, odd
        if byte < 32 or byte == _ESCAPE:
            odd = 1
        at += 2 if byte == _ESCAPE else 1
    return -1, odd


@kernel
def _is_point(data, first, last):
    if last != first + 2:
        return False
    for at in range(first, last):
        if data[at] < _SMALL_A or data[at] > _SMALL_Z:
            return False
    return True


@kernel
def _scan(data, kinds, colours, moves, setup, entries, counts):
    """Read a record; return whether it is plain. ``counts`` int64[7]: the numbers of ``Scanned``."""
    length = data.shape[0]
    at = 0
    while at < length and _is_blank(data[at]):
        at += 1
    if at == length or data[at] != _OPEN:
        return False
    start = at
    played = stones = noted = twice = marked = 0
    node = in_node = -1  # moves in this node
    at += 1
    while True:
        while at < length and _is_blank(data[at]):
            at += 1
        if at == length:
            return False
        byte = data[at]
        if byte == _NODE:
            node += 1
            in_node = 0
            at += 1
            continue
        if byte == _CLOSE:
            break
        if byte < _A or byte > _Z or node < 0:
            return False
        code, letters = 0, 0
        while at < length and data[at] >= _A and data[at] <= _Z:
            code = (code * 32 + np.int64(data[at]) - _A + 1) & 1023
            letters += 1
            at += 1
        if letters == 1:
            code *= 32
        kind = np.int64(kinds[code]) if letters <= 2 else OTHER
        while at < length and _is_blank(data[at]):
            at += 1
        if at == length or data[at] != _BEGIN or letters > 8:
            return False
        while at < length and data[at] == _BEGIN:
            first = at + 1
            last, odd = _end_of_value(data, first)
            if last < 0:
                return False
            at = last + 1
            while at < length and _is_blank(data[at]):
                at += 1
            if kind == OTHER:
                continue
            if kind == MOVE_BLACK or kind == MOVE_WHITE:
                in_node += 1
                if in_node > 1 or played == moves.shape[0] or not (last == first or _is_point(data, first, last)):
                    return False
                colours[played] = kind - MOVE_BLACK + 1
                if played > 0 and colours[played - 1] == colours[played]:
                    twice = 1
                moves[played, 0] = data[first] if last > first else 0
                moves[played, 1] = data[first + 1] if last > first else 0
                played += 1
            elif kind == MARK:
                marked = 1
            elif kind == HEADER or kind == ROOT_TEXT or kind == PLAYER:
                if kind == PLAYER and node > 0 and played == in_node:
                    return False  # who moves first is told below the root
                if kind == HEADER or node == 0:
                    if noted == entries.shape[0]:
                        return False
                    entries[noted, 0], entries[noted, 1] = code, node
                    entries[noted, 2], entries[noted, 3], entries[noted, 4] = first, last, odd
                    noted += 1
            elif last > first:
                # Stones that stand in a node with the first move are part of the start wherever they are written.
                if played > in_node or stones == setup.shape[0] or not _is_point(data, first, last):
                    return False
                setup[stones, 0], setup[stones, 1] = data[first], data[first + 1]
                setup[stones, 2] = kind - STONES_BLACK + 1 if kind != STONES_NONE else 0
                stones += 1
    at += 1
    counts[0], counts[1], counts[2], counts[3], counts[4] = start, at, played, stones, noted
    counts[5], counts[6] = twice, marked
    while at < length:
        if not _is_blank(data[at]) and data[at] != 0 and data[at] != 26:
            return False
        at += 1
    return True


def scan(record: bytes, kinds: NDArray[np.int8]) -> Scanned | None:
    """Return what a file holds if it is one plain record, else None."""
    if len(record) > _MAX_BYTES:
        return None
    data = np.frombuffer(record, dtype=np.uint8)
    most = len(record) // _LEAST_MOVE + 1
    colours, moves = np.empty(most, dtype=np.int8), np.empty((most, 2), dtype=np.uint8)
    setup = np.empty((_MAX_SETUP, 3), dtype=np.uint8)
    entries = np.empty((_MAX_ENTRIES, 5), dtype=np.int32)
    counts = np.empty(7, dtype=np.int64)
    if not _scan(data, kinds, colours, moves, setup, entries, counts):
        return None
    start, end, played, stones, noted, twice, marked = counts.tolist()
    return Scanned(
        start, end, colours[:played], moves[:played], setup[:stones], entries[:noted], bool(twice), bool(marked)
    )


@kernel
def _place(letters, rows, cols, tt_passes, points):
    """Set ``points`` to row * cols + col, a pass rows * cols; return whether all are on the board."""
    for i in range(letters.shape[0]):
        col, row = np.int64(letters[i, 0]) - _SMALL_A, np.int64(letters[i, 1]) - _SMALL_A
        if col >= 0 and col < cols and row >= 0 and row < rows:
            points[i] = row * cols + col
        elif letters[i, 0] == 0 or (tt_passes and col == 19 and row == 19):
            points[i] = rows * cols
        else:
            return False
    return True


def points_of(letters: NDArray[np.uint8], rows: int, cols: int, tt_passes: bool) -> NDArray[np.uint16] | None:
    """Return uint16[n]: the points on a board of ``Scanned.moves`` or ``setup``; None where one is not on it.

    ``letters`` uint8[n, 2 or more]: column and row letter first. ``tt_passes``: whether "tt" off the board is a pass.
    """
    points = np.empty(len(letters), dtype=np.uint16)
    return points if _place(letters, rows, cols, tt_passes, points) else None
