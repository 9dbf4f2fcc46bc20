"""Data sets with globals: every row of ``katago_v7`` against the slow history, from records to shards and back."""

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray
from random_games import Line, turned
from random_games import games_of as lines_to_games
from slow_board import BLACK, WHITE, Point, SlowBoard
from slow_katago import SlowHistory, SlowOptions, SlowRules
from stages import sgf_of, write_games
from test_recount import ALL, Folder

from pipeline.augment import turn_planes
from pipeline.build import Built, build
from pipeline.cli import cli
from pipeline.compose import configured_scheme
from pipeline.config import Config, Encode, make_config
from pipeline.encode import encode_whole
from pipeline.explain import Wanted, of_records
from pipeline.gamefile import batches as games_in
from pipeline.katago import trace_katago
from pipeline.keys import keyed
from pipeline.load import Dataset, open_dataset
from pipeline.manifest import NAME
from pipeline.position import encode_inputs, encode_position
from pipeline.report import lines as report_lines
from pipeline.show import RecordError, show_record, show_row
from pipeline.stats import facts as stats_of
from pipeline.table import games_of
from pipeline.verify import verify

FRAME = (7, 7)

# What RU says, the rules it means, and their komi.
RULES: dict[str, tuple[SlowRules, float]] = {
    "Chinese": (SlowRules(bonus="N"), 7.5),
    "Japanese": (SlowRules(territory=True, tax="seki"), 6.5),
    "AGA": (SlowRules("situational", bonus="N-1"), 7.5),
    "Tromp-Taylor": (SlowRules("positional", suicide=True), 7.5),
    "aga-button": (SlowRules("situational", bonus="N-1", button=True), 7.0),
    "stone-scoring": (SlowRules(tax="all"), 7.5),
    "ancient-territory": (SlowRules(territory=True, tax="all"), 6.5),
    "koSPIGHTscoreAREAtaxSEKIsui1": (SlowRules("spight", tax="seki", suicide=True), 7.5),
}


@dataclass(frozen=True, slots=True)
class Played:
    """A record: its main line, its rules by RU, and komi and handicap as written ("": not at all)."""

    line: Line
    rules: str = "Chinese"
    komi: str = "6.5"
    handicap: str = ""

    @property
    def sgf(self) -> str:
        headers = {"RU": self.rules, "KM": self.komi, "HA": self.handicap}
        return sgf_of(self.line, RE="B+R", **{name: text for name, text in headers.items() if text})

    def positions(self) -> Iterator[tuple[NDArray[np.float32], bool]]:
        """Yield the globals before each move, and whether that is in the main phase."""
        rules, usual = RULES[self.rules]
        komi = float(self.komi) if self.komi else usual
        history = SlowHistory(self.line.rows, self.line.cols, rules, komi, None, SlowOptions())
        for ply, (point, colour) in enumerate(self.line.moves):
            changes = [(place, paint) for when, place, paint in self.line.setup if when == ply]
            if changes or ply == 0:
                history.setup(changes, colour)
            yield np.array(history.globals(colour, 0), dtype=np.float32), history.phase == 0
            history.play(point, colour)


def random_game(rng: Random, rows: int, cols: int, rules: str, length: int, *, first: int = BLACK, turns: bool = False,
                setup: tuple[tuple[int, Point, int], ...] = ()) -> Line:  # fmt: skip
    """Return a random game in which moves are legal by its rules, with many passes; ``turns``: either side may move."""
    history = SlowHistory(rows, cols, RULES[rules][0], 0, None, SlowOptions())
    plain, colour = SlowBoard(rows, cols), first
    moves: list[tuple[Point | None, int]] = []
    for ply in range(length):
        changes = [(place, paint) for when, place, paint in setup if when == ply]
        if changes:
            assert plain.setup(changes)
        if changes or ply == 0:
            history.setup(changes, colour)
        points = [
            point
            for point in plain.empty_points()
            if plain.fault(point, colour, RULES[rules][0].suicide) is None
            and (history.phase > 0 or history.legal(point, colour))
            and history.accepts(point, colour)
        ]
        point = rng.choice(points) if points and rng.random() > 0.15 else None
        moves.append((point, colour))
        history.play(point, colour)
        if point is None:
            plain.play_pass()
        else:
            plain.play(point, colour)
        colour = rng.choice((BLACK, WHITE)) if turns else 3 - colour
    return Line(rows, cols, tuple(moves), setup)


STONES = ((0, (1, 1), BLACK), (0, (3, 3), BLACK), (0, (1, 3), BLACK))


