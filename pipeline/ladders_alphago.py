"""The ladders of AlphaGo's 48 planes (planes 44 and 45): moves that capture in a ladder, moves that escape from one.

Definition (SCHEMES.md section 1, after RocAlphaGo), for the side to move:

- *ladder capture*: a legal move on one of the two liberties of an opp chain, after which none of opp's
  plausible escapes is a ladder escape;
- *ladder escape*: a legal move on the last liberty of an own chain, true eye or not (with ``counter_captures``
  also on that of an opp chain in atari beside it), after which the chain has three liberties, or has two of which
  neither is a ladder capture for opp;
- *plausible escapes*: the last liberty of the chain, and those of the chains in atari beside it that it can
  capture, if legal and no true eye of its own.

Kos are played out under the simple ko rule. A search of more than 20,000 moves or 200 levels is given
up: neither capture nor escape works. These rules are not those of ``ladders``; the search is the same.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.board import (
    CHAIN,
    COLOUR,
    EMPTY,
    LEGAL,
    LIBERTIES,
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
    ESCAPED,
    MADE,
    TURNS,
    is_refuted,
    liberty_after,
    liberty_of,
    list_captures,
    new_ladder_scratch,
    read_around,
    search,
    turn_of_search,
)
from pipeline.replay import apply_setup
from pipeline.spotset import NO_BITS, ONE, flip_frame_bits
from pipeline.trace import frame_table

BUDGET = 20_000
MOST_LEVELS = 200


@kernel
def _find_captures(board, chain, budget, captures, scratch):
    """Put the moves in ``captures`` that capture a chain with two liberties in a ladder."""
    journal, colour = scratch.journal, np.int64(board.points[COLOUR + chain])
    one = liberty_of(board, chain)
    two = liberty_after(board, chain, one)
    read_around(board, one, scratch.read)
    read_around(board, two, scratch.read)
    root = journal[0]
    for move, rest in ((one, two), (two, one)):
        if is_refuted(board, colour, move, rest) or legality(board, move, 3 - colour, NO) != LEGAL:
            continue
        turn = turn_of_search(board, move, chain, scratch)
        play(board, move, 3 - colour, journal)
        scratch.numbers[MADE] = 0
        verdict = search(board, chain, YES, YES, turn, budget, MOST_LEVELS, scratch, np.int64(0))
        undo(board, journal, root)
        if verdict == CAPTURED:
            captures[move >> 6] |= ONE << np.uint64(move & 63)


@kernel
def _find_escapes(board, chain, counter_captures, budget, escapes, scratch):
    """Put the moves in ``escapes`` that save a chain in atari from a ladder."""
    journal, colour = scratch.journal, np.int64(board.points[COLOUR + chain])
    root, own, end = journal[0], liberty_of(board, chain), 0
    # The order of these moves does not matter: each is searched by itself.
    if counter_captures:
        end = list_captures(board, chain, np.int64(0), scratch, np.int64(0))
    scratch.moves[end] = own  # a true eye or not; a second time if it is a capture, too
    for at in range(end + 1):
        move = np.int64(scratch.moves[at])
        read_around(board, move, scratch.read)
        if legality(board, move, colour, NO) != LEGAL:
            continue
        turn = turn_of_search(board, move, chain, scratch)
        play(board, move, colour, journal)
        scratch.numbers[MADE] = 0
        verdict = search(board, chain, NO, YES, turn, budget, MOST_LEVELS, scratch, end + 1)
        undo(board, journal, root)
        if verdict == ESCAPED:
            escapes[move >> 6] |= ONE << np.uint64(move & 63)


@kernel
def solve_alphago_ladders(board, mover, counter_captures, budget, at, answers, scratch):
    """Set ``answers.sets[0]`` and ``[1]`` to the ladder captures and the ladder escapes of ``mover``.

    The board is left as it was. ``budget``: the most moves of a search. ``at``: the number of the position, 0 or
    more; answers of position ``at - 1`` are kept, asked for or not, where ``answers.changed`` allows it.
    """
    points = board.points
    answers.sets[:2] = NO_BITS
    scratch.numbers[TURNS] = 0
    scratch.journal[0] = 1
    stride = np.int64(points[STRIDE])
    for chain in range(stride + 1, (np.int64(points[ROWS]) + 1) * stride):
        colour = points[COLOUR + chain]
        if colour == EMPTY or colour == OFF or points[CHAIN + chain] != chain or points[LIBERTIES + chain] > 2:
            continue
        in_atari = points[LIBERTIES + chain] == 1
        asked = (colour == mover) == in_atari
        if not holds(board, chain, at, answers) and asked:
            begin_answer(board, chain, answers, scratch)
            if in_atari:
                _find_escapes(board, chain, counter_captures, budget, answers.moves[chain], scratch)
            else:
                _find_captures(board, chain, budget, answers.moves[chain], scratch)
            end_answer(board, chain, at, answers, scratch)
        if asked:
            kind = 1 if in_atari else 0
            for word in range(np.int64(points[USED_WORDS])):
                answers.sets[kind, word] |= answers.moves[chain, word]


class AlphaGoLadderTrace(NamedTuple):
    """Packed frame planes uint8[T, B] of T consecutive positions: the mover's ladder captures and ladder escapes."""

    captures: NDArray[np.uint8]
    escapes: NDArray[np.uint8]


