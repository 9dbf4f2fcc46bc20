"""Which records repeat others: byte for byte, as games, from the opening on, or at a mark. One bucket of keys at a
time.

What repeats lies in one bucket, since buckets are cut by the keys that are compared. Only what is found goes on: a rank
or a repeat back to the range of its record, an opening or a mark to the bucket of its own key.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline import dedup, near
from pipeline.games import Games
from pipeline.ordering import CONTENTS, FACTS, ranges_of, rows_of
from pipeline.pieces import bucket_of, joined_records, routed, whole_table, write_pieces
from pipeline.table import GAME_COLUMNS, OPENING_PLIES, games_of
from pipeline.words import repeated

# A record that is not the first of those with the same bytes, and its rank among them.
RANKS = np.dtype([("ordinal", "<u8"), ("rank", "<u4")])
# A game that repeats the game ``of``: how, and whether it had to be turned.
REPEATS = np.dtype([("ordinal", "<u8"), ("of", "<u8"), ("kind", "u1"), ("turned", "?")])
# Kinds of repeats beside the verdicts of ``dedup.dedup_games``.
PREFIX, NEAR = 3, 4

_GAME = [("ordinal", "<u8"), ("plies", "<u2"), ("known", "?"), ("old", "?")]
OPENINGS = np.dtype([*_GAME, ("opening", "<u8"), ("key", "<u8"), ("size", "u1", (2,))])
# Of one game there are as many as it reaches marks.
MARKED = np.dtype([*_GAME, ("mark_key", "<u8"), ("mark", "u1")])
PAIRS = np.dtype([("one", "<u8"), ("other", "<u8")])
ALIKE = np.dtype(_GAME)


@dataclass(frozen=True, slots=True)
class CompareTask:
    """Compare bucket ``number`` of the files ``facts``. Into ``out`` go, piece after piece: RANKS for each range,
    REPEATS for each range, OPENINGS and MARKED for each bucket."""

    number: int
    facts: tuple[str, ...]
    out: str
    ranges: int
    buckets: int
    games: bool


def compare_bucket(task: CompareTask) -> dict[str, int]:
    """Run a CompareTask; return how many games are to be left out (``dropped``). Raises DamagedWork, OSError."""
    contents = joined_records(task.facts, task.number, CONTENTS)
    ranks = _ranks(contents)
    facts = joined_records(task.facts, task.buckets + task.number, FACTS)
    facts = facts[np.argsort(facts["ordinal"])]
    if not task.games:
        facts = facts[:0]
    repeats, alone = _repeats(facts)
    openings, marked = _openings(facts[alone]), _marked(facts[alone])
    write_pieces(
        task.out,
        [
            *routed(ranks, ranges_of(ranks["ordinal"]), task.ranges),
            *routed(repeats, ranges_of(repeats["ordinal"]), task.ranges),
            *routed(openings, bucket_of(openings["opening"], task.buckets), task.buckets),
            *routed(marked, bucket_of(marked["mark_key"], task.buckets), task.buckets),
        ],
    )
    return {"dropped": len(repeats)}


def _ranks(contents: NDArray[Any]) -> NDArray[Any]:
    """Return RANKS; those that are in the data set already keep the ids they have, and come first."""
    contents = contents[np.lexsort((contents["ordinal"], ~contents["old"]))]
    rank = dedup.ranks_of(contents["content"])
    chosen = (rank > 0) & ~contents["old"]
    ranks = np.zeros(int(chosen.sum()), dtype=RANKS)
    ranks["ordinal"], ranks["rank"] = contents["ordinal"][chosen], rank[chosen]
    return ranks


def _repeats(facts: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return the REPEATS among games in the order of the table, and bool[G]: which are none."""
    outcomes = dedup.Outcomes(facts["winner"].astype(np.int8), facts["margin"], facts["komi"])
    kind, of = dedup.dedup_games(facts["key"], outcomes, facts["old"])
    alone = kind == dedup.KEPT
    repeats = np.zeros(int((~alone).sum()), dtype=REPEATS)
    mine, of = facts[~alone], of[~alone]
    repeats["ordinal"], repeats["of"], repeats["kind"] = mine["ordinal"], facts["ordinal"][of], kind[~alone]
    repeats["turned"] = mine["turn"] != facts["turn"][of]
    return repeats, alone


