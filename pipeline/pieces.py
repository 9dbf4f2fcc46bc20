"""Files between two stages: numbered pieces, each with a checksum, in a file that appears whole.

What one task has for many others goes into one file with a piece for each of them, so that a stage routes any
amount of data without any process holding it. A piece is an Arrow table, an array of records, or
nothing. The file ends with a table of its pieces: where each one begins, how long it is, and its CRC-32.

Nothing that is damaged is ever used: it is removed as it is found, and the task that made it runs again.
"""

import os
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline.files import whole_file

_MAGIC = b"goplane1"
_ENTRY = np.dtype([("start", "<u8"), ("length", "<u8"), ("crc", "<u8")])
_TRAILER = 8 + len(_MAGIC)

Piece: TypeAlias = pa.Table | NDArray[Any] | None


class DamagedWork(RuntimeError):
    """A file of work in progress whose contents changed; it has been removed."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return f"{self.path}: damaged on the disk, so it was removed: the same command makes it again and goes on"


def discard(path: str | Path) -> DamagedWork:
    """Remove a file that is damaged and return the error to raise."""
    Path(path).unlink(missing_ok=True)
    return DamagedWork(str(path))


def write_pieces(path: str | Path, pieces: Iterable[Piece], compression: str | None = None) -> None:
    """Write a file of pieces, whole, taking one at a time; tables with Arrow's ``compression``. Raises OSError."""
    entries = []
    with whole_file(path) as temporary, temporary.open("wb") as file:
        for number, piece in enumerate(pieces):
            data = _bytes_of(piece, compression)
            entries.append((file.tell(), len(data), _checksum(number, data)))
            file.write(data)
        file.write(np.array(entries, dtype=_ENTRY).tobytes() + len(entries).to_bytes(8, "little") + _MAGIC)


def read_table(path: str | Path, number: int) -> pa.Table | None:
    """Return a piece that is a table, or None where it is nothing. Raises DamagedWork, OSError."""
    data = _read(path, number)
    return pa.ipc.open_stream(data).read_all() if len(data) else None


def whole_table(path: str | Path, number: int = 0) -> pa.Table:
    """Return a piece that is a table and has to be there. Raises DamagedWork, OSError."""
    table = read_table(path, number)
    if table is None:
        raise discard(path)
    return table


def read_tables(paths: Sequence[str], number: int) -> list[pa.Table]:
    """Return piece ``number`` of each file that has a table there. Raises DamagedWork, OSError."""
    return [table for path in paths if (table := read_table(path, number)) is not None]


def read_records(paths: Sequence[str], number: int, dtype: np.dtype[Any]) -> list[NDArray[Any]]:
    """Return piece ``number`` of each file, an array of records. Raises DamagedWork, OSError."""
    return [np.frombuffer(_read(path, number), dtype=dtype) for path in paths]


def joined_records(paths: Sequence[str], number: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return piece ``number`` of all files in one array, of any number of files. Raises DamagedWork, OSError."""
    return np.concatenate([np.zeros(0, dtype=dtype), *read_records(paths, number, dtype)])


def routed(values: NDArray[Any], goals: NDArray[Any], count: int) -> list[NDArray[Any]]:
    """Return ``values`` cut by their ``goals`` (0 to ``count`` - 1), in their order: one array a goal."""
    order = np.argsort(goals, kind="stable")
    return np.split(values[order], np.searchsorted(goals[order], np.arange(1, count)))


def bucket_of(words: NDArray[np.uint64], count: int) -> NDArray[np.int64]:
    """Return int64[N]: to which of ``count`` buckets of nearly one size each random word belongs, by its first bits."""
    return (((words >> np.uint64(32)) * np.uint64(count)) >> np.uint64(32)).astype(np.int64)


def _bytes_of(piece: Piece, compression: str | None) -> Any:
    if piece is None:
        return b""
    if isinstance(piece, np.ndarray):
        return piece.tobytes()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, piece.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(piece)
    return memoryview(sink.getvalue())


def _checksum(number: int, data: Any) -> int:
    return zlib.crc32(data, zlib.crc32(number.to_bytes(8, "little")))


def _read(path: str | Path, number: int) -> bytes:
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(max(0, size - _TRAILER))
        trailer = file.read(_TRAILER)
        table = size - _TRAILER - int.from_bytes(trailer[:8], "little") * _ENTRY.itemsize
        place = table + number * _ENTRY.itemsize
        whole = len(trailer) == _TRAILER and trailer[8:] == _MAGIC
        if not whole or not 0 <= table <= place <= size - _TRAILER - _ENTRY.itemsize:
            raise discard(path)
        file.seek(place)
        start, length, crc = np.frombuffer(file.read(_ENTRY.itemsize), dtype=_ENTRY)[0].tolist()
        if start + length > table:
            raise discard(path)
        file.seek(start)
        data = file.read(length)
    if _checksum(number, data) != crc:
        raise discard(path)
    return data
