"""The records of a finished game table, made games again: what a data set is rebuilt from.

Board, setup and moves are taken as they were parsed. What the header texts say is read again, so that it is exact
and the ``[rules]`` of the new build hold. A record of which no game could be made stays rejected as it was.
"""

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.config import Rules
from pipeline.game import HEADER_FLAGS, Game, with_headers
from pipeline.mainline import MAX_MOVES, Line
from pipeline.pieces import whole_table, write_pieces
from pipeline.properties import MAX_TEXT
from pipeline.reasons import Flag, Reason, Status
from pipeline.sources import InputFile, Unit, opened
from pipeline.table import SCHEMA, row_fault

BLOCK_RECORDS = 500

Row = dict[str, Any]

# What is noted of a record once it is parsed; a rebuild finds it out again.
_LATER_FLAGS = frozenset({
    Flag.KOMI_ASSUMED, Flag.ILLEGAL_TAIL, Flag.TURNED_COPY, Flag.PREFIX_OF, Flag.NEAR_DUPLICATE_OF,
})  # fmt: skip
_FLAGS = {flag.value: flag for flag in Flag}
_REASONS = frozenset(reason.value for reason in Reason)
_CARRIED = ("status", "reason", "detail", "index", "content", "move", "offset", "flags", "raw")


class TableError(ValueError):
    """A game table that no build has written; the text starts with its path."""


def spool_table(file: InputFile, folder: str) -> list[Unit]:
    """Cut a game table into blocks of records, Arrow files in ``folder``; a block appears whole.

    Raises TableError where it is none, ``InputChangedError``, and ``OSError`` where the folder cannot be written.
    """
    made: list[Unit] = []
    try:
        with opened(file) as handle, pq.ParquetFile(handle) as table:
            if not table.schema_arrow.equals(SCHEMA):
                raise TableError(f"{file.path}: its columns are not those of a game table")
            for batch in table.iter_batches(BLOCK_RECORDS):
                path = os.path.join(folder, f"{file.sha256[:16]}-{len(made):06d}.arrow")
                write_pieces(path, [pa.Table.from_batches([batch], SCHEMA)])
                made.append(Unit("table", (file,), 0, batch.num_rows, path))
    except pa.ArrowException as error:
        raise TableError(f"{file.path}: cannot be read ({str(error)[:200]})") from None
    return made


def stored_records(unit: Unit, rules: Rules) -> Iterator[tuple[Row, Game | None]]:
    """Yield (source and member, game) of each record of a block, or for one without a game (its whole row, None).

    Raises TableError for a record that no build has written.
    """
    (file,) = unit.files
    block = stored_table(unit)
    for number in range(block.num_rows):
        try:
            (row,) = block.slice(number, 1).to_pylist()
            yield _record(row, rules)
        except (pa.ArrowException, ValueError) as error:
            raise TableError(f"{file.path}: not a record of ours: {str(error)[:200]}") from None


def stored_table(unit: Unit) -> pa.Table:
    """Return a block as a table, as it was published. Raises DamagedWork, OSError."""
    return whole_table(unit.spool)


def _record(row: Row, rules: Rules) -> tuple[Row, Game | None]:
    """Make one record of a row. Raises ValueError for what no build has written."""
    if any(row[name] is None for name in ("source", "index", "content", "status", "flags")):
        raise ValueError("a name, a place, a status or flags are missing")
    if row["index"] < 0 or len(row["content"]) != 16:
        raise ValueError(f"index {row['index']}, {len(row['content'])} bytes of content hash")
    if unknown := set(row["flags"]) - set(_FLAGS):
        raise ValueError(f"no flag is named {str(min(unknown, key=str))[:80]!r}")
    where = {"source": row["source"], "member": row["member"]}
    if row["board_rows"] is None:
        if row["status"] != Status.REJECTED:
            raise ValueError(f"status {row['status']} without a game")
        if row["reason"] not in _REASONS:
            raise ValueError(f"no reason is named {str(row['reason'])[:80]!r}")
        return where | {name: row[name] for name in _CARRIED}, None
    if fault := row_fault(row):
        raise ValueError(fault)
    if len(row["moves"]) > MAX_MOVES:
        raise ValueError(f"{len(row['moves'])} moves")
    raw = dict(row["raw"] or ())
    if any(text is None or len(text) > MAX_TEXT for text in raw.values()):
        raise ValueError("a header text is null or too long")
    line = Line(
        np.array(row["setup_plies"], dtype=np.uint16),
        np.array(row["setup_points"], dtype=np.uint16),
        np.array(row["setup_colours"], dtype=np.int8),
        np.array(row["moves"], dtype=np.uint16),
        np.array(row["colours"], dtype=np.int8),
        frozenset(_FLAGS[name] for name in row["flags"]) - HEADER_FLAGS - _LATER_FLAGS,
    )
    size = row["board_rows"], row["board_cols"]
    return where, with_headers(row["index"], row["content"], size, line, raw, frozenset(), rules)
