"""Tar archives: the same members as the standard library finds, and hostile headers that it would believe."""

import gzip
import io
import tarfile
import tracemalloc

import pytest

from pipeline.membernames import Names
from pipeline.streams import DamagedError, Unpacked
from pipeline.tars import MAX_HEADER, TarReader

FORMATS = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}


def tar_of(*members: tuple[str, bytes], form: str = "pax", kind: bytes = tarfile.REGTYPE) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=FORMATS[form], encoding="utf-8") as tar:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.type, info.size = kind, len(data)
            tar.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def header(name: bytes = b"a.sgf", size: bytes = b"00000000003\0", flag: bytes = b"0") -> bytes:
    """One header with a right checksum, whatever its fields hold."""
    block = bytearray(512)
    block[: len(name)] = name
    block[124:136] = size.ljust(12, b"\0")
    block[148:156] = b" " * 8
    block[156:157] = flag
    block[257:265] = b"ustar\x0000"
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def pax(*records: tuple[str, str], flag: bytes = b"x") -> bytes:
    body = b""
    for key, value in records:
        rest = f" {key}={value}\n".encode()
        length = next(n for n in range(len(rest), len(rest) + 9) if n == len(rest) + len(str(n)))
        body += str(length).encode() + rest
    return header(size=b"%011o" % len(body), flag=flag) + body + bytes(-len(body) % 512)


def block_of(data: bytes) -> bytes:
    return data + bytes(-len(data) % 512)


def reader(data: bytes) -> TarReader:
    return TarReader(Unpacked(io.BytesIO(data), lambda size: None), Names(("gb18030", "shift_jis"), "utf-8"))


def listed(data: bytes, limit: int = 10**6) -> list[tuple[str, str, bytes | None]]:
    tar, found = reader(data), []
    while entry := tar.next():
        found.append((entry.name, entry.kind, tar.read(limit) if entry.kind == "file" else None))
    return found


END = bytes(1024)


@pytest.mark.parametrize("form", FORMATS)
def test_members_are_those_that_were_written(form):
    members = [
        ("a.sgf", b"(;GM[1])"), ("./b.sgf", b""), ("deep/" * 18 + "c.sgf", b"c" * 512), ("trailing .sgf ", b"d" * 513),
    ]  # fmt: skip
    if form != "ustar":
        members += [("long" * 80 + ".sgf", b"e"), ("棋谱/甲.sgf", b"f" * 100_000)]
    assert listed(tar_of(*members, form=form)) == [(name, "file", data) for name, data in members]


def test_a_ustar_prefix_is_part_of_the_name():
    name = "p" * 90 + "/" + "n" * 90 + ".sgf"
    assert listed(tar_of((name, b"x"), form="ustar")) == [(name, "file", b"x")]


def test_members_that_are_not_read_are_passed_over():
    tar = reader(tar_of(("a.sgf", b"x" * 70_000), ("b.sgf", b"yy")))
    assert tar.next().name == "a.sgf"
    assert tar.next().name == "b.sgf"
    assert tar.read(2) == b"yy"
    assert tar.next() is None


