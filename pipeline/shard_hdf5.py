"""One HDF5 shard: write, look at its structure, read.

A flat file: one chunked dataset a column in the root group, nothing else, and the description of the data
set in the root attribute ``goplanes`` (a fixed-length string). HDF5 can also say "the data is in that other
file" in four ways and declare any size, and h5py follows and allocates; so everything is looked at first.
"""

import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np

from pipeline.columns import BLOCK_ROWS, POLICY, Columns, Compression, Layout, ShardError, count, rebatch
from pipeline.files import NotAFileError, require_file

_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_ATTRIBUTE = "goplanes"
_MAX_DESCRIPTION = 64 * 1024
# Chunks: small for planes, so that one row is read without many others; both divide BLOCK_ROWS.
_PLANE_CHUNK = 256
_DENSE_CHUNK = 32  # the unpacked form has eight times the bytes
_SCALAR_CHUNK = 4096
_READ_ROWS = 1024
_ZSTD = 32015  # registered filter number
_FILTERS = {h5py.h5z.FILTER_DEFLATE, h5py.h5z.FILTER_SHUFFLE, h5py.h5z.FILTER_FLETCHER32, _ZSTD}
_LINKS = {h5py.h5l.TYPE_SOFT: "a soft link", h5py.h5l.TYPE_EXTERNAL: "an external link"}
# What a chunk that does not compress may grow by, and the least that an index says of a chunk.
_CHUNK_SLACK = 4096
_INDEX_ENTRY = 8


class _Spec(NamedTuple):
    """A dataset as it must be: its dtype and the shape of one entry."""

    dtype: np.dtype[Any]
    inner: tuple[int, ...] = ()


def codec(compression: Compression) -> Mapping[str, Any]:
    """Return h5py's arguments for a compression. Raises ShardError where zstd is not installed."""
    if compression == "none":
        return {"fletcher32": True}  # a sum that zlib has by itself
    if compression != "zstd":
        # On rows of 17 planes level 4 is a sixth smaller and takes a third longer; with more planes it takes far
        # longer than encoding them.
        return {"compression": "gzip", "compression_opts": 1}
    try:
        import hdf5plugin  # noqa: PLC0415 (an extra: registers its filters when imported)
    except ImportError as error:
        raise ShardError("zstd in HDF5 needs hdf5plugin: pip install 'goplanes[zstd]'") from error
    return {"compression": hdf5plugin.Zstd(clevel=1), "fletcher32": True}


class _Sink(io.FileIO):
    """The file under a shard that is being written: it keeps its first error and seems to go on.

    libhdf5 cannot give up: after a failed write its handles stay open and report it again when Python ends.
    """

    error: OSError | None = None

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        done = 0
        try:
            while done < len(view) and self.error is None:
                done += super().write(view[done:])
        except OSError as error:
            self.error = error
        return len(view)

    def truncate(self, size: int | None = None) -> int:
        try:
            return super().truncate(size)
        except OSError as error:
            self.error = self.error or error
            return self.tell() if size is None else size


def write(path: Path, batches: Iterable[Columns], layout: Layout) -> int:
    """Write the rows to ``path``; return how many there were. Raises OSError where the disk refuses."""
    with _Sink(path, "w+b") as sink:
        try:
            with h5py.File(sink, "w", libver=("earliest", "v110")) as file:
                rows = _write_rows(file, sink, batches, layout)
        except (OSError, RuntimeError):
            if sink.error is None:
                raise  # not the disk, nor what libhdf5 made of it
        if sink.error is not None:
            raise OSError(sink.error.errno, sink.error.strerror, str(path)) from sink.error
        return rows


def _write_rows(file: h5py.File, sink: _Sink, batches: Iterable[Columns], layout: Layout) -> int:
    """Fill the file until the rows or the disk end; return the number of rows."""
    blocks = rebatch(batches, BLOCK_ROWS)
    first = next(blocks, None)
    rows = entries = 0
    file.attrs[_ATTRIBUTE] = np.bytes_(layout.description.encode())
    _create(file, layout, 0 if first is None else count(first))
    for block in chain([] if first is None else [first], blocks):
        _append(file, block, layout, rows, entries)
        rows += count(block)
        entries += len(block["policy_moves"]) if layout.aggregate else 0
        if sink.error is not None:
            break
    return rows


