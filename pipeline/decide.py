"""What becomes of each record: its id, whether it repeats another, its part and its block. One range at a time.

Everything here depends on the records and the configuration alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pipeline import dedup
from pipeline.compare import NEAR, PREFIX, RANKS, REPEATS
from pipeline.config import Config
from pipeline.ordering import ordinals_of, ranges_of, rows_of
from pipeline.pieces import bucket_of, joined_records, read_records, whole_table, write_pieces
from pipeline.reasons import Flag, Status
from pipeline.table import GAME_COLUMNS, KEYS, PART_SCHEMA
from pipeline.words import Words, chain_words, seed_word

_VERDICTS = {
    dedup.DUPLICATE: Status.DUPLICATE,
    dedup.CONFLICTING: Status.CONFLICTING,
    PREFIX: Status.DUPLICATE,
    NEAR: Status.DUPLICATE,
}
_PHRASES = {
    dedup.DUPLICATE: "duplicate of",
    dedup.CONFLICTING: "conflicting of",
    PREFIX: Flag.PREFIX_OF.value,
    NEAR: Flag.NEAR_DUPLICATE_OF.value,
}
_FLAGS = {PREFIX: Flag.PREFIX_OF, NEAR: Flag.NEAR_DUPLICATE_OF}
_BLOCK_COLUMNS = (
    "game", "plies", *GAME_COLUMNS, "winner", "margin", "result_kind", "split", "source", "member", "black_rank",
    "white_rank",
)  # fmt: skip
_IDS = np.dtype("<u8")


@dataclass(frozen=True, slots=True)
class NameTask:
    """Work out the ids of range ``number``, whose table is ``table``, into ``out``."""

    number: int
    table: str
    compared: tuple[str, ...]
    out: str
    growth: int


def name_range(task: NameTask) -> dict[str, int]:
    """Run a NameTask. Raises DamagedWork, OSError."""
    table = whole_table(task.table).select(["game", "growth", "content"])
    contents = np.frombuffer(b"".join(table.column("content").to_pylist()), dtype="<u8").reshape(-1, 2)
    found = joined_records(task.compared, task.number, RANKS)
    ranks = np.zeros(table.num_rows, dtype=np.int64)
    ranks[rows_of(found["ordinal"])] = found["rank"]
    ids = dedup.game_ids(contents.astype(np.uint64), ranks)
    old = table.column("growth").to_numpy() < task.growth
    ids[old] = table.column("game").filter(pa.array(old)).to_numpy()
    write_pieces(task.out, [ids.astype(_IDS)])
    return {}


@dataclass(frozen=True, slots=True)
class DecideTask:
    """Decide about the records of range ``number``: its table as it is published (``rows`` apart) goes to ``out``, its
    new kept games to ``kept``, a piece for each of ``blocks``."""

    number: int
    tables: tuple[str, ...]
    ids: tuple[str, ...]
    compared: tuple[str, ...]
    near: str | None
    out: str
    kept: str
    blocks: int
    growth: int
    config: Config


def decide_range(task: DecideTask) -> dict[str, int]:
    """Run a DecideTask; return how many new games are ``kept`` and their ``plies``. Raises DamagedWork, OSError."""
    table = whole_table(task.tables[task.number])
    ids = _ids_of(task, task.number)
    table = _set(table, "game", pa.array(ids, pa.uint64()))
    new = table.column("growth").to_numpy() == task.growth
    rows = np.flatnonzero(new & pc.equal(table.column("status"), Status.KEPT.value).to_numpy())
    table = _set(table, "split", pa.array(_splits(table, rows, task.config), pa.string()))
    table = _marked(table, _repeats_of(task), task)
    write_pieces(task.out, [table.drop_columns(KEYS.names).combine_chunks()])
    chosen = new & pc.equal(table.column("status"), Status.KEPT.value).to_numpy()
    rows = np.flatnonzero(chosen)
    games = table.select(_BLOCK_COLUMNS).take(pa.array(rows))
    games = games.append_column("ordinal", pa.array(ordinals_of(task.number, rows)))
    goals = bucket_of(chain_words(seed_word("block"), ids[rows]), task.blocks)
    pieces = [games.take(pa.array(np.flatnonzero(goals == block))).combine_chunks() for block in range(task.blocks)]
    # A block that no game falls into needs a table too: the first range has one for every block.
    write_pieces(task.kept, [piece if piece.num_rows or task.number == 0 else None for piece in pieces])
    return {"kept": games.num_rows, "plies": int(games.column("plies").to_numpy().sum(dtype=np.int64))}


def _ids_of(task: DecideTask, number: int) -> Words:
    return joined_records([task.ids[number]], 0, _IDS).astype(np.uint64)


def _splits(table: pa.Table, rows: NDArray[np.int64], config: Config) -> NDArray[Any]:
    """Return the split of every record: of a new game that may be kept by its first moves."""
    keys = table.column("split_key").take(pa.array(rows)).to_numpy()
    split = np.array(table.column("split").to_pylist(), dtype=object)
    parts = dedup.split_games(keys, config.split.val, config.split.test, config.split.seed)
    split[rows] = np.array(dedup.PARTS, dtype=object)[parts]
    return split


def _repeats_of(task: DecideTask) -> NDArray[Any]:
    """Return the REPEATS of the range, by ordinal."""
    start = len(task.tables)
    found = read_records(task.compared, start + task.number, REPEATS)
    if task.near is not None:
        found += read_records([task.near], task.number, REPEATS)
    repeats = np.concatenate(found)
    return repeats[np.argsort(repeats["ordinal"])]


def _chains(repeats: NDArray[Any], task: DecideTask) -> list[list[tuple[int, int]]]:
    """Return for each repeat the games that lead to one that is kept: (kind, ordinal) one after the other.

    A game that others repeat move by move is itself left out only if it is nearly the same as yet another.
    """
    chains = [[(kind, of)] for _, of, kind, _ in repeats.tolist()]
    if task.near is None or task.config.dedup.near == "keep":
        return chains
    pointers = joined_records([task.near], len(task.tables), REPEATS)
    for chain in chains:
        at = chain[-1][1]
        while (place := np.searchsorted(pointers["ordinal"], np.uint64(at))) < len(pointers):
            if pointers["ordinal"][place] != at:
                break
            at = int(pointers["of"][place])
            chain.append((int(pointers["kind"][place]), at))
    return chains


def _marked(table: pa.Table, repeats: NDArray[Any], task: DecideTask) -> pa.Table:
    """Return the table with status, detail, flags and ``duplicate_of`` of the repeats."""
    if len(repeats) == 0:
        return table
    chains = _chains(repeats, task)
    known = _described({goal for chain in chains for _, goal in chain}, task)
    columns = {name: table.column(name).to_pylist() for name in ("status", "detail", "duplicate_of", "flags")}
    for row, repeat, chain in zip(rows_of(repeats["ordinal"]).tolist(), repeats, chains, strict=True):
        kind = int(repeat["kind"])
        columns["detail"][row] = ", ".join(f"{_PHRASES[by]} {known[goal][0]}" for by, goal in chain)
        columns["duplicate_of"][row] = known[chain[-1][1]][1]
        if kind < PREFIX or task.config.dedup.near == "drop":
            columns["status"][row] = _VERDICTS[kind].value
        if kind in _FLAGS or repeat["turned"]:
            columns["flags"][row] = sorted([*columns["flags"][row], _FLAGS.get(kind, Flag.TURNED_COPY).value])
    for name, values in columns.items():
        table = _set(table, name, pa.array(values, PART_SCHEMA.field(name).type))
    return table


def _described(goals: set[int], task: DecideTask) -> dict[int, tuple[str, int]]:
    """Return the name and the id of records anywhere in the table, one range after the other."""
    ordinals = np.array(sorted(goals), dtype=np.uint64)
    known: dict[int, tuple[str, int]] = {}
    for number in np.unique(ranges_of(ordinals)).tolist():
        mine = ordinals[ranges_of(ordinals) == number]
        named = whole_table(task.tables[number]).select(["source", "member", "index"]).take(pa.array(rows_of(mine)))
        ids = _ids_of(task, number)[rows_of(mine)].tolist()
        known |= dict(zip(mine.tolist(), zip(_names(named), ids, strict=True), strict=True))
    return known


def _names(table: pa.Table) -> list[str]:
    """Return how a person would name each record: source, member, and ordinal where it is not the first."""
    columns = (table.column(name).to_pylist() for name in ("source", "member", "index"))
    return [
        source + (f"/{member}" if member is not None else "") + (f" game {index + 1}" if index else "")
        for source, member, index in zip(*columns, strict=True)
    ]


def _set(table: pa.Table, name: str, values: Any) -> pa.Table:
    return table.set_column(table.schema.get_field_index(name), PART_SCHEMA.field(name), values)


def rows_filled_in(table: pa.Table, rows: Sequence[NDArray[Any]], growth: int) -> pa.Table:
    """Return a table as it is published: ``rows`` uint32 of the games of this build, from pieces of ROWS_OF_GAME."""
    counts = table.column("rows").to_numpy(zero_copy_only=False)
    found = np.where(table.column("growth").to_numpy() == growth, 0, np.nan_to_num(counts)).astype(np.uint32)
    for piece in rows:
        found[rows_of(piece["ordinal"])] = piece["rows"]
    return _set(table, "rows", pa.array(found, pa.uint32()))
