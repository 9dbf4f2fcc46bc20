"""Pass-alive stones and territory: what lives though its owner always passes (Benson 1976).

A *region* of a colour is a connected set of points without a stone of that colour, with an empty one in it.
A region is *vital* for a chain if every empty point in it is a liberty of that chain (if suicide of several
stones is legal: if every point in it is next to the chain). Chains with fewer than two vital regions drop
out, and with them the regions they touch, until nothing changes. What stays is alive. Territory is each
region that touches nothing but living chains and has at most one point away from the colour's stones.

The rules are those of KataGo's area planes. Every chain must have a liberty, as on any legal board.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.board import BLACK, CHAIN, COLOUR, EMPTY, NEXT, SPOTS, STRIDE, USED_WORDS, WHITE, WORDS
from pipeline.jit import kernel
from pipeline.spotset import NO_BITS, ONE, flip_spot, flood, has_spot, lowest_bit, spread

# Regions of one colour are not next to each other: at most half the points, 313 of 625.
_MOST_REGIONS = 320


class Benson(NamedTuple):
    """Scratch: ``work`` uint64[4, WORDS], sets of spots; per region ``borders`` uint64[320, WORDS], the
    stones it touches, and ``vital`` int16[320, 4], the chains it is vital for, then 0;
    ``vital_regions`` int16[SPOTS], how many a chain has."""

    work: NDArray[np.uint64]
    borders: NDArray[np.uint64]
    vital: NDArray[np.int16]
    vital_regions: NDArray[np.int16]


def new_benson() -> Benson:
    """Return scratch for boards of any size, one after the other."""
    return Benson(
        work=np.zeros((4, WORDS), dtype=np.uint64),
        borders=np.zeros((_MOST_REGIONS, WORDS), dtype=np.uint64),
        vital=np.zeros((_MOST_REGIONS, 4), dtype=np.int16),
        vital_regions=np.zeros(SPOTS, dtype=np.int16),
    )


@kernel
def _touches(board, spot, chain):
    """Return whether a spot is next to a stone of ``chain``."""
    points = board.points
    stride, colour = np.int64(points[STRIDE]), points[COLOUR + chain]
    for step in (-stride, -1, 1, stride):
        if points[COLOUR + spot + step] == colour and points[CHAIN + spot + step] == chain:
            return True
    return False


@kernel
def _is_vital(board, region, empty, chain, suicide):
    """Return whether every empty spot of ``region`` (every spot, with suicide) is next to ``chain``."""
    for word in range(np.int64(board.points[USED_WORDS])):
        if region[word] & empty[word] & ~board.bits[chain * WORDS + word] != NO_BITS:
            return False
        stones = region[word] & ~empty[word] if suicide else NO_BITS
        while stones != NO_BITS:
            if not _touches(board, 64 * word + lowest_bit(stones), chain):
                return False
            stones &= stones - ONE
    return True


@kernel
def _vital_chains(board, region, empty, spot, colour, suicide, vital):
    """Write the chains that ``region`` is vital for to ``vital`` (the rest 0); return how many.

    ``spot`` is any empty spot of the region: a chain that is not next to it is none of them.
    """
    points = board.points
    stride = np.int64(points[STRIDE])
    vital[:] = np.int16(0)
    found = 0
    for step in (-stride, -1, 1, stride):
        if points[COLOUR + spot + step] == colour:
            chain = np.int64(points[CHAIN + spot + step])
            known = vital[0] == chain or vital[1] == chain or vital[2] == chain
            if not known and _is_vital(board, region, empty, chain, suicide):
                vital[found] = chain
                found += 1
    return found


@kernel
def _find_vital_regions(board, stones, colour, suicide, near, benson):
    """Find the regions that are vital for some chain; return how many.

    ``near``: the stones of ``colour`` and the spots next to them. A region with an empty spot (any spot,
    with suicide) outside it is vital for none: a single flood takes all of these away.
    """
    words = np.int64(board.points[USED_WORDS])
    empty, others, region, candidates = stones[EMPTY], benson.work[1], benson.work[2], benson.work[3]
    for word in range(words):
        others[word] = empty[word] | stones[BLACK + WHITE - colour, word]
        candidates[word] = (others[word] if suicide else empty[word]) & ~near[word]
    flood(board, others, candidates)
    for word in range(words):
        candidates[word] = others[word] & ~candidates[word]
    count = 0
    for word in range(words):
        while candidates[word] & empty[word] != NO_BITS:
            spot = 64 * word + lowest_bit(candidates[word] & empty[word])
            region[:] = NO_BITS
            flip_spot(region, spot)
            flood(board, candidates, region)
            for part in range(words):
                candidates[part] &= ~region[part]
            if _vital_chains(board, region, empty, spot, colour, suicide, benson.vital[count]) > 0:
                spread(board, region, benson.borders[count])
                for part in range(words):
                    benson.borders[count, part] &= stones[colour, part]
                count += 1
    return count


@kernel
def _collect_living(board, count, benson, alive):
    """Set ``alive`` to the stones of all chains with two or more vital regions; return whether there are any."""
    points = board.points
    alive[:] = NO_BITS
    some = False
    for region in range(count):
        for chain in benson.vital[region]:
            if chain > 0 and benson.vital_regions[chain] >= 2 and not has_spot(alive, chain):
                some = True
                spot = np.int64(chain)
                while True:
                    flip_spot(alive, spot)
                    spot = np.int64(points[NEXT + spot])
                    if spot == chain:
                        break
    return some


@kernel
def _find_living(board, count, benson, alive):
    """Benson's elimination over ``count`` vital regions: set ``alive`` to the pass-alive stones of a colour.

    Returns whether there are any.
    """
    words = np.int64(board.points[USED_WORDS])
    for region in range(count):
        for chain in benson.vital[region]:
            benson.vital_regions[chain] = 0
    for region in range(count):
        for chain in benson.vital[region]:
            benson.vital_regions[chain] += 1
    dropped = True
    while dropped:
        if not _collect_living(board, count, benson, alive):
            return False
        dropped = False
        for region in range(count):
            lost = NO_BITS
            for word in range(words):
                lost |= benson.borders[region, word] & ~alive[word]
            if lost != NO_BITS and benson.vital[region, 0] > 0:
                for number in range(4):
                    benson.vital_regions[benson.vital[region, number]] -= 1
                    benson.vital[region, number] = 0
                dropped = True
    return True


@kernel
def _add_territory(board, stones, colour, near, benson, alive):
    """Add the pass-alive territory of ``colour`` to its pass-alive stones in ``alive``."""
    words = np.int64(board.points[USED_WORDS])
    others, region, work = benson.work[1], benson.work[2], benson.work[3]
    for word in range(words):
        region[word] = stones[colour, word] & ~alive[word]
    spread(board, region, work)
    for word in range(words):
        work[word] &= others[word]
    flood(board, others, work)
    for word in range(words):
        others[word] &= ~work[word]  # what is left touches living chains only
    for word in range(words):
        away = others[word] & ~near[word]
        while away != NO_BITS:
            region[:] = NO_BITS
            region[word] = away & (~away + ONE)
            flood(board, others, region)
            outside = NO_BITS
            several = False
            for part in range(words):
                bits = region[part] & ~near[part]
                several |= bits != NO_BITS and (outside != NO_BITS or bits & (bits - ONE) != NO_BITS)
                outside |= bits
            away &= ~region[word]
            if several:
                for part in range(words):
                    others[part] &= ~region[part]
    for word in range(words):
        alive[word] |= others[word]


@kernel
def find_pass_alive(board, stones, colour, suicide, benson, alive):
    """Set ``alive`` uint64[WORDS] to the pass-alive stones and territory of ``colour``.

    ``stones`` uint64[3, WORDS]: empty spots, black and white stones (``spotset.read_stones``); ``suicide``:
    whether that of several stones is legal, or life has to withstand it.
    """
    near = benson.work[0]
    spread(board, stones[colour], near)
    count = _find_vital_regions(board, stones, colour, suicide, near, benson)
    if count >= 2 and _find_living(board, count, benson, alive):
        _add_territory(board, stones, colour, near, benson, alive)
    else:
        alive[:] = NO_BITS
