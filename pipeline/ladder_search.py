"""The search behind all ladders: can the attacker of a chain with one or two liberties capture it?

Two sets of rules share it (``alphago`` False and True). Attacker to move: a target with one liberty is
captured, with three it has escaped, with two the attacker tries both. Defender to move: he tries to capture
each neighbouring attacker chain that is in atari, then the target's own liberty; the target is captured
if nothing helps. Suicide is no move. They differ in this:

- KataGo's rules (V7 inputs): a ko point that an attacker's move left behind is an escape, and a target whose
  two liberties are both kos that the attacker can take (the *double ko*) is captured.
- AlphaGo's planes 44-45 (SCHEMES.md section 1): kos are played out. (Nor does the defender there fill a true eye
  of his own; but that is no rule to look after. Around an eye that is the last liberty of a chain, the diagonal
  point between a stone of the chain and one of another is opp's, since it is no liberty. There are two such
  points, or one at an edge: more than an eye may have. So the chain is all around, and filling is suicide.)

What is seen without a move being made is not searched: a liberty whose filling gives the target at least
three or at most one needs no move.

Order of moves. The answer of a search that ends within its limits does not depend on the order; whether it
ends does. The order commutes with the symmetries of the board: first what no symmetry changes (liberties
around a move; the *orbit*: which points a symmetry takes to each other), then the number of the move in
the leading orientation of the position, the image that is the smallest as a list of points. Where several
images are that same list, the search takes the one that puts its first move, then its target, first.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline import symmetry
from pipeline.board import (
    CHAIN,
    COLOUR,
    EMPTY,
    KO,
    LEGAL,
    LIBERTIES,
    MAX_SIDE,
    NEXT,
    NO_SPOT,
    OFF,
    SPOTS,
    STONES,
    STRIDE,
    USED_WORDS,
    WORDS,
    legality,
    new_journal,
    play,
    undo,
)
from pipeline.jit import NO, kernel
from pipeline.spotset import NO_BITS, ONE, flip_spot, has_spot, lowest_bit

CAPTURED, ESCAPED, EXHAUSTED = range(3)
_OPEN = 3

# At most 3/2 of the area deep; every second level lists at most one move for every second point.
MOST_LEVELS = 3 * MAX_SIDE * MAX_SIDE // 2
_MOST_LISTED = (MOST_LEVELS // 2 + 2) * (MAX_SIDE * MAX_SIDE // 2 + 3)
NEXT_MOVE, END_OF_MOVES, MARK = range(3)
TURNS, MADE, WHOLE_BOARD = range(3)


class LadderScratch(NamedTuple):
    """What a search works with, for boards of one size.

    ``journal``: of the moves made; ``moves`` int16: the moves listed on each level, end to end; ``levels``
    int64[levels, 3]: the next move of a level, the end of its moves, the journal before its move;
    ``images`` int16[8, SPOTS]: the point that each symmetry takes a spot to; ``spots`` int16[8, area]:
    the spot that each point comes from; ``orbit`` int16[SPOTS]: the smallest of a spot's images; ``read``
    uint64[WORDS]: what a search has read since it was cleared, empty spots and chains by name;
    ``listed`` uint64[WORDS]: work; ``numbers`` int64[3]:
    TURNS, the symmetries that lead to the leading orientation as bits (0: not looked for yet); MADE,
    the moves made; WHOLE_BOARD: 1 if the answer depends on more than ``read``, on the orientation.
    """

    journal: NDArray[np.int64]
    moves: NDArray[np.int16]
    levels: NDArray[np.int64]
    images: NDArray[np.int16]
    spots: NDArray[np.int16]
    orbit: NDArray[np.int16]
    read: NDArray[np.uint64]
    listed: NDArray[np.uint64]
    numbers: NDArray[np.int64]


@cache
def _image_tables(rows: int, cols: int) -> tuple[NDArray[np.int16], NDArray[np.int16], NDArray[np.int16]]:
    """Return (images, spots, orbit) of ``LadderScratch``."""
    count, area = symmetry.count(rows, cols), rows * cols
    row_of, col_of = np.indices((rows, cols))
    spot = ((row_of + 1) * (cols + 1) + col_of + 1).ravel()
    images = np.zeros((count, SPOTS), dtype=np.int16)
    spots = np.zeros((count, area), dtype=np.int16)
    for turn in range(count):
        image = symmetry.destinations(rows, cols, cols, turn).ravel()
        images[turn, spot] = image
        spots[turn, image] = spot
    return images, spots, images.min(axis=0)


def new_ladder_scratch(rows: int, cols: int) -> LadderScratch:
    """Return the scratch of searches on rows x cols boards."""
    return LadderScratch(
        new_journal(),
        np.zeros(_MOST_LISTED, dtype=np.int16),
        np.zeros((MOST_LEVELS + 2, 3), dtype=np.int64),
        *_image_tables(rows, cols),
        read=np.zeros(WORDS, dtype=np.uint64),
        listed=np.zeros(WORDS, dtype=np.uint64),
        numbers=np.zeros(3, dtype=np.int64),
    )


@kernel
def _leading_turns(board, spots):
    """Return the symmetries (as bits) whose image of the stones is the smallest.

    The ko point plays no part: a search begins with a move, and that lifts the ban.
    """
    points = board.points
    best, turns = 0, 1
    for turn in range(1, spots.shape[0]):
        for point in range(spots.shape[1]):
            spot, other = spots[turn, point], spots[best, point]
            if points[COLOUR + spot] != points[COLOUR + other]:
                if points[COLOUR + spot] < points[COLOUR + other]:
                    best, turns = turn, 1 << turn
                break
        else:
            turns |= 1 << turn
    return turns


@kernel
def turn_of_search(board, move, target, scratch):
    """Return the symmetry that orders the moves of the search which begins with ``move`` against ``target``.

    Called on the board of the position, before a move is made on it.
    """
    numbers, points = scratch.numbers, board.points
    if numbers[TURNS] == 0:
        numbers[TURNS] = _leading_turns(board, scratch.spots)
    best, best_move, best_stone = -1, 0, 0
    for turn in range(scratch.images.shape[0]):
        if not (numbers[TURNS] >> turn) & 1:
            continue
        if numbers[TURNS] == 1 << turn:
            return turn
        image = scratch.images[turn]
        first, spot = image[target], np.int64(points[NEXT + target])
        while spot != target:
            first = min(first, image[spot])
            spot = np.int64(points[NEXT + spot])
        if best < 0 or image[move] < best_move or (image[move] == best_move and first < best_stone):
            best, best_move, best_stone = turn, image[move], first
    return best


@kernel
def liberty_of(board, chain):
    """Return the first liberty of a chain that has one."""
    word = 0
    while board.bits[chain * WORDS + word] == NO_BITS:
        word += 1
    return 64 * word + lowest_bit(board.bits[chain * WORDS + word])


@kernel
def liberty_after(board, chain, liberty):
    """Return the next liberty of a chain after ``liberty``, which must not be the last."""
    word = (liberty + 1) >> 6
    rest = board.bits[chain * WORDS + word] >> np.uint64((liberty + 1) & 63)
    if rest != NO_BITS:
        return liberty + 1 + lowest_bit(rest)
    word += 1
    while board.bits[chain * WORDS + word] == NO_BITS:
        word += 1
    return 64 * word + lowest_bit(board.bits[chain * WORDS + word])


@kernel
def _mark(spots, spot):
    spots[spot >> 6] |= ONE << np.uint64(spot & 63)


@kernel
def read_around(board, spot, read):
    """Mark a spot and its neighbours, chains by name, as read."""
    points = board.points
    stride = np.int64(points[STRIDE])
    _mark(read, spot)
    for step in (-stride, -1, 1, stride):
        there = points[COLOUR + spot + step]
        if there == EMPTY:
            _mark(read, spot + step)
        elif there != OFF:
            _mark(read, np.int64(points[CHAIN + spot + step]))


@kernel
def liberties_after(board, spot, colour, without):
    """Return (liberties, captures) of the chain that a stone on the empty ``spot`` would belong to.

    ``captures``: in how many directions it captures. Liberties are those outside the empty spot ``without``
    (NO_SPOT: none is left out), counted up to 3; without captures the number is exact, with captures it is
    a lower bound.
    """
    points = board.points
    stride = np.int64(points[STRIDE])
    captures, empties, chains, most = 0, 0, 0, np.int64(0)
    for step in (-stride, -1, 1, stride):
        there = points[COLOUR + spot + step]
        if there == EMPTY:
            empties += spot + step != without
        elif there == colour:
            chains += 1
            held = np.int64(points[LIBERTIES + points[CHAIN + spot + step]])
            most = held if held > most else most
        elif there != OFF:
            captures += points[LIBERTIES + points[CHAIN + spot + step]] == 1
    if captures + empties >= 3 or captures + most >= 5:
        return 3, captures
    if chains == 0:
        return captures + empties, captures
    count = captures + empties
    for word in range(np.int64(points[USED_WORDS])):
        joined = NO_BITS
        for step in (-stride, -1, 1, stride):
            if points[COLOUR + spot + step] == colour:
                joined |= board.bits[np.int64(points[CHAIN + spot + step]) * WORDS + word]
        while joined != NO_BITS:
            liberty = 64 * word + lowest_bit(joined)
            joined &= joined - ONE
            # Its empty neighbours are counted already.
            beside = liberty == spot - stride or liberty == spot - 1 or liberty == spot + 1 or liberty == spot + stride
            if liberty != spot and liberty != without and not beside:
                count += 1
                if count == 3:
                    return 3, captures
    return count, captures


@kernel
def _comes_first(one, other, turn, scratch):
    """Return whether the spot ``one`` comes before ``other``, by orbit, then by orientation."""
    if scratch.orbit[one] != scratch.orbit[other]:
        return scratch.orbit[one] < scratch.orbit[other]
    scratch.numbers[WHOLE_BOARD] = 1
    return scratch.images[turn, one] < scratch.images[turn, other]


@kernel
def list_captures(board, target, turn, scratch, start):
    """List the liberties of attacker chains in atari next to ``target``, in order; return the end of the list."""
    points, moves, listed = board.points, scratch.moves, scratch.listed
    stride, other = np.int64(points[STRIDE]), 3 - points[COLOUR + target]
    end, spot = start, np.int64(target)
    while True:
        for step in (-stride, -1, 1, stride):
            if points[COLOUR + spot + step] == other:
                chain = np.int64(points[CHAIN + spot + step])
                _mark(scratch.read, chain)
                if points[LIBERTIES + chain] == 1:
                    liberty = liberty_of(board, chain)
                    if not has_spot(listed, liberty):
                        flip_spot(listed, liberty)
                        moves[end] = liberty
                        end += 1
        spot = np.int64(points[NEXT + spot])
        if spot == target:
            break
    for at in range(start, end):
        move = np.int64(moves[at])
        flip_spot(listed, move)
        while at > start and _comes_first(move, np.int64(moves[at - 1]), turn, scratch):
            moves[at] = moves[at - 1]
            at -= 1
        moves[at] = move
    return end


@kernel
def list_answers(board, target, turn, scratch, start):
    """List the defender's moves for a target in atari: captures, then its own liberty unless that is hopeless.

    Returns (liberties, end): those of the target after filling its own liberty, 3 meaning at least 3 and the
    move legal (an escape), and the end of the list in ``scratch.moves``, which begins at ``start``.
    """
    colour = np.int64(board.points[COLOUR + target])
    own = liberty_of(board, target)
    read_around(board, own, scratch.read)
    # Never the ko point: the attacker took a stone there that had no neighbour of its colour.
    liberties, captures = liberties_after(board, own, colour, NO_SPOT)
    end = list_captures(board, target, turn, scratch, start)
    if liberties >= 2 or captures > 0:
        for at in range(start, end):
            if scratch.moves[at] == own:
                return liberties, end
        scratch.moves[end] = own
        end += 1
    return liberties, end


@kernel
def _is_ko_liberty(board, spot, colour):
    """Return whether the attacker's move on a liberty of a ``colour`` chain would be a ko capture, and the
    defender's there leave at most two liberties."""
    points = board.points
    stride = np.int64(points[STRIDE])
    in_atari = 0
    for step in (-stride, -1, 1, stride):
        there = points[COLOUR + spot + step]
        if there == OFF:
            continue
        if there != colour:
            return False
        chain = points[CHAIN + spot + step]
        if points[LIBERTIES + chain] == 1:
            if points[STONES + chain] != 1:
                return False
            in_atari += 1
    return in_atari == 1 and liberties_after(board, spot, colour, NO_SPOT)[0] <= 2


