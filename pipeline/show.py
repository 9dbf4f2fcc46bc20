"""Looking at one position: a board in text, what is known of it, and any plane."""

import difflib
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline import gamefile
from pipeline.archives import printable
from pipeline.build import check_config
from pipeline.columns import ShardError
from pipeline.config import Config, ConfigError
from pipeline.coordinates import LETTERS, point_name, star_points
from pipeline.faults import move_name
from pipeline.files import NotAFileError, require_file
from pipeline.game import Game
from pipeline.load import Dataset
from pipeline.parse import Rejected, parse_member
from pipeline.position import Position, inputs_at, label_name, position_at, single_game, turned
from pipeline.progress import Progress
from pipeline.sheet import NumberedPlane, require_png, write_sheet
from pipeline.streams import archive_kind
from pipeline.symmetry import NAMES
from pipeline.warm import warm_up

Facts = dict[str, Any]

_SIDES = {1: "Black", 2: "White"}


class RecordError(ValueError):
    """A record of which there is no such position to show; the text starts with its path."""


def board_lines(position: Position) -> list[str]:
    """Draw a board: X Black, O White, the last move in brackets, k the ko point, + a star point."""
    rows, cols = position.stones.shape
    stars = star_points(rows, cols)
    letters = "   " + "".join(f" {letter}" for letter in LETTERS[:cols])
    lines = [letters]
    for row in range(rows):
        cells = [" "] * (2 * cols + 1)
        for col in range(cols):
            stone = ".XO"[position.stones[row, col]]
            cells[2 * col + 1] = "+" if stone == "." and (row, col) in stars else stone
        if position.ko is not None and position.ko[0] == row:
            cells[2 * position.ko[1] + 1] = "k"
        if position.last is not None and position.last[0] == row:
            col = position.last[1]
            cells[2 * col], cells[2 * col + 2] = "(", ")"
        lines.append(f"{rows - row:>3}{''.join(cells)}{rows - row}")
    return [*lines, letters]


def plane_lines(plane: NDArray[np.uint8], rows: int, cols: int) -> list[str]:
    """Draw one plane of a frame: # set, . not set; what is off the board stays blank unless it is set."""
    text = []
    for row in range(plane.shape[0]):
        cells = ["#" if plane[row, col] else "." if row < rows and col < cols else " " for col in range(plane.shape[1])]
        text.append(f"{rows - row if row < rows else '':>3} {' '.join(cells)}".rstrip())
    return [line for line in text if line]


def show_row(
    dataset: Dataset,
    split: str,
    index: int,
    planes: Sequence[str],
    progress: Progress | None = None,
    png: str | None = None,
) -> tuple[Facts, list[str]]:
    """Return a row of a data set as (facts, lines); ``progress`` is told of kernels to compile.

    ``png``: a file for a picture of the position and the planes, all of them where none is named.
    Raises IndexError, ConfigError for unknown planes, ShardError where the row and its game do not go together; for
    ``png`` also what ``write_sheet`` raises.
    """
    numbers = [_plane_number(name, dataset.planes) for name in planes]
    if png is not None:
        require_png(png)
    row = dataset.row(split, index, dtype="uint8")
    record, position, label = _of_row(dataset, row, f"row {index} of {split}", progress or Progress(quiet=True))
    ply, turn = int(row["ply"]), int(row["symmetry"])
    named = dict(zip(dataset.scheme.globals, row["globals"].tolist(), strict=True)) if "globals" in row else {}
    numeric = ("value", "score", "komi", "weight")
    facts = {
        "split": split,
        "row": index,
        "game": int(row["game"]),
        "source": record["source"],
        "member": record["member"],
        "index": record["index"],
        "ply": ply,
        "key": int(row["key"]),
        "symmetry": turn,
        "label": label,
        "move": int(row["move"]),
        **{name: None if np.isnan(row[name]) else round(float(row[name]), 6) for name in numeric},
        **_board_facts(position),
    }
    text = [
        f"row {index:,} of {split}: position after {ply} moves of {gamefile.record_name(record)}",
        *_drawn(position),
        f"next move    {label}",
        *(f"{name:<13}{'unknown' if facts[name] is None else format(facts[name], 'g')}" for name in numeric),
        f"symmetry     {turn} ({NAMES[turn]})",
        f"game         {facts['game']}",
        f"key          {facts['key']}",
    ]
    if png is not None:
        chosen = [
            (plane, dataset.planes[plane], row["planes"][plane]) for plane in numbers or range(len(row["planes"]))
        ]
        facts, text = _with_picture(facts, text, png, position, chosen, dataset.scheme.name, named)
    facts, text = _with_globals(facts, text, named)
    drawn = {dataset.planes[number]: row["planes"][number] for number in numbers}
    return _with_planes(facts, text, drawn, position)


