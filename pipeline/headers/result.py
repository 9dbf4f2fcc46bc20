"""RE to a winner, the way the game ended, and a margin in points."""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from pipeline.config import ResultKind
from pipeline.reasons import Flag

Winner = Literal["B", "W", "draw", "void"]

_MAX_TEXT = 200


@dataclass(frozen=True, slots=True)
class Result:
    """``winner`` None: not known. ``margin``: points, only with kind ``score`` (0 for a draw)."""

    winner: Winner | None
    kind: ResultKind
    margin: float | None = None


UNKNOWN = Result(None, "unknown")
DRAW = Result("draw", "score", 0.0)
VOID = Result("void", "void")

# The whole text, lower case.
_WHOLE: dict[str, Result] = {
    **dict.fromkeys(("", "?", "unknown"), UNKNOWN),
    **dict.fromkeys(("0", "0.0", "draw", "jigo", "tie"), DRAW),
    **dict.fromkeys(("和", "和棋", "平局", "持碁", "持棋", "ジゴ", "무승부", "빅"), DRAW),
    **dict.fromkeys(("void", "no result", "無勝負", "无胜负", "무효"), VOID),
    "b": Result("B", "unknown"),
    "w": Result("W", "unknown"),
}  # fmt: skip
# The word after "B+" or "W+", lower case; an illegal move loses by forfeit.
_WORDS: dict[str, ResultKind] = {
    "r": "resign", "res": "resign", "resign": "resign", "resigned": "resign", "resignation": "resign",
    "t": "time", "time": "time", "timeout": "time",
    "f": "forfeit", "forfeit": "forfeit", "illegal": "forfeit",
}  # fmt: skip
# Parts of a sentence in Chinese, Japanese or Korean.
_PARTS: tuple[tuple[str, ResultKind], ...] = (
    ("中盘", "resign"), ("中盤", "resign"), ("中押", "resign"), ("认输", "resign"), ("認輸", "resign"),
    ("投了", "resign"), ("불계", "resign"),
    ("超时", "time"), ("超時", "time"), ("时间", "time"), ("時間", "time"), ("시간", "time"),
    ("弃权", "forfeit"), ("棄權", "forfeit"), ("棄権", "forfeit"), ("犯规", "forfeit"), ("反則", "forfeit"),
    ("不戦", "forfeit"), ("不战", "forfeit"), ("반칙", "forfeit"), ("기권", "forfeit"),
)  # fmt: skip
_SIDES: dict[str, Winner] = {"黑": "B", "黒": "B", "흑": "B", "白": "W", "백": "W"}
_LOSES = re.compile("负|負|败|敗|패")
_DRAWN = re.compile(r"[手,、，\s](?:和棋|持碁|持棋|ジゴ)$")  # after the number of moves
_MORE = re.compile(r"[\sちり利。黑黒흑白백]")  # of a bare win: an ending, or the name of the loser
_SENTENCE = re.compile(r"(?P<side>[黑黒흑白백])(?P<before>[^黑黒흑白백胜勝승]*)[胜勝승](?P<after>.*)", re.DOTALL)
_PLUS = re.compile(r"(?P<side>[bw])\s*\+\s*(?P<rest>.*)", re.DOTALL)
_WORD = re.compile(r"[a-z]+")
_POINTS = re.compile(
    r"(?P<whole>[0-9]{1,4}(?:[.,][0-9]{0,6})?)?(?:\s*[又と]?\s*(?P<part>[1-9])/(?P<of>[2-9])|(?![0-9/]))"
    r"\s*(?P<unit>子|目|집)?(?P<half>半|반)?(?P<unit_after>子|目|집)?"
)


def read_result(text: str | None) -> tuple[Result, frozenset[Flag]]:
    """The result that RE states; RESULT_UNREAD where a text is there and something in it is not understood.

    One counting unit of the Chinese area count (a stone, 子) is two points. A margin of 0, or one
    that is no multiple of a quarter of a point, is a server's code and not a score: the winner stays,
    the kind is unknown.
    """
    plain = unicodedata.normalize("NFKC", (text or "")[:_MAX_TEXT]).strip().lower()
    if plain in _WHOLE:
        return _WHOLE[plain], frozenset()
    plus = _PLUS.fullmatch(plain)
    if plus:
        return _won("B" if plus["side"] == "b" else "W", _after_plus(plus["rest"]), plus["rest"] == "")
    if _DRAWN.search(plain):
        return DRAW, frozenset()
    sentence = _SENTENCE.search(plain)
    if sentence and not _LOSES.search(plain):
        said = (sentence["before"], sentence["after"])
        return _won(_SIDES[sentence["side"]], _in_sentence(said), not _MORE.sub("", "".join(said)))
    return UNKNOWN, frozenset({Flag.RESULT_UNREAD})


def _won(winner: Winner, how: tuple[ResultKind, float | None], complete: bool) -> tuple[Result, frozenset[Flag]]:
    unread = how[0] == "unknown" and not complete
    return Result(winner, *how), frozenset({Flag.RESULT_UNREAD}) if unread else frozenset()


def _after_plus(rest: str) -> tuple[ResultKind, float | None]:
    """What follows the plus sign: a word or a number, a remark in words after either is allowed."""
    word = _WORD.match(rest)
    if word:
        return _WORDS.get(word[0], "unknown"), None
    return _score((rest,))


def _in_sentence(said: tuple[str, str]) -> tuple[ResultKind, float | None]:
    for part, kind in _PARTS:
        if any(part in text for text in said):
            return kind, None
    return _score(said)


def _score(texts: Iterable[str]) -> tuple[ResultKind, float | None]:
    for text in texts:
        match = _POINTS.match(text.strip())
        margin = None if match is None else _margin(match)
        if margin is not None:
            return "score", margin
    return "unknown", None


def _margin(match: re.Match[str]) -> float | None:
    points = float((match["whole"] or "0").replace(",", "."))
    if match["part"]:
        points += int(match["part"]) / int(match["of"])
    if match["half"]:
        points += 0.5
    if "子" in (match["unit"], match["unit_after"]):
        points *= 2
    return points if points > 0 and (points * 4).is_integer() else None
