"""Composed schemes: their groups are those of the named schemes; what is refused; builds of them."""

import json
import re
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from random_games import games_of, ko_fight
from scheme_rows import all_rows, shard_texts
from scheme_variants import FRAME, LINES
from stages import sgf_of, write_games

from pipeline.build import build, check_config
from pipeline.compose import COMPOSED, compose, configured_scheme, group_lines, stored_scheme
from pipeline.config import ConfigError, Encode, make_config
from pipeline.encode import encode_whole
from pipeline.load import open_dataset
from pipeline.rules import RULE_SETS
from pipeline.schemes import SCHEMES, find_scheme
from pipeline.verify import verify

# Every group, the number it has where none is written and the largest (1: it takes none), how many planes it has
# beside that number, and where a named scheme has the same planes, their names as patterns of regular expressions.
GROUPS: dict[str, tuple[int, int, int, str, str]] = {
    "stones": (1, 16, 2, "agz17", r"(own|opp)_0"),
    "black_white": (1, 16, 2, "board", r"(black|white)_0"),
    "empty": (1, 1, 1, "board", "empty"),
    "ones": (1, 1, 1, "minigo21", "ones"),
    "zeros": (1, 1, 1, "alphago48", "zeros"),
    "black_to_move": (1, 1, 1, "leela_zero18", "black_to_move"),
    "white_to_move": (1, 1, 1, "leela_zero18", "white_to_move"),
    "ages": (8, 16, 1, "alphago48", r"age_.*"),
    "recent": (8, 15, 1, "minigo21", r"move_.*"),
    "liberties": (8, 16, 1, "minigo21", r"liberties_.*"),
    "side_liberties": (4, 16, 2, "alphago48_history", r"(own|opp)_liberties_.*"),
    "last_liberties": (1, 1, 1, "minigo21", "would_capture"),
    "ko": (1, 1, 1, "seven_plane", "ko"),
    "bans": (1, 1, 1, "katago_v7", "ko_banned"),
    "legal": (1, 1, 1, "gnugo", "legal"),
    "captures": (7, 16, 1, "alphago48", r"capture_.*"),
    "self_atari": (8, 16, 1, "alphago48", r"self_atari_.*"),
    "liberties_after": (8, 16, 1, "alphago48", r"liberties_after_.*"),
    "enemy_liberties": (8, 16, 1, "gnugo", r"enemy_liberties_.*"),
    "targets": (4, 16, 1, "alphago48_history", r"own_target_.*"),
    "opp_targets": (4, 16, 1, "alphago48_history", r"opp_target_.*"),
    "can_capture": (1, 1, 1, "gnugo", "can_capture"),
    "can_connect": (1, 1, 1, "gnugo", "can_connect"),
    "makes_ko": (1, 1, 1, "katago22_article", "own_makes_ko"),
    "opp_makes_ko": (1, 1, 1, "katago22_article", "opp_makes_ko"),
    "sensible": (1, 1, 1, "alphago48", "sensible"),
    "creates_eye": (1, 1, 1, "gnugo", "creates_eye"),
    "ladders": (1, 1, 8, "alphago48_strings", r"(own|opp)_ladder.*"),
    "ladder_moves": (1, 1, 2, "alphago48", r"ladder_.*"),
    "areas": (1, 1, 2, "katago_v7", r"(own|opp)_area"),
    "patterns": (1, 1, 11, "gnugo", r"pattern_.*"),
    "edge": (4, 12, 1, "alphago48_history", r"edge_.*"),
    "lines": (1, 1, 3, "alphago48_strings", "diagonals|middle_lines|centre"),
    "rules": (1, 1, 6, "katago22_article", r".*_scoring|suicide_legal|simple_ko|.*_superko"),
    "komi": (1, 1, 2, "katago22_article", r"komi_.*"),
    "handicap": (1, 1, 1, "katago22_article", "handicap"),
    "katago_globals": (1, 1, 0, "katago_v7", "(?!)"),
}
NUMBERED = [name for name, (_, most, *_) in GROUPS.items() if most > 1]
GAMES = games_of(LINES)


