"""Contact sheets: what is drawn where, read back from the pixels and from the texts of the picture."""

import errno
import os
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.text import Text
from matplotlib.transforms import Bbox
from numpy.typing import NDArray

from pipeline.board import BLACK, WHITE
from pipeline.config import ConfigError
from pipeline.position import Position
from pipeline.sheet import MAX_PLANES, NumberedPlane, require_png, write_sheet

BLUE, RED = (11, 95, 208), (214, 36, 21)
CAPTION = ("game.sgf, game 1: position after 3 of 8 moves", "to play      Black", "next move    D4")
ROOT = Path(__file__).parents[1]

Point = tuple[int, int]


def position(rows: int, cols: int, **facts: Any) -> Position:
    """A board with the stones ``black`` and ``white``, at (row, col) each."""
    stones = np.zeros((rows, cols), dtype=np.int8)
    for name, stone in (("black", BLACK), ("white", WHITE)):
        for point in facts.pop(name, ()):
            stones[point] = stone
    return Position(stones, **({"to_play": BLACK, "ko": None, "last": None, "passed": False} | facts))


def plane(frame: Point, *points: Point) -> NDArray[np.uint8]:
    bits = np.zeros(frame, dtype=np.uint8)
    for point in points:
        bits[point] = 1
    return bits


def numbered(*planes: NDArray[np.uint8]) -> list[NumberedPlane]:
    return [(number, f"plane_{number}", bits) for number, bits in enumerate(planes)]


def pixels(path: Path) -> NDArray[np.int64]:
    """Return int64[height, width, 3] of a picture."""
    return np.rint(imread(path)[..., :3] * 255).astype(np.int64)