def many_games(seed: str) -> dict[str, Played]:
    """Return games under all rules: handicap, setup in mid-game, White first, either side, komi unknown."""
    rng, games = Random(seed), {}
    for number in range(40):
        rules, size = list(RULES)[number % 8], ((5, 5), (4, 4), (3, 5), (7, 7), (5, 4))[number % 5]
        kind = number // 8
        setup: tuple[tuple[int, Point, int], ...] = ()
        if kind == 1 and min(size) > 3:
            setup = STONES
        elif kind == 2:
            setup = ((6, (2, 2), 0), (6, (0, 3), WHITE))
        line = random_game(
            rng, *size, rules, 26 + number, first=WHITE if kind in (1, 3) else BLACK, turns=kind == 4, setup=setup
        )
        komi = ("6.5", "7", "", "0", "-3.5", "150")[number % 6]
        games[f"{number:02d}.sgf"] = Played(line, rules, komi, "3" if setup is STONES else "")
    return games


def config_of(inputs: Path, folder: Path, tables: dict[str, dict[str, Any]]) -> Config:
    base: dict[str, dict[str, Any]] = {
        "encode": {"scheme": "katago_v7"},
        "filter": {"sizes": [5, 4, "3x5", "5x4", "7x5", 7]},
        "rules": {"illegal": "keep-prefix"},
        "dedup": {"games": False},
        "split": {"val": 0.2, "test": 0.1, "plies": 4},
        "output": {"games_per_block": 12},
        "run": {"workers": 0},
    }
    merged = {name: {**base.get(name, {}), **tables.get(name, {})} for name in {*base, *tables}}
    merged["input"] = {"paths": [str(inputs)]}
    merged["output"]["path"] = str(folder)
    return make_config(merged, "test")


def make(folder: Path, games: dict[str, Played], **tables: dict[str, Any]) -> Built:
    """Build the games under ``folder`` / "in" (written if it is not there) into ``folder`` / "out"."""
    inputs = folder / "in"
    if not inputs.exists():
        write_games(inputs, {name: game.sgf for name, game in games.items()})
    return build(config_of(inputs, folder / "out", tables))


def sources(dataset: Dataset) -> dict[int, dict[str, Any]]:
    """Return the rows of the game table by id."""
    return {row["game"]: row for table in games_in(dataset) for row in table.to_pylist()}


def check_rows(dataset: Dataset, games: dict[str, Played]) -> set[tuple[str, int]]:
    """Hold the globals of all rows against the slow history; return the places (source, ply) of the rows."""
    table = sources(dataset)
    right = {row["source"]: list(games[row["source"]].positions()) for row in table.values()}
    seen = set()
    for split in ("train", "val", "test"):
        for batch in dataset.batches(split):
            assert batch["globals"].dtype == np.float32
            for game, ply, numbers in zip(batch["game"].tolist(), batch["ply"].tolist(), batch["globals"], strict=True):
                source = table[game]["source"]
                expected, in_main_phase = right[source][ply]
                assert in_main_phase, (source, ply)
                assert np.array_equal(numbers, expected), (source, ply)
                seen.add((source, ply))
    return seen


@pytest.mark.parametrize(
    ("output", "positions", "augment"),
    [
        ({"format": "parquet"}, "off", "none"),
        ({"format": "parquet"}, "first", "random"),
        ({"format": "parquet"}, "aggregate", "all"),
        ({"format": "hdf5"}, "off", "all"),
        ({"format": "hdf5"}, "first", "none"),
        ({"format": "hdf5"}, "aggregate", "random"),
        ({"format": "hdf5", "packed": False}, "off", "random"),
        ({"format": "hdf5", "packed": False}, "first", "all"),
        ({"format": "hdf5", "packed": False}, "aggregate", "none"),
    ],
)
def test_every_row_has_the_globals_of_its_position(
    output: dict[str, Any], positions: str, augment: str, tmp_path: Path
) -> None:
    """And there is a row for every position of the main phase that is not merged."""
    games = many_games("rows")
    built = make(tmp_path, games, output=output, dedup={"positions": positions}, augment={"mode": augment})
    dataset, counts = open_dataset(built.path), built.manifest.positions
    assert built.manifest.records.kept == len(games)
    places = check_rows(dataset, games)
    plies = {row["source"]: row["plies"] for row in sources(dataset).values()}
    in_main_phase = {
        (name, ply)
        for name, game in games.items()
        for ply, (_, main) in enumerate(game.positions())
        if main and ply < plies[name]
    }
    assert counts.seen == sum(plies.values())
    assert counts.sampled_out == counts.seen - len(in_main_phase) > 100
    assert counts.stored == len(places) == len(in_main_phase) - counts.merged - counts.overlap
    assert places <= in_main_phase
    if positions == "off":
        assert places == in_main_phase
    else:
        assert counts.merged > 0
    assert [(check.name, check.faults) for check in verify(built.path, ALL) if check.faults] == []


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """A data set in which images of a position have the same key."""
    folder = tmp_path_factory.mktemp("globals")
    return make(folder, many_games("rows"), augment={"mode": "all"})


