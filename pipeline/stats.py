"""What a data set is made of: results, ranks, lengths, sources, repeated positions, duplicates.

Facts of games come from ``games.parquet``, those of positions from the shards, both column by column.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pipeline.columns import Columns, ShardError
from pipeline.gamefile import batches
from pipeline.headers.rank import rank_name
from pipeline.load import Dataset
from pipeline.manifest import GAMES, SPLITS
from pipeline.position import label_name
from pipeline.reasons import Flag, Status
from pipeline.rows import BANDS
from pipeline.table import SCHEMA

Facts = dict[str, Any]

KINDS = ("exact", "turned", "conflicting", "conflicting-turned", "prefix-of", "near-duplicate-of")
MOST_REPEATED = 10
_LENGTHS = (0, 50, 100, 150, 200, 250, 300, 400)
_GAME_COLUMNS = (
    "game", "source", "member", "index", "status", "duplicate_of", "flags", "rows", "plies", "board_rows",
    "board_cols", "komi", "rules", "handicap", "winner", "result_kind", "black_rank", "white_rank", "date",
)  # fmt: skip
_POSITION_COLUMNS = ("weight", "symmetry", "game", "ply", "key")
_READ_ROWS = 65_536


def facts(dataset: Dataset) -> Facts:
    """Return all counts as one JSON object. Raises ShardError where the game table or a shard is damaged."""
    try:
        found = list(batches(dataset, _GAME_COLUMNS))
        table = pa.concat_tables(found or [SCHEMA.empty_table().select(_GAME_COLUMNS)])
        counts = _game_facts(table) | _record_facts(table)
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise ShardError(f"{dataset.folder / GAMES}: cannot be read ({str(error)[:200]})") from None
    records = dataset.manifest.records.model_dump()
    return {"path": str(dataset.folder), "records": records} | counts | _position_facts(dataset)


def band_names(bounds: Sequence[int]) -> list[str]:
    """Return the names of bands that start at ``bounds``: "0-9", ..., "100+"."""
    return [*(f"{first}-{last - 1}" for first, last in pairwise(bounds)), f"{bounds[-1]}+"]


def _bands(values: NDArray[Any], bounds: Sequence[int]) -> NDArray[np.int64]:
    """Return the number of the band of each value."""
    found: NDArray[np.int64] = np.searchsorted(np.array(bounds), values.astype(np.int64), side="right") - 1
    return found


def _game_facts(table: pa.Table) -> Facts:
    """Return how the games (records that could be parsed), those kept and the rows are spread over each fact."""
    games = table.filter(pc.is_valid(table["board_rows"]))
    lengths = _bands(pc.fill_null(games["plies"], 0).to_numpy(), _LENGTHS)
    komi = pc.if_else(pc.is_finite(games["komi"]), games["komi"], pa.scalar(None, pa.float32()))
    komi = pc.round(pc.cast(komi, pa.float64()), 4)  # 6.3, not its nearest float32
    sides = pc.binary_join_element_wise(
        pc.cast(games["board_rows"], pa.string()), pc.cast(games["board_cols"], pa.string()), "x"
    )
    winners = ["B", "W", "draw", "void"]
    sizes = _spread(games, sides)
    return {
        "results": sorted(_spread(games, games["winner"]), key=lambda item: _place(item["value"], winners)),
        "result_kinds": _spread(games, games["result_kind"]),
        "ranks": _ranks(games),
        "years": _spread(games, pc.utf8_slice_codeunits(games["date"], 0, 4)),
        "lengths": _named(_spread(games, pa.array(lengths)), band_names(_LENGTHS)),
        "komi": _spread(games, komi),
        "rules": _spread(games, games["rules"]),
        "handicap": _spread(games, games["handicap"]),
        "sizes": sorted(sizes, key=lambda item: [int(side) for side in (item["value"] or "0").split("x")]),
    }


def _place(value: str | None, known: Sequence[str]) -> int:
    return known.index(value) if value in known else len(known) + (value is None)


def _spread(games: pa.Table, values: Any) -> list[Facts]:
    """Return each value (None: unknown, last) with its games, the kept among them, and their rows."""
    kept = pc.equal(games["status"], Status.KEPT.value)
    spread = pa.table({"value": values, "kept": pc.cast(kept, pa.int64()), "rows": games["rows"]})
    grouped = spread.group_by("value").aggregate([([], "count_all"), ("kept", "sum"), ("rows", "sum")])
    found = [
        {"value": row["value"], "games": row["count_all"], "kept": row["kept_sum"] or 0, "rows": row["rows_sum"] or 0}
        for row in grouped.to_pylist()
    ]
    return sorted(found, key=lambda item: (item["value"] is None, item["value"]))


def _named(found: list[Facts], names: Sequence[str]) -> list[Facts]:
    """Return bands under their names, the empty ones between them included."""
    if not found:
        return []
    by_number = {item["value"]: item for item in found}
    empty = {"games": 0, "kept": 0, "rows": 0}
    return [{**empty, **by_number.get(number, {}), "value": name} for number, name in enumerate(names)]


def _ranks(games: pa.Table) -> list[Facts]:
    """Return each rank, from weak to strong, with the kept games in which Black and White have it."""
    kept = games.filter(pc.equal(games["status"], Status.KEPT.value))
    sides = []
    for name in ("black_rank", "white_rank"):
        counts = pc.value_counts(kept[name]).to_pylist()
        sides.append({item["values"]: item["counts"] for item in counts})
    ranks = sorted({*sides[0], *sides[1]}, key=lambda rank: (rank is None, rank))
    return [
        {
            "value": None if rank is None else rank_name(rank),
            "scale": rank,
            "black": sides[0].get(rank, 0),
            "white": sides[1].get(rank, 0),
        }
        for rank in ranks
    ]


def _record_facts(table: pa.Table) -> Facts:
    """Return the records by source, and the duplicates by kind and by pair of sources."""
    source = _sources(table)
    kept = pc.cast(pc.equal(table["status"], Status.KEPT.value), pa.int64())
    counted = pa.table({"source": source, "kept": kept, "rows": table["rows"]})
    grouped = counted.group_by("source").aggregate([([], "count_all"), ("kept", "sum"), ("rows", "sum")])
    sources = [
        {
            "source": row["source"],
            "records": row["count_all"],
            "kept": row["kept_sum"] or 0,
            "rows": row["rows_sum"] or 0,
        }
        for row in grouped.to_pylist()
    ]
    sources.sort(key=lambda item: (-item["records"], item["source"]))
    return {"sources": sources} | _duplicates(table, source)


def _sources(table: pa.Table) -> Any:
    """Return what each record came out of: its archive or file; for files of a single record their folder."""
    loose = pc.is_null(table["member"])
    collections = pc.unique(table["source"].filter(pc.and_(loose, pc.greater(table["index"], 0))))
    lone = pc.and_(loose, pc.invert(pc.is_in(table["source"], collections)))
    folder = pc.replace_substring_regex(table["source"], "[^/]*$", "")
    folder = pc.if_else(pc.equal(folder, ""), "./", folder)
    return pc.if_else(lone, folder, table["source"])


def _duplicates(table: pa.Table, source: Any) -> Facts:
    """Return the records that point to another one, by kind, and by (their source, the source of that one)."""
    repeats = np.flatnonzero(pc.is_valid(table["duplicate_of"]).to_numpy())
    ids = table["game"].to_numpy()
    order = np.argsort(ids, kind="stable")
    goals = table["duplicate_of"].take(pa.array(repeats)).to_numpy()
    at = np.minimum(np.searchsorted(ids, goals, sorter=order), max(0, len(ids) - 1))
    found = order[at] if len(ids) else at
    # A game that points nowhere is a fault that ``verify`` is there to find.
    goal_source = pc.if_else(pa.array(ids[found] == goals), source.take(pa.array(found)), "?")
    kinds = np.array(KINDS, dtype=object)[_kinds(table)[repeats]]
    pairs = pa.table(
        {
            "source": source.take(pa.array(repeats)),
            "kept_source": goal_source,
            "kind": pa.array(kinds, pa.string()),
        }
    )
    grouped = pairs.group_by(["source", "kept_source", "kind"]).aggregate([([], "count_all")]).to_pylist()
    totals = dict.fromkeys(KINDS, 0)
    by_pair: dict[tuple[str, str], Facts] = {}
    for row in grouped:
        pair = row["source"], row["kept_source"]
        counts = by_pair.setdefault(
            pair, {"source": pair[0], "kept_source": pair[1], "all": 0, **dict.fromkeys(KINDS, 0)}
        )
        counts[row["kind"]] += row["count_all"]
        counts["all"] += row["count_all"]
        totals[row["kind"]] += row["count_all"]
    ranked = sorted(by_pair.values(), key=lambda item: (-item["all"], item["source"], item["kept_source"]))
    return {"duplicates": totals, "duplicate_pairs": ranked}


def _kinds(table: pa.Table) -> NDArray[np.int64]:
    """Return for each record the number in KINDS of what it is if it points to another one."""
    conflicting = pc.equal(table["status"], Status.CONFLICTING.value).to_numpy()
    kinds: NDArray[np.int64] = _flagged(table, Flag.TURNED_COPY).astype(np.int64) + 2 * conflicting
    kinds[_flagged(table, Flag.PREFIX_OF)] = KINDS.index("prefix-of")
    kinds[_flagged(table, Flag.NEAR_DUPLICATE_OF)] = KINDS.index("near-duplicate-of")
    return kinds


def _flagged(table: pa.Table, flag: Flag) -> NDArray[np.bool_]:
    """Return which records have a flag."""
    flags = table["flags"].combine_chunks()
    with_it = pc.fill_null(pc.equal(pc.list_flatten(flags), flag.value), False).to_numpy(zero_copy_only=False)
    flagged = np.zeros(table.num_rows, dtype=np.bool_)
    flagged[pc.list_parent_indices(flags).to_numpy()[with_it]] = True
    return flagged


def _position_facts(dataset: Dataset) -> Facts:
    """Return the stored rows by ply and part, and the positions that were met most often."""
    names = band_names(BANDS)
    rows = np.zeros((len(SPLITS), len(BANDS)), dtype=np.int64)
    best: Columns | None = None
    for part, split in enumerate(SPLITS):
        start = 0
        for batch in dataset.batches(split, columns=_POSITION_COLUMNS, batch_size=_READ_ROWS):
            rows[part] += np.bincount(_bands(batch["ply"], BANDS), minlength=len(BANDS))
            number = np.arange(start, start + len(batch["ply"]))
            best = _heaviest(best, batch | {"row": number, "part": np.full(len(number), part)})
            start += len(number)
    plies = [
        {"value": name, **dict(zip(SPLITS, rows[:, band].tolist(), strict=True))} for band, name in enumerate(names)
    ]
    chosen = range(len(best["row"])) if best is not None else ()
    repeated = [
        _repeated(dataset, {name: values[number] for name, values in (best or {}).items()}) for number in chosen
    ]
    return {"plies": plies, "repeated_positions": repeated}


def _heaviest(best: Columns | None, batch: Columns) -> Columns:
    """Return the heaviest rows of both that stand for more than one position; of several images of a row one."""
    several = np.flatnonzero((batch["weight"] > 1) & np.isfinite(batch["weight"]))
    chosen = {name: values[several] for name, values in batch.items()}
    if best is not None:
        chosen = {name: np.concatenate([best[name], values]) for name, values in chosen.items()}
    keys = ("row", "symmetry", "ply", "game", "part", "key")
    order = np.lexsort([*(chosen[name] for name in keys), -chosen["weight"]])
    same = np.ones(len(order), dtype=np.bool_)
    for name in ("part", "game", "ply"):
        same[1:] &= chosen[name][order][1:] == chosen[name][order][:-1]
    same[:1] = False
    order = order[~same][:MOST_REPEATED]
    return {name: values[order] for name, values in chosen.items()}


def _repeated(dataset: Dataset, place: dict[str, Any]) -> Facts:
    """Return a stored row as a person wants to know it: its weight, where it is and what was played."""
    split = SPLITS[place["part"]]
    policy = [name for name in ("policy_moves", "policy_counts") if name in dataset.columns]
    row = dataset.row(split, int(place["row"]), columns=["move", "to_play", "rows", "cols", *policy])
    moves = row["policy_moves"] if policy else np.array([row["move"]])
    counts = row["policy_counts"] if policy else np.array([0])
    order = np.lexsort((moves, -counts.astype(np.int64)))
    size = int(row["rows"]), int(row["cols"])
    try:
        names = [label_name(int(move), *size, dataset.frame) for move in moves[order]]
    except ValueError as error:
        raise ShardError(f"{dataset.folder}: row {place['row']} of {split}: {error}") from None
    return {
        "weight": float(place["weight"]),
        "split": split,
        **{name: int(place[name]) for name in ("row", "key", "game", "ply", "symmetry")},
        "to_play": int(row["to_play"]),
        "moves": [
            {"move": name, "count": int(count) if policy else None}
            for name, count in zip(names, counts[order], strict=True)
        ],
    }
