"""A build over inputs that gained files: killed at any change of a file, damaged before it began, and what it lists."""

import os
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from random_games import random_line
from stages import RULES, sgf_of

from pipeline.build import BuildError, build
from pipeline.columns import ShardError
from pipeline.config import Config, make_config
from pipeline.files import sha256_of_file
from pipeline.manifest import Manifest, read_manifest, write_manifest

RECORDS = [sgf_of(random_line(Random(f"growing {number}"), 9, 9, 12, 0), RE="B+R") for number in range(24)]


def config(output: Path, *inputs: Path) -> Config:
    tables: dict[str, Any] = {
        "input": {"paths": [str(path) for path in inputs]},
        "rules": RULES,
        "filter": {"sizes": [9]},
        "split": {"val": 0.2, "test": 0.2, "plies": 6},
        "encode": {"scheme": "board"},
        "output": {"path": str(output), "games_per_block": 5},
        "run": {"workers": 0},
    }
    return make_config(tables, "test")


@pytest.fixture
def weeks(tmp_path: Path) -> list[Path]:
    """Return the inputs of two weeks; the second has some records of the first again."""
    paths = [tmp_path / "week-1.sgf", tmp_path / "week-2.sgf"]
    paths[0].write_text("".join(RECORDS[:12]))
    paths[1].write_text("".join(RECORDS[9:]))
    return paths


def files(folder: Path) -> dict[str, bytes]:
    """Return the bytes of all files but the lock and the notes of the folder."""
    paths = [path for path in folder.rglob("*") if path.is_file() and path.name not in {"lock", "build.json"}]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def killed_at(number: int, call: Callable[[], object]) -> bool:
    """Run ``call`` in a child that dies before its change number ``number`` of a name in a folder, from 0.

    Return whether it died: false where it made fewer changes. Nothing is cleaned up, as after a kill.
    """
    child = os.fork()
    if child == 0:
        try:
            _die_at(number)
            call()
            os._exit(0)
        finally:
            os._exit(1)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in {0, 99}
    return code == 99


def _die_at(number: int) -> None:
    changes = 0

    def counted(change: Callable[..., Any]) -> Callable[..., Any]:
        def changed(*arguments: Any, **options: Any) -> Any:
            nonlocal changes
            if changes == number:
                os._exit(99)
            changes += 1
            return change(*arguments, **options)

        return changed

    for name in ("replace", "rename", "link", "unlink", "rmdir", "mkdir"):
        setattr(os, name, counted(getattr(os, name)))


def readable(folder: Path) -> Manifest:
    """Return the published state, whose shards are all there."""
    manifest = read_manifest(folder)
    assert all(sha256_of_file(folder / shard.path) == shard.sha256 for shard in manifest.shards)
    return manifest


def test_a_growth_killed_again_and_again_ends_with_the_same_bytes(weeks: list[Path], tmp_path: Path) -> None:
    """The earlier state can be read until the new one is there, whatever the kills left to the next run."""
    whole = tmp_path / "whole"
    for week in weeks:
        build(config(whole, week))
    states = set()
    for step in (1, 17, 40):
        folder = tmp_path / f"{step}"
        build(config(folder, weeks[0]))
        kills = 0
        while killed_at(kills, lambda folder=folder: build(config(folder, weeks[1]))):
            states.add(len(readable(folder).growths))
            kills += step
        assert kills
        assert files(folder) == files(whole)
    assert 0 in states


def test_a_growth_killed_anywhere(weeks: list[Path], tmp_path: Path) -> None:
    """Every seventh change, from the first one to the clean-up after the manifest."""
    first, whole, folder = tmp_path / "first", tmp_path / "whole", tmp_path / "out"
    build(config(first, weeks[0]))
    build(config(copied(first, whole), weeks[1]))
    number, states = 0, []
    copied(first, folder)
    while killed_at(number, lambda: build(config(folder, weeks[1]))):
        states.append(len(readable(folder).growths))
        build(config(folder, weeks[1]))
        assert files(folder) == files(whole), number
        copied(first, folder)
        number += 7
    assert set(states) == {0, 1}


def copied(source: Path, target: Path) -> Path:
    shutil.rmtree(target, ignore_errors=True)
    return shutil.copytree(source, target)


def test_a_damaged_set_is_not_noted_to_grow(weeks: list[Path], tmp_path: Path) -> None:
    """With its own inputs alone there is still nothing to do."""
    folder = tmp_path / "out"
    build(config(folder, weeks[0]))
    data = (folder / "games.parquet").read_bytes()
    (folder / "games.parquet").write_bytes(data[:99] + bytes([data[99] ^ 1]) + data[100:])
    with pytest.raises(BuildError, match=r"games\.parquet"):
        build(config(folder, weeks[1]))
    assert build(config(folder, weeks[0])).seconds == {}
    (folder / "games.parquet").write_bytes(data)
    assert len(build(config(folder, weeks[1])).manifest.growths) == 1


