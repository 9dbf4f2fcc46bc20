"""Tar archives read once, front to back, in memory that does not depend on what their headers claim.

``tarfile`` is not used: it reads the headers it is told to read whole, keeps a record of every member,
searches extended headers with patterns that can take minutes, and in some Python versions loops over negative
sizes. A tar archive is 512-byte blocks (POSIX.1-2017, ``pax``, "ustar Interchange Format"); what is
needed of it is short.
"""

import re
from typing import Final

from pipeline.membernames import Names
from pipeline.streams import DamagedError, EntryKind, StreamEntry, Unpacked

MAX_HEADER: Final = 1 << 20  # the largest extended header of one member
BLOCK: Final = 512


# "partial": S is a sparse file, M a piece of a file from another volume.
_KINDS: Final[dict[bytes, EntryKind]] = {
    b"0": "file", b"\0": "file", b"7": "file", b"1": "link", b"2": "link", b"3": "special", b"4": "special",
    b"5": "folder", b"6": "special", b"D": "folder", b"S": "partial", b"M": "partial", b"V": "special",
}  # fmt: skip
_WITHOUT_DATA: Final = frozenset((b"1", b"2", b"3", b"4", b"5", b"6"))  # whatever their size field says
_PAX_RECORD: Final = re.compile(rb"([0-9]{1,7}) ([^=\n]{1,1024})=")


def _string(field: bytes) -> bytes:
    return field.partition(b"\0")[0]


def _number(field: bytes) -> int:
    """A size field: octal digits, or base 256 where the first bit is set (GNU)."""
    if field[0] == 0x80:
        return int.from_bytes(field[1:], "big")
    digits = field.partition(b"\0")[0].strip() or b"0"
    if digits.strip(b"01234567"):
        raise DamagedError("a tar header whose size is negative or not a number")
    return int(digits, 8)


def _is_header(block: bytes) -> bool:
    """Whether the checksum is right: the sum of all bytes, with blanks in the checksum's own place."""
    try:
        stored = int(block[148:156].partition(b"\0")[0].strip() or b"0", 8)
    except ValueError:
        return False
    rest = block[:148] + block[156:]
    total = sum(rest) + 8 * ord(" ")
    # Some old programs added the bytes as signed numbers.
    return stored == total or stored == total - 256 * sum(byte > 127 for byte in rest)


def _pax_records(body: bytes) -> dict[bytes, bytes]:
    """The records ``b"27 path=games/first.sgf\\n"`` of a pax header. Raises ``DamagedError``."""
    records = {}
    at = 0
    while at < len(body) and body[at]:
        found = _PAX_RECORD.match(body, at)
        stop = at + int(found[1]) if found else 0
        if found is None or not found.end() < stop <= len(body) or body[stop - 1] != 0x0A:
            raise DamagedError("a damaged pax header")
        records[found[2]] = body[found.end() : stop - 1]
        at = stop
    return records


class TarReader:
    """The members of a tar archive, one after another: ``next``, then ``read`` or not, and so on.

    Read are the formats v7, ustar, pax and GNU; ``names`` makes text of their names. All methods raise
    ``DamagedError`` where the rest of the archive cannot be read.
    """

    __slots__ = ("_first", "_left", "_names", "_padding", "_stream")

    def __init__(self, stream: Unpacked, names: Names) -> None:
        self._stream = stream
        self._names = names
        self._left = 0  # bytes of the last member that were not read
        self._padding = 0
        self._first = True

    def next(self) -> StreamEntry | None:
        """The next member, or None after the last one."""
        self._pass_over()
        name = size = None
        partial = False
        while True:
            block = self._block()
            if block is None:
                return None
            flag = block[156:157]
            length = _number(block[124:136])
            if flag in b"xXLKg":
                body = self._header_body(length, keep=flag in b"xXL")
                if flag == b"L":
                    name = _string(body)
                elif body:
                    pax = _pax_records(body)
                    name = pax.get(b"GNU.sparse.name", pax.get(b"path")) or name
                    size = _pax_size(pax) if b"size" in pax else size
                    partial = partial or any(key.startswith(b"GNU.sparse.") for key in pax)
                continue
            return self._entry(block, name, length if size is None else size, partial)

    def read(self, limit: int) -> bytes | None:
        """The contents of the last member, or None where they are more than ``limit`` bytes."""
        if self._left > limit:
            return None
        wanted, self._left = self._left, 0
        data = self._stream.read(wanted)
        if len(data) < wanted:
            raise DamagedError("the archive breaks off inside a member")
        return data

    def _pass_over(self) -> None:
        if not self._stream.skip(self._left + self._padding):
            raise DamagedError("the archive breaks off inside a member")
        self._left = self._padding = 0

    def _block(self) -> bytes | None:
        """The next header, or None at the mark that ends the archive."""
        block = self._stream.read(BLOCK)
        if len(block) < BLOCK:
            raise DamagedError("the archive breaks off" if block else "the archive has no end mark: it may be cut")
        if not block.strip(b"\0"):
            self._check_rest()
            return None
        if not _is_header(block):
            raise DamagedError("not a tar archive" if self._first else "a damaged tar header")
        self._first = False
        return block

    def _check_rest(self) -> None:
        """Read on to the end, so that the checksum of the compressed data is compared; it should be blank."""
        while chunk := self._stream.chunk():
            if chunk.strip(b"\0"):
                raise DamagedError("what follows the end mark of the archive is not read")

    def _header_body(self, length: int, *, keep: bool) -> bytes:
        if length > MAX_HEADER:
            raise DamagedError(f"a tar header of {length} bytes")
        body = self._stream.read(length)
        if len(body) < length or not self._stream.skip(-length % BLOCK):
            raise DamagedError("the archive breaks off inside a header")
        return body if keep else b""

    def _entry(self, block: bytes, raw: bytes | None, size: int, partial: bool) -> StreamEntry:
        flag = block[156:157]
        kind = _KINDS.get(flag, "special" if flag.isupper() else "file")
        if raw is None:
            raw = _string(block[:100])
            prefix = _string(block[345:500]) if block[257:263] == b"ustar\0" else b""
            raw = prefix + b"/" + raw if prefix else raw
        extended = flag == b"S" and block[482]
        while extended:  # the map of a sparse file goes on in blocks of its own
            more = self._stream.read(BLOCK)
            if len(more) < BLOCK:
                raise DamagedError("the archive breaks off inside a header")
            extended = more[504]
        if kind == "file" and raw.endswith(b"/"):
            kind = "folder"
        self._left = 0 if flag in _WITHOUT_DATA else size
        self._padding = -self._left % BLOCK
        self._names.learn(raw)
        return StreamEntry(self._names.read(raw), raw, "partial" if partial and kind == "file" else kind)


def _pax_size(pax: dict[bytes, bytes]) -> int:
    digits = pax[b"size"]
    if not digits.isdigit() or len(digits) > 20:
        raise DamagedError("a pax header without a size")
    return int(digits)
