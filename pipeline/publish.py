"""The last step of a build: the game table, the data card and, last of all, the manifest."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline import manifest as manifests
from pipeline.card import data_card
from pipeline.columns import Layout
from pipeline.config import Config
from pipeline.decide import rows_filled_in
from pipeline.dedup import PARTS
from pipeline.files import sha256_of_file, whole_file, write_whole
from pipeline.growth import Growth, Listed, growth_entry, input_fingerprint
from pipeline.manifest import GrowthEntry, Manifest
from pipeline.pieces import read_records, whole_table
from pipeline.positionstages import Blocks
from pipeline.read import omitted_of
from pipeline.reasons import Status
from pipeline.rows import ROWS_OF_GAME
from pipeline.schemes import Scheme
from pipeline.sources import InputFile, Omitted
from pipeline.table import SCHEMA, tally
from pipeline.workfolder import WorkFolder

_ROW_GROUP = 4_096  # records of games.parquet
MAX_OMITTED = 512 * 10**6  # bytes of the list of members that are not read


class BuildError(RuntimeError):
    """A build that cannot be finished; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be built, from what, and where; ``fingerprint`` is that of the configuration.

    ``inputs``: what is recorded of all inputs of the data set, of which ``files`` are read now; ``with_records``:
    members with records that were read before, for the data set which is built again or grows (else 0); ``growth``: of
    a data set that is there (None: it is the first build).
    """

    config: Config
    fingerprint: str
    scheme: Scheme
    layout: Layout
    folder: WorkFolder
    files: Sequence[InputFile]
    inputs: Listed
    omitted: Sequence[Omitted]
    with_records: int = 0
    growth: Growth | None = None

    @property
    def growth_number(self) -> int:
        """Return the number of this build in the life of its data set, 0 for the first."""
        return self.growth.number if self.growth else 0


@dataclass(frozen=True, slots=True)
class Totals:
    """What the stages report: of each read task, the plies of all kept games, and of each shard."""

    reports: Sequence[dict[str, Any]]
    plies: int
    shards: Sequence[dict[str, Any]]


@dataclass(slots=True)
class _Tally:
    """What is counted of the game table while it is written."""

    records: int = 0
    status: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    flags: Counter[str] = field(default_factory=Counter)

    def add(self, table: pa.Table) -> None:
        self.records += table.num_rows
        for counter, name in ((self.status, "status"), (self.reasons, "reason"), (self.flags, "flags")):
            counter.update(tally(table.column(name)))


def publish(job: Job, tables: Sequence[str], blocks: Blocks, totals: Totals) -> Manifest:
    """Write ``games.parquet`` from its ranges ``tables``, ``README.md`` and ``dataset.json``; return the manifest.

    Raises BuildError, before the manifest is written, if a sum is wrong.
    """
    path = job.folder.path
    job.folder.clear_leftovers()  # of workers that were killed on the way
    counted = _Tally()
    with whole_file(path / manifests.GAMES) as temporary:
        _write_table(temporary, _ranges(tables, blocks, counted, job.growth_number))
    manifest = _manifest(job, counted, blocks, totals)
    faults = manifests.sum_faults(manifest)
    if totals.plies != blocks.seen:
        faults.append(f"positions seen = plies of kept games: {blocks.seen} is not {totals.plies}")
    if faults:
        raise BuildError("the sums do not add up, nothing was published:\n" + "\n".join(faults))
    write_whole(path / "README.md", data_card(manifest).encode())
    manifests.write_manifest(path, manifest)
    return manifest


def _ranges(tables: Sequence[str], blocks: Blocks, counted: _Tally, growth: int) -> Iterator[pa.Table]:
    """Yield the game table range by range, the rows of each game filled in."""
    for number, path in enumerate(tables):
        table = rows_filled_in(whole_table(path), read_records(blocks.counts, number, ROWS_OF_GAME), growth)
        counted.add(table)
        yield table


def _write_table(path: Path, ranges: Iterable[pa.Table]) -> None:
    """Write the game table in row groups of one size, wherever its ranges were cut."""
    waiting = SCHEMA.empty_table()
    with pq.ParquetWriter(path, SCHEMA, compression="zstd") as writer:
        for table in ranges:
            waiting = pa.concat_tables([waiting, table])
            while waiting.num_rows >= _ROW_GROUP:
                writer.write_table(waiting.slice(0, _ROW_GROUP).combine_chunks(), row_group_size=_ROW_GROUP)
                waiting = waiting.slice(_ROW_GROUP)
        writer.write_table(waiting.combine_chunks(), row_group_size=_ROW_GROUP)


def require_listable(job: Job, reports: Sequence[dict[str, Any]]) -> None:
    """Raise BuildError where ``dataset.json``, which lists every member that is not read, would be too large."""
    omitted = omitted_of(job.omitted, reports)
    size = sum(len(json.dumps(item, ensure_ascii=False).encode()) for item in omitted)
    if size > MAX_OMITTED:
        raise BuildError(
            f"{len(omitted):,} members are not read, and dataset.json, which lists them, would have more than "
            f"{MAX_OMITTED:,} bytes: build from fewer archives at once"
        )


def _manifest(job: Job, counted: _Tally, blocks: Blocks, totals: Totals) -> Manifest:
    omitted = omitted_of(job.omitted, totals.reports)
    skipped = sum(item["status"] == "skipped" for item in omitted)
    with_records = job.with_records + sum(report["with_records"] for report in totals.reports)
    games = job.folder.path / manifests.GAMES
    shards = _all_shards(job, totals.shards)
    return Manifest.model_validate(
        {
            "scheme": {
                "name": job.scheme.name,
                "version": job.scheme.version,
                "options": dict(job.scheme.options),
                "planes": job.scheme.plane_names,
                "globals": job.scheme.global_names,
            },
            "frame": job.config.frame,
            "storage": manifests.storage_of(job.layout).model_dump(),
            "config": job.config.published(),
            "fingerprints": {"config": job.fingerprint, "inputs": input_fingerprint(job.inputs)},
            "inputs": tuple(job.inputs),
            "members": {
                "seen": with_records + len(omitted),
                "with_records": with_records,
                "skipped": skipped,
                "refused": len(omitted) - skipped,
            },
            "omitted": tuple(omitted),
            "records": {"seen": counted.records} | {item.value: counted.status[item.value] for item in Status},
            "reasons": dict(counted.reasons),
            "flags": dict(counted.flags),
            "positions": _all_positions(job, blocks),
            "rows": {part: sum(item["rows"] for item in shards if item["split"] == part) for part in PARTS},
            "shards": tuple(shards),
            "games": {"path": manifests.GAMES, "bytes": games.stat().st_size, "sha256": sha256_of_file(games)},
            "growths": _all_growths(job, counted, blocks),
        }
    )


def _all_positions(job: Job, blocks: Blocks) -> dict[str, Any]:
    """Return the numbers of positions, those that were there before included."""
    positions: dict[str, Any] = {"seen": blocks.seen, "sampled_out": blocks.sampled_out}
    positions |= {name: blocks.total(name) for name in ("stored", "merged", "overlap")}
    positions |= {name: blocks.by_band(name) for name in ("held_out_by_ply", "overlap_by_ply")}
    if job.growth is None:
        return positions
    for name, before in job.growth.before.positions.model_dump().items():
        if isinstance(before, dict):
            positions[name] = {band: before.get(band, 0) + count for band, count in positions[name].items()}
        else:
            positions[name] += before
    return positions


def _all_shards(job: Job, shards: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return all shards in the order of their paths, those that were there before included."""
    before = [entry.model_dump() for entry in job.growth.before.shards] if job.growth is not None else []
    return sorted(
        [*before, *shards], key=lambda shard: (PARTS.index(shard["split"]), len(shard["path"]), shard["path"])
    )


def _all_growths(job: Job, counted: _Tally, blocks: Blocks) -> tuple[GrowthEntry, ...]:
    if job.growth is None:
        return ()
    positions = {"seen": blocks.seen, "stored": blocks.total("stored"), "left_out": blocks.total("left_out")}
    kept = counted.status[Status.KEPT.value]
    entry = growth_entry(job.growth, len(job.files), counted.records, kept, positions | {"stale": blocks.stale})
    return (*job.growth.before.growths, entry)
