"""Ladder answers that last: what a search found for a chain, kept until something it read has changed.

From one position of a game to the next, an answer holds if no spot and no chain that its search read has
changed, in colour, stones or liberties, and if the search looked neither at the ko point nor at the whole
board. It is then the answer that the same search would give again.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.board import KO, NO_SPOT, REMOVED, SPOTS, USED_WORDS, WORDS, play
from pipeline.jit import kernel
from pipeline.ladder_search import WHOLE_BOARD, read_around
from pipeline.spotset import NO_BITS, has_spot

_NEVER = -2  # the position of an answer that does not last


class LadderAnswers(NamedTuple):
    """The ladders of one position, and of each chain what the next position may need.

    ``sets`` uint64[6, WORDS]: sets of spots, what is in which is up to the kernel that fills them. Per
    chain, by its name: ``laddered`` bool[SPOTS]; ``moves`` uint64[SPOTS, WORDS]: the moves that work;
    ``read`` uint64[SPOTS, WORDS]: what the search read; ``position`` int64[SPOTS]: the number of the last
    position that the answer is for. ``changed`` uint64[WORDS]: spots and chains that the last move changed.
    """

    sets: NDArray[np.uint64]
    laddered: NDArray[np.bool_]
    moves: NDArray[np.uint64]
    read: NDArray[np.uint64]
    position: NDArray[np.int64]
    changed: NDArray[np.uint64]


def new_ladder_answers() -> LadderAnswers:
    """Return answers for boards of any size, one after the other."""
    return LadderAnswers(
        np.zeros((6, WORDS), dtype=np.uint64),
        np.zeros(SPOTS, dtype=np.bool_),
        np.zeros((SPOTS, WORDS), dtype=np.uint64),
        np.zeros((SPOTS, WORDS), dtype=np.uint64),
        np.full(SPOTS, _NEVER, dtype=np.int64),
        np.zeros(WORDS, dtype=np.uint64),
    )


@kernel
def forget_answers(answers):
    """Let no answer hold in the next position: another board comes."""
    answers.changed[:] = ~NO_BITS


@kernel
def holds(board, chain, at, answers):
    """Return whether the answer for a chain, of position ``at - 1``, holds in ``at``; note it if it does."""
    if answers.position[chain] != at - 1:
        return False
    for word in range(np.int64(board.points[USED_WORDS])):
        if answers.read[chain, word] & answers.changed[word] != NO_BITS:
            return False
    answers.position[chain] = at
    return True


@kernel
def begin_answer(board, chain, answers, scratch):
    """Clear the moves of a chain, and what its search has read."""
    scratch.numbers[WHOLE_BOARD] = 0
    for word in range(np.int64(board.points[USED_WORDS])):
        scratch.read[word] = NO_BITS
        answers.moves[chain, word] = NO_BITS


@kernel
def end_answer(board, chain, at, answers, scratch):
    """Keep what the search of a chain has read in position ``at``, if its answer can last."""
    ko = np.int64(board.points[KO])
    if scratch.numbers[WHOLE_BOARD] == 1 or (ko != NO_SPOT and has_spot(scratch.read, ko)):
        answers.position[chain] = _NEVER
        return
    answers.position[chain] = at
    for word in range(np.int64(board.points[USED_WORDS])):
        answers.read[chain, word] = scratch.read[word]


@kernel
def play_and_mark(board, spot, colour, changed):
    """Play a move; set ``changed`` to the spots it changes and the chains whose stones or liberties it changes."""
    changed[:] = NO_BITS
    read_around(board, spot, changed)
    for i in range(abs(play(board, spot, colour, None))):
        read_around(board, np.int64(board.points[REMOVED + i]), changed)
