"""Every kind of damage to the rows of a data set that its checksums no longer tell of is found and placed."""

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from repeated_games import SIZES_ASKED_FOR, write_collection
from stages import RULES

from pipeline import shard
from pipeline.build import build
from pipeline.columns import Columns, ShardError, first_fault, join, slice_rows, take_rows
from pipeline.config import make_config
from pipeline.load import open_dataset
from pipeline.manifest import ShardEntry, read_manifest, sum_faults
from pipeline.verify import verify

ALL = 10**6  # rows to encode again

Change = Callable[[Columns, int], Columns | None]


@dataclass(frozen=True, slots=True)
class Folder:
    """A data set that may be damaged, with a manifest that agrees with the damage as far as it can."""

    path: Path

    def entry(self, split: str) -> ShardEntry:
        """Return the first shard of a part."""
        return next(entry for entry in open_dataset(self.path).manifest.shards if entry.split == split)

    def columns(self, split: str) -> Columns:
        """Return all rows of the first shard of a part."""
        batches = list(shard.read(self.path / self.entry(split).path, open_dataset(self.path).manifest.layout))
        return join([{name: values.copy() for name, values in batch.items()} for batch in batches])

    def rewrite(self, split: str, columns: Columns) -> None:
        """Write the first shard of a part anew, and correct checksum, size and numbers of rows."""
        entry = self.entry(split)
        shard.write(self.path / entry.path, [columns], open_dataset(self.path).manifest.layout)
        added = shard.count(columns) - entry.rows

        def change(tables: dict[str, Any]) -> None:
            tables["rows"][split] += added
            for item in tables["shards"]:
                item["rows"] += added if item["path"] == entry.path else 0

        self.change_manifest(change)
        self.correct(entry.path)

    def change_manifest(self, change: Callable[[dict[str, Any]], None]) -> None:
        """Change ``dataset.json``."""
        path = self.path / "dataset.json"
        tables = json.loads(path.read_text())
        change(tables)
        path.write_text(json.dumps(tables))

    def correct(self, name: str) -> None:
        """Let the manifest agree with the bytes of a file."""
        data = (self.path / name).read_bytes()

        def change(tables: dict[str, Any]) -> None:
            for item in [*tables["shards"], tables["games"]]:
                if item["path"] == name:
                    item["bytes"], item["sha256"] = len(data), sha256(data).hexdigest()

        self.change_manifest(change)

    def change_games(self, change: Callable[[list[dict[str, Any]]], None]) -> None:
        """Change rows of ``games.parquet`` and correct its checksum."""
        path = self.path / "games.parquet"
        table = pq.read_table(path)
        rows = table.to_pylist()
        change(rows)
        pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), path, compression="zstd")
        self.correct("games.parquet")

    def faults(self, sample: int = 0) -> dict[str, tuple[str, ...]]:
        """Return what ``verify`` finds, check by check."""
        return {check.name: check.faults for check in verify(self.path, sample) if check.faults}


@pytest.fixture(scope="module", params=["parquet", "hdf5"])
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recount")
    inputs = write_collection(folder / "in", "recount")
    tables = {
        "input": {"paths": [str(inputs)]},
        "rules": RULES,
        "filter": {"sizes": SIZES_ASKED_FOR},
        "dedup": {"key_bits": 128},
        "split": {"val": 0.25, "test": 0.25, "plies": 4},
        "augment": {"mode": "all"},
        "output": {"path": str(folder / "out"), "format": request.param, "rows_per_shard": 2000},
        "run": {"workers": 0},
    }
    return build(make_config(tables, "test")).path


@pytest.fixture
def folder(built: Path, tmp_path: Path) -> Folder:
    shutil.copytree(built, tmp_path / "set")
    return Folder(tmp_path / "set")


def test_it_is_sound(folder: Folder) -> None:
    assert folder.faults(ALL) == {}


def test_what_is_rewritten_unchanged_is_sound(folder: Folder) -> None:
    folder.rewrite("train", folder.columns("train"))
    folder.change_games(lambda rows: None)
    assert folder.faults(ALL) == {}


def a_row(columns: Columns, wanted: Callable[[int], bool]) -> int:
    """Return a row of the middle of a shard that damage of some kind can be done to."""
    return next(row for row in range(100, shard.count(columns)) if wanted(row))


def swap(columns: Columns, name: str, one: int, other: int) -> None:
    values = columns[name]
    values[[one, other]] = values[[other, one]]


def with_another_label(columns: Columns) -> int:
    row = a_row(columns, lambda row: columns["move"][row] != columns["move"][row + 1])
    swap(columns, "move", row, row + 1)
    return row


