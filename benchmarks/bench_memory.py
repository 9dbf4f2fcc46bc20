"""Memory, disk and time of whole builds: bounded by ``run.memory``, the same files for every setting, linear in games.

    python -m benchmarks.bench_memory [--games 20000,200000] [--memory 2GB,16GB] [--workers 2] [--scheme agz17]
                                      [--set TABLE.KEY=VALUE ...] [--folder DIR]

Archives of made games (``make_games.py``) are made in DIR, or taken from there, and built one after the other for each
memory setting, with a warm kernel cache. Four times a second the proportional set sizes (PSS) of all processes of a
build are summed up, every two seconds the blocks on disk of its output folder. Data sets are removed once their files
are hashed. Exit code 1: a build failed, or files differ between memory settings.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.make_games import make_archive
from pipeline.config import ConfigError, make_config
from pipeline.files import sha256_of_file

ROOT = Path(__file__).parents[1]
PSS_SECONDS, DISK_SECONDS = 0.25, 2.0
LONGEST_GAP = 0.5  # seconds between two samples of memory
WARM_GAMES = 200
MOST_TIMES = 1.3  # the time a position, largest count to smallest


@dataclass(slots=True)
class Watch:
    """What was seen of a running build: bytes at the peak and after how many seconds, the longest time not looked."""

    begun: float = field(default_factory=time.perf_counter)
    pss: int = 0
    pss_at: float = 0.0
    gap: float = 0.0
    disk: int = 0

    def follow(self, build: "subprocess.Popen[bytes]", output: Path) -> float:
        """Sample until the build ends; return its seconds."""
        looked = disk_looked = self.begun
        while build.poll() is None:
            now = time.perf_counter()
            self.gap, looked = max(self.gap, now - looked), now
            if (pss := summed_pss(build.pid)) > self.pss:
                self.pss, self.pss_at = pss, now - self.begun
            if now - disk_looked >= DISK_SECONDS:
                self.disk, disk_looked = max(self.disk, disk_bytes(output)), now
            with suppress(subprocess.TimeoutExpired):
                build.wait(max(0.01, now + PSS_SECONDS - time.perf_counter()))
        return time.perf_counter() - self.begun


@dataclass(frozen=True, slots=True)
class Measured:
    """A finished build: its ``watch``, seconds and positions, bytes on disk, seconds by stage, SHA-256 by file."""

    watch: Watch
    seconds: float
    positions: int
    disk: int
    stages: dict[str, float]
    files: dict[str, str]

    @property
    def each(self) -> float:
        """Microseconds a position."""
        return self.seconds / self.positions * 1e6

    @property
    def peak_stage(self) -> str:
        """The stage in which the most memory was used: stages follow one another, from the start of the process on."""
        ended = max(0.0, self.seconds - sum(self.stages.values())) / 2  # loading, and as much of it after the last
        for name, seconds in self.stages.items():
            ended += seconds
            if self.watch.pss_at < ended:
                return name
        return "end"


def processes(root: int) -> list[int]:
    """Return a process, its descendants, and what is left in its session of those whose parents have ended."""
    children: dict[int, list[int]] = {}
    found = [root]
    for entry in os.listdir("/proc"):
        if entry.isdecimal():
            try:
                fields = Path("/proc", entry, "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has ended
                continue
            parent, session = int(fields[1]), int(fields[3])
            children.setdefault(parent, []).append(int(entry))
            if session == root != int(entry):
                found.append(int(entry))
    for process in found:
        found += [child for child in children.get(process, []) if child not in found]
    return found


def summed_pss(root: int) -> int:
    """Return the bytes of memory of a process and its descendants, shared pages counted once."""
    total = 0
    for process in processes(root):
        try:
            lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        except OSError:  # it has ended, or is about to
            continue
        total += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
    return total


def disk_bytes(folder: Path) -> int:
    """Return the bytes that the files of a folder take up on disk."""
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                total += os.lstat(os.path.join(path, name)).st_blocks * 512
    return total


def published_files(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every published file."""
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file() and ".goplanes" not in path.parts)
    return {path.relative_to(folder).as_posix(): sha256_of_file(path) for path in paths}


