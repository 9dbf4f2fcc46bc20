"""Text decoding: which charset wins, what is flagged, and that brackets survive."""

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.reasons import Flag
from pipeline.text import _CODECS, decode

LIST = ("gb18030", "shift_jis", "euc_kr", "big5")


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


@pytest.mark.parametrize("declared", ["CA[UTF-8][UTF-8]", "CA[utf8, utf8]", "CA[foo][UTF-8]"])
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


def test_charset_that_lies() -> None:
    text = "(;CA[UTF-8]PB[甲]PW[乙]EV[研究会])"
    assert decode(text.encode("gb18030"), LIST) == (text, {Flag.CHARSET_MISMATCH, Flag.CHARSET_GUESSED})


def test_list_is_tried_in_its_order() -> None:
    text = "(;PB[甲]PW[乙])"
    assert decode(text.encode("gb18030"), LIST) == (text, {Flag.CHARSET_GUESSED})
    assert decode(text.encode("gb18030"), ("nonsense", "latin-1"))[0] == text.encode("gb18030").decode("latin-1")


def test_second_bytes_that_look_like_brackets() -> None:
    # The second bytes of these are 5C and 5D in Shift-JIS: a byte-wise reader takes them for structure.
    text = "(;CA[Shift_JIS]PB[表能]PW[ゾ];B[aa])"
    data = text.encode("cp932")
    assert b"\\" in data
    assert decode(data, LIST) == (text, frozenset())


@pytest.mark.parametrize(
    "damaged",
    [
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
    assert text.startswith("(;PB[中")
    assert text.count("[") == text.count("]") == 3
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
