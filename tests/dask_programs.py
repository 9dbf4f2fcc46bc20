"""A Dask scheduler and its workers on this machine, programs of their own, for the tests of executors."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
# What programs and their workers import: the package and the tests.
ENV = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")]),
    "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1",
}


@dataclass(slots=True)
class Cluster:
    """A scheduler that runs, its workers under nannies which replace them, and the folder they all stand in."""

    folder: Path
    address: str = ""
    programs: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def executor(self) -> str:
        return f"dask://{self.address}"

    def start(self, *words: str) -> None:
        """Start a program of Dask's."""
        line = [sys.executable, "-m", "dask", *words]
        with open(self.folder / f"{len(self.programs)}.log", "wb") as log:
            program = subprocess.Popen(line, cwd=self.folder, env=ENV, start_new_session=True, stdout=log, stderr=log)
        self.programs.append(program)

    def worker_pids(self) -> list[int]:
        """Return the process ids of the workers that are there."""
        from distributed import Client

        with Client(self.address, set_as_default=False) as client:
            return sorted(client.run(os.getpid).values())

    def end_scheduler(self) -> None:
        """Kill the scheduler."""
        self.programs[0].kill()
        self.programs[0].wait()


@contextmanager
def dask_cluster(folder: Path, workers: int) -> Iterator[Cluster]:
    """Start a scheduler and some workers of one thread each; kill what is left of them at the end."""
    cluster = Cluster(folder)
    try:
        cluster.start("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", "at.json")
        cluster.address = _address(folder / "at.json")
        for _ in range(workers):
            here = ("--local-directory", str(folder), "--no-dashboard")
            cluster.start("worker", f"tcp://{cluster.address}", "--nthreads", "1", *here)
        if workers:
            from distributed import Client

            with Client(cluster.address, set_as_default=False) as client:
                client.wait_for_workers(workers, 60)
        yield cluster
    finally:
        for program in cluster.programs:
            with suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)
            program.wait()


def _address(path: Path) -> str:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            address = json.loads(path.read_text())["address"]
        except (FileNotFoundError, ValueError):
            time.sleep(0.05)
        else:
            return str(address).removeprefix("tcp://")
    raise TimeoutError("the scheduler did not start")
