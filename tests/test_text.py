"""Text decoding: which charset wins, what is flagged, and that moves do not depend on it."""

import codecs
from functools import lru_cache
from itertools import permutations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config import Input, Parse, Rules
from pipeline.game import Game
from pipeline.parse import parse_member
from pipeline.reasons import Flag
from pipeline.text import _CODECS, decode

LIST = Input().encodings


def test_ascii_needs_no_flag_whatever_it_declares() -> None:
    assert decode(b"(;CA[big5]PB[A])", LIST) == ("(;CA[big5]PB[A])", frozenset())


def test_unknown_charset_is_flagged_even_in_ascii() -> None:
    assert decode(b"(;CA[foo]PB[A])", LIST)[1] == {Flag.CHARSET_UNKNOWN}


@pytest.mark.parametrize(
    ("codec", "mark"),
    [
        ("utf-16-le", codecs.BOM_UTF16_LE),
        ("utf-16-be", codecs.BOM_UTF16_BE),
        ("utf-32-le", codecs.BOM_UTF32_LE),
        ("utf-8", codecs.BOM_UTF8),
    ],
)
def test_byte_order_mark_wins(codec: str, mark: bytes) -> None:
    text = "(;CA[gb2312]PB[甲])" if codec != "utf-8" else "(;PB[甲])"
    assert decode(mark + text.encode(codec), LIST) == (text, frozenset())


def test_odd_byte_after_a_wide_text_is_damage() -> None:
    text, flags = decode(codecs.BOM_UTF16_LE + "(;PB[甲])".encode("utf-16-le") + b"x", LIST)
    assert text.startswith("(;PB[甲])")
    assert flags == {Flag.TEXT_DAMAGED}


@pytest.mark.parametrize(
    ("name", "codec"),
    [
        ("ISO8859_1", "latin-1"),
        ("iso-8859-1", "latin-1"),
        ("gb2312", "gb18030"),
        ("GBK", "gb18030"),
        ("GB18030", "gb18030"),
        ("utf8", "utf-8"),
        ("Shift_JIS", "cp932"),
        ("EUC-KR", "cp949"),
        ("Big5", "big5"),
        ("Windows-1252", "cp1252"),
        ("ISO-2022-JP", "iso2022_jp"),
    ],
)
def test_declared_charset_in_its_spellings(name: str, codec: str) -> None:
    player = "é" if codec in ("latin-1", "cp1252") else "한" if codec == "cp949" else "中"
    text = f"(;CA[{name}]PB[{player}])"
    data = text.encode(codec)
    if codec == "iso2022_jp":
        data += "é".encode()  # such a text is ASCII bytes alone; a high byte makes it go through the list
        assert Flag.CHARSET_MISMATCH in decode(data, LIST)[1]
    else:
        assert decode(data, LIST) == (text, frozenset())


@pytest.mark.parametrize("name", ["utf-16-le", "utf-16-be"])
def test_utf_16_without_a_mark(name: str) -> None:
    text = "\n (;PB[甲];B[aa])"
    assert decode(text.encode(name), LIST) == (text, frozenset())


def test_damage_after_the_mark_of_utf_8_is_no_other_charset() -> None:
    text, flags = decode(codecs.BOM_UTF8 + "(;PB[甲乙]PW[丙])".encode("gb18030"), LIST)
    assert flags == {Flag.TEXT_DAMAGED}
    assert text.count("]") == 2


@pytest.mark.parametrize(
    "declared", ["CA[UTF-8][UTF-8]", "CA[UTF-8]CA[gb2312]", "CA[utf8, utf8]", "CA[foo][UTF-8]", "CA[UTF-8,GB2312]"]
)
def test_of_two_values_the_first_usable_counts(declared: str) -> None:
    text = f"(;{declared}PB[甲乙丙])"
    decoded, flags = decode(text.encode(), LIST)
    assert decoded == text
    assert not flags


@pytest.mark.parametrize(
    "name", ["zip", "rot13", "hex", "idna", "punycode", "unicode_escape", "raw_unicode_escape", "utf-7", "undefined"]
)
def test_codecs_that_are_no_charsets_are_unknown(name: str) -> None:
    text = f"(;CA[{name}]PB[甲乙丙])"
    assert decode(text.encode(), LIST) == (text, frozenset({Flag.CHARSET_UNKNOWN}))


