"""The loader: the rows of the shards, in their order, in the form asked for, in any process."""

import multiprocessing
import os
import pickle
import threading
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shard_rows import make_layout, make_manifest, make_rows

from pipeline import shard
from pipeline.columns import Columns, Layout, ShardError, join, slice_rows
from pipeline.load import Dataset, open_dataset
from pipeline.manifest import write_manifest

FORMATS = ["parquet", "hdf5"]


def build(folder: Path, layout: Layout, parts: dict[str, Sequence[Columns]]) -> Path:
    """Write a data set of one shard for each batch."""
    entries = []
    for split, batches in parts.items():
        (folder / split).mkdir(parents=True, exist_ok=True)
        for number, batch in enumerate(batches):
            path = f"{split}/shard-{number:05d}{shard.SUFFIXES[layout.format]}"
            made = shard.write(folder / path, [batch], layout)
            entries.append(
                {"split": split, "path": path, "rows": made.rows, "bytes": made.bytes, "sha256": made.sha256}
            )
    write_manifest(folder, make_manifest(entries, layout))
    return folder


def pieces(rows: Columns, *ends: int) -> list[Columns]:
    return [slice_rows(rows, start, stop) for start, stop in zip((0, *ends), (*ends, len(rows["move"])), strict=True)]


@pytest.mark.parametrize("file_format", FORMATS)
def test_batches_cross_shards_in_order(tmp_path: Path, file_format: str) -> None:
    layout = make_layout(file_format, aggregate=True, global_names=("komi",))
    rows = make_rows(100, layout)
    dataset = open_dataset(build(tmp_path, layout, {"train": pieces(rows, 33, 40)}))
    assert (dataset.rows("train"), dataset.rows("val"), dataset.frame) == (100, 0, (19, 19))
    assert (dataset.planes, dataset.scheme.name, dataset.columns) == (layout.planes, "made_up", layout.names)
    batches = list(dataset.batches(batch_size=32))
    assert [len(batch["move"]) for batch in batches] == [32, 32, 32, 4]
    for number, batch in enumerate(batches):
        expected = slice_rows(rows, number * 32, number * 32 + 32)
        assert list(batch) == list(expected)
        for name, values in expected.items():
            np.testing.assert_array_equal(batch[name], values)
    assert [len(batch["move"]) for batch in dataset.batches(batch_size=32, drop_last=True)] == [32, 32, 32]
    assert list(dataset.batches("val")) == []


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_unpacked_planes_by_definition(tmp_path: Path, packed: bool, dtype: Any) -> None:
    layout = make_layout("hdf5", frame=(5, 9), packed=packed)
    rows = make_rows(6, layout)
    dataset = open_dataset(build(tmp_path, layout, {"val": [rows]}))
    (first,) = dataset.batches("val", columns=["planes"], dtype=dtype)
    (last,) = dataset.batches("val", columns=["planes"], dtype=dtype, layout="NHWC")
    assert list(first) == ["planes"]
    assert (first["planes"].shape, first["planes"].dtype) == ((6, 3, 5, 9), np.dtype(dtype))
    assert (last["planes"].shape, last["planes"].flags.c_contiguous) == ((6, 5, 9, 3), True)
    for i, plane, row, col in np.ndindex(6, 3, 5, 9):
        point = row * 9 + col
        bit = rows["planes"][i, plane, point // 8] >> (7 - point % 8) & 1
        assert first["planes"][i, plane, row, col] == last["planes"][i, row, col, plane] == bit


@pytest.mark.parametrize("file_format", FORMATS)
def test_one_row_of_any_shard(tmp_path: Path, file_format: str) -> None:
    layout = make_layout(file_format, aggregate=True)
    rows = make_rows(60, layout)
    dataset = open_dataset(build(tmp_path, layout, {"train": pieces(rows, 25, 26)}))
    for index in (0, 24, 25, 26, 59):
        row = dataset.row("train", index)
        assert row["planes"].tobytes() == rows["planes"][index].tobytes()
        assert row["key"] == rows["key"][index]
        start, stop = rows["policy_offsets"][index : index + 2]
        np.testing.assert_array_equal(row["policy_counts"], rows["policy_counts"][start:stop])
        assert "policy_offsets" not in row
    assert dataset.row("train", 3, columns=["planes"], dtype="float32", layout="NHWC")["planes"].shape == (19, 19, 3)
    for index in (-1, 60):
        with pytest.raises(IndexError, match=f"row {index} of train, which has 60 rows"):
            dataset.row("train", index)


def test_wrong_requests_are_refused_at_once(tmp_path: Path) -> None:
    layout = make_layout()
    dataset = open_dataset(build(tmp_path, layout, {"train": [make_rows(3, layout)]}))
    with pytest.raises(ValueError, match="no part 'valid'; the parts are train, val, test"):
        dataset.batches("valid")
    with pytest.raises(ValueError, match=r"no column 'policy'.* it has planes, move, value"):
        dataset.batches(columns=["policy"])
    for policy in ("move", "counts"):
        with pytest.raises(ValueError, match="columns is a list of names, not the text 'planes'"):
            dataset.batches(columns="planes", policy=policy)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no layout but NCHW"):
        dataset.batches(layout="NHWC")
    with pytest.raises(ValueError, match="dtype must be"):
        dataset.batches(dtype="float16")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="layout must be"):
        dataset.batches(dtype="uint8", layout="HWC")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="batch_size"):
        dataset.batches(batch_size=0)


