"""The worked boards of docs/schemes.md: every plane and global has what is written there."""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from slow_board import draw

from pipeline.coordinates import point_name
from pipeline.position import encode_inputs
from pipeline.schemes import SCHEMES, find_scheme, scheme_options

PAGE = (Path(__file__).parents[1] / "docs" / "schemes.md").read_text("utf-8")
SECTIONS = dict(re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
OPTION = re.compile(r'`(\w+)` with `(\w+) = "(\w+)"`')
WHOLE = [title for title in SECTIONS if not OPTION.fullmatch(title)]
OPTIONS = [title for title in SECTIONS if OPTION.fullmatch(title)]
SHOWN = {
    "board",
    "agz17_grouped",
    "gnugo",
    "alphago48_strings",
    "alphago48_history",
    "katago22_article",
    "katago_v7",
}


def rows_of(section: str, first: str) -> list[list[str]]:
    """Return the rows of the tables whose first column is called ``first``."""
    found = re.findall(rf"^\| {first} \|.*\n\|[-:| ]+\|\n((?:\|.*\|\n)+)", section, re.MULTILINE)
    return [[cell.strip() for cell in line.strip("|").split("|")] for table in found for line in table.splitlines()]


def boards(section: str) -> list[list[str]]:
    """Return the rows of the boards drawn in a section, without coordinates."""
    drawn = re.findall(r"^```text\n(.*?)\n```", section, re.MULTILINE | re.DOTALL)
    return [[line.split(maxsplit=1)[1] for line in text.split("\n")[1:]] for text in drawn]


def stones(rows: list[str]) -> dict[str, list[tuple[int, int]]]:
    """Return the stones of a drawn board by colour."""
    points = draw("\n".join(rows))
    return {side: [p for p, colour in points.items() if colour == k] for k, side in enumerate(("black", "white"), 1)}


@dataclass(frozen=True)
class Worked:
    """The position of a section, and the stones after its moves."""

    setup: dict[str, list[tuple[int, int]]]
    after: dict[str, list[tuple[int, int]]]
    size: tuple[int, int]
    moves: list[tuple[str, str]]
    to_play: str
    rules: str
    komi: float | None

    @property
    def points(self) -> list[str]:
        """The names of all points, row by row."""
        return [point_name(point, *self.size) for point in range(self.size[0] * self.size[1])]

    def inputs(self, scheme: str, **options: str) -> tuple[list[set[str]], NDArray[np.float32]]:
        """Return the points of every plane, and the globals."""
        rows, cols = self.size
        packed, numbers = encode_inputs(
            self.setup,
            self.moves,
            scheme,
            rows,
            cols,
            to_play=self.to_play,
            rules=self.rules,
            komi=self.komi,
            options=options,
        )
        bits = np.unpackbits(packed, axis=-1, count=rows * cols)
        return [{point_name(int(point), rows, cols) for point in np.flatnonzero(plane)} for plane in bits], numbers

    def named(self, names: str) -> set[str]:
        """Return the points that a cell of the table names; fails where it names no point of the board."""
        words = names.removeprefix("all but ").split()
        if names in {"all", "none"}:
            return set(self.points) if names == "all" else set()
        assert len(set(words)) == len(words), names
        assert set(words) <= set(self.points), names
        return set(self.points) - set(words) if names.startswith("all but ") else set(words)


def worked(section: str) -> Worked:
    """Read the position of a section."""
    before, after = boards(section)
    found = re.search(r"^Moves: (.*)\. (Black|White) is to move\.$", section, re.MULTILINE)
    rules = re.search(r"^Rules: ([\w-]+), komi ([\d.]+)\.$", section, re.MULTILINE)
    assert found
    moves = re.findall(r"([BW]) (\w+)", found[1])
    assert found[1] == (", ".join(map(" ".join, moves)) or "none")
    size = len(before), len(before[0].split())
    named, komi = (rules[1], float(rules[2])) if rules else ("chinese", None)
    return Worked(stones(before), stones(after), size, moves, found[2].lower(), named, komi)


@pytest.mark.parametrize("title", SECTIONS)
def test_the_second_board_is_the_first_after_the_moves(title: str) -> None:
    position = worked(SECTIONS[title])
    rows, cols = position.size
    after = [{point_name(row * cols + col, rows, cols) for row, col in at} for at in position.after.values()]
    assert position.inputs("board")[0][:2] == after


@pytest.mark.parametrize("title", WHOLE)
def test_every_plane_is_as_written(title: str) -> None:
    scheme, section = SCHEMES[title.split("`")[1]], SECTIONS[title]
    position = worked(section)
    drawn, numbers = position.inputs(scheme.name)
    planes, values = rows_of(section, "plane"), rows_of(section, "global")
    assert [(int(number), name) for number, name, _ in planes] == list(enumerate(scheme.plane_names))
    assert [(int(number), name) for number, name, _ in values] == list(enumerate(scheme.global_names))
    assert [position.named(points) for _, _, points in planes] == drawn
    assert [np.float32(value) for _, _, value in values] == list(numbers)


@pytest.mark.parametrize("title", OPTIONS)
def test_an_option_changes_the_planes_that_are_written_and_no_others(title: str) -> None:
    found = OPTION.fullmatch(title)
    assert found
    name, options = found[1], {found[2]: found[3]}
    position = worked(SECTIONS[title])
    names = find_scheme(name, options).plane_names
    usual, chosen = position.inputs(name)[0], position.inputs(name, **options)[0]
    changed = [
        (number, names[number], usual[number] if number < len(usual) else None, points)
        for number, points in enumerate(chosen)
        if usual[number : number + 1] != [points]
    ]
    written = [
        (int(number), plane, None if before == "not there" else position.named(before), position.named(after))
        for number, plane, before, after in rows_of(SECTIONS[title], "plane")
    ]
    assert changed == written


def test_schemes_and_options_have_their_boards() -> None:
    assert {title.split("`")[1] for title in WHOLE} == SHOWN
    shown = {found.groups()[1:] for found in map(OPTION.fullmatch, OPTIONS) if found}
    assert shown == {
        (option.name, value) for name in SCHEMES for option in scheme_options(name) for value in option.values[1:]
    }
