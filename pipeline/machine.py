"""What this machine lets a build have: cores and memory, control groups and affinity counted."""

import math
import os
from collections.abc import Iterator
from pathlib import Path

_GROUPS = Path("/sys/fs/cgroup")


def cores() -> int:
    """Return how many cores this process may use, at least 1."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quotas = [allowed]
    for folder in _group_folders("cpu"):
        quota, period = _cpu_quota(folder)
        if quota > 0 and period > 0:
            quotas.append(math.ceil(quota / period))
    return max(1, min(quotas))


def memory() -> int:
    """Return how many bytes this process and its children may have in all."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for folder in _group_folders("memory"):
        limits += [_number(folder / name) for name in ("memory.max", "memory.limit_in_bytes")]
    return min(limit for limit in limits if limit > 0)


def _group_folders(controller: str) -> Iterator[Path]:
    """Yield the folders of the control groups that this process is in, up to the root, of either version."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, names, path = line.split(":", 2)
        if names == "" or controller in names.split(","):
            folder = (_GROUPS / names if names else _GROUPS) / path.lstrip("/")
            yield from (folder, *(parent for parent in folder.parents if parent.is_relative_to(_GROUPS)))


def _cpu_quota(folder: Path) -> tuple[int, int]:
    """Return (microseconds allowed, of how many) of a control group; -1 for no limit."""
    try:
        quota, _, period = (folder / "cpu.max").read_text().partition(" ")
        return (int(quota), int(period)) if quota != "max" else (-1, -1)
    except (OSError, ValueError):
        return _number(folder / "cpu.cfs_quota_us"), _number(folder / "cpu.cfs_period_us")


def _number(path: Path) -> int:
    """Return the number in a file, -1 where there is none."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return -1
