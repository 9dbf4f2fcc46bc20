"""The rows that a data set must hold, worked out from its game table: growth after growth, as they were added."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pipeline.blocks import merged_labels
from pipeline.claims import CLAIMS, claims_of_rows, is_wide
from pipeline.columns import Columns, ShardError
from pipeline.config import Config
from pipeline.dedup import split_games
from pipeline.gamefile import batches
from pipeline.gamekeys import game_keys
from pipeline.load import Dataset
from pipeline.manifest import GAMES, SPLITS, Manifest, Positions
from pipeline.reasons import Status
from pipeline.rowcheck import MOST_FAULTS
from pipeline.rows import Settled, counts_by_band, row_columns, settle_alone
from pipeline.sampled import (
    UNKNOWN,
    Sampled,
    by_game_and_ply,
    joined,
    keyed_block,
    located,
    sampled_positions,
)
from pipeline.table import row_fault


@dataclass(frozen=True, slots=True)
class Expected:
    """The positions ``rows`` that are kept, in the order of (game id, ply), and what the ``columns`` of their rows hold
    in the orientation of the game; ``faults``: what the table and the manifest say otherwise."""

    rows: Sampled
    columns: Columns
    faults: list[str]


def expected(dataset: Dataset, config: Config) -> Expected:
    """Return the expected rows of a data set.

    Raises ShardError where the game table holds a kept game that cannot be replayed or has an illegal move.
    The configuration must be that of the manifest, and no kept game's board larger than the frame.
    """
    growths, misplaced = _positions(dataset, config)
    held = np.zeros(0, dtype=CLAIMS)
    rows, tables, counts = [], [], []
    for positions in growths.values():
        settled, stale = settle_alone(positions, held, config)
        counts.append(_counts(positions, settled) | {"stale": stale})
        rows.append(positions.take(np.flatnonzero(settled.kept)))
        tables.append(row_columns(positions, settled))
        hi = rows[-1].key_hi if is_wide(config) else None
        held = np.concatenate([held, claims_of_rows(rows[-1].key, hi, rows[-1].part)])
    kept = joined([{name: getattr(piece, name) for name in Sampled.__slots__} for piece in rows])
    order = by_game_and_ply(kept.game)
    columns = pa.concat_tables(tables).take(pa.array(order)).combine_chunks()
    faults = [*misplaced, *_position_faults(dataset.manifest.positions, counts)]
    faults += _growth_faults(dataset.manifest, dict(zip(growths, counts, strict=True)))
    return Expected(kept.take(order), _columns(kept.take(order), columns), faults)


def _counts(positions: Sampled, settled: Settled) -> dict[str, Any]:
    """Return the numbers of positions of one growth."""
    held_out, left_out = counts_by_band(positions, settled)
    return settled.counts | {"held_out_by_ply": held_out, "overlap_by_ply": left_out}


def _position_faults(said: Positions, counts: list[dict[str, Any]]) -> Iterator[str]:
    """Compare the manifest's numbers of positions with what became of them."""
    for name in ("stored", "merged", "overlap"):
        found = sum(count[name] for count in counts)
        if found != (stated := getattr(said, name)):
            yield f"positions {name}: the games give {found}, the manifest says {stated}"
    for name in ("held_out_by_ply", "overlap_by_ply"):
        bands = {band: sum(count[name][band] for count in counts) for band in counts[0][name]}
        if bands != (stated := getattr(said, name)):
            yield f"positions {name}: the games give {bands}, the manifest says {stated}"


def _growth_faults(said: Manifest, counts: dict[int, dict[str, Any]]) -> Iterator[str]:
    """Compare what the manifest says of each growth with what it added."""
    for number, entry in enumerate(said.growths, start=1):
        for name in ("stored", "left_out", "stale"):
            found = counts[number][name] if number in counts else 0
            if found != (stated := getattr(entry, name)):
                yield f"growth {number}: {name}: the games give {found}, the manifest says {stated}"
    for number in sorted(set(counts) - set(range(len(said.growths) + 1))):
        yield f"{GAMES}: games of growth {number}, which the manifest does not know"


def _columns(rows: Sampled, decided: pa.Table) -> Columns:
    """Return what the columns of all expected rows must hold, in the orientation of the game."""
    known = rows.outcome != UNKNOWN
    columns: Columns = {
        "move": decided.column("move").to_numpy(),
        "value": np.where(known, rows.outcome, np.nan).astype(np.float32),
        "weight": decided.column("weight").to_numpy().astype(np.float32),
        "key": rows.key,
        "key_hi": rows.key_hi,
    }
    return columns | merged_labels(decided) if "policy_moves" in decided.column_names else columns


def _positions(dataset: Dataset, config: Config) -> tuple[dict[int, Sampled], list[str]]:
    """Return the sampled positions of the kept games of each growth, in the order of (game id, ply), and the games that
    are in the wrong part."""
    pieces: dict[int, list[dict[str, NDArray[Any]]]] = {}
    misplaced: list[str] = []
    for table in batches(dataset):
        kept = table.filter(pc.equal(table.column("status"), Status.KEPT.value))
        try:
            games, found = keyed_block(kept, config)
        except ValueError as error:
            named = (f"game {row['game']}: {fault}" for row in kept.to_pylist() if (fault := row_fault(row)))
            raise ShardError(f"{GAMES}: {next(named, error)}") from None
        ids, plies = kept.column("game").to_numpy(), kept.column("plies").to_numpy().astype(np.int64)
        if len(illegal := np.flatnonzero(found.replayed.legal < plies)):
            number = int(illegal[0])
            raise ShardError(f"{GAMES}: game {ids[number]}: move {found.replayed.legal[number] + 1} is illegal")
        split = config.split
        part = split_games(game_keys(games, np.minimum(plies, split.plies)), split.val, split.test, split.seed)
        sampled = sampled_positions(kept, games, found, config)
        growth = kept.column("growth").to_numpy()[sampled.column("game").to_numpy()]
        for number in np.unique(growth).tolist():
            chosen = sampled.take(pa.array(np.flatnonzero(growth == number)))
            pieces.setdefault(number, []).append(located(kept, chosen, config))
        told = kept.column("split").to_pylist()
        misplaced += [
            f"game {ids[number]} is in {told[number]}, its first {split.plies} moves belong to {SPLITS[part[number]]}"
            for number in range(len(ids))
            if told[number] != SPLITS[part[number]]
        ]
    growths = {number: _ordered(joined(pieces.get(number, []))) for number in sorted({0, *pieces})}
    return growths, misplaced[:MOST_FAULTS]


def _ordered(positions: Sampled) -> Sampled:
    return positions.take(by_game_and_ply(positions.game))
