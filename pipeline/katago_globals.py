"""The 19 global inputs of KataGo's V7, and which of the last moves are shown.

The definition is SEMANTICS.md, sections 4 and 8. All numbers are float32 at every step, as KataGo's are.
``options`` is a ``katago.KataOptions``, ``history`` that of ``katago_history``.
"""

import numpy as np

from pipeline.board import WHITE, spot_of
from pipeline.jit import kernel
from pipeline.katago_history import (
    BUTTON_LEFT,
    FLAGS,
    HALVES,
    HAS_BUTTON,
    KO_RULE,
    PHASE,
    SCORING,
    SUICIDE,
    handicap_points,
    is_repeated_pass,
    pass_ends_phase,
    passes_after,
)
from pipeline.rules import KO_SIMPLE, KO_SITUATIONAL, SCORING_TERRITORY, TAX_ALL, TAX_NONE

TURNS = 5  # moves shown
KOMI_ROOM = 20  # own komi is cut at the board's area plus this

HALF, ONE_AND_HALF = np.float32(0.5), np.float32(1.5)
ONE, TWO, TWENTY = np.float32(1), np.float32(2), np.float32(20)


@kernel
def own_komi(history, komi, colour, area, options):
    """Return the komi of ``colour`` as float32: with handicap and other points, and half a draw's shift."""
    white = np.float32(komi) + np.float32(handicap_points(history)) + HALF * np.float32(history.numbers[HALVES])
    whole = np.floor(np.float32(komi)) == np.float32(komi)
    button = history.numbers[HAS_BUTTON] != 0
    if whole != button:
        white += np.float32(options.draw_for_white - 0.5)
    own = white if colour == WHITE else -white
    most = np.float32(area + KOMI_ROOM)
    return min(max(own, -most), most)


@kernel
def hides_history(history, colour, own_lead, options):
    """Return whether nothing is shown since a pass by ``colour`` would end the game."""
    numbers = history.numbers
    by_area = numbers[SCORING] != SCORING_TERRITORY
    if not ((by_area or numbers[PHASE] == 2) and pass_ends_phase(history, colour)):
        return False
    if options.conservative_pass or (options.passing_hacks and own_lead <= 0):
        return True
    return options.friendly_pass and by_area and passes_after(history) == 2 and not is_repeated_pass(history, colour)


@kernel
def show_moves(games, place, colour, most, board, area, frame_of, recent):
    """Write the moves before ``games.moves[place]`` to ``recent``, latest first, while sides alternate.

    ``frame_of[0]`` is the frame's area, for a pass. Returns the number of moves written; the rest are -1.
    """
    recent[:] = np.int16(-1)
    for back in range(most):
        mover = games.colours[place - 1 - back]
        if mover != (colour if back & 1 else 3 - colour):
            return back
        move = np.int64(games.moves[place - 1 - back])
        recent[back] = frame_of[0] if move == area else frame_of[spot_of(board, move)]
    return max(most, 0)


@kernel
def parity_wave(own, area):
    """Return global 18 for the komi ``own`` (float32): how near it is to one at which the game can be drawn."""
    below = np.floor((own - ONE) / TWO) * TWO + ONE if area & 1 else np.floor(own / TWO) * TWO
    over = own - below
    if over < HALF:
        return over
    if over < ONE_AND_HALF:
        return ONE - over
    return over - TWO


@kernel
def fill_globals(history, own, area, tax, recent, frame_area, ends, options, out):
    """Write the 19 globals; ``ends``: whether a pass would end the phase, as far as that is shown."""
    numbers = history.numbers
    ko_rule, territory = numbers[KO_RULE], numbers[SCORING] == SCORING_TERRITORY
    out[:] = np.float32(0)
    for back in range(TURNS):
        out[back] = recent[back] == frame_area
    out[5] = own / TWENTY
    if ko_rule != KO_SIMPLE:
        out[6] = ONE
        out[7] = -HALF if ko_rule == KO_SITUATIONAL else HALF
    out[8] = numbers[SUICIDE] != 0
    out[9] = territory
    out[10] = tax != TAX_NONE
    out[11] = tax == TAX_ALL
    out[12] = numbers[PHASE] >= 1
    out[13] = numbers[PHASE] >= 2
    out[14] = ends
    if options.advantage != 0:
        out[15] = ONE
        out[16] = np.float32(0.5 * options.advantage)
    out[17] = numbers[FLAGS] & BUTTON_LEFT != 0
    if numbers[PHASE] >= 2 or not territory:
        out[18] = parity_wave(own, area)
