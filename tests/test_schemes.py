"""Options of schemes: against their definitions, in built data sets, and turned."""

import json
import re
from fnmatch import fnmatch
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from random_games import RULES, Line, games_of, ko_fight, positions, random_record, under
from scheme_rows import assert_turns, encode_all, shard_texts, unpacked
from scheme_variants import CHANGED, COMPOSED, FRAME, LINES, WITHOUT_JIT, Variant, rows_of
from slow_ladders import TooDeepError
from slow_planes import SLOW_SCHEMES, TURNS, banned, dense
from stages import sgf_of, write_games

from pipeline.build import build
from pipeline.config import ConfigError, make_config
from pipeline.load import open_dataset
from pipeline.replay import replay
from pipeline.schemes import SCHEMES, find_scheme, scheme_options
from pipeline.verify import verify

SUPERKO = [rules for rules in RULES if rules.ko != "simple"]

NATURE = {"ladder_escape": ("own", "counter"), "legality": ("simple", "rules"), "setup_age": ("oldest", "none")}
OPTIONS: dict[str, dict[str, tuple[str, ...]]] = {
    "board": {},
    "alphago48": NATURE,
    "alphago49": NATURE,
    "agz17": {"before_start": ("empty", "oldest"), "side": ("black", "both")},
    "agz17_grouped": {},
    "leela_zero18": {},
    "seven_plane": {},
    "minigo21": {},
    "gnugo": {"legality": ("simple", "rules")},
    "alphago48_strings": {"legality": ("simple", "rules")},
    "alphago48_history": {"legality": ("simple", "rules")},
    "katago22_article": {"legality": ("simple", "rules")},
    "katago_v7": {},
}


def test_the_options_of_the_schemes() -> None:
    """The first value is the default; a scheme says which values it was made with, all of them."""
    assert {name: {one.name: one.values for one in scheme_options(name)} for name in SCHEMES} == OPTIONS
    for name, options in OPTIONS.items():
        assert SCHEMES[name].options == tuple((option, values[0]) for option, values in options.items())
        for option, values in options.items():
            for value in values:
                chosen = dict(find_scheme(name, {option: value}).options)
                assert chosen == {**dict(SCHEMES[name].options), option: value}
        assert all(one.meaning for one in scheme_options(name))


@pytest.mark.parametrize("variant", CHANGED, ids=str)
def test_every_value_of_an_option_is_as_the_definition_says(variant: Variant) -> None:
    """And it is not as the default says, somewhere."""
    planes, scheme = rows_of(variant), variant.scheme
    compared = other = 0
    for at, seen in enumerate(seen for line in LINES for seen in positions(line, TURNS)):
        size = seen.line.rows, seen.line.cols
        try:
            expected = SLOW_SCHEMES[variant.name](seen, size, **dict(variant.options))
            plain = SLOW_SCHEMES[variant.name](seen, size)
        except TooDeepError:
            continue
        assert tuple(expected) == scheme.plane_names
        wrong = np.argwhere(dense(expected, FRAME) != planes[at])
        assert not len(wrong), (seen.line, at, [(tuple(expected)[plane], row, col) for plane, row, col in wrong])
        compared += 1
        other += expected != plain
    assert compared > 0.8 * len(planes)
    assert other > 3


@pytest.mark.parametrize("name", [name for name, options in OPTIONS.items() if options])
def test_default_values_are_those_of_the_scheme_alone(name: str) -> None:
    scheme = find_scheme(name, {option: values[0] for option, values in OPTIONS[name].items()})
    plain = SCHEMES[name]
    assert (scheme.options, scheme.planes, scheme.version) == (plain.options, plain.planes, plain.version)
    assert (scheme.history, scheme.recent, scheme.komi) == (plain.history, plain.recent, plain.komi)
    planes, _ = encode_all(scheme, LINES, FRAME)
    assert np.array_equal(unpacked(planes, FRAME), rows_of(Variant(name)))


# Planes of own legal moves: what superko bans is left out of these, and of no others.
OWN_MOVES = {
    "alphago48": "capture_* self_atari_* liberties_after_* ladder_capture ladder_escape sensible",
    "gnugo": "can_capture can_connect creates_eye liberties_after_* enemy_liberties_* legal",
    "alphago48_strings": "enemy_liberties_* liberties_after_*",
    "alphago48_history": "own_target_* legal",
    "katago22_article": "own_makes_ko",
}
OWN_MOVES["alphago49"] = OWN_MOVES["alphago48"]
OPP_MOVES = {f"opp_target_{size}" for size in ("1", "2", "3", "4_or_more")} | {"opp_makes_ko"}


