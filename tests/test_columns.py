"""Batches in memory: cutting and joining them, and what their values may be."""

import json

import numpy as np
import pytest
from shard_rows import make_layout, make_rows

from pipeline.columns import (
    Columns,
    count,
    describe,
    first_fault,
    join,
    rebatch,
    require_shapes,
    slice_rows,
    take_rows,
)

FULL = make_layout(aggregate=True, global_names=("a", "b"), key_bits=128)


def policy_of(batch: Columns, row: int) -> list[tuple[int, int]]:
    start, stop = batch["policy_offsets"][row : row + 2]
    return list(
        zip(batch["policy_moves"][start:stop].tolist(), batch["policy_counts"][start:stop].tolist(), strict=True)
    )


def test_the_columns_are_those_of_the_contract() -> None:
    assert make_layout().names == (
        "planes", "move", "value", "weight", "score", "to_play", "komi", "rows", "cols", "symmetry", "game", "ply",
        "key",
    )  # fmt: skip
    assert FULL.names == (
        "planes", "globals", "move", "policy_moves", "policy_counts", "policy_offsets", "value", "wins", "draws",
        "losses", "weight", "score", "to_play", "komi", "rows", "cols", "symmetry", "game", "ply", "key", "key_hi",
    )  # fmt: skip


def test_bytes_of_planes() -> None:
    assert (FULL.area, FULL.plane_bytes, FULL.row_bytes) == (361, 46, 3 * 46)
    odd = make_layout(frame=(2, 4))
    assert (odd.area, odd.plane_bytes) == (8, 1)


def test_layouts_that_cannot_be() -> None:
    with pytest.raises(ValueError, match=r"packed = false needs"):
        make_layout("parquet", packed=False)
    with pytest.raises(ValueError, match="parquet or hdf5"):
        make_layout("csv")
    with pytest.raises(ValueError, match="64 or 128"):
        make_layout(key_bits=32)
    with pytest.raises(ValueError, match="at least one plane"):
        make_layout(planes=())


def test_choosing_columns() -> None:
    assert FULL.select(None) == FULL.names
    assert FULL.select(["key", "planes"]) == ("planes", "key")
    assert FULL.select(["policy_counts"]) == ("policy_counts", "policy_offsets")
    with pytest.raises(ValueError, match="no column 'policy'"):
        FULL.select(["policy"])


def test_the_description_is_canonical() -> None:
    text = describe("s", 2, {"b": 1, "a": True}, ["x"], ["g"], (5, 9))
    assert text == describe("s", 2, {"a": True, "b": 1}, ("x",), ("g",), (5, 9))
    assert json.loads(text) == {
        "format_version": 1,
        "scheme": "s",
        "version": 2,
        "options": {"a": True, "b": 1},
        "planes": ["x"],
        "globals": ["g"],
        "frame": [5, 9],
        "bit_order": "big",
    }


