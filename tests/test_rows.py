"""Every row of real builds against dictionaries, for each way to merge; keys against planes."""

from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from random_games import Line, games_of, positions
from repeated_games import FRAME, SIZES, SIZES_ASKED_FOR, made_up_lines, write_collection
from slow_dedup import (
    PARTS,
    Expected,
    Occurrence,
    expected,
    image,
    index_of,
    line_of,
    occurrences,
    policy_of,
    same_number,
    same_positions,
    symmetries,
)
from slow_planes import SLOW_SCHEMES, dense
from stages import RULES, small_pieces

from pipeline import shard
from pipeline.augment import turn_planes
from pipeline.build import build
from pipeline.columns import Columns
from pipeline.config import make_config
from pipeline.encode import encode_whole
from pipeline.keys import keyed
from pipeline.load import Dataset, open_dataset
from pipeline.schemes import SCHEMES
from pipeline.verify import verify

# Earlier boards that the schemes show: of these schemes they and the ko are all that a key has to cover.
HISTORY = {"board": 0, "agz17": 7, "agz17_grouped": 7, "leela_zero18": 7, "seven_plane": 0}


@dataclass(frozen=True, slots=True)
class Way:
    """One way to build."""

    scheme: str
    positions: str
    reach: str
    overlap: str
    augment: str
    format: str
    key_bits: int
    small: bool  # blocks and buckets of a few games and positions

    @property
    def name(self) -> str:
        """Return the name of the test."""
        return "-".join((self.scheme, self.positions, self.reach, self.overlap, self.augment, self.format))

    @property
    def history(self) -> int:
        """Earlier boards that make a difference."""
        return HISTORY[self.scheme] if self.reach == "scheme" else 0

    def tables(self, inputs: Path, output: Path) -> dict[str, Any]:
        """Return the tables of the configuration."""
        return {
            "input": {"paths": [str(inputs)]},
            "rules": RULES,
            "filter": {"sizes": SIZES_ASKED_FOR},
            "dedup": {"positions": self.positions, "reach": self.reach, "key_bits": self.key_bits},
            "split": {"val": 0.25, "test": 0.25, "plies": 4, "overlap": self.overlap},
            "encode": {"scheme": self.scheme},
            "augment": {"mode": self.augment},
            "output": {
                "path": str(output),
                "format": self.format,
                "rows_per_shard": 150,
                "games_per_block": 5 if self.small else 20,
            },
            "run": {"workers": 0},
        }


MODES = ("aggregate", "first", "off")
WAYS = [
    Way(*facts, 128 if number % 3 == 0 else 64, number % 5 < 2)
    for number, facts in enumerate(
        product(HISTORY, MODES, ("scheme", "board"), ("drop", "keep"), ("none", "random", "all"), ("parquet", "hdf5"))
    )
]
# All ways take minutes. These hold every pair of scheme, mode, reach, overlap, augmentation and format.
CHOSEN = WAYS[3::13]


def test_the_chosen_ways_hold_every_pair() -> None:
    def pairs(ways: list[Way]) -> set[tuple[str, ...]]:
        names = ("scheme", "positions", "reach", "overlap", "augment", "format")
        return {
            (one, getattr(way, one), other, getattr(way, other)) for way in ways for one, other in product(names, names)
        }

    assert pairs(CHOSEN) == pairs(WAYS)
    assert {(way.positions, way.key_bits) for way in CHOSEN} == set(product(MODES, (64, 128)))
    small = {(way.positions, way.overlap, way.small) for way in CHOSEN}
    assert small == set(product(MODES, ("drop", "keep"), (False, True)))


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_collection(tmp_path_factory.mktemp("rows") / "in", "rows")


@pytest.fixture(scope="module")
def groups() -> Callable[[Dataset, int], list[list[Occurrence]]]:
    """Return equal positions of the games, worked out once for each history: the games are always the same."""
    tables: dict[int, list[list[Occurrence]]] = {}

    def grouped(dataset: Dataset, history: int) -> list[list[Occurrence]]:
        if history not in tables:
            tables[history] = same_positions(occurrences(game_rows(dataset), history))
        return tables[history]

    return grouped


def game_rows(dataset: Dataset) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(dataset.folder / "games.parquet").to_pylist()
    return rows


def stored_rows(dataset: Dataset) -> list[dict[str, Any]]:
    """Return every row of a data set, with its part and its policy as a dictionary."""
    rows = []
    for entry in dataset.manifest.shards:
        for batch in shard.read(dataset.folder / entry.path, dataset.manifest.layout):
            for number in range(shard.count(batch)):
                rows.append(row_of(batch, number) | {"part": entry.split})
    return rows


