"""Folders, record files and archives: what there is to read, cut into units of work, and the records in each.

``find_inputs`` lists the files, ``spool`` reads a stream archive once into blocks, ``units`` cuts the rest, and
``members`` reads one unit. Nothing here depends on the order in which a file system lists a folder.
"""

import errno
import hashlib
import heapq
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import BinaryIO, Literal

import pyarrow as pa

from pipeline import config
from pipeline.archives import (
    Member,
    Omitted,
    excluded,
    is_record,
    is_text,
    named_archive,
    plan_zip,
    printable,
    private,
    read_archive,
)
from pipeline.files import NotAFileError, require_file
from pipeline.pieces import whole_table, write_pieces
from pipeline.reasons import Reason
from pipeline.streams import archive_kind
from pipeline.vendor import HEAD, holds_records

__all__ = [
    "InputChangedError",
    "InputFile",
    "Member",
    "Omitted",
    "Unit",
    "find_inputs",
    "members",
    "opened",
    "read_all",
    "spool",
    "units",
]

UNIT_MEMBERS = 500  # files or zip members in one unit
UNIT_BYTES = 8 * 2**20  # bytes of loose files in one unit, and of data in one spooled block
BLOCK_MEMBERS = 500  # members in one spooled block

_BLOCK = pa.schema([
    pa.field("member", pa.string()),  # null for what is said of the archive as a whole
    pa.field("data", pa.large_binary()),  # null for what is not read; then the next three are set
    pa.field("status", pa.string()),
    pa.field("reason", pa.string()),  # its name in ``Reason``
    pa.field("detail", pa.string()),
])  # fmt: skip

# A folder given as an input that holds both is a finished data set: its game table is the input.
_DATASET_FILES = ("dataset.json", "games.parquet")

Kind = Literal["record", "zip", "stream", "table"]


class InputChangedError(OSError):
    """An input is not what it was when it was listed; the text names it."""

    def __init__(self, path: str) -> None:
        # The path alone is the argument: a worker's error is made anew from its arguments.
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return f"input changed while it was being read, run again: {printable(self.path)}"


@dataclass(frozen=True, slots=True)
class InputFile:
    """One loose record file or one archive found under the inputs.

    ``source`` is its path relative to the input folder, with "/", printable, or the base name of an input given as a
    file; ``path`` is where it is on disk; ``size`` is in bytes; ``sha256`` that of the contents, in hex. A "stream" is
    a tar of any compression: read once, front to back. A "table" is the game table of a data set that was given.
    """

    source: str
    path: str
    size: int
    mtime_ns: int
    sha256: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Unit:
    """Work for one reading task.

    "records": loose ``files``. "zip": the members that the central directory of one file lists at bytes [``start``,
    ``stop``). "spool": the block of members of one stream archive that is stored at ``spool``. ``omitted`` is
    what was found out while the unit was made. "table": ``stop`` records of a game table, stored at ``spool``.
    """

    kind: Literal["records", "zip", "spool", "table"]
    files: tuple[InputFile, ...]
    start: int = 0
    stop: int = 0
    spool: str = ""
    omitted: tuple[Omitted, ...] = ()


def find_inputs(limits: config.Input, leave_out: str | None = None) -> tuple[list[InputFile], list[Omitted]]:
    """List what ``limits.paths`` name: folders with all that is in them, files as they are, data sets by their table.

    ``leave_out``: a folder that is not looked at (where the build itself writes).

    The files are in order of (source, contents), whatever the order of ``paths``; a folder or file that
    is reached twice is read once. Links are followed. Raises ``FileNotFoundError`` for a path that is not there and
    ``InputChangedError`` for a file that is being written.
    """
    folders: set[str] = set()
    files: set[str] = set()
    datasets: set[str] = set()
    for path in limits.paths:
        real, is_folder = _resolve(path)
        (datasets if _is_dataset(real) else folders if is_folder else files).add(real)
    # A folder sorts before those inside it, so that the names of files start at the outermost.
    finder = _Finder(limits, files, os.path.realpath(leave_out) if leave_out else None)
    finder.walk(sorted(folders, key=os.fsencode))
    for path in sorted(files, key=os.fsencode):
        finder.file(path, printable(os.path.basename(path)))
    for path in datasets:
        finder.table(path)
    finder.found.sort(key=lambda file: (file.source, file.sha256, os.fsencode(file.path)))
    finder.omitted.sort(key=lambda omitted: (omitted.source, omitted.reason, omitted.detail))
    return finder.found, finder.omitted


