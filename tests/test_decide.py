"""Ids, duplicates, splits and blocks of games, and the numbers of their rows and shards."""

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from random_games import Line, turned
from stages import Staged, made_up_games, run_all, run_stages, sgf_of

from pipeline.build import check_config
from pipeline.config import Config
from pipeline.gamestages import decided_games
from pipeline.pieces import whole_table
from pipeline.positionstages import decided_positions
from pipeline.steps import do_all
from pipeline.table import SCHEMA

SIZES = [(5, 5), (3, 3), (3, 5)]
FILTER = {"sizes": [5, 3, "3x5"]}

BASE = Line(5, 5, (((2, 2), 1), ((1, 1), 2), ((3, 3), 1), (None, 2)))
OTHER = Line(5, 5, (((2, 1), 1), ((1, 1), 2), ((3, 3), 1)))


def table_of(folder: Path, games: dict[str, str], **tables: Any) -> list[dict[str, Any]]:
    staged = run_stages(folder, games, **{"filter": {"sizes": [5]}, **tables})
    rows: list[dict[str, Any]] = staged.table.to_pylist()
    return rows


def test_the_table_is_in_byte_order(tmp_path: Path) -> None:
    """Source, then the place in the file; every record has an id, also one that was rejected."""
    games = {"b.sgf": sgf_of(BASE) * 2, "B.sgf": "nothing", "a.sgf": sgf_of(OTHER), "é.sgf": "", "10.sgf": sgf_of(BASE)}
    rows = table_of(tmp_path, games)
    order = [("10.sgf", 0), ("B.sgf", 0), ("a.sgf", 0), ("b.sgf", 0), ("b.sgf", 1), ("é.sgf", 0)]
    assert [(row["source"], row["index"]) for row in rows] == order
    assert len({row["game"] for row in rows}) == 6
    assert list(rows[0]) == SCHEMA.names


def test_ids_stay_when_games_come_and_go(tmp_path: Path) -> None:
    """An id depends on the record's bytes and its rank among identical ones, not on its name or its neighbours."""
    same = sgf_of(BASE)
    before = {row["source"]: row["game"] for row in table_of(tmp_path / "1", {"a.sgf": same, "c.sgf": same})}
    games = {"0.sgf": sgf_of(OTHER), "b.sgf": same, "d.sgf": same, "e.sgf": same}
    after = {row["source"]: row["game"] for row in table_of(tmp_path / "2", games)}
    assert [after["b.sgf"], after["d.sgf"]] == [before["a.sgf"], before["c.sgf"]]
    assert len(set(after.values())) == 4


def test_copies_of_games(tmp_path: Path) -> None:
    """Turned copies with other headers: the first with a known result stays, the others name it."""
    games = {
        "a.sgf": sgf_of(BASE, RE="?"),
        "b.sgf": sgf_of(turned(BASE, 5), RE="B+R") + sgf_of(turned(BASE, 2), RE="B+R"),
        "c.sgf": sgf_of(turned(BASE, 3), RE="W+R"),
        "d.sgf": sgf_of(OTHER, RE="W+R"),
        "e.sgf": sgf_of(turned(BASE, 7), RE="B+3.5"),
    }
    rows = table_of(tmp_path, games, split={"val": 0.3, "test": 0.3})
    assert [row["status"] for row in rows] == ["duplicate", "kept", "duplicate", "conflicting", "kept", "duplicate"]
    copies = [row for row in rows if row["status"] != "kept"]
    assert {row["duplicate_of"] for row in copies} == {rows[1]["game"]}
    assert [row["detail"] for row in copies] == [
        "duplicate of b.sgf",
        "duplicate of b.sgf",
        "conflicting of b.sgf",
        "duplicate of b.sgf",
    ]
    assert len({row["split"] for row in rows if row["status"] == "conflicting" or row["duplicate_of"]}) == 1
    assert rows[1]["duplicate_of"] is rows[1]["detail"] is None
    assert [row["rows"] > 0 for row in rows] == [False, True, False, False, True, False]


def test_a_copy_further_down_in_a_file_is_named(tmp_path: Path) -> None:
    rows = table_of(tmp_path, {"a.sgf": "(;GM[1]SZ[5])" + sgf_of(BASE), "b.sgf": sgf_of(BASE)})
    assert rows[2]["detail"] == "duplicate of a.sgf game 2"


def test_copies_are_kept_if_asked_for(tmp_path: Path) -> None:
    games = {"a.sgf": sgf_of(BASE), "b.sgf": sgf_of(turned(BASE, 5))}
    rows = table_of(tmp_path, games, dedup={"games": False, "positions": "off"})
    assert [(row["status"], row["rows"]) for row in rows] == [("kept", 4), ("kept", 4)]
    assert rows[0]["split"] == rows[1]["split"]