@pytest.mark.parametrize("file_format", FORMATS)
def test_cut_and_empty_shards_are_named(tmp_path: Path, file_format: str) -> None:
    """Case 049: a whole shard, the same cut at 60 percent, and one of 0 bytes."""
    layout = make_layout(file_format)
    rows = make_rows(40, layout)
    dataset = open_dataset(build(tmp_path, layout, {"train": [rows, rows, rows]}))
    assert dataset.damaged() == []
    _, cut, empty = (tmp_path / entry.path for entry in dataset.manifest.shards)
    cut.write_bytes(cut.read_bytes()[: cut.stat().st_size * 6 // 10])
    empty.write_bytes(b"")
    faults = dataset.damaged()
    assert len(faults) == 2
    assert str(cut) in faults[0]
    assert str(empty) in faults[1]
    batches = dataset.batches(batch_size=10)
    for _ in range(4):
        assert len(next(batches)["move"]) == 10
    with pytest.raises(ShardError, match=cut.name):
        next(batches)
    empty.unlink()
    assert dataset.damaged()[1] == f"{empty}: is missing"


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_changed_byte_and_a_false_row_count_are_damage(tmp_path: Path, file_format: str) -> None:
    layout = make_layout(file_format, compression="none")
    rows = make_rows(40, layout)
    folder = build(tmp_path, layout, {"train": [rows]})
    dataset = open_dataset(folder)
    path = folder / dataset.manifest.shards[0].path
    whole = path.read_bytes()
    place = whole.index(rows["planes"][20].tobytes())
    path.write_bytes(whole[:place] + bytes([whole[place] ^ 255]) + whole[place + 1 :])
    (fault,) = dataset.damaged()
    assert fault.startswith(f"{path}: cannot be read as ")
    path.write_bytes(whole)
    entry = dataset.manifest.shards[0].model_copy(update={"sha256": "0" * 64})
    other = Dataset(folder, dataset.manifest.model_copy(update={"shards": (entry,)}))
    assert other.damaged() == [f"{path}: its sha256 is not the manifest's"]
    entry = dataset.manifest.shards[0].model_copy(update={"rows": 41})
    false = Dataset(folder, dataset.manifest.model_copy(update={"shards": (entry,)}))
    assert false.damaged() == [f"{path}: has 40 rows, not 41"]
    with pytest.raises(ShardError, match="has 40 rows, the manifest says 41"):
        list(false.batches())


def read_indices(dataset: Dataset, indices: list[int]) -> list[tuple[int, set[int], int]]:
    """In a worker: for each row its label, the bytes of its planes, and how many descriptors of shards are open."""
    found = []
    for index in indices:
        row = dataset.row("train", index, columns=["planes", "ply"])
        found.append((int(row["ply"]), set(row["planes"].reshape(-1).tolist()), open_shards()))
    return found


def open_shards() -> int:
    """Number of descriptors of this process that are shards."""
    count = 0
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            count += "shard-" in os.readlink(descriptor)
        except FileNotFoundError:
            continue  # the one that listed the folder
    return count


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_workers_after_the_parent_has_read(tmp_path: Path, file_format: str, method: str) -> None:
    """Case 051: 512 rows of one byte each, used in the parent first, then shuffled over 0, 1, 4 and 8 workers."""
    layout = make_layout(file_format, frame=(8, 8))
    rows = make_rows(512, layout)
    rows["ply"] = np.arange(512, dtype=np.uint16)
    rows["planes"] = np.broadcast_to((rows["ply"] % 251).astype(np.uint8)[:, None, None], rows["planes"].shape)
    dataset = open_dataset(build(tmp_path, layout, {"train": pieces(rows, 200)}))
    assert dataset.rows() == 512
    assert dataset.row("train", 0)["ply"] == 0
    unread = dataset.batches(batch_size=8)
    next(unread)
    unread.close()
    assert open_shards() == 0
    assert len(pickle.dumps(dataset)) < 100_000
    rng = np.random.default_rng(5)
    for workers in (0, 1, 4, 8):
        order = rng.permutation(512).tolist()
        shares = [order[start :: max(workers, 1)] for start in range(max(workers, 1))]
        if workers == 0:
            found = read_indices(dataset, order)
        else:
            context = multiprocessing.get_context(method)
            with ProcessPoolExecutor(workers, mp_context=context) as pool:
                jobs = [pool.submit(read_indices, dataset, share) for share in shares]
                found = [row for job in jobs for row in job.result(timeout=120)]
        assert sorted(label for label, _, _ in found) == list(range(512))
        assert all(values == {label % 251} for label, values, _ in found)
        assert all(still_open == 0 for _, _, still_open in found)


OPTIONS: list[dict[str, Any]] = [
    {},
    {"symmetry": "random"},
    {"symmetry": 5, "dtype": "uint8"},
    {"symmetry": "random", "dtype": "float32", "layout": "NHWC", "policy": "sample"},
    {"symmetry": "random", "dtype": "float32", "policy": "counts"},
]


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("options", OPTIONS)
def test_an_epoch_has_every_row_once_and_mixes_shards(
    tmp_path: Path, file_format: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In whatever batches, buffers and threads: the same rows in the same order and form, each as a row by itself."""
    monkeypatch.setattr("pipeline.epochs.BLOCK_ROWS", 32)
    layout = make_layout(file_format, aggregate=True, global_names=("komi",))
    rows = make_rows(300, layout)
    rows["ply"] = np.arange(300, dtype=np.uint16)
    lengths = np.diff(rows["policy_offsets"])
    inside = np.arange(len(rows["policy_moves"])) - rows["policy_offsets"][:-1].repeat(lengths)
    rows["policy_moves"] = (np.arange(300).repeat(lengths) + inside).astype(np.int16)  # in rising order, as stored
    dataset = open_dataset(build(tmp_path, layout, {"train": pieces(rows, 90, 200, 210)}))
    given = {"seed": 7, "epoch": 3, "buffer_rows": 100, **options}
    whole = join(list(dataset.batches(batch_size=64, **given)))
    assert sorted(whole["ply"].tolist()) == list(range(300))
    assert whole["ply"].tolist() != list(range(300))
    shards = np.searchsorted([90, 200, 210], whole["ply"][:100], side="right")
    assert len(set(shards.tolist())) > 1
    for batch_size, prefetch in ((1, 0), (7, 2), (300, 1), (1000, 0)):
        other = join(list(dataset.batches(batch_size=batch_size, prefetch=prefetch, **given)))
        assert list(other) == list(whole)
        for name, values in whole.items():
            np.testing.assert_array_equal(other[name], values, err_msg=name)
    for name, other_facts in (("epoch", {"epoch": 4}), ("seed", {"seed": 8})):
        other = join(list(dataset.batches(batch_size=64, **(given | other_facts))))
        assert other["ply"].tolist() != whole["ply"].tolist(), name
    mapped = dataset.mapped(**{name: value for name, value in given.items() if name != "buffer_rows"})
    alike = mapped[whole["ply"]]
    for name, values in whole.items():
        np.testing.assert_array_equal(alike[name], values, err_msg=name)


def test_buffers_are_written_and_used_again(tmp_path: Path) -> None:
    """Batches are views of them, equal to batches of their own; the last is shorter."""
    layout = make_layout(aggregate=True)
    dataset = open_dataset(build(tmp_path, layout, {"train": pieces(make_rows(100, layout), 33)}))
    for policy, dtype, order in (
        ("move", "packed", "NCHW"),
        ("counts", "float32", "NHWC"),
        ("sample", "uint8", "NCHW"),
    ):
        form: dict[str, Any] = {"policy": policy, "dtype": dtype, "layout": order}
        out = dataset.buffers(32, **form)
        assert set(out).isdisjoint({"policy_moves", "policy_counts", "policy_offsets"})
        own = list(dataset.batches(batch_size=32, seed=1, symmetry="random", **form))
        lengths = []
        for batch, other in zip(
            dataset.batches(batch_size=32, seed=1, symmetry="random", out=out, **form), own, strict=True
        ):
            lengths.append(len(batch["move"]))
            assert list(batch) == list(other)
            for name, values in other.items():
                np.testing.assert_array_equal(batch[name], values)
                assert name not in out or np.shares_memory(batch[name], out[name])
        assert lengths == [32, 32, 32, 4]


def test_buffers_that_do_not_fit(tmp_path: Path) -> None:
    layout = make_layout()
    dataset = open_dataset(build(tmp_path, layout, {"train": [make_rows(3, layout)]}))
    columns = ["planes", "move"]
    out = dataset.buffers(8, columns=columns, dtype="float32")
    given: dict[str, Any] = {"columns": columns, "dtype": "float32", "batch_size": 8}
    for wrong in (
        {"planes": out["planes"]},
        out | {"value": out["move"]},
        out | {"planes": np.zeros_like(out["planes"], dtype=np.uint8)},
        out | {"planes": out["planes"][:7]},
        out | {"planes": np.asfortranarray(out["planes"])},
    ):
        with pytest.raises(ValueError, match="out"):
            dataset.batches(out=wrong, **given)
    with pytest.raises(ValueError, match="out or prefetch, not both"):
        dataset.batches(out=out, prefetch=1, **given)
    with pytest.raises(ValueError, match="buffer_rows must be at least 1, not 0"):
        dataset.batches(buffer_rows=0)
    assert len(list(dataset.batches(out=dataset.buffers(9, columns=columns, dtype="float32"), **given))) == 1


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("world", [1, 2, 3])
def test_ranks_workers_and_resumed_epochs_are_pieces_of_the_order(
    tmp_path: Path, file_format: str, world: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.epochs.BLOCK_ROWS", 32)
    layout = make_layout(file_format)
    rows = make_rows(300, layout)
    rows["ply"] = np.arange(300, dtype=np.uint16)
    dataset = open_dataset(build(tmp_path, layout, {"train": pieces(rows, 90, 200, 210)}))
    given: dict[str, Any] = {"seed": 7, "columns": ["ply"], "batch_size": 16, "buffer_rows": 64}

    def plies(**facts: Any) -> list[list[int]]:
        return [batch["ply"].tolist() for batch in dataset.batches(**given, **facts)]

    order = list(chain(*plies()))
    shares = [plies(rank=rank, world=world) for rank in range(world)]
    assert list(chain(*chain(*shares))) == order
    assert len({len(share) for share in shares}) == 1
    for rank, share in enumerate(shares):
        for workers in (1, 2, 4):
            found = [plies(rank=rank, world=world, start=worker, step=workers) for worker in range(workers)]
            assert [found[number % workers][number // workers] for number in range(len(share))] == share
        for start in (0, 1, len(share) - 1, len(share), len(share) + 1):
            assert plies(rank=rank, world=world, start=start) == share[start:]


@pytest.mark.parametrize("file_format", FORMATS)
def test_values_out_of_range_are_named_while_reading(tmp_path: Path, file_format: str) -> None:
    """A move that is no point must not write beyond a policy; a board larger than the frame not beyond the planes."""
    layout = make_layout(file_format, aggregate=True)
    for name, value, text in (
        ("move", 400, "move is not 0 to 361"),
        ("rows", 25, "rows is not 1 to 19"),
        ("policy_moves", -1, "policy_moves is not 0 to 361"),
        ("policy_counts", 0, "policy_counts is not 1 or more"),
    ):
        rows = make_rows(40, layout)
        rows[name][rows["policy_offsets"][20] if name.startswith("policy") else 20] = value
        dataset = open_dataset(build(tmp_path / name, layout, {"train": [make_rows(10, layout), rows]}))
        for options in ({"policy": "counts"}, {"symmetry": "random", "dtype": "uint8"}):
            with pytest.raises(ShardError, match=rf"shard-00001.*: row 20: {text}"):
                list(dataset.batches(seed=1, **options))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("file_format", "compression"),
    [("parquet", "zstd"), ("parquet", "gzip"), ("parquet", "none"), ("hdf5", "gzip"), ("hdf5", "none")],
)
def test_a_flipped_bit_of_the_values_is_named(tmp_path: Path, file_format: str, compression: str) -> None:
    """Wherever it is among the values of a column: what is read carries checksums."""
    layout = make_layout(file_format, compression=compression, aggregate=True)
    folder = build(tmp_path, layout, {"train": [make_rows(400, layout)]})
    dataset = open_dataset(folder)
    path = folder / dataset.manifest.shards[0].path
    whole = path.read_bytes()
    expected = join(list(dataset.batches()))
    rng = np.random.default_rng(1)
    named = 0
    for place in rng.integers(4, len(whole), 60).tolist():
        path.write_bytes(whole[:place] + bytes([whole[place] ^ (1 << int(rng.integers(8)))]) + whole[place + 1 :])
        try:
            found = join(list(dataset.batches()))
        except ShardError:
            named += 1
            continue
        for name, values in expected.items():  # a byte that nobody reads
            np.testing.assert_array_equal(found[name], values, err_msg=f"{name}, byte {place}")
    assert named > 20


def test_a_board_without_the_symmetry_is_named(tmp_path: Path) -> None:
    layout = make_layout(frame=(5, 9))
    dataset = open_dataset(build(tmp_path, layout, {"train": [make_rows(3, layout)]}))
    assert len(list(dataset.batches(symmetry="random"))) == 1
    with pytest.raises(ValueError, match="5x9 is not square"):
        list(dataset.batches(symmetry=4))


def test_threads_end_with_the_iteration(tmp_path: Path) -> None:
    layout = make_layout()
    dataset = open_dataset(build(tmp_path, layout, {"train": pieces(make_rows(300, layout), 100)}))
    batches = dataset.batches(batch_size=8, seed=1, prefetch=2)
    next(batches)
    batches.close()
    assert [thread.name for thread in threading.enumerate() if thread.name == "prefetch"] == []
    assert open_shards() == 0