def _resolve(path: str) -> tuple[str, bool]:
    """An input's absolute path and whether it is a folder. The name of a file that is a link is kept."""
    try:
        is_folder = stat.S_ISDIR(os.stat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        raise FileNotFoundError(errno.ENOENT, "no such input", printable(path)) from None
    except OSError:
        is_folder = False  # the reason is found, and reported, when it is opened
    if is_folder:
        return os.path.realpath(path), True
    parent, name = os.path.split(os.path.abspath(path))
    return os.path.join(os.path.realpath(parent), name), False


def _is_dataset(path: str) -> bool:
    return all(os.path.isfile(os.path.join(path, name)) for name in _DATASET_FILES)


@dataclass(slots=True)
class _Finder:
    """The search under all inputs, and what it has found so far; ``given`` are the files that the user named."""

    limits: config.Input
    given: set[str]
    leave_out: str | None
    found: list[InputFile] = field(default_factory=list)
    omitted: list[Omitted] = field(default_factory=list)
    _folders: set[tuple[int, int]] = field(default_factory=set)
    _files: set[str] = field(default_factory=set)

    def walk(self, roots: Iterable[str]) -> None:
        """Read folders. Links to folders come after all real folders, so that a file has its real name."""
        links: list[tuple[str, str]] = []
        for root in roots:
            self._tree(root, "", links)
        while links:
            source, path = heapq.heappop(links)
            if not self._tree(path, source + "/", links):
                self._omit(source, "skipped", Reason.NOT_A_FILE, "a link to a folder that is read elsewhere")

    def _tree(self, top: str, prefix: str, links: list[tuple[str, str]]) -> bool:
        """Read one folder and those in it; false where it was read before."""
        pending = [(top, prefix)]
        while pending:
            path, prefix = pending.pop()
            source = prefix[:-1] or printable(os.path.basename(path))
            if os.path.realpath(path) == self.leave_out:
                continue
            try:
                status = os.stat(path)
                if (status.st_dev, status.st_ino) in self._folders:
                    if path == top:
                        return False
                    continue
                self._folders.add((status.st_dev, status.st_ino))
                with os.scandir(path) as listing:
                    entries = sorted(listing, key=lambda entry: os.fsencode(entry.name))
            except OSError as error:
                self._omit(source, "refused", Reason.UNREADABLE, error.strerror or "")
                continue
            real = os.path.realpath(path)
            for entry in entries:
                name = prefix + printable(entry.name)
                if why := private(entry.name):
                    self._omit(name, "skipped", why)
                elif not _is_folder(entry):
                    self.file(os.path.join(real, entry.name), name)
                elif entry.is_symlink():
                    heapq.heappush(links, (name, entry.path))
                else:
                    pending.append((entry.path, name + "/"))
        return True

    def file(self, path: str, source: str) -> None:
        """List one file; one that the user named is read whatever its name."""
        if path in self._files:
            return
        self._files.add(path)
        name = os.path.basename(path)
        kind: Kind | None = "record" if is_record(name) else named_archive(name)
        try:
            # Before it is opened: opening a pipe would wait for its other end.
            if not stat.S_ISREG(os.stat(path).st_mode):
                self._omit(source, "skipped", Reason.NOT_A_FILE)
            elif kind is None and path not in self.given and not is_text(name):
                self._omit(source, "skipped", Reason.NOT_A_RECORD)
            elif setting := excluded(source, self.limits, archive=kind in ("zip", "stream")):
                self._omit(source, "skipped", Reason.EXCLUDED, setting)
            else:
                self._read(path, source, kind)
        except InputChangedError:
            raise
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ELOOP):
                self._omit(source, "skipped", Reason.NOT_A_FILE, "a link that leads nowhere")
            else:
                self._omit(source, "refused", Reason.UNREADABLE, error.strerror or "")

    def table(self, folder: str) -> None:
        """List the game table of a data set. Raises OSError where it cannot be read."""
        name = _DATASET_FILES[1]
        self._read(os.path.join(folder, name), name, "table")

    def _read(self, path: str, source: str, kind: Kind | None) -> None:
        with open(path, "rb") as handle:
            status = os.fstat(handle.fileno())
            if kind not in ("record", "table"):
                head = handle.read(HEAD)
                handle.seek(0)
                if kind is None and path not in self.given and not holds_records(head):
                    self._omit(source, "skipped", Reason.NOT_A_RECORD)
                    return
                # What the bytes say goes before the name: downloads are unpacked or renamed on the way.
                kind = archive_kind(head[:512]) or kind or "record"
            if kind == "record" and status.st_size > self.limits.max_member_bytes:
                detail = f"{status.st_size} bytes, more than {self.limits.max_member_bytes}"
                self._omit(source, "refused", Reason.MEMBER_TOO_LARGE, detail)
                return
            digest = hashlib.sha256()
            left = status.st_size + 1  # a file that grows without end is noticed, not followed
            while left > 0 and (chunk := handle.read(min(left, 1 << 20))):
                digest.update(chunk)
                left -= len(chunk)
            file = InputFile(source, path, status.st_size, status.st_mtime_ns, digest.hexdigest(), kind)
            _check(handle, file)
            if left != 1:
                raise InputChangedError(path)
            self.found.append(file)

    def _omit(self, source: str, status: Literal["skipped", "refused"], reason: Reason, detail: str = "") -> None:
        self.omitted.append(Omitted(source, None, status, reason, detail))


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False  # a looping link: its reason is found with the files


def _check(handle: BinaryIO, file: InputFile) -> None:
    status = os.fstat(handle.fileno())
    if (status.st_size, status.st_mtime_ns) != (file.size, file.mtime_ns):
        raise InputChangedError(file.path)


