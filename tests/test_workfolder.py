"""The output folder: the lock, whose folder it is, what a mismatch says, and what is erased."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pipeline.config import Config, make_config
from pipeline.files import TEMPORARY
from pipeline.growth import input_fingerprint, input_list
from pipeline.sources import InputFile
from pipeline.workfolder import FolderBusy, FolderMismatch, WorkFolder

SRC = Path(__file__).parents[1]


def file(source: str, content: str = "0", size: int = 1) -> InputFile:
    return InputFile(source, f"/somewhere/{source}", size, 0, content * 64, "record")


def claim(folder: WorkFolder, config: Config, *files: InputFile) -> bool:
    return folder.claim(config.published(), config.fingerprint(scheme=1), input_list(files))


@pytest.fixture
def folder(tmp_path: Path) -> WorkFolder:
    made = WorkFolder(tmp_path / "out")
    with made.locked():
        pass
    return made


def test_a_folder_belongs_to_its_configuration_and_inputs(folder: WorkFolder) -> None:
    config = Config()
    claim(folder, config, file("a"), file("b", "1"))
    claim(folder, config, file("b", "1"), file("a"))  # whatever their order, and where they lie
    claim(folder, make_config({"run": {"workers": 7}, "output": {"path": "x"}}, "x"), file("a"), file("b", "1"))


def refusal(folder: WorkFolder, config: Config, *files: InputFile) -> str:
    with pytest.raises(FolderMismatch) as caught:
        claim(folder, config, *files)
    return str(caught.value)


def test_another_configuration_is_refused(folder: WorkFolder) -> None:
    """The message names the keys with both values, both fingerprints, and the way out."""
    config = Config()
    other = make_config({"split": {"val": 0.25}, "filter": {"sizes": [9]}}, "x")
    claim(folder, config, file("a"))
    text = refusal(folder, other, file("a"))
    assert "filter.sizes [[19, 19]] -> [[9, 9]], split.val 0.05 -> 0.25" in text
    assert config.fingerprint(scheme=1) in text
    assert other.fingerprint(scheme=1) in text
    assert "--overwrite" in text
    assert "--output" in text
    claim(folder, config, file("a"))  # and nothing has changed


def test_another_version_is_refused(folder: WorkFolder) -> None:
    config = Config()
    claim(folder, config, file("a"))
    with pytest.raises(FolderMismatch, match="different: the version of goplanes"):
        folder.claim(config.published(), config.fingerprint(scheme=2), input_list([file("a")]))


@pytest.mark.parametrize(
    ("now", "said"),
    [
        ([("a", "0"), ("b", "2")], "b changed in place"),
        ([("a", "0")], "b is no longer there"),
        ([("b", "2"), ("c", "3")], "a is no longer there"),
        ([("a", "0"), ("c", "1")], "b is no longer there"),
        ([], "a is no longer there"),
    ],
)
def test_other_inputs_are_refused(folder: WorkFolder, now: list[tuple[str, str]], said: str) -> None:
    before = [file("a"), file("b", "1")]
    claim(folder, Config(), *before)
    files = [file(source, content) for source, content in now]
    text = refusal(folder, Config(), *files)
    assert said in text
    assert input_fingerprint(input_list(before)) in text
    assert input_fingerprint(input_list(files)) in text
    assert "--overwrite" in text


def test_gained_inputs_start_the_unfinished_work_anew(folder: WorkFolder) -> None:
    """What was done goes, shards included, and nothing else."""
    assert not claim(folder, Config(), file("a"))
    assert not claim(folder, Config(), file("a"), file("b", "1"))  # nothing was done yet
    folder.stage("read").joinpath("part").write_text("half")
    (folder.path / "train").mkdir()
    for name in ("shard-00000.parquet", "notes.txt"):
        (folder.path / "train" / name).write_text("x")
    assert not claim(folder, Config(), file("b", "1"), file("a"))
    assert (folder.work / "read" / "part").exists()
    assert claim(folder, Config(), file("a"), file("b", "1"), file("b", "1"))
    assert not folder.work.exists()
    assert [entry.name for entry in (folder.path / "train").iterdir()] == ["notes.txt"]


def test_one_of_two_equal_inputs_is_missed(folder: WorkFolder) -> None:
    claim(folder, Config(), file("a"), file("a"))
    assert "a is no longer there" in refusal(folder, Config(), file("a"))


def test_the_fingerprint_of_inputs() -> None:
    """Names and contents in any order; not where they lie, how large or how old they are."""
    one, two = file("a"), file("b", "1")
    fingerprint = input_fingerprint(input_list([one, two]))
    assert input_fingerprint(input_list([two, one])) == fingerprint
    moved = InputFile("a", "/elsewhere/a", 9, 9, "0" * 64, "zip")
    assert input_fingerprint(input_list([moved, two])) == fingerprint
    others = [[one], [one, file("b", "2")], [one, file("c", "1")], [one, two, two], [file("a", "1"), file("b")]]
    assert len({fingerprint, *(input_fingerprint(input_list(files)) for files in others)}) == len(others) + 1


def test_a_damaged_state_is_refused(folder: WorkFolder) -> None:
    claim(folder, Config(), file("a"))
    (state,) = folder.private.glob("*.json")
    state.write_text(state.read_text()[:-3])
    assert "damaged; use --overwrite" in refusal(folder, Config(), file("a"))


def test_the_state_holds_no_paths(folder: WorkFolder) -> None:
    claim(folder, make_config({"output": {"path": "secret"}, "input": {"paths": ["secret"]}}, "x"), file("a"))
    (state,) = folder.private.glob("*.json")
    assert "secret" not in state.read_text()
    assert "somewhere" not in state.read_text()
    assert json.loads(state.read_text())["inputs"] == [{"source": "a", "bytes": 1, "sha256": "0" * 64}]


def test_an_erase_that_is_cut_short_leaves_no_work_to_take_over(
    folder: WorkFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim(folder, Config(), file("a"))
    (folder.stage("read") / "part-000000.json").write_text("{}")

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("shutil.rmtree", killed)
        with pytest.raises(KeyboardInterrupt):
            folder.erase()
    # The next build goes on with the erasing, whatever it builds, and beside the files of the user.
    (folder.path / "notes.txt").write_text("mine")
    folder.require_place()
    claim(folder, make_config({"split": {"val": 0.25}}, "x"), file("a"))
    assert not folder.work.exists()
    assert (folder.path / "notes.txt").read_text() == "mine"
    refusal(folder, Config(), file("a"))


def test_an_erase_that_is_cut_short_at_once_leaves_no_data_set_to_take_over(
    folder: WorkFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim(folder, Config(), file("a"))
    (folder.path / "dataset.json").write_text("{}")

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", killed)
        with pytest.raises(KeyboardInterrupt):
            folder.erase()
    claim(folder, make_config({"split": {"val": 0.25}}, "x"), file("a"))
    assert not (folder.path / "dataset.json").exists()


def test_the_work_of_another_version_is_done_again(folder: WorkFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    part = folder.stage("read") / "part-000000.json"
    claim(folder, Config(), file("a"))
    part.write_text("{}")
    claim(folder, Config(), file("a"))
    assert part.exists()
    monkeypatch.setattr("pipeline.manifest.SOFTWARE", "goplanes 9.9.9")
    claim(folder, Config(), file("a"))
    assert not part.exists()
    part.parent.mkdir(parents=True)
    part.write_text("{}")
    claim(folder, Config(), file("a"))
    assert part.exists()


HOLDER = """
import sys, time
from pipeline.workfolder import WorkFolder
with WorkFolder(sys.argv[1]).locked():
    print("held", flush=True)
    time.sleep(600)
