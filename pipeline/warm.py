"""Compile the kernels a command needs before it starts on its work, and say so where that takes time."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np

from pipeline import symmetry
from pipeline.augment import turn_planes
from pipeline.board import BLACK, WHITE
from pipeline.config import Parse, Rules
from pipeline.encode import encode
from pipeline.gamekeys import game_keys
from pipeline.games import Games
from pipeline.jit import cache_folder, seal
from pipeline.keys import keyed
from pipeline.near import clusters, prefix_games
from pipeline.plain import plain_game
from pipeline.position import single_game
from pipeline.progress import Progress
from pipeline.replay import replay
from pipeline.schemes import Scheme
from pipeline.words import seed_word

_FRAME = (2, 3)
_LONG = 2.0  # seconds that are worth a word


def tiny_games() -> Games:
    """Return one game of two moves on a 2x3 board: enough to compile a kernel for its real types."""
    return single_game(_FRAME, ([0, 4], [BLACK, WHITE]), ([], [], []), "chinese")


def compile_replay() -> None:
    """Compile what the read, decide and index stages need."""
    plain_game(b"(;SZ[3:2]AB[aa];B[ab])", frozenset(), Parse(), Rules())
    games = tiny_games()
    replay(games)
    plies, number = np.array([2], dtype=np.int64), np.zeros(1, dtype=np.int64)
    prefix_games(np.array([_FRAME], dtype=np.uint8), plies, game_keys(games, plies), 0, [(games, number)])
    clusters(number, number, 1)


def compile_scheme(scheme: Scheme) -> None:
    """Compile what keys and planes of a scheme need."""
    keyed(tiny_games(), scheme)
    encode(scheme, tiny_games(), np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.int64), _FRAME)


def compile_turns() -> None:
    """Compile what augmentation needs."""
    planes, ones = np.zeros((1, 1, 1), dtype=np.uint8), np.ones(1, dtype=np.uint8)
    turn_planes(planes, 2 * ones, 3 * ones, _FRAME[1], ones * (symmetry.count(*_FRAME) - 1))


def warm_up(progress: Progress, scheme: Scheme | None = None, turns: bool = False) -> None:
    """Compile the kernels of replay, of ``scheme`` and (``turns``) of augmentation, or load them from the cache.

    Says so beforehand where none has been compiled yet, and afterwards where compiling took long.
    """
    wanted: dict[str, Callable[[], None]] = {"replay": compile_replay}
    if scheme is not None:
        chosen = "-".join(f"{name}={value}" for name, value in scheme.options)
        wanted[f"scheme-{scheme.name}-{seed_word(chosen):016x}"] = partial(compile_scheme, scheme)
    if turns:
        wanted["turns"] = compile_turns
    markers = [cache_folder() / f"compiled-{name}" for name in wanted]
    new = [marker for marker in markers if not marker.exists()]
    if markers[0] in new:
        progress.line("compiling kernels, once for this version (10 to 30 seconds)")
    start = time.perf_counter()
    with _cache_named():
        with progress.stage("compile", 0, "kernels"):
            for compile_kernels in wanted.values():
                compile_kernels()
        spent = time.perf_counter() - start
        if new and spent > _LONG:
            progress.line(f"kernels compiled in {spent:.1f} s")
        for marker in new:
            marker.touch()
        if new:
            seal()


@contextmanager
def _cache_named() -> Iterator[None]:
    """Name the folder of the compiled kernels where the system refuses to write there, and the way to another."""
    try:
        yield
    except OSError as error:
        text = "compiled kernels cannot be stored (NUMBA_CACHE_DIR names another folder for them)"
        raise OSError(error.errno, f"{text}: {error.strerror or error}", str(cache_folder())) from error
