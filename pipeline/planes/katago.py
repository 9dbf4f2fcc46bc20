"""What a game's history puts into KataGo's V7 inputs: bans, blocks, moves shown, and the 19 globals.

The history is that of ``pipeline.katago``; ladders and areas have their own modules.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from pipeline.jit import kernel
from pipeline.katago import GLOBALS, KataTrace
from pipeline.katago_globals import TURNS
from pipeline.planes.group import Draw, Facts, Group, Plane, copy_points, copy_sides, counted, draw_nothing
from pipeline.traces import Traces
from pipeline.words import Words, mix_words, seed_word

_GLOBALS = (
    *(
        (f"pass_{back}", f"1 if the move {counted(back, 'turn', 'turns')} ago was a pass", "absolute")
        for back in range(1, TURNS + 1)
    ),
    ("komi", "komi of the side to move, with all bonuses, / 20", "mover"),
    ("ko_rule", "1 unless the ko rule is simple", "absolute"),
    ("ko_kind", "0.5 positional superko or Spight's rule, -0.5 situational superko, 0 simple ko", "absolute"),
    ("suicide", "1 if suicide of several stones is legal", "absolute"),
    ("territory", "1 if scoring is by territory", "absolute"),
    ("tax", "1 if groups in seki are taxed", "absolute"),
    ("tax_all", "1 if all groups are taxed", "absolute"),
    ("encore", "1 in the encore, of which data sets have no rows", "absolute"),
    ("second_encore", "1 in the second phase of the encore", "absolute"),
    ("pass_ends_phase", "1 if a pass would end the phase", "mover"),
    ("handicapped", "1 with a playout advantage: 0 in data sets", "mover"),
    ("playout_advantage", "half of that advantage: 0 in data sets", "mover"),
    ("button", "1 while the button is not taken", "absolute"),
    ("parity", "how far own komi is from one that allows a draw, as a wave from -0.5 to 0.5", "mover"),
)


@kernel
def _draw_recent(recent, area, positions, out, first):
    for i in range(positions.shape[0]):
        for back in range(recent.shape[1]):
            index = np.int64(recent[positions[i], back])
            if index >= 0 and index < area:
                out[i, first + back, index >> 3] = 0x80 >> (index & 7)


def _drawing(points: Callable[[KataTrace], NDArray[np.uint8]]) -> Draw:
    def draw(traces: Traces, positions: NDArray[np.int64], out: NDArray[np.uint8], first: int) -> None:
        copy_points(points(traces.katago), positions, out, first)

    return draw


def main_phase(traces: Traces) -> NDArray[np.bool_]:
    """Return which positions come before the encore: records do not say how it is played.

    A setup in mid-game begins the main phase anew; but not after a pass for ko, which left other stones on the
    board than the record has.
    """
    katago = traces.katago
    lifted: NDArray[np.int64] = np.cumsum(katago.for_ko) - katago.for_ko
    starts = np.flatnonzero(np.diff(traces.game, prepend=-1))
    of_game: NDArray[np.int64] = np.repeat(lifted[starts], np.diff(starts, append=len(lifted)))
    main: NDArray[np.bool_] = (katago.phase == 0) & (lifted == of_game)
    return main


def _ban_facts(traces: Traces) -> Facts:
    """Return the points banned by superko; that of simple ko belongs to every key."""
    return Facts(points=banned_by_superko(traces.katago), shown=main_phase(traces))


def banned_by_superko(katago: KataTrace) -> NDArray[np.uint8]:
    """Return the packed points that are banned, but for the simple-ko point: uint8[T, B]."""
    points = katago.banned.copy()
    at = np.flatnonzero(katago.ko >= 0)
    points[at, katago.ko[at] >> 3] &= ~(0x80 >> (katago.ko[at] & 7)).astype(np.uint8)
    return points


def bans(source: str) -> Group:
    """Points where the side to move may not play by the ko rule of its game: the ko point and superko's."""
    plane = Plane("ko_banned", "points banned by the ko rule of the game", "mover", source)
    return Group((plane,), _drawing(lambda katago: katago.banned), facts=_ban_facts)


def blocks(source: str) -> Group:
    """Stones under a ko-recapture block: in the encore alone, of which a data set has no rows."""

    def facts(traces: Traces) -> Facts:
        return Facts(shown=main_phase(traces))

    plane = Plane("ko_blocked", "stones that may not be retaken yet, in the encore alone", "absolute", source)
    return Group((plane,), _drawing(lambda katago: katago.blocked), facts=facts)


def second_stones(source: str) -> Group:
    """Own and opp stones that stood when the second phase of the encore began."""

    def draw(traces: Traces, positions: NDArray[np.int64], out: NDArray[np.uint8], first: int) -> None:
        copy_sides(traces.katago.second, traces.katago.to_play, positions, out, first)

    planes = tuple(
        Plane(f"{side}_second", f"{side} stones that stood when the second phase of the encore began", "mover", source)
        for side in ("own", "opp")
    )
    return Group(planes, draw)


def recent_moves(source: str) -> Group:
    """Where the moves 1 to 5 turns ago were played, as far back as sides alternate and the phase goes."""

    def draw(traces: Traces, positions: NDArray[np.int64], out: NDArray[np.uint8], first: int) -> None:
        _draw_recent(traces.katago.recent, traces.frame[0] * traces.frame[1], positions, out, first)

    planes = tuple(
        Plane(f"move_{back}", f"the point played {counted(back, 'turn', 'turns')} ago", "absolute", source)
        for back in range(1, TURNS + 1)
    )
    return Group(planes, draw, recent=TURNS, facts=turn_facts)


def turn_facts(traces: Traces) -> Facts:
    """Return how many turns are shown; boards and moves of that many belong to the key."""
    words: Words = mix_words(traces.katago.turns.astype(np.uint64) ^ seed_word("turns shown"))
    return Facts(words, shown=main_phase(traces))


def global_inputs(source: str) -> Group:
    """The 19 globals: passes, komi, rules, phase, button and parity."""

    def fill(traces: Traces, positions: NDArray[np.int64]) -> NDArray[np.float32]:
        return traces.katago.globals[positions]

    def facts(traces: Traces) -> Facts:
        return Facts(_number_words(traces.katago.globals), shown=main_phase(traces))

    assert len(_GLOBALS) == GLOBALS
    names = tuple(Plane(*about, source) for about in _GLOBALS)
    return Group((), draw_nothing, globals=names, fill=fill, facts=facts, komi=True)


def _number_words(numbers: NDArray[np.float32]) -> Words:
    """Return a word for each row of float32[T, G], the same for the same bits."""
    bits = numbers.view(np.uint32).astype(np.uint64)
    columns = np.arange(numbers.shape[1], dtype=np.uint64) << np.uint64(32)
    words: Words = mix_words((bits | columns) ^ seed_word("globals")).sum(axis=1, dtype=np.uint64)
    return words
