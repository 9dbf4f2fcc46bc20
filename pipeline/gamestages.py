"""From the parts of the game table to its published ranges and the kept games of each block, step by step.

Each step is a set of pure tasks over buckets or ranges; see ``ordering``, ``compare`` and ``decide``.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any

from pipeline.compare import AlikeTask, CompareTask, NearTask, compare_bucket, find_alike, find_near
from pipeline.config import Config
from pipeline.decide import DecideTask, NameTask, decide_range, name_range
from pipeline.ordering import OrderTask, RouteTask, bucket_count, cuts_of, grouped, order_range, route_part
from pipeline.steps import Step, each, numbered

# Runs the steps of one kind and returns their reports in order; the number is the memory that one of them takes.
Run = Callable[[Sequence[Step], int], list[dict[str, Any]]]

_RANGE_BYTES = 200 * 10**6
_NEAR_BYTES = 250  # of one game that opens like another one, or meets one at a mark


@dataclass(frozen=True, slots=True)
class DecidedGames:
    """The game table decided about: the file of each range as it is published, that of its kept games by block, and how
    many new games are kept, in how many ``blocks``, with how many ``plies``."""

    tables: tuple[str, ...]
    kept: tuple[str, ...]
    blocks: int
    games: int
    plies: int


def decided_games(
    parts: Sequence[str], reports: Sequence[dict[str, Any]], config: Config, folder: Path, growth: int, run: Run
) -> DecidedGames:
    """Decide about all records of the parts, which ``reports`` describe; files go into ``folder``."""
    names = partial(numbered, folder)
    cuts = cuts_of([sample for report in reports for sample in report["samples"]])
    groups = grouped(parts, [report["groups"] for report in reports])
    ranges, buckets = range(len(cuts) + 1), range(bucket_count(sum(report["records"] for report in reports)))
    routed = names("routed", len(groups))
    run(each(route_part, map(RouteTask, groups, repeat(cuts), routed), routed), _RANGE_BYTES)
    tables, facts, ids = (names(kind, len(ranges)) for kind in ("range", "facts", "ids"))
    tasks = (OrderTask(number, routed, tables[number], facts[number], len(buckets), growth) for number in ranges)
    ordered = run(each(order_range, tasks, tables, facts), _RANGE_BYTES)
    compared = names("compared", len(buckets))
    compare = (
        CompareTask(number, facts, compared[number], len(ranges), len(buckets), config.dedup.games)
        for number in buckets
    )
    repeats = run(each(compare_bucket, compare, compared), _RANGE_BYTES)
    near, nearly = (
        _near(compared, tables, names("alike", len(buckets)), folder, run) if config.dedup.games else (None, 0)
    )
    run(each(name_range, (NameTask(n, tables[n], compared, ids[n], growth) for n in ranges), ids), _RANGE_BYTES)
    candidates, dropped = (
        sum(report[name] for report in found) for found, name in ((ordered, "candidates"), (repeats, "dropped"))
    )
    dropped += nearly if config.dedup.near == "drop" else 0
    blocks = -(-(candidates - dropped) // config.output.games_per_block)
    decided, kept = names("decided", len(ranges)), names("kept", len(ranges))
    decide = (
        DecideTask(number, tables, ids, compared, near, decided[number], kept[number], blocks, growth, config)
        for number in ranges
    )
    outcomes = run(each(decide_range, decide, decided, kept), _RANGE_BYTES)
    games, plies = (sum(report[name] for report in outcomes) for name in ("kept", "plies"))
    return DecidedGames(decided, kept, blocks, games, plies)


def _near(
    compared: tuple[str, ...], tables: tuple[str, ...], alike: tuple[str, ...], folder: Path, run: Run
) -> tuple[str, int]:
    """Return the file of games that are nearly the same as others, and how many they are."""
    tasks = (AlikeTask(number, compared, out, len(tables), len(alike)) for number, out in enumerate(alike))
    found = run(each(find_alike, tasks, alike), _RANGE_BYTES)
    out = str(folder / "near")
    memory = _RANGE_BYTES + _NEAR_BYTES * sum(report["games"] for report in found)
    (report,) = run([Step(find_near, NearTask(alike, tables, out), (out,))], memory)
    return out, report["games"]