@pytest.mark.parametrize("name", OWN_MOVES)
def test_superko_is_left_out_of_the_planes_of_own_moves_alone(name: str) -> None:
    simple, by_rules = rows_of(Variant(name)), rows_of(Variant(name, (("legality", "rules"),)))
    bans = np.zeros((len(simple), *FRAME), dtype=np.bool_)
    for at, seen in enumerate(seen for line in LINES for seen in positions(line)):
        for point in banned(seen):
            bans[(at, *point)] = True
    assert WITHOUT_JIT or bans.any(axis=(1, 2)).sum() > 20
    opp_moves = [number for number, plane in enumerate(SCHEMES[name].plane_names) if plane in OPP_MOVES]
    assert WITHOUT_JIT or not opp_moves or (simple[:, opp_moves] & bans[:, None]).any()
    for number, plane in enumerate(SCHEMES[name].plane_names):
        move_plane = any(fnmatch(plane, pattern) for pattern in OWN_MOVES[name].split())
        left = simple[:, number] & ~bans if move_plane else simple[:, number]
        assert np.array_equal(by_rules[:, number], left), plane


def test_a_move_that_was_made_is_legal() -> None:
    """Also one out of turn, and under every rule; but for suicide, which is in no plane of moves."""
    legal = rows_of(Variant("gnugo", (("legality", "rules"),)))[:, SCHEMES["gnugo"].plane_names.index("legal")]
    games, made = games_of(LINES), 0
    assert not replay(games).faults.any()
    seen = [position for line in LINES for position in positions(line)]
    for at, (now, later) in enumerate(zip(seen, [*seen[1:], None], strict=True)):
        point, colour = now.line.moves[now.ply]
        if later is None or later.ply <= max(now.ply, later.begin) or point is None:
            continue
        if (point, colour) in later.boards[0]:
            made += 1
            assert legal[at, *point], (now.line, now.ply)
        else:
            assert not legal[at, *point]
    assert made > (100 if WITHOUT_JIT else 500)


@pytest.mark.parametrize(
    ("setup", "handicap", "shown"),
    [
        ("", 0, False),
        ("", 1, False),
        ("", 2, True),
        ("B00", 0, False),
        ("B00 B11", 0, True),
        ("B00 B00", 0, False),
        ("B00 B11 W22", 0, False),
        ("B00 B11 W22", 2, True),
        ("W22 B00 B11 -22", 0, True),
        ("B00 B11 -11", 0, False),
        ("B00 W11 B11", 0, True),
        ("B00 B11 W11", 0, False),
        ("B00 W11", 0, False),
        ("W00 W11", 0, False),
    ],
)
def test_what_a_handicap_is(setup: str, handicap: int, shown: bool) -> None:
    """Two stones or more by the record, or Black's at the start and none of White's; of two on a point the last counts.

    Stones that are set up later make none, and none undo it.
    """
    stones = tuple((0, (int(one[1]), int(one[2])), "-BW".index(one[0])) for one in setup.split())
    later = tuple((1, (row, 4), colour) for row, colour in ((0, 1), (1, 1), (3, 2 if shown else 1)))
    line = Line(5, 5, (((4, 0), 1), ((4, 4), 2)), (*stones, *later), handicap=handicap)
    others = [Line(5, 5, (((4, 0), 1),), ((0, (0, 0), 1), (0, (1, 1), 1))), line, Line(5, 5, (((4, 0), 1),))]
    planes, _ = encode_all(SCHEMES["katago22_article"], others, (5, 5))
    flags = planes[:, SCHEMES["katago22_article"].plane_names.index("handicap")].any(axis=1)
    assert flags.tolist() == [True, shown, shown, False]


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("board", {"legality": "rules"}, "scheme board has no option 'legality'; it has none"),
        (
            "alphago48",
            {"legalty": "rules"},
            "scheme alphago48 has no option 'legalty' (did you mean 'legality'?); it has ladder_escape, legality, "
            "setup_age",
        ),
        ("agz17", {"xyz": 1}, "scheme agz17 has no option 'xyz'; it has before_start, side"),
        ("agz17", {"side": "white"}, "option side of scheme agz17 is 'black' or 'both', not 'white'"),
        ("gnugo", {"legality": True}, "option legality of scheme gnugo is 'simple' or 'rules', not True"),
        ("gnugo", {"legality": 1}, "option legality of scheme gnugo is 'simple' or 'rules', not 1"),
        ("katago_v7", {"ko": "simple"}, "scheme katago_v7 has no option 'ko'; it has none"),
        ("agz71", {}, "unknown scheme 'agz71' (did you mean 'agz17'?); known are board, alphago48"),
    ],
)
def test_what_is_refused(name: str, options: dict[str, object], said: str, tmp_path: Path) -> None:
    tables = {"encode": {"scheme": name, "options": options}, "input": {"paths": [str(tmp_path)]}}
    with pytest.raises(ValueError, match=re.escape(said)):
        find_scheme(name, options)
    with pytest.raises(ConfigError, match=re.escape(said)):
        build(make_config(tables, "test"))


