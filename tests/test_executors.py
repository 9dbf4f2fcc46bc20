"""Tasks on workers of every kind: results, workers that are killed, exceptions, Ctrl-C, parents that are killed.

``here``: no workers; ``local-N``: N processes; ``dask``: a cluster of two that is made for the run; ``scheduler``: two
workers of a scheduler that runs already. What is Dask's alone is in ``test_dask_pool.py``.
"""

import importlib.util
import os
import signal
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest
from dask_programs import ENV, Cluster, dask_cluster
from random_games import random_line

from pipeline.build import build, check_config
from pipeline.config import ConfigError, make_config
from pipeline.executors import WorkerDied, Workers, workers_of
from pipeline.files import NotAFileError

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


def miss_file(name: str) -> None:
    Path(name).read_bytes()


def refuse_pipe(name: str) -> None:
    raise NotAFileError(name)


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


needs_dask = pytest.mark.skipif(importlib.util.find_spec("distributed") is None, reason="distributed not installed")
needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes in /proc")
DASK = [pytest.param(name, marks=needs_dask) for name in ("dask", "scheduler")]
WITH_WORKERS = ["local-1", "local-2", *DASK]


def asked(executor: str, count: int, folder: Path | str) -> Workers:
    """Return the workers that a configuration asks for."""
    config = make_config({"run": {"executor": executor, "workers": count}}, "test")
    return workers_of(config, count, Path(folder))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with dask_cluster(tmp_path_factory.mktemp("cluster"), 2) as running:
        yield running


@pytest.fixture(scope="module")
def workers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    """Workers of a kind, the same ones for all tests that ask for it."""
    name, _, count = request.param.partition("-")
    executor = {"here": "local", "scheduler": ""}.get(name, name)
    executor = executor or request.getfixturevalue("cluster").executor
    numbers = {"here": 0, "dask": 2, "scheduler": 8}
    with asked(executor, numbers.get(name) or int(count or 0), tmp_path_factory.mktemp("folder")) as made:
        yield made


on_workers = pytest.mark.parametrize("workers", WITH_WORKERS, indirect=True, scope="module")
everywhere = pytest.mark.parametrize("workers", ["here", *WITH_WORKERS], indirect=True, scope="module")


@everywhere
def test_every_task_has_its_result(workers: Workers) -> None:
    assert dict(workers.run(square, range(20))) == {number: number * number for number in range(20)}
    assert list(workers.run(square, [])) == []
    assert dict(workers.run(str, [7, 8])) == {0: "7", 1: "8"}


@everywhere
def test_where_tasks_run(workers: Workers, request: pytest.FixtureRequest) -> None:
    """Without workers here; else on others, which stay for the next stage."""
    first = {pid for _, pid in workers.run(process, range(12))}
    second = {pid for _, pid in workers.run(process, range(12))}
    if request.node.callspec.params["workers"] == "here":
        assert first | second == {os.getpid()}
    else:
        assert os.getpid() not in first
        assert len(first | second) <= 2


@needs_proc
@pytest.mark.parametrize("executor", ["local", DASK[0]])
def test_workers_of_this_machine_end_with_the_run(executor: str, tmp_path: Path) -> None:
    with asked(executor, 2, tmp_path) as workers:
        pids = {pid for _, pid in workers.run(process, range(6)) if isinstance(pid, int)}
    assert pids
    assert not any(is_alive(pid) for pid in pids)


@on_workers
def test_no_more_tasks_at_once_than_allowed(workers: Workers, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    assert {met for _, met in workers.run(meet_others, [str(tmp_path)] * 4, 1)} == {1}
    most = max(met for _, met in workers.run(meet_others, [str(tmp_path)] * 16) if isinstance(met, int))
    assert most == (1 if request.node.callspec.params["workers"] == "local-1" else 2)


@on_workers
def test_a_task_that_kills_its_worker_is_reported_alone(workers: Workers) -> None:
    results = dict(workers.run(die_at_3, range(8)))
    assert isinstance(results.pop(3), WorkerDied)
    assert results == {number: number for number in range(8) if number != 3}
    assert dict(workers.run(square, range(3))) == {0: 0, 1: 1, 2: 4}


@on_workers
def test_workers_that_are_killed_are_replaced(workers: Workers, tmp_path: Path) -> None:
    """A task whose worker is killed once or twice is done all the same, even if it was alone by then."""
    names = ["a0", "b1", "c0", "d2", "e0", "f0", "g1"]
    results = dict(workers.run(die_so_often, [str(tmp_path / name) for name in names]))
    assert results == dict(enumerate(names))
    assert len(list(tmp_path.iterdir())) == 4


@everywhere
def test_an_exception_of_a_task_is_raised(workers: Workers, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^three is not wanted$"):
        list(workers.run(refuse_3, range(8)))
    with pytest.raises(FileNotFoundError) as missing:
        list(workers.run(miss_file, [str(tmp_path / "none")]))
    assert missing.value.filename == str(tmp_path / "none")
    with pytest.raises(NotAFileError, match=r"^a pipe: is a pipe, a socket or a device, not a file$"):
        list(workers.run(refuse_pipe, ["a pipe"]))
    assert dict(workers.run(square, range(3))) == {0: 0, 1: 1, 2: 4}


@pytest.mark.parametrize(
    "name", ["dask://", "dask://host", "dask://:1", "dask://h:0", "dask://h:65536", "Dask", "tcp://h:1"]
)
def test_an_executor_that_is_none(name: str) -> None:
    with pytest.raises(ConfigError, match=r'write "local", "dask" \(a cluster on this machine\) or "dask://host:port"'):
        check_config(make_config({"run": {"executor": name}}, "test"))


@pytest.mark.parametrize("name", ["dask", "dask://host:8786", "dask://[::1]:8786"])
def test_dask_is_an_extra(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    config = make_config({"run": {"executor": name}}, "test")
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r'pip install "goplanes\[dask\]"'):
        check_config(config)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: "there")
    check_config(config)


def test_no_cluster_of_no_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: "there")
    with pytest.raises(ConfigError, match=r"run\.workers = 0"):
        check_config(make_config({"run": {"executor": "dask", "workers": 0}}, "test"))


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
def sleeping_build(folder: Path, executor: str) -> Iterator[tuple[subprocess.Popen[bytes], list[int]]]:
    """Start a program with two workers that sleep; give it and its workers' process ids."""
    script = folder / "program.py"
    script.write_text(
        "import test_executors\n"
        "if __name__ == '__main__':\n"
        f"    with test_executors.asked({executor!r}, 2, {str(folder)!r}) as workers:\n"
        f"        list(workers.run(test_executors.sleep_long, [{str(folder / 'pids')!r}] * 6))\n"
    )
    (folder / "pids").mkdir()
    program = subprocess.Popen([sys.executable, str(script)], env=ENV, stderr=subprocess.DEVNULL)
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


