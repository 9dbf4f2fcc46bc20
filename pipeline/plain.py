"""A file that is one plain record to its game, by the compiled scan.

It gives what ``parse`` gives of the same bytes by the grammar, or leaves them to it.
"""

import numpy as np
from numpy.typing import NDArray

from pipeline.config import Parse, Rules
from pipeline.game import Game, content_hash, make_game
from pipeline.headers.size import read_size
from pipeline.mainline import MAX_MOVES, Line, player_of, tt_passes
from pipeline.nodes import Fault
from pipeline.properties import HEADERS, MARKS, MAX_TEXT, ROOT_TEXTS, text_of, unescaped
from pipeline.reasons import Flag, Reason
from pipeline.scan import (
    HEADER,
    MARK,
    MOVE_BLACK,
    MOVE_WHITE,
    PLAYER,
    ROOT_TEXT,
    STONES_BLACK,
    STONES_NONE,
    STONES_WHITE,
    Scanned,
    kind_table,
    name_code,
    points_of,
    scan,
)

# What the scan looks at.
_PROPERTIES = {
    **dict.fromkeys(ROOT_TEXTS, ROOT_TEXT), **dict.fromkeys(HEADERS, HEADER), **dict.fromkeys(MARKS, MARK),
    "PL": PLAYER, "B": MOVE_BLACK, "W": MOVE_WHITE, "AB": STONES_BLACK, "AW": STONES_WHITE, "AE": STONES_NONE,
}  # fmt: skip
_KINDS = kind_table(_PROPERTIES)
_NAMES = {name_code(name): name for name in _PROPERTIES}

_Setup = tuple[NDArray[np.uint16], NDArray[np.uint16], NDArray[np.int8]]  # plies, points, colours
_NO_SETUP: _Setup = np.zeros(0, np.uint16), np.zeros(0, np.uint16), np.zeros(0, np.int8)


def plain_game(sgf: bytes, flags: frozenset[Flag], parse: Parse, rules: Rules) -> tuple[Game, bytes] | None:
    """Return the game of a file (UTF-8) that holds one plain record, and its bytes; None for any other file.

    ``flags``: what was noted of its text. Raises ``ValueError`` where ``rules`` names unknown rules.
    """
    scanned = scan(sgf, _KINDS)
    if scanned is None or len(scanned.moves) > MAX_MOVES:
        return None
    nodes, firsts, raw = _texts(sgf, scanned.entries.tolist())
    size, size_flags = read_size(raw.get("SZ"))
    if raw.get("GM", "1") != "1" or isinstance(size, Reason):
        return None
    line = _line(scanned, *size, firsts.get("PL"))
    if line is None or (parse.after_two_passes == "stop" and _goes_on(line.moves, size[0] * size[1])):
        return None
    record = sgf[scanned.start : scanned.end]
    flags |= size_flags
    if any(nodes.values()):
        flags |= {Flag.INFO_BELOW_ROOT}
    try:
        return make_game(0, content_hash(record), size, line, scanned.marked, raw, flags, parse, rules), record
    except Fault:
        return None


def _texts(sgf: bytes, entries: list[list[int]]) -> tuple[dict[str, int], dict[str, bytes], dict[str, str]]:
    """Return of each header the node it is taken from, its first value there and its text."""
    nodes: dict[str, int] = {}
    firsts: dict[str, bytes] = {}
    raw: dict[str, str] = {}
    repeated: dict[str, list[bytes]] = {}
    for code, node, first, last, odd in entries:
        name, value = _NAMES[code], sgf[first:last]
        if name not in nodes:
            nodes[name], firsts[name] = node, value
            raw[name] = unescaped(value) if odd or last - first > MAX_TEXT else value.decode()
        elif nodes[name] == node:
            values = repeated.setdefault(name, [firsts[name]])
            values.append(value)
            raw[name] = text_of(name, values)
    return nodes, firsts, raw


def _line(scanned: Scanned, rows: int, cols: int, player: bytes | None) -> Line | None:
    """Return what ``read_line`` gives for the nodes of a plain record; ``player``: the first value of PL.

    None where a point is not on the board, or one is set up twice.
    """
    points = points_of(scanned.moves, rows, cols, tt_passes(rows, cols))
    setup = _setup(scanned, rows, cols) if len(scanned.setup) else _NO_SETUP
    if points is None or setup is None:
        return None
    flags = frozenset({Flag.COLOUR_TWICE}) if scanned.twice else frozenset()
    first = None if player is None else player_of(player)
    if first is not None and len(points) and scanned.colours[0] != first:
        flags |= {Flag.PLAYER_MISMATCH}
    return Line(*setup, points, scanned.colours, flags)


def _goes_on(moves: NDArray[np.uint16], passing: int) -> bool:
    """Return whether there are moves after two passes in a row."""
    passes = moves == passing
    return bool((passes[:-2] & passes[1:-1]).any())


def _setup(scanned: Scanned, rows: int, cols: int) -> _Setup | None:
    """Return the stones of the start by their points; None where one is off the board or two are on one point."""
    stones = points_of(scanned.setup, rows, cols, False)
    if stones is None:
        return None
    order = np.argsort(stones)
    stones = stones[order]
    if (stones[1:] == stones[:-1]).any():
        return None
    return np.zeros(len(stones), dtype=np.uint16), stones, scanned.setup[order, 2].astype(np.int8)
