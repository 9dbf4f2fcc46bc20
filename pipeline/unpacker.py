"""A program that reads one archive with libarchive and writes what is in it to its output.

``libarchives.py`` runs it by its path, in a process of its own, as libarchive cannot be bounded from inside: a few
hundred bytes of a 7z header can ask for thirty gigabytes, and damaged archives have made it loop for ever or end its
process. Here the system holds the bounds, and the other side sees how it ended. Nothing of the package is imported.

The archive is the standard input: a file, or a pipe whose contents are kept in memory. The output is a row of frames
(``FRAME``: kind and length, then as many bytes):

    E  a member: ``ENTRY`` (what it is, encrypted or not, size or -1), then its name as stored
    D  some of its data (members that are files and not encrypted have any)
    F  the rest of its data cannot be read: why
    e  the end of the member
    .  the end of the archive
    !  the rest of the archive cannot be read: why
    M  libarchive is missing: why
"""

import locale
import os
import resource
import signal
import stat
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from ctypes import create_string_buffer, string_at
from typing import Any, Final

FRAME: Final = struct.Struct("<cL")
ENTRY: Final = struct.Struct("<cBq")
CHUNK: Final = 1 << 16  # bytes of a frame, at most
MEMORY: Final = 1 << 30  # bytes of address space: dictionaries, and the names of five million members of a 7z
CALL_SECONDS: Final = 60  # of the processor, for one call of libarchive, which gives 64 KiB or the next name

_FORMATS: Final = ("7zip", "rar", "rar5", "cab", "lha", "iso9660", "cpio", "tar")  # not mtree: it opens other files
_EVERY_BYTE: Final = "ISO-8859-1"  # said to be the charset of lha, which has none: names are made Unicode, and back
_FILTERS: Final = ("compress", "lzip", "lzma", "zstd", "lz4")  # around tar; gzip, bzip2 and xz are ours


Send = Callable[..., None]


def main() -> None:
    with os.fdopen(1, "wb", CHUNK, closefd=False) as output:  # Python's own may be unbuffered

        def send(kind: bytes, body: bytes = b"") -> None:
            output.write(FRAME.pack(kind, len(body[:CHUNK])) + body[:CHUNK])

        start(send)


def start(send: Send) -> None:
    """Find the library, set the bounds and read."""
    try:
        from libarchive import ffi
    except ModuleNotFoundError:
        send(b"M", b'pip install "goplanes[archives]"')
    except (AttributeError, OSError):
        send(b"M", b"libarchive-c is there, but not the library itself: install libarchive with the system's packages")
    else:
        for name in ("C.UTF-8", "en_US.UTF-8", "UTF-8"):  # or names in UTF-16 could not be turned into bytes
            with suppress(locale.Error):
                locale.setlocale(locale.LC_CTYPE, name)
                break
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with suppress(ValueError):  # a lower limit is in force
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        try:
            read(ffi, send)
        except MemoryError:
            send(b"!", b"out of memory")


def read(ffi: Any, send: Send) -> None:
    """Write the frames of the whole archive."""
    ffi.ffi("entry_is_encrypted", [ffi.c_archive_entry_p], ffi.c_int)
    ffi.ffi("read_set_options", [ffi.c_archive_p, ffi.c_char_p], ffi.c_int)
    archive, entry = new_reader(ffi), ffi.entry_new()
    buffer = create_string_buffer(CHUNK)
    try:
        if stat.S_ISREG(os.fstat(0).st_mode):
            os.lseek(0, 0, os.SEEK_SET)  # the other side may have looked at its beginning
            ffi.read_open_fd(archive, 0, CHUNK)
        else:
            data = sys.stdin.buffer.read()
            ffi.read_open_memory(archive, data, len(data))
        while guarded(ffi.read_next_header2, archive, entry) != ffi.ARCHIVE_EOF:
            member(ffi, archive, entry, buffer, send)
        send(b".")
    except ffi.ArchiveError as error:
        send(b"!", words(error))


def new_reader(ffi: Any) -> Any:
    """An archive that is not open yet, for all formats and compressions that the library has itself."""
    archive = ffi.read_new()
    for name in _FORMATS:
        with suppress(ValueError):  # an older library has no rar5
            ffi.get_read_format_function(name)(archive)
    for name in _FILTERS:
        # Where one is not built in, the library would run a program of that name, and says so.
        if ffi.get_read_filter_function(name)(ffi.read_new()) == ffi.ARCHIVE_OK:
            ffi.get_read_filter_function(name)(archive)
    ffi.read_set_options(archive, b"lha:hdrcharset=" + _EVERY_BYTE.encode())
    return archive


def member(ffi: Any, archive: Any, entry: Any, buffer: Any, send: Send) -> None:
    """Write the frames of one member. Raises ``ArchiveError`` where what follows it cannot be read."""
    kind = {0: b"f", stat.S_IFREG: b"f", stat.S_IFDIR: b"d", stat.S_IFLNK: b"l"}.get(ffi.entry_filetype(entry), b"s")
    if ffi.entry_hardlink(entry) is not None:
        kind = b"l"
    encrypted = bool(ffi.entry_is_encrypted(entry))
    size = ffi.entry_size(entry) if ffi.entry_size_is_set(entry) else -1
    name = ffi.entry_pathname(entry) or b""
    if ffi.format_name(archive).startswith(b"lha"):
        with suppress(UnicodeError):
            name = name.decode().encode(_EVERY_BYTE)
    send(b"E", ENTRY.pack(kind, encrypted, size) + name)
    try:
        while kind == b"f" and not encrypted and (got := guarded(ffi.read_data, archive, buffer, CHUNK)) != 0:
            if got < 0:  # a warning, as of a checksum
                send(b"F", words(ffi.archive_error(archive, got)))
                break
            send(b"D", string_at(buffer, got))
    except ffi.ArchiveError as error:
        if error.retcode == ffi.ARCHIVE_FATAL:
            raise
        send(b"F", words(error))
    send(b"e")


def guarded(function: Any, *arguments: Any) -> Any:
    """Call the library; the process ends where this takes a minute of the processor."""
    signal.setitimer(signal.ITIMER_PROF, CALL_SECONDS)
    return function(*arguments)


def words(error: Any) -> bytes:
    message = error.msg or "damaged"
    return message if isinstance(message, bytes) else message.encode()


if __name__ == "__main__":
    main()
