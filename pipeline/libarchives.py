"""Archives of the formats that libarchive reads (7z, rar, cab, lha, iso, cpio, tar in zstd and others), by an extra.

The library runs in a process of its own for each archive, front to back: ``unpacker.py`` says why and what it writes.
Nothing is unpacked to disk; a solid 7z is unpacked once, and not more of it than is asked for.
"""

import re
import signal
import subprocess
import sys
from collections.abc import Callable
from io import UnsupportedOperation
from types import TracebackType
from typing import BinaryIO, Final

from pipeline import unpacker
from pipeline.membernames import Names
from pipeline.reasons import Reason
from pipeline.streams import DamagedError, EntryKind, StreamEntry

_KINDS: Final[dict[bytes, EntryKind]] = {b"f": "file", b"d": "folder", b"l": "link", b"s": "special"}
# What an archive can do to the process that reads it. Any other signal came from outside: memory ran out, or somebody.
_OWN_SIGNALS: Final = {signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGFPE, signal.SIGILL, signal.SIGPROF}


class UnreadError(DamagedError):
    """The rest of an archive is not read."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


class UnreadMemberError(UnreadError):
    """A member is not read; those after it may be."""


class LibraryReader:
    """The members of an archive, one after another: ``next``, then ``read`` or not, and so on, as of a ``TarReader``.

    ``tick`` is called with the number of bytes as they come out, names included, and may raise to stop. Use it as a
    context, which ends the process. Methods raise ``UnreadError`` where the rest cannot be read, and
    ``ChildProcessError`` where the process was killed from outside.
    """

    def __init__(self, handle: BinaryIO, tick: Callable[[int], None], names: Names) -> None:
        self._tick = tick
        self._names = names
        self._size = -1
        self._inside = False  # a member whose end has not come yet
        try:
            source: int | None = handle.fileno()
        except UnsupportedOperation:
            source = None
        self._process = subprocess.Popen(
            [sys.executable, "-P", unpacker.__file__],
            stdin=subprocess.PIPE if source is None else source,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self._process.stdout
        self._frames = self._process.stdout
        if self._process.stdin:
            try:
                with self._process.stdin as pipe:
                    pipe.write(handle.read())
            except BrokenPipeError:
                pass  # it ended before, and its frames say why

    def __enter__(self) -> "LibraryReader":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.kill()
        self._process.wait()
        self._frames.close()

    def next(self) -> StreamEntry | None:
        """The next member, or None after the last one."""
        while self._inside:
            self._inside = self._frame()[0] != b"e"
        kind, body = self._frame()
        if kind == b".":
            return None
        what, encrypted, self._size = unpacker.ENTRY.unpack_from(body)
        raw = body[unpacker.ENTRY.size :]
        self._inside = True
        self._names.learn(raw)
        return StreamEntry(self._names.read(raw), raw, _KINDS[what], bool(encrypted))

    def read(self, limit: int) -> bytes | None:
        """The contents of the last member, or None where they are more than ``limit`` bytes.

        Raises ``UnreadMemberError`` where they cannot be read.
        """
        parts: list[bytes] = []
        got = 0
        while self._inside:
            kind, body = self._frame()
            self._inside = kind != b"e"
            if kind == b"F":
                raise UnreadMemberError(*_told(body, Reason.DAMAGED_MEMBER))
            got += len(body)
            if got <= limit:
                parts.append(body)
        if got > limit:
            return None
        if got != self._size >= 0:
            raise UnreadMemberError(Reason.DAMAGED_MEMBER, f"holds {got} bytes, not the {self._size} stated")
        return b"".join(parts)

    def _frame(self) -> tuple[bytes, bytes]:
        head = self._frames.read(unpacker.FRAME.size)
        kind, length = unpacker.FRAME.unpack(head) if len(head) == unpacker.FRAME.size else (b"", 1)
        body = self._frames.read(length)
        if len(body) < length:
            raise UnreadError(Reason.DAMAGED_ARCHIVE, self._how_it_ended())
        if kind == b"M":
            raise UnreadError(Reason.NEEDS_EXTRA, body.decode())
        if kind == b"!":
            raise UnreadError(*_told(body, Reason.DAMAGED_ARCHIVE))
        self._tick(length)
        return kind, body

    def _how_it_ended(self) -> str:
        code = self._process.wait()
        if code >= 0:
            return "libarchive cannot read it"
        name = signal.Signals(-code).name
        if -code not in _OWN_SIGNALS:
            raise ChildProcessError(f"the process that reads an archive with libarchive was ended by {name}: run again")
        return "libarchive takes too long" if -code == signal.SIGPROF else f"libarchive is ended by it ({name})"


def _told(body: bytes, otherwise: Reason) -> tuple[Reason, str]:
    """What the library says and what it means; its own question for encryption is an end of it on some archives."""
    text = re.sub("[^ -~]", "?", body.decode("latin-1"))
    return Reason.ENCRYPTED if "ncrypt" in text else otherwise, text
