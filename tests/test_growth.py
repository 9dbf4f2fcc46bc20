"""When a data set grows, when it is refused, and what a kill leaves: by inputs that come, go and change."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from example_builds import published_files
from random_games import Line, turned
from stages import RULES, made_up_games, sgf_of

from pipeline import workfolder
from pipeline.build import BuildError, Built, build
from pipeline.config import ConfigError, make_config
from pipeline.manifest import read_manifest
from pipeline.progress import Progress
from pipeline.verify import verify
from pipeline.workfolder import FolderMismatch

LINE = Line(5, 5, (((2, 2), 1), ((1, 1), 2), ((3, 3), 1), (None, 2)))


class Said(Progress):
    """Keeps the lines."""

    def __init__(self) -> None:
        super().__init__(quiet=True)
        self.lines: list[str] = []

    def line(self, text: str) -> None:
        self.lines.append(text)


def make(
    inputs: list[Path],
    folder: Path,
    said: Progress | None = None,
    overwrite: bool = False,
    games_per_block: int = 5,
    **tables: Any,
) -> Built:
    """Build or grow."""
    asked = {
        "rules": RULES,
        "filter": {"sizes": "any"},
        "encode": {"scheme": "board"},
        "split": {"val": 0.2, "test": 0.2, "plies": 4},
        **tables,
        "input": {"paths": [str(path) for path in inputs], **tables.get("input", {})},
        "output": {"games_per_block": games_per_block, "path": str(folder)},
        "run": {"workers": 0},
    }
    return build(make_config(asked, "test"), overwrite=overwrite, progress=said)


@pytest.fixture
def weeks(tmp_path: Path) -> list[Path]:
    """Three files of games, some of which are in two of them."""
    records = list(made_up_games("growth", [(5, 5), (3, 5)], 60).values())
    paths = [tmp_path / f"week-{number}.sgf" for number in range(3)]
    for number, path in enumerate(paths):
        path.write_text("".join(records[number * 18 : number * 18 + 24]))
    return paths


def test_only_what_is_new_is_read(weeks: list[Path], tmp_path: Path) -> None:
    """The old archives need not be there any more; nothing new is nothing to do."""
    output = tmp_path / "out"
    make(weeks[:1], output)
    said = Said()
    grown = make(weeks[1:2], output, said)
    assert grown.done["read"] == 24
    assert said.lines == ["growing the data set by 1 new of 2 inputs"]
    assert [item.source for item in grown.manifest.inputs] == ["week-0.sgf", "week-1.sgf"]
    assert grown.manifest.records.seen == 48
    before = published_files(output)
    assert make(weeks[:1], output).done == make(weeks[:2], output).done == {}
    assert published_files(output) == before
    assert {check.name: check.faults for check in verify(output) if check.faults} == {}


def test_the_same_set_in_one_go_or_from_a_folder(weeks: list[Path], tmp_path: Path) -> None:
    """What a growth adds depends on the inputs that are new, not on how they are named."""
    for name, second in (("one", weeks[1:]), ("other", weeks)):
        make(weeks[:1], tmp_path / name)
        make(second[::-1], tmp_path / name)
    assert published_files(tmp_path / "one") == published_files(tmp_path / "other")


def test_a_changed_input_is_refused(weeks: list[Path], tmp_path: Path) -> None:
    make(weeks[:1], tmp_path / "out")
    before = published_files(tmp_path / "out")
    weeks[0].write_text(weeks[0].read_text() + sgf_of(LINE))
    with pytest.raises(FolderMismatch, match=r"week-0.sgf changed in place"):
        make(weeks[:2], tmp_path / "out")
    assert published_files(tmp_path / "out") == before


@pytest.mark.parametrize("text", ["", "nothing", sgf_of(LINE) + sgf_of(turned(LINE, 3))])
def test_a_growth_that_keeps_nothing(weeks: list[Path], tmp_path: Path, text: str) -> None:
    """Neither does it stop the next one."""
    output = tmp_path / "out"
    weeks[0].write_text(weeks[0].read_text() + sgf_of(LINE))
    make(weeks[:1], output)
    weeks[1].write_text(text)
    entry = make(weeks[1:2], output).manifest.growths[0]
    assert (entry.kept, entry.seen, entry.stored) == (0, 0, 0)
    assert make(weeks[2:], output).manifest.growths[1].kept > 0
    assert {check.name: check.faults for check in verify(output) if check.faults} == {}


def test_blocks_without_games(tmp_path: Path) -> None:
    """Games are drawn into blocks: of many small ones some are empty."""
    records = "".join(made_up_games("blocks", [(5, 5)], 12).values())
    (tmp_path / "a.sgf").write_text(records)
    one = make([tmp_path / "a.sgf"], tmp_path / "one", games_per_block=1)
    assert one.manifest.records.kept > 5
    assert {check.name: check.faults for check in verify(tmp_path / "one") if check.faults} == {}


class Killed(BaseException):
    """In place of a kill: nothing catches it, and nothing is cleaned up on the way."""


@pytest.mark.parametrize("name", ["games.parquet", "README.md", "dataset.json"])
@pytest.mark.parametrize("after", [False, True])
def test_a_kill_while_it_is_published(
    weeks: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, after: bool
) -> None:
    """The shards of the earlier state are not touched, the same command ends with the same bytes, and a later one
    too."""
    make(weeks[:1], tmp_path / "once")
    make(weeks[:2], tmp_path / "once")
    output = tmp_path / "out"
    make(weeks[:1], output)
    earlier = read_manifest(output)
    replace = os.replace

    def stop(source: Path, target: Path) -> None:
        mine = Path(target) == output / name
        if mine and not after:
            raise Killed
        replace(source, target)
        if mine:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", stop)
        with pytest.raises(Killed):
            make(weeks[:2], output)
    if (name, after) != ("dataset.json", True):
        assert read_manifest(output) == earlier
    assert all((output / entry.path).stat().st_size == entry.bytes for entry in earlier.shards)
    make(weeks[:2], output)
    assert published_files(output) == published_files(tmp_path / "once")
    assert sorted(path.name for path in (output / ".goplanes").iterdir()) == ["build.json", "lock"]
    make(weeks, output)
    make(weeks, tmp_path / "once")
    assert published_files(output) == published_files(tmp_path / "once")


def stopped(weeks: list[Path], output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a growth by the second week stop when its shards are written."""

    def stop(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr("pipeline.stages.publish", stop)
        with pytest.raises(Killed):
            make(weeks[:2], output)


def test_more_inputs_come_while_one_growth_is_unfinished(
    weeks: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output, said = tmp_path / "out", Said()
    make(weeks[:1], output)
    stopped(weeks, output, monkeypatch)
    make(weeks, output, said)
    assert said.lines[0] == "inputs were added: the unfinished work starts anew"
    make(weeks[:1], tmp_path / "once")
    make(weeks, tmp_path / "once")
    assert published_files(output) == published_files(tmp_path / "once")


def test_an_input_of_an_unfinished_growth_is_gone(
    weeks: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of it was published: the set grows by what is there, and later by what comes back."""
    output = tmp_path / "out"
    make(weeks[:1], output)
    stopped(weeks, output, monkeypatch)
    make([weeks[0], weeks[2]], output)
    make(weeks[1:2], output)
    assert [growth.inputs for growth in read_manifest(output).growths] == [1, 1]
    for paths in (weeks[:1], [weeks[0], weeks[2]], weeks[1:2]):
        make(paths, tmp_path / "once")
    assert published_files(output) == published_files(tmp_path / "once")


def test_an_erase_that_was_killed(weeks: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The erased data set is none: what is named now is built from nothing."""
    output = tmp_path / "out"
    make(weeks[:1], output)

    def stop(_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(workfolder.WorkFolder, "_remove", stop)
        with pytest.raises(Killed):
            make(weeks[1:2], output, overwrite=True)
    assert make(weeks[1:2], output).manifest.growths == ()
    make(weeks[1:2], tmp_path / "once")
    assert published_files(output) == published_files(tmp_path / "once")


def damage_table(folder: Path) -> None:
    path = folder / "games.parquet"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def cut_shard(folder: Path) -> None:
    path = next((folder / "train").iterdir())
    path.write_bytes(path.read_bytes()[:-1])


@pytest.mark.parametrize("damage", [damage_table, cut_shard])
def test_a_damaged_data_set_does_not_grow(weeks: list[Path], tmp_path: Path, damage: Callable[[Path], None]) -> None:
    output = tmp_path / "out"
    make(weeks[:1], output)
    damage(output)
    before = published_files(output)
    with pytest.raises(BuildError, match="--overwrite"):
        make(weeks[:2], output)
    assert published_files(output) == before


def test_data_sets_built_from_another_one(weeks: list[Path], tmp_path: Path) -> None:
    """Neither grow by records nor are they what a data set grows by."""
    make(weeks[:1], tmp_path / "first")
    make([tmp_path / "first"], tmp_path / "again")
    with pytest.raises(ConfigError, match="was built from another data set and cannot grow"):
        make(weeks[1:2], tmp_path / "again")
    make(weeks[1:2], tmp_path / "second")
    with pytest.raises(ConfigError, match="cannot grow by a data set"):
        make([tmp_path / "first"], tmp_path / "second")


def test_a_file_that_was_refused_is_read_later(weeks: list[Path], tmp_path: Path) -> None:
    """It is then no longer among those that are not read."""
    output, folder = tmp_path / "out", tmp_path / "in"
    folder.mkdir()
    weeks[0].rename(folder / "a.sgf")
    limit = {"max_member_bytes": 20_000}
    (folder / "b.sgf").write_text("x" * 30_000)
    (folder / "notes.txt").write_text("nothing")
    first = make([folder], output, input=limit).manifest
    assert {item.source for item in first.omitted} == {"b.sgf", "notes.txt"}
    weeks[1].rename(folder / "b.sgf")
    grown = make([folder], output, input=limit).manifest
    assert [item.source for item in grown.omitted] == ["notes.txt"]
    assert (grown.members.seen, grown.members.with_records) == (3, 2)
