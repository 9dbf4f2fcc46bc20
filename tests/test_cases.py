"""The cases under ``cases/`` run through the product; every key of their JSON blocks is compared.

Run with ``pytest tests/test_cases.py -rP`` to see case, key and value, and what is not run.
"""

import json
import math
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from case_runner import CASES, Case, Data, Expected, Game, Points, config_of, digests, json_block, plane_points
from case_runner import points_of, read_data, say, sgf_point
from shard_rows import make_layout, make_manifest, make_rows

from pipeline import shard
from pipeline.build import build
from pipeline.columns import ShardError
from pipeline.config import Config
from pipeline.coordinates import point_name
from pipeline.files import TEMPORARY, sha256_of_file
from pipeline.load import Dataset, open_dataset
from pipeline.manifest import Manifest, write_manifest
from pipeline.replay import trace
from pipeline.symmetry import image_point
from pipeline.table import PART_SCHEMA, games_of
from pipeline.workfolder import FolderMismatch

# Cases and keys of cases that speak of what does not exist yet.
NOT_YET = {
    "022-handicap-as-black-moves": "leading Black moves of a listed server are not folded into a handicap yet",
    "032-self-atari-and-capture-size": "no scheme has what-if planes yet",
    "037-counters-past-255.turns_since": "no scheme has planes of turns since a move yet",
    "051-handle-opened-before-fork": "the one epoch of it is in test_load.py; the shuffling loader does not exist yet",
    "053-every-row-once-per-epoch": "the loader over ranks does not exist yet",
}

# What the cases call an illegal move is five reasons here.
ILLEGAL = {"off-board", "occupied", "ko", "superko", "suicide"}
ALL_TRAIN = {"val": 0.0, "test": 0.0}


# --- K1: what real files look like


def gb18030_text(case: Case) -> None:
    game = case.only(case.build())
    assert (game["result_kind"], dict(game["raw"])["EV"]) == ("resign", "研究会")
    case.expected.check("size", square(game))
    case.expected.check("komi", game["komi"])
    case.expected.check("winner", game["winner"])
    case.expected.check("PB", game["black"])
    case.expected.check("PW", game["white"])


def charset_lies(case: Case) -> None:
    game = case.only(case.build())
    assert (game["result_kind"], game["black"]) == ("resign", "甲")
    case.expected.check("komi", game["komi"])
    case.expected.check("winner", game["winner"])
    case.expected.check("flag", next(flag for flag in game["flags"] if flag.startswith("charset")))


def non_number_header(case: Case) -> None:
    data = case.build()
    for name in case.expected.keys:
        game, facts = kept(data, name), case.expected.table(name)
        facts.check("positions", data.positions(game))
        facts.check("komi", game["komi"])
        facts.check("winner", game["winner"])
        if "handicap" in facts.keys:
            facts.check("handicap", game["handicap"])
        assert ("komi-unusable" in game["flags"]) == (game["komi"] is None)
        assert np.isnan(data.rows_of(game)["komi"]).all() == (game["komi"] is None)


def komi_in_hundredths(case: Case) -> None:
    data = case.build()
    for name in case.expected.keys:
        game = kept(data, name)
        assert (data.positions(game), game["winner"]) == (2, "B")
        assert ("komi-unusable" in game["flags"]) == (name == "j")
        case.expected.check(name, game["komi"])


def old_server_noise(case: Case) -> None:
    game = case.only(case.build())
    assert game["margin"] == 3.5
    case.expected.check("size", square(game))
    case.expected.check("komi", game["komi"])
    case.expected.check("winner", game["winner"])
    case.expected.check("PB", game["black"])
    case.expected.check("PW", game["white"])


def escapes(case: Case) -> None:
    data = case.build()
    game = case.only(data)
    assert (game["komi"], game["winner"]) == (6.5, "W")
    case.expected.check("moves", data.moves(game))
    case.expected.check("PB", game["black"])
    case.expected.check("C", dict(game["raw"])["C"])


def branch_before_every_move(case: Case) -> None:
    data = case.build()
    game = case.only(data)
    assert game["margin"] == 4.5
    case.expected.check("winner", game["winner"])
    case.expected.check("komi", game["komi"])
    case.expected.check("moves", data.moves(game))


def three_games_one_file(case: Case) -> None:
    data = case.build()
    games = [data.game("three.sgf", ordinal) for ordinal in range(3)]
    case.expected.check("games", len(data.games))
    case.expected.check("kept", [game["index"] + 1 for game in games if game["status"] == "kept"])
    rejected = case.expected.table("rejected")
    assert games[1]["status"] == "rejected"
    rejected.check("2", [illegal(games[1]), games[1]["move"]])
    assert games[1]["reason"] == "off-board"
    case.expected.check("positions", [data.positions(game) for game in games])
    assert [(game["komi"], game["winner"]) for game in games[::2]] == [(6.5, "B"), (7.5, "W")]


