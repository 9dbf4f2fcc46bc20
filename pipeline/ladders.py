"""Ladders: which stones are laddered, which first moves of the attacker work, which moves escape.

The rules are those of KataGo's V7 inputs (planes 14 to 17), whoever is to move:

- a chain with one liberty is *laddered* if its owner, to move, cannot save it (a ko ban is lifted first);
- a chain with two liberties is laddered if the attacker has a *working* first move: one on a liberty, legal
  (nobody plays on the ko point), after which the chain is laddered as a chain with one liberty;
- a move *escapes* if it saves a chain in atari, moving first, from the capture; the ban is lifted here too.

A search stops after 25,000 moves and then counts as "not captured"; so each first move of the attacker, the
whole of a chain in atari, and each escaping move have their budget. KataGo also has a shortcut that
depends on the order in which a chain grew; it is left out, since planes have to turn with the board.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.board import (
    BLACK,
    CHAIN,
    COLOUR,
    COLS,
    EMPTY,
    LEGAL,
    LIBERTIES,
    NEXT,
    OFF,
    ROWS,
    STRIDE,
    USED_WORDS,
    WORDS,
    clear,
    legality,
    new_board,
    play,
    play_pass,
    spot_of,
    undo,
)
from pipeline.games import Games
from pipeline.jit import NO, YES, kernel
from pipeline.ladder_answers import (
    begin_answer,
    end_answer,
    forget_answers,
    holds,
    new_ladder_answers,
    play_and_mark,
)
from pipeline.ladder_search import (
    CAPTURED,
    MADE,
    TURNS,
    is_refuted,
    liberty_after,
    liberty_of,
    list_answers,
    new_ladder_scratch,
    read_around,
    search,
    turn_of_search,
)
from pipeline.replay import apply_setup
from pipeline.spotset import NO_BITS, flip_frame_bits, flip_spot
from pipeline.trace import frame_table

BUDGET = 25_000


@kernel
def _most_levels(board):
    return 3 * np.int64(board.points[ROWS]) * np.int64(board.points[COLS]) // 2


@kernel
def _solve_atari(board, chain, escapes, budget, moves, scratch):
    """Return whether a chain in atari is laddered; put the moves that save it (with ``escapes`` all) in ``moves``."""
    journal, numbers = scratch.journal, scratch.numbers
    colour = np.int64(board.points[COLOUR + chain])
    start, total, laddered = journal[0], 0, True
    play_pass(board, journal)  # lifts the ban
    root = journal[0]
    # The order of these moves does not matter: each is searched by itself.
    liberties, end = list_answers(board, chain, np.int64(0), scratch, np.int64(0))
    if liberties >= 3 and not escapes:
        laddered, end = False, 0
    for at in range(end):
        move = np.int64(scratch.moves[at])
        read_around(board, move, scratch.read)
        if legality(board, move, colour, NO) != LEGAL:
            continue
        turn = turn_of_search(board, move, chain, scratch)
        play(board, move, colour, journal)
        numbers[MADE] = 1
        verdict = search(board, chain, NO, NO, turn, budget - 1, _most_levels(board) - 1, scratch, end)
        undo(board, journal, root)
        total += numbers[MADE]
        if verdict != CAPTURED:
            laddered = False
            flip_spot(moves, move)
            if not escapes:
                break
    undo(board, journal, start)
    return laddered and total <= budget


@kernel
def _solve_two_liberties(board, chain, budget, moves, scratch):
    """Return whether a chain with two liberties is laddered; put the attacker's working moves in ``moves``."""
    journal, numbers = scratch.journal, scratch.numbers
    colour = np.int64(board.points[COLOUR + chain])
    one = liberty_of(board, chain)
    two = liberty_after(board, chain, one)
    read_around(board, one, scratch.read)
    read_around(board, two, scratch.read)
    root, laddered = journal[0], False
    for move, rest in ((one, two), (two, one)):
        if is_refuted(board, colour, move, rest) or legality(board, move, 3 - colour, NO) != LEGAL:
            continue
        turn = turn_of_search(board, move, chain, scratch)
        play(board, move, 3 - colour, journal)
        play_pass(board, journal)  # lifts the ban
        numbers[MADE] = 0
        verdict = search(board, chain, YES, NO, turn, budget, _most_levels(board), scratch, np.int64(0))
        undo(board, journal, root)
        if verdict == CAPTURED:
            laddered = True
            flip_spot(moves, move)
    return laddered


