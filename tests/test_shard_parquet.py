"""Parquet shards that lie: each is refused with its reason, and none makes memory jump."""

import io
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shard_rows import make_layout, make_rows

from pipeline import shard
from pipeline.columns import BLOCK_ROWS, Layout, ShardError
from pipeline.parquet_format import ChunkFacts, FormatError, read_footer, require_pages

ROWS = 64
PLAIN = make_layout()
POLICIES = make_layout(aggregate=True, global_names=("a", "b"))


def refused(path: Path, layout: Layout = PLAIN) -> str:
    """Return why a shard is refused: by ``check`` and by ``read`` alike."""
    with pytest.raises(ShardError) as caught:
        shard.check(path, layout)
    reason = str(caught.value)
    assert reason.startswith(f"{path}: ")
    with pytest.raises(ShardError) as caught:
        list(shard.read(path, layout))
    assert str(caught.value) == reason
    return reason.removeprefix(f"{path}: ")


def good(folder: Path, layout: Layout = PLAIN, rows: int = ROWS) -> pa.Table:
    shard.write(folder / "a.parquet", [make_rows(rows, layout)], layout)
    return pq.read_table(folder / "a.parquet")


def put(folder: Path, table: pa.Table, layout: Layout = PLAIN, **facts: Any) -> Path:
    """Write a table as a shard is written, but for ``facts``."""
    facts = {"store_schema": False, "use_dictionary": False, "row_group_size": BLOCK_ROWS} | facts
    description = facts.pop("description", layout.description)
    row_group_size = facts.pop("row_group_size")
    with pq.ParquetWriter(folder / "a.parquet", table.schema, **facts) as writer:
        writer.write_table(table, row_group_size=row_group_size)
        if description is not None:
            writer.add_key_value_metadata({"goplanes": description})
    return folder / "a.parquet"


def with_column(table: pa.Table, name: str, values: pa.Array, nullable: bool = False) -> pa.Table:
    index = table.schema.get_field_index(name)
    return table.set_column(index, pa.field(name, values.type, nullable=nullable), values)


def test_the_same_table_written_by_hand_is_accepted(tmp_path: Path) -> None:
    assert shard.check(put(tmp_path, good(tmp_path)), PLAIN, ROWS) == ROWS
    assert shard.check(put(tmp_path, good(tmp_path, POLICIES), POLICIES), POLICIES, ROWS) == ROWS


def test_columns_missing_extra_and_out_of_order(tmp_path: Path) -> None:
    table = good(tmp_path)
    assert refused(put(tmp_path, table.drop_columns(["komi"]))) == "has no column komi"
    assert refused(put(tmp_path, table.append_column("extra", table["move"]))) == "has an unexpected column 'extra'"
    turned = table.select(table.column_names[::-1])
    assert refused(put(tmp_path, turned)).startswith("has its columns in another order: key, ply, game")


def test_types_and_nulls(tmp_path: Path) -> None:
    table = good(tmp_path)
    moves = table["move"].combine_chunks()
    wide = with_column(table, "move", moves.cast(pa.int64()))
    assert refused(put(tmp_path, wide)) == "column move is int64, not int16"
    holes = pa.array([None, *moves.to_pylist()[1:]], pa.int16())
    assert refused(put(tmp_path, with_column(table, "move", holes, True))) == (
        "column move may hold nulls and must not"
    )
    lists = pa.array([[1]] * ROWS, pa.list_(pa.uint8()))
    assert refused(put(tmp_path, with_column(table, "planes", lists))).startswith("column planes is list<")
    full = good(tmp_path, POLICIES)
    with_null = pa.array([[None, 1.0]] * ROWS, pa.list_(pa.float32()))
    path = put(tmp_path, with_column(full, "globals", with_null), POLICIES)
    assert refused(path, POLICIES).startswith("column globals is list<")


