"""The form in which a trainer gets its rows: planes unpacked and turned, moves turned with them, policies dense."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pipeline import symmetry
from pipeline.augment import turn_moves, turn_planes, turned_policy
from pipeline.columns import POLICY, Columns, Layout, take_rows
from pipeline.epochs import MOST, require_whole
from pipeline.unpack import Axes, unpack_planes
from pipeline.words import chain_words, seed_word

Dtype = Literal["packed", "uint8", "float32"]
Symmetry = Literal["none", "random"] | int
Policy = Literal["move", "counts", "sample"]

DENSE = "policy"  # the column of policy="counts"


@dataclass(frozen=True, slots=True)
class Form:
    """How rows are given; what is drawn depends on (seed, epoch) and the row alone.

    ``symmetry``: as stored, one drawn for each row, or the same for all; ``policy``: the ragged columns as they are,
    in their place a dense one, or a ``move`` drawn by the counts. Raises ValueError for any other value.
    """

    dtype: Dtype = "packed"
    axes: Axes = "NCHW"
    symmetry: Symmetry = "none"
    policy: Policy = "move"
    seed: int = 0
    epoch: int = 0

    def __post_init__(self) -> None:
        if self.dtype not in {"packed", "uint8", "float32"}:
            raise ValueError(f"dtype must be packed, uint8 or float32, not {self.dtype!r}")
        if self.axes not in {"NCHW", "NHWC"}:
            raise ValueError(f"layout must be NCHW or NHWC, not {self.axes!r}")
        if self.dtype == "packed" and self.axes != "NCHW":
            raise ValueError("packed planes have no layout but NCHW: ask for dtype 'uint8' or 'float32'")
        if isinstance(self.symmetry, bool) or self.symmetry not in ("none", "random", *range(symmetry.SYMMETRIES)):
            raise ValueError(f"symmetry must be none, random or 0 to 7, not {self.symmetry!r}")
        if self.policy not in {"move", "counts", "sample"}:
            raise ValueError(f"policy must be move, counts or sample, not {self.policy!r}")
        for name in ("seed", "epoch"):
            require_whole(name, getattr(self, name), 0, MOST)

    def names(self, layout: Layout, columns: Sequence[str] | None) -> tuple[str, ...]:
        """Return the columns that batches have, in the order of the contract. Raises ValueError for an unknown one."""
        if self.policy != "counts":
            return layout.select(columns)
        chosen = columns if columns is None or isinstance(columns, str) else [name for name in columns if name != DENSE]
        names = [name for name in layout.select(chosen) if name not in POLICY]
        if columns is not None and (ragged := set(columns) & set(POLICY)):
            raise ValueError(f"policy='counts' gives the column {DENSE!r} in place of {', '.join(sorted(ragged))}")
        after = sum(name in {"planes", "globals", "move"} for name in names)
        return (*names[:after], DENSE, *names[after:])

    def reads(self, layout: Layout, names: Sequence[str]) -> tuple[str, ...]:
        """Return the stored columns that the columns ``names`` are made from."""
        wanted = {*names} - {DENSE}
        if self.symmetry not in {"none", 0} or (self.dtype != "packed" and "planes" in wanted):
            wanted |= {"rows", "cols"}
        if DENSE in names or (self.policy == "sample" and "move" in wanted):
            wanted |= set(POLICY) if layout.aggregate else {"move"}
        if wanted & set(POLICY) and self.symmetry not in {"none", 0}:
            wanted |= set(POLICY)
        return layout.select(sorted(wanted))

    def blank(self, layout: Layout, names: Sequence[str], rows: int) -> Columns:
        """Return arrays for batches of up to so many rows: every column but the ragged ones."""
        shapes: dict[str, tuple[tuple[int, ...], str]] = {scalar.name: ((), scalar.dtype) for scalar in layout.scalars}
        height, width = layout.frame
        inner = (len(layout.planes), height, width) if self.axes == "NCHW" else (height, width, len(layout.planes))
        dense = (inner, self.dtype) if self.dtype != "packed" else ((len(layout.planes), layout.plane_bytes), "uint8")
        shapes |= {
            "planes": dense,
            "globals": ((len(layout.globals),), "float32"),
            DENSE: ((layout.area + 1,), "float32"),
        }
        return {name: np.empty((rows, *shapes[name][0]), dtype=shapes[name][1]) for name in names if name not in POLICY}

    def turns(self, stored: Columns, numbers: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Return uint8[n]: the symmetry of each of the ``rows`` of ``stored``; ``numbers``: theirs in the part.

        Raises ValueError for one that a board does not have.
        """
        if self.symmetry in {"none", 0}:
            return np.zeros(len(rows), dtype=np.uint8)
        height, width = stored["rows"][rows], stored["cols"][rows]
        if self.symmetry == "random":
            words = chain_words(seed_word("symmetry of a row", self.seed), self.epoch, numbers)
            counts = np.where(height == width, 8, 4).astype(np.uint64)
            return ((words >> np.uint64(32)) * counts >> np.uint64(32)).astype(np.uint8)
        turns = np.full(len(rows), self.symmetry, dtype=np.uint8)
        symmetry.require_turns(height, width, turns)
        return turns

    def fill(
        self, stored: Columns, layout: Layout, rows: NDArray[np.int64], numbers: NDArray[np.int64], out: Columns
    ) -> Columns:
        """Write ``rows`` int64[n] of ``stored`` into ``out`` (n rows of ``blank``); return their ragged columns, as far
        as ``stored`` has them. ``numbers`` int64[n]: those of the rows in the part.

        Raises ValueError for a symmetry that a board does not have.
        """
        turns = self.turns(stored, numbers, rows)
        for name, target in out.items():
            if name == "planes":
                self._fill_planes(stored, layout, rows, turns, target)
            elif name != DENSE:
                np.take(stored[name], rows, axis=0, out=target, mode="clip")  # the other modes go through a copy
        policy = take_rows({name: stored[name] for name in POLICY if name in stored}, rows)
        if "move" in out and self.policy == "sample" and layout.aggregate:
            words = chain_words(seed_word("move of a row", self.seed), self.epoch, numbers)
            out["move"][:] = _drawn(policy, words)
        if DENSE in out and not layout.aggregate:
            moves, once = stored["move"][rows], np.ones(len(rows), dtype=np.uint32)
            policy = dict(zip(POLICY, (moves, once, np.arange(len(rows) + 1)), strict=True))
        if turns.any():
            policy = _turned(stored, layout, rows, turns, out, policy)
        if DENSE in out:
            _fill_dense(policy, out[DENSE])
        return policy

    def _fill_planes(
        self, stored: Columns, layout: Layout, rows: NDArray[np.int64], turns: NDArray[np.uint8], out: NDArray[Any]
    ) -> None:
        planes = stored["planes"]
        if self.dtype != "packed":
            sizes = np.stack([stored["rows"][rows], stored["cols"][rows]], axis=1)
            unpack_planes(planes, rows, sizes, turns, layout.frame, self.axes, out)
        elif turns.any():
            out[:] = turn_planes(planes[rows], stored["rows"][rows], stored["cols"][rows], layout.frame[1], turns)
        else:
            np.take(planes, rows, axis=0, out=out, mode="clip")