def test_wide_charset_cannot_be_what_a_readable_name_says() -> None:
    text = "(;CA[UTF-16]PB[甲乙丙])"
    assert decode(text.encode(), LIST) == (text, frozenset({Flag.CHARSET_MISMATCH}))


def test_every_declared_charset_is_known_to_python_and_keeps_ascii() -> None:
    ascii_text = "(;B[aa]C[x\\]])"
    for codec in set(_CODECS.values()):
        assert ascii_text.encode("ascii").decode(codec) == ascii_text, codec


def test_of_two_values_the_second_counts_where_the_first_does_not_decode() -> None:
    text = "(;CA[UTF-8,GB2312]PB[甲乙丙])"
    assert decode(text.encode("gb18030"), LIST) == (text, frozenset())


@pytest.mark.parametrize(
    ("declared", "codec"),
    [("UTF-8", "gb18030"), ("gb2312", "utf-8"), ("ISO-8859-1", "utf-8"), ("ISO8859_1", "gb18030"), ("Big5", "utf-8")],
)
def test_charset_that_lies(declared: str, codec: str) -> None:
    text = f"(;CA[{declared}]PB[甲]PW[乙]EV[研究会])"
    guessed = set() if codec == "utf-8" else {Flag.CHARSET_GUESSED}
    assert decode(text.encode(codec), LIST) == (text, {Flag.CHARSET_MISMATCH} | guessed)


def test_declared_charset_that_its_bytes_fit_is_believed_whatever_else_they_could_be() -> None:
    # Each of these is also text in UTF-8, in GB18030, or in both.
    for codec, name, word in (
        ("gb18030", "gb2312", "一"),
        ("latin-1", "ISO-8859-1", "créée"),
        ("cp949", "EUC-KR", "구리"),
    ):
        text = f"(;CA[{name}]PB[{word}])"
        assert decode(text.encode(codec), LIST) == (text, frozenset()), codec


def test_unknown_names_in_the_list_are_passed_over() -> None:
    text = "(;PB[甲]PW[乙])"
    assert decode(text.encode("gb18030"), ("nonsense", "gb18030")) == (text, {Flag.CHARSET_GUESSED})
    assert decode(text.encode("gb18030"), ("nonsense",))[1] == {Flag.TEXT_DAMAGED}


TEXTS = {
    "gb18030": ("甲方明 九段", "乙正华", "第3届友谊赛决赛", "白中盘胜"),
    "cp932": ("甲野太郎", "乙川ソノ子", "名人戦リーグ", "黒中押し勝ち"),
    "cp949": ("김갑동", "이을수", "제3회 친선대국 결승", "백 불계승"),
    "cp950": ("陳甲明", "黃乙華", "第三屆友誼賽決賽", "黑中盤勝"),
    "latin-1": ("Jörn Å", "Hélène", "Championnat créé à Liège", "W+R"),
}


@pytest.mark.parametrize("codec", TEXTS)
def test_charsets_are_told_apart(codec: str) -> None:
    black, white, event, result = TEXTS[codec]
    for text in (
        f"(;SZ[9]EV[{event}]PB[{black}]PW[{white}]RE[{result}];B[cc])",
        f"(;SZ[9]PB[{black}]PW[{white}];B[cc])",
        f"(;SZ[9];B[cc]C[{event}])",
    ):
        assert decode(text.encode(codec), LIST) == (text, {Flag.CHARSET_GUESSED})
        for order in permutations(LIST):
            assert decode(text.encode(codec), order)[0] == text


def test_order_decides_what_the_bytes_do_not() -> None:
    # Two characters of each charset, none of them of the common ones.
    data = "(;PB[浑琢])".encode("gb18030")
    assert decode(data, ("gb18030", "euc_jp"))[0] == data.decode("gb18030")
    assert decode(data, ("euc_jp", "gb18030"))[0] == data.decode("euc_jp")


def test_accented_letters_that_are_one_chinese_character_too() -> None:
    for text in ("(;PB[A]C[réalisé, créée par B];B[aa])", "(;PB[A]C[agréé par B];B[aa])"):
        assert decode(text.encode("latin-1"), LIST) == (text, {Flag.CHARSET_GUESSED})