def with_swapped_counts(columns: Columns) -> int:
    offsets, counts = columns["policy_offsets"], columns["policy_counts"]
    row = a_row(columns, lambda row: len(set(counts[offsets[row] : offsets[row + 1]].tolist())) > 1)
    start, stop = offsets[row : row + 2]
    other = next(at for at in range(start, stop) if counts[at] != counts[start])
    swap(columns, "policy_counts", start, other)
    return row


def with_another_policy_move(columns: Columns) -> int:
    offsets, moves = columns["policy_offsets"], columns["policy_moves"]
    row = a_row(columns, lambda row: 0 < moves[offsets[row]] < 20)
    moves[offsets[row]] -= 1
    return row


def with_the_value_of_the_other_side(columns: Columns) -> int:
    row = a_row(columns, lambda row: abs(columns["value"][row]) > 0)
    columns["value"][row] *= -1
    return row


def with_a_value_for_an_unknown_result(columns: Columns) -> int:
    row = a_row(columns, lambda row: bool(np.isnan(columns["value"][row])))
    columns["value"][row] = 0
    return row


def with_wins_for_losses(columns: Columns) -> int:
    row = a_row(columns, lambda row: columns["wins"][row] != columns["losses"][row])
    wins = columns["wins"][row]
    columns["wins"][row] = columns["losses"][row]
    columns["losses"][row] = wins
    return row


def with_another_weight(columns: Columns) -> int:
    row = a_row(columns, lambda row: columns["weight"][row] != columns["weight"][row + 1])
    swap(columns, "weight", row, row + 1)
    return row


def with_another_key(columns: Columns) -> int:
    columns["key"][130] ^= np.uint64(1 << 40)
    return 130


def with_another_upper_key(columns: Columns) -> int:
    columns["key_hi"][131] ^= np.uint64(1)
    return 131


def with_another_symmetry(columns: Columns) -> int:
    row = a_row(columns, lambda row: columns["symmetry"][row] == 2)
    columns["symmetry"][row] = 3
    return row


def with_a_symmetry_of_no_image(columns: Columns) -> int:
    row = a_row(columns, lambda row: columns["rows"][row] != columns["cols"][row])
    columns["symmetry"][row] = 6
    return row


def with_the_planes_of_another_row(columns: Columns) -> int:
    row = a_row(columns, lambda row: bool((columns["planes"][row] != columns["planes"][row + 1]).any()))
    swap(columns, "planes", row, row + 1)
    return row


def with_a_flipped_bit(columns: Columns) -> int:
    columns["planes"][140, 3, 0] ^= 0x80
    return 140


def with_another_side(columns: Columns) -> int:
    columns["to_play"][141] = 3 - columns["to_play"][141]
    return 141


def with_another_score(columns: Columns) -> int:
    columns["score"][142] = 3.5
    return 142


def with_another_ply(columns: Columns) -> int:
    row = a_row(columns, lambda row: columns["ply"][row] == 3)
    columns["ply"][row] = 2
    return row


@pytest.mark.parametrize(
    ("damage", "check", "message"),
    [
        (with_another_label, "recount", "move is not the label of its position"),
        (with_swapped_counts, "recount", "the policy is not what the games give"),
        (with_another_policy_move, "recount", "the policy is not what the games give"),
        (with_the_value_of_the_other_side, "recount", "value is not what the games give"),
        (with_a_value_for_an_unknown_result, "recount", "value is not what the games give"),
        (with_wins_for_losses, "recount", "losses is not what the games give"),
        (with_another_weight, "recount", "weight is not what the games give"),
        (with_another_key, "recount", "key is not what the games give"),
        (with_another_upper_key, "recount", "key_hi is not what the games give"),
        (with_another_symmetry, "encoding", "planes are not those of game"),
        (with_a_symmetry_of_no_image, "recount", "its image is none that is stored"),
        (with_the_planes_of_another_row, "encoding", "planes are not those of game"),
        (with_a_flipped_bit, "encoding", "planes are not those of game"),
        (with_another_side, "rows", "to_play is not the side that moved"),
        (with_another_score, "rows", "score is not that of the game"),
        (with_another_ply, "rows", "to_play is not the side that moved"),
    ],
)
def test_a_damaged_row_is_named(folder: Folder, damage: Callable[[Columns], int], check: str, message: str) -> None:
    columns = folder.columns("train")
    row = damage(columns)
    folder.rewrite("train", columns)
    found = folder.faults(ALL)
    place = f"{folder.entry('train').path} row {row}: "
    assert any(fault.startswith(place) and message in fault for fault in found[check]), found
    assert not {"sums", "folder", "shards", "games.parquet"} & set(found)