def test_globals_are_those_of_the_kernel_bit_for_bit(built: Built) -> None:
    dataset = open_dataset(built.path)
    (table,) = games_in(dataset)
    games, ids = games_of(table), table.column("game").to_pylist()
    traced: dict[tuple[int, int], NDArray[np.uint32]] = {}
    plies = np.diff(games.move_start)
    for size, order in games.by_size().items():
        found = iter(trace_katago(games, order, plies, size).globals.view(np.uint32))
        traced |= {(ids[game], ply): next(found) for game in order.tolist() for ply in range(plies[game])}
    rows = 0
    for split in ("train", "val", "test"):
        for batch in dataset.batches(split, columns=["globals", "game", "ply"]):
            bits = batch["globals"].view(np.uint32)
            right = [traced[place] for place in zip(batch["game"].tolist(), batch["ply"].tolist(), strict=True)]
            assert np.array_equal(bits, np.stack(right))
            rows += len(bits)
    assert rows == built.manifest.shard_rows


@pytest.mark.parametrize(
    "encode",
    [
        {"scheme": "katago_v7"},
        {"scheme": "katago22_article", "options": {"legality": "rules"}},
        {"scheme": "alphago48", "options": {"legality": "rules"}},
        {"planes": ["ones", "katago_globals"]},
        {"planes": ["stones", "bans", "areas"]},
        {"planes": ["empty", "rules", "komi", "handicap"]},
    ],
)
def test_equal_keys_are_equal_planes_and_globals(built: Built, encode: dict[str, Any]) -> None:
    """Of positions turned by the symmetries of their keys, under all rules at once."""
    (table,) = games_in(open_dataset(built.path))
    games, scheme = games_of(pa.concat_tables([table, table.slice(0, 8)])), configured_scheme(Encode(**encode))
    found = keyed(games, scheme)
    row_games = np.repeat(np.arange(games.number), np.diff(games.move_start))
    plies = np.arange(len(row_games)) - games.move_start[row_games]
    at = np.flatnonzero(found.shown & (plies < found.replayed.legal[row_games]))
    row_games, plies, turns = row_games[at], plies[at], found.replayed.turns[at]
    planes, numbers = encode_whole(scheme, games, row_games, plies, FRAME)
    planes = turn_planes(planes, games.rows[row_games], games.cols[row_games], FRAME[1], turns)
    content = [one.tobytes() + other.tobytes() for one, other in zip(planes, numbers, strict=True)]
    for keys in (found.replayed.keys[at].tolist(), found.replayed.keys_hi[at].tolist()):
        assert len(set(keys)) == len(set(zip(keys, content, strict=True)))
        assert len(set(keys)) < 0.9 * len(keys)


def kept_plies(folder: Path, game: Played) -> list[int]:
    """Build one game alone, check it, and return the plies that have rows."""
    made = make(folder, {"a.sgf": game}, dedup={"positions": "off"}, split={"val": 0, "test": 0})
    places = check_rows(open_dataset(made.path), {"a.sgf": game})
    counts = made.manifest.positions
    assert (counts.seen, counts.sampled_out) == (len(game.line.moves), len(game.line.moves) - len(places))
    assert [check.faults for check in verify(made.path, ALL) if check.faults] == []
    told = "all of the encore: katago_v7 has no rows of it"
    summary = "".join(report_lines(made, config_of(folder, folder, {})))
    assert (told in summary) == (counts.sampled_out > 0)
    return sorted(ply for _, ply in places)


PASSED = (((2, 2), 1), ((1, 1), 2), (None, 1), (None, 2), ((3, 3), 1), ((0, 4), 2), (None, 1), ((4, 4), 2))
# Two kos side by side, the upper one held by White, the lower one by Black.
KOS = [((0, 1), 1), ((1, 0), 1), ((2, 1), 1), ((0, 2), 2), ((1, 3), 2), ((2, 2), 2), ((1, 1), 2)]
KOS += [((4, 1), 1), ((5, 0), 1), ((6, 1), 1), ((4, 2), 2), ((5, 3), 2), ((6, 2), 2), ((5, 2), 1)]
# Black passes; all four stones are retaken, with a pass by White between; Black passes again, on the same board.
ROUND = ((None, 1), ((5, 1), 2), ((1, 2), 1), (None, 2), ((5, 2), 1), ((1, 1), 2), (None, 1), ((3, 4), 2), ((0, 4), 1))


