"""Where tasks run: this process, or local worker processes behind ``concurrent.futures.Executor``.

A spawn pool dies whole when one of its workers is killed. The tasks that were under way are then
suspects: each is run again alone, and only one that ends its worker alone is blamed for it.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait as wait_for_sentinels
from typing import Any, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")

_QUEUED = 2  # tasks handed over per worker: one under way, one waiting


class WorkerDied(RuntimeError):
    """A task whose worker process ended, alone, before it had a result."""


def _start_worker() -> None:
    """Leave Ctrl-C to the parent, and end when the parent is gone: an orphan must not go on writing."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def follow() -> None:
        wait_for_sentinels([parent.sentinel])
        os._exit(1)

    threading.Thread(target=follow, name="watch-parent", daemon=True).start()


def local_pool(workers: int) -> Executor:
    """Return a pool of spawned worker processes that end with their parent."""
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(workers, mp_context=context, initializer=_start_worker)


def run_tasks(
    function: Callable[[Task], Result], tasks: Sequence[Task], workers: int
) -> Iterator[tuple[int, Result | WorkerDied]]:
    """Yield (number of the task, its result) as tasks end; a WorkerDied in place of the result of a
    task that ends its worker even when run alone.

    ``workers`` 0 runs the tasks here, one after the other. An exception of a task is raised here.
    """
    if workers == 0:
        for number, task in enumerate(tasks):
            yield number, function(task)
        return
    waiting = list(range(len(tasks)))[::-1]
    while waiting:
        suspects: list[int] = []
        yield from _run_until_broken(function, tasks, workers, waiting, suspects)
        for number in suspects:
            yield number, _run_alone(function, tasks[number])


def _run_until_broken(
    function: Callable[[Task], Result], tasks: Sequence[Task], workers: int, waiting: list[int], suspects: list[int]
) -> Iterator[tuple[int, Result]]:
    """Run ``waiting`` (last first) on a pool until all have ended or the pool broke.

    Leaves the tasks that were handed to a broken pool in ``suspects``.
    """
    pool = local_pool(min(workers, len(waiting)))
    running: dict[Future[Result], int] = {}
    try:
        while (waiting or running) and not suspects:
            while waiting and len(running) < _QUEUED * workers:
                running[pool.submit(function, tasks[waiting[-1]])] = waiting[-1]
                waiting.pop()
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                number = running.pop(future)
                try:
                    result = future.result()
                except BrokenProcessPool:
                    suspects.append(number)
                else:
                    yield number, result
    except BrokenProcessPool:
        pass  # the pool broke while a task was being handed over: it is still in ``waiting``
    except KeyboardInterrupt:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    finally:
        pool.shutdown(cancel_futures=True)
    suspects.extend(sorted(running.values()))


def _run_alone(function: Callable[[Task], Result], task: Task) -> Any:
    """Run one suspect in a worker of its own."""
    with local_pool(1) as pool:
        try:
            return pool.submit(function, task).result()
        except BrokenProcessPool:
            return WorkerDied("its worker process ended before it had a result")
