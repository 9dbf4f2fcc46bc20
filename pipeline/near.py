"""Games that are nearly the same: truncated copies, and records of one game that differ in a move or an end.

Only games of one board size that stay after exact deduplication are compared, in two ways.

- **prefix-of**: the setup and all legal moves of game A, at least ``table.OPENING_PLIES``, are under one
  symmetry the setup and the first moves of a longer game B. A points to the longest such B, of equally
  long ones to the first in the order of the game table. (B is then a prefix of no game itself.)
- **near-duplicate-of**: A and B reach the same position (stones, side to move, simple-ko point, up to the
  symmetries) before the same move p, for one p of ``table.MARKS``; both have more than p moves. Chains of
  such pairs make a cluster. A member that is a prefix-of is that alone; of the others the one with a
  known result represents the cluster (before all one that was in the data set already), then the one with the most
  moves, then the first in the order of the table, and the rest point to it.

Both are pure functions on arrays, near-linear in moves: games are named by their number in the order of the
table, and -1 is no game.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from pipeline.gamekeys import GAME_FAMILIES, add_move, game_word, move_images, with_setup
from pipeline.games import Games
from pipeline.jit import kernel
from pipeline.words import Words

Numbers = NDArray[np.int64]


@kernel
def _slot_of(keys, slots, key):
    """Return the place of ``key`` in ``slots``, or the free place where it belongs."""
    mask = np.uint64(slots.shape[0] - 1)
    place = key & mask
    while slots[place] >= 0 and keys[slots[place]] != key:
        place = (place + np.uint64(1)) & mask
    return place


@kernel
def _choose(words):
    """Return the stored word under the symmetry with the smallest choosing word."""
    chosen = 0
    for turn in range(1, words.shape[1]):
        if words[0, turn] < words[0, chosen]:
            chosen = turn
    return words[1, chosen]


@kernel
def _remember(order, plies, keys, slots, ends):
    """Note the keys of whole games of one size, and after how many plies one of them ends."""
    for game in order:
        ends[plies[game]] = True
        slots[_slot_of(keys, slots, keys[game])] = game


@kernel
def _find_prefixes(games, order, numbers, plies, least, keys, slots, ends, images, families, words, longest):
    """Walk games of one size, looking up the key of each of their beginnings; see ``prefix_games``.

    ``slots`` int64[a power of two, more than the games], -1 where free; ``ends`` bool: whether a game
    ends after so many plies; ``words`` uint64[2, symmetries].
    """
    for game in order:
        number = numbers[game]
        for family in range(2):
            words[family] = game_word(games, game, families[family])
        cursor = games.setup_start[game]
        for ply in range(plies[number]):
            after = cursor
            for family in range(2):
                for turn in range(words.shape[1]):
                    after, words[family, turn] = with_setup(
                        games, game, cursor, ply, words[family, turn], families[family], images, turn
                    )
            cursor = after
            if ply >= least and ends[ply]:
                shorter = slots[_slot_of(keys, slots, _choose(words))]
                found = shorter >= 0 and plies[shorter] == ply
                if found and (longest[shorter] < 0 or plies[number] > plies[longest[shorter]]):
                    longest[shorter] = number
            for family in range(2):
                add_move(games, game, ply, words[family], images, np.int64(0), words.shape[1])


def prefix_games(
    sizes: NDArray[np.uint8], plies: Numbers, keys: Words, least: int, chunks: Iterable[tuple[Games, Numbers]]
) -> Numbers:
    """Return int64[G]: the longest game that each one is a prefix of, or -1.

    Of game g, on a board of ``sizes[g]``, the first ``plies[g]`` moves count, ``keys`` uint64[G] are their
    ``gamekeys.game_keys``, all different. Games of fewer than ``least`` plies are no prefixes. ``chunks`` give the
    games with their numbers, rising. The time is that of one walk over all moves, whatever the games are.
    """
    keys = np.ascontiguousarray(keys)  # a field of records is not: kernels would be compiled for it once more
    longest = np.full(len(plies), -1, dtype=np.int64)
    tables: dict[tuple[int, int], tuple[Numbers, NDArray[np.bool_]]] = {}
    for rows, cols in np.unique(sizes, axis=0).tolist():
        order = np.flatnonzero((sizes[:, 0] == rows) & (sizes[:, 1] == cols))
        slots = np.full(1 << (2 * len(order)).bit_length(), -1, dtype=np.int64)
        ends = np.zeros(int(plies[order].max()) + 1, dtype=np.bool_)
        _remember(order, plies, keys, slots, ends)
        tables[rows, cols] = slots, ends
    for games, numbers in chunks:
        for (rows, cols), order in games.by_size().items():
            images = move_images(rows, cols)
            slots, ends = tables[rows, cols]
            words = np.zeros((2, images.shape[1]), dtype=np.uint64)
            _find_prefixes(
                games, order, numbers, plies, least, keys, slots, ends, images, GAME_FAMILIES, words, longest
            )
    return longest


@kernel
def _join(one, other, parent):
    """Make one cluster of the games of each pair; ``parent`` leads from any game to its cluster's first."""
    for pair in range(one.shape[0]):
        first, second = one[pair], other[pair]
        while parent[first] != first:
            parent[first] = parent[parent[first]]
            first = parent[first]
        while parent[second] != second:
            parent[second] = parent[parent[second]]
            second = parent[second]
        parent[max(first, second)] = min(first, second)
    for game in range(parent.shape[0]):
        parent[game] = parent[parent[game]]  # what it leads to stands before it, and is done


def clusters(one: Numbers, other: Numbers, count: int) -> Numbers:
    """Return int64[count]: the first game of each one's cluster. ``one``, ``other``: the games of each pair that meets
    at a mark."""
    first: Numbers = np.arange(count, dtype=np.int64)
    _join(one, other, first)
    return first


def near_games(
    cluster: Numbers, prefix: NDArray[np.bool_], old: NDArray[np.bool_], known: NDArray[np.bool_], plies: Numbers
) -> Numbers:
    """Return int64[G]: the game that represents each one's cluster; -1 for that one and for prefixes.

    ``cluster``: of ``clusters``; ``prefix`` bool[G]: it is a prefix of another game; ``old``: it was in the data set
    before; ``known``: the result is known.
    """
    order = np.lexsort((-plies, ~known, ~old, prefix, cluster))  # stable: table order among equals
    starts = np.flatnonzero(np.diff(cluster[order], prepend=-1))
    found = np.full(len(cluster), -1, dtype=np.int64)
    found[order] = order[starts][np.cumsum(np.diff(cluster[order], prepend=-1) != 0) - 1]
    found[prefix | (found == np.arange(len(cluster)))] = -1
    return found
