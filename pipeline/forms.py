"""The form in which a trainer gets its rows: planes unpacked and turned, moves turned with them, policies dense."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pipeline import symmetry
from pipeline.augment import turn_moves, turn_planes, turned_policy
from pipeline.columns import POLICY, Columns, Layout, take_rows
from pipeline.unpack import Order, unpack_planes
from pipeline.words import chain_words, seed_word

Dtype = Literal["packed", "uint8", "float32"]
Symmetry = Literal["none", "random"] | int
Policy = Literal["move", "counts", "sample"]

DENSE = "policy"  # the column of policy="counts"


@dataclass(frozen=True, slots=True)
class Form:
    """How rows are given; what is drawn depends on (seed, epoch) and the row alone.

    ``symmetry``: as stored, one drawn for each row, or the same for all; ``policy``: the ragged columns as they are,
    in their place a dense one, or a ``move`` drawn by the counts. Raises ValueError for what there is not.
    """

    dtype: Dtype = "packed"
    order: Order = "NCHW"
    symmetry: Symmetry = "none"
    policy: Policy = "move"
    seed: int = 0
    epoch: int = 0

    def __post_init__(self) -> None:
        if self.dtype not in {"packed", "uint8", "float32"}:
            raise ValueError(f"dtype must be packed, uint8 or float32, not {self.dtype!r}")
        if self.order not in {"NCHW", "NHWC"}:
            raise ValueError(f"layout must be NCHW or NHWC, not {self.order!r}")
        if self.dtype == "packed" and self.order != "NCHW":
            raise ValueError("packed planes have no layout but NCHW: ask for dtype 'uint8' or 'float32'")
        if self.symmetry not in {"none", "random", *range(symmetry.SYMMETRIES)} or isinstance(self.symmetry, bool):
            raise ValueError(f"symmetry must be none, random or 0 to 7, not {self.symmetry!r}")
        if self.policy not in {"move", "counts", "sample"}:
            raise ValueError(f"policy must be move, counts or sample, not {self.policy!r}")
        if self.epoch < 0:
            raise ValueError(f"epoch must be 0 or more, not {self.epoch}")

    def names(self, facts: Layout, columns: Sequence[str] | None) -> tuple[str, ...]:
        """Return the columns that batches have, in the order of the contract. Raises ValueError for an unknown one."""
        if self.policy != "counts":
            return facts.select(columns)
        chosen = None if columns is None else [name for name in columns if name != DENSE]
        names = [name for name in facts.select(chosen) if name not in POLICY]
        if columns is not None and (ragged := set(columns) & set(POLICY)):
            raise ValueError(f"policy='counts' gives the column {DENSE!r} in place of {', '.join(sorted(ragged))}")
        after = sum(name in {"planes", "globals", "move"} for name in names)
        return (*names[:after], DENSE, *names[after:])

    def reads(self, facts: Layout, names: Sequence[str]) -> tuple[str, ...]:
        """Return the stored columns that the columns ``names`` are made from."""
        wanted = {*names} - {DENSE}
        if self.symmetry not in {"none", 0} or (self.dtype != "packed" and "planes" in wanted):
            wanted |= {"rows", "cols"}
        if DENSE in names or (self.policy == "sample" and "move" in wanted):
            wanted |= set(POLICY) if facts.aggregate else {"move"}
        if wanted & set(POLICY) and self.symmetry not in {"none", 0}:
            wanted |= set(POLICY)
        return facts.select(sorted(wanted))

    def blank(self, facts: Layout, names: Sequence[str], rows: int) -> Columns:
        """Return arrays for batches of up to so many rows: every column but the ragged ones."""
        shapes: dict[str, tuple[tuple[int, ...], str]] = {scalar.name: ((), scalar.dtype) for scalar in facts.scalars}
        height, width = facts.frame
        inner = (len(facts.planes), height, width) if self.order == "NCHW" else (height, width, len(facts.planes))
        dense = (inner, self.dtype) if self.dtype != "packed" else ((len(facts.planes), facts.plane_bytes), "uint8")
        shapes |= {
            "planes": dense,
            "globals": ((len(facts.globals),), "float32"),
            DENSE: ((facts.area + 1,), "float32"),
        }
        return {name: np.empty((rows, *shapes[name][0]), dtype=shapes[name][1]) for name in names if name not in POLICY}

    def turns(self, stored: Columns, numbers: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Return uint8[n]: the symmetry of each of the ``rows`` of ``stored``; ``numbers``: theirs in the part."""
        if self.symmetry == "random":
            words = chain_words(seed_word("symmetry of a row", self.seed), self.epoch, numbers)
            counts = np.where(stored["rows"][rows] == stored["cols"][rows], 8, 4).astype(np.uint64)
            return ((words >> np.uint64(32)) * counts >> np.uint64(32)).astype(np.uint8)
        return np.full(len(rows), 0 if self.symmetry == "none" else self.symmetry, dtype=np.uint8)

    def fill(
        self, stored: Columns, facts: Layout, rows: NDArray[np.int64], numbers: NDArray[np.int64], out: Columns
    ) -> Columns:
        """Write ``rows`` int64[n] of ``stored`` into ``out`` (n rows of ``blank``); return their ragged columns, which
        are made from all that ``stored`` has of them. ``numbers`` int64[n]: those of the rows in the part.

        Raises ValueError for a symmetry that a board does not have.
        """
        turns = self.turns(stored, numbers, rows)
        turned = bool(turns.any())
        for name, target in out.items():
            if name == "planes":
                self._planes(stored, facts, rows, turns, target)
            elif name != DENSE:
                np.take(stored[name], rows, axis=0, out=target)
        ragged = self._policy(stored, facts, rows, turns)
        if DENSE in out:
            _fill_dense(ragged, out[DENSE])
        if "move" in out:
            if self.policy == "sample" and facts.aggregate:
                out["move"][:] = _drawn(ragged, chain_words(seed_word("move of a row", self.seed), self.epoch, numbers))
            elif turned:
                sizes = stored["rows"][rows], stored["cols"][rows]
                out["move"][:] = turn_moves(out["move"], *sizes, facts.frame[1], turns)
        if "symmetry" in out and turned:
            out["symmetry"][:] = symmetry.composed()[out["symmetry"], turns]
        return ragged

    def _planes(
        self, stored: Columns, facts: Layout, rows: NDArray[np.int64], turns: NDArray[np.uint8], out: NDArray[Any]
    ) -> None:
        planes = stored["planes"]
        if self.dtype != "packed":
            sizes = np.stack([stored["rows"][rows], stored["cols"][rows]], axis=1)
            unpack_planes(planes, rows, sizes, turns, facts.frame, self.order, out)
        elif turns.any():
            out[:] = turn_planes(planes[rows], stored["rows"][rows], stored["cols"][rows], facts.frame[1], turns)
        else:
            np.take(stored["planes"], rows, axis=0, out=out)

    def _policy(self, stored: Columns, facts: Layout, rows: NDArray[np.int64], turns: NDArray[np.uint8]) -> Columns:
        """Return the policy of the rows, turned: that of a data set without counts has the move of each row, once."""
        if not facts.aggregate:
            if self.policy != "counts":
                return {}
            moves = stored["move"][rows]
            if turns.any():
                moves = turn_moves(moves, stored["rows"][rows], stored["cols"][rows], facts.frame[1], turns)
            return dict(zip(POLICY, (moves, np.ones(len(rows), np.uint32), np.arange(len(rows) + 1)), strict=True))
        sizes = ("rows", "cols") if turns.any() else ()
        chosen = take_rows({name: stored[name] for name in (*POLICY, *sizes) if name in stored}, rows)
        if turns.any() and "policy_moves" in chosen:
            chosen |= turned_policy(chosen, facts.frame[1], turns)
        return {name: chosen[name] for name in POLICY if name in chosen}


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
