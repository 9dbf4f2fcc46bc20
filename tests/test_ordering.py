"""The game table cut into ranges: whatever the cuts, the same records in the order of their names' bytes."""

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from random_games import Line
from stages import read_parts, sgf_of, write_games

from pipeline import ordering
from pipeline.config import make_config
from pipeline.gamestages import DecidedGames, decided_games
from pipeline.ordering import cuts_of, grouped, ordinals_of, ranges_of, rows_of, samples_of
from pipeline.pieces import whole_table, write_pieces
from pipeline.steps import do_all
from pipeline.table import PART_SCHEMA

# Names of which one is the beginning of another, with a separator or not; beyond the basic plane; in either case.
NAMES = ("a", "a/", "a/b", "a.zip", "a.zip/b", "A", "ab", "a b", "é", "z", "\uffee", "\U0001f600", "")
MEMBERS = (None, "", "b", "b/c", "b.sgf", "B", "囲碁.sgf", "\U0001f600")


def made_up_records(count: int) -> list[dict[str, Any]]:
    """Return rejected records with names of every kind; some names come twice, with the same or other contents."""
    rng = Random("ordering")
    return [
        {
            "source": rng.choice(NAMES),
            "member": rng.choice(MEMBERS),
            "index": rng.choice((0, 0, 1, 2, 10)),
            "content": rng.choice((b"\0", b"\x7f", b"\x80", b"\xff")) * 15 + bytes([rng.randrange(3)]),
            "status": "rejected",
            "reason": "no-game",
            "detail": str(number),
            "flags": [],
            "growth": 0,
        }
        for number in range(count)
    ]


def name_of(row: dict[str, Any]) -> tuple[bytes, bytes, int, bytes]:
    """Return what the table is ordered by: the definition. A record without a member is ordered as one without a
    name."""
    return row["source"].encode(), (row["member"] or "").encode(), row["index"], row["content"]


def table_of(rows: Sequence[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=PART_SCHEMA)


def decided(folder: Path, parts: Sequence[Sequence[Sequence[dict[str, Any]]]]) -> DecidedGames:
    """Decide about records that were read into parts of several pieces each."""
    folder.mkdir()
    paths, reports = [], []
    for number, pieces in enumerate(parts):
        paths.append(str(folder / f"part-{number}"))
        tables = [table_of(rows) for rows in pieces]
        write_pieces(paths[-1], tables)
        samples = [sample for table in tables for sample in samples_of(table)]
        groups = [[table.num_rows, table.nbytes] for table in tables]
        reports.append({"records": sum(map(len, pieces)), "groups": groups, "samples": samples})
    return decided_games(paths, reports, make_config({}, "test"), folder, 0, do_all)


def rows_in(games: DecidedGames) -> list[dict[str, Any]]:
    return [row for path in games.tables for row in whole_table(path).to_pylist()]


@pytest.mark.parametrize("records", [1, 2, 5, 17, 1000])
def test_the_order_is_that_of_names_whatever_the_ranges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, records: int
) -> None:
    """Dealt into parts in any way; only records of one name and one content stand in either order."""
    monkeypatch.setattr(ordering, "RANGE_RECORDS", records)
    monkeypatch.setattr(ordering, "_ROUTED_RECORDS", 2 * records)
    monkeypatch.setattr(ordering, "_BUCKET_RECORDS", 3 * records)
    rows = made_up_records(120)
    Random(records).shuffle(rows)
    pieces = [rows[at : at + 3] for at in range(0, 120, 3)]
    games = decided(tmp_path / "work", [pieces[:20], [], pieces[20:21], pieces[21:]])
    assert (len(games.tables) > 5) == (records < 1000)
    found = rows_in(games)
    assert list(map(name_of, found)) == sorted(map(name_of, rows))
    assert sorted(row["detail"] for row in found) == sorted(row["detail"] for row in rows)
    assert len({row["game"] for row in found}) == 120


