"""Inputs, units and members: what is read, what is left out and why, and that hostile input changes neither."""

import gzip
import io
import json
import os
import pickle
import random
import re
import struct
import tarfile
import tracemalloc
import zipfile
import zlib
from collections import Counter
from pathlib import Path

import pytest

from pipeline import archives, config, sources
from pipeline.archives import printable
from pipeline.reasons import Reason
from pipeline.sources import InputChangedError, InputFile, Member, Omitted, Unit, find_inputs, members, spool, units

SHARED = Path(__file__).parents[2] / "shared"
GAME = b"(;GM[1]SZ[9];B[ee];W[dd])"


def limits(*paths: Path | str, **settings: object) -> config.Input:
    return config.Input.model_validate({"paths": tuple(str(path) for path in paths), **settings})


def zip_of(*entries: tuple[str | zipfile.ZipInfo, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, data in entries:
            archive.writestr(name, data)
    return buffer.getvalue()


def tar_of(*entries: tuple[str, bytes], mode: str = "w", kind: bytes = tarfile.REGTYPE) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:
        for name, data in entries:
            info = tarfile.TarInfo(name)
            info.type, info.size = kind, len(data)
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def write(path: Path, data: bytes = GAME) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def read(asked: config.Input, work: Path, size: int = 500) -> tuple[list[Member], list[Omitted]]:
    """All that is under the inputs, through units and spooled blocks, in the order in which it comes."""
    files, omitted = find_inputs(asked)
    todo = units(files, asked, size=size)
    work.mkdir(exist_ok=True)
    for file in files:
        if file.kind == "stream":
            todo += spool(file, asked, str(work))
    found = [one for unit in todo for one in members(pickle.loads(pickle.dumps(unit)), asked)]
    return (
        [one for one in found if isinstance(one, Member)],
        omitted + [one for one in found if isinstance(one, Omitted)],
    )


def reasons(omitted: list[Omitted]) -> list[tuple[str, str | None, str]]:
    return [(one.source, one.member, one.reason.value) for one in omitted]


def inside(data: bytes, tmp_path: Path, name: str = "g.zip", **settings: object) -> tuple[dict[str, bytes], list[str]]:
    """One archive: its records by name, and "name: reason" of what is left out ("name" is empty for the rest)."""
    path = write(tmp_path / "in" / name, data)
    found, omitted = read(limits(path, **settings), tmp_path / "work")
    assert len({one.member for one in found}) == len(found)
    return (
        {one.member or "": one.data for one in found},
        [f"{one.member or ''}: {one.reason.value}" for one in omitted],
    )


# Folders and files.


def test_a_folder_is_read_with_all_that_is_in_it(tmp_path):
    top = tmp_path / "in"
    write(top / "b.sgf", b"b")
    write(top / "A.SGF", b"a")
    write(top / "deep/er/c.Sgf", b"c")
    write(top / "notes.txt")
    write(top / "old.arj")
    write(top / ".hidden.sgf")
    write(top / ".git/x.sgf")
    write(top / ".git/y.sgf")
    write(top / "._b.sgf")
    write(top / "__MACOSX/z.sgf")
    write(top / "deep/g.zip", zip_of(("d.sgf", b"d")))
    write(top / "t.TAR.GZ", tar_of(("e.sgf", b"e"), mode="w:gz"))
    found, omitted = read(limits(top), tmp_path / "work")
    assert [(one.source, one.member, one.data) for one in found] == [
        ("A.SGF", None, b"a"), ("b.sgf", None, b"b"), ("deep/er/c.Sgf", None, b"c"), ("deep/g.zip", "d.sgf", b"d"),
        ("t.TAR.GZ", "e.sgf", b"e"),
    ]  # fmt: skip
    assert reasons(omitted) == [
        ("._b.sgf", None, "resource-fork"), (".git", None, "hidden"), (".hidden.sgf", None, "hidden"),
        ("__MACOSX", None, "resource-fork"), ("notes.txt", None, "not-a-record"), ("old.arj", None, "not-a-record"),
    ]  # fmt: skip
    assert {one.status for one in omitted} == {"skipped"}


def test_facts_of_a_file(tmp_path):
    path = write(tmp_path / "a.sgf", b"abc")
    ((file,), _) = find_inputs(limits(path))
    stat = path.stat()
    assert file == InputFile(
        "a.sgf", str(path), 3, stat.st_mtime_ns, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        "record",
    )  # fmt: skip


def test_the_order_of_inputs_is_no_part_of_the_result(tmp_path):
    write(tmp_path / "x/a.sgf", b"2")
    write(tmp_path / "y/a.sgf", b"1")
    write(tmp_path / "x/sub/b.sgf")
    paths = [tmp_path / "x", tmp_path / "y", tmp_path / "x/sub", tmp_path / "x/a.sgf", tmp_path / "y"]
    expected = find_inputs(limits(*paths))
    assert [file.source for file in expected[0]] == ["a.sgf", "a.sgf", "sub/b.sgf"]
    names = ("x/a.sgf", "y/a.sgf", "x/sub/b.sgf")
    assert {file.path for file in expected[0]} == {str(tmp_path / name) for name in names}
    assert [file.sha256 for file in expected[0][:2]] == sorted(file.sha256 for file in expected[0][:2])
    for seed in range(5):
        random.Random(seed).shuffle(paths)
        assert find_inputs(limits(*paths)) == expected


def test_equal_files_are_separate(tmp_path):
    write(tmp_path / "in/a.sgf")
    write(tmp_path / "in/b.sgf")
    assert [file.source for file in find_inputs(limits(tmp_path / "in"))[0]] == ["a.sgf", "b.sgf"]


def test_a_file_named_beside_its_folder_is_read_once_whatever_its_name(tmp_path):
    path = write(tmp_path / "in/games.txt")
    write(tmp_path / "in/notes.txt")
    files, omitted = find_inputs(limits(tmp_path / "in", path))
    assert [file.source for file in files] == ["games.txt"]
    assert reasons(omitted) == [("notes.txt", None, "not-a-record")]


def test_a_missing_input_is_named(tmp_path):
    write(tmp_path / "a.sgf")
    (tmp_path / "broken.sgf").symlink_to("nowhere")
    for path in ("missing.sgf", "a.sgf/b", "broken.sgf", "nul\0.sgf"):
        with pytest.raises(FileNotFoundError, match=f"no such input: .*{re.escape(printable(path)[:3])}"):
            find_inputs(limits(tmp_path / "a.sgf", f"{tmp_path}/{path}"))


def test_links_are_followed_once(tmp_path):
    top = tmp_path / "in"
    write(top / "real/a.sgf")
    (top / "a-link").symlink_to(top / "real")  # sorts before the real folder
    (top / "real/loop").symlink_to(top)
    (top / "again.sgf").symlink_to(top / "real/a.sgf")
    (top / "gone.sgf").symlink_to(top / "nothing")
    (top / "round.sgf").symlink_to(top / "round.sgf")
    write(tmp_path / "other/b.sgf")
    (top / "other").symlink_to(tmp_path / "other")
    files, omitted = find_inputs(limits(top))
    assert [file.source for file in files] == ["again.sgf", "other/b.sgf", "real/a.sgf"]
    assert reasons(omitted) == [
        (name, None, "not-a-file") for name in ("a-link", "gone.sgf", "real/loop", "round.sgf")
    ]  # fmt: skip


def test_pipes_and_sockets_are_not_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe.sgf")
    files, omitted = find_inputs(limits(tmp_path, tmp_path / "pipe.sgf", "/dev/null"))
    assert files == []
    assert reasons(omitted) == [("null", None, "not-a-file"), ("pipe.sgf", None, "not-a-file")]


def test_what_may_not_be_opened_is_refused(tmp_path, monkeypatch):
    write(tmp_path / "a.sgf")
    write(tmp_path / "b.sgf")
    write(tmp_path / "closed/c.sgf")

    def guard(name):
        real = getattr(os if name == "scandir" else __import__("builtins"), name)

        def guarded(path, *rest, **named):
            if str(path).endswith(("a.sgf", "closed")):
                raise PermissionError(13, "Permission denied")
            return real(path, *rest, **named)

        return guarded

    monkeypatch.setattr(os, "scandir", guard("scandir"))
    monkeypatch.setattr("builtins.open", guard("open"))
    files, omitted = find_inputs(limits(tmp_path))
    assert [file.source for file in files] == ["b.sgf"]
    assert omitted == [
        Omitted(name, None, "refused", Reason.UNREADABLE, "Permission denied") for name in ("a.sgf", "closed")
    ]


def test_names_that_are_not_utf8_can_be_printed_and_opened(tmp_path):
    os.makedirs(os.fsencode(tmp_path) + b"/in/\xb5\xb1")
    with open(os.fsencode(tmp_path) + b"/in/\xb5\xb1/\xd6\xd0\x1b.sgf", "wb") as handle:
        handle.write(GAME)
    asked = limits(tmp_path / "in")
    ((file,), _) = find_inputs(asked)
    assert file.source == "\\xb5\\xb1/\\xd6\\xd0\\x1b.sgf"
    assert [one.data for one in members(units([file], asked)[0], asked)] == [GAME]


def test_printable_keeps_what_can_be_shown():
    assert printable("甲　乙 é.sgf") == "甲　乙 é.sgf"
    assert printable("a\nb\x7f\x85\u2028\udcff\ud800") == "a\\nb\\x7f\\x85\\u2028\\xff\\ud800"


def test_an_input_file_is_taken_for_what_it_is(tmp_path):
    names = {
        "games.sgf.bak": (GAME, "record"), "renamed.dat": (zip_of(("a.sgf", GAME)), "zip"), "empty": (b"", "record"),
        "download": (tar_of(("a.sgf", GAME), mode="w:xz"), "stream"), "t.x": (tar_of(("a.sgf", GAME)), "stream"),
        "plain.tar.gz": (tar_of(("a.sgf", GAME)), "stream"), "wrong.tar": (zip_of(("a.sgf", GAME)), "zip"),
        "text.zip": (b"no zip", "zip"), ".dot.sgf": (GAME, "record"),
    }  # fmt: skip
    paths = [write(tmp_path / name, data) for name, (data, _) in names.items()]
    assert {file.source: file.kind for file in find_inputs(limits(*paths))[0]} == {
        name: kind for name, (_, kind) in names.items()
    }
    found, omitted = read(limits(*paths), tmp_path / "work")
    assert len(found) == len(names) - 1
    assert reasons(omitted) == [("text.zip", None, "damaged-archive")]


def test_a_loose_file_over_the_limit_is_refused_unread(tmp_path):
    path = tmp_path / "huge.sgf"
    with path.open("wb") as handle:
        handle.truncate(10**12)  # a hole: reading it would take minutes
    write(tmp_path / "even.sgf", b"x" * 100)
    files, omitted = find_inputs(limits(tmp_path, max_member_bytes=100))
    assert [file.source for file in files] == ["even.sgf"]
    assert reasons(omitted) == [("huge.sgf", None, "member-too-large")]


def test_include_and_exclude(tmp_path):
    top = tmp_path / "in"
    write(top / "a.sgf")
    write(top / "b.sgf")
    write(top / "g.zip", zip_of(("x/a.sgf", GAME), ("x/c.sgf", GAME), ("y/a.sgf", GAME)))
    write(top / "h.zip", zip_of(("a.sgf", GAME)))

    def names(**settings: object) -> tuple[list[str], list[str]]:
        found, omitted = read(limits(top, **settings), tmp_path / "work")
        assert {one.reason for one in omitted} <= {Reason.EXCLUDED}
        show = [one.source + (f"/{one.member}" if one.member else "") for one in [*found, *omitted]]
        return sorted(show[: len(found)]), sorted(show[len(found) :])

    everything = ["a.sgf", "b.sgf", "g.zip/x/a.sgf", "g.zip/x/c.sgf", "g.zip/y/a.sgf", "h.zip/a.sgf"]
    assert names() == (everything, [])
    assert names(include=("a.*",)) == ([name for name in everything if "a.sgf" in name], ["b.sgf", "g.zip/x/c.sgf"])
    assert names(include=("g.zip/x/*", "b.sgf"))[0] == ["b.sgf", "g.zip/x/a.sgf", "g.zip/x/c.sgf"]
    assert names(exclude=("h.zip",)) == (everything[:-1], ["h.zip"])
    assert names(exclude=("*/x/*",))[1] == ["g.zip/x/a.sgf", "g.zip/x/c.sgf"]
    assert names(exclude=("A.sgf",)) == (everything, [])
    assert names(include=(), exclude=("*.zip",)) == ([], ["a.sgf", "b.sgf", "g.zip", "h.zip"])


# Changes between listing and reading.


@pytest.mark.parametrize("name", ["a.sgf", "g.zip", "t.tar"])
@pytest.mark.parametrize("change", ["longer", "touched", "gone", "pipe"])
def test_a_changed_input_is_noticed(tmp_path, name, change):
    data = {"a.sgf": GAME, "g.zip": zip_of(("a.sgf", GAME)), "t.tar": tar_of(("a.sgf", GAME))}[name]
    path = write(tmp_path / name, data)
    asked = limits(path)
    files, _ = find_inputs(asked)
    todo = units(files, asked)
    if change in ("gone", "pipe"):
        path.unlink()
        if change == "pipe":
            os.mkfifo(path)
    else:
        path.write_bytes(data + b" " * (change == "longer"))
        os.utime(path, ns=(1, files[0].mtime_ns + (change == "touched")))
    with pytest.raises(InputChangedError, match=f"changed while it was being read, run again: .*{name}"):
        for _ in spool(files[0], asked, str(tmp_path)) if name == "t.tar" else members(todo[0], asked):
            pass


def test_a_changed_input_of_a_worker_is_told_as_in_one_process():
    error = InputChangedError("/in/a.sgf")
    assert str(error) == "input changed while it was being read, run again: /in/a.sgf"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_other_contents_of_the_same_size_and_time_are_noticed(tmp_path):
    path = write(tmp_path / "a.sgf", b"(;B[aa])")
    asked = limits(path)
    files, _ = find_inputs(asked)
    path.write_bytes(b"(;B[bb])")
    os.utime(path, ns=(1, files[0].mtime_ns))
    with pytest.raises(InputChangedError):
        list(members(units(files, asked)[0], asked))


def test_a_zip_that_changes_while_it_is_read(tmp_path):
    path = write(tmp_path / "g.zip", zip_of(("a.sgf", GAME), ("b.sgf", GAME)))
    asked = limits(path)
    reading = members(units(find_inputs(asked)[0], asked)[0], asked)
    assert isinstance(next(reading), Member)
    os.utime(path, ns=(1, 1))
    with pytest.raises(InputChangedError):
        list(reading)


# Members of archives.


@pytest.mark.parametrize("mode", ["zip", "w", "w:gz", "w:bz2", "w:xz"])
def test_members_are_sorted_out_alike_in_every_archive(tmp_path, mode):
    entries = [
        ("a.sgf", b"1"), ("B.SGF", b"2"), ("a.sgf ", b"3"), ("./c.sgf", b"4"), ("d.txt", b"5"), ("dir/.e.sgf", b"6"),
        (".dir/f.sgf", b"7"), ("__MACOSX/._a.sgf", b"8"), ("x/._g.sgf", b"9"), ("../h.sgf", b"0"), ("/i.sgf", b"0"),
        ("x/../j.sgf", b"0"), ("..\\k.sgf", b"0"), ("C:\\l.sgf", b"0"), ("c:m.sgf", b"0"), ("\\n.sgf", b"0"),
        ("o\x1b.sgf", b"0"), ("x\\y.sgf", b"s"), ("..p..sgf", b"t"), ("zero.sgf", b""), ("q" * 4097 + ".sgf", b"0"),
    ]  # fmt: skip
    data = zip_of(*entries) if mode == "zip" else tar_of(*entries, mode=mode)
    found, omitted = inside(data, tmp_path, "g.zip" if mode == "zip" else "g.tar")
    assert found == {
        "a.sgf": b"1", "B.SGF": b"2", "a.sgf ": b"3", "./c.sgf": b"4", "x\\y.sgf": b"s", "zero.sgf": b"",
    }  # fmt: skip
    assert omitted == [
        "d.txt: not-a-record", "dir/.e.sgf: hidden", ".dir/f.sgf: hidden", "__MACOSX/._a.sgf: resource-fork",
        "x/._g.sgf: resource-fork", "../h.sgf: unsafe-member", "/i.sgf: unsafe-member", "x/../j.sgf: unsafe-member",
        "..\\k.sgf: unsafe-member", "C:\\l.sgf: unsafe-member", "c:m.sgf: unsafe-member", "\\n.sgf: unsafe-member",
        "o\\x1b.sgf: unsafe-member", "..p..sgf: hidden", "q" * 4096 + ": unsafe-member",
    ]  # fmt: skip


def test_a_nul_in_a_name_is_unsafe(tmp_path):
    data = zip_of(("aXb.sgf", GAME)).replace(b"aXb.sgf", b"a\0b.sgf")
    assert inside(data, tmp_path) == ({}, ["a\\x00b.sgf: unsafe-member"])


def test_a_backslash_inside_a_shift_jis_letter_is_no_hidden_file(tmp_path):
    name = "表.sgf".encode("shift_jis")
    assert name == b"\x95\x5c.sgf"
    data = zip_of(("ab.sgf", GAME)).replace(b"ab.sgf", name)
    assert inside(data, tmp_path) == ({"表.sgf": GAME}, [])


@pytest.mark.parametrize(("raw", "shown"), [(b"../x.sgf", "x.sgf"), (b"x.sgf", "../x.sgf"), (b"x.sgf", "\x1b.sgf")])
def test_a_name_has_to_be_safe_as_stored_and_as_shown(tmp_path, raw, shown):
    info = zipfile.ZipInfo(raw.decode())
    field = struct.pack("<BL", 1, zlib.crc32(raw)) + shown.encode()
    info.extra = struct.pack("<HH", 0x7075, len(field)) + field
    assert inside(zip_of((info, GAME)), tmp_path) == ({}, [f"{printable(shown)}: unsafe-member"])


@pytest.mark.parametrize("name", ["g.7z", "g.rar", "g.tar.zst", "g.bin"])
def test_without_the_extra_an_archive_that_needs_it_says_so(tmp_path, monkeypatch, name):
    """Beside the name of what to install: also inside another archive, and whatever it is called."""
    (tmp_path / "libarchive").mkdir()
    (tmp_path / "libarchive" / "__init__.py").write_text("raise ModuleNotFoundError")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    data = b"7z\xbc\xaf\x27\x1c" + bytes(26)
    path = write(tmp_path / "in" / name, data)
    found, omitted = read(limits(path, write(tmp_path / "in/n.zip", zip_of(("m.7z", data)))), tmp_path / "work")
    assert found == []
    assert {(one.source, one.member, one.status, one.reason, one.detail) for one in omitted} == {
        (name, None, "refused", Reason.NEEDS_EXTRA, 'pip install "goplanes[archives]"'),
        ("n.zip", "m.7z", "refused", Reason.NEEDS_EXTRA, 'pip install "goplanes[archives]"'),
    }


@pytest.mark.parametrize("kind", [tarfile.LNKTYPE, tarfile.SYMTYPE])
def test_links_in_a_tar_are_refused(tmp_path, kind):
    assert inside(tar_of(("a.sgf", b""), kind=kind), tmp_path, "g.tar") == ({}, ["a.sgf: unsafe-member"])


def test_devices_and_folders_in_a_tar(tmp_path):
    assert inside(tar_of(("a.sgf", b""), kind=tarfile.FIFOTYPE), tmp_path, "g.tar") == ({}, ["a.sgf: not-a-file"])
    assert inside(tar_of(("a.sgf", b""), kind=tarfile.DIRTYPE), tmp_path, "g.tar") == ({}, [])


def test_zip_entries_that_are_folders_or_have_no_name(tmp_path):
    data = zip_of(("dir/", b""), ("a.sgf", GAME), ("b.sgf", GAME))
    at = data.rindex(b"PK\x01\x02") + 28
    nameless = data[:at] + b"\0\0\5\0" + data[at + 4 :]  # the name is an extra field now
    assert inside(nameless, tmp_path) == ({"a.sgf": GAME}, [": not-a-record"])


def test_two_members_of_one_name_are_both_read(tmp_path):
    with pytest.warns(UserWarning, match="Duplicate"):
        data = zip_of(("a.sgf", b"1"), ("a.sgf", b"2"))
    for path in (write(tmp_path / "g.zip", data), write(tmp_path / "g.tar", tar_of(("a.sgf", b"1"), ("a.sgf", b"2")))):
        found, _ = read(limits(path), tmp_path / "work")
        assert [(one.member, one.data) for one in found] == [("a.sgf", b"1"), ("a.sgf", b"2")]


def test_encrypted_and_damaged_members_leave_the_others(tmp_path):
    good = zip_of(("a.sgf", GAME), ("b.sgf", GAME))
    at = good.index(b"PK\x01\x02")
    locked = good[: at + 8] + b"\x01" + good[at + 9 :]
    assert inside(locked, tmp_path) == ({"b.sgf": GAME}, ["a.sgf: encrypted"])
    rotten = good[: at + 16] + b"\0\0\0\0" + good[at + 20 :]
    assert inside(rotten, tmp_path) == ({"b.sgf": GAME}, ["a.sgf: damaged-member"])


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_what_was_whole_in_a_cut_tar_is_kept(tmp_path, mode):
    noise = [random.Random(number).randbytes(300_000) for number in range(4)]
    data = tar_of(*((f"{number}.sgf", one) for number, one in enumerate(noise)), mode=mode)
    found, omitted = inside(data[: len(data) * 7 // 8], tmp_path, "g.tar")
    whole = 2 if mode == "w:bz2" else 3  # bzip2 gives out 900 kB at once
    assert list(found.values()) == noise[: len(found)]
    assert len(found) >= whole
    assert omitted == [": damaged-archive"]


def test_a_cut_zip_is_damaged(tmp_path):
    data = zip_of(("a.sgf", GAME))
    assert inside(data[:-30], tmp_path) == ({}, [": damaged-archive"])
    assert inside(b"", tmp_path) == ({}, [": damaged-archive"])


# Archives in archives.


def nest(levels: int) -> bytes:
    data = zip_of(("a.sgf", GAME))
    for _ in range(levels):
        data = zip_of(("n.zip", data), method=zipfile.ZIP_STORED)
    return data


def test_archives_in_archives(tmp_path):
    data = zip_of(
        ("one.tgz", tar_of(("a.sgf", b"1"), ("two.zip", zip_of(("b.sgf", b"2"), ("../c.sgf", b""))), mode="w:gz")),
        ("d.sgf", b"4"), ("three.ZIP", b"rubbish"), ("four.tar.xz", b""), ("five.zip", tar_of(("e.sgf", b"5"))),
    )  # fmt: skip
    assert inside(data, tmp_path) == (
        {"one.tgz/a.sgf": b"1", "one.tgz/two.zip/b.sgf": b"2", "d.sgf": b"4", "five.zip/e.sgf": b"5"},
        ["one.tgz/two.zip/../c.sgf: unsafe-member", "three.ZIP: damaged-archive", "four.tar.xz: damaged-archive"],
    )


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_depth(tmp_path, depth):
    found, omitted = inside(nest(depth), tmp_path, max_depth=depth)
    assert (list(found), omitted) == (["n.zip/" * depth + "a.sgf"], [])
    assert inside(nest(depth + 1), tmp_path, max_depth=depth) == ({}, ["n.zip/" * depth + "n.zip: too-deep"])


def test_no_setting_opens_thousands_of_levels(tmp_path):
    found, omitted = inside(nest(1200), tmp_path, max_depth=10**6)
    assert found == {}
    assert omitted == ["n.zip/" * archives.DEEPEST + "n.zip: too-deep"]


# Limits of a whole archive.


def test_members_over_the_count_are_refused_once(tmp_path):
    entries = [(f"{number}.sgf", b"x") for number in range(7)]
    for name, data in (
        ("g.zip", zip_of(*entries, ("dir/", b""))), ("g.tar", tar_of(*entries)),
        ("n.zip", zip_of(("m.zip", zip_of(*entries[:3])), *entries[3:])),
    ):  # fmt: skip
        found, omitted = inside(data, tmp_path, name, max_members=5)
        assert len(found) == (4 if name == "n.zip" else 5)  # the archive inside counts as a member of its own
        assert omitted == [": too-many-members"]
        assert inside(data, tmp_path, name, max_members=8)[1] == []


def test_a_directory_of_many_entries_costs_no_memory(tmp_path):
    """A zip of 300,000 entries, of which 1,000 are believed."""
    one = zip_of(("a.sgf", b""))
    start, end = one.index(b"PK\x01\x02"), one.index(b"PK\x05\x06")
    central = one[start:end] * 300_000
    end64 = b"PK\x06\x06" + bytes(36) + len(central).to_bytes(8, "little") + start.to_bytes(8, "little")
    locator = b"PK\x06\x07" + bytes(4) + (start + len(central)).to_bytes(8, "little") + bytes(4)
    path = write(tmp_path / "g.zip", one[:start] + central + end64 + locator + b"PK\x05\x06" + bytes(18))
    del central
    asked = limits(path, max_members=1000)
    files, _ = find_inputs(asked)
    tracemalloc.start()
    try:
        counts = Counter(type(one).__name__ for unit in units(files, asked) for one in members(unit, asked))
        assert tracemalloc.get_traced_memory()[1] < 8 * 2**20
    finally:
        tracemalloc.stop()
    assert counts == {"Member": 1000, "Omitted": 1}


@pytest.mark.parametrize("name", ["g.zip", "nested.zip", "g.tar.gz"])
def test_an_archive_that_swells_is_stopped_once(tmp_path, monkeypatch, name):
    monkeypatch.setattr(archives, "SLACK", 1_000_000)
    blank = bytes(200_000)
    entries = [(f"{number}.sgf", blank) for number in range(20)]
    data = {
        "g.zip": lambda: zip_of(*entries),
        "nested.zip": lambda: zip_of(("m.zip", zip_of(*entries[:10])), *entries[10:]),
        "g.tar.gz": lambda: tar_of(*entries, mode="w:gz"),
    }[name]()
    allowed = 1_000_000 + 10 * len(data)
    path = write(tmp_path / "in" / name, data)
    found, omitted = read(limits(path, max_ratio=10), tmp_path / "work")
    assert allowed - 500_000 < len(found) * 200_000 <= allowed
    assert [(one.member, one.reason) for one in omitted] == [(None, Reason.SWELLS)]
    assert re.search(rf"\d+ bytes out of {len(data)}, up to '.*\.sgf'", omitted[0].detail)
    assert len(read(limits(path, max_ratio=1000), tmp_path / "work")[0]) == 20


@pytest.mark.parametrize("size", [1, 3, 500])
def test_results_do_not_depend_on_how_units_are_cut(tmp_path, monkeypatch, size):
    monkeypatch.setattr(archives, "SLACK", 0)
    top = tmp_path / "in"
    for number in range(7):
        write(top / f"{number}.sgf", b"%d" % number)
    write(top / "flat.zip", zip_of(*((f"{number}.sgf", bytes(1000)) for number in range(50)), ("x.txt", b"")))
    write(top / "deep.zip", zip_of(("m.zip", zip_of(("a.sgf", b"1"))), ("../x.sgf", b""), ("b.sgf", b"2")))
    asked = limits(top, max_ratio=4)
    assert read(asked, tmp_path / "work", size) == read(asked, tmp_path / "work", 50)
    assert Reason.SWELLS in {one.reason for one in read(asked, tmp_path / "work")[1]}


def test_units_are_of_the_size_asked_for(tmp_path):
    for number in range(5):
        write(tmp_path / f"{number}.sgf")
    write(tmp_path / "g.zip", zip_of(*((f"{number}.sgf", b"") for number in range(5))))
    asked = limits(tmp_path)
    files, _ = find_inputs(asked)
    todo = units(files, asked, size=2)
    assert Counter(unit.kind for unit in todo) == {"records": 3, "zip": 3}
    assert [len(list(members(unit, asked))) for unit in todo] == [2, 2, 1, 2, 2, 1]
    heavy = [InputFile(f"{number}.sgf", "", 5 * 2**20, 0, "", "record") for number in range(3)]
    assert [len(unit.files) for unit in units(heavy, asked)] == [1, 1, 1]


# Spooled blocks.


def test_blocks_are_cut_by_members_and_by_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "BLOCK_MEMBERS", 4)
    monkeypatch.setattr(sources, "UNIT_BYTES", 1000)
    sizes = [1, 1, 1, 1, 600, 600, 5]
    path = write(tmp_path / "t.tar", tar_of(*((f"{n}.sgf", bytes(size)) for n, size in enumerate(sizes))))
    asked = limits(path)
    ((file,), _) = find_inputs(asked)
    todo = spool(file, asked, str(tmp_path))
    assert [unit.stop for unit in todo] == [4, 2, 1]
    assert [len(one.data) for unit in todo for one in members(unit, asked)] == sizes
    assert sorted(os.listdir(tmp_path)) == sorted(["t.tar", *(os.path.basename(unit.spool) for unit in todo)])
    before = [Path(unit.spool).read_bytes() for unit in todo]
    assert spool(file, asked, str(tmp_path)) == todo
    assert [Path(unit.spool).read_bytes() for unit in todo] == before


def test_equal_archives_at_two_places_have_their_own_blocks(tmp_path):
    data = tar_of(("x.sgf", GAME))
    write(tmp_path / "in/a.tar", data)
    write(tmp_path / "in/b.tar", data)
    found, omitted = read(limits(tmp_path / "in", exclude=("a.tar/*",)), tmp_path / "work")
    assert [(one.source, one.member) for one in found] == [("b.tar", "x.sgf")]
    assert omitted == [Omitted("a.tar", "x.sgf", "skipped", Reason.EXCLUDED, "input.exclude 'a.tar/*'")]


def test_a_block_that_cannot_be_written_leaves_nothing(tmp_path, monkeypatch):
    path = write(tmp_path / "t.tar", tar_of(("x.sgf", GAME)))
    asked = limits(path)

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        spool(find_inputs(asked)[0][0], asked, str(tmp_path))
    assert os.listdir(tmp_path) == ["t.tar"]


# Hostile archives.


def test_members_that_leave_their_folder(tmp_path):
    """The archive of shared case 059, made anew."""
    link = zipfile.ZipInfo("good/link.sgf")
    link.external_attr = 0o120777 << 16
    evil = ("../evil1.sgf", "/abs/evil2.sgf", "good/../../evil3.sgf", "C:\\evil4.sgf", "..\\evil5.sgf")
    data = zip_of(
        ("good/one.sgf", b"1"), *((name, b"0") for name in evil), (link, b"/etc/hostname"), ("good/one.sgf ", b"2"),
        ("good/readme.txt", b""),
    )  # fmt: skip
    found, omitted = inside(data, tmp_path)
    assert found == {"good/one.sgf": b"1", "good/one.sgf ": b"2"}
    assert omitted == [f"{name}: unsafe-member" for name in (*evil, "good/link.sgf")] + [
        "good/readme.txt: not-a-record"
    ]
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")) == ["in", "in/g.zip", "work"]


@pytest.mark.parametrize("levels", [0, 1])
def test_a_member_that_swells(tmp_path, levels):
    """The archives of shared case 060, made anew: the memory used does not grow with the member."""
    bomb = bytearray(b"(;GM[1]C[")
    bomb.extend(b" " * (96 * 2**20))
    data = zip_of(("a-good.sgf", b"1"), ("b-bomb.sgf", bytes(bomb)), ("c-good.sgf", b"2"))
    prefix = "inner.zip/" * levels
    if levels:
        data = zip_of(("inner.zip", data))
    del bomb
    path = write(tmp_path / "g.zip", data)
    tracemalloc.start()
    try:
        found, omitted = read(limits(path), tmp_path / "work")
        assert tracemalloc.get_traced_memory()[1] < 64 * 2**20
    finally:
        tracemalloc.stop()
    assert [(one.member, one.data) for one in found] == [(prefix + "a-good.sgf", b"1"), (prefix + "c-good.sgf", b"2")]
    assert reasons(omitted) == [("g.zip", prefix + "b-bomb.sgf", "member-too-large")]


def test_a_tar_member_that_swells(tmp_path):
    found, omitted = inside(
        tar_of(("a.sgf", b"1"), ("b.sgf", bytes(30 * 2**20)), ("c.sgf", b"2"), mode="w:gz"), tmp_path, "g.tgz"
    )
    assert (list(found), omitted) == (["a.sgf", "c.sgf"], ["b.sgf: member-too-large"])


def test_sparse_members_are_refused(tmp_path):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        info = tarfile.TarInfo("a.sgf")
        info.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": str(10**12)}
        archive.addfile(info)
        archive.addfile(tarfile.TarInfo("b.sgf"))
    assert inside(buffer.getvalue(), tmp_path, "g.tar") == ({"b.sgf": b""}, ["a.sgf: damaged-member"])


def test_random_damage_never_ends_in_an_error(tmp_path):
    """Bytes changed, cut and doubled at random: each archive gives members and reasons, and nothing else."""
    names = [(f"{number}.sgf", b"(;B[%02d])" % number * 50) for number in range(4)]
    starts = [
        ("g.zip", zip_of(*names, ("n.tgz", tar_of(*names, mode="w:gz")))), ("g.zip", zip_of(*names, method=0)),
        ("g.zip", zip_of(*names, method=zipfile.ZIP_LZMA)), ("g.zip", zip_of(*names, method=zipfile.ZIP_BZIP2)),
        ("g.tar", tar_of(*names, ("n.zip", zip_of(*names)))), ("g.tgz", tar_of(*names, mode="w:gz")),
        ("g.tar", tar_of(*names, mode="w:xz")), ("g.tar", tar_of(*names, mode="w:bz2")),
    ]  # fmt: skip
    order = random.Random(7)
    outcomes: Counter[str] = Counter()
    for number in range(800):
        name, data = starts[number % len(starts)]
        changed = bytearray(data)
        for _ in range(order.choice((1, 2, 8))):
            changed[order.randrange(len(changed))] = order.choice((0, 1, 0x7F, 0xFF, order.randrange(256)))
        if order.random() < 0.3:
            del changed[order.randrange(len(changed)) :]
        handle, asked = io.BytesIO(changed), limits()
        kind = "zip" if name == "g.zip" else "stream"
        parts = [None]
        if kind == "zip":
            parts, planned = archives.plan_zip(name, handle, len(changed), asked, 2)
            outcomes.update([planned.reason] if planned else [])
        for part in parts:
            for one in archives.read_archive(name, handle, len(changed), asked, kind=kind, part=part):
                outcomes[one.reason if isinstance(one, Omitted) else "member"] += 1
                json.dumps(one.member, ensure_ascii=False).encode()
    assert {"member", Reason.DAMAGED_ARCHIVE, Reason.DAMAGED_MEMBER} <= outcomes.keys()


def test_gzip_of_gzip_is_not_a_tar(tmp_path):
    assert inside(gzip.compress(gzip.compress(GAME)), tmp_path, "g.tar.gz") == ({}, [": damaged-archive"])


# Shared cases and archives, where they are at hand.


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared cases are not here")
@pytest.mark.parametrize(("case", "file", "prefix"), [
    ("059-archive-paths", "games.zip", ""), ("060-archive-that-swells", "games.zip", ""),
    ("060-archive-that-swells", "nested.zip", "inner.zip/"),
])  # fmt: skip
def test_shared_cases(tmp_path, case, file, prefix):
    text = (SHARED / "cases" / case / "expect.md").read_text("utf-8")
    expect = json.loads(text.partition("```json\n")[2].partition("```")[0])
    assert expect.keys() <= {"kept", "refused", "skipped", "rejected", "positions"}
    found, omitted = read(limits(SHARED / "cases" / case / file), tmp_path / "work")
    # The member whose name ends in a blank is a name of its own and read as a second game.
    assert {one.member for one in found if not one.member.endswith(" ")} == {prefix + name for name in expect["kept"]}
    assert [one.member for one in omitted if one.reason is Reason.UNSAFE_MEMBER] == expect.get("refused", [])
    assert [one.member for one in omitted if one.status == "skipped"] == expect.get("skipped", [])
    assert {one.member: one.reason for one in omitted if one.reason is Reason.MEMBER_TOO_LARGE} == {
        prefix + name: reason for name, reason in expect.get("rejected", {}).items()
    }


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared archives are not here")
def test_shared_names(tmp_path):
    path = SHARED / "corpus" / "hard" / "zip-names-gbk-and-sjis-unflagged.zip"
    found, _ = read(limits(path), tmp_path / "work")
    assert len(found) == 2
    assert all("一" <= letter <= "龥" for one in found for letter in one.member.partition("/")[0])


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared archives are not here")
def test_shared_archives(tmp_path):
    """All files that the archives are said to hold, and nothing left out."""
    table = (SHARED / "corpus" / "README.md").read_text("utf-8")
    rows = re.findall(r"^\| ([\w.-]+\.(?:zip|tar\.gz)) \| (\d+) \|", table, re.M)
    expected = {name: int(count) for name, count in rows}
    archives_there = [path for path in sorted((SHARED / "corpus").iterdir()) if path.name.endswith((".zip", ".gz"))]
    found, omitted = read(limits(*archives_there), tmp_path / "work")
    counts = Counter(one.source for one in found)
    assert expected.items() <= counts.items()
    assert len(expected) >= 6
    assert sum(counts.values()) == 8443
    assert omitted == []


def test_a_unit_is_small():
    file = InputFile("g.zip", "/in/g.zip", 1, 2, "0" * 64, "zip")
    assert len(pickle.dumps(Unit("zip", (file,), 0, 10**9))) < 500
