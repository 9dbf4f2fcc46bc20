"""Rows by their index: any rows in the order asked for, in any process, within bounded memory."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shard_rows import make_layout, make_rows
from test_load import FORMATS, build, pieces

from pipeline.columns import take_rows
from pipeline.load import open_dataset
from pipeline.part import Part


@pytest.fixture(autouse=True)
def short_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.part.BLOCK_ROWS", 16)


@pytest.mark.parametrize("file_format", FORMATS)
def test_rows_come_in_the_order_asked_for(tmp_path: Path, file_format: str) -> None:
    """Across shards, backwards, more than once, from the end; one index is a row."""
    layout = make_layout(file_format, aggregate=True, global_names=("komi",))
    stored = make_rows(100, layout)
    rows = open_dataset(build(tmp_path, layout, {"train": pieces(stored, 33, 34)})).mapped()
    assert len(rows) == 100
    for asked in ([3], [99, 0, 50, 33, 32, 34, 33], list(range(99, -1, -1)), [-1, -100, 5], np.array([7, 7]), []):
        found = rows[asked]
        expected = take_rows(stored, np.asarray(asked, dtype=np.int64) % 100)
        assert list(found) == list(expected)
        for name, values in expected.items():
            np.testing.assert_array_equal(found[name], values)
            assert found[name].dtype == values.dtype
    assert rows[-1]["key"] == rows[99]["key"] == rows[np.int64(99)]["key"] == stored["key"][99]
    start, stop = stored["policy_offsets"][7:9]
    np.testing.assert_array_equal(rows[7]["policy_moves"], stored["policy_moves"][start:stop])
    np.testing.assert_array_equal(rows[5:60:7]["key"], stored["key"][5:60:7])
    for no_index in (1.5, np.ones(100, dtype=np.bool_), True, [[1, 2], [3, 4]], "3", None):
        with pytest.raises(TypeError, match="rows are asked for by a number, a slice or a list of numbers"):
            rows[no_index]  # type: ignore[call-overload]
    for wrong in (100, -101, [3, 100], np.array([100], dtype=np.uint64)):
        with pytest.raises(IndexError, match=r"row (100|-101) of train, which has 100 rows"):
            rows[wrong]  # type: ignore[call-overload]


def test_what_was_read_stays_in_memory_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run used longest ago goes first; nothing of it is pickled."""
    layout = make_layout()
    dataset = open_dataset(build(tmp_path, layout, {"train": pieces(make_rows(96, layout), 48)}))
    read: list[int] = []
    once = Part.read

    def noted(part: Part, run: Any, names: Any) -> Any:
        read.append(run.first)
        return once(part, run, names)

    monkeypatch.setattr(Part, "read", noted)
    size = 16 * (3 * 46 + 2)
    rows = dataset.mapped(columns=["planes", "move"], cache_bytes=2 * size)
    for index in (0, 15, 3, 16, 0, 50, 17, 0, [0, 16, 32], 90):
        rows[index]  # type: ignore[call-overload]
    assert read == [0, 16, 48, 16, 0, 32, 80]
    assert len(pickle.dumps(rows)) < len(pickle.dumps(dataset.mapped())) + 1000
    assert pickle.loads(pickle.dumps(rows))[5]["move"] == rows[5]["move"]
    read.clear()
    nothing = dataset.mapped(cache_bytes=0)
    for index in (0, 1, 16, 0):
        nothing[index]
    assert read == [0, 16, 0]


def test_an_epoch_of_its_own(tmp_path: Path) -> None:
    layout = make_layout()
    dataset = open_dataset(build(tmp_path, layout, {"train": [make_rows(50, layout)]}))
    rows = dataset.mapped(symmetry="random", seed=2)
    found = []
    for epoch in (0, 1):
        rows.set_epoch(epoch)
        batch = rows[list(range(50))]
        found.append(batch["symmetry"].tolist())
        (whole,) = dataset.batches(symmetry="random", seed=2, epoch=epoch, batch_size=50)
        order = np.argsort(whole["key"])
        np.testing.assert_array_equal(whole["planes"][order], batch["planes"][np.argsort(batch["key"])])
    assert found[0] != found[1]


def test_an_empty_part(tmp_path: Path) -> None:
    layout = make_layout()
    rows = open_dataset(build(tmp_path, layout, {"train": [make_rows(5, layout)]})).mapped("val")
    assert len(rows) == 0
    assert rows[[]]["planes"].shape == (0, 3, 46)
    with pytest.raises(IndexError, match="row 0 of val, which has 0 rows"):
        rows[0]