def _turned(
    stored: Columns,
    layout: Layout,
    rows: NDArray[np.int64],
    turns: NDArray[np.uint8],
    out: Columns,
    policy: Columns,
) -> Columns:
    """Turn the moves and the symmetries of ``out``; return the policy turned."""
    height, width, frame_cols = stored["rows"][rows], stored["cols"][rows], layout.frame[1]
    if "move" in out:
        out["move"][:] = turn_moves(out["move"], height, width, frame_cols, turns)
    if "symmetry" in out:
        out["symmetry"][:] = symmetry.composed()[out["symmetry"], turns]
    if "policy_moves" not in policy:
        return policy
    return policy | turned_policy(policy | {"rows": height, "cols": width}, frame_cols, turns)


def _fill_dense(policy: Columns, out: NDArray[np.float32]) -> None:
    """Set ``out`` float32[n, area + 1] to the share of each move in the counts of its row."""
    counts, offsets = policy["policy_counts"].astype(np.float64), policy["policy_offsets"]
    lengths = np.diff(offsets)
    row = np.repeat(np.arange(len(lengths)), lengths)
    totals = np.bincount(row, counts, len(lengths))
    out[:] = 0
    out[row, policy["policy_moves"]] = counts / totals[row]


def _drawn(policy: Columns, words: NDArray[np.uint64]) -> NDArray[np.int16]:
    """Return int16[n]: a move for each row, each as likely as its count says; ``words`` uint64[n] decide."""
    ends = np.cumsum(policy["policy_counts"], dtype=np.uint64)
    offsets = policy["policy_offsets"]
    before = np.concatenate([[np.uint64(0)], ends])[offsets]
    places = before[:-1] + words % (before[1:] - before[:-1])
    moves: NDArray[np.int16] = policy["policy_moves"][np.searchsorted(ends, places, side="right")]
    return moves
