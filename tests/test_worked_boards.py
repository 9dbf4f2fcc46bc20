"""The worked boards of docs/schemes.md: every plane has the points that are written there."""

import re
from pathlib import Path

import numpy as np
import pytest
from slow_board import draw

from pipeline.coordinates import point_name
from pipeline.position import encode_position
from pipeline.schemes import SCHEMES

PAGE = (Path(__file__).parents[1] / "docs" / "schemes.md").read_text("utf-8")
SECTIONS = dict(re.findall(r"^## `(\w+)`\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
ARTICLES = {"board", "agz17_grouped", "gnugo", "alphago48_strings", "alphago48_history"}


def boards(section: str) -> list[list[str]]:
    """Return the rows of the boards drawn in a section, without coordinates."""
    drawn = re.findall(r"^```text\n(.*?)\n```", section, re.MULTILINE | re.DOTALL)
    return [[line.split(maxsplit=1)[1] for line in text.split("\n")[1:]] for text in drawn]


def stones(rows: list[str]) -> dict[str, list[tuple[int, int]]]:
    """Return the stones of a drawn board by colour."""
    points = draw("\n".join(rows))
    return {side: [p for p, colour in points.items() if colour == k] for k, side in enumerate(("black", "white"), 1)}


def named(section: str, names: str, every: list[str]) -> set[str]:
    """Return the points that a cell of the table names; fails where it names no point of the board."""
    words = names.removeprefix("all but ").split()
    if names in {"all", "none"}:
        return set(every) if names == "all" else set()
    assert len(set(words)) == len(words), names
    assert set(words) <= set(every), (section, names)
    return set(every) - set(words) if names.startswith("all but ") else set(words)


@pytest.mark.parametrize("name", SECTIONS)
def test_every_plane_is_as_written(name: str) -> None:
    section = SECTIONS[name]
    before, after = boards(section)
    rows, cols = len(before), len(before[0].split())
    found = re.search(r"^Moves: (.*)\. (Black|White) is to move\.$", section, re.MULTILINE)
    assert found, name
    moves = [tuple(move.split()) for move in found[1].split(", ")]
    table = re.findall(r"^\| (\d+) \| (\w+) \| (.*) \|$", section, re.MULTILINE)

    def planes(scheme: str) -> list[set[str]]:
        packed = encode_position(stones(before), moves, scheme=scheme, rows=rows, cols=cols, to_play=found[2].lower())
        bits = np.unpackbits(packed, axis=-1, count=rows * cols)
        return [{point_name(int(point), rows, cols) for point in np.flatnonzero(plane)} for plane in bits]

    shown = {side: {point_name(row * cols + col, rows, cols) for row, col in at} for side, at in stones(after).items()}
    assert planes("board")[:2] == [shown["black"], shown["white"]]
    assert [int(number) for number, _, _ in table] == list(range(len(SCHEMES[name].planes)))
    assert tuple(plane for _, plane, _ in table) == SCHEMES[name].plane_names
    every = [point_name(point, rows, cols) for point in range(rows * cols)]
    drawn = planes(name)
    assert [named(name, points, every) for _, _, points in table] == drawn


def test_the_articles_schemes_have_their_boards() -> None:
    assert set(SECTIONS) == ARTICLES
