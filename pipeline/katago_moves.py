"""Moves as KataGo's inputs see them: what they change in the history, what is banned, what a pass ends.

Moves are taken as they stand: ko, superko and the ban on suicide of several stones are not enforced and
either side may move, as when KataGo reads a record. Only a move on a stone, off the board, or the suicide
of one stone is refused. What *would* be legal is told all the same (``may_play``).

In the encore a ko is not a ban for one turn. The stone that took it is *blocked*: retaking it is a *pass
for ko*, which lifts the block and leaves the stones as they are.

The rules are those of SEMANTICS.md, sections 2 and 9.
"""

import numpy as np

from pipeline.board import (
    BLACK,
    CHAIN,
    COLOUR,
    EMPTY,
    KO,
    LEGAL,
    LIBERTIES,
    NEXT,
    NO_SPOT,
    OFF,
    REMOVED,
    STONES,
    STRIDE,
    USED_WORDS,
    WHITE,
    WORDS,
    legality,
    play,
    play_pass,
)
from pipeline.jit import YES, kernel
from pipeline.katago_history import (
    BANS,
    BLACK_LOST,
    BLOCKS,
    BLOCKS_KEY,
    BUTTON_LEFT,
    CAPTURED,
    CAPTURES,
    CONSECUTIVE,
    EARLY_BLACK,
    FINISHED,
    FLAGS,
    HALVES,
    KO_RULE,
    LIST_ERA,
    NO_RESULT,
    PASSES,
    PAST_END,
    PHASE,
    PHASE_ERA,
    PRESUMED,
    PREVENT_ENCORE,
    SCORED,
    SCORING,
    STONES_KEY,
    SUICIDE,
    VALID,
    WHITE_LOST,
    WHITE_MOVED,
    count_word,
    leave_phase,
    pass_ends_phase,
    pass_word,
    passes_after,
    passes_forget,
    place_of,
    position_word,
    salted,
)
from pipeline.rules import KO_SIMPLE, SCORING_TERRITORY
from pipeline.spotset import NO_BITS, ONE, flip_spot, has_spot, lowest_bit

_TOP = np.uint64(63)