def _described(facts: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return what is told of each game, in an array of another kind."""
    games = np.zeros(len(facts), dtype=dtype)
    for name in ("ordinal", "plies", "old"):
        games[name] = facts[name]
    games["known"] = facts["winner"] != 0
    return games


def _openings(facts: NDArray[Any]) -> NDArray[Any]:
    facts = facts[facts["opens"]]
    openings = _described(facts, OPENINGS)
    for name in ("opening", "key", "size"):
        openings[name] = facts[name]
    return openings


def _marked(facts: NDArray[Any]) -> NDArray[Any]:
    game, mark = np.nonzero(np.arange(facts["mark_keys"].shape[1]) < facts["marks"][:, None])
    marked = _described(facts[game], MARKED)
    marked["mark"], marked["mark_key"] = mark, facts["mark_keys"][game, mark]
    return marked


@dataclass(frozen=True, slots=True)
class AlikeTask:
    """Of bucket ``number`` of the files that comparing wrote keep what occurs more than once: into ``out`` go OPENINGS
    of games that open alike, PAIRS of games that meet at a mark, and what is told of these (ALIKE)."""

    number: int
    compared: tuple[str, ...]
    out: str
    ranges: int
    buckets: int


def find_alike(task: AlikeTask) -> dict[str, int]:
    """Run an AlikeTask; return how many games it found. Raises DamagedWork, OSError."""
    start = 2 * task.ranges + task.number
    openings = joined_records(task.compared, start, OPENINGS)
    openings = openings[repeated(openings["opening"])]
    marked = joined_records(task.compared, start + task.buckets, MARKED)
    marked = marked[np.lexsort((marked["ordinal"], marked["mark_key"], marked["mark"]))]
    same = (marked["mark_key"][1:] == marked["mark_key"][:-1]) & (marked["mark"][1:] == marked["mark"][:-1])
    pairs = np.zeros(int(same.sum()), dtype=PAIRS)
    pairs["one"], pairs["other"] = marked["ordinal"][:-1][same], marked["ordinal"][1:][same]
    alike = _one_each(marked[np.append(same, False) | np.append(False, same)] if len(marked) else marked)
    write_pieces(task.out, [openings, pairs, alike])
    return {"games": len(openings) + len(alike)}


def _one_each(marked: NDArray[Any]) -> NDArray[Any]:
    """Return ALIKE: each game once."""
    _, first = np.unique(marked["ordinal"], return_index=True)
    games = np.zeros(len(first), dtype=ALIKE)
    for name, _ in _GAME:
        games[name] = marked[name][first]
    return games


@dataclass(frozen=True, slots=True)
class NearTask:
    """Find games that are nearly the same among those that the files ``alike`` tell of, with the moves in the tables
    ``ranges``: REPEATS of each range go to ``out``, and all of them, by ordinal, into one last piece."""

    alike: tuple[str, ...]
    ranges: tuple[str, ...]
    out: str


def find_near(task: NearTask) -> dict[str, int]:
    """Run a NearTask; return how many games it found. Raises DamagedWork, OSError."""
    openings = joined_records(task.alike, 0, OPENINGS)
    openings = openings[np.argsort(openings["ordinal"])]
    prefix_of = _prefixes(openings, task.ranges)
    short = prefix_of >= 0
    pairs, games = joined_records(task.alike, 1, PAIRS), joined_records(task.alike, 2, ALIKE)
    games = games[np.unique(games["ordinal"], return_index=True)[1]]
    one, other = (np.searchsorted(games["ordinal"], pairs[name]) for name in ("one", "other"))
    found = near.near_games(
        near.clusters(one, other, len(games)),
        np.isin(games["ordinal"], openings["ordinal"][short]),
        games["old"],
        games["known"],
        games["plies"].astype(np.int64),
    )
    repeats = np.concatenate([_pointing(openings, prefix_of, PREFIX), _pointing(games, found, NEAR)])
    repeats = repeats[np.argsort(repeats["ordinal"])]
    write_pieces(task.out, [*routed(repeats, ranges_of(repeats["ordinal"]), len(task.ranges)), repeats])
    return {"games": len(repeats)}


def _pointing(games: NDArray[Any], of: NDArray[np.int64], kind: int) -> NDArray[Any]:
    """Return the REPEATS of a kind; a game that was in the data set already stays as it is."""
    mine = (of >= 0) & ~games["old"]
    repeats = np.zeros(int(mine.sum()), dtype=REPEATS)
    repeats["ordinal"], repeats["of"], repeats["kind"] = games["ordinal"][mine], games["ordinal"][of[mine]], kind
    return repeats


def _prefixes(openings: NDArray[Any], ranges: Sequence[str]) -> NDArray[np.int64]:
    """Return int64[G]: which of the games each one is a prefix of, or -1. They come in the order of the table, and
    their moves are read range by range."""

    def chunks() -> Iterator[tuple[Games, NDArray[np.int64]]]:
        of_range = ranges_of(openings["ordinal"])
        for number in np.unique(of_range).tolist():
            games = np.flatnonzero(of_range == number)
            table = whole_table(ranges[number]).select(GAME_COLUMNS)
            yield games_of(table.take(pa.array(rows_of(openings["ordinal"][games])))), games

    plies = openings["plies"].astype(np.int64)
    return near.prefix_games(openings["size"], plies, openings["key"], OPENING_PLIES, chunks())
