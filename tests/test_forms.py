"""Rows in the form that a trainer wants, against the same worked out point by point (``slow_forms``)."""

from collections import Counter
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from shard_rows import make_layout, make_rows
from slow_forms import turned_move, turned_row, unpacked

from pipeline.columns import POLICY, Columns, Layout
from pipeline.forms import Form

ROWS = 40


def some_rows(facts: Layout, sizes: tuple[tuple[int, int], ...] = ((7, 7), (5, 7), (7, 5), (4, 4))) -> Columns:
    """Return rows of boards of several sizes, planes and moves on the board, a move of a row once."""
    rows = make_rows(ROWS, facts, 5)
    rng = np.random.default_rng(6)
    rows["rows"], rows["cols"] = np.array([sizes[i % len(sizes)] for i in range(ROWS)], dtype=np.uint8).T
    dense = np.unpackbits(rows["planes"], axis=-1, count=facts.area).reshape(ROWS, -1, *facts.frame)
    for i in range(ROWS):
        height, width = sizes[i % len(sizes)]
        dense[i, :, height:] = 0
        dense[i, :, :, width:] = 0
        moves = [row * facts.frame[1] + col for row, col in product(range(height), range(width))] + [facts.area]
        rows["move"][i] = rng.choice(moves)
        if facts.aggregate:
            start, stop = rows["policy_offsets"][i : i + 2]
            rows["policy_moves"][start:stop] = np.sort(rng.choice(moves, stop - start, replace=False))
    rows["planes"] = np.packbits(dense.reshape(ROWS, len(facts.planes), -1), axis=-1)
    return rows


def filled(
    form: Form, stored: Columns, facts: Layout, rows: list[int], numbers: list[int], columns: list[str] | None = None
) -> Columns:
    """Return a batch, as the loader makes one, from no more columns than the form says that it reads."""
    names = form.names(facts, columns)
    known = {name: stored[name] for name in form.reads(facts, names)}
    out = form.blank(facts, names, len(rows))
    for values in out.values():
        values.fill(1)
    ragged = form.fill(known, facts, np.array(rows), np.array(numbers), out)
    assert list(form.blank(facts, names, 3)) == [name for name in names if name not in POLICY]
    return {name: ragged[name] if name in POLICY else out[name] for name in names}


def policies(batch: Columns) -> list[dict[int, int]]:
    offsets = batch["policy_offsets"]
    pairs = list(zip(batch["policy_moves"].tolist(), batch["policy_counts"].tolist(), strict=True))
    found = [pairs[start:stop] for start, stop in pairwise(offsets)]
    assert all([move for move, _ in row] == sorted({move for move, _ in row}) for row in found)
    return [dict(row) for row in found]


@pytest.mark.parametrize("aggregate", [False, True])
@pytest.mark.parametrize(("dtype", "order"), [("packed", "NCHW"), *product(("uint8", "float32"), ("NCHW", "NHWC"))])
@pytest.mark.parametrize("symmetry", ["none", 0, 3, "random"])
@pytest.mark.parametrize("policy", ["move", "counts", "sample"])
def test_whole_batches(aggregate: bool, dtype: Any, order: Any, symmetry: Any, policy: Any) -> None:
    facts = make_layout(frame=(7, 7), aggregate=aggregate, global_names=("a", "b"))
    stored = some_rows(facts)
    form = Form(dtype, order, symmetry, policy, seed=4, epoch=2)
    rows, numbers = [5, 39, 0, 5, *range(8, 30)], [1005, 1039, 1000, 1005, *range(1008, 1030)]
    batch = filled(form, stored, facts, rows, numbers)
    turns = form.turns(stored, np.array(numbers), np.array(rows))
    assert (len(set(turns.tolist())) > 4) == (symmetry == "random")
    plain = [name for name in batch if name not in {"planes", "move", "policy", *POLICY}]
    for i, (row, turn) in enumerate(zip(rows, turns.tolist(), strict=True)):
        expected = turned_row(stored, facts, row, turn)
        np.testing.assert_array_equal(unpacked(batch["planes"][i], facts, dtype, order), expected["planes"])
        for name in plain:
            np.testing.assert_array_equal(batch[name][i], expected[name], err_msg=name)
        if policy == "sample":
            assert int(batch["move"][i]) in expected["policy"]
        else:
            assert batch["move"][i] == expected["move"]
        if policy == "counts":
            shares = np.zeros(facts.area + 1)
            for move, count in expected["policy"].items():
                shares[move] = count / sum(expected["policy"].values())
            np.testing.assert_allclose(batch["policy"][i], shares, rtol=1e-6)
        elif aggregate:
            assert policies(batch)[i] == expected["policy"]