@kernel
def _without_chain(board, stone_words, key, chain):
    """Return the key of the stones without those of a chain."""
    points = board.points
    row = np.int64(points[COLOUR + chain]) * ((stone_words.shape[0] - 2) // 3)
    spot = chain
    while True:
        key ^= stone_words[row + spot]
        spot = np.int64(points[NEXT + spot])
        if spot == chain:
            return key


@kernel
def _key_after(board, history, stone_words, spot, colour):
    """Return (possible, key): whether a move on an empty spot can repeat a position, and the stones' key after it.

    Illegal suicide cannot, nor a move that leaves a stone where none has ever been.
    """
    points = board.points
    stride = np.int64(points[STRIDE])
    lives, joins, captures = False, False, False
    for step in (-stride, -1, 1, stride):
        there = points[COLOUR + spot + step]
        if there == EMPTY:
            lives = True
        elif there != OFF:
            in_atari = points[LIBERTIES + points[CHAIN + spot + step]] == 1
            if there == colour:
                joins = True
                lives |= not in_atari
            else:
                captures |= in_atari
    suicide = not (lives or captures)
    if (suicide and not (joins and history.numbers[SUICIDE])) or not (suicide or has_spot(history.ever, spot)):
        return False, NO_BITS
    key = history.keys[STONES_KEY]
    if not suicide:
        key ^= stone_words[colour * ((stone_words.shape[0] - 2) // 3) + spot]
    if suicide or captures:
        lost = colour if suicide else 3 - colour
        first = second = third = np.int64(NO_SPOT)
        for step in (-stride, -1, 1, stride):
            if points[COLOUR + spot + step] == lost:
                chain = np.int64(points[CHAIN + spot + step])
                new = chain != first and chain != second and chain != third
                if new and points[LIBERTIES + chain] == 1:
                    key = _without_chain(board, stone_words, key, chain)
                    first, second, third = chain, first, second
    return True, key


@kernel
def _enclosed(empty, word, words, up, down):
    """Return the empty spots of one word that have no empty neighbour."""
    here = empty[word]
    beside = (here << ONE) | (here >> ONE) | (here << up) | (here >> up)
    if word > 0:
        beside |= (empty[word - 1] >> _TOP) | (empty[word - 1] >> down)
    if word + 1 < words:
        beside |= (empty[word + 1] << _TOP) | (empty[word + 1] << down)
    return here & ~beside


@kernel
def _ban_repetitions(board, history, stone_words, colour):
    """Set ``banned`` to the spots, the ko point apart, where a move by ``colour`` brings back an earlier position."""
    numbers, points = history.numbers, board.points
    words, stride, ko = np.int64(points[USED_WORDS]), np.int64(points[STRIDE]), np.int64(points[KO])
    up, down = np.uint64(stride), np.uint64(64 - stride)
    empty = history.stones[EMPTY]
    numbers[BANS] = 0
    for word in range(words):
        history.banned[word] = NO_BITS
        rest = empty[word] & history.ever[word]
        if numbers[SUICIDE]:
            rest |= _enclosed(empty, word, words, up, down)
        while rest != NO_BITS:
            spot = 64 * word + lowest_bit(rest)
            if spot != ko:
                possible, key = _key_after(board, history, stone_words, spot, colour)
                if possible:
                    after = position_word(history, stone_words, key, 3 - colour)
                    if history.words[place_of(history, after)] != NO_BITS:
                        history.banned[word] |= rest & (~rest + ONE)
                        numbers[BANS] += 1
            rest &= rest - ONE


@kernel
def _capture_place(history, colour):
    """Return the place of the ko captures that ``colour`` has made from the present stones."""
    key = history.keys[STONES_KEY]
    return place_of(history, salted(key, CAPTURED + colour, history.numbers[PHASE_ERA]))


@kernel
def _remember_capture(history, place, word, spot):
    """Note a ko capture at ``spot``, once, in the list of ``place`` (free or that of ``word``)."""
    numbers = history.numbers
    if history.words[place] == NO_BITS:
        history.words[place] = word
        history.values[place] = 0
    number = np.int64(history.values[place])
    while number > 0:
        if history.captures[number, 0] == spot:
            return
        number = np.int64(history.captures[number, 1])
    numbers[CAPTURES] += 1
    history.captures[numbers[CAPTURES], 0] = spot
    history.captures[numbers[CAPTURES], 1] = history.values[place]
    history.values[place] = numbers[CAPTURES]


@kernel
def _ban_captures(history, colour):
    """Set ``banned`` to the spots of ko captures that ``colour`` has made from the present stones."""
    history.banned[:] = NO_BITS
    history.numbers[BANS] = 0
    if history.numbers[CAPTURES] == 0:
        return
    place = _capture_place(history, colour)
    number = np.int64(history.values[place]) if history.words[place] != NO_BITS else 0
    while number > 0:
        flip_spot(history.banned, np.int64(history.captures[number, 0]))
        history.numbers[BANS] += 1
        number = np.int64(history.captures[number, 1])


@kernel
def _ko_capture(board, spot, colour):
    """Return the lone stone that a move on ``spot`` would take in a ko, NO_SPOT where it would not."""
    points = board.points
    stride = np.int64(points[STRIDE])
    taken = np.int64(NO_SPOT)
    if points[COLOUR + spot] != EMPTY:
        return NO_SPOT
    for step in (-stride, -1, 1, stride):
        there = points[COLOUR + spot + step]
        if there != OFF:
            if there != 3 - colour:
                return NO_SPOT
            chain = np.int64(points[CHAIN + spot + step])
            if points[LIBERTIES + chain] == 1:
                if taken != NO_SPOT or points[STONES + chain] != 1:
                    return NO_SPOT
                taken = chain
    return taken


@kernel
def lifted_block(board, history, spot, colour):
    """Return the blocked stone whose block a move on ``spot`` would lift (a pass for ko), else NO_SPOT.

    Such a move retakes the ko, or is made on the blocked stone itself, which then must be alone and in atari.
    """
    points = board.points
    if history.numbers[BLOCKS] == 0:
        return NO_SPOT
    stone = _ko_capture(board, spot, colour)
    if points[COLOUR + spot] == 3 - colour:
        chain = np.int64(points[CHAIN + spot])
        stone = chain if points[STONES + chain] == 1 and points[LIBERTIES + chain] == 1 else NO_SPOT
    return stone if stone != NO_SPOT and has_spot(history.blocked, stone) else NO_SPOT


@kernel
def _flip_block(history, stone_words, spot):
    history.numbers[BLOCKS] += -1 if has_spot(history.blocked, spot) else 1
    flip_spot(history.blocked, spot)
    history.keys[BLOCKS_KEY] ^= stone_words[spot]


@kernel
def accepts(board, history, spot, colour):
    """Return whether a move on ``spot`` can be made at all."""
    if lifted_block(board, history, spot, colour) != NO_SPOT:
        return True
    ko = board.points[KO]
    board.points[KO] = NO_SPOT
    fault = legality(board, spot, colour, YES)
    board.points[KO] = ko
    return fault == LEGAL


@kernel
def may_play(board, history, spot, colour):
    """Return whether the rules let ``colour`` play on ``spot``; bans count for the presumed side only."""
    numbers = history.numbers
    if colour == numbers[PRESUMED]:
        if lifted_block(board, history, spot, colour) != NO_SPOT:
            return True
        if numbers[BANS] > 0 and has_spot(history.banned, spot):
            return False
    return legality(board, spot, colour, numbers[SUICIDE] != 0) == LEGAL


@kernel
def _put_stone(board, history, stone_words, spot, colour):
    """Play on an empty spot; in the encore note ko captures instead of a ko point."""
    numbers, stones = history.numbers, history.stones
    spots = (stone_words.shape[0] - 2) // 3
    place, word = np.uint64(0), NO_BITS
    if numbers[PHASE] > 0:
        word = salted(history.keys[STONES_KEY], CAPTURED + colour, numbers[PHASE_ERA])
        place = place_of(history, word)
    captured = play(board, spot, colour, None)
    flip_spot(stones[EMPTY], spot)
    flip_spot(stones[colour], spot)
    key = history.keys[STONES_KEY] ^ stone_words[colour * spots + spot]
    loser = 3 - colour if captured > 0 else colour
    for i in range(abs(captured)):
        gone = np.int64(board.points[REMOVED + i])
        flip_spot(stones[loser], gone)
        flip_spot(stones[EMPTY], gone)
        key ^= stone_words[loser * spots + gone]
        if numbers[BLOCKS] > 0 and has_spot(history.blocked, gone):
            _flip_block(history, stone_words, gone)
    numbers[BLACK_LOST if loser == BLACK else WHITE_LOST] += abs(captured)
    history.keys[STONES_KEY] = key
    if numbers[PHASE] > 0 and board.points[KO] != NO_SPOT:
        board.points[KO] = NO_SPOT
        _flip_block(history, stone_words, spot)
        _remember_capture(history, place, word, spot)


@kernel
def _pass(history, colour):
    """Count a pass; return whether it ends the phase."""
    numbers = history.numbers
    if numbers[FLAGS] & BUTTON_LEFT:
        numbers[FLAGS] ^= BUTTON_LEFT
        numbers[HALVES] += 1 if colour == WHITE else -1
        numbers[LIST_ERA] += 1
        return False
    ends = pass_ends_phase(history, colour)
    numbers[CONSECUTIVE] = passes_after(history)
    if passes_forget(history):
        numbers[LIST_ERA] += 1
        numbers[PASSES] += 1
        count_word(history, pass_word(history, colour))
    return ends


@kernel
def _end_phase(history, stone_words, to_move):
    numbers = history.numbers
    if numbers[SCORING] != SCORING_TERRITORY or numbers[PHASE] == 2:
        numbers[FLAGS] |= FINISHED | SCORED
    elif numbers[PREVENT_ENCORE]:
        numbers[FLAGS] |= PAST_END
        numbers[VALID] = min(numbers[VALID], 1)
    else:
        leave_phase(history)
        numbers[PHASE] += 1
        count_word(history, position_word(history, stone_words, history.keys[STONES_KEY], to_move))
        if numbers[PHASE] == 2:
            for colour in (BLACK, WHITE):
                for word in range(WORDS):
                    history.second[colour, word] = history.stones[colour, word]


@kernel
def _note_stone(history, colour):
    """Count a stone that was played: points in territory scoring, and Black's moves before White's first."""
    numbers = history.numbers
    if numbers[SCORING] == SCORING_TERRITORY and numbers[PHASE] < 2:
        numbers[HALVES] += 2 if colour == BLACK else -2
    if colour == WHITE:
        numbers[WHITE_MOVED] = 1
    elif numbers[WHITE_MOVED] == 0:
        numbers[EARLY_BLACK] += 1


@kernel
def make_move(board, history, stone_words, spot, colour):
    """Make a move that ``accepts`` allows, NO_SPOT for a pass; return whether it was a pass for ko.

    ``stone_words``: one lane of ``zobrist.word_table``.
    """
    numbers = history.numbers
    if numbers[FLAGS] & (FINISHED | PAST_END):
        numbers[VALID] = min(numbers[VALID], 1)
    numbers[FLAGS] &= BUTTON_LEFT
    ends, for_ko = False, False
    if spot == NO_SPOT:
        ends = _pass(history, colour)
        play_pass(board, None)
    else:
        numbers[CONSECUTIVE] = 0
        block = lifted_block(board, history, spot, colour)
        for_ko = block != NO_SPOT
        if for_ko:
            _flip_block(history, stone_words, block)
        else:
            _put_stone(board, history, stone_words, spot, colour)
            _note_stone(history, colour)
            history.ever[spot >> 6] |= ONE << np.uint64(spot & 63)
    numbers[VALID] += 1
    numbers[PRESUMED] = 3 - colour
    word = position_word(history, stone_words, history.keys[STONES_KEY], 3 - colour)
    times = count_word(history, word)
    ko_rule = numbers[KO_RULE]
    if numbers[PHASE] > 0:
        _ban_captures(history, 3 - colour)
    elif ko_rule != KO_SIMPLE:
        _ban_repetitions(board, history, stone_words, 3 - colour)
    if ends:
        _end_phase(history, stone_words, 3 - colour)
    if spot != NO_SPOT and times >= 3 and (numbers[PHASE] > 0 or ko_rule == KO_SIMPLE):
        numbers[FLAGS] |= FINISHED | NO_RESULT
    return for_ko
