"""The output folder while it is being built: the lock, what it is being built from, and its parts.

Everything that depends on the run lies under ``.goplanes/``: ``lock``, ``build.json`` (the configuration and
the inputs that the folder belongs to) and ``work/``, which is removed once ``dataset.json`` is there.
"""

import fcntl
import hashlib
import json
import os
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pipeline import manifest as manifests
from pipeline.dedup import PARTS
from pipeline.files import read_report, remove_leftovers, write_report
from pipeline.sources import InputFile

_OURS = (manifests.NAME, manifests.GAMES, "README.md")
_STATE = "build.json"
_ERASED = {"erased": True}  # in place of the configuration and the inputs: what is in the folder may go


class FolderBusy(RuntimeError):
    """Another build holds the folder."""


class FolderMismatch(ValueError):
    """The folder belongs to another configuration or other inputs, or to somebody else."""


class WorkFolder:
    """Paths of one output folder and its work in progress."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.private = self.path / ".goplanes"
        self.work = self.private / "work"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder for this process. Raises FolderBusy where another build does."""
        self.private.mkdir(parents=True, exist_ok=True)
        with open(self.private / "lock", "a+") as lock:
            try:
                # The system lets go of the lock when its holder ends, however it ends.
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                lock.seek(0)
                holder = lock.read(20).strip() or "unknown"
                raise FolderBusy(f"{self.path}: another build (process {holder}) is at work on this folder") from None
            lock.truncate(0)
            lock.write(f"{os.getpid()}\n")
            lock.flush()
            yield

    def stage(self, name: str) -> Path:
        """Return the folder of a stage's work in progress, made if need be."""
        folder = self.work / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def clear_leftovers(self) -> None:
        """Remove the temporary files of builds that were killed."""
        folders = [self.path, self.private, *(self.path / part for part in PARTS)]
        folders += [folder for folder in self.work.glob("*") if folder.is_dir()]
        for folder in folders:
            if folder.is_dir():
                remove_leftovers(folder)

    def is_foreign(self) -> bool:
        """Return whether the folder holds files and none of them is ours."""
        if not self.path.is_dir():
            return False
        names = {entry.name for entry in self.path.iterdir()}
        return (
            bool(names - {self.private.name}) and manifests.NAME not in names and not (self.private / _STATE).exists()
        )

    def require_place(self) -> None:
        """Raise FolderMismatch where no data set may be made: on a file, inside another one, or among other files."""
        if self.path.exists() and not self.path.is_dir():
            raise FolderMismatch(f"{self.path} is a file: choose another --output folder")
        for folder in Path(os.path.realpath(self.path)).parents:
            finished = all(os.path.isfile(folder / name) for name in (manifests.NAME, manifests.GAMES))
            if finished or os.path.isfile(folder / self.private.name / _STATE):
                raise FolderMismatch(f"{self.path} lies in the data set {folder}: choose another --output folder")
        if self.is_foreign():
            raise FolderMismatch(f"{self.path} holds files that are no data set: choose another --output folder")

    def erase(self) -> None:
        """Remove a data set and its work in progress, and nothing else that lies in the folder."""
        # First of all it is noted: after a kill the folder is ours still, and whoever claims it erases the rest.
        write_report(self.private / _STATE, _ERASED)
        self._remove()

    def _remove(self) -> None:
        # The manifest goes first: what is left after a kill is then no data set any more.
        for name in _OURS:
            (self.path / name).unlink(missing_ok=True)
        for part in PARTS:
            folder = self.path / part
            if folder.is_dir():
                for entry in folder.iterdir():
                    if manifests.SHARD_PATH.fullmatch(f"{part}/{entry.name}"):
                        entry.unlink()
                if not any(folder.iterdir()):
                    folder.rmdir()
        self.clear_work()

    def clear_work(self) -> None:
        """Remove the work in progress."""
        if self.work.exists():
            shutil.rmtree(self.work)

    def claim(self, config: dict[str, Any], fingerprint: str, inputs: Sequence[InputFile]) -> None:
        """Make the folder belong to a configuration and inputs, or check that it does.

        Raises FolderMismatch with both fingerprints and the way out.
        """
        listed = input_list(inputs)
        state = self._state()
        if state == _ERASED:
            self._remove()
            state = None
        if state is None:
            self._write_state(config, fingerprint, listed)
            return
        if state["fingerprint"] != fingerprint:
            changes = ", ".join(_differences(state["config"], config)) or "the version of goplanes"
            raise FolderMismatch(
                f"{self.path} belongs to another configuration (different: {changes}).\n"
                f"  its fingerprint   {state['fingerprint']}\n  this fingerprint  {fingerprint}\n{_WAY_OUT}"
            )
        if change := _input_change(state["inputs"], listed):
            raise FolderMismatch(
                f"{self.path} was built from other inputs: {change}.\n"
                f"  its fingerprint   {input_fingerprint(state['inputs'])}\n"
                f"  this fingerprint  {input_fingerprint(listed)}\n{_WAY_OUT}"
            )
        if state.get("software") != manifests.SOFTWARE:
            # Another version may cut its tasks in another way: of its files of work none goes with ours.
            self.clear_work()
            self._write_state(config, fingerprint, listed)

    def _write_state(self, config: dict[str, Any], fingerprint: str, listed: list[dict[str, Any]]) -> None:
        state = {"software": manifests.SOFTWARE, "config": config, "fingerprint": fingerprint, "inputs": listed}
        write_report(self.private / _STATE, state)

    def _state(self) -> dict[str, Any] | None:
        path = self.private / _STATE
        if not path.exists():
            return self._published_state()
        state = read_report(path)
        if state is None:
            raise FolderMismatch(f"{path}: damaged; use --overwrite to build anew, or another --output folder")
        return state

    def _published_state(self) -> dict[str, Any] | None:
        """Return the state of a data set that was copied here without its hidden folder."""
        if not (self.path / manifests.NAME).exists():
            return None
        manifest = manifests.read_manifest(self.path)
        inputs = [item.model_dump() for item in manifest.inputs]
        return {
            "software": manifest.software,
            "config": manifest.config,
            "fingerprint": manifest.fingerprints.config,
            "inputs": inputs,
        }