def test_dtypes_and_shapes() -> None:
    facts = make_layout(frame=(5, 9), aggregate=True, global_names=("a",))
    blank = Form("float32", "NHWC", policy="counts").blank(facts, ("planes", "globals", "move", "policy", "key"), 6)
    assert {name: (values.dtype.name, values.shape) for name, values in blank.items()} == {
        "planes": ("float32", (6, 5, 9, 3)),
        "globals": ("float32", (6, 1)),
        "move": ("int16", (6,)),
        "policy": ("float32", (6, 46)),
        "key": ("uint64", (6,)),
    }
    assert Form().blank(facts, ("planes",), 2)["planes"].shape == (2, 3, 6)


@pytest.mark.parametrize(
    ("form", "columns", "names", "reads"),
    [
        (Form(), ["value", "move"], "move value", "move value"),
        (Form("uint8"), ["planes"], "planes", "planes rows cols"),
        (Form(symmetry="random"), ["move"], "move", "move rows cols"),
        (Form(symmetry=0), ["planes"], "planes", "planes"),
        (Form(), ["policy_counts"], "policy_counts policy_offsets", "policy_counts policy_offsets"),
        (Form(symmetry=1), ["policy_counts"], "policy_counts policy_offsets",
         "policy_moves policy_counts policy_offsets rows cols"),
        (Form(policy="counts"), ["move"], "move policy", "move policy_moves policy_counts policy_offsets"),
        (Form(policy="counts"), ["value", "policy"], "policy value",
         "policy_moves policy_counts policy_offsets value"),
        (Form(policy="sample"), ["move"], "move", "move policy_moves policy_counts policy_offsets"),
        (Form(policy="sample"), ["value"], "value", "value"),
    ],
)  # fmt: skip
def test_no_more_is_read_than_needed(form: Form, columns: list[str], names: str, reads: str) -> None:
    facts = make_layout(aggregate=True)
    assert form.names(facts, columns) == tuple(names.split())
    assert form.reads(facts, tuple(names.split())) == tuple(reads.split())


def test_without_counts_the_move_is_the_policy() -> None:
    facts = make_layout(frame=(7, 7))
    stored = some_rows(facts)
    for policy in ("move", "sample"):
        assert "policy_moves" not in Form(policy=policy).names(facts, None)  # type: ignore[arg-type]
    assert Form(policy="counts").reads(facts, ("policy",)) == ("move",)
    batch = filled(Form(policy="counts"), stored, facts, [3, 4], [3, 4], ["policy"])
    assert batch["policy"].argmax(axis=1).tolist() == stored["move"][3:5].tolist()
    assert batch["policy"].sum(axis=1).tolist() == [1, 1]


def test_draws_depend_on_the_row_alone() -> None:
    """Not on its place in a batch, nor on the batch; they change with the seed and the epoch."""
    facts = make_layout(frame=(7, 7), aggregate=True)
    stored = some_rows(facts)
    draws = {}
    for seed, epoch in product((1, 2), (0, 1)):
        form = Form("uint8", symmetry="random", policy="sample", seed=seed, epoch=epoch)
        whole = filled(form, stored, facts, list(range(ROWS)), list(range(ROWS)))
        backwards = filled(form, stored, facts, list(range(ROWS))[::-1], list(range(ROWS))[::-1])
        for name in ("planes", "move", "symmetry"):
            np.testing.assert_array_equal(whole[name], backwards[name][::-1])
        draws[seed, epoch] = tuple(whole["symmetry"].tolist())
    assert len(set(draws.values())) == 4


def test_symmetries_are_drawn_evenly() -> None:
    """Eight of a square, four of a rectangle, each as often."""
    sizes = {"rows": np.array([9, 5], dtype=np.uint8), "cols": np.array([9, 9], dtype=np.uint8)}
    form = Form(symmetry="random", seed=3)
    for row, count in ((0, 8), (1, 4)):
        turns = form.turns(sizes, np.arange(80_000), np.full(80_000, row))
        found = np.bincount(turns, minlength=8)
        assert (found[count:] == 0).all()
        np.testing.assert_allclose(found[:count], 80_000 / count, rtol=0.05)


