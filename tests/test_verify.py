"""Every kind of damage to a data set is found and named; a sound one is sound."""

import json
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from example_builds import build_examples

from pipeline import shard
from pipeline.columns import take_rows
from pipeline.load import open_dataset
from pipeline.verify import facts, lines, verify


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("verify") / "out"
    return build_examples(output, split={"val": 0.3}, output={"rows_per_shard": 3000}, filter={"sizes": [9, 19]})


@pytest.fixture
def folder(built: Path, tmp_path: Path) -> Path:
    shutil.copytree(built, tmp_path / "set")
    return tmp_path / "set"


def faults(folder: Path, sample: int = 200) -> dict[str, tuple[str, ...]]:
    return {check.name: check.faults for check in verify(folder, sample) if check.faults}


def change_manifest(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    path = folder / "dataset.json"
    tables = json.loads(path.read_text())
    change(tables)
    path.write_text(json.dumps(tables))


def register(folder: Path, path: Path) -> None:
    """Make the manifest agree with a changed file, so that only its contents are wrong."""

    def change(tables: dict[str, Any]) -> None:
        name = path.relative_to(folder).as_posix()
        for entry in [*tables["shards"], tables["games"]]:
            if entry["path"] == name:
                entry["bytes"], entry["sha256"] = path.stat().st_size, sha256(path.read_bytes()).hexdigest()

    change_manifest(folder, change)


def change_shard(folder: Path, change: Callable[[shard.Columns], None]) -> None:
    """Rewrite the first shard of train with changed columns."""
    dataset = open_dataset(folder)
    entry = next(entry for entry in dataset.manifest.shards if entry.split == "train")
    batches = list(shard.read(folder / entry.path, dataset.manifest.layout, batch_rows=10**6))
    columns = {name: values.copy() for name, values in batches[0].items()}
    change(columns)
    shard.write(folder / entry.path, [columns], dataset.manifest.layout)
    register(folder, folder / entry.path)


def change_games(folder: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    path = folder / "games.parquet"
    pq.write_table(change(pq.read_table(path)), path, compression="zstd")
    register(folder, path)


@pytest.mark.parametrize("mode", ["none", "random", "all"])
@pytest.mark.parametrize("form", ["parquet", "hdf5"])
def test_a_fresh_data_set_is_sound(mode: str, form: str, tmp_path: Path) -> None:
    folder = build_examples(
        tmp_path / "out", augment={"mode": mode}, output={"format": form}, filter={"sizes": "any"}, split={"val": 0.3}
    )
    checks = verify(folder)
    names = ["sums", "folder", "shards", "games.parquet", "rows", "recount", "encoding"]
    assert [(check.name, check.faults) for check in checks] == [(name, ()) for name in names]
    assert lines("out", checks)[-1] == "out: sound"
    assert facts("out", checks)["sound"] is True


def test_small_damage_to_a_file(folder: Path) -> None:
    train = sorted((folder / "train").iterdir())
    train[0].write_bytes(train[0].read_bytes()[:-1])
    data = bytearray(train[1].read_bytes())
    data[len(data) // 2] ^= 1
    train[1].write_bytes(data)
    (val,) = (folder / "val").iterdir()
    val.unlink()
    found = faults(folder)
    # Where the changed shard can still be read, its rows are encoded again.
    assert {"shards"} <= set(found) <= {"shards", "encoding"}
    assert "train/shard-00000.parquet: has " in found["shards"][0]
    assert found["shards"][1].startswith("train/shard-00001.parquet")
    assert found["shards"][2] == "val/shard-00000.parquet: is missing"


def test_files_that_are_not_listed(folder: Path) -> None:
    (folder / "train" / "shard-00099.parquet").write_bytes(b"")
    (folder / "test").mkdir(exist_ok=True)
    (folder / "test" / "notes.txt").write_text("x")
    assert faults(folder)["folder"] == (
        "train/shard-00099.parquet is not listed in dataset.json",
        "test/notes.txt is not listed in dataset.json",
    )


def test_sums_of_the_manifest(folder: Path) -> None:
    def change(tables: dict[str, Any]) -> None:
        tables["records"]["kept"] += 1
        tables["positions"]["merged"] += 2

    change_manifest(folder, change)
    found = faults(folder)
    assert any(fault.startswith("records seen") for fault in found["sums"])
    assert any("status kept" in fault for fault in found["games.parquet"])
    assert any("weights sum to" in fault for fault in found["rows"])


def test_the_game_table(folder: Path) -> None:
    path = folder / "games.parquet"
    path.write_bytes(path.read_bytes() + b"x")
    assert "bytes, the manifest says" in faults(folder)["games.parquet"][0]
    path.unlink()
    assert faults(folder)["games.parquet"] == ("games.parquet: is missing",)
    path.write_bytes(b"PAR1")
    register(folder, path)
    assert "cannot be read" in faults(folder)["games.parquet"][0]


def one_more(columns: shard.Columns) -> None:
    columns["weight"][0] += 1


def other_move(columns: shard.Columns) -> None:
    columns["move"][5] = (columns["move"][5] + 1) % 361


def other_side(columns: shard.Columns) -> None:
    columns["to_play"][6] = 3 - columns["to_play"][6]


def other_value(columns: shard.Columns) -> None:
    columns["value"][7] = -columns["value"][7] if columns["value"][7] else 1


def other_komi(columns: shard.Columns) -> None:
    columns["komi"][8] = np.nan


def other_game(columns: shard.Columns) -> None:
    columns["game"][9] = 1


def other_ply(columns: shard.Columns) -> None:
    columns["ply"][10] = 60_000


def other_turn(columns: shard.Columns) -> None:
    columns["symmetry"][11] = 3


def other_size(columns: shard.Columns) -> None:
    columns["rows"][12] = 7


def same_key(columns: shard.Columns) -> None:
    columns["key"][13] = columns["key"][14]


def same_row(columns: shard.Columns) -> None:
    numbers = np.arange(shard.count(columns))
    numbers[15] = 16
    columns.update(take_rows(columns, numbers))


@pytest.mark.parametrize(
    ("change", "check", "message"),
    [
        (one_more, "rows", "weights sum to"),
        (one_more, "recount", "row 0: weight is not what the games give"),
        (other_move, "recount", "row 5: move is not the label of its position"),
        (other_side, "rows", "row 6: to_play is not the side that moved"),
        (other_value, "recount", "row 7: value is not what the games give"),
        (other_komi, "rows", "row 8: komi is not that of the game"),
        (other_game, "rows", "row 9: its game is no kept game"),
        (other_game, "recount", "row 9: its position is none that is kept"),
        (other_ply, "rows", "row 10: its game has no such ply"),
        (other_turn, "rows", "row 11: the board has no such symmetry"),
        (other_turn, "recount", "row 11: its image is none that is stored"),
        (other_size, "rows", "row 12: the board is not of the game's size"),
        (same_key, "rows", "1 rows of train repeat a key of train"),
        (same_key, "recount", "row 13: key is not what the games give"),
        (same_row, "rows", "1 rows repeat another (game, ply, symmetry)"),
        (same_row, "recount", "row 16: it repeats a row"),
        (same_row, "recount", "its row is missing from train"),
    ],
)
def test_a_row_that_is_not_its_games(
    folder: Path, change: Callable[[shard.Columns], None], check: str, message: str
) -> None:
    change_shard(folder, change)
    found = faults(folder, sample=0)
    assert set(found) <= {"rows", "recount"}
    assert any(message in fault for fault in found[check]), found
    assert all(
        fault.startswith("train/shard-00000.parquet row ")
        for fault in found[check]
        if message in fault and message[:3] == "row"
    )


def test_a_key_in_two_parts(folder: Path) -> None:
    dataset = open_dataset(folder)
    key = dataset.row("val", 0)["key"]

    def change(columns: shard.Columns) -> None:
        columns["key"][0] = key

    change_shard(folder, change)
    assert f"1 keys are in both train and val, e.g. {key}" in faults(folder, sample=0)["rows"]


def test_planes_and_keys_that_are_not_the_games(folder: Path) -> None:
    def change(columns: shard.Columns) -> None:
        columns["planes"][3, 0, 0] ^= 128
        columns["key"][4] ^= np.uint64(1)

    change_shard(folder, change)
    assert faults(folder, sample=0) == {"recount": ("train/shard-00000.parquet row 4: key is not what the games give",)}
    found = faults(folder, sample=10**6)
    assert set(found) == {"recount", "encoding"}
    assert found["encoding"][0].startswith("train/shard-00000.parquet row ")
    assert any("row 3: 1 planes are not those of game" in fault and "own_0" in fault for fault in found["encoding"])
    assert any(fault.startswith("train/shard-00000.parquet row 4: key") for fault in found["encoding"])


def test_a_game_of_another_part(folder: Path) -> None:
    def change(table: pa.Table) -> pa.Table:
        splits = table.column("split").to_pylist()
        both = list(zip(splits, table.column("status").to_pylist(), strict=True))
        number = both.index(("val", "kept"))
        splits[number] = "train"
        return table.set_column(table.schema.get_field_index("split"), table.schema.field("split"), pa.array(splits))

    change_games(folder, change)
    found = faults(folder)
    assert any("its game is not in val" in fault for fault in found["rows"])
    assert any(fault.startswith("rows of val") for fault in found["games.parquet"])


def test_setup_that_no_board_has_does_no_harm(folder: Path) -> None:
    """The kernels check no bounds: a hostile table must be stopped before them."""

    def with_points(table: pa.Table) -> pa.Table:
        for name, value in (("setup_plies", 0), ("setup_points", 60_000), ("setup_colours", 1)):
            field = table.schema.field(name)
            column = pa.array([[value]] * table.num_rows, field.type)
            table = table.set_column(table.schema.get_field_index(name), field, column)
        return table

    change_games(folder, with_points)
    found = faults(folder)
    assert any("setup stone off the board" in fault for fault in found["encoding"])
    assert any("setup stone off the board" in fault for fault in found["recount"])


def test_a_game_with_an_illegal_move_is_told(folder: Path) -> None:
    def change(table: pa.Table) -> pa.Table:
        moves = [[found[0]] * len(found) if found else found for found in table.column("moves").to_pylist()]
        field = table.schema.field("moves")
        return table.set_column(table.schema.get_field_index("moves"), field, pa.array(moves, field.type))

    change_games(folder, change)
    found = faults(folder)
    assert any("is illegal" in fault for fault in found["encoding"])
    assert any("is illegal" in fault for fault in found["recount"])


def test_a_record_without_a_source_is_no_record(folder: Path) -> None:
    def change(table: pa.Table) -> pa.Table:
        sources = [None, *table.column("source").to_pylist()[1:]]
        return table.set_column(table.schema.get_field_index("source"), table.schema.field("source"), pa.array(sources))

    change_games(folder, change)
    (fault,) = faults(folder)["games.parquet"]
    assert fault.endswith("games.parquet: a record has no source")


def test_another_version_of_a_scheme_is_not_compared(folder: Path) -> None:
    def change(tables: dict[str, Any]) -> None:
        tables["scheme"]["name"] = "unheard_of"

    change_manifest(folder, change)
    found = faults(folder)
    # The shards say what they hold too, and disagree.
    assert found["shards"]
    assert any("unknown scheme" in fault for fault in found["encoding"])


def test_few_faults_are_printed_and_all_are_counted(folder: Path) -> None:
    for number in range(30):
        (folder / "train" / f"extra-{number}").write_text("")
    text = lines("set", verify(folder, 0))
    assert "        and 10 more" in text
    assert text[-1] == "set: 30 faults"
