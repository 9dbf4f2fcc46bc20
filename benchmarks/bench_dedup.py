"""CPU time of keying and deduplicating positions, by number of positions, on one core.

    python benchmarks/bench_dedup.py [--positions 10_000_000] [--moves 200]

Games are seeded random play on 19x19, made by the board kernel itself; a tenth of them repeat the first half of
another game, so that there is something to merge. Nothing is parsed or encoded.
"""

import argparse
import resource
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline.board import LEGAL, clear, legality, new_board, play, spot_of
from pipeline.build import check_config
from pipeline.config import Config
from pipeline.gamestages import DecidedGames
from pipeline.jit import kernel
from pipeline.ordering import ordinals_of
from pipeline.pieces import write_pieces
from pipeline.positionstages import decided_positions
from pipeline.steps import Step, do_all
from pipeline.words import mix

SIDE = 19
GAMES_PER_BLOCK = 2_000
WARM_GAMES = 20


@kernel
def random_play(board, state, moves):
    """Fill ``moves`` uint16[G, n] with legal random moves, colours alternating; passes where ten tries fail."""
    area = SIDE * SIDE
    for game in range(moves.shape[0]):
        clear(board, SIDE, SIDE)
        for ply in range(moves.shape[1]):
            colour = 1 + ply % 2
            moves[game, ply] = area
            for _ in range(10):
                state = mix(state)
                point = np.int64((state >> np.uint64(33)) % np.uint64(area))
                spot = spot_of(board, point)
                if legality(board, spot, colour, False) == LEGAL:
                    play(board, spot, colour, None)
                    moves[game, ply] = point
                    break


def made_games(count: int, length: int) -> pa.Table:
    """Return a table of random games with what the index and dedup stages read."""
    moves = np.zeros((count, length), dtype=np.uint16)
    random_play(new_board(SIDE, SIDE), np.uint64(1), moves)
    copies = np.arange(0, count - 1, 10)
    moves[copies, : length // 2] = moves[copies + 1, : length // 2]
    moves[copies, length // 2 :] = SIDE * SIDE
    offsets = np.arange(0, count * length + 1, length, dtype=np.int32)
    nothing = pa.array([[]] * count, pa.list_(pa.uint16()))
    colours = np.tile(np.resize(np.array([1, 2], dtype=np.int8), length), count)
    return pa.table(
        {
            "ordinal": pa.array(ordinals_of(0, np.arange(count))),
            "game": pa.array(np.arange(count, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)),
            "plies": pa.array(np.full(count, length, dtype=np.uint16)),
            "board_rows": pa.array(np.full(count, SIDE, dtype=np.uint8)),
            "board_cols": pa.array(np.full(count, SIDE, dtype=np.uint8)),
            "setup_plies": nothing,
            "setup_points": nothing,
            "setup_colours": pa.array([[]] * count, pa.list_(pa.int8())),
            "moves": pa.ListArray.from_arrays(pa.array(offsets), pa.array(moves.ravel())),
            "colours": pa.ListArray.from_arrays(pa.array(offsets), pa.array(colours)),
            "komi": pa.nulls(count, pa.float32()),
            "rules": pa.array(["chinese"] * count),
            "handicap": pa.nulls(count, pa.int16()),
            "winner": pa.array(["B", "W"] * (count // 2) + ["B"] * (count % 2)),
            "margin": pa.nulls(count, pa.float32()),
            "result_kind": pa.array(["resign"] * count),
            "split": pa.array((["train"] * 18 + ["val", "test"]) * (count // 20) + ["train"] * (count % 20)),
        }
    )


def decide(games: pa.Table, folder: Path) -> tuple[dict[str, float], dict[str, int]]:
    """Run the stages on the games, in blocks; return the CPU seconds of each and what became of the positions."""
    config = Config()
    _scheme, layout = check_config(config)
    count = -(-games.num_rows // GAMES_PER_BLOCK)
    # A game and its copy come into different blocks, as most do in a build, which draws the blocks.
    blocks = [games.take(pa.array(np.arange(block, games.num_rows, count))) for block in range(count)]
    kept = str(folder / "kept")
    write_pieces(kept, blocks)
    plies = int(games.column("plies").to_numpy().sum(dtype=np.int64))
    decided = DecidedGames((kept,), (kept,), len(blocks), games.num_rows, plies)
    seconds: dict[str, float] = {}

    def timed(stage: str, steps: Sequence[Step], memory: int) -> list[dict[str, Any]]:
        begun = time.process_time()
        reports = do_all(steps, memory)
        seconds[stage] = seconds.get(stage, 0.0) + time.process_time() - begun
        return reports

    found = decided_positions(decided, config, layout, folder, (), timed)
    return seconds, {name: found.total(name) for name in ("stored", "merged", "overlap")}


def run(positions: int, length: int, folder: Path) -> None:
    """Make the games, run the stages, print a line."""
    games = made_games(positions // length, length)
    count = games.num_rows * length
    seconds, found = decide(games, folder)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    each = {stage: 1e6 * taken / count for stage, taken in seconds.items()}
    print(
        f"{count:>11,} positions: index {each['index']:.3f}, dedup {each['dedup']:.3f}, "
        f"together {sum(each.values()):.3f} us a position; "
        f"{', '.join(f'{number:,} {name}' for name, number in found.items())}; peak {peak:.1f} GiB",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--positions", type=int, default=10_000_000)
    parser.add_argument("--moves", type=int, default=200)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        decide(made_games(WARM_GAMES, options.moves), Path(name))  # compiles the kernels
    for positions in sorted({options.positions // 10, options.positions}):
        with tempfile.TemporaryDirectory() as name:
            run(positions, options.moves, Path(name))


if __name__ == "__main__":
    main()