def test_planes_are_compared_with_those_of_other_images(folder: Folder) -> None:
    """Also where no row is encoded again: rows with one key that look different are found, and the key named."""
    columns = folder.columns("train")
    key = columns["key"][with_the_planes_of_another_row(columns)]
    folder.rewrite("train", columns)
    found = folder.faults(sample=0)["recount"]
    assert any("rows with this key have different planes" in fault for fault in found), (key, found)


def test_a_repeated_image_is_named(folder: Folder) -> None:
    columns = folder.columns("train")
    place = list(zip(columns["game"].tolist(), columns["ply"].tolist(), strict=True))
    row = with_another_symmetry(columns)
    folder.rewrite("train", columns)
    path = folder.entry("train").path
    found = folder.faults()["recount"]
    twins = [number for number in range(len(place)) if place[number] == place[row] and columns["symmetry"][number] == 3]
    assert len(twins) == 2
    assert f"{path} row {max(twins)}: it repeats a row: the same position and image" in found
    assert f"game {place[row][0]} ply {place[row][1]}: its row is missing from train" in found


def test_a_row_of_another_part(folder: Folder) -> None:
    columns, other = folder.columns("train"), folder.columns("val")
    row, moved = shard.count(columns), int(np.flatnonzero(other["symmetry"] == 0)[3])
    folder.rewrite("train", join([columns, slice_rows(other, moved, moved + 1)]))
    found = folder.faults()
    assert f"{folder.entry('train').path} row {row}: its game is not in train" in found["rows"]
    assert f"{folder.entry('train').path} row {row}: its position does not belong to train" in found["recount"]
    assert f"1 keys are in both train and val, e.g. {other['key'][moved]}" in found["rows"]


def test_a_missing_row(folder: Folder) -> None:
    columns = folder.columns("train")
    folder.rewrite("train", take_rows(columns, np.delete(np.arange(shard.count(columns)), 55)))
    place = f"game {columns['game'][55]} ply {columns['ply'][55]}"
    assert folder.faults()["recount"] == (f"{place}: its row is missing from train",)


def test_a_doubled_row(folder: Folder) -> None:
    columns = folder.columns("test")
    folder.rewrite("test", join([columns, slice_rows(columns, 3, 4)]))
    row = shard.count(columns)
    path = folder.entry("test").path
    assert folder.faults()["recount"] == (f"{path} row {row}: it repeats a row: the same position and image",)


def test_a_missing_shard_makes_no_missing_rows(folder: Folder) -> None:
    entry = folder.entry("val")
    (folder.path / entry.path).unlink()
    found = folder.faults(ALL)
    assert found == {"shards": (f"{entry.path}: is missing",)}


