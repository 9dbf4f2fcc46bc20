"""The stages of a build in their order: read, decide, index, dedup, encode, publish.

Each stage is a set of pure tasks whose outputs lie under ``.goplanes/work``. Reading and encoding, which take the
time, are not done again for a task whose output is whole, so that the same command goes on after a kill.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from pipeline.blocks import EncodeTask, IndexTask, encode_block, finished_encoding, index_block
from pipeline.config import Config
from pipeline.decide import decide_games, whole_table, write_blocks
from pipeline.dedup import PARTS
from pipeline.executors import WorkerDied, Workers
from pipeline.manifest import Manifest
from pipeline.progress import Progress
from pipeline.publish import BuildError, Job, Totals, publish, require_listable
from pipeline.read import ReadTask, failed_part, finished_report, read_unit
from pipeline.rows import Decided, decide_positions
from pipeline.sources import Unit, spool, units
from pipeline.stored import spool_table
from pipeline.warm import warm_up

Task = TypeVar("Task")

_LABEL_BYTES = 150  # of a row beside its planes: labels, and its place in the block and in the shuffle
_WORKER_BYTES = 300 * 10**6  # of a worker with its libraries and kernels loaded


class Stages:
    """One build under way, each stage reading what the one before wrote."""

    def __init__(self, job: Job, workers: Workers, progress: Progress) -> None:
        self.job, self.workers, self.progress = job, workers, progress
        self.config, self.folder = job.config, job.folder
        self.done: dict[str, int] = {}  # work of this run by stage: records read, positions keyed, rows encoded

    def run(self) -> Manifest:
        """Run all stages and publish."""
        warm_up(self.progress, self.job.scheme, self.config.augment.mode != "none")
        parts, reports = self._read()
        require_listable(self.job, reports)
        with self.progress.stage("decide", 0, "games"):
            table, games = self._decide(parts)
        seen = self._index(games)
        with self.progress.stage("dedup", 0, "positions"):
            rows = [_beside(path, "rows") for path in games]
            keys = [_beside(path, "keys") for path in games]
            decided = decide_positions(games, keys, rows, self.config)
        shards = self._encode(games, rows, decided)
        with self.progress.stage("publish", 0, "files"):
            manifest = publish(self.job, table, Totals(reports, seen["seen"], seen["sampled_out"], decided, shards))
        self.folder.clear_work()
        return manifest

    def _run_stage(
        self,
        name: str,
        function: Callable[[Task], Any],
        tasks: Sequence[Task],
        finished: Callable[[Task], Any | None],
        weights: Sequence[int],
        unit: str,
        work: Callable[[dict[str, Any]], int],
        task_bytes: int | None = None,
    ) -> list[Any]:
        """Run the tasks that have no whole output yet; return the reports of all, in the order of tasks.

        ``weights``: what each task adds to the progress, in ``unit``; ``work``: the records, positions or
        rows that a report tells of; ``task_bytes``: the memory that one takes, so that no more are under way than
        ``run.memory`` allows (None: too little to count).
        """
        reports = [finished(task) for task in tasks]
        todo = [number for number, report in enumerate(reports) if report is None]
        self.done[name] = 0
        if len(todo) < len(tasks):
            self.progress.line(f"{name}: {len(tasks) - len(todo)} of {len(tasks)} tasks were done before")
        with self.progress.stage(name, sum(weights[number] for number in todo), unit) as advance:
            at_once = None if task_bytes is None else max(1, memory_limit(self.config) // task_bytes)
            for number, report in self.workers.run(function, [tasks[number] for number in todo], at_once):
                reports[todo[number]] = report
                self.done[name] += 0 if isinstance(report, WorkerDied) else work(report)
                advance(weights[todo[number]])
        return reports

    def _decide(self, parts: list[str]) -> tuple[pa.Table, list[str]]:
        """Return the game table and the blocks of kept games. Raises BuildError for more than Arrow can hold."""
        try:
            table = decide_games(whole_table(parts), self.config)
            return table, write_blocks(table, self.config, self.folder.stage("blocks"))
        except (pa.ArrowInvalid, pa.ArrowCapacityError) as error:
            if "overflow" not in str(error):
                raise
            raise BuildError(f"more records than one data set can hold, build from fewer at once: {error}") from error

    def _read(self) -> tuple[list[str], list[dict[str, Any]]]:
        """Read all inputs into parts of the game table; return the parts and their reports."""
        folder = self.folder.stage("read")
        tasks = [
            ReadTask(unit, self.config, str(folder / f"part-{number:06d}"), self.job.scheme.komi)
            for number, unit in enumerate(self._units())
        ]
        reports = self._run_stage(
            "read",
            read_unit,
            tasks,
            lambda task: finished_report(task.part),
            [1] * len(tasks),
            "tasks",
            lambda report: int(report["records"]),
        )
        for number, report in enumerate(reports):
            if isinstance(report, WorkerDied):
                if tasks[number].unit.kind == "table":  # its records are good games: none may be lost
                    _refuse_dead([report], [tasks[number].part])
                reports[number] = failed_part(tasks[number], str(report))
        return [task.part for task in tasks], reports

    def _units(self) -> list[Unit]:
        """Return the units of all inputs; stream archives and game tables are first read into blocks."""
        streams = [file for file in self.job.files if file.kind in ("stream", "table")]
        made = units(self.job.files, self.config.input)
        if streams:
            folder = str(self.folder.stage("spool"))
            with self.progress.stage("unpack", len(streams), "archives") as advance:
                for file in streams:
                    is_table = file.kind == "table"
                    made += spool_table(file, folder) if is_table else spool(file, self.config.input, folder)
                    advance(1)
        return made

    def _index(self, games: list[str]) -> dict[str, int]:
        """Key the positions of every block; return how many were seen and sampled out."""
        tasks = [IndexTask(path, _beside(path, "keys"), self.config) for path in games]
        reports = self._run_stage(
            "index",
            index_block,
            tasks,
            lambda task: None,
            [1] * len(tasks),
            "blocks",
            lambda report: int(report["seen"]),
        )
        _refuse_dead(reports, [task.games for task in tasks])
        return {name: sum(report[name] for report in reports) for name in ("seen", "sampled_out")}

    def _encode(self, games: list[str], rows: list[str], decided: Decided) -> list[dict[str, Any]]:
        """Write the shards of every block; return the reports of all shards, in the order of their paths."""
        for part in PARTS:
            (self.folder.path / part).mkdir(exist_ok=True)
        tasks = [
            EncodeTask(
                game,
                row,
                str(self.folder.path),
                _beside(game, "shards", ".json"),
                plans,
                self.config,
                self.job.layout,
            )
            for game, row, plans in zip(games, rows, decided.plans, strict=True)
        ]
        # A block holds its rows packed, and once more the batch that is being turned and written.
        most_bytes = max(decided.positions, default=0) * (self.job.layout.row_bytes + _LABEL_BYTES) * 5 // 4
        reports = self._run_stage(
            "encode",
            encode_block,
            tasks,
            finished_encoding,
            decided.rows,
            "rows",
            lambda report: sum(shard["rows"] for shard in report["shards"]),
            most_bytes + _WORKER_BYTES,
        )
        _refuse_dead(reports, [task.games for task in tasks])
        shards = [shard for report in reports for shard in report["shards"]]
        return sorted(shards, key=lambda shard: (PARTS.index(shard["split"]), shard["path"]))


def worker_count(config: Config) -> int:
    """Return how many worker processes a build has: ``run.workers``, or one a core."""
    return (os.cpu_count() or 1) if config.run.workers is None else config.run.workers


def memory_limit(config: Config) -> int:
    """Return the bytes a build may use: ``run.memory``, or half of the machine's."""
    if config.run.memory is not None:
        return config.run.memory
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def _beside(games: str, kind: str, suffix: str = ".arrow") -> str:
    """Return the file of another kind that goes with a block's file of games."""
    path = Path(games)
    return str(path.with_name(path.stem.replace("games-", f"{kind}-") + suffix))


def _refuse_dead(reports: Sequence[Any], names: Sequence[str]) -> None:
    for report, name in zip(reports, names, strict=True):
        if isinstance(report, WorkerDied):
            raise BuildError(f"{name}: {report} (out of memory? fewer --workers or output.games_per_block may help)")
