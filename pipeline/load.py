"""Shards to batches of numpy arrays, in the order and the form that a trainer wants, from either format.

    dataset = open_dataset("my-dataset")
    for epoch in range(10):
        for batch in dataset.batches("train", symmetry="random", seed=1, epoch=epoch, dtype="float32"):
            train(batch["planes"], batch["move"], batch["value"])

A ``Dataset`` holds no open file: it may be pickled, or used before a fork and after it.
"""

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline import shard
from pipeline.columns import POLICY, Columns, ShardError, join
from pipeline.epochs import MOST, Cut, Epoch, Tail, epoch_of, require_whole
from pipeline.files import sha256_of_file
from pipeline.forms import Dtype, Form, Policy, Symmetry
from pipeline.lookup import Rows
from pipeline.manifest import SPLITS, Manifest, Scheme, read_manifest
from pipeline.part import Part, path_of, release_memory
from pipeline.prefetch import prefetched
from pipeline.unpack import Axes

BUFFER_ROWS = 65_536  # that are mixed: eight runs


def open_dataset(path: str | Path) -> "Dataset":
    """Open the data set in a folder: reads ``dataset.json`` and nothing else. Raises ManifestError, OSError."""
    folder = Path(path)
    return Dataset(folder, read_manifest(folder))


@dataclass(frozen=True, slots=True)
class Dataset:
    """A data set in a folder, by its manifest."""

    folder: Path
    manifest: Manifest

    @property
    def scheme(self) -> Scheme:
        """Name, version, options, planes and globals of the scheme."""
        return self.manifest.scheme

    @property
    def planes(self) -> tuple[str, ...]:
        """Names of the planes, in their order."""
        return self.manifest.scheme.planes

    @property
    def frame(self) -> tuple[int, int]:
        """Rows and columns of the stored frame."""
        return self.manifest.frame

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns, in their order."""
        return self.manifest.layout.names

    def rows(self, split: str = "train") -> int:
        """Number of rows of a part. Raises ValueError for an unknown one."""
        return self.part(split).rows

    def part(self, split: str) -> Part:
        """Return the shards of a part. Raises ValueError for an unknown one."""
        if split not in SPLITS:
            raise ValueError(f"no part {split!r}; the parts are {', '.join(SPLITS)}")
        entries = tuple(entry for entry in self.manifest.shards if entry.split == split)
        return Part(self.folder, split, self.manifest.layout, entries)

    def batches(
        self,
        split: str = "train",
        *,
        columns: Sequence[str] | None = None,
        batch_size: int = 1024,
        symmetry: Symmetry = "none",
        seed: int | None = None,
        epoch: int = 0,
        dtype: Dtype = "packed",
        layout: Axes = "NCHW",
        policy: Policy = "move",
        out: Mapping[str, NDArray[Any]] | None = None,
        drop_last: bool = False,
        rank: int = 0,
        world: int = 1,
        tail: Tail = "drop",
        start: int = 0,
        step: int = 1,
        buffer_rows: int = BUFFER_ROWS,
        prefetch: int = 0,
    ) -> Generator[Columns, None, None]:
        """Yield batches of ``batch_size`` rows; the last may be shorter.

        Planes are uint8[N, P, B] packed, or uint8 or float32 [N, P, H, W] (``layout`` NHWC: [N, H, W, P]); the other
        columns are as in ``pipeline.columns``.

        ``seed``: the order is a pure function of (seed, epoch), rows of several shards mixed through a buffer of some
        ``buffer_rows`` rows, which stay in memory packed (None: the order of the shards). ``symmetry``: "random" draws
        one for each row by (seed, epoch, row), a number from 0 to 7 is for all rows; planes, moves and policies turn
        together, and the column ``symmetry`` says how a row lies now. ``policy``: "move" leaves the columns as they
        are; "counts" gives a column ``policy`` float32[N, area + 1], the share of each move, in place of the ragged
        ones and whatever ``columns`` says; "sample" draws ``move`` by the counts. Without counts (``dedup.positions``
        not aggregate) the move of the row is all there is.

        ``out``: arrays of at least ``batch_size`` rows, as ``buffers`` makes them, into which the columns are written;
        a batch then holds views of them, which the next batch overwrites. ``rank`` of ``world``: an equal share of
        the rows for each of several trainers; the rows left over are dropped, or the first ones come again (``tail``
        "pad"). ``start``: the batches to leave out, as when an epoch goes on; ``step``: only each ``step``-th from
        there. ``prefetch``: so many batches are made ahead by threads.

        Raises ValueError at once for what cannot be asked for; while reading ShardError for a shard that is not as the
        manifest says, OSError, and ValueError for a symmetry that a board does not have.
        """
        form = Form(dtype, layout, symmetry, policy, seed or 0, epoch)
        cut = Cut(batch_size, rank, world, tail, drop_last, start, step)
        part = self.part(split)
        names = form.names(part.layout, columns)
        require_whole("buffer_rows", buffer_rows, 1)
        require_whole("prefetch", prefetch, 0)
        if out is not None:
            _require_fit(out, form.blank(part.layout, names, 0), batch_size)
            if prefetch:
                raise ValueError("batches that are made ahead need arrays of their own: out or prefetch, not both")
        order = epoch_of(part.lengths, buffer_rows, seed, epoch)
        return _tidy(prefetched(_batches(part, order, cut, form, names, out, ahead=prefetch > 0), prefetch))

    def buffers(
        self,
        batch_size: int = 1024,
        *,
        columns: Sequence[str] | None = None,
        dtype: Dtype = "packed",
        layout: Axes = "NCHW",
        policy: Policy = "move",
    ) -> Columns:
        """Return arrays for ``batches(..., out=...)`` with the same arguments, for every column but the ragged ones."""
        form = Form(dtype, layout, policy=policy)
        facts = self.manifest.layout
        return form.blank(facts, form.names(facts, columns), batch_size)

    def mapped(
        self,
        split: str = "train",
        *,
        columns: Sequence[str] | None = None,
        symmetry: Symmetry = "none",
        seed: int = 0,
        epoch: int = 0,
        dtype: Dtype = "packed",
        layout: Axes = "NCHW",
        policy: Policy = "move",
        cache_bytes: int = 2**28,
    ) -> Rows:
        """Return the rows of a part as a sequence: an index gives a row, a list of indices a batch in that order.

        The arguments are those of ``batches``; a row comes out the same as there for the same (seed, epoch). Runs of
        rows that were read stay in memory, up to ``cache_bytes`` of them in each process. Raises ValueError.
        """
        form = Form(dtype, layout, symmetry, policy, seed, epoch)
        part = self.part(split)
        return Rows(part, form, form.names(part.layout, columns), cache_bytes)

    def row(self, split: str, index: int, **options: Any) -> dict[str, Any]:
        """Return one row: planes [P, B], [P, H, W] or [H, W, P], policies as arrays, the rest as numpy scalars.

        Opens a shard each time: for looking, not for training. ``options`` are those of ``mapped``. Raises IndexError
        outside 0 to rows - 1, ValueError and ShardError as ``batches``.
        """
        require_whole("index", index, -MOST)
        if index < 0:
            raise IndexError(f"row {index} of {split}, which has {self.rows(split)} rows")
        return self.mapped(split, **options)[index]

    def damaged(self) -> list[str]:
        """Read every shard from end to end; return one line for each that is not as the manifest says."""
        faults = []
        for entry in self.manifest.shards:
            try:
                path = path_of(self.folder, entry)
                # First what can be named: it is worth more than a sum that differs.
                shard.check(path, self.manifest.layout, entry.rows)
                if sha256_of_file(path) != entry.sha256:
                    raise ShardError(f"{path}: its sha256 is not the manifest's")
            except ShardError as error:
                faults.append(str(error))
        return faults


def _tidy(batches: Generator[Columns, None, None]) -> Generator[Columns, None, None]:
    """Yield batches, and give memory back once the threads that made them have ended."""
    try:
        with closing(batches):
            yield from batches
    finally:
        release_memory()


def _batches(
    part: Part,
    order: Epoch,
    cut: Cut,
    form: Form,
    names: tuple[str, ...],
    out: Mapping[str, NDArray[Any]] | None,
    ahead: bool,
) -> Generator[Columns, None, None]:
    """Yield the batches of a cut; ``ahead``: a thread reads the next buffer while one is used."""
    layout = part.layout
    reads = form.reads(layout, names)
    loaded = ((part.read_all(order.buffers[number], reads), *order.order(number)) for number in _needed(order, cut))
    with closing(prefetched(loaded, int(ahead))) as buffers:
        stored: Columns = {}
        here = -1
        for start, stop in cut.spans(order.rows):
            target = form.blank(layout, names, stop - start) if out is None else dict(out)
            ragged: list[Columns] = []
            filled = 0
            for piece in order.pieces(start, stop):
                if piece.buffer != here:
                    stored = {}  # is not held while the next one is read
                    stored, places, numbers = next(buffers)
                    here = piece.buffer
                chosen = slice(piece.start, piece.stop)
                views = {name: values[filled : filled + piece.rows] for name, values in target.items()}
                ragged.append(form.fill(stored, layout, places[chosen], numbers[chosen], views))
                filled += piece.rows
            policy = join(ragged)
            yield {name: policy[name] if name in POLICY else target[name][:filled] for name in names}


def _needed(order: Epoch, cut: Cut) -> Iterator[int]:
    """Yield the buffers of the batches of a cut, in their order, each as it comes after another one."""
    numbers = (piece.buffer for start, stop in cut.spans(order.rows) for piece in order.pieces(start, stop))
    return (number for number, _ in groupby(numbers))


def _require_fit(out: Mapping[str, NDArray[Any]], blank: Columns, batch_size: int) -> None:
    """Raise ValueError unless ``out`` has arrays for a batch of all the columns that can be written in place."""
    if set(out) != set(blank):
        raise ValueError(f"out has arrays for {', '.join(sorted(out))}; needed are {', '.join(sorted(blank))}")
    for name, expected in blank.items():
        array = out[name]
        if not isinstance(array, np.ndarray):
            raise ValueError(f"out[{name!r}] is no array of numpy")
        fits = array.dtype == expected.dtype and array.shape[1:] == expected.shape[1:] and len(array) >= batch_size
        if not (fits and array.flags.c_contiguous and array.flags.writeable):
            raise ValueError(
                f"out[{name!r}] is {array.dtype}{list(array.shape)}; needed is a contiguous "
                f"{expected.dtype}{[batch_size, *expected.shape[1:]]}"
            )