def row_of(batch: Columns, number: int) -> dict[str, Any]:
    row: dict[str, Any] = {name: values[number] for name, values in batch.items() if name not in shard.POLICY}
    if "policy_offsets" in batch:
        start, stop = batch["policy_offsets"][number : number + 2]
        moves, counts = batch["policy_moves"][start:stop].tolist(), batch["policy_counts"][start:stop].tolist()
        assert moves == sorted(set(moves))
        row["policy"] = dict(zip(moves, counts, strict=True))
    return row


@cache
def planes_of(scheme: str, line: Line, ply: int, turn: int) -> bytes:
    """Return the packed planes of a position under a symmetry, drawn with plain loops."""
    size = (line.rows, line.cols)
    drawn = SLOW_SCHEMES[scheme](shown(line)[ply], size)
    planes = dense({name: {image(point, size, turn) for point in points} for name, points in drawn.items()}, FRAME)
    return np.packbits(planes.reshape(len(planes), -1), axis=-1).tobytes()


@cache
def shown(line: Line) -> Any:
    return positions(line, 7)


def check_row(row: dict[str, Any], way: Way, should: Expected, games: dict[int, Any]) -> None:
    """Compare one stored row with what the definition says."""
    here = should.rows[int(row["game"]), int(row["ply"])]
    first, turn = here.first, int(row["symmetry"])
    line = line_of(games[first.game])
    assert row["part"] == first.part
    assert (row["rows"], row["cols"]) == first.size
    assert row["to_play"] == first.seen.to_play
    assert row["weight"] == (1 if way.positions == "off" else here.weight)
    assert same_number(row["value"], here.value)
    assert same_number(row["komi"], games[first.game]["komi"])
    assert row["move"] == index_of(image(here.move, first.size, turn), FRAME)
    assert row["planes"].tobytes() == planes_of(way.scheme, line, first.ply, turn)
    if way.positions == "aggregate":
        assert row["policy"] == policy_of(here, FRAME, turn)
        assert sum(row["policy"].values()) == row["weight"] * here.fixed
        assert (row["wins"], row["draws"], row["losses"]) == here.outcomes
    else:
        assert not {"policy", "wins", "draws", "losses"} & set(row)


def check_images(rows: list[dict[str, Any]], way: Way, should: Expected) -> None:
    """Every position is there, under every symmetry that is wanted and no other."""
    turns: dict[tuple[int, int], list[int]] = defaultdict(list)
    for row in rows:
        turns[int(row["game"]), int(row["ply"])].append(int(row["symmetry"]))
    assert set(turns) == set(should.rows)
    for place, found in turns.items():
        if way.augment == "all":
            assert tuple(sorted(found)) == should.rows[place].images
        else:
            assert len(found) == 1
            assert found[0] in (symmetries(should.rows[place].first.size) if way.augment == "random" else (0,))
    if way.augment == "random":
        assert len({found[0] for found in turns.values()}) == 8


def check_keys(rows: list[dict[str, Any]], way: Way, groups: list[list[Occurrence]]) -> None:
    """One key for each position, another for each other, and (unless they are kept) none in two parts."""
    number = {(one.game, one.ply): n for n, group in enumerate(groups) for one in group}
    names = ("key", "key_hi") if way.key_bits == 128 else ("key",)
    assert all(("key_hi" in row) == (way.key_bits == 128) for row in rows)
    for name in names:
        pairs = {(number[int(row["game"]), int(row["ply"])], int(row[name])) for row in rows}
        assert len(pairs) == len({key for _, key in pairs}) == len({position for position, _ in pairs})
    parts = Counter(key for key, _ in {(int(row["key"]), row["part"]) for row in rows})
    if way.overlap == "drop":
        assert set(parts.values()) == {1}
    else:
        assert max(parts.values()) == 3


def check_build(way: Way, inputs: Path, output: Path, groups: Callable[[Dataset, int], list[list[Occurrence]]]) -> None:
    """Build in one way, compare every row and every count with the definition, and verify."""
    config = make_config(way.tables(inputs, output), "test")
    with small_pieces() if way.small else nullcontext():
        dataset = open_dataset(build(config).path)
    same = groups(dataset, way.history)
    should = expected(same, way.positions, way.overlap, FRAME)
    rows = stored_rows(dataset)
    games = {row["game"]: row for row in game_rows(dataset)}
    for row in rows:
        check_row(row, way, should, games)
    check_images(rows, way, should)
    check_keys(rows, way, same)
    found = dataset.manifest.positions
    assert (found.stored, found.merged, found.overlap) == (len(should.rows), should.merged, should.overlap)
    assert (found.held_out_by_ply, found.overlap_by_ply) == (should.held_out, should.left_out)
    counts = Counter(int(row["game"]) for row in rows)
    assert all(game["rows"] == counts[game["game"]] for game in games.values())
    assert [dataset.rows(part) for part in PARTS] == [sum(row["part"] == part for row in rows) for part in PARTS]
    assert {check.name: check.faults for check in verify(dataset.folder) if check.faults} == {}


