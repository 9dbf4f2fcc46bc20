"""Areas: what counts for whom, and what lives on its own.

- **Full area**: pass-alive stones and territory (``passalive``); of the rest, empty points that reach the
  stones of one colour only, and stones for their own colour.
- **Independent life**: connected pieces of one owner's full area, without those that hold a stone of the
  owner in atari or touch an empty point that is nobody's.

The rules, down to the order in which they overrule each other, are KataGo's (the area planes of its V7
inputs). Every chain must have a liberty, as on any legal board. One solution serves both colours.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.board import (
    BLACK,
    CHAIN,
    EMPTY,
    LIBERTIES,
    REMOVED,
    USED_WORDS,
    WHITE,
    WORDS,
    clear,
    new_board,
    play,
    play_pass,
    spot_of,
)
from pipeline.games import Games
from pipeline.jit import kernel
from pipeline.passalive import Benson, find_pass_alive, new_benson
from pipeline.replay import apply_setup
from pipeline.rules import SCORING_TERRITORY, TAX_NONE
from pipeline.spotset import (
    NO_BITS,
    ONE,
    flip_frame_bits,
    flip_spot,
    flood,
    lowest_bit,
    read_stones,
    spread,
)
from pipeline.trace import frame_table

SpotSets = NDArray[np.uint64]


class Areas(NamedTuple):
    """The areas of one position, and the scratch they are found with.

    Sets of spots (``spotset``), uint64[3, WORDS], row 1 Black's and row 2 White's: ``stones`` (row 0 the
    empty spots), ``pass_alive`` (stones and territory), ``full`` (row 0: nobody's), ``living``
    (independent life), ``owned`` (the answer of ``own_areas``).
    """

    stones: SpotSets
    pass_alive: SpotSets
    full: SpotSets
    living: SpotSets
    owned: SpotSets
    benson: Benson


def new_areas() -> Areas:
    """Return areas for boards of any size, one after the other."""
    stones, pass_alive, full, living, owned = np.zeros((5, 3, WORDS), dtype=np.uint64)
    return Areas(stones, pass_alive, full, living, owned, new_benson())


@kernel
def find_full_area(board, suicide, areas):
    """Set ``areas.full`` and ``areas.pass_alive``, given ``areas.stones``.

    ``suicide``: whether that of several stones is legal, or life has to withstand it.
    """
    words = np.int64(board.points[USED_WORDS])
    for colour in (BLACK, WHITE):
        find_pass_alive(board, areas.stones, colour, suicide, areas.benson, areas.pass_alive[colour])
    for colour in (BLACK, WHITE):
        reached = areas.benson.work[colour]
        spread(board, areas.stones[colour], reached)
        for word in range(words):
            reached[word] &= areas.stones[EMPTY, word]
        flood(board, areas.stones[EMPTY], reached)
    for word in range(words):
        # What is pass-alive for one colour never is for the other: eyes inside a territory would need two points
        # away from its walls.
        black_alive, white_alive = areas.pass_alive[BLACK, word], areas.pass_alive[WHITE, word]
        open_here = ~(black_alive | white_alive)
        black, white = areas.benson.work[BLACK, word], areas.benson.work[WHITE, word]
        areas.full[BLACK, word] = black_alive | (open_here & (areas.stones[BLACK, word] | (black & ~white)))
        areas.full[WHITE, word] = white_alive | (open_here & (areas.stones[WHITE, word] | (white & ~black)))
        areas.full[EMPTY, word] = areas.stones[EMPTY, word] & ~(areas.full[BLACK, word] | areas.full[WHITE, word])


@kernel
def find_independent_life(board, areas):
    """Set ``areas.living``, given ``areas.full``."""
    points = board.points
    words = np.int64(points[USED_WORDS])
    beside, struck = areas.benson.work[0], areas.benson.work[1]
    spread(board, areas.full[EMPTY], beside)
    for colour in (BLACK, WHITE):
        area = areas.full[colour]
        for word in range(words):
            struck[word] = beside[word] & area[word]
            stones = areas.stones[colour, word] & area[word] & ~struck[word]
            while stones != NO_BITS:
                if points[LIBERTIES + points[CHAIN + 64 * word + lowest_bit(stones)]] == 1:
                    struck[word] |= stones & (~stones + ONE)
                stones &= stones - ONE
        flood(board, area, struck)
        for word in range(words):
            areas.living[colour, word] = area[word] & ~struck[word]


@kernel
def own_areas(board, scoring, tax, suicide, second_encore, second_stones, areas):
    """Set ``areas.owned`` to what counts for Black and for White, given ``areas.stones``.

    ``scoring``: SCORING_*; ``tax``: TAX_*; ``suicide``: see ``find_full_area``; ``second_encore``: whether the
    second encore has begun, with the stones ``second_stones`` uint64[3, WORDS] (rows as in
    ``Areas.stones``) on the board. With territory scoring nothing counts before that. ``areas.full`` is
    found where it is needed, ``areas.living`` unless scoring is by area without tax.
    """
    words = np.int64(board.points[USED_WORDS])
    territory = scoring == SCORING_TERRITORY
    if territory and not second_encore:
        areas.owned[:] = NO_BITS
        return
    find_full_area(board, suicide, areas)
    if territory or tax != TAX_NONE:
        find_independent_life(board, areas)
    for colour in (BLACK, WHITE):
        for word in range(words):
            full, stones = areas.full[colour, word], areas.stones[colour, word]
            owned = full
            if territory:
                owned = areas.living[colour, word] | (full & ~stones if tax == TAX_NONE else NO_BITS)
            elif tax != TAX_NONE:
                owned = areas.living[colour, word] | (full & stones)
            areas.owned[colour, word] = owned
    if territory:
        for word in range(words):
            free = ~(areas.owned[BLACK, word] | areas.owned[WHITE, word])
            for colour in (BLACK, WHITE):
                areas.owned[colour, word] |= free & areas.stones[colour, word] & second_stones[colour, word]


class AreaTrace(NamedTuple):
    """Areas of consecutive positions, in the order of ``trace.Trace``.

    ``planes`` uint8[T, 2, B]: packed frame planes of what counts for Black and for White, the board
    being the one before the move.
    """

    planes: NDArray[np.uint8]


@kernel
def _trace_areas(games, order, plies, board, frame_of, areas, shown, drawn, planes):
    """Fill ``planes``; see ``trace_areas``. ``drawn`` uint8[2, B] shows the sets ``shown`` uint64[3, WORDS]."""
    rows, cols = np.int64(games.rows[order[0]]), np.int64(games.cols[order[0]])
    at = 0
    for game in order:
        clear(board, rows, cols)
        read_stones(board, areas.stones)
        first, cursor = games.move_start[game], games.setup_start[game]
        solved = False
        for ply in range(plies[game]):
            cursor, changed, _sound = apply_setup(board, games, game, cursor, ply)
            if changed:
                read_stones(board, areas.stones)
            if changed or not solved:
                scoring, tax = games.terms.scoring[game], games.terms.tax[game]
                own_areas(board, scoring, tax, games.suicide[game], False, areas.stones, areas)
                for side in range(2):
                    flip_frame_bits(WORDS, shown[side + 1], areas.owned[side + 1], frame_of, drawn[side])
                solved = True
            for byte in range(drawn.shape[1]):
                planes[at, 0, byte] = drawn[0, byte]
                planes[at, 1, byte] = drawn[1, byte]
            at += 1
            move, colour = np.int64(games.moves[first + ply]), np.int64(games.colours[first + ply])
            if move == rows * cols:
                play_pass(board, None)  # the areas stay as they are: ko has no part in them
                continue
            solved = False
            spot = spot_of(board, move)
            captured = play(board, spot, colour, None)
            flip_spot(areas.stones[EMPTY], spot)
            flip_spot(areas.stones[colour], spot)
            removed_colour = 3 - colour if captured > 0 else colour
            for i in range(abs(captured)):
                spot = np.int64(board.points[REMOVED + i])
                flip_spot(areas.stones[removed_colour], spot)
                flip_spot(areas.stones[EMPTY], spot)
    return at


def trace_areas(
    games: Games,
    order: NDArray[np.int64],
    plies: NDArray[np.int64],
    frame: tuple[int, int],
) -> AreaTrace:
    """Trace the areas of the games in ``order`` (one size, legal throughout) over their first ``plies[g]`` positions.

    Each game has its own rules. There is no encore in a plain replay: with territory scoring the planes are empty.
    """
    rows, cols = int(games.rows[order[0]]), int(games.cols[order[0]])
    drawn = np.zeros((2, (frame[0] * frame[1] + 7) // 8), dtype=np.uint8)
    planes = np.empty((int(plies[order].sum()), *drawn.shape), dtype=np.uint8)
    shown = np.zeros((3, WORDS), dtype=np.uint64)
    board, frame_of = new_board(rows, cols), frame_table(rows, cols, frame[1])
    _trace_areas(games, order, plies, board, frame_of, new_areas(), shown, drawn, planes)
    return AreaTrace(planes)
