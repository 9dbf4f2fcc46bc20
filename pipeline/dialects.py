"""Dialects of single servers and sites: other names for headers, and who writes handicap stones as moves.

Header texts are kept as they are written; what is here stands between them and the modules that read them.
"""

import re
from collections.abc import Mapping

from pipeline.reasons import Flag

# Sina and the Nihon Kiin: event, date and komi under names of their own.
_OLD_NAMES = {"TE": "EV", "RD": "DT", "KO": "KM"}
# FF4 has TE (a good move, once or twice) and KO (an illegal move is played) as well, below the root: without a text.
_NO_TEXT = frozenset({"", "1", "2"})
OTHER_NAMES = frozenset(_OLD_NAMES)

_HALF = re.compile(r"\s*[0-9]{1,2}\.50*\s*")
# One player's; "&" joins those of a team.
_RANKED_NAME = re.compile(
    r"(?P<name>[^&]*?[^&\s(])\s*"
    r"(?:(?<![0-9０-９十])(?P<rank>(?:[0-9０-９]{1,2}|[初一二三四五六七八九])\s*[段级級단])"
    r"|(?:(?<=\s)|\()\s*(?P<short>[1-9]\s*(?:[dp]|dan)))\)?\s*"
)

# Parts of AP, SO or PC, lower case, of those that write handicap stones as moves and HA[0].
_STONES_AS_MOVES = ("foxwq", "yuanyu")


def standard_texts(raw: Mapping[str, str]) -> tuple[Mapping[str, str], frozenset[Flag]]:
    """Return header texts under the names of the standard, and the flags of what was found elsewhere.

    A name of its own is read where the standard one is missing or blank; a komi where GM holds a number with a half;
    a rank where a player's name ends with one.
    """
    ranked_apart = raw.get("BR", "").strip() and raw.get("WR", "").strip()
    if ranked_apart and OTHER_NAMES.isdisjoint(raw) and "." not in raw.get("GM", ""):
        return raw, frozenset()  # nothing to look for, as in most records
    texts = dict(raw)
    flags = set()
    for other, name in _OLD_NAMES.items():
        if raw.get(other, "").strip() not in _NO_TEXT and not raw.get(name, "").strip():
            texts[name] = raw[other]
            flags.add(Flag.OTHER_NAMES)
    if _HALF.fullmatch(raw.get("GM", "")) and not texts.get("KM", "").strip():
        texts["KM"] = raw["GM"]
        flags.add(Flag.KOMI_IN_GM)
    for player, rank in (("PB", "BR"), ("PW", "WR")):
        if not raw.get(rank, "").strip() and (ranked := _RANKED_NAME.fullmatch(raw.get(player, ""))):
            texts[player], texts[rank] = ranked["name"], ranked["rank"] or ranked["short"]
            flags.add(Flag.RANK_IN_NAME)
    return texts, frozenset(flags)


def writes_stones_as_moves(raw: Mapping[str, str]) -> bool:
    """Whether a record is of a listed server, which writes handicap stones as Black's first moves."""
    writer = " ".join(raw.get(name, "") for name in ("AP", "SO", "PC")).lower()
    return any(part in writer for part in _STONES_AS_MOVES)