@pytest.mark.parametrize(
    ("line", "japanese"),
    [
        (Line(5, 5, PASSED), [0, 1, 2, 3]),  # the last of them is before the second pass
        (Line(5, 5, PASSED[:4]), [0, 1, 2, 3]),
        (Line(5, 5, PASSED[2:]), [0, 1]),
        (Line(5, 5, (*PASSED[:3], ((0, 0), 2), (None, 1))), [0, 1, 2, 3, 4]),  # passes that are not consecutive
        (Line(5, 5, PASSED, ((6, (2, 3), 2),)), [0, 1, 2, 3, 6, 7]),  # setup begins the main phase anew
        (Line(7, 5, ROUND, tuple((0, *stone) for stone in KOS)), [0, 1, 2, 3, 4, 5, 6]),
    ],
)
def test_under_territory_scoring_rows_end_with_the_main_phase(line: Line, japanese: list[int], tmp_path: Path) -> None:
    for rules, plies in (("Japanese", japanese), ("ancient-territory", japanese), ("Chinese", None)):
        (tmp_path / rules).mkdir()
        assert kept_plies(tmp_path / rules, Played(line, rules)) == (plies or list(range(len(line.moves))))


def test_a_pass_that_would_end_the_phase_is_told(tmp_path: Path) -> None:
    line = Line(7, 5, ROUND, tuple((0, *stone) for stone in KOS))
    made = make(tmp_path, {"a.sgf": Played(line, "Japanese")}, split={"val": 0, "test": 0})
    (batch,) = open_dataset(made.path).batches("train")
    ends = made.manifest.scheme.globals.index("pass_ends_phase")
    # After a pass of the other side, and where Black has passed before on the same board.
    assert sorted(batch["ply"][batch["globals"][:, ends] == 1].tolist()) == [1, 4, 6]


ONCE = Line(5, 5, (((2, 2), 1), ((1, 1), 2), ((3, 3), 1), ((0, 1), 2), ((4, 1), 1), ((2, 0), 2)))


@pytest.mark.parametrize(
    ("one", "other", "merged"),
    [
        (("Chinese", "6.5"), ("Chinese", "5.5"), 0),
        (("Chinese", "7.5"), ("Chinese", ""), 6),  # 7.5 is what the rules say
        (("Chinese", "7.5"), ("Japanese", "7.5"), 0),
        (("Japanese", "6.5"), ("ancient-territory", "6.5"), 0),
        (("AGA", "6.5"), ("Tromp-Taylor", "6.5"), 0),
        (("Chinese", "6.5"), ("Chinese", "6.50"), 6),
    ],
)
def test_games_merge_only_where_their_globals_are_equal(
    one: tuple[str, str], other: tuple[str, str], merged: int, tmp_path: Path
) -> None:
    """Equal moves, of which one game is turned; planes alone do not see a difference, nor does the reach "board"."""
    games = {"a.sgf": Played(ONCE, *one), "b.sgf": Played(turned(ONCE, 5), *other)}
    for scheme, reach, expected in (("katago_v7", "scheme", merged), ("agz17", "scheme", 6), ("katago_v7", "board", 6)):
        folder = tmp_path / f"{scheme}-{reach}"
        folder.mkdir()
        made = make(folder, games, encode={"scheme": scheme}, split={"val": 0, "test": 0}, dedup={"reach": reach})
        assert made.manifest.positions.merged == expected
        if scheme == "katago_v7":
            check_rows(open_dataset(made.path), games)
        assert [check.faults for check in verify(made.path, ALL) if check.faults] == []


@pytest.fixture(params=["parquet", "hdf5"])
def folder(built: Built, request: pytest.FixtureRequest, tmp_path: Path) -> Folder:
    if request.param == "hdf5":
        made = make(tmp_path, many_games("rows"), augment={"mode": "all"}, output={"format": "hdf5"})
        return Folder(made.path)
    shutil.copytree(built.path, tmp_path / "set")
    return Folder(tmp_path / "set")


