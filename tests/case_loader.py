"""The cases of kinds K7 and K8 that read as a trainer does: in many workers, over ranks, every row once."""

import multiprocessing
import pickle
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from itertools import chain, pairwise, product, zip_longest
from typing import Any

import numpy as np
from case_builds import data_set
from case_runner import Case
from numpy.typing import NDArray
from shard_rows import make_layout, make_rows
from test_load import open_shards

from pipeline.columns import slice_rows
from pipeline.load import Dataset, open_dataset

BATCH = 8
Read = tuple[list[int], NDArray[np.uint8], int]


def read_share(dataset: Dataset, options: dict[str, Any]) -> Read:
    """In a worker: the labels that it gives, their planes, and how many shards are open afterwards."""
    batches = list(dataset.batches(batch_size=BATCH, columns=["planes", "ply"], **options))
    labels = [label for batch in batches for label in batch["ply"].tolist()]
    planes = [batch["planes"].reshape(len(batch["ply"]), -1) for batch in batches]
    return labels, np.concatenate(planes) if planes else np.zeros((0, 361), np.uint8), open_shards()


@contextmanager
def reading(workers: int, method: str) -> Iterator[Any]:
    """Yield a function that reads some shares, one for each of the workers (0: this process)."""
    if workers == 0:
        yield lambda dataset, shares: [read_share(dataset, share) for share in shares]
        return
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context(method)) as pool:

        def read(dataset: Dataset, shares: list[dict[str, Any]]) -> list[Read]:
            jobs = [pool.submit(read_share, dataset, share) for share in shares]
            return [job.result(timeout=120) for job in jobs]

        yield read


def opened_before_fork(case: Case) -> None:
    """Case 051, its 361 bytes a row as planes of eight points."""
    layout = make_layout("hdf5", frame=(2, 4), planes=tuple(f"byte_{number}" for number in range(361)))
    rows = make_rows(512, layout)
    rows["ply"] = np.arange(512, dtype=np.uint16)
    rows["planes"] = np.broadcast_to((rows["ply"] % 251).astype(np.uint8)[:, None, None], (512, 361, 1))
    dataset = open_dataset(data_set(case.tmp / "shards", [(rows, layout)]))
    case.expected.check("rows", dataset.rows())
    assert dataset.row("train", 0)["ply"] == 0
    assert open_shards() == 0
    assert len(pickle.dumps(dataset)) < 100_000
    used: dict[str, list[int]] = {"fork": [], "spawn": []}
    for method, workers in product(used, (0, 1, 4, 8)):
        with reading(workers, method) as read:
            for epoch in range(3):
                shares = [{"seed": 1, "epoch": epoch, "start": n, "step": workers or 1} for n in range(workers or 1)]
                found = read(dataset, shares)
                assert sorted(chain(*(labels for labels, _, _ in found))) == list(range(512))
                for labels, planes, still_open in found:
                    assert (planes == (np.array(labels) % 251)[:, None]).all()
                    assert still_open == 0
        used[method].append(workers)
    case.expected.check("workers", used["fork"])
    case.expected.check("methods", [method for method, workers in used.items() if workers == used["fork"]])


def every_row_once(case: Case) -> None:
    """Case 053: three uneven shards over workers and ranks."""
    layout = make_layout("hdf5", frame=(19, 19))
    rows = make_rows(101, layout)
    rows["ply"] = np.arange(101, dtype=np.uint16)
    edges = [40, 80, 101]
    parts = [(slice_rows(rows, start, stop), layout) for start, stop in pairwise([0, *edges])]
    dataset = open_dataset(data_set(case.tmp / "shards", parts))
    case.expected.check("rows", dataset.rows())
    orders = {epoch: epoch_of_all(dataset, epoch) for epoch in (0, 1)}
    assert orders[0] != orders[1]
    assert epoch_of_all(dataset, 0) == orders[0]
    first_seen = [
        list(dict.fromkeys(np.searchsorted(edges, order, side="right").tolist())) for order in orders.values()
    ]
    assert first_seen[0] != first_seen[1]
    drop, pad, twice = (case.expected.table(name) for name in ("drop_tail", "pad", "pad_twice"))
    for world in (2, 3, 4):
        dropped, padded = (shares_of(dataset, world, tail) for tail in ("drop", "pad"))
        (rows_each,) = {len(share) for share in dropped}
        drop.check(str(world), rows_each)
        assert max(Counter(chain(*dropped)).values()) == 1
        (rows_each,) = {len(share) for share in padded}
        pad.check(str(world), rows_each)
        counts = Counter(Counter(chain(*padded)).values())
        assert set(counts) == {1, 2}
        twice.check(str(world), counts[2])


def epoch_of_all(dataset: Dataset, epoch: int) -> list[int]:
    """Return the labels of an epoch in one process, once 1, 2 and 5 workers together gave the same ones."""
    whole = read_share(dataset, {"seed": 1, "epoch": epoch})[0]
    assert sorted(whole) == list(range(101))
    for workers in (1, 2, 5):
        found = [
            read_share(dataset, {"seed": 1, "epoch": epoch, "start": worker, "step": workers})[0]
            for worker in range(workers)
        ]
        assert in_turn(found) == whole
        assert len({share[0] for share in found}) == workers
    return whole


def in_turn(shares: list[list[int]]) -> list[int]:
    """Return what workers read, a batch of each in turn, as a loader puts it together."""
    batches = [[share[start : start + BATCH] for start in range(0, len(share), BATCH)] for share in shares]
    return list(chain(*(chain(*batch) for batch in zip_longest(*batches, fillvalue=[]))))


def shares_of(dataset: Dataset, world: int, tail: str) -> list[list[int]]:
    """Return the labels of each rank, the same with any number of workers."""
    shares = []
    for rank in range(world):
        options: dict[str, Any] = {"seed": 1, "rank": rank, "world": world, "tail": tail}
        shares.append(read_share(dataset, options)[0])
        for workers in (1, 2, 5):
            found = [read_share(dataset, options | {"start": n, "step": workers})[0] for n in range(workers)]
            assert in_turn(found) == shares[-1]
    return shares
