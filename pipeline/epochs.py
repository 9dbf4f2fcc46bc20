"""The order in which an epoch reads the rows of a part: a pure function of (seed, epoch).

Runs of neighbouring rows of all shards come in random order, several at a time into a buffer, and the rows of a buffer
in random order. So a batch mixes shards, and reading stays sequential. Batch sizes, workers and ranks only cut the
order into pieces: they do not change it.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from numbers import Integral
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.columns import BLOCK_ROWS
from pipeline.words import chain_words, seed_word

Tail = Literal["drop", "pad"]
MOST: Final = 2**64 - 1  # of seeds and epochs


class Run(NamedTuple):
    """Rows ``start`` to ``stop`` of a shard, by its number in the part; ``first``: the number of its first row in the
    part."""

    shard: int
    start: int
    stop: int
    first: int

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return self.stop - self.start


class Piece(NamedTuple):
    """Places ``start`` to ``stop`` of the order of a buffer."""

    buffer: int
    start: int
    stop: int

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return self.stop - self.start


@dataclass(frozen=True, slots=True)
class Epoch:
    """The order of an epoch: what is in each buffer, and ``ends``, the place in the order after its last row. ``word``:
    what the order is drawn from; None: that of the shards."""

    buffers: tuple[tuple[Run, ...], ...]
    ends: tuple[int, ...]
    word: np.uint64 | None

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return self.ends[-1] if self.ends else 0

    def order(self, buffer: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return two int64[n]: which row of the buffer (run by run) comes first, second, ..., and the numbers that
        these rows have in the part."""
        numbers = np.concatenate([np.arange(run.first, run.first + run.rows) for run in self.buffers[buffer]])
        if self.word is None:
            return np.arange(len(numbers)), numbers
        places = np.argsort(chain_words(self.word, numbers), kind="stable")
        return places, numbers[places]

    def pieces(self, start: int, stop: int) -> Iterator[Piece]:
        """Yield where the rows at places ``start`` to ``stop`` of the order are; after the last row comes the first."""
        place = start
        while place < stop:
            at = place % self.rows
            buffer = bisect_right(self.ends, at)
            begin = self.ends[buffer - 1] if buffer else 0
            length = min(self.ends[buffer] - at, stop - place)
            yield Piece(buffer, at - begin, at - begin + length)
            place += length


def epoch_of(shards: Sequence[int], buffer_rows: int, seed: int | None, epoch: int) -> Epoch:
    """Return the order of an epoch over shards of so many rows, with about ``buffer_rows`` in the buffer.

    ``seed`` None: the order of the shards.
    """
    firsts = [0, *accumulate(shards)]
    runs = [
        Run(number, start, min(start + BLOCK_ROWS, rows), firsts[number] + start)
        for number, rows in enumerate(shards)
        for start in range(0, rows, BLOCK_ROWS)
    ]
    total = firsts[-1]
    if seed is None:
        return Epoch(tuple((run,) for run in runs), tuple(accumulate(run.rows for run in runs)), None)
    word = chain_words(seed_word("order of an epoch", seed), epoch)[0]
    words = chain_words(seed_word("order of runs", seed), epoch, np.array([run.first for run in runs], dtype=np.int64))
    runs = [runs[number] for number in np.argsort(words, kind="stable").tolist()]
    # Buffers of nearly one size: a small one at the end would mix badly.
    count = max(1, round(total / buffer_rows))
    buffers: list[list[Run]] = [[] for _ in range(count)]
    place = 0
    for run in runs:
        buffers[place * count // total].append(run)
        place += run.rows
    filled = tuple(tuple(buffer) for buffer in buffers if buffer)
    return Epoch(filled, tuple(accumulate(sum(run.rows for run in buffer) for buffer in filled)), word)


def share_of(rows: int, rank: int, world: int, tail: Tail) -> tuple[int, int]:
    """Return the places, from the first to before the last, that ``rank`` (0 to ``world`` - 1) reads of the order of
    ``rows`` rows: as many as every other rank. ``tail``: the rows that are too few for all ranks are dropped, or the
    first rows come once more ("pad": the places go on after the last row)."""
    for name, value in (("rank", rank), ("world", world)):
        require_whole(name, value, 0)
    if rank >= world:
        raise ValueError(f"rank {rank} of {world}: ranks are 0 to {world - 1}")
    if tail not in {"drop", "pad"}:
        raise ValueError(f"tail must be drop or pad, not {tail!r}")
    each = rows // world if tail == "drop" else -(-rows // world)
    return rank * each, (rank + 1) * each


def require_whole(name: str, value: Any, least: int, most: int | None = None) -> None:
    """Raise ValueError unless an argument is a whole number in its range."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole:
        raise ValueError(f"{name} must be a whole number, not {value!r}")
    if value < least or (most is not None and value > most):
        ends = f"at least {least}" if most is None else f"{least} to {most}"
        raise ValueError(f"{name} must be {ends}, not {value}")


@dataclass(frozen=True, slots=True)
class Cut:
    """Which batches of an epoch are read: of those of ``rank`` of ``world``, each ``step``-th from number ``start``.

    Raises ValueError for numbers that are out of range.
    """

    batch_size: int
    rank: int = 0
    world: int = 1
    tail: Tail = "drop"
    drop_last: bool = False
    start: int = 0
    step: int = 1

    def __post_init__(self) -> None:
        for name, least in (("batch_size", 1), ("start", 0), ("step", 1)):
            require_whole(name, getattr(self, name), least)
        share_of(0, self.rank, self.world, self.tail)  # says what is wrong with these

    def count(self, rows: int) -> int:
        """Return how many batches an epoch of so many rows has for the rank."""
        first, last = share_of(rows, self.rank, self.world, self.tail)
        return (last - first + (0 if self.drop_last else self.batch_size - 1)) // self.batch_size

    def spans(self, rows: int) -> Iterator[tuple[int, int]]:
        """Yield the places of each batch in the order of an epoch of so many rows."""
        first, last = share_of(rows, self.rank, self.world, self.tail)
        for number in range(self.start, self.count(rows), self.step):
            start = first + number * self.batch_size
            yield start, min(start + self.batch_size, last)
