"""Texts of one game a line."""

import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from pipeline.config import Config, Input
from pipeline.game import Game
from pipeline.parse import Rejected, parse_member
from pipeline.reasons import Flag, Reason
from pipeline.sources import find_inputs, read_all
from pipeline.vendor import HEAD, find_lines, holds_records

LINES = b"101\t;B[pd];W[dp];B[pq]\n102\t;W[cc];B[dd]\r\n\n  \n103\t;B[qd]\n"


def read(data: bytes) -> list[Game | Rejected]:
    config = Config()
    return parse_member(data, config.input, config.parse, config.rules)


def test_each_line_is_a_record() -> None:
    records = read(LINES)
    assert [record.index for record in records] == [0, 1, 2]
    games = [record for record in records if isinstance(record, Game)]
    assert [game.raw for game in games] == [{"ID": "101"}, {"ID": "102"}, {"ID": "103"}]
    assert [game.colours.tolist() for game in games] == [[1, 2, 1], [2, 1], [1]]
    assert games[0].moves.tolist() == [3 * 19 + 15, 15 * 19 + 3, 16 * 19 + 15]
    assert all((game.rows, game.cols, game.flags) == (19, 19, (Flag.SIZE_ASSUMED,)) for game in games)
    assert len({game.content for game in games}) == 3


def test_a_line_that_is_no_game_hides_no_other() -> None:
    records = read(b"id\tmoves\n1\t;B[pd]\n2\t\n3\t;B[pd];W[\n4\t;B[pd])W[dp]\nno tab\n5\t;B[p];W[dd]\n6\t;B[dd]\n")
    shown = [
        (record.raw.get("ID"), record.reason.value if isinstance(record, Rejected) else "game") for record in records
    ]
    assert shown == [
        ("id", "bad-syntax"), ("1", "game"), ("2", "bad-syntax"), ("3", "bad-syntax"), ("4", "bad-syntax"),
        ("no tab", "bad-syntax"), ("5", "bad-move"), ("6", "game"),
    ]  # fmt: skip
    (two,) = [record for record in records if record.raw.get("ID") == "3"]
    assert isinstance(two, Rejected)
    assert (two.offset, two.detail) == (21, "the line breaks off: '['")


def test_other_columns_are_left_alone() -> None:
    (record,) = read("甲乙-7\t2020-01-02\t ;B[pd]C[x];W[dp] \tB+R\n".encode())
    assert isinstance(record, Game)
    assert (record.raw["ID"], len(record.moves), record.winner) == ("甲乙-7", 2, None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (LINES, True),
        (b"\xef\xbb\xbf" + LINES, True),
        (b"id\tmoves\n" + LINES, True),
        (b"\n\n" + LINES, True),
        (b"(;SZ[9];B[aa])\n(;SZ[9];B[bb])\n", True),
        (b"(;SZ[9];B[aa])\n", False),
        (b"", False),
        (b"a note; with a [link]\n", False),
        (b"101 ;B[pd]\n", False),
        (b"one\ntwo\nthree\n" + LINES, False),
        (b" " * HEAD + LINES, False),
    ],
)
def test_what_a_text_is_known_by(text: bytes, expected: bool) -> None:
    assert holds_records(text) is expected


@pytest.mark.parametrize(
    "text", [b"(\n\t;GM[1]SZ[9]\n\t;B[aa])", b"(;C[a\tb\n101\t;B[aa\\]];B[aa])", b";GM[1]\n\t;B[aa])"]
)
def test_a_tree_with_tabs_in_it_is_one_game(text: bytes) -> None:
    assert find_lines(text) is None
    assert [type(record) for record in read(text)] == [Game]


def test_texts_are_found_in_folders_and_archives(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    members = (("a.txt", LINES), ("b.KIFU", LINES), ("c.tsv", LINES), ("readme.txt", b"see [a]; b"), ("d.csv", LINES))
    for name, data in members:
        (folder / name).write_bytes(data)
    with zipfile.ZipFile(folder / "g.zip", "w") as file, tarfile.open(folder / "h.tgz", "w:gz") as tar:
        for name, data in members:
            file.writestr(name, data)
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    limits = Input(paths=(str(folder),))
    files, omitted = find_inputs(limits)
    found = list(read_all(files, limits))
    read_from = [(one.source, one.member) for one in found if hasattr(one, "data")]
    names = ["a.txt", "b.KIFU", "c.tsv"]
    assert read_from == [
        *((name, None) for name in names),
        *(("g.zip", name) for name in names),
        *(("h.tgz", name) for name in names),
    ]
    left = [one for one in (*omitted, *found) if not hasattr(one, "data")]
    assert {(one.member or one.source, one.reason) for one in left} == {
        ("readme.txt", Reason.NOT_A_RECORD), ("d.csv", Reason.NOT_A_RECORD)
    }  # fmt: skip
    assert len(left) == 6


def test_a_text_that_is_named_is_read_whatever_its_name(tmp_path: Path) -> None:
    path = tmp_path / "games.data"
    path.write_bytes(LINES)
    files, _ = find_inputs(Input(paths=(str(path),)))
    assert [file.kind for file in files] == ["record"]


def test_a_text_that_is_too_large_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(LINES * 100)
    (tmp_path / "b.txt").write_bytes(b"a note " * 1000)
    _, omitted = find_inputs(Input(paths=(str(tmp_path),), max_member_bytes=1000))
    assert [(one.source, one.reason) for one in omitted] == [
        ("a.txt", Reason.MEMBER_TOO_LARGE),
        ("b.txt", Reason.NOT_A_RECORD),
    ]


def test_a_line_without_end_costs_no_more_than_itself() -> None:
    (record,) = read(b"1\t;B[pd]" + b";" * 2_000_000)
    assert isinstance(record, Rejected)
    assert record.reason is Reason.BAD_SYNTAX


def test_a_text_may_hold_many_short_lines() -> None:
    records = read(b"".join(b"%d\t;B[pd];W[dp]\n" % number for number in range(20_000)))
    assert len(records) == 20_000
    assert {type(record) for record in records} == {Game}