@pytest.mark.parametrize("way", CHOSEN, ids=lambda way: way.name)
def test_every_row_of_a_build(
    way: Way, inputs: Path, tmp_path: Path, groups: Callable[[Dataset, int], list[list[Occurrence]]]
) -> None:
    check_build(way, inputs, tmp_path / "out", groups)


@pytest.mark.full
def test_every_row_of_a_build_in_every_way(
    inputs: Path, tmp_path: Path, groups: Callable[[Dataset, int], list[list[Occurrence]]]
) -> None:
    for number, way in enumerate(WAYS):
        check_build(way, inputs, tmp_path / str(number), groups)


def test_the_games_are_worth_the_test(
    inputs: Path, tmp_path: Path, groups: Callable[[Dataset, int], list[list[Occurrence]]]
) -> None:
    """They hold what the tests above are about: repeats, symmetric positions, ties, mixed results, all bands."""
    way = Way("agz17", "aggregate", "scheme", "drop", "none", "parquet", 64, False)
    dataset = open_dataset(build(make_config(way.tables(inputs, tmp_path / "out"), "test")).path)
    should = expected(groups(dataset, 7), "aggregate", "drop", FRAME)
    rows = should.rows.values()
    assert should.merged > 50
    assert min(should.held_out.values()) > 0
    assert should.left_out["0-9"] > 10
    assert {1, 2, 4, 8} <= {row.fixed for row in rows}
    assert any(row.fixed > 1 and any(row.first.seen.boards[-1]) for row in rows)
    assert any(row.value is not None and row.value % 1 not in {0, 0.5} for row in rows)
    assert any(row.value is None and row.weight > 1 for row in rows)
    most = [sorted(row.policy.values(), reverse=True) for row in rows if row.fixed == 1]
    assert any(len(counts) > 1 and counts[0] == counts[1] for counts in most)
    assert any(len(counts) > 1 and counts[0] > counts[1] for counts in most)
    assert any(row.move is None for row in rows)
    assert any(row.move != row.first.move for row in rows)
    assert {row.first.size for row in rows} == set(SIZES)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_equal_keys_are_equal_planes(scheme: str) -> None:
    """Turned by its canonical symmetry, a position has the planes of every other with its key, and no other's.

    Side to move and ko belong to a key also where a scheme does not show them: positions that differ in these
    are never merged. That no other key has the same planes is asked only of schemes that show boards alone.
    """
    lines = [line for seed in range(4) for line in made_up_lines(f"keys {seed}")]
    lines = sorted(lines, key=lambda line: (line.rows, line.cols))
    games = games_of(lines)
    lengths = np.diff(games.move_start)
    row_games = np.repeat(np.arange(len(lines)), lengths)
    plies = np.concatenate([np.arange(length) for length in lengths])
    replayed, shown_at_all = keyed(games, SCHEMES[scheme])
    assert shown_at_all.all()
    assert replayed.legal.tolist() == lengths.tolist()
    rows, cols = games.rows[row_games], games.cols[row_games]
    planes, numbers = encode_whole(SCHEMES[scheme], games, row_games, plies, FRAME)
    planes = turn_planes(planes, rows, cols, FRAME[1], replayed.turns)
    seen = [(line, one) for line in lines for one in positions(line)]
    content = [
        (
            row.tobytes() + values.tobytes(),
            line.rows,
            line.cols,
            one.to_play,
            image(one.ko, (line.rows, line.cols), int(turn)),
        )
        for row, values, (line, one), turn in zip(planes, numbers, seen, replayed.turns, strict=True)
    ]
    for keys in (
        replayed.keys.tolist(),
        replayed.keys_hi.tolist(),
        list(zip(replayed.keys.tolist(), replayed.keys_hi.tolist(), strict=True)),
    ):
        assert len(set(keys)) == len(set(zip(keys, content, strict=True)))
        assert len(set(keys)) == len(set(content)) or scheme not in HISTORY
        assert len(set(keys)) < 0.8 * len(keys)
