"""The exit codes of the command, and how each expected error is told."""

import errno
import os
from typing import Final

FAILED: Final = 1
WRONG_USAGE: Final = 2
BUSY: Final = 3
INPUT_OUTPUT: Final = 4
INTERRUPTED: Final = 130


def told(error: BaseException) -> tuple[str, int] | None:
    """Return the message and the exit code of an expected error; None for one that is a fault of ours."""
    if isinstance(error, KeyboardInterrupt):
        return "interrupted: the same command goes on from here", INTERRUPTED
    if isinstance(error, OSError):
        return _system_text(error), INPUT_OUTPUT
    if isinstance(error, MemoryError):
        return "out of memory: fewer --workers or a smaller output.games_per_block may help", INPUT_OUTPUT
    for kind, code in _codes():
        if isinstance(error, kind):
            return str(error), code
    return None


def _system_text(error: OSError) -> str:
    """Return what the system said and of which file, without its error number."""
    if error.strerror is None:
        return str(error) or type(error).__name__
    name = error.filename
    if not isinstance(name, (str, bytes)):
        return error.strerror
    way_on = "\nthe same command goes on once there is room" if error.errno in {errno.ENOSPC, errno.EDQUOT} else ""
    return f"{error.strerror}: {os.fsdecode(name)}{way_on}"


def _codes() -> tuple[tuple[type[Exception], int], ...]:
    """Return the errors of our own; what raises them is loaded when one of them may have been raised."""
    from pipeline.build import BuildError
    from pipeline.columns import ShardError
    from pipeline.config import ConfigError
    from pipeline.manifest import ManifestError
    from pipeline.pieces import DamagedWork
    from pipeline.show import RecordError
    from pipeline.stored import TableError
    from pipeline.workfolder import FolderBusy, FolderMismatch

    return (
        (ConfigError, WRONG_USAGE),
        (FolderMismatch, WRONG_USAGE),
        (FolderBusy, BUSY),
        (DamagedWork, INPUT_OUTPUT),
        (BuildError, FAILED),
        (ManifestError, FAILED),
        (ShardError, FAILED),
        (TableError, FAILED),
        (RecordError, FAILED),
    )