_WAY_OUT = "Use --overwrite to replace it, or another --output folder."


def input_list(inputs: Sequence[InputFile]) -> list[dict[str, Any]]:
    """Return what is recorded of the inputs: source, bytes, sha256."""
    return [{"source": file.source, "bytes": file.size, "sha256": file.sha256} for file in inputs]


def input_fingerprint(inputs: Sequence[dict[str, Any]]) -> str:
    """Return a SHA-256 over the names and contents of the inputs, in whatever order they are listed."""
    lines = sorted(f"{item['source']}\0{item['sha256']}" for item in inputs)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _input_change(before: list[dict[str, Any]], now: list[dict[str, Any]]) -> str | None:
    """Say how the inputs differ: changed in place, gone, or gained."""
    old = Counter((item["source"], item["sha256"]) for item in before)
    new = Counter((item["source"], item["sha256"]) for item in now)
    gone, gained = sorted((old - new).elements()), sorted((new - old).elements())
    gained_names = {source for source, _ in gained}
    for source, _ in gone:
        return f"{source} changed in place" if source in gained_names else f"{source} is no longer there"
    return f"files were added: {len(gained)}, e.g. {gained[0][0]}" if gained else None


def _differences(before: dict[str, Any], now: dict[str, Any], prefix: str = "") -> Iterator[str]:
    """Yield the keys in which two configurations differ, with both values."""
    for key in sorted({*before, *now}):
        old, new = before.get(key), now.get(key)
        if isinstance(old, dict) and isinstance(new, dict):
            yield from _differences(old, new, f"{prefix}{key}.")
        elif old != new:
            yield f"{prefix}{key} {json.dumps(old)} -> {json.dumps(new)}"
