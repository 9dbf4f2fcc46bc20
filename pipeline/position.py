"""One position at a time: from setup and moves to the bytes a shard would hold, and to a board to look at."""

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline import symmetry
from pipeline.augment import turn_dense
from pipeline.board import BLACK, LEGAL, WHITE
from pipeline.coordinates import PASS, named_point, point_name
from pipeline.encode import encode_whole
from pipeline.faults import REASONS, describe
from pipeline.games import Games, terms_of
from pipeline.headers.handicap import MAX_HANDICAP
from pipeline.headers.komi import MAX_KOMI
from pipeline.keys import keyed
from pipeline.replay import ILLEGAL_SETUP, replay
from pipeline.rules import rule_set
from pipeline.schemes import Scheme, find_scheme
from pipeline.trace import trace
from pipeline.values import MAX_SIDE

Point = str | tuple[int, int]

_COLOURS = {"black": BLACK, "b": BLACK, "white": WHITE, "w": WHITE}


def encode_position(
    setup: Mapping[str, Sequence[Point]] | None = None,
    moves: Sequence[tuple[str, Point]] = (),
    *,
    scheme: str = "agz17",
    rows: int = 19,
    cols: int | None = None,
    to_play: str | None = None,
    frame: tuple[int, int] | None = None,
    rules: str = "chinese",
    komi: float | None = None,
    handicap: int | None = None,
    options: Mapping[str, str] | None = None,
) -> NDArray[np.uint8]:
    """Return uint8[P, B]: the packed planes of the position after ``moves``, as a shard would hold them.

    ``np.unpackbits(planes, axis=-1, count=area).reshape(-1, *frame)`` makes dense ones of them. The first call on a
    machine compiles kernels, which takes a while. ``setup``: ``{"black": [points], "white": [points]}``, or None.
    ``moves``: (colour, point) in order; a colour is "black", "white", "B" or "W", a point "D4", (row, col) from the top
    left, or "pass". ``cols``: None is as many as ``rows``. ``to_play`` (None: the other side than the last mover,
    Black if there is none) moves next. ``frame`` (None: the board) is that of the data set. ``rules`` decide what is
    legal; schemes that show rules also see ``komi`` (None: that of the rules) and ``handicap`` (stones, by the record).
    ``options`` are those of the scheme.
    Raises ValueError, quoting it, for anything that is no setup, move, point, colour, komi or handicap, or not legal,
    and for a position of which the scheme has no rows.
    """
    given = scheme, rows, cols, to_play, frame, rules, komi, handicap, options
    return encode_inputs(setup, moves, *given)[0]


def encode_inputs(
    setup: Mapping[str, Sequence[Point]] | None,
    moves: Sequence[tuple[str, Point]],
    scheme: str = "agz17",
    rows: int = 19,
    cols: int | None = None,
    to_play: str | None = None,
    frame: tuple[int, int] | None = None,
    rules: str = "chinese",
    komi: float | None = None,
    handicap: int | None = None,
    options: Mapping[str, str] | None = None,
) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """Return what ``encode_position`` does, and float32[G]: the globals (none for most schemes)."""
    cols = rows if cols is None else cols
    frame = frame or (rows, cols)
    if not (1 <= rows <= frame[0] <= MAX_SIDE and 1 <= cols <= frame[1] <= MAX_SIDE):
        raise ValueError(f"a board of {rows}x{cols} does not fit a frame of {frame[0]}x{frame[1]} (at most {MAX_SIDE})")
    played = [_pair(move) for move in moves]
    colours = [_colour(mover) for mover, _ in played]
    points = [_point(point, rows, cols) for _, point in played]
    stones = [(_colour(side), _point(point, rows, cols)) for side, point in _set_up(setup)]
    set_points = [point for _, point in stones]
    if rows * cols in set_points:
        raise ValueError("a pass cannot be set up")
    if twice := [point for point in set_points if set_points.count(point) > 1]:
        raise ValueError(f"{point_name(twice[0], rows, cols)} is set up twice")
    _require_terms(komi, handicap)
    mover = _colour(to_play) if to_play is not None else (BLACK + WHITE - colours[-1] if colours else BLACK)
    game = single_game(
        (rows, cols),
        (points, colours),
        ([0] * len(stones), set_points, [colour for colour, _ in stones]),
        rules,
        komi,
        handicap,
    )
    require_legal(game, len(moves))
    return inputs_at(find_scheme(scheme, options), game, len(moves), mover, frame)


