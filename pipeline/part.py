"""The shards of one part (train, val, test) of a data set, read by row numbers that run through all of them.

No file is held open: a ``Part`` may be pickled, and used before a fork and after it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline import shard
from pipeline.columns import BLOCK_ROWS, Columns, Layout, ShardError, first_fault, join
from pipeline.epochs import Run
from pipeline.manifest import ShardEntry


def path_of(folder: Path, entry: ShardEntry) -> Path:
    """Return where a shard is, once its size is what the manifest says. Raises ShardError."""
    path = folder / entry.path
    try:
        size = path.stat().st_size
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ShardError(f"{path}: is missing") from error
    if size != entry.bytes:
        raise ShardError(f"{path}: has {size} bytes, the manifest says {entry.bytes}: truncated or changed")
    return path


def release_memory() -> None:
    """Give back what Arrow keeps of the memory of readers that are gone: each epoch may have threads of its own."""
    pa.default_memory_pool().release_unused()


@dataclass(frozen=True)
class Part:
    """The shards of a part, in the order of the manifest. (No slots: what is cached needs a place.)"""

    folder: Path
    name: str
    layout: Layout
    entries: tuple[ShardEntry, ...]

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        """Rows of each shard."""
        return tuple(entry.rows for entry in self.entries)

    @cached_property
    def firsts(self) -> tuple[int, ...]:
        """The number of the first row of each shard, and then that of all rows."""
        return (0, *accumulate(self.lengths))

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.firsts[-1]

    def read(self, run: Run, names: Sequence[str]) -> Columns:
        """Return some columns of a run of rows, all values in their ranges. Raises ShardError, OSError."""
        entry = self.entries[run.shard]
        path = path_of(self.folder, entry)
        columns = shard.read_rows(path, self.layout, run.start, run.stop, names, rows=entry.rows)
        if fault := first_fault(columns, self.layout, run.start):
            raise ShardError(f"{path}: {fault}")
        return columns

    def read_all(self, runs: Sequence[Run], names: Sequence[str]) -> Columns:
        """Return some columns of one or more runs, one after the other."""
        return join([self.read(run, names) for run in runs])

    def runs_of(self, numbers: NDArray[np.int64]) -> list[Run]:
        """Return the runs of at most BLOCK_ROWS rows, as they lie in the files, that have the rows ``numbers``."""
        shards = np.searchsorted(self.firsts, numbers, side="right") - 1
        blocks = (numbers - np.asarray(self.firsts)[shards]) // BLOCK_ROWS
        found = np.unique(np.stack([shards, blocks], axis=1), axis=0).tolist()
        starts = [(number, block * BLOCK_ROWS) for number, block in found]
        return [
            Run(number, start, min(start + BLOCK_ROWS, self.lengths[number]), self.firsts[number] + start)
            for number, start in starts
        ]
