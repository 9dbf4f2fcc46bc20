"""Header texts to facts: komi, result, handicap, rank, date, size.

The texts are made up after what archives hold; ``test_cases.py`` has whole records.
"""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.headers.date import read_date
from pipeline.headers.handicap import read_handicap
from pipeline.headers.komi import ANY_WRITER, Writer, read_komi, writer_of
from pipeline.headers.numbers import arabic, plain, read_amount
from pipeline.headers.rank import read_rank
from pipeline.headers.result import Result, read_result
from pipeline.headers.size import read_size
from pipeline.reasons import Flag, Reason

NONE: frozenset[Flag] = frozenset()
FOX = writer_of({"AP": "foxwq"})


# Numbers


@pytest.mark.parametrize(
    ("text", "digits"),
    [
        ("六目半", "6目半"),
        ("十", "10"),
        ("二十", "20"),
        ("十三", "13"),
        ("二十三手", "23手"),
        ("百五", "105"),
        ("一九九八年十二月", "1998年12月"),
        ("二〇〇三", "2003"),
        ("两子", "2子"),
        ("壹又四分之三", "1又4分之3"),
        ("abc", "abc"),
    ],
)
def test_numerals_become_digits(text: str, digits: str) -> None:
    assert arabic(text) == digits


@pytest.mark.parametrize(
    ("text", "number", "unit"),
    [
        ("3", 3.0, None),
        ("3.75", 3.75, None),
        ("3又3/4子", 3.75, "stones"),
        ("3/4子", 0.75, "stones"),
        ("4分之3子", 0.75, "stones"),
        ("1又4分之3子", 1.75, "stones"),
        ("2 1/2", 2.5, None),
        ("2½", 2.5, None),
        ("半目", 0.5, "points"),
        ("6目半", 6.5, "points"),
        ("6집 반", 6.5, "points"),
        ("2子半", 2.5, "stones"),
        ("3个半子", 3.5, "stones"),
        ("5。5", 5.5, None),
        ("7 points", 7.0, "points"),
    ],
)
def test_amounts(text: str, number: float, unit: str | None) -> None:
    found = read_amount(plain(text))
    assert found is not None
    amount, end = found
    assert (amount.number, amount.unit, end) == (number, unit, len(plain(text)))
    assert amount.points == (2 * number if unit == "stones" else number)


@pytest.mark.parametrize("text", ["", "目", "x3", "12/30", "1/0", "子"])
def test_what_is_no_amount(text: str) -> None:
    assert read_amount(text) is None


# Komi


@pytest.mark.parametrize(
    ("text", "komi"),
    [
        ("6.5", 6.5),
        (" 6.50 ", 6.5),
        ("6,5", 6.5),
        ("0", 0.0),
        ("-0", 0.0),
        ("-54.5", -54.5),
        ("−4.5", -4.5),
        ("+7", 7.0),
        (".5", 0.5),
        ("5.", 5.0),
        ("６．５", 6.5),
        ("6.5 points", 6.5),
        ("6.5目", 6.5),
        ("150", 150.0),
        ("-150", -150.0),
    ],
)
def test_komi_that_is_a_number(text: str, komi: float) -> None:
    assert read_komi(text) == (komi, NONE)
    value = read_komi(text)[0]
    assert value is not None
    assert math.copysign(1, value) == (-1 if komi < 0 else 1)


@pytest.mark.parametrize(
    ("text", "komi"),
    [
        ("黑贴五目半", 5.5),
        ("黑贴6目半", 6.5),
        ("黒6目半", 6.5),
        ("コミ6目半", 6.5),
        ("先番5目半コミ出し", 5.5),
        ("6目半", 6.5),
        ("七目半", 7.5),
        ("黑贴3又3/4子", 7.5),
        ("贴三又四分之三子", 7.5),
        ("3.75子", 7.5),
        ("黑贴2又3/4子", 5.5),
        ("덤 6집반", 6.5),
        ("5。5", 5.5),
        ("５。５", 5.5),
        ("6½", 6.5),
        ("5 1/2", 5.5),
        ("黑倒贴三目半", -3.5),
        ("白贴3目", -3.0),
        ("不贴目", 0.0),
        ("コミなし", 0.0),
        ("no komi", 0.0),
    ],
)
def test_komi_in_words(text: str, komi: float) -> None:
    assert read_komi(text) == (komi, {Flag.KOMI_REPAIRED} if text != "6½" else NONE)