def structure(path: Path, layout: Layout) -> int:
    """Check everything short of the values; return the number of rows. Raises ShardError."""
    with _opened(path, layout) as (_, rows):
        return rows


def read(
    path: Path, layout: Layout, columns: Sequence[str], start: int, stop: int | None, declared: int | None = None
) -> Iterator[Columns]:
    """Yield rows start to stop (None: to the end) in small blocks.

    ``declared``: how many rows there have to be (None: any number). Raises ShardError, IndexError.
    """
    step = _READ_ROWS if layout.packed else _READ_ROWS // 4
    with _opened(path, layout) as (file, rows):
        if declared not in {None, rows}:
            raise ShardError(f"{path}: has {rows} rows, the manifest says {declared}")
        stop = rows if stop is None else stop
        if not 0 <= start <= stop <= rows:
            raise IndexError(f"{path}: rows {start} to {stop} of {rows}")
        while start < stop:
            # Blocks end at multiples of the step, so that each chunk is unpacked once.
            end = min(stop, start - start % step + step)
            yield _block(file, path, layout, columns, start, end)
            start = end


def _specs(layout: Layout) -> dict[str, _Spec]:
    inner = (layout.plane_bytes,) if layout.packed else layout.frame
    specs = {scalar.name: _Spec(np.dtype(scalar.dtype)) for scalar in layout.scalars}
    specs |= {
        "planes": _Spec(np.dtype("uint8"), (len(layout.planes), *inner)),
        "globals": _Spec(np.dtype("float32"), (len(layout.globals),)),
        "policy_moves": _Spec(np.dtype("int16")),
        "policy_counts": _Spec(np.dtype("uint32")),
        "policy_offsets": _Spec(np.dtype("int64")),
    }
    return {name: specs[name] for name in layout.names}


def _create(file: h5py.File, layout: Layout, rows: int) -> None:
    """Create the datasets; ``rows`` of the first block keep the chunks of a small shard small."""
    filters = codec(layout.compression)
    planes_chunk = _PLANE_CHUNK if layout.packed else _DENSE_CHUNK
    for name, (dtype, inner) in _specs(layout).items():
        chunk = max(1, min(planes_chunk if inner else _SCALAR_CHUNK, rows))
        file.create_dataset(
            name,
            shape=(0, *inner),
            maxshape=(None, *inner),
            chunks=(chunk, *inner),
            dtype=dtype,
            shuffle="compression" in filters and dtype.itemsize > 1,
            track_times=False,
            **filters,
        )
    if layout.aggregate:
        file["policy_offsets"].resize(1, axis=0)
        file["policy_offsets"][0] = 0


def _append(file: h5py.File, block: Columns, layout: Layout, rows: int, entries: int) -> None:
    """Write a block of rows behind the ``rows`` rows and ``entries`` policy entries there are."""
    for name in layout.names:
        values, start = block[name], rows
        if name == "policy_offsets":
            values, start = values[1:] + entries, rows + 1
        elif name in POLICY:
            start = entries
        elif name == "planes" and not layout.packed:
            values = np.unpackbits(values, axis=-1, count=layout.area).reshape(-1, len(layout.planes), *layout.frame)
        elif values.dtype == np.float32:
            values = np.where(np.isnan(values), np.float32(np.nan), values)  # one NaN, whatever its bits were
        file[name].resize(start + len(values), axis=0)
        file[name][start:] = values


