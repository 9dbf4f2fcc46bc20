"""Planes that are the same throughout a game: its rules, its komi, whether it is a handicap game."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from pipeline.board import BLACK, WHITE
from pipeline.games import Games
from pipeline.jit import kernel
from pipeline.planes.group import Facts, Group, Plane
from pipeline.rules import KO_POSITIONAL, KO_SIMPLE, KO_SITUATIONAL, KO_SPIGHT, SCORING_AREA, SCORING_TERRITORY
from pipeline.traces import Traces
from pipeline.words import Words, mix_words, seed_word

# flags(games, part): bool[games of the part, planes], a part being some games in a row.
Flags = Callable[[Games, slice], NDArray[np.bool_]]


@kernel
def _draw_flags(flags, trace, positions, out, first):
    for i in range(positions.shape[0]):
        for plane in range(flags.shape[1]):
            if flags[positions[i], plane]:
                for byte in range(out.shape[2]):
                    out[i, first + plane, byte] = trace.mask[byte]


def _flag_group(about: tuple[tuple[str, str], ...], source: str, flags_of: Flags, komi: bool = False) -> Group:
    """Return planes that are all 1 on the board where a flag of the game is set."""

    def traced_flags(traces: Traces) -> NDArray[np.bool_]:
        """Return the flags of each traced position, from the games that are traced alone: chunks may be many."""
        first, last = int(traces.game.min()), int(traces.game.max())
        return flags_of(traces.games, slice(first, last + 1))[traces.game - first]

    def draw(traces: Traces, positions: NDArray[np.int64], out: NDArray[np.uint8], first: int) -> None:
        _draw_flags(traced_flags(traces), traces.boards, positions, out, first)

    def facts(traces: Traces) -> Facts:
        flags = traced_flags(traces).astype(np.uint64) << np.arange(len(about), dtype=np.uint64)
        words: Words = mix_words(flags.sum(axis=1, dtype=np.uint64) ^ seed_word(about[0][0]))
        return Facts(words)

    planes = tuple(Plane(name, meaning, "absolute", source) for name, meaning in about)
    return Group(planes, draw, facts=facts, komi=komi)


def rules(source: str) -> Group:
    """Area and territory scoring; suicide of several stones legal; simple, positional (or Spight's) and
    situational ko."""

    def flags(games: Games, part: slice) -> NDArray[np.bool_]:
        scoring, suicide, ko = games.terms.scoring[part], games.suicide[part], games.ko_rule[part]
        positional = (ko == KO_POSITIONAL) | (ko == KO_SPIGHT)
        ko_rules = (ko == KO_SIMPLE, positional, ko == KO_SITUATIONAL)
        return np.stack([scoring == SCORING_AREA, scoring == SCORING_TERRITORY, suicide, *ko_rules], axis=1)

    about = (
        ("area_scoring", "1 everywhere under area scoring"),
        ("territory_scoring", "1 everywhere under territory scoring"),
        ("suicide_legal", "1 everywhere if suicide of several stones is legal"),
        ("simple_ko", "1 everywhere under the simple ko rule"),
        ("positional_superko", "1 everywhere under positional superko or Spight's rule"),
        ("situational_superko", "1 everywhere under situational superko"),
    )
    return _flag_group(about, source, flags)


def komi_steps(steps: tuple[int, ...], source: str) -> Group:
    """A plane for each step: White's komi, bonuses apart, is so much or more."""

    def flags(games: Games, part: slice) -> NDArray[np.bool_]:
        return games.terms.komi[part, None] >= np.array(steps, dtype=np.float32)

    about = tuple((f"komi_{step}", f"1 everywhere if White's komi is {step} or more") for step in steps)
    return _flag_group(about, source, flags, komi=True)


def handicap(source: str) -> Group:
    """Handicap games: two stones or more by the record, or two or more black setup stones and no white one."""
    about = (("handicap", "1 everywhere in a handicap game"),)
    return _flag_group(about, source, lambda games, part: _is_handicap(games, part)[:, None])


def _is_handicap(games: Games, part: slice) -> NDArray[np.bool_]:
    """Return which games of a part have a handicap: by the record, or by the stones of the start."""
    starts = games.setup_start[part.start : part.stop + 1]
    number, setup = len(starts) - 1, slice(starts[0], starts[-1])
    game = np.repeat(np.arange(number), np.diff(starts))
    points, colours = games.setup_points[setup], games.setup_colours[setup]
    chosen = np.flatnonzero(games.setup_plies[setup] == 0)[::-1]
    # A point that is set up twice holds the last stone: ``np.unique`` finds the first of the reversed order.
    last = chosen[np.unique(game[chosen] * 65_536 + points[chosen], return_index=True)[1]]
    black, white = (np.bincount(game[last[colours[last] == colour]], minlength=number) for colour in (BLACK, WHITE))
    by_stones: NDArray[np.bool_] = (black >= 2) & (white == 0)
    return by_stones | (games.terms.handicap[part] >= 2)