def numbers_of(tables: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield every number of a manifest that counts something."""
    for name in ("members", "records", "positions", "rows", "reasons", "flags"):
        for key, value in tables[name].items():
            if isinstance(value, dict):
                yield from ((value, band) for band in value)
            else:
                yield tables[name], key
    for entry in [*tables["shards"], tables["games"]]:
        yield from ((entry, key) for key in ("rows", "bytes") if key in entry)


def test_every_number_of_the_manifest_counts(folder: Folder) -> None:
    tables = json.loads((folder.path / "dataset.json").read_text())
    places = len(list(numbers_of(tables)))
    assert places > 25
    for place in range(places):

        def change(tables: dict[str, Any], place: int = place) -> None:
            table, key = list(numbers_of(tables))[place]
            table[key] += 1

        folder.change_manifest(change)
        table, key = list(numbers_of(tables))[place]
        assert sum_faults(read_manifest(folder.path)) or folder.faults(), f"{key} of {table}"
        (folder.path / "dataset.json").write_text(json.dumps(tables))


@pytest.mark.parametrize(("one", "other"), [("merged", "overlap"), ("stored", "merged"), ("sampled_out", "overlap")])
def test_positions_counted_under_another_name(folder: Folder, one: str, other: str) -> None:
    """The sum still holds."""

    def change(tables: dict[str, Any]) -> None:
        tables["positions"][one] += 1
        tables["positions"][other] -= 1

    folder.change_manifest(change)
    assert any(fault.startswith("positions ") and f" {other}: " in fault for fault in folder.faults()["recount"])


def test_a_shard_that_is_listed_under_another_part(folder: Folder) -> None:
    entry = folder.entry("val")
    (folder.path / "val").rename(folder.path / "moved")
    (folder.path / "val").mkdir()
    other = entry.path.replace("val/", "train/").replace("-00000", "-00009")
    (folder.path / "moved" / Path(entry.path).name).rename(folder.path / other)
    shutil.rmtree(folder.path / "moved")

    def change(tables: dict[str, Any]) -> None:
        for item in tables["shards"]:
            if item["path"] == entry.path:
                item |= {"split": "train", "path": other}
        tables["rows"]["train"] += tables["rows"]["val"]
        tables["rows"]["val"] = 0

    folder.change_manifest(change)
    found = folder.faults()
    assert f"{other} row 0: its game is not in train" in found["rows"]
    assert f"{other} row 0: its position does not belong to train" in found["recount"]


def test_a_wrong_sha256(folder: Folder) -> None:
    def change(tables: dict[str, Any]) -> None:
        tables["shards"][0]["sha256"] = "0" * 64
        tables["games"]["sha256"] = "1" * 64

    folder.change_manifest(change)
    found = folder.faults()
    assert found["shards"] == (f"{folder.entry('train').path}: its sha256 is not the manifest's",)
    assert found["games.parquet"] == ("games.parquet: its sha256 is not the manifest's",)


@pytest.mark.parametrize(
    ("table", "key", "value"),
    [
        ("dedup", "positions", "off"),
        ("dedup", "positions", "first"),
        ("dedup", "key_bits", 64),
        ("filter", "sizes", [[5, 5]]),
        ("encode", "scheme", "unheard_of"),
    ],
)
def test_a_config_that_is_not_that_of_the_shards(folder: Folder, table: str, key: str, value: Any) -> None:
    def change(tables: dict[str, Any]) -> None:
        tables["config"][table][key] = value

    folder.change_manifest(change)
    (fault,) = folder.faults()["config"]
    assert fault.startswith("dataset.json: config")


@pytest.mark.parametrize(
    ("table", "key", "value"),
    [
        ("dedup", "reach", "board"),
        ("split", "overlap", "keep"),
        ("split", "seed", 1),
        ("split", "plies", 9),
        ("augment", "mode", "random"),
        ("sample", "per_game", 3),
        ("sample", "plies", [0, 5]),
        ("encode", "scheme", "board"),
    ],
)
def test_a_config_that_gives_other_rows(folder: Folder, table: str, key: str, value: Any) -> None:
    def change(tables: dict[str, Any]) -> None:
        tables["config"][table][key] = value

    folder.change_manifest(change)
    assert folder.faults(ALL)["recount"]


def kept(rows: list[dict[str, Any]], wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Return the first kept game of train with rows that is as wanted."""
    return next(row for row in rows if row["status"] == "kept" and row["split"] == "train" and wanted(row))


def test_a_flipped_winner(folder: Folder) -> None:
    games: list[int] = []

    def change(rows: list[dict[str, Any]]) -> None:
        row = kept(rows, lambda row: row["winner"] == "B" and row["result_kind"] == "score" and row["rows"] > 50)
        row["winner"] = "W"
        games.append(row["game"])

    columns = folder.columns("train")
    folder.change_games(change)
    row = int(np.flatnonzero((columns["game"] == games[0]) & (columns["weight"] == 1))[0])
    found = folder.faults()
    assert f"{folder.entry('train').path} row {row}: value is not what the games give" in found["recount"]
    assert f"{folder.entry('train').path} row {row}: score is not that of the game" in found["rows"]


def test_plies_cut(folder: Folder) -> None:
    def change(rows: list[dict[str, Any]]) -> None:
        kept(rows, lambda row: row["plies"] == 40)["plies"] = 39

    folder.change_games(change)
    found = folder.faults()
    assert any(fault.startswith("plies of kept games are ") for fault in found["games.parquet"])
    assert any(": its game has no such ply" in fault for fault in found["rows"])
    assert any(": its position is none that is kept" in fault for fault in found["recount"])


def test_another_move(folder: Folder) -> None:
    """The last one, so that the game stays legal and only a label differs; in place of it a pass."""
    games: list[tuple[int, int]] = []

    def change(rows: list[dict[str, Any]]) -> None:
        area = 25
        row = kept(rows, lambda row: row["board_rows"] == row["board_cols"] == 5 and row["moves"][-1] < area)
        row["moves"][-1] = area
        games.append((row["game"], row["plies"] - 1))

    columns = folder.columns("train")
    folder.change_games(change)
    game, ply = games[0]
    row = int(np.flatnonzero((columns["game"] == game) & (columns["ply"] == ply))[0])
    assert (
        f"{folder.entry('train').path} row {row}: move is not the label of its position" in folder.faults()["recount"]
    )


@pytest.mark.parametrize("last", [True, False])
def test_an_illegal_move(folder: Folder, last: bool) -> None:
    """The game is named, also where no row shows it; the other checks go on."""
    games: list[tuple[int, int]] = []

    def change(rows: list[dict[str, Any]]) -> None:
        row = kept(rows, lambda row: row["board_rows"] == row["board_cols"] == 5 and row["plies"] > 8)
        ply = row["plies"] - 1 if last else 4
        earlier = next(move for move in row["moves"] if move < 25)
        row["moves"][ply : ply + 2] = [earlier] * len(row["moves"][ply : ply + 2])
        games.append((row["game"], ply + 1))

    folder.change_games(change)
    found = folder.faults(ALL)
    game, number = games[0]
    assert found["recount"][0].startswith(f"games.parquet: game {game}: move ")
    assert found["recount"][0].endswith("is illegal")
    assert int(found["recount"][0].split()[-3]) in {number, number + 1}


def test_a_game_that_was_moved_to_another_part(folder: Folder) -> None:
    """With all its rows and in every table: its moves still say where it belongs."""
    columns, other = folder.columns("train"), folder.columns("val")
    game = other["game"][0]
    mine = other["game"] == game
    folder.rewrite("train", join([columns, take_rows(other, np.flatnonzero(mine))]))
    folder.rewrite("val", take_rows(other, np.flatnonzero(~mine)))

    def change(rows: list[dict[str, Any]]) -> None:
        next(row for row in rows if row["game"] == game)["split"] = "train"

    folder.change_games(change)
    assert f"game {game} is in train, its first 4 moves belong to val" in folder.faults()["recount"]


def test_a_board_larger_than_the_frame(folder: Folder) -> None:
    """The kernels that turn and draw planes check no bounds: such a table must be stopped before them."""

    def change(rows: list[dict[str, Any]]) -> None:
        row = kept(rows, lambda row: row["board_rows"] == 5)
        row |= {"board_rows": 19, "board_cols": 19}

    folder.change_games(change)
    found = folder.faults(ALL)
    assert found["games.parquet"] == ("a kept game has a board larger than the frame of 6x7",)
    assert set(found) == {"games.parquet"}


@pytest.mark.parametrize("times", [1, pytest.param(6, marks=pytest.mark.full)])
def test_any_cell_of_any_column(folder: Folder, times: int) -> None:
    """One cell of one row takes the value of another place: found, and its row named, whatever it is."""
    rng = Random("cells")
    layout = open_dataset(folder.path).manifest.layout
    whole, path = folder.columns("val"), folder.entry("val").path
    for name in whole:
        for _ in range(times if name != "policy_offsets" else 0):
            columns = {key: values.copy() for key, values in whole.items()}
            values, at = columns[name], rng.randrange(len(columns[name]))
            other = [value for value in values if not np.array_equal(value, values[at], equal_nan=name != "planes")]
            if not other:
                continue
            values[at] = rng.choice(other)
            if first_fault(columns, layout, 0):
                continue
            row = int(np.searchsorted(columns["policy_offsets"], at, side="right") - 1) if name in shard.POLICY else at
            folder.rewrite("val", columns)
            sample = ALL if name in {"planes", "symmetry"} else 0
            found = [fault for faults in folder.faults(sample).values() for fault in faults]
            assert any(fault.startswith(f"{path} row {row}: ") for fault in found), (name, at, found)


@pytest.mark.parametrize("times", [8, pytest.param(100, marks=pytest.mark.full)])
def test_any_bit_of_a_shard(folder: Folder, times: int) -> None:
    """A flipped bit is found by the checksum; where the manifest is corrected, by what the shard then says.

    A bit that changes no row is none of its business: statistics, padding, names of the writer.
    """
    rng = Random("bits")
    layout = open_dataset(folder.path).manifest.layout
    path = folder.path / folder.entry("val").path
    whole, columns = path.read_bytes(), folder.columns("val")
    manifest = (folder.path / "dataset.json").read_text()
    for _ in range(times):
        data = bytearray(whole)
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
        (folder.path / "dataset.json").write_text(manifest)
        (fault,) = folder.faults()["shards"]
        assert fault.startswith(folder.entry("val").path)
        folder.correct(folder.entry("val").path)
        try:
            batches = list(shard.read(path, layout))
            same = all(
                np.array_equal(values, columns[name], equal_nan=values.dtype.kind == "f")
                for name, values in join(batches).items()
            )
        except ShardError:
            same = False
        assert (folder.faults(ALL) == {}) == same
