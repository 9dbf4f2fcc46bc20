"""Tasks on worker processes: results, workers that are killed, exceptions, Ctrl-C, parents that are killed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pipeline.executors import WorkerDied, Workers

PATIENCE = 30.0  # seconds: far more than anything here takes on a busy machine


def square(number: int) -> int:
    return number * number


def process(_: int) -> int:
    time.sleep(0.05)
    return os.getpid()


def die_at_3(number: int) -> int:
    """Kill the worker that runs task 3, whenever it does."""
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def die_so_often(name: str) -> str:
    """Kill as many workers, one after the other, as the last character of the name says."""
    deaths = [Path(f"{name}.{number}") for number in range(int(name[-1]))]
    for death in deaths:
        if not death.exists():
            death.touch()
            os.kill(os.getpid(), signal.SIGKILL)
    return Path(name).name


def refuse_3(number: int) -> int:
    if number == 3:
        raise ValueError("three is not wanted")
    return number


def meet_others(folder: str) -> int:
    """Return how many tasks were under way at once with this one, itself included."""
    mine = Path(folder) / str(os.getpid())
    mine.touch()
    time.sleep(0.2)
    others = len(list(Path(folder).iterdir()))
    mine.unlink()
    return others


def sleep_long(folder: str) -> None:
    """Leave a file named after this process, and sleep."""
    (Path(folder) / str(os.getpid())).touch()
    time.sleep(10 * PATIENCE)


@pytest.mark.parametrize("count", [0, 1, 2])
def test_every_task_has_its_result(count: int) -> None:
    with Workers(count) as workers:
        assert dict(workers.run(square, range(20))) == {number: number * number for number in range(20)}
        assert list(workers.run(square, [])) == []
        assert dict(workers.run(str, [7, 8])) == {0: "7", 1: "8"}


def test_where_tasks_run() -> None:
    """Without workers here; with two on two others, which stay for the next stage."""
    with Workers(0) as workers:
        assert {pid for _, pid in workers.run(process, range(3))} == {os.getpid()}
    with Workers(2) as workers:
        first = {pid for _, pid in workers.run(process, range(12))}
        second = {pid for _, pid in workers.run(process, range(12))}
    assert os.getpid() not in first
    assert len(first | second) <= 2
    assert all(not is_alive(pid) for pid in first | second if isinstance(pid, int))


def test_no_more_tasks_at_once_than_allowed(tmp_path: Path) -> None:
    with Workers(2) as workers:
        assert {met for _, met in workers.run(meet_others, [str(tmp_path)] * 4, 1)} == {1}
        assert max(met for _, met in workers.run(meet_others, [str(tmp_path)] * 20) if isinstance(met, int)) == 2


@pytest.mark.parametrize("count", [1, 2])
def test_a_task_that_kills_its_worker_is_reported_alone(count: int) -> None:
    with Workers(count) as workers:
        results = dict(workers.run(die_at_3, range(8)))
        assert isinstance(results.pop(3), WorkerDied)
        assert results == {number: number for number in range(8) if number != 3}
        assert dict(workers.run(square, range(3))) == {0: 0, 1: 1, 2: 4}


@pytest.mark.parametrize("count", [1, 2])
def test_workers_that_are_killed_are_replaced(tmp_path: Path, count: int) -> None:
    """A task whose worker is killed once or twice is done all the same, even if it was alone by then."""
    names = ["a0", "b1", "c0", "d2", "e0", "f0", "g1"]
    with Workers(count) as workers:
        results = dict(workers.run(die_so_often, [str(tmp_path / name) for name in names]))
    assert results == dict(enumerate(names))
    assert len(list(tmp_path.iterdir())) == 4


@pytest.mark.parametrize("count", [0, 2])
def test_an_exception_of_a_task_is_raised(count: int) -> None:
    with Workers(count) as workers, pytest.raises(ValueError, match="three is not wanted"):
        list(workers.run(refuse_3, range(8)))


def is_alive(pid: int) -> bool:
    """Return whether a process runs; one that has ended but was not waited for does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in {"Z", "X"}


def wait_until(holds: Callable[[], bool], seconds: float = PATIENCE) -> bool:
    """Return whether something becomes true in time."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


@contextmanager
def sleeping_build(folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], list[int]]]:
    """Start a program with two workers that sleep; give it and its workers' process ids."""
    script = folder / "program.py"
    script.write_text(
        "import test_executors\n"
        "if __name__ == '__main__':\n"
        "    with test_executors.Workers(2) as workers:\n"
        f"        list(workers.run(test_executors.sleep_long, [{str(folder / 'pids')!r}] * 6))\n"
    )
    (folder / "pids").mkdir()
    tests = Path(__file__).parent
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tests.parent), str(tests)])}
    line = [sys.executable, str(script)]
    program = subprocess.Popen(line, env=env, stderr=subprocess.DEVNULL)
    pids: list[int] = []
    try:
        assert wait_until(lambda: len(list((folder / "pids").iterdir())) == 2)
        pids = [int(path.name) for path in (folder / "pids").iterdir()]
        yield program, pids
    finally:
        program.kill()
        program.wait()
        for pid in pids:
            if is_alive(pid):
                os.kill(pid, signal.SIGKILL)


needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes in /proc")


@needs_proc
def test_workers_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    with sleeping_build(tmp_path) as (program, pids):
        assert all(is_alive(pid) for pid in pids)
        program.kill()
        program.wait()
        assert wait_until(lambda: not any(is_alive(pid) for pid in pids))


@needs_proc
def test_ctrl_c_does_not_wait_for_the_tasks(tmp_path: Path) -> None:
    """The terminal sends it to the parent and the workers; all of them end, with the parent's traceback."""
    with sleeping_build(tmp_path) as (program, pids):
        for pid in (*pids, program.pid):
            os.kill(pid, signal.SIGINT)
        assert wait_until(lambda: program.poll() is not None)
        assert program.returncode == -signal.SIGINT
        assert wait_until(lambda: not any(is_alive(pid) for pid in pids))
