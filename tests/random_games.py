"""Games for tests: written as lists, made at random, turned, and put into ``Games``."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random

import numpy as np
from slow_board import BLACK, WHITE, Point, SlowBoard, SlowGame, Stones, draw

from pipeline import symmetry
from pipeline.games import OFF_BOARD, Games, Terms, terms_of
from pipeline.rules import RULE_SETS, RuleSet, rule_set


@dataclass(frozen=True, slots=True)
class Line:
    """One game: moves are (point, colour), a pass is None; setup stones (ply, point, colour)."""

    rows: int
    cols: int
    moves: tuple[tuple[Point | None, int], ...]
    setup: tuple[tuple[int, Point, int], ...] = ()
    ko_rule: int = 0
    suicide: bool = True
    rules: RuleSet = RULE_SETS["chinese"]  # but for the two above
    komi: float | None = None
    handicap: int = 0


def turned(line: Line, turn: int) -> Line:
    """Return the image of a game under a symmetry."""

    def image(point: Point) -> Point:
        return symmetry.image_point(*point, line.rows, line.cols, turn)

    return replace(
        line,
        rows=line.cols if turn & 4 else line.rows,
        cols=line.rows if turn & 4 else line.cols,
        moves=tuple((point if point is None else image(point), colour) for point, colour in line.moves),
        setup=tuple((ply, image(point), colour) for ply, point, colour in line.setup),
    )


def games_of(lines: Sequence[Line]) -> Games:
    """Return ``lines`` as arrays; a point outside the board becomes OFF_BOARD."""

    def number(line: Line, point: Point | None) -> int:
        if point is None:
            return line.rows * line.cols
        row, col = point
        return row * line.cols + col if 0 <= row < line.rows and 0 <= col < line.cols else OFF_BOARD

    moves = [(number(line, point), colour) for line in lines for point, colour in line.moves]
    setup = [(ply, number(line, point), colour) for line in lines for ply, point, colour in line.setup]
    return Games(
        rows=np.array([line.rows for line in lines], dtype=np.uint8),
        cols=np.array([line.cols for line in lines], dtype=np.uint8),
        ko_rule=np.array([line.ko_rule for line in lines], dtype=np.int8),
        suicide=np.array([line.suicide for line in lines], dtype=np.bool_),
        move_start=np.cumsum([0] + [len(line.moves) for line in lines], dtype=np.int64),
        moves=np.array([move for move, _ in moves], dtype=np.uint16),
        colours=np.array([colour for _, colour in moves], dtype=np.int8),
        setup_start=np.cumsum([0] + [len(line.setup) for line in lines], dtype=np.int64),
        setup_plies=np.array([ply for ply, _, _ in setup], dtype=np.uint16),
        setup_points=np.array([point for _, point, _ in setup], dtype=np.uint16),
        setup_colours=np.array([colour for _, _, colour in setup], dtype=np.int8),
        terms=terms_of(
            [line.rules for line in lines], [line.komi for line in lines], [line.handicap for line in lines]
        ),
    )


def plain_terms(count: int) -> Terms:
    """Return Chinese rules and their komi for so many games."""
    return terms_of([RULE_SETS["chinese"]] * count, [None] * count, [None] * count)


def random_line(rng: Random, rows: int, cols: int, length: int, passes: float = 0.05, turns: bool = False) -> Line:
    """Return a random game, legal under simple ko with suicide; ``turns``: either colour may move."""
    board = SlowBoard(rows, cols)
    moves: list[tuple[Point | None, int]] = []
    colour = 1
    for _ in range(length):
        points = board.empty_points()
        rng.shuffle(points)
        point = next((point for point in points if board.fault(point, colour, True) is None), None)
        if point is None or rng.random() < passes:
            moves.append((None, colour))
            board.play_pass()
        else:
            moves.append((point, colour))
            board.play(point, colour)
        colour = rng.choice((1, 2)) if turns else 3 - colour
    return Line(rows, cols, tuple(moves))


# Every rule set, and two of single rules: Spight's ko rule, and superko where territory is scored.
RULES = (
    *RULE_SETS.values(),
    rule_set("ko=spight,scoring=area,tax=seki,suicide=true,button=false,bonus=N-1,komi=5.5"),
    rule_set("ko=positional,scoring=territory,tax=none,suicide=true,button=true,bonus=N,komi=6"),
)
KOMIS = (None, 7.5, 7.0, 6.5, 6.0, 5.75, 0.0, -3.5, 60.0)
HANDICAPS = (0, 0, 1, 2, 5)


def under(line: Line, rules: RuleSet, komi: float | None = None, handicap: int = 0) -> Line:
    """Return the same setup and moves under other rules."""
    return replace(line, ko_rule=rules.ko_code, suicide=rules.suicide, rules=rules, komi=komi, handicap=handicap)


def random_setup(rng: Random, board: SlowBoard, most: int) -> list[tuple[Point, int]]:
    """Return changes of stones, removals among them, that leave every chain a liberty."""
    points = sorted(board.neighbours)
    while True:
        chosen = rng.sample(points, rng.randint(1, max(1, min(most, len(points)))))
        changes = [(point, rng.choice((0, 1, 2))) for point in chosen]
        if board.copy().setup(changes):
            return changes


def takes(board: SlowBoard, point: Point, colour: int) -> bool:
    """Return whether a move on an empty point takes stones."""
    beside = (there for there in board.neighbours[point] if board.stones.get(there) == BLACK + WHITE - colour)
    return any(len(board.chain(there).liberties) == 1 for there in beside)


def random_record(
    rng: Random,
    size: tuple[int, int],
    length: int,
    setups: Sequence[int] = (),
    first: int = BLACK,
    rules: RuleSet = RULE_SETS["tromp-taylor"],
    in_turn: float = 0.95,
    opening: Line | None = None,
) -> Line:
    """Return a random game, legal under its rules, that likes to take stones and to pass after a ko was taken, so
    that superko has something to ban.

    It has setup stones before each ply of ``setups``, some passes, and now and then (``in_turn``) a side moves twice.
    It goes on from ``opening``, which is set up at its start alone.
    """
    begun = Line(*size, ()) if opening is None else opening
    game = SlowGame(*size, rules.ko, rules.suicide)
    moves: list[tuple[Point | None, int]] = []
    setup: list[tuple[int, Point, int]] = []
    colour, fought = begun.moves[0][1] if begun.moves else first, 0
    for ply in range(length):
        changes = [(point, paint) for when, point, paint in begun.setup if when == ply]
        if ply in setups:
            changes += random_setup(rng, game.board, size[0] * size[1] // 4)
        if changes or ply == 0:
            assert game.setup(changes, colour)
            setup.extend((ply, point, paint) for point, paint in changes)
        if ply < len(begun.moves):
            moves.append(begun.moves[ply])
            game.play(*moves[-1])
            colour = BLACK + WHITE - begun.moves[ply][1]
            continue
        points = rng.sample(game.board.empty_points(), len(game.board.empty_points()))
        if rng.random() < 0.5:
            points.sort(key=lambda point: not takes(game.board, point, colour))
        legal = (point for point in points if game.fault(point, colour) is None)
        fought = 2 if game.board.ko is not None else fought - 1
        moves.append((None if rng.random() < (0.5 if fought > 0 else 0.06) else next(legal, None), colour))
        game.play(*moves[-1])
        colour = BLACK + WHITE - colour if rng.random() < in_turn else colour
    return under(Line(*size, tuple(moves), tuple(setup)), rules, rng.choice(KOMIS), rng.choice(HANDICAPS))


def ko_fight(rng: Random, size: tuple[int, int], length: int, rules: RuleSet) -> Line:
    """Return a random game on a board of 3x4 or more in which Black first takes a ko, and both pass."""
    setup = draw(". X O .\nX O . O\n. X O .")
    moves: tuple[tuple[Point | None, int], ...] = (((1, 2), BLACK), (None, WHITE), (None, BLACK))
    opening = Line(*size, moves, tuple((0, point, colour) for point, colour in setup.items()))
    return random_record(rng, size, length, rules=rules, opening=opening)


RECENT = 8


@dataclass(frozen=True, slots=True)
class Seen:
    """What a key may depend on: the boards of a position, its own last; ``None`` for no ko.

    Beside them ``recent``, the last moves since the start or the last setup, at most ``RECENT``, the newest first;
    the ko point of the board before the last of them; and which position of which game it is, with the ply
    at which the game, or what follows its last setup, began.
    """

    boards: tuple[Stones, ...]
    ko: Point | None
    to_play: int
    recent: tuple[Point | None, ...] = field(default=(), compare=False)
    ko_before: Point | None = field(default=None, compare=False)
    line: Line = field(default=Line(0, 0, ()), compare=False, repr=False)
    ply: int = field(default=0, compare=False)
    begin: int = field(default=0, compare=False)


def positions(line: Line, history: int = 0) -> list[Seen]:
    """Return the position before each move of a legal game, with ``history`` earlier boards.

    Missing boards are empty ones; setup stones begin a new history.
    """
    board = SlowBoard(line.rows, line.cols)
    nothing: Stones = frozenset()
    boards: list[Stones] = []
    seen: list[Seen] = []
    recent: list[Point | None] = []
    ko_before: Point | None = None
    begin = 0
    for ply, (point, colour) in enumerate(line.moves):
        changes = [(place, paint) for when, place, paint in line.setup if when == ply]
        if changes:
            assert board.setup(changes)
            boards.clear()
            recent.clear()
            ko_before, begin = None, ply
        boards.append(board.frozen())
        last = [nothing] * (history + 1) + boards
        boards_shown = tuple(last[len(last) - history - 1 :])
        seen.append(Seen(boards_shown, board.ko, colour, tuple(recent), ko_before, line, ply, begin))
        recent.insert(0, point)
        del recent[RECENT:]
        ko_before = board.ko
        if point is None:
            board.play_pass()
        else:
            board.play(point, colour)
    return seen