def inputs_at(
    scheme: Scheme, game: Games, ply: int, to_play: int, frame: tuple[int, int]
) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """Return uint8[P, B] and float32[G]: planes and globals of the position after ``ply`` legal moves of the one game.

    ``to_play`` is to move. Raises ValueError where the scheme makes no row of it.
    """
    number, cut = np.zeros(1, dtype=np.int64), _before_a_pass(game, ply, to_play)
    if not keyed(cut, scheme).shown[ply]:
        raise ValueError(f"{scheme.name} has no rows of the encore, which follows two passes under territory scoring")
    planes, numbers = encode_whole(scheme, cut, number, number + ply, frame)
    return planes[0], numbers[0]


def single_game(
    size: tuple[int, int],
    moves: tuple[Sequence[int] | NDArray[Any], Sequence[int] | NDArray[Any]],
    setup: tuple[Sequence[int] | NDArray[Any], Sequence[int] | NDArray[Any], Sequence[int] | NDArray[Any]],
    rules: str,
    komi: float | None = None,
    handicap: int | None = None,
) -> Games:
    """Return one game as arrays: ``moves`` are (points, colours), ``setup`` is (plies, points, colours).

    ``komi``: None is that of the rules.

    Raises ValueError for unknown rules.
    """
    chosen = rule_set(rules)
    return Games(
        np.array([size[0]], dtype=np.uint8),
        np.array([size[1]], dtype=np.uint8),
        np.array([chosen.ko_code], dtype=np.int8),
        np.array([chosen.suicide]),
        np.array([0, len(moves[0])], dtype=np.int64),
        np.array(moves[0], dtype=np.uint16),
        np.array(moves[1], dtype=np.int8),
        np.array([0, len(setup[0])], dtype=np.int64),
        np.array(setup[0], dtype=np.uint16),
        np.array(setup[1], dtype=np.uint16),
        np.array(setup[2], dtype=np.int8),
        terms_of([chosen], [komi], [handicap]),
    )


def _before_a_pass(game: Games, ply: int, to_play: int) -> Games:
    """Return the one game cut after ``ply`` moves, then a pass: a position is always the one before a move."""
    return game._replace(
        move_start=np.array([0, ply + 1], dtype=np.int64),
        moves=np.append(game.moves[:ply], np.uint16(int(game.rows[0]) * int(game.cols[0]))),
        colours=np.append(game.colours[:ply], np.int8(to_play)),
    )


def _pair(move: object) -> tuple[Any, Any]:
    """Return a move as (colour, point). Raises ValueError for what is no pair."""
    if not isinstance(move, (tuple, list)) or len(move) != 2:
        raise ValueError(f'not a move: {move!r} (write a pair of colour and point, e.g. ("black", "D4"))')
    return move[0], move[1]


def _set_up(setup: object) -> Iterator[tuple[Any, Any]]:
    """Yield (colour, point) of each setup stone. Raises ValueError for what is no mapping of lists."""
    if setup is None:
        return
    if not isinstance(setup, Mapping):
        raise ValueError(f'not a setup: {setup!r} (write {{"black": ["D4"], "white": []}}; moves go into moves=)')
    for side, chosen in setup.items():
        if isinstance(chosen, str) or not isinstance(chosen, Iterable):
            raise ValueError(f'not a list of points: {chosen!r} (write {{"black": ["D4"]}})')
        yield from ((side, point) for point in chosen)


