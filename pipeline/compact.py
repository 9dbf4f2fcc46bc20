"""A data set that grew, built again from its own game table as one build of all its inputs would have made it.

In place, the new one is built beside the old one, in the hidden folder ``.NAME.compact`` with work of its own, and
the two folders change places at once when it is whole: until then the old one can be read, and a kill at any moment
loses nothing.
"""

import ctypes
import errno
import os
import shutil
from dataclasses import replace
from pathlib import Path

from pipeline import manifest as manifests
from pipeline.build import Built, job_again, require_files, run_job
from pipeline.config import ConfigError, Run, make_config
from pipeline.dedup import PARTS
from pipeline.files import read_report, sha256_of_file, sync, write_report
from pipeline.progress import Progress
from pipeline.publish import Job
from pipeline.workfolder import FolderMismatch, WorkFolder

_MARK = "compact.json"  # in the hidden part of the new folder: of which state of the data set it is made
_HERE, _EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux


def compact(
    path: str | Path, *, run: Run | None = None, output: str | Path | None = None, progress: Progress | None = None
) -> Built:
    """Build the data set at ``path`` again, in its place or as ``output``; ``run`` says how to run.

    In place, a data set that never grew is left as it is. Raises what ``build`` raises; ConfigError where there is
    nothing at ``path`` or this version would not have built it; OSError, which names --output, where the folder cannot
    be replaced; FolderMismatch where the hidden folder beside it holds something else.
    """
    progress = progress or Progress(quiet=True)
    folder = WorkFolder(os.path.realpath(path))
    beside = WorkFolder(folder.path.parent / f".{folder.path.name}.compact")
    if output is None:
        _recover(folder, beside)
    if not folder.path.exists():
        raise ConfigError(f"no such file or folder: {path}")
    manifests.read_manifest(folder.path)  # nothing is made where there is no data set
    if output is not None:
        return run_job(_job(folder, run, Path(output), progress), False, progress)
    _require_replaceable(folder)
    with folder.locked():
        (folder.private / _MARK).unlink(missing_ok=True)
        state = {"of": sha256_of_file(folder.path / manifests.NAME)}
        if read_report(beside.private / _MARK) != state:
            _discard(beside, folder)
        manifest = manifests.read_manifest(folder.path)
        if not manifest.growths:
            require_files(folder, manifest)
            return Built(Path(path), manifest, {})
        job = _job(folder, run, beside.path, progress)
        beside.private.mkdir(parents=True, exist_ok=True)
        write_report(beside.private / _MARK, state)
        built = run_job(job, False, progress)
        # The folder that is new here is held too, before anybody can meet it in its place.
        with beside.locked():
            shutil.copymode(folder.path, beside.path)
            _exchange(beside.path, folder)
            _discard(beside, folder)
            (folder.private / _MARK).unlink()
    return replace(built, path=Path(path), seconds=progress.seconds)


def _job(folder: WorkFolder, run: Run | None, target: Path, progress: Progress) -> Job:
    """Return the job of building the data set of a folder into another one, in its own configuration."""
    source = folder.table_folder()
    config = make_config(manifests.read_manifest(source).config, f"{folder.path / manifests.NAME}: config")
    tables = {
        "input": config.input.model_copy(update={"paths": (str(source),)}),
        "output": config.output.model_copy(update={"path": str(target)}),
        "run": run or Run(),
    }
    return job_again(config.model_copy(update=tables), progress)


def _require_replaceable(folder: WorkFolder) -> None:
    """Raise OSError where another folder could not take the place of this one: better now than after the build."""
    for part in PARTS:
        if (folder.path / part).is_symlink():
            raise _irreplaceable(errno.EBUSY, folder.path / part, "is a link")
    try:
        # Of a folder that is not empty this removes nothing: it is refused for that alone, or for what would stand in
        # the way of a new name too (a mount point, a parent folder that is read-only or somebody else's).
        os.rmdir(folder.path)
    except OSError as error:
        if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
            raise _irreplaceable(error.errno or errno.EBUSY, folder.path) from None


def _irreplaceable(code: int, path: Path, why: str | None = None) -> OSError:
    words = f"cannot be replaced ({why or os.strerror(code)}): write the compact data set elsewhere with --output"
    return OSError(code, words, str(path))


def _exchange(new: Path, folder: WorkFolder) -> None:
    """Let two folders change places at once, or, where the system cannot, one after the other."""
    place, put_by = folder.path, folder.put_by
    library = ctypes.CDLL(None, use_errno=True)
    names = os.fsencode(new), os.fsencode(place)
    if not hasattr(library, "renameat2") or library.renameat2(_HERE, names[0], _HERE, names[1], _EXCHANGE) != 0:
        try:
            os.rename(place, put_by)
            os.rename(new, place)
        except OSError as error:
            if put_by.exists() and not place.exists():
                os.rename(put_by, place)
            raise _irreplaceable(error.errno or errno.EBUSY, place, f"{error.strerror}; {new} is complete") from None
        os.rename(put_by, new)
    sync(place.parent)


def _recover(folder: WorkFolder, beside: WorkFolder) -> None:
    """End an exchange in steps that was killed between two of them. Raises FolderBusy while it is under way."""
    place, put_by = folder.path, folder.put_by
    if not (put_by / manifests.NAME).is_file():
        return
    with WorkFolder(put_by).locked():  # its own lock, that who exchanges it holds
        if not place.exists():
            os.rename(put_by, place)
        elif not beside.path.exists():
            os.rename(put_by, beside.path)
        else:
            raise FolderMismatch(f"{put_by} is {place} as it was before it was compacted: move one of them away")
        sync(place.parent)


def _discard(old: WorkFolder, new: WorkFolder) -> None:
    """Remove a data set, finished or not, with its folder; what else lies in it goes over into ``new``.

    Raises FolderMismatch where the folder is none of ours, or such a thing has no room there.
    """
    if not old.path.exists():
        return
    if old.is_foreign():
        raise FolderMismatch(f"{old.path} holds files that are no data set, and is needed: move it away")
    old.clear_leftovers()
    for name in old.others():
        if os.path.lexists(new.path / name):
            raise FolderMismatch(f"{old.path / name} belongs into {new.path}, which has one already: move it away")
        (new.path / name).parent.mkdir(exist_ok=True)
        os.rename(old.path / name, new.path / name)
    old.private.mkdir(exist_ok=True)
    old.erase()
    shutil.rmtree(old.private)
    old.path.rmdir()
