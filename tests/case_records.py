"""The cases of kinds K1 to K4: what real files look like, the rules, the planes, results and values."""

import math
import shutil
from typing import Any

import numpy as np
import pyarrow as pa
from case_runner import ALL_TRAIN, Case, Game, plane_points, sgf_point, square

from pipeline.coordinates import point_name
from pipeline.table import PART_SCHEMA, games_of
from pipeline.trace import trace
from pipeline.whatif import trace_moves

# What the cases call an illegal move is five reasons here.
_ILLEGAL = {"off-board", "occupied", "ko", "superko", "suicide"}


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
    case.expected.check("flag", "charset-mismatch" if "charset-mismatch" in game["flags"] else None)


def non_number_header(case: Case) -> None:
    data = case.build()
    for name in case.expected.keys:
        game, facts = data.kept(name), case.expected.table(name)
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
        game = data.kept(name)
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
    case.expected.check_points("black", stones[0])
    case.expected.check_points("white", stones[1])


def size_spellings(case: Case) -> None:
    data = case.build()
    rect = data.kept("rect")
    assert (rect["board_rows"], rect["board_cols"], data.moves(rect)) == (13, 9, ["cc", "gg", "cl", "gl"])
    case.expected.check_other("rect", "rejected unsupported-size", data.positions(rect), 4)
    pair, none, spaced = (data.kept(name) for name in ("square-pair", "none", "spaced"))
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
        captured.check(move, data.captures(game)[int(move)])
    kos = case.build(encode={"scheme": "seven_plane"})
    at_ko = plane_points(kos.plane(kos.games[0], 12, "ko"))
    case.expected.check("ko_point_before_13", min(at_ko) if at_ko else None)


def capture_first(case: Case) -> None:
    data = case.build()
    game = case.only(data)
    assert [data.stones(game, 13)] == case.boards()
    by_move = data.captures(game)
    case.expected.check("captured_by_black", sum(taken for move, taken in by_move.items() if move % 2 == 1))
    case.expected.check("captured_by_white", sum(taken for move, taken in by_move.items() if move % 2 == 0))


def who_moves_first(case: Case) -> None:
    data = case.build()
    for name in case.expected.keys:
        game = data.kept(name)
        assert (game["winner"], game["komi"]) == ("B", 6.5)
        assert ("player-mismatch" in game["flags"]) == (name == "pl-contradicts")
        case.expected.check(name, data.to_play(game))


def handicap_as_moves(case: Case) -> None:
    data = case.build()
    game = case.only(data)
    assert "komi-overridden" in game["flags"]
    assert data.moves(game) == ["qn", "nq", "fc", "df", "jd"]
    case.expected.check("handicap", game["handicap"])
    case.expected.check("komi", game["komi"])
    case.expected.check("to_play", data.to_play(game))
    case.expected.check_points("start_black", data.stones(game, 0)[0])
    assert data.stones(game, 0)[1] == set()
    case.expected.check("winner", game["winner"])
    literal = case.expected.table("literal")
    as_written = case.build(parse={"handicap_moves": "literal"})
    (game,) = as_written.games
    literal.check("positions", as_written.positions(game))
    literal.check("to_play", as_written.to_play(game))
    assert as_written.stones(game, 3) == data.stones(data.games[0], 0)


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
        prefix = cut.kept(name)
        assert (prefix["move"], prefix["flags"]) == (game["move"], ["illegal-tail"])
        case.expected.check(name, [game["reason"], game["move"], cut.positions(prefix)])


