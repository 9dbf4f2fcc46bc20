"""Which positions become rows, and with what labels: the fate of every position of a build.

Takes the files of keys that the index stage wrote, one a block, and writes for each block the rows it keeps. In
``aggregate`` mode a row stands for all equal positions of its part, each turned into the orientation of
the one that represents them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline import dedup, symmetry
from pipeline.augment import turn_moves
from pipeline.blocks import ShardPlan, read_arrow, stored_images, write_arrow
from pipeline.columns import spans
from pipeline.config import Config
from pipeline.weights import game_weights

# The plies by which the report says how much of val and test was left out: first ply of each band.
BANDS = (0, 10, 30, 100)
_BAND_NAMES = ("0-9", "10-29", "30-99", "100+")


@dataclass(frozen=True, slots=True)
class Decided:
    """The fate of all positions: of each block the shards, the positions kept and the rows (their images);
    of all the positions stored, merged and overlapping; the rows of each game id; and by band of plies the
    positions of val and test, and how many of them are overlap."""

    plans: list[tuple[ShardPlan, ...]]
    positions: list[int]
    rows: list[int]
    stored: int
    merged: int
    overlap: int
    rows_of_game: dict[int, int]
    held_out: dict[str, int]
    left_out: dict[str, int]


@dataclass(frozen=True, slots=True)
class Sampled:
    """All sampled positions, one array entry each: what decides about them."""

    key: NDArray[np.uint64]
    key_hi: NDArray[np.uint64]
    game: NDArray[np.uint64]
    ply: NDArray[np.uint16]
    part: NDArray[np.int8]
    rows: NDArray[np.uint8]
    cols: NDArray[np.uint8]
    turn: NDArray[np.uint8]
    fixed: NDArray[np.uint8]
    move: NDArray[np.int16]
    outcome: NDArray[np.int8]
    weight: NDArray[np.float32]

    def take(self, order: NDArray[np.int64]) -> "Sampled":
        """Return the positions in another order."""
        return Sampled(*(getattr(self, name)[order] for name in self.__slots__))


def located(games: pa.Table, keys: pa.Table, config: Config) -> dict[str, NDArray[Any]]:
    """Return the arrays of ``Sampled`` for the positions ``keys`` of the table ``games``."""
    number = keys.column("game").to_numpy()
    part = np.array([dedup.PARTS.index(split) for split in games.column("split").to_pylist()], dtype=np.int8)
    return {
        name: keys.column(name).to_numpy() for name in ("key", "key_hi", "ply", "turn", "fixed", "move", "outcome")
    } | {
        "game": games.column("game").to_numpy()[number],
        "part": part[number],
        "rows": games.column("board_rows").to_numpy()[number],
        "cols": games.column("board_cols").to_numpy()[number],
        "weight": game_weights(games, config.sample.weights)[number],
    }


def joined(pieces: Sequence[dict[str, NDArray[Any]]]) -> Sampled:
    """Return the positions of several tables of games in one."""
    if not pieces:
        return Sampled(*(np.zeros(0, dtype=dtype) for dtype in _DTYPES))
    return Sampled(*(np.concatenate([piece[name] for piece in pieces]) for name in Sampled.__slots__))


_DTYPES = ("u8", "u8", "u8", "u2", "i1", "u1", "u1", "u1", "u1", "i2", "i1", "f4")


def by_game_and_ply(game: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the order of (game id, ply) of positions whose games come one after the other, plies rising."""
    starts = np.flatnonzero(np.concatenate([[True], game[1:] != game[:-1]])[: len(game)])
    lengths = np.diff(np.append(starts, len(game)))
    rank = np.argsort(game[starts], kind="stable")
    return spans(starts[rank], lengths[rank])


@dataclass(frozen=True, slots=True)
class Labels:
    """What the kept positions stand for, one entry each: ``move`` int16 (the most played), the counts
    ``policy_moves`` int16 and ``policy_counts`` uint32 of row i at ``offsets[i] : offsets[i + 1]``, and the
    number of wins, draws and losses uint32 of the side to move."""

    move: NDArray[np.int16]
    offsets: NDArray[np.int64]
    policy_moves: NDArray[np.int16]
    policy_counts: NDArray[np.uint32]
    wins: NDArray[np.uint32]
    draws: NDArray[np.uint32]
    losses: NDArray[np.uint32]


