"""What a row that stands for several equal positions says: their moves, counted, their results and their weight.

Equal positions of one block are put together there. Those that another block's row stands for are sent to it as
*shares*: sums, and counts of moves in the canonical orientation of the position.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline import symmetry
from pipeline.augment import turn_moves
from pipeline.columns import spans
from pipeline.sampled import Sampled

# What positions of other blocks add to the row ``row`` (its number in the order of game and ply).
SHARES = np.dtype([("row", "<u4"), ("weight", "<f8"), ("outcomes", "<u4", (3,))])
MOVES = np.dtype([("row", "<u4"), ("move", "<i2"), ("count", "<u4")])
OUTCOMES = (1, 0, -1)  # in the order of their numbers: won, drawn, lost

_INVERSE = np.array(symmetry.INVERSE, dtype=np.uint8)


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


def no_shares() -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the SHARES and MOVES of nothing."""
    return np.zeros(0, dtype=SHARES), np.zeros(0, dtype=MOVES)


def shares_of(
    positions: Sampled, members: NDArray[np.int64], share: NDArray[np.int64], count: int, frame_cols: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return (SHARES, MOVES): what the positions ``members`` add to ``count`` rows elsewhere; ``share`` int64 says to
    which of these each one belongs. ``row`` is the number of the share, in both."""
    sums = np.zeros(count, dtype=SHARES)
    sums["row"] = np.arange(count)
    sums["weight"] = np.bincount(share, positions.weight[members], count)
    for number, outcome in enumerate(OUTCOMES):
        sums["outcomes"][:, number] = np.bincount(share[positions.outcome[members] == outcome], minlength=count)
    rows, cols = positions.rows[members], positions.cols[members]
    canonical = turn_moves(positions.move[members], rows, cols, frame_cols, positions.turn[members])
    entries, counts = np.unique(share << 16 | canonical, return_counts=True)
    moves = np.zeros(len(entries), dtype=MOVES)
    moves["row"], moves["move"], moves["count"] = entries >> 16, entries & 0xFFFF, counts
    return sums, moves


def aggregate(
    positions: Sampled, leader: NDArray[np.int64], frame_cols: int, shares: tuple[NDArray[Any], NDArray[Any]]
) -> Labels:
    """Return the labels of the kept positions (those that lead themselves), in their order.

    ``leader`` int64[N]: the position that each one is merged into, negative for none. Each occurrence adds 1 to
    its move, turned into the leader's orientation; where the leader is its own image under some symmetries,
    to the image of the move under each of them. Ties go to the smallest index. ``shares``: of other blocks.
    """
    own = np.arange(len(leader))
    kept = np.flatnonzero(leader == own)
    row_of = np.empty(len(leader), dtype=np.int64)
    row_of[kept] = np.arange(len(kept))
    sums, moves = shares
    # Most positions stand for themselves alone and have no symmetry: their one move needs no turning.
    several = np.zeros(len(kept), dtype=np.bool_)
    several[row_of[leader[(leader >= 0) & (leader != own)]]] = True
    several[row_of[sums["row"]]] = True
    several |= positions.fixed[kept] != 1
    members = np.flatnonzero(leader >= 0)
    members = members[several[row_of[leader[members]]]]
    row, move, counts = _turned_moves(positions, leader, members, moves, row_of, frame_cols)
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
    results = [np.bincount(row[outcome == sign], minlength=len(kept)) for sign in OUTCOMES]
    for number, counted in enumerate(results):
        np.add.at(counted, row_of[sums["row"]], sums["outcomes"][:, number])
    return Labels(
        _most_played(policy_moves, policy_counts, offsets),
        offsets,
        policy_moves,
        policy_counts,
        *(counted.astype(np.uint32) for counted in results),
    )


def _turned_moves(
    positions: Sampled,
    leader: NDArray[np.int64],
    members: NDArray[np.int64],
    shared: NDArray[Any],
    row_of: NDArray[np.int64],
    frame_cols: int,
) -> tuple[NDArray[np.int64], NDArray[np.int16], NDArray[np.uint32]]:
    """Return (row, move, count), rising, of the moves of ``members`` and of the MOVES ``shared``, turned into their
    leaders' orientation."""
    lead = np.concatenate([leader[members], shared["row"].astype(np.int64)])
    back = _INVERSE[positions.turn[lead]]
    # From the occurrence's orientation to the canonical one, which shares have already, and from there to the leader's.
    first = np.concatenate([positions.turn[members], np.zeros(len(shared), dtype=np.uint8)])
    played = np.concatenate([positions.move[members], shared["move"]])
    count = np.concatenate([np.ones(len(members), dtype=np.int64), shared["count"].astype(np.int64)])
    rows, cols, fixed = positions.rows[lead], positions.cols[lead], positions.fixed[lead]
    row = row_of[lead]
    move = turn_moves(played, rows, cols, frame_cols, symmetry.composed()[first, back])
    words, counts = [row << 16 | move], [count]
    for image in range(1, symmetry.SYMMETRIES):
        own = np.flatnonzero(fixed >> image & 1)
        if len(own):
            turns = np.full(len(own), image, dtype=np.uint8)
            words.append(row[own] << 16 | turn_moves(move[own], rows[own], cols[own], frame_cols, turns))
            counts.append(count[own])
    entries, inverse = np.unique(np.concatenate(words), return_inverse=True)
    total = np.bincount(inverse, np.concatenate(counts), len(entries))
    return entries >> 16, (entries & 0xFFFF).astype(np.int16), total.astype(np.uint32)


def _most_played(moves: NDArray[np.int16], counts: NDArray[np.uint32], offsets: NDArray[np.int64]) -> NDArray[np.int16]:
    """Return the move with the largest count of each row; moves of a row rise, so ties go to the smallest."""
    if len(offsets) == 1:
        return np.zeros(0, dtype=np.int16)
    most = np.repeat(np.maximum.reduceat(counts, offsets[:-1]), np.diff(offsets))
    place = np.where(counts == most, np.arange(len(counts)), len(counts))
    label: NDArray[np.int16] = moves[np.minimum.reduceat(place, offsets[:-1])]
    return label