@pytest.mark.parametrize(
    "text",
    ["", " ", "none", "nan", "inf", "-inf", "1e2", "0x10", "6.5.5", "150.5", "-151", "375", "350", "325", "1000", "१",
     "黑贴", "黑贴五目半又五目半", "5.5 or 6.5", "白6目半", "9" * 1_000_000],
)  # fmt: skip
def test_komi_that_is_none(text: str) -> None:
    assert read_komi(text) == (None, {Flag.KOMI_UNUSABLE})


def test_absent_komi_has_no_flag() -> None:
    assert read_komi(None, FOX, even=True, margin=0.5) == (None, NONE)


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
        ("foxwq", "0.5", 0.5, False),
        ("foxwq", "7.5", 7.5, False),
        ("GNU Go:3.8; foxwq", "650", 6.5, True),
        ("YuanYu", "375", 7.5, True),
        ("SGFC:2.0", "375", 7.5, True),
        ("SGFC:2.0", "550", 5.5, True),
        # Of any other writer only what cannot be anything else.
        ("other", "650", 6.5, True),
        ("other", "750", 7.5, True),
        ("other", "700", 7.0, True),
        ("", "550", 5.5, True),
        ("other", "50", 50.0, False),
        ("other", "100", 100.0, False),
    ],
)
def test_komi_in_hundredths(application: str, text: str, komi: float, repaired: bool) -> None:
    writer = writer_of({"AP": application})
    assert read_komi(text, writer) == (komi, {Flag.KOMI_REPAIRED} if repaired else NONE)


def test_hundredths_that_are_no_komi_either() -> None:
    assert read_komi("99999", FOX) == (None, {Flag.KOMI_UNUSABLE})


def test_writers() -> None:
    assert writer_of({}) == ANY_WRITER
    assert writer_of({"AP": "Editor:1"}) == ANY_WRITER
    assert writer_of({"AP": "GNU Go:3.8; foxwq"}) == Writer(hundredths=True, zero_is_unknown=True)
    assert writer_of({"AP": "SGFC:2.0"}) == Writer(hundredths=True)
    # The same export without the server's name: the program that is named writes no ranks of that kind.
    assert writer_of({"AP": "GNU Go:3.8", "BR": "9段", "WR": "P9段"}) == FOX
    assert writer_of({"AP": "GNU Go:3.8", "BR": "9d", "WR": "6k"}) == ANY_WRITER


def test_komi_0_that_means_unknown() -> None:
    assert read_komi("0", FOX, even=True) == (None, {Flag.KOMI_UNRECORDED})
    assert read_komi("0", FOX, even=False) == (0.0, NONE)
    assert read_komi("50", FOX, even=True) == (0.5, {Flag.KOMI_REPAIRED})
    assert read_komi("0", even=True) == (0.0, NONE)
    assert read_komi("0", even=True, margin=3.0) == (0.0, NONE)
    # With komi 0 no game ends by half a point.
    assert read_komi("0", even=True, margin=2.5) == (None, {Flag.KOMI_UNRECORDED})
    assert read_komi("0", even=False, margin=2.5) == (0.0, NONE)
    assert read_komi("6.5", even=True, margin=2.5) == (6.5, NONE)