def test_planes_of_another_length_are_named_with_their_row(tmp_path: Path) -> None:
    table = good(tmp_path, rows=BLOCK_ROWS + 10)
    planes = table["planes"].to_pylist()
    planes[BLOCK_ROWS + 3] = planes[BLOCK_ROWS + 3][:-1]
    path = put(tmp_path, with_column(table, "planes", pa.array(planes, pa.binary())))
    assert refused(path) == f"row {BLOCK_ROWS + 3}: planes has 137 bytes, not 138"
    assert len(shard.read_rows(path, PLAIN, 0, BLOCK_ROWS)["move"]) == BLOCK_ROWS


def test_lists_of_another_length_are_named_with_their_row(tmp_path: Path) -> None:
    table = good(tmp_path, POLICIES)
    moves = table["policy_moves"].combine_chunks()
    type_of = {name: table.schema.field(name).type for name in ("globals", "policy_moves")}
    longer = moves.to_pylist()
    longer[7].append(1)
    path = put(tmp_path, with_column(table, "policy_moves", pa.array(longer, type_of["policy_moves"])), POLICIES)
    assert refused(path, POLICIES) == "row 7: policy_moves and policy_counts differ in length"
    numbers = [[0.0, 0.0]] * 5 + [[0.0]] + [[0.0, 0.0]] * (ROWS - 6)
    path = put(tmp_path, with_column(table, "globals", pa.array(numbers, type_of["globals"])), POLICIES)
    assert refused(path, POLICIES) == "row 5: globals has 1 values, not 2"


def test_the_description(tmp_path: Path) -> None:
    table = good(tmp_path)
    assert refused(put(tmp_path, table, description=None)).startswith("does not say which scheme")
    assert refused(put(tmp_path, table, description="{}")).startswith("was written with another scheme")
    other = make_layout(frame=(9, 9))
    assert refused(put(tmp_path, good(tmp_path)), other).startswith("was written with another scheme")


def test_row_groups_of_another_size(tmp_path: Path) -> None:
    assert refused(put(tmp_path, good(tmp_path), row_group_size=10)) == "declares 64 rows in 7 row groups"
    large = good(tmp_path, rows=2 * BLOCK_ROWS)
    assert "row group 0 declares 10000 rows" in refused(put(tmp_path, large, row_group_size=10_000))


def test_a_dictionary_that_swells_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    """8,192 rows that all point to one value of 400,000 bytes: 3 GB once unpacked, 20 KB in the file."""
    table = good(tmp_path, rows=BLOCK_ROWS)
    planes = pa.DictionaryArray.from_arrays(np.zeros(BLOCK_ROWS, np.int32), pa.array([bytes(400_000)], pa.binary()))
    path = put(tmp_path, with_column(table, "planes", planes), use_dictionary=["planes"], compression="zstd")
    assert path.stat().st_size < 500_000
    before = pa.total_allocated_bytes()
    tracemalloc.start()
    assert refused(path) == "column planes has a page of type 2"
    assert tracemalloc.get_traced_memory()[1] < 4 * 2**20
    tracemalloc.stop()
    assert pa.total_allocated_bytes() - before < 4 * 2**20


def test_a_value_that_swells_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    table = good(tmp_path)
    planes = pa.array([bytes(2**24)] + [b""] * (ROWS - 1), pa.binary())
    path = put(tmp_path, with_column(table, "planes", planes), compression="zstd")
    assert path.stat().st_size < 50_000
    assert refused(path).startswith("column planes of row group 0 declares 167")