def _block(file: h5py.File, path: Path, layout: Layout, names: Sequence[str], start: int, stop: int) -> Columns:
    """Read rows start to stop of the chosen columns."""
    batch: Columns = {}
    for name in names:
        if name not in POLICY:
            batch[name] = file[name][start:stop]
    if "planes" in batch and not layout.packed:
        dense = batch["planes"]
        if dense.max(initial=0) > 1:
            row = start + int((dense > 1).any(axis=(1, 2, 3)).argmax())
            raise ShardError(f"{path}: row {row}: planes hold more than 0 and 1")
        batch["planes"] = np.packbits(dense.reshape(len(dense), len(layout.planes), layout.area), axis=-1)
    if "policy_offsets" in names:
        offsets = file["policy_offsets"][start : stop + 1]
        lengths = np.diff(offsets)
        total = len(file["policy_moves"])
        # A row names a move once at most; the bound keeps a false offset from reading the whole file.
        bad = (lengths < 0) | (lengths > layout.area + 1) | (offsets[:-1] < 0) | (offsets[1:] > total)
        bad[0] |= start == 0 and offsets[0] != 0
        bad[-1] |= stop == len(file["policy_offsets"]) - 1 and offsets[-1] != total
        if bad.any():
            raise ShardError(f"{path}: row {start + int(bad.argmax())}: policy_offsets do not fit the policy")
        batch["policy_offsets"] = offsets - offsets[0]
        for name in set(POLICY[:2]) & set(names):
            batch[name] = file[name][int(offsets[0]) : int(offsets[-1])]
    return {name: batch[name] for name in names}


@contextmanager
def _opened(path: Path, layout: Layout) -> Iterator[tuple[h5py.File, int]]:
    """Open a shard whose structure is as it must be, with its number of rows; name the shard in every error."""
    size = _size_of_hdf5(path)
    codec(layout.compression)
    try:
        # No lock: a published shard never changes, and a read-only or network folder may have none to give.
        with h5py.File(path, "r", locking=False) as file:
            yield file, _require_structure(path, file, layout, size)
    except (ShardError, IndexError):
        raise
    except (OSError, RuntimeError, ValueError, TypeError, KeyError) as error:
        if getattr(error, "errno", None) is not None:
            raise  # the system's trouble, not the shard's
        raise ShardError(f"{path}: cannot be read as HDF5: {str(error)[:200]}") from error


def _size_of_hdf5(path: Path) -> int:
    """Return the size of a file that begins as HDF5 does. Raises ShardError, PermissionError."""
    try:
        require_file(path)
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            head = file.read(len(_SIGNATURE))
    except (FileNotFoundError, IsADirectoryError) as error:
        raise ShardError(f"{path}: is missing") from error
    except NotAFileError as error:
        raise ShardError(str(error)) from None
    if size == 0:
        raise ShardError(f"{path}: is empty (0 bytes)")
    if head != _SIGNATURE:
        raise ShardError(f"{path}: is not an HDF5 file")
    return size


def _require_structure(path: Path, file: h5py.File, layout: Layout, size: int) -> int:
    """Check links, then storage and shapes, then chunks; return the number of rows. Reads no data."""
    specs = _specs(layout)
    _require_links(path, file, specs)
    _require_description(path, file, layout)
    shapes = {name: _require_dataset(path, file, name, spec, size) for name, spec in specs.items()}
    rows = shapes["move"][0]
    for name, shape in shapes.items():
        expected = (shapes["policy_moves"][0] if name in POLICY[:2] else rows + (name == "policy_offsets"),)
        if shape[:1] != expected:
            raise ShardError(f"{path}: shapes differ: {name} has {shape[0]} entries, not {expected[0]}")
    for name, shape in shapes.items():
        _require_chunks(path, file, name, shape, size)
    return int(rows)


def _require_links(path: Path, file: h5py.File, specs: Mapping[str, _Spec]) -> None:
    """Refuse whatever is not a hard link under an expected name: nothing is opened through the others."""
    links = file.id.links
    for name in specs:
        if not links.exists(name.encode()):
            raise ShardError(f"{path}: has no column {name}")
        kind = links.get_info(name.encode()).type
        if kind != h5py.h5l.TYPE_HARD:
            raise ShardError(f"{path}: column {name} is {_LINKS.get(kind, 'an unknown link')}, refused")
    if file.id.get_num_objs() != len(specs):
        extra = next(name for name in file.id if name.decode(errors="replace") not in specs)
        kind = _LINKS.get(links.get_info(extra).type, "an entry")
        raise ShardError(f"{path}: has {kind} {extra[:80].decode(errors='replace')!r} that no shard has, refused")


