"""The output folder while it is being built: the lock, what it is being built from, and its parts.

Everything that depends on the run lies under ``.goplanes/``: ``lock``, ``build.json`` (the configuration and
the inputs that the folder belongs to), ``work/``, and ``before/``, the state that is being grown; the last two are
removed once ``dataset.json`` is there.
"""

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pipeline import manifest as manifests
from pipeline.dedup import PARTS
from pipeline.files import read_report, remove_leftovers, sha256_of_file, whole_file, write_report, write_whole
from pipeline.growth import Listed, input_fault, input_fingerprint, listed_inputs
from pipeline.manifest import Manifest

_OURS = (manifests.NAME, manifests.GAMES, "README.md")
_STATE = "build.json"
_ERASED = {"erased": True}  # in place of the configuration and the inputs: what is in the folder may go


class FolderBusy(RuntimeError):
    """Another build holds the folder."""


class FolderMismatch(ValueError):
    """The folder belongs to another configuration or other inputs, or to somebody else."""


class DamagedTable(ValueError):
    """The game table of a data set that is to grow is not the one that was published."""


class WorkFolder:
    """Paths of one output folder and its work in progress."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.private = self.path / ".goplanes"
        self.work = self.private / "work"
        self._before = self.private / "before"

    @property
    def put_by(self) -> Path:
        """Return where the folder is for a moment while another one takes its place, on a system that cannot exchange
        two folders at once."""
        place = Path(os.path.realpath(self.path))
        return place.parent / f".{place.name}.before-compact"

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
            if not os.path.exists(lock.name) or not os.path.samestat(os.stat(lock.name), os.fstat(lock.fileno())):
                raise FolderBusy(f"{self.path}: another folder has just taken the place of this one: run again")
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
        if not self.path.exists() and (self.put_by / manifests.NAME).is_file():
            raise FolderMismatch(f"{self.path} was being compacted: run goplanes compact {self.path} first")
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
        for path in self._shards():
            (self.path / path).unlink()
        for part in PARTS:
            folder = self.path / part
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()
        self.clear_finished()

    def others(self) -> list[str]:
        """Return the paths, inside the folder, of what is not ours: what ``erase`` leaves there."""
        parts = [part for part in PARTS if (self.path / part).is_dir()]
        ours = {*_OURS, *parts, self.private.name}
        found = [entry.name for entry in self.path.iterdir() if entry.name not in ours]
        found += [f"{part}/{entry.name}" for part in parts for entry in (self.path / part).iterdir()]
        return sorted(set(found) - set(self._shards()))

    def clear_work(self) -> None:
        """Remove the work in progress: all of it at once, so that a kill leaves no half of it to go on from."""
        discarded = self.private / "discarded"
        if discarded.exists():
            shutil.rmtree(discarded)
        if self.work.exists():
            os.replace(self.work, discarded)
            shutil.rmtree(discarded)

    def clear_finished(self) -> None:
        """Remove what a build that has ended needs no more."""
        self.clear_work()
        if self._before.exists():
            shutil.rmtree(self._before)

    def published(self) -> Manifest | None:
        """Return the manifest of the data set that is in the folder; None where no build ended yet.

        An erase that was killed is finished first.
        """
        if read_report(self.private / _STATE) == _ERASED:
            self._remove()
        return manifests.read_manifest(self.path) if (self.path / manifests.NAME).exists() else None

    def pinned(self) -> tuple[Manifest, Path]:
        """Return the manifest and the game table that a growth starts from, which stay until it ends.

        Raises DamagedTable where the table is not that of the manifest.
        """
        table, pin = self._before / manifests.GAMES, self._before / manifests.NAME
        if self.table_folder() != self._before:
            published = (self.path / manifests.NAME).read_bytes()
            self._before.mkdir(parents=True, exist_ok=True)
            pin.unlink(missing_ok=True)
            table.unlink(missing_ok=True)
            try:
                os.link(self.path / manifests.GAMES, table)
            except OSError:  # a file system without links
                with whole_file(table) as temporary:
                    shutil.copyfile(self.path / manifests.GAMES, temporary)
            write_whole(pin, published)
        manifest = manifests.read_manifest(self._before)
        if sha256_of_file(table) != manifest.games.sha256:
            shutil.rmtree(self._before)
            raise DamagedTable(
                f"{self.path / manifests.GAMES} is not the table that {manifests.NAME} describes: damaged or changed; "
                "build anew with --overwrite"
            )
        return manifest, table

    def table_folder(self) -> Path:
        """Return the folder that holds the published manifest together with its game table: this one, or that of the
        state which a growth set aside. (If it was killed, it may have replaced the table; the manifest, which goes
        last, says whether it ended.)"""
        table, pin = self._before / manifests.GAMES, self._before / manifests.NAME
        published = (self.path / manifests.NAME).read_bytes()
        pinned = table.is_file() and pin.is_file() and pin.read_bytes() == published
        return self._before if pinned else self.path

    def claim(self, config: dict[str, Any], fingerprint: str, inputs: Listed) -> bool:
        """Make the folder belong to a configuration and inputs, or check that it does; return whether unfinished work
        was dropped since inputs were gained.

        Raises FolderMismatch with both fingerprints and the way out.
        """
        state = self._state()
        if state == _ERASED:
            self._remove()
            state = None
        if state is None:
            self._write_state(config, fingerprint, inputs)
            return False
        if state["fingerprint"] != fingerprint:
            changes = ", ".join(_differences(state["config"], config)) or "the version of goplanes"
            raise FolderMismatch(
                f"{self.path} belongs to another configuration (different: {changes}).\n"
                f"  its fingerprint   {state['fingerprint']}\n  this fingerprint  {fingerprint}\n{_WAY_OUT}"
            )
        # Of a growth that did not end nothing was published: it begins anew with what is there now.
        grows = (self.path / manifests.NAME).exists()
        if not grows and (fault := input_fault(state["inputs"], inputs)):
            raise self.other_inputs(fault, state["inputs"], inputs)
        gained = input_fingerprint(state["inputs"]) != input_fingerprint(inputs)
        unfinished = self.work.exists()
        if gained or state.get("software") != manifests.SOFTWARE:
            # Another version may cut its tasks in another way: of its files of work none goes with ours.
            self.clear_work()
            self._clear_unpublished()
            self._write_state(config, fingerprint, inputs)
        return gained and unfinished

    def other_inputs(self, fault: str, before: Listed, now: Listed) -> FolderMismatch:
        """Return the error for inputs that are not those of the folder."""
        return FolderMismatch(
            f"{self.path} was built from other inputs: {fault}.\n"
            f"  its fingerprint   {input_fingerprint(before)}\n"
            f"  this fingerprint  {input_fingerprint(now)}\n{_WAY_OUT}"
        )

    def _clear_unpublished(self) -> None:
        """Remove the shards of a build that did not end."""
        manifest = self.published()
        listed = {entry.path for entry in manifest.shards} if manifest is not None else set()
        for path in self._shards():
            if path not in listed:
                (self.path / path).unlink()

    def _shards(self) -> list[str]:
        """Return the paths, inside the folder, of all files that have the name of a shard."""
        folders = [self.path / part for part in PARTS if (self.path / part).is_dir()]
        paths = [f"{folder.name}/{entry.name}" for folder in folders for entry in folder.iterdir()]
        return [path for path in paths if manifests.SHARD_PATH.fullmatch(path)]

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
        return {
            "software": manifest.software,
            "config": manifest.config,
            "fingerprint": manifest.fingerprints.config,
            "inputs": listed_inputs(manifest),
        }


_WAY_OUT = "Use --overwrite to replace it, or another --output folder."


def _differences(before: dict[str, Any], now: dict[str, Any], prefix: str = "") -> Iterator[str]:
    """Yield the keys in which two configurations differ, with both values."""
    for key in sorted({*before, *now}):
        old, new = before.get(key), now.get(key)
        if isinstance(old, dict) and isinstance(new, dict):
            yield from _differences(old, new, f"{prefix}{key}.")
        elif old != new:
            yield f"{prefix}{key} {json.dumps(old)} -> {json.dumps(new)}"
