"""The rows of a data set for PyTorch's ``DataLoader``: a stream of batches, or rows by their index.

    stream = TorchBatches("my-dataset", "train", batch_size=256, symmetry="random", seed=1, dtype="float32")
    loader = DataLoader(stream, batch_size=None, num_workers=2)
    for epoch in range(10):
        stream.set_epoch(epoch)
        for batch in loader:
            train(batch["planes"], batch["move"], batch["value"])

Both need the extra ``torch``. They hold no open file, and are safe with the start methods fork and spawn. Tensors have
the dtypes that PyTorch computes with: ``move`` int64, ``ply`` int32, counts int64, and ``game`` and the keys int64 with
the bits of their uint64.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed
from numpy.typing import NDArray
from torch.utils.data import Dataset as MapDataset
from torch.utils.data import IterableDataset, get_worker_info

from pipeline.columns import POLICY, Columns
from pipeline.epochs import Cut, Tail
from pipeline.load import Dataset, open_dataset

Batch = dict[str, torch.Tensor]

_DTYPES = {"uint16": "int32", "uint32": "int64", "uint64": "int64", "int16": "int64"}


class TorchBatches(IterableDataset):
    """The batches of ``Dataset.batches`` as tensors: hand it to a ``DataLoader`` with ``batch_size=None``.

    Workers take turns, so that a loader gives the same batches in the same order with any number of them; each reads
    all shards of its rank. ``rank`` and ``world`` are those of ``torch.distributed`` where it is running, else 0 of 1;
    every rank has the same number of batches. The other arguments are those of ``batches``. ``set_epoch`` also
    reaches workers that stay alive. ``len`` is the number of batches of an epoch.
    """

    def __init__(
        self,
        dataset: Dataset | str | Path,
        split: str = "train",
        *,
        batch_size: int = 1024,
        seed: int | None = 0,
        rank: int | None = None,
        world: int | None = None,
        tail: Tail = "drop",
        drop_last: bool = False,
        prefetch: int = 2,
        **options: Any,
    ) -> None:
        """Raises ValueError for what ``batches`` does not take, ManifestError, OSError."""
        super().__init__()
        self._dataset = dataset if isinstance(dataset, Dataset) else open_dataset(dataset)
        rank, world = _placed(rank, world)
        self._cut = Cut(batch_size, rank, world, tail, drop_last)
        self._options = {
            "split": split, "batch_size": batch_size, "seed": seed, "rank": rank, "world": world, "tail": tail,
            "drop_last": drop_last, "prefetch": prefetch, **options,
        }  # fmt: skip
        self._dataset.batches(**self._options)  # says at once what is wrong
        self._rows = self._dataset.rows(split)
        self._epoch = _shared_number()
        self._resumed: dict[str, int] | None = None
        self._next, self._step = 0, 1

    def __len__(self) -> int:
        return self._cut.count(self._rows)

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch that is read next: its order, its symmetries, its draws."""
        if self._resumed is not None and epoch != int(self._epoch):
            self._resumed = None
        self._epoch.fill_(epoch)

    def state_dict(self, batches: int | None = None) -> dict[str, Any]:
        """Return where the epoch stands: what ``load_state_dict`` needs to go on with the identical rest.

        Without workers, and in those of torchdata's ``StatefulDataLoader``, that is known here. In the process that
        reads from an ordinary ``DataLoader`` with workers it is not: say how many ``batches`` of the epoch were taken.
        """
        place = {"next": self._next, "step": self._step} if self._resumed is None else self._resumed
        if batches is not None:
            place = {"next": batches, "step": 1}
        return {"epoch": int(self._epoch), **place, "of": self._identity()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Let the next iteration, and no later one, begin where ``state`` was taken, with any number of workers (of
        states taken inside workers: with as many). Raises ValueError for the state of other batches."""
        mine = self._identity()
        if changed := [name for name, value in mine.items() if state["of"].get(name) != value]:
            raise ValueError(f"this is the state of other batches: {', '.join(changed)} differ")
        self._epoch.fill_(state["epoch"])
        self._resumed = {"next": state["next"], "step": state["step"]}

    def __iter__(self) -> Iterator[Batch]:
        worker = get_worker_info()
        number, count = (0, 1) if worker is None else (worker.id, worker.num_workers)
        resumed, self._resumed = self._resumed, None
        if resumed is None:
            first = number
        elif resumed["step"] == 1:
            first = resumed["next"] + number
        elif resumed["step"] == count:
            first = resumed["next"]
        else:
            raise ValueError(f"the state of one of {resumed['step']} workers, and there are {count}")
        self._next, self._step = first, count
        return self._iterate(int(self._epoch))

    def _iterate(self, epoch: int) -> Iterator[Batch]:
        for batch in self._dataset.batches(epoch=epoch, start=self._next, step=self._step, **self._options):
            self._next += self._step
            yield tensors(batch)

    def _identity(self) -> dict[str, Any]:
        """Return all that batches depend on, but for the epoch and the rank."""
        prints = self._dataset.manifest.fingerprints
        chosen = {name: value for name, value in self._options.items() if name not in {"rank", "prefetch"}}
        chosen["columns"] = list(chosen["columns"]) if chosen.get("columns") is not None else None
        return {"config": prints.config, "inputs": prints.inputs, **chosen}


class TorchRows(MapDataset):
    """The rows of a part by their index, as tensors. The arguments are those of ``Dataset.mapped``.

    With a sampler that gives lists (``DataLoader(rows, batch_size=None, sampler=BatchSampler(...))``) a batch is made
    at once; with ``batch_size`` its rows are read together too, and collated one by one. Rows lie in shards by the
    thousand: what is read for one row stays in memory, up to ``cache_bytes`` in each worker.
    """

    def __init__(self, dataset: Dataset | str | Path, split: str = "train", **options: Any) -> None:
        """Raises ValueError for what ``mapped`` does not take, ManifestError, OSError."""
        opened = dataset if isinstance(dataset, Dataset) else open_dataset(dataset)
        self._rows = opened.mapped(split, **options)
        self._epoch = _shared_number()
        self._epoch.fill_(options.get("epoch", 0))

    def __len__(self) -> int:
        return len(self._rows)

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch whose symmetries and draws the rows have."""
        self._epoch.fill_(epoch)

    def __getitem__(self, index: int | Sequence[int]) -> Batch:
        """Return a row, or for a list of indices a batch. Raises IndexError, ShardError."""
        self._rows.set_epoch(int(self._epoch))
        found = self._rows[index]
        return tensors(found)

    def __getitems__(self, indices: Sequence[int]) -> list[Batch]:
        """Return some rows, read together."""
        self._rows.set_epoch(int(self._epoch))
        batch = self._rows[indices]
        return [tensors(row) for row in rows_of(batch, len(indices))]


def rows_of(batch: Columns, count: int) -> Iterator[dict[str, Any]]:
    """Yield the rows of a batch one by one, policies as arrays."""
    for row in range(count):
        found = {name: values[row] for name, values in batch.items() if name not in POLICY}
        if "policy_offsets" in batch:
            start, stop = batch["policy_offsets"][row : row + 2]
            found |= {name: batch[name][start:stop] for name in POLICY[:2] if name in batch}
        yield found


def tensors(columns: dict[str, Any]) -> Batch:
    """Return arrays or numbers of numpy as tensors of the dtypes that PyTorch computes with."""
    return {name: torch.from_numpy(_signed(np.asarray(values))) for name, values in columns.items()}


def _signed(values: NDArray[Any]) -> NDArray[Any]:
    name = values.dtype.name
    return values.astype(_DTYPES[name]) if name in _DTYPES else values


def _placed(rank: int | None, world: int | None) -> tuple[int, int]:
    """Return the rank and the number of ranks: those given, or those of the process group."""
    running = torch.distributed.is_available() and torch.distributed.is_initialized()
    if rank is None:
        rank = torch.distributed.get_rank() if running else 0
    if world is None:
        world = torch.distributed.get_world_size() if running else 1
    return rank, world


def _shared_number() -> torch.Tensor:
    """Return a number that workers share with the process that started them."""
    return torch.zeros((), dtype=torch.int64).share_memory_()
