"""Sampling weights: how much a game counts, by where it comes from and how strong its players are."""

from collections.abc import Sequence
from fnmatch import fnmatchcase

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline.config import SampleWeight
from pipeline.headers.rank import read_rank

_FRACTION = 2**20


def matches(globs: Sequence[str], source: str, member: str | None) -> bool:
    """Return whether a record's source, or source and member joined by "/", matches one of the globs."""
    full = source if member is None else f"{source}/{member}"
    return any(fnmatchcase(source, glob) or fnmatchcase(full, glob) for glob in globs)


def game_weights(games: pa.Table, rules: Sequence[SampleWeight]) -> NDArray[np.float32]:
    """Return float32[G]: the weight of each game, that of the first rule which matches it, else 1.

    ``games`` has the columns source, member, black_rank and white_rank of the game table. A rule with a rank
    matches where both players are known to have it or a higher one. Weights are rounded to multiples of 2**-20 (but not
    to 0), so that sums of them are exact.
    """
    if not rules:
        return np.ones(games.num_rows, dtype=np.float32)
    lowest = [None if rule.min_rank is None else read_rank(rule.min_rank)[0] for rule in rules]

    def weight(source: str, member: str | None, black: int | None, white: int | None) -> float:
        for rule, rank in zip(rules, lowest, strict=True):
            strong = rank is None or (black is not None and white is not None and min(black, white) >= rank)
            if strong and matches((rule.source,), source, member):
                return _rounded(rule.weight)
        return 1.0

    columns = (games.column(name).to_pylist() for name in ("source", "member", "black_rank", "white_rank"))
    return np.array([weight(*row) for row in zip(*columns, strict=True)], dtype=np.float32)


def _rounded(weight: float) -> float:
    return max(1, round(weight * _FRACTION)) / _FRACTION
