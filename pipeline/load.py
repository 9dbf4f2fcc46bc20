"""Shards to batches of numpy arrays, in shard order, from either format.

    dataset = open_dataset("my-dataset")
    for batch in dataset.batches("train", columns=["planes", "move", "value"], dtype="float32"):
        train(batch["planes"], batch["move"], batch["value"])

A ``Dataset`` holds no open file: it may be pickled, or used before a fork and after it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pipeline import shard
from pipeline.columns import Columns, Layout, ShardError
from pipeline.files import sha256_of_file
from pipeline.manifest import SPLITS, Manifest, Scheme, ShardEntry, read_manifest

Dtype = Literal["packed", "uint8", "float32"]
Order = Literal["NCHW", "NHWC"]


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
        return sum(entry.rows for entry in self._shards(split))

    def batches(
        self,
        split: str = "train",
        *,
        columns: Sequence[str] | None = None,
        batch_size: int = 1024,
        dtype: Dtype = "packed",
        layout: Order = "NCHW",
        drop_last: bool = False,
    ) -> Iterator[Columns]:
        """Yield batches of ``batch_size`` rows in shard order, across shards; the last may be shorter.

        Planes are uint8[N, P, B] packed, or uint8 or float32 [N, P, H, W] (NHWC: [N, H, W, P]); the other
        columns are as in ``pipeline.columns``. Raises ValueError at once for an unknown part, column or
        form, ShardError while reading for a shard that is not as the manifest says.
        """
        form = _require_form(dtype, layout)
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, not {batch_size}")
        entries = self._shards(split)
        facts = self.manifest.layout
        names = facts.select(columns)
        return self._batches(entries, facts, names, batch_size, form, drop_last)

    def row(
        self,
        split: str,
        index: int,
        *,
        columns: Sequence[str] | None = None,
        dtype: Dtype = "packed",
        layout: Order = "NCHW",
    ) -> dict[str, Any]:
        """Return one row: planes [P, B], [P, H, W] or [H, W, P], policies as arrays, the rest as numpy scalars.

        Opens a shard each time: for looking, not for training. Raises IndexError outside 0 to rows - 1,
        ValueError and ShardError as ``batches``.
        """
        form = _require_form(dtype, layout)
        entries = self._shards(split)
        facts = self.manifest.layout
        names = facts.select(columns)
        start = index
        for entry in entries:
            if 0 <= start < entry.rows:
                batch = shard.read_rows(self._path(entry), facts, start, start + 1, names)
                batch = _in_form(batch, facts, form)
                return {name: _only(name, values) for name, values in batch.items() if name != "policy_offsets"}
            start -= entry.rows
        raise IndexError(f"row {index} of {split}, which has {self.rows(split)} rows")

    def damaged(self) -> list[str]:
        """Read every shard from end to end; return one line for each that is not as the manifest says."""
        faults = []
        for entry in self.manifest.shards:
            try:
                path = self._path(entry)
                # First what can be named: it is worth more than a sum that differs.
                shard.check(path, self.manifest.layout, entry.rows)
                if sha256_of_file(path) != entry.sha256:
                    raise ShardError(f"{path}: its sha256 is not the manifest's")
            except ShardError as error:
                faults.append(str(error))
        return faults

    def _shards(self, split: str) -> list[ShardEntry]:
        if split not in SPLITS:
            raise ValueError(f"no part {split!r}; the parts are {', '.join(SPLITS)}")
        return [entry for entry in self.manifest.shards if entry.split == split]

    def _path(self, entry: ShardEntry) -> Path:
        """Return where a shard is, once its size is what the manifest says. Raises ShardError."""
        path = self.folder / entry.path
        try:
            size = path.stat().st_size
        except (FileNotFoundError, NotADirectoryError) as error:
            raise ShardError(f"{path}: is missing") from error
        if size != entry.bytes:
            raise ShardError(f"{path}: has {size} bytes, the manifest says {entry.bytes}: truncated or changed")
        return path

    def _batches(
        self,
        entries: Sequence[ShardEntry],
        facts: Layout,
        names: tuple[str, ...],
        batch_size: int,
        form: tuple[Dtype, Order],
        drop_last: bool,
    ) -> Iterator[Columns]:
        for batch in shard.rebatch(self._read(entries, facts, names), batch_size):
            if drop_last and shard.count(batch) < batch_size:
                return
            yield _in_form(batch, facts, form)

    def _read(self, entries: Sequence[ShardEntry], facts: Layout, names: tuple[str, ...]) -> Iterator[Columns]:
        for entry in entries:
            rows = 0
            for batch in shard.read(self._path(entry), facts, names, batch_rows=None):
                rows += shard.count(batch)
                yield batch
            if rows != entry.rows:
                raise ShardError(f"{self.folder / entry.path}: has {rows} rows, the manifest says {entry.rows}")


def _require_form(dtype: Dtype, layout: Order) -> tuple[Dtype, Order]:
    if dtype not in {"packed", "uint8", "float32"}:
        raise ValueError(f"dtype must be packed, uint8 or float32, not {dtype!r}")
    if layout not in {"NCHW", "NHWC"}:
        raise ValueError(f"layout must be NCHW or NHWC, not {layout!r}")
    if dtype == "packed" and layout != "NCHW":
        raise ValueError("packed planes have no layout but NCHW: ask for dtype 'uint8' or 'float32'")
    return dtype, layout


def _in_form(batch: Columns, facts: Layout, form: tuple[Dtype, Order]) -> Columns:
    """Unpack the planes of a batch as asked for."""
    dtype, order = form
    if "planes" not in batch or dtype == "packed":
        return batch
    packed = batch["planes"]
    dense: NDArray[Any] = np.unpackbits(packed, axis=-1, count=facts.area)
    dense = dense.reshape(len(packed), len(facts.planes), *facts.frame)
    if order == "NHWC":
        dense = dense.transpose(0, 2, 3, 1)
    return batch | {"planes": np.ascontiguousarray(dense, dtype=np.dtype(dtype))}


def _only(name: str, values: NDArray[Any]) -> Any:
    """Return the one row of a column: all of a policy, else the first entry."""
    return values if name in shard.POLICY else values[0]
