"""KataGo's V7 inputs, ladders and areas apart: what the history of a game puts into planes and globals.

``trace_katago`` replays games under their own rules (``katago_history``, ``katago_moves``) and gives, for each
position, what the planes 0-2, 6, 7, 9-13, 20 and 21 are drawn from, and all 19 globals. The definition is SEMANTICS.md.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.board import BLACK, KO, NO_SPOT, WORDS, clear, new_board, spot_of
from pipeline.games import Games
from pipeline.jit import kernel
from pipeline.katago_globals import TURNS, fill_globals, hides_history, own_komi, show_moves
from pipeline.katago_history import (
    BANS,
    BLACK_LOST,
    BLOCKS,
    BONUS_RULE,
    BUTTON_LEFT,
    COUNT_EARLY,
    FINISHED,
    FLAGS,
    HALVES,
    HANDICAP,
    HAS_BUTTON,
    KO_RULE,
    PAST_END,
    PHASE,
    PRESUMED,
    PREVENT_ENCORE,
    SCORING,
    SUICIDE,
    VALID,
    WHITE_LOST,
    after_setup,
    handicap_points,
    new_game,
    new_history,
    pass_ends_phase,
)
from pipeline.katago_moves import accepts, make_move, may_play
from pipeline.replay import apply_setup
from pipeline.spotset import flip_frame_bits
from pipeline.trace import frame_table
from pipeline.zobrist import STORED, word_table

GLOBALS = 19
COUNT_SETUP = -1  # in place of a number of handicap stones: count Black's setup stones


class KataOptions(NamedTuple):
    """KataGo's parameters of a search, as it has them when it makes rows from records.

    ``draw_for_white``: what a draw is worth to White; ``conservative_pass``: hide the history where a pass
    ends the game; ``passing_hacks``: hide it where that loses; ``advantage``: playout doublings;
    ``max_history``: moves shown at most; ``prevent_encore``: stay in the main phase; ``early_black_handicap``:
    count several moves by Black before White's first as handicap stones; ``friendly_pass``: a second pass may be
    a friendly one that does not end the game.
    """

    draw_for_white: float = 0.5
    conservative_pass: bool = False
    passing_hacks: bool = False
    advantage: float = 0.0
    max_history: int = 1000
    prevent_encore: bool = False
    early_black_handicap: bool = False
    friendly_pass: bool = False


KATAGO_ROWS = KataOptions()


class KataTrace(NamedTuple):
    """Positions of games of one size, each the one before a move; T positions, B = ceil(frame area / 8).

    Packed frame planes: ``stones`` uint8[T, 2, B] of Black and White; ``banned`` uint8[T, B] (plane 6: ko
    point and superko, in the encore ko captures made before), ``blocked`` uint8[T, B] (7), ``second``
    uint8[T, 2, B] (20 and 21, by colour), ``mask`` uint8[B] (0). ``recent`` int16[T, 5] (9-13): frame index of
    the moves shown, latest first, the frame's area for a pass, -1 for none; ``turns`` int8[T]: how many. The
    board 1 turn ago (plane 15) is that of position ``t - min(1, turns)``, 2 turns ago (16) of ``t - min(2, turns)``.
    ``globals`` float32[T, 19].

    Not in the planes: ``ko`` int32[T], frame index or -1; ``to_play``, ``presumed`` int8[T]; ``flags`` uint8[T];
    ``phase`` int8[T]; ``lost`` int32[T, 2], stones of Black and White; ``valid`` int32[T], turns that may be
    shown; ``bonus``, ``handicap_bonus`` float32[T], points for White; ``for_ko`` bool[T]: the move that follows
    is a pass for ko. ``legal`` uint8[T, ceil((frame area + 1) / 8)]: where the side to move may play, pass
    last (no rows unless asked for). ``accepted`` int64[games of the trace]: positions up to the first move that
    cannot be made; those after it are all 0.
    """

    stones: NDArray[np.uint8]
    banned: NDArray[np.uint8]
    blocked: NDArray[np.uint8]
    second: NDArray[np.uint8]
    mask: NDArray[np.uint8]
    recent: NDArray[np.int16]
    turns: NDArray[np.int8]
    globals: NDArray[np.float32]
    ko: NDArray[np.int32]
    to_play: NDArray[np.int8]
    presumed: NDArray[np.int8]
    flags: NDArray[np.uint8]
    phase: NDArray[np.int8]
    lost: NDArray[np.int32]
    valid: NDArray[np.int32]
    bonus: NDArray[np.float32]
    handicap_bonus: NDArray[np.float32]
    for_ko: NDArray[np.bool_]
    legal: NDArray[np.uint8]
    accepted: NDArray[np.int64]


@kernel
def _draw_sets(board, history, frame_of, shown, drawn, trace, at):
    """Draw stones, bans, blocks and the stones of the second encore; ``shown`` and ``drawn`` as in ``_trace_games``."""
    for side in range(2):
        flip_frame_bits(WORDS, shown[side], history.stones[side + 1], frame_of, drawn[side])
        for byte in range(drawn.shape[1]):
            trace.stones[at, side, byte] = drawn[side, byte]
    if history.numbers[BANS] > 0:
        flip_frame_bits(WORDS, shown[2], history.banned, frame_of, drawn[2])
        for byte in range(drawn.shape[1]):
            trace.banned[at, byte] = drawn[2, byte]
    trace.ko[at] = -1
    ko = np.int64(board.points[KO])
    if ko != NO_SPOT:
        index = frame_of[ko]
        trace.ko[at] = index
        trace.banned[at, index >> 3] |= np.uint8(0x80 >> (index & 7))
    if history.numbers[BLOCKS] > 0:
        flip_frame_bits(WORDS, shown[3], history.blocked, frame_of, drawn[3])
        for byte in range(drawn.shape[1]):
            trace.blocked[at, byte] = drawn[3, byte]
    if history.numbers[PHASE] == 2:
        for side in range(2):
            flip_frame_bits(WORDS, shown[4 + side], history.second[side + 1], frame_of, drawn[4 + side])
            for byte in range(drawn.shape[1]):
                trace.second[at, side, byte] = drawn[4 + side, byte]


@kernel
def _draw_legal(board, history, colour, area, frame_of, frame_area, legal):
    for point in range(area):
        spot = spot_of(board, point)
        if may_play(board, history, spot, colour):
            index = frame_of[spot]
            legal[index >> 3] |= np.uint8(0x80 >> (index & 7))
    legal[frame_area >> 3] |= np.uint8(0x80 >> (frame_area & 7))


@kernel
def _write_numbers(history, colour, trace, at):
    numbers = history.numbers
    trace.to_play[at] = colour
    trace.presumed[at] = numbers[PRESUMED]
    trace.flags[at] = numbers[FLAGS]
    trace.phase[at] = numbers[PHASE]
    trace.lost[at, 0] = numbers[BLACK_LOST]
    trace.lost[at, 1] = numbers[WHITE_LOST]
    trace.valid[at] = numbers[VALID]
    trace.bonus[at] = np.float32(0.5) * np.float32(numbers[HALVES])
    trace.handicap_bonus[at] = np.float32(handicap_points(history))


@kernel
def _write_position(games, game, place, board, history, frame_of, options, lead, trace, at):
    """Write what history makes of the position before move ``place``; ``lead``: Black's, on the board."""
    numbers = history.numbers
    colour, area = np.int64(games.colours[place]), np.int64(games.rows[game]) * np.int64(games.cols[game])
    frame_area = np.int64(frame_of[0])
    own = own_komi(history, games.terms.komi[game], colour, area, options)
    own_lead = own + np.float32(lead if colour == BLACK else -lead)
    hidden = hides_history(history, colour, own_lead, options)
    most = min(TURNS, options.max_history, numbers[VALID])
    if hidden:
        most = 0
    elif numbers[FLAGS] & (FINISHED | PAST_END):
        most = min(most, 1)
    trace.turns[at] = show_moves(games, place, colour, most, board, area, frame_of, trace.recent[at])
    ends = not hidden and pass_ends_phase(history, colour)
    tax = games.terms.tax[game]
    fill_globals(history, own, area, tax, trace.recent[at], frame_area, ends, options, trace.globals[at])
    if trace.legal.shape[0] > 0:
        _draw_legal(board, history, colour, area, frame_of, frame_area, trace.legal[at])


