"""Archives that libarchive reads: the same limits and reasons as for zip and tar, whatever is in them."""

import io
import random
import re
import signal
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from small_archives import (
    AES,
    LINK,
    LZMA,
    LZMA2,
    cab,
    cpio,
    lha,
    rar,
    rar5,
    seven_zip,
    seven_zip_file,
    seven_zip_hidden,
)

from pipeline import archives, config, libarchives, sources, unpacker
from pipeline.libarchives import LibraryReader, UnreadError
from pipeline.membernames import Names
from pipeline.reasons import Reason
from pipeline.sources import Member, Omitted, find_inputs, members, spool, units

_FIRST = subprocess.run(
    [sys.executable, "-P", unpacker.__file__], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False
).stdout
if _FIRST.startswith(b"M"):
    pytest.skip(f"archives extra: {_FIRST[unpacker.FRAME.size :].decode()}", allow_module_level=True)
libarchive = pytest.importorskip("libarchive")

GAME = b"(;GM[1]SZ[9];B[ee];W[dd])"
MIXED = (
    ("a.sgf", b"1"), ("棋谱/甲.sgf", b"22"), ("notes.txt", b"x"), ("dir/", b""), ("empty.sgf", b""), ("../e.sgf", b"x"),
    ("dir/.h.sgf", b"x"), ("__MACOSX/._a.sgf", b"x"), ("C:\\m.sgf", b"x"), ("link.sgf", b"/etc/hostname"),
    ("z.sgf", b"3"),
)  # fmt: skip
NOISE = [random.Random(number).randbytes(200_000) for number in range(4)]


