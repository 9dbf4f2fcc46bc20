"""The same bytes whatever happens: worker counts, input order, and kills at random moments.

    python tests/e2e/same_bytes.py ARCHIVE [--games 3000] [--formats parquet,hdf5] [--kills 5] [--seed 1]

ARCHIVE is a .tar.gz or .zip of SGF records. Its first games are dealt into four zips; a build of them with all
images (at least 3 blocks, 8 shards and 20 seconds) must give identical published files for 1, 2 and 4
workers, for the inputs in reverse order, and after SIGKILL of the parent, of one worker and of the whole
process group. It takes some twenty minutes. Exit code 0: all equal; 1: the first difference is printed.
"""

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

DEALT = 4
LEAST_SECONDS = 20.0


def records(archive: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the names and bytes of the records of an archive."""
    if archive.suffix == ".zip":
        with zipfile.ZipFile(archive) as file:
            for name in file.namelist():
                if name.lower().endswith(".sgf"):
                    yield name, file.read(name)
        return
    with tarfile.open(archive) as file:
        for member in file:
            if member.isfile() and member.name.lower().endswith(".sgf"):
                handle = file.extractfile(member)
                assert handle is not None
                yield member.name, handle.read()


def deal(archives: Sequence[Path], games: int, folder: Path) -> list[str]:
    """Write the first games of the archives into four zips; return their paths."""
    paths = [folder / f"deal-{number}.zip" for number in range(DEALT)]
    files = [zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) for path in paths]
    found = (record for archive in archives for record in records(archive))
    for number, (name, data) in zip(range(games), found, strict=False):
        files[number % DEALT].writestr(zipfile.ZipInfo(name), data)
    for file in files:
        file.close()
    return [str(path) for path in paths]


def digest(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every published file."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".goplanes" not in path.parts
    }


class Builds:
    """Builds of one format, each compared with the first."""

    def __init__(self, inputs: list[str], folder: Path, shard_format: str) -> None:
        self.inputs, self.folder, self.format = inputs, folder, shard_format
        self.expected: dict[str, str] = {}
        self.seconds = 0.0
        self.size = 0  # bytes of all published files

    def start(self, output: Path, workers: int, inputs: list[str] | None = None) -> "subprocess.Popen[bytes]":
        """Start a build in a process group of its own."""
        sources = [part for path in inputs or self.inputs for part in ("--input", path)]
        command = [sys.executable, "-m", "pipeline", "build", "agz17", *sources, "--output", str(output)]
        command += ["--workers", str(workers), "--set", f"output.format={self.format}"]
        command += ["--set", "augment.mode=all", "--set", "output.games_per_block=300"]
        command += ["--set", "output.rows_per_shard=100_000", "--set", "output.compression=gzip"]
        with open(self.folder / "build.log", "ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)

    def finish(self, output: Path, workers: int, inputs: list[str] | None = None) -> float:
        """Run a build to its end; return its seconds."""
        begun = time.perf_counter()
        code = self.start(output, workers, inputs).wait()
        if code != 0:
            raise SystemExit(f"{self.format}: a build ended with exit code {code}; see {self.folder / 'build.log'}")
        return time.perf_counter() - begun

    def measure(self, workers: int) -> None:
        """Build for the first time; the others are compared with it. Stops where it is too small to prove anything."""
        output = self.folder / "out"
        self.seconds = self.finish(output, workers)
        self.expected = digest(output)
        self.size = sum(path.stat().st_size for path in output.rglob("*") if path.is_file())
        manifest = json.loads((output / "dataset.json").read_text())
        shards, kept = len(manifest["shards"]), manifest["records"]["kept"]
        blocks = -(-kept // manifest["config"]["output"]["games_per_block"])
        print(f"{self.format}: {kept} games, {blocks} blocks, {shards} shards, {self.seconds:.0f} s, {workers} workers")
        if kept < 1000 or blocks < 3 or shards < 8 or self.seconds < LEAST_SECONDS:
            raise SystemExit("too small to prove anything: raise --games")
        shutil.rmtree(output)

    def compare(self, what: str, output: Path) -> None:
        """Compare a finished data set with the first one, then remove it."""
        found = digest(output)
        different = sorted(name for name in {*found, *self.expected} if found.get(name) != self.expected.get(name))
        if different:
            raise SystemExit(f"{self.format}: {what}: {len(different)} files differ, first {different[0]}")
        if leftovers := list(output.rglob(".tmp-*")):
            raise SystemExit(f"{self.format}: {what}: left over {leftovers[0]}")
        print(f"{self.format}: {what}: {len(found)} files identical", flush=True)
        shutil.rmtree(output)


def children(parent: int) -> list[int]:
    """Return the worker processes of a build."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if int(fields[1]) == parent and b"spawn_main" in command:
                found.append(int(entry.name))
    return found


def kill(build: "subprocess.Popen[bytes]", target: str, chance: random.Random) -> bool:
    """Kill the parent, a worker, or the group; return whether the build has to be run again."""
    if target == "worker":
        workers = children(build.pid)
        if workers:
            os.kill(chance.choice(workers), signal.SIGKILL)
        return build.wait() != 0
    if target == "parent":
        os.kill(build.pid, signal.SIGKILL)
    else:
        os.killpg(build.pid, signal.SIGKILL)
    build.wait()
    return True


def run(builds: Builds, kills: int, chance: random.Random) -> None:
    """Run all builds of one format."""
    output = builds.folder / "out"
    builds.measure(1)
    for workers in (2, 4):
        seconds = builds.finish(output, workers)
        builds.compare(f"{workers} workers ({seconds:.0f} s)", output)
    builds.finish(output, 2, builds.inputs[::-1])
    builds.compare("inputs in reverse order", output)
    for target in ("parent", "worker", "group"):
        for _ in range(kills):
            moment = chance.uniform(0.5, 0.6 * builds.seconds)
            build = builds.start(output, 2)
            time.sleep(moment)
            ended = build.poll() is not None
            if kill(build, target, chance) and not ended:
                builds.finish(output, 2)
            builds.compare(f"{target} killed after {moment:.1f} s{' (had ended)' if ended else ''}", output)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("archive", type=Path)
    parser.add_argument("--games", type=int, default=3000)
    parser.add_argument("--formats", default="parquet,hdf5")
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        inputs = deal([options.archive], options.games, folder)
        for shard_format in options.formats.split(","):
            run(Builds(inputs, folder, shard_format), options.kills, random.Random(options.seed))
    print("all builds gave the same bytes")


if __name__ == "__main__":
    main()