def test_ascii_bytes_count_where_a_character_takes_them_in() -> None:
    # In Big5 the second bytes of these are ASCII; in Shift-JIS all four bytes are characters of their own.
    text = "(;PB[林張];B[aa])"
    assert decode(text.encode("big5"), LIST) == (text, {Flag.CHARSET_GUESSED})


def test_iso_2022_jp_by_its_escapes() -> None:
    text = "(;PB[竹本]PW[白番]C[3目];B[aa])"
    data = text.encode("iso2022_jp")
    assert data.isascii()
    assert data.count(b"\\") + data.count(b"]") > text.count("]")
    assert decode(data, LIST) == (text, {Flag.CHARSET_GUESSED})
    declared = "(;CA[ISO-2022-JP]" + text[2:]
    assert decode(declared.encode("iso2022_jp"), LIST) == (declared, frozenset())


def test_iso_2022_jp_that_is_not_shifted_back_leaves_the_rest_alone() -> None:
    data = "(;PB[甲]\n;B[aa])".encode("iso2022_jp").replace(b"\x1b(B", b"")
    text, flags = decode(data, LIST)
    assert flags == {Flag.TEXT_DAMAGED, Flag.CHARSET_GUESSED}
    assert text == data.decode("ascii")


def test_a_character_cut_off_in_a_value_takes_no_bracket_along() -> None:
    for declared, flags in (("", {Flag.CHARSET_GUESSED}), ("CA[gb2312]", set())):
        head = f"(;{declared}PB[甲乙"
        data = head.encode("gb18030") + b"\xb5]PW[" + "丙丁]C[研究会对局];B[aa])".encode("gb18030")
        assert decode(data, LIST) == (f"{head}\ufffd]PW[丙丁]C[研究会对局];B[aa])", flags | {Flag.TEXT_DAMAGED})


def test_second_bytes_that_look_like_brackets() -> None:
    # The second bytes of these are 5C and 5D in Shift-JIS: a byte-wise reader takes them for structure.
    text = "(;CA[Shift_JIS]PB[表能]PW[ゾ];B[aa])"
    data = text.encode("cp932")
    assert b"\\" in data
    assert decode(data, LIST) == (text, frozenset())


@pytest.mark.parametrize(
    "damaged",
    [
        b"(;CA[UTF-8]PB[\xe4\xb8\xad\xe5?\xbd]BR[9\xe6\xae\xb5]WR[9\xe6\xae\xb5])",  # declared or not
        b"(;PB[\xe4\xb8\xad\xe5?\xbd]BR[9\xe6\xae\xb5]WR[9\xe6\xae\xb5])",  # middle byte lost
        b"(;PB[\xe4\xb8\xad\xe5\x9b?]BR[9\xe6\xae\xb5]WR[9\xe6\xae\xb5])",  # last byte lost
        b"(;PB[\xe4\xb8\xad?\x9b\xbd]BR[9\xe6\xae\xb5]WR[9\xe6\xae\xb5])",  # first byte lost
        b"(;PB[\xe4\xb8\xad\xe5??]BR[9\xe6\xae\xb5]WR[9\xe6\xae\xb5])",  # two bytes lost
        b"(;PB[\xe4\xb8\xad\xe5\x9b]BR[9\xe6\xae\xb5]WR[9\xe6\xae\xb5])",  # cut off
        b"(;PB[\xe4\xb8\xad\xe5]BR[9\xe6\xae\xb5]WR[9\xe6\xae\xb5])",
    ],
)
def test_damaged_utf8_stays_utf8(damaged: bytes) -> None:
    text, flags = decode(damaged, LIST)
    assert flags == {Flag.TEXT_DAMAGED}
    assert "PB[中" in text
    assert text.count("[") == text.count("]") == damaged.count(b"]")
    assert text.endswith("BR[9段]WR[9段])")
    assert "\ufffd" in text


def test_bytes_of_no_charset_keep_their_brackets() -> None:
    text, flags = decode(b"(;PB[\xff\xfe\xff];B[aa])", LIST)
    assert flags == {Flag.TEXT_DAMAGED}
    assert text == "(;PB[\ufffd\ufffd\ufffd];B[aa])"


