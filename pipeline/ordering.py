"""The game table in its published order, cut into ranges that no process needs more than one of.

The order is that of (source, member, index, content), by bytes. Parts of the table, as they were read, are cut where
samples of their keys say that ranges of a few thousand records begin (``route_part``); each range is then put
together and sorted by itself (``order_range``). Where the cuts fall changes nothing that is published.

An *ordinal* names a record from here on: the number of its range and of its row in it, in the order of the table.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pipeline.pieces import bucket_of, read_tables, routed, whole_table, write_pieces
from pipeline.reasons import Status
from pipeline.table import KEYS, MARKS, PART_SCHEMA

RANGE_RECORDS = 8_192
RANGE_BYTES = 2**26
_ROUTED_RECORDS, _ROUTED_BYTES = 2 * RANGE_RECORDS, 2 * RANGE_BYTES  # that one task takes
_BUCKET_RECORDS = 250_000  # of one bucket: some 30 MB of facts

Place = tuple[str, str, int, str]

# What is compared of records: the hash of each one's bytes; and of the games that may be kept what tells them apart.
# ``old``: it was in the data set that is being grown, and stays as it is.
CONTENTS = np.dtype([("content", "<u8", (2,)), ("ordinal", "<u8"), ("old", "?")])
FACTS = np.dtype([
    ("key", "<u8"), ("ordinal", "<u8"), ("opening", "<u8"), ("margin", "<f8"), ("komi", "<f8"), ("plies", "<u2"),
    ("size", "u1", (2,)), ("turn", "u1"), ("winner", "u1"), ("opens", "?"), ("old", "?"), ("marks", "u1"),
    ("mark_keys", "<u8", (len(MARKS),)),
])  # fmt: skip
_WINNERS = {None: 0, "B": 1, "W": 2, "draw": 3, "void": 4}


@dataclass(frozen=True, slots=True)
class RouteTask:
    """Route some pieces of parts, (part, number) each, into the file ``out``, a piece for each range; ``cuts``: the
    place at which each range but the first begins."""

    groups: tuple[tuple[str, int], ...]
    cuts: tuple[Place, ...]
    out: str


@dataclass(frozen=True, slots=True)
class OrderTask:
    """Put range ``number`` together from the files ``routed``: its table goes to ``out``, what is compared of it to
    ``facts`` (a piece of CONTENTS for each bucket, then one of FACTS). ``growth``: the number of this build."""

    number: int
    routed: tuple[str, ...]
    out: str
    facts: str
    buckets: int
    growth: int


def samples_of(table: pa.Table) -> list[list[Any]]:
    """Return some records of a part that stand for all of them: source, member, index and content of each, and for how
    many records and bytes it stands."""
    step = 256
    places = sorted(_places(table))[step // 2 :: step] or sorted(_places(table))[:1]
    share = len(places) or 1
    return [[*place, table.num_rows / share, table.nbytes / share] for place in places]


def _places(table: pa.Table) -> list[Place]:
    columns = (table.column(name).to_pylist() for name in ("source", "member", "index", "content"))
    # A loose file (no member) comes before any member.
    return [
        (source, member or "", index, content.hex()) for source, member, index, content in zip(*columns, strict=True)
    ]


def cuts_of(samples: Sequence[list[Any]]) -> tuple[Place, ...]:
    """Return where ranges begin, beside the first, so that each has about RANGE_RECORDS or RANGE_BYTES."""
    cuts: list[Place] = []
    records = size = 0.0
    for source, member, index, content, more_records, more_bytes in sorted(samples):
        if records and (records + more_records > RANGE_RECORDS or size + more_bytes > RANGE_BYTES):
            cuts.append((source, member, index, content))
            records = size = 0.0
        records += more_records
        size += more_bytes
    return tuple(cuts)


def grouped(parts: Sequence[str], pieces: Sequence[Sequence[Sequence[int]]]) -> list[tuple[tuple[str, int], ...]]:
    """Return the pieces that each routing task takes; ``pieces``: the rows and bytes of every piece of each part."""
    tasks: list[tuple[tuple[str, int], ...]] = []
    group: list[tuple[str, int]] = []
    records = size = 0
    for part, measures in zip(parts, pieces, strict=True):
        for number, (more_records, more_bytes) in enumerate(measures):
            if group and (records + more_records > _ROUTED_RECORDS or size + more_bytes > _ROUTED_BYTES):
                tasks.append(tuple(group))
                group, records, size = [], 0, 0
            group.append((part, number))
            records += more_records
            size += more_bytes
    return [*tasks, tuple(group)] if group else tasks


def bucket_count(records: int) -> int:
    """Return into how many buckets the facts of so many records go."""
    return 1 + records // _BUCKET_RECORDS


def route_part(task: RouteTask) -> dict[str, int]:
    """Run a RouteTask. Raises DamagedWork, OSError."""
    pieces: list[list[pa.Table]] = [[] for _ in range(len(task.cuts) + 1)]
    for part, group in task.groups:
        table = whole_table(part, group)
        goals = np.array([bisect_right(task.cuts, place) for place in _places(table)], dtype=np.int64)
        for goal in np.unique(goals).tolist():
            pieces[goal].append(table.take(pa.array(np.flatnonzero(goals == goal))))
    write_pieces(task.out, [pa.concat_tables(tables).combine_chunks() if tables else None for tables in pieces])
    return {}


def order_range(task: OrderTask) -> dict[str, int]:
    """Run an OrderTask; return how many ``records`` there are, how many are ``new``, and how many of these may be kept
    (``candidates``)."""
    table = pa.concat_tables([PART_SCHEMA.empty_table(), *read_tables(task.routed, task.number)])
    # Arrow compares strings by their bytes.
    keyed = table.select(["source", "index", "content"]).append_column("member", pc.fill_null(table["member"], ""))
    keys = [(name, "ascending") for name in ("source", "member", "index", "content")]
    table = table.take(pc.sort_indices(keyed, sort_keys=keys)).combine_chunks()
    write_pieces(task.out, [table])
    old = table.column("growth").to_numpy() < task.growth
    ordinals = ordinals_of(task.number, np.arange(table.num_rows))
    contents = np.zeros(table.num_rows, dtype=CONTENTS)
    contents["content"] = np.frombuffer(b"".join(table.column("content").to_pylist()), dtype="<u8").reshape(-1, 2)
    contents["ordinal"], contents["old"] = ordinals, old
    rows = np.flatnonzero(pc.equal(table.column("status"), Status.KEPT.value).to_numpy())
    facts = _facts(table.select([*KEYS.names, *_COMPARED]).take(pa.array(rows)), ordinals[rows], old[rows])
    write_pieces(
        task.facts,
        [
            *routed(contents, bucket_of(contents["content"][:, 0], task.buckets), task.buckets),
            *routed(facts, bucket_of(facts["key"], task.buckets), task.buckets),
        ],
    )
    return {"records": table.num_rows, "new": int((~old).sum()), "candidates": int((~old[rows]).sum())}


_COMPARED = ("plies", "board_rows", "board_cols", "winner", "margin", "komi")


def _facts(games: pa.Table, ordinals: NDArray[np.uint64], old: NDArray[np.bool_]) -> NDArray[Any]:
    """Return FACTS of games that may be kept."""
    facts = np.zeros(games.num_rows, dtype=FACTS)
    facts["ordinal"], facts["old"] = ordinals, old
    for name, column in (("key", "game_key"), ("turn", "game_turn"), ("plies", "plies")):
        facts[name] = games.column(column).to_numpy()
    for name in ("margin", "komi"):
        facts[name] = games.column(name).to_numpy()  # NaN where it is not known
    facts["size"] = np.stack([games.column(name).to_numpy() for name in ("board_rows", "board_cols")], axis=1)
    facts["winner"] = [_WINNERS[winner] for winner in games.column("winner").to_pylist()]
    facts["opens"] = pc.is_valid(games.column("opening_key")).to_numpy()
    facts["opening"] = pc.fill_null(games.column("opening_key"), 0).to_numpy()
    marks = games.column("mark_keys")
    facts["marks"] = counts = pc.fill_null(pc.list_value_length(marks), 0).to_numpy()
    facts["mark_keys"][np.arange(len(MARKS)) < np.asarray(counts)[:, None]] = pc.list_flatten(marks).to_numpy()
    return facts


def ordinals_of(number: int, rows: NDArray[Any]) -> NDArray[np.uint64]:
    """Return uint64[N]: the ordinals of rows of range ``number``."""
    return np.uint64(number << 32) | rows.astype(np.uint64)


def ranges_of(ordinals: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return int64[N]: the ranges of records."""
    return (ordinals >> np.uint64(32)).astype(np.int64)


def rows_of(ordinals: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return int64[N]: the rows of records in their ranges."""
    return (ordinals & np.uint64(0xFFFFFFFF)).astype(np.int64)
