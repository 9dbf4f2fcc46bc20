"""The game table: one row per record seen, as ``games.parquet`` holds it, and its way into the kernels.

A data set can be rebuilt from this table alone: it keeps the size, setup, moves and header texts of
every record that could be parsed, whatever became of it.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.board import BLACK, EMPTY, MAX_SIDE, WHITE
from pipeline.games import OFF_BOARD, Games, terms_of
from pipeline.rules import rule_set

SCHEMA = pa.schema(
    [
        ("game", pa.uint64()),
        ("source", pa.string()),
        ("member", pa.string()),
        ("index", pa.int32()),
        ("content", pa.binary()),
        ("status", pa.string()),
        ("reason", pa.string()),
        ("detail", pa.string()),
        ("duplicate_of", pa.uint64()),
        ("move", pa.int32()),
        ("offset", pa.int64()),
        ("flags", pa.list_(pa.string())),
        ("growth", pa.uint16()),
        ("split", pa.string()),
        ("rows", pa.uint32()),
        ("plies", pa.uint16()),
        ("board_rows", pa.uint8()),
        ("board_cols", pa.uint8()),
        ("setup_plies", pa.list_(pa.uint16())),
        ("setup_points", pa.list_(pa.uint16())),
        ("setup_colours", pa.list_(pa.int8())),
        ("moves", pa.list_(pa.uint16())),
        ("colours", pa.list_(pa.int8())),
        ("komi", pa.float32()),
        ("rules", pa.string()),
        ("handicap", pa.int16()),
        ("winner", pa.string()),
        ("margin", pa.float32()),
        ("result_kind", pa.string()),
        ("black_rank", pa.int8()),
        ("white_rank", pa.int8()),
        ("date", pa.string()),
        ("black", pa.string()),
        ("white", pa.string()),
        ("raw", pa.map_(pa.string(), pa.string())),
    ]
)

# What the read stage adds for the decisions about games, not part of the published table: keys of the whole game
# (and the symmetry that leads to its canonical image), of its first moves, and of the positions at its marks.
KEYS = pa.schema(
    [
        ("game_key", pa.uint64()),
        ("game_turn", pa.uint8()),
        ("split_key", pa.uint64()),
        ("opening_key", pa.uint64()),
        ("mark_keys", pa.list_(pa.uint64())),
    ]
)
OPENING_PLIES = 30  # of ``opening_key``; a shorter game has none
MARKS = (50, 75, 100, 150, 200, 250, 300)  # plies before the positions of ``mark_keys``
PART_SCHEMA = pa.schema([*SCHEMA, *KEYS])
# What the kernels need of a game.
GAME_COLUMNS = (
    "board_rows", "board_cols", "setup_plies", "setup_points", "setup_colours", "moves", "colours", "komi", "rules",
    "handicap",
)  # fmt: skip


def table_of(rows: Sequence[dict[str, Any]]) -> pa.Table:
    """Return a part of the game table; columns that a row leaves out are null."""
    return pa.Table.from_pylist(list(rows), schema=PART_SCHEMA)


def tally(column: pa.ChunkedArray) -> Counter[str]:
    """Return how often each text of a column, or of its lists, occurs; nulls are left out."""
    texts = pc.list_flatten(column) if pa.types.is_list(column.type) else column
    return Counter({item["values"]: item["counts"] for item in pc.value_counts(texts.drop_null()).to_pylist()})


def _values(table: pa.Table, name: str) -> Any:
    """Return a list column as (values, offsets from 0 on), without copying a single-chunk table.

    Raises ValueError where a value is null.
    """
    column = table.column(name).combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    offsets, values = column.offsets.to_numpy(zero_copy_only=False).astype(np.int64), column.flatten()
    if values.null_count:
        raise ValueError(f"game table: a null in {name}")
    return values.to_numpy(zero_copy_only=False), offsets - offsets[0]


def games_of(table: pa.Table) -> Games:
    """Return the games of a table whose rows all have a size, moves and rules.

    Raises ValueError for what no table of ours holds and no kernel would check.
    """
    moves, move_start = _values(table, "moves")
    colours, colour_start = _values(table, "colours")
    setup_plies, setup_start = _values(table, "setup_plies")
    setup_points, point_start = _values(table, "setup_points")
    setup_colours, paint_start = _values(table, "setup_colours")
    for one, other in ((move_start, colour_start), (setup_start, point_start), (setup_start, paint_start)):
        if not np.array_equal(one, other):
            raise ValueError("game table: lists of different lengths")
    rules = [rule_set(name or "") for name in table.column("rules").to_pylist()]
    games = Games(
        table.column("board_rows").to_numpy().astype(np.uint8),
        table.column("board_cols").to_numpy().astype(np.uint8),
        np.array([rule.ko_code for rule in rules], dtype=np.int8),
        np.array([rule.suicide for rule in rules], dtype=np.bool_),
        move_start,
        moves.astype(np.uint16),
        colours.astype(np.int8),
        setup_start,
        setup_plies.astype(np.uint16),
        setup_points.astype(np.uint16),
        setup_colours.astype(np.int8),
        terms_of(rules, table.column("komi").to_pylist(), table.column("handicap").to_pylist()),
    )
    _require_sound(games)
    return games


def _require_sound(games: Games) -> None:
    """Raise ValueError where a kernel would write outside its board."""
    area = games.rows.astype(np.int64) * games.cols
    of_move = np.repeat(area, np.diff(games.move_start))
    of_setup = np.repeat(np.arange(games.number), np.diff(games.setup_start))
    falls = np.diff(games.setup_plies.astype(np.int64)) < 0
    faults = (
        ("a board side is not 1 to 25", (area == 0) | (np.maximum(games.rows, games.cols) > MAX_SIDE)),
        ("a move that no board holds", (games.moves > of_move) & (games.moves != OFF_BOARD)),
        ("a colour is not 1 or 2", (games.colours < BLACK) | (games.colours > WHITE)),
        ("a setup stone is off the board", games.setup_points >= area[of_setup]),
        ("a setup colour is not 0 to 2", (games.setup_colours < EMPTY) | (games.setup_colours > WHITE)),
        ("setup stones out of order", falls & (of_setup[1:] == of_setup[:-1])),
        ("setup stones after the last move", games.setup_plies > np.diff(games.move_start)[of_setup]),
    )
    for text, wrong in faults:
        if wrong.any():
            raise ValueError(f"game table: {text}")


def row_fault(row: dict[str, Any]) -> str | None:
    """Return why a row cannot go into the kernels, which check no bounds; None where it can."""
    rows, cols, moves, colours = row["board_rows"], row["board_cols"], row["moves"], row["colours"]
    setup = row["setup_plies"], row["setup_points"], row["setup_colours"]
    if rows is None or cols is None or moves is None or colours is None or None in setup:
        return "holds no game"
    if not (1 <= rows <= MAX_SIDE and 1 <= cols <= MAX_SIDE):
        return f"a board of {rows}x{cols}"
    if len(moves) != len(colours) or len({len(column) for column in setup}) != 1:
        return "lists of different lengths"
    if None in moves or any(None in column for column in setup) or any(colour not in {1, 2} for colour in colours):
        return "a move without a colour or a point"
    if any(move > rows * cols and move != OFF_BOARD for move in moves):
        return "a move that no board holds"
    if any(point >= rows * cols for point in row["setup_points"]) or any(
        colour not in {0, 1, 2} for colour in row["setup_colours"]
    ):
        return "a setup stone off the board or of no colour"
    if sorted(row["setup_plies"]) != row["setup_plies"] or max(row["setup_plies"], default=0) > len(moves):
        return "setup stones out of order"
    if row["plies"] is None or row["plies"] > len(moves):
        return f"{row['plies']} plies of {len(moves)} moves"
    try:
        rule_set(row["rules"] or "")
    except ValueError as error:
        return str(error)
    return None
