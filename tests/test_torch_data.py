"""The data set under PyTorch's DataLoader: workers, ranks, epochs, and going on in mid-epoch."""

import copy
import multiprocessing
import pickle
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shard_rows import make_layout, make_rows
from test_load import build, open_shards, pieces

from pipeline import epochs
from pipeline.columns import Columns, Layout
from pipeline.load import open_dataset

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch installs it and runs these")
from torch.utils.data import BatchSampler, DataLoader, SequentialSampler  # noqa: E402

from pipeline.torch_data import TorchBatches, TorchRows  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning"),  # more workers than cores
    pytest.mark.filterwarnings("ignore:'set_vital' is deprecated:UserWarning"),  # torchdata 0.11 calls it
]
FORMATS = ["parquet", "hdf5"]
METHODS = ["fork", "spawn"]


def numbered(count: int, layout: Layout) -> Columns:
    """Return rows whose planes and ply say which row it is."""
    rows = make_rows(count, layout)
    rows["ply"] = np.arange(count, dtype=np.uint16)
    rows["planes"] = np.broadcast_to((rows["ply"] % 251).astype(np.uint8)[:, None, None], rows["planes"].shape)
    return rows


@pytest.fixture
def uneven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a data set of three shards with 40, 40 and 21 rows, read in runs of 16 (where it is not spawned)."""
    monkeypatch.setattr(epochs, "BLOCK_ROWS", 16)
    layout = make_layout(frame=(8, 8))
    return build(tmp_path / "uneven", layout, {"train": pieces(numbered(101, layout), 40, 80)})


def labels(batches: Any) -> list[int]:
    return [label for batch in batches for label in batch["ply"].tolist()]


def loader(stream: TorchBatches, workers: int, method: str = "fork", **options: Any) -> Any:
    context = method if workers else None
    return DataLoader(stream, batch_size=None, num_workers=workers, multiprocessing_context=context, **options)


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("method", METHODS)
def test_workers_after_the_parent_has_read(tmp_path: Path, file_format: str, method: str) -> None:
    """Case 051: three epochs, each row once and whole, whatever the number of workers, in one order."""
    layout = make_layout(file_format, frame=(8, 8))
    folder = build(tmp_path, layout, {"train": pieces(numbered(512, layout), 200)})
    stream = TorchBatches(folder, batch_size=16, seed=5, columns=["planes", "ply"])
    assert len(stream) == 32
    assert len(labels([next(iter(stream))])) == 16
    assert open_shards() == 0
    assert len(pickle.dumps(open_dataset(folder))) < 100_000
    orders: dict[int, list[list[int]]] = {}
    for workers in (0, 1, 4, 8):
        alive = {"timeout": 120, "persistent_workers": True} if workers else {}
        from_workers = loader(stream, workers, method, **alive)
        for epoch in range(3):
            stream.set_epoch(epoch)
            batches = list(from_workers)
            for batch in batches:
                assert (batch["planes"] == (batch["ply"] % 251)[:, None, None]).all()
            assert sorted(labels(batches)) == list(range(512))
            orders.setdefault(epoch, []).append(labels(batches))
    assert all(order == found[0] for found in orders.values() for order in found)
    assert len({tuple(found[0]) for found in orders.values()}) == 3


@pytest.mark.parametrize("workers", [0, 1, 2, 5])
@pytest.mark.parametrize("world", [1, 2, 3, 4])
def test_three_uneven_shards_over_workers_and_ranks(uneven: Path, world: int, workers: int) -> None:
    """Case 053: equal ranks, no row twice unless it pads, as many batches for each."""
    for tail, rows in (("drop", 101 // world), ("pad", -(-101 // world))):
        found = []
        for rank in range(world):
            stream = TorchBatches(uneven, batch_size=8, seed=3, rank=rank, world=world, tail=tail)  # type: ignore[arg-type]
            batches = list(loader(stream, workers))
            assert len(batches) == len(stream) == -(-rows // 8)
            found.append(labels(batches))
        assert [len(share) for share in found] == [rows] * world
        counts = Counter(chain(*found))
        assert sum(count - 1 for count in counts.values()) == max(0, world * rows - 101)
        assert max(counts.values()) <= (1 if tail == "drop" else 2)
        assert len(counts) == min(101, world * rows)


def test_epochs_reach_workers_that_stay_alive(uneven: Path) -> None:
    """Two epochs differ, the same one does not, and all are those of one process."""
    stream = TorchBatches(uneven, batch_size=8, seed=3, symmetry="random", columns=["planes", "ply", "symmetry"])
    expected = {}
    for epoch in (0, 1):
        stream.set_epoch(epoch)
        expected[epoch] = list(loader(stream, 0))
    assert labels(expected[0]) != labels(expected[1])
    assert sorted(labels(expected[1])) == list(range(101))
    alive = loader(stream, 2, persistent_workers=True)
    for epoch in (1, 0, 0, 1):
        stream.set_epoch(epoch)
        for batch, other in zip(alive, expected[epoch], strict=True):
            assert all(torch.equal(batch[name], other[name]) for name in ("planes", "ply", "symmetry"))


@pytest.mark.parametrize("taken", [0, 1, 5, 12, 13])
@pytest.mark.parametrize("alive", [False, True])
def test_an_epoch_goes_on_where_it_stood(uneven: Path, taken: int, alive: bool) -> None:
    """Without workers the stream knows where it stands; the rest may be read with any number of workers, once."""
    options: dict[str, Any] = {"batch_size": 8, "seed": 3, "symmetry": "random", "policy": "sample"}
    stream = TorchBatches(uneven, **options)
    stream.set_epoch(4)
    whole = labels(stream)
    batches = iter(stream)
    for _ in range(taken):
        next(batches)
    state = pickle.loads(pickle.dumps(stream.state_dict()))
    for workers in (0, 1, 3):
        later = TorchBatches(uneven, **options)
        reader = loader(later, workers, **({"persistent_workers": True} if workers and alive else {}))
        assert len(list(reader)) == 13  # workers that are alive hear of it later
        later.load_state_dict(state)
        later.set_epoch(4)  # as a training loop does
        assert later.state_dict() == state
        assert labels(reader) == whole[8 * taken :]
        assert labels(reader) == whole
        again = TorchBatches(uneven, **options)
        again.set_epoch(4)
        again.load_state_dict(again.state_dict(batches=taken))
        assert labels(loader(again, workers)) == whole[8 * taken :]
        del reader


def test_another_epoch_is_read_from_its_beginning(uneven: Path) -> None:
    """Whether the place of another one was loaded, or read before: a state between two epochs begins the second."""
    for workers in (0, 2):
        stream = TorchBatches(uneven, batch_size=8)
        stream.load_state_dict(stream.state_dict(batches=5))
        stream.set_epoch(1)
        assert len(labels(loader(stream, workers))) == 101
        stream.set_epoch(2)
        state = stream.state_dict()
        assert (state["epoch"], state["next"]) == (2, 0)
        stream.load_state_dict(state)
        assert len(labels(loader(stream, workers))) == 101


def test_what_workers_have_taken_has_to_be_said(uneven: Path) -> None:
    stream = TorchBatches(uneven, batch_size=8)
    assert stream.state_dict()["next"] == 0
    batches = iter(loader(stream, 1))
    next(batches)
    with pytest.raises(RuntimeError, match=r"say how many were taken, state_dict\(batches=\.\.\.\)"):
        stream.state_dict()
    assert stream.state_dict(batches=1)["next"] == 1
    del batches


def test_copies_share_with_their_workers(uneven: Path) -> None:
    stream = TorchBatches(uneven, batch_size=8, seed=3)
    for other in (copy.deepcopy(stream), pickle.loads(pickle.dumps(stream))):
        alive = loader(other, 2, persistent_workers=True)
        first = labels(alive)
        other.set_epoch(1)
        assert labels(alive) != first
        stream.set_epoch(1)
        assert labels(stream) == labels(alive)
        stream.set_epoch(0)
        del alive


def test_the_state_of_other_rows_is_refused(uneven: Path, tmp_path: Path) -> None:
    """As after compacting: the same data set by its fingerprints, in other shards."""
    layout = make_layout(frame=(8, 8))
    other = build(tmp_path / "other", layout, {"train": pieces(numbered(101, layout), 50)})
    state = TorchBatches(uneven, batch_size=8).state_dict()
    with pytest.raises(ValueError, match="shards differ; the data set grew or was made anew since"):
        TorchBatches(other, batch_size=8).load_state_dict(state)
    with pytest.raises(ValueError, match="the state of other batches"):
        TorchBatches(other, batch_size=8).load_state_dict({})


def test_an_epoch_chosen_before_a_state_is_loaded(uneven: Path) -> None:
    """The end of an epoch lets the chosen one begin, its middle does not fit another one."""
    for taken, fits in ((5, False), (13, True)):
        stream = TorchBatches(uneven, batch_size=8)
        state = stream.state_dict(batches=taken)
        later = TorchBatches(uneven, batch_size=8)
        later.set_epoch(1)
        if not fits:
            with pytest.raises(ValueError, match="the state is of epoch 0, and epoch 1 was chosen before"):
                later.load_state_dict(state)
            continue
        later.load_state_dict(state)
        assert later.state_dict()["epoch"] == 1
        assert len(labels(later)) == 101


def test_more_batches_than_there_are(uneven: Path) -> None:
    with pytest.raises(ValueError, match="batches must be 0 to 13, not 14"):
        TorchBatches(uneven, batch_size=8).state_dict(batches=14)


def test_two_iterations_at_once(uneven: Path) -> None:
    stream = TorchBatches(uneven, batch_size=8)
    both = list(zip(stream, stream, strict=True))
    assert [first["ply"].tolist() for first, _ in both] == [second["ply"].tolist() for _, second in both]
    assert len(both) == 13


def test_the_state_of_other_batches_is_refused(uneven: Path) -> None:
    """An argument that is left out is its default."""
    state = TorchBatches(uneven, batch_size=8, columns=("ply",)).state_dict()
    other: dict[str, Any] = {
        "batch_size": 9,
        "seed": 1,
        "symmetry": 3,
        "buffer_rows": 9,
        "policy": "sample",
        "world": 2,
    }
    for name, value in other.items():
        stream = TorchBatches(uneven, **{"batch_size": 8, "columns": ["ply"], name: value})
        with pytest.raises(ValueError, match=f"the state of other batches: {name} differ"):
            stream.load_state_dict(state)
    same = TorchBatches(uneven, batch_size=8, columns=["ply"], prefetch=0, symmetry="none", seed=0)
    same.load_state_dict(state)


def test_the_state_of_a_worker_needs_as_many_workers(uneven: Path) -> None:
    stream = TorchBatches(uneven, batch_size=8)
    stream.load_state_dict({"epoch": 0, "next": 4, "step": 3, "of": stream.state_dict()["of"]})
    with pytest.raises(ValueError, match="the state of one of 3 workers, and there are 1"):
        iter(stream)


def stateful(stream: Any, workers: int, **options: Any) -> Any:
    module = pytest.importorskip("torchdata.stateful_dataloader", reason="torchdata is not installed: make test-torch")
    return module.StatefulDataLoader(stream, batch_size=None, num_workers=workers, **options)


@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize("taken", [0, 1, 4, 11, 12, 13])
def test_under_the_stateful_loader(uneven: Path, workers: int, taken: int) -> None:
    """The state is taken by the loader itself, some workers being at their end; the next epoch is whole."""
    options: dict[str, Any] = {"batch_size": 8, "seed": 3, "symmetry": "random"}
    stream = TorchBatches(uneven, **options)
    orders = []
    for epoch in (2, 3):
        stream.set_epoch(epoch)
        orders.append(labels(stream))
    stream.set_epoch(2)
    first = stateful(stream, workers)
    batches = iter(first)
    for _ in range(taken):
        next(batches)
    state = pickle.loads(pickle.dumps(first.state_dict()))
    del batches
    later = TorchBatches(uneven, **options)
    second = stateful(later, workers)
    second.load_state_dict(state)
    later.set_epoch(2)
    assert labels(second) == orders[0][8 * taken :]
    later.set_epoch(3)
    assert labels(second) == orders[1]


def test_a_whole_epoch_ends_in_a_state_that_begins_the_next(uneven: Path) -> None:
    for workers in (0, 2):
        stream = TorchBatches(uneven, batch_size=8, seed=3)
        first = stateful(stream, workers)
        whole = labels(first)
        state = first.state_dict()
        later = TorchBatches(uneven, batch_size=8, seed=3)
        second = stateful(later, workers)
        second.load_state_dict(state)
        assert labels(second) == whole
        stream.set_epoch(1)
        third = stateful(TorchBatches(uneven, batch_size=8, seed=3), workers)
        third.load_state_dict(state)
        third.dataset.set_epoch(1)
        assert labels(third) == labels(stream) != whole


@pytest.mark.parametrize("aggregate", [False, True])
def test_dtypes(tmp_path: Path, aggregate: bool) -> None:
    """What PyTorch computes with; the bits of a key stay."""
    layout = make_layout(aggregate=aggregate, global_names=("komi",), key_bits=128)
    rows = make_rows(20, layout)
    folder = build(tmp_path, layout, {"train": [rows]})
    (batch,) = TorchBatches(folder, batch_size=20, seed=None, dtype="float32", policy="counts")
    assert {name: str(values.dtype).removeprefix("torch.") for name, values in batch.items()} == {
        "planes": "float32", "globals": "float32", "move": "int64", "policy": "float32", "value": "float32",
        **(dict.fromkeys(("wins", "draws", "losses"), "int64") if aggregate else {}),
        "weight": "float32", "score": "float32", "to_play": "int8", "komi": "float32", "rows": "uint8", "cols": "uint8",
        "symmetry": "uint8", "game": "int64", "ply": "int32", "key": "int64", "key_hi": "int64",
    }  # fmt: skip
    assert batch["planes"].shape == (20, 3, 19, 19)
    assert (batch["key"].numpy().view(np.uint64) == rows["key"]).all()


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("method", METHODS)
def test_rows_by_their_index(tmp_path: Path, file_format: str, method: str) -> None:
    """One by one, in lists, under samplers; the same as in the stream of that epoch."""
    layout = make_layout(file_format, frame=(8, 8), aggregate=True)
    folder = build(tmp_path, layout, {"train": pieces(numbered(101, layout), 40, 80)})
    options: dict[str, Any] = {"symmetry": "random", "seed": 3, "dtype": "uint8", "columns": ["planes", "ply", "move"]}
    rows = TorchRows(folder, **options)
    rows.set_epoch(2)
    stream = TorchBatches(folder, batch_size=101, **options)
    stream.set_epoch(2)
    (batch,) = stream
    assert len(rows) == 101
    place = {label: i for i, label in enumerate(batch["ply"].tolist())}
    for index in (0, 39, 40, 100, -1):
        row = rows[index]
        assert torch.equal(row["planes"], batch["planes"][place[index % 101]])
        assert int(row["move"]) == int(batch["move"][place[index % 101]])
    for workers in (0, 2):
        context = method if workers else None
        plain = DataLoader(rows, batch_size=10, shuffle=True, num_workers=workers, multiprocessing_context=context)
        lists = BatchSampler(SequentialSampler(range(101)), 10, drop_last=False)
        ordered = DataLoader(rows, batch_size=None, sampler=lists, num_workers=workers, multiprocessing_context=context)
        assert sorted(labels(plain)) == list(range(101))
        found = list(ordered)
        assert labels(found) == list(range(101))
        planes = torch.cat([found_batch["planes"] for found_batch in found])
        assert torch.equal(planes, batch["planes"][[place[label] for label in range(101)]])
    with pytest.raises(IndexError, match="row 101 of train, which has 101 rows"):
        rows[101]


def test_policies_of_single_rows(tmp_path: Path) -> None:
    layout = make_layout(aggregate=True)
    stored = make_rows(30, layout)
    rows = TorchRows(build(tmp_path, layout, {"val": [stored]}), "val")
    for row, found in enumerate(rows.__getitems__(list(range(30)))):
        start, stop = stored["policy_offsets"][row : row + 2]
        assert found["policy_moves"].tolist() == stored["policy_moves"][start:stop].tolist()
        assert found["policy_counts"].tolist() == rows[row]["policy_counts"].tolist()
        assert "policy_offsets" not in found


def of_a_rank(rank: int, world: int, folder: Path, meeting: Path, found: Any) -> None:
    """In a process of its own: join a group and send what the rank reads."""
    torch.distributed.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=world)
    stream = TorchBatches(folder, batch_size=8, seed=3)
    found.put((rank, labels(loader(stream, 2))))
    torch.distributed.destroy_process_group()


@pytest.mark.skipif(not torch.distributed.is_available(), reason="this PyTorch has no torch.distributed")
def test_ranks_of_a_process_group(uneven: Path, tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    found: Any = context.Queue()
    arguments = (3, uneven, tmp_path / "meeting", found)
    processes = [context.Process(target=of_a_rank, args=(rank, *arguments)) for rank in range(3)]
    for process in processes:
        process.start()
    shares = dict(found.get(timeout=120) for _ in processes)
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    assert [len(shares[rank]) for rank in range(3)] == [33, 33, 33]
    assert len(set(chain(*shares.values()))) == 99


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """No shard stays open, no worker alive."""
    yield
    assert open_shards() == 0
    assert multiprocessing.active_children() == []