def tar_of(*entries: tuple[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, data in entries:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def zip_of(*entries: tuple[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in entries:
            archive.writestr(name, data)
    return buffer.getvalue()


def inside(data: bytes, tmp_path: Path, name: str = "g.7z", **settings: object) -> tuple[dict[str, bytes], list[str]]:
    """Records by name and "name: reason" of the rest, as read from a file; the same comes out of memory."""
    asked = config.Input.model_validate({"paths": (str(tmp_path / "in" / name),), **settings})
    (tmp_path / "in").mkdir(exist_ok=True)
    (tmp_path / "in" / name).write_bytes(data)
    (tmp_path / "work").mkdir(exist_ok=True)
    files, omitted = find_inputs(asked)
    assert [file.kind for file in files] == ["stream"]
    found = [one for unit in spool(files[0], asked, str(tmp_path / "work")) for one in members(unit, asked)]
    assert found == list(archives.read_archive(name, io.BytesIO(data), len(data), asked, kind="stream"))
    assert omitted == []
    return (
        {one.member or "": one.data for one in found if isinstance(one, Member)},
        [f"{one.member or ''}: {one.reason.value}" for one in found if isinstance(one, Omitted)],
    )


def detail(data: bytes, name: str = "g.7z") -> str:
    """What is said of the one thing that is left out of an archive without records."""
    asked = config.Input.model_validate({"paths": ()})
    (one,) = archives.read_archive(name, io.BytesIO(data), len(data), asked, kind="stream")
    assert isinstance(one, Omitted)
    return f"{one.reason}: {one.detail}"


def opened(data: bytes, ticks: list[int]) -> LibraryReader:
    return LibraryReader(io.BytesIO(data), ticks.append, Names((), "utf-8"))


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[subprocess.Popen[bytes]]]:
    """The processes that are started, none of which may be left."""
    processes: list[subprocess.Popen[bytes]] = []
    real = subprocess.Popen

    def start(*arguments: object, **named: object) -> subprocess.Popen[bytes]:
        processes.append(real(*arguments, **named))
        return processes[-1]

    monkeypatch.setattr(libarchives.subprocess, "Popen", start)
    yield processes
    assert all(process.returncode is not None for process in processes)


# What is in them.


@pytest.mark.parametrize("solid", [True, False])
@pytest.mark.parametrize("packed", [{}, {"method": LZMA2, "properties": b"\x18"}], ids=["copy", "lzma2"])
def test_members_of_a_7z_are_sorted_out_as_those_of_a_zip(tmp_path, solid, packed):
    data = seven_zip(*MIXED, solid=solid, attributes={"link.sgf": LINK, "dir/": 0x10}, **packed)
    found, omitted = inside(data, tmp_path)
    assert found == {"a.sgf": b"1", "棋谱/甲.sgf": b"22", "empty.sgf": b"", "z.sgf": b"3"}
    assert omitted == [
        "notes.txt: not-a-record", "../e.sgf: unsafe-member", "dir/.h.sgf: hidden", "__MACOSX/._a.sgf: resource-fork",
        "C:\\m.sgf: unsafe-member", "link.sgf: unsafe-member",
    ]  # fmt: skip
    assert sorted(path.name for path in (tmp_path / "in").iterdir()) == ["g.7z"]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("g.rar", rar((b"a.sgf", GAME), (b"deep\\b.sgf", b"2"))),
        ("g.rar", rar5(("a.sgf", GAME), ("deep/b.sgf", b"2"))),
        ("g.cab", cab((b"a.sgf", GAME), (b"deep\\b.sgf", b"2"))),
        ("g.lzh", lha((b"a.sgf", GAME), (b"deep/b.sgf", b"2"))),
        ("g.cpio", cpio((b"a.sgf", GAME), (b"deep/b.sgf", b"2"))),
        ("g.tar.zst", pa.compress(tar_of(("a.sgf", GAME), ("deep/b.sgf", b"2")), codec="zstd", asbytes=True)),
        ("g.tar.lz4", pa.compress(tar_of(("a.sgf", GAME), ("deep/b.sgf", b"2")), codec="lz4", asbytes=True)),
    ],
    ids=["rar", "rar5", "cab", "lha", "cpio", "zst", "lz4"],
)  # fmt: skip
def test_other_formats(tmp_path, name, data):
    assert inside(data, tmp_path, name) == ({"a.sgf": GAME, "deep/b.sgf": b"2"}, [])


def test_an_iso_is_known_by_its_name(tmp_path):
    parts: list[bytes] = []

    def write(data: bytes) -> int:
        parts.append(bytes(data))
        return len(data)

    with libarchive.custom_writer(write, "iso9660") as archive:
        archive.add_file_from_memory("games/a.sgf", len(GAME), GAME)
    assert inside(b"".join(parts), tmp_path, "g.iso") == ({"games/a.sgf": GAME}, [])


@pytest.mark.parametrize("pack", [rar, cab, lha, cpio])
@pytest.mark.parametrize(("codec", "name"), [("gb18030", "棋谱/第一局.sgf"), ("cp932", "棋譜/第一局めいじん.sgf")])
def test_names_in_any_charset(tmp_path, pack, codec, name):
    assert inside(pack((name.encode(codec), GAME)), tmp_path, "g." + pack.__name__) == ({name: GAME}, [])


def test_what_an_archive_is_is_told_by_its_bytes(tmp_path):
    data = seven_zip(("a.sgf", GAME))
    assert inside(data, tmp_path, "g.rar") == inside(data, tmp_path, "download.bin") == ({"a.sgf": GAME}, [])
    assert inside(tar_of(("LZIP a.sgf", GAME)), tmp_path, "g.7z") == ({"LZIP a.sgf": GAME}, [])


def test_archives_in_archives(tmp_path):
    games = seven_zip(("a.sgf", b"1"))
    data = seven_zip(
        ("n.zip", zip_of(("b.sgf", b"2"), ("m.7z", games))), ("o.7z", games), ("p.rar", b"rubbish"), ("q.7z", b""),
        ("z.sgf", b"3"),
    )  # fmt: skip
    assert inside(data, tmp_path) == (
        {"n.zip/b.sgf": b"2", "n.zip/m.7z/a.sgf": b"1", "o.7z/a.sgf": b"1", "z.sgf": b"3"},
        ["p.rar: damaged-archive", "q.7z: damaged-archive"],
    )
    found, omitted = inside(data, tmp_path, max_depth=1)
    assert list(found) == ["n.zip/b.sgf", "o.7z/a.sgf", "z.sgf"]
    assert omitted == ["n.zip/m.7z: too-deep", "p.rar: damaged-archive", "q.7z: damaged-archive"]
    assert inside(data, tmp_path, max_depth=0)[1] == [
        f"{name}: too-deep" for name in ("n.zip", "o.7z", "p.rar", "q.7z")
    ]


def test_a_7z_in_a_zip(tmp_path):
    path = tmp_path / "g.zip"
    path.write_bytes(zip_of(("n.7z", seven_zip(("a.sgf", GAME))), ("b.sgf", b"2")))
    asked = config.Input.model_validate({"paths": (str(path),)})
    found = [one for unit in units(find_inputs(asked)[0], asked) for one in members(unit, asked)]
    assert found == [Member("g.zip", "n.7z/a.sgf", GAME), Member("g.zip", "b.sgf", b"2")]


# Limits.


def test_a_member_over_the_limit_is_refused_and_the_next_is_read(tmp_path):
    data = seven_zip(("a.sgf", b"12345"), ("b.sgf", b"1234"), ("c.sgf", bytes(300_000)), ("d.sgf", b"4"))
    assert inside(data, tmp_path, max_member_bytes=4) == (
        {"b.sgf": b"1234", "d.sgf": b"4"}, ["a.sgf: member-too-large", "c.sgf: member-too-large"],
    )  # fmt: skip


def test_members_over_the_count_are_refused_once(tmp_path, started):
    data = seven_zip(*((f"{number}.sgf", b"x") for number in range(7)), ("dir/", b""))
    found, omitted = inside(data, tmp_path, max_members=5)
    assert (len(found), omitted) == (5, [": too-many-members"])
    assert inside(data, tmp_path, max_members=7)[1] == []


def test_an_archive_that_swells_is_stopped(tmp_path, monkeypatch, started):
    monkeypatch.setattr(archives, "SLACK", 1_000_000)
    data = seven_zip(*((f"{n}.sgf", bytes(200_000)) for n in range(20)), method=LZMA2, properties=b"\x18")
    found, omitted = inside(data, tmp_path, max_ratio=10)
    assert len(found) == (1_000_000 + 10 * len(data)) // 200_010
    assert omitted == [": swells"]
    assert len(inside(data, tmp_path, max_ratio=10_000)[0]) == 20


def test_names_and_folders_count_as_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "SLACK", 0)
    data = seven_zip(*((f"{number}/", b"") for number in range(10_000)), ("a.sgf", GAME))
    assert inside(data, tmp_path, max_ratio=0.5) == ({}, [": swells"])
    assert inside(data, tmp_path, max_ratio=2)[1] == []


