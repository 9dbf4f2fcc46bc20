"""HA to a number of handicap stones."""

import re
import unicodedata

from pipeline.reasons import Flag

MAX_HANDICAP = 625  # the points of the largest board

_NUMBER = re.compile(r"\s*\+?([0-9]{1,3})\s*")


def read_handicap(text: str | None) -> tuple[int, frozenset[Flag]]:
    """Handicap stones from the text of HA; 0 where it is absent, 0 with HANDICAP_UNUSABLE where it is no number."""
    if text is None:
        return 0, frozenset()
    match = _NUMBER.fullmatch(unicodedata.normalize("NFKC", text[:100]))
    if match is None or int(match[1]) > MAX_HANDICAP:
        return 0, frozenset({Flag.HANDICAP_UNUSABLE})
    return int(match[1]), frozenset()
