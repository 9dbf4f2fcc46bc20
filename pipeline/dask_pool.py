"""Tasks on Dask: a cluster on this machine, or the workers of a scheduler that runs somewhere already.

Dask blames every task that was on a dying worker (``KilledWorker``), as a local pool that breaks does; ``executors``
finds out who is to blame. What Dask says on the way goes to its log, which is kept off the screen: what matters
comes as an exception here.
"""

import asyncio
import logging
import math
import os
import signal
import socket
import struct
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from multiprocessing import resource_tracker
from pathlib import Path
from pydoc import locate
from typing import Any

import dask
from distributed import Client, KilledWorker, LocalCluster
from distributed.comm import connect
from distributed.utils import LoopRunner

from pipeline.fence import held, leave_mark, remove_mark
from pipeline.manifest import SOFTWARE

_CONNECT = 8.0  # seconds for a scheduler to answer at first
_ANSWER = 60.0  # seconds for one that is at work
_DESERTED = 60.0  # seconds without any worker, after which none is waited for
_STALE = 5.0  # seconds after which the number of workers is looked up again
_NEVER = 10**9  # seconds
_SILENT = logging.CRITICAL + 1
# What Dask makes of the greeting of somebody who is no scheduler: lengths and fields that are none.
_MISREAD = (MemoryError, LookupError, TypeError, ValueError, struct.error)


class ClusterLost(ConnectionError):
    """A scheduler that does not answer, or that has no workers left."""


class ClusterUnfit(OSError):
    """Workers that cannot do our tasks: another version of goplanes, or none."""


class DaskPool:
    """Workers of Dask. ``scheduler``: host:port of one that runs, None: a cluster of ``most`` processes is made here.

    ``most``: the most tasks under way on a scheduler's workers (None: what keeps all busy); ``folder``: where the
    mark of the run is left for them.
    """

    def __init__(self, scheduler: str | None, most: int | None, folder: Path) -> None:
        self._scheduler, self._most, self._folder = scheduler, most, folder
        self._where = "the cluster on this machine" if scheduler is None else f"the Dask scheduler at {scheduler}"
        self._held = ExitStack()
        self._client: Client | None = None
        self._cluster: LocalCluster | None = None
        self._executor: Executor
        self._mark: Path | None = None
        self._threads, self._looked, self._manned = 0, -math.inf, 0.0

    def reach(self) -> None:
        """Connect to the scheduler, or make the cluster on this machine, unless that was done.

        Raises ClusterLost, ClusterUnfit, and OSError where the folder cannot be written to.
        """
        if self._client is None:
            client = self._client = self._connected()
            self._executor, self._manned = client.get_executor(pure=False), time.monotonic()
            if self._scheduler is not None:
                self._require_software(client)
                self._mark = leave_mark(self._folder)

    def room(self, queued: int) -> int:
        """Return how many tasks may be under way, with ``queued`` to a worker."""
        if self._scheduler is None:
            return queued * (self._most or 1)
        if time.monotonic() - self._looked > _STALE:
            self.check()
        room = queued * max(1, self._threads)
        return min(room, self._most or room)

    def submit(self, function: Callable[[Any], Any], task: Any) -> Future[Any]:
        """Hand over a task. Raises ClusterLost."""
        self._require_connection()
        if self._mark is not None:
            function = partial(run_marked, str(self._mark), SOFTWARE, function)
        future: Future[Any] = self._executor.submit(function, task)
        return future

    def deaths(self, ended: Future[Any]) -> int:
        """Return how many workers died while they held a task that has ended.

        Raises ClusterLost where the task was lost with the connection.
        """
        if ended.cancelled():
            raise self._lost("it went away")
        error = ended.exception()
        return error.allowed_failures + 1 if isinstance(error, KilledWorker) else 0

    def check(self) -> None:
        """Look how many workers there are. Raises ClusterLost where there has been none for a minute."""
        client = self._require_connection()
        try:
            threads = client.sync(client.scheduler.ncores, callback_timeout=_ANSWER)
        except OSError as error:
            raise self._lost("it does not answer any more") from error
        self._threads, self._looked = sum(threads.values()), time.monotonic()
        if threads:
            self._manned = self._looked
        elif self._looked - self._manned > _DESERTED:
            raise self._lost(f"it has had no worker for {_DESERTED:.0f} seconds")

    def close(self, hurry: bool) -> None:
        """Let go of the scheduler, or end our own workers; ``hurry``: with what they are at."""
        with self._held:
            if self._client is not None:
                self._client.close()
            if self._cluster is not None and hurry:
                for nanny in self._cluster.workers.values():
                    if nanny.pid is not None:
                        with suppress(ProcessLookupError):
                            os.kill(nanny.pid, signal.SIGKILL)
            if self._mark is not None:
                remove_mark(self._mark)

    def _connected(self) -> Client:
        self._held.enter_context(_silenced())
        try:
            if self._scheduler is None:
                self._cluster = self._held.enter_context(_cluster(self._most or 1))
            else:
                _require_answer(self._scheduler)
            return Client(self._cluster or self._scheduler, timeout=_CONNECT, set_as_default=False)
        except (OSError, RuntimeError, *_MISREAD) as error:  # RuntimeError: a cluster that does not start
            self._held.close()
            raise ClusterLost(f"{self._where} does not answer{_reason(error)}") from error

    def _require_software(self, client: Client) -> None:
        """Raise ClusterUnfit where the scheduler or a worker has another goplanes, or none.

        A worker that cannot read a task ends without a word of why; so they are asked by what every Python has.
        """
        name = f"{__name__}.SOFTWARE"
        there = {"it": client.run_on_scheduler(locate, name), **client.run(locate, name, on_error="ignore")}
        for who, software in there.items():
            if software != SOFTWARE:
                raise ClusterUnfit(f"{self._where}: {who} has {software or 'no goplanes'}, and all need {SOFTWARE}")

    def _require_connection(self) -> Client:
        if self._client is None or self._client.status not in {"running", "connecting"}:
            raise self._lost("it went away")
        return self._client

    def _lost(self, how: str) -> ClusterLost:
        return ClusterLost(f"{self._where} is lost: {how}\nthe same command goes on from here once it is back")


