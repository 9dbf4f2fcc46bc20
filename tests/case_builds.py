"""The cases of kinds K5 to K10: symmetries, duplicates, the split, shards, killed builds, hostile input."""

import json
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow.parquet as pq
import pytest
from case_runner import ALL_TRAIN, CASES, Case, config_of, digests, read_data, say
from click.testing import CliRunner
from shard_rows import make_layout, make_manifest, make_rows

from pipeline import shard
from pipeline.build import build
from pipeline.cli import cli
from pipeline.columns import Columns, Layout, ShardError
from pipeline.config import Config
from pipeline.files import TEMPORARY, sha256_of_file
from pipeline.load import Dataset, open_dataset
from pipeline.manifest import write_manifest
from pipeline.symmetry import image_point
from pipeline.workfolder import FolderMismatch

# --- K5, K6: symmetries, duplicates, split

SYMMETRY = {
    "identity": 0,
    "flip-ud": 1,
    "flip-lr": 2,
    "rot180": 3,
    "transpose": 4,
    "rot270": 5,
    "rot90": 6,
    "anti-transpose": 7,
}


def planes_turn_together(case: Case) -> None:
    data = case.build(encode={"scheme": "agz17"}, augment={"mode": "all"}, filter={"sizes": [9]}, split=ALL_TRAIN)
    (game,) = data.games
    assert (game["status"], game["plies"], game["rows"], len(data.rows["move"])) == ("kept", 5, 40, 40)
    rows = data.rows_of(game)
    assert all(len(set(rows["value"][rows["ply"] == ply])) == 1 for ply in range(5))
    (pass_index,) = set(rows["move"][rows["ply"] == 3].tolist())
    case.expected.check("pass_index", pass_index)
    before = case.expected.table("before_5")
    turned = np.flatnonzero(rows["ply"] == 4)
    assert rows["symmetry"][turned].tolist() == list(range(8))
    names = data.manifest.scheme.planes
    for name in before.keys:
        at = turned[SYMMETRY[name]]
        plane = dict(zip(names, rows["planes"][at].reshape(len(names), 81), strict=True))
        image = before.table(name)
        image.check("black", np.flatnonzero(plane["own_0"]).tolist())
        image.check("white", np.flatnonzero(plane["opp_0"]).tolist())
        # The last move was a pass; what Black has since two boards ago is the move before it.
        (two_back,) = np.flatnonzero(plane["own_1"] != plane["own_2"])
        assert (plane["own_0"] == plane["own_1"]).all()
        image.check("two_back", int(two_back))
        image.check("policy", int(rows["move"][at]))
        assert two_back == np.ravel_multi_index(image_point(0, 2, 9, 9, SYMMETRY[name]), (9, 9))


def two_sources(case: Case) -> None:
    data = case.build(dedup={"games": True})
    source = {game["game"]: game["source"] for game in data.games}
    copies = {game["source"]: game for game in data.games}
    case.expected.check("kept", [game["source"] for game in data.games if game["status"] == "kept"])
    for key, status in (("duplicate", "duplicate"), ("conflict", "conflicting")):
        table = case.expected.table(key)
        assert table.keys == [game["source"] for game in data.games if game["status"] == status]
        for name in table.keys:
            table.check(name, source[copies[name]["duplicate_of"]])
    case.expected.check("positions", sum(data.positions(game) for game in data.games))
    for seed in range(4):
        again = case.build(
            *(case.folder / f"{name}.sgf" for name in "dcba"),
            dedup={"games": True},
            split={"val": 0.4, "test": 0.3, "seed": seed},
        )
        assert [game["status"] for game in again.games] == [game["status"] for game in data.games]
        assert again.game("d.sgf")["split"] == again.game("a.sgf")["split"] == again.game("b.sgf")["split"]
    distinct = case.build(dedup={"positions": "first", "reach": "board"}, split=ALL_TRAIN)
    assert distinct.manifest.positions.seen == 40
    case.expected.check("distinct_positions", 10)
    # Ten boards come before moves 1 to 10 of each; c differs after its last move alone.
    assert distinct.manifest.positions.stored == 10


