"""Every scheme drawn with plain loops from its definition, to test the packed planes against.

A plane is the set of its points. Definitions: AlphaGo Zero has own and opp stones now and 1 to 7 turns
ago, alternating, and ones if Black is to move; Leela Zero the same boards side by side and a plane for
each side to move; the articles' form shows Black and White in place of own and opp. Chains with 1, 2,
and 3 or more liberties, own then opp, and the ko point make the seven planes. minigo's 21, the articles' and KataGo's
schemes are at the end; what a move does is found by playing it on a board of its own. Options are arguments,
with their values as a configuration has them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from random_games import RECENT, Line, Seen, positions
from slow_areas import is_true_eye, own_areas
from slow_board import BLACK, WHITE, Point, SlowBoard, Stones
from slow_captures import escaping_moves, working_moves
from slow_katago import Recent, SlowHistory, SlowOptions, SlowRules
from slow_ladders import ladder_captures, ladder_escapes

Size = tuple[int, int]
Points = frozenset[Point]
Planes = dict[str, set[Point]]

TURNS = 8  # boards that the schemes with history show, the present one included (alphago48_history: besides it)


def stones(seen: Seen, colour: int, back: int) -> set[Point]:
    """Return the stones of one colour as they stood ``back`` turns ago."""
    return {point for point, paint in seen.boards[-1 - back] if paint == colour}


def everywhere(size: Size) -> set[Point]:
    """Return all points of the board."""
    return {(row, col) for row in range(size[0]) for col in range(size[1])}


def if_to_play(seen: Seen, size: Size, colour: int) -> set[Point]:
    """Return all points of the board if ``colour`` is to move, else none."""
    return everywhere(size) if seen.to_play == colour else set()


def by_liberties(seen: Seen, size: Size, colour: int, least: int, most: int) -> set[Point]:
    """Return the stones of the chains of one colour that have ``least`` to ``most`` liberties."""
    board = SlowBoard(*size)
    board.stones = dict(seen.boards[-1])
    found: set[Point] = set()
    for chain in board.chains():
        if chain.colour == colour and least <= len(chain.liberties) <= most:
            found |= chain.stones
    return found


def _sides(seen: Seen) -> tuple[tuple[str, int], tuple[str, int]]:
    return ("own", seen.to_play), ("opp", BLACK + WHITE - seen.to_play)


def board(seen: Seen, size: Size) -> Planes:
    """The board itself: black, white, empty."""
    black, white = stones(seen, BLACK, 0), stones(seen, WHITE, 0)
    return {"black_0": black, "white_0": white, "empty": everywhere(size) - black - white}


def agz17(seen: Seen, size: Size, before_start: str = "empty", side: str = "black") -> Planes:
    """AlphaGo Zero. The boards before the start: empty, or ("oldest") the first one there is, as minigo has it."""
    known = seen.ply - seen.begin if before_start == "oldest" else TURNS
    planes = {
        f"{name}_{back}": stones(seen, colour, min(back, known))
        for back in range(TURNS)
        for name, colour in _sides(seen)
    }
    planes["black_to_move"] = if_to_play(seen, size, BLACK)
    return {**planes, "white_to_move": if_to_play(seen, size, WHITE)} if side == "both" else planes


def agz17_grouped(seen: Seen, size: Size) -> Planes:
    """AlphaGo Zero as the articles have it."""
    sides = (("black", BLACK), ("white", WHITE))
    planes = {f"{side}_{back}": stones(seen, colour, back) for side, colour in sides for back in range(TURNS)}
    return {**planes, "black_to_move": if_to_play(seen, size, BLACK)}


def leela_zero18(seen: Seen, size: Size) -> Planes:
    """Leela Zero, row 0 on top."""
    planes = {f"{side}_{back}": stones(seen, colour, back) for side, colour in _sides(seen) for back in range(TURNS)}
    movers = (("black_to_move", BLACK), ("white_to_move", WHITE))
    return {**planes, **{name: if_to_play(seen, size, colour) for name, colour in movers}}


def seven_plane(seen: Seen, size: Size) -> Planes:
    """Chains by liberties, and the ko point."""
    planes: Planes = {}
    for side, colour in _sides(seen):
        planes[f"{side}_liberties_1"] = by_liberties(seen, size, colour, 1, 1)
        planes[f"{side}_liberties_2"] = by_liberties(seen, size, colour, 2, 2)
        planes[f"{side}_liberties_3_or_more"] = by_liberties(seen, size, colour, 3, size[0] * size[1])
    return {**planes, "ko": set() if seen.ko is None else {seen.ko}}


def numbered(name: str, least: int, most: int) -> list[str]:
    """Return the names of one-hot planes for the numbers ``least``, ..., ``most`` or more."""
    return [f"{name}_{number}" for number in range(least, most)] + [f"{name}_{most}_or_more"]


def one_hot(name: str, least: int, most: int, numbers: dict[Point, int]) -> Planes:
    """Return one-hot planes; a point without a number or with one below ``least`` is in none."""
    planes: Planes = {plane: set() for plane in numbered(name, least, most)}
    for point, number in numbers.items():
        if number >= least:
            planes[numbered(name, least, most)[min(number, most) - least]].add(point)
    return planes


def present(seen: Seen, size: Size) -> SlowBoard:
    """Return the board of a position, with its ko point."""
    board = SlowBoard(*size)
    board.stones = dict(seen.boards[-1])
    board.ko = seen.ko
    return board


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a legal move does: see ``pipeline.whatif.Moves``; and the board after it."""

    liberties: int
    stones: int
    captured: int
    joined: int
    enemy: int
    target: int
    after: SlowBoard