@kernel
def _begin(games, game, plies, board, history, handicap, options):
    """Set board and history to the empty board before a game, its rules known."""
    terms = games.terms
    clear(board, np.int64(games.rows[game]), np.int64(games.cols[game]))
    new_game(board, history, plies)
    numbers = history.numbers
    numbers[KO_RULE], numbers[SUICIDE] = games.ko_rule[game], games.suicide[game]
    numbers[SCORING], numbers[BONUS_RULE] = terms.scoring[game], terms.bonus[game]
    numbers[HAS_BUTTON], numbers[HANDICAP] = terms.button[game], handicap[game]
    numbers[PREVENT_ENCORE], numbers[COUNT_EARLY] = options.prevent_encore, options.early_black_handicap
    numbers[FLAGS] = BUTTON_LEFT if terms.button[game] else 0


@kernel
def _trace_games(
    games,
    order,
    plies,
    handicap,
    options,
    leads,
    board,
    history,
    stone_words,
    frame_of,
    shown,
    drawn,
    trace,
):
    """Fill ``trace`` with all positions of the games in ``order``, one game after the other.

    ``shown`` uint64[6, WORDS]: the sets that ``drawn`` uint8[6, B] shows; ``frame_of`` has the frame's area at spot 0.
    """
    at = 0
    for number in range(order.shape[0]):
        game = order[number]
        _begin(games, game, plies[game], board, history, handicap, options)
        first, cursor = games.move_start[game], games.setup_start[game]
        area = np.int64(games.rows[game]) * np.int64(games.cols[game])
        trace.accepted[number] = plies[game]
        for ply in range(plies[game]):
            colour = np.int64(games.colours[first + ply])
            cursor, changed, _sound = apply_setup(board, games, game, cursor, ply)
            if changed or ply == 0:
                after_setup(board, history, stone_words, colour, ply == 0)
            lead = np.int64(leads[at + ply]) if options.passing_hacks else 0
            _write_position(games, game, first + ply, board, history, frame_of, options, lead, trace, at + ply)
            _draw_sets(board, history, frame_of, shown, drawn, trace, at + ply)
            _write_numbers(history, colour, trace, at + ply)
            move = np.int64(games.moves[first + ply])
            spot = spot_of(board, move) if move < area else NO_SPOT
            if move > area or (move < area and not accepts(board, history, spot, colour)):
                trace.accepted[number] = ply + 1
                break
            trace.for_ko[at + ply] = make_move(board, history, stone_words, spot, colour)
        at += plies[game]


