"""Zip archives: the same entries as the standard library finds, and directories that lie."""

import io
import random
import struct
import zipfile
import zlib

import pytest

from pipeline.streams import DamagedError
from pipeline.zips import ZipEntry, find_directory, read_entry, zip_entries, zip_names

LIMIT = 10**6
ENCODINGS = ("gb18030", "shift_jis", "euc_kr", "big5", "latin-1")


def zip_of(*members: tuple[str | zipfile.ZipInfo, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return buffer.getvalue()


def entries(data: bytes) -> list[ZipEntry]:
    handle = io.BytesIO(data)
    directory = find_directory(handle)
    names = zip_names(handle, directory, ENCODINGS)
    return list(zip_entries(handle, directory.start, directory.stop, names.read))


def unread(raw: bytes) -> str:
    return raw.decode("cp437")


def contents(data: bytes, limit: int = LIMIT, ticks: list[int] | None = None) -> list[bytes | str | None]:
    """Of each entry its bytes, None where it is too large, or what is wrong with it."""
    handle = io.BytesIO(data)
    directory = find_directory(handle)
    out: list[bytes | str | None] = []
    for entry in zip_entries(handle, directory.start, directory.stop, unread):
        try:
            out.append(read_entry(handle, directory, entry, limit, (ticks if ticks is not None else []).append))
        except DamagedError as error:
            out.append(str(error))
    return out


def patched(data: bytes, field: int, value: bytes) -> bytes:
    """The archive with bytes written over those at ``field`` of its first central entry."""
    at = data.index(b"PK\x01\x02") + field
    return data[:at] + value + data[at + len(value) :]


NOISE = random.Random(3).randbytes(200_000)
MEMBERS = (("a.sgf", b"(;GM[1])"), ("棋/b.sgf", b""), ("c.sgf", bytes(300_000)), ("d.sgf", NOISE))


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_contents_are_those_that_were_written(method):
    data = zip_of(*MEMBERS, method=method)
    ticks: list[int] = []
    assert [(entry.name, entry.size) for entry in entries(data)] == [(name, len(text)) for name, text in MEMBERS]
    assert contents(data, ticks=ticks) == [text for _, text in MEMBERS]
    assert sum(ticks) == sum(len(text) for _, text in MEMBERS)


def test_bytes_before_and_a_comment_after_the_archive():
    data = b"#!/bin/sh\n" * 100 + zip_of(*MEMBERS)
    data = data[:-2] + struct.pack("<H", 5) + b"hello"
    assert contents(data) == [text for _, text in MEMBERS]


def test_sizes_of_zip64():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive, archive.open("a.sgf", "w", force_zip64=True) as member:
        member.write(b"moves")
    data = buffer.getvalue()
    # The same archive with all that can be written in 64 bits written so (APPNOTE 4.3.14, 4.3.15, 4.5.3).
    start, end = data.index(b"PK\x01\x02"), data.index(b"PK\x05\x06")
    central = bytearray(data[start:end])
    central[20:28] = b"\xff" * 8
    central[42:46] = b"\xff" * 4
    central[30:32] = struct.pack("<H", 28)
    central = central[: 46 + 5] + struct.pack("<HHQQQ", 1, 24, 5, 5, 0)
    end64 = struct.pack("<4sQHHLLQQQQ", b"PK\x06\x06", 44, 45, 45, 0, 0, 1, 1, len(central), start)
    locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, start + len(central), 1)
    end32 = struct.pack("<4sHHHHLLH", b"PK\x05\x06", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    data = data[:start] + central + end64 + locator + end32
    assert contents(data) == [b"moves"]
    assert contents(b"before" + data) == [b"moves"]


def test_a_large_directory_is_read_in_windows():
    names = [f"{number:06}" + "x" * 200 + ".sgf" for number in range(5000)]  # 1.3 MB
    data = zip_of(*((name, b"") for name in names))
    found = entries(data)
    assert [entry.name for entry in found] == names
    assert [entry.at for entry in found[1:]] == [entry.end for entry in found[:-1]]
    half = found[2500].at
    handle = io.BytesIO(data)
    assert [entry.name for entry in zip_entries(handle, half, found[-1].end, unread)] == names[2500:]


def test_limit_is_on_what_comes_out():
    data = zip_of(("a.sgf", b"x" * 1000), ("b.sgf", b"x" * 1001))
    ticks: list[int] = []
    assert contents(data, 1000, ticks) == [b"x" * 1000, None]
    assert sum(ticks) == 1000  # of the second nothing is kept
    # A size that lies: too small, too large, and too large for the limit.
    for stated, outcome in ((999, "holds more than the 999"), (1001, "holds fewer than the 1001"), (2**31, "fewer")):
        (one, _) = contents(patched(data, 24, struct.pack("<L", stated)), 10**6)
        assert outcome in one


def test_every_kind_of_damage_spares_the_next_member():
    good = zip_of(("a.sgf", b"moves of one"), ("b.sgf", b"others"))
    for field, value, message in (
        (10, struct.pack("<H", 9), "compression method 9"),
        (16, b"\0\0\0\0", "checksum"),
        (20, struct.pack("<L", 2), "fewer"),  # compressed size
        (42, struct.pack("<L", 7), "is not where"),
        (42, struct.pack("<L", 2**32 - 2), "outside the archive"),
    ):
        first, second = contents(patched(good, field, value))
        assert message in first
        assert second == b"others"
    at = good.index(b"a.sgf") + 5
    first, second = contents(good[:at] + b"\xff" + good[at + 1 :])
    assert "invalid block type" in first
    assert second == b"others"


def test_lzma_with_a_huge_dictionary_is_refused():
    data = zip_of(("a.sgf", b"moves" * 100), method=zipfile.ZIP_LZMA)
    at = data.index(b"a.sgf") + 5 + 4 + 1
    (outcome,) = contents(data[:at] + b"\xff\xff\xff\xff" + data[at + 4 :])
    assert "not supported" in outcome
    (outcome,) = contents(data[: at - 1] + b"\xff" + data[at:])  # lc, lp and pb out of range
    assert "not supported" in outcome


def test_kinds_and_encryption():
    link = zipfile.ZipInfo("link.sgf")
    link.external_attr = 0o120777 << 16
    pipe = zipfile.ZipInfo("pipe.sgf")
    pipe.external_attr = 0o010644 << 16
    data = zip_of((link, b"/etc/hostname"), (pipe, b""), ("games/", b""), ("a.sgf", b""))
    assert [entry.kind for entry in entries(data)] == ["link", "special", "folder", "file"]
    assert [entry.encrypted for entry in entries(data)] == [False] * 4
    assert entries(patched(data, 8, b"\x01\x00"))[0].encrypted


def test_names_by_flag():
    data = zip_of(("aaaa.sgf", b""))
    for flag, name, read in (
        (b"\x00\x08", "棋.s".encode(), "棋.s"),
        (b"\x00\x08", b"\xd6\xd0.s", "中.s"),  # the flag lies
        (b"\x00\x00", b"\xd6\xd0.s", "中.s"),
        (b"\x00\x00", "棋.s".encode(), "棋.s"),
        (b"\x00\x00", b"Ren\x82.s", "René.s"),
        (b"\x00\x00", b"\xff\xff\xfe\xff.s", "\xa0\xa0■\xa0.s"),
    ):
        (entry,) = entries(patched(patched(data, 46, name), 8, flag))
        assert entry.name.startswith(read)
        assert entry.raw.startswith(name)


def unflagged(*members: tuple[bytes, bytes], extra: bytes = b"") -> bytes:
    """A zip whose names are bytes, without a word on their charset."""
    out, central = b"", b""
    for name, data in members:
        head = struct.pack("<HHHHHLLLHH", 20, 0, 0, 0, 33, zlib.crc32(data), len(data), len(data), len(name), 0)
        central += b"PK\x01\x02\x14\x00" + head[:-2] + struct.pack("<HHHHLL", len(extra), 0, 0, 0, 0, len(out))
        central += name + extra
        out += b"PK\x03\x04" + head + name + data
    count = len(members)
    return out + central + struct.pack("<4sHHHHLLH", b"PK\x05\x06", 0, 0, count, count, len(central), len(out), 0)


@pytest.mark.parametrize(
    ("codec", "names"),
    [
        ("gb18030", ["第一届名人战/李甲对王乙.sgf", "第二局.sgf"]),
        ("cp932", ["第一期名人戦/甲野対乙山.sgf", "タイトル戦.sgf"]),
        ("cp949", ["제1회명인전/김갑수이을동.sgf", "기보.sgf"]), ("cp950", ["第一屆名人賽/陳甲對劉乙.sgf", "棋譜.sgf"]),
    ],
)  # fmt: skip
def test_names_in_the_charset_of_the_archive(codec, names):
    data = unflagged(*((name.encode(codec), b"") for name in names))
    assert [entry.name for entry in entries(data)] == names


def test_a_part_of_an_archive_has_the_names_of_the_whole():
    """The last name alone is read in another charset."""
    names = [f"第{number}局/陳甲對劉乙.sgf" for number in range(20)] + ["棋譜.sgf"]
    data = unflagged(*((name.encode("cp950"), b"") for name in names))
    assert entries(unflagged((names[-1].encode("cp950"), b"")))[0].name != names[-1]
    handle = io.BytesIO(data)
    directory = find_directory(handle)
    last = entries(data)[-1]
    read = zip_names(handle, directory, ENCODINGS).read
    assert [entry.name for entry in zip_entries(handle, last.at, last.end, read)] == ["棋譜.sgf"]


def test_two_charsets_in_one_archive():
    names = [
        "甲乙杯棋谱/第一局.sgf".encode("gb18030"),
        "名人戦/めいじん第3局.SGF".encode("cp932"),
        "囲碁/é.sgf".encode(),
    ]
    assert [entry.name for entry in entries(unflagged(*((name, b"") for name in names)))] == [
        "甲乙杯棋谱/第一局.sgf", "名人戦/めいじん第3局.SGF", "囲碁/é.sgf",
    ]  # fmt: skip


def test_the_unicode_path_of_info_zip_goes_first():
    raw, text = b"Caf\x82.sgf", "Ærø/棋.sgf".encode()
    for version, crc, name in ((1, zlib.crc32(raw), "Ærø/棋.sgf"), (2, zlib.crc32(raw), None), (1, 0, None)):
        field = struct.pack("<BL", version, crc) + text
        extra = struct.pack("<HHH", 0x5455, 2, 0) + struct.pack("<HH", 0x7075, len(field)) + field
        (entry,) = entries(unflagged((raw, b""), extra=extra))
        assert entry.name == (name or "Café.sgf")
        assert entry.raw == raw


def test_letters_of_cp437_that_were_made_utf8_are_read_as_what_they_were():
    """As zipfile writes the names of an archive that it has read."""
    wrong = [
        "甲乙杯棋谱/第一局.sgf".encode("gb18030").decode("cp437"),
        "名人戦/第3局.SGF".encode("cp932").decode("cp437"),
    ]
    right = ["√2.sgf", "Σ≤9.sgf", "é.sgf", "棋└.sgf"]
    assert [entry.name for entry in entries(zip_of(*((name, b"") for name in (*wrong, *right))))] == [
        "甲乙杯棋谱/第一局.sgf", "名人戦/第3局.SGF", *right,
    ]  # fmt: skip


@pytest.mark.parametrize("data", [b"", b"PK\x05\x06", b"PK\x03\x04" * 50, bytes(100_000)])
def test_no_directory(data):
    with pytest.raises(DamagedError, match="no central directory"):
        find_directory(io.BytesIO(data))


def test_a_directory_that_is_not_where_it_should_be():
    data = zip_of(("a.sgf", b"x"), ("b.sgf", b"y"))
    for field, value in ((12, 2**32 - 1), (16, 2**31)):
        at = data.index(b"PK\x05\x06") + field
        with pytest.raises(DamagedError, match="not where"):
            find_directory(io.BytesIO(data[:at] + struct.pack("<L", value) + data[at + 4 :]))
    second = data.rindex(b"PK\x01\x02")
    handle = io.BytesIO(data[:second] + b"XX" + data[second + 2 :])
    directory = find_directory(handle)
    found = zip_entries(handle, directory.start, directory.stop, unread)
    assert next(found).name == "a.sgf"
    with pytest.raises(DamagedError, match="directory is damaged"):
        next(found)


def test_the_stated_size_bounds_an_archive_whose_entries_overlap():
    """Many entries of one compressed kernel: each is counted, whatever the file's own size."""
    data = zip_of(("a.sgf", bytes(10**6)))
    start, end = data.index(b"PK\x01\x02"), data.index(b"PK\x05\x06")
    central = data[start:end] * 50
    data = data[:start] + central + struct.pack("<4sHHHHLLH", b"PK\x05\x06", 0, 0, 50, 50, len(central), start, 0)
    ticks: list[int] = []
    assert contents(data, ticks=ticks) == [bytes(10**6)] * 50
    assert sum(ticks) == 50 * 10**6
    assert zlib.crc32(bytes(10**6)) == entries(data)[49].crc
