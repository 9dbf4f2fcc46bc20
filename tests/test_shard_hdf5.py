"""HDF5 shards that lie: each is refused with its reason, before anything is read or allocated for it."""

import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from shard_rows import make_layout, make_rows

from pipeline import shard
from pipeline.columns import ShardError

ROWS = 64
PLAIN = make_layout("hdf5")
POLICIES = make_layout("hdf5", aggregate=True)
DENSE = make_layout("hdf5", packed=False, frame=(5, 9))
SECRET = b"SECRET" * 100


def refused(path: Path, layout: shard.Layout = PLAIN) -> str:
    """Return why a shard is refused: by ``check``, by ``read`` and by ``read_rows`` alike."""
    reasons = set()
    with pytest.raises(ShardError) as caught:
        shard.check(path, layout)
    reasons.add(str(caught.value))
    with pytest.raises(ShardError) as caught:
        list(shard.read(path, layout))
    reasons.add(str(caught.value))
    with pytest.raises(ShardError) as caught:
        shard.read_rows(path, layout, 0, ROWS)
    reasons.add(str(caught.value))
    assert len(reasons) == 1
    (reason,) = reasons
    assert reason.startswith(f"{path}: ")
    assert "SECRET" not in reason
    return reason.removeprefix(f"{path}: ")


def tampered(folder: Path, change: Callable[[h5py.File], Any], layout: shard.Layout = PLAIN) -> Path:
    """Write a good shard, and beside it the targets of links; then change it."""
    path = folder / "a.h5"
    (folder / "secret.bin").write_bytes(SECRET)
    shard.write(folder / "other.h5", [make_rows(ROWS, layout, seed=9)], layout)
    shard.write(path, [make_rows(ROWS, layout)], layout)
    shard.check(path, layout, ROWS)
    with h5py.File(path, "r+") as file:
        change(file)
    return path


def external_storage(file: h5py.File) -> None:
    del file["move"]
    file.create_dataset("move", (ROWS,), "int16", external=[("secret.bin", 0, 2 * ROWS)])


def external_link(file: h5py.File) -> None:
    del file["move"]
    file["move"] = h5py.ExternalLink("other.h5", "/move")


def external_group(file: h5py.File) -> None:
    file["data"] = h5py.ExternalLink("other.h5", "/")


def virtual(file: h5py.File) -> None:
    layout = h5py.VirtualLayout(shape=(ROWS,), dtype="int16")
    layout[:] = h5py.VirtualSource("other.h5", "move", shape=(ROWS,))
    del file["move"]
    file.create_virtual_dataset("move", layout)


def virtual_without_end(file: h5py.File) -> None:
    layout = h5py.VirtualLayout(shape=(ROWS,), dtype="int16", maxshape=(None,))
    source = h5py.VirtualSource("other.h5", "move", shape=(ROWS,), maxshape=(None,))
    layout[0 : h5py.h5s.UNLIMITED] = source[0 : h5py.h5s.UNLIMITED]
    del file["move"]
    file.create_virtual_dataset("move", layout)


def soft_link(file: h5py.File) -> None:
    file.move("move", "kept")
    file["move"] = h5py.SoftLink("/kept")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (external_storage, "column move has external storage"),
        (external_link, "column move is an external link"),
        (external_group, "has an external link 'data'"),
        (virtual, "column move is virtual"),
        (virtual_without_end, "column move is virtual"),
        (soft_link, "column move is a soft link"),
        (lambda file: file.__setitem__("extra", h5py.SoftLink("/nowhere")), "has a soft link 'extra'"),
        (lambda file: file.create_group("data"), "has an entry 'data'"),
    ],
)
def test_data_that_lie_elsewhere(tmp_path: Path, change: Callable[[h5py.File], None], reason: str) -> None:
    """Case 063, and what is like it; with and without the targets in place."""
    path = tampered(tmp_path, change)
    assert refused(path).startswith(reason)
    (tmp_path / "other.h5").unlink()
    (tmp_path / "secret.bin").unlink()
    assert refused(path).startswith(reason)


def replaced(name: str, **facts: Any) -> Callable[[h5py.File], None]:
    """Return a change: a column is made anew by ``create_dataset``."""

    def change(file: h5py.File) -> None:
        old = {"shape": file[name].shape, "dtype": file[name].dtype, "chunks": file[name].chunks}
        del file[name]
        file.create_dataset(name, **{**old, **facts})

    return change


@pytest.mark.parametrize(
    ("name", "facts", "reason"),
    [
        ("planes", {"shape": (2**40, 3, 46)}, "column planes declares 1099511627776 entries, more than"),
        ("planes", {"shape": (500, 3, 46)}, "shapes differ: planes has 500 entries, not 64"),
        ("move", {}, "column move has 0 sound chunks of 1"),
        ("move", {"chunks": (2**30,), "maxshape": (None,)}, "column move has chunks of [1073741824]"),
        ("planes", {"chunks": (1, 3, 1)}, "column planes has chunks of [1, 3, 1]"),
        ("move", {"chunks": None}, "column move is not chunked"),
        ("move", {"dtype": ">i2"}, "column move is >i2, not int16"),
        ("move", {"dtype": "int64"}, "column move is int64, not int16"),
        ("move", {"dtype": h5py.ref_dtype}, "column move is object, not int16"),
        ("move", {"dtype": h5py.string_dtype()}, "column move is object, not int16"),
        ("move", {"shape": (ROWS, 1), "chunks": (ROWS, 1)}, "column move has shape [64, 1], not ['rows']"),
        ("planes", {"shape": (ROWS, 3, 45), "chunks": (ROWS, 3, 45)}, "column planes has shape [64, 3, 45]"),
        ("move", {"compression": "lzf"}, "column move has filter 32000"),
        ("move", {"scaleoffset": 3}, "column move has filter 6"),
    ],
)
def test_columns_that_are_not_as_they_must_be(tmp_path: Path, name: str, facts: dict[str, Any], reason: str) -> None:
    path = tampered(tmp_path, replaced(name, **facts))
    tracemalloc.start()
    assert refused(path).startswith(reason)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * 2**20


