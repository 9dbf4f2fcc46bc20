"""Rows a second that the loader gives on one core, beside the plain way to do the same with numpy.

    python benchmarks/bench_load.py [DATASET...] [--rows 300000] [--batch-size 1024] [--repeat 3]

Each DATASET (default: the games in ``examples/`` as ``agz17``, in both formats) is measured: shuffled batches with a
random symmetry for each row, moves and values beside the planes, into buffers that are used again; to packed, uint8 and
float32 planes. Beside it, in the same run:

- plain: what one writes without this project. Shards are read with pyarrow or h5py, the rows of a shard shuffled; each
  is unpacked with ``np.unpackbits``, turned with ``np.rot90`` and a flip, and converted; its move is looked up;
- grouped: the same by whole batches, the rows of one symmetry being turned in one call;
- fancy: h5py alone, a batch being random rows of a shard by their sorted numbers (HDF5 only; few batches are enough to
  see it), then as grouped.

The best of the runs. The process stays on one core; a thread more would hide what reading costs.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from pipeline.build import build
from pipeline.config import make_config
from pipeline.load import Dataset, open_dataset

COLUMNS = ("planes", "move", "value")
DTYPES = ("packed", "uint8", "float32")
EXAMPLES = Path(__file__).parents[1] / "examples" / "games"
FEW = 8  # batches that are enough for the slowest way
Arrays = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]


def ours(dataset: Dataset, batch_size: int, dtype: Any, epoch: int) -> Iterator[int]:
    """Yield how many rows each batch of the loader has."""
    out = dataset.buffers(batch_size, columns=COLUMNS, dtype=dtype)
    for batch in dataset.batches(
        columns=COLUMNS, batch_size=batch_size, dtype=dtype, symmetry="random", seed=1, epoch=epoch, out=out
    ):
        yield len(batch["move"])


def shards(dataset: Dataset) -> Iterator[Arrays]:
    """Yield (planes, move, value) of each shard, as a user of pyarrow or h5py reads them."""
    shape = len(dataset.planes), -(-dataset.frame[0] * dataset.frame[1] // 8)
    for path in sorted((dataset.folder / "train").iterdir()):
        if path.suffix == ".parquet":
            table = pq.read_table(path, columns=list(COLUMNS), use_threads=False).combine_chunks()
            planes = np.frombuffer(table["planes"].chunk(0).buffers()[2], dtype=np.uint8).reshape(-1, *shape)
            yield planes, table["move"].to_numpy(), table["value"].to_numpy()
        else:
            with h5py.File(path) as file:
                yield file["planes"][:], file["move"][:], file["value"][:]


def move_tables(side: int) -> NDArray[np.int64]:
    """Return int64[8, side * side + 1]: where each symmetry puts each move, in numpy's words."""
    points = np.arange(side * side).reshape(side, side)
    tables = []
    for turn in range(8):
        image = turned(points, turn)
        table = np.full(side * side + 1, side * side)
        table[image.reshape(-1)] = np.arange(side * side)
        tables.append(table)
    return np.array(tables)


def turned(planes: NDArray[Any], turn: int) -> NDArray[Any]:
    """Return planes [..., H, W] turned by quarters, and flipped from 4 on."""
    planes = np.rot90(planes, turn & 3, (-2, -1))
    return planes[..., ::-1] if turn & 4 else planes


def by_row(planes: NDArray[np.uint8], turns: NDArray[np.int64], frame: tuple[int, int], dtype: str) -> NDArray[Any]:
    """Unpack, turn and convert each row by itself."""
    rows = []
    for row, turn in zip(planes, turns.tolist(), strict=True):
        dense = np.unpackbits(row, axis=-1, count=frame[0] * frame[1]).reshape(-1, *frame)
        rows.append(in_form(turned(dense, turn), dtype))
    return np.stack(rows)


def by_group(planes: NDArray[np.uint8], turns: NDArray[np.int64], frame: tuple[int, int], dtype: str) -> NDArray[Any]:
    """Unpack and convert a batch at once, and turn all rows of a symmetry in one call."""
    dense = np.unpackbits(planes, axis=-1, count=frame[0] * frame[1]).reshape(len(planes), -1, *frame)
    out = np.empty_like(dense)
    for turn in range(8):
        rows = np.flatnonzero(turns == turn)
        out[rows] = turned(dense[rows], turn)
    return in_form(out, dtype)


