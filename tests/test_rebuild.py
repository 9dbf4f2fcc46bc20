"""A data set built again from its own game table: the bytes that the archives would give, and what is refused."""

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from example_builds import EXAMPLES
from odd_records import write_odd_records

from pipeline import manifest as manifests
from pipeline.build import BuildError, Built, build
from pipeline.cli import cli
from pipeline.columns import ShardError
from pipeline.config import Config, ConfigError, Input, make_config
from pipeline.executors import WorkerDied, Workers
from pipeline.files import sha256_of_file
from pipeline.manifest import ManifestError, read_manifest, write_manifest
from pipeline.plan import estimate
from pipeline.sources import find_inputs
from pipeline.stored import TableError
from pipeline.table import SCHEMA

Tables = dict[str, dict[str, Any]]

PLAIN: Tables = {
    "filter": {"sizes": "any", "min_moves": 3},
    "encode": {"scheme": "board"},
    "output": {"games_per_block": 20},
}
# What a build of the same records may be told; where it differs from PLAIN the table has to be decided anew.
OTHERS: list[Tables] = [
    {"rules": {"illegal": "keep-prefix"}},
    {"rules": {"force": "tromp-taylor"}},
    {"rules": {"default": "japanese", "komi_default": 6.3}, "filter": {"komi": [6.3, 6.3]}},
    {"filter": {"sizes": [9, "5x9"], "min_rank": "9k", "dates": ["2020", "2024"]}},
    {"filter": {"problem_moves": 0, "gomoku_boards": []}},
    {"dedup": {"games": False}, "split": {"val": 0.4, "seed": 7, "plies": 2}},
    {"dedup": {"near": "drop", "positions": "off"}, "sample": {"per_game": 3}},
    {"encode": {"scheme": "agz17"}, "output": {"format": "hdf5", "rows_per_shard": 500}, "augment": {"mode": "random"}},
]


def config(inputs: list[Path], output: Path, tables: Tables) -> Config:
    merged = {name: {**PLAIN.get(name, {}), **tables.get(name, {})} for name in {*PLAIN, *tables}}
    merged["input"] = {**merged.get("input", {}), "paths": [str(path) for path in inputs]}
    merged["output"] = {**merged["output"], "path": str(output)}
    return make_config({**merged, "run": {"workers": 0}}, "test")


def make(inputs: list[Path], output: Path, tables: Tables | None = None) -> Built:
    return build(config(inputs, output, tables or {}))


def published(folder: Path) -> dict[str, bytes]:
    """Return the bytes of every published file but the manifest, which names the inputs."""
    paths = [path for path in folder.rglob("*") if path.is_file() and ".goplanes" not in path.parts]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths if path.name != manifests.NAME}


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return [EXAMPLES, write_odd_records(tmp_path_factory.mktemp("records") / "more")]