def test_a_charset_far_from_the_head_is_not_looked_for() -> None:
    text = "(;C[" + "x" * 10_000 + "]CA[gb2312]PB[甲])"
    assert decode(text.encode(), LIST) == (text, frozenset())


@given(st.binary(max_size=200), st.sampled_from([b"", b"CA[gb2312]", b"CA[utf-16]", b"CA[jis]", b"CA[zip]"]))
def test_never_raises_and_is_always_writable_as_utf8(data: bytes, declared: bytes) -> None:
    text, flags = decode(declared + data, LIST)
    assert decode(declared + data, LIST) == (text, flags)
    text.encode("utf-8", "replace")


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=50))
def test_utf8_is_read_back(text: str) -> None:
    # A leading mark is a mark and no text; and only a declared charset could say otherwise.
    if not text.startswith("\ufeff") and "A" not in text and "\x00" not in text:
        assert decode(text.encode(), LIST)[0] == text


# Moves do not depend on the guess


@pytest.mark.parametrize(
    "codec", sorted({*_CODECS.values(), "shift_jis", "euc_kr", "big5", "gbk"} - {"iso2022_jp_ext"})
)
def test_ascii_bytes_are_ascii_unless_they_are_second_bytes_and_no_parenthesis_is_one(codec: str) -> None:
    seconds = set()
    for pair in product(range(0x80, 0x100), range(0x80)):
        try:
            text = bytes(pair).decode(codec)
        except UnicodeDecodeError:
            continue
        if text[-1] != chr(pair[1]):
            seconds.add(pair[1])
        assert not text[:1].isascii()
    assert all(second >= 0x40 for second in seconds)


@lru_cache(maxsize=8)
def characters(codec: str) -> tuple[str, ...]:
    """All characters of two bytes, those with a bracket or backslash as the second byte four times over."""
    found = []
    for pair in product(range(0x81, 0xFF), range(0x40, 0xFF)):
        try:
            text = bytes(pair).decode(codec)
        except UnicodeDecodeError:
            continue
        if len(text) == 1 and text.encode(codec) == bytes(pair):
            found += [text] * (4 if pair[1] in b"[\\]" else 1)
    return tuple(found)


@st.composite
def record_in_a_charset(draw: st.DrawFn) -> tuple[bytes, list[str]]:
    codec = draw(st.sampled_from([codec for codec in TEXTS if codec != "latin-1"]))
    word = st.lists(st.one_of(st.sampled_from(characters(codec)), st.sampled_from("abc XY12")), min_size=1, max_size=8)
    moves = draw(st.lists(st.sampled_from(["aa", "cb", "si", "gg"]), min_size=1, max_size=6))
    nodes = [f";{'BW'[ply % 2]}[{move}]C[{''.join(draw(word))}]" for ply, move in enumerate(moves)]
    text = f"(;SZ[19]PB[{''.join(draw(word))}]PW[{''.join(draw(word))}]{''.join(nodes)})"
    return text.encode(codec), moves


@given(record_in_a_charset(), st.sampled_from([LIST, LIST[::-1], (), *((name,) for name in LIST)]))
def test_moves_are_the_same_whatever_the_text_is_taken_for(
    record: tuple[bytes, list[str]], encodings: tuple[str, ...]
) -> None:
    data, moves = record
    (game,) = parse_member(data, Input(encodings=encodings), Parse(), Rules())
    assert isinstance(game, Game)
    assert game.moves.tolist() == [(ord(move[1]) - 97) * 19 + ord(move[0]) - 97 for move in moves]


@pytest.mark.parametrize(
    "unit",
    [b"\xe9]", b"\x83]", b"\xe9] ", b"\xe9\\]", b"\xe9](;", b"\x1b$B!!", b"CA[", b"\xff", b"\xe4\xb8?", b"\xb0\xa1"],
)
def test_a_million_odd_bytes_take_no_time(unit: bytes) -> None:
    data = b"(;CA[gb2312]C[\xe9" + unit * (1_000_000 // len(unit))
    text, _ = decode(data, LIST)
    assert len(text) <= 2 * len(data)
