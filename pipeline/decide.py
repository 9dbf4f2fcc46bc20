"""Between reading and encoding: ids, duplicates, split and block of every game.

Takes the parts of the game table, gives the whole table in its published order, and one file of games a
block. Everything here depends on the records and the configuration alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from pipeline import dedup, near
from pipeline.blocks import write_arrow
from pipeline.config import Config
from pipeline.reasons import Flag, Status
from pipeline.table import KEYS, OPENING_PLIES, PART_SCHEMA, games_of
from pipeline.words import chain_words, seed_word

_WINNERS = {None: 0, "B": 1, "W": 2, "draw": 3, "void": 4}
# Kinds of repeats beside the verdicts of ``dedup.dedup_games``.
_PREFIX, _NEAR = 3, 4
_VERDICTS = {
    dedup.DUPLICATE: Status.DUPLICATE,
    dedup.CONFLICTING: Status.CONFLICTING,
    _PREFIX: Status.DUPLICATE,
    _NEAR: Status.DUPLICATE,
}
_PHRASES = {
    dedup.DUPLICATE: "duplicate of",
    dedup.CONFLICTING: "conflicting of",
    _PREFIX: Flag.PREFIX_OF.value,
    _NEAR: Flag.NEAR_DUPLICATE_OF.value,
}
_FLAGS = {_PREFIX: Flag.PREFIX_OF, _NEAR: Flag.NEAR_DUPLICATE_OF}
# Of a table: its pieces in one chunk, far below the 2 GiB of text that an Arrow array can hold, and the rows
# looked for in them at once (a record may have 100 kB of texts).
_PIECE_BYTES = 2**29
_ROWS_AT_ONCE = 2**13
_COMPARED = (
    "game", "source", "member", "index", "plies", "board_rows", "board_cols", "setup_plies", "setup_points",
    "setup_colours", "moves", "colours", "komi", "rules", "handicap", "winner", "margin", *KEYS.names,
)  # fmt: skip
_BLOCK_COLUMNS = (
    "game", "plies", "board_rows", "board_cols", "setup_plies", "setup_points", "setup_colours", "moves", "colours",
    "komi", "rules", "handicap", "winner", "margin", "result_kind", "split", "source", "member", "black_rank",
    "white_rank",
)  # fmt: skip


def whole_table(parts: Sequence[str]) -> pa.Table:
    """Return all records in the order of (source, member, index, content), ids filled in."""
    tables = [pq.read_table(f"{part}.parquet", schema=PART_SCHEMA) for part in parts]
    table = pa.concat_tables(tables) if tables else PART_SCHEMA.empty_table()
    # Arrow compares strings by their bytes; a loose file (member null) comes before any member.
    keyed = table.select(["source", "index", "content"]).append_column("member", pc.fill_null(table["member"], ""))
    keys = [(name, "ascending") for name in ("source", "member", "index", "content")]
    order = pc.sort_indices(keyed, sort_keys=keys)
    table = take_rows(table, order.to_numpy().astype(np.int64))
    contents = np.frombuffer(b"".join(table.column("content").to_pylist()), dtype="<u8").reshape(-1, 2)
    return _set(table, "game", pa.array(dedup.game_ids(contents.astype(np.uint64)), pa.uint64()))


def take_rows(table: pa.Table, rows: NDArray[np.int64]) -> pa.Table:
    """Return the rows of those numbers, in their order.

    Arrow's ``take`` makes one array of a column first, which holds no more than 2 GiB of text: here it is never
    given more than a piece of the table. The result is in one piece where it is small enough.
    """
    pieces = _pieces(table)
    starts = np.cumsum([0, *(piece.num_rows for piece in pieces)])
    found = [table.schema.empty_table()]
    for first in range(0, len(rows), _ROWS_AT_ONCE):
        chosen = rows[first : first + _ROWS_AT_ONCE]
        of_piece = np.searchsorted(starts, chosen, side="right") - 1
        order = np.argsort(of_piece, kind="stable")
        numbers, begins = np.unique(of_piece[order], return_index=True)
        within = np.split((chosen - starts[of_piece])[order], begins[1:])
        taken = [pieces[number].take(pa.array(part)) for number, part in zip(numbers, within, strict=True)]
        together = pa.concat_tables(taken).combine_chunks()
        found.append(together if len(taken) == 1 else together.take(pa.array(np.argsort(order))))
    whole = pa.concat_tables(found)
    return whole.combine_chunks() if whole.nbytes < _PIECE_BYTES else whole


def _pieces(table: pa.Table) -> list[pa.Table]:
    """Return a table cut into pieces of about ``_PIECE_BYTES``, each in one chunk."""
    pieces: list[pa.Table] = []
    group: list[pa.RecordBatch] = []
    size = 0
    for batch in table.to_batches(max_chunksize=_ROWS_AT_ONCE):
        group.append(batch)
        size += batch.nbytes
        if size >= _PIECE_BYTES:
            pieces.append(pa.Table.from_batches(group).combine_chunks())
            group, size = [], 0
    return pieces + ([pa.Table.from_batches(group).combine_chunks()] if group else [])


def decide_games(table: pa.Table, config: Config) -> pa.Table:
    """Return the table with duplicates marked, and the split of every kept, duplicate and conflicting game."""
    status = table.column("status").to_numpy(zero_copy_only=False)
    candidates = np.flatnonzero(status == Status.KEPT.value)
    chosen = take_rows(table.select(_COMPARED), candidates)
    split = np.full(table.num_rows, None, dtype=object)
    split_keys = chosen.column("split_key").to_numpy()
    parts = dedup.split_games(split_keys, config.split.val, config.split.test, config.split.seed)
    split[candidates] = np.array(dedup.PARTS, dtype=object)[parts]
    table = _set(table, "split", pa.array(split, pa.string()))
    if not config.dedup.games:
        return table
    return _marked(table, candidates, chosen, _repeats(chosen), config.dedup.near == "drop")


@dataclass(frozen=True, slots=True)
class _Repeats:
    """How games repeat others: ``kind`` int8[G] (dedup.KEPT: not at all), the number ``of`` int64[G] of the
    other game (-1: none), and bool[G] whether an exact copy had to be turned."""

    kind: NDArray[np.int8]
    of: NDArray[np.int64]
    turned: NDArray[np.bool_]


def _repeats(games: pa.Table) -> _Repeats:
    """Compare games with each other, those that are no exact copies also for being nearly the same."""
    kind, of = dedup.dedup_games(games.column("game_key").to_numpy(), _outcomes(games))
    turns = games.column("game_turn").to_numpy()
    turned = turns != turns[of]
    alone = np.flatnonzero(kind == dedup.KEPT)
    of[alone] = -1
    others = take_rows(games, alone)
    plies = others.column("plies").to_numpy().astype(np.int64)
    prefix_of = _prefixes(others, plies)
    mark_keys, counts = others.column("mark_keys"), pc.list_value_length(others.column("mark_keys"))
    cluster = near.clusters(pc.list_flatten(mark_keys).to_numpy(), counts.to_numpy().astype(np.int64))
    known = pc.is_valid(others.column("winner")).to_numpy()
    for code, found in ((_PREFIX, prefix_of), (_NEAR, near.near_games(cluster, prefix_of, known, plies))):
        mine = found >= 0
        kind[alone[mine]], of[alone[mine]] = code, alone[found[mine]]
    return _Repeats(kind, of, turned)


def _prefixes(games: pa.Table, plies: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return which game each one is a prefix of: only those that share an opening are looked at."""
    prefix_of = np.full(games.num_rows, -1, dtype=np.int64)
    long = np.flatnonzero(plies >= OPENING_PLIES)
    openings = games.column("opening_key").take(pa.array(long)).to_numpy()
    alike = long[near.repeated(openings)]
    if len(alike):
        table = take_rows(games, alike)
        found = near.prefix_games(games_of(table), plies[alike], table.column("game_key").to_numpy(), OPENING_PLIES)
        prefix_of[alike[found >= 0]] = alike[found[found >= 0]]
    return prefix_of


