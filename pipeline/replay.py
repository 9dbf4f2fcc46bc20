"""Replay of whole games: legality under each record's rules, position keys and game keys.

Kernels take many games of one board size; the functions below them group games by size. A *position*
is the board before one move, so that positions are numbered as the moves of ``Games`` are.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline import symmetry
from pipeline.board import (
    COLOUR,
    ILLEGAL_OFF_BOARD,
    ILLEGAL_SUPERKO,
    KO,
    LEGAL,
    REMOVED,
    WHITE,
    clear,
    legality,
    new_board,
    play,
    play_pass,
    rebuild,
    set_colour,
    spot_of,
)
from pipeline.games import Games
from pipeline.jit import kernel
from pipeline.rules import KO_SIMPLE, KO_SITUATIONAL, KO_SPIGHT
from pipeline.words import Words, mix
from pipeline.zobrist import (
    HISTORY_RING,
    LANES,
    STORED,
    add_boards,
    add_point,
    add_recent,
    choose,
    stabiliser,
    toggle,
    word_table,
)

ILLEGAL_SETUP = 6


@kernel
def apply_setup(board, games, game, cursor, ply):
    """Set up all stones of ``ply``, from entry ``cursor`` on.

    Returns (cursor, changed, legal): the next entry, whether there was any, and whether every chain
    has a liberty.
    """
    end = games.setup_start[game + 1]
    if cursor >= end or games.setup_plies[cursor] != ply:
        return cursor, False, True
    while cursor < end and games.setup_plies[cursor] == ply:
        set_colour(board, spot_of(board, np.int64(games.setup_points[cursor])), games.setup_colours[cursor])
        cursor += 1
    return cursor, True, rebuild(board)


@kernel
def _stone_keys(board, table, keys):
    """Set ``keys`` to the words of the stones on the board."""
    keys[:] = np.uint64(0)
    spots = (table.shape[0] - 2) // 3
    for spot in range(spots):
        colour = np.int64(board.points[COLOUR + spot])
        if colour == 1 or colour == 2:
            toggle(keys, table, colour * spots + spot)


@kernel
def _toggle_move(board, table, keys, spot, colour, captured):
    """Bring ``keys`` up to date after ``play`` returned ``captured``."""
    spots = (table.shape[0] - 2) // 3
    toggle(keys, table, colour * spots + spot)
    removed_colour = 3 - colour if captured > 0 else colour
    for i in range(abs(captured)):
        toggle(keys, table, removed_colour * spots + np.int64(board.points[REMOVED + i]))


@kernel
def _superko_word(keys, table, ko_rule, mover, era):
    """Return what superko compares after a move: the stones, and who is to move where the rule says so.

    Boards of different eras are never equal: a new era forgets the old ones without clearing a table.
    """
    word = keys[STORED] ^ mix(np.uint64(era))
    if ko_rule == KO_SITUATIONAL and mover != WHITE:
        word ^= table[table.shape[0] - 1, STORED]
    return mix(word) | np.uint64(1)  # 0 marks a free place in ``seen``


@kernel
def _remember(seen, word):
    """Add a word to an open-addressed set; return whether it was there before."""
    mask = np.uint64(seen.shape[0] - 1)
    place = (word >> np.uint64(1)) & mask
    while seen[place] != 0:
        if seen[place] == word:
            return True
        place = (place + np.uint64(1)) & mask
    seen[place] = word
    return False


class Replayed(NamedTuple):
    """What ``replay`` found.

    ``legal`` int64[G]: moves before the first fault (all of them where there is none); ``faults``
    int8[G]: LEGAL, ``board.ILLEGAL_*`` or ILLEGAL_SETUP. Per position, valid up to the fault: ``turns``
    uint8 (the canonical symmetry), ``keys`` uint64, ``keys_hi`` uint64 (more bits of key, from the
    choosing family: the smallest of eight words is worth 61), ``fixed`` uint8 (bit s: symmetry s leaves the
    position as it is).
    """

    legal: NDArray[np.int64]
    faults: NDArray[np.int8]
    turns: NDArray[np.uint8]
    keys: Words
    keys_hi: Words
    fixed: NDArray[np.uint8]


class KeyFacts(NamedTuple):
    """What belongs to the key of each position (M of them, as the moves are) beside boards and moves.

    ``words`` uint64[M]: of what is the same in every orientation; points that turn with the board, those of
    position m being ``points[point_start[m] : point_start[m + 1]]`` (row * cols + col): ``point_start``
    int64[M + 1], ``points`` int32.
    """

    words: Words
    point_start: NDArray[np.int64]
    points: NDArray[np.int32]


_NO_FACTS = KeyFacts(np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int32))


@kernel
def _add_facts(keys, facts, position, board, table):
    """Add what the key of a position covers beside boards and moves to every lane of ``keys``."""
    for lane in range(LANES):
        keys[lane] += facts.words[position]
    for place in range(facts.point_start[position], facts.point_start[position + 1]):
        add_point(keys, spot_of(board, np.int64(facts.points[place])), table)


@kernel
def _replay_games(games, order, board, table, symmetries, history, recent, facts, scratch, played, seen, found):
    """Replay games of one size; see ``replay``.

    ``scratch`` uint64[HISTORY_RING + 2, LANES]; ``played`` int64[HISTORY_RING]; ``seen`` uint64[a power of
    two, at least four times the moves of the longest game].
    """
    ring, stones, work = scratch[:HISTORY_RING], scratch[HISTORY_RING], scratch[HISTORY_RING + 1]
    rows, cols = np.int64(games.rows[order[0]]), np.int64(games.cols[order[0]])
    area = rows * cols
    for game in order:
        clear(board, rows, cols)
        stones[:] = np.uint64(0)
        first, last = games.move_start[game], games.move_start[game + 1]
        ko_rule = games.ko_rule[game]
        length = 4  # at most two boards for each ply: after its setup stones and after its move
        while ko_rule != KO_SIMPLE and length < 4 * (last - first):
            length *= 2
        boards = seen[:length]
        boards[:] = np.uint64(0)
        cursor = games.setup_start[game]
        begin, era, fault, ply = 0, 0, LEGAL, 0
        button = games.terms.button[game]
        for ply in range(last - first + 1):
            cursor, changed, sound = apply_setup(board, games, game, cursor, ply)
            if not sound:
                fault = ILLEGAL_SETUP
                break
            if changed:
                begin = ply
                _stone_keys(board, table, stones)
            if ply == begin and ko_rule != KO_SIMPLE and first + ply < last:
                # The side to move after "the move before" is the side that moves now.
                era += 1
                _remember(boards, _superko_word(stones, table, ko_rule, 3 - games.colours[first + ply], era))
            if first + ply == last:
                break
            for lane in range(LANES):
                ring[ply % HISTORY_RING, lane] = stones[lane]
            move, colour = np.int64(games.moves[first + ply]), np.int64(games.colours[first + ply])
            ko, earlier = np.int64(board.points[KO]), min(history, ply - begin)
            add_boards(ring, ply, earlier, colour, ko, table, work)
            if recent > 0:
                add_recent(work, played, ply, min(recent, ply - begin), table)
            if facts.words.shape[0] > 0:
                _add_facts(work, facts, first + ply, board, table)
            turn, key = choose(work, symmetries)
            found.turns[first + ply], found.keys[first + ply] = turn, key
            found.keys_hi[first + ply] = mix(work[turn])
            found.fixed[first + ply] = stabiliser(work, symmetries)
            played[ply % HISTORY_RING] = 0
            if move == area:
                play_pass(board, None)
                if ko_rule == KO_SPIGHT or button:  # the first pass takes the button, which lifts bans as well
                    era += 1
                button = False
                if ko_rule != KO_SIMPLE:
                    _remember(boards, _superko_word(stones, table, ko_rule, colour, era))
                continue
            if move > area:
                fault = ILLEGAL_OFF_BOARD
                break
            spot = spot_of(board, move)
            fault = legality(board, spot, colour, games.suicide[game])
            if fault != LEGAL:
                break
            captured = play(board, spot, colour, None)
            played[ply % HISTORY_RING] = spot
            _toggle_move(board, table, stones, spot, colour, captured)
            if ko_rule != KO_SIMPLE and _remember(boards, _superko_word(stones, table, ko_rule, colour, era)):
                fault = ILLEGAL_SUPERKO
                break
        found.legal[game] = ply
        found.faults[game] = fault


def _set_length(games: Games) -> int:
    """Return the places an open-addressed set of all positions of any of the games needs."""
    longest = int(np.diff(games.move_start).max(initial=0))
    return 1 << (4 * longest + 3).bit_length()


def replay(games: Games, history: int = 0, recent: int = 0, facts: KeyFacts | None = None) -> Replayed:
    """Replay every game under its own rules; ``history``: earlier boards that belong to a key, ``recent``:
    last moves that do (0-15 each), ``facts``: what else does.

    Boards and moves before the last setup are no part of a key. Superko compares 64-bit keys of the stones.
    """
    if not (0 <= history < HISTORY_RING and 0 <= recent < HISTORY_RING):
        raise ValueError(f"a key holds at most {HISTORY_RING - 1} earlier boards and moves, not {history}, {recent}")
    replayed = Replayed(
        np.zeros(games.number, dtype=np.int64),
        np.zeros(games.number, dtype=np.int8),
        np.zeros(len(games.moves), dtype=np.uint8),
        np.zeros(len(games.moves), dtype=np.uint64),
        np.zeros(len(games.moves), dtype=np.uint64),
        np.zeros(len(games.moves), dtype=np.uint8),
    )
    for (rows, cols), order in games.by_size().items():
        _replay_games(
            games,
            order,
            new_board(rows, cols),
            word_table(rows, cols),
            symmetry.count(rows, cols),
            history,
            recent,
            _NO_FACTS if facts is None else facts,
            np.zeros((HISTORY_RING + 2, LANES), dtype=np.uint64),
            np.zeros(HISTORY_RING, dtype=np.int64),
            np.zeros(_set_length(games), dtype=np.uint64),
            replayed,
        )
    return replayed
