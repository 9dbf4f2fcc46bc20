"""The exit codes of the command, how each expected error is told, and the last line of a log."""

import errno
import json
import os
import re
from dataclasses import dataclass, field
from typing import Any, Final

FAILED: Final = 1
WRONG_USAGE: Final = 2
BUSY: Final = 3
INPUT_OUTPUT: Final = 4
INTERRUPTED: Final = 130


_PLAIN = re.compile(r"[^\s\"'=\\]+")  # what stands in a log without quotes


@dataclass(slots=True)
class Ending:
    """How a command ends that leaves a last line for whoever watches its log: which ``command`` it is (none: another
    one), what it did, and why it failed."""

    command: str | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    reason: str = ""

    def line(self, code: int) -> str | None:
        """Return ``done: key=value ...`` or ``failed: key=value ...``; None where there is nothing to say, as after
        ``--help``. Of the reason the first line is told; a value with spaces is a JSON string."""
        if self.command is None or not (code or self.facts):
            return None
        fields: dict[str, Any] = {"command": self.command, "exit": code}
        if code:
            fields["reason"] = self.reason.partition("\n")[0] or "a fault of goplanes itself, see above"
        pairs = (f"{name}={_logged(value)}" for name, value in (fields | self.facts).items())
        return f"{'failed' if code else 'done'}: {' '.join(pairs)}"


def _logged(value: Any) -> str:
    """Return a value as it stands in a log: a line cannot be broken by it, nor a field."""
    text = str(value)
    return text if _PLAIN.fullmatch(text) and text.isprintable() else json.dumps(text)


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