@pytest.fixture(scope="module")
def dataset(records: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(records, tmp_path_factory.mktemp("first") / "set").path


def test_the_records_are_of_every_kind(dataset: Path) -> None:
    """Otherwise the tests below would prove less than they say."""
    table = pq.read_table(dataset / "games.parquet")
    statuses = set(table["status"].to_pylist())
    assert {"kept", "duplicate", "conflicting", "filtered", "rejected"} == statuses
    flags = {flag for flags in table["flags"].to_pylist() for flag in flags}
    assert flags >= {
        "komi-unusable", "rules-unread", "result-unread", "rank-unread", "handicap-unusable", "date-unread",
        "charset-guessed", "game-value-odd", "player-mismatch", "setup-in-mid-game", "colour-twice", "size-assumed",
        "turned-copy", "prefix-of", "opening-repaired", "unclosed", "remains", "other-names", "rank-in-name",
        "komi-in-gm", "komi-overridden", "handicap-folded", "handicap-placed", "handicap-missing", "lecture",
    }  # fmt: skip
    reasons = set(table["reason"].to_pylist())
    assert reasons >= {"problem", "not-go", "empty", "handicap-unknown", "bad-syntax", "no-game"}
    assert {entry.reason for entry in read_manifest(dataset).omitted} >= {"hidden", "not-a-record", "damaged-archive"}


def test_the_same_settings_give_the_same_bytes(dataset: Path, tmp_path: Path) -> None:
    again = make([dataset], tmp_path / "again").manifest
    assert published(tmp_path / "again") == published(dataset)
    first = read_manifest(dataset)
    (table,) = again.inputs
    assert (table.source, table.sha256) == ("games.parquet", first.games.sha256)
    fingerprints = again.fingerprints.model_copy(update={"inputs": first.fingerprints.inputs})
    assert again.model_copy(update={"inputs": first.inputs, "fingerprints": fingerprints}) == first


@pytest.mark.parametrize("tables", OTHERS)
def test_other_settings_give_what_the_archives_would(
    records: list[Path], dataset: Path, tables: Tables, tmp_path: Path
) -> None:
    make(records, tmp_path / "direct", tables)
    make([dataset], tmp_path / "again", tables)
    assert published(tmp_path / "again") == published(tmp_path / "direct")
    assert published(tmp_path / "again") != published(dataset)
    # And nothing is lost on the way: the first data set comes back out of the second.
    make([tmp_path / "again"], tmp_path / "back")
    assert published(tmp_path / "back") == published(dataset)


def test_worker_processes_and_a_finished_folder(dataset: Path, tmp_path: Path) -> None:
    asked = config([dataset], tmp_path / "again", {})
    asked = asked.model_copy(update={"run": asked.run.model_copy(update={"workers": 2})})
    build(asked)
    assert published(tmp_path / "again") == published(dataset)
    assert build(asked).seconds == {}  # nothing to do


def test_no_record_is_lost_to_a_worker_that_dies(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(self: Workers, function: Any, tasks: Any, at_once: Any = None) -> Iterator[tuple[int, Any]]:
        return ((number, WorkerDied("killed")) for number in range(len(tasks)))

    monkeypatch.setattr(Workers, "run", run)
    with pytest.raises(BuildError, match="killed"):
        make([dataset], tmp_path / "again")
    assert not (tmp_path / "again" / "dataset.json").exists()
    monkeypatch.undo()
    make([dataset], tmp_path / "again")
    assert published(tmp_path / "again") == published(dataset)


def test_a_data_set_without_a_record(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    make([tmp_path / "empty"], tmp_path / "set")
    make([tmp_path / "set"], tmp_path / "again")
    assert published(tmp_path / "again") == published(tmp_path / "set")


def test_only_a_folder_that_is_named_is_a_data_set(dataset: Path) -> None:
    files, omitted = find_inputs(Input(paths=(str(dataset.parent),)))
    assert files == []
    assert "set/games.parquet" in {item.source for item in omitted}
    (file,), _ = find_inputs(Input(paths=(str(dataset), f"{dataset}/")))
    assert (file.kind, file.source) == ("table", "games.parquet")


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ({"parse": {"branch": "longest"}}, ['parse.branch = "longest"', """--set 'parse.branch="first"'"""]),
        ({"input": {"exclude": ["*x*"], "max_depth": 1}}, ["'input.exclude=[]'", "'input.max_depth=2'"]),
    ],
)  # fmt: skip
def test_how_records_were_read_cannot_change(dataset: Path, tables: Tables, words: list[str], tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        make([dataset], tmp_path / "again", tables)
    for word in words:
        assert word in str(refused.value)
    assert not (tmp_path / "again").exists()


def test_the_way_out_that_is_printed_works(records: list[Path], tmp_path: Path) -> None:
    tables = {"parse": {"two_moves": "split"}, "input": {"exclude": ["*/bo-*"]}}
    make(records, tmp_path / "set", tables)
    arguments = ["build", "-i", tmp_path / "set", "-o", tmp_path / "out", "--workers", "0", "--scheme", "board"]
    arguments += ["--set", "filter.sizes=any", "--set", "filter.min_moves=3", "--set", "output.games_per_block=20"]
    refused = CliRunner().invoke(cli, [str(word) for word in arguments])
    assert refused.exit_code == 2
    settings = re.findall(r"--set '([^']+)'", refused.output)
    assert len(settings) == 2
    done = CliRunner().invoke(cli, [str(word) for word in arguments] + [f"--set={setting}" for setting in settings])
    assert done.exit_code == 0, done.output
    assert published(tmp_path / "out") == published(tmp_path / "set")


def test_no_other_input_beside_a_data_set(dataset: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="built again alone"):
        make([dataset, EXAMPLES], tmp_path / "out")
    copy = tmp_path / "copy"
    shutil.copytree(dataset, copy)
    with pytest.raises(ConfigError, match="built again alone"):
        make([dataset, copy], tmp_path / "out")


@pytest.mark.parametrize("inside", [".", "train", "new/set"])
def test_no_output_in_the_data_set_itself(dataset: Path, inside: str, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(dataset)
    before = published(dataset)
    asked = config([dataset], tmp_path / "link" / inside, {})
    for overwrite in (False, True):
        with pytest.raises(ConfigError, match="choose another --output"):
            build(asked, overwrite=overwrite)
    assert published(dataset) == before


def test_plan_and_explain_say_what_to_do(dataset: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="goplanes inspect"):
        estimate(config([dataset], tmp_path / "out", {}))
    told = CliRunner().invoke(cli, ["explain", str(dataset), "--status", "conflicting"])
    assert told.exit_code == 0
    assert "conflicting" in told.output


def test_a_damaged_table_is_refused(dataset: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(dataset, copy)
    data = bytearray((copy / "games.parquet").read_bytes())
    data[len(data) // 2] ^= 1
    (copy / "games.parquet").write_bytes(data)
    with pytest.raises(ShardError, match=r"games.parquet: its sha256 is not the manifest's"):
        make([copy], tmp_path / "out")
    told = CliRunner().invoke(cli, ["build", str(copy), "-o", str(tmp_path / "out")])
    assert told.exit_code == 1
    assert str(copy) in told.output
    (copy / "dataset.json").write_text("{}")
    with pytest.raises(ManifestError, match=r"dataset.json"):
        make([copy], tmp_path / "out")


def set_value(name: str, value: Any, *, game: bool = True) -> Callable[[list[dict[str, Any]]], None]:
    """Return a change of one column in the first record that is a game, or that is none."""

    def change(rows: list[dict[str, Any]]) -> None:
        next(row for row in rows if (row["board_rows"] is not None) == game)[name] = value

    return change


HOSTILE = {
    "no board": set_value("board_rows", 0),
    "a large board": set_value("board_cols", 200),
    "no columns": set_value("board_cols", None),
    "no moves": set_value("moves", None),
    "a move that no board holds": set_value("moves", [9999]),
    "a null move": set_value("colours", [None]),
    "colours of other moves": set_value("colours", [1]),
    "a setup stone off the board": set_value("setup_points", [65_000]),
    "a short content hash": set_value("content", b"abc"),
    "a negative index": set_value("index", -1),
    "no source": set_value("source", None),
    "a flag of nobody": set_value("flags", ["made-up"]),
    "a null flag": set_value("flags", [None]),
    "a status without a game": set_value("status", "kept", game=False),
    "a reason of nobody": set_value("reason", "made-up", game=False),
    "no reason": set_value("reason", None, game=False),
    "a null header text": set_value("raw", [("KM", None)]),
    "a long header text": set_value("raw", [("KM", "6" * 501)]),
    "too many moves": lambda rows: rows[0].update(
        moves=[81] * 66_000, colours=[1] * 66_000, board_rows=9, board_cols=9
    ),
}


def with_table(dataset: Path, copy: Path, write: Callable[[Path], None]) -> Path:
    """Copy a data set with another game table, which its manifest vouches for."""
    shutil.copytree(dataset, copy)
    write(copy / "games.parquet")
    manifest = read_manifest(copy)
    games = manifest.games.model_copy(update={"sha256": sha256_of_file(copy / "games.parquet")})
    write_manifest(copy, manifest.model_copy(update={"games": games}))
    return copy


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_record_is_refused(dataset: Path, name: str, tmp_path: Path) -> None:
    rows = pq.read_table(dataset / "games.parquet").to_pylist()
    rows.sort(key=lambda row: not row["moves"])  # so that a list of one move is never right
    HOSTILE[name](rows)
    table = pa.Table.from_pylist(rows, SCHEMA)
    copy = with_table(dataset, tmp_path / "copy", lambda path: pq.write_table(table, path))
    with pytest.raises(TableError, match=r"games.parquet: not a record of ours"):
        make([copy], tmp_path / "out")


def test_a_file_that_is_no_game_table_is_refused(dataset: Path, tmp_path: Path) -> None:
    other = pa.table({"game": [1]})
    for number, (write, words) in enumerate(
        (
            (lambda path: pq.write_table(other, path), "not those of a game table"),
            (lambda path: path.write_bytes(b"PAR1"), "cannot be read"),
            (lambda path: path.write_bytes(b"PK\3\4"), "cannot be read"),
            (lambda path: path.write_bytes(b""), "cannot be read"),
        )
    ):
        copy = with_table(dataset, tmp_path / f"copy-{number}", write)
        with pytest.raises(TableError, match=words):
            make([copy], tmp_path / f"out-{number}")