@needs_proc
@pytest.mark.parametrize("executor", ["local", DASK[0]])
def test_workers_end_when_their_parent_is_killed(tmp_path: Path, executor: str) -> None:
    with sleeping_build(tmp_path, executor) as (program, pids):
        assert all(is_alive(pid) for pid in pids)
        program.kill()
        program.wait()
        assert wait_until(lambda: not any(is_alive(pid) for pid in pids))


@needs_proc
@pytest.mark.parametrize("executor", ["local", DASK[0]])
def test_ctrl_c_does_not_wait_for_the_tasks(tmp_path: Path, executor: str) -> None:
    """The terminal sends it to the parent and the workers; all of them end, with the parent's traceback."""
    with sleeping_build(tmp_path, executor) as (program, pids):
        for pid in (*pids, program.pid):
            os.kill(pid, signal.SIGINT)
        assert wait_until(lambda: program.poll() is not None)
        assert program.returncode == -signal.SIGINT
        assert wait_until(lambda: not any(is_alive(pid) for pid in pids))


LETTERS = "abcdefghi"


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four zips of made-up games, so that there are four tasks to read them."""
    folder, rng = tmp_path_factory.mktemp("archives"), Random("executors")
    for number in range(4):
        with zipfile.ZipFile(folder / f"{number}.zip", "w") as archive:
            for game in range(30):
                moves = random_line(rng, 9, 9, 40).moves
                points = ["" if point is None else LETTERS[point[1]] + LETTERS[point[0]] for point, _ in moves]
                nodes = "".join(f";{' BW'[colour]}[{point}]" for point, (_, colour) in zip(points, moves, strict=True))
                archive.writestr(f"{game}.sgf", f"(;GM[1]SZ[9]KM[{number}.5]RE[B+{game + 1}.5]{nodes})")
    return folder


def build_config(archives: Path, output: Path, executor: str, workers: int) -> Any:
    tables = {
        "input": {"paths": [str(archives)]},
        "filter": {"sizes": [9]},
        "rules": {"force": {"ko": "simple", "suicide": True}},
        "encode": {"scheme": "agz17"},
        "augment": {"mode": "random"},
        "output": {"path": str(output), "games_per_block": 20, "rows_per_shard": 500},
        "run": {"executor": executor, "workers": workers},
    }
    return make_config(tables, "test")


def published(folder: Path) -> dict[str, bytes]:
    """Return the bytes of every file of a data set."""
    paths = (path for path in folder.rglob("*") if path.is_file() and ".goplanes" not in path.parts)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


@pytest.fixture(scope="module")
def whole(archives: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of the build without workers."""
    output = tmp_path_factory.mktemp("whole") / "out"
    manifest = build(build_config(archives, output, "local", 0)).manifest
    assert len(manifest.shards) >= 6
    return published(output)


@pytest.mark.parametrize("executor", ["local", DASK[0]])
def test_a_build_has_the_same_bytes(executor: str, archives: Path, whole: dict[str, bytes], tmp_path: Path) -> None:
    build(build_config(archives, tmp_path / "out", executor, 2))
    assert published(tmp_path / "out") == whole


@needs_dask
def test_a_build_on_a_cluster_of_which_a_worker_is_killed(
    archives: Path, whole: dict[str, bytes], tmp_path: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The workers stand in another folder: a relative output is not theirs."""
    killed: list[bool] = []
    pid = cluster.worker_pids()[0]

    def kill() -> None:
        wait_until(lambda: any((tmp_path / "out/.goplanes/work/read").glob("*.json")))
        os.kill(pid, signal.SIGKILL)
        killed.append(not (tmp_path / "out" / "dataset.json").exists())

    monkeypatch.chdir(tmp_path)
    killer = threading.Thread(target=kill)
    killer.start()
    try:
        build(build_config(archives, Path("out"), cluster.executor, 2))
    finally:
        killer.join()
    assert killed == [True]
    assert published(tmp_path / "out") == whole
    assert {path.name for path in (tmp_path / "out" / ".goplanes").iterdir()} == {"build.json", "lock"}