def test_damaged_globals_are_named(folder: Folder) -> None:
    """All sums agree with the damage: a sign of zero, the lowest bit of the komi, the globals of another position."""
    place = folder.entry("train").path
    whole = folder.columns("train")
    komi, button = (open_dataset(folder.path).scheme.globals.index(name) for name in ("komi", "button"))
    zero = int(np.flatnonzero(whole["globals"][:, button].view(np.uint32) == 0)[0])
    other = next(row for row in range(9, 999) if (whole["globals"][row] != whole["globals"][row + 1]).any())
    for row, names in ((zero, "button"), (5, "komi"), (other, "")):
        columns = {name: values.copy() for name, values in whole.items()}
        bits = columns["globals"].view(np.uint32)
        if names:
            bits[row, button if names == "button" else komi] ^= 1 << 31 if names == "button" else 1
        else:
            bits[row] = bits[row + 1]
        folder.rewrite("train", columns)
        found = folder.faults(ALL)
        assert set(found) == {"recount", "encoding"}
        assert [fault.split(":")[0] for fault in found["encoding"]] == [f"{place} row {row}"]
        assert " globals are not those of game " in found["encoding"][0]
        assert found["encoding"][0].endswith(names)
        key = columns["key"][row]
        assert found["recount"] == (f"key {key}: rows with this key have different planes or globals",)


def test_globals_that_are_no_numbers_are_a_fault(folder: Folder) -> None:
    for value in (np.nan, np.inf):
        columns = folder.columns("train")
        columns["globals"][3, 5] = value
        folder.rewrite("train", columns)
        assert folder.faults()["shards"] == (f"{folder.entry('train').path}: row 3: globals are not finite",)


def test_a_bit_of_a_file_is_found(folder: Folder) -> None:
    """Of a shard whose bytes changed every row is encoded again."""
    path = folder.path / folder.entry("val").path
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)
    assert folder.faults()["shards"][0].startswith(folder.entry("val").path)


