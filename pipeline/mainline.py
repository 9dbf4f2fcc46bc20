"""The nodes of a main line to moves and setup stones, as arrays.

Follows the SGF standard (FF4, "Go-specific properties") and, where records break it, the ``[parse]``
table of the configuration. Legality is not looked at here.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from pipeline.board import BLACK, EMPTY, WHITE
from pipeline.config import Parse
from pipeline.games import OFF_BOARD
from pipeline.nodes import Fault, Node
from pipeline.reasons import Flag, Reason

MAX_MOVES = 65_535

_MOVERS = {"B": BLACK, "W": WHITE}
_SETUP = {"AB": BLACK, "AW": WHITE, "AE": EMPTY}  # the order in which one node's stones are set
_PLAYED = frozenset((*_MOVERS, *_SETUP, "PL"))
_MAX_SETUP = 1_000_000  # stones set up in one record; a small hostile file could ask for any number
_POINT = re.compile(rb"[A-Za-z]{2}")
_A = ord("a")
_TT_PASS_SIDE = 19
_PLAYER = {b"B": BLACK, b"b": BLACK, b"1": BLACK, b"W": WHITE, b"w": WHITE, b"2": WHITE}


@dataclass(frozen=True, slots=True)
class Line:
    """Moves and setup stones of a main line; the arrays are those of ``game.Game``."""

    setup_plies: NDArray[np.uint16]
    setup_points: NDArray[np.uint16]
    setup_colours: NDArray[np.int8]
    moves: NDArray[np.uint16]
    colours: NDArray[np.int8]
    flags: frozenset[Flag]


@dataclass(slots=True)
class _Reading:
    """The line as far as it is read; ``setup``: ply to points, a byte each, colour + 1 where set."""

    rows: int
    cols: int
    moves: list[int] = field(default_factory=list)
    colours: list[int] = field(default_factory=list)
    setup: dict[int, int] = field(default_factory=dict)
    player: int | None = None
    flags: set[Flag] = field(default_factory=set)


def read_line(nodes: Iterable[Node], rows: int, cols: int, parse: Parse) -> Line:
    """Read the nodes in order, the root first.

    Raises ``Fault`` with BAD_MOVE, BAD_SETUP, TWO_MOVES, MOVE_AND_SETUP, SETUP_AFTER_MOVE or
    TOO_MANY_MOVES.
    """
    reading = _Reading(rows, cols)
    points = _point_table(rows, cols)
    for node in nodes:
        if len(node) == 1:
            # Nearly every node: one property, a move on the board.
            ((name, values),) = node.items()
            mover = _MOVERS.get(name)
            if mover is not None and len(values) == 1:
                _play(reading, mover, _move_point(values[0], points, reading))
            elif name in _PLAYED and _stops(reading, node, points, parse):
                break
        elif not _PLAYED.isdisjoint(node) and _stops(reading, node, points, parse):
            break
        if parse.after_two_passes == "stop" and reading.moves[-2:] == [rows * cols] * 2:
            break
    return _line(reading)


def player_of(value: bytes) -> int | None:
    """Return the side that a value of PL names, None where it names none."""
    return _PLAYER.get(value.strip()[:1])


def tt_passes(rows: int, cols: int) -> bool:
    """Return whether [tt] is a pass: on boards of up to 19 lines (FF3)."""
    return max(rows, cols) <= _TT_PASS_SIDE


def _stops(reading: _Reading, node: Node, points: dict[bytes, int], parse: Parse) -> bool:
    """Read a node of any shape; True if the line ends before it."""
    moves = [(mover, value) for name in node if (mover := _MOVERS.get(name)) for value in node[name]]
    started = bool(reading.moves)
    has_setup = any(value.strip() for name in _SETUP for value in node.get(name, ()))
    if has_setup and started:
        if moves:
            raise Fault(Reason.MOVE_AND_SETUP, _shown(node), len(reading.moves) + 1)
        if parse.setup_after_root == "reject":
            policy = 'parse.setup_after_root = "reject"'
            raise Fault(Reason.SETUP_AFTER_MOVE, _shown(node), len(reading.moves), policy)  # the move before it
        if parse.setup_after_root == "cut":
            reading.flags.add(Flag.SETUP_CUT)
            return True
        reading.flags.add(Flag.SETUP_IN_MID_GAME)
    if has_setup:
        _set_up(reading, node)
    if "PL" in node and not started:
        reading.player = player_of(node["PL"][0])
    if len(moves) > 1 and parse.two_moves == "reject":
        raise Fault(Reason.TWO_MOVES, _shown(node), len(reading.moves) + 1, 'parse.two_moves = "reject"')
    area = reading.rows * reading.cols
    for mover, value in moves:
        _play(reading, mover, _move_point(value, points, reading))
        if parse.after_two_passes == "stop" and reading.moves[-2:] == [area, area]:
            return True
    return False


def _play(reading: _Reading, mover: int, point: int) -> None:
    if len(reading.moves) == MAX_MOVES:
        raise Fault(Reason.TOO_MANY_MOVES, f"more than {MAX_MOVES} moves", MAX_MOVES + 1)
    reading.moves.append(point)
    reading.colours.append(mover)


@lru_cache(maxsize=32)
def _point_table(rows: int, cols: int) -> dict[bytes, int]:
    """The point of each value that is on the board, or a pass."""
    table = {bytes((_A + col, _A + row)): row * cols + col for row in range(rows) for col in range(cols)}
    table[b""] = rows * cols
    if tt_passes(rows, cols):
        table[b"tt"] = rows * cols
    return table


def _move_point(value: bytes, points: dict[bytes, int], reading: _Reading) -> int:
    """The point of a move; OFF_BOARD for letters that name none here, which replay refuses at its ply."""
    point = points.get(value)
    if point is None:
        stripped = value.strip()
        point = points.get(stripped)
        if point is None:
            if not _POINT.fullmatch(stripped):
                raise Fault(Reason.BAD_MOVE, _quoted(value), len(reading.moves) + 1)
            return OFF_BOARD
    return point


def _set_up(reading: _Reading, node: Node) -> None:
    """Add the stones of a node to those of its ply; what is set later wins.

    Sets of points are integers with a byte a point, so that a node costs no more than its text even
    where every one sets up the whole board.
    """
    ply = len(reading.moves)
    state = reading.setup.get(ply, 0)
    touched = 0
    for name, colour in _SETUP.items():
        if name in node:
            mask = _mask(name, node[name], reading)
            if mask & touched:
                reading.flags.add(Flag.SETUP_CONFLICT)
            touched |= mask
            state = state & ~(mask * 0xFF) | mask * (colour + 1)
    reading.setup[ply] = state


def _mask(name: str, values: list[bytes], reading: _Reading) -> int:
    """The points of a setup property, byte ``point`` (from the low end) 1: single ones and rectangles ``aa:cc``."""
    rows, cols = reading.rows, reading.cols
    mask = 0
    for value in values:
        corners = [corner.strip() for corner in value.split(b":", 2)]
        if corners == [b""]:
            continue
        if len(corners) > 2 or not all(map(_POINT.fullmatch, corners)):
            raise Fault(Reason.BAD_SETUP, name + _quoted(value), len(reading.moves) or None)
        left, right = sorted((corners[0][0] - _A, corners[-1][0] - _A))
        top, bottom = sorted((corners[0][1] - _A, corners[-1][1] - _A))
        # Upper case letters are the lines after the 26th; as numbers here they are negative.
        if min(left, top) < 0 or right >= cols or bottom >= rows:
            detail = f"{name}{_quoted(value)} on a board of {cols} columns and {rows} rows"
            raise Fault(Reason.BAD_SETUP, detail, len(reading.moves) or None)
        line = int.from_bytes(b"\1" * (right - left + 1), "little")
        starts = int.from_bytes((b"\1" + bytes(cols - 1)) * (bottom - top + 1), "little")
        mask |= (line * starts) << 8 * (top * cols + left)
    return mask


def _line(reading: _Reading) -> Line:
    flags = reading.flags
    colours = np.array(reading.colours, dtype=np.int8)
    if (colours[1:] == colours[:-1]).any():
        flags.add(Flag.COLOUR_TWICE)
    if reading.player is not None and reading.colours and reading.colours[0] != reading.player:
        flags.add(Flag.PLAYER_MISMATCH)
    area = reading.rows * reading.cols
    states = b"".join(state.to_bytes(area, "little") for state in reading.setup.values())
    table = np.frombuffer(states, dtype=np.uint8).reshape(-1, area)
    if np.count_nonzero(table) > _MAX_SETUP:
        raise Fault(Reason.BAD_SETUP, f"more than {_MAX_SETUP} setup stones")
    nodes, points = np.nonzero(table)
    return Line(
        setup_plies=np.array(list(reading.setup), dtype=np.uint16)[nodes],
        setup_points=points.astype(np.uint16),
        setup_colours=table[nodes, points].astype(np.int8) - np.int8(1),
        moves=np.array(reading.moves, dtype=np.uint16),
        colours=colours,
        flags=frozenset(flags),
    )


def _quoted(value: bytes) -> str:
    return f"[{value[:60].decode('utf-8', 'replace')}]"


def _shown(node: Node) -> str:
    """The moves and setup of a node as they are written."""
    return "".join(name + "".join(map(_quoted, node[name][:8])) for name in node if name in _PLAYED)
