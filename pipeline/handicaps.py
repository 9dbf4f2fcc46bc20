"""Handicap stones that a record does not set up: written as moves, or not written at all.

Servers place them on fixed points: those of the Go Text Protocol, version 2, "Fixed Handicap Placement".
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pipeline.board import BLACK
from pipeline.config import Parse
from pipeline.mainline import Line
from pipeline.nodes import Fault
from pipeline.reasons import Flag, Reason

MAX_FIXED = 9  # stones


def with_handicap(line: Line, size: tuple[int, int], handicap: int, stones_as_moves: bool, parse: Parse) -> Line:
    """Return a main line with its handicap stones set up before the first move.

    ``size``: rows and columns; ``handicap``: what HA says, 0 where it says nothing; ``stones_as_moves``: whether the
    record is of a server that writes them so. Black's first 2 to 9 moves of such a record without a handicap are
    made its stones (HANDICAP_FOLDED); a handicap without stones in which White moves first gets those of the fixed
    points (HANDICAP_PLACED). ``parse.handicap_moves = "literal"`` does neither.
    Raises ``Fault`` with HANDICAP_UNKNOWN where there are no such points.
    """
    literal = parse.handicap_moves == "literal"
    if handicap < 2 and (literal or not stones_as_moves):
        return line
    if not line.moves.size or (line.setup_plies == 0).any():
        return line
    others = np.flatnonzero(line.colours != BLACK)
    leading = int(others[0]) if others.size else 0  # Black's moves before White's first
    if handicap < 2:
        fold = handicap == 0 and 2 <= leading <= MAX_FIXED
        return _folded(line, leading, size[0] * size[1]) if fold else line
    if leading >= 2 or not others.size:
        return line
    if leading == 1 or literal:
        return replace(line, flags=line.flags | {Flag.HANDICAP_MISSING})
    points = fixed_points(*size, handicap)
    if points is None:
        detail = f"HA[{handicap}], no stones, and White moves first on {size[0]}x{size[1]}"
        raise Fault(Reason.HANDICAP_UNKNOWN, detail, None, 'parse.handicap_moves = "auto"')
    return _with_stones(line, points, Flag.HANDICAP_PLACED)


def fixed_points(rows: int, cols: int, stones: int) -> NDArray[np.uint16] | None:
    """Return the points (row * cols + col, rising) of a fixed handicap; None where the board has none for it.

    On the fourth line from 13x13 on, else on the third. Boards of less than 7 lines have none, those of 7 or an even
    number of lines have up to 4, others up to 9.
    """
    smallest = min(rows, cols)
    odd = rows % 2 == 1 and cols % 2 == 1 and smallest >= 9
    if not (2 <= stones <= (MAX_FIXED if odd else 4)) or smallest < 7:
        return None
    edge = 3 if smallest >= 13 else 2
    top, middle, bottom = edge, rows // 2, rows - 1 - edge
    left, centre, right = edge, cols // 2, cols - 1 - edge
    corners = [(bottom, left), (top, right), (top, left), (bottom, right)]
    sides = [(middle, left), (middle, right), (bottom, centre), (top, centre)]
    if stones <= 4:
        chosen = corners[:stones]
    else:
        chosen = corners + sides[: (stones - 4) // 2 * 2] + [(middle, centre)] * (stones % 2)
    return np.sort(np.array([row * cols + col for row, col in chosen])).astype(np.uint16)


def _folded(line: Line, leading: int, area: int) -> Line:
    """Make the first moves setup stones; unchanged where they are no ``leading`` stones on an empty board."""
    points = np.unique(line.moves[:leading])
    if len(points) < leading or points[-1] >= area or (line.setup_plies <= leading).any():
        return line
    colours = line.colours[leading:]
    flags = line.flags if (colours[1:] == colours[:-1]).any() else line.flags - {Flag.COLOUR_TWICE}
    rest = replace(
        line,
        setup_plies=(line.setup_plies - np.uint16(leading)).astype(np.uint16),
        moves=line.moves[leading:],
        colours=colours,
        flags=flags,
    )
    return _with_stones(rest, points, Flag.HANDICAP_FOLDED)


def _with_stones(line: Line, points: NDArray[np.uint16], flag: Flag) -> Line:
    """Set up Black stones before the first move of a line that has none there."""
    return replace(
        line,
        setup_plies=np.concatenate([np.zeros(len(points), np.uint16), line.setup_plies]),
        setup_points=np.concatenate([points, line.setup_points]),
        setup_colours=np.concatenate([np.full(len(points), BLACK, np.int8), line.setup_colours]),
        flags=line.flags | {flag},
    )