def _require_terms(komi: object, handicap: object) -> None:
    """Raise ValueError for a komi or a handicap that no record has."""
    if komi is not None and not (isinstance(komi, Real) and -MAX_KOMI <= float(komi) <= MAX_KOMI):
        raise ValueError(f"not a komi: {komi!r} (write points, {-MAX_KOMI:g} to {MAX_KOMI:g}, or None)")
    if handicap is not None and not (isinstance(handicap, Integral) and 0 <= int(handicap) <= MAX_HANDICAP):
        raise ValueError(f"not a number of handicap stones: {handicap!r}")


def _colour(name: str) -> int:
    if not isinstance(name, str) or name.lower() not in _COLOURS:
        raise ValueError(f'not a colour: {name!r} (write "black", "white", "B" or "W")')
    return _COLOURS[name.lower()]


def _point(point: Point, rows: int, cols: int) -> int:
    if isinstance(point, str):
        return named_point(point, rows, cols)
    try:
        row, col = map(operator.index, point)
    except (TypeError, ValueError):
        row = col = -1
    if not (0 <= row < rows and 0 <= col < cols):
        raise ValueError(f"{point!r} is not a (row, col) on a board of {rows} rows and {cols} columns")
    return row * cols + col


def require_legal(game: Games, plies: int) -> None:
    """Raise ValueError, naming the move, unless the first ``plies`` moves of the one game are legal."""
    replayed = replay(game)
    legal, fault = int(replayed.legal[0]), int(replayed.faults[0])
    if fault == LEGAL or legal > plies or (legal == plies and fault != ILLEGAL_SETUP):
        return
    size = int(game.rows[0]), int(game.cols[0])
    raise ValueError(describe(REASONS[fault], legal, game.moves, game.colours, size))


@dataclass(frozen=True, slots=True)
class Position:
    """A board to look at: ``stones`` int8[rows, cols] (0, BLACK, WHITE), the side to move, the ko point and
    the last move as (row, col), and whether the last move was a pass."""

    stones: NDArray[np.int8]
    to_play: int
    ko: tuple[int, int] | None
    last: tuple[int, int] | None
    passed: bool


def position_at(game: Games, ply: int) -> Position:
    """Return the position of the one game before its move ``ply`` (from 0), or after its last move.

    Raises ValueError where it has no such move or an earlier one is illegal.
    """
    moves = int(game.move_start[1])
    if not 0 <= ply <= moves:
        raise ValueError(f"the game has {moves} moves: no position after {ply}")
    require_legal(game, ply)
    rows, cols = int(game.rows[0]), int(game.cols[0])
    movers = [*game.colours.tolist(), BLACK + WHITE - int(game.colours[-1]) if moves else BLACK]
    mover = int(movers[ply])
    cut = _before_a_pass(game, ply, mover)
    traced = trace(cut, np.zeros(1, dtype=np.int64), np.array([ply + 1], dtype=np.int64), (rows, cols))
    black, white = np.unpackbits(traced.stones[ply], axis=-1, count=rows * cols).reshape(2, rows, cols)
    ko, last = int(traced.ko[ply]), int(game.moves[ply - 1]) if ply else rows * cols
    return Position(
        (black * BLACK + white * WHITE).astype(np.int8),
        mover,
        divmod(ko, cols) if ko >= 0 else None,
        divmod(last, cols) if last < rows * cols else None,
        ply > 0 and last == rows * cols,
    )


def turned(position: Position, turn: int) -> Position:
    """Return the position under a symmetry of its board."""
    rows, cols = position.stones.shape

    def image(point: tuple[int, int] | None) -> tuple[int, int] | None:
        return None if point is None else symmetry.image_point(*point, rows, cols, turn)

    return Position(
        turn_dense(position.stones, turn), position.to_play, image(position.ko), image(position.last), position.passed
    )


def label_name(move: int, rows: int, cols: int, frame: tuple[int, int]) -> str:
    """Return the human name of a stored label: a frame index, the frame's area is a pass."""
    if move == frame[0] * frame[1]:
        return PASS
    row, col = divmod(move, frame[1])
    if row >= rows or col >= cols:
        raise ValueError(f"move {move} is off the board of {rows}x{cols}")
    return point_name(row * cols + col, rows, cols)