def split_does_not_move(case: Case) -> None:
    folder = case.folder / "in"
    split: dict[str, Any] = {"val": 0.25, "test": 0.0, "seed": 1}
    first, second = (
        [folder / name for name in (case.folder / f"{name}.txt").read_text().split()] for name in ("first", "second")
    )
    small = {"games_per_block": 4}
    renamed = case.tmp / "another name"
    shutil.copytree(folder, renamed)
    spawned = config_of(first, case.tmp / "spawned", split=split, output=small, run={"workers": 4})
    finish(start_build(spawned, case.tmp, PYTHONHASHSEED="77"))
    every = case.build(*second, split=split, augment={"mode": "all"})
    runs = [
        case.build(*first, split=split),
        case.build(*first[::-1], split=split, output=small),
        every,
        case.build(renamed, split=split),
    ]
    runs.append(read_data(case.tmp / "spawned"))
    parts = [{game["source"]: game["split"] for game in run.games if game["status"] == "kept"} for run in runs]
    for found in parts:
        assert {path.name: found[path.name] for path in first} == parts[0]
    assert parts[2] == parts[3]
    assert set(parts[2].values()) == {"train", "val"}
    case.expected.check("games", len(parts[2]))
    case.expected.check("positions", every.manifest.positions.stored)
    case.expected.check("runs", len(runs))
    assert (every.manifest.rows.train + every.manifest.rows.val, every.manifest.rows.test) == (8 * 144, 0)
    names = {game["game"]: game["source"] for game in every.games}
    for part in ("train", "val"):
        in_part = [game for batch in open_dataset(every.folder).batches(part) for game in batch["game"].tolist()]
        assert {names[game] for game in in_part} == {name for name, where in parts[2].items() if where == part}
    other = case.build(*second, split=split | {"seed": 2})
    assert {game["source"]: game["split"] for game in other.games} != parts[2]


# --- K7: the files


def bit_order(case: Case) -> None:
    data = case.build(filter={"sizes": [19]})
    (game,) = data.games
    assert (game["status"], data.to_play(game)) == ("kept", "WB")
    (entry,) = [entry for entry in data.manifest.shards if entry.split == game["split"]]
    path = data.folder / entry.path
    described = json.loads(pq.read_schema(path).metadata[b"goplanes"])
    black = described["planes"].index("black_0")
    raw = pq.read_table(path, columns=["planes", "ply"]).to_pylist()
    (planes,) = [row["planes"] for row in raw if row["ply"] == 0]
    stored = planes[46 * black : 46 * black + 46]
    dense = np.unpackbits(np.frombuffer(stored, np.uint8), count=361, bitorder=described["bit_order"])
    case.expected.check("indices", np.flatnonzero(dense).tolist())
    np.testing.assert_array_equal(data.plane(game, 0, "black_0").ravel(), dense)
    case.expected.check("big", stored.hex())
    case.expected.check("little", np.packbits(dense, bitorder="little").tobytes().hex())
    assert described["bit_order"] == "big"
    assert (case.folder / "plane-big.hex").read_text().split() == [stored.hex()]


def shard_cut_by_a_kill(case: Case) -> None:
    layout = make_layout("hdf5")
    rows = make_rows(40, layout)
    rows["ply"] = np.arange(40, dtype=np.uint16)
    dataset = open_dataset(data_set(case.tmp / "shards", [(rows, layout)] * 3))
    paths = [dataset.folder / entry.path for entry in dataset.manifest.shards]
    cut_and_empty(paths[1], paths[2])
    faults = dataset.damaged()
    damaged = [path for path in paths if any(fault.startswith(f"{path}: ") for fault in faults)]
    case.expected.check("damaged", [path.name.replace("shard-", "part-") for path in damaged])
    assert len(faults) == 2
    code, told = command("verify", dataset.folder)
    assert code == 1
    assert [path for path in paths if f"train/{path.name}: " in told] == paths[1:]
    read: list[int] = []
    batches = dataset.batches(batch_size=8, columns=["ply"])
    with pytest.raises(ShardError, match=paths[1].name):
        read.extend(ply for batch in batches for ply in batch["ply"].tolist())
    case.expected.check("rows", len(read))
    assert read == list(range(40))
    resumed_over_damage(case)


def resumed_over_damage(case: Case) -> None:
    """A build that ended before its manifest makes damaged shards again."""
    games = CASES / "055-killed-and-resumed" / "in"
    tables: dict[str, Any] = {
        "output": {"format": "hdf5", "games_per_block": 1, "rows_per_shard": 2},
        "split": ALL_TRAIN,
    }
    config = config_of([games], case.tmp / "resumed", **tables)
    whole = case.build(games, **tables)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pipeline.manifest.write_manifest", stop)
        with pytest.raises(Stopped):
            build(config)
    shards = sorted((case.tmp / "resumed" / "train").iterdir())
    assert len(shards) == len(whole.manifest.shards) > 5
    cut_and_empty(shards[1], shards[4])
    build(config)
    assert digests(case.tmp / "resumed") == digests(whole.folder)


