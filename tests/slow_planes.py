"""Every scheme drawn with plain loops from its definition, to test the packed planes against.

A plane is the set of its points. Definitions: AlphaGo Zero has own and opp stones now and 1 to 7 turns
ago, alternating, and ones if Black is to move; Leela Zero the same boards side by side and a plane for
each side to move; the articles' form shows Black and White in place of own and opp. Chains with 1, 2,
and 3 or more liberties, own then opp, and the ko point make the seven planes. minigo's 21 and the articles'
schemes are at the end; what a move does is found by playing it on a board of its own.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from random_games import RECENT, Seen
from slow_areas import is_true_eye
from slow_board import BLACK, WHITE, Point, SlowBoard
from slow_captures import escaping_moves, is_laddered, working_moves
from slow_ladders import ladder_captures, ladder_escapes

Size = tuple[int, int]
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


def agz17(seen: Seen, size: Size) -> Planes:
    """AlphaGo Zero."""
    planes = {f"{side}_{back}": stones(seen, colour, back) for back in range(TURNS) for side, colour in _sides(seen)}
    return {**planes, "black_to_move": if_to_play(seen, size, BLACK)}


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


def chain_liberties(seen: Seen, size: Size) -> Planes:
    """Stones of either colour by the liberties of their chains: 1 to 7, 8 or more."""
    board = present(seen, size)
    return one_hot("liberties", 1, 8, {stone: len(c.liberties) for c in board.chains() for stone in c.stones})


def recent_moves(seen: Seen) -> Planes:
    """Where the last 8 moves were; a pass leaves its plane empty."""
    moves = [*seen.recent, *[None] * RECENT][:RECENT]
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


def alphago48(seen: Seen, size: Size) -> Planes:
    """AlphaGo's policy network. Ages of stones that were set up, or played before the last setup, are 8 or more."""
    now, own = present(seen, size), seen.to_play
    moves = outcomes(now, own)
    played = seen.recent[:7]
    ages = {point: played.index(point) + 1 if point in played else 8 for point in now.stones}
    mine, theirs = stones(seen, own, 0), stones(seen, BLACK + WHITE - own, 0)
    return {
        "own_0": mine,
        "opp_0": theirs,
        "empty": everywhere(size) - mine - theirs,
        "ones": everywhere(size),
        **one_hot("age", 1, 8, ages),
        **chain_liberties(seen, size),
        **one_hot("capture", 0, 7, {p: move.captured for p, move in moves.items()}),
        **one_hot("self_atari", 1, 8, {p: move.stones for p, move in moves.items() if move.liberties == 1}),
        **one_hot("liberties_after", 1, 8, {p: move.liberties for p, move in moves.items()}),
        "ladder_capture": ladder_captures(now, own),
        "ladder_escape": ladder_escapes(now, own),
        "sensible": {p for p in moves if not is_true_eye(now, p, own)},
        "zeros": set(),
    }


def alphago49(seen: Seen, size: Size) -> Planes:
    """AlphaGo's value network."""
    return {**alphago48(seen, size), "black_to_move": if_to_play(seen, size, BLACK)}


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


def gnugo(seen: Seen, size: Size) -> Planes:
    """The hand-made features of the articles."""
    board, own = present(seen, size), seen.to_play
    numbers = {p: pattern_ranks()[canonical_code(digits_around(board, p, own))] for p in board.empty_points()}
    moves = outcomes(board, own)

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


def laddered(board: SlowBoard, colour: int) -> set[Point]:
    """Return the stones of one colour that are caught in a ladder."""
    chains = (chain for chain in board.chains() if chain.colour == colour)
    return {stone for chain in chains if is_laddered(board, chain) for stone in chain.stones}


def ladder_planes(seen: Seen, size: Size) -> Planes:
    """The eight planes of the articles' ladders, own then opp."""
    now = present(seen, size)
    before = now
    if seen.recent:
        before = SlowBoard(*size)
        before.stones, before.ko = dict(seen.boards[-2]), seen.ko_before
    planes: Planes = {}
    for side, colour in _sides(seen):
        chains = [chain for chain in now.chains() if chain.colour == colour]
        planes[f"{side}_laddered"] = laddered(now, colour)
        planes[f"{side}_laddered_before"] = laddered(before, colour)
        planes[f"{side}_ladder_moves"] = {move for chain in chains for move in working_moves(now, chain)}
        planes[f"{side}_ladder_escapes"] = {move for chain in chains for move in escaping_moves(now, chain)}
    return planes


def alphago48_strings(seen: Seen, size: Size) -> Planes:
    """The first article's 48 planes."""
    (rows, cols), moves = size, outcomes(present(seen, size), seen.to_play)
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


def alphago48_history(seen: Seen, size: Size) -> Planes:
    """The second article's 48 planes."""
    now = present(seen, size)
    moves = outcomes(now, seen.to_play)
    now.ko = None
    theirs = outcomes(now, BLACK + WHITE - seen.to_play)
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


SLOW_SCHEMES: dict[str, Callable[[Seen, Size], Planes]] = {
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
}


def dense(planes: Planes, frame: Size) -> NDArray[np.uint8]:
    """Return uint8[P, *frame]: the planes with the board in the top-left corner."""
    array = np.zeros((len(planes), *frame), dtype=np.uint8)
    for number, points in enumerate(planes.values()):
        for row, col in points:
            array[number, row, col] = 1
    return array
