"""What ``stats`` counts, against counts made one row at a time."""

import json
import shutil
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from example_builds import build_examples

from pipeline.build import build
from pipeline.cli import cli
from pipeline.columns import ShardError
from pipeline.config import make_config
from pipeline.load import Dataset, open_dataset
from pipeline.statlines import lines
from pipeline.stats import KINDS, MOST_REPEATED, band_names, facts

HEAD = "(;GM[1]SZ[9]"
LINE = ";B[ee];W[ce];B[cc];W[gc];B[gg]"
TURNED = ";B[ee];W[ec];B[cc];W[cg];B[gg]"  # LINE with rows and columns exchanged
RECORDS = {
    "club.zip": {
        "a.sgf": f"{HEAD}KM[6.3]RU[Japanese]BR[5k]WR[3d]DT[2020-01-02]RE[B+2.5]{LINE})",
        "b.sgf": f"{HEAD}KM[6.3]RU[Japanese]BR[9p]WR[5k]DT[2020]RE[W+R]{LINE};W[cg])",
        "copy.sgf": f"{HEAD}KM[6.3]DT[1999-12-31]RE[B+2.5]{LINE})",
    },
    "mirror.zip": {
        "turned.sgf": f"{HEAD}KM[6.3]RE[B+2.5]{TURNED})",
        "clash.sgf": f"{HEAD}KM[6.3]RE[W+R]{LINE})",
        "turned-clash.sgf": f"{HEAD}KM[0]HA[2]RE[0]{TURNED})",
        "illegal.sgf": f"{HEAD}RE[Void];B[aa];W[aa])",
        "broken.sgf": "(;GM[1]SZ[9];B[aa",
    },
}


def made(folder: Path, **tables: dict[str, Any]) -> Dataset:
    """Build RECORDS, two loose files in a folder and a collection; 9 x 9 alone, all of it train."""
    inputs = folder / "in"
    (inputs / "loose").mkdir(parents=True)
    for name, members in RECORDS.items():
        with zipfile.ZipFile(inputs / name, "w") as archive:
            for member, text in members.items():
                archive.writestr(member, text)
    (inputs / "loose" / "one.sgf").write_text(f"{HEAD};B[aa];W[ii])")
    (inputs / "loose" / "small.sgf").write_text("(;GM[1]SZ[5];B[aa];W[ee])")
    (inputs / "all.sgf").write_text(f"{HEAD};B[ai];W[ia];B[ih])({HEAD}{LINE};W[ge])")
    (inputs / "top.sgf").write_text("nothing")
    tables = {
        "filter": {"sizes": [9]}, "encode": {"scheme": "board"}, "split": {"val": 0, "test": 0},
        "dedup": {"positions": "aggregate"}, **tables,
    }  # fmt: skip
    tables |= {"input": {"paths": [str(inputs)]}, "output": {"path": str(folder / "out")}, "run": {"workers": 0}}
    return open_dataset(build(make_config(tables, "test")).path)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return made(tmp_path_factory.mktemp("stats"))


@pytest.fixture(scope="module")
def found(dataset: Dataset) -> dict[str, Any]:
    return facts(dataset)


def spread(entries: list[dict[str, Any]]) -> dict[Any, tuple[int, int]]:
    return {item["value"]: (item["games"], item["kept"]) for item in entries}


def test_games_by_their_facts(found: dict[str, Any]) -> None:
    """Eleven records are games: one is illegal, one too small, and four repeat the first."""
    assert spread(found["results"]) == {"B": (3, 1), "W": (2, 1), "draw": (1, 0), "void": (1, 0), None: (4, 3)}
    assert [item["value"] for item in found["results"]] == ["B", "W", "draw", "void", None]
    assert spread(found["result_kinds"]) == {"resign": (2, 1), "score": (4, 1), "unknown": (4, 3), "void": (1, 0)}
    assert spread(found["years"]) == {"1999": (1, 0), "2020": (2, 2), None: (8, 3)}
    assert spread(found["komi"]) == {0: (1, 0), 6.3: (5, 2), None: (5, 3)}
    assert spread(found["rules"]) == {"chinese": (9, 3), "japanese": (2, 2)}
    assert spread(found["handicap"]) == {0: (10, 5), 2: (1, 0)}
    assert spread(found["sizes"]) == {"5x5": (1, 0), "9x9": (10, 5)}
    lengths = spread(found["lengths"])
    assert lengths.pop("0-49") == (11, 5)
    assert set(lengths.values()) == {(0, 0)}


