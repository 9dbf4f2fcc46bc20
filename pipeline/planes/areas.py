"""Areas: the points that count for each side by the rules of the game, as the board stands."""

import numpy as np
from numpy.typing import NDArray

from pipeline.planes.group import Facts, Group, Plane, copy_sides
from pipeline.rules import SCORING_TERRITORY, TAX_NONE
from pipeline.traces import Traces
from pipeline.words import Words, mix_words, seed_word


def _rule_facts(traces: Traces) -> Facts:
    """Return the rules that decide what counts: which tax does not matter, and under territory scoring none does."""
    terms, suicide = traces.games.terms, traces.games.suicide
    rules = np.where(terms.scoring == SCORING_TERRITORY, 0, 1 + 2 * (terms.tax != TAX_NONE) + suicide)
    words: Words = mix_words(rules.astype(np.uint64) ^ seed_word("area rules"))
    return Facts(words[traces.game])


def own_opp_areas(source: str) -> Group:
    """Points that count for own and for opp; none under territory scoring, which counts after the encore."""

    def draw(traces: Traces, positions: NDArray[np.int64], out: NDArray[np.uint8], first: int) -> None:
        copy_sides(traces.areas.planes, traces.boards.to_play, positions, out, first)

    planes = tuple(
        Plane(f"{side}_area", f"points that count for {side} as the board stands", "mover", source)
        for side in ("own", "opp")
    )
    return Group(planes, draw, facts=_rule_facts)
