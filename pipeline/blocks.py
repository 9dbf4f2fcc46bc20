"""The last stage, block by block: the positions a block keeps -> its shards, shuffled and augmented.

A block is a set of kept games, in the order of (size, game id). Its shards are a pure function of it, of its rows and
of the configuration, so that any worker can do a block again.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline import symmetry
from pipeline.augment import turn_moves, turn_planes, turned_policy
from pipeline.columns import BLOCK_ROWS, SUFFIXES, Columns, Layout, take_rows
from pipeline.compose import configured_scheme
from pipeline.config import Config
from pipeline.dedup import PARTS
from pipeline.encode import encode_whole
from pipeline.files import read_report, sha256_of_file, write_report
from pipeline.games import Games
from pipeline.pieces import whole_table
from pipeline.sampled import black_values, sign_of
from pipeline.shard import write
from pipeline.table import games_of
from pipeline.words import chain_words, seed_word

_WINDOW = 1_000  # rows within which different games are counted


@dataclass(frozen=True, slots=True)
class ShardPlan:
    """Where a block's rows of one part go: the number of its first shard, and of its shards."""

    part: int
    first: int
    shards: int


@dataclass(frozen=True, slots=True)
class EncodeTask:
    """Encode the rows ``rows`` (a table that ``rows.keep_rows`` wrote) of the block ``games`` into shards under
    ``folder``; ``report`` is written last."""

    games: str
    rows: str
    folder: str
    report: str
    plans: tuple[ShardPlan, ...]
    config: Config
    layout: Layout


def encode_block(task: EncodeTask) -> dict[str, Any]:
    """Write the shards of a block and return the report of them. Raises DamagedWork, OSError."""
    rows = encoded_rows(task)
    shards = []
    for plan in task.plans:
        order, turns, _ = shuffled(rows, plan.part, task.config)
        for number, piece in enumerate(np.array_split(np.arange(len(order)), plan.shards)):
            path = shard_path(plan.part, plan.first + number, task.config)
            batches = turned_batches(rows.columns, order[piece], turns[piece], task.layout)
            shards.append(write_shard(task.folder, path, batches, task.layout))
    return reported(task, shards)


@dataclass(frozen=True, slots=True)
class EncodedRows:
    """The rows of a block: their ``columns``, not turned; the ``part`` int8 of each; the symmetries ``fixed`` uint8
    that leave it as it is."""

    columns: Columns
    part: NDArray[np.int8]
    fixed: NDArray[np.uint8]


def encoded_rows(task: EncodeTask) -> EncodedRows:
    """Return the rows of a block, encoded, in the order of its games."""
    block, kept = whole_table(task.games), whole_table(task.rows)
    row_games = kept.column("game").to_numpy().astype(np.int64)
    row_plies = kept.column("ply").to_numpy().astype(np.int64)
    games = games_of(block)
    columns = _labels(block, games, kept, task.layout)
    scheme = configured_scheme(task.config.encode)
    columns["planes"], global_inputs = encode_whole(scheme, games, row_games, row_plies, task.layout.frame)
    if task.layout.globals:
        columns["globals"] = global_inputs
    return EncodedRows(columns, kept.column("part").to_numpy(), kept.column("fixed").to_numpy())


def write_shard(folder: str, path: str, batches: Iterable[Columns], layout: Layout) -> dict[str, Any]:
    """Write one shard and return what ``dataset.json`` says of it; ``path`` is that inside the data set."""
    games: list[NDArray[np.uint64]] = []

    def noted() -> Iterator[Columns]:
        for batch in batches:
            games.append(batch["game"])
            yield batch

    written = write(Path(folder) / path, noted(), layout)
    return {
        "split": path.partition("/")[0],
        "path": path,
        "rows": written.rows,
        "bytes": written.bytes,
        "sha256": written.sha256,
        "mixing": mixing(np.concatenate(games)),
    }


def mixing(games: NDArray[np.uint64]) -> float:
    """Return how many different games there are among 1,000 rows one after the other: the mean over a shard, whose last
    rows count where there are no others."""
    windows = np.split(games, np.arange(_WINDOW, len(games), _WINDOW))
    whole = [window for window in windows if len(window) == _WINDOW] or windows
    return round(sum(len(np.unique(window)) for window in whole) / len(whole), 1)


def reported(task: Any, shards: list[dict[str, Any]]) -> dict[str, Any]:
    """Write the report of the shards that a task wrote, which says that they are whole, and return it."""
    report = {"shards": shards}
    write_report(task.report, report)
    return report


def finished_encoding(task: Any) -> dict[str, Any] | None:
    """Return the report of a task whose shards are all there, unchanged; None where it has to be made."""
    report = read_report(task.report)
    if report is None:
        return None
    paths = [(Path(task.folder) / shard["path"], shard["sha256"]) for shard in report["shards"]]
    return report if all(path.is_file() and sha256_of_file(path) == sha256 for path, sha256 in paths) else None


def shard_path(part: int, number: int, config: Config) -> str:
    """Return the path of a shard inside the data set."""
    return f"{PARTS[part]}/shard-{number:05d}{SUFFIXES[config.output.format]}"


