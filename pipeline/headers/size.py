"""SZ to a board."""

import re
from functools import lru_cache

from pipeline.headers.numbers import REMEMBERED, plain
from pipeline.reasons import Flag, Reason
from pipeline.values import MAX_SIDE

DEFAULT_SIDE = 19
_MAX_TEXT = 100
_SIZE = re.compile(r"0*([0-9]+)\s*(?::\s*0*([0-9]+))?")


def read_size(text: str | None) -> tuple[tuple[int, int] | Reason, frozenset[Flag]]:
    """Rows and columns from the text of SZ: one number, or ``columns:rows``.

    Absent or blank: 19x19 with SIZE_ASSUMED. ``Reason.BAD_SIZE`` where it is no size,
    ``Reason.UNSUPPORTED_SIZE`` where a side is larger than 25.
    """
    return _read((text or "")[:_MAX_TEXT])


@lru_cache(REMEMBERED)
def _read(text: str) -> tuple[tuple[int, int] | Reason, frozenset[Flag]]:
    written = plain(text)
    if not written:
        return (DEFAULT_SIDE, DEFAULT_SIDE), frozenset({Flag.SIZE_ASSUMED})
    match = _SIZE.fullmatch(written)
    if match is None:
        return Reason.BAD_SIZE, frozenset()
    cols = int(match[1])
    rows = int(match[2] or match[1])
    if min(rows, cols) < 1:
        return Reason.BAD_SIZE, frozenset()
    if max(rows, cols) > MAX_SIDE:
        return Reason.UNSUPPORTED_SIZE, frozenset()
    return (rows, cols), frozenset()
