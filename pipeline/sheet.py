"""A position and its planes as a picture: the board first, then a small board for every plane.

Lengths are in pixels, and (0, 0) is the upper left corner: a picture has 72 dots per inch, so that a point of
matplotlib's is a pixel. matplotlib is an extra, and nothing of it is loaded before a picture is asked for.
"""

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from pipeline.board import BLACK, WHITE
from pipeline.config import ConfigError
from pipeline.coordinates import LETTERS, point_name, star_points
from pipeline.files import whole_file
from pipeline.position import Position

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_PLANES: Final = 256  # in one picture: 3,600 x 12,500 pixels at most
_MAX_WIDTH = 3900
_DPI = 72

_MARGIN, _GAP = 24, 22  # around the sheet, between its tiles
_EDGE, _BOARD_EDGE = 18, 28  # beside a plane and beside the board, for coordinates
_TITLE = 24  # above a plane and its letters
_SMALL, _NAME, _TEXT, _HEADING = 9, 11, 12, 14  # sizes of letters
_LINE = 18  # height of a line of text
_NARROWEST = 160  # a tile
_LONGEST = 40  # letters of a plane's title that a tile grows for
_FAMILY = "DejaVu Sans Mono"  # comes with matplotlib; every letter is 0.602 of its size wide

_INK, _FAINT, _HINT = "#1d2530", "#707b88", "#b3bcc6"
_WOOD, _WOOD_LINE = "#e6be78", "#6f5220"
_PAPER, _PAPER_LINE = "#f3f4f7", "#cfd6de"
_SET, _FAULT = "#0b5fd0", "#d62415"
# Colour of a stone, its disc and the edge of it, on the board and faint under a plane.
_STONES = ((BLACK, "#17191c", "#000000"), (WHITE, "#fcfcfa", "#55524a"))
_FAINT_STONES = ((BLACK, "#b4bcc5", "#a4adb7"), (WHITE, "#ffffff", "#a4adb7"))

NumberedPlane = tuple[int, str, NDArray[np.uint8]]


@dataclass(frozen=True, slots=True)
class _Grid:
    """A board in the picture: its upper left corner, its size, and how far apart its lines are."""

    x: int
    y: int
    rows: int
    cols: int
    cell: int


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where everything lies: the board and the caption on ``block`` tiles, the planes on the others, row by row.

    ``shown``: rows and columns drawn of a plane; ``cell``, ``board_cell``: between two lines of a plane and of the
    board; ``tile``, ``size``: width and height; ``block``, ``columns``: in tiles.
    """

    shown: tuple[int, int]
    cell: int
    board_cell: int
    tile: tuple[int, int]
    block: tuple[int, int]
    columns: int
    size: tuple[int, int]

    def tiles(self) -> Iterator[tuple[int, int]]:
        """Yield the upper left corners of the planes' tiles, without end."""
        row = 0
        while True:
            for column in range(self.block[0] if row < self.block[1] else 0, self.columns):
                yield _MARGIN + column * (self.tile[0] + _GAP), _MARGIN + row * (self.tile[1] + _GAP)
            row += 1


def require_png(path: str) -> None:
    """Raise ConfigError unless a picture can be drawn into ``path``: its name ends in .png, matplotlib is there."""
    if not path.lower().endswith(".png"):
        raise ConfigError(f"{path}: the name of a picture ends in .png")
    try:
        import matplotlib.backends.backend_agg  # noqa: F401
    except ImportError as error:
        raise ConfigError(f'pictures are drawn with matplotlib: pip install "goplanes[pictures]" ({error})') from None