def test_no_record_lies_before_a_cut_that_it_comes_after(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal names, with a content each, may be cut apart; equal names and contents may not, since ranks need them in
    their order."""
    monkeypatch.setattr(ordering, "RANGE_RECORDS", 2)
    rows = [row | {"source": "a", "member": None, "index": 0} for row in made_up_records(60)]
    games = decided(tmp_path / "work", [[rows[at : at + 2]] for at in range(0, 60, 2)])
    ranges = [[row["content"] for row in whole_table(path).to_pylist()] for path in games.tables]
    assert len(ranges) > 5
    assert [content for contents in ranges for content in contents] == sorted(row["content"] for row in rows)
    assert sum(len(set(contents)) for contents in ranges) == len({row["content"] for row in rows})


LINES = [Line(5, 5, (((2, 2), 1), ((row, 0), 2), ((row, 4), 1), (None, 2))) for row in range(5)]


def published(folder: Path, games: dict[str, str]) -> list[dict[str, Any]]:
    """Return the game table of records that are read, two files to a part, and decided about."""
    config = make_config({"input": {"paths": [str(folder / "in")]}, "filter": {"sizes": [5]}}, "test")
    if not (folder / "in").exists():
        write_games(folder / "in", games)
    work = folder / str(len(list(folder.iterdir())))
    work.mkdir()
    return rows_in(decided_games(*read_parts(config, work, size=2), config, work, 0, do_all))


@pytest.mark.parametrize("records", [1, 3, 8])
def test_what_is_decided_is_the_same_whatever_the_ranges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, records: int
) -> None:
    """Games that repeat games of other ranges, byte for byte or not, records of every status, several in a file."""
    games = {f"{number:02d}.sgf": sgf_of(LINES[number % 5], GN=str(number % 3)) for number in range(20)}
    games |= {"x.sgf": "nothing", "y.sgf": sgf_of(LINES[0]) * 3 + sgf_of(Line(9, 9, LINES[0].moves)), "z.sgf": ""}
    whole = published(tmp_path, games)
    monkeypatch.setattr("pipeline.read._RECORDS_AT_ONCE", 2)
    monkeypatch.setattr(ordering, "RANGE_RECORDS", records)
    monkeypatch.setattr(ordering, "_BUCKET_RECORDS", records)
    assert published(tmp_path, games) == whole
    assert {row["status"] for row in whole} == {"kept", "duplicate", "rejected", "filtered"}
    assert len({row["game"] for row in whole}) == len(whole) == 26


def test_the_samples_of_a_table_stand_for_all_of_it() -> None:
    """The record in the middle of every 256, in order; of fewer the first; records and bytes shared out among them."""
    rows = made_up_records(1000)
    names = sorted(map(name_of, rows))
    for count, chosen in ((1000, [128, 384, 640, 896]), (200, None), (1, None)):
        table = table_of(rows[:count])
        samples = samples_of(table)
        mine = sorted(map(name_of, rows[:count]))
        expected = [names[at] for at in chosen] if chosen else [mine[128]] if count > 128 else mine[:1]
        assert [
            (source.encode(), member.encode(), index, bytes.fromhex(content))
            for source, member, index, content, *_ in samples
        ] == expected
        assert sum(sample[4] for sample in samples) == pytest.approx(count)
        assert sum(sample[5] for sample in samples) == pytest.approx(table.nbytes)
    assert samples_of(table_of([])) == []


def sample(name: str, records: float, size: float = 0.0) -> list[Any]:
    return [name, "", 0, "", records, size]


def test_ranges_are_cut_where_enough_lies_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """By records or by bytes, whichever is reached first; samples come in any order."""
    monkeypatch.setattr(ordering, "RANGE_RECORDS", 10)
    monkeypatch.setattr(ordering, "RANGE_BYTES", 1000)

    def cuts(*samples: list[Any]) -> list[str]:
        return [source for source, *_ in cuts_of(samples)]

    assert cuts() == cuts(sample("a", 50, 5000)) == cuts(sample("a", 4), sample("b", 6)) == []
    assert cuts(sample("c", 4), sample("a", 4), sample("b", 4)) == ["c"]
    assert cuts(sample("a", 11), sample("b", 11), sample("c", 5), sample("d", 5), sample("e", 1)) == ["b", "c", "e"]
    assert cuts(sample("a", 1, 600), sample("b", 1, 600), sample("c", 1, 400), sample("d", 1, 1)) == ["b", "d"]
    assert cuts_of([["b", "m", 3, "ff", 9, 0], ["a", "", 0, "00", 9, 0]]) == (("b", "m", 3, "ff"),)


def test_pieces_are_grouped_into_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """In their order, each once, so many records and bytes in one task or a single piece."""
    monkeypatch.setattr(ordering, "_ROUTED_RECORDS", 10)
    monkeypatch.setattr(ordering, "_ROUTED_BYTES", 100)
    assert grouped([], []) == grouped(["a", "b"], [[], []]) == []
    records = [[4, 6], [], [1, 20, 3, 7]]
    few_bytes = [[[number, 1] for number in numbers] for numbers in records]
    few_records = [[[1, 10 * number] for number in numbers] for numbers in records]
    for pieces in (few_bytes, few_records):
        assert grouped(["a", "b", "c"], pieces) == [
            (("a", 0), ("a", 1)),
            (("c", 0),),
            (("c", 1),),
            (("c", 2), ("c", 3)),
        ]


def test_ordinals() -> None:
    """The range and the row, back and forth; in the order of the table."""
    ordinals = np.concatenate([ordinals_of(number, np.array([0, 1, 2**32 - 1])) for number in (0, 1, 2**31)])
    assert ordinals.tolist() == sorted(set(ordinals.tolist()))
    assert ranges_of(ordinals).tolist() == [0, 0, 0, 1, 1, 1] + [2**31] * 3
    assert rows_of(ordinals).tolist() == [0, 1, 2**32 - 1] * 3
