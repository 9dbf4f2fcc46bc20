"""The stages of a build run one by one on made-up games, everything they leave behind in one place."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from random_games import Line, random_line, turned

from pipeline import claims, ordering
from pipeline.blocks import EncodeTask, ShardPlan, encode_block
from pipeline.build import check_config
from pipeline.columns import Columns, Layout
from pipeline.config import Config, make_config
from pipeline.decide import rows_filled_in
from pipeline.dedup import PARTS
from pipeline.gamestages import DecidedGames, decided_games
from pipeline.pieces import read_records, whole_table
from pipeline.positionstages import Blocks, decided_positions
from pipeline.read import ReadTask, read_unit
from pipeline.rows import ROWS_OF_GAME, shard_plans
from pipeline.shard import check, read
from pipeline.sources import find_inputs, units
from pipeline.steps import Step, do_all
from pipeline.table import PART_SCHEMA

LETTERS = "abcdefghijklmnopqrstuvwxy"
# The random games are legal under these rules.
RULES = {"force": {"ko": "simple", "suicide": True}}


def sgf_of(line: Line, **headers: str) -> str:
    """Return a game as SGF, setup stones in the root or in nodes of their own."""

    def value(point: tuple[int, int] | None) -> str:
        return "" if point is None else LETTERS[point[1]] + LETTERS[point[0]]

    def setup(ply: int) -> str:
        values = {paint: [p for when, p, to in line.setup if when == ply and to == paint] for paint in (0, 1, 2)}
        names = ((1, "AB"), (2, "AW"), (0, "AE"))
        return "".join(name + "".join(f"[{value(p)}]" for p in values[paint]) for paint, name in names if values[paint])

    head = "".join(f"{name}[{text}]" for name, text in headers.items())
    nodes = [f"GM[1]SZ[{line.cols}:{line.rows}]{head}{setup(0)}"]
    for ply, (point, colour) in enumerate(line.moves):
        if ply > 0 and setup(ply):
            nodes.append(setup(ply))
        nodes.append(f"{' BW'[colour]}[{value(point)}]")
    return "(;" + ";".join(nodes) + ")"


def write_games(folder: Path, games: dict[str, str]) -> Path:
    """Write records as files of a new folder."""
    folder.mkdir()
    for name, text in games.items():
        (folder / name).write_text(text)
    return folder


RESULTS = ("B+2.5", "W+R", "0", "?", "W+7.5", "B+F", "Void", "B+T")
KOMIS = ("6.5", "0", "", "7.5")


def made_up_games(seed: str, sizes: Sequence[tuple[int, int]], count: int, length: int = 12) -> dict[str, str]:
    """Return records of random games with results and komis of every kind.

    Of ten, one is the turned image of the one before it, with another result, and one is cut short.
    """
    rng = Random(seed)
    games = {}
    line = random_line(rng, *sizes[0], length)
    for number in range(count):
        if number % 10 == 9:
            line = turned(line, 3)
        elif number % 10 == 6:
            line = replace(line, moves=line.moves[:-2])
        else:
            line = random_line(rng, *sizes[number % len(sizes)], length - number % 3, 0.1)
        headers = {"RE": RESULTS[number % len(RESULTS)], "KM": KOMIS[number % len(KOMIS)], "GN": str(number)}
        games[f"{number:03d}.sgf"] = sgf_of(line, **headers)
    return games


@dataclass(frozen=True, slots=True)
class Staged:
    """What each stage made of the inputs."""

    config: Config
    layout: Layout
    games: DecidedGames
    found: Blocks
    plans: list[tuple[ShardPlan, ...]]
    tasks: list[EncodeTask]
    reports: list[dict[str, Any]]
    output: Path

    @property
    def table(self) -> pa.Table:
        """Return the game table as it is published."""
        return pa.concat_tables(
            rows_filled_in(whole_table(path), read_records(self.found.counts, number, ROWS_OF_GAME), 0)
            for number, path in enumerate(self.games.tables)
        )

    @property
    def blocks(self) -> list[pa.Table]:
        """Return the games of every block."""
        return [whole_table(path) for path in self.found.games]

    @property
    def shards(self) -> list[dict[str, Any]]:
        """Return the reports of all shards in the order they were written."""
        return [shard for report in self.reports for shard in report["shards"]]

    def rows(self, shard: dict[str, Any]) -> Columns:
        """Return all rows of a shard, checked."""
        path = self.output / shard["path"]
        assert check(path, self.layout) == shard["rows"]
        batches = list(read(path, self.layout))
        return {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}

    def all_rows(self) -> Columns:
        """Return the rows of all shards, and the part of each as ``split``."""
        pieces = [self.rows(shard) for shard in self.shards]
        joined: Columns = {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}
        joined["split"] = np.repeat([shard["split"] for shard in self.shards], [shard["rows"] for shard in self.shards])
        return joined


def read_parts(config: Config, folder: Path, size: int = 7) -> tuple[list[str], list[dict[str, Any]]]:
    """Read the inputs, ``size`` files a part; return the parts and their reports."""
    files, _ = find_inputs(config.input)
    made = units(files, config.input, size=size)
    parts = [str(folder / f"part-{number:06d}") for number in range(len(made))]
    return parts, [read_unit(ReadTask(unit, config, part)) for unit, part in zip(made, parts, strict=True)]


def read_part(part: str, report: dict[str, Any]) -> pa.Table:
    """Return the rows of a part."""
    tables = [whole_table(part, number) for number in range(len(report["groups"]))]
    assert [table.num_rows for table in tables] == [rows for rows, _ in report["groups"]]
    return pa.concat_tables([PART_SCHEMA.empty_table(), *tables])


def run_all(_stage: str, steps: Sequence[Step], memory: int) -> list[dict[str, Any]]:
    """Do the steps of any stage in this process."""
    return do_all(steps, memory)


@contextmanager
def small_pieces() -> Iterator[None]:
    """Make ranges of a few records, and buckets of a few records and positions, for a build in this process."""
    decided: list[DecidedGames] = []

    def noted(*arguments: Any) -> DecidedGames:
        decided.append(decided_games(*arguments))
        return decided[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pipeline.read._RECORDS_AT_ONCE", 4)
        patch.setattr(ordering, "RANGE_RECORDS", 8)
        patch.setattr(ordering, "_ROUTED_RECORDS", 16)
        patch.setattr(ordering, "_BUCKET_RECORDS", 10)
        patch.setattr(claims, "_BUCKET_POSITIONS", 100)
        patch.setattr("pipeline.stages.decided_games", noted)
        yield
        (games,) = decided
        assert min(len(games.tables), games.blocks, claims.bucket_count(games.plies)) > 5


@np.errstate(over="ignore")  # uint64 wraps where kernels run as plain Python; fixtures come before conftest's
def run_stages(folder: Path, games: dict[str, str], **tables: dict[str, Any]) -> Staged:
    """Read, decide, index, decide and encode the games under ``folder``."""
    folder.mkdir(exist_ok=True)
    inputs = write_games(folder / "in", games)
    config = make_config({"rules": RULES, **tables, "input": {"paths": [str(inputs)]}}, "test")
    _scheme, layout = check_config(config)
    work, output = folder / "work", folder / "out"
    for path in (work, *(output / split for split in PARTS)):
        path.mkdir(parents=True, exist_ok=True)
    parts, reports = read_parts(config, work)
    decided = decided_games(parts, reports, config, work, 0, do_all)
    found = decided_positions(decided, config, layout, work, [], run_all)
    images = [report["images"] for report in found.reports]
    plans = shard_plans(images, [0] * len(PARTS), config.output.rows_per_shard)
    tasks = [
        EncodeTask(block, row, str(output), f"{row}.shards.json", plan, config, layout)
        for block, row, plan in zip(found.games, found.rows, plans, strict=True)
    ]
    return Staged(config, layout, decided, found, plans, tasks, [encode_block(task) for task in tasks], output)
