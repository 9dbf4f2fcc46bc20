"""Is a data set what its manifest says? Sums, checksums, every row against its game, a sample encoded again.

Shards are read one after the other; what stays in memory is the game table of the kept games (3 bytes a move)
and 16 bytes a row.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from pipeline import shard
from pipeline.augment import turn_planes
from pipeline.columns import ShardError
from pipeline.compose import configured_scheme, stored_scheme
from pipeline.config import Config, ConfigError, make_config
from pipeline.encode import encode_whole
from pipeline.files import sha256_of_file
from pipeline.gamefile import games_with
from pipeline.gametable import KeptGames, check_table
from pipeline.keys import keyed
from pipeline.load import Dataset, open_dataset
from pipeline.manifest import GAMES, SPLITS, Manifest, ShardEntry, sum_faults
from pipeline.progress import Progress
from pipeline.recount import Recount
from pipeline.rowcheck import RowChecker
from pipeline.table import games_of, row_fault
from pipeline.warm import warm_up
from pipeline.words import chain_words, seed_word

_MOST_FAULTS = 20  # told of one check


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at: how much of it there was, and what is wrong (nothing: all is well)."""

    name: str
    looked_at: str
    faults: tuple[str, ...]


def verify(path: str | Path, sample: int = 200, progress: Progress | None = None) -> list[Check]:
    """Check the data set in a folder; ``sample`` rows are encoded again from the game table.

    ``progress`` is told of kernels to compile. Returns every check with its faults, none of which ends the others.
    Raises ManifestError where there is no readable manifest, OSError where the system refuses to read.
    """
    dataset = open_dataset(path)
    warm_up(progress or Progress(quiet=True))
    manifest = dataset.manifest
    checks = [
        Check("sums", "dataset.json", tuple(sum_faults(manifest))),
        Check("folder", "listed files", tuple(_unlisted(dataset))),
    ]
    sound, changed, faults = _readable_shards(dataset)
    checks.append(Check("shards", f"{len(manifest.shards):,} files", tuple(faults)))
    table_faults = _games_file_faults(dataset)
    games: KeptGames | None = None
    if not table_faults:
        games, table_faults = check_table(dataset)
    checks.append(Check("games.parquet", f"{manifest.records.seen:,} records", tuple(table_faults)))
    try:
        config = _config_of(manifest)
    except ConfigError as error:
        return [*checks, Check("config", "dataset.json", (str(error),))]
    if games is None:
        return checks
    rows = RowChecker(dataset, config, games)
    recount: Recount | None = None
    try:
        recount = Recount(dataset, config)
    except ShardError as error:
        checks.append(Check("recount", f"{manifest.records.kept:,} games", (str(error),)))
    # Of a shard whose bytes have changed every row is encoded again, so that the row is named.
    chosen = _Sample.of(sound, sample, changed)
    for entry in sound:
        _check_shard(dataset, entry, rows, recount, chosen)
    whole = len(sound) == len(manifest.shards)
    checks.append(Check("rows", f"{rows.count:,} rows", tuple(rows.finish(whole))))
    if recount is not None:
        recounted = f"{manifest.records.kept:,} games replayed and deduplicated again"
        checks.append(Check("recount", recounted, tuple(recount.finish(whole))))
    again = tuple(_recode(dataset, config, chosen))
    checks.append(Check("encoding", f"{len(chosen.rows):,} rows encoded again", again))
    return checks


def _config_of(manifest: Manifest) -> Config:
    """Return the stored configuration. Raises ConfigError where it is none, or not that of the rest of the manifest."""
    config = make_config(manifest.config, "dataset.json: config")
    try:
        configured_scheme(config.encode)
    except ValueError as error:
        raise ConfigError(f"dataset.json: config: {error}") from None
    storage = manifest.storage
    for name, said, stored in (
        ("frame", config.frame, manifest.frame),
        ("dedup.positions", config.dedup.positions == "aggregate", storage.aggregate),
        ("dedup.key_bits", config.dedup.key_bits, storage.key_bits),
    ):
        if said != stored:
            raise ConfigError(f"dataset.json: config: {name} gives {said}, the rest of the manifest says {stored}")
    return config