def test_values_are_checked(tmp_path: Path) -> None:
    rows = make_rows(BLOCK_ROWS + 10, PLAIN)
    rows["to_play"][BLOCK_ROWS + 4] = 3
    shard.write(tmp_path / "a.parquet", [rows], PLAIN)
    with pytest.raises(ShardError, match=rf"a\.parquet: row {BLOCK_ROWS + 4}: to_play is not 1 or 2"):
        shard.check(tmp_path / "a.parquet", PLAIN)
    with pytest.raises(ShardError, match="has 8202 rows, not 8203"):
        shard.check(tmp_path / "a.parquet", PLAIN, 8203)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "is empty (0 bytes)"),
        (b"\x89HDF\r\n\x1a\n" + bytes(100), "is not a Parquet file"),
        (b"PAR1", "is truncated"),
        (b"PAR1\x00\x00\x00\x00PARE", "is truncated"),
        (b"PAR1\xff\xff\xff\x7fPAR1", "is truncated"),
        (b"PAR1" + b"\xff" * 40 + b"\x28\x00\x00\x00PAR1", "has a field of type 15"),
        (b"PAR1\x00\x00\x00\x00PAR1", "has a damaged footer"),
        (b"PAR1" + bytes(9 * 2**20) + b"\x00\x00\x90\x00PAR1", "has a footer of 9437184 bytes"),
    ],
)
def test_what_is_no_parquet(tmp_path: Path, data: bytes, reason: str) -> None:
    (tmp_path / "a.parquet").write_bytes(data)
    assert refused(tmp_path / "a.parquet").startswith(reason)


def test_missing_and_cut_at_every_tenth(tmp_path: Path) -> None:
    assert refused(tmp_path / "a.parquet") == "is missing"
    good(tmp_path)
    path = tmp_path / "a.parquet"
    whole = path.read_bytes()
    for tenth in range(1, 10):
        path.write_bytes(whole[: len(whole) * tenth // 10])
        assert refused(path).startswith("is truncated")


def test_changed_bytes_never_give_another_error(tmp_path: Path) -> None:
    """A shard with one byte changed, at 300 places, is read or refused, whatever the library makes of it."""
    rng = np.random.default_rng(3)
    shard.write(tmp_path / "a.parquet", [make_rows(ROWS, POLICIES)], POLICIES)
    path = tmp_path / "a.parquet"
    whole = path.read_bytes()
    reasons = []
    for place in rng.integers(4, len(whole) - 8, 300):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ int(rng.integers(1, 256))]) + whole[place + 1 :])
        try:
            shard.check(path, POLICIES, ROWS)
        except ShardError as error:
            reasons.append(str(error))
    assert len(reasons) > 100
    assert all(reason.startswith(f"{path}: ") for reason in reasons)


def test_a_footer_is_read_as_the_library_reads_it(tmp_path: Path) -> None:
    good(tmp_path, POLICIES, BLOCK_ROWS + 10)
    path = tmp_path / "a.parquet"
    rows, groups = read_footer(footer_of(path))
    theirs = pq.read_metadata(path)
    assert (rows, len(groups)) == (theirs.num_rows, theirs.num_row_groups)
    for number, group in enumerate(groups):
        assert group.rows == theirs.row_group(number).num_rows
        for index, chunk in enumerate(group.chunks):
            other = theirs.row_group(number).column(index)
            assert chunk.name == other.path_in_schema
            assert (chunk.values, chunk.unpacked) == (other.num_values, other.total_uncompressed_size)
            assert chunk.stop - chunk.start == other.total_compressed_size
            first = other.dictionary_page_offset if other.has_dictionary_page else other.data_page_offset
            assert (chunk.start, chunk.elsewhere) == (first, False)


def footer_of(path: Path) -> bytes:
    data = path.read_bytes()
    return data[-8 - int.from_bytes(data[-8:-4], "little") : -8]


def chunk_footer(*, before: bytes = b"", after: bytes = b"") -> bytes:
    """Return a footer with one row group of one column chunk, named move: 64 values in 128 of bytes 4 to 104."""
    facts = bytes([0x39, 0x18, 4]) + b"move" + bytes([0x26, 0x80, 1, 0x16, 0x80, 2, 0x16, 200, 1, 0x26, 8, 0])
    # The chunk's facts are field 3, whose head says how far it is from the last field.
    chunk = before + bytes([0x2C if before else 0x3C]) + facts + after + b"\0"
    return bytes([0x36, 0x80, 1, 0x19, 0x1C, 0x19, 0x1C]) + chunk + bytes([0x26, 0x80, 1, 0, 0])


