"""The rows that a data set holds, worked out with plain tuples and dictionaries from the words of the contract.

A position is the tuple of its boards, its ko point and the side to move; two are the same where one of the
symmetries of the board makes one of the other. Nothing here uses keys, canonical symmetries or ``pipeline``.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from random_games import Line, Seen, positions
from slow_board import Point, Stones

Size = tuple[int, int]
Place = tuple[int, int]  # game id, ply

PARTS = ("train", "val", "test")
BANDS = {"0-9": range(10), "10-29": range(10, 30), "30-99": range(30, 100), "100+": range(100, 70_000)}
SIGNS = {"B": 1, "draw": 0, "W": -1}


def symmetries(size: Size) -> range:
    """Return the numbers of the symmetries of a board."""
    return range(8 if size[0] == size[1] else 4)


def image(point: Point | None, size: Size, turn: int) -> Point | None:
    """Return where symmetry ``turn`` puts a point: flip rows (1), flip columns (2), transpose (4); a pass stays."""
    if point is None:
        return None
    row = size[0] - 1 - point[0] if turn & 1 else point[0]
    col = size[1] - 1 - point[1] if turn & 2 else point[1]
    return (col, row) if turn & 4 else (row, col)


@cache
def turned_stones(stones: Stones, size: Size, turn: int) -> tuple[tuple[Point | None, int], ...]:
    """Return the stones of a board under a symmetry, in order."""
    return tuple(sorted((image(point, size, turn), colour) for point, colour in stones))  # type: ignore[type-var]


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One position of one kept game, the move played there and what the game was worth to the side to move."""

    game: int
    ply: int
    part: str
    size: Size
    seen: Seen
    move: Point | None
    outcome: int | None  # 1 won, 0 drawn, -1 lost, None not known

    def turned(self, turn: int) -> tuple[Any, ...]:
        """Return what is seen under a symmetry, as a value to compare."""
        boards = tuple(turned_stones(stones, self.size, turn) for stones in self.seen.boards)
        return self.size, self.seen.to_play, boards, image(self.seen.ko, self.size, turn) or ()


def line_of(row: Mapping[str, Any]) -> Line:
    """Return the game of a row of ``games.parquet``, up to where it was cut."""
    rows, cols = row["board_rows"], row["board_cols"]
    points = [None if move == rows * cols else divmod(move, cols) for move in row["moves"][: row["plies"]]]
    setup = zip(row["setup_plies"], row["setup_points"], row["setup_colours"], strict=True)
    return Line(
        rows,
        cols,
        tuple(zip(points, row["colours"][: row["plies"]], strict=True)),
        tuple((ply, divmod(point, cols), colour) for ply, point, colour in setup),
    )


def outcome_of(row: Mapping[str, Any], colour: int) -> int | None:
    """Return what a game is worth to ``colour``: nothing known of forfeits, void games and unknown results."""
    if row["winner"] not in SIGNS or row["result_kind"] in {"forfeit", "void"}:
        return None
    return SIGNS[row["winner"]] * (1 if colour == 1 else -1)


def occurrences(games: Iterable[Mapping[str, Any]], history: int) -> list[Occurrence]:
    """Return all positions of the kept games, in the order of (game id, ply)."""
    found = []
    for row in sorted((row for row in games if row["status"] == "kept"), key=lambda row: row["game"]):
        line, size = line_of(row), (row["board_rows"], row["board_cols"])
        for ply, (seen, (move, colour)) in enumerate(zip(positions(line, history), line.moves, strict=True)):
            found.append(
                Occurrence(row["game"], ply, row["split"], size, seen, move, outcome_of(row, colour)),
            )
    return found


def same_positions(found: Iterable[Occurrence]) -> list[list[Occurrence]]:
    """Return the occurrences of each position, turned copies together, in their order."""
    groups: dict[Any, list[Occurrence]] = defaultdict(list)
    for one in found:
        groups[min(one.turned(turn) for turn in symmetries(one.size))].append(one)
    return list(groups.values())