def hash_after_capture(case: Case) -> None:
    inputs = case.tmp / "in"
    inputs.mkdir()
    for name in ("capture.sgf", "plain.sgf"):
        shutil.copy(case.folder / name, inputs)
    # The same stones set up: what a key built from the stones alone is, for either side to move.
    for name, first in (("white", "W"), ("black", "B")):
        text = f"(;GM[1]FF[4]SZ[9]RE[B+R]AB[ab][ba][cc]AW[gg]PL[{first}];{first}[ee])"
        (inputs / f"setup-{name}.sgf").write_text(text)
    data = case.build(inputs, dedup={"reach": "board"}, split=ALL_TRAIN)
    capture, plain = (data.kept(name) for name in ("capture", "plain"))
    one, other = data.rows_of(capture)["key"], data.rows_of(plain)["key"]
    assert (data.positions(capture), data.positions(plain)) == (6, 6)
    case.expected.check("same_hash_before_moves", [move for move in range(1, 7) if one[move - 1] == other[move - 1]])
    for game in (capture, plain):
        assert [data.stones(game, 5)] == case.boards()
    black, white = data.stones(capture, 5)
    case.expected.check_points("black", black)
    case.expected.check_points("white", white)
    case.expected.check("to_play", data.to_play(capture)[5])
    assert data.rows_of(data.kept("setup-white"))["key"] == one[5]
    assert data.rows_of(data.kept("setup-black"))["key"] != one[5]
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
        game = data.kept(name)
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
    by_move = data.captures(game)
    captured.check("B", sum(taken for move, taken in by_move.items() if move % 2 == 1))
    captured.check("W", sum(taken for move, taken in by_move.items() if move % 2 == 0))
    aged = case.build(encode={"scheme": "alphago48"})
    ages = {age: "8_or_more" if age == "8+" else age for age in ("1", "2", "3", "4", "5", "6", "7", "8+")}
    planes = {age: aged.plane(aged.games[0], 299, f"age_{name}") for age, name in ages.items()}
    case.expected.check("turns_since", {age: int(plane.sum()) for age, plane in planes.items()})
    assert sorted(point for plane in planes.values() for point in plane_points(plane)) == sorted(black | white)


def self_atari_and_capture_size(case: Case) -> None:
    data = case.build(encode={"scheme": "alphago48"})
    row, col = 0, 4
    for name in case.expected.keys:
        game, found = data.kept(name), case.expected.table(name)
        assert data.positions(game) == 2
        size = game["board_cols"]
        record = games_of(pa.Table.from_pylist([game], schema=PART_SCHEMA))
        where = record, np.array([0]), np.array([2]), (size, size)
        own, point = trace_moves(*where), row * size + col
        stones, liberties = int(own.stones[0, point]), int(own.liberties[0, point])
        found.check("capture", int(own.captured[0, point]))
        found.check("self_atari", stones if liberties == 1 else 0)
        found.check("liberties_after", liberties)
        if "black_legal" in found.keys:
            found.check("black_legal", bool(trace_moves(*where, opponent=True).liberties[0, point]))
        # The stored planes show the same numbers, up to their caps.
        marked = {plane for plane in data.manifest.scheme.planes if data.plane(game, 0, plane)[row, col]}
        assert f"capture_{own.captured[0, point]}" in marked
        assert f"liberties_after_{'8_or_more' if liberties >= 8 else liberties}" in marked
        assert (f"self_atari_{stones}" in marked) == (liberties == 1)


# --- K4: results and values


def result_strings(case: Case) -> None:
    data = case.build()
    signs = {"B": 1.0, "W": -1.0, "draw": 0.0}
    for name in case.expected.keys:
        game = data.kept(name)
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
        game = data.kept(name)
        assert data.positions(game) == (4 if name == "ends-in-pass" else 3)
        assert ("info-below-root" in game["flags"]) == (name == "in-move-node")
        detail = {"score": game["margin"], "resign": "resign"}.get(game["result_kind"])
        case.expected.check(name, [game["winner"], detail] if game["winner"] else ["unknown"])
    assert data.moves(data.kept("ends-in-pass"))[-1] == "pass"


def illegal(game: Game) -> str:
    """Return the cases' word for the reason of a record with an illegal move."""
    return "illegal-move" if game["reason"] in _ILLEGAL else str(game["reason"])