def _labels(block: pa.Table, games: Games, kept: pa.Table, layout: Layout) -> Columns:
    """Return the label columns of all rows, in the orientation of the game."""
    row_games = kept.column("game").to_numpy().astype(np.int64)
    ply = kept.column("ply").to_numpy()
    rows, cols = games.rows[row_games], games.cols[row_games]
    to_play = games.colours[games.move_start[row_games] + ply]
    sign = sign_of(to_play)
    columns = {
        "move": kept.column("move").to_numpy(),
        "value": black_values(block)[row_games] * sign + np.float32(0),  # a draw is 0, not -0
        "weight": kept.column("weight").to_numpy().astype(np.float32),
        "score": _black_scores(block)[row_games] * sign + np.float32(0),
        "to_play": to_play,
        "komi": block.column("komi").to_numpy(zero_copy_only=False).astype(np.float32)[row_games],
        "rows": rows,
        "cols": cols,
        "symmetry": np.zeros(len(rows), dtype=np.uint8),
        "game": block.column("game").to_numpy()[row_games],
        "ply": ply,
        "key": kept.column("key").to_numpy(),
    }
    if layout.key_bits == 128:
        columns["key_hi"] = kept.column("key_hi").to_numpy()
    if layout.aggregate:
        columns |= merged_labels(kept)
    return columns


def merged_labels(kept: pa.Table) -> Columns:
    """Return the columns of rows that stand for several positions."""
    policy = kept.column("policy_moves").combine_chunks()
    counts = kept.column("policy_counts").combine_chunks()
    wins, draws, losses = (kept.column(name).to_numpy() for name in ("wins", "draws", "losses"))
    known = wins.astype(np.int64) + draws + losses
    value = (wins.astype(np.int64) - losses) / np.where(known == 0, np.nan, known)
    offsets = policy.offsets.to_numpy()
    return {
        "policy_moves": policy.flatten().to_numpy(),
        "policy_counts": counts.flatten().to_numpy(),
        "policy_offsets": offsets - offsets[0] if len(offsets) else np.zeros(1, dtype=np.int64),
        "value": value.astype(np.float32),
        "wins": wins,
        "draws": draws,
        "losses": losses,
    }


def _black_scores(block: pa.Table) -> NDArray[np.float32]:
    """Return the points by which Black won each game, NaN where the record does not state them."""
    margin = block.column("margin").to_numpy(zero_copy_only=False).astype(np.float32)
    score: NDArray[np.float32] = margin * black_values(block)  # only games with a value have a margin
    return score


def stored_images(
    game: NDArray[np.uint64],
    ply: NDArray[np.uint16],
    square: NDArray[np.bool_],
    fixed: NDArray[np.uint8],
    config: Config,
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Return (number, symmetry) of every image of N rows that is stored.

    ``fixed``: the symmetries that leave each row as it is; of equal images one is stored, unless copies
    are kept anyway. The random symmetry is a hash of (seed, game, ply).
    """
    numbers = np.arange(len(game))
    turns = np.zeros(len(game), dtype=np.int64)
    if config.augment.mode == "all":
        alike = fixed if config.dedup.positions != "off" else np.ones_like(fixed)
        kinds, kind = np.unique(alike.astype(np.int64) * 2 + square, return_inverse=True)
        stored = np.zeros((len(kinds), symmetry.SYMMETRIES), dtype=np.bool_)
        for number, code in enumerate(kinds.tolist()):
            stored[number, symmetry.distinct_images(code >> 1, 1, 2 - code % 2)] = True
        numbers, turns = np.nonzero(stored[kind])
    elif config.augment.mode == "random":
        words = chain_words(seed_word("random symmetry", config.augment.seed), game, ply)
        turns = (words % np.where(square, symmetry.SYMMETRIES, 4).astype(np.uint64)).astype(np.int64)
    return numbers, turns.astype(np.uint8)


def shuffled(
    rows: EncodedRows, part: int, config: Config
) -> tuple[NDArray[np.int64], NDArray[np.uint8], NDArray[np.uint64]]:
    """Return (row, symmetry, word) of every image of the rows of a part, in the order of a hash of all that."""
    chosen = np.flatnonzero(rows.part == part)
    columns = take_rows({name: rows.columns[name] for name in ("game", "ply", "rows", "cols")}, chosen)
    game, ply = columns["game"], columns["ply"]
    numbers, turns = stored_images(game, ply, columns["rows"] == columns["cols"], rows.fixed[chosen], config)
    words = chain_words(seed_word("shuffle", config.augment.seed), game[numbers], ply[numbers], turns)
    order = np.argsort(words, kind="stable")
    return chosen[numbers[order]], turns[order], words[order]


def turned_batches(
    columns: Columns, numbers: NDArray[np.int64], turns: NDArray[np.uint8], layout: Layout
) -> Iterator[Columns]:
    """Yield rows for a shard, each turned by its symmetry as it is written."""
    for start in range(0, len(numbers), BLOCK_ROWS):
        chosen, turn = numbers[start : start + BLOCK_ROWS], turns[start : start + BLOCK_ROWS]
        batch = take_rows(columns, chosen)
        rows, cols, frame_cols = batch["rows"], batch["cols"], layout.frame[1]
        if turn.any():
            batch["planes"] = turn_planes(batch["planes"], rows, cols, frame_cols, turn)
            batch["move"] = turn_moves(batch["move"], rows, cols, frame_cols, turn).astype(np.int16)
            if layout.aggregate:
                batch |= turned_policy(batch, frame_cols, turn)
        batch["symmetry"] = turn
        yield batch
