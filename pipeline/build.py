"""The order of the stages: find, read, decide, index, encode, publish; resume; totals.

Each stage is a set of pure tasks whose outputs lie under ``.goplanes/work``; a task whose output is whole is
not done again, so that the same command goes on after a kill. ``dataset.json`` is written last.
"""

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline import manifest as manifests
from pipeline.blocks import EncodeTask, IndexTask, encode_block, finished_encoding, index_block
from pipeline.card import data_card
from pipeline.columns import FORMAT_VERSION, Layout, describe
from pipeline.config import Config, ConfigError
from pipeline.decide import Decided, decide_games, decide_positions, published_table, whole_table, write_blocks
from pipeline.dedup import PARTS
from pipeline.encode import Scheme, find_scheme
from pipeline.executors import WorkerDied, Workers
from pipeline.files import sha256_of_file, whole_file, write_whole
from pipeline.headers.rank import read_rank
from pipeline.jit import KERNEL_VERSION
from pipeline.manifest import Manifest
from pipeline.progress import Progress
from pipeline.read import ReadTask, failed_part, finished_report, omitted_of, read_unit
from pipeline.reasons import Status
from pipeline.rules import resolve
from pipeline.shard import require_codec
from pipeline.sources import InputFile, Omitted, Unit, find_inputs, spool, units
from pipeline.warm import warm_up
from pipeline.workfolder import FolderMismatch, WorkFolder, input_fingerprint, input_list

Task = TypeVar("Task")

_LABEL_BYTES = 150  # of a row beside its planes: labels, and its place in the block and in the shuffle
_WORKER_BYTES = 300 * 10**6  # of a worker with its libraries and kernels loaded


class BuildError(RuntimeError):
    """A build that cannot be finished; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Built:
    """A finished build: where it is, what it holds, the seconds of each stage (none: nothing was to do)."""

    path: Path
    manifest: Manifest
    seconds: dict[str, float]

    @property
    def rejected_share(self) -> float:
        """Share of the records seen that were rejected."""
        return self.manifest.records.rejected / max(1, self.manifest.records.seen)


def build(config: Config, *, overwrite: bool = False, progress: Progress | None = None) -> Built:
    """Build a data set, or go on with one, and return it.

    Raises ConfigError for a configuration that cannot work, FolderMismatch where the folder belongs to
    something else, FolderBusy where another build holds it, BuildError and OSError.
    """
    progress = progress or Progress(quiet=True)
    scheme, layout = check_config(config)
    if not config.input.paths:
        raise ConfigError("no input: name files or folders with --input, or in input.paths")
    folder = WorkFolder(output_path(config))
    with progress.stage("find", 0, "files"):
        files, omitted = find_inputs(config.input, str(folder.path))
    if folder.is_foreign():
        raise FolderMismatch(f"{folder.path} holds files that are no data set: choose another --output folder")
    with folder.locked():
        if overwrite:
            folder.erase()
        folder.clear_leftovers()
        fingerprint = config_fingerprint(config, scheme)
        folder.claim(config.published(), fingerprint, files)
        if (folder.path / manifests.NAME).exists():
            return Built(folder.path, _finished(folder), {})
        count = os.cpu_count() or 1 if config.run.workers is None else config.run.workers
        with Workers(count) as workers:
            return _Run(config, scheme, layout, folder, files, omitted, progress, workers).run(fingerprint)


def check_config(config: Config) -> tuple[Scheme, Layout]:
    """Return the scheme and the shards' layout. Raises ConfigError for what no build can do."""
    try:
        scheme = find_scheme(config.encode.scheme)
        resolve(None, config.rules)
        layout = Layout(
            format=config.output.format,
            frame=config.frame,
            planes=scheme.plane_names,
            globals=(),
            description=describe(scheme.name, scheme.version, dict(scheme.options), scheme.plane_names, (), config.frame),
            packed=config.output.packed,
            compression=config.output.compression,
        )
        require_codec(layout)
        for encoding in config.input.encodings:
            "".encode(encoding)
    except (ValueError, LookupError) as error:
        raise ConfigError(str(error)) from None
    if config.filter.min_rank is not None and read_rank(config.filter.min_rank)[0] is None:
        raise ConfigError(f"filter.min_rank = {config.filter.min_rank!r}: not a rank (write 5k, 3d or 1p)")
    for key, value, later in (
        ("dedup.positions", config.dedup.positions, "aggregate"),
        ("dedup.near", config.dedup.near, "drop"),
        ("dedup.key_bits", config.dedup.key_bits, 128),
    ):
        if value == later:
            raise ConfigError(f"{key} = {value!r} does not exist yet in this version")
    if config.encode.planes or config.encode.options:
        raise ConfigError("encode.planes and encode.options do not exist yet in this version: name a scheme")
    if config.run.executor != "local":
        raise ConfigError(f"run.executor = {config.run.executor!r}: this version has 'local' alone")
    return scheme, layout