def rewrite_parquet(path: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    table = pq.read_table(path)
    changed = change(table).replace_schema_metadata(table.schema.metadata)
    pq.write_table(changed, path, row_group_size=8192, use_dictionary=False)


def with_globals(table: pa.Table, values: Any, kind: Any) -> pa.Table:
    at = table.schema.get_field_index("globals")
    field = pa.field("globals", pa.list_(pa.field("element", kind, nullable=False)), nullable=False)
    return table.set_column(at, field, pa.array(values, field.type))


HOSTILE: dict[str, tuple[Callable[[pa.Table], pa.Table], str]] = {
    "none": (lambda table: table.drop_columns("globals"), "has no column globals"),
    "too many": (
        lambda table: with_globals(table, [[*row, 1.0] for row in table["globals"].to_pylist()], pa.float32()),
        "column globals",
    ),
    "too few": (
        lambda table: with_globals(table, [row[:-1] for row in table["globals"].to_pylist()], pa.float32()),
        "globals has 18 values, not 19",
    ),
    "another type": (
        lambda table: with_globals(table, [[int(x) for x in row] for row in table["globals"].to_pylist()], pa.int32()),
        "column globals",
    ),
    "twice": (lambda table: table.append_column("more_globals", table["globals"]), "more_globals"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_parquet_shard_whose_globals_are_not_those_of_the_manifest(built: Built, name: str, tmp_path: Path) -> None:
    shutil.copytree(built.path, tmp_path / "set")
    folder = Folder(tmp_path / "set")
    change, words = HOSTILE[name]
    rewrite_parquet(folder.path / folder.entry("val").path, change)
    folder.correct(folder.entry("val").path)
    (fault,) = folder.faults(ALL)["shards"]
    assert fault.startswith(folder.entry("val").path)
    assert words in fault
    with pytest.raises(ValueError, match="globals"):
        list(open_dataset(folder.path).batches("val"))


def test_an_hdf5_shard_whose_globals_are_not_those_of_the_manifest(tmp_path: Path) -> None:
    made = make(tmp_path, many_games("rows"), output={"format": "hdf5"})
    for name, dtype, width in (("none", None, 0), ("too many", "<f4", 20), ("too few", "<f4", 18), ("type", "<f8", 19)):
        folder = Folder(tmp_path / name)
        shutil.copytree(made.path, folder.path)
        path = folder.path / folder.entry("val").path
        with h5py.File(path, "r+") as file:
            rows = len(file["globals"])
            del file["globals"]
            if dtype:
                file.create_dataset("globals", data=np.zeros((rows, width), dtype), chunks=(rows, width))
        folder.correct(folder.entry("val").path)
        (fault,) = folder.faults(ALL)["shards"]
        assert fault.startswith(folder.entry("val").path)
        assert "column globals" in fault


@pytest.mark.parametrize("kept", [0, 18, 20])
def test_a_manifest_with_other_globals(folder: Folder, kept: int) -> None:
    """No shard is read by it; where the shards agree with it their scheme still does not."""

    def change(tables: dict[str, Any]) -> None:
        tables["scheme"]["globals"] = [*tables["scheme"]["globals"], "luck"][:kept]

    columns = folder.columns("val")
    folder.change_manifest(change)
    found = folder.faults(ALL)
    assert len(found["shards"]) == len(open_dataset(folder.path).manifest.shards)
    columns["globals"] = np.concatenate([columns["globals"], columns["globals"]], axis=1)[:, :kept]
    if kept == 0:
        del columns["globals"]
    folder.rewrite("val", columns)
    found = folder.faults(ALL)
    assert len(found["shards"]) == len(open_dataset(folder.path).manifest.shards) - 1
    assert found["encoding"] == ("cannot encode again: its globals are not those of katago_v7",)


OFF_BOARD = 65_535


@pytest.mark.parametrize(
    ("name", "value", "check", "words"),
    [
        ("komi", np.nan, "games.parquet", "a record has a komi that is no number"),
        ("komi", np.inf, "games.parquet", "a record has a komi that is no number"),
        ("komi", 1e30, "encoding", "globals are not those of game"),
        ("handicap", -5, None, ""),
        ("handicap", 30_000, None, ""),
        ("rules", "house", "recount", "no rule set is named 'house'"),
        ("rules", None, "recount", "no rule set is named ''"),
        ("rules", "chinese", "encoding", "globals are not those of game"),
        ("moves", OFF_BOARD, "recount", "move 3 is illegal"),
        ("moves", 0, "recount", "move 4 is illegal"),  # a stone that is there
        ("setup_points", None, "recount", "a move without a colour or a point"),
    ],
)
def test_a_hostile_game_table(
    built: Built, name: str, value: Any, check: str | None, words: str, tmp_path: Path
) -> None:
    """Nothing crashes, and what is not as it was is told."""
    shutil.copytree(built.path, tmp_path / "set")
    folder = Folder(tmp_path / "set")

    def change(rows: list[dict[str, Any]]) -> None:
        row = next(row for row in rows if row["rules"] == "japanese" and row["rows"] > 0)
        if name == "moves":
            row["moves"][2:4] = [value, value]
        elif name == "setup_points":
            row |= {"setup_plies": [0], "setup_points": [None], "setup_colours": [BLACK]}
        else:
            row[name] = value

    folder.change_games(change)
    found = folder.faults(ALL)
    assert check is None or any(words in fault for fault in found[check]), found
    assert check is not None or found == {}


def published(folder: Path) -> dict[str, bytes]:
    """Return the bytes of every published file but the manifest, which names the inputs."""
    paths = [path for path in folder.rglob("*") if path.is_file() and ".goplanes" not in path.parts]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths if path.name != NAME}


def flags_of(folder: Path) -> list[str]:
    """Return the sources of the records that are flagged for their komi."""
    rows = sources(open_dataset(folder)).values()
    return sorted(row["source"] for row in rows if "komi-assumed" in row["flags"])


def test_a_rebuild_is_the_direct_build_and_the_flag_comes_and_goes(tmp_path: Path) -> None:
    games = many_games("rebuild")
    unknown = sorted(name for name, game in games.items() if not game.komi)
    for scheme in ("agz17", "katago_v7"):
        (tmp_path / scheme).mkdir()
        make(tmp_path / scheme, games, encode={"scheme": scheme})
    for scheme, other in (("agz17", "katago_v7"), ("katago_v7", "agz17")):
        direct, again = tmp_path / scheme / "out", tmp_path / f"{scheme}-again"
        build(config_of(tmp_path / other / "out", again, {"encode": {"scheme": scheme}}))
        assert published(again) == published(direct)
        assert flags_of(again) == (unknown if scheme == "katago_v7" else [])
        count = open_dataset(again).manifest.flags.get("komi-assumed", 0)
        assert count == len(flags_of(again))
        assert ("komi-assumed" in (again / "README.md").read_text()) == (scheme == "katago_v7")


def test_the_flag_is_of_schemes_that_show_a_komi(tmp_path: Path) -> None:
    """Of every record that is a game, kept or not; a default komi needs no flag."""
    games = {"a.sgf": Played(ONCE, komi=""), "b.sgf": Played(ONCE, komi="7"), "c.sgf": Played(Line(5, 5, ()), komi="")}
    asked: list[tuple[dict[str, dict[str, Any]], list[str]]] = [
        ({"encode": {"scheme": "katago_v7"}}, ["a.sgf", "c.sgf"]),
        ({"encode": {"scheme": "katago22_article"}}, ["a.sgf", "c.sgf"]),
        ({"encode": {"scheme": "composed", "planes": ["stones", "katago_globals"]}}, ["a.sgf", "c.sgf"]),
        ({"encode": {"scheme": "composed", "planes": ["stones", "areas"]}}, []),
        ({"encode": {"scheme": "alphago48"}}, []),
        ({"rules": {"komi_default": 6.5}}, []),
    ]
    for number, (tables, flagged) in enumerate(asked):
        (tmp_path / str(number)).mkdir()
        made = make(tmp_path / str(number), games, **tables)
        assert made.manifest.records.filtered == 1
        assert flags_of(made.path) == flagged
    config = config_of(tmp_path / "0" / "in", tmp_path, {})
    told = of_records(str(tmp_path / "0" / "in"), config, Wanted())
    assert ["komi-assumed" in facts["flags"] for facts in told] == [True, False, True]


def test_any_number_of_workers_gives_the_same_bytes(tmp_path: Path) -> None:
    games = many_games("workers")
    for workers in (1, 2):
        (tmp_path / str(workers)).mkdir()
        make(tmp_path / str(workers), games, run={"workers": workers}, output={"games_per_block": 5})
    first, second = (tmp_path / str(workers) / "out" for workers in (1, 2))
    assert published(first) == published(second)


@pytest.mark.parametrize("output", [{"format": "parquet"}, {"format": "hdf5", "packed": False}])
def test_a_loader_gives_globals_as_float32(output: dict[str, Any], tmp_path: Path) -> None:
    made = make(tmp_path, many_games("rows"), output=output)
    dataset = open_dataset(made.path)
    assert dataset.columns[:2] == ("planes", "globals")
    start = 0
    for batch in dataset.batches("train", batch_size=100, dtype="float32", layout="NHWC"):
        rows = len(batch["move"])
        assert batch["globals"].dtype == np.float32
        assert batch["globals"].shape == (rows, 19)
        assert batch["planes"].shape == (rows, *FRAME, 22)
        row = dataset.row("train", start, columns=["globals"])
        assert row["globals"].dtype == np.float32
        assert np.array_equal(row["globals"], batch["globals"][0])
        start += rows
    assert start == dataset.rows("train")


def test_a_row_is_shown_with_its_globals(built: Built) -> None:
    dataset = open_dataset(built.path)
    facts, lines = show_row(dataset, "train", 7, ["ladder_moves"])
    numbers = dataset.row("train", 7)["globals"].tolist()
    assert facts["globals"] == dict(zip(dataset.scheme.globals, numbers, strict=True))
    first = lines.index("globals") + 1
    words = [line.split() for line in lines[first : first + 19]]
    assert words == [[name, f"{number:g}"] for name, number in facts["globals"].items()]
    assert "plane ladder_moves" in lines
    done = CliRunner().invoke(cli, ["show", str(built.path), "7"])
    assert done.exit_code == 0
    assert "pass_ends_phase" in done.output


def test_a_record_is_shown_with_its_globals_up_to_the_encore(tmp_path: Path) -> None:
    path = tmp_path / "a.sgf"
    path.write_text(Played(Line(5, 5, PASSED), "Japanese", "").sgf)
    expected = [numbers for numbers, _ in Played(Line(5, 5, PASSED), "Japanese", "").positions()]
    config = config_of(tmp_path, tmp_path, {})
    for ply in range(4):
        facts, lines = show_record(str(path), 1, ply, ["ladder_moves"], config)
        assert list(facts["globals"].values()) == expected[ply].tolist()
        assert "globals" in lines
        assert "komi         unknown: katago_v7 shows 6.5, that of the rules" in lines
    for ply in range(4, 9):
        with pytest.raises(RecordError, match=r"a\.sgf: katago_v7 has no rows of the encore"):
            show_record(str(path), 1, ply, ["ladder_moves"], config)
        assert "globals" not in show_record(str(path), 1, ply, [], config)[0]
    line = ["show", str(path), "--scheme", "katago_v7", "--planes", "ladder_moves", "--ply"]
    assert CliRunner().invoke(cli, [*line, "3"]).output.count("pass_ends_phase    1") == 1
    refused = CliRunner().invoke(cli, [*line, "4"])
    assert refused.exit_code == 1
    assert "encore" in refused.output


def test_encode_inputs_gives_the_bytes_of_the_shard(tmp_path: Path) -> None:
    """All rules, komi known or not, handicap, setup, White first, either side to move."""
    games = {name: game for name, game in many_games("inputs").items() if all(ply == 0 for ply, *_ in game.line.setup)}
    made = make(tmp_path, games, dedup={"positions": "off"})
    dataset, table = open_dataset(made.path), sources(open_dataset(made.path))
    rules = set()
    for index in range(0, dataset.rows("train"), 7):
        row = dataset.row("train", index)
        record, ply = table[row["game"]], int(row["ply"])
        line = games[record["source"]].line
        setup = {
            side: [point for _, point, paint in line.setup if paint == colour]
            for side, colour in (("black", BLACK), ("white", WHITE))
        }
        moves = [(" BW"[colour], "pass" if point is None else point) for point, colour in line.moves[:ply]]
        planes, numbers = encode_inputs(
            setup,
            moves,
            scheme="katago_v7",
            rows=line.rows,
            cols=line.cols,
            to_play="-BW"[line.moves[ply][1]],
            frame=dataset.frame,
            rules=record["rules"],
            komi=record["komi"],
            handicap=record["handicap"],
        )
        assert planes.tobytes() == row["planes"].tobytes()
        assert numbers.tobytes() == row["globals"].tobytes()
        rules.add(record["rules"])
    assert len(rules) == len(RULES)


@pytest.mark.parametrize(
    ("moves", "options", "words"),
    [
        ([("B", "A1"), ("W", "pass"), ("B", "pass")], {"rules": "japanese"}, "katago_v7 has no rows of the encore"),
        ([], {"komi": float("nan")}, "not a komi: nan"),
        ([], {"komi": float("inf")}, "not a komi: inf"),
        ([], {"komi": 1e30}, r"not a komi: 1e\+30 \(write points, -150 to 150, or None\)"),
        ([], {"komi": "6.5"}, "not a komi: '6.5'"),
        ([], {"handicap": 2.5}, "not a number of handicap stones: 2.5"),
        ([], {"handicap": -5}, "not a number of handicap stones: -5"),
        ([], {"handicap": 30_000}, "not a number of handicap stones: 30000"),
    ],
)
def test_what_no_shard_holds_is_refused(moves: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        encode_position(None, moves, scheme="katago_v7", rows=9, **options)


@pytest.mark.parametrize("komi", [1e30, -1e38, float("inf"), -float("inf")])
def test_any_komi_is_cut_at_the_area_and_twenty_points(komi: float) -> None:
    games = lines_to_games([replace(ONCE, komi=komi)])
    globals_ = trace_katago(games, np.zeros(1, np.int64), np.array([6]), (5, 5)).globals
    assert np.isfinite(globals_).all()
    assert (np.abs(globals_[:, 5]) == np.float32(45 / 20)).all()


def test_stats_and_inspect_know_such_a_data_set(built: Built) -> None:
    found = stats_of(open_dataset(built.path))
    assert {item["value"] for item in found["komi"]} == {-3.5, 0, 6.5, 7, 150, None}
    for words in (["inspect"], ["stats"]):
        done = CliRunner().invoke(cli, [*words, str(built.path)])
        assert done.exit_code == 0
    assert "22 planes and 19 globals on a frame of 7x7" in CliRunner().invoke(cli, ["inspect", str(built.path)]).output
    card = (built.path / "README.md").read_text()
    listed = card[card.index("## Globals") : card.index("## Reading it")].splitlines()
    names = [f"{number}. {name}" for number, name in enumerate(built.manifest.scheme.globals)]
    assert [line for line in listed[1:] if line] == names
    assert 'numbers = batch["globals"]' in card
    assert f"{built.manifest.flags['komi-assumed']} records with the flag komi-assumed" in card


def test_plan_tells_the_rows_of_such_a_data_set(tmp_path: Path) -> None:
    made = make(tmp_path, many_games("plan"), rules={"illegal": "drop"}, dedup={"games": True})
    words = ["plan", "-i", str(tmp_path / "in"), "--scheme", "katago_v7", "--workers", "0", "--json"]
    for setting in ("filter.sizes=any", "split.plies=4", "split.val=0.2", "split.test=0.1"):
        words += ["--set", setting]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0, done.output
    found = json.loads(done.output)
    assert found["exact"]
    assert found["output"] == "in-katago_v7"
    assert found["rows"] == made.manifest.rows.model_dump()