def squares(picture: NDArray[np.int64], colour: tuple[int, int, int]) -> list[tuple[float, float]]:
    """Return the middles (y, x) of the solid squares of a colour, row by row; a letter holds none of 6 by 6 pixels."""
    mask = (picture == colour).all(axis=-1)
    windows = np.lib.stride_tricks.sliding_window_view(mask, (6, 6)).all(axis=(-1, -2))
    left: set[Point] = {(int(y), int(x)) for y, x in np.argwhere(windows)}
    found = []
    while left:
        y, x = min(left)
        square = {(row, col) for row, col in left if row - y < 12 and abs(col - x) < 12}
        left -= square
        corners = np.array(sorted(square))
        middle = (corners.min(axis=0) + corners.max(axis=0)) / 2 + 2.5
        found.append((float(middle[0]), float(middle[1])))
    return found


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The figures that were saved, the last one last."""
    figures: list[Figure] = []
    save = Figure.savefig

    def remember(self: Figure, *arguments: Any, **options: Any) -> None:
        figures.append(self)
        save(self, *arguments, **options)

    monkeypatch.setattr(Figure, "savefig", remember)
    return figures


def texts(figure: Figure) -> list[Text]:
    return [text for text in figure.axes[0].texts if text.get_text()]


def words(figure: Figure) -> list[str]:
    return [text.get_text() for text in texts(figure)]


def boxes(figure: Figure) -> NDArray[np.float64]:
    """Return float64[N, 4]: left, below, right and above of every text, in pixels."""
    extents: list[Bbox] = [text.get_window_extent() for text in texts(figure)]
    return np.array([(box.x0, box.y0, box.x1, box.y1) for box in extents])


@pytest.mark.parametrize(("rows", "cols"), [(5, 9), (9, 5), (9, 9), (13, 13), (19, 19), (25, 25), (1, 25)])
def test_points_that_are_set_lie_where_they_are(rows: int, cols: int, tmp_path: Path) -> None:
    points = sorted({(0, 0), (rows - 1, cols - 1), (rows // 2, cols // 3), (0, cols - 1)})
    write_sheet(str(tmp_path / "a.png"), position(rows, cols), numbered(plane((rows, cols), *points)), CAPTION)
    found = np.array(squares(pixels(tmp_path / "a.png"), BLUE))
    assert len(found) == len(points)
    cell = (found[:, 1].max() - found[:, 1].min()) / (cols - 1)
    assert 14 <= cell <= 24
    np.testing.assert_allclose(found - found[0], (np.array(points) - points[0]) * cell, atol=1)


@pytest.mark.parametrize(("point", "letter", "number"), [((0, 0), "A", "5"), ((3, 8), "J", "2"), ((4, 2), "C", "1")])
def test_coordinates_name_the_points(
    point: Point, letter: str, number: str, tmp_path: Path, drawn: list[Figure]
) -> None:
    write_sheet(str(tmp_path / "a.png"), position(5, 9, ko=point), numbered(plane((5, 9), point)), CAPTION)
    picture = pixels(tmp_path / "a.png")
    ((y, x),) = squares(picture, BLUE)
    ring = np.argwhere((picture == RED).all(axis=-1))
    for middle, size, sides in (((y, x), 9, 1), ((ring.min(axis=0) + ring.max(axis=0)) / 2, 12, 2)):
        named = [text for text in texts(drawn[-1]) if text.get_fontsize() == size]
        columns = [text.get_position()[0] for text in named if text.get_text() == letter]
        rows = [text.get_position()[1] - 0.36 * size for text in named if text.get_text() == number]
        np.testing.assert_allclose(columns, [middle[1]] * sides, atol=1)
        np.testing.assert_allclose(rows, [middle[0]] * sides, atol=1)


def test_stones_lie_faint_under_the_points_of_their_board(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    board = position(9, 9, black=[(2, 3)], white=[(6, 7)])
    write_sheet(str(path), board, numbered(plane((9, 9), (2, 3), (6, 7), (4, 4))), CAPTION)
    picture = pixels(path)
    beside = [picture[round(y), round(x) - 8] for y, x in squares(picture, BLUE)]
    black, empty, white = (int(colour.sum()) for colour in beside)
    assert 3 * 150 < black < 3 * 210
    assert white == 3 * 255
    assert black < empty < white


def test_the_board_shows_stones_the_last_move_and_the_ko_point(tmp_path: Path) -> None:
    plain, marked, moved = (tmp_path / name for name in ("a.png", "b.png", "c.png"))
    stones = {"black": [(2, 1)], "white": [(2, 3)]}
    empty = numbered(plane((5, 5)))
    write_sheet(str(plain), position(5, 5, **stones), empty, CAPTION)
    write_sheet(str(marked), position(5, 5, **stones, last=(2, 3), ko=(2, 2)), empty, CAPTION)
    write_sheet(str(moved), position(5, 5, **stones, last=(2, 1), ko=(2, 2)), empty, CAPTION)
    first, second, third = (pixels(path)[100:330, :330] for path in (plain, marked, moved))
    wood, black, white, red = (230, 190, 120), (23, 25, 28), (252, 252, 250), RED
    for colour in (wood, black, white):
        assert (first == colour).all(axis=-1).sum() > 1000
    assert not (first == red).all(axis=-1).any()
    (ko_rows, ko_cols) = np.nonzero((second == red).all(axis=-1))
    ring_rows, ring_cols = np.nonzero((second != first).any(axis=-1) & (first == white).all(axis=-1))
    # The ko point is one cell, of 48 pixels at most, left of the last move and on its line.
    assert abs(ko_rows.mean() - ring_rows.mean()) < 1
    assert 20 < ring_cols.mean() - ko_cols.mean() < 49
    _, ring_cols = np.nonzero((third == 255).all(axis=-1) & (first == black).all(axis=-1))
    assert 20 < ko_cols.mean() - ring_cols.mean() < 49


def test_a_bit_off_the_board_is_seen(tmp_path: Path, drawn: list[Figure]) -> None:
    path, frame = tmp_path / "a.png", (19, 19)
    sound, broken = plane(frame, (0, 0), (8, 4)), plane(frame, (0, 0), (18, 18), (9, 2))
    write_sheet(str(path), position(9, 5), numbered(sound, sound), CAPTION)
    picture = pixels(path)
    assert (len(squares(picture, BLUE)), len(squares(picture, RED))) == (4, 0)
    assert "2 set" in words(drawn[-1])
    assert "frame        19x19 (dots: off the board)" in words(drawn[-1])
    write_sheet(str(path), position(9, 5), numbered(broken), CAPTION)
    picture = pixels(path)
    (corner,), red = np.array(squares(picture, BLUE)), np.array(squares(picture, RED))
    cell = (red[1] - corner) / 18
    np.testing.assert_allclose(cell, cell[0], atol=0.1)
    np.testing.assert_allclose(red[0] - corner, np.array([9, 2]) * cell, atol=1)
    assert "2 off the board" in words(drawn[-1])


@pytest.mark.parametrize(("number", "rows", "cols"), [(1, 9, 9), (7, 5, 9), (17, 9, 9), (48, 19, 19), (80, 25, 25)])
def test_every_plane_has_its_place(number: int, rows: int, cols: int, tmp_path: Path, drawn: list[Figure]) -> None:
    planes = numbered(*[plane((rows, cols), (rows // 2, cols // 2))] * number)
    write_sheet(str(tmp_path / "a.png"), position(rows, cols), planes, CAPTION)
    picture = pixels(tmp_path / "a.png")
    assert len(squares(picture, BLUE)) == number
    assert picture.shape[1] < 4000
    assert picture.shape[0] < 4500
    for index in range(number):
        assert f"plane_{index}" in words(drawn[-1])
    # Coordinates: below, above and on both sides of the board, above and on one side of each plane.
    assert words(drawn[-1]).count("ABCDEFGHJKLMNOPQRSTUVWXYZ"[cols - 1]) == number + 2
    assert "I" not in words(drawn[-1])
    assert sum(word == str(rows) for word in words(drawn[-1])) >= number + 2


LONG = "a_name_that_is_much_longer_than_any_plane_has_ever_had_or_needed_so_far"


@pytest.mark.parametrize(
    ("rows", "cols", "frame", "names"),
    [
        (19, 19, (19, 19), ["own_liberties_8_or_more"] * 12),
        (9, 9, (19, 19), ["opp_liberties_8_or_more"] * 5),
        (25, 25, (25, 25), ["ones"] * 20),
        (5, 9, (5, 9), [LONG, "b"]),
        (1, 1, (1, 1), ["ko"]),
        (25, 2, (25, 2), ["ko"] * 3),
        (2, 25, (2, 25), ["ko"] * 3),
    ],
)
def test_no_text_covers_another_or_leaves_the_picture(
    rows: int, cols: int, frame: Point, names: Sequence[str], tmp_path: Path, drawn: list[Figure]
) -> None:
    full = np.ones((rows, cols), dtype=np.uint8)
    bits = np.pad(full, ((0, frame[0] - rows), (0, frame[1] - cols)))
    planes = [(100 + number, name, bits) for number, name in enumerate(names)]
    caption = (f"/a/{'long/' * 40}path.sgf, game 12: position after 3 of 8 moves", *CAPTION[1:], f"scheme       {LONG}")
    numbers = {f"global_{number}": number / 3 for number in range(19)}
    write_sheet(str(tmp_path / "a.png"), position(rows, cols, last=(0, 0)), planes, caption, numbers)
    found = boxes(drawn[-1])
    left, below, right, above = (found[:, None, side] for side in range(4))
    apart = (right <= left.T) | (left >= right.T) | (above <= below.T) | (below >= above.T)
    covering = [(words(drawn[-1])[one], words(drawn[-1])[two]) for one, two in np.argwhere(~apart) if one < two]
    assert covering == []
    width, height = drawn[-1].bbox.width, drawn[-1].bbox.height
    assert found.min() >= 0
    assert found[:, 2].max() <= width
    assert found[:, 3].max() <= height


def test_the_caption_says_what_is_marked_and_the_numbers(tmp_path: Path, drawn: list[Figure]) -> None:
    board = position(5, 9, black=[(0, 0)], last=(0, 0), ko=(4, 8))
    numbers = {"self_komi": 0.375, "pass_1": 0.0, "nan": float("nan")}
    write_sheet(str(tmp_path / "a.png"), board, numbered(plane((5, 9))), CAPTION, numbers)
    said = words(drawn[-1])
    assert " ".join(said).startswith(CAPTION[0])
    for line in (*CAPTION[1:], "last move    A5 (ring)", "ko point     J1 (square)", "self_komi    0.375"):
        assert line in said
    assert {"pass_1       0", "nan          nan"} <= set(said)
    write_sheet(str(tmp_path / "a.png"), position(5, 9, passed=True), numbered(plane((5, 9))), CAPTION)
    said = words(drawn[-1])
    assert "last move    pass" in said
    assert not any(word.startswith(("ko point", "self_komi", "frame")) for word in said)


def test_names_of_any_kind_are_text(tmp_path: Path, drawn: list[Figure]) -> None:
    """Dollar signs are no formulas, and what the font does not have makes no warning, which would fail here."""
    names = ["$x^2$", "$\\frac$", "$", "a\nb", "\u68cb\u8b5c", "\x1b[31m", "\udcff", ""]
    planes = [(number, name, plane((9, 9))) for number, name in enumerate(names)]
    write_sheet(str(tmp_path / "a.png"), position(9, 9), planes, ("\u68cb.sgf $1$", "komi  \u00bd"))
    said = words(drawn[-1])
    assert {"$x^2$", "$\\frac$", "$", "a?b", "??", "?[31m", "?", "?.sgf $1$", "komi  \u00bd"} <= set(said)


def test_the_same_input_gives_the_same_bytes_whatever_matplotlib_is_told(tmp_path: Path) -> None:
    arguments = position(9, 9, black=[(4, 4)]), numbered(plane((9, 9), (4, 4))), CAPTION
    write_sheet(str(tmp_path / "a.png"), *arguments)
    write_sheet(str(tmp_path / "b.png"), *arguments)
    other = {
        "savefig.dpi": 200,
        "savefig.bbox": "tight",
        "font.size": 30,
        "figure.facecolor": "red",
        "path.snap": False,
    }
    with mpl.rc_context(other):
        write_sheet(str(tmp_path / "c.png"), *arguments)
        assert {name: mpl.rcParams[name] for name in other} == other
    first = (tmp_path / "a.png").read_bytes()
    assert first == (tmp_path / "b.png").read_bytes() == (tmp_path / "c.png").read_bytes()
    names, at = set(), 8
    while at < len(first):
        (length,) = struct.unpack(">I", first[at : at + 4])
        names.add(first[at + 4 : at + 8])
        at += 12 + length
    assert names == {b"IHDR", b"pHYs", b"IDAT", b"IEND"}


def test_a_picture_appears_whole_or_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "A.PNG"
    path.write_bytes(b"old")
    arguments = position(9, 9), numbered(plane((9, 9))), CAPTION

    def full(figure: Figure, where: Path, **options: Any) -> None:
        where.write_bytes(b"half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(Figure, "savefig", full)
        with pytest.raises(OSError, match=r"No space left.*A\.PNG"):
            write_sheet(str(path), *arguments)
    assert path.read_bytes() == b"old"
    write_sheet(str(path), *arguments)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert list(tmp_path.iterdir()) == [path]


def test_what_cannot_be_drawn_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    many = numbered(*[plane((1, 1))] * (MAX_PLANES + 1))
    with pytest.raises(ConfigError, match=r"at most 256 planes, not 257: choose some with --planes"):
        write_sheet(str(tmp_path / "a.png"), position(1, 1), many, CAPTION)
    for name in ("a.jpg", "a", "png", "a.png.gz", ""):
        with pytest.raises(ConfigError, match=r"ends in \.png"):
            require_png(name)
    require_png("a.png")
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ConfigError, match=r'pip install "goplanes\[pictures\]"'):
        require_png("a.png")
    with pytest.raises(ConfigError, match=r"goplanes\[pictures\]"):
        write_sheet(str(tmp_path / "a.png"), position(1, 1), many[:1], CAPTION)
    assert list(tmp_path.iterdir()) == []


def test_matplotlib_is_loaded_by_a_picture_alone_and_its_state_never(tmp_path: Path) -> None:
    program = f"""
import sys
import numpy as np
from pipeline.position import Position
from pipeline.show import write_sheet
assert "matplotlib" not in sys.modules
board = Position(np.zeros((5, 5), dtype=np.int8), 1, None, None, False)
write_sheet({str(tmp_path / "a.png")!r}, board, [(0, "zeros", np.zeros((5, 5), dtype=np.uint8))], ["nothing"])
assert "matplotlib" in sys.modules
assert "matplotlib.pyplot" not in sys.modules
"""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "DISPLAY": ":99", "MPLBACKEND": "TkAgg"}
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "a.png").stat().st_size > 1000