@contextmanager
def opened(file: InputFile) -> Iterator[BinaryIO]:
    """Open a listed file. Raises ``InputChangedError`` where it is another one before or after it is read."""
    try:
        require_file(file.path)
        handle = open(file.path, "rb")  # noqa: SIM115 - closed below; the errors of the block are not ours
    except (FileNotFoundError, NotAFileError):
        raise InputChangedError(file.path) from None
    with handle:
        _check(handle, file)
        yield handle
        _check(handle, file)


def units(files: Iterable[InputFile], limits: config.Input, *, size: int = UNIT_MEMBERS) -> list[Unit]:
    """Cut loose files and zips into units of about ``size`` members; archives that are streams are left to ``spool``,
    game tables to ``stored.spool_table``.

    Loose files come first, then zips, each in the order given: what all units together yield, and its order,
    does not depend on ``size``.
    """
    made: list[Unit] = []
    group: list[InputFile] = []
    weight = 0
    chosen = sorted((file for file in files if file.kind in ("record", "zip")), key=lambda file: file.kind == "zip")
    for file in chosen:
        full = len(group) >= size or weight + file.size > UNIT_BYTES
        if group and (full or file.kind == "zip"):
            made.append(Unit("records", tuple(group)))
            group, weight = [], 0
        if file.kind == "zip":
            made.extend(_zip_units(file, limits, size))
        else:
            group.append(file)
            weight += file.size
    if group:
        made.append(Unit("records", tuple(group)))
    return made


def _zip_units(file: InputFile, limits: config.Input, size: int) -> list[Unit]:
    with opened(file) as handle:
        parts, omitted = plan_zip(file.source, handle, file.size, limits, size)
    made = [Unit("zip", (file,), start, stop) for start, stop in parts]
    if omitted:
        made.append(Unit("zip", (file,), omitted=(omitted,)))
    return made


def members(unit: Unit, limits: config.Input) -> Iterator[Member | Omitted]:
    """Read one unit. Raises ``InputChangedError`` where a file is not what it was when it was listed.

    At most one member (or one chain of archives around it) is in memory at a time, a spooled block apart.
    """
    if unit.kind == "spool":
        yield from _spooled(unit)
    elif unit.kind == "records":
        for file in unit.files:
            yield _loose(file)
    elif unit.start < unit.stop:
        (file,) = unit.files
        with opened(file) as handle:
            part = unit.start, unit.stop
            yield from read_archive(file.source, handle, file.size, limits, kind="zip", part=part)
    yield from unit.omitted


def read_all(files: Sequence[InputFile], limits: config.Input) -> Iterator[Member | Omitted]:
    """Read all loose files and archives in this process, one member at a time. Raises ``InputChangedError``."""
    for unit in units(files, limits):
        yield from members(unit, limits)
    for file in files:
        if file.kind == "stream":
            with opened(file) as handle:
                yield from read_archive(file.source, handle, file.size, limits, kind="stream")


def _loose(file: InputFile) -> Member:
    with opened(file) as handle:
        data = handle.read(file.size)
    if hashlib.sha256(data).hexdigest() != file.sha256:
        raise InputChangedError(file.path)
    return Member(file.source, None, data)


def spool(file: InputFile, limits: config.Input, folder: str) -> list[Unit]:
    """Read a stream archive once and write its members in blocks to ``folder``, as files of pieces.

    A block appears whole; its name and bytes depend on the archive, its source and ``limits`` alone. Raises
    ``InputChangedError``, and ``OSError`` where the folder cannot be written.
    """
    place = hashlib.blake2b(file.source.encode(), digest_size=8).hexdigest()
    made: list[Unit] = []
    block: list[Member | Omitted] = []
    size = 0

    def flush() -> None:
        path = os.path.join(folder, f"{file.sha256[:16]}-{place}-{len(made):05d}.arrow")
        _write_block(path, block)
        made.append(Unit("spool", (file,), 0, len(block), path))

    with opened(file) as handle:
        for member in read_archive(file.source, handle, file.size, limits, kind="stream"):
            block.append(member)
            size += len(member.member or "") + (len(member.data) if isinstance(member, Member) else 0)
            if len(block) >= BLOCK_MEMBERS or size >= UNIT_BYTES:
                flush()
                block, size = [], 0
    if block:
        flush()
    return made


def _write_block(path: str, block: list[Member | Omitted]) -> None:
    rows = [
        (one.member, one.data, None, None, None) if isinstance(one, Member)
        else (one.member, None, one.status, one.reason.name, one.detail)
        for one in block
    ]  # fmt: skip
    columns = [pa.array(column, kind.type) for column, kind in zip(zip(*rows, strict=True), _BLOCK, strict=True)]
    write_pieces(path, [pa.Table.from_arrays(columns, schema=_BLOCK)])


def _spooled(unit: Unit) -> Iterator[Member | Omitted]:
    (file,) = unit.files
    block = whole_table(unit.spool)
    for member, data, status, reason, detail in zip(*(column.to_pylist() for column in block.columns), strict=True):
        if data is not None:
            yield Member(file.source, member, data)
        else:
            yield Omitted(file.source, member, status, Reason[reason], detail)