# Results


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("B+0.5", Result("B", "score", 0.5)),
        ("w+12.5", Result("W", "score", 12.5)),
        ("W + 3", Result("W", "score", 3.0)),
        ("W+81.00", Result("W", "score", 81.0)),
        ("B+2½", Result("B", "score", 2.5)),
        ("B+½", Result("B", "score", 0.5)),
        ("B+R", Result("B", "resign")),
        ("W+Resign ", Result("W", "resign")),
        ("W+T", Result("W", "time")),
        ("B+Time", Result("B", "time")),
        ("B+F", Result("B", "forfeit")),
        ("W+Forfeit", Result("W", "forfeit")),
        ("B+Illegal", Result("B", "forfeit")),
        ("B+", Result("B", "unknown")),
        ("B+?", Result("B", "unknown")),
        ("W", Result("W", "unknown")),
        ("W+J", Result("W", "unknown")),
        ("0", Result("draw", "score", 0.0)),
        ("Draw", Result("draw", "score", 0.0)),
        ("draw", Result("draw", "score", 0.0)),
        ("jigo", Result("draw", "score", 0.0)),
        ("Void", Result("void", "void")),
        ("No result", Result("void", "void")),
        ("?", Result(None, "unknown")),
        ("", Result(None, "unknown")),
        (None, Result(None, "unknown")),
        ("NR", Result(None, "unknown")),
        ("Adjourned", Result(None, "unfinished")),
        ("was adjourned", Result(None, "unfinished")),
        ("unfinished", Result(None, "unfinished")),
        ("共118手 打挂", Result(None, "unfinished")),
        ("打ち掛け", Result(None, "unfinished")),
        ("W+1.5 (counted twice)", Result("W", "score", 1.5)),
        ("B+R (end of the record)", Result("B", "resign")),
        ("W+2 1/2", Result("W", "score", 2.5)),
        ("Black+R", Result("B", "resign")),
        ("White wins by resignation", Result("W", "resign")),
        ("White won on time", Result("W", "time")),
        ("Black by 3.5", Result("B", "score", 3.5)),
        ("White resigns", Result("B", "resign")),
        ("black lost on time", Result("W", "time")),
        ("White forfeits", Result("B", "forfeit")),
        ("白胜12.5目", Result("W", "score", 12.5)),
        ("黑胜半目", Result("B", "score", 0.5)),
        ("黑胜三目半", Result("B", "score", 3.5)),
        ("白胜0.5", Result("W", "score", 0.5)),
        ("白中盘胜", Result("W", "resign")),
        ("白棋中盘胜!", Result("W", "resign")),
        ("黑中盘负", Result("W", "resign")),
        ("白认输", Result("B", "resign")),
        ("黑超时胜", Result("B", "time")),
        ("白超时", Result("B", "time")),
        ("白负3目", Result("B", "score", 3.0)),
        ("黑弃权", Result("W", "forfeit")),
        ("白判胜", Result("W", "unknown")),
        ("和棋", Result("draw", "score", 0.0)),
        ("共200手 和棋", Result("draw", "score", 0.0)),
        ("共264手白胜7目", Result("W", "score", 7.0)),
        ("共180手后略 黑胜2目", Result("B", "score", 2.0)),
        ("四劫循环无胜负", Result("void", "void")),
        ("白中押し勝ち", Result("W", "resign")),
        ("80手完, 黒中押し勝ち", Result("B", "resign")),
        ("257手完、白3目半勝", Result("W", "score", 3.5)),
        ("黒6目半勝ち", Result("B", "score", 6.5)),
        ("黒十一目半勝ち", Result("B", "score", 11.5)),
        ("白半目勝", Result("W", "score", 0.5)),
        ("黒3目半", Result("B", "score", 3.5)),
        ("黒中押し", Result("B", "resign")),
        ("白時間切れ負け", Result("B", "time")),
        ("持碁", Result("draw", "score", 0.0)),
        ("引き分け", Result("draw", "score", 0.0)),
        ("無勝負", Result("void", "void")),
        ("무승부", Result("draw", "score", 0.0)),
        ("흑백 무승부", Result("draw", "score", 0.0)),
        ("백 불계승", Result("W", "resign")),
        ("흑불계패", Result("W", "resign")),
        ("흑 1.5집승", Result("B", "score", 1.5)),
        ("백 2집 반 승", Result("W", "score", 2.5)),
        ("흑 시간승", Result("B", "time")),
        ("白胜黑", Result("W", "unknown")),
    ],
)
def test_results_that_are_understood(text: str | None, result: Result) -> None:
    assert read_result(text) == (result, NONE)


@pytest.mark.parametrize(
    ("text", "winner", "margin"),
    [
        ("黑胜1又1/4子", "B", 2.5),
        ("黑胜1/4子", "B", 0.5),
        ("黑胜四分之三子", "B", 1.5),
        ("白胜14子半", "W", 29.0),
        ("黑胜2子", "B", 4.0),
        # Bare quarters are stones: no score in points has them.
        ("W+1.75", "W", 3.5),
        ("B+0.25", "B", 0.5),
    ],
)
def test_margins_in_stones_are_doubled(text: str, winner: str, margin: float) -> None:
    result, flags = read_result(text)
    assert (result.winner, result.kind, result.margin) == (winner, "score", margin)
    assert flags == {Flag.RESULT_REPAIRED}


@pytest.mark.parametrize("text", ["B+0.02", "B+0.03", "B+0.0", "B+0", "B+3.14", "B+9999", "黑胜0目"])
def test_margins_that_are_a_servers_code(text: str) -> None:
    assert read_result(text) == (Result("B", "unknown"), {Flag.RESULT_CODE})


