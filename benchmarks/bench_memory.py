"""Memory, disk and time of whole builds: do they stay within ``run.memory``, with the same result, in linear time?

    python benchmarks/bench_memory.py [--games 20000,200000] [--memory 2GB,16GB] [--workers 2] [--folder DIR]
        [--set key=value ...]

Archives of made-up games (make_games.py) are built one after the other, with a warm kernel cache. More than twice a
second the proportional set size of the whole process tree is summed up; the bytes on the disk now and then. The largest
archive is built with every memory setting, and the files are compared.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from make_games import make_archive

SAMPLE_SECONDS, DISK_SECONDS = 0.25, 2.0


@dataclass(frozen=True, slots=True)
class Measured:
    """One build: peak of memory and disk in bytes, seconds, positions seen, and a hash of every file."""

    memory: int
    at: float
    disk: int
    final: int
    seconds: float
    positions: int
    files: dict[str, str]


def tree(root: int) -> list[int]:
    """Return a process and all its descendants."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, ValueError, IndexError):
                continue
            children.setdefault(parent, []).append(int(entry.name))
    found = [root]
    for process in found:
        found += children.get(process, [])
    return found


def summed_pss(root: int) -> int:
    """Return the proportional set size of a process tree; one that ended meanwhile counts nothing."""
    total = 0
    for process in tree(root):
        try:
            lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
    return total


def disk_use(folder: Path) -> int:
    """Return the bytes that a folder takes on the disk."""
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(path, name)).st_blocks * 512
            except OSError:
                continue
    return total


def measure(archive: Path, output: Path, memory: str, workers: int, settings: list[str]) -> Measured:
    """Build once and watch."""
    command = [sys.executable, "-m", "pipeline", "build", "--input", str(archive), "--output", str(output), "--json"]
    command += ["--workers", str(workers), "--set", f"run.memory={memory}", "--overwrite", "--yes"]
    for setting in settings:
        command += ["--set", setting]
    with tempfile.TemporaryFile("w+") as said:
        start = looked = time.perf_counter()
        build = subprocess.Popen(command, stdout=said)
        peak, at, disk = 0, 0.0, 0
        while build.poll() is None:
            now = time.perf_counter()
            if (used := summed_pss(build.pid)) > peak:
                peak, at = used, now - start
            if now - looked > DISK_SECONDS:
                looked, disk = now, max(disk, disk_use(output))
            time.sleep(max(0.0, SAMPLE_SECONDS - (time.perf_counter() - now)))
        seconds = time.perf_counter() - start
    if build.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: exit code {build.returncode}")
    manifest = json.loads((output / "dataset.json").read_text())
    files = {
        str(path.relative_to(output)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(output.rglob("*"))
        if path.is_file() and ".goplanes" not in path.parts
    }
    final = disk_use(output)
    return Measured(peak, at, max(disk, final), final, seconds, manifest["positions"]["seen"], files)


def row(games: int, memory: str, found: Measured) -> str:
    """Return a line of the table."""
    each = found.seconds / max(1, found.positions) * 1e6
    return (
        f"{games:>9,} {memory:>7} {found.memory / 1e6:>8,.0f} MB at {found.at:>5.0f} s {found.disk / 1e9:>7.2f} GB "
        f"{found.final / 1e9:>7.2f} GB {found.seconds:>7.1f} s {found.positions:>12,} {each:>6.2f} us"
    )


def main() -> None:
    """Read the command line, build everything, print the table and what was compared."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--games", default="20000,200000")
    parser.add_argument("--memory", default="2GB,16GB")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--set", action="append", default=[], dest="settings")
    arguments = parser.parse_args()
    counts, limits = sorted(map(int, arguments.games.split(","))), arguments.memory.split(",")
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        archives = {count: folder / f"games-{count}.zip" for count in counts}
        for count, archive in archives.items():
            if not archive.exists():
                make_archive(archive, count)
        output = folder / "built"
        measure(archives[counts[0]], output, limits[0], arguments.workers, arguments.settings)  # compiles and caches
        print("    games  memory      peak of all          peak disk   final disk      time    positions   each")
        found: dict[tuple[int, str], Measured] = {}
        for count in counts:
            for limit in limits if count == counts[-1] else limits[:1]:
                found[count, limit] = measure(archives[count], output, limit, arguments.workers, arguments.settings)
                print(row(count, limit, found[count, limit]), flush=True)
    small, large = found[counts[0], limits[0]], found[counts[-1], limits[0]]
    print(f"time a position: {large.seconds / large.positions / (small.seconds / small.positions):.2f} times as long")
    others = [found[counts[-1], limit].files for limit in limits]
    print("files: " + ("identical" if all(files == others[0] for files in others) else "DIFFERENT"))
    if any(files != others[0] for files in others):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