def _require_description(path: Path, file: h5py.File, layout: Layout) -> None:
    name = _ATTRIBUTE.encode()
    if not h5py.h5a.exists(file.id, name):
        raise ShardError(f"{path}: does not say which scheme it was written with (no attribute {_ATTRIBUTE!r})")
    attribute = h5py.h5a.open(file.id, name)
    kind, shape = attribute.get_type(), attribute.get_space().get_simple_extent_type()
    plain = isinstance(kind, h5py.h5t.TypeStringID) and not kind.is_variable_str() and shape == h5py.h5s.SCALAR
    if not plain or kind.get_size() > _MAX_DESCRIPTION:
        raise ShardError(f"{path}: attribute {_ATTRIBUTE!r} is not a short string")
    text = np.empty((), dtype=f"S{kind.get_size()}")
    attribute.read(text)
    if text.item() != layout.description.encode():
        raise ShardError(f"{path}: was written with another scheme, frame or version")


def _require_dataset(path: Path, file: h5py.File, name: str, spec: _Spec, size: int) -> tuple[int, ...]:
    """Check where and how a column is stored, then its type; return its shape."""
    dataset = h5py.h5o.open(file.id, name.encode())
    if not isinstance(dataset, h5py.h5d.DatasetID):
        raise ShardError(f"{path}: column {name} is not a dataset")
    properties = dataset.get_create_plist()
    # Before its shape: asking a virtual dataset for that may open the files it is made of.
    if properties.get_layout() == h5py.h5d.VIRTUAL:
        raise ShardError(f"{path}: column {name} is virtual (its data lies in other files), refused")
    if properties.get_external_count():
        raise ShardError(f"{path}: column {name} has external storage (its data lies in another file), refused")
    if properties.get_layout() != h5py.h5d.CHUNKED:
        raise ShardError(f"{path}: column {name} is not chunked")
    for number in range(properties.get_nfilters()):
        if (code := properties.get_filter(number)[0]) not in _FILTERS or number > 2:
            raise ShardError(f"{path}: column {name} has filter {code}, which no shard has, refused")
    if dataset.dtype != spec.dtype:
        raise ShardError(f"{path}: column {name} is {str(dataset.dtype)[:80]}, not {spec.dtype}")
    shape, chunk = dataset.shape, properties.get_chunk()
    if len(shape) != 1 + len(spec.inner) or shape[1:] != spec.inner:
        raise ShardError(f"{path}: column {name} has shape {list(shape)}, not {['rows', *spec.inner]}")
    if chunk[0] > BLOCK_ROWS or chunk[1:] != spec.inner:
        raise ShardError(f"{path}: column {name} has chunks of {list(chunk)}")
    if -(-shape[0] // chunk[0]) * _INDEX_ENTRY > size:
        raise ShardError(f"{path}: column {name} declares {shape[0]} entries, more than {size} bytes can hold")
    return tuple(int(side) for side in shape)


def _require_chunks(path: Path, file: h5py.File, name: str, shape: tuple[int, ...], size: int) -> None:
    """Check that every chunk is there, in the file and of a believable size: none is left to fill values."""
    dataset = h5py.h5o.open(file.id, name.encode())
    chunk = dataset.get_create_plist().get_chunk()
    largest = int(np.prod(chunk)) * dataset.dtype.itemsize + _CHUNK_SLACK
    expected = -(-shape[0] // chunk[0])
    seen: set[int] = set()
    total = 0

    def look(info: Any) -> bool | None:
        nonlocal total
        total += info.size
        inside = info.byte_offset is not None and info.byte_offset + info.size <= size and total <= size
        if not inside or info.size > largest or info.chunk_offset[0] >= shape[0]:
            return True  # stops the walk: the chunk is not counted
        seen.add(info.chunk_offset[0])
        return None

    dataset.chunk_iter(look)
    if len(seen) != expected:
        raise ShardError(f"{path}: column {name} has {len(seen)} sound chunks of {expected} for {shape[0]} entries")
