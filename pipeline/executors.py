"""Where tasks run: this process, worker processes of this machine, or a cluster; all behind ``concurrent.futures``.

When a worker is killed, every task that it may have held is a suspect: each is run again with nothing else under way,
and only one that ends its worker alone, time after time, is blamed for it.
"""

import importlib.util
import multiprocessing
import os
import re
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol, TypeVar

from pipeline.config import Config, ConfigError

Task = TypeVar("Task")
Result = TypeVar("Result")

_QUEUED = 2  # tasks handed over per worker: one under way, one waiting
_TRIALS = 5  # of a suspect, alone: somebody may be killing workers at random
_LOOK = 5.0  # seconds without a result after which the pool is asked whether anybody is there
_SCHEDULER = re.compile(r"dask://((?:\[[0-9A-Fa-f:.]+\]|[^\s:/\[\]]+):([0-9]{1,5}))")


class WorkerDied(RuntimeError):
    """A task whose worker process ended, alone, before it had a result."""


class Pool(Protocol):
    """Workers of one kind, behind one ``Executor``."""

    def reach(self) -> None:
        """Take hold of the workers of a cluster, unless that was done. Raises OSError where nobody answers."""

    def room(self, queued: int) -> int:
        """Return how many tasks may be under way, with ``queued`` to a worker. Raises OSError as ``check`` does."""

    def submit(self, function: Callable[[Any], Any], task: Any) -> Future[Any]:
        """Hand over a task."""

    def deaths(self, ended: Future[Any]) -> int:
        """Return how many workers died of, or beside, a task that has ended; 0: it has a result or an error."""

    def check(self) -> None:
        """Raise OSError where there is nobody left to wait for."""

    def close(self, hurry: bool) -> None:
        """Let the workers go; ``hurry``: with what they are at."""


def _start_worker(stopped: Connection) -> None:
    """Leave Ctrl-C to the parent, and end when ``stopped`` says so.

    Its other end is closed when the parent wants no more results or is gone: an orphan must not go on writing.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def follow() -> None:
        stopped.poll(None)  # nothing is ever sent: it returns when the other end is closed
        os._exit(1)

    threading.Thread(target=follow, name="watch-parent", daemon=True).start()


class LocalPool:
    """Spawned worker processes of this machine. Such a pool dies whole with one of its workers, and is made anew."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._executor: Executor | None = None
        self._stopped, self._stop = multiprocessing.Pipe(duplex=False)

    def reach(self) -> None:
        """Do nothing: workers start with the first task."""

    def room(self, queued: int) -> int:
        """Return how many tasks may be under way, with ``queued`` to a worker."""
        return queued * self._count

    def submit(self, function: Callable[[Any], Any], task: Any) -> Future[Any]:
        """Hand over a task; to a new pool where the one before is broken."""
        if self._executor is not None:
            try:
                return self._executor.submit(function, task)
            except BrokenExecutor:
                self._executor.shutdown()
        self._executor = ProcessPoolExecutor(
            self._count, multiprocessing.get_context("spawn"), initializer=_start_worker, initargs=(self._stopped,)
        )
        return self._executor.submit(function, task)

    def deaths(self, ended: Future[Any]) -> int:
        """Return 1 where the pool broke under a task."""
        return int(isinstance(ended.exception(), BrokenExecutor))

    def check(self) -> None:
        """Do nothing: the pool itself says when a worker is gone."""

    def close(self, hurry: bool) -> None:
        """End the workers; without ``hurry`` when they have done what they are at."""
        if hurry:
            self._stop.close()
        if self._executor is not None:
            self._executor.shutdown(cancel_futures=True)
            self._executor = None
        self._stop.close()
        self._stopped.close()