def measure(archive: Path, output: Path, memory: str, options: argparse.Namespace) -> Measured:
    """Build once, watch it, and remove the data set. Raises SystemExit where the build fails."""
    command = [sys.executable, "-m", "pipeline", "build", "--input", str(archive), "--output", str(output), "--json"]
    command += ["--overwrite", "--yes", "--workers", str(options.workers), "--scheme", options.scheme]
    for setting in ("augment.mode=none", "output.format=parquet", f"run.memory={memory}", *options.settings):
        command += ["--set", setting]
    said, log = output.with_suffix(".json"), output.with_suffix(".log")
    with said.open("wb") as result, log.open("wb") as told:
        watch = Watch()
        build = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=result, stderr=told, start_new_session=True
        )
        try:
            seconds = watch.follow(build, output)
        finally:
            if build.poll() is None:
                os.killpg(build.pid, signal.SIGKILL)
    if build.returncode != 0:
        raise SystemExit(f"exit code {build.returncode}: {' '.join(command)}\n{log.read_text()}")
    facts = json.loads(said.read_bytes())
    final = disk_bytes(output)
    watch.disk = max(watch.disk, final)
    files = published_files(output)
    shutil.rmtree(output)
    return Measured(watch, seconds, facts["positions"]["seen"], final, facts["seconds"], files)


def line(games: int, memory: str, found: Measured) -> str:
    """Return a line of the table."""
    verdict = "" if found.watch.pss < _bytes_of(memory) else " MISSED"
    return (
        f"{games:>9,} {memory:>8} {found.watch.pss / 1e9:>7.2f} GB in {found.peak_stage:<8}{found.watch.gap:>6.2f} s "
        f"{found.watch.disk / 1e9:>8.2f} GB {found.disk / 1e9:>8.2f} GB {found.seconds:>8.1f} s {found.positions:>12,} "
        f"{found.each:>8.2f} us{verdict}"
    )


def _bytes_of(memory: str) -> int:
    """Return the bytes of ``run.memory`` as the configuration reads it. Raises ConfigError."""
    limit = make_config({"run": {"memory": memory}}, "--memory").run.memory
    assert limit is not None
    return limit


def difference(one: dict[str, str], other: dict[str, str]) -> str | None:
    """Return the first file that two data sets do not have in common; None where all are equal."""
    return next((name for name in sorted({*one, *other}) if one.get(name) != other.get(name)), None)


def compare(counts: Sequence[int], limits: Sequence[str], found: dict[tuple[int, str], Measured]) -> bool:
    """Print what differs between memory settings, and how time grows; return whether all files are the same."""
    same = True
    for limit in limits:
        times = found[counts[-1], limit].each / found[counts[0], limit].each
        if counts[0] < counts[-1]:
            verdict = "met" if times <= MOST_TIMES else "MISSED"
            print(
                f"{limit}: {times:.2f} times as long a position at {counts[-1]:,} games as at {counts[0]:,}: {verdict}"
            )
    for count in counts:
        first = found[count, limits[0]].files
        for limit in limits[1:]:
            name = difference(first, found[count, limit].files)
            same = same and name is None
            result = f"{len(first)} files identical" if name is None else f"{name} differs"
            print(f"{count:,} games, {limits[0]} and {limit}: {result}")
    return same


def run(counts: Sequence[int], limits: Sequence[str], folder: Path, options: argparse.Namespace) -> bool:
    """Make what is missing, build and measure everything; return whether files are the same for every setting."""
    archives = {count: folder / f"games-{count}.zip" for count in (*counts, WARM_GAMES)}
    for count, archive in archives.items():
        if not archive.exists():
            make_archive(archive, count)
    output = folder / "built"
    measure(archives[WARM_GAMES], output, limits[0], options)  # compiles the kernels
    print(
        f"{'games':>9} {'memory':>8} {'peak of all processes':>22} {'gap':>6} {'peak disk':>11} {'final disk':>11} "
        f"{'time':>10} {'positions':>12} {'each':>11}",
        flush=True,
    )
    found: dict[tuple[int, str], Measured] = {}
    for limit in limits:
        for count in counts:
            found[count, limit] = measure(archives[count], output, limit, options)
            print(line(count, limit, found[count, limit]), flush=True)
    if (gap := max(each.watch.gap for each in found.values())) > LONGEST_GAP:
        print(f"memory was not looked at for {gap:.2f} s: a peak may have been missed")
    return compare(counts, limits, found)


def main() -> None:
    """Read the command line and run; exit code 1 where files differ."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--games", default="20000,200000", help="counts, with commas")
    parser.add_argument("--memory", default="2GB,16GB", help="values of run.memory, with commas")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--scheme", default="agz17")
    parser.add_argument("--set", action="append", default=[], dest="settings", metavar="TABLE.KEY=VALUE")
    parser.add_argument("--folder", type=Path, help="for archives, which stay there, and data sets")
    options = parser.parse_args()
    counts, limits = sorted({int(count) for count in options.games.split(",")}), options.memory.split(",")
    try:
        for limit in limits:
            _bytes_of(limit)
    except ConfigError as error:
        parser.error(str(error))
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.folder or Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        if not run(counts, limits, folder, options):
            sys.exit(1)


if __name__ == "__main__":
    main()
