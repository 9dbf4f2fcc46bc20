"""Handicap stones that a record writes as moves, or not at all. The records are made here."""

import numpy as np
import pytest

from pipeline.config import Config
from pipeline.coordinates import point_name
from pipeline.game import Game
from pipeline.handicaps import fixed_points
from pipeline.parse import Rejected, parse_member
from pipeline.reasons import Flag, Reason


def read(text: str, **parse: str) -> Game | Rejected:
    config = Config.model_validate({"parse": parse})
    (record,) = parse_member(text.encode(), config.input, config.parse, config.rules)
    return record


def game(text: str, **parse: str) -> Game:
    record = read(text, **parse)
    assert isinstance(record, Game), record
    return record


def stones(record: Game) -> str:
    """The Black stones set up before the first move, by human names."""
    assert set(record.setup_colours.tolist()) <= {1}
    assert set(record.setup_plies.tolist()) <= {0}
    return " ".join(point_name(point, record.rows, record.cols) for point in record.setup_points.tolist())


def movers(record: Game) -> str:
    return "".join(".BW"[colour] for colour in record.colours)


# The table of the Go Text Protocol, version 2, 4.1.1.
GTP = {
    2: "D4 Q16",
    3: "D4 Q16 D16",
    4: "D4 Q16 D16 Q4",
    5: "D4 Q16 D16 Q4 K10",
    6: "D4 Q16 D16 Q4 D10 Q10",
    7: "D4 Q16 D16 Q4 D10 Q10 K10",
    8: "D4 Q16 D16 Q4 D10 Q10 K4 K16",
    9: "D4 Q16 D16 Q4 D10 Q10 K4 K16 K10",
}


@pytest.mark.parametrize("number", GTP)
def test_the_points_are_those_of_the_protocol(number: int) -> None:
    points = fixed_points(19, 19, number)
    assert points is not None
    assert points.dtype == np.uint16
    assert points.tolist() == sorted(points.tolist())
    assert {point_name(point, 19, 19) for point in points.tolist()} == set(GTP[number].split())


@pytest.mark.parametrize(
    ("rows", "cols", "number", "names"),
    [
        (13, 13, 4, "D4 K10 D10 K4"),
        (13, 13, 5, "D4 K10 D10 K4 G7"),
        (9, 9, 3, "C3 G7 C7"),
        (9, 9, 9, "C3 G7 C7 G3 E5 C5 G5 E3 E7"),
        (8, 8, 4, "C3 F6 C6 F3"),
        (7, 7, 2, "C3 E5"),
        (18, 18, 4, "D4 P15 D15 P4"),
        (25, 25, 2, "D4 W22"),
        (9, 13, 2, "C3 L7"),
    ],
)
def test_other_boards(rows: int, cols: int, number: int, names: str) -> None:
    points = fixed_points(rows, cols, number)
    assert points is not None
    assert {point_name(point, rows, cols) for point in points.tolist()} == set(names.split())


@pytest.mark.parametrize(
    ("rows", "cols", "number"), [(19, 19, 1), (19, 19, 10), (8, 8, 5), (18, 18, 5), (7, 7, 5), (6, 6, 2), (5, 19, 2)]
)
def test_boards_without_such_points(rows: int, cols: int, number: int) -> None:
    assert fixed_points(rows, cols, number) is None


def test_stones_that_are_not_written_are_put_on_the_fixed_points() -> None:
    record = game("(;GM[1]SZ[19]HA[3];W[cc];B[qq];W[dc])")
    assert sorted(stones(record).split()) == ["D16", "D4", "Q16"]
    assert (movers(record), record.handicap, record.flags) == ("WBW", 3, (Flag.HANDICAP_PLACED,))
    literal = game("(;GM[1]SZ[19]HA[3];W[cc];B[qq];W[dc])", handicap_moves="literal")
    assert (stones(literal), movers(literal), literal.flags) == ("", "WBW", (Flag.HANDICAP_MISSING,))


def test_a_later_setup_stays_where_it_is() -> None:
    record = game("(;GM[1]SZ[9]HA[2];W[cc];AE[cc];B[dd])")
    assert record.setup_plies.tolist() == [0, 0, 1]
    assert set(record.flags) == {Flag.HANDICAP_PLACED, Flag.SETUP_IN_MID_GAME}