def drawn(names: list[str]) -> tuple[dict[str, NDArray[np.uint8]], NDArray[np.float32]]:
    """Return the packed planes of a composed scheme by name, and its globals."""
    scheme = compose(names)
    planes, numbers = encode_whole(scheme, GAMES, *all_rows(GAMES), FRAME)
    return dict(zip(scheme.plane_names, np.moveaxis(planes, 1, 0), strict=True)), numbers


def of_scheme(name: str, pattern: str) -> dict[str, NDArray[np.uint8]]:
    """Return the packed planes of a named scheme whose names match."""
    scheme = SCHEMES[name]
    planes, _ = encode_whole(scheme, GAMES, *all_rows(GAMES), FRAME)
    every = zip(scheme.plane_names, np.moveaxis(planes, 1, 0), strict=True)
    return {plane: points for plane, points in every if re.fullmatch(pattern, plane)}


def assert_same(found: dict[str, NDArray[np.uint8]], expected: dict[str, NDArray[np.uint8]]) -> None:
    assert list(found) == list(expected)
    assert [name for name in found if not np.array_equal(found[name], expected[name])] == []


def count(name: str, number: int) -> int:
    """Return how many planes a group has with a number."""
    _, most, planes, _, _ = GROUPS[name]
    if name == "captures":
        return number + 1  # none is a number, too
    return planes * number if most > 1 else planes


@pytest.mark.parametrize("name", [name for name in GROUPS if name != "katago_globals"])
def test_a_group_has_the_planes_of_a_named_scheme(name: str) -> None:
    usual, _, _, scheme, pattern = GROUPS[name]
    planes, numbers = drawn([name])
    assert len(planes) == count(name, usual)
    assert numbers.shape == (len(GAMES.moves), 0)
    assert_same(planes, of_scheme(scheme, pattern))


def test_the_globals_of_katago() -> None:
    _, numbers = drawn(["ko", "katago_globals"])
    _, expected = encode_whole(SCHEMES["katago_v7"], GAMES, *all_rows(GAMES), FRAME)
    assert numbers.tobytes() == expected.tobytes()
    assert compose(["ko", "katago_globals"]).global_names == SCHEMES["katago_v7"].global_names


