"""The stages of a build run one by one on made-up games, everything they leave behind in one place."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
from random_games import Line, random_line, turned

from pipeline.blocks import EncodeTask, IndexTask, encode_block, index_block, read_arrow
from pipeline.build import check_config
from pipeline.columns import Columns, Layout
from pipeline.config import Config, make_config
from pipeline.decide import decide_games, published_table, whole_table, write_blocks
from pipeline.read import ReadTask, read_unit
from pipeline.rows import Decided, decide_positions
from pipeline.shard import check, read
from pipeline.sources import find_inputs, units

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
    table: pa.Table  # as published
    blocks: list[pa.Table]
    keys: list[pa.Table]
    indexed: list[dict[str, int]]
    decided: Decided
    reports: list[dict[str, Any]]
    output: Path

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


@np.errstate(over="ignore")  # uint64 wraps where kernels run as plain Python; fixtures come before conftest's
def run_stages(folder: Path, games: dict[str, str], **tables: dict[str, Any]) -> Staged:
    """Read, decide, index, decide and encode the games under ``folder``."""
    folder.mkdir(exist_ok=True)
    inputs = write_games(folder / "in", games)
    config = make_config({"rules": RULES, **tables, "input": {"paths": [str(inputs)]}}, "test")
    _scheme, layout = check_config(config)
    parts = [str(folder / f"part-{number}") for number in range(100)]
    files, _ = find_inputs(config.input)
    tasks = [
        ReadTask(unit, config, part) for unit, part in zip(units(files, config.input, size=7), parts, strict=False)
    ]
    for task in tasks:
        read_unit(task)
    table = decide_games(whole_table([task.part for task in tasks]), config)
    blocks = write_blocks(table, config, folder)
    keys = [path.replace("games-", "keys-") for path in blocks]
    rows = [path.replace("games-", "rows-") for path in blocks]
    indexed = [index_block(IndexTask(path, key, config)) for path, key in zip(blocks, keys, strict=True)]
    decided = decide_positions(blocks, keys, rows, config)
    output = folder / "out"
    for split in ("train", "val", "test"):
        (output / split).mkdir(parents=True, exist_ok=True)
    reports = [
        encode_block(EncodeTask(block, row, str(output), f"{row}.json", plans, config, layout))
        for block, row, plans in zip(blocks, rows, decided.plans, strict=True)
    ]
    return Staged(
        config,
        layout,
        published_table(table, decided.rows_of_game),
        [read_arrow(path) for path in blocks],
        [read_arrow(path) for path in keys],
        indexed,
        decided,
        reports,
        output,
    )