def _of_row(dataset: Dataset, row: Facts, name: str, progress: Progress) -> tuple[Facts, Position, str]:
    """Return the record of a row as the game table has it, the position and its label. Raises ShardError."""
    table = gamefile.games_with(dataset, np.array([row["game"]], dtype=np.uint64))
    if table.num_rows != 1:
        raise ShardError(f"{name}: game {row['game']} is not in games.parquet")
    game, record = gamefile.one_game(table, 0), table.to_pylist()[0]
    warm_up(progress)
    rows, cols, turn = int(row["rows"]), int(row["cols"]), int(row["symmetry"])
    if (rows, cols) != (record["board_rows"], record["board_cols"]) or (turn >= 4 and rows != cols):
        raise ShardError(f"{name}: its board is not that of game {row['game']}")
    try:
        position = turned(position_at(game, int(row["ply"])), turn)
        return record, position, label_name(int(row["move"]), rows, cols, dataset.frame)
    except ValueError as error:
        raise ShardError(f"{name}: {error}") from None


def show_record(
    path: str,
    number: int,
    ply: int | None,
    planes: Sequence[str],
    config: Config,
    progress: Progress | None = None,
    png: str | None = None,
) -> tuple[Facts, list[str]]:
    """Return the position after ``ply`` moves (None: all) of game ``number`` (from 1) of a record file.

    Planes are those of ``config.encode.scheme``, on a frame of the board's size; ``progress`` is told of kernels to
    compile; ``png`` is as for ``show_row``. Raises ConfigError for what the file does not have, RecordError where it is
    no game or a move before the position is illegal, OSError.
    """
    scheme, _ = check_config(config)
    numbers = [_plane_number(name, scheme.plane_names) for name in planes]
    if png is not None:
        require_png(png)
    record = _record(path, number, config)
    last = len(record.moves)
    ply = last if ply is None else ply
    if not 0 <= ply <= last:
        raise ConfigError(f"{path}: the game has {last} moves, so --ply is 0 to {last}, not {ply}")
    warm_up(progress or Progress(quiet=True), scheme if planes or png else None)
    rows, cols = record.rows, record.cols
    setup = record.setup_plies, record.setup_points, record.setup_colours
    played = record.moves, record.colours
    game = single_game((rows, cols), played, setup, record.rules, record.komi, record.handicap)
    try:
        position = position_at(game, ply)
    except ValueError as error:
        raise RecordError(f"{path}: {error}") from None
    label = move_name(int(record.moves[ply]), rows, cols) if ply < last else None
    komi = "unknown" if record.komi is None else format(record.komi, "g")
    if record.komi is None and scheme.komi:
        komi += f": {scheme.name} shows {game.terms.komi[0]:g}, that of the rules"
    facts: Facts = {"file": path, "game_number": number, "ply": ply, "moves": last, "label": label, "komi": record.komi}
    facts |= {"winner": record.winner, "margin": record.margin, "rules": record.rules} | _board_facts(position)
    text = [
        f"{printable(path)}, game {number}: position after {ply} of {last} moves",
        *_drawn(position),
        f"next move    {label or 'none: the record ends here'}",
        f"komi         {komi}",
        f"rules        {record.rules}",
    ]
    drawn = {}
    if numbers or png:
        try:
            packed, values = inputs_at(scheme, game, ply, position.to_play, (rows, cols))
        except ValueError as error:
            raise RecordError(f"{path}: {error}") from None
        named = dict(zip(scheme.global_names, values.tolist(), strict=True))
        dense = np.unpackbits(packed, axis=-1, count=rows * cols).reshape(-1, rows, cols)
        if png is not None:
            chosen = [(plane, scheme.plane_names[plane], dense[plane]) for plane in numbers or range(len(dense))]
            facts, text = _with_picture(facts, text, png, position, chosen, scheme.name, named)
        drawn = {scheme.plane_names[number]: dense[number] for number in numbers}
        facts, text = _with_globals(facts, text, named)
    return _with_planes(facts, text, drawn, position)


