"""The few lines of the README by which other programs read the shards: those that are installed run."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from example_builds import build_examples

from pipeline.load import open_dataset

ROOT = Path(__file__).parents[1]
BLOCKS = dict(re.findall(r"^```python ([a-z0-9]+)\n(.*?)^```", (ROOT / "README.md").read_text("utf-8"), re.M | re.S))
READERS = ("h5py", "datasets", "polars", "duckdb", "pandas", "torch")
_SAVE = "\nimport numpy\nnumpy.savez('found.npz', planes=numpy.asarray(planes), move=numpy.asarray({move}))\n"
_MOVES = {"h5py": "move", "datasets": "rows[0]['move']", "torch": "move"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the data sets that the README reads."""
    folder = tmp_path_factory.mktemp("readers")
    build_examples(folder / "games-agz17", encode={"scheme": "agz17"})
    build_examples(folder / "games-hdf5", encode={"scheme": "agz17"}, output={"format": "hdf5"})
    return folder


def test_all_are_shown() -> None:
    assert set(BLOCKS) == set(READERS)
    for name in set(READERS) - {"torch"}:
        lines = [line for line in BLOCKS[name].splitlines() if line.strip()]
        assert len(lines) <= 7, name  # two of them are imports


@pytest.mark.parametrize("name", READERS)
def test_rows_are_those_of_the_data_set(folder: Path, name: str) -> None:
    """Planes unpacked as shown, and moves, against the loader: as many, and each with its own."""
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed: make test-torch installs it and runs this")
    script = folder / f"{name}-lines.py"
    script.write_text(BLOCKS[name] + _SAVE.format(move=_MOVES.get(name, "rows['move']")))
    quiet = {"HF_HOME": str(folder / "cache"), "HF_DATASETS_OFFLINE": "1", "PYTHONPATH": str(ROOT)}
    line = [sys.executable, script.name]
    done = subprocess.run(
        line, cwd=folder, env=os.environ | quiet, capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == 0, done.stderr
    with np.load(folder / "found.npz") as found:
        planes, moves = found["planes"].astype(np.uint8).reshape(-1, 17, 19, 19), found["move"].reshape(-1)
    (stored,) = open_dataset(folder / "games-agz17").batches(dtype="uint8", batch_size=10**6)
    chosen = {
        "polars": stored["ply"] < 40,
        "duckdb": stored["value"] > 0,
        "h5py": np.arange(len(stored["ply"])) < 1000,
        "datasets": np.arange(len(stored["ply"])) < 1,
    }.get(name, np.ones(len(stored["ply"]), dtype=np.bool_))
    if name == "torch":  # the last batch, of rows that are turned
        assert planes.shape == (len(moves), 17, 19, 19)
        assert 0 < len(moves) <= 256
        return
    expected = {
        (board.tobytes(), move)
        for board, move in zip(stored["planes"][chosen], stored["move"][chosen].tolist(), strict=True)
    }
    assert len(moves) == int(chosen.sum())
    assert {(board.tobytes(), move) for board, move in zip(planes, moves.tolist(), strict=True)} == expected
