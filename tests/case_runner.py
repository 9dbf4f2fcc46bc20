"""What ``test_cases.py`` runs a case with: its JSON block, which must be used up, and a built data set to look at."""

import json
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from pipeline.build import build
from pipeline.columns import Columns
from pipeline.config import Config, make_config
from pipeline.load import open_dataset
from pipeline.manifest import GAMES, Manifest
from pipeline.verify import verify

CASES = Path(__file__).parent / "cases"
ALL_TRAIN: dict[str, Any] = {"val": 0.0, "test": 0.0}
_DEFAULTS: dict[str, dict[str, Any]] = {
    "dedup": {"games": False, "positions": "off"},
    "split": {"overlap": "keep"},
    "augment": {"mode": "none"},
    "filter": {"sizes": "any"},
    "encode": {"scheme": "board"},
    "run": {"workers": 0},
}

Points = set[tuple[int, int]]  # (row, col)
Game = dict[str, Any]  # a row of games.parquet


class Expected:
    """A table of a JSON block that knows which of its keys were compared, here and in the tables inside."""

    def __init__(self, name: str, facts: dict[str, Any], not_yet: Iterable[str] = ()) -> None:
        self.name = name
        self._left = {key: value for key, value in facts.items() if f"{name}.{key}" not in not_yet}
        self._inner: list[Expected] = []

    @property
    def keys(self) -> list[str]:
        """The keys that nothing was compared with so far."""
        return list(self._left)

    def table(self, key: str) -> "Expected":
        """Return the table under ``key``; its keys have to be compared too."""
        inner = Expected(f"{self.name}.{key}", self._left.pop(key))
        self._inner.append(inner)
        return inner

    def check(self, key: str, found: Any) -> None:
        """Compare the value of ``key`` with what the product gave."""
        expected = self._left.pop(key)
        assert found == expected, f"{self.name}.{key}: {found!r}, not {expected!r}"
        say(f"{self.name}.{key} = {json.dumps(found, ensure_ascii=False)[:100]}")

    def check_set(self, key: str, found: Iterable[str]) -> None:
        """Compare names whose order means nothing; none may be there twice."""
        self._left[key] = sorted(self._left[key])
        self.check(key, sorted(found))

    def check_points(self, key: str, found: Points) -> None:
        """Compare points that the block names in any order."""
        self.check_set(key, [sgf_point(*point) for point in found])

    def check_other(self, key: str, written: Any, found: Any, allowed: Any) -> None:
        """Compare where the prose allows another outcome than the block, and the product has that one."""
        assert self._left.pop(key) == written
        assert found == allowed, f"{self.name}.{key}: {found!r}, not {allowed!r}"
        say(f"{self.name}.{key} = {json.dumps(found, ensure_ascii=False)} (allowed in place of {written!r})")

    def require_all_compared(self) -> None:
        """Fail if a key of this table or one inside was not compared."""
        assert not self._left, f"{self.name}: nothing compares {', '.join(self._left)}"
        for inner in self._inner:
            inner.require_all_compared()


def say(line: str) -> None:
    """Write a line of the report, which pytest shows with -rP or -s."""
    sys.stdout.write(line + "\n")


def json_block(text: str) -> dict[str, Any]:
    """Return the one JSON block of an ``expect.md``."""
    (block,) = re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    facts: dict[str, Any] = json.loads(block)
    return facts


def sgf_point(row: int, col: int) -> str:
    """Return the two letters of a point: column, row from the top."""
    return chr(ord("a") + col) + chr(ord("a") + row)


def square(game: Game) -> int:
    """Return the side of a square board."""
    assert game["board_rows"] == game["board_cols"]
    side: int = game["board_rows"]
    return side


def plane_points(plane: Any) -> Points:
    """Return the points where a dense plane is 1."""
    return {(int(row), int(col)) for row, col in np.argwhere(plane)}