def _new_trace(total: int, games: int, size: tuple[int, int], frame: tuple[int, int], legal: bool) -> KataTrace:
    area = frame[0] * frame[1]
    plane = (area + 7) // 8
    on_board = np.zeros(frame, dtype=np.uint8)
    on_board[: size[0], : size[1]] = 1
    return KataTrace(
        stones=np.zeros((total, 2, plane), dtype=np.uint8),
        banned=np.zeros((total, plane), dtype=np.uint8),
        blocked=np.zeros((total, plane), dtype=np.uint8),
        second=np.zeros((total, 2, plane), dtype=np.uint8),
        mask=np.packbits(on_board),
        recent=np.zeros((total, TURNS), dtype=np.int16),
        turns=np.zeros(total, dtype=np.int8),
        globals=np.zeros((total, GLOBALS), dtype=np.float32),
        ko=np.zeros(total, dtype=np.int32),
        to_play=np.zeros(total, dtype=np.int8),
        presumed=np.zeros(total, dtype=np.int8),
        flags=np.zeros(total, dtype=np.uint8),
        phase=np.zeros(total, dtype=np.int8),
        lost=np.zeros((total, 2), dtype=np.int32),
        valid=np.zeros(total, dtype=np.int32),
        bonus=np.zeros(total, dtype=np.float32),
        handicap_bonus=np.zeros(total, dtype=np.float32),
        for_ko=np.zeros(total, dtype=np.bool_),
        legal=np.zeros((total if legal else 0, area // 8 + 1), dtype=np.uint8),
        accepted=np.zeros(games, dtype=np.int64),
    )


def trace_katago(
    games: Games,
    order: NDArray[np.int64],
    plies: NDArray[np.int64],
    frame: tuple[int, int],
    options: KataOptions = KATAGO_ROWS,
    handicap: NDArray[np.int16] | None = None,
    leads: NDArray[np.int16] | None = None,
    legal: bool = False,
) -> KataTrace:
    """Trace the games in ``order`` (of one size) over their first ``plies[g]`` positions.

    ``handicap`` int16[G]: stones that count for White's bonus, or COUNT_SETUP (None: in every game).
    ``leads`` int16[T], only and always with ``passing_hacks``: Black's area less White's less
    the difference of their group taxes, as the board stands. Raises ValueError where it is missing.
    """
    rows, cols = int(games.rows[order[0]]), int(games.cols[order[0]])
    total = int(plies[order].sum())
    if handicap is None:
        handicap = np.full(games.number, COUNT_SETUP, dtype=np.int16)
    if leads is None:
        leads = np.zeros(0, dtype=np.int16)
    if options.passing_hacks and len(leads) != total:
        raise ValueError(f"passing hacks need the lead on the board in {total} positions, not in {len(leads)}")
    trace = _new_trace(total, len(order), (rows, cols), frame, legal)
    frame_of = frame_table(rows, cols, frame[1])
    frame_of[NO_SPOT] = frame[0] * frame[1]
    stone_words = np.ascontiguousarray(word_table(rows, cols)[:, STORED])
    history = new_history(int(plies[order].max(initial=0)))
    shown = np.zeros((6, WORDS), dtype=np.uint64)
    drawn = np.zeros((6, trace.mask.shape[0]), dtype=np.uint8)
    made = (new_board(rows, cols), history, stone_words, frame_of, shown, drawn)
    _trace_games(games, order, plies, handicap, options, leads, *made, trace)
    return trace