def test_rejected_and_filtered_games_have_no_split(tmp_path: Path) -> None:
    rows = table_of(tmp_path, {"a.sgf": "x", "b.sgf": sgf_of(Line(9, 9, BASE.moves)), "c.sgf": sgf_of(BASE)})
    assert [row["split"] is None for row in rows] == [True, True, False]
    assert [row["status"] for row in rows] == ["rejected", "filtered", "kept"]


@pytest.fixture(scope="module")
def staged(tmp_path_factory: pytest.TempPathFactory) -> Staged:
    """Games of three sizes in several blocks and all three parts."""
    games = made_up_games("decide", SIZES, 100, 14)
    return run_stages(
        tmp_path_factory.mktemp("decide"),
        games,
        filter=FILTER,
        split={"val": 0.2, "test": 0.2, "plies": 6},
        output={"games_per_block": 13, "rows_per_shard": 40},
        sample={"per_game": 12},
    )


def test_blocks_hold_the_kept_games(staged: Staged) -> None:
    kept = [row["game"] for row in staged.table.to_pylist() if row["status"] == "kept"]
    assert len(staged.blocks) == -(-len(kept) // 13)
    games = [block.column("game").to_pylist() for block in staged.blocks]
    assert sorted(game for block in games for game in block) == sorted(kept)
    assert max(map(len, games)) < 3 * 13
    for block in staged.blocks:
        columns = (block.column(name).to_pylist() for name in ("board_rows", "board_cols", "game"))
        order = list(zip(*columns, strict=True))
        assert order == sorted(order)


def test_the_block_of_a_game_is_its_own(tmp_path: Path, staged: Staged) -> None:
    """It depends on the id and the number of blocks: half of the games alone are in as many and the same blocks."""
    sources = [row["source"] for row in staged.table.to_pylist() if row["status"] == "kept"]
    half = set(sources[: len(sources) // 2])
    games = {name: text for name, text in made_up_games("decide", SIZES, 100, 14).items() if name in half}
    size = -(-len(half) // len(staged.blocks))
    after = run_stages(tmp_path / "half", games, filter=FILTER, output={"games_per_block": size})
    assert len(after.blocks) == len(staged.blocks)

    def blocks_of(one: Staged) -> dict[int, int]:
        return {game: number for number, block in enumerate(one.blocks) for game in block.column("game").to_pylist()}

    assert len(blocks_of(after)) == len(half)
    assert blocks_of(after).items() <= blocks_of(staged).items()


def test_rows_of_each_game(staged: Staged) -> None:
    counted = Counter(staged.all_rows()["game"].tolist())
    for row in staged.table.to_pylist():
        assert row["rows"] == counted[row["game"]]
    assert staged.found.total("stored") == sum(counted.values())


def test_shards_are_numbered_per_part_in_block_order(staged: Staged) -> None:
    """As few as hold the rows of a block, nearly equal; no number is left out."""
    numbers: dict[int, int] = defaultdict(int)
    for plans, report in zip(staged.plans, staged.reports, strict=True):
        assert [plan.part for plan in plans] == sorted({plan.part for plan in plans})
        at = 0
        for plan in plans:
            assert plan.first == numbers[plan.part]
            numbers[plan.part] += plan.shards
            sizes = [shard["rows"] for shard in report["shards"][at : at + plan.shards]]
            assert plan.shards == -(-sum(sizes) // 40)
            assert max(sizes) - min(sizes) <= 1
            assert max(sizes) <= 40
            at += plan.shards
        assert at == len(report["shards"])
    assert min(numbers.values()) > 1
    assert sorted(numbers) == [0, 1, 2]


def test_sums(staged: Staged) -> None:
    seen, sampled_out = staged.found.seen, staged.found.sampled_out
    assert seen == staged.games.plies
    assert seen == sum(row["plies"] for row in staged.table.to_pylist() if row["status"] == "kept")
    assert sampled_out > 0
    assert seen == sum(staged.found.total(name) for name in ("stored", "merged", "overlap")) + sampled_out


def test_nothing_kept(tmp_path: Path) -> None:
    staged = run_stages(tmp_path, {"a.sgf": "x"})
    assert (staged.blocks, staged.found.total("stored"), staged.shards) == ([], 0, [])
    assert staged.table.column("status").to_pylist() == ["rejected"]


def test_no_parts_at_all(tmp_path: Path) -> None:
    """One empty range, no block; and no position of any."""
    games = decided_games([], [], Config(), tmp_path, 0, do_all)
    assert (len(games.tables), games.blocks, games.games, games.plies) == (1, 0, 0, 0)
    assert whole_table(games.tables[0]).num_rows == 0
    found = decided_positions(games, Config(), check_config(Config())[1], tmp_path, [], run_all)
    assert (found.games, found.rows, found.seen, found.sampled_out, found.stale) == ((), (), 0, 0, 0)
    assert [found.total(name) for name in ("stored", "merged", "overlap")] == [0, 0, 0]
    none = {"0-9": 0, "10-29": 0, "30-99": 0, "100+": 0}
    assert found.by_band("held_out_by_ply") == found.by_band("overlap_by_ply") == none