class Workers:
    """Workers that stay for all stages of a build. Without a pool every task runs in this process."""

    def __init__(self, pool: Pool | None) -> None:
        self._pool = pool

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._pool is not None:
            self._pool.close(hurry=kind is KeyboardInterrupt)

    def reach(self) -> None:
        """Make sure that a cluster answers, before a run that needs it changes anything. Raises OSError."""
        if self._pool is not None:
            self._pool.reach()

    def run(
        self, function: Callable[[Task], Result], tasks: Sequence[Task], at_once: int | None = None
    ) -> Iterator[tuple[int, Result | WorkerDied]]:
        """Yield (number of the task, its result) as tasks end; a WorkerDied in place of the result of a
        task that ends its worker even when run alone.

        ``at_once``: the most tasks under way (None: what keeps all workers busy). An exception of a task
        is raised here; so is an OSError where a cluster is lost.
        """
        if self._pool is None:
            for number, task in enumerate(tasks):
                yield number, function(task)
            return
        waiting = list(range(len(tasks)))[::-1]
        if waiting:
            self.reach()
        while waiting:
            suspects: list[int] = []
            yield from _run_until_death(self._pool, function, tasks, at_once, waiting, suspects)
            for number in suspects:
                yield number, _run_alone(self._pool, function, tasks[number])


def _run_until_death(
    pool: Pool,
    function: Callable[[Task], Result],
    tasks: Sequence[Task],
    at_once: int | None,
    waiting: list[int],
    suspects: list[int],
) -> Iterator[tuple[int, Result]]:
    """Run ``waiting`` (last first) until all have ended, or a worker died and nothing is under way any more.

    Leaves the tasks that a dead worker may have held in ``suspects``.
    """
    running: dict[Future[Result], int] = {}
    while running or (waiting and not suspects):
        room = pool.room(_QUEUED)
        most = min(at_once or room, room)
        while waiting and not suspects and len(running) < most:
            number = waiting.pop()
            running[pool.submit(function, tasks[number])] = number
        for future in _ended(pool, running):
            number = running.pop(future)
            if pool.deaths(future):
                suspects.append(number)
            else:
                yield number, future.result()
    suspects.sort()


def _run_alone(pool: Pool, function: Callable[[Task], Result], task: Task) -> Any:
    """Run a suspect with nothing else under way."""
    deaths = 0
    while deaths < _TRIALS:
        future = pool.submit(function, task)
        _ended(pool, {future: 0})
        died = pool.deaths(future)
        if not died:
            return future.result()
        deaths += died
    return WorkerDied("its worker process ended before it had a result")


def _ended(pool: Pool, running: dict[Future[Result], int]) -> set[Future[Result]]:
    """Wait for tasks under way; return those that have ended."""
    while True:
        done, _ = wait(running, timeout=_LOOK, return_when=FIRST_COMPLETED)
        if done:
            return done
        pool.check()


def require_executor(config: Config) -> None:
    """Raise ConfigError where ``run.executor`` is nothing we know, or needs what is not installed."""
    name = config.run.executor
    if name == "local":
        return
    address = _SCHEDULER.fullmatch(name)
    if name != "dask" and not (address and 0 < int(address[2]) < 2**16):
        raise ConfigError(
            f'run.executor = {name!r}: write "local", "dask" (a cluster on this machine) or "dask://host:port"'
        )
    if config.run.workers == 0:
        raise ConfigError(f'run.workers = 0 runs all in this process: only with run.executor = "local", not {name!r}')
    if importlib.util.find_spec("distributed") is None:
        raise ConfigError(f'run.executor = {name!r} needs Dask: pip install "goplanes[dask]"')


def workers_of(config: Config, count: int, folder: Path) -> Workers:
    """Return the workers that a configuration asks for, to be entered.

    ``count``: worker processes on this machine (0: none); ``folder``: the private part of the output folder. Whoever
    enters the workers of a cluster holds it.
    """
    if config.run.executor == "local":
        return Workers(LocalPool(count) if count else None)
    from pipeline.dask_pool import DaskPool

    address = _SCHEDULER.fullmatch(config.run.executor)
    scheduler, most = (None, count) if address is None else (address[1], config.run.workers)
    return Workers(DaskPool(scheduler, most, folder))