def compressed_points(case: Case) -> None:
    data = case.build()
    game = case.only(data)
    case.expected.check("to_play", data.to_play(game))
    stones = data.stones(game, 0)
    assert [stones] == case.boards()
    check_points(case.expected, "black", stones[0])
    check_points(case.expected, "white", stones[1])


def size_spellings(case: Case) -> None:
    data = case.build()
    rect = kept(data, "rect")
    assert (rect["board_rows"], rect["board_cols"], data.moves(rect)) == (13, 9, ["cc", "gg", "cl", "gl"])
    case.expected.check_other("rect", "rejected unsupported-size", data.positions(rect), 4)
    pair, none, spaced = (kept(data, name) for name in ("square-pair", "none", "spaced"))
    assert (square(pair), square(spaced), data.moves(none)[2]) == (9, 9, "sa")
    case.expected.check("square-pair", data.positions(pair))
    case.expected.check("none", [data.positions(none), square(none)])
    case.expected.check("spaced", data.positions(spaced))
    for name in ("junk", "too-big"):
        game = data.game(f"{name}.sgf")
        assert data.positions(game) == 0
        case.expected.check(name, f"{game['status']} {game['reason']}")


# --- K2: the rules


def snapback(case: Case) -> None:
    data = case.build()
    game = case.only(data)
    assert (game["winner"], game["komi"]) == ("B", 6.5)
    assert [data.stones(game, 13)] == case.boards()
    captured = case.expected.table("captured")
    for move in ("12", "13"):
        captured.check(move, captures(data, game)[int(move)])
    kos = case.build(encode={"scheme": "seven_plane"})
    at_ko = plane_points(kos.plane(kos.games[0], 12, "ko"))
    case.expected.check("ko_point_before_13", min(at_ko) if at_ko else None)


def capture_first(case: Case) -> None:
    data = case.build()
    game = case.only(data)
    assert [data.stones(game, 13)] == case.boards()
    by_move = captures(data, game)
    case.expected.check("captured_by_black", sum(taken for move, taken in by_move.items() if move % 2 == 1))
    case.expected.check("captured_by_white", sum(taken for move, taken in by_move.items() if move % 2 == 0))


def who_moves_first(case: Case) -> None:
    data = case.build()
    for name in case.expected.keys:
        game = kept(data, name)
        assert (game["winner"], game["komi"]) == ("B", 6.5)
        assert ("player-mismatch" in game["flags"]) == (name == "pl-contradicts")
        case.expected.check(name, data.to_play(game))


def one_node_one_move(case: Case) -> None:
    data = case.build()
    for name in case.expected.keys:
        game = data.game(f"{name}.sgf")
        assert (game["status"], data.positions(game)) == ("rejected", 0)
        case.expected.check(name, [game["move"], game["reason"]])


def illegal_moves(case: Case) -> None:
    dropped = case.build()
    cut = case.build(rules={"illegal": "keep-prefix"})
    for name in case.expected.keys:
        game = dropped.game(f"{name}.sgf")
        assert (game["status"], dropped.positions(game), illegal(game)) == ("rejected", 0, "illegal-move")
        prefix = kept(cut, name)
        assert (prefix["move"], prefix["flags"]) == (game["move"], ["illegal-tail"])
        case.expected.check(name, [game["reason"], game["move"], cut.positions(prefix)])


def hash_after_capture(case: Case) -> None:
    inputs = case.tmp / "in"
    inputs.mkdir()
    for name in ("capture.sgf", "plain.sgf"):
        shutil.copy(case.folder / name, inputs)
    # The same stones set up: what a key built from the stones alone is, for either side to move.
    for name, first in (("white", "W"), ("black", "B")):
        text = f"(;GM[1]FF[4]SZ[9]AB[ab][ba][cc]AW[gg]PL[{first}];{first}[ee])"
        (inputs / f"setup-{name}.sgf").write_text(text)
    data = case.build(inputs, dedup={"reach": "board"}, split=ALL_TRAIN)
    capture, plain = (kept(data, name) for name in ("capture", "plain"))
    one, other = data.rows_of(capture)["key"], data.rows_of(plain)["key"]
    assert (data.positions(capture), data.positions(plain)) == (6, 6)
    case.expected.check("same_hash_before_moves", [move for move in range(1, 7) if one[move - 1] == other[move - 1]])
    for game in (capture, plain):
        assert [data.stones(game, 5)] == case.boards()
    black, white = data.stones(capture, 5)
    check_points(case.expected, "black", black)
    check_points(case.expected, "white", white)
    case.expected.check("to_play", data.to_play(capture)[5])
    assert data.rows_of(kept(data, "setup-white"))["key"] == one[5]
    assert data.rows_of(kept(data, "setup-black"))["key"] != one[5]
    merged = case.build(dedup={"reach": "board", "positions": "first"}, split=ALL_TRAIN)
    assert merged.manifest.positions.seen == 12
    case.expected.check("distinct_positions", merged.manifest.positions.stored)


# --- K3: the planes


