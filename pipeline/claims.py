"""Which block's row stands for a position that occurs in several: claims, and their answers.

Each block names the first of its positions with each key and part: a *claim*. Claims go by their keys into buckets;
in its bucket every key is decided about by itself, and only what a block cannot know is answered: that another block's
row, a row of the data set that is being grown, or another part has the position.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline import dedup, shard
from pipeline.columns import Layout, ShardError
from pipeline.config import Config
from pipeline.files import sha256_of_file
from pipeline.pieces import bucket_of, joined_records, read_records, read_tables, routed, write_pieces
from pipeline.sampled import Sampled, keyed_block, ordered_positions, sampled_positions
from pipeline.words import Words, repeated

# ``row``: the number of the position in the order of game and ply. ``hi`` is 0 where keys have 64 bits.
CLAIMS = np.dtype([("key", "<u8"), ("hi", "<u8"), ("game", "<u8"), ("ply", "<u2"), ("part", "u1"), ("row", "<u4")])
# ``block`` and ``row`` of the position that stands for the claim ``claim``; or, as the block, why there is none.
ANSWERS = np.dtype([("claim", "<u4"), ("block", "<i4"), ("row", "<u4")])
OVERLAP, HELD = -1, -2  # another part has the key; a row of an earlier growth has it, in the same part

_BUCKET_POSITIONS = 1_000_000


@dataclass(frozen=True, slots=True)
class IndexTask:
    """Put block ``number`` together from the files ``kept`` and key its positions: the table of its games goes to
    ``games``, that of its positions to ``positions``, its claims, a piece for each of ``buckets``, to ``claims``."""

    number: int
    kept: tuple[str, ...]
    games: str
    positions: str
    claims: str
    buckets: int
    config: Config


def bucket_count(positions: int) -> int:
    """Return into how many buckets the claims of so many positions go."""
    return 1 + positions // _BUCKET_POSITIONS


def index_block(task: IndexTask) -> dict[str, int]:
    """Run an IndexTask; return how many positions were seen and sampled out. Raises DamagedWork, OSError."""
    games = pa.concat_tables(read_tables(task.kept, task.number))
    order = [(name, "ascending") for name in ("board_rows", "board_cols", "game")]
    games = games.sort_by(order).combine_chunks()
    sampled = sampled_positions(games, *keyed_block(games, task.config), task.config)
    positions, _ = ordered_positions(games, sampled, task.config)
    claims = claims_of(positions, task.config)
    write_pieces(task.games, [games])
    write_pieces(task.positions, [sampled])
    write_pieces(task.claims, routed(claims, bucket_of(claims["key"], task.buckets), task.buckets))
    seen = int(games.column("plies").to_numpy().sum(dtype=np.int64))
    return {"seen": seen, "sampled_out": seen - sampled.num_rows}


def is_wide(config: Config) -> bool:
    """Return whether keys have 128 bits."""
    return config.dedup.key_bits == 128


def _keeps_all(config: Config) -> bool:
    """Return whether equal positions do not matter: none is merged, none is left out for another part."""
    return config.dedup.positions == "off" and config.split.overlap == "keep"


def claiming(positions: Sampled, config: Config) -> NDArray[np.int64]:
    """Return int64[N]: the position that claims for each one (the first with its key and part), in the order of game
    and ply; its own number where equal positions do not matter."""
    if _keeps_all(config):
        return np.arange(len(positions.key))
    wide = positions.key_hi if is_wide(config) else None
    return dedup.dedup_positions(positions.key, positions.part, True, "keep", wide)


def claims_of(positions: Sampled, config: Config) -> NDArray[Any]:
    """Return the CLAIMS of positions in the order of game and ply; none where equal positions do not matter."""
    own = np.arange(len(positions.key))
    rows = np.flatnonzero(claiming(positions, config) == own)
    if _keeps_all(config):
        rows = rows[:0]
    claims = np.zeros(len(rows), dtype=CLAIMS)
    claims["row"] = rows
    for name in ("key", "game", "ply", "part"):
        claims[name] = getattr(positions, name)[rows]
    if is_wide(config):
        claims["hi"] = positions.key_hi[rows]
    return claims


def claims_of_rows(keys: Words, keys_hi: Words | None, parts: NDArray[np.int8] | int) -> NDArray[Any]:
    """Return the CLAIMS by which rows that are there hold their keys. ``keys_hi``: None where keys have 64 bits."""
    claims = np.zeros(len(keys), dtype=CLAIMS)
    claims["key"], claims["part"] = keys, parts
    if keys_hi is not None:
        claims["hi"] = keys_hi
    return claims


@dataclass(frozen=True, slots=True)
class HeldTask:
    """Claim the rows of a shard that is there already, of part ``part``, into ``claims``."""

    shard: str
    part: int
    sha256: str
    claims: str
    buckets: int
    layout: Layout


def hold_shard(task: HeldTask) -> dict[str, int]:
    """Run a HeldTask. Raises ShardError where the shard is damaged or missing, OSError."""
    if not os.path.isfile(task.shard) or sha256_of_file(task.shard) != task.sha256:
        raise ShardError(
            f"{task.shard}: is not the file that was published: put it back, or run goplanes compact, which makes all "
            "shards anew"
        )
    names = ["key", "key_hi"] if task.layout.key_bits == 128 else ["key"]
    batches = shard.read(Path(task.shard), task.layout, names)
    pieces = [claims_of_rows(batch["key"], batch.get("key_hi"), task.part) for batch in batches]
    held = np.unique(np.concatenate([np.zeros(0, dtype=CLAIMS), *pieces]))  # the images of a row share its key
    write_pieces(task.claims, routed(held, bucket_of(held["key"], task.buckets), task.buckets))
    return {"held": len(held)}


@dataclass(frozen=True, slots=True)
class MatchTask:
    """Answer the claims of bucket ``number``, of the files ``claims`` of all blocks and ``held`` of all shards that are
    there already; ``answers`` gets a piece of ANSWERS for each block."""

    number: int
    claims: tuple[str, ...]
    held: tuple[str, ...]
    answers: str
    config: Config


def match_claims(task: MatchTask) -> dict[str, int]:
    """Run a MatchTask; return how many rows that are there already are ``stale``: they have new occurrences that they
    do not count. Raises DamagedWork, OSError."""
    pieces = read_records(task.claims, task.number, CLAIMS)
    claims = np.concatenate([np.zeros(0, dtype=CLAIMS), *pieces])  # a growth may keep no game: there is no block then
    blocks = np.repeat(np.arange(len(pieces)), np.array([len(piece) for piece in pieces], dtype=np.int64))
    held = joined_records(task.held, task.number, CLAIMS)
    answers, goals, stale = answers_to(claims, blocks, held, task.config)
    write_pieces(task.answers, routed(answers, goals, len(pieces)))
    return {"stale": stale}


def answers_to(
    claims: NDArray[Any], blocks: NDArray[np.int64], held: NDArray[Any], config: Config
) -> tuple[NDArray[Any], NDArray[np.int64], int]:
    """Return the ANSWERS to claims of whole keys, the block that each one goes to, and how many rows are stale.

    ``blocks`` int64[C]: whose claims they are; ``held`` CLAIMS of rows that are there already.
    """
    merge = config.dedup.positions != "off"
    number = np.concatenate([np.full(len(held), HELD), blocks])
    both = np.concatenate([held, claims])
    many = repeated(both["key"])
    both, number = both[many], number[many]
    order = np.lexsort((both["ply"], both["game"], number != HELD))
    both, number = both[order], number[order]
    old = number == HELD
    hi = both["hi"] if is_wide(config) else None
    leader = dedup.dedup_positions(both["key"], both["part"].astype(np.int8), merge, config.split.overlap, hi, old)
    told = np.flatnonzero((leader != np.arange(len(leader))) & ~old)
    answers = np.zeros(len(told), dtype=ANSWERS)
    answers["claim"] = both["row"][told]
    led = leader[told]
    answers["block"] = np.where(led < 0, OVERLAP, number[led])
    answers["row"] = np.where(led < 0, 0, both["row"][led])
    stale = len(np.unique(led[(led >= 0) & old[led]]))
    return answers, number[told], stale


def read_answers(paths: Sequence[str], block: int) -> NDArray[Any]:
    """Return the ANSWERS of all buckets to a block. Raises DamagedWork, OSError."""
    return joined_records(paths, block, ANSWERS)
