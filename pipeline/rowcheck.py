"""Every row of a data set against the game it says it comes from, and what must hold of all rows together."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.board import BLACK
from pipeline.columns import Columns
from pipeline.config import Config
from pipeline.gametable import KeptGames
from pipeline.load import Dataset
from pipeline.manifest import SPLITS, ShardEntry

MOST_FAULTS = 20  # of one kind


def note_rows(faults: dict[str, list[str]], entry: ShardEntry, start: int, text: str, bad: NDArray[np.bool_]) -> None:
    """Note under ``text`` the rows of a batch that are ``bad``, the first few of each kind; row ``start`` of the
    shard is the batch's first."""
    found = faults.setdefault(text, [])
    for row in np.flatnonzero(bad)[: max(0, MOST_FAULTS - len(found))]:
        found.append(f"{entry.path} row {start + int(row)}: {text}")


def same_values(stored: NDArray[Any], expected: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where values are the same, unknown counting as equal to unknown."""
    same: NDArray[np.bool_] = stored == expected
    if stored.dtype.kind == "f":
        same |= np.isnan(stored) & np.isnan(expected)
    return same


class RowChecker:
    """Takes the rows of a data set batch by batch; keeps their keys and where they come from."""

    def __init__(self, dataset: Dataset, config: Config, games: KeptGames) -> None:
        self.count = 0
        self._dataset, self._config, self._games = dataset, config, games
        self._faults: dict[str, list[str]] = {}
        self._keys: dict[str, list[NDArray[np.uint64]]] = {split: [] for split in SPLITS}
        self._places: list[NDArray[np.uint64]] = []
        self._rows = np.zeros(len(games.ids), dtype=np.int64)
        self._weight = 0.0

    def check(self, entry: ShardEntry, start: int, batch: Columns) -> None:
        """Check a batch (its first row is row ``start`` of the shard); needs all columns but planes."""
        count = len(batch["move"])
        self.count += count
        number = np.searchsorted(self._games.ids, batch["game"])
        number = np.minimum(number, max(0, len(self._games.ids) - 1))
        known = self._games.ids[number] == batch["game"] if len(self._games.ids) else np.zeros(count, dtype=np.bool_)
        note_rows(self._faults, entry, start, "its game is no kept game of games.parquet", ~known)
        ply = batch["ply"].astype(np.int64)
        inside = known.copy()
        inside[known] = ply[known] < self._games.plies[number[known]]
        note_rows(self._faults, entry, start, "its game has no such ply", known & ~inside)
        kept = np.flatnonzero(inside)
        if len(kept):
            piece = {name: values[kept] for name, values in batch.items() if not name.startswith("policy_")}
            for text, bad in self._row_faults(entry, piece, number[kept], ply[kept]):
                whole = np.zeros(count, dtype=np.bool_)
                whole[kept] = bad
                note_rows(self._faults, entry, start, text, whole)
        np.add.at(self._rows, number[known], 1)
        place = (number.astype(np.uint64) << np.uint64(20)) | (ply.astype(np.uint64) << np.uint64(4))
        self._places.append((place | batch["symmetry"].astype(np.uint64))[known])
        original = batch["symmetry"] == 0 if self._config.augment.mode == "all" else np.ones(count, dtype=np.bool_)
        self._keys[entry.split].append(batch["key"][original])
        self._weight += float(batch["weight"][original].sum(dtype=np.float64))

    def _row_faults(
        self, entry: ShardEntry, batch: Columns, number: NDArray[np.int64], ply: NDArray[np.int64]
    ) -> Iterator[tuple[str, NDArray[np.bool_]]]:
        """Yield what can be wrong with rows of known games, and where it is."""
        games, frame = self._games, self._dataset.frame
        at = games.start[number] + ply
        rows, cols = games.sizes[number, 0], games.sizes[number, 1]
        yield f"its game is not in {entry.split}", games.part[number] != SPLITS.index(entry.split)
        fits = (batch["rows"] == rows) & (batch["cols"] == cols) & (rows <= frame[0]) & (cols <= frame[1])
        yield "the board is not of the game's size", ~fits
        turn = batch["symmetry"]
        turns = np.where(rows == cols, 8, 4) if self._config.augment.mode != "none" else np.ones(len(rows), np.int64)
        yield "the board has no such symmetry, or augment.mode makes none", turn >= turns
        colour = games.colours[at]
        yield "to_play is not the side that moved", batch["to_play"] != colour
        sign = np.where(colour == BLACK, 1, -1).astype(np.float32)
        for name, expected in (
            ("score", games.score[number] * sign),
            ("komi", games.komi[number]),
        ):
            yield f"{name} is not that of the game", ~same_values(batch[name], expected)

    def finish(self, whole: bool) -> Iterator[str]:
        """Yield all faults; those of totals only where every shard was read (``whole``)."""
        for found in self._faults.values():
            yield from found
        places = np.concatenate([np.zeros(0, dtype=np.uint64), *self._places])
        if (repeated := len(places) - len(np.unique(places))) > 0:
            yield f"{repeated:,} rows repeat another (game, ply, symmetry)"
        none = np.zeros(0, dtype=np.uint64)
        keys = {split: np.concatenate([none, *found]) for split, found in self._keys.items()}
        unique = {split: np.unique(found) for split, found in keys.items()}
        if self._config.dedup.positions != "off":
            for split in SPLITS:
                if repeated := len(keys[split]) - len(unique[split]):
                    yield f"{repeated:,} rows of {split} repeat a key of {split}"
        if self._config.split.overlap == "drop":
            for one, other in ((SPLITS[0], SPLITS[1]), (SPLITS[0], SPLITS[2]), (SPLITS[1], SPLITS[2])):
                both = np.intersect1d(unique[one], unique[other], assume_unique=True)
                if len(both):
                    yield f"{len(both):,} keys are in both {one} and {other}, e.g. {both[0]}"
        if whole:
            yield from self._total_faults()

    def _total_faults(self) -> Iterator[str]:
        differ = np.flatnonzero(self._rows != self._games.rows)
        for number in differ[:MOST_FAULTS]:
            yield (
                f"game {self._games.ids[number]}: {self._rows[number]:,} rows in the shards, "
                f"{self._games.rows[number]:,} in games.parquet"
            )
        manifest = self._dataset.manifest
        # Rows do not count the repeats that came with a later growth.
        left_out = sum(entry.left_out for entry in manifest.growths)
        told = manifest.positions.stored + manifest.positions.merged - left_out
        if not self._config.sample.weights and self._weight != told:
            text = "stored + merged - left out" if manifest.growths else "stored + merged"
            yield f"weights sum to {self._weight:,.0f}, {text} is {told:,}"
