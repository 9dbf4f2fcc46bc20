"""The example that trains: on games with a rule that is easily learned, honest and sabotaged, in seconds."""

import importlib.util
import sys
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from random_games import Line
from stages import sgf_of

from pipeline.build import build
from pipeline.config import make_config
from pipeline.load import open_dataset

pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch installs it and runs these")

SIDE = 7
SCRIPT = Path(__file__).parents[1] / "examples" / "train_policy.py"


@pytest.fixture(scope="module")
def script() -> Any:
    """Return the module of the example."""
    spec = importlib.util.spec_from_file_location("train_policy", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["train_policy"] = module
    spec.loader.exec_module(module)
    return module


def toward_the_middle(row: int, col: int) -> tuple[int, int]:
    """Return the point next to (row, col) that is nearest to the middle: a rule that all symmetries leave as it is."""
    down, right = np.sign(SIDE // 2 - row), np.sign(SIDE // 2 - col)
    across = abs(SIDE // 2 - row) - abs(SIDE // 2 - col)
    return int(row + down * (across >= 0)), int(col + right * (across <= 0))


def ruled_game(number: int) -> str:
    """Return a game on 7x7: Black begins in the middle and wins, or in the corner and loses; then Black plays anywhere
    and White one step nearer to the middle, where that is free."""
    rng = Random(f"ruled {number}")
    wins = number % 2 == 0
    first = (3, 3) if wins else (0, 0)
    moves: list[tuple[tuple[int, int], int]] = [(first, 1)]
    taken = {first}
    for ply in range(1, 19):
        free = [(row, col) for row in range(SIDE) for col in range(SIDE) if (row, col) not in taken]
        reply = toward_the_middle(*moves[-1][0])
        point = reply if ply % 2 and reply in free else rng.choice(free)
        taken.add(point)
        moves.append((point, 1 + ply % 2))
    return sgf_of(Line(SIDE, SIDE, tuple(moves)), RE="B+R" if wins else "W+R")


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ruled")
    (folder / "games.sgf").write_text("".join(map(ruled_game, range(700))))
    tables: dict[str, Any] = {
        "input": {"paths": [str(folder / "games.sgf")]},
        "rules": {"illegal": "keep-prefix"},
        "filter": {"sizes": [SIDE]},
        "split": {"val": 0.2, "test": 0.0},
        "dedup": {"positions": "off"},
        "encode": {"scheme": "agz17"},
        "output": {"path": str(folder / "set")},
        "run": {"workers": 0},
    }
    build(make_config(tables, "test"))
    return folder / "set"


@pytest.fixture(scope="module")
def results(script: Any, dataset: Path) -> dict[str, Any]:
    """Return the result of each way to train."""
    script.torch.set_num_threads(1)
    small = {"steps": 250, "batch_size": 128, "channels": 16, "blocks": 1, "rate": 0.02, "held_out": 1000}
    return {sabotage: script.train(script.Settings(str(dataset), sabotage, **small)) for sabotage in script.SABOTAGES}


def test_the_honest_network_learns(results: dict[str, Any]) -> None:
    """Half of the moves follow a rule; the winner is to be seen on the board."""
    honest = results["none"]
    assert honest.last_loss < honest.first_loss - 0.5
    assert honest.moves > 0.35
    assert honest.values > honest.guess + 0.2
    assert 0.5 <= honest.guess < 0.6


def test_turned_planes_are_seen(results: dict[str, Any]) -> None:
    assert results["turned"].moves < results["none"].moves - 0.1


def test_the_wrong_side_is_seen(results: dict[str, Any]) -> None:
    """Moves are learned as ever, results are called wrongly."""
    assert results["wrong-side"].values <= results["wrong-side"].guess
    assert results["wrong-side"].moves > results["none"].moves - 0.1


def test_late_planes_are_seen(results: dict[str, Any]) -> None:
    assert results["late"].moves > results["none"].moves + 0.2


def test_late_planes_are_those_after_the_move(script: Any, dataset: Path) -> None:
    """Of each row the stone of its move stands there, the other side's now."""
    opened = open_dataset(dataset)
    settings = script.Settings(str(dataset), "late", batch_size=64)
    batch = next(script.batches_of(settings, opened, "train", [0]))
    rows = np.arange(len(batch["move"]))
    assert len(rows) > 40
    assert (batch["symmetry"] == 0).all()
    theirs = batch["planes"][:, opened.planes.index("opp_0")].flatten(1)
    assert (theirs[rows, batch["move"]] == 1).all()


def test_turned_planes_keep_their_moves(script: Any, dataset: Path) -> None:
    """The planes are the stored ones turned, the move is the stored one."""
    opened = open_dataset(dataset)
    batch = next(script.batches_of(script.Settings(str(dataset), "turned", batch_size=64), opened, "train", [0]))
    stored = {}
    for whole in opened.batches():
        stored |= dict(zip(zip(whole["game"].tolist(), whole["ply"].tolist(), strict=True), whole["move"], strict=True))
    games = batch["game"].numpy().view(np.uint64).tolist()
    moves = [stored[game, ply] for game, ply in zip(games, batch["ply"].tolist(), strict=True)]
    assert batch["move"].tolist() == moves
    assert len(set(batch["symmetry"].tolist())) == 8


def test_a_part_without_rows_is_refused(script: Any, dataset: Path) -> None:
    with pytest.raises(ValueError, match="has 0 rows in test, not enough for a batch"):
        next(script.batches_of(script.Settings(str(dataset)), open_dataset(dataset), "test", [0]))


def test_the_rule_of_thumb(script: Any, dataset: Path) -> None:
    """The most common reply of the part ``train``; where that is taken or off the board, the next one."""
    rule = script.RuleOfThumb(open_dataset(dataset))
    middle = SIDE // 2 * SIDE + SIDE // 2
    assert sorted(rule.replies[:4]) == sorted(offset for offset in rule.replies[:8] if 0 in offset)
    rule.replies = [(0, 1), (1, 0), (0, -4)]
    rule.games = {
        1: ((SIDE, SIDE), [middle]),
        2: ((SIDE, SIDE), [middle + 1, middle]),
        3: ((SIDE, SIDE), [SIDE - 1]),
        4: ((SIDE, SIDE), [SIDE * SIDE]),
        5: ((SIDE, SIDE), [SIDE * SIDE - 1, SIDE * SIDE - 5]),
        6: ((SIDE, SIDE), [SIDE * SIDE - 5, SIDE * SIDE - 1]),
    }
    assert [rule.reply(game, len(rule.games[game][1])) for game in rule.games] == [
        middle + 1,
        middle + SIDE,
        2 * SIDE - 1,
        None,
        SIDE * SIDE - 4,
        None,
    ]
    assert rule.reply(1, 0) is None


def test_offsets_are_near_and_no_passes(script: Any, dataset: Path) -> None:
    rule = script.RuleOfThumb(open_dataset(dataset))
    moves = [0, 4, 361, 19, 19 + 5, 9 * 19, 5 * 19 + 4]
    assert list(rule._offsets((19, 19), moves)) == [(0, 4), (-4, 4)]
