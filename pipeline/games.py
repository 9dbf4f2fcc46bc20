"""Games as arrays for the kernels: moves, colours and setup stones of many games end to end."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.rules import RuleSet

OFF_BOARD = 65_535  # in place of a move that no board can hold


class Terms(NamedTuple):
    """What each game is played for, [G].

    ``scoring``, ``tax``, ``bonus`` int8 (``rules.SCORING_*``, ``TAX_*``, ``BONUS_*``: White's points for N
    handicap stones); ``button`` bool; ``komi`` float32: the record's, or that of its rules where it is unknown;
    ``handicap`` int16: stones by the record, 0 where it says nothing.
    """

    scoring: NDArray[np.int8]
    tax: NDArray[np.int8]
    bonus: NDArray[np.int8]
    button: NDArray[np.bool_]
    komi: NDArray[np.float32]
    handicap: NDArray[np.int16]


def terms_of(rules: Sequence[RuleSet], komi: Sequence[float | None], handicap: Sequence[int | None]) -> Terms:
    """Return the terms of games: their rules, komi and handicap, None where that is unknown."""
    return Terms(
        np.array([each.scoring_code for each in rules], dtype=np.int8),
        np.array([each.tax_code for each in rules], dtype=np.int8),
        np.array([each.bonus_code for each in rules], dtype=np.int8),
        np.array([each.button for each in rules], dtype=np.bool_),
        np.array([each.komi if own is None else own for each, own in zip(rules, komi, strict=True)], dtype=np.float32),
        np.array([stones or 0 for stones in handicap], dtype=np.int16),
    )


class Games(NamedTuple):
    """Many games, struct of arrays. Game g has moves ``moves[move_start[g] : move_start[g + 1]]``.

    ``rows``, ``cols`` uint8[G]; ``ko_rule`` int8[G] (``rules.KO_*``); ``suicide`` bool[G];
    ``move_start``, ``setup_start`` int64[G + 1]; ``moves`` uint16 (row * cols + col, pass = area);
    ``colours`` int8; ``setup_plies`` uint16 (moves before it), ``setup_points`` uint16,
    ``setup_colours`` int8 (EMPTY, BLACK, WHITE), in the order of plies; ``terms``: scoring and komi. Kernels
    trust that colours are colours and that setup points lie on the board (``parse`` and ``table`` see to it).
    """

    rows: NDArray[np.uint8]
    cols: NDArray[np.uint8]
    ko_rule: NDArray[np.int8]
    suicide: NDArray[np.bool_]
    move_start: NDArray[np.int64]
    moves: NDArray[np.uint16]
    colours: NDArray[np.int8]
    setup_start: NDArray[np.int64]
    setup_plies: NDArray[np.uint16]
    setup_points: NDArray[np.uint16]
    setup_colours: NDArray[np.int8]
    terms: Terms

    @property
    def number(self) -> int:
        """How many games there are."""
        return len(self.rows)

    def by_size(self) -> dict[tuple[int, int], NDArray[np.int64]]:
        """Return the numbers of the games of each board size, sizes in order."""
        sizes = self.rows.astype(np.int64) * 256 + self.cols
        return {
            (int(size) // 256, int(size) % 256): np.flatnonzero(sizes == size).astype(np.int64)
            for size in np.unique(sizes)
        }
