"""What a build says while it runs: a bar on a terminal, quiet lines in a log, nothing as a library."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tqdm import tqdm

_LOG_SECONDS = 30.0  # between two lines of one stage in a log

Advance = Callable[[int], object]


class Progress:
    """Where a build reports to: ``line`` for a sentence, ``stage`` for work that takes time."""

    def __init__(self, quiet: bool = False) -> None:
        self._quiet = quiet
        self.seconds: dict[str, float] = {}

    def line(self, text: str) -> None:
        """Say one line, on standard error: standard output is for results."""
        if not self._quiet:
            # Said between bars, never under one: nothing of tqdm's, whose locks an interrupt may catch half made.
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()

    @contextmanager
    def stage(self, name: str, total: int, unit: str) -> Iterator[Advance]:
        """Time a stage; the block calls what is yielded with the number of units done.

        A stage with a total of 0 is only timed.
        """
        start = time.perf_counter()
        try:
            if total == 0 or self._quiet or not sys.stderr.isatty():
                yield self._log(name, total, unit)
            else:
                with tqdm(total=total, desc=name, unit=f" {unit}", file=sys.stderr, dynamic_ncols=True) as bar:
                    yield bar.update
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start

    def _log(self, name: str, total: int, unit: str) -> Advance:
        start = said = time.perf_counter()
        finished = 0

        def advance(done: int) -> None:
            nonlocal finished, said
            finished += done
            now = time.perf_counter()
            if now - said >= _LOG_SECONDS:
                said = now
                rate = finished / (now - start)
                left = (total - finished) / rate if rate else 0.0
                self.line(f"{name}: {finished:,} of {total:,} {unit}, {rate:,.0f} a second, {left:,.0f} s left")

        return advance
