"""RE to a winner, the way the game ended, and a margin in points."""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from pipeline.config import ResultKind
from pipeline.headers.numbers import REMEMBERED, Amount, arabic, plain, read_amount
from pipeline.reasons import Flag

Winner = Literal["B", "W", "draw", "void"]

_MAX_TEXT = 200
_MAX_MARGIN = 775.0  # the largest board and the largest komi


@dataclass(frozen=True, slots=True)
class Result:
    """``winner`` None: not known. ``margin``: points, only with kind ``score`` (0 for a draw)."""

    winner: Winner | None
    kind: ResultKind
    margin: float | None = None


UNKNOWN = Result(None, "unknown")
UNFINISHED = Result(None, "unfinished")
DRAW = Result("draw", "score", 0.0)
VOID = Result("void", "void")

# The whole text, lower case.
_WHOLE: dict[str, Result] = {
    **dict.fromkeys(("", "?", "unknown", "nr", "nr;", "-", "不明", "未知"), UNKNOWN),
    **dict.fromkeys(("0", "0.0", "和", "和局", "平", "引分", "빅"), DRAW),
    "b": Result("B", "unknown"),
    "w": Result("W", "unknown"),
}  # fmt: skip
# The word after "B+" or "W+", lower case. An illegal move loses by forfeit; where a referee decides or a
# count is spoken of without its number, the winner is known and the way is none of ours.
_WORDS: dict[str, ResultKind] = {
    **dict.fromkeys(("r", "res", "resi", "resign", "resigns", "resigned", "resignation"), "resign"),
    **dict.fromkeys(("t", "time", "timeout", "times", "timed", "overtime"), "time"),
    **dict.fromkeys(("f", "forf", "forfeit", "forfeited", "forfeiture", "illegal", "default"), "forfeit"),
    **dict.fromkeys(("disqualification", "absence", "walkover", "noshow"), "forfeit"),
    **dict.fromkeys(("abandon", "abandoned", "disconnect", "disconnection"), "forfeit"),
    **dict.fromkeys(("j", "aw", "judge", "judgement", "judgment", "adjudication", "referee"), "unknown"),
    **dict.fromkeys(("points", "score", "count", "counting", "territory", "area"), "unknown"),
}  # fmt: skip
# Parts of a sentence in Chinese, Japanese or Korean.
_PARTS: tuple[tuple[re.Pattern[str], ResultKind], ...] = (
    (re.compile("中[盘盤押]|[认認][输輸负負]|投[了子降]|불계"), "resign"),
    (re.compile("[超逾][时時]|[时時][间間]|切れ負|시간|타임"), "time"),
    (re.compile("[弃棄][权權権]|犯[规規]|[违違][规規]|反則|不[战戰戦]|缺席|반칙|기권|부전|실격|失格"), "forfeit"),
    (re.compile("裁定|判|판정"), "unknown"),
)
_BLACK = frozenset("b黑黒흑")
_BARE = re.compile(r"[\sのちり利!。.棋方番子]*(?:[黑黒흑白백][棋方番子]?)?[\s!。.]*")  # besides the winner and the win
_PLUS = re.compile(r"(?P<side>[bw黑黒흑白백]|black|white)[棋方番]?\s*\+\s*(?P<rest>.*)", re.DOTALL)
_ENGLISH = re.compile(
    r"(?P<side>black|white|b|w)\s+(?:(?P<wins>wins?|won|by)|(?P<loses>loses|lost|resigns|resigned|forfeits|forfeited"
    r"|times\s+out|timed\s+out|ran\s+out\s+of\s+time))\b\s*(?P<rest>.*)",
    re.DOTALL,
)
_PREPOSITION = re.compile(r"(?:\s*\b(?:by|on|with|the|game|a|of)\b)*\s*")
_WORD = re.compile(r"[a-z]+")
_SENTENCE = re.compile(
    r"(?P<side>[黑黒흑白백])(?P<before>[^黑黒흑白백胜勝승负負败敗패]*)(?:(?P<wins>[胜勝승](?![负負败敗부]))|[负負败敗패])(?P<after>.*)",
    re.DOTALL,
)
# Without a verb: a side that gives up, or a side with the way it won.
_GIVES_UP = re.compile(
    r"(?P<side>[黑黒흑白백])[棋方番은는이가\s]*(?P<how>[认認][输輸]|投了|投子|投降|기권|[弃棄][权權権]|[超逾][时時]|[时時][间間](?:切れ|到))"
)
_WON_BY = re.compile(r"(?P<side>[黑黒흑白백])[棋方番の\s]*(?P<how>中[盘盤押]し?|불계|[0-9半].*[目子半])\s*[!。.]?")
_ENDINGS: tuple[tuple[re.Pattern[str], Result], ...] = (
    (re.compile(r"打\s*ち?\s*[挂掛]け?|[暂暫]停|未[完了]|中[断斷]|封じ?[棋手]|미완|중단|봉수|adjourn|unfinished|suspend|not\s+finished"
                r"|incomplete"), UNFINISHED),
    (re.compile(r"[无無](?:胜负|勝負|効|效)|무효|\bvoid\b|no\s+result"), VOID),
    (re.compile(r"和[棋局]|平[局手]|持[碁棋]|ジゴ|引き?分け?|무승부|\b(?:draw|drawn|jigo|tie|tied)\b"), DRAW),
)  # fmt: skip
_AMOUNT = re.compile(r"[0-9半반]")
_MOVES = re.compile(r"[0-9]+\s*[手수着]\s*[完终終后後]?略?")
_LOST: dict[str, ResultKind] = {
    "resigns": "resign", "resigned": "resign", "forfeits": "forfeit", "forfeited": "forfeit",
    "times": "time", "timed": "time", "ran": "time",
}  # fmt: skip