@kernel
def _list_attacks(board, target, alphago, turn, scratch, start):
    """List the attacker's moves against a target with two liberties; return (verdict, end of the list)."""
    points, moves = board.points, scratch.moves
    colour = np.int64(points[COLOUR + target])
    one = liberty_of(board, target)
    two = liberty_after(board, target, one)
    read_around(board, one, scratch.read)
    read_around(board, two, scratch.read)
    if not alphago and _is_ko_liberty(board, one, colour) and _is_ko_liberty(board, two, colour):
        if list_captures(board, target, turn, scratch, start) == start:
            return CAPTURED, start
    end = start
    if not is_refuted(board, colour, one, two):
        moves[end] = one
        end += 1
    if not is_refuted(board, colour, two, one):
        moves[end] = two
        end += 1
    if end - start == 2:
        first, second = _promise(board, one, colour), _promise(board, two, colour)
        if second > first or (second == first and _comes_first(two, one, turn, scratch)):
            moves[start], moves[start + 1] = two, one
    return (ESCAPED if end == start else _OPEN), end


@kernel
def is_refuted(board, colour, move, rest):
    """Return whether the defender's answer on ``rest`` gives a ``colour`` target surely three liberties.

    ``move`` and ``rest`` are the liberties of the target, and the attacker plays ``move``.
    """
    liberties, captures = liberties_after(board, rest, colour, move)
    # What the answer captures now may get liberties by what the attacker captures.
    return liberties >= 3 and captures == 0


