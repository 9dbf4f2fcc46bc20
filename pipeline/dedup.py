"""Which games and which positions are kept, and with what weight.

Both are pure functions on arrays. The order of the game table decides between games; the smallest
(game id, ply) represents equal positions.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pipeline.words import Words, chain_words, repeated, seed_word

PARTS = ("train", "val", "test")  # also the order in which a part claims a position
TRAIN, VAL, TEST = range(3)

KEPT, DUPLICATE, CONFLICTING = range(3)


def ranks_of(contents: Words) -> NDArray[np.int64]:
    """Return int64[G]: the rank of each record among those with the same content hash uint64[G, 2], in their order."""
    order = np.lexsort((contents[:, 1], contents[:, 0]))
    changes = np.any(contents[order][1:] != contents[order][:-1], axis=1)
    starts = np.concatenate([[True], changes]) if len(order) else np.zeros(0, dtype=np.bool_)
    first = np.maximum.accumulate(np.where(starts, np.arange(len(order)), 0))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order)) - first
    return rank


def game_ids(contents: Words, ranks: NDArray[np.int64]) -> Words:
    """Return uint64[G]: the ids of records with the content hashes ``contents`` uint64[G, 2], of which each has a rank
    among byte-identical ones in the order of the game table."""
    return chain_words(seed_word("game id"), contents[:, 0], contents[:, 1], ranks)


@dataclass(frozen=True, slots=True)
class Outcomes:
    """What is known of the results of games: ``winners`` int8[G] (0 not known), ``margins`` and
    ``komis`` float64[G] (NaN not known)."""

    winners: NDArray[np.int8]
    margins: NDArray[np.float64]
    komis: NDArray[np.float64]


def _differ(one: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return where both values are known and not the same."""
    different: NDArray[np.bool_] = ~np.isnan(one) & ~np.isnan(other) & (one != other)
    return different


def dedup_games(keys: Words, outcomes: Outcomes, old: NDArray[np.bool_]) -> tuple[NDArray[np.int8], NDArray[np.int64]]:
    """Return (verdict int8[G], kept int64[G]): KEPT, DUPLICATE or CONFLICTING, and the number of the
    kept game of each.

    Games come in the order of the game table. Of games with equal keys that is kept which is in the data set
    already (``old`` bool[G]), or the first with a known winner, or the first of all. A copy conflicts if its winner,
    margin or komi is known, that of the kept one too, and they differ.
    """
    unknown = outcomes.winners == 0
    order = np.lexsort((unknown, ~old, keys))  # stable: table order among equals
    starts = np.concatenate([[True], keys[order][1:] != keys[order][:-1]]) if len(order) else np.zeros(0, np.bool_)
    group = np.cumsum(starts) - 1
    kept = np.empty(len(keys), dtype=np.int64)
    kept[order] = order[np.flatnonzero(starts)][group]
    conflict = (
        (~unknown & ~unknown[kept] & (outcomes.winners != outcomes.winners[kept]))
        | _differ(outcomes.margins, outcomes.margins[kept])
        | _differ(outcomes.komis, outcomes.komis[kept])
    )
    verdict = np.where(conflict, CONFLICTING, DUPLICATE).astype(np.int8)
    verdict[(kept == np.arange(len(keys))) | old] = KEPT
    return verdict, kept


def split_games(keys: Words, val: float, test: float, seed: int) -> NDArray[np.int8]:
    """Return int8[G]: TRAIN, VAL or TEST by a keyed re-hash of ``keys``, whatever the other games are."""
    share = (chain_words(seed_word("split", seed), keys) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return np.where(share < test, TEST, np.where(share < test + val, VAL, TRAIN)).astype(np.int8)


def dedup_positions(
    keys: Words,
    parts: NDArray[np.int8],
    merge: bool,
    overlap: Literal["drop", "keep"],
    keys_hi: Words | None = None,
    old: NDArray[np.bool_] | None = None,
) -> NDArray[np.int64]:
    """Return int64[N]: the number of the position that stands for each one: its own where it is kept, -1 where it
    overlaps another part. Positions come in the order of (game id, ply).

    ``merge``: the first position of a key and part stands for the others. With ``overlap`` "drop" a key
    stays in the first of train, val, test that has it; its occurrences in other parts are overlap, none
    of them merged. ``keys_hi``: the upper halves of keys of 128 bits. ``old`` bool[N]: positions, before all others,
    of rows that are there already: they stay, and their part keeps the key.
    """
    own = np.arange(len(keys))
    leader = own.copy()
    if not merge and overlap == "keep":
        return leader
    order, group = _repeated(keys, parts, keys_hi)
    part = parts[order]
    first = np.concatenate([[True], group[1:] != group[:-1]])[: len(group)]
    starts = np.flatnonzero(first)
    owner = part[starts][group]
    if merge:
        new_part = first | np.concatenate([[True], part[1:] != part[:-1]])[: len(part)]
        leader[order] = order[np.flatnonzero(new_part)][np.cumsum(new_part) - 1]
    if overlap == "drop":
        if old is not None:
            holding = np.where(old[order], part, np.int8(len(PARTS)))
            held = np.minimum.reduceat(holding, starts)[group] if len(starts) else holding
            owner = np.where(held < len(PARTS), held, owner)
        leader[order[part != owner]] = -1
    if old is not None:
        leader[old] = own[old]
    return leader


def _repeated(
    keys: Words, parts: NDArray[np.int8], keys_hi: Words | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the positions whose key occurs more than once, by (key, part, number), and the group of each."""
    # The plain sort is many times faster than a stable one; only the few repeats are then put in order.
    many = np.flatnonzero(repeated(keys))
    upper: list[Any] = [keys_hi[many]] if keys_hi is not None else []
    many = many[np.lexsort([many, parts[many], *upper, keys[many]])]
    change = keys[many][1:] != keys[many][:-1]
    if keys_hi is not None:
        change |= keys_hi[many][1:] != keys_hi[many][:-1]
    return many, np.concatenate([[0], np.cumsum(change)])[: len(many)]


def sample_positions(
    games: Words, plies: NDArray[np.int64], per_game: int | None, span: tuple[int, int] | None, seed: int
) -> NDArray[np.bool_]:
    """Return bool[N]: which positions are wanted. ``games`` uint64[N] (ids), equal ones adjacent.

    ``span``: first and last ply; ``per_game``: of those, the ones with the smallest hash of (seed, game,
    ply).
    """
    wanted = np.ones(len(games), dtype=np.bool_)
    if span is not None:
        wanted = (plies >= span[0]) & (plies <= span[1])
    if per_game is None or len(games) == 0:
        return wanted
    hashes = chain_words(seed_word("sample", seed), games, plies)
    run = np.cumsum(np.concatenate([[0], games[1:] != games[:-1]]))
    order = np.lexsort((hashes, ~wanted, run))
    starts = np.searchsorted(run, np.arange(run[-1] + 1))
    rank = np.empty(len(games), dtype=np.int64)
    rank[order] = np.arange(len(games)) - starts[run[order]]
    return wanted & (rank < per_game)