def aggregate(positions: Sampled, leader: NDArray[np.int64], frame_cols: int) -> Labels:
    """Return the labels of the kept positions (those that lead themselves), in their order.

    ``leader`` int64[N]: the position that each one is merged into, -1 for none. Each occurrence adds 1 to
    its move, turned into the leader's orientation; where the leader is its own image under some symmetries,
    to the image of the move under each of them. Ties go to the smallest index.
    """
    own = np.arange(len(leader))
    kept = np.flatnonzero(leader == own)
    row_of = np.empty(len(leader), dtype=np.int64)
    row_of[kept] = np.arange(len(kept))
    # Most positions stand for themselves alone and have no symmetry: their one move needs no turning.
    several = np.zeros(len(kept), dtype=np.bool_)
    several[row_of[leader[(leader >= 0) & (leader != own)]]] = True
    several |= positions.fixed[kept] != 1
    members = np.flatnonzero(leader >= 0)
    members = members[several[row_of[leader[members]]]]
    row, move, counts = _turned_moves(positions, leader, row_of, members, frame_cols)
    lengths = np.where(several, 0, 1)
    lengths += np.bincount(row, minlength=len(kept))
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    policy_moves = np.empty(offsets[-1], dtype=np.int16)
    policy_counts = np.ones(offsets[-1], dtype=np.uint32)
    alone = offsets[:-1][~several]
    policy_moves[alone] = positions.move[kept[~several]]
    entries = spans(offsets[:-1][several], lengths[several])
    policy_moves[entries], policy_counts[entries] = move, counts
    outcome, row = positions.outcome[leader >= 0], row_of[leader[leader >= 0]]
    return Labels(
        _most_played(policy_moves, policy_counts, offsets),
        offsets,
        policy_moves,
        policy_counts,
        *(np.bincount(row[outcome == sign], minlength=len(kept)).astype(np.uint32) for sign in (1, 0, -1)),
    )


def _turned_moves(
    positions: Sampled,
    leader: NDArray[np.int64],
    row_of: NDArray[np.int64],
    members: NDArray[np.int64],
    frame_cols: int,
) -> tuple[NDArray[np.int64], NDArray[np.int16], NDArray[np.uint32]]:
    """Return (row, move, count), rising, of the moves of ``members`` turned into their leaders' orientation."""
    lead = leader[members]
    row = row_of[lead]
    # From the occurrence's orientation to the canonical one, and from there to the leader's.
    back = np.array(symmetry.INVERSE, dtype=np.uint8)[positions.turn[lead]]
    turn = symmetry.composed()[positions.turn[members], back]
    rows, cols = positions.rows[members], positions.cols[members]
    move = turn_moves(positions.move[members], rows, cols, frame_cols, turn)
    fixed = positions.fixed[lead]
    words = [row << 16 | move]
    for image in range(1, symmetry.SYMMETRIES):
        own = np.flatnonzero(fixed >> image & 1)
        if len(own):
            turns = np.full(len(own), image, dtype=np.uint8)
            words.append(row[own] << 16 | turn_moves(move[own], rows[own], cols[own], frame_cols, turns))
    entries, counts = np.unique(np.concatenate(words), return_counts=True)
    return entries >> 16, (entries & 0xFFFF).astype(np.int16), counts.astype(np.uint32)


def _most_played(moves: NDArray[np.int16], counts: NDArray[np.uint32], offsets: NDArray[np.int64]) -> NDArray[np.int16]:
    """Return the move with the largest count of each row; moves of a row rise, so ties go to the smallest."""
    if len(offsets) == 1:
        return np.zeros(0, dtype=np.int16)
    most = np.repeat(np.maximum.reduceat(counts, offsets[:-1]), np.diff(offsets))
    place = np.where(counts == most, np.arange(len(counts)), len(counts))
    label: NDArray[np.int16] = moves[np.minimum.reduceat(place, offsets[:-1])]
    return label


@dataclass(frozen=True, slots=True)
class Settled:
    """What is decided about positions in the order of (game id, ply): their ``fate``; which are ``kept``; how
    many ``images`` of each are stored (0 where it is not kept); and the ``labels`` of the kept ones where
    equal positions are merged with all their labels."""

    fate: dedup.Fate
    kept: NDArray[np.bool_]
    images: NDArray[np.int64]
    labels: Labels | None


def settle(positions: Sampled, config: Config) -> Settled:
    """Decide about all positions; they come in the order of (game id, ply)."""
    wide = positions.key_hi if config.dedup.key_bits == 128 else None
    merge = config.dedup.positions != "off"
    fate = dedup.dedup_positions(positions.key, positions.part, merge, config.split.overlap, wide, positions.weight)
    kept = fate.leader == np.arange(len(fate.leader))
    square = positions.rows == positions.cols
    numbers, _ = stored_images(positions.game[kept], positions.ply[kept], square[kept], positions.fixed[kept], config)
    images = np.zeros(len(kept), dtype=np.int64)
    images[kept] = np.bincount(numbers, minlength=int(kept.sum()))
    merged = config.dedup.positions == "aggregate"
    return Settled(fate, kept, images, aggregate(positions, fate.leader, config.frame[1]) if merged else None)