def test_ranks_are_those_of_kept_games_from_weak_to_strong(found: dict[str, Any]) -> None:
    assert found["ranks"] == [
        {"value": "5k", "scale": 26, "black": 1, "white": 1},
        {"value": "3d", "scale": 33, "black": 0, "white": 1},
        {"value": "9p", "scale": 49, "black": 1, "white": 0},
        {"value": None, "scale": None, "black": 3, "white": 3},
    ]


def test_a_source_is_an_archive_a_collection_or_a_folder(found: dict[str, Any]) -> None:
    assert {item["source"]: (item["records"], item["kept"]) for item in found["sources"]} == {
        "club.zip": (3, 2),
        "mirror.zip": (5, 0),
        "loose/": (2, 1),
        "all.sgf": (2, 2),
        "./": (1, 0),
    }
    sizes = [item["records"] for item in found["sources"]]
    assert sizes == sorted(sizes, reverse=True)


def test_duplicates_by_kind_and_pair(found: dict[str, Any]) -> None:
    none = dict.fromkeys(KINDS, 0)
    assert found["duplicates"] == none | {"exact": 1, "turned": 1, "conflicting": 1, "conflicting-turned": 1}
    assert found["duplicate_pairs"] == [
        {"source": "mirror.zip", "kept_source": "club.zip", "all": 3, **none}
        | {"turned": 1, "conflicting": 1, "conflicting-turned": 1},
        {"source": "club.zip", "kept_source": "club.zip", "all": 1, **none, "exact": 1},
    ]


def test_rows_are_shared_out_without_a_rest(dataset: Dataset, found: dict[str, Any]) -> None:
    rows = dataset.rows("train")
    for key in ("results", "result_kinds", "years", "lengths", "komi", "rules", "handicap", "sizes", "sources"):
        assert sum(item["rows"] for item in found[key]) == rows
    plies = Counter(int(ply) for batch in dataset.batches("train", columns=["ply"]) for ply in batch["ply"])
    assert [item["train"] for item in found["plies"]] == [plies.total(), 0, 0, 0]
    assert found["records"]["seen"] == 13


@pytest.mark.parametrize("bounds", [(0, 10, 30, 100), (0, 50)])
def test_bands_have_names(bounds: tuple[int, ...]) -> None:
    assert band_names(bounds)[0] == f"0-{bounds[1] - 1}"
    assert band_names(bounds)[-1] == f"{bounds[-1]}+"
    assert len(band_names(bounds)) == len(bounds)


def heaviest(dataset: Dataset) -> list[tuple[float, int, str, int, int]]:
    """Return (weight, key, part, game, ply) of the rows that stand for most, one image of each, row by row."""
    rows = set()
    for part, split in enumerate(("train", "val", "test")):
        for batch in dataset.batches(split):
            for weight, key, game, ply in zip(*(batch[name] for name in ("weight", "key", "game", "ply")), strict=True):
                if weight > 1:
                    rows.add((-float(weight), int(key), part, int(game), int(ply)))
    return [(-weight, key, ("train", "val", "test")[part], game, ply) for weight, key, part, game, ply in sorted(rows)]


@pytest.mark.parametrize("positions", ["aggregate", "first", "off"])
@pytest.mark.parametrize("mode", ["none", "all"])
def test_the_most_repeated_positions(positions: str, mode: str, tmp_path: Path) -> None:
    tables = {"dedup": {"positions": positions, "games": False}, "augment": {"mode": mode}}
    dataset = open_dataset(build_examples(tmp_path / "out", encode={"scheme": "board"}, **tables))
    found = facts(dataset)["repeated_positions"]
    assert [(item["weight"], item["key"], item["split"], item["game"], item["ply"]) for item in found] == heaviest(
        dataset
    )[:MOST_REPEATED]
    assert bool(found) == (positions != "off")
    for item in found:
        row = dataset.row(item["split"], item["row"])
        assert (row["key"], row["ply"], row["to_play"]) == (item["key"], item["ply"], item["to_play"])
        assert item["symmetry"] == row["symmetry"]
        if positions == "aggregate":
            counts = [move["count"] for move in item["moves"]]
            assert counts == sorted(row["policy_counts"].tolist(), reverse=True)
        else:
            assert [move["count"] for move in item["moves"]] == [None]


