"""KM to points of komi."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from pipeline.headers.numbers import REMEMBERED, arabic, plain, read_amount
from pipeline.reasons import Flag

MAX_KOMI = 150.0  # either way; records of handicap games with a reverse komi reach -100

_MAX_TEXT = 200
_NUMBER = re.compile(r"(?P<number>[+-]?(?:[0-9]{1,9}(?:[.,][0-9]*)?|[.,][0-9]+))\s*(?:points?|pts?\.?|moku|目|집)?")


@dataclass(frozen=True, slots=True)
class Writer:
    """How a program writes KM. ``hundredths``: times 100, sometimes in stones, two points each.
    ``zero_is_unknown``: 0 in an even game whose komi it does not know."""

    hundredths: bool = False
    zero_is_unknown: bool = False


ANY_WRITER = Writer()
_FOX = Writer(hundredths=True, zero_is_unknown=True)
# A part of AP, lower case. Of 146 even games with KM[0] and a margin, as Fox and its readers export them, all ended
# by half a point.
_WRITERS = (("foxwq", _FOX), ("yuanyu", _FOX), ("sgfc:2.0", Writer(hundredths=True)))
# The Fox server's export also names this program alone, which never writes ranks in Chinese itself.
_FOX_ALIAS = "gnu go:3.8"
_FOX_RANKS = re.compile("[0-9][段级]")
_HUNDREDTHS_FROM = 25.0  # such a writer's number below this is a komi as it stands
_COUNTING_UNITS = frozenset({2.75, 3.25, 3.5, 3.75})  # halves of 5.5, 6.5, 7 and 7.5
# Of any other writer: beyond MAX_KOMI, and hundredths of a komi that cannot be in stones.
_PLAIN_HUNDREDTHS = frozenset(range(400, 950, 50))

_NO_KOMI = re.compile(r"(?:[无無不]贴?貼?[目子]?|コミなし|コミ無し|込みなし|덤\s*없음|no\s*komi)")
_REVERSED = re.compile(r"倒(?=[贴貼])|逆(?=コミ)|역(?=덤)|白[棋方番]?(?=[贴貼])")  # White gives it
_LEAD = re.compile(r"(?:互先|分先|先番|黑|黒|흑|[棋方番大贴貼目子还還出:,、은]|コミ|込み|덤|komi|\s){0,20}")
_TAIL = re.compile(r"(?:コミ|込み|出し?|[贴貼还還]|덤|[\s.。!])*")


def writer_of(raw: Mapping[str, str]) -> Writer:
    """The conventions of the program that wrote a record, by the header texts ``raw``."""
    application = raw.get("AP", "").strip().lower()
    for part, writer in _WRITERS:
        if part in application:
            return writer
    if application == _FOX_ALIAS and any(_FOX_RANKS.search(raw.get(name, "")) for name in ("BR", "WR")):
        return _FOX
    return ANY_WRITER


def read_komi(
    km: str | None, writer: Writer = ANY_WRITER, even: bool = False, margin: float | None = None
) -> tuple[float | None, frozenset[Flag]]:
    """Komi in points from the text of KM. ``even``: a game without handicap; ``margin``: its score in points.

    Absent: None without a flag. A text that is no number, or a komi beyond 150 points either way:
    None with KOMI_UNUSABLE. In words or another unit: converted, with KOMI_REPAIRED. A 0 in an even
    game whose writer means "unknown" by it, or that ends by half a point, which no komi of 0 can
    do: None with KOMI_UNRECORDED.
    """
    if km is None:
        return None, frozenset()
    value, flags = _read(km[:_MAX_TEXT], writer.hundredths)
    if value == 0 and even and (writer.zero_is_unknown or (margin is not None and margin % 1 == 0.5)):
        return None, frozenset({Flag.KOMI_UNRECORDED})
    return value, flags


@lru_cache(REMEMBERED)
def _read(km: str, in_hundredths: bool) -> tuple[float | None, frozenset[Flag]]:
    text = plain(km)
    match = _NUMBER.fullmatch(text)
    # Adding zero turns -0.0 into 0.0.
    value = float(match["number"].replace(",", ".")) + 0.0 if match else _in_words(arabic(text))
    if value is None:
        return None, frozenset({Flag.KOMI_UNUSABLE})
    hundredths = abs(value) >= _HUNDREDTHS_FROM if in_hundredths else abs(value) in _PLAIN_HUNDREDTHS
    if hundredths:
        value = value / 50 if value / 100 in _COUNTING_UNITS else value / 100
    if abs(value) > MAX_KOMI:
        return None, frozenset({Flag.KOMI_UNUSABLE})
    return value, frozenset({Flag.KOMI_REPAIRED} if hundredths or match is None else ())


def _in_words(text: str) -> float | None:
    """``黑贴3又3/4子``, ``コミ6目半``: words that say who gives it, an amount, and nothing else."""
    if _NO_KOMI.fullmatch(text):
        return 0.0
    text, turned = _REVERSED.subn("", text)
    lead = _LEAD.match(text)
    found = None if lead is None else read_amount(text, lead.end())
    if found is None or not _TAIL.fullmatch(text, found[1]):
        return None
    return -found[0].points if turned else found[0].points
