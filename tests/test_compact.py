"""A data set that grew, made compact: the bytes of one build of all its inputs, in its place or elsewhere."""

import errno
import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from example_builds import EXAMPLES
from odd_records import write_odd_records

from pipeline import compact as compacts
from pipeline.build import BuildError, Built, build
from pipeline.cli import cli
from pipeline.columns import ShardError
from pipeline.compact import compact
from pipeline.config import ConfigError, Run, make_config
from pipeline.manifest import ManifestError, read_manifest
from pipeline.verify import verify
from pipeline.workfolder import FolderBusy, FolderMismatch, WorkFolder

Tables = dict[str, dict[str, Any]]

PLAIN: Tables = {
    "filter": {"sizes": "any", "min_moves": 3},
    "encode": {"scheme": "board"},
    "output": {"games_per_block": 20},
}
OTHERS: list[Tables] = [
    {},
    {"augment": {"mode": "all"}, "output": {"rows_per_shard": 3000}},
    {"dedup": {"positions": "first", "key_bits": 128}, "augment": {"mode": "random"}},
    {"dedup": {"positions": "off", "near": "drop"}, "sample": {"per_game": 3}},
    {"dedup": {"near": "drop", "games": True}, "rules": {"illegal": "keep-prefix"}},
    {"dedup": {"games": False}, "split": {"overlap": "keep", "val": 0.3}},
    {"output": {"format": "hdf5", "packed": False}, "encode": {"scheme": "agz17"}},
    {"output": {"shuffle": "exact", "rows_per_shard": 500}},
    {"filter": {"sizes": [9, "5x9"], "min_rank": "9k"}, "rules": {"default": "japanese", "komi_default": 6.3}},
    {"input": {"exclude": ["*/bo-*"]}, "parse": {"two_moves": "split"}},
    {"sample": {"weights": [{"source": "loose/*", "weight": 2.5}, {"min_rank": "1d", "weight": 0.5}]}},
]
QUICK = Run(workers=0)


def make(inputs: list[Path], output: Path, tables: Tables | None = None) -> Built:
    asked = tables or {}
    merged = {name: {**PLAIN.get(name, {}), **asked.get(name, {})} for name in {*PLAIN, *asked}}
    merged["input"] = {**merged.get("input", {}), "paths": [str(path) for path in inputs]}
    merged["output"] = {**merged["output"], "path": str(output)}
    return build(make_config({**merged, "run": {"workers": 0}}, "test"))


