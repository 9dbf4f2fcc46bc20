"""One shard: write, read, check. Parquet and HDF5 hold the same columns under the same names.

A shard is written whole or not at all, and its bytes depend on its rows alone: neither on how they came
in batches nor on the clock. Readers trust nothing: the structure is checked each time a shard is opened.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from pipeline import shard_hdf5, shard_parquet
from pipeline.columns import (
    POLICY,
    SUFFIXES,
    Columns,
    Layout,
    ShardError,
    count,
    describe,
    first_fault,
    join,
    rebatch,
    require_shapes,
)
from pipeline.files import sha256_of_file, whole_file

__all__ = [
    "POLICY",
    "SUFFIXES",
    "Columns",
    "Layout",
    "ShardError",
    "ShardFile",
    "check",
    "count",
    "describe",
    "read",
    "read_rows",
    "rebatch",
    "require_codec",
    "write",
]

_FORMATS = {"parquet": shard_parquet, "hdf5": shard_hdf5}
_READ_ROWS = 1024


@dataclass(frozen=True, slots=True)
class ShardFile:
    """A shard as it was written: what ``dataset.json`` says of it."""

    rows: int
    bytes: int
    sha256: str


def require_codec(layout: Layout) -> None:
    """Raise ShardError if this installation lacks the compression that the layout asks for."""
    if layout.format == "hdf5":
        shard_hdf5.codec(layout.compression)


def write(path: str | PathLike[str], batches: Iterable[Columns], layout: Layout) -> ShardFile:
    """Write the rows of ``batches`` (any sizes) to ``path``, which appears whole at the end.

    The bytes depend on the rows and the layout alone. Raises ValueError for a batch that does not fit the
    layout, OSError where the disk refuses.
    """
    with whole_file(path) as temporary:
        rows = _FORMATS[layout.format].write(temporary, _checked(batches, layout), layout)
        return ShardFile(rows, temporary.stat().st_size, sha256_of_file(temporary))


def read(
    path: str | PathLike[str],
    layout: Layout,
    columns: Sequence[str] | None = None,
    batch_rows: int | None = _READ_ROWS,
) -> Iterator[Columns]:
    """Yield the rows of a shard in batches of ``batch_rows`` (the last may be shorter; None: as they are stored).

    ``columns``: names to read (None: all); planes are packed in whatever the file. The file is opened when
    the first batch is asked for and closed after the last. Raises ShardError, ValueError for unknown columns.
    """
    blocks = _FORMATS[layout.format].read(Path(path), layout, layout.select(columns), 0, None)
    yield from blocks if batch_rows is None else rebatch(blocks, batch_rows)


def read_rows(
    path: str | PathLike[str],
    layout: Layout,
    start: int,
    stop: int,
    columns: Sequence[str] | None = None,
    rows: int | None = None,
) -> Columns:
    """Return rows start to stop of a shard; ``rows``: how many the manifest says that it has (None: not known).

    Raises IndexError outside it, ShardError, ValueError.
    """
    if start >= stop:
        raise IndexError(f"{path}: rows {start} to {stop}: nothing to read")
    names = layout.select(columns)
    return join(list(_FORMATS[layout.format].read(Path(path), layout, names, start, stop, rows)))


def check(path: str | PathLike[str], layout: Layout, rows: int | None = None) -> int:
    """Read a shard from end to end and return its number of rows; raise ShardError at the first fault.

    Structure first (truncation, columns, types, shapes, metadata, declared sizes, data that lies elsewhere),
    before anything is allocated for it; then every value that has a range, and the padding bits.
    ``rows`` is what the manifest says (None: not known).
    """
    path = Path(path)
    module = _FORMATS[layout.format]
    found: int = module.structure(path, layout)
    if rows is not None and found != rows:
        raise ShardError(f"{path}: has {found} rows, not {rows}")
    start = 0
    for batch in module.read(path, layout, layout.names, 0, None):
        if fault := first_fault(batch, layout, start):
            raise ShardError(f"{path}: {fault}")
        start += len(batch["move"])
    return found


def _checked(batches: Iterable[Columns], layout: Layout) -> Iterator[Columns]:
    for batch in batches:
        require_shapes(batch, layout)
        yield batch
