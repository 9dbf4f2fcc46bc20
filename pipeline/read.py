"""The first stage: members -> records -> one part of the game table, each game checked for legality.

A task reads one unit of the inputs and writes two files: the part (Parquet) and, last, a report
(JSON), which marks the part as complete. Reports hold counts and what was left out, never games.
"""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pipeline.board import LEGAL
from pipeline.config import Config
from pipeline.faults import REASONS, describe
from pipeline.files import read_report, write_report
from pipeline.filters import unwanted
from pipeline.game import Game
from pipeline.gamekeys import game_keys, turned_game_keys
from pipeline.games import Games, terms_of
from pipeline.genre import no_game
from pipeline.ordering import samples_of
from pipeline.parse import Rejected, records_of
from pipeline.pieces import write_pieces
from pipeline.reasons import Flag, Reason, Status
from pipeline.replay import Replayed, replay
from pipeline.rules import rule_set
from pipeline.sources import Omitted, Unit, members
from pipeline.stored import stored_records, stored_table
from pipeline.table import KEYS, MARKS, OPENING_PLIES, PART_SCHEMA, games_of, table_of

_RECORDS_AT_ONCE = 2_000
_WEIGHT_AT_ONCE = 2_000_000

Row = dict[str, Any]
# Source and member, and the record; or a whole row of an earlier build, of which no game can be made, and None.
Found = tuple[Row, Game | Rejected | None]


@dataclass(frozen=True, slots=True)
class ReadTask:
    """Read ``unit`` under ``config`` into ``part``, a file of pieces, and ``part`` + ".json"; ``needs_komi``: the
    scheme shows one; ``growth``: the number of this build, 0 for the first."""

    unit: Unit
    config: Config
    part: str
    needs_komi: bool = False
    growth: int = 0


def read_unit(task: ReadTask) -> dict[str, Any]:
    """Run one task and return its report: members with records, and what was omitted.

    Raises OSError where an input cannot be read or changed meanwhile, or the disk refuses, and TableError.
    """
    omitted: list[Omitted] = []
    with_records = 0

    def records() -> Iterator[Found]:
        nonlocal with_records
        for found in members(task.unit, task.config.input):
            if isinstance(found, Omitted):
                omitted.append(found)
                continue
            with_records += 1
            where = {"source": found.source, "member": found.member}
            # One after the other: a text of one game a line may hold any number.
            for record, _ in records_of(found.data, task.config.input, task.config.parse, task.config.rules):
                yield where, record

    if task.unit.kind == "table":
        facts = _write_part(task.part, _tables(task, stored_records(task.unit, task.config.rules)))
    else:
        facts = _write_part(task.part, _tables(task, records()))
    return _write_report(task.part, facts, with_records, omitted)


def hold_unit(task: ReadTask) -> dict[str, Any]:
    """Run a task whose unit is a piece of the game table that is being grown: its rows stay as they are, the keys of
    the kept games are worked out again. Raises TableError, OSError."""
    return _write_report(task.part, _write_part(task.part, [_held(stored_table(task.unit), task.config)]), 0, [])


def _held(table: pa.Table, config: Config) -> pa.Table:
    """Return rows of a published table with the columns that games are compared by."""
    rows = np.flatnonzero(pc.equal(table.column("status"), Status.KEPT.value).to_numpy())
    games = games_of(table.take(pa.array(rows)))
    keys = iter(_keys(games, replay(games), table.column("plies").to_numpy()[rows].astype(np.int64), config))
    found: list[Row] = [{} for _ in range(table.num_rows)]
    for row in rows.tolist():
        found[row] = next(keys)
    held = pa.Table.from_pylist(found, schema=KEYS)
    for name in KEYS.names:
        table = table.append_column(name, held.column(name))
    return table.cast(PART_SCHEMA)


def _tables(task: ReadTask, records: Iterable[Found]) -> Iterator[pa.Table]:
    """Yield the records as pieces of the table, some at a time."""
    weight = 0
    batch: list[Found] = []
    for found in records:
        batch.append(found)
        weight += _weight_of(found[1])
        if len(batch) >= _RECORDS_AT_ONCE or weight >= _WEIGHT_AT_ONCE:
            yield table_of(_rows(batch, task))
            batch, weight = [], 0
    if batch:
        yield table_of(_rows(batch, task))


