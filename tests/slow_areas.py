"""Areas and eyes found slowly, with sets of points, straight from the written rules.

Pass-alive stones and territory, the full area in its four steps, independent life and the true eye are those of
KataGo's and RocAlphaGo's published definitions; nothing here knows of ``pipeline.areas`` or ``pipeline.eyes``.
"""

from collections.abc import Iterator

from slow_board import Chain, Point, SlowBoard

Points = set[Point]


def pieces(board: SlowBoard, points: Points) -> Iterator[Points]:
    """Yield the connected pieces of a set of points."""
    rest = set(points)
    while rest:
        start = rest.pop()
        piece, to_visit = {start}, [start]
        while to_visit:
            for neighbour in board.neighbours[to_visit.pop()]:
                if neighbour in rest:
                    rest.remove(neighbour)
                    piece.add(neighbour)
                    to_visit.append(neighbour)
        yield piece


def beside(board: SlowBoard, points: Points) -> Points:
    """Return the neighbours of points, without the points themselves."""
    return {neighbour for point in points for neighbour in board.neighbours[point]} - points


def regions(board: SlowBoard, colour: int) -> list[Points]:
    """Return the connected sets of points without a stone of ``colour`` that hold an empty one."""
    others = {point for point in board.neighbours if board.stones.get(point) != colour}
    return [piece for piece in pieces(board, others) if any(point not in board.stones for point in piece)]


def _is_vital(board: SlowBoard, region: Points, chain: Chain, suicide: bool) -> bool:
    asked = region if suicide else {point for point in region if point not in board.stones}
    return asked <= beside(board, set(chain.stones))


def living_stones(board: SlowBoard, colour: int, suicide: bool) -> Points:
    """Return the stones of the pass-alive chains: chains with less than two vital regions drop out in turn."""
    chains = [chain for chain in board.chains() if chain.colour == colour]
    vital = {chain: [r for r in regions(board, colour) if _is_vital(board, r, chain, suicide)] for chain in chains}
    while True:
        stones = {stone for chain in chains for stone in chain.stones}

        def usable(region: Points, stones: Points = stones) -> bool:
            return all(point in stones or board.stones.get(point) != colour for point in beside(board, region))

        left = [chain for chain in chains if sum(usable(region) for region in vital[chain]) >= 2]
        if len(left) == len(chains):
            return stones
        chains = left


def _own_neighbours(board: SlowBoard, region: Points, colour: int) -> Points:
    return {point for point in beside(board, region) if board.stones.get(point) == colour}


def pass_alive(board: SlowBoard, colour: int, suicide: bool) -> Points:
    """Return the pass-alive stones and territory of ``colour``."""
    alive = living_stones(board, colour, suicide)
    stones = {point for point, there in board.stones.items() if there == colour}
    found = set(alive)
    for region in regions(board, colour):
        away = region - beside(board, stones)
        if stones and len(away) <= 1 and _own_neighbours(board, region, colour) <= alive:
            found |= region
    return found


def full_area(board: SlowBoard, suicide: bool) -> dict[Point, int]:
    """Return the owner of every point that has one, step by step as the rule has it."""
    owner: dict[Point, int] = {}
    for colour in (1, 2):
        owner.update(dict.fromkeys(pass_alive(board, colour, suicide), colour))
    for safe in (True, False):
        for colour in (1, 2):
            alive = living_stones(board, colour, suicide)
            for region in regions(board, colour):
                touched = _own_neighbours(board, region, colour)
                if touched and not region & set(board.stones) and (not safe or touched <= alive):
                    for point in region:
                        owner.setdefault(point, colour)
    for point, colour in board.stones.items():
        owner.setdefault(point, colour)
    return owner


def living_pieces(board: SlowBoard, full: dict[Point, int], colour: int) -> list[Points]:
    """Return the pieces of a colour's full area that live independently."""
    nobodys = {point for point in board.neighbours if point not in full and point not in board.stones}
    atari = {stone for chain in board.chains() if len(chain.liberties) == 1 for stone in chain.stones}
    own_atari = {stone for stone in atari if board.stones[stone] == colour}
    area = {point for point, owner in full.items() if owner == colour}
    return [piece for piece in pieces(board, area) if not piece & own_atari and not beside(board, piece) & nobodys]


def own_areas(
    board: SlowBoard, scoring: str, tax: str, suicide: bool, second: dict[Point, int] | None
) -> dict[Point, int]:
    """Return what counts for whom: ``second`` are the stones when the second encore began, None before it."""
    if scoring == "territory" and second is None:
        return {}
    full = full_area(board, suicide)
    living = {point: colour for colour in (1, 2) for piece in living_pieces(board, full, colour) for point in piece}
    own_stones = {point: colour for point, colour in full.items() if board.stones.get(point) == colour}
    if scoring == "area":
        return full if tax == "none" else {**living, **own_stones}
    if tax == "none":
        living |= {point: colour for point, colour in full.items() if point not in own_stones}
    stood = {point: colour for point, colour in (second or {}).items() if board.stones.get(point) == colour}
    return {**stood, **living}


def is_true_eye(board: SlowBoard, point: Point, colour: int, asked: tuple[Point, ...] = ()) -> bool:
    """Return whether a point is a true eye; ``asked``: the points that are being asked about on the way here."""
    if point in board.stones or any(board.stones.get(there) != colour for there in board.neighbours[point]):
        return False
    row, col = point
    bad = 0
    for diagonal in ((row - 1, col - 1), (row - 1, col + 1), (row + 1, col - 1), (row + 1, col + 1)):
        if diagonal in board.neighbours:
            if diagonal in board.stones:
                bad += board.stones[diagonal] != colour
            elif diagonal not in asked:
                bad += not is_true_eye(board, diagonal, colour, (*asked, point))
    on_edge = row in (0, board.rows - 1) or col in (0, board.cols - 1)
    return bad <= (0 if on_edge else 1)
