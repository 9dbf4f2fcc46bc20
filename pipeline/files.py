"""Files appear whole: a temporary name in the same folder, fsync, rename, fsync of the folder.

A reader therefore sees the old file, the new one or none, never a part, whenever the writer is killed.
What a killed writer leaves is a file whose name starts with ``TEMPORARY``; ``remove_leftovers`` clears it.
"""

import hashlib
import json
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

TEMPORARY = ".tmp-"
_CHUNK = 1 << 20


class NotAFileError(OSError):
    """A pipe, a socket or a device where a file should be; the text names it."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return f"{self.path}: is a pipe, a socket or a device, not a file"


def require_file(path: str | os.PathLike[str]) -> None:
    """Raise NotAFileError where opening ``path`` could wait for ever: a pipe waits for its other end.

    Raises OSError where there is nothing or nothing can be seen; a folder is left to who opens it.
    """
    mode = os.stat(path).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise NotAFileError(os.fspath(path))


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path beside ``path``; what was written there becomes ``path`` at the end.

    On any exception the temporary file is removed and ``path`` is left as it was. Raises OSError, which names
    ``path``, where the disk or the folder refuses, FileNotFoundError if the block wrote nothing.
    """
    target = Path(path)
    # The random part keeps apart two machines that share the folder and happen to share a process id.
    temporary = target.with_name(f"{TEMPORARY}{os.getpid()}-{secrets.token_hex(6)}")
    try:
        yield temporary
        sync(temporary)
        os.replace(temporary, target)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno and str(error.filename) in {"None", str(temporary)}:
            # Libraries leave out the name, or the system's own words.
            raise OSError(error.errno, os.strerror(error.errno), str(target)) from error
        raise
    sync(target.parent)


@contextmanager
def whole_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary folder beside ``path``; it becomes ``path`` at the end, which replaces no folder with files in
    it. On any exception it is removed. Raises OSError, which names ``path`` for what lies in the folder."""
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f"{TEMPORARY}{os.getpid()}-{secrets.token_hex(6)}")
    try:
        temporary.mkdir()
        yield temporary
        os.replace(temporary, target)
    except BaseException as error:
        shutil.rmtree(temporary, ignore_errors=True)
        if isinstance(error, OSError) and error.errno and str(error.filename).startswith(str(temporary)):
            raise OSError(error.errno, os.strerror(error.errno), str(target)) from error
        raise
    sync(target.parent)


def write_whole(path: str | os.PathLike[str], data: bytes | Callable[[Path], None]) -> None:
    """Write ``path`` whole: its bytes, or a function that writes them at the path it is given."""
    with whole_file(path) as temporary:
        if callable(data):
            data(temporary)
        else:
            temporary.write_bytes(data)


def write_report(path: str | os.PathLike[str], facts: dict[str, Any]) -> None:
    """Write a JSON object that marks a task's output as complete; it carries a hash of itself."""
    write_whole(path, json.dumps({**facts, "check": _digest(facts)}).encode())


def read_report(path: str | os.PathLike[str]) -> dict[str, Any] | None:
    """Read what ``write_report`` wrote; None where it is missing, cut or changed."""
    try:
        require_file(path)
        facts = json.loads(Path(path).read_bytes())
        return facts if isinstance(facts, dict) and facts.pop("check", None) == _digest(facts) else None
    except (OSError, ValueError, RecursionError):
        return None


def _digest(facts: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def remove_leftovers(folder: str | os.PathLike[str]) -> int:
    """Remove the temporary files that killed writers left in ``folder`` (not below it); return how many.

    Only for a folder that nobody else is writing to.
    """
    leftovers = [entry for entry in Path(folder).iterdir() if entry.name.startswith(TEMPORARY) and not entry.is_dir()]
    for entry in leftovers:
        entry.unlink()
    return len(leftovers)


def sha256_of_file(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file's contents in hex, read in small pieces."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def sync(path: Path) -> None:
    """Force a file, or the names in a folder, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