@pytest.mark.parametrize(("rows", "reason"), [(2**40, "more than"), (900, "column planes has 0 sound chunks of 15")])
def test_rows_that_all_columns_declare_and_none_stores(tmp_path: Path, rows: int, reason: str) -> None:
    def change(file: h5py.File) -> None:
        for name in PLAIN.names:
            replaced(name, shape=(rows, *file[name].shape[1:]))(file)

    assert reason in refused(tampered(tmp_path, change))


def test_the_last_chunk_is_missing(tmp_path: Path) -> None:
    def change(file: h5py.File) -> None:
        replaced("move", chunks=(16,))(file)
        file["move"][:48] = 1

    assert refused(tampered(tmp_path, change)) == "column move has 3 sound chunks of 4 for 64 entries"


def test_a_chunk_that_swells(tmp_path: Path) -> None:
    """A chunk for 128 bytes that would unpack to 64 MiB is not given to the library that unpacks it."""

    def change(file: h5py.File) -> None:
        replaced("move", compression="gzip")(file)
        file["move"].id.write_direct_chunk((0,), zlib.compress(bytes(64 * 2**20), 9))

    assert refused(tampered(tmp_path, change)) == "column move has 0 sound chunks of 1 for 64 entries"


def test_a_chunk_that_is_not_what_its_filter_makes(tmp_path: Path) -> None:
    def change(file: h5py.File) -> None:
        file["move"].id.write_direct_chunk((0,), b"\x00" * 90)

    assert refused(tampered(tmp_path, change)).startswith("cannot be read as HDF5: ")


def test_a_missing_column(tmp_path: Path) -> None:
    assert refused(tampered(tmp_path, lambda file: file.__delitem__("komi"))) == "has no column komi"


def test_a_group_or_a_type_in_place_of_a_column(tmp_path: Path) -> None:
    def group(file: h5py.File) -> None:
        del file["move"]
        file.create_group("move")

    def named_type(file: h5py.File) -> None:
        del file["move"]
        file["move"] = np.dtype("int16")

    for change in (group, named_type):
        assert refused(tampered(tmp_path, change)) == "column move is not a dataset"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "does not say which scheme"),
        (np.bytes_(b"{}"), "was written with another scheme"),
        (PLAIN.description, "attribute 'goplanes' is not a short string"),  # a string of variable length
        (np.bytes_([PLAIN.description.encode()]), "attribute 'goplanes' is not a short string"),
        (7, "attribute 'goplanes' is not a short string"),
    ],
)
def test_the_description(tmp_path: Path, value: Any, reason: str) -> None:
    def change(file: h5py.File) -> None:
        del file.attrs["goplanes"]
        if value is not None:
            file.attrs["goplanes"] = value

    assert refused(tampered(tmp_path, change)).startswith(reason)


@pytest.mark.parametrize(("row", "offset"), [(3, -1), (3, 10**9), (3, 0), (0, 1), (64, 10**15), (64, 63)])
def test_policy_offsets_that_do_not_fit(tmp_path: Path, row: int, offset: int) -> None:
    def change(file: h5py.File) -> None:
        file["policy_offsets"][row] = offset

    path = tampered(tmp_path, change, POLICIES)
    assert refused(path, POLICIES).endswith(": policy_offsets do not fit the policy")


def test_policies_of_different_lengths(tmp_path: Path) -> None:
    path = tampered(tmp_path, lambda file: file["policy_counts"].resize(65, axis=0), POLICIES)
    assert refused(path, POLICIES).startswith("shapes differ: policy_counts has 65 entries")


def test_dense_planes_hold_bits(tmp_path: Path) -> None:
    def change(file: h5py.File) -> None:
        file["planes"][37, 1, 2, 3] = 2

    assert refused(tampered(tmp_path, change, DENSE), DENSE) == "row 37: planes hold more than 0 and 1"


def test_values_are_checked(tmp_path: Path) -> None:
    def change(file: h5py.File) -> None:
        file["planes"][37, 1, 45] |= 1

    path = tampered(tmp_path, change)
    with pytest.raises(ShardError, match=r"a\.h5: row 37: planes have padding bits set"):
        shard.check(path, PLAIN)


def test_the_number_of_rows(tmp_path: Path) -> None:
    path = tampered(tmp_path, lambda file: None)
    with pytest.raises(ShardError, match="has 64 rows, not 63"):
        shard.check(path, PLAIN, 63)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "is empty (0 bytes)"),
        (b"PAR1 and so on PAR1", "is not an HDF5 file"),
        (b"\x89HDF\r\n\x1a\n", "cannot be read as HDF5"),
        (b"\x89HDF\r\n\x1a\n" + bytes(5000), "cannot be read as HDF5"),
    ],
)
def test_what_is_no_hdf5(tmp_path: Path, data: bytes, reason: str) -> None:
    (tmp_path / "a.h5").write_bytes(data)
    assert refused(tmp_path / "a.h5").startswith(reason)


def test_missing_and_cut_at_every_tenth(tmp_path: Path) -> None:
    assert refused(tmp_path / "a.h5") == "is missing"
    path = tampered(tmp_path, lambda file: None)
    whole = path.read_bytes()
    for tenth in range(1, 10):
        path.write_bytes(whole[: len(whole) * tenth // 10])
        assert "truncated" in refused(path)
