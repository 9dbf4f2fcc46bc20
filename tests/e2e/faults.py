"""Faults at random moments of a build, and the same bytes after the same command has been run again.

    python tests/e2e/faults.py ARCHIVE... [--games 4500] [--times 5] [--seed 1] [--only killed,input]

Each ARCHIVE is a .tar.gz or .zip of SGF records, dealt into four zips; the build (all images, at least 3 blocks and 20
seconds) is compared with one that nothing happened to. The faults:

- ``killed``: SIGKILL of the parent, of a worker, of the whole group, in turn;
- ``full-disk``: the output lies on a small tmpfs that fills up, then grows;
- ``read-only``: no file can be made in the folders of the output for a while;
- ``input``: an input vanishes, or changes, and is put back;
- ``corrupted``: a byte of a file of the work in progress is flipped.

A build that is hit must end with a message and an exit code that is not 0, or with the right bytes; never with a
manifest beside wrong files. ``full-disk`` and ``read-only`` need root: without it they are left out, which is said.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from same_bytes import Builds, deal, digest, kill

KINDS = ("killed", "full-disk", "read-only", "input", "corrupted")
WORKERS = 2
GAVE_UP = 4  # exit code of a build that the system refused something
NO_INPUT = 2  # of one whose input was not there, or another one, from the beginning


def mounted(*arguments: str) -> bool:
    """Run ``mount``; return whether it did what was asked."""
    return subprocess.run(["mount", *arguments], capture_output=True, check=False).returncode == 0


def chattr(flag: str, folder: str) -> bool:
    """Let no file be made in a folder, or again; return whether the file system can do that."""
    return subprocess.run(["chattr", flag, folder], capture_output=True, check=False).returncode == 0


@contextmanager
def small_disk(folder: Path, size: int) -> Iterator[None]:
    """Mount a file system of ``size`` bytes."""
    folder.mkdir()
    if not mounted("-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)):
        raise SystemExit(f"{folder}: cannot be mounted")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
        folder.rmdir()


class Faults:
    """One fault after the other, each followed by the same command and a comparison."""

    def __init__(self, builds: Builds, chance: random.Random) -> None:
        self.builds, self.chance = builds, chance
        self.output = builds.folder / "out"

    def moment(self, latest: float = 0.7) -> float:
        """Return how long to wait before something happens."""
        return self.chance.uniform(0.5, latest * self.builds.seconds)

    def ended(self, build: "subprocess.Popen[bytes]") -> int:
        """Wait for a build that was hit; it may not hang."""
        return build.wait(timeout=10 * self.builds.seconds + 60)

    def again(self, what: str, output: Path, code: int, codes: tuple[int, ...]) -> None:
        """Check the exit code of the build that was hit, run the command again and compare."""
        if code not in {0, *codes}:
            raise SystemExit(f"{what}: exit code {code}; see {self.builds.folder / 'build.log'}")
        if code == 0 and digest(output) != self.builds.expected:
            raise SystemExit(f"{what}: ended well with other files")
        if code != 0 and (output / "dataset.json").exists():
            raise SystemExit(f"{what}: exit code {code} and yet a manifest")
        self.builds.finish(output, WORKERS)
        self.builds.compare(f"{what}, exit code {code}", output)

    def killed(self, number: int) -> None:
        """Kill the parent, a worker or the group."""
        target, wait = ("parent", "worker", "group")[number % 3], self.moment()
        build = self.builds.start(self.output, WORKERS)
        time.sleep(wait)
        kill(build, target, self.chance)
        self.again(f"{target} killed after {wait:.1f} s", self.output, build.returncode, (-signal.SIGKILL,))

    def full_disk(self, _: int) -> None:
        """Fill a disk that is too small for the work and the shards together."""
        disk = self.builds.folder / "disk"
        size = int(self.chance.uniform(0.05, 0.95) * self.builds.size)
        with small_disk(disk, size):
            code = self.ended(self.builds.start(disk / "out", WORKERS))
            if code == 0:
                raise SystemExit(f"a disk of {size:,} bytes was large enough")
            mounted("-o", f"remount,size={8 * self.builds.size}", str(disk))
            self.again(f"disk of {size / 1e6:.0f} MB full", disk / "out", code, (GAVE_UP,))

    def read_only(self, _: int) -> None:
        """Let no file be made in any folder of the output for a while."""
        wait = self.moment()
        build = self.builds.start(self.output, WORKERS)
        time.sleep(wait)
        while not self.output.is_dir() and build.poll() is None:
            time.sleep(0.05)
        folders = [str(path) for path in (self.output, *self.output.rglob("*")) if path.is_dir()]
        # One by one: some of them may be gone by now.
        closed = [chattr("+i", folder) for folder in folders]
        code = self.ended(build)
        for folder in folders:
            chattr("-i", folder)
        if not any(closed):
            raise SystemExit(f"{self.output}: the file system cannot protect a folder")
        self.again(f"read-only after {wait:.1f} s", self.output, code, (GAVE_UP,))

    def input(self, number: int) -> None:
        """Take an input away, or change it, and put it back."""
        path, wait = Path(self.chance.choice(self.builds.inputs)), self.moment(0.12)
        kept = path.with_suffix(".kept")
        shutil.copy2(path, kept)
        build = self.builds.start(self.output, WORKERS)
        time.sleep(wait)
        if number % 2 == 0:
            path.unlink()
        else:
            with path.open("r+b") as file:
                file.seek(path.stat().st_size // 2)
                file.write(b"changed")
        code = self.ended(build)
        os.replace(kept, path)
        happened = "vanished" if number % 2 == 0 else "changed"
        self.again(f"an input {happened} after {wait:.1f} s", self.output, code, (GAVE_UP, NO_INPUT))

    def corrupted(self, _: int) -> None:
        """Flip a byte of a file of the work in progress, however small."""
        wait = self.moment()
        build = self.builds.start(self.output, WORKERS)
        time.sleep(wait)
        name = None
        while name is None and build.poll() is None:
            name = self.flip()
        code = self.ended(build)
        self.again(f"{name} damaged after {wait:.1f} s", self.output, code, (GAVE_UP,))

    def flip(self) -> str | None:
        """Flip a bit of some file of the work in progress; return its name, None where there is none yet."""
        folder = self.output / ".goplanes" / "work"
        work = [path for path in folder.rglob("*") if not path.name.startswith(".tmp-")]
        for path in self.chance.sample(work, len(work)):
            try:
                size = path.stat().st_size if path.is_file() else 0
                if size == 0:
                    continue
                with path.open("r+b") as file:
                    place = self.chance.randrange(size)
                    file.seek(place)
                    byte = file.read(1)[0]
                    file.seek(place)
                    file.write(bytes([byte ^ (1 << self.chance.randrange(8))]))
            except OSError:
                continue
            return path.relative_to(folder).as_posix()
        return None


def main() -> None:
    """Read the command line and let everything happen."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("archives", type=Path, nargs="+", metavar="ARCHIVE")
    parser.add_argument("--games", type=int, default=4500)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default=",".join(KINDS))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        builds = Builds(deal(options.archives, options.games, Path(name)), Path(name), "parquet")
        builds.measure(WORKERS)
        faults = Faults(builds, random.Random(options.seed))
        happen: dict[str, Callable[[int], None]] = {
            "killed": faults.killed,
            "full-disk": faults.full_disk,
            "read-only": faults.read_only,
            "input": faults.input,
            "corrupted": faults.corrupted,
        }
        for kind in options.only.split(","):
            if kind in {"full-disk", "read-only"} and os.geteuid() != 0:
                print(f"{kind}: left out, it needs root")
                continue
            for number in range(options.times):
                happen[kind](number)
    print("after every fault the same command gave the same bytes")


if __name__ == "__main__":
    main()
