"""Records out of archives, within the configured limits; nothing is ever unpacked to disk.

Every member is read, or is left out with a reason. A limit that an archive as a whole goes over (bytes, members)
ends the reading of the archive under the inputs, however deep inside the trouble is.
"""

import re
import unicodedata
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from io import BytesIO
from typing import BinaryIO, Literal

from pipeline import config
from pipeline.libarchives import LibraryReader, UnreadError, UnreadMemberError
from pipeline.membernames import Names
from pipeline.reasons import Reason
from pipeline.streams import DamagedError, StreamEntry, Unpacked, archive_kind, needs_library
from pipeline.tars import TarReader
from pipeline.vendor import holds_records
from pipeline.zips import ZipEntry, find_directory, read_entry, zip_entries, zip_names

LONGEST_NAME = 4096  # characters, the longest path of Linux: longer ones are refused and shown cut
DEEPEST = 16  # no setting opens archives deeper than this: each level holds an archive in memory
SLACK = 64 * 2**20  # bytes an archive may unpack to beyond ``max_ratio``, so that small ones are not refused

_DRIVE = re.compile(r"[A-Za-z]:")
_SEPARATORS = re.compile(r"[/\\]")
_ARCHIVE = re.compile(r"\.(?:zip|tar|tgz|tbz2?|txz|tar\.(?:gz|bz2|xz))", re.IGNORECASE)
_LIBRARY = re.compile(r"\.(?:7z|rar|cab|lha|lzh|iso|cpio|tzst|tlz|taz|tar\.(?:zst|lz4?|lzma|z))", re.IGNORECASE)
_TEXT = (".txt", ".tsv", ".kifu")
_PRIVATE_CATEGORIES = ("Cc", "Cs", "Zl", "Zp")  # control characters, lone surrogates, line separators


@dataclass(frozen=True, slots=True)
class Member:
    """One file that may hold records.

    ``source`` is the path relative to the input folder, ``member`` the path inside archives (those of
    nested archives joined with "/"), None for a loose file. Both are printable; ``data`` is never decoded.
    """

    source: str
    member: str | None
    data: bytes


@dataclass(frozen=True, slots=True)
class Omitted:
    """One file or member that is not read, or (``member`` that of an archive, or None) the rest of an archive."""

    source: str
    member: str | None
    status: Literal["skipped", "refused"]
    reason: Reason
    detail: str = ""


