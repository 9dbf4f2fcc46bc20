"""The state of a game as KataGo's inputs see it: phases, passes, bans and points under any of its rule sets.

A *history* stands beside a board; ``katago_moves`` changes both. Territory scoring has an *encore*: two
phases after the main one, in which what is dead is captured. Positions are remembered as 64-bit words in one
table: those that superko and threefold repetition compare, those passed in, and those ko captures were made from.

The rules are those of SEMANTICS.md, sections 2, 8 and 9: KataGo's V7 inputs in words.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.board import BLACK, WHITE, WORDS, count_bits
from pipeline.jit import kernel
from pipeline.rules import BONUS_N, BONUS_NONE, KO_SIMPLE, KO_SITUATIONAL, KO_SPIGHT, SCORING_TERRITORY
from pipeline.spotset import NO_BITS, ONE, lowest_bit, read_stones
from pipeline.words import mix

FINISHED, PAST_END, NO_RESULT, SCORED, BUTTON_LEFT = 1, 2, 4, 8, 16  # flags

# ``History.numbers``: the rules of the game; the state; then what the state is made with.
KO_RULE, SUICIDE, SCORING, BONUS_RULE, HAS_BUTTON, HANDICAP, PREVENT_ENCORE, COUNT_EARLY = range(8)
FLAGS, PHASE, CONSECUTIVE, VALID, PRESUMED, HALVES, BLACK_LOST, WHITE_LOST = range(8, 16)
BANS, BLOCKS, SETUP_BLACK, SETUP_WHITE, EARLY_BLACK, WHITE_MOVED = range(16, 22)
_LENGTH, LIST_ERA, PHASE_ERA, PASSES, CAPTURES = range(22, 27)

STONES_KEY, BLOCKS_KEY = range(2)
_LIST, _PASSED, CAPTURED = 0, 0, 2  # kinds of remembered words; the last two plus the colour


class History(NamedTuple):
    """The state of one game beside its board.

    ``numbers`` int64[27]: see the names above. FLAGS: FINISHED, ...; PHASE 0, 1 or 2 (the encore);
    CONSECUTIVE passes; VALID: turns of this phase that may be shown; PRESUMED: the side to move, by the
    last move; HALVES: half points given to White beside komi and handicap; stones lost so far.
    ``keys`` uint64[2]: words of the stones and of the blocks. Sets of spots (``spotset``): ``stones`` and
    ``second`` (at the begin of phase 2) uint64[3, WORDS], row 1 Black's, row 2 White's, ``ever`` (held a
    stone at some time), ``banned`` and ``blocked`` uint64[WORDS]. ``words`` uint64[L] and ``values``
    int32[L]: an open-addressed table of positions; ``captures`` int32[plies + 1, 2]: ko captures in the encore
    (the spot, and the one before it from the same position).
    """

    numbers: NDArray[np.int64]
    keys: NDArray[np.uint64]
    stones: NDArray[np.uint64]
    second: NDArray[np.uint64]
    ever: NDArray[np.uint64]
    banned: NDArray[np.uint64]
    blocked: NDArray[np.uint64]
    words: NDArray[np.uint64]
    values: NDArray[np.int32]
    captures: NDArray[np.int32]


def _table_length(plies: int) -> int:
    """Return the places for the words of so many plies: a power of two, at most half of it in use.

    A ply has at most four words: setup, position, and the pass memory and new phase, or a ko capture.
    """
    return 1 << (8 * plies + 7).bit_length()


def new_history(plies: int) -> History:
    """Return a history for games of at most so many plies, one after the other."""
    length = _table_length(plies)
    return History(
        np.zeros(27, dtype=np.int64),
        np.zeros(2, dtype=np.uint64),
        np.zeros((3, WORDS), dtype=np.uint64),
        np.zeros((3, WORDS), dtype=np.uint64),
        np.zeros(WORDS, dtype=np.uint64),
        np.zeros(WORDS, dtype=np.uint64),
        np.zeros(WORDS, dtype=np.uint64),
        np.zeros(length, dtype=np.uint64),
        np.zeros(length, dtype=np.int32),
        np.zeros((plies + 1, 2), dtype=np.int32),
    )


@kernel
def salted(key, kind, era):
    """Return a word that is never 0. Words of another kind or era are never equal to it: an era forgets the last."""
    return mix(key ^ mix(np.uint64(8 * era + kind))) | ONE


@kernel
def place_of(history, word):
    """Return where ``word`` stands in the table, or the free place for it."""
    mask = np.uint64(history.numbers[_LENGTH] - 1)
    place = (word >> ONE) & mask
    while history.words[place] != NO_BITS and history.words[place] != word:
        place = (place + ONE) & mask
    return place


@kernel
def count_word(history, word):
    """Count a word; return how often it has been now."""
    place = place_of(history, word)
    if history.words[place] == NO_BITS:
        history.words[place] = word
        history.values[place] = 0
    history.values[place] += 1
    return history.values[place]


@kernel
def passes_forget(history):
    """Return whether a pass lifts all bans, and a second pass in the same position ends the phase."""
    ko_rule = history.numbers[KO_RULE]
    return history.numbers[PHASE] > 0 or ko_rule == KO_SIMPLE or ko_rule == KO_SPIGHT


@kernel
def position_word(history, stone_words, key, to_move):
    """Return the word of a position for repetition: stones, blocks, and the side to move where it counts."""
    numbers = history.numbers
    ko_rule = numbers[KO_RULE]
    word = key ^ history.keys[BLOCKS_KEY]
    if to_move == WHITE and (ko_rule == KO_SIMPLE or ko_rule == KO_SITUATIONAL or numbers[PHASE] > 0):
        word ^= stone_words[stone_words.shape[0] - 1]
    return salted(word, _LIST, numbers[LIST_ERA])


@kernel
def pass_word(history, colour):
    key = history.keys[STONES_KEY] ^ history.keys[BLOCKS_KEY]
    return salted(key, _PASSED + colour, history.numbers[PHASE_ERA])


@kernel
def is_repeated_pass(history, colour):
    """Return whether ``colour`` has passed in this position before, and that ends the phase."""
    if history.numbers[PASSES] == 0 or not passes_forget(history):
        return False
    return history.words[place_of(history, pass_word(history, colour))] != NO_BITS


@kernel
def passes_after(history):
    """Return the number of consecutive passes if another one were made."""
    if history.numbers[PHASE] == 0 and history.numbers[KO_RULE] == KO_SPIGHT:
        return history.numbers[CONSECUTIVE]  # always 0: a game under Spight's rule ends by a repeated pass
    return history.numbers[CONSECUTIVE] + 1


@kernel
def pass_ends_phase(history, colour):
    """Return whether a pass by ``colour`` would end the phase; the button is worth a pass of its own."""
    if history.numbers[FLAGS] & BUTTON_LEFT:
        return False
    return passes_after(history) >= 2 or is_repeated_pass(history, colour)


@kernel
def handicap_points(history):
    """Return what White is given for the handicap."""
    numbers = history.numbers
    stones = numbers[HANDICAP]
    if stones < 0:
        early = numbers[EARLY_BLACK] if numbers[COUNT_EARLY] and numbers[EARLY_BLACK] > 1 else 0
        stones = numbers[SETUP_BLACK] + early
        if stones < 2 or numbers[SETUP_WHITE] > 0:
            stones = 0
    if numbers[BONUS_RULE] == BONUS_NONE:
        return 0
    return stones if numbers[BONUS_RULE] == BONUS_N else max(stones - 1, 0)


@kernel
def _stones_on(stones, colour):
    total = 0
    for word in stones[colour]:
        total += count_bits(word)
    return total


@kernel
def new_game(board, history, plies):
    """Forget the last game; ``board`` is empty. The caller sets rules and BUTTON_LEFT, then calls ``after_setup``."""
    numbers = history.numbers
    numbers[:] = 0
    numbers[_LENGTH] = 8
    while numbers[_LENGTH] < 8 * (plies + 1):
        numbers[_LENGTH] *= 2
    history.words[: numbers[_LENGTH]] = NO_BITS
    history.keys[:] = NO_BITS
    read_stones(board, history.stones)
    for words in (history.ever, history.banned, history.blocked):
        words[:] = NO_BITS
    history.second[:] = NO_BITS


@kernel
def leave_phase(history):
    """Forget what belongs to a phase: positions, passes, bans, blocks, ko captures, turns."""
    numbers = history.numbers
    numbers[LIST_ERA] += 1
    numbers[PHASE_ERA] += 1
    numbers[PASSES], numbers[CAPTURES], numbers[CONSECUTIVE], numbers[VALID] = 0, 0, 0, 0
    numbers[BANS], numbers[BLOCKS] = 0, 0
    history.banned[:] = NO_BITS
    history.blocked[:] = NO_BITS
    history.keys[BLOCKS_KEY] = NO_BITS


@kernel
def after_setup(board, history, stone_words, to_play, before_moves):
    """Begin anew from the stones now on the board; ``before_moves``: they are the setup of the game.

    Setup after moves has no counterpart in KataGo: the main phase begins anew with nothing to show; stones
    lost and the button stay as they are, and the change of stones counts as played.
    """
    numbers = history.numbers
    played = _stones_on(history.stones, BLACK) - _stones_on(history.stones, WHITE)
    read_stones(board, history.stones)
    black, white = _stones_on(history.stones, BLACK), _stones_on(history.stones, WHITE)
    if before_moves:
        numbers[SETUP_BLACK], numbers[SETUP_WHITE] = black, white
    if numbers[SCORING] == SCORING_TERRITORY:
        numbers[HALVES] += 2 * (black - white - played)
    leave_phase(history)
    history.second[:] = NO_BITS
    numbers[PHASE] = 0
    numbers[FLAGS] &= BUTTON_LEFT
    numbers[PRESUMED] = to_play
    key, spots = NO_BITS, (stone_words.shape[0] - 2) // 3
    for colour in (BLACK, WHITE):
        for word in range(WORDS):
            rest = history.stones[colour, word]
            history.ever[word] |= rest
            while rest != NO_BITS:
                key ^= stone_words[colour * spots + 64 * word + lowest_bit(rest)]
                rest &= rest - ONE
    history.keys[STONES_KEY] = key
    count_word(history, position_word(history, stone_words, key, to_play))