def write_sheet(
    path: str,
    position: Position,
    planes: Sequence[NumberedPlane],
    caption: Sequence[str],
    numbers: Mapping[str, float] | None = None,
) -> None:
    """Draw a position and planes of it into a PNG file, which appears whole; one that is there is replaced.

    ``planes``: (number, name, uint8[H, W]) each, of one frame, at least one; ``caption``: a heading, then lines for
    below the board; ``numbers``: a table of names and values. The same input gives the same bytes.
    Raises ConfigError as ``require_png``, or where there are more than ``MAX_PLANES``, OSError.
    """
    require_png(path)
    if len(planes) > MAX_PLANES:
        raise ConfigError(f"a picture shows at most {MAX_PLANES} planes, not {len(planes)}: choose some with --planes")
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.font_manager import FontProperties, findfont, get_font

    with matplotlib.rc_context():
        # Whatever the user's matplotlibrc asks for is put aside until the picture is done.
        matplotlib.rcdefaults()
        known = get_font(findfont(FontProperties(family=_FAMILY))).get_charmap()
        clean = partial(_with_letters, known)
        named = [(number, clean(name), plane) for number, name, plane in planes]
        heading, *lines = map(clean, (*caption, *_number_lines(numbers or {})))
        lines = [*_marks(position, planes[0][2].shape), *lines]
        layout = _layout(position, named, heading, lines)
        width, height = layout.size
        figure = Figure(figsize=(width / _DPI, height / _DPI), dpi=_DPI, facecolor="white")
        FigureCanvasAgg(figure)
        axes = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(height, 0), autoscale_on=False)
        axes.set_axis_off()
        _draw_block(axes, layout, position, heading, lines)
        for plane, corner in zip(named, layout.tiles(), strict=False):
            _draw_plane(axes, layout, corner, position, plane)
        with whole_file(path) as temporary:
            figure.savefig(temporary, format="png", metadata={"Software": None})


def _with_letters(known: Mapping[int, Any], text: str) -> str:
    """Return a text with a question mark for each character that the font does not have."""
    return "".join(char if ord(char) in known else "?" for char in text)


def _number_lines(numbers: Mapping[str, float]) -> list[str]:
    """Return a table of names and values, an empty line above it; nothing for no numbers."""
    width = max(11, *map(len, numbers), 0)  # that of the other lines' names at least
    table = [f"{name:<{width}}  {value:.6g}" for name, value in numbers.items()]
    return ["", *table] if table else []


def _marks(position: Position, frame: tuple[int, ...]) -> list[str]:
    """Return lines that explain what is marked on the board and beside the planes."""
    rows, cols = position.stones.shape
    lines = ["last move    pass"] if position.passed else []
    for mark, name, point in (("last move", "ring", position.last), ("ko point", "square", position.ko)):
        if point is not None:
            lines.append(f"{mark:<13}{point_name(point[0] * cols + point[1], rows, cols)} ({name})")
    return lines if frame == (rows, cols) else [*lines, f"frame        {frame[0]}x{frame[1]} (dots: off the board)"]


