"""A plan foresees what the build makes."""

import re
import time
import zipfile
from pathlib import Path

import pytest
from example_builds import EXAMPLES

from pipeline.build import build
from pipeline.config import make_config
from pipeline.plan import SAMPLE, estimate, facts, lines


def test_a_plan_of_few_files_is_the_build(tmp_path: Path) -> None:
    tables = {"input": {"paths": [str(EXAMPLES)]}, "output": {"path": str(tmp_path / "out")}, "run": {"workers": 0}}
    config = make_config(tables, "test")
    foreseen = estimate(config)
    assert not (tmp_path / "out").exists()
    found = facts(foreseen)
    manifest = build(config).manifest
    assert found["exact"]
    assert found["files"] == manifest.members.with_records
    assert found["not_read"] == manifest.members.skipped + manifest.members.refused
    assert found["records"] == manifest.records.model_dump()
    assert sum(found["rows"].values()) == manifest.positions.stored
    assert found["bytes"] > 0
    assert any("out" in line for line in lines(foreseen))


def many_games(path: Path, count: int) -> None:
    """Write ``count`` different games of 4 moves: three far from each other, one that is different each time."""
    with zipfile.ZipFile(path, "w") as file:
        for number in range(count):
            row, col = divmod(number, 15)
            point = "abcdefghijklmnopqrs"[col + 2] + "abcdefghijklmnopqrs"[row + 1]
            file.writestr(f"{number:05d}.sgf", f"(;SZ[19];B[{point}];W[sa];B[as];W[ba])")


def test_a_plan_of_many_files_scales_a_sample_up(tmp_path: Path) -> None:
    many_games(tmp_path / "many.zip", 255)
    tables = {"input": {"paths": [str(tmp_path / "many.zip")]}, "dedup": {"games": False, "positions": "off"}}
    tables["split"] = {"overlap": "keep"}
    foreseen = estimate(make_config(tables, "test"))
    found = facts(foreseen)
    assert (found["files"], found["sampled"], found["exact"]) == (255, SAMPLE, False)
    assert found["records"]["seen"] == found["records"]["kept"] == 255
    # Each of the three parts is rounded.
    assert abs(sum(found["rows"].values()) - 4 * 255) <= 2
    assert facts(estimate(make_config(tables, "test")))["bytes"] == found["bytes"]
    text = lines(foreseen)
    assert any(line.startswith("records       about 260 records") for line in text)
    numbers = [number for line in text if line.startswith(("rows", "kept")) for number in re.findall(r"[\d,]+", line)]
    assert all(len(number.replace(",", "").rstrip("0")) <= 2 for number in numbers if number.strip(","))


def test_what_is_counted_is_not_rounded(tmp_path: Path) -> None:
    many_games(tmp_path / "few.zip", 123)
    text = lines(estimate(make_config({"input": {"paths": [str(tmp_path / "few.zip")]}}, "test")))
    assert any(line == "records       123 records" for line in text)


def test_compiling_is_no_part_of_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.plan.warm_up", lambda *arguments: time.sleep(3))
    many_games(tmp_path / "few.zip", 3)
    tables = {"input": {"paths": [str(tmp_path / "few.zip")]}}
    alone = estimate(make_config({**tables, "run": {"workers": 0}}, "test"))
    assert alone.seconds < 3
    assert estimate(make_config({**tables, "run": {"workers": 2}}, "test")).seconds > 2  # workers have to start


def test_a_plan_of_nothing(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    found = facts(estimate(make_config({"input": {"paths": [str(tmp_path / "empty")]}}, "test")))
    assert (found["files"], found["sampled"], found["records"]["seen"]) == (0, 0, 0)