def test_a_solid_7z_is_unpacked_once():
    data = seven_zip(*((f"{n}.sgf", NOISE[n]) for n in range(4)), method=LZMA2, properties=b"\x18")
    ticks: list[int] = []
    with opened(data, ticks) as reader:
        while entry := reader.next():
            if entry.name != "1.sgf":
                assert reader.read(10**6) == NOISE[int(entry.name[0])]
    assert 800_000 <= sum(ticks) < 800_100


# Hostile archives.


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (seven_zip(("a.sgf", GAME), method=LZMA2, properties=b"\x28"), "damaged-archive: .*memory"),  # of 4 GiB
        (seven_zip(("a.sgf", GAME), method=LZMA, properties=b"\x5d\xff\xff\xff\xbf"), "damaged-archive: .*memory"),
        (seven_zip(("a.sgf", GAME), files=90_000_000), "damaged-archive: .*memory"),
        (seven_zip(("a.sgf", GAME), method=b"\x04\x09\x09"), "damaged-archive: Unknown codec"),
        (seven_zip_file(b"", b"\x01\x00", 2**35), "damaged-archive: "),
        (seven_zip_file(bytes(100), b"\x01\x00", 2**62), "damaged-archive: "),
        (seven_zip(("a.sgf", GAME))[:-10], "damaged-archive: "),
        (seven_zip(("a.sgf", GAME))[:40], "damaged-archive: "),
        (seven_zip_hidden(), "encrypted: .*header is encrypted"),
        (seven_zip(("a.sgf", GAME), method=AES, properties=b"\x53\x07" + bytes(16)), "encrypted: "),
        (rar((b"a.sgf", GAME), encrypted=True), "encrypted: "),
        (b"", "damaged-archive: "),
        (b"7z\xbc\xaf\x27\x1c", "damaged-archive: "),
        (b"(;GM[1])", "damaged-archive: Unrecognized archive format"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_has_a_reason(data, reason):
    assert re.match(reason, detail(data))


def test_a_wrong_checksum_spares_the_other_members(tmp_path):
    for solid in (True, False):
        data = seven_zip(("a.sgf", b"1"), ("b.sgf", NOISE[0]), ("c.sgf", b"3"), solid=solid, wrong=("a.sgf", "b.sgf"))
        assert inside(data, tmp_path) == ({"c.sgf": b"3"}, ["a.sgf: damaged-member", "b.sgf: damaged-member"])


@pytest.mark.parametrize("more", [-3, 5])
def test_a_size_that_is_not_that_of_the_data(tmp_path, more):
    data = rar((b"a.sgf", GAME), (b"b.sgf", b"2"), more=more)
    assert inside(data, tmp_path, "g.rar") == ({"b.sgf": b"2"}, ["a.sgf: damaged-member"])


def test_what_was_whole_in_a_cut_archive_is_kept(tmp_path):
    data = rar(*((b"%d.sgf" % number, one) for number, one in enumerate(NOISE)))
    found, omitted = inside(data[: len(data) * 7 // 8], tmp_path, "g.rar")
    assert list(found.values()) == NOISE[:3]
    assert omitted[-1].endswith(": damaged-archive")


def test_random_damage_never_ends_in_an_error():
    """Bytes changed and cut at random: members and reasons, and nothing else."""
    names = [(f"{number}.sgf", b"(;B[%02d])" % number * 50) for number in range(3)]
    raw = [(name.encode(), data) for name, data in names]
    starts = [
        ("g.7z", seven_zip(*names)), ("g.7z", seven_zip(*names, method=LZMA2, properties=b"\x18", solid=False)),
        ("g.rar", rar(*raw)), ("g.rar", rar5(*names)), ("g.cab", cab(*raw)), ("g.lzh", lha(*raw)),
        ("g.cpio", cpio(*raw)),
    ]  # fmt: skip
    order = random.Random(7)
    outcomes = set()
    asked = config.Input.model_validate({"paths": ()})
    for number in range(140):
        name, data = starts[number % len(starts)]
        changed = bytearray(data)
        for _ in range(order.choice((1, 2, 8))):
            changed[order.randrange(len(changed))] = order.choice((0, 1, 0x7F, 0xFF, order.randrange(256)))
        if order.random() < 0.3:
            del changed[order.randrange(len(changed)) :]
        for one in archives.read_archive(name, io.BytesIO(changed), len(changed), asked, kind="stream"):
            outcomes.add(one.reason if isinstance(one, Omitted) else "member")
            (one.member or "").encode()
    assert {"member", Reason.DAMAGED_ARCHIVE, Reason.DAMAGED_MEMBER} <= outcomes


# The process that reads.


BIG = seven_zip(*((f"{number}.sgf", bytes(60_000)) for number in range(100)))  # more than a pipe holds


def read_all(reader: LibraryReader) -> None:
    while reader.next():
        pass


def test_a_reader_that_is_left_early_ends_its_process(started):
    with opened(BIG, []) as reader:
        assert reader.next().name == "0.sgf"
    assert started[0].returncode == -signal.SIGKILL


@pytest.mark.parametrize(("number", "words"), [("SIGSEGV", "ended by it .SIGSEGV"), ("SIGPROF", "takes too long")])
def test_an_archive_that_ends_its_process_is_damaged(started, number, words):
    with opened(BIG, []) as reader:
        reader.next()
        started[0].send_signal(signal.Signals[number])
        with pytest.raises(UnreadError, match=words) as caught:
            read_all(reader)
    assert caught.value.reason is Reason.DAMAGED_ARCHIVE


def test_a_process_that_somebody_kills_says_nothing_of_the_archive(started):
    with opened(BIG, []) as reader:
        reader.next()
        started[0].kill()
        with pytest.raises(ChildProcessError, match="SIGKILL: run again"):
            read_all(reader)


def test_a_call_that_takes_too_long_ends_the_process():
    folder = str(Path(unpacker.__file__).parent)
    lines = f"import sys; sys.path.append({folder!r}); import unpacker; unpacker.CALL_SECONDS = 0.1"
    loop = "unpacker.guarded(lambda: [None for _ in iter(int, 1)])"
    start = time.monotonic()
    assert subprocess.run([sys.executable, "-P", "-c", f"{lines}; {loop}"], check=False).returncode == -signal.SIGPROF
    assert time.monotonic() - start < 30


def test_the_library_may_be_missing_though_its_binding_is_there(monkeypatch):
    monkeypatch.setenv("LIBARCHIVE", "/nowhere/libarchive.so")
    assert detail(seven_zip(("a.sgf", GAME))).startswith("needs-extra: libarchive-c is there, but not the library")


def test_blocks_do_not_depend_on_how_they_are_cut(tmp_path, monkeypatch):
    data = seven_zip(*((f"{number}.sgf", b"%d" % number) for number in range(10)))
    whole = inside(data, tmp_path)
    monkeypatch.setattr(sources, "BLOCK_MEMBERS", 3)
    assert inside(data, tmp_path) == whole