@pytest.mark.parametrize(
    ("text", "winner"),
    [
        ("Black", None),
        ("BLANK", None),
        ("White to play", None),
        ("110-bb", None),
        ("共90手 中盘胜", None),
        ("B+, the other side left at move 126", "B"),
        ("W+V", "W"),
        ("白胜于右下", "W"),
    ],
)
def test_results_that_are_not(text: str, winner: str | None) -> None:
    result, flags = read_result(text)
    assert flags == {Flag.RESULT_UNREAD}
    assert (result.winner, result.kind, result.margin) == (winner, "unknown", None)


def test_a_long_result_is_cut() -> None:
    assert read_result("B+" + "9" * 1_000_000)[0].winner == "B"


# Handicap


@pytest.mark.parametrize(
    ("text", "stones", "flag"),
    [
        (None, 0, None),
        ("0", 0, None),
        ("2", 2, None),
        (" 9 ", 9, None),
        ("３", 3, None),
        ("2.0", 2, None),
        ("二子", 2, Flag.HANDICAP_REPAIRED),
        ("让二子", 2, Flag.HANDICAP_REPAIRED),
        ("授3子", 3, Flag.HANDICAP_REPAIRED),
        ("三子局", 3, Flag.HANDICAP_REPAIRED),
        ("4 stones", 4, Flag.HANDICAP_REPAIRED),
        ("先相先", 0, Flag.HANDICAP_REPAIRED),
        ("定先", 0, Flag.HANDICAP_REPAIRED),
        ("甲受先", 0, Flag.HANDICAP_REPAIRED),
        ("先二先.先", 0, Flag.HANDICAP_REPAIRED),  # a match of alternating handicaps, then this game's
        ("甲先二先.二子", 2, Flag.HANDICAP_REPAIRED),
        ("even", 0, Flag.HANDICAP_REPAIRED),
        ("", 0, Flag.HANDICAP_UNUSABLE),
        ("none", 0, Flag.HANDICAP_UNUSABLE),
        ("先二", 0, Flag.HANDICAP_UNUSABLE),
        ("-2", 0, Flag.HANDICAP_UNUSABLE),
        ("2.5", 0, Flag.HANDICAP_UNUSABLE),
        ("626", 0, Flag.HANDICAP_UNUSABLE),
        ("九百子", 0, Flag.HANDICAP_UNUSABLE),
        ("9" * 1_000_000, 0, Flag.HANDICAP_UNUSABLE),
    ],
)
def test_handicap(text: str, stones: int, flag: Flag | None) -> None:
    assert read_handicap(text) == (stones, frozenset() if flag is None else {flag})


# Ranks


@pytest.mark.parametrize(
    ("text", "rank"),
    [
        ("30k", 1),
        ("3k*", 28),
        ("1k", 30),
        ("1 kyu", 30),
        ("2nd kyu", 29),
        ("18级", 13),
        ("2級", 29),
        ("十八级", 13),
        ("1d", 31),
        ("7d?", 37),
        ("6 dan", 36),
        ("2段", 32),
        ("九段", 39),
        ("初段", 31),
        ("9D", 39),
        ("7段*", 37),
        ("5단", 35),
        ("业余5段", 35),
        ("业5", 35),
        ("1p", 41),
        ("9P", 49),
        ("P9段", 49),
        ("P1", 41),
        ("3 dan pro", 43),
        ("9段 pro", 49),
        ("职业三段", 43),
        ("プロ九段", 49),
        ("9p, Kisei", 49),
        ("6p (women's champion)", 46),
        ("５段", 35),
    ],
)
def test_ranks_on_one_scale(text: str, rank: int) -> None:
    assert read_rank(text) == (rank, NONE)


@pytest.mark.parametrize("text", ["名人", "本因坊", "十段", "Kisei", "명인"])
def test_titles_are_professional_9_dan(text: str) -> None:
    assert read_rank(text) == (49, {Flag.RANK_TITLE})


@pytest.mark.parametrize("text", [None, "", "  ", "-", "?", "NR", "nr"])
def test_no_rank(text: str | None) -> None:
    assert read_rank(text) == (None, NONE)


@pytest.mark.parametrize(
    "text", ["2781?", "3781", "1500*", "9p & 9p", "5p, 4p & 3p", "6d, 7d", "7段、8段", "Female Meijin"]
)
def test_ranks_of_another_kind(text: str) -> None:
    assert read_rank(text) == (None, {Flag.RANK_OTHER})