def digests(folder: Path) -> dict[str, bytes]:
    """Return the published files of a data set: path to contents, all but what lies under ``.goplanes``."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".goplanes" not in path.relative_to(folder).parts
    }


@dataclass(frozen=True, slots=True)
class Data:
    """A data set that was built: its manifest, its game table, and the rows of all shards, planes dense."""

    folder: Path
    manifest: Manifest
    games: list[Game]
    rows: Columns

    def game(self, name: str, ordinal: int = 0) -> Game:
        """Return the record of a loose file or of an archive's member."""
        named = [game for game in self.games if name in {game["source"], game["member"]}]
        (found,) = (game for game in named if game["index"] == ordinal)
        return found

    def kept(self, name: str) -> Game:
        """Return the record of ``name``.sgf, which must be kept."""
        game = self.game(f"{name}.sgf")
        assert (game["status"], game["reason"]) == ("kept", None)
        return game

    def positions(self, game: Game) -> int:
        """Return how many rows a record has in the shards; the game table must say the same."""
        count = int((self.rows.get("game", np.zeros(0)) == np.uint64(game["game"])).sum())
        assert count == game["rows"]
        assert game["status"] == "kept" or count == 0
        return count

    def rows_of(self, game: Game) -> Columns:
        """Return the rows of one game in the order of (ply, symmetry)."""
        mine = np.flatnonzero(self.rows["game"] == np.uint64(game["game"]))
        mine = mine[np.lexsort((self.rows["symmetry"][mine], self.rows["ply"][mine]))]
        return {name: values[mine] for name, values in self.rows.items()}

    def plane(self, game: Game, ply: int, name: str) -> Any:
        """Return a plane of the position before move ``ply + 1``, cut to the board: uint8[rows, cols]."""
        rows = self.rows_of(game)
        (at,) = np.flatnonzero(rows["ply"] == ply)
        dense = rows["planes"][at, self.manifest.scheme.planes.index(name)]
        board = dense[: game["board_rows"], : game["board_cols"]]
        assert dense.sum() == board.sum()
        return board

    def stones(self, game: Game, ply: int) -> tuple[Points, Points]:
        """Return Black's and White's stones before move ``ply + 1`` (scheme ``board``)."""
        black, white = (plane_points(self.plane(game, ply, name)) for name in ("black_0", "white_0"))
        empty = plane_points(self.plane(game, ply, "empty"))
        assert len(black) + len(white) + len(empty) == game["board_rows"] * game["board_cols"]
        return black, white

    def captures(self, game: Game) -> dict[int, int]:
        """Return the stones that each move (from 1) took; of the last move no board after it is stored."""
        taken = {}
        boards = [self.stones(game, ply) for ply in range(game["plies"])]
        for move, (before, after) in enumerate(pairwise(boards), start=1):
            other = 1 if self.to_play(game)[move - 1] == "B" else 0
            taken[move] = len(before[other] - after[other])
        return taken

    def to_play(self, game: Game) -> str:
        """Return the side to move of every position: ``"BWB"``."""
        return "".join("?BW"[side] for side in self.rows_of(game)["to_play"])

    def moves(self, game: Game) -> list[str]:
        """Return the labels of a game's positions as SGF points, a pass as "pass"."""
        frame_rows, frame_cols = self.manifest.frame
        labels = self.rows_of(game)["move"].tolist()
        return ["pass" if m == frame_rows * frame_cols else sgf_point(*divmod(m, frame_cols)) for m in labels]


def config_of(inputs: Iterable[Path], folder: Path, /, **tables: dict[str, Any]) -> Config:
    """Return the configuration of a case: the defaults of ``cases/README.md``, then ``tables``."""
    merged = {name: _DEFAULTS.get(name, {}) | tables.get(name, {}) for name in {*_DEFAULTS, *tables}}
    merged["input"] = merged.get("input", {}) | {"paths": [str(path) for path in inputs]}
    merged["output"] = merged.get("output", {}) | {"path": str(folder)}
    return make_config(merged, "case")


def read_data(folder: Path) -> Data:
    """Read a data set as its user would, game table and batches of all parts, once the product finds no fault in it."""
    assert [check for check in verify(folder) if check.faults] == []
    dataset = open_dataset(folder)
    parts = [batch for part in ("train", "val", "test") for batch in dataset.batches(part, dtype="uint8")]
    rows = {name: np.concatenate([part[name] for part in parts]) for name in dataset.columns if parts}
    return Data(folder, dataset.manifest, pq.read_table(folder / GAMES).to_pylist(), rows)


@dataclass(frozen=True, slots=True)
class Case:
    """One case: its folder, what it expects, and a folder of its own to work in."""

    folder: Path
    expected: Expected
    tmp: Path

    def build(self, *inputs: Path, **tables: dict[str, Any]) -> Data:
        """Build a data set from ``inputs`` (none: the case's folder)."""
        output = self.tmp / f"out-{len(list(self.tmp.glob('out-*')))}"
        build(config_of(inputs or (self.folder,), output, **tables))
        return read_data(output)

    def only(self, data: Data) -> Game:
        """Return the case's only record, after comparing ``outcome`` and ``positions``."""
        (game,) = data.games
        self.expected.check("outcome", game["status"])
        self.expected.check("positions", data.positions(game))
        return game

    def boards(self) -> list[tuple[Points, Points]]:
        """Return the boards drawn in the prose: Black's and White's stones of each."""
        found = re.findall(r"```\n(.*?)```", (self.folder / "expect.md").read_text("utf-8"), re.DOTALL)
        boards = [np.array([line.split() for line in text.splitlines()]) for text in found if "X" in text]
        return [(plane_points(board == "X"), plane_points(board == "O")) for board in boards]