class Stopped(Exception):
    """Raised where a test ends a build."""


def stop(*_: Any) -> None:
    raise Stopped


# --- K9: killed, resumed, in another order


def killed_and_resumed(case: Case) -> None:
    tables: dict[str, Any] = {"output": {"games_per_block": 1}, "split": ALL_TRAIN}
    config = config_of([case.folder / "in"], case.tmp / "runs", **tables)
    script = case.tmp / "config.json"
    script.write_text(config.model_dump_json())
    (case.tmp / "runs").mkdir()
    told = finish(start([sys.executable, str(Path(__file__).with_name("killed_builds.py")), str(script)]))
    facts = json.loads(told)
    published, runs = facts["published"], case.tmp / "runs"
    whole = read_data(runs / "whole")
    digest = digests(whole.folder)
    case.expected.check("positions", sum(whole.positions(game) for game in whole.games))
    case.expected.check("per_game", [whole.positions(game) for game in whole.games])
    done = [name for name in published if name.startswith(".goplanes/work/") and ".shards." in name]
    points = {
        "before the first write": 0,
        "in the middle of a shard": published.index("train/shard-00000.parquet"),
        "shard whole, not yet entered": published.index(done[1]),
        "in the middle of the mark": published.index(done[1]) + 1,
        "before the manifest": published.index("dataset.json"),
    }
    case.expected.check("kill_points", len(points))
    say(f"{case.expected.name}: killed at each of {len(published)} files, and {facts['kills']} times in one folder")
    assert published[-1] == "dataset.json"
    assert len(done) == 3
    # The mark of a block is written whole, so this one is cut by hand.
    mark = runs / f"killed-{points['in the middle of the mark']}" / done[1]
    mark.write_bytes(mark.read_bytes()[: mark.stat().st_size // 2])
    for number in range(len(published)):
        folder = runs / f"killed-{number}"
        assert number == 0 or (folder / published[number - 1]).exists()
        assert not (folder / "dataset.json").exists()
        if number > 0:
            with pytest.raises(FolderMismatch, match=r"(?s)encode.scheme.*fingerprint.*--overwrite"):
                build(config_of([case.folder / "in"], folder, **tables, encode={"scheme": "agz17"}))
        workers = 2 if number == points["shard whole, not yet entered"] else 0
        build(config_of([case.folder / "in"], folder, **tables, run={"workers": workers}))
        assert digests(folder) == digest
        assert leftovers(folder) == []
    assert digests(runs / "chain") == digest
    assert facts["kills"] >= len(points)
    assert leftovers(runs / "chain") == []


def leftovers(folder: Path) -> list[Path]:
    """Return what a finished build should not leave: temporary files and work in progress."""
    work = folder / ".goplanes" / "work"
    return [path for path in folder.rglob("*") if path.name.startswith(TEMPORARY) or path == work]


def order_of_the_folder(case: Case) -> None:
    names = ["A.sgf", "a10.sgf", "a2.sgf", "b.sgf"]
    tables: dict[str, Any] = {"output": {"games_per_block": 1}, "augment": {"mode": "random"}}
    outputs, processes = [], []
    for number, (order, workers, seed, locale) in enumerate(
        [(names, 1, "0", "C"), (names[::-1], 4, "1", "C.UTF-8"), ([names[i] for i in (2, 0, 3, 1)], 0, "1", "C")]
    ):
        folder = case.tmp / f"folder {number}" / ("é" * number)
        folder.mkdir(parents=True)
        for name in order:
            shutil.copyfile(case.folder / "in" / name, folder / name)
        outputs.append(case.tmp / f"run-{number}")
        config = config_of([folder], outputs[-1], **tables, run={"workers": workers})
        processes.append(start_build(config, case.tmp, PYTHONHASHSEED=seed, LC_ALL=locale))
    finish(*processes)
    first = digests(outputs[0])
    assert all(digests(output) == first for output in outputs[1:])
    data = read_data(outputs[0])
    case.expected.check("order", [game["source"] for game in data.games])
    case.expected.check("positions", sum(data.positions(game) for game in data.games))
    text = b"".join(first.values())
    assert str(case.tmp).encode() not in text


# --- K10: hostile input


def archive_paths(case: Case) -> None:
    area = case.tmp / "area"
    area.mkdir()
    shutil.copy(case.folder / "games.zip", area)
    before = sorted(case.tmp.rglob("*")), Path("/abs").exists()
    data = case.build(area / "games.zip")
    ours = [path for path in case.tmp.rglob("*") if data.folder in (path, *path.parents)]
    assert (sorted(set(case.tmp.rglob("*")) - set(ours)), Path("/abs").exists()) == before
    assert not any("evil" in path.name or path.is_symlink() for path in ours)
    games = {game["member"]: data.positions(game) for game in data.games if game["status"] == "kept"}
    # The name that ends in a space is another member, and another game.
    assert games.pop("good/one.sgf ") == 2
    table = case.expected.table("kept")
    assert table.keys == list(games)
    for name in table.keys:
        table.check(name, games[name])
    for key, status, reason in (("refused", "refused", "unsafe-member"), ("skipped", "skipped", "not-a-record")):
        found = {entry.member: entry.reason for entry in data.manifest.omitted if entry.status == status}
        assert set(found.values()) == {reason}
        case.expected.check_set(key, [str(name) for name in found])
    assert len(data.manifest.omitted) == 7


def memory(name: str) -> int:
    """Return VmRSS (now) or VmHWM (the peak) of this process in KiB: unlike ru_maxrss it starts at nothing."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


@contextmanager
def little_memory(what: str) -> Iterator[None]:
    """Fail if memory rises by 64 MiB or more, at any moment, over what it was before."""
    before = memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak is now what is in use
    yield
    rise = memory("VmHWM") - before
    say(f"{what}: memory rises by {rise} KiB")
    assert rise < 64 * 1024


def archive_that_swells(case: Case) -> None:
    limit = {"max_member_bytes": "16MiB"}
    build(config_of([CASES / "059-archive-paths" / "games.zip"], case.tmp / "small"))  # kernels are loaded
    for name, source in (("flat", "games.zip"), ("nested", "nested.zip")):
        config = config_of([case.folder / source], case.tmp / name, input=limit)
        with little_memory(f"{case.expected.name}: {source}"):
            build(config)
    data, nested = read_data(case.tmp / "flat"), read_data(case.tmp / "nested")
    games = {game["member"]: data.positions(game) for game in data.games if game["status"] == "kept"}
    table = case.expected.table("kept")
    assert table.keys == list(games)
    for name in table.keys:
        table.check(name, games[name])
    (refused,) = data.manifest.omitted
    assert refused.status == "refused"
    rejected = case.expected.table("rejected")
    rejected.check(str(refused.member), refused.reason)
    case.expected.check("positions", data.manifest.positions.stored)
    # Opened one level further down, under the same limits.
    assert [entry.reason for entry in nested.manifest.omitted] == ["member-too-large"]
    assert nested.manifest.positions.stored == 5


def points_elsewhere(case: Case) -> None:
    layout = make_layout("hdf5", compression="none")
    rows = make_rows(64, layout)
    dataset = open_dataset(data_set(case.tmp / "shards", [(rows, layout)]))
    folder = dataset.folder / "train"
    path = folder / "shard-00000.h5"
    whole = path.read_bytes()
    secret = b"SECRET" * 4096
    (folder / "secret.bin").write_bytes(secret)
    shape = rows["planes"].shape
    with h5py.File(folder / "other.h5", "w") as file:
        file["planes"] = np.frombuffer(secret, np.uint8)[: math.prod(shape)].reshape(shape)
    damage = {
        "external.h5": (external_storage, "external storage"),
        "link.h5": (external_link, "external link"),
        "group-link.h5": (group_link, "external link"),
        "virtual.h5": (virtual, "virtual"),
        "shape.h5": (terabyte, "planes has 1099511627776 entries, not 64|declares"),
    }
    refused = []
    for name, (spoil, reason) in damage.items():
        path.write_bytes(whole)
        with h5py.File(path, "r+") as file:
            spoil(file, shape)
        entry = dataset.manifest.shards[0]
        entry = entry.model_copy(update={"bytes": path.stat().st_size, "sha256": sha256_of_file(path)})
        spoiled = Dataset(dataset.folder, dataset.manifest.model_copy(update={"shards": (entry,)}))
        write_manifest(spoiled.folder, spoiled.manifest)
        with little_memory(f"{case.expected.name}: {name}"):
            fault = refusal(spoiled)
        assert fault.startswith(f"{path}: ")
        assert any(word in fault for word in reason.split("|")), fault
        say(f"{case.expected.name}: {name}: {fault.removeprefix(f'{folder}/')}")
        refused.append(name)
    case.expected.check("refused", refused)


def refusal(dataset: Dataset) -> str:
    """Return why the only shard of a data set is refused: by the commands, the loader, and for a single row."""
    (verified, told), (_, inspected), (shown, drawn) = (
        command("verify", dataset.folder),
        command("inspect", dataset.folder),
        command("show", dataset.folder, "0"),
    )
    assert (verified, shown) == (1, 1)
    (fault,) = dataset.damaged()
    with pytest.raises(ShardError) as error:
        list(dataset.batches())
    with pytest.raises(ShardError) as one:
        dataset.row("train", 0)
    assert fault.removeprefix(f"{dataset.folder}/") in told
    assert "SECRET" not in f"{fault}{error.value}{one.value}{told}{inspected}{drawn}"
    return fault


def external_storage(file: h5py.File, shape: tuple[int, ...]) -> None:
    del file["planes"]
    file.create_dataset("planes", shape, "uint8", external=[("secret.bin", 0, math.prod(shape))])


def external_link(file: h5py.File, shape: tuple[int, ...]) -> None:
    del file["planes"]
    file["planes"] = h5py.ExternalLink("other.h5", "planes")


def group_link(file: h5py.File, shape: tuple[int, ...]) -> None:
    file["data"] = h5py.ExternalLink("other.h5", "/")


def virtual(file: h5py.File, shape: tuple[int, ...]) -> None:
    del file["planes"]
    layout = h5py.VirtualLayout(shape, "uint8")
    layout[...] = h5py.VirtualSource("other.h5", "planes", shape)
    file.create_virtual_dataset("planes", layout)


def terabyte(file: h5py.File, shape: tuple[int, ...]) -> None:
    del file["planes"]
    file.create_dataset("planes", (2**40, *shape[1:]), "uint8", chunks=(64, *shape[1:]))


# --- what these cases share


def command(*arguments: str | Path) -> tuple[int, str]:
    """Run the command in this process; return its exit code and all that it said."""
    result = CliRunner().invoke(cli, [str(argument) for argument in arguments])
    return result.exit_code, result.output


def data_set(folder: Path, shards: list[tuple[Columns, Layout]]) -> Path:
    """Write a data set of made-up rows, one shard each."""
    entries = []
    (folder / "train").mkdir(parents=True)
    for number, (rows, layout) in enumerate(shards):
        path = f"train/shard-{number:05d}.h5"
        made = shard.write(folder / path, [rows], layout)
        entries.append({"split": "train", "path": path, "rows": made.rows, "bytes": made.bytes, "sha256": made.sha256})
    write_manifest(folder, make_manifest(entries, shards[0][1]))
    return folder


def cut_and_empty(cut: Path, empty: Path) -> None:
    """Leave 60 percent of one file and nothing of the other."""
    cut.write_bytes(cut.read_bytes()[: cut.stat().st_size * 6 // 10])
    empty.write_bytes(b"")


_BUILD = """
import json, sys
from pipeline.build import build
from pipeline.config import Config
with open(sys.argv[1]) as file:
    build(Config.model_validate(json.load(file)))
"""


def start(command: list[str], **environment: str) -> "subprocess.Popen[str]":
    """Start Python in a process of its own that finds the package."""
    path = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        command,
        env=os.environ | {"PYTHONPATH": path} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def start_build(config: Config, folder: Path, **environment: str) -> "subprocess.Popen[str]":
    """Start a build in a process of its own."""
    path = folder / f"{Path(str(config.output.path)).name}.json"
    path.write_text(config.model_dump_json())
    return start([sys.executable, "-c", _BUILD, str(path)], **environment)


def finish(*processes: "subprocess.Popen[str]") -> str:
    """Wait for processes that must all succeed; return what the last one printed."""
    printed, said = "", ""
    for process in processes:
        with process:
            try:
                printed, errors = process.communicate(timeout=300)
            except subprocess.TimeoutExpired:
                process.kill()
                errors = "it did not end"
        said += errors if process.returncode else ""
    assert not said, said
    return printed
