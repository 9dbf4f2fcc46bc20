"""Rows of a ``katago_v7`` data set as the npz files that KataGo's shuffler and trainer read.

A row of L x L has what KataGo's self-play writes (its ``trainingwrite``, input version 7, 64 global targets), all of it
seen from the side to move. What a game record does not know is switched off by its weight: the search's values over
time, ownership, lead, the reply to the move, and the result where there is none.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.columns import Columns, slice_rows
from pipeline.config import ConfigError
from pipeline.files import whole_file, whole_folder
from pipeline.load import Dataset
from pipeline.schemes import find_scheme
from pipeline.words import chain_words, seed_word

SCHEME = "katago_v7"
GLOBAL_TARGETS = 64
EXTRA_SCORES = 60  # points beyond the area of the board that a score may have, to either side
FORMAT = 2  # of 64 global targets
OF_A_RECORD = 4  # mode: the game was read from a file
_MOST = np.iinfo(np.int16).max
_HASH_BITS = (22, 22, 20)


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written: the files with their rows."""

    target: str
    files: dict[str, int]


def export(
    dataset: Dataset,
    target: str | Path,
    *,
    split: str = "train",
    rows: int | None = None,
    rows_per_file: int = 16_384,
    max_weight: float | None = None,
) -> Exported:
    """Write rows of a part, in the order of the shards, as ``data-00000.npz``, ... into a folder that appears whole.

    ``rows``: how many (None: all); ``max_weight``: rows that stand for more games count no more than that. Raises
    ConfigError for a data set that cannot be exported or a folder that is not empty, ShardError, OSError.
    """
    if (rows is not None and rows < 1) or rows_per_file < 1:
        raise ConfigError(f"{rows} rows, {rows_per_file} in a file: both are at least 1")
    if max_weight is not None and not 0 < max_weight < np.inf:
        raise ConfigError(f"the largest weight has to be a number above 0, not {max_weight}")
    require_exportable(dataset)
    if not dataset.rows(split):
        raise ConfigError(f"{dataset.folder} has no rows in {split}")
    place = Path(os.path.realpath(target))
    if place.is_relative_to(os.path.realpath(dataset.folder)):
        raise ConfigError(f"{target} lies in the data set: choose a folder outside it")
    if place.exists() and not (place.is_dir() and not any(place.iterdir())):
        raise ConfigError(f"{target} is there already: choose another folder")
    left = min(dataset.rows(split), dataset.rows(split) if rows is None else rows)
    files: dict[str, int] = {}
    with whole_folder(target) as folder:
        for batch in _taken(dataset, split, left, rows_per_file):
            name = f"data-{len(files):05d}.npz"
            arrays = npz_arrays(batch, dataset.frame[0], max_weight)
            with whole_file(folder / name) as temporary, open(temporary, "wb") as file:
                np.savez_compressed(file, **arrays)
            files[name] = len(batch["move"])
    return Exported(str(target), files)


def _taken(dataset: Dataset, split: str, left: int, rows_per_file: int) -> Iterator[Columns]:
    """Yield the first ``left`` rows of a part."""
    columns = ["planes", "globals", "move", "policy_moves", "policy_counts", "value", "weight", "score", "game", "ply"]
    columns = [name for name in columns if name in dataset.columns]
    for batch in dataset.batches(split, columns=columns, batch_size=rows_per_file):
        count = min(left, len(batch["move"]))
        left -= count
        yield slice_rows(batch, 0, count)
        if left == 0:
            return


def require_exportable(dataset: Dataset) -> None:
    """Raise ConfigError unless the rows have KataGo's planes and numbers on a square frame."""
    scheme = dataset.scheme
    expected = find_scheme(SCHEME)
    if scheme.name != SCHEME:
        raise ConfigError(f"{dataset.folder} has the scheme {scheme.name}; KataGo reads {SCHEME}")
    names = tuple(plane.name for plane in expected.planes), tuple(plane.name for plane in expected.globals)
    if (scheme.planes, scheme.globals) != names:
        raise ConfigError(f"{dataset.folder} does not have all planes of {SCHEME}")
    if dataset.frame[0] != dataset.frame[1]:
        raise ConfigError(f"{dataset.folder} has a frame of {dataset.frame[0]}x{dataset.frame[1]}: KataGo's is square")


def npz_arrays(batch: Columns, side: int, max_weight: float | None = None) -> dict[str, Any]:
    """Return the arrays of an npz file for rows of a data set (``planes`` packed) with a frame of ``side`` x ``side``.

    With A = L * L: binaryInputNCHWPacked uint8[N, 22, ceil(A / 8)], globalInputNC float32[N, 19], policyTargetsNCMove
    int16[N, 2, A + 1], globalTargetsNC float32[N, 64], scoreDistrN int8[N, 2 * A + 120], valueTargetsNCHW
    int8[N, 5, L, L].
    """
    count, area = len(batch["move"]), side * side
    outcome = _outcomes(batch)
    known = ~np.isnan(outcome[:, 0])
    score = batch["score"].astype(np.float32)
    return {
        "binaryInputNCHWPacked": batch["planes"],
        "globalInputNC": batch["globals"],
        "policyTargetsNCMove": _policies(batch, area),
        "globalTargetsNC": _global_targets(batch, outcome, known, np.nan_to_num(score), max_weight),
        "scoreDistrN": _score_distribution(score, area),
        "valueTargetsNCHW": np.zeros((count, 5, side, side), dtype=np.int8),
    }