def _marked(table: pa.Table, rows: NDArray[np.int64], games: pa.Table, repeats: _Repeats, drop_near: bool) -> pa.Table:
    """Return the table with status, detail, flags and ``duplicate_of`` of the repeats among ``games``, its ``rows``."""
    dropped = repeats.kind != dedup.KEPT
    if not drop_near:
        dropped &= repeats.kind < _PREFIX
    status, detail, flags = (table.column(name).to_pylist() for name in ("status", "detail", "flags"))
    ids, other = table.column("game").to_numpy(), np.full(table.num_rows, None, dtype=object)
    repeating = np.flatnonzero(repeats.of >= 0)
    goals = np.unique(repeats.of[repeating])
    names = dict(
        zip(goals.tolist(), _names(take_rows(games.select(["source", "member", "index"]), goals)), strict=True)
    )
    for number in repeating.tolist():
        at, words = number, []
        while at == number or dropped[at]:  # what a game points to is kept
            goal = int(repeats.of[at])
            words.append(f"{_PHRASES[int(repeats.kind[at])]} {names[goal]}")
            at = goal
        row = rows[number]
        detail[row], other[row] = ", ".join(words), ids[rows[at]]
        if dropped[number]:
            status[row] = _VERDICTS[int(repeats.kind[number])].value
        if repeats.kind[number] in _FLAGS or repeats.turned[number]:
            flags[row] = sorted([*flags[row], _FLAGS.get(int(repeats.kind[number]), Flag.TURNED_COPY).value])
    for name, values in (("status", status), ("detail", detail), ("duplicate_of", other), ("flags", flags)):
        table = _set(table, name, pa.array(values, PART_SCHEMA.field(name).type))
    return table