def _weight_of(record: Game | Rejected | None) -> int:
    """Return about how much memory a record takes, in moves and stones set up."""
    if record is None:
        return 0
    stones = len(record.moves) + len(record.setup_points) if isinstance(record, Game) else 0
    return sum(map(len, record.raw.values())) + stones


def _write_part(part: str, tables: Iterable[pa.Table]) -> dict[str, Any]:
    """Write a part, a piece for each table; return how many rows and bytes each has, and samples to cut them by."""
    groups: list[list[int]] = []
    samples: list[list[Any]] = []

    def noted() -> Iterator[pa.Table]:
        for table in tables:
            yield table
            groups.append([table.num_rows, table.nbytes])
            samples.extend(samples_of(table))

    write_pieces(part, noted(), "zstd")
    return {"records": sum(rows for rows, _ in groups), "groups": groups, "samples": samples}


def _write_report(part: str, facts: dict[str, Any], with_records: int, omitted: list[Omitted]) -> dict[str, Any]:
    """Write the report of a part, which marks it as complete."""
    report = {**facts, "with_records": with_records, "omitted": [_omitted_item(item) for item in omitted]}
    write_report(f"{part}.json", report)
    return report


def finished_report(part: str) -> dict[str, Any] | None:
    """Return the report of a part that is complete, None where it has to be made. (A part that is damaged is removed by
    whoever finds it.)"""
    return read_report(f"{part}.json") if Path(part).is_file() else None


def failed_part(task: ReadTask, detail: str) -> dict[str, Any]:
    """Write the part of a unit whose reading ended its process: one reject a file; return its report."""
    rows = [
        _row({"source": file.source, "member": None}, Status.REJECTED, Reason.TASK_FAILED, detail)
        | {"index": 0, "content": bytes.fromhex(file.sha256)[:16]}
        for file in task.unit.files
    ]
    facts = _write_part(task.part, [table_of([row | {"growth": task.growth} for row in rows])])
    return _write_report(task.part, facts, len(rows), [])


def _row(where: Row, status: Status, reason: Reason | None, detail: str | None) -> Row:
    return {**where, "status": status.value, "reason": reason.value if reason else None, "detail": detail, "flags": []}


def _rows(batch: list[Found], task: ReadTask) -> list[Row]:
    """Return the table rows of a batch of records, the games replayed together."""
    config = task.config
    games = [record for _, record in batch if isinstance(record, Game)]
    arrays = _arrays(games)
    replayed = replay(arrays)
    lengths = np.diff(arrays.move_start)
    keep_prefix = config.rules.illegal == "keep-prefix"
    plies = np.minimum(replayed.legal, lengths) if keep_prefix else lengths
    sound = np.where((replayed.faults == LEGAL) | keep_prefix, plies, 0)
    keys = _keys(arrays, replayed, sound, config)
    rows, number = [], 0
    for where, record in batch:
        if record is None:
            rows.append({**where, "growth": task.growth})
            continue
        if isinstance(record, Rejected):
            rows.append({**_rejected_row(where, record), "growth": task.growth})
            continue
        legal, fault = int(replayed.legal[number]), int(replayed.faults[number])
        row = {**_game_row(where, record, legal, fault, task), "growth": task.growth}
        rows.append(row | keys[number] if row["status"] == Status.KEPT else row)
        number += 1
    return rows


def _keys(games: Games, replayed: Replayed, plies: NDArray[np.int64], config: Config) -> list[Row]:
    """Return the columns KEYS of games of which the first ``plies`` moves count."""
    turns, keys = turned_game_keys(games, plies)
    split_keys = game_keys(games, np.minimum(plies, config.split.plies))
    openings = game_keys(games, np.minimum(plies, OPENING_PLIES))
    starts = games.move_start[:-1].tolist()
    columns = (array.tolist() for array in (keys, turns, split_keys, openings, plies))
    return [
        {
            "game_key": key,
            "game_turn": turn,
            "split_key": split_key,
            "opening_key": opening if length >= OPENING_PLIES else None,
            "mark_keys": [int(replayed.keys[start + mark]) for mark in MARKS if mark < length],
        }
        for key, turn, split_key, opening, length, start in zip(*columns, starts, strict=True)
    ]