def outcomes(board: SlowBoard, colour: int) -> dict[Point, Outcome]:
    """Return what each legal move of one side does: empty, not the ko point, no suicide."""
    opponent, found = BLACK + WHITE - colour, {}
    for point in board.empty_points():
        if board.fault(point, colour, suicide=False) is not None:
            continue
        around = {board.chain(n) for n in board.neighbours[point] if n in board.stones}
        after = board.copy()
        captured = after.play(point, colour)
        chain = after.chain(point)
        enemies = [len(after.chain(n).liberties) for n in board.neighbours[point] if after.stones.get(n) == opponent]
        found[point] = Outcome(
            len(chain.liberties),
            len(chain.stones),
            len(captured),
            sum(one.colour == colour for one in around),
            min(enemies, default=0),
            max((len(one.stones) for one in around if one.colour == opponent and len(one.liberties) == 2), default=0),
            after,
        )
    return found


KO_RULES = ("simple", "positional", "situational", "spight")


@dataclass(frozen=True, slots=True)
class KataSeen:
    """What KataGo's history makes of a position: points banned by superko, for the side that moves by turns;
    the moves shown, the globals, and whether the side to move moves by turns."""

    banned: Points
    recent: Recent
    numbers: list[np.float32]
    in_turn: bool


def komi_of(line: Line) -> float:
    """Return the komi of a game: the record's, or that of its rules."""
    return line.rules.komi if line.komi is None else line.komi


@cache
def kata_seen(line: Line) -> tuple[KataSeen | None, ...]:
    """Return KataGo's view of all positions of a game; None for those that a record cannot have.

    These are in the encore, and after a pass for ko, which leaves other stones than the record has.
    """
    territory = line.rules.scoring == "territory"
    tax, button, bonus = line.rules.tax, line.rules.button, line.rules.bonus
    rules = SlowRules(KO_RULES[line.ko_rule], territory, tax, line.suicide, button, bonus)
    slow = SlowHistory(line.rows, line.cols, rules, komi_of(line), None, SlowOptions())
    found: list[KataSeen | None] = []
    lost = False
    for ply, (point, colour) in enumerate(line.moves):
        changes = [(place, paint) for when, place, paint in line.setup if when == ply]
        if lost:
            found.append(None)
            continue
        if changes or ply == 0:
            slow.setup(changes, colour)
        shown = slow.recent(colour, 0), slow.globals(colour, 0), colour == slow.presumed
        found.append(None if slow.phase else KataSeen(frozenset(slow.banned), *shown))
        lost = slow.play(point, colour)
    return tuple(found)


def banned(seen: Seen) -> Points:
    """Return the points where superko bans a move of the side to move, which it does only by turns."""
    kata = kata_seen(seen.line)[seen.ply]
    return kata.banned if kata is not None and kata.in_turn else frozenset()


