"""KM to points of komi."""

import re
import unicodedata

from pipeline.reasons import Flag

MAX_KOMI = 150.0  # either way; records of handicap games with a reverse komi reach -100

_MAX_TEXT = 200
_NUMBER = re.compile(
    r"\s*(?P<number>[+-]?(?:[0-9]{1,9}(?:[.,。][0-9]*)?|[.,。][0-9]+))\s*(?:points?|pts?\.?|moku|目|집)?\s*",
    re.IGNORECASE,
)
# Writers (a part of AP, lower case) that write komi times 100, and sometimes in Chinese counting
# units (stones, two points each): these values are halves of the usual 5.5, 6.5, 7 and 7.5.
_HUNDREDTHS_WRITERS = ("foxwq", "sgfc:2.0")
_HUNDREDTHS_FROM = 25.0  # such a writer's number below this is a komi as it stands
_COUNTING_UNITS = frozenset({2.75, 3.25, 3.5, 3.75})


def read_komi(km: str | None, application: str | None) -> tuple[float | None, frozenset[Flag]]:
    """Komi in points from the text of KM, with the writer (AP) to tell its unit.

    Absent: None without a flag. A text that is no number, or a komi beyond 150 points either way:
    None with KOMI_UNUSABLE. Another unit: converted, with KOMI_REPAIRED.
    """
    if km is None:
        return None, frozenset()
    value = _number(km)
    if value is None:
        return None, frozenset({Flag.KOMI_UNUSABLE})
    flags: frozenset[Flag] = frozenset()
    if abs(value) >= _HUNDREDTHS_FROM and _writes_hundredths(application):
        value /= 100
        if value in _COUNTING_UNITS:
            value *= 2
        flags = frozenset({Flag.KOMI_REPAIRED})
    if abs(value) > MAX_KOMI:
        return None, frozenset({Flag.KOMI_UNUSABLE})
    return value, flags


def _number(text: str) -> float | None:
    match = _NUMBER.fullmatch(unicodedata.normalize("NFKC", text[:_MAX_TEXT]))
    if match is None:
        return None
    # Adding zero turns -0.0 into 0.0.
    return float(match["number"].replace(",", ".").replace("。", ".")) + 0.0


def _writes_hundredths(application: str | None) -> bool:
    return application is not None and any(writer in application.lower() for writer in _HUNDREDTHS_WRITERS)