@dataclass(frozen=True, slots=True)
class Row:
    """What is stored of a position, in the orientation of the game that represents it."""

    first: Occurrence
    weight: int
    move: Point | None
    value: float | None
    images: tuple[int, ...]  # the symmetries that give each of its images once
    policy: Mapping[Point | None, int]
    outcomes: tuple[int, int, int]  # wins, draws, losses
    fixed: int  # symmetries that leave it as it is


@dataclass(frozen=True, slots=True)
class Expected:
    """The rows by place; positions merged into another and overlapping; those of val and test by band of plies."""

    rows: Mapping[Place, Row]
    merged: int
    overlap: int
    held_out: Mapping[str, int]
    left_out: Mapping[str, int]


def index_of(move: Point | None, frame: Size) -> int:
    """Return the frame index of a move: row by row, the area for a pass."""
    return frame[0] * frame[1] if move is None else move[0] * frame[1] + move[1]


def merged_row(group: list[Occurrence], mode: str, frame: Size) -> Row:
    """Return the row that stands for equal positions of one part, in their order; the first represents them."""
    first = group[0]
    as_stored = first.turned(0)
    counts: Counter[Point | None] = Counter()
    for one in group:
        # Every symmetry that makes the representative of it: one for each that leaves a position as it is.
        counts.update(image(one.move, one.size, turn) for turn in symmetries(one.size) if one.turned(turn) == as_stored)
    known = [one.outcome for one in group if one.outcome is not None]
    outcomes = (known.count(1), known.count(0), known.count(-1))
    seen, images = set(), []
    for turn in symmetries(first.size):
        if first.turned(turn) not in seen or mode == "off":
            images.append(turn)
        seen.add(first.turned(turn))
    if mode == "aggregate":
        move = max(counts, key=lambda move: (counts[move], -index_of(move, frame)))
        value = sum(known) / len(known) if known else None
    else:
        move, value = first.move, first.outcome
    fixed = sum(first.turned(turn) == as_stored for turn in symmetries(first.size))
    return Row(first, len(group), move, value, tuple(images), counts, outcomes, fixed)


def by_band(found: Iterable[Occurrence]) -> dict[str, int]:
    """Return how many positions of val and test lie in each band of plies."""
    counts = dict.fromkeys(BANDS, 0)
    for one in found:
        if one.part != "train":
            counts[next(name for name, band in BANDS.items() if one.ply in band)] += 1
    return counts


def expected(groups: Iterable[list[Occurrence]], mode: str, overlap: str, frame: Size) -> Expected:
    """Return what becomes of all positions; ``groups`` as ``same_positions`` returns them."""
    rows: dict[Place, Row] = {}
    everything, outside = [], []
    merged = 0
    for group in groups:
        everything += group
        parts = [part for part in PARTS if any(one.part == part for one in group)]
        for part in parts:
            inside = [one for one in group if one.part == part]
            if overlap == "drop" and part != parts[0]:
                outside += inside
                continue
            kept = [[one] for one in inside] if mode == "off" else [inside]
            merged += len(inside) - len(kept)
            rows |= {(same[0].game, same[0].ply): merged_row(same, mode, frame) for same in kept}
    return Expected(rows, merged, len(outside), by_band(everything), by_band(outside))


def policy_of(row: Row, frame: Size, turn: int) -> dict[int, int]:
    """Return the counts of a row's moves by frame index, turned by a symmetry, in rising order."""
    turned = {index_of(image(move, row.first.size, turn), frame): count for move, count in row.policy.items()}
    return dict(sorted(turned.items()))


def same_number(stored: Any, number: float | None) -> bool:
    """Compare a stored float32 with a number; NaN stands for what is not known."""
    return bool(np.isnan(stored)) if number is None else bool(stored == np.float32(number))
