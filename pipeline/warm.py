"""Compile the kernels a build needs before its workers start, and say so where that takes time."""

import time

import numpy as np

from pipeline import symmetry
from pipeline.augment import turn_planes
from pipeline.board import BLACK, WHITE
from pipeline.config import Config
from pipeline.encode import Scheme, encode
from pipeline.games import Games
from pipeline.jit import cache_folder
from pipeline.near import clusters, prefix_games
from pipeline.position import single_game
from pipeline.progress import Progress
from pipeline.replay import game_keys, replay

_FRAME = (2, 3)


def tiny_games() -> Games:
    """Return one game of two moves on a 2x3 board: enough to compile a kernel for its real types."""
    return single_game(_FRAME, ([0, 4], [BLACK, WHITE]), ([], [], []), "chinese")


def compile_replay() -> None:
    """Compile what the read, decide and index stages need."""
    games = tiny_games()
    replay(games)
    keys = game_keys(games, np.array([2], dtype=np.int64))
    prefix_games(games, np.array([2], dtype=np.int64), keys, 0)
    clusters(keys, np.array([1], dtype=np.int64))


def compile_scheme(scheme: Scheme) -> None:
    """Compile what encoding a scheme needs."""
    encode(scheme, tiny_games(), np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.int64), _FRAME)


def compile_turns() -> None:
    """Compile what augmentation needs."""
    planes, ones = np.zeros((1, 1, 1), dtype=np.uint8), np.ones(1, dtype=np.uint8)
    turn_planes(planes, 2 * ones, 3 * ones, _FRAME[1], ones * (symmetry.count(*_FRAME) - 1))


def warm_up(scheme: Scheme, config: Config, progress: Progress) -> None:
    """Compile all kernels of a build, or load them from the cache; say what is happening when it is slow."""
    marker = cache_folder() / f"compiled-{scheme.name}-{config.augment.mode != 'none'}"
    if not marker.exists():
        progress.line("compiling kernels, once for this version (about 10 seconds)")
    start = time.perf_counter()
    with progress.stage("compile", 0, "kernels"):
        compile_replay()
        compile_scheme(scheme)
        if config.augment.mode != "none":
            compile_turns()
    if not marker.exists():
        marker.touch()
        progress.line(f"compiled in {time.perf_counter() - start:.1f} s")
