"""CPU time of keying and deduplicating positions, by number of positions, on one core.

    python benchmarks/bench_dedup.py [--positions 10_000_000] [--moves 200]

Games are seeded random play on 19x19, made by the board kernel itself; a tenth of them repeat the first half of
another game, so that there is something to merge. Nothing is parsed or encoded.
"""

import argparse
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from pipeline.blocks import IndexTask, index_block, write_arrow
from pipeline.board import LEGAL, clear, legality, new_board, play, spot_of
from pipeline.config import Config
from pipeline.jit import kernel
from pipeline.rows import decide_positions
from pipeline.words import mix

SIDE = 19
GAMES_PER_BLOCK = 2_000


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
            "game": pa.array(np.arange(count, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)),
            "plies": pa.array(np.full(count, length, dtype=np.uint16)),
            "board_rows": pa.array(np.full(count, SIDE, dtype=np.uint8)),
            "board_cols": pa.array(np.full(count, SIDE, dtype=np.uint8)),
            "setup_plies": nothing,
            "setup_points": nothing,
            "setup_colours": pa.array([[]] * count, pa.list_(pa.int8())),
            "moves": pa.ListArray.from_arrays(pa.array(offsets), pa.array(moves.ravel())),
            "colours": pa.ListArray.from_arrays(pa.array(offsets), pa.array(colours)),
            "rules": pa.array(["chinese"] * count),
            "winner": pa.array(["B", "W"] * (count // 2) + ["B"] * (count % 2)),
            "margin": pa.nulls(count, pa.float32()),
            "result_kind": pa.array(["resign"] * count),
            "split": pa.array((["train"] * 18 + ["val", "test"]) * (count // 20) + ["train"] * (count % 20)),
        }
    )


def run(positions: int, length: int, folder: Path) -> None:
    """Make the games, run both stages, print a line."""
    games = made_games(positions // length, length)
    config = Config()
    paths = []
    for start in range(0, games.num_rows, GAMES_PER_BLOCK):
        path = folder / f"games-{start:08d}.arrow"
        write_arrow(path, games.slice(start, GAMES_PER_BLOCK).sort_by("game"))
        paths.append(str(path))
    keys = [str(folder / f"keys-{number}.arrow") for number in range(len(paths))]
    rows = [str(folder / f"rows-{number}.arrow") for number in range(len(paths))]
    index_block(IndexTask(paths[0], keys[0], config))  # compiled, and the first file is in the cache
    begun = time.process_time()
    for path, key in zip(paths, keys, strict=True):
        index_block(IndexTask(path, key, config))
    indexed = time.process_time()
    decided = decide_positions(paths, keys, rows, config)
    done = time.process_time()
    count = games.num_rows * length
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{count:>11,} positions: "
        f"index {1e6 * (indexed - begun) / count:.3f}, dedup {1e6 * (done - indexed) / count:.3f}, "
        f"together {1e6 * (done - begun) / count:.3f} us a position; "
        f"{decided.stored:,} stored, {decided.merged:,} merged, {decided.overlap:,} overlap; peak {peak:.1f} GiB"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--positions", type=int, default=10_000_000)
    parser.add_argument("--moves", type=int, default=200)
    options = parser.parse_args()
    for positions in sorted({options.positions // 10, options.positions}):
        with tempfile.TemporaryDirectory() as name:
            run(positions, options.moves, Path(name))


if __name__ == "__main__":
    main()
