"""The last step of a build: the game table, the data card and, last of all, the manifest."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline import manifest as manifests
from pipeline.card import data_card
from pipeline.columns import Layout
from pipeline.config import Config
from pipeline.decide import published_table
from pipeline.dedup import PARTS
from pipeline.files import sha256_of_file, whole_file, write_whole
from pipeline.manifest import Manifest
from pipeline.read import omitted_of
from pipeline.reasons import Status
from pipeline.rows import Decided
from pipeline.schemes import Scheme
from pipeline.sources import InputFile, Omitted
from pipeline.table import tally
from pipeline.workfolder import WorkFolder, input_fingerprint, input_list

MAX_OMITTED = 512 * 10**6  # bytes of the list of members that are not read


class BuildError(RuntimeError):
    """A build that cannot be finished; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be built, from what, and where; ``fingerprint`` is that of the configuration.

    ``with_records``: members with records that were read for the data set which is built again (else 0).
    """

    config: Config
    fingerprint: str
    scheme: Scheme
    layout: Layout
    folder: WorkFolder
    files: Sequence[InputFile]
    omitted: Sequence[Omitted]
    with_records: int = 0


@dataclass(frozen=True, slots=True)
class Totals:
    """What the stages report: of each read task, of all positions, and of each shard."""

    reports: Sequence[dict[str, Any]]
    seen: int
    sampled_out: int
    decided: Decided
    shards: Sequence[dict[str, Any]]


def publish(job: Job, table: pa.Table, totals: Totals) -> Manifest:
    """Write ``games.parquet``, ``README.md`` and ``dataset.json``; return the manifest.

    Raises BuildError, before the manifest is written, if a sum is wrong.
    """
    path = job.folder.path
    job.folder.clear_leftovers()  # of workers that were killed on the way
    with whole_file(path / manifests.GAMES) as temporary:
        pq.write_table(published_table(table, totals.decided.rows_of_game), temporary, compression="zstd")
    manifest = _manifest(job, table, totals)
    faults = manifests.sum_faults(manifest)
    kept = pc.equal(table.column("status"), Status.KEPT.value)
    plies = pc.sum(table.column("plies").filter(kept)).as_py() or 0
    if plies != manifest.positions.seen:
        faults.append(f"positions seen = plies of kept games: {manifest.positions.seen} is not {plies}")
    if faults:
        raise BuildError("the sums do not add up, nothing was published:\n" + "\n".join(faults))
    write_whole(path / "README.md", data_card(manifest).encode())
    manifests.write_manifest(path, manifest)
    return manifest


def require_listable(job: Job, reports: Sequence[dict[str, Any]]) -> None:
    """Raise BuildError where ``dataset.json``, which lists every member that is not read, would be too large."""
    omitted = omitted_of(job.omitted, reports)
    size = sum(len(json.dumps(item, ensure_ascii=False).encode()) for item in omitted)
    if size > MAX_OMITTED:
        raise BuildError(
            f"{len(omitted):,} members are not read, and dataset.json, which lists them, would have more than "
            f"{MAX_OMITTED:,} bytes: build from fewer archives at once"
        )


def _manifest(job: Job, table: pa.Table, totals: Totals) -> Manifest:
    inputs = input_list(job.files)
    omitted = omitted_of(job.omitted, totals.reports)
    skipped = sum(item["status"] == "skipped" for item in omitted)
    with_records = job.with_records + sum(report["with_records"] for report in totals.reports)
    status = tally(table.column("status"))
    decided, games = totals.decided, job.folder.path / manifests.GAMES
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
            "fingerprints": {"config": job.fingerprint, "inputs": input_fingerprint(inputs)},
            "inputs": tuple(inputs),
            "members": {
                "seen": with_records + len(omitted),
                "with_records": with_records,
                "skipped": skipped,
                "refused": len(omitted) - skipped,
            },
            "omitted": tuple(omitted),
            "records": {"seen": table.num_rows} | {item.value: status[item.value] for item in Status},
            "reasons": dict(tally(table.column("reason"))),
            "flags": dict(tally(table.column("flags"))),
            "positions": {
                "seen": totals.seen,
                "stored": decided.stored,
                "merged": decided.merged,
                "overlap": decided.overlap,
                "sampled_out": totals.sampled_out,
                "held_out_by_ply": decided.held_out,
                "overlap_by_ply": decided.left_out,
            },
            "rows": {part: sum(item["rows"] for item in totals.shards if item["split"] == part) for part in PARTS},
            "shards": tuple(totals.shards),
            "games": {"path": manifests.GAMES, "bytes": games.stat().st_size, "sha256": sha256_of_file(games)},
        }
    )
