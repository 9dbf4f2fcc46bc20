"""Names whose charset is not stated: read alike in one archive, and never made equal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.membernames import Names

ENCODINGS = ("gb18030", "shift_jis", "euc_kr", "big5", "latin-1")


def read(*raws: bytes, encodings: tuple[str, ...] = ENCODINGS, standard: str = "utf-8") -> list[str]:
    names = Names(encodings, standard)
    for raw in raws:
        names.learn(raw)
    return [names.read(raw) for raw in raws]


@pytest.mark.parametrize(
    ("codec", "name"),
    [
        ("gb18030", "第十届名人战/甲乙丙.sgf"), ("cp932", "名人戦第３局.sgf"), ("cp949", "명인전 결승.sgf"),
        ("cp950", "第三屆天元賽決賽.sgf"), ("latin-1", "Jürgen–René.sgf".replace("–", "-")), ("utf-8", "甲é.sgf"),
        ("ascii", "plain \\\\ name.sgf"),
    ],
)  # fmt: skip
def test_a_name_is_read_in_its_charset(codec, name):
    assert read(name.encode(codec)) == [name]


def test_a_doubtful_name_is_read_as_the_others_of_its_archive():
    names = ["기보.sgf", "제2회 명인전/결승.sgf", "김갑수 이을동.sgf"]
    assert read(names[0].encode("cp949")) != names[:1]
    assert read(*(name.encode("cp949") for name in names)) == names


def test_utf8_of_two_bytes_by_chance():
    raw = "小.sgf".encode("gb18030")
    assert raw.decode("utf-8") == "С.sgf"
    assert read(raw, "第十届名人战.sgf".encode("gb18030"))[0] == "小.sgf"
    assert read("ñandú.sgf".encode(), "第十届名人战.sgf".encode())[0] == "ñandú.sgf"


def test_only_the_first_names_and_each_folder_once_decide():
    folder = "第十届名人战决赛".encode("gb18030")
    many = [folder + b"/%d.sgf" % number for number in range(100)]
    korean = ["김갑수이을동박병철최정무.sgf".encode("cp949")] * 3
    names = Names(ENCODINGS, "utf-8")
    for raw in [*many, *korean]:
        names.learn(raw)
    assert names.read(folder) == "第十届名人战决赛"
    late = Names(ENCODINGS, "utf-8")
    for number in range(60):
        late.learn("第十届名人战决赛第".encode("gb18030") + b"%d.sgf" % number)
    before = late.read(korean[0])
    late.learn(korean[0])
    assert late.read(korean[0]) == before


def test_where_the_sample_ends_is_no_part_of_what_it_tells():
    for length in range(1, 9):
        names = Names(ENCODINGS, "utf-8")
        for number in range(100):
            names.learn(f"{'第é' * length}{number}.sgf".encode())
        assert names.read("éé.sgf".encode()) == "éé.sgf"


def test_a_name_that_is_too_long_is_not_looked_at():
    raw = "局".encode("gb18030") * 9000
    assert read(raw)[0].encode("utf-8", "surrogateescape") == raw


def test_two_spellings_of_one_letter_stay_two_names():
    """Shift-JIS has several byte pairs for some signs: only one of them comes back when the sign is written."""
    one, other = b"\x81\xe0.sgf", b"\x87\x90.sgf"
    assert one.decode("cp932") == other.decode("cp932")
    first, second = read(one, other, encodings=("shift_jis",))
    assert (first, second) == ("≒.sgf", "\udc87\udc90.sgf")


@pytest.mark.parametrize(("standard", "shown"), [("cp437", "ⁿ²■ .sgf"), ("utf-8", "\udcfc\udcfd\udcfe\udcff.sgf")])
def test_what_is_no_text_is_as_the_format_has_it(standard, shown):
    assert read(b"\xfc\xfd\xfe\xff.sgf", encodings=("gb18030",), standard=standard) == [shown.replace(" ", "\xa0")]


def test_a_charset_that_python_does_not_know_is_passed_over():
    assert read("第一局.sgf".encode("gb18030"), encodings=("no-such", "gb18030", "hex")) == ["第一局.sgf"]


def test_control_characters_are_no_letters():
    """Quotes of cp1252 are controls in Latin-1, for which a name would be refused."""
    assert read(b"\x93a\x94.sgf", encodings=("latin-1",)) == ["\udc93a\udc94.sgf"]


@given(st.lists(st.binary(max_size=12), max_size=6), st.sampled_from(["cp437", "utf-8"]))
def test_any_bytes_are_read_and_a_charset_of_one_gives_no_two_the_same_name(raws, standard):
    raws = list(dict.fromkeys(raws))
    shown = read(*raws, encodings=(), standard=standard)
    if standard == "utf-8":
        assert [name.encode("utf-8", "surrogateescape") for name in shown] == raws
    read(*raws, standard=standard)
