"""One shard, both formats: what is written is read, to the bit; bytes depend on rows alone."""

import hashlib
import importlib.util
import json
import os
import re
import resource
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np
import pyarrow.parquet as pq
import pytest
from shard_rows import make_layout, make_rows

from pipeline import shard
from pipeline.columns import Columns, Layout, ShardError, slice_rows

LAYOUTS = {
    "parquet": make_layout(),
    "parquet-full": make_layout(aggregate=True, global_names=("a", "b"), key_bits=128),
    "parquet-5x9": make_layout(frame=(5, 9)),
    "hdf5": make_layout("hdf5"),
    "hdf5-full": make_layout("hdf5", aggregate=True, global_names=("a", "b"), key_bits=128),
    "hdf5-dense": make_layout("hdf5", packed=False, frame=(5, 9)),
}
SHARED = Path(__file__).parents[2] / "shared"


@pytest.fixture(params=LAYOUTS, name="layout")
def _layout(request: pytest.FixtureRequest) -> Layout:
    return LAYOUTS[request.param]


def name_of(layout: Layout) -> str:
    return "a" + shard.SUFFIXES[layout.format]


def assert_same(found: Columns, expected: Columns) -> None:
    assert list(found) == list(expected)
    for name, values in expected.items():
        assert found[name].dtype == values.dtype, name
        np.testing.assert_array_equal(found[name], values, err_msg=name)