def _record(path: str, number: int, config: Config) -> Game:
    """Read game ``number`` of a file. Raises ConfigError where it has no such game, RecordError where it is none."""
    limit = config.input.max_member_bytes
    try:
        require_file(path)
    except NotAFileError as error:
        raise ConfigError(printable(str(error))) from None
    with open(path, "rb") as file:
        data = file.read(min(limit, os.fstat(file.fileno()).st_size) + 1)
    if len(data) > limit:
        raise ConfigError(f"{path}: larger than input.max_member_bytes = {limit}")
    if archive_kind(data[:512]):
        raise ConfigError(f"{path} is an archive: `goplanes explain` lists what is in it, `show` draws a record file")
    records = parse_member(data, config.input, config.parse, config.rules)
    if not 1 <= number <= len(records):
        raise ConfigError(f"{path}: --game is 1 to {len(records)}, not {number}")
    record = records[number - 1]
    if isinstance(record, Rejected):
        raise RecordError(f"{path}: {record.reason}: {record.reason.meaning} ({printable(record.detail)})")
    return record


def _plane_number(name: str, known: Sequence[str]) -> int:
    """Find a plane by its name or number. Raises ConfigError with the known names, the nearest one first."""
    if name in known:
        return known.index(name)
    if name.isdecimal() and len(name) <= 6 and int(name) < len(known):
        return int(name)
    near = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {near[0]!r}? The planes are" if near else "the planes are"
    raise ConfigError(f"no plane {name!r}: {hint} {', '.join(known)}")


def _point_text(point: tuple[int, int] | None, position: Position) -> str | None:
    rows, cols = position.stones.shape
    return None if point is None else point_name(point[0] * cols + point[1], rows, cols)


def _board_facts(position: Position) -> Facts:
    rows, cols = position.stones.shape
    return {
        "rows": rows,
        "cols": cols,
        "to_play": position.to_play,
        "last_move": "pass" if position.passed else _point_text(position.last, position),
        "ko": _point_text(position.ko, position),
        "board": ["".join(".XO"[stone] for stone in row) for row in position.stones],
    }


def _drawn(position: Position) -> list[str]:
    """Return the board and the lines that explain its marks."""
    facts = _board_facts(position)
    marks = [f"({facts['last_move']}) was the last move" if facts["last_move"] else "no move yet"]
    if position.ko is not None:
        marks.append(f"k is the ko point {facts['ko']}")
    side = _SIDES[position.to_play]
    return ["", *board_lines(position), "", f"X Black, O White; {', '.join(marks)}", f"to play      {side}"]


def _with_planes(
    facts: Facts, text: list[str], drawn: dict[str, NDArray[np.uint8]], position: Position
) -> tuple[Facts, list[str]]:
    """Add planes of a position to what is shown: uint8[H, W] each."""
    if not drawn:
        return facts, text
    rows, cols = position.stones.shape
    for name, plane in drawn.items():
        text = [*text, "", f"plane {name}", *plane_lines(plane, rows, cols)]
    return facts | {"planes": {name: plane.tolist() for name, plane in drawn.items()}}, text


def _with_globals(facts: Facts, text: list[str], named: dict[str, float]) -> tuple[Facts, list[str]]:
    """Add the globals by name to what is shown, where there are any."""
    if not named:
        return facts, text
    width = max(len(name) for name in named)
    lines = [f"  {name:<{width}}  {value:g}" for name, value in named.items()]
    return facts | {"globals": named}, [*text, "globals", *lines]


def _with_picture(
    facts: Facts,
    text: list[str],
    png: str,
    position: Position,
    planes: Sequence[NumberedPlane],
    scheme: str,
    named: dict[str, float],
) -> tuple[Facts, list[str]]:
    """Draw a picture and add its path to what is shown; ``named``: the globals by name.

    Its caption is the first line of the text and what stands below the board and the line on its marks.
    """
    below = len(text) - text[::-1].index("") + 1
    write_sheet(png, position, planes, [text[0], *text[below:], f"scheme       {scheme}"], named)
    return facts | {"png": png}, [*text, f"picture      {printable(png)}"]
