"""The second and third stage, block by block: games -> position keys, and kept positions -> shards.

A block is a set of kept games, stored as one Arrow file in the order of (size, game id). Both stages are
pure functions of that file and the configuration, so that any worker can do a block again.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline import symmetry
from pipeline.augment import turn_moves, turn_planes
from pipeline.board import BLACK
from pipeline.columns import BLOCK_ROWS, SUFFIXES, Columns, Layout
from pipeline.config import Config
from pipeline.dedup import PARTS, sample_positions
from pipeline.encode import Scheme, encode, find_scheme
from pipeline.files import sha256_of_file, whole_file, write_whole
from pipeline.replay import replay
from pipeline.shard import write
from pipeline.table import games_of
from pipeline.words import chain_words, seed_word

Size = tuple[int, int]

# The kinds of result that have no value label: the game did not decide who played better.
_NO_VALUE = ("forfeit", "void")


def write_arrow(path: str | Path, table: pa.Table) -> None:
    """Write a table as one Arrow file, whole."""
    with (
        whole_file(path) as temporary,
        pa.OSFile(str(temporary), "wb") as file,
        pa.ipc.new_file(file, table.schema) as writer,
    ):
        writer.write_table(table)


def read_arrow(path: str | Path) -> pa.Table:
    """Read a file that ``write_arrow`` wrote."""
    with pa.memory_map(str(path)) as file:
        return pa.ipc.open_file(file).read_all()


@dataclass(frozen=True, slots=True)
class IndexTask:
    """Key the positions of the block in ``games`` into the Arrow file ``keys``."""

    games: str
    keys: str
    config: Config


def history_of(config: Config, scheme: Scheme) -> int:
    """Return how many earlier boards belong to a position key."""
    return scheme.history if config.dedup.reach == "scheme" else 0


def index_block(task: IndexTask) -> dict[str, int]:
    """Write the keys of the sampled positions of a block; return how many were seen and sampled out.

    Columns: ``game`` (row in the block), ``ply``, ``turn`` (the canonical symmetry) and ``key``.
    """
    table = read_arrow(task.games)
    games = games_of(table)
    replayed = replay(games, history_of(task.config, find_scheme(task.config.encode.scheme)))
    plies = table.column("plies").to_numpy().astype(np.int64)
    rows = np.repeat(np.arange(games.number), plies)
    ply = np.arange(len(rows)) - np.repeat(np.cumsum(plies) - plies, plies)
    sample = task.config.sample
    wanted = sample_positions(table.column("game").to_numpy()[rows], ply, sample.per_game, sample.plies, sample.seed)
    at = games.move_start[rows[wanted]] + ply[wanted]
    keys = pa.table(
        {
            "game": pa.array(rows[wanted], pa.uint32()),
            "ply": pa.array(ply[wanted], pa.uint16()),
            "turn": pa.array(replayed.turns[at]),
            "key": pa.array(replayed.keys[at]),
        }
    )
    write_arrow(task.keys, keys)
    return {"seen": len(rows), "sampled_out": int((~wanted).sum())}


@dataclass(frozen=True, slots=True)
class ShardPlan:
    """Where a block's rows of one part go: the number of its first shard, and of its shards."""

    part: int
    first: int
    shards: int


@dataclass(frozen=True, slots=True)
class EncodeTask:
    """Encode the rows ``rows`` (Arrow: game, ply, key, weight, part) of the block ``games`` into shards
    under ``folder``; ``report`` is written last."""

    games: str
    rows: str
    folder: str
    report: str
    plans: tuple[ShardPlan, ...]
    config: Config
    layout: Layout