@pytest.mark.parametrize("rows", [0, 1, 255, 8191, 8192, 8193])
def test_what_is_written_is_read(tmp_path: Path, layout: Layout, rows: int) -> None:
    path = tmp_path / name_of(layout)
    batch = make_rows(rows, layout)
    made = shard.write(path, [batch], layout)
    data = path.read_bytes()
    assert made == shard.ShardFile(rows, len(data), hashlib.sha256(data).hexdigest())
    assert shard.check(path, layout, rows) == rows
    found = list(shard.read(path, layout, batch_rows=5000))
    assert [len(piece["move"]) for piece in found] == [5000] * (rows // 5000) + [rows % 5000] * (rows % 5000 > 0)
    for number, piece in enumerate(found):
        assert_same(piece, slice_rows(batch, number * 5000, number * 5000 + 5000))
    assert sum(len(piece["move"]) for piece in shard.read(path, layout, batch_rows=None)) == rows
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_bytes_do_not_depend_on_batches_or_time(tmp_path: Path, layout: Layout) -> None:
    rows = make_rows(9000, layout)
    made = []
    for number, size in enumerate([9000, 1, 4096, 8191]):
        pieces = (slice_rows(rows, start, min(start + size, 9000)) for start in range(0, 9000, size))
        made.append(shard.write(tmp_path / f"{number}{name_of(layout)}", pieces, layout))
        time.sleep(0.4 if number < 3 else 0)  # more than a second in all: the grain of the clock in old file formats
    assert len(set(made)) == 1
    different = shard.write(tmp_path / name_of(layout), [make_rows(9000, layout, seed=1)], layout)
    assert different.sha256 != made[0].sha256


def test_not_a_number_has_one_form(tmp_path: Path, layout: Layout) -> None:
    made = []
    for bits in (0x7FC00000, 0xFFC00000, 0x7FC00001):
        rows = make_rows(20, layout)
        rows["value"][3] = np.uint32(bits).view(np.float32)
        made.append(shard.write(tmp_path / name_of(layout), [rows], layout))
    assert len(set(made)) == 1


def test_rows_from_the_middle(tmp_path: Path, layout: Layout) -> None:
    path = tmp_path / name_of(layout)
    rows = make_rows(8300, layout)
    shard.write(path, [rows], layout)
    for start, stop in [(0, 1), (8191, 8193), (8299, 8300), (100, 8200)]:
        assert_same(shard.read_rows(path, layout, start, stop), slice_rows(rows, start, stop))
    assert list(shard.read_rows(path, layout, 5, 6, ["ply", "move"])) == ["move", "ply"]
    for start, stop in [(8299, 8301), (-1, 1), (5, 5), (9000, 9001)]:
        with pytest.raises(IndexError, match="rows"):
            shard.read_rows(path, layout, start, stop)


def test_some_columns_only(tmp_path: Path, layout: Layout) -> None:
    path = tmp_path / name_of(layout)
    rows = make_rows(50, layout)
    shard.write(path, [rows], layout)
    for name in layout.names:
        (found,) = shard.read(path, layout, [name])
        assert set(found) - {"policy_offsets"} == {name} - {"policy_offsets"}
        assert_same(found, {key: rows[key] for key in found})
    with pytest.raises(ValueError, match="no column 'lable'"):
        next(shard.read(path, layout, ["lable"]))


def test_arrays_that_were_read_can_be_written_to(tmp_path: Path, layout: Layout) -> None:
    path = tmp_path / name_of(layout)
    shard.write(path, [make_rows(50, layout)], layout)
    for batch in shard.read(path, layout, batch_rows=20):
        assert all(values.flags.writeable for values in batch.values())


@pytest.mark.parametrize("file_format", ["parquet", "hdf5"])
def test_bit_order_and_last_bit(tmp_path: Path, file_format: str) -> None:
    """Case 048: points 0, 3, 9 and 360 of 361; high bit first; 46 bytes; the description names the order."""
    layout = make_layout(file_format, planes=("stones",), compression="none")
    rows = make_rows(1, layout)
    expected = bytes.fromhex("9040" + "00" * 43 + "80")
    rows["planes"] = np.frombuffer(expected, np.uint8).reshape(1, 1, 46).copy()
    path = tmp_path / name_of(layout)
    shard.write(path, [rows], layout)
    if file_format == "parquet":
        stored = pq.read_table(path)["planes"][0].as_py()
        description = pq.read_metadata(path).metadata[b"goplanes"]
    else:
        with h5py.File(path) as file:
            stored = file["planes"][0].tobytes()
            description = file.attrs["goplanes"]
    assert stored == expected
    assert json.loads(description)["bit_order"] == "big"
    (batch,) = shard.read(path, layout)
    assert np.flatnonzero(np.unpackbits(batch["planes"][0, 0], count=361)).tolist() == [0, 3, 9, 360]


@pytest.mark.skipif(not (SHARED / "cases").is_dir(), reason="the shared cases are not here")
def test_bit_order_of_the_shared_case() -> None:
    text = (SHARED / "cases/048-bit-order-and-last-bit/expect.md").read_text(encoding="utf-8")
    facts = json.loads(text.split("```json")[1].split("```")[0])
    assert set(facts) == {"indices", "big", "little"}
    plane = np.zeros(361, np.uint8)
    plane[facts["indices"]] = 1
    assert np.packbits(plane).tobytes().hex() == facts["big"]
    assert np.packbits(plane, bitorder="little").tobytes().hex() == facts["little"]


def test_the_parquet_file_is_what_the_contract_says(tmp_path: Path) -> None:
    layout = LAYOUTS["parquet-full"]
    rows = make_rows(9000, layout)
    shard.write(tmp_path / "a.parquet", [rows], layout)
    table = pq.read_table(tmp_path / "a.parquet")
    types = {field.name: re.sub("element: | not null|item: ", "", str(field.type)) for field in table.schema}
    assert types == {
        "planes": "binary", "globals": "list<float>", "move": "int16", "policy_moves": "list<int16>",
        "policy_counts": "list<uint32>", "value": "float", "wins": "uint32", "draws": "uint32", "losses": "uint32",
        "weight": "float", "score": "float", "to_play": "int8", "komi": "float", "rows": "uint8", "cols": "uint8",
        "symmetry": "uint8", "game": "uint64", "ply": "uint16", "key": "uint64", "key_hi": "uint64",
    }  # fmt: skip
    assert table["value"].null_count == int(np.isnan(rows["value"]).sum()) > 0
    assert not np.isnan(table["value"].drop_null().to_numpy()).any()
    footer = pq.read_metadata(tmp_path / "a.parquet")
    assert [footer.row_group(group).num_rows for group in range(footer.num_row_groups)] == [8192, 808]
    assert footer.row_group(0).column(0).compression == "ZSTD"
    assert not footer.row_group(0).column(0).has_dictionary_page


@pytest.mark.parametrize("packed", [True, False])
def test_the_hdf5_file_is_what_the_contract_says(tmp_path: Path, packed: bool) -> None:
    layout = make_layout("hdf5", packed=packed, aggregate=True, global_names=("a", "b"))
    rows = make_rows(300, layout)
    shard.write(tmp_path / "a.h5", [rows], layout)
    with h5py.File(tmp_path / "a.h5") as file:
        assert set(file) == set(layout.names)
        planes = file["planes"]
        assert planes.shape == ((300, 3, 46) if packed else (300, 3, 19, 19))
        assert (planes.compression, planes.compression_opts, planes.dtype) == ("gzip", 1, np.uint8)
        assert planes.chunks[0] == (256 if packed else 32)
        assert file["globals"].shape == (300, 2)
        assert file["policy_offsets"].shape == (301,)
        dense = np.unpackbits(rows["planes"], axis=-1, count=361).reshape(300, 3, 19, 19)
        np.testing.assert_array_equal(planes, rows["planes"] if packed else dense)


@pytest.mark.parametrize("compression", ["gzip", "none"])
@pytest.mark.parametrize("file_format", ["parquet", "hdf5"])
def test_other_compressions(tmp_path: Path, file_format: str, compression: str) -> None:
    layout = make_layout(file_format, compression=compression)
    rows = make_rows(100, layout)
    shard.require_codec(layout)
    shard.write(tmp_path / name_of(layout), [rows], layout)
    assert shard.check(tmp_path / name_of(layout), layout, 100) == 100
    (found,) = shard.read(tmp_path / name_of(layout), layout)
    assert_same(found, rows)


def test_zstd_in_hdf5_works_or_says_what_is_missing(tmp_path: Path) -> None:
    layout = make_layout("hdf5", compression="zstd")
    if importlib.util.find_spec("hdf5plugin") is None:
        with pytest.raises(ShardError, match=r"pip install 'goplanes\[zstd\]'"):
            shard.require_codec(layout)
        with pytest.raises(ShardError, match="hdf5plugin"):
            shard.write(tmp_path / "a.h5", [make_rows(9, layout)], layout)
        assert list(tmp_path.iterdir()) == []
    else:
        rows = make_rows(300, layout)
        shard.write(tmp_path / "a.h5", [rows], layout)
        (found,) = shard.read(tmp_path / "a.h5", make_layout("hdf5"))
        assert_same(found, rows)


def test_an_error_on_the_way_leaves_the_old_shard(tmp_path: Path, layout: Layout) -> None:
    path = tmp_path / name_of(layout)
    shard.write(path, [make_rows(10, layout)], layout)
    before = path.read_bytes()

    def broken() -> Iterator[Columns]:
        yield make_rows(9000, layout)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        shard.write(path, broken(), layout)
    with pytest.raises(ValueError, match="a batch has the columns"):
        shard.write(path, [make_rows(10, layout), {}], layout)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("limit", [1_000, 40_000, 200_000])
def test_a_disk_that_fills_up_is_an_oserror(tmp_path: Path, layout: Layout, limit: int) -> None:
    path = tmp_path / name_of(layout)
    rows = make_rows(20_000, layout)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        with pytest.raises(OSError):  # noqa: PT011 (each library has its own words for it)
            shard.write(path, [rows], layout)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, ignored)
    assert list(tmp_path.iterdir()) == []
    assert shard.write(path, [rows], layout).rows == 20_000
    shard.check(path, layout, 20_000)


@pytest.mark.parametrize("file_format", ["parquet", "hdf5"])
def test_a_pipe_is_no_shard(tmp_path: Path, file_format: str) -> None:
    layout = make_layout(file_format)
    os.mkfifo(tmp_path / "shard")
    with pytest.raises(ShardError, match="shard: is a pipe"):
        list(shard.read(tmp_path / "shard", layout))
    with pytest.raises(ShardError, match="shard: is a pipe"):
        shard.check(tmp_path / "shard", layout)