@pytest.mark.parametrize("size", [1, 7, 50, 99, 100, 101])
def test_rebatching_keeps_every_row_in_order(size: int) -> None:
    whole = make_rows(100, FULL)
    cut = [slice_rows(whole, start, stop) for start, stop in [(0, 1), (1, 1), (1, 40), (40, 41), (41, 100)]]
    batches = list(rebatch(cut, size))
    lengths = [count(batch) for batch in batches]
    assert lengths == [size] * (100 // size) + ([100 % size] if 100 % size else [])
    joined = join(batches)
    assert list(joined) == list(whole)
    for name, values in whole.items():
        np.testing.assert_array_equal(joined[name], values)
        assert joined[name].dtype == values.dtype


def test_a_slice_has_the_policies_of_its_rows() -> None:
    whole = make_rows(20, FULL)
    piece = slice_rows(whole, 7, 12)
    require_shapes(piece, FULL)
    for row in range(5):
        assert policy_of(piece, row) == policy_of(whole, 7 + row)


@pytest.mark.parametrize("numbers", [[3], [5, 0, 5, 19, 18], list(range(20)), []])
def test_rows_taken_in_any_order(numbers: list[int]) -> None:
    """Also twice or not at all; nothing of them is a view of what they were taken from."""
    whole = make_rows(20, FULL)
    taken = take_rows(whole, np.array(numbers, dtype=np.int64))
    require_shapes(taken, FULL)
    assert list(taken) == list(whole)
    assert count(taken) == len(numbers)
    for row, number in enumerate(numbers):
        assert policy_of(taken, row) == policy_of(whole, number)
        for name in set(whole) - {"policy_moves", "policy_counts", "policy_offsets"}:
            np.testing.assert_array_equal(taken[name][row], whole[name][number])
    assert not any(np.shares_memory(taken[name], whole[name]) for name in whole)


def test_rows_taken_of_a_selection_of_columns() -> None:
    whole = make_rows(20, FULL)
    numbers = np.array([7, 2])
    one = take_rows({name: whole[name] for name in ("policy_counts", "policy_offsets")}, numbers)
    both = take_rows(whole, numbers)
    assert list(one) == ["policy_counts", "policy_offsets"]
    assert all(np.array_equal(values, both[name]) for name, values in one.items())
    assert list(take_rows({"key": whole["key"]}, numbers)) == ["key"]


def test_rebatching_nothing() -> None:
    assert list(rebatch([], 10)) == []
    assert list(rebatch([make_rows(0, FULL)], 10)) == []


def test_count_of_any_selection() -> None:
    whole = make_rows(20, FULL)
    assert count({name: whole[name] for name in ("policy_moves", "policy_offsets")}) == 20
    assert count({"key": whole["key"]}) == 20
    assert count({}) == 0


def test_shapes_that_do_not_fit() -> None:
    good = make_rows(5, FULL)
    require_shapes(good, FULL)
    short_offsets = good["policy_offsets"].copy()
    short_offsets[-1] -= 1
    falling = good["policy_offsets"].copy()
    falling[2] = falling[3] + 1
    for change, message in [
        ({"move": good["move"].astype(np.int32)}, "column move is int32"),
        ({"value": good["value"][:4]}, r"column value is float32\[4\]"),
        ({"planes": good["planes"][:, :2]}, "column planes"),
        ({"extra": good["move"]}, "a batch has the columns"),
        ({"policy_offsets": short_offsets}, "policy_offsets must rise"),
        ({"policy_offsets": falling}, "policy_offsets must rise"),
    ]:
        with pytest.raises(ValueError, match=message):
            require_shapes(good | change, FULL)
    with pytest.raises(ValueError, match="a batch has the columns"):
        require_shapes({name: good[name] for name in good if name != "key"}, FULL)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("move", -1, "move is not 0 to 361"),
        ("move", 362, "move is not 0 to 361"),
        ("value", 1.5, "value is not -1 to 1"),
        ("weight", np.nan, "weight is not"),
        ("weight", -1, "weight is not"),
        ("to_play", 0, "to_play is not 1 or 2"),
        ("rows", 0, "rows is not 1 to 19"),
        ("cols", 20, "cols is not 1 to 19"),
        ("symmetry", 8, "symmetry is not 0 to 7"),
        ("globals", np.inf, "globals are not finite"),
    ],
)
def test_values_out_of_range_are_named_with_their_row(name: str, value: float, message: str) -> None:
    batch = make_rows(9, FULL)
    assert first_fault(batch, FULL, 100) is None
    batch[name][4] = value
    assert (first_fault(batch, FULL, 100) or "").startswith(f"row 104: {message}")


def test_a_policy_move_out_of_range_is_named_with_its_row() -> None:
    batch = make_rows(9, FULL)
    batch["policy_moves"][batch["policy_offsets"][4]] = 362
    assert (first_fault(batch, FULL, 0) or "").startswith("row 4: policy_moves")


def test_a_row_without_counts_is_named() -> None:
    """There is nothing to draw a move from, nor to divide by."""
    batch = make_rows(9, FULL)
    batch["policy_counts"][batch["policy_offsets"][4]] = 0
    assert first_fault(batch, FULL, 10) == "row 14: policy_counts is not 1 or more"
    empty = {"policy_offsets": np.array([0, 2, 2, 3])}
    assert first_fault(empty, FULL, 10) == "row 11: policy_offsets leave the row without a move"


def test_each_padding_bit_is_seen() -> None:
    for bit in range(7):
        batch = make_rows(3, FULL)
        batch["planes"][1, 2, 45] |= 1 << bit
        assert first_fault(batch, FULL, 0) == "row 1: planes have padding bits set"
    last_point = make_rows(3, FULL)
    last_point["planes"][1, 2, 45] |= 0x80
    assert first_fault(last_point, FULL, 0) is None
    full_bytes = make_layout(frame=(8, 8))
    batch = make_rows(3, full_bytes)
    batch["planes"][:] = 255
    assert first_fault(batch, full_bytes, 0) is None