@pytest.fixture(scope="module")
def superko_games(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Games in which superko bans a point, stones are set up, and history is short: every option shows."""
    rng = Random("build")
    fights = [ko_fight(rng, (5, 5), 8, rules) for rules in SUPERKO[:2]]
    games = {
        f"{number}.sgf": sgf_of(line, RU="Tromp-Taylor", KM=str(6.5 + number), HA="2")
        for number, line in enumerate(under(line, SUPERKO[0]) for line in fights)
    }
    return write_games(tmp_path_factory.mktemp("options") / "in", games)


@pytest.mark.parametrize(
    ("name", "options", "file_format"),
    [
        ("alphago48", {"ladder_escape": "counter", "legality": "rules", "setup_age": "none"}, "parquet"),
        ("agz17", {"before_start": "oldest", "side": "both"}, "hdf5"),
        ("katago22_article", {"legality": "rules"}, "parquet"),
        ("katago_v7", {}, "hdf5"),
    ],
)
def test_a_build_with_options(
    name: str, options: dict[str, str], file_format: str, superko_games: Path, tmp_path: Path
) -> None:
    """Options stand in the manifest and in every shard; ``verify`` encodes with them, and sees where they are wrong."""
    tables: dict[str, Any] = {
        "input": {"paths": [str(superko_games)]},
        "filter": {"sizes": [5], "problem_moves": 0},
        "encode": {"scheme": name, "options": options},
        "output": {"path": str(tmp_path / "out"), "format": file_format},
        "run": {"workers": 0},
    }
    folder = build(make_config(tables, "test")).path
    scheme = find_scheme(name, options)
    dataset = open_dataset(folder)
    assert dict(dataset.scheme.options) == dict(scheme.options) == {**dict(SCHEMES[name].options), **options}
    assert dataset.scheme.planes == scheme.plane_names
    assert dataset.scheme.globals == scheme.global_names
    texts = shard_texts(folder)
    assert len(texts) == len(dataset.manifest.shards) > 0
    for text in texts:
        facts = json.loads(text)
        assert facts["options"] == dict(scheme.options)
        assert (facts["planes"], facts["globals"]) == (list(scheme.plane_names), list(scheme.global_names))
    assert [check.faults for check in verify(folder)] == [()] * 7
    for option, value in options.items():
        change_option(folder, option, OPTIONS[name][option][0])
        assert any(check.faults for check in verify(folder)), option
        change_option(folder, option, value)


def change_option(folder: Path, option: str, value: str) -> None:
    """Change an option in the manifest."""
    path = folder / "dataset.json"
    tables = json.loads(path.read_text())
    tables["scheme"]["options"][option] = value
    path.write_text(json.dumps(tables))


# ---- turned games


@pytest.mark.parametrize("variant", [*CHANGED, *COMPOSED], ids=str)
def test_options_and_composed_schemes_turn_with_the_board(variant: Variant) -> None:
    """The schemes themselves are turned in ``test_encode``."""
    rng, scheme = Random(f"turned {variant}"), variant.scheme
    plies = 8 if WITHOUT_JIT else 30
    for number, (size, frame) in enumerate([((3, 3), (3, 3)), ((2, 5), (5, 6)), ((6, 6), (6, 8)), ((7, 4), (7, 4))]):
        assert_turns(scheme, random_record(rng, size, plies, (0, plies // 2), rules=SUPERKO[number]), frame)
    assert_turns(scheme, ko_fight(rng, (4, 4), 6, SUPERKO[4]), (4, 4))
    assert_turns(scheme, ko_fight(rng, (3, 5), 6, SUPERKO[0]), (3, 5))