@pytest.mark.parametrize("damage", ["flipped", "missing", "other"])
def test_a_growth_over_a_shard_that_is_not_the_published_one(weeks: list[Path], tmp_path: Path, damage: str) -> None:
    """Its keys would be trusted: it is named, nothing is published, and the right file back the growth goes on."""
    folder = tmp_path / "out"
    manifest = build(config(folder, weeks[0])).manifest
    path = folder / manifest.shards[0].path
    whole, before = path.read_bytes(), (folder / "dataset.json").read_bytes()
    if damage == "flipped":
        path.write_bytes(whole[:50] + bytes([whole[50] ^ 1]) + whole[51:])
    elif damage == "other":
        path.write_bytes((folder / manifest.shards[-1].path).read_bytes())
    else:
        path.unlink()
    with pytest.raises((BuildError, ShardError), match=path.name):
        build(config(folder, *weeks))
    assert (folder / "dataset.json").read_bytes() == before
    path.write_bytes(whole)
    build(config(folder, *weeks))
    build(config(tmp_path / "one", weeks[0]))
    build(config(tmp_path / "one", *weeks))
    assert files(folder) == files(tmp_path / "one")


@pytest.mark.parametrize("change", ["changed", "withdrawn"])
def test_an_unfinished_growth_is_forgotten_with_its_inputs(weeks: list[Path], tmp_path: Path, change: str) -> None:
    """Nothing of it was published: a file that was half there may be completed, or taken away again."""
    folder = tmp_path / "out"
    build(config(folder, weeks[0]))
    half = tmp_path / "half.sgf"
    half.write_text(RECORDS[20][:60])
    assert killed_at(12, lambda: build(config(folder, weeks[0], half)))
    if change == "withdrawn":
        assert build(config(folder, weeks[0])).seconds == {}
    half.write_text(RECORDS[20])
    grown = build(config(folder, weeks[0], half)).manifest
    assert (len(grown.growths), grown.records.kept) == (1, 13)
    build(config(tmp_path / "one", weeks[0]))
    build(config(tmp_path / "one", weeks[0], half))
    assert files(folder) == files(tmp_path / "one")


def test_a_set_that_has_grown_as_often_as_it_can(weeks: list[Path], tmp_path: Path) -> None:
    """The game table has 16 bits for the number of a growth."""
    folder = tmp_path / "out"
    build(config(folder, weeks[0]))
    manifest = build(config(folder, weeks[1])).manifest
    write_manifest(folder, manifest.model_copy(update={"growths": manifest.growths * (2**16 - 1)}))
    before = files(folder)
    (tmp_path / "week-3.sgf").write_text(RECORDS[0])
    with pytest.raises(BuildError, match=r"has grown 65,535 times: run goplanes compact"):
        build(config(folder, *weeks, tmp_path / "week-3.sgf"))
    assert files(folder) == before


def test_a_growth_without_a_new_game_keeps_all_counts(weeks: list[Path], tmp_path: Path) -> None:
    before = build(config(tmp_path / "out", weeks[0])).manifest
    (tmp_path / "again.sgf").write_text("".join(RECORDS[:3]))
    after = build(config(tmp_path / "out", tmp_path / "again.sgf")).manifest
    assert (after.positions, after.shards, after.rows) == (before.positions, before.shards, before.rows)
    assert after.records.duplicate == before.records.duplicate + 3


def zipped(path: Path, **members: str) -> Path:
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return path


def test_members_left_out_of_archives_of_one_name_are_all_listed(tmp_path: Path) -> None:
    one = zipped(tmp_path / "one" / "games.zip", **{"a.sgf": RECORDS[0], ".one": "x"})
    two = zipped(tmp_path / "two" / "games.zip", **{"b.sgf": RECORDS[1], ".two": "x"})
    build(config(tmp_path / "out", one))
    grown = build(config(tmp_path / "out", one, two)).manifest
    at_once = build(config(tmp_path / "at once", one, two)).manifest
    assert [item.member for item in grown.omitted] == [".one", ".two"]
    assert (grown.omitted, grown.members, grown.inputs) == (at_once.omitted, at_once.members, at_once.inputs)


def test_a_file_that_can_be_read_now_is_no_longer_left_out(weeks: list[Path], tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    shutil.copy(weeks[0], folder)
    (folder / "late.sgf").symlink_to(tmp_path / "late.sgf")
    assert len(build(config(tmp_path / "out", folder)).manifest.omitted) == 1
    shutil.copy(weeks[1], tmp_path / "late.sgf")
    grown = build(config(tmp_path / "out", folder)).manifest
    assert grown.omitted == ()
    assert (grown.members.seen, grown.members.with_records) == (2, 2)
