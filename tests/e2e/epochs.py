"""Epochs of a large data set under PyTorch: every row once, in one order, whatever reads it; and memory that stays.

    python tests/e2e/epochs.py DATASET... [--rows 500000] [--batch-size 1024]

For each data set (at least --rows rows in its part ``train``): an epoch with 1, 2 and 4 workers, by fork and spawn, on
1, 2 and 3 ranks. Each rank must give the same rows in the same order with any workers, all ranks together every row
once (but for those that are too few for all), another epoch another order; and each epoch, taken up again in its
middle, the identical rest. Before that three epochs are read in one process: its memory after the third is to be within
5 percent of that after the first. It takes some minutes a data set, and needs torch. Exit code 0: all held.
"""

import argparse
import gc
import hashlib
import pickle
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch.utils.data import DataLoader

from pipeline.load import open_dataset
from pipeline.torch_data import TorchBatches

COLUMNS = ("planes", "move", "symmetry", "game", "ply")
GROWTH = 1.05
RESUMED = {(1, "spawn"), (2, "fork"), (4, "fork")}  # workers and start methods that also go on in mid-epoch


def stream_of(path: Path, batch_size: int, epoch: int, rank: int = 0, world: int = 1) -> TorchBatches:
    """Return a stream that draws symmetries, at the beginning of an epoch."""
    stream = TorchBatches(
        path, batch_size=batch_size, seed=11, symmetry="random", columns=COLUMNS, rank=rank, world=world
    )
    stream.set_epoch(epoch)
    return stream


def read(stream: TorchBatches, workers: int, method: str | None) -> tuple[NDArray[Any], list[str]]:
    """Return (game, ply) of all rows in their order, and a hash of each batch with its planes and moves."""
    rows, hashes = [], []
    context = method if workers else None
    for batch in DataLoader(stream, batch_size=None, num_workers=workers, multiprocessing_context=context):
        digest = hashlib.blake2b(digest_size=16)
        for name in COLUMNS:
            digest.update(batch[name].numpy().tobytes())
        hashes.append(digest.hexdigest())
        rows.append(np.stack([batch["game"].numpy(), batch["ply"].numpy().astype(np.int64)], axis=1))
    return np.concatenate(rows), hashes


def require(condition: bool, text: str) -> None:
    """End the script where something does not hold."""
    if not condition:
        raise SystemExit(f"FAILED: {text}")


def check_ranks(path: Path, batch_size: int, world: int) -> None:
    """Read an epoch on so many ranks, with all workers and start methods; then its second half again."""
    stored = np.concatenate([
        np.stack([batch["game"].view(np.int64), batch["ply"].astype(np.int64)], axis=1)
        for batch in open_dataset(path).batches(columns=["game", "ply"], batch_size=2**16)
    ])  # fmt: skip
    read_rows = []
    for rank in range(world):
        expected, hashes = read(stream_of(path, batch_size, 0, rank, world), 0, None)
        read_rows.append(expected)
        for workers, method in product((1, 2, 4), ("fork", "spawn")):
            rows, found = read(stream_of(path, batch_size, 0, rank, world), workers, method)
            what = f"{path.name}: rank {rank} of {world}, {workers} workers, {method}"
            require(found == hashes and np.array_equal(rows, expected), f"{what}: another order, or other rows")
            if (workers, method) in RESUMED:
                state = pickle.dumps(stream_of(path, batch_size, 0, rank, world).state_dict(batches=len(hashes) // 2))
                half = stream_of(path, batch_size, 0, rank, world)
                half.load_state_dict(pickle.loads(state))
                _, rest = read(half, workers, method)
                require(rest == hashes[len(hashes) // 2 :], f"{what}: another rest")
    lengths = {len(rows) for rows in read_rows}
    require(lengths == {len(stored) // world}, f"{path.name}: ranks of {lengths} rows")
    found, counts = np.unique(np.concatenate(read_rows), axis=0, return_counts=True)
    require(counts.max() == 1, f"{path.name}: a row came twice")
    require(len(found) == len(stored) // world * world, f"{path.name}: rows are missing")
    if world == 1:
        require(np.array_equal(found, np.unique(stored, axis=0)), f"{path.name}: other rows")
        other, _ = read(stream_of(path, batch_size, 1), 0, None)
        require(not np.array_equal(other, read_rows[0]), f"{path.name}: two epochs in one order")
    print(
        f"{path.name}: {world} ranks, {len(stored):,} rows: every row once, one order, every rest the same", flush=True
    )


def resident() -> int:
    """Return the memory of this process in bytes."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def check_memory(path: Path, batch_size: int) -> None:
    """Read three epochs in this process."""
    sizes = []
    for epoch in range(3):
        for _ in DataLoader(stream_of(path, batch_size, epoch), batch_size=None):
            pass
        sizes.append(resident())
    told = ", ".join(f"{size / 1e6:.0f}" for size in sizes)
    require(sizes[2] <= GROWTH * sizes[0], f"{path.name}: memory grew: {told} MB")
    print(f"{path.name}: memory after each of three epochs: {told} MB", flush=True)


def main() -> None:
    """Read the command line and check every data set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", type=Path, nargs="+", metavar="DATASET")
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--batch-size", type=int, default=1024)
    options = parser.parse_args()
    for path in options.datasets:
        rows = open_dataset(path).rows()
        require(rows >= options.rows, f"{path} has {rows:,} rows in train")
        check_memory(path, options.batch_size)
        for world in (1, 2, 3):
            check_ranks(path, options.batch_size, world)


if __name__ == "__main__":
    main()
