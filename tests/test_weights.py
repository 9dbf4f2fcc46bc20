"""Sampling weights by source and rank: of games, and summed in the rows of a build."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from stages import write_games

from pipeline.build import build
from pipeline.config import ConfigError, SampleWeight, make_config
from pipeline.headers.rank import read_rank
from pipeline.load import open_dataset
from pipeline.verify import verify
from pipeline.weights import game_weights, matches

DAN, PRO, WEAK = (read_rank(text)[0] for text in ("5d", "1p", "3k"))
FITS = [SampleWeight(source="fox*", min_rank="1p", weight=3.0), SampleWeight(source="fox*", weight=0.5)]
GAMES = {
    "fox-a.sgf": "(;GM[1]SZ[9]BR[3p]WR[1p]RE[B+R];B[cc];W[gg];B[gc])",
    "fox-b.sgf": "(;GM[1]SZ[9]BR[3k]WR[3p]RE[W+R];B[cc];W[gg];B[cg])",
    "kgs-c.sgf": "(;GM[1]SZ[9]BR[3p]WR[3p]RE[W+R];B[cc];W[gg];B[ee])",
}


def test_globs_match_the_source_or_the_whole_path() -> None:
    assert matches(("club*",), "club.zip", "2016/a.sgf")
    assert matches(("x", "club.zip/2016/*"), "club.zip", "2016/a.sgf")
    assert not matches(("2016/*",), "club.zip", "2016/a.sgf")
    assert not matches((), "club.zip", None)


def test_the_first_rule_that_fits_decides() -> None:
    games = pa.table(
        {
            "source": ["fox/a.sgf", "fox/b.sgf", "kgs.zip", "kgs.zip", "x.sgf"],
            "member": pa.array([None, None, "c.sgf", "d.sgf", None], pa.string()),
            "black_rank": pa.array([PRO, WEAK, PRO, None, PRO], pa.int8()),
            "white_rank": pa.array([PRO, PRO, PRO, PRO, DAN], pa.int8()),
        }
    )
    assert game_weights(games, ()).tolist() == [1, 1, 1, 1, 1]
    assert game_weights(games, FITS).tolist() == [3, 0.5, 1, 1, 1]
    assert game_weights(games, [*FITS, SampleWeight(min_rank="5d", weight=2.0)]).tolist() == [3, 0.5, 2, 1, 2]
    assert game_weights(games, FITS[::-1]).tolist() == [0.5, 0.5, 1, 1, 1]


@pytest.mark.parametrize("mode", ["aggregate", "off"])
def test_a_row_weighs_what_its_positions_do(mode: str, tmp_path: Path) -> None:
    config = make_config(
        {
            "input": {"paths": [str(write_games(tmp_path / "in", GAMES))]},
            "output": {"path": str(tmp_path / "out")},
            "filter": {"sizes": [9]},
            "split": {"val": 0, "test": 0},
            "dedup": {"games": False, "positions": mode},
            "encode": {"scheme": "board"},
            "sample": {"weights": [rule.model_dump() for rule in FITS]},
            "run": {"workers": 0},
        },
        "test",
    )
    build(config)
    dataset = open_dataset(tmp_path / "out")
    rows = [dataset.row("train", number) for number in range(dataset.rows("train"))]
    weights = sorted((int(row["ply"]), float(row["weight"])) for row in rows)
    each = [3.0, 0.5, 1.0]
    merged = [(ply, sum(each)) for ply in (0, 1, 2)]
    assert weights == (merged if mode == "aggregate" else sorted((ply, one) for ply in (0, 1, 2) for one in each))
    assert all(row["weight"].dtype == np.float32 for row in rows)
    assert not [check.faults for check in verify(tmp_path / "out", 100) if check.faults]


def test_weights_are_checked() -> None:
    for weight in (0, -1, 1e9):
        with pytest.raises(ConfigError, match=r"sample\.weights"):
            make_config({"sample": {"weights": [{"weight": weight}]}}, "test")
    with pytest.raises(ConfigError, match="sample"):
        make_config({"sample": {"weights": [{"source": "fox*"}]}}, "test")
