"""Values of a configuration that are written in more ways than one, or checked as a whole: sizes, ranges, dates."""

import re
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

MAX_SIDE = 25
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


def _byte_count(value: object) -> object:
    """Read ``"16 MiB"`` as 16777216; everything else is left to the type check."""
    if not isinstance(value, str):
        return value
    digits = value.strip().rstrip("BKMGIbkmgi ")
    unit = value.strip()[len(digits) :].strip().upper()
    try:
        return int(float(digits) * _UNITS[unit])
    except (KeyError, ValueError, OverflowError):
        raise ValueError(f"not a number of bytes: {value!r} (write 16777216, '16MiB' or '2GB')") from None


Bytes = Annotated[int, BeforeValidator(_byte_count), Field(ge=1, le=2**62)]


def _board_size(value: object) -> tuple[int, int]:
    """Read a board size: ``19``, ``"9x13"`` or ``[9, 13]`` (rows x columns)."""
    if isinstance(value, int) and not isinstance(value, bool):
        rows = cols = value
    elif isinstance(value, str) and re.fullmatch("[0-9]{1,4}x[0-9]{1,4}", value.lower()):
        rows, cols = (int(side) for side in value.lower().split("x"))
    elif isinstance(value, (list, tuple)) and len(value) == 2 and all(type(side) is int for side in value):
        rows, cols = value
    else:
        raise ValueError(f'not a board size: {value!r} (write 19, or "9x13" for 9 rows and 13 columns)')
    if not (1 <= rows <= MAX_SIDE and 1 <= cols <= MAX_SIDE):
        raise ValueError(f"a board side must be 1 to {MAX_SIDE}, not {value!r}")
    return rows, cols


def _board_sizes(value: object) -> object:
    """Read a list of board sizes, one of them, or "any"."""
    if value == "any":
        return value
    if isinstance(value, (int, str)):
        return (_board_size(value),)
    if not isinstance(value, (list, tuple)) or not value:
        raise ValueError('write a list of board sizes, [19] or [9, "9x13"], or "any"')
    return tuple(map(_board_size, value))


Sizes = Annotated[tuple[tuple[int, int], ...] | Literal["any"], BeforeValidator(_board_sizes)]


def _two(example: str) -> BeforeValidator:
    """Return a check that a value is a list of two, which quotes an example."""

    def check(value: object) -> object:
        if not isinstance(value, (list, tuple)) or len(value) != 2:
            raise ValueError(f"write the first and the last in brackets, e.g. {example}")
        return value

    return BeforeValidator(check)


def _in_order(span: tuple[Any, Any]) -> tuple[Any, Any]:
    """Refuse a range that is empty because its ends are exchanged."""
    if span[0] > span[1]:
        raise ValueError(f"nothing lies between {span[0]} and {span[1]}: write the smaller one first")
    return span


def _dates_in_order(span: tuple[str, str]) -> tuple[str, str]:
    """Refuse an empty range of dates; ["2016-03", "2016"] is from March to December."""
    if span[0][: len(span[1])] > span[1]:
        raise ValueError(f"nothing lies between {span[0]} and {span[1]}: write the earlier one first")
    return span


def _date(value: str) -> str:
    """Check a date that may lack the day, or the month and the day."""
    try:
        if not re.fullmatch(r"[0-9]{4}(-[0-9]{2}){0,2}", value):
            raise ValueError
        date.fromisoformat(f"{value}-01-01"[:10])  # what is left out begins with the first
    except ValueError:
        raise ValueError(f"not a date: {value!r} (write 2016-03-09, 2016-03 or 2016)") from None
    return value


def _path(value: str) -> str:
    """Refuse what is no path on any system."""
    if "\0" in value:
        raise ValueError("a path cannot hold the character NUL")
    return value


FilePath = Annotated[str, AfterValidator(_path)]
Komi = Annotated[float, Field(ge=-150, le=150)]
Span = Annotated[tuple[int, int], AfterValidator(_in_order), _two("[0, 9]")]
KomiSpan = Annotated[tuple[float, float], AfterValidator(_in_order), _two("[6.5, 7.5]")]
Dates = Annotated[
    tuple[Annotated[str, AfterValidator(_date)], Annotated[str, AfterValidator(_date)]],
    AfterValidator(_dates_in_order),
    _two('["2010-01-01", "2019-12-31"]'),
]