def axis_order(case: Case) -> None:
    names = {"9": ["C9", "A7", "J9", "pass"], "19": ["R16", "A1", "T19", "D4", "pass"]}
    index = case.expected.table("index")
    for side, name in (("9", "nine"), ("19", "nineteen")):
        size = int(side)
        data = case.build(filter={"sizes": [size]})
        game = kept(data, name)
        moves = data.rows_of(game)["move"].tolist()
        index.check(side, moves)
        assert [point_name(move, size, size) for move in moves] == names[side]
        stones = [set(), *(divmod(move, size) for move in moves[:-1])]
        for ply in range(1, len(moves)):
            # Nothing is captured: every move so far is a stone at its own index.
            assert set.union(*data.stones(game, ply)) == set(stones[1 : ply + 1])


def liberties_after_capture(case: Case) -> None:
    data = case.build(filter={"sizes": [9]})
    (game,) = data.games
    assert (game["status"], data.positions(game), data.to_play(game)) == ("kept", 2, "BW")
    assert data.stones(game, 1) in case.boards()
    planes = case.build(filter={"sizes": [9]}, encode={"scheme": "seven_plane"})
    record = games_of(pa.Table.from_pylist([game], schema=PART_SCHEMA))
    traced = trace(record, np.array([0]), np.array([2]), (9, 9), liberties=True)
    for ply in range(2):
        exact = traced.liberties[ply].reshape(9, 9)
        case.expected.check(f"liberties_before_{ply + 1}", exact.tolist())
        shown = {name: planes.plane(planes.games[0], ply, name) for name in planes.manifest.scheme.planes}
        for count, name in ((1, "1"), (2, "2"), (3, "3_or_more")):
            stored = shown[f"own_liberties_{name}"] + shown[f"opp_liberties_{name}"]
            np.testing.assert_array_equal(stored, np.minimum(exact, 3) == count)


