"""What can go wrong with a cluster alone: nobody answers, a scheduler or all workers go away, a client is lost."""

import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

pytest.importorskip("distributed")

import dask
import test_executors as contract
from dask_programs import ENV, Cluster, dask_cluster

from pipeline import dask_pool, executors
from pipeline.build import build
from pipeline.dask_pool import ClusterLost, ClusterUnfit, run_marked
from pipeline.fence import leave_mark, wait_for_tasks
from pipeline.workfolder import FolderBusy

PATIENCE = contract.PATIENCE
archives = contract.archives
whole = contract.whole


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with dask_cluster(tmp_path_factory.mktemp("cluster"), 2) as running:
        yield running


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no patience with clusters."""
    monkeypatch.setattr(dask_pool, "_CONNECT", 1.0)
    monkeypatch.setattr(dask_pool, "_DESERTED", 1.0)
    monkeypatch.setattr(dask_pool, "_STALE", 0.1)
    monkeypatch.setattr(executors, "_LOOK", 0.3)


@pytest.fixture
def port() -> Iterator[int]:
    """A port where somebody takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.usefixtures("hasty")
def test_an_address_where_nobody_answers(tmp_path: Path, port: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        unused = server.getsockname()[1]
    for number, reason in ((unused, ": Connection refused"), (port, "")):
        address = f"127.0.0.1:{number}"
        lost = pytest.raises(ClusterLost, match=f"^the Dask scheduler at {address} does not answer{reason}$")
        with contract.asked(f"dask://{address}", 2, tmp_path) as workers, lost:
            workers.reach()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize(
    "greeting",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n",
        bytes(1000),
        struct.pack("<3Q", 16, 0, 0),
        struct.pack("<3Q", 17, 1, 1) + b"\xff",
        struct.pack("<3Q", 19, 1, 3) + b"zzz",
    ],
)
def test_a_stranger_who_answers(tmp_path: Path, greeting: bytes) -> None:
    """The bytes are read as lengths and fields of Dask's, whatever that gives."""

    def answer(server: socket.socket) -> None:
        for _ in range(2):  # the first call only looks whether anybody is there
            with server.accept()[0] as caller, suppress(OSError):
                caller.sendall(greeting)
                caller.settimeout(PATIENCE)
                while caller.recv(1000):
                    pass

    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        stranger = threading.Thread(target=answer, args=(server,), daemon=True)
        stranger.start()
        lost = pytest.raises(ClusterLost, match=f"^the Dask scheduler at {address} does not answer$")
        with contract.asked(f"dask://{address}", 2, tmp_path) as workers, lost:
            workers.reach()
    assert list(tmp_path.iterdir()) == []


def test_workers_of_this_machine_are_replaced_however_long_that_takes(tmp_path: Path) -> None:
    """Dask itself gives up one whose name is missing so many seconds after a death: here before it can be back."""
    names = [str(tmp_path / f"a{number}.2") for number in range(3)]
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": 0.01}),
        contract.asked("dask", 2, tmp_path) as workers,
    ):
        assert dict(workers.run(contract.die_so_often, names)) == {0: "a0.2", 1: "a1.2", 2: "a2.2"}


@pytest.mark.usefixtures("hasty")
def test_a_cluster_that_does_not_answer_costs_nobody_a_data_set(tmp_path: Path, archives: Path, port: int) -> None:
    (tmp_path / "in").mkdir()
    shutil.copy(archives / "0.zip", tmp_path / "in")
    output = tmp_path / "out"
    build(contract.build_config(tmp_path / "in", output, "local", 0))
    before = contract.published(output)
    config = contract.build_config(tmp_path / "in", output, f"dask://127.0.0.1:{port}", 2)
    assert build(config).done == {}  # nothing to do: nobody is asked
    with pytest.raises(ClusterLost):
        build(config, overwrite=True)
    assert contract.published(output) == before


@pytest.mark.usefixtures("hasty")
def test_a_scheduler_without_workers_is_not_waited_for_for_ever(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    with (
        dask_cluster(tmp_path, 0) as cluster,
        contract.asked(cluster.executor, 2, folder) as workers,
        pytest.raises(ClusterLost, match=r"has had no worker for 1 seconds\nthe same command goes on"),
    ):
        list(workers.run(contract.square, range(3)))
    assert list(folder.iterdir()) == []


def test_a_worker_of_another_version_or_without_the_folder(tmp_path: Path) -> None:
    mark = leave_mark(tmp_path)
    with pytest.raises(ClusterUnfit, match=r"has goplanes [0-9.]+, and all need goplanes 0\.0$"):
        run_marked(str(mark), "goplanes 0.0", contract.square, 3)
    assert run_marked(str(mark), dask_pool.SOFTWARE, contract.square, 3) == 9


def goplanes(archives: Path, output: Path, executor: str) -> subprocess.Popen[str]:
    """Start the command on a cluster."""
    settings = ["filter.sizes=[9]", "output.games_per_block=20", "output.rows_per_shard=500", "augment.mode=random"]
    line = [sys.executable, "-m", "pipeline", "build", str(archives), "-o", str(output), "--executor", executor]
    for setting in [*settings, "rules.force={ko='simple',suicide=true}"]:
        line += ["--set", setting]
    return subprocess.Popen(line, env=ENV, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def wait_for_reading(output: Path) -> None:
    """Wait until the first task of a build has ended."""
    assert contract.wait_until(lambda: any((output / ".goplanes/work/read").glob("*.json")))


def test_a_scheduler_that_goes_away(tmp_path: Path, cluster: Cluster, archives: Path, whole: dict[str, bytes]) -> None:
    """The run ends with a message and nothing else; the same command, on this machine, goes on."""
    output = tmp_path / "out"
    program = goplanes(archives, output, cluster.executor)
    wait_for_reading(output)
    cluster.end_scheduler()
    assert not (output / "dataset.json").exists()
    start = time.monotonic()
    _, text = program.communicate(timeout=PATIENCE)
    assert time.monotonic() - start < 20
    assert program.returncode == 4
    lost = (
        f"goplanes: the Dask scheduler at {cluster.address} is lost: it went away\nthe same command goes on from here"
    )
    assert lost in text
    assert "Traceback" not in text
    assert "distributed" not in text
    build(contract.build_config(archives, output, "local", 0))
    assert contract.published(output) == whole


def test_ctrl_c_leaves_the_workers_of_a_scheduler(tmp_path: Path, cluster: Cluster, archives: Path) -> None:
    output = tmp_path / "out"
    pids = cluster.worker_pids()
    program = goplanes(archives, output, cluster.executor)
    wait_for_reading(output)
    program.send_signal(signal.SIGINT)
    _, text = program.communicate(timeout=PATIENCE)
    assert (program.returncode, "interrupted" in text, "Traceback" in text) == (130, True, False)
    assert cluster.worker_pids() == pids


@contract.needs_proc
def test_what_a_killed_run_left_on_a_cluster_is_waited_for(tmp_path: Path, cluster: Cluster) -> None:
    """A task cannot be called back. Those that had not begun never do."""
    with contract.sleeping_build(tmp_path, cluster.executor) as (program, pids):
        program.kill()
        program.wait()
        with pytest.raises(FolderBusy):
            wait_for_tasks(tmp_path, str, patience=1.0)
        assert {int(path.name) for path in (tmp_path / "pids").iterdir()} == set(pids)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        wait_for_tasks(tmp_path, str, patience=PATIENCE)
        assert contract.wait_until(lambda: len(cluster.worker_pids()) == 2)
        time.sleep(1.0)  # for whoever might begin
        assert len(list((tmp_path / "pids").iterdir())) == 2
