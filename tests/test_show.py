"""Boards in text, rows of data sets, games at a ply."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from example_builds import build_examples

from pipeline.board import BLACK, WHITE
from pipeline.columns import ShardError
from pipeline.config import Config, ConfigError, make_config
from pipeline.load import open_dataset
from pipeline.position import Position, encode_position, position_at, single_game
from pipeline.schemes import SCHEMES
from pipeline.sheet import NumberedPlane
from pipeline.show import RecordError, board_lines, plane_lines, show_record, show_row

# White has just taken the ko at C3: C3 is empty, and Black may not play there at once.
KO = "(;GM[1]SZ[5]KM[6.5]PB[Ann]PW[Ben];B[bd];W[cd];B[ac];W[dc];B[bb];W[cb];B[cc];W[bc])"
PLAYED = ("B2", "C2", "A3", "D3", "B4", "C4", "C3", "B3")


@pytest.fixture
def record(tmp_path: Path) -> str:
    path = tmp_path / "ko.sgf"
    path.write_text(KO)
    return str(path)


def test_a_board_has_letters_without_i_and_numbers_from_below() -> None:
    game = single_game((9, 9), ([8, 81, 40], [BLACK, WHITE, WHITE]), ([], [], []), "chinese")
    lines = board_lines(position_at(game, 3))
    assert lines[0].split() == list("ABCDEFGHJ")
    assert lines[1].split() == ["9", *"........X", "9"]
    assert lines[5].split()[0] == "5"
    assert "(O)" in lines[5]
    assert [line.count("+") for line in lines[1:10]] == [0, 0, 2, 0, 0, 0, 2, 0, 0]
    assert lines[-1] == lines[0]


def test_stars_of_19_and_13_and_none_elsewhere() -> None:
    for size, stars in ((19, 9), (13, 5), (9, 5), (7, 0), (10, 0)):
        game = single_game((size, size), ([], []), ([], [], []), "chinese")
        assert "".join(board_lines(position_at(game, 0))).count("+") == stars


def test_a_plane_leaves_the_frame_blank() -> None:
    plane = np.zeros((3, 4), dtype=np.uint8)
    plane[1, 2] = 1
    assert plane_lines(plane, 2, 3) == ["  2 . . .", "  1 . . #"]
    plane[2, 3] = 1
    assert plane_lines(plane, 2, 3)[2].endswith("#")


def test_a_record_after_some_moves(record: str) -> None:
    config = make_config({"encode": {"scheme": "seven_plane"}}, "test")
    facts, lines = show_record(record, 1, 7, ["ko", "opp_liberties_1"], config)
    assert facts["board"] == [".....", ".XO..", "X.XO.", ".XO..", "....."]
    assert (facts["to_play"], facts["label"], facts["last_move"], facts["ko"]) == (2, "B3", "C3", None)
    # White to move: the black stone at C3 has one liberty, B3.
    assert np.argwhere(np.array(facts["planes"]["opp_liberties_1"])).tolist() == [[2, 2]]
    assert "next move    B3" in lines
    assert "plane ko" in lines


def test_the_end_of_a_record_and_its_ko(record: str) -> None:
    facts, lines = show_record(record, 1, None, [], Config())
    assert (facts["ply"], facts["label"], facts["ko"], facts["last_move"]) == (8, None, "C3", "B3")
    assert any(" k" in line for line in lines)
    assert any("k is the ko point C3" in line for line in lines)


def test_what_a_file_does_not_have(record: str, tmp_path: Path) -> None:
    for number, ply, planes, message in ((2, None, [], "1 to 1"), (1, 9, [], "0 to 8"), (1, 0, ["own0"], "own_0")):
        with pytest.raises(ConfigError, match=message):
            show_record(record, number, ply, planes, Config())
    archive = tmp_path / "a.zip"
    archive.write_bytes(b"PK\x03\x04" + bytes(600))
    with pytest.raises(ConfigError, match="archive"):
        show_record(str(archive), 1, None, [], Config())


def test_a_broken_record_says_why(tmp_path: Path) -> None:
    path = tmp_path / "x.sgf"
    path.write_text("(;SZ[9];B[aa];W[aa])")
    with pytest.raises(RecordError, match=r"move 2 \(W A9\): illegal move: on a stone"):
        show_record(str(path), 1, None, [], Config())
    assert show_record(str(path), 1, 1, [], Config())[0]["label"] == "A9"
    path.write_text("nothing")
    with pytest.raises(RecordError, match="no-game"):
        show_record(str(path), 1, None, [], Config())


@pytest.fixture(scope="module")
def turned_set(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("show") / "out"
    return build_examples(output, filter={"sizes": "any"}, augment={"mode": "random"}, encode={"scheme": "board"})


def test_the_board_of_a_row_is_what_its_planes_hold(turned_set: Path) -> None:
    dataset = open_dataset(turned_set)
    turns = set()
    for index in range(0, dataset.rows("train"), dataset.rows("train") // 40):
        facts, lines = show_row(dataset, "train", index, [])
        planes = dataset.row("train", index, dtype="uint8")["planes"]
        for symbol, plane in (("X", planes[0]), ("O", planes[1])):
            stones = [[point == symbol for point in row] for row in facts["board"]]
            assert np.array_equal(np.array(stones), plane[: facts["rows"], : facts["cols"]])
        if facts["label"] != "pass":
            row, col = divmod(facts["move"], dataset.frame[1])
            assert facts["board"][row][col] == "."
        assert f"symmetry     {facts['symmetry']}" in "\n".join(lines)
        turns.add(facts["symmetry"])
    assert len(turns) > 4


def test_a_row_draws_its_stored_planes(turned_set: Path) -> None:
    dataset = open_dataset(turned_set)
    facts, lines = show_row(dataset, "train", 0, ["black_0", "1"])
    stored = dataset.row("train", 0, dtype="uint8")["planes"]
    assert facts["planes"]["black_0"] == stored[0].tolist()
    assert facts["planes"][dataset.planes[1]] == stored[1].tolist()
    assert [line for line in lines if line.startswith("plane ")] == ["plane black_0", f"plane {dataset.planes[1]}"]
    with pytest.raises(ConfigError, match="did you mean 'black_0'"):
        show_row(dataset, "train", 0, ["blakc_0"])
    with pytest.raises(IndexError):
        show_row(dataset, "train", 10**6, [])


def test_a_row_without_its_game_is_told(tmp_path: Path) -> None:
    folder = build_examples(tmp_path / "out")
    pq.write_table(pq.read_table(folder / "games.parquet").slice(0, 0), folder / "games.parquet")
    with pytest.raises(ShardError, match=r"not in games\.parquet"):
        show_row(open_dataset(folder), "train", 0, [])
    (folder / "games.parquet").write_bytes(b"PAR1 no more")
    with pytest.raises(ShardError, match="cannot be read"):
        show_row(open_dataset(folder), "train", 0, [])


@pytest.fixture
def sheets(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Position, Sequence[NumberedPlane], Sequence[str]]]:
    """What was drawn into pictures, instead of the pictures."""
    drawn: list[Any] = []
    monkeypatch.setattr("pipeline.show.write_sheet", lambda *arguments: drawn.append(arguments))
    return drawn


def test_a_picture_of_a_record_has_all_planes_or_those_chosen(record: str, sheets: list[Any]) -> None:
    config = make_config({"encode": {"scheme": "seven_plane"}}, "test")
    for names, numbers in (([], range(7)), (["ko", "0"], [6, 0])):
        facts, lines = show_record(record, 1, None, names, config, png="a.png")
        path, position, planes, caption, named = sheets.pop()
        assert named == {}
        assert path == facts.pop("png") == "a.png"
        assert [number for number, _, _ in planes] == list(numbers)
        points = [("black" if number % 2 == 0 else "white", move) for number, move in enumerate(PLAYED)]
        right = np.unpackbits(encode_position(None, points, scheme="seven_plane", rows=5), axis=-1, count=25)
        for number, name, bits in planes:
            assert name == SCHEMES["seven_plane"].plane_names[number]
            assert np.array_equal(bits, right[number].reshape(5, 5))
        assert (position.ko, position.last) == ((2, 2), (2, 1))
        assert caption[0] == lines[0]
        assert caption[1:] == [
            "to play      Black",
            "next move    none: the record ends here",
            "komi         6.5",
            "rules        chinese",
            "scheme       seven_plane",
        ]
        assert "picture      a.png" in lines
        plain_facts, plain_lines = show_record(record, 1, None, names, config)
        assert facts == plain_facts
        assert [line for line in lines if line != "picture      a.png"] == plain_lines


def test_a_picture_of_a_row_has_its_board_and_its_stored_planes(turned_set: Path, sheets: list[Any]) -> None:
    dataset = open_dataset(turned_set)
    sizes = set()
    for index in range(0, dataset.rows("train"), dataset.rows("train") // 20):
        facts, lines = show_row(dataset, "train", index, [], png="a.png")
        _, position, planes, caption, _ = sheets.pop()
        stored = dataset.row("train", index, dtype="uint8")["planes"]
        assert [(number, name) for number, name, _ in planes] == [(0, "black_0"), (1, "white_0"), (2, "empty")]
        for number, _, bits in planes:
            assert np.array_equal(bits, stored[number])
        rows, cols = position.stones.shape
        for stone, plane in ((BLACK, stored[0]), (WHITE, stored[1])):
            assert np.array_equal(position.stones == stone, plane[:rows, :cols])
        assert caption[0] == lines[0]
        assert [f"next move    {facts['label']}", "scheme       board"] == [caption[2], caption[-1]]
        assert facts["png"] == "a.png"
        assert "planes" not in facts
        sizes.add((rows, cols))
    assert len(sizes) > 1
    show_row(dataset, "train", 0, ["empty"], png="a.png")
    assert [number for number, _, _ in sheets.pop()[2]] == [2]


def test_a_picture_of_a_record_compiles_the_planes_too(
    record: str, sheets: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    warmed: list[Any] = []
    monkeypatch.setattr("pipeline.show.warm_up", lambda progress, scheme: warmed.append(scheme))
    for png in (None, "a.png"):
        show_record(record, 1, None, [], Config(), png=png)
    assert warmed == [None, SCHEMES["agz17"]]


def test_a_picture_that_cannot_be_drawn_is_told_before_the_work(
    record: str, turned_set: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.show.warm_up", None)
    with pytest.raises(ConfigError, match=r"a\.gif: the name of a picture ends in \.png"):
        show_record(record, 1, None, [], Config(), png="a.gif")
    with pytest.raises(ConfigError, match=r"ends in \.png"):
        show_row(open_dataset(turned_set), "train", 0, [], png="")


def test_a_pipe_is_no_record(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.sgf")
    with pytest.raises(ConfigError, match=r"pipe\.sgf: is a pipe"):
        show_record(str(tmp_path / "pipe.sgf"), 1, None, [], Config())
