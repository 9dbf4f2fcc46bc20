"""Every scheme drawn with plain loops from its definition, to test the packed planes against.

A plane is the set of its points. Definitions: AlphaGo Zero has own and opp stones now and 1 to 7 turns
ago, alternating, and ones if Black is to move; Leela Zero the same boards side by side and a plane for
each side to move; the articles' form shows Black and White in place of own and opp. Chains with 1, 2,
and 3 or more liberties, own then opp, and the ko point make the seven planes.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from random_games import Seen
from slow_board import BLACK, WHITE, Point, SlowBoard

Size = tuple[int, int]
Planes = dict[str, set[Point]]

TURNS = 8  # boards that the schemes with history show, the present one included


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


SLOW_SCHEMES: dict[str, Callable[[Seen, Size], Planes]] = {
    "board": board,
    "agz17": agz17,
    "agz17_grouped": agz17_grouped,
    "leela_zero18": leela_zero18,
    "seven_plane": seven_plane,
}


def dense(planes: Planes, frame: Size) -> NDArray[np.uint8]:
    """Return uint8[P, *frame]: the planes with the board in the top-left corner."""
    array = np.zeros((len(planes), *frame), dtype=np.uint8)
    for number, points in enumerate(planes.values()):
        for row, col in points:
            array[number, row, col] = 1
    return array
