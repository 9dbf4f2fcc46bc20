"""DT to an ISO date."""

import datetime
import re
from collections.abc import Callable
from functools import lru_cache

from pipeline.headers.numbers import REMEMBERED, arabic, plain
from pipeline.reasons import Flag

_MAX_TEXT = 500
_YEAR = r"(?<![0-9])(?P<year>(?:1[0-9]|20)[0-9]{2})(?![0-9])"
_YEAR_FIRST = re.compile(
    rf"{_YEAR}(?:\s*[-/.年년]\s*(?P<month>[0-9]{{1,2}})(?![0-9])(?:\s*[-/.月월]\s*(?P<day>[0-9]{{1,2}})(?![0-9]))?)?"
)
_STANDARD = re.compile(r"(?P<year>(?:1[0-9]|20)[0-9]{2})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})")
_SPACED = re.compile(rf"{_YEAR}\s+(?P<month>0?[1-9]|1[0-2])\s+(?P<day>0?[1-9]|[12][0-9]|3[01])(?![0-9:])")
_COMPACT = re.compile(
    r"(?<![0-9])(?P<year>(?:1[5-9]|20)[0-9]{2})(?P<month>0[1-9]|1[0-2])(?P<day>0[1-9]|[12][0-9]|3[01])(?![0-9])"
)
_YEAR_LAST = re.compile(rf"(?<![-/.0-9])(?P<first>[0-9]{{1,2}})\s*[-/.]\s*(?P<second>[0-9]{{1,2}})\s*[-/.]\s*{_YEAR}")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NAMED = re.compile(
    rf"(?:(?<![0-9])(?P<before>[0-9]{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?)?\b(?P<name>{'|'.join(_MONTHS)})[a-z]*\.?,?\s+"
    rf"(?:(?P<after>[0-9]{{1,2}})(?:st|nd|rd|th)?\s*,?\s+)?{_YEAR}"
)
# Two digits that are no day are a year of the 20th century.
_SHORT = r"(?P<year>3[2-9]|[4-9][0-9])"
_SHORT_FIRST = re.compile(rf"^{_SHORT}[-/.](?P<month>[0-9]{{1,2}})[-/.](?P<day>[0-9]{{1,2}})$")
_SHORT_COMPACT = re.compile(rf"^{_SHORT}(?P<month>[0-9]{{2}})(?P<day>[0-9]{{2}})$")
_SHORT_LAST = re.compile(rf"^(?P<first>[0-9]{{1,2}})[-/.](?P<second>[0-9]{{1,2}})[-/.]{_SHORT}$")
# The year before an era's first, and how many years it has.
_ERAS = {
    **dict.fromkeys(("明治", "m"), (1867, 45)), **dict.fromkeys(("大正", "t"), (1911, 15)),
    **dict.fromkeys(("昭和", "s"), (1925, 64)), **dict.fromkeys(("平成", "h"), (1988, 31)),
    **dict.fromkeys(("令和", "r"), (2018, 81)), **dict.fromkeys(("民国", "民國"), (1911, 138)),
}  # fmt: skip
_ERA = re.compile(
    r"(?P<era>明治|大正|昭和|平成|令和|民国|民國)\s*(?P<year>元|[0-9]{1,3})\s*年"
    r"(?:\s*(?P<month>[0-9]{1,2})\s*月(?:\s*(?P<day>[0-9]{1,2})\s*日)?)?"
)
_ERA_LETTER = re.compile(r"^(?P<era>[mtshr])(?P<year>[0-9]{1,2})[-/.](?P<month>[0-9]{1,2})[-/.](?P<day>[0-9]{1,2})$")
_GREGORIAN_SINCE = 1873  # in Japan: before it, months and days are of the moon


def read_date(text: str | None) -> tuple[str | None, frozenset[Flag]]:
    """The first date in the text of DT, as precise as it surely states: YYYY, YYYY-MM or YYYY-MM-DD.

    Years 1000 to 2099, in the orders and words of several countries; where day and month could be
    either, the year alone. An era of Japan or China and a year of two digits: converted, with
    DATE_REPAIRED. None without a flag where the text is absent or blank; None with DATE_UNREAD where
    there is no year in it, or a month or day that the calendar does not have.
    """
    return _read((text or "")[:_MAX_TEXT])


@lru_cache(REMEMBERED)
def _read(text: str) -> tuple[str | None, frozenset[Flag]]:
    standard = _STANDARD.fullmatch(text)
    if standard is not None:  # most dates, at a tenth of the time
        date = _in_order(standard)
        return date, frozenset() if date is not None else frozenset({Flag.DATE_UNREAD})
    written = plain(text)
    if not written:
        return None, frozenset()
    for pattern, read in _WITH_CENTURY:
        match = pattern.search(written)
        if match is not None:
            date = read(match)
            return date, frozenset() if date is not None else frozenset({Flag.DATE_UNREAD})
    said = arabic(written)
    spelled = _YEAR_FIRST.search(said)
    if spelled is not None:
        date = _in_order(spelled)
        return date, frozenset() if date is not None else frozenset({Flag.DATE_UNREAD})
    for pattern, read in _WITHOUT_CENTURY:
        match = pattern.search(said)
        date = None if match is None else read(match)
        if date is not None:
            return date, frozenset({Flag.DATE_REPAIRED})
    return None, frozenset({Flag.DATE_UNREAD})


def _in_order(match: re.Match[str]) -> str | None:
    return _iso(int(match["year"]), match["month"], match["day"])


def _short_in_order(match: re.Match[str]) -> str | None:
    return _iso(1900 + int(match["year"]), match["month"], match["day"])


def _named(match: re.Match[str]) -> str | None:
    month = _MONTHS.index(match["name"]) + 1
    return _iso(int(match["year"]), str(month), match["before"] or match["after"])


def _year_last(match: re.Match[str]) -> str | None:
    """Day and month in the one order in which they can be; a date only by its year where both can."""
    year = int(match["year"]) + (1900 if len(match["year"]) == 2 else 0)
    first, second = match["first"], match["second"]
    dates = {_iso(year, first, second), _iso(year, second, first)} - {None}
    return dates.pop() if len(dates) == 1 else _iso(year, None, None) if dates else None


def _of_era(match: re.Match[str]) -> str | None:
    before, years = _ERAS[match["era"]]
    number = 1 if match["year"] == "元" else int(match["year"])
    if not 1 <= number <= years:
        return None
    if before + number < _GREGORIAN_SINCE:
        return _iso(before + number, None, None)
    return _iso(before + number, match["month"], match["day"])


def _iso(year: int, month: str | None, day: str | None) -> str | None:
    try:
        date = datetime.date(year, int(month or 1), int(day or 1))
    except ValueError:
        return None
    return date.isoformat()[: 10 if day else 7 if month else 4]


_Reader = Callable[[re.Match[str]], str | None]
_WITH_CENTURY: tuple[tuple[re.Pattern[str], _Reader], ...] = (
    (_NAMED, _named), (_YEAR_LAST, _year_last), (_SPACED, _in_order), (_YEAR_FIRST, _in_order), (_COMPACT, _in_order),
)  # fmt: skip
_WITHOUT_CENTURY: tuple[tuple[re.Pattern[str], _Reader], ...] = (
    (_ERA, _of_era), (_ERA_LETTER, _of_era), (_SHORT_FIRST, _short_in_order), (_SHORT_COMPACT, _short_in_order),
    (_SHORT_LAST, _year_last),
)  # fmt: skip