def run_marked(mark: str, software: str, function: Callable[[Any], Any], task: Any) -> Any:
    """Run a task on a worker of a cluster under the mark of its run.

    Raises ClusterUnfit where the worker's version is not ``software``, UnseenFolder where it does not see the mark.
    """
    if software != SOFTWARE:
        raise ClusterUnfit(f"{os.uname().nodename}: a worker there has {SOFTWARE}, and all need {software}")
    with held(mark):
        return function(task)


def _require_answer(scheduler: str) -> None:
    """Raise OSError or one of _MISREAD where no Dask answers at host:port."""
    host, _, port = scheduler.rpartition(":")
    # Dask tries again and again, and what was wrong is lost on the way.
    socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT).close()
    LoopRunner().run_sync(_greet, scheduler)


async def _greet(scheduler: str) -> None:
    """Exchange the greetings of Dask with host:port. A client would wait for them for ever, whoever is there."""
    comm = await asyncio.wait_for(connect(f"tcp://{scheduler}", timeout=_CONNECT), _CONNECT + 2)
    comm.abort()


def _reason(error: BaseException) -> str:
    """Return what the system said first of all, after a colon; nothing where it said nothing."""
    while error.__cause__ is not None:
        error = error.__cause__
    text = getattr(error, "strerror", None) or ("" if isinstance(error, _MISREAD) else str(error))
    return f": {text}" if text else ""


@contextmanager
def _cluster(workers: int) -> Iterator[LocalCluster]:
    """Make a cluster on this machine whose processes leave Ctrl-C to this one."""
    # Blocked signals are inherited: by the thread that starts workers, and by them. The tracker unblocks them once.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        cluster = LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            memory_limit=None,  # run.memory governs
            silence_logs=_SILENT,
            scheduler_kwargs={"allowed_failures": 0, "dashboard": False},
        )
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    # Dask gives up who is missed twice, some seconds apart. Here everybody is replaced, however often they die.
    with dask.config.set({"distributed.deploy.lost-worker-timeout": _NEVER}), cluster:
        yield cluster


@contextmanager
def _silenced() -> Iterator[None]:
    """Keep what Dask logs off the screen, where nobody has set up logging otherwise."""
    handlers = list(logging.getLogger("distributed").handlers)
    levels = [handler.level for handler in handlers]
    for handler in handlers:
        handler.setLevel(_SILENT)
    try:
        yield
    finally:
        for handler, level in zip(handlers, levels, strict=True):
            handler.setLevel(level)
