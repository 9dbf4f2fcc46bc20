"""What a block's shards hold: planes and labels against the slow board, images, order, and resuming."""

import json
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from random_games import Line, positions
from slow_planes import SLOW_SCHEMES, dense
from stages import Staged, made_up_games, run_stages, sgf_of

from pipeline import symmetry
from pipeline.blocks import encode_block, finished_encoding, shard_path, stored_images, turned_policy
from pipeline.config import Config, make_config
from pipeline.table import games_of

FILTER = {"sizes": [5, 3, "3x5"]}
FRAME = (5, 5)
SIGNS = {"B": 1.0, "W": -1.0, "draw": 0.0}


def build(folder: Path, mode: str, count: int = 24, **tables: dict[str, Any]) -> Staged:
    games = made_up_games("blocks", [(5, 5), (3, 3), (3, 5)], count)
    tables = {
        "filter": FILTER,
        "dedup": {"positions": "first"},  # of merged rows ``test_rows`` says more
        "output": {"games_per_block": 9, "rows_per_shard": 50},
        **tables,
    }
    return run_stages(folder, games, augment={"mode": mode}, **tables)


@pytest.fixture(scope="module", params=["none", "random", "all"])
def staged(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Staged:
    return build(tmp_path_factory.mktemp("blocks"), request.param)


def same(found: float, expected: float | None) -> bool:
    """Compare a label; NaN stands for what is not known."""
    return bool(np.isnan(found)) if expected is None else found == expected


def labels(row: dict[str, Any], colour: int) -> tuple[float | None, float | None]:
    """Return value and score of a game for the side that plays ``colour``."""
    sign = 1 if colour == 1 else -1
    value = None if row["result_kind"] in {"forfeit", "void"} else SIGNS.get(row["winner"])
    margin = row["margin"]
    score = None if margin is None else margin * SIGNS[row["winner"]] * sign
    return None if value is None else value * sign, score


def test_every_row_is_what_the_game_table_says(staged: Staged) -> None:
    """Planes, move, value, score, komi, side and size of each row, turned by its symmetry."""
    games = {row["game"]: row for row in staged.table.to_pylist()}
    rows = staged.all_rows()
    slow: dict[int, Any] = {}
    for number in range(len(rows["game"])):
        game = games[int(rows["game"][number])]
        assert game["status"] == "kept"
        assert game["split"] == rows["split"][number]
        height, width, ply = game["board_rows"], game["board_cols"], int(rows["ply"][number])
        assert (rows["rows"][number], rows["cols"][number]) == (height, width)
        moves = [None if move == height * width else divmod(move, width) for move in game["moves"]]
        if game["game"] not in slow:
            line = Line(height, width, tuple(zip(moves, game["colours"], strict=True)))
            slow[game["game"]] = positions(line, 7)
        turn = int(rows["symmetry"][number])

        def image(point: tuple[int, int], size: tuple[int, int] = (height, width), turn: int = turn) -> tuple[int, int]:
            return symmetry.image_point(*point, *size, turn)

        drawn = SLOW_SCHEMES["agz17"](slow[game["game"]][ply], (height, width))
        planes = dense({name: {image(point) for point in points} for name, points in drawn.items()}, FRAME)
        assert np.array_equal(rows["planes"][number], np.packbits(planes.reshape(len(planes), -1), axis=-1))
        move = moves[ply]
        assert rows["move"][number] == (25 if move is None else image(move)[0] * 5 + image(move)[1])
        assert rows["to_play"][number] == game["colours"][ply]
        value, score = labels(game, game["colours"][ply])
        assert same(rows["value"][number], value)
        assert same(rows["score"][number], score)
        assert same(rows["komi"][number], game["komi"])
    assert {row["game"] for row in games.values() if row["status"] == "kept"} == set(slow)


def test_the_labels_are_of_every_kind(staged: Staged) -> None:
    """Won, lost, drawn and unknown; forfeits and void games are worth nothing."""
    rows = staged.all_rows()
    value = rows["value"]
    assert {*value[~np.isnan(value)].tolist()} == {1.0, -1.0, 0.0}
    assert np.isnan(value).any()
    assert {2.5, -2.5, 7.5, -7.5, 0.0} <= {*rows["score"].tolist()}
    assert {6.5, 0.0, 7.5} == {*rows["komi"][~np.isnan(rows["komi"])].tolist()}
    assert np.isnan(rows["komi"]).any()
    assert (rows["move"] == 25).any()
    kinds = {row["game"]: row["result_kind"] for row in staged.table.to_pylist()}
    assert {"forfeit", "void", "time", "resign"} <= set(kinds.values())
    for kind in ("forfeit", "void"):
        assert np.isnan(value[[kinds[game] == kind for game in rows["game"].tolist()]]).all()


def test_images_of_every_position(staged: Staged) -> None:
    rows = staged.all_rows()
    images: dict[tuple[int, int], list[int]] = defaultdict(list)
    for game, ply, turn in zip(rows["game"].tolist(), rows["ply"].tolist(), rows["symmetry"].tolist(), strict=True):
        images[game, ply].append(turn)
    assert len(images) == staged.found.total("stored")
    square = {row["game"]: row["board_rows"] == row["board_cols"] for row in staged.table.to_pylist()}
    mode = staged.config.augment.mode
    if mode == "all":
        # Some of the first positions are their own images.
        whole = [sorted(turns) == list(range(8 if square[game] else 4)) for (game, _), turns in images.items()]
        assert 0.8 < np.mean(whole) < 1
        assert all(0 in turns and len(set(turns)) == len(turns) for turns in images.values())
    else:
        assert all(len(turns) == 1 for turns in images.values())
        used = {
            kind: Counter(turns[0] for (game, _), turns in images.items() if square[game] == kind) for kind in (0, 1)
        }
        assert set(used[True]) == (set(range(8)) if mode == "random" else {0})
        assert set(used[False]) == (set(range(4)) if mode == "random" else {0})
    keys: dict[tuple[int, int], set[int]] = defaultdict(set)
    for game, ply, key in zip(rows["game"].tolist(), rows["ply"].tolist(), rows["key"].tolist(), strict=True):
        keys[game, ply].add(key)
    assert all(len(found) == 1 for found in keys.values())


@pytest.mark.parametrize("mode", ["none", "all"])
def test_rows_are_shuffled_over_the_shards_of_a_block(tmp_path: Path, mode: str) -> None:
    """Neither the positions of a game nor the images of one lie together; all games are in all shards."""
    staged = run_stages(
        tmp_path,
        made_up_games("shuffle", [(5, 5)], 40),
        filter=FILTER,
        dedup={"positions": "off"},
        split={"val": 0, "test": 0, "overlap": "keep"},
        augment={"mode": mode},
        output={"rows_per_shard": 100 if mode == "none" else 800},
    )
    assert len(staged.shards) > 3
    games = {game for shard in staged.shards for game in staged.rows(shard)["game"].tolist()}
    for shard in staged.shards:
        rows = staged.rows(shard)
        assert len(set(rows["game"].tolist())) > 0.9 * len(games)
        # Of two random rows one in about forty is of the same game.
        assert (rows["game"][1:] == rows["game"][:-1]).mean() < 0.1
        assert (np.diff(rows["ply"].astype(int)) < 0).mean() > 0.3
        if mode == "all":
            assert (np.diff(rows["symmetry"].astype(int)) < 0).mean() > 0.3


def test_another_seed_is_another_order(tmp_path: Path) -> None:
    """The same rows in another order; with random images, other images."""
    games = made_up_games("seed", [(5, 5)], 9)
    settings = [("none", 0), ("none", 1), ("random", 0), ("random", 1)]
    rows = [
        run_stages(tmp_path / f"{mode}{seed}", games, filter=FILTER, augment={"mode": mode, "seed": seed}).all_rows()
        for mode, seed in settings
    ]
    places = [list(zip(each["game"].tolist(), each["ply"].tolist(), strict=True)) for each in rows]
    assert all(sorted(each) == sorted(places[0]) for each in places)
    assert places[0] != places[1]
    turns = [dict(zip(place, each["symmetry"].tolist(), strict=True)) for place, each in zip(places, rows, strict=True)]
    assert turns[2] != turns[3]


def test_a_shard_depends_on_its_block_alone(tmp_path: Path, staged: Staged) -> None:
    """The same stages over the same games, read in other units, give the same bytes."""
    again = build(tmp_path, staged.config.augment.mode)
    assert again.shards == staged.shards
    for shard in staged.shards:
        assert (again.output / shard["path"]).read_bytes() == (staged.output / shard["path"]).read_bytes()


def test_hdf5_holds_the_same_rows(tmp_path: Path, staged: Staged) -> None:
    output = {"games_per_block": 9, "rows_per_shard": 50, "format": "hdf5"}
    other = build(tmp_path, staged.config.augment.mode, output=output)
    assert [shard["path"] for shard in other.shards] == [
        shard["path"].replace(".parquet", ".h5") for shard in staged.shards
    ]
    one, two = staged.all_rows(), other.all_rows()
    for name in one:
        assert np.array_equal(one[name], two[name], equal_nan=one[name].dtype.kind == "f"), name


def test_rows_of_a_cut_game_end_where_it_was_cut(tmp_path: Path) -> None:
    """Under keep-prefix the last row is the last legal move; setup stones in mid-game stay."""
    moves = (((2, 2), 1), ((1, 1), 2), ((3, 3), 1), ((2, 2), 2), ((0, 0), 1))
    line = Line(5, 5, moves, ((2, (4, 4), 2), (2, (2, 2), 1)))
    games = {"a.sgf": sgf_of(line, RE="B+R")}
    staged = run_stages(tmp_path, games, filter=FILTER, rules={"illegal": "keep-prefix"})
    rows = staged.all_rows()
    order = np.argsort(rows["ply"])
    assert rows["ply"][order].tolist() == [0, 1, 2]
    assert rows["move"][order].tolist() == [12, 6, 18]
    legal = replace(line, moves=moves[:3])
    expected = [SLOW_SCHEMES["agz17"](seen, FRAME) for seen in positions(legal, 7)]
    packed = [np.packbits(dense(planes, FRAME).reshape(17, -1), axis=-1) for planes in expected]
    assert np.array_equal(rows["planes"][order], packed)


def test_a_span_of_plies(tmp_path: Path) -> None:
    staged = run_stages(
        tmp_path,
        made_up_games("span", [(5, 5)], 5),
        filter=FILTER,
        sample={"plies": [2, 4]},
        dedup={"positions": "off"},
    )
    assert set(staged.all_rows()["ply"].tolist()) == {2, 3, 4}


def images(mode: str, positions: str = "aggregate", seed: int = 0) -> list[list[int]]:
    """Return the images of a square board, a rectangle, and both with symmetries that leave them as they are."""
    config = make_config({"augment": {"mode": mode, "seed": seed}, "dedup": {"positions": positions}}, "x")
    square, fixed = np.array([True, False, True, False, True]), np.array([1, 1, 0b10001, 0b0101, 0xFF], dtype=np.uint8)
    game, ply = np.arange(5, dtype=np.uint64), np.arange(5, dtype=np.uint16)
    numbers, turns = stored_images(game, ply, square, fixed, config)
    assert (turns.dtype, len(turns)) == (np.uint8, len(numbers))
    assert numbers.tolist() == sorted(numbers.tolist())
    return [turns[numbers == number].tolist() for number in range(5)]


@pytest.mark.parametrize("positions", ["aggregate", "first"])
def test_images_that_are_stored(positions: str) -> None:
    """One as played, one at random, or each image once: the smallest symmetry that makes it."""
    assert images("none", positions) == [[0]] * 5
    assert images("all", positions) == [list(range(8)), [0, 1, 2, 3], [0, 1, 2, 3], [0, 1], [0]]


def test_all_images_of_copies_that_are_kept() -> None:
    assert images("all", "off") == [list(range(8)), [0, 1, 2, 3], list(range(8)), [0, 1, 2, 3], list(range(8))]


def test_one_random_image() -> None:
    found = [images("random", seed=seed) for seed in range(200)]
    assert all(len(turns) == 1 for one in found for turns in one)
    for number, count in enumerate((8, 4, 8, 4, 8)):
        assert {one[number][0] for one in found} == set(range(count))
    assert images("random", seed=3) == found[3]


def test_images_of_nothing() -> None:
    none = np.zeros(0, dtype=np.uint64)
    for mode in ("none", "random", "all"):
        config = make_config({"augment": {"mode": mode}}, "x")
        numbers, turns = stored_images(
            none, none.astype(np.uint16), none.astype(np.bool_), none.astype(np.uint8), config
        )
        assert (len(numbers), len(turns)) == (0, 0)


def test_a_policy_turned_row_by_row() -> None:
    """Each row by its own symmetry, passes left alone, moves in rising order with their counts beside them."""
    batch = {
        "rows": np.array([3, 3, 2], dtype=np.uint8),
        "cols": np.array([3, 3, 3], dtype=np.uint8),
        "policy_moves": np.array([0, 7, 30, 1, 0, 5], dtype=np.int16),  # in a frame of 6 x 5
        "policy_counts": np.array([4, 2, 9, 1, 3, 8], dtype=np.uint32),
        "policy_offsets": np.array([0, 3, 4, 6], dtype=np.int64),
    }
    turned = turned_policy(batch, 5, np.array([2, 5, 3], dtype=np.uint8))
    # (0, 0) and (1, 2) with columns flipped; (0, 1) to (1, 2); (0, 0) and (1, 0) of 2 x 3 through the middle.
    assert turned["policy_moves"].tolist() == [2, 5, 30, 7, 2, 7]
    assert turned["policy_counts"].tolist() == [4, 2, 9, 1, 8, 3]
    assert turned["policy_moves"].dtype == np.int16


def test_names_of_shards() -> None:
    hdf5 = make_config({"output": {"format": "hdf5"}}, "x")
    assert shard_path(0, 0, Config()) == "train/shard-00000.parquet"
    assert shard_path(1, 123_456, Config()) == "val/shard-123456.parquet"
    assert shard_path(2, 7, hdf5) == "test/shard-00007.h5"


def test_a_block_counts_when_its_shards_are_whole(tmp_path: Path) -> None:
    staged = build(tmp_path, "none")
    task, report = staged.tasks[0], staged.reports[0]
    path = Path(task.report)
    assert finished_encoding(task) == report
    shard = staged.output / report["shards"][0]["path"]
    whole = shard.read_bytes()
    for damaged in (whole[:-1], whole[:100] + b"\0" + whole[101:]):
        shard.write_bytes(damaged)
        assert finished_encoding(task) is None
    shard.unlink()
    assert finished_encoding(task) is None
    assert encode_block(task) == report
    assert shard.read_bytes() == whole
    assert finished_encoding(task) == report
    for text in ("", "{}", json.dumps(report)[:-5]):
        path.write_text(text)
        assert finished_encoding(task) is None
    path.unlink()
    assert finished_encoding(task) is None


def test_the_games_of_a_block(tmp_path: Path) -> None:
    """The arrays that the kernels play hold the moves of its table."""
    staged = build(tmp_path, "none")
    for block in staged.blocks:
        games = games_of(block)
        assert games.number == block.num_rows
        assert [len(moves) for moves in block.column("moves").to_pylist()] == np.diff(games.move_start).tolist()
