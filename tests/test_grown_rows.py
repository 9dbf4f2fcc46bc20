"""Data sets that grow twice: every row and every count against dictionaries, and compact against one build."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from example_builds import published_files
from repeated_games import FRAME, SIZES_ASKED_FOR, made_up_lines
from slow_dedup import PARTS, Occurrence, Row, index_of, merged_row, occurrences, policy_of, same_number, same_positions
from stages import KOMIS, RESULTS, RULES, sgf_of

from pipeline import shard
from pipeline.build import Built, build
from pipeline.compact import compact
from pipeline.config import Run, make_config
from pipeline.load import open_dataset
from pipeline.verify import verify

WEEKS = 3


def tables(positions: str, overlap: str, augment: str, key_bits: int) -> dict[str, Any]:
    """Return the tables of a configuration, inputs and output apart."""
    return {
        "rules": RULES,
        "filter": {"sizes": SIZES_ASKED_FOR},
        "dedup": {"positions": positions, "key_bits": key_bits},
        "split": {"val": 0.25, "test": 0.25, "plies": 4, "overlap": overlap},
        "encode": {"scheme": "board"},
        "augment": {"mode": augment},
        "output": {"rows_per_shard": 60, "games_per_block": 9},
        "run": {"workers": 0},
    }


def write_weeks(folder: Path) -> list[str]:
    """Write the same games as other tests, one file a week; return the files' contents."""
    folder.mkdir()
    records = [
        sgf_of(line, RE=RESULTS[number % len(RESULTS)], KM=KOMIS[number % len(KOMIS)], GN=str(number))
        for number, line in enumerate(made_up_lines("grown"))
    ]
    # Of every week some records are there once more a week later.
    return ["".join(records[week::WEEKS] + records[week + 1 : 9 : WEEKS]) for week in range(WEEKS)]


@dataclass(frozen=True, slots=True)
class Grown:
    """The rows by place; and for each growth the positions left out, and the older rows that are stale."""

    rows: dict[tuple[int, int], Row]
    left_out: dict[int, int]
    stale: dict[int, int]
    overlap: int


def by_definition(groups: Iterable[list[Occurrence]], growth_of: dict[int, int], mode: str, overlap: str) -> Grown:
    """Work out what is stored: the part that holds a position keeps it, and its row counts what came with it."""
    found = Grown({}, defaultdict(int), defaultdict(int), 0)
    overlapping = 0
    for group in groups:
        first = min(growth_of[one.game] for one in group)
        owner = min(PARTS.index(one.part) for one in group if growth_of[one.game] == first)
        for part in PARTS:
            mine = [one for one in group if one.part == part]
            if overlap == "drop" and PARTS.index(part) != owner:
                overlapping += len(mine)
                continue
            if mode == "off":
                found.rows.update({(one.game, one.ply): merged_row([one], mode, FRAME) for one in mine})
                continue
            weeks = sorted({growth_of[one.game] for one in mine})
            for week in weeks[1:]:
                found.left_out[week] += sum(growth_of[one.game] == week for one in mine)
                found.stale[week] += 1
            if weeks:
                there = [one for one in mine if growth_of[one.game] == weeks[0]]
                found.rows[there[0].game, there[0].ply] = merged_row(there, mode, FRAME)
    return Grown(found.rows, found.left_out, found.stale, overlapping)


def check_rows(folder: Path, should: Grown, mode: str, augment: str) -> None:
    """Compare all stored rows with the definition."""
    dataset = open_dataset(folder)
    images: dict[tuple[int, int], list[int]] = defaultdict(list)
    for entry in dataset.manifest.shards:
        for batch in shard.read(folder / entry.path, dataset.manifest.layout):
            for number in range(shard.count(batch)):
                place = int(batch["game"][number]), int(batch["ply"][number])
                here, turn = should.rows[place], int(batch["symmetry"][number])
                images[place].append(turn)
                assert entry.split == here.first.part
                assert batch["weight"][number] == (1 if mode == "off" else here.weight)
                assert same_number(batch["value"][number], here.value)
                if mode == "aggregate":
                    start, stop = batch["policy_offsets"][number : number + 2]
                    moves, counts = (batch[f"policy_{name}"][start:stop].tolist() for name in ("moves", "counts"))
                    assert dict(zip(moves, counts, strict=True)) == policy_of(here, FRAME, turn)
                if turn == 0:
                    assert batch["move"][number] == index_of(here.move, FRAME)
    assert set(images) == set(should.rows)
    if augment == "all":
        assert {place: tuple(sorted(turns)) for place, turns in images.items()} == {
            place: row.images for place, row in should.rows.items()
        }


def built_of(inputs: Path, output: Path, settings: dict[str, Any]) -> Built:
    """Build with other inputs and another output."""
    whole = {**settings, "input": {"paths": [str(inputs)]}}
    whole["output"] = {**settings["output"], "path": str(output)}
    return build(make_config(whole, "test"))


WAYS = list(product(("aggregate", "first", "off"), ("drop", "keep"), ("none", "all"), (64, 128)))


@pytest.mark.parametrize(("positions", "overlap", "augment", "key_bits"), WAYS[::5] + WAYS[3:12:8])
def test_every_row_of_a_grown_data_set(
    tmp_path: Path, positions: str, overlap: str, augment: str, key_bits: int
) -> None:
    settings = tables(positions, overlap, augment, key_bits)
    inputs, output = tmp_path / "in", tmp_path / "out"
    before: dict[int, dict[str, Any]] = {}
    shards: dict[str, bytes] = {}
    for week, text in enumerate(write_weeks(inputs)):
        (inputs / f"week-{week}.sgf").write_text(text)
        manifest = built_of(inputs, output, settings).manifest
        rows = {row["game"]: row for row in pq.read_table(output / "games.parquet").to_pylist()}
        assert {game: rows[game] for game in before} == before
        assert {row["growth"] for row in rows.values()} == set(range(week + 1))
        now = {name: data for name, data in published_files(output).items() if "/" in name}
        assert {name: now[name] for name in shards} == shards
        growth_of = {game: row["growth"] for game, row in rows.items()}
        groups = same_positions(occurrences(rows.values(), 0))
        for group in groups:
            group.sort(key=lambda one: (growth_of[one.game], one.game, one.ply))
        should = by_definition(groups, growth_of, positions, overlap)
        check_rows(output, should, positions, augment)
        assert len(manifest.growths) == week
        for number, entry in enumerate(manifest.growths, start=1):
            assert (entry.left_out, entry.stale) == (should.left_out[number], should.stale[number])
            assert entry.records == sum(growth == number for growth in growth_of.values())
        assert manifest.positions.overlap == should.overlap
        assert {check.name: check.faults for check in verify(output) if check.faults} == {}
        before, shards = rows, now
    if positions != "off":
        assert sum(entry.left_out for entry in manifest.growths) > 20
    compact(output, run=Run(workers=0))
    built_of(inputs, tmp_path / "once", settings)
    assert published_files(output) == published_files(tmp_path / "once")