def test_moves_have_the_names_of_the_stored_board(dataset: Dataset, found: dict[str, Any]) -> None:
    """The bare board: E5 in the two kept games of LINE and in all.sgf, A9 and A1 once each, images of one another."""
    (empty,) = (item for item in found["repeated_positions"] if item["ply"] == 0)
    assert (empty["weight"], empty["to_play"]) == (5.0, 1)
    counts = {move["move"]: move["count"] for move in empty["moves"]}
    assert counts == {"E5": 3 * 8, **dict.fromkeys(("A1", "A9", "J1", "J9"), 4)}
    assert empty["moves"][0]["move"] == "E5"


def test_rows_by_ply_and_part(tmp_path: Path) -> None:
    dataset = open_dataset(build_examples(tmp_path / "out", encode={"scheme": "board"}, split={"val": 0.3}))
    table = facts(dataset)["plies"]
    assert [item["value"] for item in table] == ["0-9", "10-29", "30-99", "100+"]
    for split in ("train", "val", "test"):
        ply = np.concatenate([np.zeros(0, int), *(batch["ply"] for batch in dataset.batches(split, columns=["ply"]))])
        inside = [ply < 10, (ply >= 10) & (ply < 30), (ply >= 30) & (ply < 100), ply >= 100]
        assert [item[split] for item in table] == [int(band.sum()) for band in inside]


def test_near_duplicates_are_counted_by_their_flag(dataset: Dataset, tmp_path: Path) -> None:
    table = pq.read_table(dataset.folder / "games.parquet")
    rows = table.to_pylist()
    kept = [row for row in rows if row["status"] == "kept"]
    kept[0]["flags"], kept[0]["duplicate_of"] = ["prefix-of"], kept[1]["game"]
    kept[1]["flags"], kept[1]["duplicate_of"] = ["komi-unusable", "near-duplicate-of"], kept[2]["game"]
    kept[2]["duplicate_of"] = 12345  # a game that is not there
    copy = tmp_path / "copy"
    shutil.copytree(dataset.folder, copy)
    pq.write_table(table.from_pylist(rows, table.schema), copy / "games.parquet")
    found = facts(open_dataset(copy))
    assert (found["duplicates"]["prefix-of"], found["duplicates"]["near-duplicate-of"]) == (1, 1)
    assert "?" in {item["kept_source"] for item in found["duplicate_pairs"]}


def test_an_empty_data_set(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    tables = {"input": {"paths": [str(tmp_path / "in")]}, "output": {"path": str(tmp_path / "out")}}
    dataset = open_dataset(build(make_config({**tables, "run": {"workers": 0}}, "test")).path)
    found = facts(dataset)
    assert found["results"] == found["sources"] == found["repeated_positions"] == found["duplicate_pairs"] == []
    assert lines(found)


def test_a_damaged_table_is_named(dataset: Dataset, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(dataset.folder, copy)
    (copy / "games.parquet").write_bytes(b"PAR1")
    with pytest.raises(ShardError, match=r"games.parquet"):
        facts(open_dataset(copy))


def test_tables_for_people(dataset: Dataset, found: dict[str, Any]) -> None:
    text = lines(found)
    table = text[text.index("winner   games  kept  rows") :]
    assert table[1:6] == [
        f"{name:<7}  {games:>5}  {kept:>4}  {rows:>4}"
        for name, games, kept, rows in (
            (item["value"] or "unknown", item["games"], item["kept"], item["rows"]) for item in found["results"]
        )
    ]
    assert any(line.startswith("mirror.zip <- club.zip") for line in text)
    many = found | {"years": [{"value": str(year), "games": year, "kept": 1, "rows": 2} for year in range(1900, 1925)]}
    long = [line.split() for line in lines(many)]
    start = next(number for number, words in enumerate(long) if words[:1] == ["year"])
    assert [words[0] for words in long[start + 1 : start + 21]] == [str(year) for year in range(1905, 1925)]
    assert long[start + 21] == ["5", "others", f"{sum(range(1900, 1905)):,}", "5", "10"]


def test_the_command(dataset: Dataset, found: dict[str, Any]) -> None:
    told = CliRunner().invoke(cli, ["stats", str(dataset.folder), "--json"])
    assert told.exit_code == 0
    assert json.loads(told.output) == json.loads(json.dumps(found))
    told = CliRunner().invoke(cli, ["stats", str(dataset.folder)])
    assert told.output.splitlines() == lines(found)
    assert CliRunner().invoke(cli, ["stats", str(dataset.folder / "train")]).exit_code == 1
