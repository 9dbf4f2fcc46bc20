"""HA to a number of handicap stones."""

import re
from functools import lru_cache

from pipeline.headers.numbers import REMEMBERED, arabic, plain
from pipeline.reasons import Flag

MAX_HANDICAP = 625  # the points of the largest board

_MAX_TEXT = 100
_NUMBER = re.compile(r"\+?([0-9]{1,3})(?:\.0*)?")
# In words, in the last part of the text: "先二先.先" is a match of alternating handicaps, and this game's.
_STONES = re.compile(r"(?<![0-9])([0-9]{1,3})\s*(?:子局?|점|stones?)$")
# Black moves first, with or without komi: an even start.
_EVEN = re.compile(r"(?:先|先番|互先|分先|猜先|호선|정선|맞바둑|even|nigiri|no handicap)$")


def read_handicap(text: str | None) -> tuple[int, frozenset[Flag]]:
    """Handicap stones from the text of HA; 0 where it is absent.

    In words (``让二子``, ``先相先``): with HANDICAP_REPAIRED. No number of stones, or more than fit on
    a board: 0 with HANDICAP_UNUSABLE.
    """
    return (0, frozenset()) if text is None else _read(text[:_MAX_TEXT])


@lru_cache(REMEMBERED)
def _read(text: str) -> tuple[int, frozenset[Flag]]:
    written = plain(text)
    number = _NUMBER.fullmatch(written)
    if number is not None and int(number[1]) <= MAX_HANDICAP:
        return int(number[1]), frozenset()
    said = arabic(re.split("[.。]", written)[-1])
    stones = _STONES.search(said)
    if stones is not None and int(stones[1]) <= MAX_HANDICAP:
        return int(stones[1]), frozenset({Flag.HANDICAP_REPAIRED})
    if stones is None and _EVEN.search(said):
        return 0, frozenset({Flag.HANDICAP_REPAIRED})
    return 0, frozenset({Flag.HANDICAP_UNUSABLE})