@pytest.mark.parametrize("name", NUMBERED)
def test_a_number_says_how_many(name: str) -> None:
    """The usual number may be written; of one-hot planes a smaller number gathers the larger ones in its last plane,
    of boards and moves it shows the last."""
    usual, most, _, _, _ = GROUPS[name]
    assert compose([name]).plane_names == compose([f"{name}={usual}"]).plane_names
    largest, _ = drawn([f"{name}={most}"])
    assert len(largest) == count(name, most)
    for number in (1, 2, 3, usual, most - 1):
        planes, _ = drawn([f"{name}={number}"])
        assert len(planes) == count(name, number)
        if name in {"stones", "black_white", "recent"}:
            assert all(np.array_equal(plane, largest[each]) for each, plane in planes.items())
            last = number if name == "recent" else number - 1
            assert [each for each in largest if int(each.split("_")[-1]) <= last] == list(planes)
            continue
        sides = 2 if name == "side_liberties" else 1
        halves = np.array_split(np.array(list(largest.values())), sides)
        for found, whole in zip(np.array_split(np.array(list(planes.values())), sides), halves, strict=True):
            assert np.array_equal(found[:-1], whole[: len(found) - 1])
            assert np.array_equal(found[-1], np.bitwise_or.reduce(whole[len(found) - 1 :]))
        assert all(each.endswith("_or_more") for each in list(planes)[len(planes) // sides - 1 :: len(planes) // sides])


def test_all_groups_are_known() -> None:
    """Each is told in a line, with its number; and all of them together are one scheme."""
    lines = group_lines()
    assert [line.split()[0] for line in lines] == list(GROUPS)
    for line, (usual, most, *_) in zip(lines, GROUPS.values(), strict=True):
        said = f"(N = {usual} unless written, {most} at most)"
        assert (said in line) == (most > 1)
    every = compose(list(GROUPS))
    assert len(every.planes) == sum(count(name, usual) for name, (usual, *_) in GROUPS.items())
    assert (every.history, every.recent, every.komi) == (2, 8, True)


def test_groups_are_in_the_order_that_is_written() -> None:
    names = ["ko", "stones=3", "black_to_move", "liberties=2"]
    scheme = compose(names)
    boards = ("own_0", "opp_0", "own_1", "opp_1", "own_2", "opp_2")
    liberties = ("liberties_1", "liberties_2_or_more")
    assert scheme.plane_names == ("ko", *boards, "black_to_move", *liberties)
    assert (scheme.name, scheme.version, scheme.options) == (COMPOSED, 1, (("planes", ",".join(names)),))
    assert (scheme.history, scheme.recent, scheme.komi) == (2, 0, False)
    assert compose(names[::-1]).plane_names == (*liberties, "black_to_move", *boards, "ko")
    forward, _ = drawn(names)
    backward, _ = drawn(names[::-1])
    assert_same({name: backward[name] for name in forward}, forward)


NAMED = {
    "board": "black_white empty",
    "agz17": "stones=8 black_to_move",
    "agz17_grouped": "black_white=8 black_to_move",
    "seven_plane": "side_liberties=3 ko",
    "minigo21": "stones empty ones liberties recent last_liberties",
    "alphago49": "stones empty ones ages liberties captures self_atari liberties_after ladder_moves sensible zeros "
    "black_to_move",
    "gnugo": "patterns can_capture can_connect creates_eye liberties_after enemy_liberties edge=5 legal",
    "katago22_article": "black_white empty ones black_to_move recent=5 ko makes_ko opp_makes_ko rules komi handicap",
}


@pytest.mark.parametrize("scheme", NAMED)
def test_named_schemes_composed(scheme: str) -> None:
    names = NAMED[scheme].split()
    assert_same(drawn(names)[0], of_scheme(scheme, ".*"))
    composed, named = compose(names), SCHEMES[scheme]
    assert (composed.history, composed.recent, composed.komi) == (named.history, named.recent, named.komi)


# ---- what is refused

KNOWN = ", ".join(GROUPS)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["stones", "libertys"], f"group of planes is named 'libertys' (did you mean 'liberties'?); known are {KNOWN}"),
        (["own_0"], f"no group of planes is named 'own_0'; known are {KNOWN}"),
        ([""], f"no group of planes is named ''; known are {KNOWN}"),
        (["stones,ko"], "no group of planes is named 'stones,ko' (did you mean 'stones'?)"),
        (["Stones"], "no group of planes is named 'Stones' (did you mean 'stones'?)"),
        (["stones "], "no group of planes is named 'stones ' (did you mean 'stones'?)"),
        (["=8"], "no group of planes is named ''"),
        (["ko=1"], "the group ko takes no number: 'ko=1'"),
        (["ko="], "the group ko takes no number: 'ko='"),
        *(
            ([f"{name}={number}"], f"the number of the group {name} is 1 to {GROUPS[name][1]}: '{name}={number}'")
            for name in NUMBERED
            for number in (0, GROUPS[name][1] + 1)
        ),
        *(
            ([f"stones={number}"], f"the number of the group stones is 1 to 16: 'stones={number}'")
            for number in ("", "-1", "1.0", "+2", " 2", "2 ", "two", "\u0662", "0x1", "2=2", "00019999", "9" * 5000)
        ),
        (["stones", "stones=8"], "two groups have the plane 'own_0': name each group once"),
        (["ko", "ones", "ko"], "two groups have the plane 'ko': name each group once"),
        (["ko", "katago_globals", "katago_globals"], "two groups have the global 'pass_1': name each group once"),
        (["katago_globals"], "a composed scheme needs a group with planes"),
        ([], "a composed scheme needs a group with planes"),
    ],
)  # fmt: skip
def test_what_is_refused(names: list[str], said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        compose(names)
    if names:
        with pytest.raises(ConfigError, match=re.escape(said)):
            check_config(make_config({"encode": {"planes": names}}, "test"))


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        (
            {"scheme": "board", "planes": ["ko"]},
            "encode.scheme = 'board' and encode.planes: name a scheme or compose one",
        ),
        ({"scheme": "nix", "planes": ["ko"]}, "encode.scheme = 'nix' and encode.planes: name a scheme or compose one"),
        (
            {"planes": ["ko"], "options": {"side": "both"}},
            "encode.options belong to a named scheme, not to encode.planes",
        ),
        ({"scheme": COMPOSED}, "unknown scheme 'composed'"),
    ],
)
def test_a_configuration_names_a_scheme_or_composes_one(tables: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        configured_scheme(Encode.model_validate(tables))
    with pytest.raises(ConfigError, match=re.escape(said)):
        check_config(make_config({"encode": tables}, "test"))


def test_schemes_of_a_configuration_and_of_a_data_set() -> None:
    assert configured_scheme(Encode()) is SCHEMES["agz17"]
    chosen = configured_scheme(Encode(scheme="agz17", options={"side": "both"}))
    assert chosen.options == (("before_start", "empty"), ("side", "both"))
    for scheme in ("agz17", COMPOSED):  # the default, which is not told from no scheme at all, and its own name
        assert configured_scheme(Encode(scheme=scheme, planes=("ko", "stones=2"))).name == COMPOSED
    for scheme in (compose(["ko", "stones=02"]), chosen, find_scheme("gnugo", {"legality": "rules"})):
        again = stored_scheme(scheme.name, dict(scheme.options))
        assert (again.name, again.version, again.options) == (scheme.name, scheme.version, scheme.options)
        assert again.plane_names == scheme.plane_names
    for name, options in ((COMPOSED, {}), (COMPOSED, {"planes": "ko,kos"}), ("gnugo", {"x": 1}), ("gnu", {})):
        with pytest.raises(ValueError, match=r"known are|has no option"):
            stored_scheme(name, options)


# ---- builds

NAMES = ["stones=2", "bans", "liberties=3", "rules", "katago_globals"]


@pytest.mark.parametrize("file_format", ["parquet", "hdf5"])
def test_a_build_of_a_composed_scheme(file_format: str, tmp_path: Path) -> None:
    fights = [ko_fight(Random(number), (4, 5), 8, RULE_SETS["tromp-taylor"]) for number in range(4)]
    games = {f"{number}.sgf": sgf_of(line, RU="Tromp-Taylor") for number, line in enumerate(fights)}
    tables = {
        "input": {"paths": [str(write_games(tmp_path / "in", games))]},
        "filter": {"sizes": ["4x5"], "problem_moves": 0},
        "encode": {"planes": NAMES},
        "output": {"path": str(tmp_path / "out"), "format": file_format},
        "augment": {"mode": "random"},
        "run": {"workers": 0},
    }
    folder, scheme = build(make_config(tables, "test")).path, compose(NAMES)
    dataset = open_dataset(folder)
    assert dataset.manifest.positions.stored >= 20
    assert (dataset.scheme.name, dataset.scheme.options) == (COMPOSED, {"planes": ",".join(NAMES)})
    assert (dataset.planes, dataset.scheme.globals) == (scheme.plane_names, scheme.global_names)
    for text in shard_texts(folder):
        facts = json.loads(text)
        assert (facts["scheme"], facts["options"]) == (COMPOSED, dict(scheme.options))
        assert facts["planes"] == list(scheme.plane_names)
    assert [check.faults for check in verify(folder)] == [()] * 7
    assert stored_scheme(dataset.scheme.name, dataset.scheme.options).plane_names == scheme.plane_names
    again = build(make_config(tables, "test"))  # nothing is left to do
    assert (again.path, again.seconds) == (folder, {})
