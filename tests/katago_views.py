"""KataGo's own rows: the files of stored answers, the views in them, and their games."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from slow_katago import SlowOptions, SlowRules

from pipeline.games import Games, terms_of
from pipeline.katago import KataOptions
from pipeline.rules import KO_POSITIONAL, KO_SIMPLE, KO_SITUATIONAL, KO_SPIGHT, RuleSet, rule_set

VECTORS = Path(__file__).parents[2] / "shared" / "vectors" / "katago"
needs_vectors = pytest.mark.skipif(not VECTORS.exists(), reason="the stored answers are not there")

KO_CODES = {"simple": KO_SIMPLE, "positional": KO_POSITIONAL, "situational": KO_SITUATIONAL, "spight": KO_SPIGHT}

# The views of the vectors' README: their rules and parameters.
TT = SlowRules("positional", suicide=True)
CN = SlowRules(bonus="N", friendly=True)
JP = SlowRules(territory=True, tax="seki")
AGA = SlowRules("situational", bonus="N-1", friendly=True)
VIEWS: dict[str, tuple[SlowRules, SlowOptions]] = {
    "tt": (TT, SlowOptions()),
    "jp": (JP, SlowOptions()),
    "cn": (CN, SlowOptions()),
    "cn_nofp": (SlowRules(bonus="N"), SlowOptions()),
    "jp_pe": (JP, SlowOptions(prevent_encore=True)),
    "aga": (AGA, SlowOptions()),
    "agabutton": (SlowRules("situational", bonus="N-1", friendly=True, button=True), SlowOptions()),
    "nz": (SlowRules("situational", suicide=True, friendly=True), SlowOptions()),
    "cnkgs": (SlowRules("positional", bonus="N", friendly=True), SlowOptions()),
    "stone": (SlowRules(tax="all", friendly=True), SlowOptions()),
    "ancterr": (SlowRules(territory=True, tax="all"), SlowOptions()),
    "terrnotax": (SlowRules(territory=True), SlowOptions()),
    "spight": (SlowRules("spight", suicide=True), SlowOptions()),
    "areaseki": (SlowRules("situational", tax="seki"), SlowOptions()),
    "tt_draw02": (TT, SlowOptions(draw_for_white=0.2)),
    "tt_pda": (TT, SlowOptions(advantage=-1.25)),
    "tt_conserv": (TT, SlowOptions(conservative=True)),
    "tt_hacks": (TT, SlowOptions(hacks=True)),
    "tt_hist0": (TT, SlowOptions(max_history=0)),
    "tt_hist1": (TT, SlowOptions(max_history=1)),
    "tt_hist3": (TT, SlowOptions(max_history=3)),
    "cn_pasui": (CN, SlowOptions()),
    "cn_assumeh": (CN, SlowOptions(early_black=True)),
}
FILES = {
    "gnugo": "tt jp cn cn_nofp",
    "random": "tt jp cn cn_nofp",
    "hard": "tt jp cn cn_nofp",
    "superko": "tt jp cn cn_nofp nz aga spight",
    "encore": "jp jp_pe ancterr terrnotax",
    "variants": "aga agabutton ancterr areaseki cn_assumeh cn_pasui cnkgs jp_pe nz spight stone terrnotax "
    "tt_conserv tt_draw02 tt_hacks tt_hist0 tt_hist1 tt_hist3 tt_pda",
}

Arrays = dict[str, NDArray[Any]]


def rules_of(rules: SlowRules) -> RuleSet:
    """Return the same rules as a rule set, friendly passes apart."""
    name = f"ko={rules.ko},scoring={'territory' if rules.territory else 'area'},tax={rules.tax},"
    name += f"suicide={rules.suicide},button={rules.button},bonus={rules.bonus},komi=0.5"
    return rule_set(name.replace("True", "true").replace("False", "false"))


def kata_options(rules: SlowRules, options: SlowOptions) -> KataOptions:
    """Return the same parameters as the kernel takes them."""
    return KataOptions(
        options.draw_for_white, options.conservative, options.hacks, options.advantage,
        options.max_history, options.prevent_encore, options.early_black, rules.friendly,
    )  # fmt: skip


@cache
def vectors(name: str) -> Arrays:
    """Return one file of the vectors."""
    with np.load(VECTORS / f"{name}.npz") as arrays:
        return {key: arrays[key] for key in arrays.files}


def stored_game(data: Arrays, view: str, game: int, rules: SlowRules) -> Games:
    """Return one game, with a pass by the presumed player at its end: a position is the one before a move."""
    rows, cols = int(data["board_ysize"][game]), int(data["board_xsize"][game])

    def points(name: str) -> NDArray[np.int64]:
        start, stop = data[f"{name}_offsets"][game : game + 2]
        pos = data[f"{name}_pos"][start:stop].astype(np.int64)
        return np.where(pos == 361, rows * cols, pos // 19 * cols + pos % 19)

    def colours(name: str) -> NDArray[np.uint8]:
        start, stop = data[f"{name}_offsets"][game : game + 2]
        return data[f"{name}_color"][start:stop]

    last = data[f"{view}_pos_offsets"][game + 1] - 1
    moves, setup = points("move"), points("setup")
    return Games(
        np.array([rows], dtype=np.uint8),
        np.array([cols], dtype=np.uint8),
        np.array([KO_CODES[rules.ko]], dtype=np.int8),
        np.array([rules.suicide]),
        np.array([0, len(moves) + 1], dtype=np.int64),
        np.append(moves, rows * cols).astype(np.uint16),
        np.append(colours("move"), data[f"{view}_presumed_player"][last]).astype(np.int8),
        np.array([0, len(setup)], dtype=np.int64),
        np.zeros(len(setup), dtype=np.uint16),
        setup.astype(np.uint16),
        colours("setup").astype(np.int8),
        terms_of([rules_of(rules)], [float(data["komi"][game])], [None]),
    )
