"""The exact shuffle: every image of every row in one random order, in two passes over files.

Blocks are shuffled each by itself; with ``output.shuffle = "exact"`` a block only spreads its encoded rows by the words
that order them, into one piece for each shard's share of all words. A shard is then a stretch of the rows in the order
of their words, from whatever block they are.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline.blocks import (
    EncodeTask,
    ShardPlan,
    encoded_rows,
    reported,
    shard_path,
    shuffled,
    turned_batches,
    write_shard,
)
from pipeline.columns import BLOCK_ROWS, Columns, Layout, join, slice_rows, take_rows
from pipeline.config import Config
from pipeline.pieces import Piece, bucket_of, joined_records, read_tables, write_pieces

_LISTS = ("policy_moves", "policy_counts")
_COUNT = np.dtype("<u8")
_WORD = "word"


@dataclass(frozen=True, slots=True)
class SpreadTask:
    """Encode a block and spread its rows into ``out``: a piece for each shard of each plan (those of the whole data
    set, in ``encode.plans``), then one with the numbers of their rows."""

    encode: EncodeTask
    out: str


def spread_block(task: SpreadTask) -> dict[str, Any]:
    """Run a SpreadTask. Raises DamagedWork, OSError."""
    rows, plans = encoded_rows(task.encode), task.encode.plans
    orders = [shuffled(rows, plan.part, task.encode.config) for plan in plans]
    stops = [
        np.searchsorted(bucket_of(words, plan.shards), np.arange(plan.shards), side="right")
        for plan, (_, _, words) in zip(plans, orders, strict=True)
    ]
    counts = [np.diff(stop, prepend=0) for stop in stops]

    def pieces() -> Iterator[Piece]:
        for (order, turns, words), stop in zip(orders, stops, strict=True):
            for start, end in zip([0, *stop[:-1]], stop, strict=True):
                if start == end:
                    yield None
                    continue
                batches = turned_batches(rows.columns, order[start:end], turns[start:end], task.encode.layout)
                yield _table_of(join(list(batches)), words[start:end])
        yield np.concatenate([np.zeros(0, dtype=_COUNT), *counts]).astype(_COUNT)

    write_pieces(task.out, pieces(), "zstd")
    return {"rows": sum(len(words) for _, _, words in orders)}


def spread_counts(paths: Sequence[str], plans: Sequence[ShardPlan]) -> NDArray[np.int64]:
    """Return how many rows all blocks spread into each piece."""
    pieces = sum(plan.shards for plan in plans)
    counts = np.zeros(pieces, dtype=np.int64)
    for path in paths:
        counts += joined_records([path], pieces, _COUNT).astype(np.int64)
    return counts


@dataclass(frozen=True, slots=True)
class MixTask:
    """Write shard ``number`` of ``part``: of the rows in the pieces ``first`` to ``last`` of all files ``spread``, in
    order, the rows ``start`` to ``stop``. ``report`` is written last."""

    part: int
    number: int
    spread: tuple[str, ...]
    first: int
    last: int
    start: int
    stop: int
    folder: str
    report: str
    config: Config
    layout: Layout


def mix_tasks(
    plans: Sequence[ShardPlan], counts: NDArray[np.int64], spread: tuple[str, ...], work: str, encode: EncodeTask
) -> list[MixTask]:
    """Return a task for each shard: the rows of a part are cut into stretches of nearly equal length."""
    tasks = []
    base = 0
    for plan in plans:
        ends = np.cumsum(counts[base : base + plan.shards])
        cuts = [int(ends[-1]) * number // plan.shards for number in range(plan.shards + 1)]
        for number, (start, stop) in enumerate(pairwise(cuts)):
            first = int(np.searchsorted(ends, start, side="right"))
            last = int(np.searchsorted(ends, stop, side="left"))
            before = int(ends[first - 1]) if first else 0
            report = f"{work}/mixed-{plan.part}-{plan.first + number:06d}.json"
            place = plan.part, plan.first + number, spread, base + first, base + last, start - before, stop - before
            tasks.append(MixTask(*place, encode.folder, report, encode.config, encode.layout))
        base += plan.shards
    return tasks


def mix_shard(task: MixTask) -> dict[str, Any]:
    """Run a MixTask and return the report of its shard. Raises DamagedWork, OSError."""
    pieces = []
    for piece in range(task.first, task.last + 1):
        if not (found := read_tables(task.spread, piece)):
            continue  # no row has a word there
        tables = pa.concat_tables(found).combine_chunks()
        order = np.argsort(tables.column(_WORD).to_numpy(), kind="stable")
        pieces.append(take_rows(_columns_of(tables, task.layout), order))
        del found, tables
    rows = slice_rows(join(pieces), task.start, task.stop)
    batches = (slice_rows(rows, at, at + BLOCK_ROWS) for at in range(0, task.stop - task.start, BLOCK_ROWS))
    path = shard_path(task.part, task.number, task.config)
    return reported(task, [write_shard(task.folder, path, batches, task.layout)])


def _table_of(columns: Columns, words: NDArray[np.uint64]) -> pa.Table:
    """Return rows as a table that ``_columns_of`` makes rows again."""
    arrays: dict[str, Any] = {_WORD: pa.array(words)}
    for name, values in columns.items():
        if name == "policy_offsets":
            continue
        if name in _LISTS:
            arrays[name] = pa.LargeListArray.from_arrays(pa.array(columns["policy_offsets"]), pa.array(values))
        elif values.ndim > 1:
            flat = np.ascontiguousarray(values).reshape(len(values), -1).view(np.uint8)
            kind = pa.binary(flat.shape[1])
            arrays[name] = pa.FixedSizeBinaryArray.from_buffers(kind, len(flat), [None, pa.py_buffer(flat)])
        else:
            arrays[name] = pa.array(values)
    return pa.table(arrays)


def _columns_of(table: pa.Table, layout: Layout) -> Columns:
    columns: Columns = {}
    for name in layout.names:
        if name == "policy_offsets":
            columns[name] = table.column(_LISTS[0]).chunk(0).offsets.to_numpy()
            continue
        values = table.column(name).chunk(0)
        if name in _LISTS:
            columns[name] = values.flatten().to_numpy()
        elif name == "planes":
            planes = np.frombuffer(values.buffers()[1], dtype=np.uint8)
            columns[name] = planes.reshape(len(values), len(layout.planes), layout.plane_bytes)
        elif name == "globals":
            inputs = np.frombuffer(values.buffers()[1], dtype=np.float32)
            columns[name] = inputs.reshape(len(values), len(layout.globals))
        else:
            columns[name] = values.to_numpy(zero_copy_only=False)
    return columns
