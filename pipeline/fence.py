"""What a cluster still works on when its run is over must not get in the way of the next run in the folder.

Workers of a cluster outlive the run that used them, and a task cannot be called back. A run on a cluster therefore
leaves a mark, a file in the folder's private part, and each of its tasks holds a shared lock on it while it is at
work. The next run waits until nobody holds the mark, and removes it; a task that begins later finds no mark and ends.
"""

import fcntl
import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.files import write_whole
from pipeline.workfolder import FolderBusy

_MARK = "tasks-"
_PATIENCE = 600.0  # seconds for the tasks of an earlier run: far more than one takes
_PAUSE = 0.1  # seconds between two looks


class UnseenFolder(OSError):
    """A worker of a cluster does not see the folder of its run; the text says where."""


def leave_mark(folder: Path) -> Path:
    """Leave the mark of a new run in ``folder`` and return its path. Raises OSError."""
    mark = folder / f"{_MARK}{secrets.token_hex(8)}"
    write_whole(mark, b"")
    return mark


@contextmanager
def held(mark: str) -> Iterator[None]:
    """Hold a mark for a task. Raises UnseenFolder where there is none: no shared file system, or the run is over."""
    try:
        with open(mark, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH)
            if os.fstat(file.fileno()).st_nlink == 0:  # removed while it was waited for
                raise FileNotFoundError
            yield
    except FileNotFoundError as error:
        if os.path.exists(mark):
            raise  # it was the task that missed a file
        text = f"{os.uname().nodename}: a worker there does not see {os.path.dirname(mark)}"
        raise UnseenFolder(f"{text}: all workers need the same file system under the same paths") from error


def remove_mark(mark: Path) -> bool:
    """Remove a mark unless a task holds it; return whether it is gone."""
    try:
        with open(mark, "rb+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            mark.unlink()
    except FileNotFoundError:
        pass
    except BlockingIOError:
        return False
    return True


def wait_for_tasks(folder: Path, say: Callable[[str], object], patience: float = _PATIENCE) -> None:
    """Wait until no task of an earlier run is at work on ``folder``; ``say`` is told where that takes time.

    Only for who holds the folder. Raises FolderBusy after ``patience`` seconds.
    """
    end = time.monotonic() + patience
    for number, mark in enumerate(sorted(folder.glob(f"{_MARK}*"))):
        waited = False
        while not remove_mark(mark):
            if not waited:
                say(f"waiting for tasks of an earlier run that a cluster still works on ({number + 1})")
            waited = True
            if time.monotonic() > end:
                raise FolderBusy(
                    f"{folder.parent}: tasks of an earlier run are still at work on a cluster; wait for them, "
                    "or end its workers"
                )
            time.sleep(_PAUSE)