def images_of(config: Config, rows: NDArray[np.uint8], cols: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return how many images of each row are stored."""
    if config.augment.mode != "all":
        return np.ones(len(rows), dtype=np.int64)
    return np.where(rows == cols, symmetry.SYMMETRIES, 4)


def encode_block(task: EncodeTask) -> dict[str, Any]:
    """Write the shards of a block and return the report of them: split, path, rows, bytes, sha256."""
    block = read_arrow(task.games)
    kept = read_arrow(task.rows)
    part = kept.column("part").to_numpy()
    row_games = kept.column("game").to_numpy().astype(np.int64)
    row_plies = kept.column("ply").to_numpy().astype(np.int64)
    columns = _labels(block, kept, task.layout.frame)
    games = games_of(block)
    columns["planes"] = encode(find_scheme(task.config.encode.scheme), games, row_games, row_plies, task.layout.frame)
    shards = []
    for plan in task.plans:
        numbers = np.flatnonzero(part == plan.part)
        order, turns = _shuffled(columns, numbers, task.config)
        for shard, piece in enumerate(np.array_split(np.arange(len(order)), plan.shards)):
            path = shard_path(plan.part, plan.first + shard, task.config)
            batches = _batches(columns, order[piece], turns[piece], task.layout)
            written = write(Path(task.folder) / path, batches, task.layout)
            shards.append(
                {
                    "split": PARTS[plan.part],
                    "path": path,
                    "rows": written.rows,
                    "bytes": written.bytes,
                    "sha256": written.sha256,
                }
            )
    report = {"shards": shards}
    write_whole(task.report, json.dumps(report).encode())
    return report


def finished_encoding(task: EncodeTask) -> dict[str, Any] | None:
    """Return the report of a block whose shards are all there, unchanged; None where it has to be made."""
    try:
        report: dict[str, Any] = json.loads(Path(task.report).read_bytes())
        whole = all(sha256_of_file(Path(task.folder) / shard["path"]) == shard["sha256"] for shard in report["shards"])
    except (OSError, ValueError, KeyError):
        return None
    return report if whole else None


def shard_path(part: int, number: int, config: Config) -> str:
    """Return the path of a shard inside the data set."""
    return f"{PARTS[part]}/shard-{number:05d}{SUFFIXES[config.output.format]}"


def _labels(block: pa.Table, kept: pa.Table, frame: Size) -> Columns:
    """Return the label columns of all rows, in the orientation of the game."""
    games = games_of(block)
    row_games = kept.column("game").to_numpy().astype(np.int64)
    ply = kept.column("ply").to_numpy()
    at = games.move_start[row_games] + ply
    rows, cols = games.rows[row_games], games.cols[row_games]
    move = games.moves[at].astype(np.int64)
    board_row, board_col = move // cols, move % cols
    is_pass = move == rows.astype(np.int64) * cols
    to_play = games.colours[at]
    value, score = _outcomes(block)
    sign = np.where(to_play == BLACK, 1, -1).astype(np.float32)
    return {
        "move": np.where(is_pass, frame[0] * frame[1], board_row * frame[1] + board_col).astype(np.int16),
        "value": value[row_games] * sign + np.float32(0),  # a draw is 0, not -0
        "weight": kept.column("weight").to_numpy().astype(np.float32),
        "score": score[row_games] * sign + np.float32(0),
        "to_play": to_play,
        "komi": block.column("komi").to_numpy(zero_copy_only=False).astype(np.float32)[row_games],
        "rows": rows,
        "cols": cols,
        "symmetry": np.zeros(len(rows), dtype=np.uint8),
        "game": block.column("game").to_numpy()[row_games],
        "ply": ply,
        "key": kept.column("key").to_numpy(),
    }


def _outcomes(block: pa.Table) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return value and score of each game from Black's side, NaN where the record does not state them."""
    signs = {"B": 1.0, "W": -1.0, "draw": 0.0}
    winners, kinds = block.column("winner").to_pylist(), block.column("result_kind").to_pylist()
    value = np.array([signs.get(winner, np.nan) for winner in winners], dtype=np.float32)
    score = block.column("margin").to_numpy(zero_copy_only=False).astype(np.float32) * value
    value[np.isin(np.array(kinds, dtype=str), _NO_VALUE)] = np.nan
    # A drawn game has margin 0; so has its score.
    return value, score


def _shuffled(
    columns: Columns, numbers: NDArray[np.int64], config: Config
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Return (row, symmetry) of every image of the rows ``numbers``, in the order they are stored.

    Both the random symmetry and the order are hashes of (seed, game, ply, symmetry).
    """
    game, ply = columns["game"][numbers], columns["ply"][numbers]
    count = np.where(columns["rows"][numbers] == columns["cols"][numbers], symmetry.SYMMETRIES, 4)
    if config.augment.mode == "all":
        numbers = np.repeat(numbers, count)
        turns = np.arange(len(numbers)) - np.repeat(np.cumsum(count) - count, count)
        game, ply = columns["game"][numbers], columns["ply"][numbers]
    elif config.augment.mode == "random":
        words = chain_words(seed_word("random symmetry", config.augment.seed), game, ply)
        turns = (words % count.astype(np.uint64)).astype(np.int64)
    else:
        turns = np.zeros(len(numbers), dtype=np.int64)
    order = np.argsort(chain_words(seed_word("shuffle", config.augment.seed), game, ply, turns), kind="stable")
    return numbers[order], turns[order].astype(np.uint8)


def _batches(
    columns: Columns, numbers: NDArray[np.int64], turns: NDArray[np.uint8], layout: Layout
) -> Iterator[Columns]:
    """Yield the rows of a shard, each turned by its symmetry as it is written."""
    for start in range(0, len(numbers), BLOCK_ROWS):
        chosen, turn = numbers[start : start + BLOCK_ROWS], turns[start : start + BLOCK_ROWS]
        batch = {name: values[chosen] for name, values in columns.items()}
        rows, cols, frame_cols = batch["rows"], batch["cols"], layout.frame[1]
        if turn.any():
            batch["planes"] = turn_planes(batch["planes"], rows, cols, frame_cols, turn)
            batch["move"] = turn_moves(batch["move"], rows, cols, frame_cols, turn).astype(np.int16)
        batch["symmetry"] = turn
        yield batch
