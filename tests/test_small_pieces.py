"""Data sets do not depend on the sizes of ranges, buckets and pieces, which are there to bound memory."""

from dataclasses import astuple, dataclass, replace
from itertools import combinations, product
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest
from random_games import Line, random_line, turned
from repeated_games import SIZES_ASKED_FOR, made_up_lines
from stages import KOMIS, RESULTS, RULES, sgf_of, small_pieces
from test_same_bytes import published

from pipeline.build import build
from pipeline.config import make_config


def cut(line: Line, plies: int) -> Line:
    return replace(line, moves=line.moves[:plies], setup=tuple(stone for stone in line.setup if stone[0] <= plies))


def relatives(rng: Random) -> list[Line]:
    """Return long games, of which some are copies, turned beginnings, or other ends of others."""
    lines = []
    for _ in range(4):
        line = random_line(rng, 5, 5, 70, 0)
        lines += [line, turned(cut(line, 40), 3), turned(cut(line, 35), 5), cut(line, 60), turned(line, 6)]
        lines.append(replace(line, moves=(*line.moves[:65], (None, line.moves[65][1]))))
    return lines


def write_records(folder: Path) -> Path:
    """Write the games into files of one to nine records, with rejected and filtered ones among them."""
    folder.mkdir()
    rng = Random("small pieces")
    lines = [*relatives(rng), *made_up_lines("small pieces")]
    # Of the first family only the game with another end has a result: it stands for the longest one.
    results = ["?"] * 5 + ["B+R"] + [rng.choice(RESULTS) for _ in lines[6:]]
    records = [
        sgf_of(line, RE=results[number], KM=rng.choice(KOMIS), BR=rng.choice(("1d", "5k")), WR="3d", GN=str(number))
        for number, line in enumerate(lines)
    ]
    records += [*records[:9], "(;GM[1]SZ[5];B[aa];W[aa])", sgf_of(Line(9, 9, (((4, 4), 1),))), "(;GM[1]SZ[5])"]
    rng.shuffle(records)
    at = 0
    while at < len(records):
        count = rng.randint(1, 9)
        (folder / f"{rng.choice('abc')}{at}.sgf").write_text("".join(records[at : at + count]))
        at += count
    return folder


@dataclass(frozen=True, slots=True)
class Way:
    """One way to build."""

    positions: str
    overlap: str
    near: str
    key_bits: int
    augment: str
    shuffle: str

    def tables(self, inputs: Path, output: Path) -> dict[str, Any]:
        """Return the tables of the configuration, with weights that no sum of float32 would keep exact."""
        rng = Random(str(self))
        weights = [{"source": f"{name}*", "weight": rng.uniform(1e-3, 50)} for name in "ab"]
        return {
            "input": {"paths": [str(inputs)]},
            "rules": RULES,
            "filter": {"sizes": SIZES_ASKED_FOR},
            "dedup": {"positions": self.positions, "near": self.near, "key_bits": self.key_bits},
            "split": {"val": 0.25, "test": 0.25, "plies": 4, "overlap": self.overlap},
            "sample": {"weights": [{"min_rank": "1d", "weight": rng.uniform(0.1, 3)}, *weights]},
            "encode": {"scheme": "agz17"},
            "augment": {"mode": self.augment},
            "output": {
                "path": str(output), "rows_per_shard": 90, "games_per_block": 7, "shuffle": self.shuffle
            },
            "run": {"workers": 0},
        }  # fmt: skip


_VALUES = (("aggregate", "first", "off"), ("drop", "keep"), ("keep", "drop"), (64, 128))
_RNG = Random("ways")
WAYS = [
    Way(*facts, _RNG.choice(("none", "random", "all")), _RNG.choice(("blocks", "exact"))) for facts in product(*_VALUES)
]
# These hold every pair of values.
CHOSEN = WAYS[::3] + WAYS[1:3]


def test_the_chosen_ways_hold_every_pair() -> None:
    names = ("positions", "overlap", "near", "key_bits")
    for one, other in combinations(range(len(names)), 2):
        found = {(getattr(way, names[one]), getattr(way, names[other])) for way in CHOSEN}
        assert found == set(product(_VALUES[one], _VALUES[other]))
    assert {way.augment for way in CHOSEN} == {"none", "random", "all"}
    assert {way.shuffle for way in CHOSEN} == {"blocks", "exact"}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_records(tmp_path_factory.mktemp("small") / "in")


def check(way: Way, inputs: Path, folder: Path) -> None:
    """Build with the usual sizes and with small ones, and compare all files."""
    usual = published(build(make_config(way.tables(inputs, folder / "usual"), "test")).path)
    with small_pieces():
        small = published(build(make_config(way.tables(inputs, folder / "small"), "test")).path)
    assert sorted(small) == sorted(usual)
    assert [name for name in usual if small[name] != usual[name]] == []
    assert {name.partition("/")[0] for name in usual} == {
        "dataset.json", "games.parquet", "README.md", "train", "val", "test",
    }  # fmt: skip


@pytest.mark.parametrize("way", CHOSEN, ids=lambda way: "-".join(map(str, astuple(way))))
def test_the_same_bytes_from_pieces_of_any_size(way: Way, inputs: Path, tmp_path: Path) -> None:
    check(way, inputs, tmp_path)


@pytest.mark.full
def test_the_same_bytes_from_pieces_of_any_size_in_every_way(inputs: Path, tmp_path: Path) -> None:
    for number, way in enumerate(WAYS):
        (tmp_path / str(number)).mkdir()
        check(way, inputs, tmp_path / str(number))


def test_the_games_are_worth_the_test(inputs: Path, tmp_path: Path) -> None:
    """Records of every status; repeats of every kind, most of them of records that are far away in the table, some by
    way of another; merged positions and overlap."""
    way = next(way for way in CHOSEN if (way.positions, way.overlap, way.near) == ("aggregate", "drop", "drop"))
    built = build(make_config(way.tables(inputs, tmp_path / "out"), "test"))
    rows = pq.read_table(built.path / "games.parquet").to_pylist()
    assert {row["status"] for row in rows} == {"kept", "duplicate", "conflicting", "rejected", "filtered"}
    place = {row["game"]: number for number, row in enumerate(rows)}
    far = [abs(place[row["duplicate_of"]] - place[row["game"]]) > 16 for row in rows if row["duplicate_of"] is not None]
    assert sum(far) > 10
    details = [row["detail"] or "" for row in rows]
    for phrase in ("duplicate of", "conflicting of", "prefix-of", "near-duplicate-of"):
        assert any(phrase in detail for detail in details)
    assert any("," in detail and "-of" in detail for detail in details)
    assert built.manifest.positions.merged > 100
    assert built.manifest.positions.overlap > 50