def _names(table: pa.Table) -> list[str]:
    """Return how a person would name each record: source, member, and ordinal where it is not the first."""
    columns = (table.column(name).to_pylist() for name in ("source", "member", "index"))
    return [
        source + (f"/{member}" if member is not None else "") + (f" game {index + 1}" if index else "")
        for source, member, index in zip(*columns, strict=True)
    ]


def _outcomes(table: pa.Table) -> dedup.Outcomes:
    return dedup.Outcomes(
        np.array([_WINNERS[winner] for winner in table.column("winner").to_pylist()], dtype=np.int8),
        table.column("margin").to_numpy(zero_copy_only=False).astype(np.float64),
        table.column("komi").to_numpy(zero_copy_only=False).astype(np.float64),
    )


def _set(table: pa.Table, name: str, values: Any) -> pa.Table:
    return table.set_column(table.schema.get_field_index(name), PART_SCHEMA.field(name), values)


def write_blocks(table: pa.Table, config: Config, folder: Path) -> list[str]:
    """Write the kept games into one file a block, in the order of (size, id); return the files.

    A game's block is a keyed hash of its id; the number of blocks follows from the number of kept games.
    """
    kept = table.filter(pc.equal(table.column("status"), Status.KEPT.value)).select(_BLOCK_COLUMNS)
    count = -(-kept.num_rows // config.output.games_per_block)
    order = [(name, "ascending") for name in ("board_rows", "board_cols", "game")]
    kept = kept.sort_by(order).combine_chunks()
    ids = kept.column("game").to_numpy()
    block = ((chain_words(seed_word("block"), ids) >> np.uint64(32)) * np.uint64(count)) >> np.uint64(32)
    paths = []
    for number in range(count):
        path = str(folder / f"games-{number:05d}.arrow")
        write_arrow(path, kept.take(pa.array(np.flatnonzero(block == number))))
        paths.append(path)
    return paths


def published_table(table: pa.Table, rows_of_game: dict[int, int]) -> pa.Table:
    """Return the table as it is published: ``rows`` filled in, the keys of the decisions left out."""
    rows = [rows_of_game.get(game, 0) for game in table.column("game").to_pylist()]
    return _set(table, "rows", pa.array(rows, pa.uint32())).drop_columns(KEYS.names)
