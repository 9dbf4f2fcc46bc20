"""BR and WR to one scale."""

import re
from functools import lru_cache

from pipeline.headers.numbers import REMEMBERED, arabic, plain
from pipeline.reasons import Flag

_MAX_TEXT = 100
_UNKNOWN = frozenset({"", "-", "--", "?", "??", "nr", "n/a", "none", "unknown"})
_KYU = ("k", "kyu", "级", "級", "급")
_TITLE_RANK = 49
_TITLES = frozenset({
    "棋圣", "棋聖", "名人", "本因坊", "王座", "天元", "十段", "碁圣", "碁聖", "国手", "國手",
    "기성", "명인", "국수", "왕위", "kisei", "meijin", "honinbo", "oza", "tengen", "judan", "gosei", "guksu",
})  # fmt: skip
_PROFESSIONAL = r"职业|職業|专业|專業|プロ|프로|prof?(?:essional)?\.?"
_AMATEUR = r"业余|業餘|业|アマ|아마|ama(?:teur)?\.?"
_RANK = re.compile(
    rf"(?:(?P<professional>{_PROFESSIONAL}|p)|(?P<amateur>{_AMATEUR}))?\s*"
    r"(?P<number>[0-9]{1,2}|初)(?:st|nd|rd|th)?\s*(?P<unit>kyu|dan|[kdp级級급段단])?"
    rf"\s*(?:\(?(?P<professional_after>{_PROFESSIONAL}|p(?:\s+dan)?)\)?|\(?(?:{_AMATEUR})\)?)?\s*[?*+!]*"
)
# What follows a rank after a comma or in brackets, a title for example, does not change it; another rank does.
_REMARK = re.compile(r"\s*[,(;].*", re.DOTALL)
_ONE_OF_SEVERAL = re.compile(r"[0-9]\s*[kdp级級급段단]")
# A rating in points, as of computer servers; a women's title, which tells no dan.
_OTHER = re.compile(r"[0-9]{3,4}(?:\.[0-9]+)?\s*[?*]?|(?:female|women'?s|女流|女子|여류)\s*.+", re.DOTALL)


def read_rank(text: str | None) -> tuple[int | None, frozenset[Flag]]:
    """A rank as a number that grows with strength.

    30 kyu is 1 and 1 kyu is 30; amateur 1 to 9 dan are 31 to 39; professional 1 to 9 dan are 41 to 49.
    A dan that does not say "professional" is amateur. A title counts as professional 9 dan, with
    RANK_TITLE. None without a flag where the text is absent, blank or says that there is no rank; None
    with RANK_OTHER where it is a rating or a team's, with RANK_UNREAD where it says something else.
    """
    return _read((text or "")[:_MAX_TEXT])


@lru_cache(REMEMBERED)
def _read(text: str) -> tuple[int | None, frozenset[Flag]]:
    written = plain(text)
    if written in _UNKNOWN:
        return None, frozenset()
    if written in _TITLES:
        return _TITLE_RANK, frozenset({Flag.RANK_TITLE})
    said = arabic(written)
    match = _RANK.match(said)
    if match is not None:
        remark = said[match.end() :]
        if not remark or (_REMARK.fullmatch(remark) and not _ONE_OF_SEVERAL.search(remark)):
            rank = _on_scale(match)
            if rank is not None:
                return rank, frozenset()
    other = _OTHER.fullmatch(said) or len(_ONE_OF_SEVERAL.findall(said)) > 1
    return None, frozenset({Flag.RANK_OTHER if other else Flag.RANK_UNREAD})


def rank_name(rank: int) -> str:
    """Return a rank of the scale as it is spoken of: ``5k``, ``3d``, ``9p``."""
    return f"{31 - rank}k" if rank <= 30 else f"{rank - 30}d" if rank <= 39 else f"{rank - 40}p"


def _on_scale(match: re.Match[str]) -> int | None:
    value = 1 if match["number"] == "初" else int(match["number"])
    unit = match["unit"]
    if unit in _KYU:
        return 31 - value if 1 <= value <= 30 else None
    if not 1 <= value <= 9:
        return None
    if match["professional"] or match["professional_after"] or unit == "p":
        return 40 + value
    return 30 + value if unit or match["amateur"] else None