@kernel
def _trace_alphago_ladders(
    games, order, plies, board, frame_of, counter_captures, budget, reuse, answers, scratch, shown, planes, found
):
    """Fill ``found``; ``shown`` uint64[2, WORDS] and ``planes`` uint8[2, B]: the sets of the last position."""
    rows, cols = np.int64(games.rows[order[0]]), np.int64(games.cols[order[0]])
    words = np.int64(board.points[USED_WORDS])
    at = np.int64(0)
    for game in order:
        clear(board, rows, cols)
        first, cursor = games.move_start[game], games.setup_start[game]
        forget_answers(answers)
        for ply in range(plies[game]):
            cursor, changed, _sound = apply_setup(board, games, game, cursor, ply)
            if changed or not reuse:
                forget_answers(answers)
            move, colour = np.int64(games.moves[first + ply]), np.int64(games.colours[first + ply])
            solve_alphago_ladders(board, colour, counter_captures, budget, at, answers, scratch)
            for kind in range(2):
                flip_frame_bits(words, shown[kind], answers.sets[kind], frame_of, planes[kind])
            for byte in range(planes.shape[1]):
                found.captures[at, byte] = planes[0, byte]
                found.escapes[at, byte] = planes[1, byte]
            at += 1
            if move == rows * cols:
                play_pass(board, None)
                answers.changed[:] = NO_BITS
            else:
                play_and_mark(board, spot_of(board, move), colour, answers.changed)
    return at


def trace_alphago_ladders(
    games: Games,
    order: NDArray[np.int64],
    plies: NDArray[np.int64],
    frame: tuple[int, int],
    counter_captures: bool = False,
    reuse: bool = True,
    budget: int = BUDGET,
) -> AlphaGoLadderTrace:
    """Solve the ladders of the games in ``order`` (one size, legal throughout) over their first ``plies[g]`` positions.

    ``counter_captures``: whether captures of neighbouring chains count as ladder escapes. ``reuse``: whether answers
    are kept from one position to the next, which changes the time and not the answers. ``budget``: the
    most moves of a search.
    """
    rows, cols = int(games.rows[order[0]]), int(games.cols[order[0]])
    total, length = int(plies[order].sum()), (frame[0] * frame[1] + 7) // 8
    found = AlphaGoLadderTrace(np.empty((total, length), dtype=np.uint8), np.empty((total, length), dtype=np.uint8))
    _trace_alphago_ladders(
        games,
        order,
        plies,
        new_board(rows, cols),
        frame_table(rows, cols, frame[1]),
        counter_captures,
        budget,
        reuse,
        new_ladder_answers(),
        new_ladder_scratch(rows, cols),
        np.zeros((2, WORDS), dtype=np.uint64),
        np.zeros((2, length), dtype=np.uint8),
        found,
    )
    return found