def own_moves(seen: Seen, size: Size, legality: str) -> dict[Point, Outcome]:
    """Return what the legal moves of the side to move do; by the "rules": but for those that superko bans."""
    left_out = banned(seen) if legality == "rules" else frozenset()
    moves = outcomes(present(seen, size), seen.to_play)
    return {point: move for point, move in moves.items() if point not in left_out}


def chain_liberties(seen: Seen, size: Size) -> Planes:
    """Stones of either colour by the liberties of their chains: 1 to 7, 8 or more."""
    board = present(seen, size)
    return one_hot("liberties", 1, 8, {stone: len(c.liberties) for c in board.chains() for stone in c.stones})


def recent_moves(seen: Seen, turns: int = RECENT) -> Planes:
    """Where the last moves were; a pass leaves its plane empty."""
    moves = [*seen.recent, *[None] * RECENT][:turns]
    return {f"move_{back}": set() if point is None else {point} for back, point in enumerate(moves, 1)}


def edge_distances(size: Size, most: int) -> Planes:
    """All points by the distance to the nearest edge."""
    rows, cols = size
    return one_hot("edge", 0, most, {(r, c): min(r, c, rows - 1 - r, cols - 1 - c) for r, c in everywhere(size)})


def minigo21(seen: Seen, size: Size) -> Planes:
    """minigo's default: stones, ones, liberties, the last moves, and the last liberties of opp chains in atari."""
    own, opp = stones(seen, seen.to_play, 0), stones(seen, BLACK + WHITE - seen.to_play, 0)
    last: set[Point] = set()
    for chain in present(seen, size).chains():
        if chain.colour != seen.to_play and len(chain.liberties) == 1:
            last |= chain.liberties
    return {
        "own_0": own,
        "opp_0": opp,
        "empty": everywhere(size) - own - opp,
        "ones": everywhere(size),
        **chain_liberties(seen, size),
        **recent_moves(seen),
        "would_capture": last,
    }


def ages_of(seen: Seen, setup_age: str) -> dict[Point, int]:
    """Return the ages of stones; those that were set up, or played before the last setup, are the oldest or have
    none."""
    played = [point for point, _ in seen.line.moves[seen.begin : seen.ply]][::-1]
    ages = {point: played.index(point) + 1 if point in played else None for point, _ in seen.boards[-1]}
    oldest = 8 if setup_age == "oldest" else 0
    return {point: oldest if age is None else age for point, age in ages.items()}


@cache
def alphago_ladders(size: Size, stones: Stones, ko: Point | None, own: int, by_capture: bool) -> tuple[Points, Points]:
    """Return AlphaGo's ladder captures and escapes of a board."""
    board = SlowBoard(*size)
    board.stones, board.ko = dict(stones), ko
    return frozenset(ladder_captures(board, own)), frozenset(ladder_escapes(board, own, by_capture))


def alphago48(
    seen: Seen, size: Size, ladder_escape: str = "own", legality: str = "simple", setup_age: str = "oldest"
) -> Planes:
    """AlphaGo's policy network."""
    now, own = present(seen, size), seen.to_play
    moves = own_moves(seen, size, legality)
    captures, escapes = alphago_ladders(size, seen.boards[-1], seen.ko, own, ladder_escape == "counter")
    mine, theirs = stones(seen, own, 0), stones(seen, BLACK + WHITE - own, 0)
    return {
        "own_0": mine,
        "opp_0": theirs,
        "empty": everywhere(size) - mine - theirs,
        "ones": everywhere(size),
        **one_hot("age", 1, 8, ages_of(seen, setup_age)),
        **chain_liberties(seen, size),
        **one_hot("capture", 0, 7, {p: move.captured for p, move in moves.items()}),
        **one_hot("self_atari", 1, 8, {p: move.stones for p, move in moves.items() if move.liberties == 1}),
        **one_hot("liberties_after", 1, 8, {p: move.liberties for p, move in moves.items()}),
        "ladder_capture": captures & moves.keys(),
        "ladder_escape": escapes & moves.keys(),
        "sensible": {p for p in moves if not is_true_eye(now, p, own)},
        "zeros": set(),
    }


