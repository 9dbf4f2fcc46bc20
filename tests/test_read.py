"""Members to parts of the game table: statuses, reasons, facts, keys, and parts that are whole."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from random_games import Line, turned
from stages import read_part, sgf_of, write_games

from pipeline.config import make_config
from pipeline.pieces import DamagedWork
from pipeline.read import ReadTask, failed_part, finished_report, omitted_of, read_unit
from pipeline.reasons import Flag, Reason, Status
from pipeline.sources import Omitted, find_inputs, units
from pipeline.table import PART_SCHEMA

LINE = Line(5, 5, (((2, 2), 1), ((1, 1), 2), ((3, 3), 1), (None, 2)))
OCCUPIED = Line(5, 5, (*LINE.moves, ((1, 1), 1), ((0, 0), 2)))


def tasks_of(
    folder: Path, games: dict[str, str], tables: dict[str, Any] | None = None, size: int = 500
) -> list[ReadTask]:
    inputs = write_games(folder / "in", games)
    config = make_config({"filter": {"sizes": [5]}, **(tables or {}), "input": {"paths": [str(inputs)]}}, "test")
    files, _ = find_inputs(config.input)
    made = units(files, config.input, size=size)
    return [ReadTask(unit, config, str(folder / f"part-{number}")) for number, unit in enumerate(made)]


def rows_of(folder: Path, games: dict[str, str], **tables: dict[str, Any]) -> list[dict[str, Any]]:
    """Read the games and return the rows of their part, in the order of files."""
    (task,) = tasks_of(folder, games, tables)
    report = read_unit(task)
    table = read_part(task.part, report)
    assert table.schema.equals(PART_SCHEMA)
    assert report["records"] == table.num_rows
    assert report["with_records"] == len(games)
    assert finished_report(task.part) == report
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def test_a_kept_game_and_its_facts(tmp_path: Path) -> None:
    line = Line(5, 5, LINE.moves, ((0, (4, 4), 1), (2, (4, 4), 0)))
    headers = {"KM": "6.5", "RE": "B+2.5", "PB": "Uma", "PW": "Ivo", "BR": "1d", "DT": "2020-02-03", "RU": "japanese"}
    (row,) = rows_of(tmp_path, {"a.sgf": sgf_of(line, **headers)})
    expected = {
        "source": "a.sgf", "member": None, "index": 0, "status": "kept", "reason": None, "detail": None,
        "move": None, "plies": 4, "board_rows": 5, "board_cols": 5, "setup_plies": [0, 2], "setup_points": [24, 24],
        "setup_colours": [1, 0], "moves": [12, 6, 18, 25], "colours": [1, 2, 1, 2], "komi": 6.5, "rules": "japanese",
        "handicap": 0, "winner": "B", "margin": 2.5, "result_kind": "score", "date": "2020-02-03", "black": "Uma",
        "white": "Ivo", "flags": [Flag.SETUP_IN_MID_GAME.value],
    }  # fmt: skip
    assert {name: row[name] for name in expected} == expected
    assert dict(row["raw"])["PB"] == "Uma"
    assert row["white_rank"] is None
    assert row["black_rank"] is not None
    assert row["game_key"] is not None
    assert [row[name] for name in ("game", "duplicate_of", "split", "rows")] == [None] * 4
    assert row["growth"] == 0


def test_every_record_has_a_row(tmp_path: Path) -> None:
    """Games, rejects and filtered ones, several in a file; each row says why."""
    games = {
        "a.sgf": sgf_of(LINE) + "\n" + sgf_of(Line(9, 9, LINE.moves)) + sgf_of(OCCUPIED),
        "b.sgf": "no game here",
        "c.sgf": sgf_of(LINE)[:-2],
        "d.sgf": sgf_of(Line(5, 5, ())),
        "e.sgf": "",
    }
    rows = rows_of(tmp_path, games)
    assert [(row["source"][0], row["index"], row["status"], row["reason"]) for row in rows] == [
        ("a", 0, "kept", None),
        ("a", 1, "filtered", "size-filtered"),
        ("a", 2, "rejected", "occupied"),
        ("b", 0, "rejected", "no-game"),
        ("c", 0, "rejected", "bad-syntax"),
        ("d", 0, "rejected", "empty"),
        ("e", 0, "rejected", "no-game"),
    ]
    assert rows[1]["detail"] == "9x9"
    assert all(row["game_key"] is None and row["split_key"] is None for row in rows[1:])
    assert rows[1]["moves"]  # what could be parsed is kept, whatever became of it
    assert rows[2]["moves"]
    assert len({row["content"] for row in rows}) == 7


@pytest.mark.parametrize(
    ("moves", "setup", "reason", "move", "detail"),
    [
        pytest.param([((2, 2), 1), ((2, 2), 2)], [], Reason.OCCUPIED, 2, "move 2 (W C3): ", id="occupied"),
        pytest.param([((2, 2), 1), ((5, 7), 2)], [], Reason.OFF_BOARD, 2, "move 2 (W off the board): ", id="off board"),
        pytest.param(
            [((2, 2), 1), ((0, 0), 2)], [(0, (0, 1), 1), (0, (1, 0), 1)], Reason.SUICIDE, 2, "move 2 (W A5): ",
            id="suicide",
        ),
        pytest.param(
            [((0, 1), 1), ((0, 0), 2)],
            [(0, (0, 0), 2), (0, (0, 2), 2), (0, (1, 1), 2), (0, (1, 0), 1)],
            Reason.KO, 2, "move 2 (W A5): ",
            id="ko",
        ),
        pytest.param(
            [((2, 2), 1)], [(0, (0, 0), 2), (0, (0, 1), 1), (0, (1, 0), 1)], Reason.ILLEGAL_SETUP, None,
            "setup before move 1: ", id="setup at the start",
        ),
        pytest.param(
            [((2, 2), 1), (None, 2)], [(1, (0, 0), 2), (1, (0, 1), 1), (1, (1, 0), 1)], Reason.ILLEGAL_SETUP, 2,
            "setup before move 2: ", id="setup in mid-game",
        ),
    ],
)  # fmt: skip
def test_illegal_moves(
    tmp_path: Path,
    moves: Sequence[tuple[tuple[int, int] | None, int]],
    setup: Sequence[tuple[int, tuple[int, int], int]],
    reason: Reason,
    move: int | None,
    detail: str,
) -> None:
    """The reason, the number of the move from 1 on, and what a person would call it."""
    game = {"a.sgf": sgf_of(Line(5, 5, (*moves, (None, 1)), tuple(setup)), RE="B+R")}
    (row,) = rows_of(tmp_path, game)
    assert (row["status"], row["reason"], row["move"]) == (Status.REJECTED, reason, move)
    assert row["detail"] == f'{detail}{reason.meaning}; rules.illegal = "drop"'
    (tmp_path / "again").mkdir()
    (row,) = rows_of(tmp_path / "again", game, rules={"illegal": "keep-prefix"})
    if move is None:  # there is no legal part
        assert (row["status"], row["reason"]) == (Status.REJECTED, reason)
    else:
        assert (row["status"], row["reason"], row["plies"], row["move"]) == (Status.KEPT, None, move - 1, move)
        assert Flag.ILLEGAL_TAIL in row["flags"]
        assert row["detail"] == f'{detail}{reason.meaning}; rules.illegal = "keep-prefix"'


def test_filters_look_at_the_legal_part(tmp_path: Path) -> None:
    tables: dict[str, Any] = {"rules": {"illegal": "keep-prefix"}, "filter": {"sizes": [5], "min_moves": 5}}
    (row,) = rows_of(tmp_path, {"a.sgf": sgf_of(OCCUPIED)}, **tables)
    assert (row["status"], row["reason"], row["detail"], row["plies"]) == ("filtered", "too-short", "4 moves", 4)


def test_the_rules_of_the_record_decide(tmp_path: Path) -> None:
    """Suicide of two stones is legal in New Zealand alone."""
    pocket = tuple((0, point, 1) for point in ((0, 2), (1, 0), (1, 1)))
    line = Line(5, 5, (((0, 0), 2), ((4, 4), 1), ((0, 1), 2)), pocket)
    rows = rows_of(tmp_path, {f"{rules}.sgf": sgf_of(line, RU=rules) for rules in ("chinese", "nz")})
    assert [(row["rules"], row["reason"]) for row in rows] == [("chinese", "suicide"), ("new-zealand", None)]


def test_keys_of_games(tmp_path: Path) -> None:
    """Equal for images and whatever the headers; the split key covers the first moves alone; cut games are cut."""
    longer = Line(5, 5, (*LINE.moves, ((0, 0), 1)))
    games = {
        "a.sgf": sgf_of(LINE, RE="B+R", KM="6.5"),
        "b.sgf": sgf_of(turned(LINE, 5)),
        "c.sgf": sgf_of(longer),
        "d.sgf": sgf_of(OCCUPIED),
        "e.sgf": sgf_of(Line(5, 5, LINE.moves[::-1])),
    }
    a, b, c, d, e = rows_of(tmp_path, games, rules={"illegal": "keep-prefix"}, split={"plies": 4})
    assert a["game_key"] == b["game_key"] == d["game_key"]
    assert len({row["game_key"] for row in (a, c, e)}) == 3
    assert a["split_key"] == b["split_key"] == c["split_key"] == d["split_key"] != e["split_key"]


def test_parts_do_not_depend_on_how_the_files_are_cut(tmp_path: Path) -> None:
    games = {f"{number}.sgf": sgf_of(LINE, GN=str(number)) for number in range(5)}
    rows: list[list[dict[str, Any]]] = []
    for size in (1, 2, 500):
        (tmp_path / str(size)).mkdir()
        tasks = tasks_of(tmp_path / str(size), games, size=size)
        assert len(tasks) == -(-5 // size)
        rows.append([row for task in tasks for row in read_part(task.part, read_unit(task)).to_pylist()])
    assert rows[0] == rows[1] == rows[2]


def test_a_part_counts_when_both_files_are_there(tmp_path: Path) -> None:
    """Files appear whole; a part that was damaged since is removed by whoever reads it."""
    (task,) = tasks_of(tmp_path, {"a.sgf": sgf_of(LINE), "b.txt": "x"})
    assert finished_report(task.part) is None
    report = read_unit(task)
    table, said = Path(task.part), Path(f"{task.part}.json")
    whole, text = table.read_bytes(), said.read_text()
    assert finished_report(task.part) == report
    read_unit(task)
    assert (table.read_bytes(), said.read_text()) == (whole, text)
    table.write_bytes(whole[:-9])
    with pytest.raises(DamagedWork):
        read_part(task.part, report)
    assert finished_report(task.part) is None
    table.write_bytes(whole)
    for damaged in (text[:-4], "", json.dumps({**report, "records": 2}), "{}"):
        said.write_text(damaged)
        assert finished_report(task.part) is None


def test_a_unit_that_ended_its_process(tmp_path: Path) -> None:
    """One reject for each file, and a whole part, so that the build goes on."""
    (task,) = tasks_of(tmp_path, {"a.sgf": sgf_of(LINE), "b.sgf": sgf_of(LINE)})
    report = failed_part(task, "it died")
    assert finished_report(task.part) == report
    rows = read_part(task.part, report).to_pylist()
    assert [(row["source"], row["status"], row["reason"], row["detail"]) for row in rows] == [
        ("a.sgf", "rejected", "task-failed", "it died"),
        ("b.sgf", "rejected", "task-failed", "it died"),
    ]
    assert all(len(row["content"]) == 16 for row in rows)


def test_every_row_says_in_which_build_it_was_read(tmp_path: Path) -> None:
    """Games, rejects, filtered ones and those of a task that failed."""
    (task,) = tasks_of(tmp_path, {"a.sgf": sgf_of(LINE) + sgf_of(Line(9, 9, LINE.moves)), "b.sgf": "no game here"})
    for made in (read_unit, lambda task: failed_part(task, "it died")):
        for growth in (0, 3):
            report = made(replace(task, growth=growth))
            assert read_part(task.part, report).column("growth").to_pylist() == [growth] * report["records"]


def test_a_part_is_cut_into_pieces_of_some_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By their number, or by what they weigh: header texts, moves and stones set up. The rows are the same, and the
    samples stand for all of them."""
    games = {f"{number}.sgf": sgf_of(LINE, C="x" * 40 * number) for number in range(6)}
    stones = tuple((0, (row, col), 1) for row in range(1, 15) for col in range(15))
    games["6.sgf"] = games["7.sgf"] = sgf_of(Line(19, 19, (), stones))
    (task,) = tasks_of(tmp_path, games)
    report = read_unit(task)
    assert [rows for rows, _ in report["groups"]] == [8]
    whole = read_part(task.part, report)
    for name, most, groups in (
        ("_RECORDS_AT_ONCE", 3, [3, 3, 2]),
        ("_RECORDS_AT_ONCE", 1, [1] * 8),
        ("_WEIGHT_AT_ONCE", 150, [4, 1, 1, 1, 1]),  # 120 characters and few more are too few, 160 are enough
    ):
        with monkeypatch.context() as patch:
            patch.setattr(f"pipeline.read.{name}", most)
            report = read_unit(task)
        assert [rows for rows, _ in report["groups"]] == groups
        assert read_part(task.part, report).equals(whole)
        assert sum(records for *_, records, _ in report["samples"]) == 8


def test_members_left_out_are_in_order() -> None:
    """Those found in folders and those of all reports, by source, member and reason, whatever their order."""

    def item(source: str, member: str | None, reason: str) -> dict[str, Any]:
        return {"source": source, "member": member, "status": "skipped", "reason": reason, "detail": ""}

    found = [Omitted("b", "x", "skipped", Reason.HIDDEN, ""), Omitted("a", None, "skipped", Reason.SWELLS, "")]
    reports = [[item("a", "é", "hidden")], [], [item("a", "z", "hidden"), item("b", "x", "excluded")]]
    merged = omitted_of(found, [{"omitted": items} for items in reports])
    assert merged == [
        item("a", None, "swells"),
        item("a", "z", "hidden"),
        item("a", "é", "hidden"),
        item("b", "x", "excluded"),
        item("b", "x", "hidden"),
    ]
    assert json.loads(json.dumps(merged)) == merged
