"""The positions of games that a build takes, and what decides about each of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline import dedup
from pipeline.board import BLACK
from pipeline.columns import spans
from pipeline.compose import configured_scheme
from pipeline.config import Config
from pipeline.dedup import sample_positions
from pipeline.games import Games
from pipeline.keys import Keyed, keyed
from pipeline.table import games_of
from pipeline.weights import game_weights

Size = tuple[int, int]

UNKNOWN = 2  # in place of an outcome

# The kinds of result that have no value label: the game did not decide who played better.
_NO_VALUE = ("forfeit", "void")


def keyed_block(table: pa.Table, config: Config) -> tuple[Games, Keyed]:
    """Return the games of a table and what their replay gives, keys as wide as ``dedup.reach`` asks for."""
    games = games_of(table)
    return games, keyed(games, configured_scheme(config.encode), config.dedup.reach == "scheme")


def sampled_positions(table: pa.Table, games: Games, found: Keyed, config: Config) -> pa.Table:
    """Return the positions of games that the scheme can show and the sample takes, game after game; the games as
    ``keyed_block`` gives them.

    Columns: ``game`` (row in the table), ``ply``, ``turn`` (the canonical symmetry), ``fixed`` (the
    symmetries that leave it as it is), ``key``, ``key_hi``, ``move`` (frame index) and ``outcome`` (1 won,
    0 drawn, -1 lost for the side to move, else UNKNOWN).
    """
    plies = table.column("plies").to_numpy().astype(np.int64)
    rows = np.repeat(np.arange(games.number), plies)
    ply = np.arange(len(rows)) - np.repeat(np.cumsum(plies) - plies, plies)
    sample = config.sample
    wanted = sample_positions(table.column("game").to_numpy()[rows], ply, sample.per_game, sample.plies, sample.seed)
    wanted &= found.shown[games.move_start[rows] + ply]
    rows, ply = rows[wanted], ply[wanted]
    at, replayed = games.move_start[rows] + ply, found.replayed
    black_value = black_values(table)[rows]
    outcome = np.where(np.isnan(black_value), UNKNOWN, black_value * sign_of(games.colours[at]))
    return pa.table(
        {
            "game": pa.array(rows, pa.uint32()),
            "ply": pa.array(ply, pa.uint16()),
            "turn": pa.array(replayed.turns[at]),
            "fixed": pa.array(replayed.fixed[at]),
            "key": pa.array(replayed.keys[at]),
            "key_hi": pa.array(replayed.keys_hi[at]),
            "move": pa.array(_frame_moves(games, rows, at, config.frame)),
            "outcome": pa.array(outcome.astype(np.int8)),
        }
    )


def _frame_moves(games: Games, row_games: NDArray[np.int64], at: NDArray[np.int64], frame: Size) -> NDArray[np.int16]:
    """Return the frame index of each move ``at``, the frame's area for a pass."""
    move, cols = games.moves[at].astype(np.int64), games.cols[row_games].astype(np.int64)
    is_pass = move == games.rows[row_games].astype(np.int64) * cols
    index = np.where(is_pass, frame[0] * frame[1], move // cols * frame[1] + move % cols)
    return index.astype(np.int16)


def sign_of(colours: NDArray[np.int8]) -> NDArray[np.float32]:
    """Return 1 where Black is to move, -1 where White is."""
    return np.where(colours == BLACK, np.float32(1), np.float32(-1))


def black_values(block: pa.Table) -> NDArray[np.float32]:
    """Return the value of each game from Black's side, NaN where it has none."""
    signs = {"B": 1.0, "W": -1.0, "draw": 0.0}
    value = np.array([signs.get(winner, np.nan) for winner in block.column("winner").to_pylist()], dtype=np.float32)
    value[np.isin(np.array(block.column("result_kind").to_pylist(), dtype=str), _NO_VALUE)] = np.nan
    return value


@dataclass(frozen=True, slots=True)
class Sampled:
    """All sampled positions, one array entry each: what decides about them."""

    key: NDArray[np.uint64]
    key_hi: NDArray[np.uint64]
    game: NDArray[np.uint64]
    ply: NDArray[np.uint16]
    part: NDArray[np.int8]
    rows: NDArray[np.uint8]
    cols: NDArray[np.uint8]
    turn: NDArray[np.uint8]
    fixed: NDArray[np.uint8]
    move: NDArray[np.int16]
    outcome: NDArray[np.int8]
    weight: NDArray[np.float32]

    def take(self, order: NDArray[np.int64]) -> "Sampled":
        """Return the positions in another order."""
        return Sampled(*(getattr(self, name)[order] for name in self.__slots__))


def located(games: pa.Table, keys: pa.Table, config: Config) -> dict[str, NDArray[Any]]:
    """Return the arrays of ``Sampled`` for the positions ``keys`` of the table ``games``."""
    number = keys.column("game").to_numpy()
    part = np.array([dedup.PARTS.index(split) for split in games.column("split").to_pylist()], dtype=np.int8)
    return {
        name: keys.column(name).to_numpy() for name in ("key", "key_hi", "ply", "turn", "fixed", "move", "outcome")
    } | {
        "game": games.column("game").to_numpy()[number],
        "part": part[number],
        "rows": games.column("board_rows").to_numpy()[number],
        "cols": games.column("board_cols").to_numpy()[number],
        "weight": game_weights(games, config.sample.weights)[number],
    }


def joined(pieces: Sequence[dict[str, NDArray[Any]]]) -> Sampled:
    """Return the positions of several tables of games in one."""
    if not pieces:
        return Sampled(*(np.zeros(0, dtype=dtype) for dtype in _DTYPES))
    return Sampled(*(np.concatenate([piece[name] for piece in pieces]) for name in Sampled.__slots__))


_DTYPES = ("u8", "u8", "u8", "u2", "i1", "u1", "u1", "u1", "u1", "i2", "i1", "f4")


def by_game_and_ply(game: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the order of (game id, ply) of positions whose games come one after the other, plies rising."""
    starts = np.flatnonzero(np.concatenate([[True], game[1:] != game[:-1]])[: len(game)])
    lengths = np.diff(np.append(starts, len(game)))
    rank = np.argsort(game[starts], kind="stable")
    return spans(starts[rank], lengths[rank])


def ordered_positions(games: pa.Table, sampled: pa.Table, config: Config) -> tuple[Sampled, NDArray[np.int64]]:
    """Return the positions of a block in the order of (game id, ply), and that order."""
    positions = joined([located(games, sampled, config)])
    order = by_game_and_ply(positions.game)
    return positions.take(order), order