@pytest.mark.parametrize("text", ["0d", "10d", "0k", "31k", "d", "strong", "9", "1" * 1_000_000])
def test_ranks_that_are_not_understood(text: str) -> None:
    assert read_rank(text) == (None, {Flag.RANK_UNREAD})


# Dates


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("2003-01-04", "2003-01-04"),
        ("2003-1-4", "2003-01-04"),
        ("2003/01/04 12:30", "2003-01-04"),
        ("2003.1.4", "2003-01-04"),
        ("2003 1 4", "2003-01-04"),
        ("2003-01", "2003-01"),
        ("2003", "2003"),
        ("2003年1月4日", "2003-01-04"),
        ("2003년 1월 4일", "2003-01-04"),
        ("二〇〇三年一月四日", "2003-01-04"),
        ("2003年（第3期）", "2003"),
        ("2003-01-04,05,06", "2003-01-04"),
        ("2003-01-04~2003-01-09", "2003-01-04"),
        ("2003.01.04-05", "2003-01-04"),
        ("2004-02-29", "2004-02-29"),
        ("20030104", "2003-01-04"),
        ("20030104-153815~20030105-200216", "2003-01-04"),
        ("January 4, 2003", "2003-01-04"),
        ("4th of Jan 2003", "2003-01-04"),
        ("Fri Jan 3 2003", "2003-01-03"),
        ("Jan. 2003", "2003-01"),
        ("29-01-2003", "2003-01-29"),
        ("01/29/2003", "2003-01-29"),
        ("03.03.2003", "2003-03-03"),
        ("01.04.2003", "2003"),  # day or month first: not sure
        ("２００３－０１－０４", "2003-01-04"),
        ("天保六年(1835)七月十九日", "1835"),
    ],
)
def test_dates(text: str, date: str) -> None:
    assert read_date(text) == (date, NONE)


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("平成10年5月3日", "1998-05-03"),
        ("昭和九年", "1934"),
        ("令和元年5月1日", "2019-05-01"),
        ("明治2年3月4日", "1869"),  # a month of the moon
        ("民国二十三年", "1934"),
        ("H10.5.3", "1998-05-03"),
        ("99-1-1", "1999-01-01"),
        ("990906", "1999-09-06"),
        ("12.28.98", "1998-12-28"),
        ("28/12/98", "1998-12-28"),
        ("5/6/98", "1998"),
    ],
)
def test_dates_that_are_converted(text: str, date: str) -> None:
    assert read_date(text) == (date, {Flag.DATE_REPAIRED})


@pytest.mark.parametrize("text", [None, "", "  "])
def test_no_date(text: str | None) -> None:
    assert read_date(text) == (None, NONE)


@pytest.mark.parametrize(
    "text",
    ["yesterday", "2003-13-01", "2003-00-01", "2003-02-29", "2003-01-32", "200301-2-3", "202002-12-9", "0999-01-01",
     "3000", "2303-01-01", "10.26", "H32.1.1", "昭和70年", "31-02-2003", "20031301", "February 30, 2003", "02-03-04"],
)  # fmt: skip
def test_dates_that_are_none(text: str) -> None:
    assert read_date(text) == (None, {Flag.DATE_UNREAD})


# Sizes


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
    st.text(max_size=40),
    st.text(alphabet="BW+RTF0123456789.,/又子目半段级kdp胜负黑白-:? 贴先分之十百年月H&", max_size=20),
)


@given(HEADERISH)
def test_no_text_raises_and_no_number_is_wild(text: str) -> None:
    for writer in (ANY_WRITER, FOX):
        komi, flags = read_komi(text, writer, even=True)
        assert komi is None or abs(komi) <= 150
        assert komi is not None or flags
    result, flags = read_result(text)
    assert (result.margin is not None) == (result.kind == "score")
    assert result.margin is None or 0 <= result.margin <= 775
    assert (result.winner == "void") == (result.kind == "void")
    assert result.kind != "unfinished" or result.winner is None
    stones, _ = read_handicap(text)
    assert 0 <= stones <= 625
    rank, flags = read_rank(text)
    assert rank is None or 1 <= rank <= 49
    assert rank is None or flags <= {Flag.RANK_TITLE}
    date, _ = read_date(text)
    assert date is None or len(date) in (4, 7, 10)
    size, _ = read_size(text)
    assert isinstance(size, Reason) or all(1 <= side <= 25 for side in size)