def in_form(dense: NDArray[np.uint8], dtype: str) -> NDArray[Any]:
    """Return planes [..., H, W] as the dtype that is asked for."""
    if dtype == "packed":
        return np.packbits(dense.reshape(*dense.shape[:-2], -1), axis=-1)
    return dense.astype(dtype)


def finished(dataset: Dataset, batch: Arrays, dtype: str, make: Any, rng: np.random.Generator, tables: Any) -> int:
    """Do with the rows of a batch what the loader does; return how many they are."""
    planes, move, _ = batch
    turns = rng.integers(0, 8, len(move))
    make(planes, turns, dataset.frame, dtype)
    tables[turns, move].astype(np.int16)
    return len(move)


def plain(dataset: Dataset, batch_size: int, dtype: str, make: Any) -> Iterator[int]:
    """Yield how many rows each batch has that is made without the loader."""
    rng, tables = np.random.default_rng(1), move_tables(dataset.frame[0])
    for planes, move, value in shards(dataset):
        order = rng.permutation(len(move))
        for start in range(0, len(order), batch_size):
            rows = order[start : start + batch_size]
            yield finished(dataset, (planes[rows], move[rows], value[rows]), dtype, make, rng, tables)


def fancy(dataset: Dataset, batch_size: int, dtype: str) -> Iterator[int]:
    """Yield how many rows each batch has that h5py finds by their numbers."""
    rng, tables = np.random.default_rng(1), move_tables(dataset.frame[0])
    path = next(iter(sorted((dataset.folder / "train").glob("*.h5"))))
    with h5py.File(path) as file:
        order = rng.permutation(len(file["move"]))
        for start in range(0, len(order), batch_size):
            rows = np.sort(order[start : start + batch_size])
            batch = file["planes"][rows], file["move"][rows], file["value"][rows]
            yield finished(dataset, batch, dtype, by_group, rng, tables)


def rate(make: Callable[[int], Iterator[int]], rows: int, repeat: int, batches: int | None = None) -> float:
    """Return the rows a second of the best run, its first batch (which reads and fills the buffer) included."""
    best = 0.0
    for number in range(repeat):
        done = 0
        start = time.perf_counter()
        for count in islice(make(number), batches):
            done += count
            if done >= rows:
                break
        best = max(best, done / (time.perf_counter() - start))
    return best


def examples(folder: Path) -> Iterator[Path]:
    """Yield data sets of the shipped games, in both formats."""
    for file_format in ("parquet", "hdf5"):
        tables: dict[str, Any] = {
            "input": {"paths": [str(EXAMPLES)]},
            "output": {"path": str(folder / file_format), "format": file_format},
            "run": {"workers": 0},
        }
        build(make_config(tables, "benchmark"))
        yield folder / file_format


def measure(dataset: Dataset, size: int, rows: int, repeat: int) -> None:
    """Print a line for each form of the planes."""
    name = f"{dataset.scheme.name} {dataset.manifest.layout.format}"
    for dtype in DTYPES:
        next(ours(dataset, size, dtype, 0))  # compiles
        found = rate(partial(ours, dataset, size, dtype), rows, repeat)
        slow = rate(lambda _, dtype=dtype: plain(dataset, size, dtype, by_row), rows, repeat)
        grouped = rate(lambda _, dtype=dtype: plain(dataset, size, dtype, by_group), rows, repeat)
        few = "-"
        if dataset.manifest.layout.format == "hdf5":
            few = f"{rate(lambda _, dtype=dtype: fancy(dataset, size, dtype), rows, 1, FEW):,.0f}"
        times = f"{slow:9,.0f} {found / slow:6.1f} {grouped:9,.0f} {found / grouped:6.1f} {few:>8}"
        print(f"{name:24} {dtype:8} {found:10,.0f} {times}", flush=True)


def main() -> None:
    """Read the command line and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="*", type=Path, metavar="DATASET")
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--batch-size", type=int, default=1024)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    heads = f"{'loader':>10} {'plain':>9} {'times':>6} {'grouped':>9} {'times':>6} {'fancy':>8}"
    print(f"{'data set':24} {'planes':8} {heads} rows/s")
    with tempfile.TemporaryDirectory() as folder:
        for path in options.datasets or examples(Path(folder)):
            measure(open_dataset(path), options.batch_size, options.rows, options.repeat)


if __name__ == "__main__":
    main()
