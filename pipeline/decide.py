"""Between reading and encoding: ids, duplicates, split and block of every game, then the fate of every position.

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

from pipeline import dedup
from pipeline.blocks import ShardPlan, images_of, read_arrow, write_arrow
from pipeline.config import Config
from pipeline.reasons import Status
from pipeline.table import KEYS, PART_SCHEMA
from pipeline.words import Words, chain_words, seed_word

_WINNERS = {None: 0, "B": 1, "W": 2, "draw": 3, "void": 4}
_VERDICTS = {dedup.DUPLICATE: Status.DUPLICATE, dedup.CONFLICTING: Status.CONFLICTING}
_BLOCK_COLUMNS = (
    "game", "plies", "board_rows", "board_cols", "setup_plies", "setup_points", "setup_colours", "moves", "colours",
    "komi", "rules", "winner", "margin", "result_kind", "split",
)  # fmt: skip


def whole_table(parts: Sequence[str]) -> pa.Table:
    """Return all records in the order of (source, member, index, content), ids filled in."""
    tables = [pq.read_table(f"{part}.parquet", schema=PART_SCHEMA) for part in parts]
    table = pa.concat_tables(tables) if tables else PART_SCHEMA.empty_table()
    # Arrow compares strings by their bytes; a loose file (member null) comes before any member.
    keyed = table.select(["source", "index", "content"]).append_column("member", pc.fill_null(table["member"], ""))
    keys = [(name, "ascending") for name in ("source", "member", "index", "content")]
    order = pc.sort_indices(keyed, sort_keys=keys)
    table = table.take(order).combine_chunks()
    contents = np.frombuffer(b"".join(table.column("content").to_pylist()), dtype="<u8").reshape(-1, 2)
    return _set(table, "game", pa.array(dedup.game_ids(contents.astype(np.uint64)), pa.uint64()))


def decide_games(table: pa.Table, config: Config) -> pa.Table:
    """Return the table with duplicates marked, and the split of every kept, duplicate and conflicting game."""
    status = table.column("status").to_numpy(zero_copy_only=False)
    candidates = np.flatnonzero(status == Status.KEPT.value)
    chosen = table.take(pa.array(candidates))
    split = np.full(table.num_rows, None, dtype=object)
    split_keys = chosen.column("split_key").to_numpy()
    parts = dedup.split_games(split_keys, config.split.val, config.split.test, config.split.seed)
    split[candidates] = np.array(dedup.PARTS, dtype=object)[parts]
    table = _set(table, "split", pa.array(split, pa.string()))
    if not config.dedup.games:
        return table
    verdict, kept = dedup.dedup_games(chosen.column("game_key").to_numpy(), _outcomes(chosen))
    ids = table.column("game").to_numpy()
    status = status.copy()
    detail, other = table.column("detail").to_pylist(), np.full(table.num_rows, None, dtype=object)
    names = _names(chosen.take(pa.array(kept[verdict != dedup.KEPT])))
    for number, name in zip(np.flatnonzero(verdict != dedup.KEPT), names, strict=True):
        row = candidates[number]
        status[row] = _VERDICTS[int(verdict[number])].value
        detail[row] = f"{status[row]} of {name}"
        other[row] = ids[candidates[kept[number]]]
    for name, values in (("status", status), ("detail", detail), ("duplicate_of", other)):
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


@dataclass(frozen=True, slots=True)
class Decided:
    """The fate of all positions: of each block the shards, the positions kept and the rows (their images);
    of all the positions stored, merged and overlapping; and the rows of each game id."""

    plans: list[tuple[ShardPlan, ...]]
    positions: list[int]
    rows: list[int]
    stored: int
    merged: int
    overlap: int
    rows_of_game: dict[int, int]


def decide_positions(games: Sequence[str], keys: Sequence[str], rows: Sequence[str], config: Config) -> Decided:
    """Deduplicate the positions of all blocks; write the kept rows of each block to ``rows``.

    ``games``, ``keys`` and ``rows`` are files, one a block. 26 bytes a position are held in memory.
    """
    blocks = [_located(read_arrow(game), read_arrow(key)) for game, key in zip(games, keys, strict=True)]
    lengths = [len(block.keys) for block in blocks]
    ids = _joined([block.ids for block in blocks], np.uint64)
    plies = _joined([block.plies for block in blocks], np.uint16)
    order = np.lexsort((plies, ids))
    fate = dedup.dedup_positions(
        _joined([block.keys for block in blocks], np.uint64)[order],
        _joined([block.parts for block in blocks], np.int8)[order],
        "off" if config.dedup.positions == "off" else "first",
        config.split.overlap,
    )
    kept, weight = np.empty_like(fate.kept), np.empty_like(fate.weight)
    kept[order], weight[order] = fate.kept, fate.weight
    plans: list[tuple[ShardPlan, ...]] = []
    next_shard = [0] * len(dedup.PARTS)
    images: list[NDArray[np.int64]] = []
    start = 0
    for block, length, key_file, row_file in zip(blocks, lengths, keys, rows, strict=True):
        chosen = np.flatnonzero(kept[start : start + length])
        table = read_arrow(key_file).take(pa.array(chosen))
        table = table.append_column("weight", pa.array(weight[start : start + length][chosen]))
        table = table.append_column("part", pa.array(block.parts[chosen]))
        write_arrow(row_file, table)
        count = images_of(config, block.rows[chosen], block.cols[chosen])
        images.append(count)
        plans.append(_plan(block.parts[chosen], count, next_shard, config.output.rows_per_shard))
        start += length
    stored = int(kept.sum())
    unique, inverse = np.unique(ids[kept], return_inverse=True)
    totals = np.bincount(inverse, weights=_joined(images, np.int64), minlength=len(unique)).astype(np.int64)
    return Decided(
        plans,
        [len(count) for count in images],
        [int(count.sum()) for count in images],
        stored,
        fate.merged,
        fate.overlap,
        dict(zip(unique.tolist(), totals.tolist(), strict=True)),
    )


@dataclass(frozen=True, slots=True)
class _Block:
    """What decides about the positions of a block, per position."""

    keys: Words
    ids: Words
    plies: NDArray[np.uint16]
    parts: NDArray[np.int8]
    rows: NDArray[np.uint8]
    cols: NDArray[np.uint8]


def _located(games: pa.Table, keys: pa.Table) -> _Block:
    game = keys.column("game").to_numpy()
    part = np.array([dedup.PARTS.index(split) for split in games.column("split").to_pylist()], dtype=np.int8)
    return _Block(
        keys.column("key").to_numpy(),
        games.column("game").to_numpy()[game],
        keys.column("ply").to_numpy(),
        part[game],
        games.column("board_rows").to_numpy()[game],
        games.column("board_cols").to_numpy()[game],
    )


def _joined(arrays: Sequence[NDArray[Any]], dtype: Any) -> NDArray[Any]:
    return np.concatenate(arrays) if arrays else np.zeros(0, dtype=dtype)


def _plan(
    parts: NDArray[np.int8], images: NDArray[np.int64], next_shard: list[int], rows_per_shard: int
) -> tuple[ShardPlan, ...]:
    """Number the shards of a block: as few as hold its rows, of nearly equal size; advances ``next_shard``."""
    plans = []
    for part in range(len(dedup.PARTS)):
        total = int(images[parts == part].sum())
        shards = -(-total // rows_per_shard)
        if shards:
            plans.append(ShardPlan(part, next_shard[part], shards))
            next_shard[part] += shards
    return tuple(plans)


def published_table(table: pa.Table, rows_of_game: dict[int, int]) -> pa.Table:
    """Return the table as it is published: ``rows`` filled in, the keys of the decisions left out."""
    rows = [rows_of_game.get(game, 0) for game in table.column("game").to_pylist()]
    return _set(table, "rows", pa.array(rows, pa.uint32())).drop_columns(KEYS.names)