"""


def hold(path: Path) -> "subprocess.Popen[str]":
    """Start a process that holds a folder."""
    env: dict[str, Any] = {**os.environ, "PYTHONPATH": str(SRC)}
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(path)], env=env, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    return holder


def test_one_build_holds_a_folder(tmp_path: Path) -> None:
    """A second one is told who; a holder that is killed lets go."""
    folder = WorkFolder(tmp_path / "out")
    with hold(folder.path) as holder:
        try:
            with (
                pytest.raises(FolderBusy, match=f"out: another build .process {holder.pid}. is at work"),
                folder.locked(),
            ):
                pass
        finally:
            holder.send_signal(signal.SIGKILL)
    with folder.locked():
        assert (folder.private / "lock").read_text() == f"{os.getpid()}\n"
        with pytest.raises(FolderBusy), WorkFolder(folder.path).locked():
            pass
    with folder.locked():
        pass


def test_a_folder_of_somebody_else(tmp_path: Path) -> None:
    folder = WorkFolder(tmp_path / "out")
    assert not folder.is_foreign()  # not there
    folder.path.mkdir()
    assert not folder.is_foreign()  # empty
    (folder.path / "notes.txt").write_text("mine")
    assert folder.is_foreign()
    with folder.locked():
        assert folder.is_foreign()
        claim(folder, Config(), file("a"))
    assert not folder.is_foreign()
    (tmp_path / "published").mkdir()
    published = WorkFolder(tmp_path / "published")
    (published.path / "dataset.json").write_text("{}")
    assert not published.is_foreign()


def test_where_a_data_set_may_be_made(tmp_path: Path) -> None:
    WorkFolder(tmp_path / "out").require_place()
    (tmp_path / "file").write_text("")
    with pytest.raises(FolderMismatch, match="file is a file"):
        WorkFolder(tmp_path / "file").require_place()
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").write_text("")
    with pytest.raises(FolderMismatch, match="holds files that are no data set"):
        WorkFolder(tmp_path / "notes").require_place()
    WorkFolder(tmp_path / "notes" / "sub").require_place()


@pytest.mark.parametrize("files", [["dataset.json", "games.parquet"], [".goplanes/build.json"]])
def test_no_data_set_is_made_inside_another(files: list[str], tmp_path: Path) -> None:
    """Neither inside a finished one nor inside one that is being built, by whatever path."""
    for name in files:
        (tmp_path / "set" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "set" / name).write_text("{}")
    (tmp_path / "link").symlink_to(tmp_path / "set")
    for inside in ("set/sub", "set/train/sub", "link/sub"):
        with pytest.raises(FolderMismatch, match="lies in the data set"):
            WorkFolder(tmp_path / inside).require_place()
    WorkFolder(tmp_path / "set").require_place()


def test_erasing_leaves_what_is_not_ours(folder: WorkFolder) -> None:
    ours = ["dataset.json", "games.parquet", "README.md", "train/shard-00000.parquet", "val/shard-00012.h5"]
    ours += ["test/shard-123456.h5", ".goplanes/work/read/part-000000.json"]
    theirs = [
        "notes.txt",
        "train/notes.txt",
        "train/shard-0.parquet",
        "train/shard-00000.parquet.bak",
        "x/shard-00000.h5",
    ]
    claim(folder, Config(), file("a"))
    for name in ours + theirs:
        (folder.path / name).parent.mkdir(parents=True, exist_ok=True)
        (folder.path / name).write_text("x")
    folder.erase()
    left = {path.relative_to(folder.path).as_posix() for path in folder.path.rglob("*") if path.is_file()}
    assert left == {*theirs, ".goplanes/lock", ".goplanes/build.json"}
    assert not (folder.path / "val").exists()
    assert not (folder.path / "test").exists()
    claim(folder, make_config({"split": {"val": 0.2}}, "x"), file("b"))  # the folder is free


def test_erasing_nothing(folder: WorkFolder) -> None:
    folder.erase()
    assert [path.name for path in folder.path.iterdir()] == [".goplanes"]


def test_what_killed_builds_left_is_removed(folder: WorkFolder) -> None:
    places = [folder.path, folder.path / "train", folder.private, folder.stage("read"), folder.path / "mine"]
    for place in places:
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{TEMPORARY}1-abc").write_text("half")
        (place / "whole").write_text("whole")
    folder.clear_leftovers()
    left = [place for place in places if (place / f"{TEMPORARY}1-abc").exists()]
    assert left == [folder.path / "mine"]  # a folder that is not ours
    assert all((place / "whole").exists() for place in places)


def test_work_in_progress(folder: WorkFolder) -> None:
    assert folder.stage("read") == folder.path / ".goplanes" / "work" / "read"
    assert folder.stage("read").is_dir()
    folder.clear_work()
    assert not folder.work.exists()
    folder.clear_work()


def test_work_is_discarded_whole(folder: WorkFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kill in the midst leaves nothing to go on from; what it left goes with the next one."""
    (folder.stage("read") / "part").write_text("whole")

    def killed(path: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("pipeline.workfolder.shutil.rmtree", killed)
        with pytest.raises(KeyboardInterrupt):
            folder.clear_work()
    assert not folder.work.exists()
    (folder.stage("read") / "part").write_text("whole")
    folder.clear_work()
    assert [path.name for path in folder.private.iterdir()] == ["lock"]
