"""BR and WR to one scale."""

import re
import unicodedata

from pipeline.reasons import Flag

_NUMERALS = {numeral: number for number, numeral in enumerate("一二三四五六七八九", start=1)}
_UNKNOWN = frozenset({"", "-", "--", "?", "??", "nr", "n/a", "none", "unknown"})
_UNITS = {
    **dict.fromkeys(("k", "kyu", "级", "級", "급"), "k"),
    **dict.fromkeys(("d", "dan", "段", "단"), "d"),
    **dict.fromkeys(("p", "dan pro", "p dan", "pro", "段 pro"), "p"),
}
_RANK = re.compile(
    r"(?P<number>[0-9]{1,2}|[一二三四五六七八九])\s*(?P<unit>dan pro|p dan|pro|kyu|dan|[kdp级級급段단])\s*[?*]*"
)
_PROFESSIONAL = re.compile(r"p\s*(?P<number>[1-9])\s*(?:段|d|dan)?\s*[?*]*")


def read_rank(text: str | None) -> tuple[int | None, frozenset[Flag]]:
    """A rank as a number that grows with strength.

    30 kyu is 1 and 1 kyu is 30; amateur 1 to 9 dan are 31 to 39; professional 1 to 9 dan are 41 to 49.
    None without a flag where the text is absent, blank or says that there is no rank; None with
    RANK_UNREAD where it says something else (a rating, a title, several ranks).
    """
    plain = unicodedata.normalize("NFKC", (text or "")[:100]).strip().lower()
    if plain in _UNKNOWN:
        return None, frozenset()
    professional = _PROFESSIONAL.fullmatch(plain)
    if professional:
        return 40 + int(professional["number"]), frozenset()
    match = _RANK.fullmatch(plain)
    rank = None if match is None else _on_scale(match["number"], _UNITS[match["unit"]])
    return rank, frozenset() if rank is not None else frozenset({Flag.RANK_UNREAD})


def rank_name(rank: int) -> str:
    """Return a rank of the scale as it is spoken of: ``5k``, ``3d``, ``9p``."""
    return f"{31 - rank}k" if rank <= 30 else f"{rank - 30}d" if rank <= 39 else f"{rank - 40}p"


def _on_scale(number: str, unit: str) -> int | None:
    value = _NUMERALS.get(number) or int(number)
    if unit == "k":
        return 31 - value if 1 <= value <= 30 else None
    if not 1 <= value <= 9:
        return None
    return value + (30 if unit == "d" else 40)