@kernel
def solve_ladders(board, escapes, budget, at, answers, scratch):
    """Find the ladders of a board, which is left as it was.

    Sets ``answers.sets`` to the laddered stones of Black and of White, the working moves against Black and against
    White, and the escaping moves of Black and of White. ``escapes``: whether escaping moves are wanted.
    ``budget``: the most moves of a search. ``at``: the number of the position, 0 or more; answers of position
    ``at - 1`` are kept where ``answers.changed`` allows it.
    """
    points = board.points
    words = np.int64(points[USED_WORDS])
    answers.sets[:] = NO_BITS
    scratch.numbers[TURNS] = 0
    scratch.journal[0] = 1
    stride = np.int64(points[STRIDE])
    for chain in range(stride + 1, (np.int64(points[ROWS]) + 1) * stride):
        colour = np.int64(points[COLOUR + chain])
        if colour == EMPTY or colour == OFF or points[CHAIN + chain] != chain or points[LIBERTIES + chain] > 2:
            continue
        in_atari = points[LIBERTIES + chain] == 1
        if not holds(board, chain, at, answers):
            begin_answer(board, chain, answers, scratch)
            if in_atari:
                answers.laddered[chain] = _solve_atari(board, chain, escapes, budget, answers.moves[chain], scratch)
            else:
                answers.laddered[chain] = _solve_two_liberties(board, chain, budget, answers.moves[chain], scratch)
            end_answer(board, chain, at, answers, scratch)
        side = colour - BLACK
        if answers.laddered[chain]:
            spot = np.int64(chain)
            while True:
                flip_spot(answers.sets[side], spot)
                spot = np.int64(points[NEXT + spot])
                if spot == chain:
                    break
        if escapes or not in_atari:
            kind = 4 if in_atari else 2
            for word in range(words):
                answers.sets[kind + side, word] |= answers.moves[chain, word]


class LadderTrace(NamedTuple):
    """The ladders of T consecutive positions of games of one size, for the plane kernels.

    Packed frame planes uint8[T, 2, B], B = ceil(frame area / 8), of the board before each move: ``laddered``:
    laddered stones of Black, of White; ``working``: working first moves against Black's chains, against
    White's; ``escaping``: moves that save a chain of Black's, of White's (no rows where not asked for).
    """

    laddered: NDArray[np.uint8]
    working: NDArray[np.uint8]
    escaping: NDArray[np.uint8]


@kernel
def _trace_ladders(games, order, plies, board, frame_of, budget, reuse, answers, scratch, shown, planes, found):
    """Fill ``found`` with the ladders of all positions of the games in ``order``.

    ``shown`` uint64[6, WORDS] and ``planes`` uint8[6, B]: the sets of the last position, as bits of spots and as
    packed planes.
    """
    rows, cols = np.int64(games.rows[order[0]]), np.int64(games.cols[order[0]])
    words, escapes = np.int64(board.points[USED_WORDS]), found.escaping.shape[0] > 0
    at = np.int64(0)
    for game in order:
        clear(board, rows, cols)
        first, cursor = games.move_start[game], games.setup_start[game]
        forget_answers(answers)
        for ply in range(plies[game]):
            cursor, changed, _sound = apply_setup(board, games, game, cursor, ply)
            if changed or not reuse:
                forget_answers(answers)
            solve_ladders(board, escapes, budget, at, answers, scratch)
            for kind in range(6 if escapes else 4):
                flip_frame_bits(words, shown[kind], answers.sets[kind], frame_of, planes[kind])
            for side in range(2):
                for byte in range(planes.shape[1]):
                    found.laddered[at, side, byte] = planes[side, byte]
                    found.working[at, side, byte] = planes[2 + side, byte]
                    if escapes:
                        found.escaping[at, side, byte] = planes[4 + side, byte]
            at += 1
            move, colour = np.int64(games.moves[first + ply]), np.int64(games.colours[first + ply])
            if move == rows * cols:
                play_pass(board, None)
                answers.changed[:] = NO_BITS
            else:
                play_and_mark(board, spot_of(board, move), colour, answers.changed)
    return at


def trace_ladders(
    games: Games,
    order: NDArray[np.int64],
    plies: NDArray[np.int64],
    frame: tuple[int, int],
    escapes: bool = False,
    reuse: bool = True,
    budget: int = BUDGET,
) -> LadderTrace:
    """Solve the ladders of the games in ``order`` (one size, legal throughout) over their first ``plies[g]`` positions.

    ``escapes``: whether escaping moves are wanted. ``reuse``: whether answers are kept from one position to the
    next, which changes the time and not the answers. ``budget``: the most moves of a search.
    """
    rows, cols = int(games.rows[order[0]]), int(games.cols[order[0]])
    total, length = int(plies[order].sum()), (frame[0] * frame[1] + 7) // 8
    found = LadderTrace(
        np.empty((total, 2, length), dtype=np.uint8),
        np.empty((total, 2, length), dtype=np.uint8),
        np.empty((total if escapes else 0, 2, length), dtype=np.uint8),
    )
    _trace_ladders(
        games,
        order,
        plies,
        new_board(rows, cols),
        frame_table(rows, cols, frame[1]),
        budget,
        reuse,
        new_ladder_answers(),
        new_ladder_scratch(rows, cols),
        np.zeros((6, WORDS), dtype=np.uint64),
        np.zeros((6, length), dtype=np.uint8),
        found,
    )
    return found