@pytest.mark.parametrize(
    ("text", "setup", "colours", "flags"),
    [
        ("HA[2]AB[dp][pd];W[cc]", "Q16 D4", "W", ()),
        ("HA[2];AB[dp][pd];W[cc]", "Q16 D4", "W", ()),
        ("HA[2]AB[aa][bb];W[cc]", "A19 B18", "W", ()),
        ("HA[0];W[cc]", "", "W", ()),
        ("HA[1];W[cc]", "", "W", ()),
        ("HA[2];B[dp];B[pd];W[cc]", "", "BBW", (Flag.COLOUR_TWICE,)),
        ("HA[2];B[dp];W[cc]", "", "BW", (Flag.HANDICAP_MISSING,)),
        ("HA[2]", "", "", ()),
    ],
)
def test_records_that_are_left_as_they_are(text: str, setup: str, colours: str, flags: tuple[Flag, ...]) -> None:
    record = game(f"(;GM[1]SZ[19]{text})")
    assert (stones(record), movers(record), record.flags) == (setup, colours, flags)


def test_a_handicap_that_has_no_points_is_unknown() -> None:
    record = read("(;GM[1]SZ[6]HA[2];W[cc])")
    assert isinstance(record, Rejected)
    assert record.reason is Reason.HANDICAP_UNKNOWN
    assert record.detail == 'HA[2], no stones, and White moves first on 6x6; parse.handicap_moves = "auto"'
    assert movers(game("(;GM[1]SZ[6]HA[2];W[cc])", handicap_moves="literal")) == "W"


FOX = "(;GM[1]SZ[19]AP[foxwq]RU[Chinese]RE[W+R]"


@pytest.mark.parametrize(
    ("komi", "expected", "flags"),
    [
        ("KM[375]", 0.0, {Flag.KOMI_OVERRIDDEN}),
        ("KM[6.5]", 0.0, {Flag.KOMI_OVERRIDDEN}),
        ("KM[0]", 0.0, set()),
        ("KM[0.5]", 0.5, set()),
        ("", 0.0, {Flag.KOMI_OVERRIDDEN}),
    ],
)
@pytest.mark.parametrize("handicap", ["HA[0]", ""])
def test_moves_of_a_listed_server_that_are_stones(handicap: str, komi: str, expected: float, flags: set[Flag]) -> None:
    record = game(f"{FOX}{handicap}{komi};B[pd];B[dp];W[cc];B[qq];W[dd])")
    assert stones(record) == "Q16 D4"
    assert (movers(record), record.handicap, record.komi) == ("WBW", 2, expected)
    assert set(record.flags) - {Flag.KOMI_REPAIRED} == {Flag.HANDICAP_FOLDED} | flags


def test_a_default_komi_is_for_even_games() -> None:
    config = Config.model_validate({"rules": {"komi_default": 7.5}})
    (record,) = parse_member(f"{FOX};B[pd];B[dp];W[cc])".encode(), config.input, config.parse, config.rules)
    assert isinstance(record, Game)
    assert (record.komi, set(record.flags)) == (0.0, {Flag.HANDICAP_FOLDED, Flag.KOMI_OVERRIDDEN})


def test_moves_are_left_as_moves() -> None:
    moves = ";B[pd];B[dp];B[cd];W[qn];B[nq]"
    for text, parse in (
        (f"{FOX}HA[0]{moves})", "literal"),
        (f"{FOX}HA[3]{moves})", "auto"),
        (f"(;GM[1]SZ[19]AP[other]HA[0]{moves})", "auto"),
        (f"{FOX};AB[aa]{moves})", "auto"),
    ):
        record = game(text, handicap_moves=parse)
        assert movers(record) == "BBBWB"
        assert record.moves[:1].tolist() == [3 * 19 + 15]
        assert Flag.HANDICAP_FOLDED not in record.flags
    ten = "".join(f";B[{letter}a]" for letter in "abcdefghij")
    for moves in (";B[pd];W[dp]", ";B[pd];B[dp]", ";B[pd];B[];W[dp]", ";B[pd];B[pd];W[dp]", f"{ten};W[pp]"):
        assert Flag.HANDICAP_FOLDED not in game(f"{FOX}HA[0]{moves})").flags


def test_what_follows_the_stones_keeps_its_place() -> None:
    record = game(f"{FOX};B[pd];B[dp];W[cc];B[qq];AE[qq];W[dd];W[ee])")
    assert record.setup_plies.tolist() == [0, 0, 2]
    assert movers(record) == "WBWW"
    assert Flag.COLOUR_TWICE in record.flags
