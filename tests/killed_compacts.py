"""Compactions that kill themselves, each in a process of its own; ``test_compact.py`` runs this as a script.

``python killed_compacts.py GROWN ONCE exchange|renames`` compacts copies of the data set GROWN, each killed (SIGKILL)
before one of the calls that change names on the disk, and again by the same command, which has to end with the files
of ONCE. ``renames``: on a system that cannot exchange two folders. Of the calls before the new data set is whole
every 24th is taken, of those after it every one.

After each kill the folder must hold the old data set whole, or the new one; between two renames it may be away, and a
build must then refuse to make another one there. Prints, as JSON, what was found after the kills, and how often.
"""

import ctypes
import json
import os
import shutil
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pipeline import compact as compacts
from pipeline.config import Run
from pipeline.files import sha256_of_file
from pipeline.manifest import read_manifest
from pipeline.progress import Progress
from pipeline.schemes import find_scheme
from pipeline.warm import warm_up
from pipeline.workfolder import FolderMismatch, WorkFolder

_SYSTEM = ctypes.CDLL(None, use_errno=True)
_CALLS = ("replace", "rename", "unlink", "rmdir", "mkdir")


class Library:
    """The system's library, whose one function that is used can be met by a kill, or is not there."""

    def __init__(self, step: Callable[[str], None], exchanges: bool) -> None:
        if exchanges:

            def renameat2(*arguments: Any) -> Any:
                step("exchange")
                return _SYSTEM.renameat2(*arguments)

            self.renameat2 = renameat2


def compact_until(folder: Path, kill: int | None, exchanges: bool, log: Path) -> None:
    """Compact; die before call number ``kill``. The names of calls go to ``log``."""
    count = 0

    def step(name: str) -> None:
        nonlocal count
        if count == kill:
            os.kill(os.getpid(), signal.SIGKILL)
        count += 1
        with log.open("a") as lines:
            lines.write(f"{name}\n")

    def counted(name: str) -> Callable[..., Any]:
        function = getattr(os, name)

        def call(path: Any, *arguments: Any, **options: Any) -> Any:
            step(f"{name} {path} {arguments[0] if arguments else ''}")
            return function(path, *arguments, **options)

        return call

    for name in _CALLS:
        setattr(os, name, counted(name))
    compacts.ctypes.CDLL = lambda *_, **__: Library(step, exchanges)  # type: ignore[attr-defined]
    compacts.compact(folder, run=Run(workers=0))


def run(folder: Path, kill: int | None, exchanges: bool) -> tuple[bool, list[str]]:
    """Compact in a child; return whether it was killed, and its calls."""
    log = folder.parent.with_suffix(".log")
    log.write_text("")
    child = os.fork()
    if child == 0:
        try:
            compact_until(folder, kill, exchanges, log)
        finally:
            if failed := sys.exc_info()[0] is not None:
                traceback.print_exc()
            os._exit(int(failed))
    _, status = os.waitpid(child, 0)
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    if not killed and status != 0:
        raise SystemExit(f"killed at {kill}: ended with status {status}")
    return killed, log.read_text().splitlines()


def files_of(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file but the lock."""
    return {
        str(path.relative_to(folder)): sha256_of_file(path)
        for path in folder.rglob("*")
        if path.is_file() and path.name != "lock"
    }


def found(folder: Path, old: Path, new: Path) -> str:
    """Return which data set the folder holds, all its files checked."""
    if not folder.exists():
        try:
            WorkFolder(folder).require_place()
        except FolderMismatch:
            return "away"
        raise SystemExit("a build would start anew where the data set is away")
    manifest = read_manifest(folder)
    for entry in (*manifest.shards, manifest.games):
        if sha256_of_file(folder / entry.path) != entry.sha256:
            raise SystemExit(f"{entry.path} is not what dataset.json says")
    return "old" if manifest == read_manifest(old) else "new" if manifest == read_manifest(new) else "another"


def main() -> None:
    """Run all compactions; kernels are loaded once, before the first fork."""
    old, new, work = Path(sys.argv[1]), Path(sys.argv[2]), Path.cwd()
    exchanges = sys.argv[3] == "exchange"
    manifest = read_manifest(old)
    warm_up(Progress(quiet=True), find_scheme(manifest.scheme.name), False)
    shutil.copytree(old, work / "whole" / "set")
    _, calls = run(work / "whole" / "set", None, exchanges)
    whole = next(number for number, call in enumerate(calls) if call.endswith("/.set.compact/dataset.json"))
    after: Counter[str] = Counter()
    for kill in (*range(0, whole, 24), *range(whole, len(calls))):
        folder = work / f"killed-{kill}" / "set"
        shutil.copytree(old, folder)
        killed, _ = run(folder, kill, exchanges)
        if not killed:
            raise SystemExit(f"killed at {kill}: was not")
        after[found(folder, old, new)] += 1
        run(folder, None, exchanges)
        if files_of(folder) != files_of(new) or os.listdir(folder.parent) != ["set"]:
            raise SystemExit(f"killed at {kill}: the same command ended with other files")
        shutil.rmtree(folder.parent)
    sys.stdout.write(json.dumps(after))


if __name__ == "__main__":
    main()
