"""A data set that grew, built again from its own game table as one build would have made it.

The new one is built beside the old one, in a hidden folder with work of its own, and takes its place at once when it is
whole: until then the old one can be read, and a kill at any moment loses nothing.
"""

import ctypes
import errno
import os
import shutil
from dataclasses import replace
from pathlib import Path

from pipeline import manifest as manifests
from pipeline.build import Built, build_again
from pipeline.config import Config, ConfigError, make_config
from pipeline.files import read_report, sha256_of_file, write_report
from pipeline.progress import Progress
from pipeline.workfolder import WorkFolder

_MARK = "compact.json"  # in the new folder: of which state of the data set it is made
_HERE, _EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux


def compact(path: str | Path, run: Config, output: str | None = None, progress: Progress | None = None) -> Built:
    """Build the data set at ``path`` again, in its place or as ``output``; ``run`` says how to run.

    Raises what ``build`` raises; OSError, which names --output, where the folder cannot be replaced; FolderMismatch
    where the hidden folder beside it holds something else.
    """
    progress = progress or Progress(quiet=True)
    place = Path(os.path.realpath(path))
    _recover(place)
    folder = WorkFolder(place)
    manifest = manifests.read_manifest(place)
    config = make_config(manifest.config, f"{place / manifests.NAME}: config").model_copy(update={"run": run.run})
    if output is not None:
        return build_again(_between(config, place, Path(output)), progress)
    beside = _beside(place)
    if os.path.ismount(place) or not os.access(place.parent, os.W_OK):
        raise OSError(errno.EBUSY, "the folder cannot be replaced, name another one with --output", str(place))
    with folder.locked():
        state = {"of": sha256_of_file(place / manifests.NAME)}
        new = WorkFolder(beside)
        if read_report(new.private / _MARK) != state:
            _clear(beside)
            new.private.mkdir(parents=True)
            write_report(new.private / _MARK, state)
        built = build_again(_between(config, place, beside), progress)
        _exchange(beside, place)
        _keep_what_is_not_ours(beside, place)
        _clear(beside)
        (folder.private / _MARK).unlink(missing_ok=True)
    return replace(built, path=Path(path))


def _between(config: Config, source: Path, target: Path) -> Config:
    """Return a configuration with another input and output."""
    return config.model_copy(
        update={
            "input": config.input.model_copy(update={"paths": (str(source),)}),
            "output": config.output.model_copy(update={"path": str(target)}),
        }
    )


def _beside(place: Path) -> Path:
    return place.with_name(f".{place.name}.compact")


def _put_by(place: Path) -> Path:
    """Where the old folder is for a moment, on file systems that cannot exchange two folders."""
    return place.with_name(f".{place.name}.before")


def _exchange(new: Path, old: Path) -> None:
    """Let two folders change places at once, or, where the file system cannot, one after the other."""
    library = ctypes.CDLL(None, use_errno=True)
    if hasattr(library, "renameat2"):
        names = os.fsencode(new), os.fsencode(old)
        if library.renameat2(_HERE, names[0], _HERE, names[1], _EXCHANGE) == 0:
            return
        code = ctypes.get_errno()
        if code not in {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP}:
            raise OSError(code, f"{os.strerror(code)}, name another folder with --output", str(old))
    os.rename(old, _put_by(old))
    os.rename(new, old)
    os.rename(_put_by(old), new)


def _recover(place: Path) -> None:
    """Finish an exchange that was killed half-way."""
    put_by, beside = _put_by(place), _beside(place)
    if put_by.is_dir():
        if not place.exists():
            os.rename(put_by, place)
        elif not beside.exists():
            os.rename(put_by, beside)


def _keep_what_is_not_ours(old: Path, new: Path) -> None:
    """Move what else lay in the old folder into the new one."""
    for entry in sorted(old.iterdir()):
        if not (new / entry.name).exists():
            os.rename(entry, new / entry.name)


def _clear(folder: Path) -> None:
    """Remove a data set, finished or not, with its folder. Raises OSError where it holds anything else."""
    if not folder.exists():
        return
    left = WorkFolder(folder)
    left.private.mkdir(exist_ok=True)
    left.erase()
    shutil.rmtree(left.private)
    folder.rmdir()


def run_settings(config: Config) -> Config:
    """Return ``config``, of which only ``[run]`` may differ from the defaults. Raises ConfigError."""
    if config.published() != Config().published():
        raise ConfigError("compact keeps the data set's own configuration: only run.* can be set")
    return config