def _outcomes(batch: Columns) -> NDArray[np.float32]:
    """Return float32[N, 2]: how often the side to move won and lost, a draw being half of each; NaN where no result is
    known."""
    value = batch["value"]
    return np.stack([(1 + value) / 2, (1 - value) / 2], axis=1).astype(np.float32)


def _policies(batch: Columns, area: int) -> NDArray[np.int16]:
    """Return int16[N, 2, area + 1]: how often each move was played, and ones for the reply, which has no weight."""
    policies = np.ones((len(batch["move"]), 2, area + 1), dtype=np.int16)
    policies[:, 0] = 0
    if "policy_moves" not in batch:
        policies[np.arange(len(batch["move"])), 0, batch["move"]] = 1
        return policies
    counts = batch["policy_counts"].astype(np.int64)
    row = np.repeat(np.arange(len(batch["move"])), np.diff(batch["policy_offsets"]))
    most = np.zeros(len(batch["move"]), dtype=np.int64)
    np.maximum.at(most, row, counts)
    # The format has 16 bits for a count: of a row with more, all shrink alike, and none to nothing.
    scale = np.maximum(most[row], _MOST)
    policies[row, 0, batch["policy_moves"]] = np.maximum(1, counts * _MOST // scale)
    return policies


def _global_targets(
    batch: Columns,
    outcome: NDArray[np.float32],
    known: NDArray[np.bool_],
    score: NDArray[np.float32],
    max_weight: float | None,
) -> NDArray[np.float32]:
    """Return float32[N, 64]: targets, their weights, facts of the row. What is not set is 0."""
    targets = np.zeros((len(known), GLOBAL_TARGETS), dtype=np.float32)
    for first in (0, 4, 8, 12, 16):  # the result, and what a search would have thought some turns later
        targets[:, first : first + 2] = np.where(known[:, None], outcome, 0.5)
        targets[:, first + 3] = score
    targets[:, 20] = targets[:, 21] = score
    targets[:, 24] = 1  # switches 4 to 19 off
    targets[:, 25] = batch["weight"] if max_weight is None else np.minimum(batch["weight"], max_weight)
    targets[:, 26] = 1  # the move; ownership and score (27), reply (28), lead (29), later boards (33), area (34): 0
    targets[:, 35] = ~known  # one minus the weight of the result
    targets[:, 36:41] = 1  # all of the history is shown
    games = batch["game"]
    for first, words in ((41, games), (44, chain_words(seed_word("second half of a hash"), games))):
        shift = 0
        for place, bits in enumerate(_HASH_BITS):
            targets[:, first + place] = (words >> np.uint64(shift)) & np.uint64((1 << bits) - 1)
            shift += bits
    inputs = batch["globals"]
    targets[:, 47] = inputs[:, 5] * np.float32(20)
    targets[:, 48] = (inputs[:, 9] == 0) | (inputs[:, 13] != 0)
    targets[:, 51] = batch["ply"]
    targets[:, 55] = OF_A_RECORD
    targets[:, 62] = known
    targets[:, 63] = FORMAT
    return targets


def _score_distribution(score: NDArray[np.float32], area: int) -> NDArray[np.int8]:
    """Return int8[N, 2 * area + 120] that sum to 100: place i stands for i - area - 59.5 points; a whole score lies on
    two places, an unknown one around 0."""
    middle = area + EXTRA_SCORES
    distribution = np.zeros((len(score), 2 * middle), dtype=np.int8)
    exact = np.clip(np.nan_to_num(score).astype(np.float64) + middle - 0.5, 0, 2 * middle - 1)
    lower = np.floor(exact).astype(np.int64)
    upper_share = np.round(100 * (exact - lower)).astype(np.int8)
    rows = np.arange(len(score))
    distribution[rows, lower] = 100 - upper_share
    shared = upper_share > 0
    distribution[rows[shared], lower[shared] + 1] = upper_share[shared]
    return distribution


def facts(exported: Exported) -> dict[str, Any]:
    """Return what was written, for ``--json``."""
    return {"folder": exported.target, "rows": sum(exported.files.values()), "files": exported.files}


def lines(exported: Exported) -> Iterator[str]:
    """Yield what was written, for a person."""
    rows = sum(exported.files.values())
    yield f"{rows:,} rows in {len(exported.files)} npz files: {exported.target}"
