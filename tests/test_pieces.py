"""Files of pieces: what is written is what is read, and nothing damaged is ever read."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pipeline.pieces import (
    DamagedWork,
    Piece,
    bucket_of,
    discard,
    read_records,
    read_table,
    read_tables,
    routed,
    whole_table,
    write_pieces,
)

RECORD = np.dtype([("key", "<u8"), ("ply", "<u2"), ("old", "?")])
RECORDS = np.array([(2**64 - 1, 7, True), (0, 2**16 - 1, False)], dtype=RECORD)
TABLE = pa.table(
    {
        "text": pa.array(["", None, "é\0囲碁"]),
        "moves": pa.array([[1, 2], [], None], pa.list_(pa.uint16())),
        "raw": pa.array([[("KM", "6.5")], [], [("RE", "")]], pa.map_(pa.string(), pa.string())),
    }
)
PIECES: list[Piece] = [None, RECORDS, TABLE, RECORDS[:0], TABLE.slice(0, 0), TABLE.slice(1)]


def contents(path: Path) -> list[Any]:
    """Return all pieces of a file that holds ``PIECES``."""
    tables = [read_table(path, number) for number in (0, 2, 4, 5)]
    arrays = [read_records([str(path)], number, RECORD)[0] for number in (1, 3)]
    return [table if table is None else (table.schema, table.to_pylist()) for table in tables] + [
        array.tolist() for array in arrays
    ]


EXPECTED = [
    None,
    *((table.schema, table.to_pylist()) for table in (TABLE, TABLE.slice(0, 0), TABLE.slice(1))),
    RECORDS.tolist(),
    [],
]


@pytest.mark.parametrize("compression", [None, "zstd"])
def test_what_is_written_is_read(tmp_path: Path, compression: str | None) -> None:
    """Tables with their schema, arrays with their records, nothing; the same bytes each time, from any iterable."""
    path = tmp_path / "pieces"
    write_pieces(path, PIECES, compression)
    assert contents(path) == EXPECTED
    data = path.read_bytes()
    write_pieces(path, (piece for piece in PIECES), compression)
    assert path.read_bytes() == data
    assert whole_table(path, 2).equals(TABLE)
    assert [table.num_rows for table in read_tables([str(path)] * 2, 5)] == [2, 2]
    assert read_tables([str(path)] * 2, 0) == []


def test_no_pieces_at_all(tmp_path: Path) -> None:
    write_pieces(tmp_path / "pieces", [])
    with pytest.raises(DamagedWork):
        read_table(tmp_path / "pieces", 0)


def test_pieces_are_taken_one_at_a_time(tmp_path: Path) -> None:
    """No piece is made before the one before it was written; a piece that fails leaves the old file and no other."""
    path = tmp_path / "pieces"
    write_pieces(path, PIECES)
    before = path.read_bytes()

    def failing() -> Iterator[Piece]:
        big = np.zeros(10**6, dtype=np.uint8)
        for number in range(3):
            (temporary,) = (other for other in tmp_path.iterdir() if other != path)
            assert temporary.stat().st_size >= (number - 1) * len(big)
            yield big
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_pieces(path, failing())
    assert {other.name: other.read_bytes() for other in tmp_path.iterdir()} == {"pieces": before}


def damaged(path: Path, data: bytes, read: Callable[[Path], Any]) -> bool:
    """Write a file anew and return whether reading refuses it, by an error that names it, and removes it."""
    path.write_bytes(data)
    error = None
    try:
        read(path)
    except DamagedWork as caught:
        error = caught
    assert path.exists() == (error is None)
    assert error is None or str(error).startswith(f"{path}: damaged")
    return error is not None


@pytest.mark.parametrize("flip", [0x01, 0x80, 0xFF])
def test_any_flipped_byte_is_found(tmp_path: Path, flip: int) -> None:
    """But for the place of a piece without any bytes, which is of no account: then everything is read as it was."""
    path = tmp_path / "pieces"
    write_pieces(path, PIECES)
    whole = path.read_bytes()
    unseen = []
    for place in range(len(whole)):
        data = bytearray(whole)
        data[place] ^= flip
        if not damaged(path, bytes(data), contents):
            assert contents(path) == EXPECTED
            unseen.append(place)
    entries = len(whole) - 16 - 24 * len(PIECES)  # start, length and checksum of each; their number and a word
    assert {(place - entries) // 24 for place in unseen} <= {0, 3}
    assert all((place - entries) % 24 < 8 for place in unseen)


def test_a_file_that_is_cut_short_or_longer_is_found(tmp_path: Path) -> None:
    path = tmp_path / "pieces"
    write_pieces(path, PIECES)
    whole = path.read_bytes()
    for length in range(len(whole)):
        assert damaged(path, whole[:length], contents), length
        assert damaged(path, whole[len(whole) - length :], contents), length
    for more in (b"\0", b"x" * 16, whole[-16:], whole[-40:]):
        assert damaged(path, whole + more, contents), more


@pytest.mark.parametrize("read", [lambda path: read_table(path, 2), lambda path: read_records([path], 1, RECORD)])
def test_a_piece_in_place_of_another_is_found(tmp_path: Path, read: Callable[[Path], Any]) -> None:
    """The checksum covers the number: no piece passes for its neighbour."""
    path = tmp_path / "pieces"
    write_pieces(path, PIECES)
    whole = path.read_bytes()
    entries = len(whole) - 16 - 24 * len(PIECES)
    table = [whole[entries + 24 * number :][:24] for number in range(len(PIECES))]
    assert damaged(path, whole[:entries] + b"".join([table[0], *table[2:0:-1], *table[3:]]) + whole[-16:], read)
    assert damaged(path, whole[:entries] + b"".join([*table[1:], table[0]]) + whole[-16:], read)


def test_nothing_is_allocated_for_a_length_that_is_not_there(tmp_path: Path) -> None:
    """Lengths, places and numbers of pieces of any size are refused before anything is read."""
    path = tmp_path / "pieces"
    write_pieces(path, [RECORDS])
    whole = path.read_bytes()
    entry = len(whole) - 16 - 24
    huge = [size.to_bytes(8, "little") for size in (len(whole), 2**31, 2**40, 2**63 - 1, 2**63, 2**64 - 1)]
    for size in huge:
        for place in (entry, entry + 8, len(whole) - 16):
            data = whole[:place] + size + whole[place + 8 :]
            assert damaged(path, data, lambda path: read_records([str(path)], 0, RECORD))
        # A place and a length that together are right again, modulo 2**64.
        start = (2**64 - int.from_bytes(size, "little")) % 2**64
        data = whole[:entry] + start.to_bytes(8, "little") + size + whole[entry + 16 :]
        assert damaged(path, data, lambda path: read_records([str(path)], 0, RECORD))


def test_pieces_that_are_not_there(tmp_path: Path) -> None:
    """A number beyond the last, and a table that should be there and is nothing."""
    path = tmp_path / "pieces"
    write_pieces(path, PIECES)
    data = path.read_bytes()
    assert damaged(path, data, lambda path: read_table(path, len(PIECES)))
    assert damaged(path, data, lambda path: read_table(path, 10**15))
    assert damaged(path, data, lambda path: whole_table(path, 0))
    assert damaged(path, b"", lambda path: read_table(path, 0))


def test_a_file_that_is_missing_is_no_damage(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_table(tmp_path / "pieces", 0)
    assert isinstance(discard(tmp_path / "pieces"), DamagedWork)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read anything")
def test_a_file_that_cannot_be_read_is_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "pieces"
    write_pieces(path, PIECES)
    path.chmod(0)
    with pytest.raises(PermissionError):
        read_table(path, 0)
    assert path.exists()


def test_values_are_routed_in_their_order() -> None:
    rng = Random("routed")
    for count in (1, 2, 7):
        for length in (0, 1, 50):
            goals = [rng.randrange(count) for _ in range(length)]
            pieces = routed(np.arange(length), np.array(goals, dtype=np.int64), count)
            expected = [[number for number in range(length) if goals[number] == goal] for goal in range(count)]
            assert [piece.tolist() for piece in pieces] == expected


@pytest.mark.parametrize("count", [1, 2, 3, 1000])
def test_buckets_are_of_nearly_one_size(count: int) -> None:
    """Words go to buckets in their order, the last word to the last bucket."""
    words = np.random.default_rng(3).integers(0, 2**64, 100 * count, dtype=np.uint64)
    words[:2] = 0, 2**64 - 1
    buckets = bucket_of(np.sort(words), count)
    assert (buckets[0], buckets[-1]) == (0, count - 1)
    assert (np.diff(buckets) >= 0).all()
    sizes = np.bincount(buckets, minlength=count)
    # Six standard deviations of what a bucket holds.
    assert abs(sizes - 100).max() <= 60
    assert bucket_of(words[:0], count).tolist() == []