class _LimitError(Exception):
    """The archive as a whole goes over a limit."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


class _Meter:
    """Bytes and members that came out of one archive under the inputs, nested ones included."""

    def __init__(self, size: int, limits: config.Input) -> None:
        self._size = size
        self._most_bytes = limits.max_ratio * size + SLACK
        self._most_members = limits.max_members
        self._bytes = 0
        self._members = 0
        self._last = ""

    def unpacked(self, size: int) -> None:
        self._bytes += size
        if self._bytes > self._most_bytes:
            raise _LimitError(Reason.SWELLS, f"{self._bytes} bytes out of {self._size}, up to {self._last!r}")

    def member(self, name: str) -> None:
        self._members += 1
        if self._members > self._most_members:
            raise _LimitError(Reason.TOO_MANY_MEMBERS, f"more than {self._most_members}, up to {self._last!r}")
        self._last = name


@dataclass(frozen=True, slots=True)
class _Level:
    """The archive being read: ``prefix`` stands before the names in it, ``depth`` is 0 for one under the inputs."""

    source: str
    prefix: str
    depth: int
    limits: config.Input
    meter: _Meter

    def path(self, name: str) -> str:
        return self.prefix + printable(name[:LONGEST_NAME])

    def skipped(self, name: str, reason: Reason, detail: str = "") -> Omitted:
        return Omitted(self.source, self.path(name), "skipped", reason, detail)

    def refused(self, name: str, reason: Reason, detail: str = "") -> Omitted:
        return Omitted(self.source, self.path(name), "refused", reason, detail)

    def rest(self, reason: Reason, detail: str) -> Omitted:
        """For what is left of this archive."""
        return Omitted(self.source, self.prefix[:-1] or None, "refused", reason, detail)


def printable(name: str) -> str:
    """A name that can be printed and encoded: raw bytes as ``\\xff``, control characters as ``\\n`` or ``\\x1b``."""
    if name.isprintable():
        return name
    return "".join(_escape(char) if unicodedata.category(char) in _PRIVATE_CATEGORIES else char for char in name)


def _escape(char: str) -> str:
    if "\udc80" <= char <= "\udcff":  # a byte that was not UTF-8
        return f"\\x{ord(char) - 0xDC00:02x}"
    return char.encode("unicode_escape").decode("ascii")


def is_record(name: str) -> bool:
    """Whether a name is that of a record: ``.sgf`` in any letter case, blanks after it allowed."""
    return name.rstrip(" ").lower().endswith(".sgf")


def is_text(name: str) -> bool:
    """Whether a name is that of a text, which may be one of records: what is in it decides (``holds_records``)."""
    return name.rstrip(" ").lower().endswith(_TEXT)


def named_archive(name: str) -> Literal["zip", "stream"] | None:
    """Which kind of archive a name promises; None for other files."""
    if _ends(name, _ARCHIVE):
        return "zip" if name.lower().endswith(".zip") else "stream"
    return "stream" if _ends(name, _LIBRARY) else None


def _ends(name: str, ending: re.Pattern[str]) -> bool:
    """Whether the last part of a name after a dot, or the last two, are such an ending."""
    stem, dot, suffix = name.rpartition(".")
    return any(ending.fullmatch(end) for end in (dot + suffix, "." + stem.rpartition(".")[2] + dot + suffix))


def private(part: str) -> Reason | None:
    """Why a file or folder of this name is none of ours: hidden, or made by macOS beside the real one."""
    if part.startswith("._") or part == "__MACOSX":
        return Reason.RESOURCE_FORK
    return Reason.HIDDEN if part.startswith(".") and part not in (".", "..") else None


def excluded(full_name: str, limits: config.Input, *, archive: bool = False) -> str | None:
    """Which setting leaves out a file: None where it is wanted.

    Globs are tried on the full name (source, and path inside archives) and on its last part. An archive
    need not match ``include``: its members are asked.
    """
    last = full_name.rpartition("/")[2]
    for glob in limits.exclude:
        if fnmatchcase(full_name, glob) or fnmatchcase(last, glob):
            return f"input.exclude {glob!r}"
    if archive or any(
        glob == "*" or fnmatchcase(full_name, glob) or fnmatchcase(last, glob) for glob in limits.include
    ):
        return None
    return "input.include"


def _is_unsafe(name: str) -> bool:
    """Whether a member name could reach outside a folder on some system, or could not be a name there."""
    return (
        len(name) > LONGEST_NAME
        or name.startswith(("/", "\\"))
        or _DRIVE.match(name) is not None
        or (".." in name and ".." in _SEPARATORS.split(name))
        or (not name.isprintable() and any(unicodedata.category(char) == "Cc" for char in name))
    )


def _left_out(level: _Level, entry: StreamEntry | ZipEntry) -> Omitted | None:
    """Why a member is not read, from what its archive says of it; None where it is to be read."""
    name, kind = entry.name, entry.kind
    if kind == "link":
        return level.refused(name, Reason.UNSAFE_MEMBER, "a link")
    stored = entry.raw.decode("ascii", "surrogateescape")
    if _is_unsafe(name) or (stored != name and _is_unsafe(stored)):
        return level.refused(name, Reason.UNSAFE_MEMBER)
    # Only "/" divides: in Shift-JIS and Big5 names a backslash may be half of a letter.
    whys = [why for part in name.split("/") if (why := private(part))]
    if whys:
        return level.skipped(name, max(whys, key=lambda why: why is Reason.RESOURCE_FORK))
    if kind == "special":
        return level.skipped(name, Reason.NOT_A_FILE)
    archive = not is_record(name) and named_archive(name) is not None
    if not archive and not is_record(name) and not is_text(name):
        return level.skipped(name, Reason.NOT_A_RECORD)
    if setting := excluded(f"{level.source}/{level.path(name)}", level.limits, archive=archive):
        return level.skipped(name, Reason.EXCLUDED, setting)
    if archive and level.depth >= min(level.limits.max_depth, DEEPEST):
        return level.refused(name, Reason.TOO_DEEP)
    if entry.encrypted:
        return level.refused(name, Reason.ENCRYPTED)
    if kind == "partial":
        return level.refused(name, Reason.DAMAGED_MEMBER, "sparse and multi-volume members are not supported")
    return None


def _contents(level: _Level, name: str, data: bytes | None) -> Iterator[Member | Omitted]:
    """A record as it is, a text if it holds records, an archive by its members."""
    if data is None:
        detail = f"more than {level.limits.max_member_bytes} bytes"
        yield level.refused(name, Reason.MEMBER_TOO_LARGE, detail)
    elif is_record(name):
        yield Member(level.source, level.path(name), data)
    elif is_text(name):
        found = holds_records(data)
        yield Member(level.source, level.path(name), data) if found else level.skipped(name, Reason.NOT_A_RECORD)
    else:
        inner = replace(level, prefix=level.path(name) + "/", depth=level.depth + 1)
        if (archive_kind(data[:512]) or named_archive(name)) == "zip":
            yield from _zip(inner, BytesIO(data), None)
        else:
            yield from _stream(inner, BytesIO(data), name)


def _stream(level: _Level, handle: BinaryIO, name: str) -> Iterator[Member | Omitted]:
    """The members of an archive of this name that is read front to back."""
    try:
        with _reader(level, handle, name) as reader:
            while entry := reader.next():
                if entry.kind == "folder":
                    continue
                level.meter.member(level.path(entry.name))
                if omitted := _left_out(level, entry):
                    yield omitted
                    continue
                try:
                    data = reader.read(level.limits.max_member_bytes)
                except UnreadMemberError as error:
                    yield level.refused(entry.name, error.reason, str(error))
                    continue
                yield from _contents(level, entry.name, data)
    except UnreadError as error:
        yield level.rest(error.reason, str(error))
    except DamagedError as error:
        yield level.rest(Reason.DAMAGED_ARCHIVE, str(error))


def _reader(level: _Level, handle: BinaryIO, name: str) -> AbstractContextManager[TarReader | LibraryReader]:
    """What reads the archive: its first bytes decide, and its name where they are nothing known."""
    head = handle.read(512)
    handle.seek(0)
    names = Names(level.limits.encodings, "utf-8")
    if needs_library(head) or (archive_kind(head) is None and _ends(name, _LIBRARY)):
        return LibraryReader(handle, level.meter.unpacked, names)
    return nullcontext(TarReader(Unpacked(handle, level.meter.unpacked), names))


def _zip(level: _Level, handle: BinaryIO, part: tuple[int, int] | None) -> Iterator[Member | Omitted]:
    """The members in one part of the central directory, or in all of it."""
    try:
        directory = find_directory(handle)
        start, stop = part or (directory.start, directory.stop)
        names = zip_names(handle, directory, level.limits.encodings)
        for entry in zip_entries(handle, start, stop, names.read):
            if entry.kind == "folder":
                continue
            level.meter.member(level.path(entry.name))
            if omitted := _left_out(level, entry):
                yield omitted
                continue
            try:
                data = read_entry(handle, directory, entry, level.limits.max_member_bytes, level.meter.unpacked)
            except DamagedError as error:
                yield level.refused(entry.name, Reason.DAMAGED_MEMBER, str(error))
                continue
            yield from _contents(level, entry.name, data)
    except DamagedError as error:
        yield level.rest(Reason.DAMAGED_ARCHIVE, str(error))


def read_archive(
    source: str, handle: BinaryIO, size: int, limits: config.Input, *, kind: Literal["zip", "stream"],
    part: tuple[int, int] | None = None,
) -> Iterator[Member | Omitted]:  # fmt: skip
    """The members of an archive of ``size`` bytes in their order, or those of one ``part`` that ``plan_zip`` gave."""
    level = _Level(source, "", 0, limits, _Meter(size, limits))
    try:
        yield from _zip(level, handle, part) if kind == "zip" else _stream(level, handle, source)
    except _LimitError as error:
        yield level.rest(error.reason, error.detail)


def plan_zip(
    source: str, handle: BinaryIO, size: int, limits: config.Input, members: int
) -> tuple[list[tuple[int, int]], Omitted | None]:
    """Cut the central directory of a zip into parts of ``members`` members, each [start, stop) in bytes of the file.

    The limits of the whole archive are applied here, by the sizes that the directory states (reading stops at
    them); the second value is what then becomes of the rest. An archive that holds others which are to be opened is
    one part, as what they unpack to is known only when they are read.
    """
    level = _Level(source, "", 0, limits, _Meter(size, limits))
    try:
        directory = find_directory(handle)
    except DamagedError as error:
        return [], level.rest(Reason.DAMAGED_ARCHIVE, str(error))
    parts: list[tuple[int, int]] = []
    count = 0
    omitted = None
    try:
        names = zip_names(handle, directory, limits.encodings)
        for entry in zip_entries(handle, directory.start, directory.stop, names.read):
            if entry.kind != "folder":
                level.meter.member(level.path(entry.name))
                if _left_out(level, entry) is None:
                    if not is_record(entry.name) and not is_text(entry.name):
                        return [(directory.start, directory.stop)], None
                    level.meter.unpacked(min(entry.size, limits.max_member_bytes))
            if count % members == 0:
                parts.append((entry.at, entry.end))
            parts[-1] = parts[-1][0], entry.end
            count += 1
    except DamagedError as error:
        omitted = level.rest(Reason.DAMAGED_ARCHIVE, str(error))
    except _LimitError as error:
        omitted = level.rest(error.reason, error.detail)
    return parts, omitted