def _unlisted(dataset: Dataset) -> Iterator[str]:
    """Find files that lie where only shards belong and that the manifest does not list."""
    listed = {entry.path for entry in dataset.manifest.shards}
    for split in SPLITS:
        folder = dataset.folder / split
        if folder.is_dir():
            for entry in sorted(folder.iterdir()):
                if f"{split}/{entry.name}" not in listed:
                    yield f"{split}/{entry.name!r} is not listed in dataset.json".replace("'", "")


def _readable_shards(dataset: Dataset) -> tuple[list[ShardEntry], set[str], list[str]]:
    """Return the shards whose rows can be read, the paths of those whose bytes are not the manifest's all the
    same, and what is wrong with any."""
    readable, changed, faults = [], set(), []
    for entry in dataset.manifest.shards:
        path = dataset.folder / entry.path
        if not path.is_file():
            faults.append(f"{entry.path}: is missing")
            continue
        if fault := _changed_bytes(path, entry):
            faults.append(fault)
            changed.add(entry.path)
        try:
            shard.check(path, dataset.manifest.layout, entry.rows)
        except ShardError as error:
            if not fault:
                faults.append(str(error).replace(str(path), entry.path))
        else:
            readable.append(entry)
    return readable, changed, faults


def _changed_bytes(path: Path, entry: ShardEntry) -> str | None:
    if (size := path.stat().st_size) != entry.bytes:
        return f"{entry.path}: has {size:,} bytes, the manifest says {entry.bytes:,}"
    return None if sha256_of_file(path) == entry.sha256 else f"{entry.path}: its sha256 is not the manifest's"


def _games_file_faults(dataset: Dataset) -> list[str]:
    path, entry = dataset.folder / GAMES, dataset.manifest.games
    if not path.is_file():
        return [f"{GAMES}: is missing"]
    if (size := path.stat().st_size) != entry.bytes:
        return [f"{GAMES}: has {size:,} bytes, the manifest says {entry.bytes:,}"]
    return [] if sha256_of_file(path) == entry.sha256 else [f"{GAMES}: its sha256 is not the manifest's"]


def _check_shard(
    dataset: Dataset, entry: ShardEntry, rows: RowChecker, recount: Recount | None, chosen: "_Sample"
) -> None:
    wanted = chosen.numbers.get(entry.path, [])
    start = 0
    for batch in shard.read(dataset.folder / entry.path, dataset.manifest.layout):
        count = shard.count(batch)
        rows.check(entry, start, batch)
        if recount is not None:
            recount.check(entry, start, batch)
        for number in wanted[bisect_left(wanted, start) : bisect_left(wanted, start + count)]:
            row = {name: values[number - start] for name, values in batch.items() if name not in shard.POLICY}
            chosen.rows.append((f"{entry.path} row {number}", row))
        start += count


@dataclass(frozen=True, slots=True)
class _Sample:
    """Rows to encode again: their numbers by shard, and, once read, (name, row)."""

    numbers: dict[str, list[int]]
    rows: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    @classmethod
    def of(cls, shards: Sequence[ShardEntry], sample: int, whole: Collection[str]) -> "_Sample":
        """Choose rows by a hash, the same on every run, and all rows of the shards ``whole``."""
        numbers = {entry.path: list(range(entry.rows)) for entry in shards if entry.path in whole}
        shards = [entry for entry in shards if entry.path not in whole]
        total = sum(entry.rows for entry in shards)
        if total == 0 or sample == 0:
            return cls(numbers)
        if sample >= total:
            picks = np.arange(total)
        else:
            words = chain_words(seed_word("verify"), np.arange(sample))
            picks = np.unique((words % np.uint64(total)).astype(np.int64))
        start = 0
        for entry in shards:
            inside = picks[(picks >= start) & (picks < start + entry.rows)] - start
            if len(inside):
                numbers[entry.path] = [int(number) for number in inside]
            start += entry.rows
        return cls(numbers)


