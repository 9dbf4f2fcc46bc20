"""Where tasks run: this process, or local worker processes behind ``concurrent.futures.Executor``.

A spawn pool dies whole when one of its workers is killed. The tasks that were under way are then
suspects: each is run again alone, and only one that ends its worker alone, time after time, is blamed for it.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from multiprocessing.connection import Connection
from typing import Any, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")

_QUEUED = 2  # tasks handed over per worker: one under way, one waiting
_TRIALS = 3  # of a suspect, alone: somebody may be killing workers at random


class WorkerDied(RuntimeError):
    """A task whose worker process ended, alone, before it had a result."""


def _start_worker(stopped: Connection) -> None:
    """Leave Ctrl-C to the parent, and end when ``stopped`` says so.

    Its other end is closed when the parent wants no more results or is gone: an orphan must not go on writing.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def follow() -> None:
        stopped.poll(None)  # nothing is ever sent: it returns when the other end is closed
        os._exit(1)

    threading.Thread(target=follow, name="watch-parent", daemon=True).start()


def local_pool(workers: int, stopped: Connection) -> Executor:
    """Return a pool of spawned worker processes that end when the other end of ``stopped`` is closed."""
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(workers, mp_context=context, initializer=_start_worker, initargs=(stopped,))


class Workers:
    """Workers that stay for all stages of a build; a broken pool is replaced by a new one.

    ``count`` 0 runs every task in this process, one after the other.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._pool: Executor | None = None
        self._stopped, self._stop = multiprocessing.Pipe(duplex=False)

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is KeyboardInterrupt:
            self._stop.close()  # or the tasks under way would be waited for
        self._close()
        self._stop.close()
        self._stopped.close()

    def run(
        self, function: Callable[[Task], Result], tasks: Sequence[Task], at_once: int | None = None
    ) -> Iterator[tuple[int, Result | WorkerDied]]:
        """Yield (number of the task, its result) as tasks end; a WorkerDied in place of the result of a
        task that ends its worker even when run alone.

        ``at_once``: the most tasks under way (None: what keeps all workers busy). An exception of a task
        is raised here.
        """
        if self._count == 0:
            for number, task in enumerate(tasks):
                yield number, function(task)
            return
        waiting = list(range(len(tasks)))[::-1]
        while waiting:
            suspects: list[int] = []
            yield from self._run_until_broken(function, tasks, at_once, waiting, suspects)
            for number in suspects:
                yield number, self._run_alone(function, tasks[number])

    def _run_until_broken(
        self,
        function: Callable[[Task], Result],
        tasks: Sequence[Task],
        at_once: int | None,
        waiting: list[int],
        suspects: list[int],
    ) -> Iterator[tuple[int, Result]]:
        """Run ``waiting`` (last first) until all have ended or the pool broke.

        Leaves the tasks that were handed to a broken pool in ``suspects``.
        """
        most = min(at_once or _QUEUED * self._count, _QUEUED * self._count)
        pool = self._pool = self._pool or local_pool(self._count, self._stopped)
        running: dict[Future[Result], int] = {}
        broken = False
        while (waiting or running) and not broken:
            try:
                while waiting and len(running) < most:
                    running[pool.submit(function, tasks[waiting[-1]])] = waiting[-1]
                    waiting.pop()
            except BrokenExecutor:
                broken = True  # the task that could not be handed over is still in ``waiting``
            done, _ = wait(running, return_when=FIRST_COMPLETED) if running else (set(), set())
            for future in done:
                try:
                    result = future.result()
                except BrokenExecutor:
                    broken = True
                else:
                    yield running.pop(future), result
        if broken:
            suspects.extend(sorted(running.values()))
            self._close()

    def _run_alone(self, function: Callable[[Task], Result], task: Task) -> Any:
        """Run one suspect in a worker of its own."""
        for _ in range(_TRIALS):
            with local_pool(1, self._stopped) as pool:
                try:
                    return pool.submit(function, task).result()
                except BrokenExecutor:
                    continue
                except KeyboardInterrupt:
                    self._stop.close()
                    raise
        return WorkerDied("its worker process ended before it had a result")

    def _close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None