def _arrays(games: list[Game]) -> Games:
    """Return parsed games as arrays for the kernels."""
    rules = [rule_set(game.rules) for game in games]

    def joined(name: str, dtype: str) -> Any:
        return np.concatenate([np.zeros(0, dtype), *(getattr(game, name) for game in games)])

    return Games(
        np.array([game.rows for game in games], dtype=np.uint8),
        np.array([game.cols for game in games], dtype=np.uint8),
        np.array([rule.ko_code for rule in rules], dtype=np.int8),
        np.array([rule.suicide for rule in rules], dtype=np.bool_),
        np.cumsum([0, *(len(game.moves) for game in games)], dtype=np.int64),
        joined("moves", "uint16"),
        joined("colours", "int8"),
        np.cumsum([0, *(len(game.setup_plies) for game in games)], dtype=np.int64),
        joined("setup_plies", "uint16"),
        joined("setup_points", "uint16"),
        joined("setup_colours", "int8"),
        terms_of(rules, [game.komi for game in games], [game.handicap for game in games]),
    )


def _rejected_row(where: Row, record: Rejected) -> Row:
    return _row(where, Status.REJECTED, record.reason, record.detail) | {
        "index": record.index,
        "content": record.content,
        "move": record.move,
        "offset": record.offset,
        "raw": list(record.raw.items()),
    }


def _game_row(where: Row, game: Game, legal: int, fault: int, task: ReadTask) -> Row:
    """Return the row of a parsed game: kept, rejected for an illegal move, or filtered."""
    config, plies, flags = task.config, len(game.moves), list(game.flags)
    reason, detail, move = None, None, None
    if fault != LEGAL:
        reason = REASONS[fault]
        move = legal + 1 if reason is not Reason.ILLEGAL_SETUP or legal else None
        detail = describe(reason, legal, game.moves, game.colours, (game.rows, game.cols))
        detail += f'; rules.illegal = "{config.rules.illegal}"'
    if fault != LEGAL and config.rules.illegal == "keep-prefix" and move is not None:
        plies, reason = legal, None
        flags.append(Flag.ILLEGAL_TAIL)
    if game.komi is None and task.needs_komi:
        flags.append(Flag.KOMI_ASSUMED)
    if reason is None and (refused := no_game(game, plies, config.filter)):
        reason, detail = refused
    status = Status.REJECTED if reason else Status.KEPT
    if status is Status.KEPT and (left_out := unwanted(game, plies, config.filter, where["source"], where["member"])):
        status, (reason, detail) = Status.FILTERED, left_out
    return {
        **where,
        "status": status.value,
        "reason": reason.value if reason else None,
        "detail": detail,
        "index": game.index,
        "content": game.content,
        "move": move,
        "flags": sorted(flags),
        "plies": plies,
        "board_rows": game.rows,
        "board_cols": game.cols,
        "setup_plies": game.setup_plies,
        "setup_points": game.setup_points,
        "setup_colours": game.setup_colours,
        "moves": game.moves,
        "colours": game.colours,
        "komi": game.komi,
        "rules": game.rules,
        "handicap": game.handicap,
        "winner": game.winner,
        "margin": game.margin,
        "result_kind": game.result_kind,
        "black_rank": game.black_rank,
        "white_rank": game.white_rank,
        "date": game.date,
        "black": game.black,
        "white": game.white,
        "raw": list(game.raw.items()),
    }


_OMITTED_ORDER = ("source", "member", "reason", "status", "detail")


def omitted_of(found: Iterable[Omitted], reports: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return all members left out, those found in folders and those of the reports, in the order of their paths."""
    items = [_omitted_item(item) for item in found] + [item for report in reports for item in report["omitted"]]
    return sorted(items, key=lambda item: [str(item[name] or "").encode() for name in _OMITTED_ORDER])


def _omitted_item(item: Omitted) -> dict[str, Any]:
    return {**asdict(item), "reason": item.reason.value}
