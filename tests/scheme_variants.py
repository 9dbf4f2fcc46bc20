"""Schemes for tests: every scheme, every value of every option, and some that are composed; and games to draw."""

import os
from dataclasses import dataclass
from functools import cache
from random import Random

import numpy as np
from numpy.typing import NDArray
from random_games import RULES, Line, ko_fight, random_record
from scheme_rows import encode_all, unpacked

from pipeline.compose import compose
from pipeline.schemes import SCHEMES, Scheme, find_scheme, scheme_options

WITHOUT_JIT = os.environ.get("NUMBA_DISABLE_JIT") == "1"


@dataclass(frozen=True, slots=True)
class Variant:
    """A named scheme with the options that are not the default, or the groups of a composed one."""

    name: str
    options: tuple[tuple[str, str], ...] = ()
    groups: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " ".join((self.name, *(f"{option}={value}" for option, value in self.options), *self.groups))

    @property
    def scheme(self) -> Scheme:
        """The scheme itself."""
        return compose(self.groups) if self.groups else find_scheme(self.name, dict(self.options))


# Each value but the defaults of each option alone, and the last values of all options of a scheme together.
CHANGED = [
    Variant(name, ((option.name, value),))
    for name in SCHEMES
    for option in scheme_options(name)
    for value in option.values[1:]
]
CHANGED += [
    Variant(name, tuple((option.name, option.values[-1]) for option in scheme_options(name)))
    for name in SCHEMES
    if len(scheme_options(name)) > 1
]
COMPOSED = [
    Variant("composed", groups=groups)
    for groups in (
        ("stones=2", "bans"),
        ("areas", "stones", "ko"),
        ("rules", "liberties=3", "komi"),
        ("black_white=3", "handicap", "white_to_move"),
        ("katago_globals", "empty", "sensible", "zeros"),
        ("ages=5", "legal", "side_liberties"),
        ("recent=3", "ko", "opp_targets", "opp_makes_ko"),
        ("ladder_moves", "edge=2", "lines", "ladders"),
    )
]
VARIANTS = [*(Variant(name) for name in SCHEMES), *CHANGED, *COMPOSED]


def _lines() -> list[Line]:
    """Return games with kos, bans of superko, setup stones at the start and in mid-game, and some larger boards."""
    rng, superko = Random("options"), [rules for rules in RULES if rules.ko != "simple"]
    narrow = ((2, 2), (1, 5), (2, 4))
    lines = [
        random_record(rng, narrow[number % 3], 30, rules=rules, in_turn=1)
        for number, rules in enumerate((*superko, *superko))
    ]
    for number, rules in enumerate((*superko, *RULES)):
        size, length = (((2, 3), 24), ((3, 4), 24), ((5, 5), 30), ((4, 6), 24))[number % 4]
        setups = ((), (0, length // 2), (3,))[number % 3]
        lines.append(random_record(rng, size, length, setups, 1 + number % 2, rules, 0.9))
        lines.append(ko_fight(rng, (3 + number % 2, 4 + number % 3), 8, rules))
    if WITHOUT_JIT:
        return lines[::4]
    return [*lines, random_record(rng, (9, 9), 90, (0,)), random_record(rng, (7, 9), 60, (9,))]


LINES = _lines()
FRAME = (9, 10)


@cache
def rows_of(variant: Variant) -> NDArray[np.uint8]:
    """Return uint8[T, P, *FRAME]: the planes of all positions of ``LINES``."""
    return unpacked(encode_all(variant.scheme, LINES, FRAME)[0], FRAME)
