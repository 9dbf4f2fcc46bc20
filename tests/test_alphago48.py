"""AlphaGo's planes against stored right answers.

``vectors/alphago48_games.npz`` was made by a slow independent implementation of the definition, on self-made games;
``rocalphago_500.npz`` holds rows of another project and is read where it lies beside the checkout, else skipped.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pipeline.board import BLACK, WHITE
from pipeline.config import Input, Parse, Rules
from pipeline.encode import encode
from pipeline.game import Game
from pipeline.games import Games
from pipeline.parse import parse_member
from pipeline.position import single_game
from pipeline.schemes import SCHEMES

HERE = Path(__file__).parent
VECTORS = HERE / "vectors"
FOREIGN = HERE.parents[1] / "shared" / "vectors" / "alphago48" / "rocalphago_500.npz"
FRAME = (19, 19)


def with_a_last_pass(game: Game, mover: int) -> Games:
    """Return a game and a pass after it, so that there is a position after its last move."""
    moves = [*game.moves.tolist(), game.rows * game.cols], [*game.colours.tolist(), mover]
    setup = game.setup_plies, game.setup_points, game.setup_colours
    return single_game((game.rows, game.cols), moves, setup, "chinese")


def test_every_stored_row_of_the_games() -> None:
    stored = np.load(VECTORS / "alphago48_games.npz")
    names = [plane.name for plane in SCHEMES["alphago49"].planes]
    compared = 0
    for number, name in enumerate(stored["game_name"].tolist()):
        rows = np.flatnonzero(stored["game"] == number)
        if len(rows) == 0:
            continue
        text = (VECTORS / "sgf" / f"{name.removesuffix('.sgf')}.sgf").read_bytes()
        # The answers follow the deepest line, as KataGo reads records.
        (game,) = parse_member(text, Input(), Parse(branch="longest"), Rules(force="chinese"))
        assert isinstance(game, Game)
        games = with_a_last_pass(game, int(stored["mover"][rows[-1]]))
        plies = stored["ply"][rows].astype(np.int64)
        assert games.colours[plies].tolist() == stored["mover"][rows].tolist()
        planes = encode(SCHEMES["alphago49"], games, np.zeros(len(rows), dtype=np.int64), plies, FRAME)
        for row, mine in zip(rows, planes, strict=True):
            differ = np.flatnonzero((mine != stored["planes"][row]).any(axis=1))
            assert not len(differ), f"{name} ply {stored['ply'][row]}: {[names[plane] for plane in differ]}"
            compared += 1
    assert compared == 1413


def foreign_rows() -> NDArray[Any]:
    if not FOREIGN.exists():
        pytest.skip("the rows of another project are not beside this checkout")
    rows: NDArray[Any] = np.load(FOREIGN)["planes"]
    return rows


def test_rows_of_another_project() -> None:
    """Planes 0-3 and 12-47 of RocAlphaGo's stored rows; its legal moves leave out superko points too."""
    rows = foreign_rows()
    for row in rows:
        bits = np.unpackbits(row, axis=-1, count=361)
        own, opp = np.flatnonzero(bits[0]).tolist(), np.flatnonzero(bits[1]).tolist()
        setup = [0] * (len(own) + len(opp)), own + opp, [BLACK] * len(own) + [WHITE] * len(opp)
        game = single_game(FRAME, ([361], [BLACK]), setup, "chinese")
        mine = np.unpackbits(encode(SCHEMES["alphago48"], game, np.zeros(1, int), np.zeros(1, int), FRAME)[0], axis=-1)
        mine = mine[:, :361]
        legal = bits[20:28].any(axis=0)
        assert np.array_equal(mine[:4], bits[:4])
        assert np.array_equal(mine[12:20], bits[12:20])
        assert np.array_equal(mine[20:47] & legal, bits[20:47])
        assert not mine[47].any()
        assert not bits[47].any()
    assert len(rows) == 500
