"""One Parquet shard: write, look at its structure, read.

Row groups of ``BLOCK_ROWS`` rows, all but the last full. Planes are one plain binary value a row,
without dictionary or statistics; numbers that repeat within a block have a dictionary. The description
of the data set is in the file's metadata under ``goplanes``.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from pipeline.columns import BLOCK_ROWS, Columns, Layout, ShardError, rebatch
from pipeline.files import NotAFileError, require_file
from pipeline.parquet_format import ChunkFacts, FormatError, GroupFacts, read_footer, require_pages

_KEY = b"goplanes"
# On rows of 17 packed planes zstd 3 is 1 % smaller than 1 and takes an eighth longer; 6 takes three times as
# long for 4 %.
_CODECS: dict[str, tuple[str, int | None]] = {
    "default": ("zstd", 1),
    "zstd": ("zstd", 1),
    "gzip": ("gzip", 1),
    "none": ("none", None),
}
# Keys are as good as random: a dictionary of them is larger than they are.
_NO_DICTIONARY = ("key", "key_hi")
_LISTS = ("policy_moves", "policy_counts")
# Beyond its values a column chunk holds page headers, levels and dictionaries.
_CHUNK_SLACK = 64 * 1024
# Room for the column chunks of ten million rows.
_MAX_FOOTER = 8 * 2**20


def schema(layout: Layout) -> pa.Schema:
    """Return the Arrow schema of a shard: what ``write`` writes and ``read`` insists on."""

    def items(dtype: pa.DataType) -> pa.DataType:
        return pa.list_(pa.field("element", dtype, nullable=False))

    types = {scalar.name: pa.from_numpy_dtype(scalar.dtype) for scalar in layout.scalars}
    types |= {
        "planes": pa.binary(),
        "globals": items(pa.float32()),
        "policy_moves": items(pa.int16()),
        "policy_counts": items(pa.uint32()),
    }
    nullable = {scalar.name for scalar in layout.scalars if scalar.nullable}
    fields = [pa.field(name, types[name], nullable=name in nullable) for name in _stored(layout.names)]
    return pa.schema(fields)


def write(path: Path, batches: Iterable[Columns], layout: Layout) -> int:
    """Write the rows to ``path``; return how many there were."""
    codec, level = _CODECS[layout.compression]
    scalars = [scalar.name for scalar in layout.scalars]
    rows = 0
    with pq.ParquetWriter(
        path,
        schema(layout),
        version="2.6",
        compression=codec,
        compression_level=level,
        use_dictionary=[name for name in scalars if name not in _NO_DICTIONARY],
        write_statistics=scalars,
        write_page_checksum=True,
        store_schema=False,
    ) as writer:
        for block in rebatch(batches, BLOCK_ROWS):
            table = _table(block, layout)
            writer.write_table(table, row_group_size=BLOCK_ROWS)
            rows += table.num_rows
        writer.add_key_value_metadata({_KEY.decode(): layout.description})
    return rows


def structure(path: Path, layout: Layout) -> int:
    """Check everything that the footer says; return the number of rows. Raises ShardError."""
    with _opened(path, layout) as (_, rows, _):
        return rows


def read(
    path: Path, layout: Layout, columns: Sequence[str], start: int, stop: int | None, declared: int | None = None
) -> Iterator[Columns]:
    """Yield rows start to stop (None: to the end), at most a row group at a time.

    ``declared``: how many rows there have to be (None: any number). Raises ShardError, IndexError.
    """
    stored = _stored(columns)
    with _opened(path, layout) as (file, rows, groups):
        if declared not in {None, rows}:
            raise ShardError(f"{path}: has {rows} rows, the manifest says {declared}")
        stop = rows if stop is None else stop
        if not 0 <= start <= stop <= rows:
            raise IndexError(f"{path}: rows {start} to {stop} of {rows}")
        for group in range(start // BLOCK_ROWS, -(-stop // BLOCK_ROWS) if stop > start else 0):
            first = group * BLOCK_ROWS
            _require_pages(path, groups[group], layout, stored)
            table = file.read_row_group(group, columns=stored, use_threads=False)
            low, high = max(start - first, 0), min(stop - first, table.num_rows)
            yield _columns(table.slice(low, high - low), layout, columns, path, first + low)


def _stored(names: Sequence[str]) -> list[str]:
    """Return the columns that a Parquet file has for these: lists know their offsets."""
    stored = [name for name in names if name != "policy_offsets"]
    if "policy_offsets" in names and not set(_LISTS) & set(names):
        stored.append("policy_moves")
    return stored


def _table(block: Columns, layout: Layout) -> pa.Table:
    rows = len(block["move"])
    target = schema(layout)
    arrays = []
    for field in target:
        values = np.ascontiguousarray(block[field.name])
        if field.name == "planes":
            ends = np.arange(rows + 1, dtype=np.int32) * np.int32(layout.row_bytes)
            array = pa.Array.from_buffers(pa.binary(), rows, [None, pa.py_buffer(ends), pa.py_buffer(values)])
        elif field.name == "globals":
            array = _list_array(np.arange(rows + 1) * len(layout.globals), values.reshape(-1), field)
        elif field.name in _LISTS:
            array = _list_array(block["policy_offsets"], values, field)
        else:
            array = pa.array(values, mask=np.isnan(values) if field.nullable else None)
        arrays.append(array)
    return pa.Table.from_arrays(arrays, schema=target)


def _list_array(offsets: NDArray[Any], values: NDArray[Any], field: pa.Field) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(values), type=field.type)


@contextmanager
def _opened(path: Path, layout: Layout) -> Iterator[tuple[pq.ParquetFile, int, Sequence[GroupFacts]]]:
    """Open a shard whose footer is as it must be: its rows and row groups; name the shard in every error."""
    size, footer = _footer(path)
    try:
        rows, groups = read_footer(footer)
        _require_row_groups(path, rows, groups, layout, size)
        with pq.ParquetFile(path, memory_map=False, pre_buffer=False, page_checksum_verification=True) as file:
            _require_schema(path, file.schema_arrow, layout)
            _require_description(path, file.metadata.metadata or {}, layout)
            yield file, rows, groups
    except (ShardError, IndexError):
        raise
    except FormatError as error:
        raise ShardError(f"{path}: {error}") from error
    except FileNotFoundError as error:
        raise ShardError(f"{path}: is missing") from error
    except (pa.ArrowException, OSError, ValueError) as error:
        if getattr(error, "errno", None) is not None:
            raise  # the system's trouble, not the shard's
        raise ShardError(f"{path}: cannot be read as Parquet: {_first_line(error)}") from error


def _footer(path: Path) -> tuple[int, bytes]:
    """Return the size and the footer of a file that begins and ends as Parquet does. Raises ShardError, OSError."""
    try:
        require_file(path)
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size == 0:
                raise ShardError(f"{path}: is empty (0 bytes)")
            head = file.read(4)
            file.seek(max(size - 8, 0))
            tail = file.read(8)
            length = int.from_bytes(tail[:4], "little")
            if head != b"PAR1":
                raise ShardError(f"{path}: is not a Parquet file")
            if size < 12 or tail[4:] != b"PAR1" or length > size - 12:
                raise ShardError(f"{path}: is truncated (no Parquet footer at its end)")
            if length > _MAX_FOOTER:
                raise ShardError(f"{path}: has a footer of {length} bytes, more than {_MAX_FOOTER}")
            file.seek(size - 8 - length)
            return size, file.read(length)
    except (FileNotFoundError, IsADirectoryError) as error:
        raise ShardError(f"{path}: is missing") from error
    except NotAFileError as error:
        raise ShardError(str(error)) from None


def _require_schema(path: Path, found: pa.Schema, layout: Layout) -> None:
    expected = schema(layout)
    if found.names != expected.names:
        raise ShardError(f"{path}: has the columns {', '.join(found.names)[:500]}")
    for field in expected:
        other = found.field(field.name)
        if str(other.type) != str(field.type):
            raise ShardError(f"{path}: column {field.name} is {str(other.type)[:80]}, not {field.type}")
        if other.nullable and not field.nullable:
            raise ShardError(f"{path}: column {field.name} may hold nulls and must not")


def _require_description(path: Path, metadata: Mapping[bytes, bytes], layout: Layout) -> None:
    if _KEY not in metadata:
        raise ShardError(f"{path}: does not say which scheme it was written with (no metadata 'goplanes')")
    if metadata[_KEY] != layout.description.encode():
        raise ShardError(f"{path}: was written with another scheme, frame or version")


def _require_row_groups(path: Path, total: int, groups: Sequence[GroupFacts], layout: Layout, size: int) -> None:
    """Check the declared sizes against each other and the file.

    Nothing is allocated for what a footer declares before this has passed.
    """
    if len(groups) != -(-total // BLOCK_ROWS):
        raise ShardError(f"{path}: declares {total} rows in {len(groups)} row groups")
    names = _stored(layout.names)
    packed = 0
    for number, group in enumerate(groups):
        rows = min(BLOCK_ROWS, total - number * BLOCK_ROWS)
        if group.rows != rows:
            raise ShardError(f"{path}: row group {number} declares {group.rows} rows, not {rows}")
        found = [chunk.name.split(".")[0] for chunk in group.chunks]
        if missing := [name for name in names if name not in found]:
            raise ShardError(f"{path}: has no column {missing[0]}")
        if extra := [name for name in found if name not in names]:
            raise ShardError(f"{path}: has an unexpected column {extra[0][:80]!r}")
        if found != names:
            raise ShardError(f"{path}: has its columns in another order: {', '.join(found[:40])}")
        for name, chunk in zip(names, group.chunks, strict=True):
            if fault := _chunk_fault(chunk, name, rows, layout, size):
                raise ShardError(f"{path}: column {name} of row group {number} {fault}")
            packed += chunk.stop - chunk.start
    if packed > size:
        raise ShardError(f"{path}: declares {packed} compressed bytes and has {size}")


def _chunk_fault(chunk: ChunkFacts, name: str, rows: int, layout: Layout, size: int) -> str | None:
    """Return what is wrong with what the footer says of a column of a row group, or None."""
    # Globals and policies have several values a row; an empty list counts as one.
    entries = {"globals": len(layout.globals)} | dict.fromkeys(_LISTS, layout.area + 1)
    if chunk.elsewhere:
        return "lies in another file or is encrypted"
    if not 4 <= chunk.start <= chunk.stop <= size:
        return f"lies at bytes {chunk.start} to {chunk.stop} of {size}"
    if not rows <= chunk.values <= rows * entries.get(name, 1):
        return f"declares {chunk.values} values for {rows} rows"
    if not 0 <= chunk.unpacked <= _most_bytes(name, rows, layout):
        return f"declares {chunk.unpacked} bytes for {rows} rows"
    return None


def _require_pages(path: Path, group: GroupFacts, layout: Layout, stored: Sequence[str]) -> None:
    """Check the pages of the columns to be read: they declare no more than the columns can hold."""
    with open(path, "rb") as file:
        for name, chunk in zip(_stored(layout.names), group.chunks, strict=True):
            if name not in stored:
                continue
            try:
                require_pages(file, chunk, _most_bytes(name, group.rows, layout), plain=name == "planes")
            except FormatError as error:
                raise ShardError(f"{path}: column {name} {error}") from error


def _most_bytes(name: str, rows: int, layout: Layout) -> int:
    """Most bytes of ``rows`` rows of a column before compression: values, lengths, levels, headers, dictionary."""
    per_row = {
        "planes": layout.row_bytes + 4,
        "globals": len(layout.globals) * 8,
        "policy_moves": (layout.area + 1) * 8 + 8,
        "policy_counts": (layout.area + 1) * 8 + 8,
    }
    return rows * per_row.get(name, 16) + _CHUNK_SLACK


def _columns(table: pa.Table, layout: Layout, names: Sequence[str], path: Path, start: int) -> Columns:
    """Turn the rows of (a slice of) a row group into arrays of our own. Raises ShardError."""
    batch: Columns = {}
    arrays = {name: table.column(name).combine_chunks() for name in table.column_names}
    for name in names:
        if name == "planes":
            batch[name] = _planes(arrays[name], layout, path, start)
        elif name == "globals":
            flat, _ = _flat(arrays[name], path, name, start, len(layout.globals))
            batch[name] = flat.reshape(-1, len(layout.globals))
        elif name in _LISTS:
            batch[name], offsets = _flat(arrays[name], path, name, start, None)
            known = batch.setdefault("policy_offsets", offsets)
            if not np.array_equal(known, offsets):
                row = start + int((np.diff(known) != np.diff(offsets)).argmax())
                raise ShardError(f"{path}: row {row}: policy_moves and policy_counts differ in length")
        elif name != "policy_offsets":
            batch[name] = np.array(arrays[name].to_numpy(zero_copy_only=False), dtype=_dtype(layout, name))
    if "policy_offsets" in names and "policy_offsets" not in batch:
        _, batch["policy_offsets"] = _flat(arrays["policy_moves"], path, "policy_moves", start, None)
    return {name: batch[name] for name in names}


def _dtype(layout: Layout, name: str) -> str:
    return next(scalar.dtype for scalar in layout.scalars if scalar.name == name)


def _planes(array: pa.Array, layout: Layout, path: Path, start: int) -> NDArray[np.uint8]:
    """Return uint8[N, P, B], a view that cannot be written, of binary values that must all have P * B bytes.

    Raises ShardError.
    """
    rows = len(array)
    shape = (rows, len(layout.planes), layout.plane_bytes)
    if rows == 0:
        return np.zeros(shape, dtype=np.uint8)
    _, offsets, data = array.buffers()
    ends = np.frombuffer(offsets, dtype=np.int32)[array.offset : array.offset + rows + 1]
    lengths = np.diff(ends)
    if (lengths != layout.row_bytes).any():
        row = int((lengths != layout.row_bytes).argmax())
        raise ShardError(f"{path}: row {start + row}: planes has {lengths[row]} bytes, not {layout.row_bytes}")
    return np.frombuffer(data, dtype=np.uint8)[ends[0] : ends[-1]].reshape(shape)


def _flat(
    array: pa.Array, path: Path, name: str, start: int, length: int | None
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the values of a list column end to end and int64 offsets from 0; ``length``: of every list."""
    offsets = array.offsets.to_numpy().astype(np.int64)
    lengths = np.diff(offsets)
    if length is not None and (lengths != length).any():
        row = int((lengths != length).argmax())
        raise ShardError(f"{path}: row {start + row}: {name} has {lengths[row]} values, not {length}")
    values = array.values.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
    return np.array(values.to_numpy(zero_copy_only=False)), offsets - offsets[0]


def _first_line(error: BaseException) -> str:
    """Return the first line of a library's message, cut to a length that fits a report."""
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