def test_a_member_over_the_limit_is_none_and_the_next_is_read():
    assert listed(tar_of(("a.sgf", b"12345"), ("b.sgf", b"1234")), limit=4) == [
        ("a.sgf", "file", None), ("b.sgf", "file", b"1234"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("flag", "kind"),
    [(b"1", "link"), (b"2", "link"), (b"3", "special"), (b"4", "special"), (b"6", "special"), (b"5", "folder"),
     (b"0", "file"), (b"\0", "file"), (b"7", "file"), (b"V", "special"), (b"A", "special")],
)  # fmt: skip
def test_kinds(flag, kind):
    data = header(size=b"0", flag=flag) + header(b"next.sgf", b"0") + END
    assert [entry[:2] for entry in listed(data)] == [("a.sgf", kind), ("next.sgf", "file")]


def test_links_have_no_data_whatever_their_size_says():
    assert [entry[0] for entry in listed(header(size=b"00000001000", flag=b"2") + header(b"b", b"0") + END)] == [
        "a.sgf", "b",
    ]  # fmt: skip


def test_old_folders_end_in_a_slash():
    assert listed(header(b"games/", b"0", b"\0") + END) == [("games/", "folder", None)]


def test_pax_size_and_path_go_before_the_header():
    data = pax(("path", "real.sgf"), ("size", "4")) + header(b"short", b"0") + block_of(b"data") + END
    assert listed(data) == [("real.sgf", "file", b"data")]


def test_a_global_pax_header_names_nothing():
    data = pax(("comment", "x"), flag=b"g") + header(size=b"1") + block_of(b"y") + END
    assert listed(data) == [("a.sgf", "file", b"y")]


def test_names_in_other_charsets():
    chinese, japanese = "棋谱/第一局.sgf".encode("gb18030"), "めいじん戦.sgf".encode("shift_jis")
    data = header(chinese, b"0") + header(japanese, b"0") + header("棋é.sgf".encode(), b"0") + END
    assert [entry[0] for entry in listed(data)] == ["棋谱/第一局.sgf", "めいじん戦.sgf", "棋é.sgf"]


def test_names_that_are_no_text_keep_their_bytes():
    (entry,) = listed(header(b"\xff\xfe\xff.sgf", b"0") + END)
    assert entry[0].encode("utf-8", "surrogateescape") == b"\xff\xfe\xff.sgf"


def test_sizes_in_base_256():
    data = header(size=b"\x80" + (3).to_bytes(11, "big")) + block_of(b"abc") + END
    assert listed(data) == [("a.sgf", "file", b"abc")]


def test_sparse_members_are_told_apart_and_passed_over():
    old = bytearray(header(size=b"00000000003", flag=b"S"))
    old[482] = 1  # one more block of the map follows the header
    old[148:156] = b" " * 8
    old[148:156] = b"%06o\0 " % sum(old)
    new = pax(("GNU.sparse.major", "1"), ("GNU.sparse.name", "new.sgf")) + header(b"x", b"00000000003")
    data = bytes(old) + bytes(512) + block_of(b"abc") + new + block_of(b"abc") + header(b"next", b"0") + END
    assert [entry[:2] for entry in listed(data)] == [("a.sgf", "partial"), ("new.sgf", "partial"), ("next", "file")]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "no end mark"),
        (header(size=b"0"), "no end mark"),
        (header(size=b"0")[:300], "breaks off"),
        (header() + b"ab", "breaks off inside a member"),
        (header(size=b"\x80" + (10**10).to_bytes(11, "big")) + b"ab", "breaks off inside a member"),
        (b"(;GM[1])".ljust(512), "not a tar archive"),
        (header(size=b"0") + b"(;GM[1])".ljust(512), "damaged tar header"),
        (header(size=b"\xff" * 12) + END, "size is negative"),
        (header(size=b"-0000000512") + END, "size is negative"),
        (header(size=b"00000000009") + END, "not a number"),
        (header(size=b"0") + END + b"more", "after|follows"),
        (header(size=b"77777777777", flag=b"x"), "a tar header of 8589934591 bytes"),
        (header(size=b"%011o" % (MAX_HEADER + 1), flag=b"L"), "a tar header of"),
        (header(size=b"00000000010", flag=b"x") + b"8 path=", "breaks off inside a header"),
        (header(size=b"00000000007", flag=b"x") + block_of(b"9 size=x\n"[:7]), "damaged pax"),
        (header(size=b"00000000011", flag=b"x") + block_of(b"9 size=x\n"), "without a size"),
        (header(size=b"00000000005", flag=b"x") + block_of(b"0 a=\n"), "damaged pax"),
        (header(flag=b"x", size=b"00000100000") + b"1" * 0o100000, "damaged pax"),
    ],
)
def test_damage_is_named(data, message):
    with pytest.raises(DamagedError, match=message):
        listed(data)


def test_thousands_of_headers_before_one_member_are_no_deeper_than_one():
    data = pax(("path", "other")) * 5000 + pax(("path", "last.sgf")) + header(size=b"0") + END
    assert listed(data) == [("last.sgf", "file", b"")]


def test_memory_is_bounded_whatever_a_header_claims():
    claims = header(size=b"\x80" + (10**10).to_bytes(11, "big")) + bytes(50 * 2**20)
    packed = gzip.compress(claims, 1)
    del claims
    tracemalloc.start()
    try:
        with pytest.raises(DamagedError, match="breaks off"):
            listed(packed)
        assert tracemalloc.get_traced_memory()[1] < 4 * 2**20
    finally:
        tracemalloc.stop()