@kernel
def _promise(board, spot, colour):
    """Return how much the attacker takes from a ``colour`` target by playing ``spot``: he tries more first."""
    points = board.points
    stride = np.int64(points[STRIDE])
    promise = 0
    for step in (-stride, -1, 1, stride):
        there = points[COLOUR + spot + step]
        if there == EMPTY:
            promise += 2
        elif there == colour:
            liberties = np.int64(points[LIBERTIES + points[CHAIN + spot + step]])
            if liberties > 1:
                promise += 2 * liberties - 3
    return promise


@kernel
def _look(board, target, defends, root, alphago, turn, scratch, start):
    """Judge a node before a move is made in it; return (verdict or _OPEN, end of the listed moves)."""
    points = board.points
    chain = np.int64(points[CHAIN + target])
    liberties = np.int64(points[LIBERTIES + chain])
    if not defends:
        if liberties != 2:
            return (CAPTURED if liberties < 2 else ESCAPED), start
        return _list_attacks(board, chain, alphago, turn, scratch, start)
    if liberties >= 2 or (not alphago and not root and points[KO] != NO_SPOT):
        return ESCAPED, start
    gained, end = list_answers(board, chain, turn, scratch, start)
    if gained >= 3:
        return ESCAPED, start
    return (CAPTURED if end == start else _OPEN), end


