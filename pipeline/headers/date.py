"""DT to an ISO date."""

import datetime
import re
import unicodedata

from pipeline.reasons import Flag

_DATE = re.compile(
    r"(?<![0-9])(?P<year>[12][0-9]{3})(?![0-9])"
    r"(?:\s*[-/.年]\s*(?P<month>[0-9]{1,2})(?![0-9])"
    r"(?:\s*[-/.月]\s*(?P<day>[0-9]{1,2})(?![0-9]))?)?"
)


def read_date(text: str | None) -> tuple[str | None, frozenset[Flag]]:
    """The first date in the text of DT, as precise as it states: YYYY, YYYY-MM or YYYY-MM-DD.

    Written with ``-``, ``/``, ``.`` or in Chinese and Japanese; years 1000 to 2999. None without a
    flag where the text is absent or blank; None with DATE_UNREAD where there is no year in it, or a
    month or day that the calendar does not have.
    """
    plain = unicodedata.normalize("NFKC", (text or "")[:500]).strip()
    if not plain:
        return None, frozenset()
    match = _DATE.search(plain)
    date = None if match is None else _iso(match["year"], match["month"], match["day"])
    return date, frozenset() if date is not None else frozenset({Flag.DATE_UNREAD})


def _iso(year: str, month: str | None, day: str | None) -> str | None:
    try:
        date = datetime.date(int(year), int(month or 1), int(day or 1))
    except ValueError:
        return None
    return date.isoformat()[: 10 if day else 7 if month else 4]