def _layout(position: Position, planes: Sequence[NumberedPlane], heading: str, lines: Sequence[str]) -> _Layout:
    """Choose the sizes: the board as wide as two planes, as many columns as make a picture wider than high."""
    rows, cols = position.stones.shape
    frame_rows, frame_cols = planes[0][2].shape
    if any(_off_board(plane, rows, cols) for _, _, plane in planes):
        shown = frame_rows, frame_cols
    else:
        shown = min(rows + 1, frame_rows), min(cols + 1, frame_cols)
    cell = max(14, min(24, 216 // max(shown)))
    longest = 3 + max(sum(map(len, _title(plane, rows, cols))) for plane in planes)
    tile = (
        max(_NARROWEST, _EDGE + shown[1] * cell, min(longest, _LONGEST) * _letter(_NAME)),
        _TITLE + _EDGE + shown[0] * cell,
    )
    width = 2 * tile[0] + _GAP
    board_cell = min(48, (width - 2 * _BOARD_EDGE) // cols, 700 // rows)
    height = _LINE * (len(_wrapped(heading, width)) + len(lines)) + 2 * _BOARD_EDGE + rows * board_cell
    block = 2, math.ceil((height + _GAP) / (tile[1] + _GAP))
    columns = _columns(tile, block, len(planes))
    beside = block[1] * (columns - block[0])
    if len(planes) <= beside:
        down = math.ceil(len(planes) / (columns - block[0]))
    else:
        down = block[1] + math.ceil((len(planes) - beside) / columns)
    size = (
        2 * _MARGIN + columns * (tile[0] + _GAP) - _GAP,
        2 * _MARGIN + max(height, down * (tile[1] + _GAP) - _GAP),
    )
    return _Layout(shown, cell, board_cell, tile, block, columns, size)


def _columns(tile: tuple[int, int], block: tuple[int, int], planes: int) -> int:
    """Return how many tiles lie side by side: the fewest that make a picture wider than high, if it is not too wide."""
    most = min(block[0] + math.ceil(planes / block[1]), (_MAX_WIDTH - 2 * _MARGIN) // (tile[0] + _GAP))
    for columns in range(block[0] + 1, most):
        down = max(block[1], math.ceil((block[0] * block[1] + planes) / columns))
        if columns * (tile[0] + _GAP) >= 1.25 * down * (tile[1] + _GAP):
            return columns
    return most


def _title(plane: NumberedPlane, rows: int, cols: int) -> tuple[str, str, str]:
    """Return the number, the name and the count that stand above a plane."""
    number, name, bits = plane
    off = _off_board(bits, rows, cols)
    return str(number), name, f"{off} off the board" if off else f"{np.count_nonzero(bits)} set"


def _off_board(bits: NDArray[np.uint8], rows: int, cols: int) -> int:
    """Return how many points off the board are set, which is a fault."""
    return int(np.count_nonzero(bits) - np.count_nonzero(bits[:rows, :cols]))


def _letter(size: int) -> int:
    """Return how wide a letter is at most: hinting rounds its width to whole pixels."""
    return math.ceil(0.602 * size)


def _fitted(text: str, width: int, size: int) -> str:
    room = max(width // _letter(size), 1)
    return text if len(text) <= room else f"{text[: room - 1]}…"


def _wrapped(heading: str, width: int) -> list[str]:
    return textwrap.wrap(
        heading[:1000], width // _letter(_HEADING), max_lines=4, placeholder=" …", break_on_hyphens=False
    )


def _draw_block(axes: "Axes", layout: _Layout, position: Position, heading: str, lines: Sequence[str]) -> None:
    """Draw the heading, the board and the lines below it."""
    rows, cols = position.stones.shape
    cell, width, edge = layout.board_cell, 2 * layout.tile[0] + _GAP, _BOARD_EDGE
    y = _MARGIN
    for line in _wrapped(heading, width):
        _write(axes, _MARGIN, y + 12, line, _HEADING, weight="bold")
        y += _LINE
    board = _Grid(_MARGIN + edge, y + edge, rows, cols, cell)
    _draw_ground(axes, board, _WOOD, _WOOD_LINE)
    _draw_names(axes, board, -edge / 2, -edge / 2, _TEXT, _INK)
    _draw_names(axes, board, cols * cell + edge / 2, rows * cell + edge / 2, _TEXT, _INK)
    _draw_points(axes, board, sorted(star_points(rows, cols)), 0.2, _WOOD_LINE)
    for stone, fill, rim in _STONES:
        _draw_points(axes, board, np.argwhere(position.stones == stone), 0.92, fill, edgecolors=rim)
    if position.last is not None:
        ring = "white" if position.stones[position.last] == BLACK else "black"
        _draw_points(axes, board, [position.last], 0.45, "none", edgecolors=ring, linewidths=2)
    if position.ko is not None:
        _draw_points(axes, board, [position.ko], 0.5, "none", marker="s", edgecolors=_FAULT, linewidths=2)
    y += rows * cell + 2 * edge
    for line in lines:
        y += _LINE
        _write(axes, _MARGIN, y, _fitted(line, width, _TEXT), _TEXT, _INK)


def _draw_plane(
    axes: "Axes", layout: _Layout, corner: tuple[int, int], position: Position, plane: NumberedPlane
) -> None:
    """Draw one plane in its tile: the stones faint, and over them the points that are set."""
    (x, y), (rows, cols), bits = corner, position.stones.shape, plane[2] != 0
    number, name, count = _title(plane, rows, cols)
    sound, indent = _off_board(bits, rows, cols) == 0, (len(number) + 1) * _letter(_NAME)
    room = layout.tile[0] - indent - (len(count) + 2) * _letter(_NAME)
    _write(axes, x, y + 12, number, _NAME, _SET if sound else _FAULT, weight="bold")
    _write(axes, x + indent, y + 12, _fitted(name, room, _NAME), _NAME, _INK)
    _write(axes, x + layout.tile[0], y + 12, count, _NAME, _FAINT if sound else _FAULT, ha="right")
    board = _Grid(x + _EDGE, y + _TITLE + _EDGE, rows, cols, layout.cell)
    _draw_ground(axes, board, _PAPER, _PAPER_LINE)
    _draw_names(axes, board, -10, -8, _SMALL, _FAINT)
    for stone, fill, rim in _FAINT_STONES:
        _draw_points(axes, board, np.argwhere(position.stones == stone), 0.88, fill, edgecolors=rim)
    on_board = np.zeros(bits.shape, dtype=np.bool_)
    on_board[:rows, :cols] = True
    _draw_points(axes, board, np.argwhere(~on_board[: layout.shown[0], : layout.shown[1]]), 0.15, _HINT)
    _draw_points(axes, board, np.argwhere(bits & on_board), 0.58, _SET, marker="s")
    _draw_points(axes, board, np.argwhere(bits & ~on_board), 0.58, _FAULT, marker="s")


def _write(axes: "Axes", x: float, y: float, text: str, size: int, ink: str = _INK, **how: Any) -> None:
    """Write text on the base line ``y``; a dollar sign is no more than that."""
    axes.text(x, y, text, fontsize=size, color=ink, family=_FAMILY, parse_math=False, **how)


def _draw_ground(axes: "Axes", board: _Grid, fill: str, ink: str) -> None:
    """Draw an empty board without its marks."""
    x, y, half = board.x, board.y, board.cell / 2
    right, bottom = x + board.cols * board.cell, y + board.rows * board.cell
    axes.fill([x, right, right, x], [y, y, bottom, bottom], fill, linewidth=0)
    axes.hlines(y + half + board.cell * np.arange(board.rows), x + half, right - half, ink, linewidths=1)
    axes.vlines(x + half + board.cell * np.arange(board.cols), y + half, bottom - half, ink, linewidths=1)


def _draw_names(axes: "Axes", board: _Grid, right: float, down: float, size: int, ink: str) -> None:
    """Write numbers in a column ``right`` of the board's left side, letters in a row ``down`` from its upper side."""
    half, base = board.cell / 2, 0.36 * size  # base: from the middle of a capital letter down to its base line
    for row in range(board.rows):
        y = board.y + row * board.cell + half + base
        _write(axes, board.x + right, y, str(board.rows - row), size, ink, ha="center")
    for col in range(board.cols):
        x = board.x + col * board.cell + half
        _write(axes, x, board.y + down + base, LETTERS[col], size, ink, ha="center")


def _draw_points(axes: "Axes", board: _Grid, points: Any, size: float, fill: str, **how: Any) -> None:
    """Draw a disc, or the marker that ``how`` names, on each point (row, col); ``size`` is its part of a cell."""
    if len(points) == 0:
        return  # older releases of matplotlib draw one in the corner of the picture
    row, col = (np.array(points, dtype=np.float64).T + 0.5) * board.cell
    drawn = {"marker": "o", "edgecolors": "none", "linewidths": 1, **how}
    axes.scatter(board.x + col, board.y + row, s=(size * board.cell) ** 2, c=fill, zorder=3, **drawn)