def test_moves_are_drawn_by_their_counts() -> None:
    """Rows with counts 1 : 3 : 6, drawn for many row numbers."""
    facts = make_layout(frame=(7, 7), aggregate=True)
    stored = {name: values.copy() for name, values in make_rows(1, facts).items()}
    stored |= {
        "policy_moves": np.array([3, 11, 49], dtype=np.int16),
        "policy_counts": np.array([1, 3, 6], dtype=np.uint32),
        "policy_offsets": np.array([0, 3]),
    }
    batch = filled(Form(policy="sample"), stored, facts, [0] * 20_000, list(range(20_000)), ["move"])
    found = Counter(batch["move"].tolist())
    assert set(found) == {3, 11, 49}
    for move, share in ((3, 0.1), (11, 0.3), (49, 0.6)):
        assert found[move] / 20_000 == pytest.approx(share, abs=0.015)


def test_the_largest_counts() -> None:
    """Sums of a batch go beyond 32 bits."""
    facts = make_layout(frame=(7, 7), aggregate=True)
    stored = {name: values.copy() for name, values in make_rows(1, facts).items()}
    stored |= {
        "policy_moves": np.array([3, 11], dtype=np.int16),
        "policy_counts": np.array([2**32 - 1, 2**32 - 1], dtype=np.uint32),
        "policy_offsets": np.array([0, 2]),
    }
    rows, numbers = [0] * 1000, list(range(1000))
    found = Counter(filled(Form(policy="sample"), stored, facts, rows, numbers, ["move"])["move"].tolist())
    assert found[3] / 1000 == pytest.approx(0.5, abs=0.06)
    dense = filled(Form(policy="counts"), stored, facts, rows, numbers, ["policy"])["policy"]
    assert (dense[:, [3, 11]] == 0.5).all()


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"dtype": "float16"}, "dtype must be packed, uint8 or float32, not 'float16'"),
        ({"axes": "HWC", "dtype": "uint8"}, "layout must be NCHW or NHWC, not 'HWC'"),
        ({"axes": "NHWC"}, "packed planes have no layout but NCHW"),
        ({"symmetry": 8}, "symmetry must be none, random or 0 to 7, not 8"),
        ({"symmetry": "all"}, "symmetry must be none, random or 0 to 7, not 'all'"),
        ({"symmetry": True}, "not True"),
        ({"symmetry": [1]}, r"symmetry must be none, random or 0 to 7, not \[1\]"),
        ({"seed": 1.5}, r"seed must be a whole number, not 1\.5"),
        ({"policy": "best"}, "policy must be move, counts or sample, not 'best'"),
        ({"epoch": -1}, "epoch must be 0 to 18446744073709551615, not -1"),
        ({"epoch": 2**64}, "epoch must be 0 to 18446744073709551615"),
        ({"seed": -1}, "seed must be 0 to 18446744073709551615, not -1"),
    ],
)
def test_what_there_is_not(facts: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Form(**facts)


def test_ragged_columns_beside_dense_ones() -> None:
    with pytest.raises(ValueError, match="gives the column 'policy' in place of policy_counts, policy_moves"):
        Form(policy="counts").names(make_layout(aggregate=True), ["policy_moves", "policy_counts"])


def test_a_symmetry_that_a_board_does_not_have() -> None:
    """Whatever is read of it."""
    facts = make_layout(frame=(7, 7), aggregate=True)
    for form, columns in (
        (Form(symmetry=6), ["planes"]),
        (Form("uint8", symmetry=6), ["planes"]),
        (Form(symmetry=6), ["move"]),
        (Form(symmetry=6, policy="counts"), ["policy"]),
    ):
        with pytest.raises(ValueError, match="7x5 is not square"):
            filled(form, some_rows(facts), facts, [0, 2], [0, 2], columns)


def test_a_drawn_move_turns_with_its_row() -> None:
    """The draw is of the row, whatever its symmetry."""
    facts = make_layout(frame=(7, 7), aggregate=True)
    stored = some_rows(facts, ((7, 7),))
    rows = list(range(ROWS))
    plain = filled(Form(policy="sample", seed=2), stored, facts, rows, rows, ["move"])["move"]
    assert (plain != stored["move"]).any()
    for turn in range(1, 8):
        found = filled(Form(policy="sample", seed=2, symmetry=turn), stored, facts, rows, rows, ["move"])["move"]
        assert found.tolist() == [turned_move(move, (7, 7), 7, turn) for move in plain.tolist()]