def files(folder: Path) -> dict[str, bytes]:
    """Return the bytes of every file of a data set, hidden ones too, but of the lock, which holds a process."""
    paths = [path for path in folder.rglob("*") if path.is_file() and path.name != "lock"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


@pytest.fixture(scope="module")
def weeks(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return inputs that come one after the other: records of every kind in each, and copies among them."""
    folder = tmp_path_factory.mktemp("weeks")
    odd = write_odd_records(folder / "odd")
    (folder / "more").mkdir()
    for name in ("turned.sgf", "near.zip", ".hidden.sgf", "komi.sgf", "off.sgf"):
        shutil.move(odd / name, folder / "more" / name)
    (folder / "more" / "copy.sgf").write_bytes((odd / "clash.sgf").read_bytes())
    return [odd, EXAMPLES, folder / "more"]


@pytest.fixture(scope="module")
def once(weeks: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(weeks, tmp_path_factory.mktemp("once") / "set").path


@pytest.fixture(scope="module")
def grown_once(weeks: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return grow(weeks, tmp_path_factory.mktemp("grown") / "set")


@pytest.fixture
def grown(grown_once: Path, tmp_path: Path) -> Path:
    """Return a data set in a folder of its own that grew twice."""
    return Path(shutil.copytree(grown_once, tmp_path / "here" / "set"))


def grow(weeks: list[Path], output: Path, tables: Tables | None = None) -> Path:
    for number in range(len(weeks)):
        make(weeks[: number + 1], output, tables)
    assert len(read_manifest(output).growths) == len(weeks) - 1
    return output


@pytest.mark.parametrize("tables", OTHERS)
def test_the_files_are_those_of_one_build(weeks: list[Path], tables: Tables, tmp_path: Path) -> None:
    whole = make(weeks, tmp_path / "once", tables).path
    compact(whole, run=QUICK, output=tmp_path / "copy")  # a data set that never grew is made again
    assert files(tmp_path / "copy") == files(whole)
    (tmp_path / "here").mkdir()
    grown = grow(weeks, tmp_path / "here" / "set", tables)
    assert files(grown) != files(whole)
    compact(grown, run=QUICK, output=tmp_path / "elsewhere")
    assert files(tmp_path / "elsewhere") == files(whole)
    built = compact(grown, run=QUICK)
    assert files(grown) == files(whole)
    assert (built.path, built.manifest) == (grown, read_manifest(whole))
    assert [entry.name for entry in grown.parent.iterdir()] == ["set"]


def test_counts_were_stale_before(weeks: list[Path], grown: Path) -> None:
    """Otherwise the test above would prove less than it says."""
    assert sum(growth.stale for growth in read_manifest(grown).growths) > 0
    assert sum(growth.left_out for growth in read_manifest(grown).growths) > 0
    assert {entry.reason for entry in read_manifest(grown).omitted} >= {"hidden", "not-a-record", "damaged-archive"}


def test_it_is_complete_and_can_grow_on(weeks: list[Path], grown: Path, once: Path, tmp_path: Path) -> None:
    compact(grown, run=QUICK)
    assert make(weeks, grown).seconds == {}  # nothing to do
    assert not any(check.faults for check in verify(grown, 50))
    (tmp_path / "last").mkdir()
    (tmp_path / "last" / "last.sgf").write_text("(;GM[1]SZ[9];B[ca];W[db];B[ec];W[fd])")
    make([*weeks, tmp_path / "last"], grown)
    manifest = read_manifest(grown)
    assert [growth.records for growth in manifest.growths] == [1]
    assert manifest.shards[0] == read_manifest(once).shards[0]
    compact(grown, run=QUICK)
    make([*weeks, tmp_path / "last"], tmp_path / "again")
    assert files(grown) == files(tmp_path / "again")


def test_what_never_grew_is_left_as_it_is(once: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(once, tmp_path / "set"))
    before = {path: path.stat().st_ino for path in folder.rglob("*")}
    assert compact(folder).seconds == {}
    assert {path: path.stat().st_ino for path in folder.rglob("*")} == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["set"]
    os.truncate(folder / read_manifest(folder).shards[0].path, 10)
    with pytest.raises(BuildError, match="cut short"):
        compact(folder)


def test_worker_processes(grown: Path, once: Path) -> None:
    compact(grown, run=Run(workers=2))
    assert files(grown) == files(once)


@pytest.mark.parametrize("way", ["exchange", "renames"])
def test_a_kill_at_any_moment_loses_nothing(way: str, grown_once: Path, once: Path, tmp_path: Path) -> None:
    script = Path(__file__).with_name("killed_compacts.py")
    line = [sys.executable, script, grown_once, once, way]
    environment = os.environ | {"PYTHONPATH": str(script.parents[1])}
    done = subprocess.run(line, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    after = json.loads(done.stdout)
    assert set(after) == ({"old", "new"} if way == "exchange" else {"old", "away", "new"})
    assert after.get("away", 1) == 1
    assert min(after["old"], after["new"]) > 5


@contextmanager
def stopped_at(name: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the block end with an interrupt where it calls this function."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(name, stop)
        with pytest.raises(KeyboardInterrupt):
            yield


@pytest.mark.parametrize("where", ["pipeline.stages.publish", "pipeline.compact._exchange"])
def test_work_on_another_state_of_it_is_not_taken_over(
    where: str, weeks: list[Path], once: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    folder = grow(weeks[:2], tmp_path / "here" / "set")
    with stopped_at(where, monkeypatch):
        compact(folder, run=QUICK)
    assert (tmp_path / "here" / ".set.compact" / "train").exists()
    make(weeks, folder)
    compact(folder, run=QUICK)
    assert files(folder) == files(once)
    assert [entry.name for entry in folder.parent.iterdir()] == ["set"]


def test_work_on_the_same_state_is_taken_over(grown: Path, once: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with stopped_at("pipeline.stages.publish", monkeypatch):
        compact(grown, run=QUICK)
    assert compact(grown, run=QUICK).done["encode"] == 0
    assert files(grown) == files(once)


def test_a_growth_that_was_killed_is_no_hindrance(
    weeks: list[Path], once: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The game table in the folder may be that of the growth already: it is not the table of what is published."""
    make(weeks[:2], tmp_path / "two")
    (tmp_path / "here").mkdir()
    folder = grow(weeks[:2], tmp_path / "here" / "set")
    with stopped_at("pipeline.manifest.write_manifest", monkeypatch):
        make(weeks, folder)
    assert (folder / ".goplanes" / "before").exists()
    compact(folder, run=QUICK, output=tmp_path / "copy")
    assert files(tmp_path / "copy") == files(tmp_path / "two")
    compact(folder, run=QUICK)
    assert files(folder) == files(tmp_path / "two")
    make(weeks, folder)
    compact(folder, run=QUICK)
    assert files(folder) == files(once)


def test_what_else_lies_in_the_folder_stays_there(grown: Path, once: Path) -> None:
    (grown / "notes").mkdir()
    (grown / "notes" / "mine.txt").write_text("mine")
    (grown / "train" / "mine.txt").write_text("mine too")
    grown.chmod(0o751)
    compact(grown, run=QUICK)
    mine = {"notes/mine.txt": b"mine", "train/mine.txt": b"mine too"}
    assert files(grown) == files(once) | mine
    assert grown.stat().st_mode & 0o777 == 0o751
    assert [entry.name for entry in grown.parent.iterdir()] == ["set"]


@pytest.mark.parametrize("name", [".set.compact", ".set.before-compact"])
def test_a_folder_of_the_user_is_not_touched(name: str, grown: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = grown.parent / name
    theirs.mkdir()
    (theirs / "mine.txt").write_text("mine")
    monkeypatch.setattr(compacts.ctypes, "CDLL", lambda *_, **__: object())
    before = files(grown)
    with pytest.raises((FolderMismatch, OSError), match=rf"{name}|--output"):
        compact(grown, run=QUICK)
    assert files(grown) == before
    assert (theirs / "mine.txt").read_text() == "mine"
    (theirs / "mine.txt").unlink()
    theirs.rmdir()
    assert compact(grown, run=QUICK).manifest.growths == ()


def test_a_link_to_it_stays_a_link(grown: Path, once: Path) -> None:
    link = grown.parent / "link"
    link.symlink_to("set")
    assert compact(link, run=QUICK).path == link
    assert link.is_symlink()
    assert files(link) == files(once)


def test_parts_that_lie_elsewhere_are_refused(grown: Path, tmp_path: Path) -> None:
    shutil.move(grown / "train", tmp_path / "train")
    (grown / "train").symlink_to(tmp_path / "train")
    with pytest.raises(OSError, match=r"is a link.*--output"):
        compact(grown, run=QUICK)


def test_a_folder_that_cannot_be_replaced_is_refused_before_the_work(
    grown: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> None:
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), str(path))

    before = files(grown)
    with monkeypatch.context() as patch:
        patch.setattr(os, "rmdir", refuse)
        result = run("compact", grown)
    assert result.exit_code == 4
    assert f"cannot be replaced ({os.strerror(errno.EBUSY)})" in result.stderr
    assert "--output" in result.stderr
    assert files(grown) == before
    assert [entry.name for entry in grown.parent.iterdir()] == ["set"]


def test_a_folder_that_turns_out_to_be_irreplaceable_keeps_the_work(
    grown: Path, once: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = os.rename

    def refuse(source: Path, target: Path) -> None:
        if Path(source).name == ".set.compact":
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), str(source))
        rename(source, target)

    before = files(grown)
    monkeypatch.setattr(compacts.ctypes, "CDLL", lambda *_, **__: object())
    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", refuse)
        with pytest.raises(OSError, match=r"\.set\.compact is complete.*--output"):
            compact(grown, run=QUICK)
    assert files(grown) == before
    assert compact(grown, run=QUICK).done == {}  # nothing was built again
    assert files(grown) == files(once)


def test_nobody_else_is_let_in(grown: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither while the new one is built nor while the old one goes: the lock is that of the folder's place."""
    met = []
    for name in ("_exchange", "_discard"):
        function = getattr(compacts, name)

        def meet(*arguments: Any, function: Any = function) -> None:
            for _ in range(2):
                with pytest.raises(FolderBusy), WorkFolder(grown).locked():
                    pass
                if len(met) % 2 == 0:
                    function(*arguments)
                met.append(function)

        monkeypatch.setattr(compacts, name, meet)
    compact(grown, run=QUICK)
    assert len(met) == 6
    with WorkFolder(grown).locked():
        pass


def test_a_lock_on_a_folder_that_was_replaced_meanwhile_is_none(
    grown: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A process may have opened the lock of the old folder before the exchange, and ask for it after that."""
    flock = fcntl.flock

    def late(*arguments: Any) -> None:
        os.rename(grown, tmp_path / "old")
        shutil.copytree(tmp_path / "old", grown)
        flock(*arguments)

    monkeypatch.setattr(fcntl, "flock", late)
    with pytest.raises(FolderBusy, match="run again"), WorkFolder(grown).locked():
        pass
    monkeypatch.undo()
    with WorkFolder(grown).locked():
        pass


def test_a_folder_that_is_at_work_is_3(grown: Path) -> None:
    before = files(grown)
    with WorkFolder(grown).locked():
        result = run("compact", grown, "--workers", "0")
    assert result.exit_code == 3
    assert f"process {os.getpid()}" in result.stderr
    assert result.stderr.splitlines()[-1].startswith("failed: command=compact exit=3 reason=")
    assert files(grown) == before


def test_another_version_is_refused(grown: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["pipeline.build"], "KERNEL_VERSION", 10_000)
    before = files(grown)
    for more in ({}, {"output": grown.parent / "copy"}):
        with pytest.raises(ConfigError, match=r"was built by goplanes .* build it anew from its records"):
            compact(grown, run=QUICK, **more)  # type: ignore[arg-type]
    assert files(grown) == before
    assert [entry.name for entry in grown.parent.iterdir()] == ["set"]


def test_a_damaged_table_is_refused(grown: Path) -> None:
    data = bytearray((grown / "games.parquet").read_bytes())
    data[len(data) // 2] ^= 1
    (grown / "games.parquet").write_bytes(data)
    with pytest.raises(ShardError, match=r"games\.parquet: its sha256"):
        compact(grown, run=QUICK)
    assert [entry.name for entry in grown.parent.iterdir()] == ["set"]


def test_what_is_no_data_set(tmp_path: Path, grown: Path) -> None:
    (tmp_path / "empty").mkdir()
    for output in (None, tmp_path / "out"):
        with pytest.raises(ManifestError, match="no data set"):
            compact(tmp_path / "empty", output=output)
    with pytest.raises(ConfigError, match="no such file or folder"):
        compact(tmp_path / "nothing")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["empty", "here"]
    assert list((tmp_path / "empty").iterdir()) == []
    for inside in (grown, grown / "train"):
        with pytest.raises(ConfigError, match="choose another --output"):
            compact(grown, run=QUICK, output=inside)


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


def test_the_command(grown: Path, once: Path, tmp_path: Path) -> None:
    copied = run("compact", grown, "--output", tmp_path / "copy", "--workers", "0", "--json")
    assert copied.exit_code == 0, copied.output
    assert json.loads(copied.stdout)["path"] == str(tmp_path / "copy")
    assert files(tmp_path / "copy") == files(once)
    done = run("compact", grown, "--workers", "0", "--set", "run.memory=4GB")
    assert done.exit_code == 0, done.output
    assert f"done: {grown}\n" in done.stdout
    assert " outcome=compacted " in done.stderr.splitlines()[-1]
    again = run("compact", grown, "--workers", "0", "--json")
    assert json.loads(again.stdout)["nothing_to_do"] is True
    assert " outcome=nothing-to-do " in again.stderr.splitlines()[-1]
    assert files(grown) == files(once)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--set", "split.val=0.1"], "only run.* can be set"),
        (["--set", "run.worker=1"], "did you mean 'run.workers'"),
        (["--executor", "nix"], "run.executor = 'nix'"),
        (["--scheme", "agz17"], "No such option"),
    ],
)
def test_wrong_usage(arguments: list[str], words: str, grown: Path) -> None:
    before = files(grown)
    result = run("compact", grown, *arguments)
    assert result.exit_code == 2
    assert words in result.stderr
    assert files(grown) == before
