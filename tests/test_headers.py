"""Header texts to facts: komi, result, handicap, rank, date, size."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.headers.date import read_date
from pipeline.headers.handicap import read_handicap
from pipeline.headers.komi import read_komi
from pipeline.headers.rank import read_rank
from pipeline.headers.result import Result, read_result
from pipeline.headers.size import read_size
from pipeline.reasons import Flag, Reason


@pytest.mark.parametrize(
    ("text", "komi"),
    [
        ("6.5", 6.5),
        (" 6.50 ", 6.5),
        ("6,5", 6.5),
        ("0", 0.0),
        ("-0", 0.0),
        ("-54.5", -54.5),
        ("+7", 7.0),
        (".5", 0.5),
        ("5.", 5.0),
        ("６．５", 6.5),
        ("6.5 points", 6.5),
        ("150", 150.0),
        ("-150", -150.0),
    ],
)
def test_komi_that_is_a_number(text: str, komi: float) -> None:
    assert read_komi(text, None) == (komi, frozenset())
    value = read_komi(text, None)[0]
    assert value is not None
    assert math.copysign(1, value) == (-1 if text.startswith("-") and komi else 1)


@pytest.mark.parametrize(
    "text",
    ["", " ", "none", "黑贴五目半", "nan", "inf", "-inf", "1e2", "0x10", "5 1/2", "6.5.5", "150.5", "-151", "375", "१",
     "9" * 1_000_000],
)  # fmt: skip
def test_komi_that_is_none(text: str) -> None:
    assert read_komi(text, None) == (None, {Flag.KOMI_UNUSABLE})


def test_absent_komi_has_no_flag() -> None:
    assert read_komi(None, "foxwq") == (None, frozenset())


@pytest.mark.parametrize(
    ("application", "text", "komi", "repaired"),
    [
        ("foxwq", "375", 7.5, True),
        ("foxwq", "325", 6.5, True),
        ("foxwq", "275", 5.5, True),
        ("foxwq", "350", 7.0, True),
        ("foxwq", "650", 6.5, True),
        ("foxwq", "750", 7.5, True),
        ("foxwq", "50", 0.5, True),
        ("foxwq", "0", 0.0, False),
        ("foxwq", "7.5", 7.5, False),
        ("GNU Go:3.8; foxwq", "650", 6.5, True),
        ("SGFC:2.0", "375", 7.5, True),
        ("SGFC:2.0", "550", 5.5, True),
        ("other", "50", 50.0, False),
    ],
)
def test_komi_in_hundredths(application: str, text: str, komi: float, repaired: bool) -> None:
    assert read_komi(text, application) == (komi, frozenset({Flag.KOMI_REPAIRED}) if repaired else frozenset())


def test_hundredths_that_are_no_komi_either() -> None:
    assert read_komi("99999", "foxwq") == (None, {Flag.KOMI_UNUSABLE})


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("B+0.5", Result("B", "score", 0.5)),
        ("w+12.5", Result("W", "score", 12.5)),
        ("W + 3", Result("W", "score", 3.0)),
        ("B+R", Result("B", "resign")),
        ("W+Resign ", Result("W", "resign")),
        ("W+T", Result("W", "time")),
        ("B+Time", Result("B", "time")),
        ("B+F", Result("B", "forfeit")),
        ("W+Forfeit", Result("W", "forfeit")),
        ("B+Illegal", Result("B", "forfeit")),
        ("B+", Result("B", "unknown")),
        ("W", Result("W", "unknown")),
        ("0", Result("draw", "score", 0.0)),
        ("Draw", Result("draw", "score", 0.0)),
        ("jigo", Result("draw", "score", 0.0)),
        ("Void", Result("void", "void")),
        ("?", Result(None, "unknown")),
        ("", Result(None, "unknown")),
        (None, Result(None, "unknown")),
        ("W+1.5 (counted twice)", Result("W", "score", 1.5)),
        ("B+R (end of the record)", Result("B", "resign")),
        ("W+2 1/2", Result("W", "score", 2.5)),
        ("白胜12.5目", Result("W", "score", 12.5)),
        ("黑胜1又1/4子", Result("B", "score", 2.5)),
        ("黑胜1/4子", Result("B", "score", 0.5)),
        ("黑胜半目", Result("B", "score", 0.5)),
        ("白中盘胜", Result("W", "resign")),
        ("黑超时胜", Result("B", "time")),
        ("和棋", Result("draw", "score", 0.0)),
        ("共200手 和棋", Result("draw", "score", 0.0)),
        ("白中押し勝ち", Result("W", "resign")),
        ("80手完, 黒中押し勝ち", Result("B", "resign")),
        ("黒6目半勝ち", Result("B", "score", 6.5)),
        ("持碁", Result("draw", "score", 0.0)),
        ("無勝負", Result("void", "void")),
        ("무승부", Result("draw", "score", 0.0)),
        ("백 불계승", Result("W", "resign")),
        ("흑 1.5집승", Result("B", "score", 1.5)),
        ("白胜黑", Result("W", "unknown")),
    ],
)
def test_results_that_are_understood(text: str | None, result: Result) -> None:
    assert read_result(text) == (result, frozenset())


@pytest.mark.parametrize(
    ("text", "winner"),
    [
        ("Black", None),
        ("BLANK", None),
        ("White to play", None),
        ("黑中盘负", None),
        ("110-bb", None),
        ("B+, the other side left", "B"),
        ("W+J", "W"),
        ("W+0.02", "W"),  # a server's code, not a score
        ("B+0.0", "B"),
        ("B+" + "9" * 1_000_000, "B"),
    ],
)
def test_results_that_are_not(text: str, winner: str | None) -> None:
    result, flags = read_result(text)
    assert flags == {Flag.RESULT_UNREAD}
    assert (result.winner, result.kind, result.margin) == (winner, "unknown", None)


@pytest.mark.parametrize(
    ("text", "stones", "flagged"),
    [
        (None, 0, False),
        ("0", 0, False),
        ("2", 2, False),
        (" 9 ", 9, False),
        ("３", 3, False),
        ("", 0, True),
        ("none", 0, True),
        ("先相先", 0, True),
        ("-2", 0, True),
        ("2.5", 0, True),
        ("626", 0, True),
        ("9" * 1_000_000, 0, True),
    ],
)
def test_handicap(text: str | None, stones: int, flagged: bool) -> None:
    assert read_handicap(text) == (stones, frozenset({Flag.HANDICAP_UNUSABLE} if flagged else ()))


@pytest.mark.parametrize(
    ("text", "rank"),
    [
        ("30k", 1),
        ("3k*", 28),
        ("1k", 30),
        ("1 kyu", 30),
        ("18级", 13),
        ("2級", 29),
        ("1d", 31),
        ("7d?", 37),
        ("6 dan", 36),
        ("2段", 32),
        ("九段", 39),
        ("9D", 39),
        ("1p", 41),
        ("9P", 49),
        ("P9段", 49),
        ("P1", 41),
        ("3 dan pro", 43),
        ("５段", 35),
    ],
)
def test_ranks_on_one_scale(text: str, rank: int) -> None:
    assert read_rank(text) == (rank, frozenset())


@pytest.mark.parametrize("text", [None, "", "  ", "-", "?", "NR", "nr"])
def test_no_rank(text: str | None) -> None:
    assert read_rank(text) == (None, frozenset())


@pytest.mark.parametrize("text", ["3781?", "0d", "10d", "0k", "31k", "9p & 9p", "名人", "d", "1" * 1_000_000])
def test_ranks_that_are_not_understood(text: str) -> None:
    assert read_rank(text) == (None, {Flag.RANK_UNREAD})


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("2003-01-04", "2003-01-04"),
        ("2003-1-4", "2003-01-04"),
        ("2003/01/04 12:30", "2003-01-04"),
        ("2003.1.4", "2003-01-04"),
        ("2003-01", "2003-01"),
        ("2003", "2003"),
        ("2003年1月4日", "2003-01-04"),
        ("2003年（第3期）", "2003"),
        ("2003-01-04,05,06", "2003-01-04"),
        ("2004-02-29", "2004-02-29"),
        ("January 4, 2003", "2003"),
        ("２００３－０１－０４", "2003-01-04"),
    ],
)
def test_dates(text: str, date: str) -> None:
    assert read_date(text) == (date, frozenset())


@pytest.mark.parametrize("text", [None, "", "  "])
def test_no_date(text: str | None) -> None:
    assert read_date(text) == (None, frozenset())


@pytest.mark.parametrize(
    "text",
    ["yesterday", "2003-13-01", "2003-00-01", "2003-02-29", "2003-01-32", "200301-2-3", "0999-01-01", "3000", "99-1-1"],
)
def test_dates_that_are_none(text: str) -> None:
    assert read_date(text) == (None, {Flag.DATE_UNREAD})


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("19", (19, 19)),
        (" 9 ", (9, 9)),
        ("09", (9, 9)),
        ("9:9", (9, 9)),
        ("9:13", (13, 9)),  # columns first
        ("1", (1, 1)),
        ("25", (25, 25)),
        ("big", Reason.BAD_SIZE),
        ("0", Reason.BAD_SIZE),
        ("-10", Reason.BAD_SIZE),
        ("9:", Reason.BAD_SIZE),
        ("9:0", Reason.BAD_SIZE),
        ("9.5", Reason.BAD_SIZE),
        ("26", Reason.UNSUPPORTED_SIZE),
        ("9:26", Reason.UNSUPPORTED_SIZE),
        ("9" * 1_000_000, Reason.UNSUPPORTED_SIZE),
    ],
)
def test_size(text: str, size: tuple[int, int] | Reason) -> None:
    assert read_size(text) == (size, frozenset())


@pytest.mark.parametrize("text", [None, "", " "])
def test_size_that_is_not_stated(text: str | None) -> None:
    assert read_size(text) == ((19, 19), {Flag.SIZE_ASSUMED})


HEADERISH = st.one_of(
    st.text(max_size=40), st.text(alphabet="BW+RTF0123456789.,/又子目半段级kdp胜负黑白-:? ", max_size=20)
)


@given(HEADERISH)
def test_no_text_raises_and_no_number_is_wild(text: str) -> None:
    komi, _ = read_komi(text, "foxwq")
    assert komi is None or abs(komi) <= 150
    result, flags = read_result(text)
    assert (result.margin is not None) == (result.kind == "score")
    assert result.margin is None or 0 <= result.margin < 30_000
    assert (result.winner == "void") == (result.kind == "void")
    stones, _ = read_handicap(text)
    assert 0 <= stones <= 625
    rank, flags = read_rank(text)
    assert rank is None or 1 <= rank <= 49
    assert rank is None or not flags
    date, _ = read_date(text)
    assert date is None or len(date) in (4, 7, 10)
    size, _ = read_size(text)
    assert isinstance(size, Reason) or all(1 <= side <= 25 for side in size)
