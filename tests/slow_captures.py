"""Ladders found by plain recursion on a slow board, from SEMANTICS.md section 6 without 6.5, and without a budget.

Its two players know of no pruning and no order: they try every move that the definition lets them try.
"""

from slow_board import Chain, Point, SlowBoard

Points = set[Point]


def without_ko(board: SlowBoard) -> SlowBoard:
    """Return a copy on which nothing is banned."""
    other = board.copy()
    other.ko = None
    return other


def legal(board: SlowBoard, point: Point, colour: int) -> bool:
    """Return whether a move is legal, suicide being none."""
    return board.fault(point, colour, suicide=False) is None


def counter_captures(board: SlowBoard, chain: Chain) -> Points:
    """Return the liberties of the attacker's chains beside ``chain`` that are in atari."""
    beside = {n for stone in chain.stones for n in board.neighbours[stone] if board.stones.get(n) == 3 - chain.colour}
    ataris = (board.chain(point).liberties for point in beside)
    return {liberty for liberties in ataris if len(liberties) == 1 for liberty in liberties}


def is_double_ko(board: SlowBoard, chain: Chain) -> bool:
    """Return whether both liberties of the chain are kos that the attacker can take (6.4)."""
    if counter_captures(board, chain):
        return False
    for liberty in chain.liberties:
        around = board.neighbours[liberty]
        if any(board.stones.get(n) != chain.colour for n in around):
            return False
        in_atari = [n for n in around if len(board.chain(n).liberties) == 1]
        if len(in_atari) != 1 or len(board.chain(in_atari[0]).stones) != 1:
            return False
        after = without_ko(board)
        after.play(liberty, chain.colour)
        if len(after.chain(liberty).liberties) > 2:
            return False
    return True


def attacker_captures(board: SlowBoard, target: Point) -> bool:
    """Return whether the attacker, to move, captures the chain of ``target``."""
    chain = board.chain(target)
    if len(chain.liberties) != 2:
        return len(chain.liberties) < 2
    if is_double_ko(board, chain):
        return True
    for liberty in chain.liberties:
        if legal(board, liberty, 3 - chain.colour):
            after = board.copy()
            after.play(liberty, 3 - chain.colour)
            if defender_is_caught(after, target):
                return True
    return False


def defender_is_caught(board: SlowBoard, target: Point) -> bool:
    """Return whether the owner of ``target``, to move, cannot save its chain. A ko on the board saves it."""
    chain = board.chain(target)
    if len(chain.liberties) >= 2 or board.ko is not None:
        return False
    return not any(escapes(board, target, move) for move in counter_captures(board, chain) | chain.liberties)


def escapes(board: SlowBoard, target: Point, move: Point) -> bool:
    """Return whether a move of the owner of ``target`` saves its chain."""
    colour = board.stones[target]
    if not legal(board, move, colour):
        return False
    after = board.copy()
    after.play(move, colour)
    return not attacker_captures(after, target)


def working_moves(board: SlowBoard, chain: Chain) -> Points:
    """Return the attacker's working first moves against a chain (6.2)."""
    if len(chain.liberties) != 2:
        return set()
    found = set()
    for liberty in chain.liberties:
        if legal(board, liberty, 3 - chain.colour):
            after = board.copy()
            after.play(liberty, 3 - chain.colour)
            if defender_is_caught(without_ko(after), min(chain.stones)):
                found.add(liberty)
    return found


def escaping_moves(board: SlowBoard, chain: Chain) -> Points:
    """Return the moves that save a chain in atari, the ban lifted."""
    if len(chain.liberties) != 1:
        return set()
    root, target = without_ko(board), min(chain.stones)
    return {move for move in counter_captures(root, chain) | chain.liberties if escapes(root, target, move)}


def is_laddered(board: SlowBoard, chain: Chain) -> bool:
    """Return whether a chain is caught, whoever is to move (6.1 to 6.3)."""
    if len(chain.liberties) == 1:
        return not escaping_moves(board, chain)
    return bool(working_moves(board, chain))
