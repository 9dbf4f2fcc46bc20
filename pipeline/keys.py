"""Position keys as wide as a scheme asks for: equal keys, equal planes and globals."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.encode import chunks
from pipeline.games import Games
from pipeline.planes.group import FactsOf
from pipeline.replay import KeyFacts, Replayed, replay
from pipeline.schemes import Scheme


class Keyed(NamedTuple):
    """A replay with position keys, and ``shown`` bool[M]: which positions the scheme can show."""

    replayed: Replayed
    shown: NDArray[np.bool_]


def keyed(games: Games, scheme: Scheme, whole: bool = True) -> Keyed:
    """Replay games and key their positions: by all that the scheme shows, or (not ``whole``) by the board alone.

    What is shown of positions after a fault of a game means nothing.
    """
    shown = np.ones(len(games.moves), dtype=np.bool_)
    kinds = list(dict.fromkeys(group.facts for group in scheme.groups if group.facts is not None))
    if not kinds and whole:
        return Keyed(replay(games, scheme.history, scheme.recent), shown)
    plain = replay(games)
    if not kinds:
        return Keyed(plain, shown)
    facts = _facts(games, scheme, kinds, plain.legal, shown)
    return Keyed(replay(games, scheme.history, scheme.recent, facts) if whole else plain, shown)


def _facts(
    games: Games,
    scheme: Scheme,
    kinds: Sequence[FactsOf],
    plies: NDArray[np.int64],
    shown: NDArray[np.bool_],
) -> KeyFacts:
    """Return what the scheme shows beside boards and moves of the first ``plies[g]`` positions, which are legal;
    clear ``shown`` where it shows nothing."""
    words = np.zeros(len(games.moves), dtype=np.uint64)
    positions, points = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    every = np.concatenate([np.zeros(0, dtype=np.int64), *games.by_size().values()])  # whole runs of one size
    for first, last in chunks(games, every):
        order = every[first:last]
        if plies[order].sum() == 0:
            continue
        at = np.concatenate([np.arange(plies[game]) + games.move_start[game] for game in order])
        size = int(games.rows[order[0]]), int(games.cols[order[0]])
        traces = scheme.traces(games, order, plies, size)  # a frame of the board: its points are the board's
        for kind in kinds:
            found = kind(traces)
            if found.words is not None:
                words[at] += found.words
            if found.points is not None:
                marked = np.flatnonzero(found.points.any(axis=1))
                row, point = np.nonzero(np.unpackbits(found.points[marked], axis=-1))
                positions.append(at[marked[row]])
                points.append(point)
            if found.shown is not None:
                shown[at] &= found.shown
    return _gathered(words, np.concatenate(positions), np.concatenate(points))


def _gathered(words: NDArray[np.uint64], positions: NDArray[np.int64], points: NDArray[np.int64]) -> KeyFacts:
    """Return facts with the points of each position together."""
    order = np.argsort(positions, kind="stable")
    starts = np.searchsorted(positions[order], np.arange(len(words) + 1))
    return KeyFacts(words, starts.astype(np.int64), points[order].astype(np.int32))