def _recode(dataset: Dataset, config: Config, chosen: _Sample) -> Iterator[str]:
    """Encode the sampled rows again from the game table and compare planes and keys bit for bit."""
    stored = dataset.scheme
    try:
        scheme = stored_scheme(stored.name, stored.options)
    except ValueError as error:
        yield f"cannot encode again: {error}"
        return
    if scheme.version != stored.version:
        yield f"cannot encode again: made with version {stored.version} of {stored.name}, this is {scheme.version}"
        return
    for kind, names, known in (
        ("planes", stored.planes, scheme.plane_names),
        ("globals", stored.globals, scheme.global_names),
    ):
        if names != known:
            yield f"cannot encode again: its {kind} are not those of {stored.name}"
            return
    if not chosen.rows:
        return
    table = games_with(dataset, np.unique(np.array([row["game"] for _, row in chosen.rows], dtype=np.uint64)))
    unsound = {row["game"]: fault for row in table.to_pylist() if (fault := row_fault(row))}
    yield from (f"game {game}: {fault}" for game, fault in unsound.items())
    table = table.filter(np.array([game not in unsound for game in table.column("game").to_pylist()], dtype=np.bool_))
    games = games_of(table)
    replayed = keyed(games, scheme, config.dedup.reach == "scheme").replayed
    place = {game: number for number, game in enumerate(table.column("game").to_pylist())}
    rows = []
    for name, row in chosen.rows:
        number, ply = place.get(int(row["game"])), int(row["ply"])
        if number is None or ply >= games.move_start[number + 1] - games.move_start[number]:
            continue  # told of with the rows
        if replayed.legal[number] <= ply:  # no kernel may see its move either
            yield f"{name}: move {replayed.legal[number] + 1} of game {row['game']} is illegal"
        else:
            rows.append((number, ply, name, row))
    if not rows:
        return
    rows.sort(key=lambda item: item[:2])
    at = np.array([item[:2] for item in rows], dtype=np.int64)
    planes, numbers = encode_whole(scheme, games, at[:, 0], at[:, 1], dataset.frame)
    turns = np.array([row["symmetry"] for *_, row in rows], dtype=np.uint8)
    square = games.rows[at[:, 0]] == games.cols[at[:, 0]]
    turns[(turns >= 4) & ~square] = 0
    planes = turn_planes(planes, games.rows[at[:, 0]], games.cols[at[:, 0]], dataset.frame[1], turns)
    for (number, ply, name, row), again, again_globals in zip(rows, planes, numbers, strict=True):
        kinds = [("planes", stored.planes, (again != row["planes"]).any(axis=1))]
        if stored.globals:
            kinds.append(("globals", stored.globals, again_globals.view(np.uint32) != row["globals"].view(np.uint32)))
        for kind, names, wrong in kinds:
            if wrong.any():
                first = ", ".join(names[place] for place in np.flatnonzero(wrong)[:4])
                yield f"{name}: {wrong.sum()} {kind} are not those of game {row['game']} ply {ply}: {first}"
        if (key := replayed.keys[games.move_start[number] + ply]) != row["key"]:
            yield f"{name}: key {row['key']} should be {key}"


def facts(path: str, checks: Sequence[Check]) -> dict[str, Any]:
    """Return the checks as one JSON object."""
    found = [{"name": check.name, "looked_at": check.looked_at, "faults": list(check.faults)} for check in checks]
    return {"path": path, "sound": not any(check.faults for check in checks), "checks": found}


def lines(path: str, checks: Sequence[Check]) -> list[str]:
    """Return the checks for people: one line each, then a line for each fault."""
    text = []
    for check in checks:
        text.append(f"{'FAULT' if check.faults else 'ok':<6}{check.name:<14}{check.looked_at}")
        text += [f"        {fault}" for fault in check.faults[:_MOST_FAULTS]]
        if (more := len(check.faults) - _MOST_FAULTS) > 0:
            text.append(f"        and {more:,} more")
    faults = sum(len(check.faults) for check in checks)
    return [*text, f"{path}: {'sound' if not faults else f'{faults:,} fault' + ('s' if faults > 1 else '')}"]
