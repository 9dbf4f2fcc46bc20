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

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.distributed
from numpy.typing import NDArray
from torch.utils.data import Dataset as MapDataset
from torch.utils.data import IterableDataset, get_worker_info

from pipeline.columns import row_of
from pipeline.epochs import Cut, Tail, require_whole
from pipeline.forms import Dtype, Policy, Symmetry
from pipeline.load import BUFFER_ROWS, Dataset, open_dataset
from pipeline.unpack import Axes

Batch = dict[str, torch.Tensor]


class Place(NamedTuple):
    """Where an iteration stands: the number of its next batch, and that of the batch after it less that one."""

    epoch: int
    next: int
    step: int


_WORKERS = 1024  # that a loader may have
_MOST = 2**63 - 1  # epochs that workers hear of
_EPOCH, _CHOSEN, _AT, _NEXT, _STEP, _LOADS, _BEGUN, _SLOTS = range(8)


class _Shared:
    """What a stream shares with the workers that were started for it, in memory: the epoch, the place that was loaded,
    which of the workers have begun there, and the epoch that one of them began last."""

    def __init__(self) -> None:
        self._numbers = torch.zeros(_SLOTS + _WORKERS + 1, dtype=torch.int64).share_memory_()
        self._numbers[_BEGUN] = -1

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Share a copy as well. (What goes to a worker is shared already.)"""
        self.__dict__ |= state
        if not self._numbers.is_shared():
            self._numbers.share_memory_()

    @property
    def epoch(self) -> int:
        """The epoch that is read next."""
        return int(self._numbers[_EPOCH])

    @property
    def chosen(self) -> bool:
        """Whether that epoch was chosen, and not begun yet. (Workers do not know which others have begun: to them it
        stays chosen.)"""
        return bool(self._numbers[_CHOSEN]) and (get_worker_info() is not None or self.begun != self.epoch)

    def choose(self, epoch: int, by_hand: bool) -> None:
        """Set the epoch that is read next."""
        self._numbers[_EPOCH], self._numbers[_CHOSEN] = epoch, by_hand

    @property
    def begun(self) -> int:
        """The epoch that a worker began last; -1 for none."""
        return int(self._numbers[_BEGUN])

    def load(self, place: Place) -> None:
        """Let every worker, or the process itself, begin once at a place."""
        for number, value in zip((_AT, _NEXT, _STEP), place, strict=True):
            self._numbers[number] = value
        self._numbers[_LOADS] += 1

    def loaded_for(self, slot: int) -> Place | None:
        """Return the place that was loaded, None where the worker of that slot has begun there."""
        if int(self._numbers[_LOADS]) == int(self._numbers[_SLOTS + slot]):
            return None
        return Place(*(int(self._numbers[number]) for number in (_AT, _NEXT, _STEP)))

    def begin(self, slot: int, epoch: int) -> None:
        """Note that a worker begins an epoch, or the process itself: then no worker begins at the place any more."""
        first = slot if slot < _WORKERS else 0
        self._numbers[_SLOTS + first : _SLOTS + slot + 1] = self._numbers[_LOADS]
        self._numbers[_SLOTS + _WORKERS] = self._numbers[_LOADS]
        if slot < _WORKERS:
            self._numbers[_BEGUN] = epoch
        else:
            self._numbers[_CHOSEN] = False


_DTYPES = {"uint16": "int32", "uint32": "int64", "uint64": "int64", "int16": "int64"}


class TorchBatches(IterableDataset):
    """The batches of ``Dataset.batches`` as tensors: hand it to a ``DataLoader`` with ``batch_size=None``.

    The arguments are those of ``batches``, but rows are shuffled unless ``seed`` is None. ``rank`` and ``world`` are
    those of ``torch.distributed`` where it is running when the stream is made, else 0 of 1; every rank has the same
    number of batches. Workers take turns, so that a loader gives the same batches in the same order with any number
    of them; each reads all shards of its rank. ``set_epoch`` and ``load_state_dict`` also reach workers that stay
    alive. ``len`` is the number of batches of an epoch.
    """

    def __init__(
        self,
        dataset: Dataset | str | Path,
        split: str = "train",
        *,
        columns: Sequence[str] | None = None,
        batch_size: int = 1024,
        symmetry: Symmetry = "none",
        seed: int | None = 0,
        dtype: Dtype = "packed",
        layout: Axes = "NCHW",
        policy: Policy = "move",
        drop_last: bool = False,
        rank: int | None = None,
        world: int | None = None,
        tail: Tail = "drop",
        buffer_rows: int = BUFFER_ROWS,
        prefetch: int = 2,
    ) -> None:
        """Raises ValueError for what ``batches`` does not take, ManifestError, OSError."""
        super().__init__()
        self._dataset = dataset if isinstance(dataset, Dataset) else open_dataset(dataset)
        rank, world = _placed(rank, world)
        self._own: dict[str, Any] = {"prefetch": prefetch, "rank": rank}  # what batches do not depend on
        self._options: dict[str, Any] = {
            "split": split, "columns": None if columns is None else list(columns), "batch_size": batch_size,
            "symmetry": symmetry, "seed": seed, "dtype": dtype, "layout": layout, "policy": policy,
            "drop_last": drop_last, "world": world, "tail": tail, "buffer_rows": buffer_rows,
        }  # fmt: skip
        self._dataset.batches(**self._options, **self._own)  # says at once what is wrong
        self._count = Cut(batch_size, rank, world, tail, drop_last).count(self._dataset.rows(split))
        self._shared = _Shared()
        self._loaded: Place | None = None  # in this worker alone
        self._place: Place | None = None  # of the last iteration in this process

    def __len__(self) -> int:
        return self._count

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch that is read next: its order, its symmetries, its draws."""
        require_whole("epoch", epoch, 0, _MOST)
        self._shared.choose(epoch, by_hand=True)

    def state_dict(self, batches: int | None = None) -> dict[str, Any]:
        """Return where the epoch stands: what ``load_state_dict`` needs to go on with the identical rest.

        Without workers, and in those of torchdata's ``StatefulDataLoader``, that is known here. In the process that
        reads from an ordinary ``DataLoader`` with workers it is not: say how many ``batches`` of the epoch were taken.
        Raises RuntimeError where that is needed, ValueError for more than there are.
        """
        epoch = self._shared.epoch
        place = self._loaded or self._shared.loaded_for(_slot()) or self._place
        if batches is not None:
            require_whole("batches", batches, 0, len(self))
            place = Place(epoch, batches, 1)
        elif place is None or place.epoch != epoch:
            if get_worker_info() is None and self._shared.begun == epoch:
                raise RuntimeError("workers have read the batches: say how many were taken, state_dict(batches=...)")
            place = Place(epoch, 0, 1)
        return {**place._asdict(), "of": self._identity()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Let the next iteration, and no later one, begin where ``state`` was taken, with any number of workers (of
        states taken inside workers: with as many).

        Where another epoch was chosen before, the end of an epoch lets that one begin; any other place is refused.
        Raises ValueError for that, and for the state of other batches.
        """
        mine = self._identity()
        of = state.get("of", {})
        if changed := [name for name in mine if of.get(name) != mine[name]]:
            grown = "; the data set grew or was made anew since" if changed == ["shards"] else ""
            raise ValueError(f"this is the state of other batches: {', '.join(changed)} differ{grown}")
        place = Place(state["epoch"], state["next"], state["step"])
        if self._shared.chosen and self._shared.epoch != place.epoch:
            if place.next < len(self):
                raise ValueError(
                    f"the state is of epoch {place.epoch}, and epoch {self._shared.epoch} was chosen before"
                )
            return
        self._shared.choose(place.epoch, by_hand=False)
        if get_worker_info() is None:
            self._shared.load(place)
        else:
            self._loaded = place

    def __iter__(self) -> Iterator[Batch]:
        worker = get_worker_info()
        number, count = (0, 1) if worker is None else (worker.id, worker.num_workers)
        epoch = self._shared.epoch
        loaded = self._loaded or self._shared.loaded_for(_slot())
        self._loaded = None
        self._shared.begin(_slot(), epoch)
        if loaded is None or loaded.epoch != epoch:
            first = number
        elif loaded.step == 1:
            first = loaded.next + number
        elif loaded.step == count:
            first = loaded.next
        else:
            raise ValueError(f"the state of one of {loaded.step} workers, and there are {count}")
        self._place = Place(epoch, first, count)
        return self._iterate(self._place)

    def _iterate(self, place: Place) -> Iterator[Batch]:
        batches = self._dataset.batches(
            epoch=place.epoch, start=place.next, step=place.step, **self._options, **self._own
        )
        with closing(batches):
            for batch in batches:
                place = place._replace(next=place.next + place.step)
                self._place = place
                yield tensors(batch)

    def _identity(self) -> dict[str, Any]:
        """Return all that batches depend on, but for the epoch and the rank: the rows, and what is done with them."""
        entries = self._dataset.part(self._options["split"]).entries
        shards = hashlib.sha256("".join(entry.sha256 for entry in entries).encode()).hexdigest()
        return {"shards": shards, **self._options}


class TorchRows(MapDataset):
    """The rows of a part by their index, as tensors. The arguments are those of ``Dataset.mapped``.

    With a sampler that gives lists (``DataLoader(rows, batch_size=None, sampler=BatchSampler(...))``) a batch is made
    at once. With ``batch_size`` its rows are read together too, and collated one by one, which ragged policies do not
    allow: leave them out, or ask for ``policy="counts"``. Rows lie in shards by the thousand: what is read for one row
    stays in memory, up to ``cache_bytes`` in each worker.
    """

    def __init__(self, dataset: Dataset | str | Path, split: str = "train", **options: Any) -> None:
        """Raises ValueError for what ``mapped`` does not take, ManifestError, OSError."""
        opened = dataset if isinstance(dataset, Dataset) else open_dataset(dataset)
        self._rows = opened.mapped(split, **options)
        self._shared = _Shared()
        self._shared.choose(options.get("epoch", 0), by_hand=False)

    def __len__(self) -> int:
        return len(self._rows)

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch whose symmetries and draws the rows have."""
        require_whole("epoch", epoch, 0, _MOST)
        self._shared.choose(epoch, by_hand=True)

    def __getitem__(self, index: int | Sequence[int]) -> Batch:
        """Return a row, or for a list of indices a batch. Raises IndexError, TypeError, ShardError."""
        self._rows.set_epoch(self._shared.epoch)
        return tensors(self._rows[index])

    def __getitems__(self, indices: Sequence[int]) -> list[Batch]:
        """Return some rows, read together."""
        self._rows.set_epoch(self._shared.epoch)
        batch = self._rows[indices]
        return [tensors(row_of(batch, row)) for row in range(len(indices))]


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


def _slot() -> int:
    """Return the number of this worker, or one that no worker has."""
    worker = get_worker_info()
    if worker is None:
        return _WORKERS
    if worker.num_workers > _WORKERS:
        raise ValueError(f"{worker.num_workers} workers are more than {_WORKERS}")
    return int(worker.id)