def alphago49(seen: Seen, size: Size, **options: str) -> Planes:
    """AlphaGo's value network."""
    return {**alphago48(seen, size, **options), "black_to_move": if_to_play(seen, size, BLACK)}


# The 8 neighbours in the order of the digits, and the 8 symmetries of the square they make.
AROUND = ((-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1))
TURNS_OF_STEPS: tuple[Callable[[int, int], Point], ...] = (
    lambda row, col: (row, col),
    lambda row, col: (-row, col),
    lambda row, col: (row, -col),
    lambda row, col: (-row, -col),
    lambda row, col: (col, row),
    lambda row, col: (-col, row),
    lambda row, col: (col, -row),
    lambda row, col: (-col, -row),
)


@cache
def canonical_code(digits: tuple[int, ...]) -> int:
    """Return the smallest base-4 number over the symmetries; most significant digit first."""
    at = dict(zip(AROUND, digits, strict=True))
    return min(int("".join(str(at[turn(*step)]) for step in AROUND), 4) for turn in TURNS_OF_STEPS)


def digits_around(board: SlowBoard, point: Point, own: int) -> tuple[int, ...]:
    """Return the digits of the pattern: empty 0, own 1, opp 2, off the board 3."""
    digits = []
    for row, col in AROUND:
        there = (point[0] + row, point[1] + col)
        paint = board.stones.get(there, 0)
        digits.append(3 if there not in board.neighbours else 0 if not paint else 1 if paint == own else 2)
    return tuple(digits)


