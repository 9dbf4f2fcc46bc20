"""The columns of a shard in memory, the same whatever the file format, and what a shard must look like.

In memory (``Columns``, N rows, P planes, G globals, M policy entries):

==============  ==================================  ==============================================
planes          uint8[N, P, ceil(area / 8)]         packed, most significant bit first
globals         float32[N, G]                       schemes that have them
move            int16[N]                            frame index, pass = area
policy_moves    int16[M]                            ``aggregate`` only, rows end to end
policy_counts   uint32[M]                           ``aggregate`` only
policy_offsets  int64[N + 1]                        ``aggregate`` only: row i has offsets[i]:offsets[i + 1]
value, score    float32[N]                          NaN = unknown
wins ... losses uint32[N]                           ``aggregate`` only
weight          float32[N]
to_play         int8[N]                             1 black, 2 white
komi            float32[N]                          NaN = unknown
rows ... symmetry  uint8[N]
game, key       uint64[N]
ply             uint16[N]
key_hi          uint64[N]                           128-bit keys only
==============  ==================================  ==============================================
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Columns = dict[str, NDArray[Any]]
Format = Literal["parquet", "hdf5"]
Compression = Literal["default", "zstd", "gzip", "none"]

FORMAT_VERSION: Final = 1
SUFFIXES: dict[Format, str] = {"parquet": ".parquet", "hdf5": ".h5"}
# Rows that are written together: a Parquet row group, and a multiple of every HDF5 chunk.
BLOCK_ROWS = 8192
POLICY = ("policy_moves", "policy_counts", "policy_offsets")


class ShardError(ValueError):
    """A shard that is damaged, hostile or not what the data set says it is; the text starts with its path."""


class Scalar(NamedTuple):
    """A column with one number a row."""

    name: str
    dtype: str
    nullable: bool = False


_LABEL = (Scalar("move", "int16"),)
_OUTCOME = (Scalar("value", "float32", True),)
_COUNTS = (Scalar("wins", "uint32"), Scalar("draws", "uint32"), Scalar("losses", "uint32"))
_FACTS = (
    Scalar("weight", "float32"),
    Scalar("score", "float32", True),
    Scalar("to_play", "int8"),
    Scalar("komi", "float32", True),
    Scalar("rows", "uint8"),
    Scalar("cols", "uint8"),
    Scalar("symmetry", "uint8"),
    Scalar("game", "uint64"),
    Scalar("ply", "uint16"),
    Scalar("key", "uint64"),
)
_WIDE_KEY = (Scalar("key_hi", "uint64"),)


@dataclass(frozen=True, slots=True)
class Layout:
    """What every shard of a data set has in common; ``description`` (see ``describe``) is stored in each.

    Raises ValueError for combinations that no file can have.
    """

    format: Format
    frame: tuple[int, int]
    planes: tuple[str, ...]
    globals: tuple[str, ...]
    description: str
    packed: bool = True
    compression: Compression = "default"
    aggregate: bool = False
    key_bits: int = 64

    def __post_init__(self) -> None:
        if self.format not in SUFFIXES:
            raise ValueError(f"output.format must be parquet or hdf5, not {self.format!r}")
        if self.format == "parquet" and not self.packed:
            raise ValueError("output.packed = false needs output.format = 'hdf5'")
        if self.key_bits not in {64, 128}:
            raise ValueError(f"dedup.key_bits must be 64 or 128, not {self.key_bits!r}")
        if not self.planes:
            raise ValueError("a shard needs at least one plane")

    @property
    def area(self) -> int:
        """Points of the frame; also the index of a pass."""
        return self.frame[0] * self.frame[1]

    @property
    def plane_bytes(self) -> int:
        """Bytes of one packed plane: 46 for 19x19."""
        return (self.area + 7) // 8

    @property
    def row_bytes(self) -> int:
        """Bytes of the packed planes of one row."""
        return len(self.planes) * self.plane_bytes

    @property
    def scalars(self) -> tuple[Scalar, ...]:
        """The columns with one number a row, in the order of the contract."""
        counts = _COUNTS if self.aggregate else ()
        wide = _WIDE_KEY if self.key_bits == 128 else ()
        return _LABEL + _OUTCOME + counts + _FACTS + wide

    @property
    def names(self) -> tuple[str, ...]:
        """All columns in memory, in the order of the contract."""
        first = ("planes", "globals") if self.globals else ("planes",)
        policy = POLICY if self.aggregate else ()
        move, *rest = (scalar.name for scalar in self.scalars)
        return (*first, move, *policy, *rest)

    def select(self, columns: Sequence[str] | None) -> tuple[str, ...]:
        """Return the columns to read, in the order of the contract: all of them for None.

        ``policy_offsets`` comes with either of the policies. Raises ValueError for an unknown name.
        """
        if columns is None:
            return self.names
        if isinstance(columns, str):
            raise ValueError(f"columns is a list of names, not the text {columns!r}")
        if unknown := [name for name in columns if name not in self.names]:
            raise ValueError(f"no column {unknown[0]!r} in this data set; it has {', '.join(self.names)}")
        wanted = set(columns)
        if wanted & set(POLICY):
            wanted.add("policy_offsets")
        return tuple(name for name in self.names if name in wanted)


def describe(
    scheme: str,
    version: int,
    options: Mapping[str, str | int | bool],
    planes: Sequence[str],
    global_names: Sequence[str],
    frame: tuple[int, int],
) -> str:
    """Return the canonical JSON text that every shard carries: what its bits mean."""
    facts = {
        "format_version": FORMAT_VERSION,
        "scheme": scheme,
        "version": version,
        "options": dict(options),
        "planes": list(planes),
        "globals": list(global_names),
        "frame": list(frame),
        "bit_order": "big",
    }
    return json.dumps(facts, sort_keys=True, separators=(",", ":"))


def count(batch: Mapping[str, NDArray[Any]]) -> int:
    """Number of rows of a batch (of any selection of columns)."""
    for name, values in batch.items():
        if name == "policy_offsets":
            return len(values) - 1
        if name not in POLICY:
            return len(values)
    return 0


def no_policy() -> Columns:
    """Return the policy columns of no row."""
    return {
        "policy_moves": np.zeros(0, dtype=np.int16),
        "policy_counts": np.zeros(0, dtype=np.uint32),
        "policy_offsets": np.zeros(1, dtype=np.int64),
    }


def slice_rows(batch: Columns, start: int, stop: int) -> Columns:
    """Return rows start to stop as views (``policy_offsets`` is made anew, from 0)."""
    piece = {name: values[start:stop] for name, values in batch.items() if name not in POLICY}
    if "policy_offsets" in batch:
        offsets = batch["policy_offsets"][start : stop + 1]
        piece["policy_offsets"] = offsets - offsets[0]
        for name in ("policy_moves", "policy_counts"):
            if name in batch:
                piece[name] = batch[name][offsets[0] : offsets[-1]]
    return {name: piece[name] for name in batch}


def spans(starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return ``starts[0], starts[0] + 1, ...`` for ``lengths[0]`` numbers, then the same of the next span."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total) + np.repeat(starts - ends + lengths, lengths)


def take_rows(batch: Columns, numbers: NDArray[np.int64]) -> Columns:
    """Return the rows ``numbers``, copied, in this order."""
    taken = {name: values[numbers] for name, values in batch.items() if name not in POLICY}
    if "policy_offsets" in batch:
        starts = batch["policy_offsets"][numbers]
        lengths = batch["policy_offsets"][numbers + 1] - starts
        entries = spans(starts, lengths)
        taken["policy_offsets"] = np.concatenate([[0], np.cumsum(lengths)])
        for name in ("policy_moves", "policy_counts"):
            if name in batch:
                taken[name] = batch[name][entries]
    return {name: taken[name] for name in batch}


def row_of(batch: Columns, row: int) -> dict[str, Any]:
    """Return a row of a batch: policies as arrays, the rest as it is found there (a number, or an array)."""
    found: dict[str, Any] = {name: values[row] for name, values in batch.items() if name not in POLICY}
    if "policy_offsets" in batch:
        start, stop = batch["policy_offsets"][row : row + 2]
        found |= {name: batch[name][start:stop] for name in POLICY[:2] if name in batch}
    return {name: found[name] for name in batch if name in found}


def join(pieces: Sequence[Columns]) -> Columns:
    """Return the rows of one or more batches in one; a single batch is returned as it is."""
    if len(pieces) == 1:
        return pieces[0]
    joined: Columns = {}
    for name in pieces[0]:
        arrays = [piece[name] for piece in pieces]
        if name == "policy_offsets":
            ends = np.cumsum([0] + [int(offsets[-1]) for offsets in arrays])
            later = [offsets[1:] + end for offsets, end in zip(arrays, ends, strict=False)]
            joined[name] = np.concatenate([arrays[0][:1], *later])
        else:
            joined[name] = np.concatenate(arrays)
    return joined


def rebatch(batches: Iterable[Columns], rows: int) -> Iterator[Columns]:
    """Yield the same rows in batches of exactly ``rows``; the last may be shorter, none is empty."""
    pieces: list[Columns] = []
    have = 0
    for batch in batches:
        start, total = 0, count(batch)
        while start < total:
            stop = min(total, start + rows - have)
            pieces.append(slice_rows(batch, start, stop))
            have += stop - start
            start = stop
            if have == rows:
                yield join(pieces)
                pieces, have = [], 0
    if pieces:
        yield join(pieces)


def require_shapes(batch: Columns, layout: Layout) -> None:
    """Raise ValueError unless a batch to be written has exactly the columns, dtypes and shapes of the layout."""
    if set(batch) != set(layout.names):
        raise ValueError(f"a batch has the columns {sorted(batch)}, not {sorted(layout.names)}")
    rows, entries = len(batch["move"]), len(batch["policy_moves"]) if layout.aggregate else 0
    expected: dict[str, tuple[str, tuple[int, ...]]] = {
        "planes": ("uint8", (rows, len(layout.planes), layout.plane_bytes)),
        "globals": ("float32", (rows, len(layout.globals))),
        "policy_moves": ("int16", (entries,)),
        "policy_counts": ("uint32", (entries,)),
        "policy_offsets": ("int64", (rows + 1,)),
        **{scalar.name: (scalar.dtype, (rows,)) for scalar in layout.scalars},
    }
    for name in layout.names:
        dtype, shape = expected[name]
        values = batch[name]
        if values.dtype != dtype or values.shape != shape:
            raise ValueError(f"column {name} is {values.dtype}{list(values.shape)}, not {dtype}{list(shape)}")
    if layout.aggregate:
        offsets = batch["policy_offsets"]
        if offsets[0] != 0 or offsets[-1] != entries or (np.diff(offsets) < 0).any():
            raise ValueError("policy_offsets must rise from 0 to the number of policy entries")


def first_fault(batch: Mapping[str, Any], layout: Layout, start: int) -> str | None:
    """Return what is wrong with the values of a batch, of any selection of columns, or None; row ``start`` is its
    first."""
    for name, text, bad in _tests(batch, layout):
        if bad.any():
            return f"row {start + int(bad.argmax())}: {name} {text}"
    return None


def _tests(batch: Mapping[str, Any], layout: Layout) -> Iterator[tuple[str, str, NDArray[np.bool_]]]:
    """Yield (column, what is wrong with it, in which rows) for all columns with a range that are there."""
    ranges = {"rows": (1, layout.frame[0]), "cols": (1, layout.frame[1]), "symmetry": (0, 7), "move": (0, layout.area)}
    for name, values in batch.items():
        if name == "planes":
            spare = 8 * layout.plane_bytes - layout.area
            yield name, "have padding bits set", (values[:, :, -1] & ((1 << spare) - 1)).any(axis=1)
        elif name in ranges:
            least, most = ranges[name]
            yield name, f"is not {least} to {most}", (values < least) | (values > most)
        elif name == "to_play":
            yield name, "is not 1 or 2", (values != 1) & (values != 2)
        elif name == "value":  # NaN, the unknown value, is not above 1
            yield name, "is not -1 to 1", np.abs(values) > 1
        elif name == "weight":
            yield name, "is not a number from 0 up", (values < 0) | ~np.isfinite(values)
        elif name == "globals":
            yield name, "are not finite", ~np.isfinite(values).all(axis=1)
        elif name == "policy_offsets":
            yield name, "leave the row without a move", np.diff(values) < 1
        elif name == "policy_counts":
            yield name, "is not 1 or more", _in_rows(values < 1, batch)
        elif name == "policy_moves":
            yield name, f"is not 0 to {layout.area}", _in_rows((values < 0) | (values > layout.area), batch)


def _in_rows(entries: NDArray[np.bool_], batch: Mapping[str, NDArray[Any]]) -> NDArray[np.bool_]:
    """Return bool[N]: which rows have one of some policy entries bool[M]."""
    offsets = batch["policy_offsets"]
    rows = np.zeros(len(offsets) - 1, dtype=np.bool_)
    rows[np.searchsorted(offsets, np.flatnonzero(entries), side="right") - 1] = True
    return rows
