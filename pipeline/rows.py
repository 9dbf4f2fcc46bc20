"""Which positions of a block become rows, and with what labels.

A block knows its own positions; what other blocks, earlier rows and other parts have to do with them it learns from the
answers to its claims. In ``aggregate`` mode a row stands for all equal positions of its part, each turned into the
orientation of the one that represents them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline import dedup
from pipeline.blocks import ShardPlan, stored_images
from pipeline.claims import HELD, OVERLAP, answers_to, claiming, claims_of, read_answers
from pipeline.config import Config
from pipeline.labels import MOVES, SHARES, Labels, aggregate, no_shares, shares_of
from pipeline.ordering import ranges_of
from pipeline.pieces import joined_records, routed, whole_table, write_pieces
from pipeline.sampled import Sampled, ordered_positions

# The plies by which the report says how much of val and test was left out: first ply of each band.
BANDS = (0, 10, 30, 100)
BAND_NAMES = ("0-9", "10-29", "30-99", "100+")

# A position that another block's row stands for, in place of its leader; beside claims.OVERLAP and claims.HELD.
ELSEWHERE = -3

ROWS_OF_GAME = np.dtype([("ordinal", "<u8"), ("rows", "<u4")])


@dataclass(frozen=True, slots=True)
class Settled:
    """What is decided about positions in the order of (game id, ply): the number ``leader`` int64 of the position that
    stands for each one, or OVERLAP, HELD, ELSEWHERE; which are ``kept``; how many ``images`` of each are stored (0
    where it is not kept); the ``weight`` float32 of the kept ones; and their ``labels`` where these are merged."""

    leader: NDArray[np.int64]
    kept: NDArray[np.bool_]
    images: NDArray[np.int64]
    weight: NDArray[np.float32]
    labels: Labels | None

    @property
    def counts(self) -> dict[str, int]:
        """Return how many positions are stored, merged (into a row of an earlier growth: ``left_out``), and overlap."""
        stored, overlap = int(self.kept.sum()), int((self.leader == OVERLAP).sum())
        return {
            "stored": stored,
            "merged": len(self.leader) - stored - overlap,
            "overlap": overlap,
            "left_out": int((self.leader == HELD).sum()),
        }


def leaders(positions: Sampled, answers: NDArray[Any], config: Config) -> NDArray[np.int64]:
    """Return ``Settled.leader`` of positions in the order of (game id, ply), given the ANSWERS to their claims."""
    claim = claiming(positions, config)
    leader = claim.copy() if config.dedup.positions != "off" else np.arange(len(claim))
    told = np.zeros(len(claim), dtype=np.int64)
    told[answers["claim"]] = np.where(answers["block"] < 0, answers["block"], ELSEWHERE)
    told = told[claim]
    return np.where(told < 0, told, leader)


def settle(
    positions: Sampled, answers: NDArray[Any], shares: tuple[NDArray[Any], NDArray[Any]], config: Config
) -> Settled:
    """Decide about positions in the order of (game id, ply). ``shares``: what other blocks add to the kept ones."""
    leader = leaders(positions, answers, config)
    kept = leader == np.arange(len(leader))
    there = leader >= 0
    # Weights are multiples of 2**-20: their sums are exact, in whatever order they are added.
    weight = np.bincount(leader[there], positions.weight[there], len(leader))
    np.add.at(weight, shares[0]["row"], shares[0]["weight"])
    square = positions.rows == positions.cols
    numbers, _ = stored_images(positions.game[kept], positions.ply[kept], square[kept], positions.fixed[kept], config)
    images = np.zeros(len(kept), dtype=np.int64)
    images[kept] = np.bincount(numbers, minlength=int(kept.sum()))
    merged = config.dedup.positions == "aggregate"
    labels = aggregate(positions, leader, config.frame[1], shares) if merged else None
    return Settled(leader, kept, images, weight[kept].astype(np.float32), labels)


def settle_alone(positions: Sampled, held: NDArray[Any], config: Config) -> tuple[Settled, int]:
    """Decide about all new positions of a data set at once, ``held`` CLAIMS of its older rows; return also how many of
    these are stale."""
    claims = claims_of(positions, config)
    answers, _, stale = answers_to(claims, np.zeros(len(claims), dtype=np.int64), held, config)
    return settle(positions, answers, no_shares(), config), stale


@dataclass(frozen=True, slots=True)
class ShareTask:
    """Send what other blocks' rows stand for of block ``number``: ``shares`` gets a piece of SHARES for each of
    ``blocks``, then one of MOVES for each."""

    number: int
    games: str
    positions: str
    answers: tuple[str, ...]
    shares: str
    blocks: int
    config: Config


def share_labels(task: ShareTask) -> dict[str, int]:
    """Run a ShareTask. Raises DamagedWork, OSError."""
    answers = read_answers(task.answers, task.number)
    answers = answers[answers["block"] >= 0]
    sums, moves = no_shares()
    if len(answers):
        positions, _ = ordered_positions(whole_table(task.games), whole_table(task.positions), task.config)
        share_of = np.full(len(positions.key), -1, dtype=np.int64)
        share_of[answers["claim"]] = np.arange(len(answers))
        share = share_of[claiming(positions, task.config)]
        members = np.flatnonzero(share >= 0)
        sums, moves = shares_of(positions, members, share[members], len(answers), task.config.frame[1])
    goals = answers["block"].astype(np.int64)
    sums_goals, moves_goals = goals[sums["row"]], goals[moves["row"]]
    for shared in (sums, moves):
        shared["row"] = answers["row"][shared["row"]]
    write_pieces(task.shares, [*routed(sums, sums_goals, task.blocks), *routed(moves, moves_goals, task.blocks)])
    return {}


@dataclass(frozen=True, slots=True)
class KeepTask:
    """Decide which positions of block ``number`` become rows: their table goes to ``rows``, the number of rows of each
    game to ``counts``, a piece of ROWS_OF_GAME for each of ``ranges``."""

    number: int
    games: str
    positions: str
    answers: tuple[str, ...]
    shares: tuple[str, ...]
    rows: str
    counts: str
    ranges: int
    config: Config


def keep_rows(task: KeepTask) -> dict[str, Any]:
    """Run a KeepTask; return ``Settled.counts``, the ``images`` of each part, and by band of plies the positions of val
    and test and their overlap. Raises DamagedWork, OSError."""
    games, sampled = whole_table(task.games), whole_table(task.positions)
    positions, order = ordered_positions(games, sampled, task.config)
    blocks = len(task.shares)
    sums = joined_records(task.shares, task.number, SHARES)
    moves = joined_records(task.shares, blocks + task.number, MOVES)
    settled = settle(positions, read_answers(task.answers, task.number), (sums, moves), task.config)
    write_pieces(task.rows, [_rows_of_block(positions, settled, sampled, order)])
    counts = _rows_of_games(games, sampled, order, settled)
    write_pieces(task.counts, routed(counts, ranges_of(counts["ordinal"]), task.ranges))
    held_out, left_out = counts_by_band(positions, settled)
    images = [int(settled.images[positions.part == part].sum()) for part in range(len(dedup.PARTS))]
    return settled.counts | {"images": images, "held_out_by_ply": held_out, "overlap_by_ply": left_out}


def _rows_of_block(positions: Sampled, settled: Settled, sampled: pa.Table, order: NDArray[np.int64]) -> pa.Table:
    """Return the kept positions with all that decides about their rows, in the order of the block."""
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    chosen = np.flatnonzero(settled.kept[place])
    block = sampled.select(["game", "ply", "key", "key_hi", "fixed"]).take(pa.array(chosen))
    number = np.cumsum(settled.kept) - 1  # of the row among the kept ones
    picked = row_columns(positions, settled).take(pa.array(number[place[chosen]]))
    for name in picked.column_names:
        block = block.append_column(name, picked.column(name))
    return block.combine_chunks()


def _rows_of_games(games: pa.Table, sampled: pa.Table, order: NDArray[np.int64], settled: Settled) -> NDArray[Any]:
    counts = np.zeros(games.num_rows, dtype=ROWS_OF_GAME)
    counts["ordinal"] = games.column("ordinal").to_numpy()
    counts["rows"] = np.bincount(sampled.column("game").to_numpy()[order], settled.images, games.num_rows)
    return counts


def counts_by_band(positions: Sampled, settled: Settled) -> tuple[dict[str, int], dict[str, int]]:
    """Return by band of plies the positions of val and test, and how many of them are overlap."""
    held_out = positions.part != dedup.TRAIN
    return _by_band(positions.ply[held_out]), _by_band(positions.ply[held_out & (settled.leader == OVERLAP)])


def _by_band(plies: NDArray[np.uint16]) -> dict[str, int]:
    """Return how many plies fall in each of the bands."""
    band = np.searchsorted(np.array(BANDS), plies, side="right") - 1
    return dict(zip(BAND_NAMES, np.bincount(band, minlength=len(BANDS)).tolist(), strict=True))


def row_columns(positions: Sampled, settled: Settled) -> pa.Table:
    """Return the columns of the kept positions, in their order."""
    kept, labels = settled.kept, settled.labels
    columns = {"part": pa.array(positions.part[kept]), "weight": pa.array(settled.weight)}
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


def shard_plans(
    images: Sequence[Sequence[int]], first: Sequence[int], rows_per_shard: int
) -> list[tuple[ShardPlan, ...]]:
    """Number the shards of all blocks, part by part in block order, from ``first`` on: as few as hold a block's
    rows."""
    next_shard = list(first)
    plans = []
    for block in images:
        plan = []
        for part, total in enumerate(block):
            shards = -(-total // rows_per_shard)
            if shards:
                plan.append(ShardPlan(part, next_shard[part], shards))
                next_shard[part] += shards
        plans.append(tuple(plan))
    return plans
