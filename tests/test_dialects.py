"""Names and habits of single servers. The records are made here."""

import pytest

from pipeline.config import Config
from pipeline.dialects import standard_texts, writes_stones_as_moves
from pipeline.game import Game
from pipeline.parse import parse_member
from pipeline.reasons import Flag


def game(text: str, encoding: str = "utf-8") -> Game:
    config = Config()
    (record,) = parse_member(text.encode(encoding), config.input, config.parse, config.rules)
    assert isinstance(record, Game), record
    return record


def test_a_record_of_sina() -> None:
    """No semicolon, names of its own, the rank in the player's name, GB18030 without a charset, no size."""
    text = "(\r\nTE[第三届友谊赛第1轮]\r\nRD[2008-3-04]\r\nPC[]\r\nTM[3600]\r\nLT[60]\r\nLC[3]\r\nKO[7.5]\r\n"
    text += (
        "RE[白中盘胜]\r\nPB[丁一山 七段]\r\nBR[]\r\nPW[戊二水 九段]\r\nWR[]\r\nGK[1]\r\nTC[]\r\n;B[dd];W[pp];B[dp]\r\n)"
    )
    record = game(text, "gb18030")
    assert (record.komi, record.date, record.winner) == (7.5, "2008-03-04", "W")
    assert (record.black, record.white) == ("丁一山", "戊二水")
    assert (record.black_rank, record.white_rank) == (37, 39)
    assert set(record.flags) == {
        Flag.CHARSET_GUESSED, Flag.OPENING_REPAIRED, Flag.OTHER_NAMES, Flag.RANK_IN_NAME, Flag.SIZE_ASSUMED
    }  # fmt: skip
    # What stands in the record is kept as it stands there.
    assert (record.raw["TE"], record.raw["KO"], record.raw["PB"]) == ("第三届友谊赛第1轮", "7.5", "丁一山 七段")
    assert "KM" not in record.raw


@pytest.mark.parametrize(
    ("raw", "texts", "flags"),
    [
        ({"KM": "6.5", "DT": "2001"}, {"KM": "6.5", "DT": "2001"}, set()),
        ({"KO": "6.5", "RD": "2001", "TE": "A cup"}, {"KM": "6.5", "DT": "2001", "EV": "A cup"}, {Flag.OTHER_NAMES}),
        # The standard name goes first, unless it is blank.
        ({"KO": "6.5", "KM": "5.5"}, {"KM": "5.5"}, set()),
        ({"KO": "6.5", "KM": " "}, {"KM": "6.5"}, {Flag.OTHER_NAMES}),
        # TE and KO of the standard.
        ({"TE": "1", "KO": ""}, {"KM": None, "EV": None}, set()),
        ({"TE": "2"}, {"EV": None}, set()),
        # A komi in the place of the game's number.
        ({"GM": "5.5"}, {"KM": "5.5"}, {Flag.KOMI_IN_GM}),
        ({"GM": " 6.50 "}, {"KM": " 6.50 "}, {Flag.KOMI_IN_GM}),
        ({"GM": "5.5", "KM": "6.5"}, {"KM": "6.5"}, set()),
        ({"GM": "5.5", "KO": "6.5"}, {"KM": "6.5"}, {Flag.OTHER_NAMES}),
        ({"GM": "5.25"}, {"KM": None}, set()),
        ({"GM": "1"}, {"KM": None}, set()),
        # Ranks in names.
        ({"PB": "丁一山 七段", "PW": "戊二水九段"}, {"PB": "丁一山", "BR": "七段", "PW": "戊二水", "WR": "九段"},
         {Flag.RANK_IN_NAME}),
        ({"PW": "戊二水 9段 "}, {"PW": "戊二水", "WR": "9段"}, {Flag.RANK_IN_NAME}),
        ({"PW": "己 初段"}, {"PW": "己", "WR": "初段"}, {Flag.RANK_IN_NAME}),
        ({"PW": "Uma 12级"}, {"PW": "Uma", "WR": "12级"}, {Flag.RANK_IN_NAME}),
        ({"PW": "戊二水 九段", "WR": "八段"}, {"PW": "戊二水 九段", "WR": "八段"}, set()),
        ({"PW": "戊 & 己 九段"}, {"PW": "戊 & 己 九段", "WR": None}, set()),
        ({"PW": "uma123段"}, {"PW": "uma123段", "WR": None}, set()),
        ({"PW": "戊 十二段"}, {"PW": "戊 十二段", "WR": None}, set()),
        ({"PW": "九段"}, {"PW": "九段", "WR": None}, set()),
        ({"PW": "戊 初段格"}, {"PW": "戊 初段格", "WR": None}, set()),
        ({"PW": "Uma 9"}, {"PW": "Uma 9", "WR": None}, set()),
        ({"PB": "Uma Ivo (9d)", "PW": "Ann 4p"}, {"PB": "Uma Ivo", "BR": "9d", "PW": "Ann", "WR": "4p"},
         {Flag.RANK_IN_NAME}),
        ({"PW": "uma1d"}, {"PW": "uma1d", "WR": None}, set()),
        ({"PB": "Uma, 4p & Ivo, 9p"}, {"PB": "Uma, 4p & Ivo, 9p", "BR": None}, set()),
        ({"PB": "戊 九段", "BR": "?"}, {"PB": "戊 九段", "BR": "?"}, set()),
    ],
)  # fmt: skip
def test_names(raw: dict[str, str], texts: dict[str, str | None], flags: set[Flag]) -> None:
    before = dict(raw)
    found, noted = standard_texts(raw)
    assert {name: found.get(name) for name in texts} == texts
    assert noted == flags
    assert raw == before


def test_game_values_with_a_komi() -> None:
    record = game("(;GM[5.5]SZ[9];B[cc])")
    assert (record.komi, record.raw["GM"], "KM" in record.raw) == (5.5, "5.5", False)
    assert set(record.flags) == {Flag.GAME_VALUE_ODD, Flag.KOMI_IN_GM}


def test_other_names_below_the_root_are_what_the_standard_says() -> None:
    record = game("(;SZ[9];B[cc]TE[good]KO[hm])")
    assert (record.komi, record.flags) == (None, ())
    assert not {"TE", "KO"} & set(record.raw)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({"AP": "foxwq"}, True),
        ({"AP": "GNU Go:3.8; FoxWQ"}, True),
        ({"AP": "YuanYu"}, True),
        ({"SO": "http://www.foxwq.com/"}, True),
        ({"AP": "GNU Go:3.8"}, False),
        ({"PB": "foxwq"}, False),
        ({}, False),
    ],
)
def test_who_writes_stones_as_moves(raw: dict[str, str], expected: bool) -> None:
    assert writes_stones_as_moves(raw) is expected
