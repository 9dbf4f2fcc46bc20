"""The stages of a build in their order: read, decide, index, dedup, encode, publish.

Each stage is a set of pure tasks whose outputs lie under ``.goplanes/work``. Reading and encoding, which take the
time, are not done again for a task whose output is whole, so that the same command goes on after a kill.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from pipeline import machine
from pipeline.blocks import EncodeTask, encode_block, finished_encoding
from pipeline.config import Config
from pipeline.dedup import PARTS
from pipeline.executors import WorkerDied, Workers
from pipeline.gamestages import DecidedGames, decided_games
from pipeline.manifest import Manifest
from pipeline.mixing import SpreadTask, mix_shard, mix_tasks, spread_block, spread_counts
from pipeline.positionstages import Blocks, decided_positions
from pipeline.progress import Progress
from pipeline.publish import BuildError, Job, Totals, publish, require_listable
from pipeline.read import ReadTask, failed_part, finished_report, hold_unit, read_unit
from pipeline.rows import shard_plans
from pipeline.sources import InputFile, Unit, spool, units
from pipeline.steps import Step, do_step, each, numbered
from pipeline.stored import spool_table
from pipeline.warm import warm_up

Task = TypeVar("Task")

_LABEL_BYTES = 150  # of a row beside its planes: labels, and its place in the block and in the shuffle
_TABLE_BYTES = 200 * 10**6  # of some hundred records of the game table, keyed
_WORKER_BYTES = 200 * 10**6  # of a worker with its libraries and kernels loaded


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
        folder = self.folder.stage("games")
        number = self.job.growth_number
        held, held_reports = self._hold()
        games = decided_games(
            [*held, *parts],
            [*held_reports, *reports],
            self.config,
            folder,
            number,
            partial(self._run_steps, "decide"),
        )
        blocks = self._blocks(games)
        shards = self._encode(blocks)
        with self.progress.stage("publish", 0, "files"):
            manifest = publish(self.job, games.tables, blocks, Totals(reports, games.plies, shards))
        self.folder.clear_finished()
        return manifest

    def _run_steps(self, name: str, steps: Sequence[Step], memory: int) -> list[dict[str, Any]]:
        """Run steps, those that were done before apart, each of which takes ``memory`` bytes."""
        units = [1] * len(steps)
        reports = self._run_stage(name, do_step, steps, lambda step: None, units, "tasks", None, memory)
        _refuse_dead(reports, [step.outputs[-1] for step in steps])
        return reports

    def _blocks(self, games: DecidedGames) -> Blocks:
        """Return what becomes of the positions of all blocks."""
        shards = self.job.growth.shards(self.folder.path) if self.job.growth else []
        work = self.folder.stage("blocks")
        found = decided_positions(games, self.config, self.job.layout, work, shards, self._run_steps)
        self.done["index"] = found.seen
        return found

    def _run_stage(
        self,
        name: str,
        function: Callable[[Task], Any],
        tasks: Sequence[Task],
        finished: Callable[[Task], Any | None],
        weights: Sequence[int],
        unit: str,
        work: Callable[[dict[str, Any]], int] | None,
        task_bytes: int | None = None,
    ) -> list[Any]:
        """Run the tasks that have no whole output yet; return the reports of all, in the order of tasks.

        ``weights``: what each task adds to the progress, in ``unit``; ``work``: the records, positions or
        rows that a report tells of (None: nothing that is told); ``task_bytes``: the memory that one takes, so that no
        more are under way than ``run.memory`` allows (None: too little to count).
        """
        reports = [finished(task) for task in tasks]
        todo = [number for number, report in enumerate(reports) if report is None]
        if work is not None:
            self.done[name] = 0
        if len(todo) < len(tasks):
            self.progress.line(f"{name}: {len(tasks) - len(todo)} of {len(tasks)} tasks were done before")
        with self.progress.stage(name, sum(weights[number] for number in todo), unit) as advance:
            at_once = None if task_bytes is None else self._at_once(name, task_bytes)
            for number, report in self.workers.run(function, [tasks[number] for number in todo], at_once):
                reports[todo[number]] = report
                if work is not None and not isinstance(report, WorkerDied):
                    self.done[name] += work(report)
                advance(weights[todo[number]])
        return reports

    def _at_once(self, name: str, task_bytes: int) -> int:
        """Return how many tasks of so many bytes may be under way. Raises BuildError where not even one may."""
        count = worker_count(self.config)
        limit = memory_limit(self.config)
        most = (limit - (1 + count) * _WORKER_BYTES) // max(1, task_bytes)
        if most < 1:
            needed = (1 + count) * _WORKER_BYTES + task_bytes
            raise BuildError(
                f"{name}: needs {needed / 1e9:.1f} GB with {count} workers, and may have {limit / 1e9:.1f}: "
                "raise run.memory, or lower run.workers or output.games_per_block"
            )
        return most

    def _hold(self) -> tuple[list[str], list[dict[str, Any]]]:
        """Return the parts, and their reports, of the game table of the data set that is being grown."""
        if self.job.growth is None:
            return [], []
        folder, table = self.folder.stage("held"), self.job.growth.games
        size = table.stat()
        file = InputFile(
            table.name, str(table), size.st_size, size.st_mtime_ns, self.job.growth.before.games.sha256, "table"
        )
        tasks = [
            ReadTask(unit, self.config, str(folder / f"part-{number:06d}"))
            for number, unit in enumerate(spool_table(file, str(folder)))
        ]
        parts = [task.part for task in tasks]
        return parts, self._run_steps("hold", each(hold_unit, tasks, parts), _TABLE_BYTES)

    def _read(self) -> tuple[list[str], list[dict[str, Any]]]:
        """Read all inputs into parts of the game table; return the parts and their reports."""
        folder = self.folder.stage("read")
        growth = self.job.growth_number
        tasks = [
            ReadTask(unit, self.config, str(folder / f"part-{number:06d}"), self.job.scheme.komi, growth)
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

    def _encode(self, blocks: Blocks) -> list[dict[str, Any]]:
        """Write all shards; return their reports."""
        for part in PARTS:
            (self.folder.path / part).mkdir(exist_ok=True)
        images = [report["images"] for report in blocks.reports]
        exact = self.config.output.shuffle == "exact"
        first = self.job.growth.next_shards if self.job.growth else [0] * len(PARTS)
        if exact:
            whole = [sum(block[part] for block in images) for part in range(len(PARTS))]
            plans = shard_plans([whole], first, self.config.output.rows_per_shard) * len(images)
        else:
            plans = shard_plans(images, first, self.config.output.rows_per_shard)
        tasks = [
            EncodeTask(game, row, str(self.folder.path), f"{row}.shards.json", plan, self.config, self.job.layout)
            for game, row, plan in zip(blocks.games, blocks.rows, plans, strict=True)
        ]
        most = max((report["stored"] for report in blocks.reports), default=0)
        reports = (self._mix if exact else self._encode_blocks)(tasks, [sum(block) for block in images], most)
        return [shard for report in reports for shard in report["shards"]]

    def _encode_blocks(self, tasks: list[EncodeTask], rows: list[int], most: int) -> list[dict[str, Any]]:
        """Write the shards of every block, the largest of which has ``most`` positions."""
        return self._write_shards("encode", encode_block, tasks, rows, self._block_bytes(most))

    def _mix(self, tasks: list[EncodeTask], rows: list[int], most: int) -> list[dict[str, Any]]:
        """Spread the rows of every block, and write the shards of all of them."""
        work = self.folder.stage("mixed")
        spread = numbered(work, "spread", len(tasks))
        spreading = [SpreadTask(task, out) for task, out in zip(tasks, spread, strict=True)]
        self._run_steps("encode", each(spread_block, spreading, spread), self._block_bytes(most))
        self.done["encode"] = sum(rows)
        if not tasks:
            return []
        mixing = mix_tasks(tasks[0].plans, spread_counts(spread, tasks[0].plans), spread, str(work), tasks[0])
        sizes = [task.stop - task.start for task in mixing]
        # The rows of a shard and of what lies beside its ends, before and after they are put in order.
        memory = 6 * max(sizes, default=0) * (self.job.layout.row_bytes + _LABEL_BYTES)
        return self._write_shards("mix", mix_shard, mixing, sizes, memory)

    def _block_bytes(self, most: int) -> int:
        # A block holds its rows packed, and once more the batch that is being turned and written.
        return most * (self.job.layout.row_bytes + _LABEL_BYTES) * 5 // 4

    def _write_shards(
        self, name: str, function: Callable[[Any], Any], tasks: list[Any], rows: list[int], task_bytes: int
    ) -> list[dict[str, Any]]:
        """Run tasks that write shards, those whose shards are whole apart."""
        reports = self._run_stage(
            name,
            function,
            tasks,
            finished_encoding,
            rows,
            "rows",
            lambda report: sum(shard["rows"] for shard in report["shards"]),
            task_bytes,
        )
        _refuse_dead(reports, [task.report for task in tasks])
        return reports


def worker_count(config: Config) -> int:
    """Return how many worker processes a build has: ``run.workers``, or one a core and no more than memory allows."""
    if config.run.workers is not None:
        return config.run.workers
    return max(1, min(machine.cores(), memory_limit(config) // (_WORKER_BYTES + _TABLE_BYTES) - 1))


def memory_limit(config: Config) -> int:
    """Return the bytes a build may use: ``run.memory``, or half of what the machine has."""
    return machine.memory() // 2 if config.run.memory is None else config.run.memory


def _refuse_dead(reports: Sequence[Any], names: Sequence[str]) -> None:
    for report, name in zip(reports, names, strict=True):
        if isinstance(report, WorkerDied):
            raise BuildError(f"{name}: {report} (out of memory? fewer --workers or output.games_per_block may help)")
