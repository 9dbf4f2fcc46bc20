"""Points in letters and numbers: the corners, every point both ways, and names that are none."""

import re

import pytest

from pipeline import coordinates
from pipeline.coordinates import LETTERS, named_point, point_name, star_points


@pytest.mark.parametrize(
    ("name", "row", "col"),
    [
        ("A19", 0, 0),
        ("T19", 0, 18),
        ("A1", 18, 0),
        ("T1", 18, 18),
        ("D4", 15, 3),
        ("Q16", 3, 15),
        ("H1", 18, 7),
        ("J1", 18, 8),
    ],
)
def test_points_of_19x19(name: str, row: int, col: int) -> None:
    """Row 0 is the top line; there is no column I."""
    assert point_name(19 * row + col, 19, 19) == name
    assert named_point(name, 19, 19) == 19 * row + col
    assert named_point(f" {name.lower()} ", 19, 19) == 19 * row + col


def test_the_table_in_the_module_is_right() -> None:
    rows = re.findall(r"^([A-T][0-9]+) +\(([0-9]+), ([0-9]+)\) +([0-9]+) +([a-s])([a-s])$", coordinates.__doc__, re.M)
    assert len(rows) == 5
    for name, row, col, point, sgf_col, sgf_row in rows:
        assert named_point(name, 19, 19) == int(point) == 19 * int(row) + int(col)
        assert (ord(sgf_row) - ord("a"), ord(sgf_col) - ord("a")) == (int(row), int(col))


@pytest.mark.parametrize(("rows", "cols"), [(1, 1), (2, 3), (9, 5), (19, 19), (25, 25)])
def test_every_point_both_ways(rows: int, cols: int) -> None:
    names = [point_name(point, rows, cols) for point in range(rows * cols)]
    assert len(set(names)) == rows * cols
    assert [named_point(name, rows, cols) for name in names] == list(range(rows * cols))
    assert not any(name.startswith("I") for name in names)
    assert names[-1] == f"{LETTERS[cols - 1]}1"


def test_pass() -> None:
    assert point_name(81, 9, 9) == "pass"
    assert named_point("Pass", 9, 9) == named_point("pass", 9, 9) == 81


@pytest.mark.parametrize("name", ["", "D", "4", "I4", "4D", "DD4", "D-4", "D4.", "D 4", "D\u0664", "D\xb2"])
def test_names_that_are_none(name: str) -> None:
    with pytest.raises(ValueError, match="not a point"):
        named_point(name, 19, 19)


@pytest.mark.parametrize("name", ["A0", "A10", "K1", "Z1", "A999", "A" + "9" * 5_000])
def test_names_off_the_board(name: str) -> None:
    with pytest.raises(ValueError, match="off a board of 9 rows and 9 columns"):
        named_point(name, 9, 9)


@pytest.mark.parametrize("point", [-1, 7, 100])
def test_numbers_that_are_no_points(point: int) -> None:
    with pytest.raises(ValueError, match=f"points 0 to 5, not {point}"):
        point_name(point, 2, 3)


def test_star_points() -> None:
    assert star_points(9, 9) == {(2, 2), (2, 6), (6, 2), (6, 6), (4, 4)}
    assert len(star_points(19, 19)) == 9
    assert star_points(9, 13) == star_points(8, 8) == set()