def history_and_side(case: Case) -> None:
    data = case.build(encode={"scheme": "agz17"})
    (game,) = data.games
    assert (game["status"], data.positions(game)) == ("kept", 8)
    area = square(game) ** 2
    colour = case.expected.table("colour_plane")
    for move in (7, 6):
        steps: list[Any] = []
        for back in range(8):
            own, opp = (plane_points(data.plane(game, move - 1, f"{side}_{back}")) for side in ("own", "opp"))
            steps.append([sorted(sgf_point(*point) for point in side) for side in (own, opp)])
        # Before the start there is no board; an empty board and none are the same zeros.
        steps[move:] = [None if step == [[], []] else step for step in steps[move:]]
        case.expected.check(f"before_{move}", steps)
        ones = int(data.plane(game, move - 1, "black_to_move").sum())
        assert ones in {0, area}
        colour.check(f"before_{move}", ones // area)


def past_255(case: Case) -> None:
    data = case.build()
    (game,) = data.games
    assert (game["status"], square(game), game["winner"]) == ("kept", 19, "W")
    case.expected.check("positions", data.positions(game))
    assert data.rows_of(game)["ply"].tolist() == list(range(300))
    black, white = data.stones(game, 299)
    case.expected.check("black", len(black))
    case.expected.check("white", len(white))
    captured = case.expected.table("captured_by")
    by_move = captures(data, game)
    captured.check("B", sum(taken for move, taken in by_move.items() if move % 2 == 1))
    captured.check("W", sum(taken for move, taken in by_move.items() if move % 2 == 0))


# --- K4: results and values


def result_strings(case: Case) -> None:
    data = case.build()
    signs = {"B": 1.0, "W": -1.0, "draw": 0.0}
    for name in case.expected.keys:
        game = kept(data, name)
        assert data.positions(game) == 2
        found = [game["winner"] or "unknown", game["result_kind"], game["margin"]]
        case.expected.check(name, found)
        value = math.nan if game["result_kind"] == "forfeit" else signs.get(found[0], math.nan)
        np.testing.assert_array_equal(data.rows_of(game)["value"], [value, -value])


def value_side(case: Case) -> None:
    data = case.build(encode={"scheme": "agz17"})
    (game,) = data.games
    rows = data.rows_of(game)
    assert (game["status"], game["winner"], data.positions(game)) == ("kept", "W", 5)
    case.expected.check("mover", rows["value"].tolist())
    case.expected.check("black", (rows["value"] * np.where(rows["to_play"] == 1, 1, -1)).tolist())
    for ply, side in enumerate(data.to_play(game)):
        # The planes' own side is the value's: the first stone is Black's.
        first = "own_0" if side == "B" else "opp_0"
        assert ((2, 2) in plane_points(data.plane(game, ply, first))) == (ply > 0)


def odd_places(case: Case) -> None:
    data = case.build()
    for name in case.expected.keys:
        game = kept(data, name)
        assert data.positions(game) == (4 if name == "ends-in-pass" else 3)
        assert ("info-below-root" in game["flags"]) == (name == "in-move-node")
        detail = {"score": game["margin"], "resign": "resign"}.get(game["result_kind"])
        case.expected.check(name, [game["winner"], detail] if game["winner"] else ["unknown"])
    assert data.moves(kept(data, "ends-in-pass"))[-1] == "pass"


# --- K5, K6: symmetries, duplicates, split

SYMMETRY = {
    "identity": 0,
    "flip-ud": 1,
    "flip-lr": 2,
    "rot180": 3,
    "transpose": 4,
    "rot270": 5,
    "rot90": 6,
    "anti-transpose": 7,
}


def planes_turn_together(case: Case) -> None:
    data = case.build(
        encode={"scheme": "agz17"}, augment={"mode": "all"}, filter={"sizes": [9]}, split=ALL_TRAIN
    )
    (game,) = data.games
    assert (game["status"], game["plies"], game["rows"], len(data.rows["move"])) == ("kept", 5, 40, 40)
    rows = data.rows_of(game)
    assert all(len(set(rows["value"][rows["ply"] == ply])) == 1 for ply in range(5))
    (pass_index,) = set(rows["move"][rows["ply"] == 3].tolist())
    case.expected.check("pass_index", pass_index)
    before = case.expected.table("before_5")
    turned = np.flatnonzero(rows["ply"] == 4)
    assert rows["symmetry"][turned].tolist() == list(range(8))
    names = data.manifest.scheme.planes
    for name in before.keys:
        at = turned[SYMMETRY[name]]
        plane = dict(zip(names, rows["planes"][at].reshape(len(names), 81), strict=True))
        image = before.table(name)
        image.check("black", np.flatnonzero(plane["own_0"]).tolist())
        image.check("white", np.flatnonzero(plane["opp_0"]).tolist())
        # The last move was a pass; what Black has since two boards ago is the move before it.
        (two_back,) = np.flatnonzero(plane["own_1"] != plane["own_2"])
        assert (plane["own_0"] == plane["own_1"]).all()
        image.check("two_back", int(two_back))
        image.check("policy", int(rows["move"][at]))
        assert two_back == np.ravel_multi_index(image_point(0, 2, 9, 9, SYMMETRY[name]), (9, 9))


def two_sources(case: Case) -> None:
    data = case.build(dedup={"games": True})
    source = {game["game"]: game["source"] for game in data.games}
    copies = {game["source"]: game for game in data.games}
    case.expected.check("kept", [game["source"] for game in data.games if game["status"] == "kept"])
    for key, status in (("duplicate", "duplicate"), ("conflict", "conflicting")):
        table = case.expected.table(key)
        assert table.keys == [game["source"] for game in data.games if game["status"] == status]
        for name in table.keys:
            table.check(name, source[copies[name]["duplicate_of"]])
    case.expected.check("positions", sum(data.positions(game) for game in data.games))
    for seed in range(4):
        again = case.build(
            *(case.folder / f"{name}.sgf" for name in "dcba"),
            dedup={"games": True},
            split={"val": 0.4, "test": 0.3, "seed": seed},
        )
        assert [game["status"] for game in again.games] == [game["status"] for game in data.games]
        assert again.game("d.sgf")["split"] == again.game("a.sgf")["split"] == again.game("b.sgf")["split"]
    distinct = case.build(dedup={"positions": "first", "reach": "board"}, split=ALL_TRAIN)
    assert distinct.manifest.positions.seen == 40
    case.expected.check("distinct_positions", 10)
    # Ten boards come before moves 1 to 10 of each; c differs after its last move alone.
    assert distinct.manifest.positions.stored == 10


def split_does_not_move(case: Case) -> None:
    folder, split = case.folder / "in", {"val": 0.25, "test": 0.0, "seed": 1}
    first, second = (
        [folder / name for name in (case.folder / f"{name}.txt").read_text().split()] for name in ("first", "second")
    )
    small = {"games_per_block": 4}
    renamed = case.tmp / "another name"
    shutil.copytree(folder, renamed)
    spawned = config_of(first, case.tmp / "spawned", split=split, output=small, run={"workers": 4})
    finish(start_build(spawned, case.tmp, PYTHONHASHSEED="77"))
    every = case.build(*second, split=split, augment={"mode": "all"})
    runs = [
        case.build(*first, split=split),
        case.build(*first[::-1], split=split, output=small),
        every,
        case.build(renamed, split=split),
    ]
    runs.append(read_data(case.tmp / "spawned"))
    parts = [{game["source"]: game["split"] for game in run.games if game["status"] == "kept"} for run in runs]
    for part in parts:
        assert {path.name: part[path.name] for path in first} == parts[0]
    assert parts[2] == parts[3]
    assert set(parts[2].values()) == {"train", "val"}
    case.expected.check("games", len(parts[2]))
    case.expected.check("positions", every.manifest.positions.stored)
    case.expected.check("runs", len(runs))
    assert (every.manifest.rows.train + every.manifest.rows.val, every.manifest.rows.test) == (8 * 144, 0)
    names = {game["game"]: game["source"] for game in every.games}
    for part in ("train", "val"):
        in_part = [game for batch in open_dataset(every.folder).batches(part) for game in batch["game"].tolist()]
        assert {names[game] for game in in_part} == {name for name, where in parts[2].items() if where == part}
    other = case.build(*second, split=split | {"seed": 2})
    assert {game["source"]: game["split"] for game in other.games} != parts[2]


# --- K7: the files


def bit_order(case: Case) -> None:
    data = case.build(filter={"sizes": [19]})
    (game,) = data.games
    assert (game["status"], data.to_play(game)) == ("kept", "WB")
    (entry,) = [entry for entry in data.manifest.shards if entry.split == game["split"]]
    path = data.folder / entry.path
    described = json.loads(pq.read_schema(path).metadata[b"goplanes"])
    black = described["planes"].index("black_0")
    raw = pq.read_table(path, columns=["planes", "ply"]).to_pylist()
    (planes,) = [row["planes"] for row in raw if row["ply"] == 0]
    stored = planes[46 * black : 46 * black + 46]
    dense = np.unpackbits(np.frombuffer(stored, np.uint8), count=361, bitorder=described["bit_order"])
    case.expected.check("indices", np.flatnonzero(dense).tolist())
    np.testing.assert_array_equal(data.plane(game, 0, "black_0").ravel(), dense)
    case.expected.check("big", stored.hex())
    case.expected.check("little", np.packbits(dense, bitorder="little").tobytes().hex())
    assert described["bit_order"] == "big"
    assert (case.folder / "plane-big.hex").read_text().split() == [stored.hex()]


def shard_cut_by_a_kill(case: Case) -> None:
    layout = make_layout("hdf5")
    rows = make_rows(40, layout)
    rows["ply"] = np.arange(40, dtype=np.uint16)
    dataset = open_dataset(data_set(case.tmp / "shards", [(rows, layout)] * 3))
    paths = [dataset.folder / entry.path for entry in dataset.manifest.shards]
    cut_and_empty(paths[1], paths[2])
    faults = dataset.damaged()
    names = [name for name, path in zip(("part-00000.h5", "part-00001.h5", "part-00002.h5"), paths, strict=True)
             if any(fault.startswith(str(path)) for fault in faults)]
    case.expected.check("damaged", names)
    assert len(faults) == 2
    read: list[int] = []
    with pytest.raises(ShardError, match=paths[1].name):
        for batch in dataset.batches(batch_size=8, columns=["ply"]):
            read += batch["ply"].tolist()
    case.expected.check("rows", len(read))
    assert read == list(range(40))
    resumed_over_damage(case)


def resumed_over_damage(case: Case) -> None:
    """A build that ended before its manifest makes damaged shards again."""
    games = CASES / "055-killed-and-resumed" / "in"
    tables = {"output": {"format": "hdf5", "games_per_block": 1, "rows_per_shard": 2}, "split": ALL_TRAIN}
    config = config_of([games], case.tmp / "resumed", **tables)
    whole = case.build(games, **tables)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pipeline.manifest.write_manifest", stop)
        with pytest.raises(Stopped):
            build(config)
    shards = sorted((case.tmp / "resumed" / "train").iterdir())
    assert len(shards) == len(whole.manifest.shards) > 5
    cut_and_empty(shards[1], shards[4])
    build(config)
    assert digests(case.tmp / "resumed") == digests(whole.folder)


class Stopped(Exception):
    """Raised where a test ends a build."""


def stop(*_: Any) -> None:
    raise Stopped


# --- K9: killed, resumed, in another order


def killed_and_resumed(case: Case) -> None:
    tables = {"output": {"games_per_block": 1}, "split": ALL_TRAIN}
    config = config_of([case.folder / "in"], case.tmp / "runs", **tables)
    script = case.tmp / "config.json"
    script.write_text(config.model_dump_json())
    (case.tmp / "runs").mkdir()
    told = finish(start([sys.executable, str(Path(__file__).with_name("killed_builds.py")), str(script)]))
    facts = json.loads(told)
    published, runs = facts["published"], case.tmp / "runs"
    whole = read_data(runs / "whole")
    digest = digests(whole.folder)
    case.expected.check("positions", sum(whole.positions(game) for game in whole.games))
    case.expected.check("per_game", [whole.positions(game) for game in whole.games])
    done = [name for name in published if name.startswith(".goplanes/work/") and "shards-" in name]
    points = {
        "before the first write": 0,
        "in the middle of a shard": published.index("train/shard-00000.parquet"),
        "shard whole, not yet entered": published.index(done[1]),
        "in the middle of the mark": published.index(done[1]) + 1,
        "before the manifest": published.index("dataset.json"),
    }
    case.expected.check("kill_points", len(points))
    say(f"{case.expected.name}: killed at each of {len(published)} files, and {facts['kills']} times in one folder")
    assert published[-1] == "dataset.json"
    assert len(done) == 3
    # The mark of a block is written whole, so this one is cut by hand.
    mark = runs / f"killed-{points['in the middle of the mark']}" / done[1]
    mark.write_bytes(mark.read_bytes()[: mark.stat().st_size // 2])
    for number in range(len(published)):
        folder = runs / f"killed-{number}"
        assert number == 0 or (folder / published[number - 1]).exists()
        assert not (folder / "dataset.json").exists()
        if number > 0:
            with pytest.raises(FolderMismatch, match=r"(?s)encode.scheme.*fingerprint.*--overwrite"):
                build(config_of([case.folder / "in"], folder, **tables, encode={"scheme": "agz17"}))
        workers = 2 if number == points["shard whole, not yet entered"] else 0
        build(config_of([case.folder / "in"], folder, **tables, run={"workers": workers}))
        assert digests(folder) == digest
        assert leftovers(folder) == []
    assert digests(runs / "chain") == digest
    assert facts["kills"] >= len(points)
    assert leftovers(runs / "chain") == []


def leftovers(folder: Path) -> list[Path]:
    """Return what a finished build should not leave: temporary files and work in progress."""
    work = folder / ".goplanes" / "work"
    return [path for path in folder.rglob("*") if path.name.startswith(TEMPORARY) or path == work]


def order_of_the_folder(case: Case) -> None:
    names = ["A.sgf", "a10.sgf", "a2.sgf", "b.sgf"]
    tables: dict[str, Any] = {"output": {"games_per_block": 1}, "augment": {"mode": "random"}}
    outputs, processes = [], []
    for number, (order, workers, seed, locale) in enumerate(
        [(names, 1, "0", "C"), (names[::-1], 4, "1", "C.UTF-8"), ([names[i] for i in (2, 0, 3, 1)], 0, "1", "C")]
    ):
        folder = case.tmp / f"folder {number}" / ("é" * number)
        folder.mkdir(parents=True)
        for name in order:
            shutil.copyfile(case.folder / "in" / name, folder / name)
        outputs.append(case.tmp / f"run-{number}")
        config = config_of([folder], outputs[-1], **tables, run={"workers": workers})
        processes.append(start_build(config, case.tmp, PYTHONHASHSEED=seed, LC_ALL=locale))
    finish(*processes)
    first = digests(outputs[0])
    assert all(digests(output) == first for output in outputs[1:])
    data = read_data(outputs[0])
    case.expected.check("order", [game["source"] for game in data.games])
    case.expected.check("positions", sum(data.positions(game) for game in data.games))
    text = b"".join(first.values())
    assert str(case.tmp).encode() not in text


# --- K10: hostile input


def archive_paths(case: Case) -> None:
    area = case.tmp / "area"
    area.mkdir()
    shutil.copy(case.folder / "games.zip", area)
    before = sorted(case.tmp.rglob("*")), Path("/abs").exists()
    data = case.build(area / "games.zip")
    ours = [path for path in case.tmp.rglob("*") if data.folder in (path, *path.parents)]
    assert (sorted(set(case.tmp.rglob("*")) - set(ours)), Path("/abs").exists()) == before
    assert not any("evil" in path.name or path.is_symlink() for path in ours)
    games = {game["member"]: data.positions(game) for game in data.games if game["status"] == "kept"}
    # The name that ends in a space is another member, and another game.
    assert games.pop("good/one.sgf ") == 2
    table = case.expected.table("kept")
    assert table.keys == list(games)
    for name in table.keys:
        table.check(name, games[name])
    members = json.loads(json.dumps([entry.member for entry in data.manifest.omitted]))
    for key, status, reason in (("refused", "refused", "unsafe-member"), ("skipped", "skipped", "not-a-record")):
        found = {entry.member: entry.reason for entry in data.manifest.omitted if entry.status == status}
        assert set(found.values()) == {reason}
        listed = json_block((case.folder / "expect.md").read_text("utf-8"))[key]
        assert len(found) == len(listed)
        case.expected.check(key, [name for name in listed if name in found])
    assert len(members) == 7


_PEAK = """
import json, resource, sys
from pipeline.build import build
from pipeline.config import Config
peaks = []
for path in sys.argv[1:]:
    with open(path) as file:
        build(Config.model_validate(json.load(file)))
    peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
print(json.dumps(peaks))
"""


def archive_that_swells(case: Case) -> None:
    limit = {"max_member_bytes": "16MiB", "max_ratio": 1e6}
    scripts = []
    for name, source in (
        ("small", CASES / "059-archive-paths" / "games.zip"),
        ("flat", case.folder / "games.zip"),
        ("nested", case.folder / "nested.zip"),
    ):
        scripts.append(case.tmp / f"{name}.json")
        scripts[-1].write_text(config_of([source], case.tmp / name, input=limit).model_dump_json())
    before, *after = json.loads(finish(start([sys.executable, "-c", _PEAK, *map(str, scripts)])))
    say(f"{case.expected.name}: peak memory rises by {max(after) - before} KiB")
    assert max(after) - before < 64 * 1024
    data, nested = read_data(case.tmp / "flat"), read_data(case.tmp / "nested")
    games = {game["member"]: data.positions(game) for game in data.games if game["status"] == "kept"}
    table = case.expected.table("kept")
    assert table.keys == list(games)
    for name in table.keys:
        table.check(name, games[name])
    (refused,) = data.manifest.omitted
    assert refused.status == "refused"
    rejected = case.expected.table("rejected")
    rejected.check(str(refused.member), refused.reason)
    case.expected.check("positions", data.manifest.positions.stored)
    # Opened one level further down, under the same limits.
    assert [entry.reason for entry in nested.manifest.omitted] == ["member-too-large"]
    assert nested.manifest.positions.stored == 5
    # The default limits stop the archive as a whole no later.
    default = case.build(case.folder / "games.zip")
    assert {entry.status for entry in default.manifest.omitted} == {"refused"}


def points_elsewhere(case: Case) -> None:
    layout = make_layout("hdf5", compression="none")
    rows = make_rows(64, layout)
    dataset = open_dataset(data_set(case.tmp / "shards", [(rows, layout)]))
    folder = dataset.folder / "train"
    path = folder / "shard-00000.h5"
    whole = path.read_bytes()
    secret = b"SECRET" * 4096
    (folder / "secret.bin").write_bytes(secret)
    shape = rows["planes"].shape
    with h5py.File(folder / "other.h5", "w") as file:
        file["planes"] = np.frombuffer(secret, np.uint8)[: math.prod(shape)].reshape(shape)
    damage = {
        "external.h5": (external_storage, "external storage"),
        "link.h5": (external_link, "external link"),
        "group-link.h5": (group_link, "external link"),
        "virtual.h5": (virtual, "virtual"),
        "shape.h5": (terabyte, "planes has 1099511627776 entries, not 64|declares"),
    }
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refused = []
    for name, (spoil, reason) in damage.items():
        path.write_bytes(whole)
        with h5py.File(path, "r+") as file:
            spoil(file, shape)
        entry = dataset.manifest.shards[0]
        entry = entry.model_copy(update={"bytes": path.stat().st_size, "sha256": sha256_of_file(path)})
        spoiled = Dataset(dataset.folder, dataset.manifest.model_copy(update={"shards": (entry,)}))
        (fault,) = spoiled.damaged()
        assert fault.startswith(f"{path}: ")
        assert any(word in fault for word in reason.split("|")), fault
        with pytest.raises(ShardError) as error:
            list(spoiled.batches())
        with pytest.raises(ShardError) as one:
            spoiled.row("train", 0)
        assert "SECRET" not in f"{fault}{error.value}{one.value}"
        say(f"{case.expected.name}: {name}: {fault.removeprefix(str(folder))}")
        refused.append(name)
    case.expected.check("refused", refused)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 64 * 1024


def external_storage(file: h5py.File, shape: tuple[int, ...]) -> None:
    del file["planes"]
    file.create_dataset("planes", shape, "uint8", external=[("secret.bin", 0, math.prod(shape))])


def external_link(file: h5py.File, shape: tuple[int, ...]) -> None:
    del file["planes"]
    file["planes"] = h5py.ExternalLink("other.h5", "planes")


def group_link(file: h5py.File, shape: tuple[int, ...]) -> None:
    file["data"] = h5py.ExternalLink("other.h5", "/")


def virtual(file: h5py.File, shape: tuple[int, ...]) -> None:
    del file["planes"]
    layout = h5py.VirtualLayout(shape, "uint8")
    layout[...] = h5py.VirtualSource("other.h5", "planes", shape)
    file.create_virtual_dataset("planes", layout)


def terabyte(file: h5py.File, shape: tuple[int, ...]) -> None:
    del file["planes"]
    file.create_dataset("planes", (2**40, *shape[1:]), "uint8", chunks=(64, *shape[1:]))


# --- what the cases share


def kept(data: Data, name: str) -> Game:
    """Return the record of ``name``.sgf, which must be kept."""
    game = data.game(f"{name}.sgf")
    assert (game["status"], game["reason"]) == ("kept", None)
    return game


def square(game: Game) -> int:
    """Return the side of a square board."""
    assert game["board_rows"] == game["board_cols"]
    side: int = game["board_rows"]
    return side


def illegal(game: Game) -> str:
    """Return the cases' word for the reason of a record with an illegal move."""
    return "illegal-move" if game["reason"] in ILLEGAL else str(game["reason"])


def check_points(expected: Expected, key: str, points: Points) -> None:
    """Compare a set of points that the block lists in any order."""
    listed = json_block((CASES / expected.name / "expect.md").read_text("utf-8"))[key]
    assert points_of(listed) == points
    expected.check(key, [name for name in listed if points_of([name]) <= points])


def captures(data: Data, game: Game) -> dict[int, int]:
    """Return the stones that each move (from 1) took; of the last move no board after it is stored."""
    taken = {}
    boards = [data.stones(game, ply) for ply in range(game["plies"])]
    for move, (before, after) in enumerate(zip(boards, boards[1:], strict=False), start=1):
        other = 1 if data.to_play(game)[move - 1] == "B" else 0
        taken[move] = len(before[other] - after[other])
    return taken


def data_set(folder: Path, shards: list[tuple[Any, Any]]) -> Path:
    """Write a data set of made-up rows, one shard each."""
    entries = []
    (folder / "train").mkdir(parents=True)
    for number, (rows, layout) in enumerate(shards):
        path = f"train/shard-{number:05d}.h5"
        made = shard.write(folder / path, [rows], layout)
        entries.append({"split": "train", "path": path, "rows": made.rows, "bytes": made.bytes, "sha256": made.sha256})
    manifest: Manifest = make_manifest(entries, shards[0][1])
    write_manifest(folder, manifest)
    return folder


def cut_and_empty(cut: Path, empty: Path) -> None:
    """Leave 60 percent of one file and nothing of the other."""
    cut.write_bytes(cut.read_bytes()[: cut.stat().st_size * 6 // 10])
    empty.write_bytes(b"")


_BUILD = """
import json, sys
from pipeline.build import build
from pipeline.config import Config
with open(sys.argv[1]) as file:
    build(Config.model_validate(json.load(file)))
"""


def start(command: list[str], **environment: str) -> "subprocess.Popen[str]":
    """Start Python in a process of its own that finds the package."""
    path = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        command, env=os.environ | {"PYTHONPATH": path} | environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def start_build(config: Config, folder: Path, **environment: str) -> "subprocess.Popen[str]":
    """Start a build in a process of its own."""
    path = folder / f"{Path(str(config.output.path)).name}.json"
    path.write_text(config.model_dump_json())
    return start([sys.executable, "-c", _BUILD, str(path)], **environment)


def finish(*processes: "subprocess.Popen[str]") -> str:
    """Wait for processes that must all succeed; return what the last one printed."""
    printed, said = "", ""
    for process in processes:
        with process:
            try:
                printed, errors = process.communicate(timeout=300)
            except subprocess.TimeoutExpired:
                process.kill()
                errors = "it did not end"
        said += errors if process.returncode else ""
    assert not said, said
    return printed


RUN: dict[str, Callable[[Case], None]] = {
    "001-gbk-no-ca": gb18030_text,
    "003-charset-lies": charset_lies,
    "004-non-number-header": non_number_header,
    "005-komi-in-hundredths": komi_in_hundredths,
    "007-old-server-noise": old_server_noise,
    "009-escapes-and-parentheses": escapes,
    "010-every-move-opens-a-branch": branch_before_every_move,
    "012-three-games-one-file": three_games_one_file,
    "013-compressed-points": compressed_points,
    "015-board-size-spellings": size_spellings,
    "017-snapback-is-not-ko": snapback,
    "018-capture-before-own-liberties": capture_first,
    "021-who-moves-first": who_moves_first,
    "025-one-node-one-move": one_node_one_move,
    "026-illegal-moves-by-kind": illegal_moves,
    "028-hash-after-capture": hash_after_capture,
    "029-axis-order": axis_order,
    "030-liberties-after-capture": liberties_after_capture,
    "033-history-and-side": history_and_side,
    "037-counters-past-255": past_255,
    "038-result-strings": result_strings,
    "039-value-side": value_side,
    "041-result-in-odd-places": odd_places,
    "043-planes-and-policy-turn-together": planes_turn_together,
    "045-same-game-from-two-sources": two_sources,
    "047-split-does-not-move": split_does_not_move,
    "048-bit-order-and-last-bit": bit_order,
    "049-shard-cut-by-a-kill": shard_cut_by_a_kill,
    "055-killed-and-resumed": killed_and_resumed,
    "057-order-of-the-folder": order_of_the_folder,
    "059-archive-paths": archive_paths,
    "060-archive-that-swells": archive_that_swells,
    "063-hdf5-that-points-elsewhere": points_elsewhere,
}


@pytest.mark.parametrize("name", RUN)
def test_case(name: str, tmp_path: Path) -> None:
    folder = CASES / name
    expected = Expected(name, json_block((folder / "expect.md").read_text("utf-8")), NOT_YET)
    RUN[name](Case(folder, expected, tmp_path))
    expected.require_all_compared()


def test_every_case_is_run_or_named_as_not_yet_run() -> None:
    for name, reason in NOT_YET.items():
        say(f"not yet run: {name}: {reason}")
    whole = {name for name in NOT_YET if "." not in name}
    assert not whole & set(RUN)
    assert whole | set(RUN) == {folder.name for folder in CASES.iterdir() if folder.is_dir()}
    for name in set(NOT_YET) - whole:
        case, _, key = name.partition(".")
        assert case in RUN
        assert key in json_block((CASES / case / "expect.md").read_text("utf-8"))


def test_a_key_that_nothing_compares_is_a_failure() -> None:
    expected = Expected("made-up", {"a": 1, "b": {"c": 2, "d": 3}, "later": 4}, ["made-up.later"])
    expected.check("a", 1)
    with pytest.raises(AssertionError, match="made-up: nothing compares b"):
        expected.require_all_compared()
    inner = expected.table("b")
    inner.check("c", 2)
    with pytest.raises(AssertionError, match=r"made-up\.b: nothing compares d"):
        expected.require_all_compared()
    with pytest.raises(AssertionError, match=r"made-up\.b\.d: 4, not 3"):
        inner.check("d", 4)
    with pytest.raises(KeyError):
        expected.check("unknown", 1)