_How = tuple[ResultKind, float | None, frozenset[Flag]]
_NOT_SAID: _How = ("unknown", None, frozenset())
_UNREAD: _How = ("unknown", None, frozenset({Flag.RESULT_UNREAD}))


def read_result(text: str | None) -> tuple[Result, frozenset[Flag]]:
    """The result that RE states; RESULT_UNREAD where a text is there and something in it is not understood.

    One counting unit of the Chinese area count (a stone, 子) is two points: RESULT_REPAIRED. So is the
    unit of a bare number with a quarter, which no score in points has. A margin of 0, or another that
    no score has, is a server's code: the winner stays, the kind is unknown, RESULT_CODE.
    """
    return _read((text or "")[:_MAX_TEXT])


@lru_cache(REMEMBERED)
def _read(text: str) -> tuple[Result, frozenset[Flag]]:
    written = plain(text)
    if written in _WHOLE:
        return _WHOLE[written], frozenset()
    plus = _PLUS.fullmatch(written)
    if plus:
        return _won(plus["side"], True, _after_plus(plus["rest"]))
    english = _ENGLISH.match(written)
    if english:
        lost = (english["loses"] or "").split()
        said = _PREPOSITION.sub("", english["rest"], count=1)
        how = (_LOST[lost[0]], None, frozenset[Flag]()) if lost and lost[0] in _LOST else _after_plus(said)
        return _won(english["side"], not lost, how)
    return _in_words(arabic(written))


def _won(side: str, wins: bool, how: _How) -> tuple[Result, frozenset[Flag]]:
    winner: Winner = "B" if (side[0] in _BLACK) == wins else "W"
    kind, margin, flags = how
    return Result(winner, kind, margin), flags


def _after_plus(rest: str) -> _How:
    """What follows the plus sign: a word or an amount; a remark after either is allowed."""
    if rest in {"", "?"}:
        return _NOT_SAID
    word = _WORD.match(rest)
    if word:
        return (_WORDS[word[0]], None, frozenset()) if word[0] in _WORDS else _UNREAD
    said = arabic(rest)
    found = read_amount(said)
    return _scored(found[0]) if found is not None else _kind_in(said) or _UNREAD


def _in_words(said: str) -> tuple[Result, frozenset[Flag]]:
    """A sentence in Chinese, Japanese or Korean, or an ending without a winner."""
    sentence = _SENTENCE.search(said)
    if sentence:
        parts = [_MOVES.sub("", sentence[name]) for name in ("before", "after")]
        how = _way(parts[0]) or _way(parts[1]) or (_NOT_SAID if _BARE.fullmatch("".join(parts)) else _UNREAD)
        return _won(sentence["side"], bool(sentence["wins"]), how)
    for pattern, wins in ((_GIVES_UP, False), (_WON_BY, True)):
        match = pattern.search(said)
        if match:
            return _won(match["side"], wins, _way(match["how"]) or _UNREAD)
    for ending, result in _ENDINGS:
        if ending.search(said):
            return result, frozenset()
    return UNKNOWN, frozenset({Flag.RESULT_UNREAD})


def _way(said: str) -> _How | None:
    """The way a game was won, from words or the first amount in a text."""
    start = _AMOUNT.search(said)
    found = None if start is None else read_amount(said, start.start())
    return _kind_in(said) or (None if found is None else _scored(found[0]))


def _kind_in(said: str) -> _How | None:
    for part, kind in _PARTS:
        if part.search(said):
            return kind, None, frozenset()
    return None


def _scored(amount: Amount) -> _How:
    stones = amount.unit == "stones" or (amount.unit is None and (amount.number * 4) % 2 == 1)
    points = amount.number * 2 if stones else amount.number
    if not (0 < points <= _MAX_MARGIN and (points * 2).is_integer()):
        return "unknown", None, frozenset({Flag.RESULT_CODE})
    return "score", points, frozenset({Flag.RESULT_REPAIRED} if stones else ())