def _all_positions(
    games: Sequence[str], keys: Sequence[str], config: Config
) -> tuple[Sampled, NDArray[np.int64], list[int]]:
    """Return the positions of all blocks in the order of (game id, ply), that order, and the blocks' lengths."""
    blocks = [located(read_arrow(game), read_arrow(key), config) for game, key in zip(games, keys, strict=True)]
    lengths = [len(block["key"]) for block in blocks]
    in_blocks = joined(blocks)
    del blocks  # two copies of all positions are enough
    order = by_game_and_ply(in_blocks.game)
    return in_blocks.take(order), order, lengths


def decide_positions(games: Sequence[str], keys: Sequence[str], rows: Sequence[str], config: Config) -> Decided:
    """Deduplicate the positions of all blocks; write the kept rows of each block to ``rows``.

    ``games``, ``keys`` and ``rows`` are files, one a block. All positions are held in memory.
    """
    positions, order, lengths = _all_positions(games, keys, config)
    settled = settle(positions, config)
    fate, kept, images = settled.fate, settled.kept, settled.images
    table = row_columns(positions, settled)
    number = np.cumsum(kept) - 1  # of the row in ``table``
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    plans, in_block, rows_in_block = [], [], []
    next_shard = [0] * len(dedup.PARTS)
    start = 0
    for length, key_file, row_file in zip(lengths, keys, rows, strict=True):
        here = place[start : start + length]
        chosen = np.flatnonzero(kept[here])
        at = here[chosen]
        block = read_arrow(key_file).select(["game", "ply", "key", "key_hi", "fixed"]).take(pa.array(chosen))
        picked = table.take(pa.array(number[at]))
        for name in picked.column_names:
            block = block.append_column(name, picked.column(name))
        write_arrow(row_file, block.combine_chunks())
        plans.append(_plan(positions.part[at], images[at], next_shard, config.output.rows_per_shard))
        in_block.append(len(chosen))
        rows_in_block.append(int(images[at].sum()))
        start += length
    held_out, left_out = counts_by_band(positions, fate)
    return Decided(
        plans,
        in_block,
        rows_in_block,
        int(kept.sum()),
        fate.merged,
        fate.overlap,
        _by_game(positions.game, images),
        held_out,
        left_out,
    )


def counts_by_band(positions: Sampled, fate: dedup.Fate) -> tuple[dict[str, int], dict[str, int]]:
    """Return by band of plies the positions of val and test, and how many of them are overlap."""
    held_out = positions.part != dedup.TRAIN
    return _by_band(positions.ply[held_out]), _by_band(positions.ply[held_out & (fate.leader < 0)])


def row_columns(positions: Sampled, settled: Settled) -> pa.Table:
    """Return the columns of the kept positions, in their order."""
    kept, labels = settled.kept, settled.labels
    columns = {"part": pa.array(positions.part[kept]), "weight": pa.array(settled.fate.weight[kept])}
    if labels is None:
        return pa.table(columns | {"move": pa.array(positions.move[kept])})
    offsets = pa.array(labels.offsets, pa.int64())
    return pa.table(
        columns
        | {
            "move": pa.array(labels.move),
            "policy_moves": pa.LargeListArray.from_arrays(offsets, pa.array(labels.policy_moves)),
            "policy_counts": pa.LargeListArray.from_arrays(offsets, pa.array(labels.policy_counts)),
            "wins": pa.array(labels.wins),
            "draws": pa.array(labels.draws),
            "losses": pa.array(labels.losses),
        }
    )


def _by_game(games: NDArray[np.uint64], images: NDArray[np.int64]) -> dict[int, int]:
    """Return the rows of each game; equal ids are adjacent."""
    if len(games) == 0:
        return {}
    starts = np.flatnonzero(np.concatenate([[True], games[1:] != games[:-1]]))
    return dict(zip(games[starts].tolist(), np.add.reduceat(images, starts).tolist(), strict=True))


def _by_band(plies: NDArray[np.uint16]) -> dict[str, int]:
    """Return how many plies fall in each of the bands."""
    band = np.searchsorted(np.array(BANDS), plies, side="right") - 1
    return dict(zip(_BAND_NAMES, np.bincount(band, minlength=len(BANDS)).tolist(), strict=True))


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