def test_a_footer_by_hand() -> None:
    rows, (group,) = read_footer(chunk_footer())
    assert (rows, group.rows) == (64, 64)
    assert group.chunks == (ChunkFacts("move", 4, 104, 64, 128, elsewhere=False),)
    path_to_another_file = bytes([0x18, 5]) + b"x.bin"
    assert read_footer(chunk_footer(before=path_to_another_file))[1][0].chunks[0].elsewhere
    encrypted = bytes([0x5C, 0])
    assert read_footer(chunk_footer(after=encrypted))[1][0].chunks[0].elsewhere


@pytest.mark.parametrize("cut", range(1, 40))
def test_a_footer_that_ends_early(cut: int) -> None:
    with pytest.raises(FormatError):
        read_footer(chunk_footer()[:-cut])


# Headers by hand, in Thrift's compact protocol: field 1 = type, 2 = unpacked, 3 = packed size, 5 = data page.
# A field's head is its distance to the last one in the high half and its type (5: i32, 12: struct) in the low;
# an i32 is a zigzag varint, so 3 is written 6.
def data_page(unpacked: int, packed: bytes, values: int, encoding: int = 0) -> bytes:
    return (
        bytes([0x15, 0, 0x15, 2 * unpacked, 0x15, 2 * len(packed), 0x2C, 0x15, 2 * values, 0x15, 2 * encoding, 0, 0])
        + packed
    )


def walk(data: bytes, values: int, most: int = 1000, plain: bool = True, start: int = 0) -> None:
    require_pages(io.BytesIO(data), ChunkFacts("x", start, len(data), values, 0, elsewhere=False), most, plain)


def test_pages_that_fill_their_chunk() -> None:
    walk(data_page(40, b"12345", 3) + data_page(9, b"", 2), 5)
    walk(b"skipped" + data_page(40, b"12345", 3), 3, start=7)
    walk(data_page(40, b"12345", 3, encoding=8), 3, plain=False)
    dictionary = bytes([0x15, 4, 0x15, 20, 0x15, 4, 0x4C, 0x15, 2, 0x15, 0, 0, 0]) + b"ab"
    walk(dictionary + data_page(40, b"12345", 3, encoding=8), 3, plain=False)
    with pytest.raises(FormatError, match="page of type 2"):
        walk(dictionary + data_page(40, b"12345", 3), 3)


@pytest.mark.parametrize(
    ("data", "values", "message"),
    [
        (data_page(40, b"12345", 3), 4, "has 3 values in its pages, not 4"),
        (data_page(40, b"12345", 3)[:-1], 3, "has pages of"),
        (data_page(60, b"", 1) * 20, 20, "has pages of .* where 1000 is the most"),
        (data_page(40, b"12345", 3, encoding=8), 3, "encoding 8"),
        (b"\x00", 0, "no page header at byte 0"),
        (b"\x15\x00\x15\x01\x15\x00\x00", 0, "has pages of"),
        (b"\x15\x00\x15\x00\x15\x01\x00", 0, "has pages of"),
        (b"\x15\x00\x15\x02\x15\x00\x00", 0, "without a number of values"),
        (b"\x15\x06\x15\x02\x15\x00\x00", 0, "page of type 3"),
        (b"\x15", 0, "no page header"),
        (b"\xff" * 600, 0, "field of type 15"),
        (b"\x15" + b"\xff" * 600, 0, "more than 64 bits"),
        (b"\x1c" * 600, 0, "nests its structs too deep"),
        (b"\x18\xff\xff\xff\xff\x0f", 0, "no page header"),
        (b"\x19\xfc\xff\xff\xff\x7f", 0, "no page header"),
        (b"\x1b\x00\x00", 0, "field of type 11"),
    ],
)
def test_pages_that_do_not(data: bytes, values: int, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        walk(data, values)
