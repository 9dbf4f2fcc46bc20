"""From the kept games to the rows of each block, step by step; see ``claims`` and ``rows``.

What any number of positions is routed through lies in files; a task holds one block, or one bucket of keys.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pipeline.claims import HeldTask, IndexTask, MatchTask, bucket_count, hold_shard, index_block, match_claims
from pipeline.columns import Layout
from pipeline.config import Config
from pipeline.gamestages import DecidedGames
from pipeline.rows import BAND_NAMES, KeepTask, ShareTask, keep_rows, share_labels
from pipeline.steps import Step, each, numbered

_BUCKET_BYTES = 250 * 10**6
_POSITION_BYTES = 500  # of one in a block that is keyed or settled, at the peak


@dataclass(frozen=True, slots=True)
class Blocks:
    """What was decided about the positions of all blocks: the files of their ``games``, their ``rows`` and the number
    of rows of each game; the reports of ``rows.keep_rows``; how many positions were ``seen`` and ``sampled_out``; and
    how many rows that were there already are ``stale``."""

    games: tuple[str, ...]
    rows: tuple[str, ...]
    counts: tuple[str, ...]
    reports: list[dict[str, Any]]
    seen: int
    sampled_out: int
    stale: int

    def total(self, name: str) -> int:
        """Return a count of the reports, all blocks together."""
        return sum(report[name] for report in self.reports)

    def by_band(self, name: str) -> dict[str, int]:
        """Return a count by band of plies, all blocks together."""
        return {band: sum(report[name][band] for report in self.reports) for band in BAND_NAMES}


def decided_positions(
    games: DecidedGames,
    config: Config,
    layout: Layout,
    folder: Path,
    shards: Sequence[tuple[str, int, str]],
    run_named: Callable[[str, Sequence[Step], int], list[dict[str, Any]]],
) -> Blocks:
    """Decide about all positions of the kept games; files go into ``folder``. ``shards``: (path, part,
    sha256) of those that are there already; ``run_named`` runs the steps of the stage it is told."""
    names = partial(numbered, folder)
    blocks, buckets = range(games.blocks), range(bucket_count(games.plies))
    memory = _POSITION_BYTES * _most_positions(games)
    tables, positions, claims = (names(kind, len(blocks)) for kind in ("games", "positions", "claims"))
    tasks = (
        IndexTask(number, games.kept, tables[number], positions[number], claims[number], len(buckets), config)
        for number in blocks
    )
    indexed = run_named("index", each(index_block, tasks, tables, positions, claims), memory)
    run = partial(run_named, "dedup")
    held, answers = names("held", len(shards)), names("answers", len(buckets))
    holding = (HeldTask(*entry, out, len(buckets), layout) for entry, out in zip(shards, held, strict=True))
    run(each(hold_shard, holding, held), _BUCKET_BYTES)
    matching = (MatchTask(number, claims, held, answers[number], config) for number in buckets)
    matched = run(each(match_claims, matching, answers), _BUCKET_BYTES)
    shares, rows, counts = (names(kind, len(blocks)) for kind in ("shares", "rows", "counts"))
    sharing = (
        ShareTask(number, tables[number], positions[number], answers, shares[number], len(blocks), config)
        for number in blocks
    )
    run(each(share_labels, sharing, shares), memory)
    keeping = (
        KeepTask(
            number, tables[number], positions[number], answers, shares, rows[number], counts[number],
            len(games.tables), config,
        )
        for number in blocks
    )  # fmt: skip
    reports = run(each(keep_rows, keeping, counts, rows), memory)
    seen, sampled_out = (sum(report[name] for report in indexed) for name in ("seen", "sampled_out"))
    return Blocks(tables, rows, counts, reports, seen, sampled_out, sum(report["stale"] for report in matched))


def _most_positions(games: DecidedGames) -> int:
    """Return about how many positions the largest block has: blocks are drawn, so some are larger than others."""
    return games.plies // max(1, games.blocks) * 5 // 4
