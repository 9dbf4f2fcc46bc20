"""The game table of a finished data set checked against its manifest, and its kept games as arrays."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pipeline.columns import ShardError
from pipeline.gamefile import batches
from pipeline.load import Dataset
from pipeline.manifest import SPLITS, Manifest
from pipeline.reasons import Status
from pipeline.table import SCHEMA, tally

_NO_VALUE = ("forfeit", "void")
_SIGNS = {"B": 1.0, "W": -1.0, "draw": 0.0}
_COLUMNS = (
    "game", "source", "index", "content", "status", "reason", "flags", "split", "rows", "plies", "board_rows",
    "board_cols", "moves", "colours", "komi", "winner", "margin", "result_kind",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class KeptGames:
    """The kept games in order of their ids, for joining rows to them.

    ``ids`` uint64[G]; ``part`` int8[G] (index in SPLITS); ``sizes`` uint8[G, 2]; ``plies``, ``rows`` int64[G] (stored
    rows); ``komi``, ``value``, ``score`` float32[G] (the last two from Black's side, NaN unknown);
    ``start`` int64[G]: where the game's moves begin in ``moves`` uint16 and ``colours`` int8.
    """

    ids: NDArray[np.uint64]
    part: NDArray[np.int8]
    sizes: NDArray[np.uint8]
    plies: NDArray[np.int64]
    rows: NDArray[np.int64]
    komi: NDArray[np.float32]
    value: NDArray[np.float32]
    score: NDArray[np.float32]
    start: NDArray[np.int64]
    moves: NDArray[np.uint16]
    colours: NDArray[np.int8]


def check_table(dataset: Dataset) -> tuple[KeptGames | None, list[str]]:
    """Return the kept games (None where the table cannot be used) and every count that is not the manifest's."""
    try:
        return _check(dataset)
    except ShardError as error:
        return None, [str(error)]


def _check(dataset: Dataset) -> tuple[KeptGames | None, list[str]]:
    status: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    flags: Counter[str] = Counter()
    rows: Counter[str] = Counter()
    ids, pieces = [], []
    faults: list[str] = []
    for table in batches(dataset, _COLUMNS):
        status.update(tally(table.column("status")))
        reasons.update(tally(table.column("reason")))
        flags.update(tally(table.column("flags")))
        for split, count in zip(table.column("split").to_pylist(), table.column("rows").to_pylist(), strict=True):
            rows[split] += count or 0
        ids.append(table.column("game").to_numpy())
        kept = table.filter(pc.equal(table.column("status"), Status.KEPT.value))
        if fault := _unusable(kept, dataset.frame):
            return None, [fault]
        pieces.append(_piece(kept))
    games = _joined(pieces or [_piece(SCHEMA.empty_table())])
    faults += _count_faults(dataset.manifest, status, reasons, flags, rows)
    everything = np.concatenate(ids) if ids else np.zeros(0, np.uint64)
    if len(np.unique(everything)) != len(everything):
        faults.append("a game id occurs twice")
    if (plies := int(games.plies.sum())) != dataset.manifest.positions.seen:
        faults.append(f"plies of kept games are {plies:,}, positions seen {dataset.manifest.positions.seen:,}")
    return games, faults


def _count_faults(
    manifest: Manifest, status: Counter[str], reasons: Counter[str], flags: Counter[str], rows: Counter[str]
) -> Iterator[str]:
    """Compare what was counted in the table with the manifest."""
    records = manifest.records.model_dump()
    if (seen := sum(status.values())) != records.pop("seen"):
        yield f"has {seen:,} records, the manifest says {manifest.records.seen:,}"
    counts = (("status", status, records), ("reason", reasons, manifest.reasons), ("flag", flags, manifest.flags))
    for kind, found, said in counts:
        for name in sorted({*found, *said}, key=str):
            if found[name] != said.get(name, 0):
                yield f"{kind} {name}: {found[name]:,} in the table, {said.get(name, 0):,} in the manifest"
    for split in SPLITS:
        if rows[split] != getattr(manifest.rows, split):
            yield f"rows of {split}: {rows[split]:,} in the table, {getattr(manifest.rows, split):,} in the manifest"


def _unusable(kept: pa.Table, frame: tuple[int, int]) -> str | None:
    """Return why the columns of kept games cannot be taken as numbers, or their boards put into the frame."""
    for name in ("game", "split", "rows", "plies", "board_rows", "board_cols", "moves", "colours"):
        if kept.column(name).null_count:
            return f"a kept game has no {name}"
    lengths = pc.list_value_length(kept.column("moves"))
    if not lengths.equals(pc.list_value_length(kept.column("colours"))):
        return "a kept game has moves without colours"
    if pc.any(pc.less(lengths, pc.cast(kept.column("plies"), pa.int32()))).as_py():
        return "a kept game has fewer moves than plies"
    if unknown := set(kept.column("split").to_pylist()) - set(SPLITS):
        return f"a kept game is in no part: {sorted(unknown)[0]}"
    if pc.list_flatten(kept.column("moves")).null_count or pc.list_flatten(kept.column("colours")).null_count:
        return "a kept game has a move that is null"
    for name, side in zip(("board_rows", "board_cols"), frame, strict=True):
        if pc.any(pc.greater(kept.column(name), pa.scalar(side, pa.uint8()))).as_py():
            return f"a kept game has a board larger than the frame of {frame[0]}x{frame[1]}"
    return None


def _piece(kept: pa.Table) -> dict[str, NDArray[Any]]:
    """Return the kept games of one batch as arrays; ``lengths`` in place of ``start``."""
    winners = kept.column("winner").to_pylist()
    value = np.array([_SIGNS.get(winner, np.nan) for winner in winners], dtype=np.float32)
    margin = kept.column("margin").to_numpy(zero_copy_only=False).astype(np.float32)
    no_value = [kind in _NO_VALUE for kind in kept.column("result_kind").to_pylist()]
    sizes = [kept.column(name).to_numpy().astype(np.uint8) for name in ("board_rows", "board_cols")]
    return {
        "ids": kept.column("game").to_numpy(),
        "part": np.array([SPLITS.index(split) for split in kept.column("split").to_pylist()], dtype=np.int8),
        "sizes": np.stack(sizes, axis=1),
        "plies": kept.column("plies").to_numpy().astype(np.int64),
        "rows": kept.column("rows").to_numpy().astype(np.int64),
        "komi": kept.column("komi").to_numpy(zero_copy_only=False).astype(np.float32),
        "value": np.where(no_value, np.float32(np.nan), value),
        "score": margin * value,
        "lengths": pc.list_value_length(kept.column("moves")).to_numpy().astype(np.int64),
        "moves": pc.list_flatten(kept.column("moves")).to_numpy().astype(np.uint16),
        "colours": pc.list_flatten(kept.column("colours")).to_numpy().astype(np.int8),
    }


def _joined(pieces: list[dict[str, NDArray[Any]]]) -> KeptGames:
    """Return all kept games in the order of their ids; moves stay in the order of the table."""
    whole_columns = {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}
    lengths = whole_columns.pop("lengths")
    whole_columns["start"] = np.cumsum(lengths) - lengths
    order = np.argsort(whole_columns["ids"], kind="stable")
    flat = {name: whole_columns.pop(name) for name in ("moves", "colours")}
    return KeptGames(**{name: values[order] for name, values in whole_columns.items()}, **flat)
