"""Cores and memory under control groups, made up in a folder."""

import os
from pathlib import Path

import pytest

from pipeline import machine


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree of control groups, in which this process is at ``jobs/mine``."""
    (tmp_path / "jobs" / "mine").mkdir(parents=True)
    monkeypatch.setattr(machine, "_GROUPS", tmp_path)
    read = Path.read_text
    said = "0::/jobs/mine\n"
    monkeypatch.setattr(
        Path, "read_text", lambda path, *rest: said if str(path) == "/proc/self/cgroup" else read(path, *rest)
    )
    return tmp_path


def test_the_machine_as_it_is(groups: Path) -> None:
    """Without any limit: the cores of this process, all memory."""
    assert machine.cores() == len(os.sched_getaffinity(0))
    assert machine.memory() == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def test_the_smallest_limit_on_the_way_up_counts(groups: Path) -> None:
    (groups / "jobs" / "mine" / "memory.max").write_text("3000000\n")
    (groups / "jobs" / "memory.max").write_text("2000000\n")
    (groups / "memory.max").write_text("max\n")
    assert machine.memory() == 2_000_000
    (groups / "jobs" / "cpu.max").write_text("50000 100000\n")
    assert machine.cores() == 1


def test_no_limit_is_none(groups: Path) -> None:
    """What is not a number, negative or larger than the machine limits nothing."""
    (groups / "jobs" / "mine" / "memory.max").write_text("max\n")
    (groups / "jobs" / "memory.limit_in_bytes").write_text(f"{2**62}\n")
    (groups / "jobs" / "cpu.cfs_quota_us").write_text("-1\n")
    (groups / "jobs" / "mine" / "cpu.max").write_text("max 100000\n")
    assert machine.memory() == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert machine.cores() == len(os.sched_getaffinity(0))