def config_fingerprint(config: Config, scheme: Scheme) -> str:
    """Return the fingerprint of a configuration with the scheme's, the format's and the kernels' versions."""
    return config.fingerprint(scheme=scheme.version, format=FORMAT_VERSION, kernels=KERNEL_VERSION)


def memory_limit(config: Config) -> int:
    """Return the bytes a build may use: ``run.memory``, or half of the machine's."""
    if config.run.memory is not None:
        return config.run.memory
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def output_path(config: Config) -> Path:
    """Return the data set's folder: as configured, or named after the first input and the scheme."""
    if config.output.path:
        return Path(config.output.path)
    name = Path(os.path.abspath(config.input.paths[0])).name
    return Path(f"{name.split('.')[0] or 'games'}-{config.encode.scheme}")


def _finished(folder: WorkFolder) -> Manifest:
    """Return the manifest of a folder that is complete. Raises BuildError where shards are missing."""
    manifest = manifests.read_manifest(folder.path)
    for shard in manifest.shards:
        path = folder.path / shard.path
        if not path.is_file() or path.stat().st_size != shard.bytes:
            raise BuildError(f"{path}: missing or cut short; build again with --overwrite")
    folder.clear_work()
    return manifest


class _Run:
    """One build under way: the stages in their order, each reading what the one before wrote."""

    def __init__(
        self,
        config: Config,
        scheme: Scheme,
        layout: Layout,
        folder: WorkFolder,
        files: list[InputFile],
        omitted: list[Omitted],
        progress: Progress,
        workers: Workers,
    ) -> None:
        self.config, self.scheme, self.layout = config, scheme, layout
        self.folder, self.files, self.omitted = folder, files, omitted
        self.progress, self.workers = progress, workers

    def run(self, fingerprint: str) -> Built:
        """Run all stages and publish."""
        warm_up(self.scheme, self.config, self.progress)
        parts, reports = self._read()
        with self.progress.stage("decide", 0, "games"):
            table = decide_games(whole_table(parts), self.config)
            games = write_blocks(table, self.config, self.folder.stage("blocks"))
        seen = self._index(games)
        with self.progress.stage("dedup", 0, "positions"):
            rows = [path.replace("games-", "rows-") for path in games]
            keys = [path.replace("games-", "keys-") for path in games]
            decided = decide_positions(games, keys, rows, self.config)
        shards = self._encode(games, rows, decided)
        with self.progress.stage("publish", 0, "files"):
            manifest = self._publish(fingerprint, table, reports, seen, decided, shards)
        self.folder.clear_work()
        return Built(self.folder.path, manifest, self.progress.seconds)

    def _run_stage(
        self,
        name: str,
        function: Callable[[Task], Any],
        tasks: Sequence[Task],
        finished: Callable[[Task], Any | None],
        weights: Sequence[int],
        unit: str,
        task_bytes: int = 1,
    ) -> list[Any]:
        """Run the tasks that have no whole output yet; return the reports of all, in the order of tasks.

        ``weights``: what each task adds to the progress, in ``unit``; ``task_bytes``: the memory that one
        takes, so that no more are under way than ``run.memory`` allows.
        """
        reports = [finished(task) for task in tasks]
        todo = [number for number, report in enumerate(reports) if report is None]
        if len(todo) < len(tasks):
            self.progress.line(f"{name}: {len(tasks) - len(todo)} of {len(tasks)} tasks were done before")
        with self.progress.stage(name, sum(weights[number] for number in todo), unit) as advance:
            at_once = max(1, memory_limit(self.config) // task_bytes) if task_bytes > 1 else None
            for number, report in self.workers.run(function, [tasks[number] for number in todo], at_once):
                reports[todo[number]] = report
                advance(weights[todo[number]])
        return reports

    def _read(self) -> tuple[list[str], list[dict[str, Any]]]:
        """Read all inputs into parts of the game table; return the parts and their reports."""
        folder = self.folder.stage("read")
        tasks = [
            ReadTask(unit, self.config, str(folder / f"part-{number:06d}"))
            for number, unit in enumerate(self._units())
        ]
        reports = self._run_stage(
            "read", read_unit, tasks, lambda task: finished_report(task.part), [1] * len(tasks), "tasks"
        )
        for number, report in enumerate(reports):
            if isinstance(report, WorkerDied):
                reports[number] = failed_part(tasks[number], str(report))
        return [task.part for task in tasks], reports

    def _units(self) -> list[Unit]:
        """Return the units of all inputs; stream archives are first read into blocks."""
        streams = [file for file in self.files if file.kind == "stream"]
        made = units(self.files, self.config.input)
        if streams:
            folder = str(self.folder.stage("spool"))
            with self.progress.stage("unpack", len(streams), "archives") as advance:
                for file in streams:
                    made += spool(file, self.config.input, folder)
                    advance(1)
        return made

    def _index(self, games: list[str]) -> dict[str, int]:
        """Key the positions of every block; return how many were seen and sampled out."""
        tasks = [IndexTask(path, path.replace("games-", "keys-"), self.config) for path in games]
        reports = self._run_stage("index", index_block, tasks, lambda task: None, [1] * len(tasks), "blocks")
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
                game.replace("games-", "shards-").replace(".arrow", ".json"),
                plans,
                self.config,
                self.layout,
            )
            for game, row, plans in zip(games, rows, decided.plans, strict=True)
        ]
        # A block holds its rows packed, and once more the batch that is being turned and written.
        most_bytes = max(decided.positions, default=0) * (self.layout.row_bytes + _LABEL_BYTES) * 5 // 4
        reports = self._run_stage(
            "encode", encode_block, tasks, finished_encoding, decided.rows, "rows", most_bytes + _WORKER_BYTES
        )
        _refuse_dead(reports, [task.games for task in tasks])
        shards = [shard for report in reports for shard in report["shards"]]
        return sorted(shards, key=lambda shard: (PARTS.index(shard["split"]), shard["path"]))

    def _publish(
        self,
        fingerprint: str,
        table: pa.Table,
        reports: list[dict[str, Any]],
        seen: dict[str, int],
        decided: Decided,
        shards: list[dict[str, Any]],
    ) -> Manifest:
        """Write the game table, the data card, and last the manifest. Raises BuildError if a sum is wrong."""
        path = self.folder.path
        self.folder.clear_leftovers()  # of workers that were killed on the way
        with whole_file(path / manifests.GAMES) as temporary:
            pq.write_table(published_table(table, decided.rows_of_game), temporary, compression="zstd")
        manifest = self._manifest(fingerprint, table, reports, seen, decided, shards)
        faults = manifests.sum_faults(manifest)
        plies = sum(
            plies
            for plies, status in zip(table.column("plies").to_pylist(), table.column("status").to_pylist(), strict=True)
            if status == Status.KEPT
        )
        if plies != manifest.positions.seen:
            faults.append(f"positions seen = plies of kept games: {manifest.positions.seen} is not {plies}")
        if faults:
            raise BuildError("the sums do not add up, nothing was published:\n" + "\n".join(faults))
        write_whole(path / "README.md", data_card(manifest).encode())
        manifests.write_manifest(path, manifest)
        return manifest

    def _manifest(
        self,
        fingerprint: str,
        table: pa.Table,
        reports: list[dict[str, Any]],
        seen: dict[str, int],
        decided: Decided,
        shards: list[dict[str, Any]],
    ) -> Manifest:
        inputs = input_list(self.files)
        found = [
            {"source": item.source, "member": item.member, "status": item.status, "reason": item.reason.value}
            | {"detail": item.detail}
            for item in self.omitted
        ]
        omitted = omitted_of([{"omitted": found}, *reports])
        skipped = sum(item["status"] == "skipped" for item in omitted)
        with_records = sum(report["with_records"] for report in reports)
        status = Counter(table.column("status").to_pylist())
        reasons = Counter(reason for reason in table.column("reason").to_pylist() if reason is not None)
        flags = Counter(flag for flags in table.column("flags").to_pylist() for flag in flags or ())
        rows = {part: sum(shard["rows"] for shard in shards if shard["split"] == part) for part in PARTS}
        games = self.folder.path / manifests.GAMES
        scheme = self.scheme
        return Manifest.model_validate(
            {
                "scheme": {
                    "name": scheme.name,
                    "version": scheme.version,
                    "options": dict(scheme.options),
                    "planes": scheme.plane_names,
                    "globals": (),
                },
                "frame": self.config.frame,
                "storage": manifests.storage_of(self.layout).model_dump(),
                "config": self.config.published(),
                "fingerprints": {"config": fingerprint, "inputs": input_fingerprint(inputs)},
                "inputs": tuple(inputs),
                "members": {
                    "seen": with_records + len(omitted),
                    "with_records": with_records,
                    "skipped": skipped,
                    "refused": len(omitted) - skipped,
                },
                "omitted": tuple(omitted),
                "records": {"seen": table.num_rows} | {item.value: status[item.value] for item in Status},
                "reasons": dict(reasons),
                "flags": dict(flags),
                "positions": {
                    "seen": seen["seen"],
                    "stored": decided.stored,
                    "merged": decided.merged,
                    "overlap": decided.overlap,
                    "sampled_out": seen["sampled_out"],
                },
                "rows": rows,
                "shards": tuple(shards),
                "games": {
                    "path": manifests.GAMES,
                    "bytes": games.stat().st_size,
                    "sha256": sha256_of_file(games),
                },
            }
        )


def _refuse_dead(reports: Sequence[Any], names: Sequence[str]) -> None:
    for report, name in zip(reports, names, strict=True):
        if isinstance(report, WorkerDied):
            raise BuildError(f"{name}: {report} (out of memory? fewer --workers or output.games_per_block may help)")
