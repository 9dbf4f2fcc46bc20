"""What a build must not depend on: the order of its inputs, workers, hash seeds; and a split that does not move."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from random_games import Line, random_line, turned
from repeated_games import SIZES_ASKED_FOR, made_up_lines
from stages import KOMIS, RESULTS, RULES, run_stages, sgf_of

from pipeline.build import build
from pipeline.config import make_config

ROOT = Path(__file__).parents[1]


def write_files(folder: Path) -> list[str]:
    """Write made-up games into several files; return these."""
    folder.mkdir()
    records = [
        sgf_of(line, RE=RESULTS[number % len(RESULTS)], KM=KOMIS[number % len(KOMIS)])
        for number, line in enumerate(made_up_lines("same bytes"))
    ]
    paths = []
    for number in range(6):
        path = folder / f"{number}.sgf"
        path.write_text("".join(records[number::6]))
        paths.append(str(path))
    return paths


def tables(paths: list[str], output: Path, form: str, workers: int) -> dict[str, Any]:
    return {
        "input": {"paths": paths},
        "rules": RULES,
        "filter": {"sizes": SIZES_ASKED_FOR},
        "split": {"val": 0.25, "test": 0.25, "plies": 4},
        "augment": {"mode": "all"},
        "output": {"path": str(output), "format": form, "rows_per_shard": 300, "games_per_block": 15},
        "run": {"workers": workers},
    }


def published(folder: Path) -> dict[str, bytes]:
    """Return the contents of all published files."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and ".goplanes" not in path.parts)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


_BUILD = """
import json, sys
from pipeline.build import build
from pipeline.config import make_config
if __name__ == "__main__":
    build(make_config(json.loads(sys.argv[1]), "test"))
"""


def build_elsewhere(facts: dict[str, Any], folder: Path, hash_seed: str) -> None:
    """Build in a fresh process with another seed of Python's hashes."""
    folder.mkdir()
    script = folder / "build.py"
    script.write_text(_BUILD)
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, str(script), json.dumps(facts)], env=environment, cwd=folder, check=True)


@pytest.mark.parametrize("form", ["parquet", "hdf5"])
def test_the_same_bytes_from_any_run(tmp_path: Path, form: str) -> None:
    """Merged positions, all images, several blocks: for any order of the inputs, 0, 1 and 2 workers, hash seeds."""
    paths = write_files(tmp_path / "in")
    first = published(build(make_config(tables(paths, tmp_path / "0", form, 0), "test")).path)
    assert sum(name.startswith("train/") for name in first) > 3
    assert {"dataset.json", "games.parquet", "README.md"} < set(first)
    assert json.loads(first["dataset.json"])["positions"]["merged"] > 50
    again = build(make_config(tables(paths[::-1], tmp_path / "1", form, 0), "test")).path
    assert published(again) == first
    for workers, seed, given in ((1, "1", paths[3:] + paths[:3]), (2, "77", paths[::-1])):
        build_elsewhere(tables(given, tmp_path / f"2-{workers}", form, workers), tmp_path / f"run {workers}", seed)
        assert published(tmp_path / f"2-{workers}") == first


def splits(folder: Path, games: dict[str, str]) -> dict[bytes, set[str]]:
    """Return the parts of each record that has one, by the hash of its bytes."""
    table = run_stages(
        folder, games, filter={"sizes": [9]}, split={"val": 0.25, "test": 0.25, "seed": 1, "plies": 6}
    ).table.to_pylist()
    found: dict[bytes, set[str]] = {}
    for row in table:
        if row["split"] is not None:
            found.setdefault(row["content"], set()).add(row["split"])
    return found


@pytest.fixture(scope="module")
def lines() -> list[Line]:
    rng = Random("split")
    return [random_line(rng, 9, 9, 12, 0) for _ in range(40)]


def test_a_game_stays_in_its_part(tmp_path: Path, lines: list[Line]) -> None:
    """When games are added, taken away, renamed, put in another order, several into a file or into other folders."""
    texts = [sgf_of(line, RE="B+R") for line in lines]
    before = splits(tmp_path / "before", {f"{number:02d}.sgf": text for number, text in enumerate(texts[:25])})
    assert {part for parts in before.values() for part in parts} == {"train", "val", "test"}
    assert len(before) == 25
    others = {
        "more": {f"{number:02d}.sgf": text for number, text in enumerate(texts)},
        "fewer": {f"{number:02d}.sgf": text for number, text in enumerate(texts[:9])},
        "reversed": {f"{number:02d}.sgf": text for number, text in enumerate(texts[24::-1])},
        "renamed": {f"game {number * 7 % 25}.SGF": text for number, text in enumerate(texts[:25])},
        "together": {"all.sgf": "".join(texts[:25])},
        "twice": {"a.sgf": "".join(texts[:25]), "b.sgf": "".join(texts[24::-1])},
    }
    for name, games in others.items():
        after = splits(tmp_path / name, games)
        both = set(before) & set(after)
        assert len(both) == min(25, len(after))
        assert {content: after[content] for content in both} == {content: before[content] for content in both}, name


def test_copies_fall_together(tmp_path: Path, lines: list[Line]) -> None:
    """Exact, turned, conflicting and cut copies, whatever their headers, in one build or each in its own."""
    for number, line in enumerate(lines[:8]):
        longer = replace(line, moves=(*line.moves, (None, 1), (None, 2)))
        copies = {
            "a.sgf": sgf_of(line, RE="B+R", PB="one"),
            "b.sgf": sgf_of(turned(line, 1 + number % 7), RE="B+R", KM="7.5"),
            "c.sgf": sgf_of(line, RE="W+R", GN="conflicting"),
            "d.sgf": sgf_of(replace(line, moves=line.moves[:8]), RE="B+R"),
            "e.sgf": sgf_of(turned(longer, 3), RE="?"),
        }
        together = splits(tmp_path / f"{number}", copies)
        assert len(together) == 5
        assert len({part for parts in together.values() for part in parts}) == 1
        if number < 2:
            for name, text in copies.items():
                alone = splits(tmp_path / f"{number} {name}", {name: text})
                assert all(together[content] == parts for content, parts in alone.items())
