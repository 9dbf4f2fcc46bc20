"""The rows that a data set must hold, worked out anew from its game table, and every stored row held against them.

Keys, merging, labels, parts and images are decided again from ``games.parquet`` and the stored configuration;
a stored row must then be one of the expected rows, with the same numbers in every column.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from pipeline.augment import turn_moves, turn_planes, turned_policy
from pipeline.blocks import stored_images
from pipeline.columns import POLICY, Columns, take_rows
from pipeline.config import Config
from pipeline.expected import expected
from pipeline.load import Dataset
from pipeline.manifest import SPLITS, ShardEntry
from pipeline.rowcheck import MOST_FAULTS, note_rows, same_values
from pipeline.sampled import Sampled
from pipeline.symmetry import INVERSE, composed
from pipeline.words import Words, mix_words

_SAME = ("key", "key_hi", "weight", "value", "wins", "draws", "losses")


class Recount:
    """The expected rows of a data set, in the order of (game id, ply), and what was seen of each.

    Raises ShardError where the game table holds a kept game that cannot be replayed or has an illegal move.
    The configuration must be that of the manifest, and no kept game's board larger than the frame.
    """

    def __init__(self, dataset: Dataset, config: Config) -> None:
        found = expected(dataset, config)
        self._config, self._frame_cols = config, dataset.frame[1]
        self._shown = "planes or globals" if dataset.scheme.globals else "planes"
        self._rows, self._columns = found.rows, found.columns
        self._ids, starts = np.unique(self._rows.game, return_index=True)
        self._starts = np.append(starts, len(self._rows.game))
        self._images = np.zeros(len(self._rows.game), dtype=np.uint8)
        square = self._rows.rows == self._rows.cols
        numbers, turns = stored_images(self._rows.game, self._rows.ply, square, self._rows.fixed, config)
        np.bitwise_or.at(self._images, numbers, np.uint8(1) << turns)
        self._seen = np.zeros(len(self._rows.game), dtype=np.uint8)
        self._faults: dict[str, list[str]] = {"games": found.faults}
        self._keys: list[Words] = []
        self._planes: list[Words] = []

    def check(self, entry: ShardEntry, start: int, batch: Columns) -> None:
        """Check a batch of all columns (its first row is row ``start`` of the shard)."""
        number, known = self._find(batch["game"], batch["ply"])
        note_rows(
            self._faults,
            entry,
            start,
            "its position is none that is kept: merged, in another part, left out by the sample or the scheme, or not "
            "there",
            ~known,
        )
        at = np.flatnonzero(known)
        if len(at) == 0:
            return
        piece = take_rows(batch, at)
        for text, wrong in self._row_faults(entry, piece, number[at]):
            whole = np.zeros(len(known), dtype=np.bool_)
            whole[at] = wrong
            note_rows(self._faults, entry, start, text, whole)

    def _find(self, game: NDArray[np.uint64], ply: NDArray[np.uint16]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return the number of the expected row of each (game, ply), and whether there is one."""
        if len(self._ids) == 0:
            return np.zeros(len(game), dtype=np.int64), np.zeros(len(game), dtype=np.bool_)
        place = np.minimum(np.searchsorted(self._ids, game), len(self._ids) - 1)
        # (game, ply) as one number, plies having 16 bits.
        words = (np.repeat(np.arange(len(self._ids)), np.diff(self._starts)) << 16) | self._rows.ply
        number = np.minimum(np.searchsorted(words, (place << 16) | ply), len(words) - 1)
        return number, (self._ids[place] == game) & (self._rows.ply[number] == ply) & (self._rows.game[number] == game)

    def _row_faults(
        self, entry: ShardEntry, batch: Columns, number: NDArray[np.int64]
    ) -> Iterator[tuple[str, NDArray[np.bool_]]]:
        """Yield what can be wrong with rows whose position is expected, and where it is."""
        rows, turn = self._rows.take(number), batch["symmetry"]
        yield f"its position does not belong to {entry.split}", rows.part != SPLITS.index(entry.split)
        bit = np.uint8(1) << np.minimum(turn, 7)
        yield "its image is none that is stored", (self._images[number] & bit) == 0
        twice = (self._seen[number] & bit) != 0
        words = number * 8 + turn
        order = np.argsort(words, kind="stable")
        twice[order[1:]] |= words[order][1:] == words[order][:-1]
        yield "it repeats a row: the same position and image", twice
        np.bitwise_or.at(self._seen, number, bit)
        expected = take_rows(self._columns, number)
        for name in _SAME:
            if name in batch and name in expected:
                yield f"{name} is not what the games give", ~same_values(batch[name], expected[name])
        turn = np.where((turn >= 4) & (rows.rows != rows.cols), 0, np.minimum(turn, 7)).astype(np.uint8)
        move = turn_moves(expected["move"], rows.rows, rows.cols, self._frame_cols, turn)
        yield "move is not the label of its position", batch["move"] != move
        if "policy_moves" in batch:
            expected |= {"rows": rows.rows, "cols": rows.cols}
            expected |= turned_policy(expected, self._frame_cols, turn)
            yield "the policy is not what the games give", _policies_differ(batch, expected)
        self._remember_planes(batch, rows, turn)

    def _remember_planes(self, batch: Columns, rows: Sampled, turn: NDArray[np.uint8]) -> None:
        """Keep a hash of the planes turned to the canonical orientation, and of the globals, beside the stored key."""
        back = np.array(INVERSE, dtype=np.uint8)[turn]
        canonical = composed()[back, rows.turn]
        planes = turn_planes(batch["planes"], rows.rows, rows.cols, self._frame_cols, canonical)
        flat = planes.reshape(len(planes), -1)
        if "globals" in batch:
            flat = np.concatenate([flat, np.ascontiguousarray(batch["globals"]).view(np.uint8)], axis=1)
        flat = np.pad(flat, ((0, 0), (0, -flat.shape[1] % 8))).view(np.uint64)
        weights = mix_words(np.arange(flat.shape[1], dtype=np.uint64)) | np.uint64(1)
        self._keys.append(batch["key"] if "key_hi" not in batch else mix_words(batch["key"]) ^ batch["key_hi"])
        self._planes.append(mix_words(flat * weights).sum(axis=1, dtype=np.uint64))

    def finish(self, whole: bool) -> Iterator[str]:
        """Yield all faults; missing rows only where every shard was read (``whole``)."""
        for found in self._faults.values():
            yield from found
        if whole:
            missing = np.flatnonzero(self._images & ~self._seen)
            for number in missing[:MOST_FAULTS]:
                yield (
                    f"game {self._rows.game[number]} ply {self._rows.ply[number]}: "
                    f"its row is missing from {SPLITS[self._rows.part[number]]}"
                )
            if len(missing) > MOST_FAULTS:
                yield f"and {len(missing) - MOST_FAULTS:,} more rows are missing"
        yield from self._unequal_planes()

    def _unequal_planes(self) -> Iterator[str]:
        """Yield the keys under which different planes or globals are stored; a key of reach ``board`` allows that."""
        if not self._keys or self._config.dedup.reach == "board":
            return
        keys, planes = np.concatenate(self._keys), np.concatenate(self._planes)
        order = np.lexsort((planes, keys))
        keys, planes = keys[order], planes[order]
        for number in np.flatnonzero((keys[1:] == keys[:-1]) & (planes[1:] != planes[:-1]))[:MOST_FAULTS]:
            yield f"key {keys[number]}: rows with this key have different {self._shown}"


def _policies_differ(batch: Columns, expected: Columns) -> NDArray[np.bool_]:
    """Return in which rows the moves or their counts are not the expected ones."""
    lengths, others = np.diff(batch["policy_offsets"]), np.diff(expected["policy_offsets"])
    differ: NDArray[np.bool_] = lengths != others
    same = np.flatnonzero(~differ)
    mine, theirs = (take_rows({name: columns[name] for name in POLICY}, same) for columns in (batch, expected))
    wrong = (mine["policy_moves"] != theirs["policy_moves"]) | (mine["policy_counts"] != theirs["policy_counts"])
    row = np.repeat(same, lengths[same])
    differ[row[wrong]] = True
    return differ