@kernel
def search(board, target, defender_first, alphago, turn, most_moves, most_levels, scratch, first_free):
    """Return CAPTURED, ESCAPED or EXHAUSTED for the chain of the stone at ``target``; the board is left as it was.

    ``defender_first``: it is in atari and its owner moves; else the attacker moves. ``turn``: the symmetry of
    ``turn_of_search``. A search that would make more than ``most_moves`` is exhausted; one that gets
    ``most_levels`` deep means a capture by KataGo's rules and is exhausted by AlphaGo's.
    ``scratch.numbers[MADE]`` grows by the moves made; moves are listed from ``scratch.moves[first_free]`` on.
    """
    levels, moves, journal, numbers = scratch.levels, scratch.moves, scratch.journal, scratch.numbers
    defender = np.int64(board.points[COLOUR + target])
    start, last = journal[0], numbers[MADE] + most_moves
    level, new, verdict = 0, True, _OPEN
    levels[0, NEXT_MOVE] = first_free
    while True:
        defends = defender_first == (level % 2 == 0)
        if new:
            begin = levels[level, NEXT_MOVE]
            verdict, end = _look(board, target, defends, level == 0, alphago, turn, scratch, begin)
            levels[level, END_OF_MOVES] = end
            new = False
            if verdict == _OPEN and level >= most_levels:
                if alphago:
                    undo(board, journal, start)
                    return EXHAUSTED
                verdict = CAPTURED
        while verdict == _OPEN and not new:
            at = levels[level, NEXT_MOVE]
            if at == levels[level, END_OF_MOVES]:
                verdict = CAPTURED if defends else ESCAPED
                break
            levels[level, NEXT_MOVE] = at + 1
            move = np.int64(moves[at])
            colour = defender if defends else 3 - defender
            read_around(board, move, scratch.read)
            if legality(board, move, colour, NO) != LEGAL:
                continue
            if numbers[MADE] == last:
                undo(board, journal, start)
                return EXHAUSTED
            numbers[MADE] += 1
            levels[level, MARK] = journal[0]
            play(board, move, colour, journal)
            level += 1
            levels[level, NEXT_MOVE] = levels[level - 1, END_OF_MOVES]
            new = True
        while verdict != _OPEN:
            if level == 0:
                return verdict
            level -= 1
            undo(board, journal, levels[level, MARK])
            if (verdict == ESCAPED) != (defender_first == (level % 2 == 0)):
                verdict = _OPEN