@cache
def pattern_ranks() -> dict[int, int]:
    """Return the number of every canonical code: all boards up to 3x3 with any stones, all their empty points.

    A larger board shows no other pattern, since a point near an edge sees as much of it on a small one.
    """
    codes: set[int] = set()
    for rows, cols in ((rows, cols) for rows in (1, 2, 3) for cols in (1, 2, 3)):
        board = SlowBoard(rows, cols)
        points = list(board.neighbours)
        for number in range(3 ** len(points)):
            paints = [number // 3**place % 3 for place in range(len(points))]
            board.stones = {point: paint for point, paint in zip(points, paints, strict=True) if paint}
            codes |= {canonical_code(digits_around(board, point, BLACK)) for point in board.empty_points()}
    return {code: rank for rank, code in enumerate(sorted(codes), 1)}


def gnugo(seen: Seen, size: Size, legality: str = "simple") -> Planes:
    """The hand-made features of the articles."""
    board, own = present(seen, size), seen.to_play
    numbers = {p: pattern_ranks()[canonical_code(digits_around(board, p, own))] for p in board.empty_points()}
    moves = own_moves(seen, size, legality)

    def makes_eye(point: Point, after: SlowBoard) -> bool:
        return any(n not in after.stones and is_true_eye(after, n, own) for n in board.neighbours[point])

    return {
        **{f"pattern_bit_{bit}": {p for p, number in numbers.items() if number >> bit & 1} for bit in range(11)},
        "can_capture": {p for p, move in moves.items() if move.captured},
        "can_connect": {p for p, move in moves.items() if move.joined > 1},
        "creates_eye": {p for p, move in moves.items() if makes_eye(p, move.after)},
        **one_hot("liberties_after", 1, 8, {p: move.liberties for p, move in moves.items()}),
        **one_hot("enemy_liberties", 1, 8, {p: move.enemy for p, move in moves.items()}),
        **edge_distances(size, 4),
        "legal": set(moves),
    }


@dataclass(frozen=True, slots=True)
class Ladders:
    """The ladders of one side: its laddered stones, the moves that work against it, the moves that save a chain."""

    stones: Points
    working: Points
    escaping: Points


@cache
def ladders(size: Size, stones: Stones, ko: Point | None, colour: int) -> Ladders:
    """Return the ladders of one side of a board, whoever is to move."""
    board = SlowBoard(*size)
    board.stones, board.ko = dict(stones), ko
    caught: set[Point] = set()
    working: set[Point] = set()
    escaping: set[Point] = set()
    for chain in board.chains():
        if chain.colour == colour:
            attacks, saves = working_moves(board, chain), escaping_moves(board, chain)
            working |= attacks
            escaping |= saves
            if attacks or (len(chain.liberties) == 1 and not saves):
                caught |= chain.stones
    return Ladders(frozenset(caught), frozenset(working), frozenset(escaping))


def ladder_planes(seen: Seen, size: Size) -> Planes:
    """The eight planes of the articles' ladders, own then opp."""
    now = seen.boards[-1], seen.ko
    before = (seen.boards[-2], seen.ko_before) if seen.recent else now
    planes: Planes = {}
    for side, colour in _sides(seen):
        found = ladders(size, *now, colour)
        planes[f"{side}_laddered"] = set(found.stones)
        planes[f"{side}_laddered_before"] = set(ladders(size, *before, colour).stones)
        planes[f"{side}_ladder_moves"] = set(found.working)
        planes[f"{side}_ladder_escapes"] = set(found.escaping)
    return planes


def alphago48_strings(seen: Seen, size: Size, legality: str = "simple") -> Planes:
    """The first article's 48 planes."""
    (rows, cols), moves = size, own_moves(seen, size, legality)
    middle_row = {p for p in everywhere(size) if 2 * p[0] == rows - 1}
    middle_col = {p for p in everywhere(size) if 2 * p[1] == cols - 1}
    diagonals = {(r, c) for r, c in everywhere(size) if rows == cols and (r == c or r + c == rows - 1)}
    return {
        **board(seen, size),
        "ones": everywhere(size),
        **chain_liberties(seen, size),
        **one_hot("enemy_liberties", 1, 8, {p: move.enemy for p, move in moves.items()}),
        **one_hot("liberties_after", 1, 8, {p: move.liberties for p, move in moves.items()}),
        **recent_moves(seen),
        **ladder_planes(seen, size),
        "diagonals": diagonals,
        "middle_lines": middle_row | middle_col,
        "centre": middle_row & middle_col,
        "black_to_move": if_to_play(seen, size, BLACK),
    }


def opp_moves(seen: Seen, size: Size) -> dict[Point, Outcome]:
    """Return what the moves of the other side would do if it were its turn, with no ko point."""
    now = present(seen, size)
    now.ko = None
    return outcomes(now, BLACK + WHITE - seen.to_play)


def alphago48_history(seen: Seen, size: Size, legality: str = "simple") -> Planes:
    """The second article's 48 planes."""
    now, moves, theirs = present(seen, size), own_moves(seen, size, legality), opp_moves(seen, size)
    planes = board(seen, size)
    for name, colour in (("black", BLACK), ("white", WHITE)):
        planes |= {f"{name}_{back}": stones(seen, colour, back) for back in range(1, TURNS + 1)}
    for side, colour in _sides(seen):
        chains = [chain for chain in now.chains() if chain.colour == colour]
        planes |= one_hot(
            f"{side}_liberties", 1, 4, {p: len(chain.liberties) for chain in chains for p in chain.stones}
        )
    return {
        **planes,
        **one_hot("own_target", 1, 4, {p: move.target for p, move in moves.items()}),
        **one_hot("opp_target", 1, 4, {p: move.target for p, move in theirs.items()}),
        **ladder_planes(seen, size),
        "legal": set(moves),
        **edge_distances(size, 3),
    }


def katago22_article(seen: Seen, size: Size, legality: str = "simple") -> Planes:
    """The second article's KataGo: planes for rules, komi and handicap among them."""
    line, all_points = seen.line, everywhere(size)
    start = SlowBoard(*size)
    start.setup([(point, colour) for ply, point, colour in line.setup if ply == 0])
    black = sum(colour == BLACK for colour in start.stones.values())
    shown = {
        "area_scoring": line.rules.scoring == "area",
        "territory_scoring": line.rules.scoring == "territory",
        "suicide_legal": line.suicide,
        "simple_ko": KO_RULES[line.ko_rule] == "simple",
        "positional_superko": KO_RULES[line.ko_rule] in {"positional", "spight"},
        "situational_superko": KO_RULES[line.ko_rule] == "situational",
        "komi_6": komi_of(line) >= 6,
        "komi_7": komi_of(line) >= 7,
        "handicap": line.handicap >= 2 or len(start.stones) == black >= 2,
    }
    return {
        **board(seen, size),
        "ones": all_points,
        "black_to_move": if_to_play(seen, size, BLACK),
        **recent_moves(seen, 5),
        "ko": set() if seen.ko is None else {seen.ko},
        "own_makes_ko": {p for p, move in own_moves(seen, size, legality).items() if move.after.ko is not None},
        "opp_makes_ko": {p for p, move in opp_moves(seen, size).items() if move.after.ko is not None},
        **{name: all_points if flag else set() for name, flag in shown.items()},
    }


@cache
def all_positions(line: Line) -> tuple[Seen, ...]:
    """Return all positions of a game."""
    return tuple(positions(line))


@cache
def areas(size: Size, stones: Stones, scoring: str, tax: str, suicide: bool) -> dict[Point, int]:
    """Return what counts for whom before the encore."""
    board = SlowBoard(*size)
    board.stones = dict(stones)
    return own_areas(board, scoring, tax, suicide, None)


def katago_v7(seen: Seen, size: Size) -> Planes:
    """KataGo's V7, for data sets: friendly passes are off, and there is no encore."""
    kata, rules, own, opp = kata_seen(seen.line)[seen.ply], seen.line.rules, seen.to_play, BLACK + WHITE - seen.to_play
    assert kata is not None
    caught = []
    for back in range(3):
        then = all_positions(seen.line)[seen.ply - min(back, len(kata.recent))]
        both = (ladders(size, then.boards[-1], then.ko, colour) for colour in (BLACK, WHITE))
        caught.append({point for side in both for point in side.stones})
    owner = areas(size, seen.boards[-1], rules.scoring, rules.tax, seen.line.suicide)
    exact = one_hot("liberties", 1, 4, {p: len(c.liberties) for c in present(seen, size).chains() for p in c.stones})
    places = [set() if move == "pass" else {move} for move in kata.recent]
    return {
        "ones": everywhere(size),
        "own_0": stones(seen, own, 0),
        "opp_0": stones(seen, opp, 0),
        **{f"liberties_{count}": exact[f"liberties_{count}"] for count in (1, 2, 3)},
        "ko_banned": {*kata.banned, *([] if seen.ko is None else [seen.ko])},
        "ko_blocked": set(),
        "zeros": set(),
        **{f"move_{back}": points for back, points in enumerate([*places, *[set()] * 5][:5], 1)},
        "laddered": caught[0],
        "laddered_1": caught[1],
        "laddered_2": caught[2],
        "ladder_moves": set(ladders(size, seen.boards[-1], seen.ko, opp).working),
        "own_area": {point for point, side in owner.items() if side == own},
        "opp_area": {point for point, side in owner.items() if side == opp},
        "own_second": set(),
        "opp_second": set(),
    }


SLOW_SCHEMES: dict[str, Callable[..., Planes]] = {
    "board": board,
    "alphago48": alphago48,
    "alphago49": alphago49,
    "agz17": agz17,
    "agz17_grouped": agz17_grouped,
    "leela_zero18": leela_zero18,
    "seven_plane": seven_plane,
    "minigo21": minigo21,
    "gnugo": gnugo,
    "alphago48_strings": alphago48_strings,
    "alphago48_history": alphago48_history,
    "katago22_article": katago22_article,
    "katago_v7": katago_v7,
}


def can_be_shown(name: str, seen: Seen) -> bool:
    """Return whether a scheme has a row of the position."""
    return name != "katago_v7" or kata_seen(seen.line)[seen.ply] is not None


def numbers_of(name: str, seen: Seen) -> NDArray[np.float32]:
    """Return the globals of a position that can be shown."""
    kata = kata_seen(seen.line)[seen.ply] if name == "katago_v7" else None
    return np.array(kata.numbers if kata is not None else [], dtype=np.float32)


def dense(planes: Planes, frame: Size) -> NDArray[np.uint8]:
    """Return uint8[P, *frame]: the planes with the board in the top-left corner."""
    array = np.zeros((len(planes), *frame), dtype=np.uint8)
    for number, points in enumerate(planes.values()):
        for row, col in points:
            array[number, row, col] = 1
    return array
