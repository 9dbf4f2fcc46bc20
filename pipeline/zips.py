"""Zip archives: the central directory entry by entry, and the contents of one entry.

``zipfile`` is not used: it makes an object of every entry before the first is read (gigabytes for a few
million), once more for each range of a large archive, and gives up the whole archive for one bad name.
The layout is that of PKWARE's APPNOTE.TXT 6.3.10, sections 4.3 to 4.5; zip64 included.
"""

import bz2
import lzma
import os
import re
import stat
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import BinaryIO, Final

from pipeline.membernames import Names
from pipeline.streams import CHUNK, XZ_MEMORY, Copy, DamagedError, Decoder, EntryKind, Inflate, unpack

_END: Final = struct.Struct("<4sHHHHLLH")
_END64: Final = struct.Struct("<4sQHHLLQQQQ")
_LOCATOR64: Final = struct.Struct("<4sLQL")
_CENTRAL: Final = struct.Struct("<4sHHHHHHLLLHHHHHLL")
_LOCAL: Final = struct.Struct("<4sHHHHHLLLHH")
_LARGEST_COMMENT: Final = 0xFFFF
_LARGEST_ENTRY: Final = _CENTRAL.size + 3 * 0xFFFF
_WINDOW: Final = 1 << 19  # bytes of the directory held at once
_SAMPLE: Final = 1 << 14  # bytes of the directory whose names tell the charset of the others
_ENCRYPTED: Final = 0x1
_UTF8: Final = 0x800
_UNICODE_PATH: Final = 0x7075
_EAST_ASIA: Final = "\u2e80"  # the first of its characters
_FRAMES: Final = re.compile("[\u2500-\u2593]")  # of cp437, for text screens: nobody names a file so


@dataclass(frozen=True, slots=True)
class Directory:
    """Where the central directory is: [``start``, ``stop``) in the file of ``size`` bytes.

    ``shift`` is added to the offsets in it: bytes before the archive, as in self-extracting ones.
    """

    start: int
    stop: int
    shift: int
    size: int


@dataclass(frozen=True, slots=True)
class ZipEntry:
    """One entry as the central directory states it, at bytes [``at``, ``end``) of the file.

    ``name`` is the text of ``raw``, the name as stored.
    """

    at: int
    end: int
    name: str
    raw: bytes
    kind: EntryKind
    encrypted: bool
    method: int
    crc: int
    packed: int
    size: int
    offset: int


def find_directory(handle: BinaryIO) -> Directory:
    """Find the central directory from the end of the file. Raises ``DamagedError``."""
    size = handle.seek(0, os.SEEK_END)
    tail_at = max(0, size - _END.size - _LARGEST_COMMENT)
    handle.seek(tail_at)
    tail = handle.read(_END.size + _LARGEST_COMMENT)
    found = tail.rfind(b"PK\x05\x06", 0, max(0, len(tail) - _END.size + 4))
    if found < 0:
        raise DamagedError("no central directory: not a zip, or the end is missing")
    *_, length, offset, _ = _END.unpack_from(tail, found)
    stop = tail_at + found
    if stop >= _LOCATOR64.size:
        handle.seek(stop - _LOCATOR64.size)
        magic, _, end64, _ = _LOCATOR64.unpack(handle.read(_LOCATOR64.size))
        if magic == b"PK\x06\x07":
            stop, length, offset = _read_end64(handle, min(end64, size), stop - _LOCATOR64.size)
    if length > stop or offset > stop - length:
        raise DamagedError("the central directory is not where the end record says")
    return Directory(stop - length, stop, stop - length - offset, size)


def _read_end64(handle: BinaryIO, stated: int, locator: int) -> tuple[int, int, int]:
    """End, length and offset of the directory from the zip64 record, which stands just before its locator."""
    for at in (stated, locator - _END64.size):  # the second where bytes stand before the archive
        handle.seek(max(0, at))
        record = handle.read(_END64.size)
        if len(record) == _END64.size and record.startswith(b"PK\x06\x06"):
            *_, length, offset = _END64.unpack(record)
            return at, length, offset
    raise DamagedError("the zip64 end record is missing")


def zip_names(handle: BinaryIO, directory: Directory, encodings: Sequence[str]) -> Names:
    """A reader of the names whose charset is not stated, the same for every part of the archive.

    It has learned from those in the first 16 KiB of the directory. ``encodings``: the charsets that may be guessed.
    """
    names = Names(encodings, "cp437")

    def learn(raw: bytes) -> str:
        names.learn(raw)
        return ""

    with suppress(DamagedError):  # where the sample ends inside an entry; real damage is met again
        for _ in zip_entries(handle, directory.start, min(directory.stop, directory.start + _SAMPLE), learn):
            pass
    return names


def zip_entries(handle: BinaryIO, start: int, stop: int, read_name: Callable[[bytes], str]) -> Iterator[ZipEntry]:
    """The entries of the directory at bytes [``start``, ``stop``). Raises ``DamagedError``.

    The handle may be used for other things between two entries. ``read_name`` gives the text of a name whose
    charset is not stated.
    """
    window, at = b"", 0
    while start + at < stop:
        if at + _LARGEST_ENTRY > len(window) and start + len(window) < stop:
            start, at = start + at, 0
            handle.seek(start)
            window = handle.read(min(_WINDOW, stop - start))
        entry = _central(window, at, start, read_name)
        yield entry
        at = entry.end - start


def _central(window: bytes, at: int, start: int, read_name: Callable[[bytes], str]) -> ZipEntry:
    """The entry that begins at ``window[at]``; the window is the file from ``start`` on."""
    if len(window) - at < _CENTRAL.size or not window.startswith(b"PK\x01\x02", at):
        raise DamagedError("the central directory is damaged")
    (_, _, _, flags, method, _, _, crc, packed, size, name_length, extra_length, comment_length, _, _, attributes,
     offset) = _CENTRAL.unpack_from(window, at)  # fmt: skip
    name_at = at + _CENTRAL.size
    extra_at = name_at + name_length
    end = extra_at + extra_length + comment_length
    if end > len(window):
        raise DamagedError("the central directory is damaged")
    extra = window[extra_at : extra_at + extra_length]
    raw = window[name_at:extra_at]
    name = _text(raw, flags, extra, read_name)
    if extra and 0xFFFFFFFF in (size, packed, offset):
        size, packed, offset = _zip64(_extra(extra, 1), size, packed, offset)
    kind = "folder" if name.endswith("/") else _kind(attributes >> 16)
    encrypted = bool(flags & _ENCRYPTED)
    return ZipEntry(start + at, start + end, name, raw, kind, encrypted, method, crc, packed, size, offset)


def _text(raw: bytes, flags: int, extra: bytes, read_name: Callable[[bytes], str]) -> str:
    """The text of a name: stated by extra field 0x7075 (APPNOTE 4.6.9), UTF-8 by flag (4.4.4), or ``read_name``'s."""
    if not extra and raw.isascii():
        return raw.decode("ascii")
    field = _extra(extra, _UNICODE_PATH)
    stated = raw
    if len(field) > 5 and field[0] == 1 and int.from_bytes(field[1:5], "little") == zlib.crc32(raw):
        stated = field[5:]  # else the name was changed after the field was written
    elif not (flags & _UTF8 or raw.isascii()):
        return read_name(raw)
    try:
        text = stated.decode("utf-8")
        if not _FRAMES.search(text):
            return text
        # Letters of cp437, written as UTF-8 by a program that did not know the charset of what it copied.
        again = read_name(text.encode("cp437"))
    except UnicodeDecodeError:
        return read_name(raw)
    except UnicodeEncodeError:
        return text
    return again if max(again, default="") >= _EAST_ASIA else text


def _extra(extra: bytes, wanted: int) -> bytes:
    """The data of the first extra field of a kind, empty where there is none."""
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, at)
        at += 4
        if kind == wanted:
            return extra[at : at + length]
        at += length
    return b""


def _zip64(field: bytes, *sizes: int) -> tuple[int, ...]:
    """The three sizes, those that do not fit in 32 bits taken from extra field 1 (APPNOTE 4.5.3)."""
    long = iter(struct.unpack_from(f"<{len(field) // 8}Q", field))
    return tuple(next(long, size) if size == 0xFFFFFFFF else size for size in sizes)


def _kind(mode: int) -> EntryKind:
    """What the mode bits of Unix say; most writers leave them out, which means a file."""
    if stat.S_ISLNK(mode):
        return "link"
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
        return "special"
    return "file"


def read_entry(
    handle: BinaryIO, directory: Directory, entry: ZipEntry, limit: int, tick: Callable[[int], None]
) -> bytes | None:
    """The contents of an entry, or None where more than ``limit`` bytes come out.

    ``tick`` is called with the number of bytes as they come out, and may raise to stop; never with more
    in all than the smaller of ``entry.size`` and ``limit``. Raises ``DamagedError``.
    """
    offset = entry.offset + directory.shift
    if offset + _LOCAL.size > directory.size:
        raise DamagedError("lies outside the archive")
    handle.seek(offset)
    magic, *_, name_length, extra_length = _LOCAL.unpack(handle.read(_LOCAL.size))
    if magic != b"PK\x03\x04":
        raise DamagedError("is not where the central directory says")
    handle.seek(name_length + extra_length, os.SEEK_CUR)
    most = min(entry.size, limit)
    decoder, left = _decoder(handle, entry)
    parts: list[bytes] = []
    got = 0
    while got <= most and not decoder.eof:
        data = b""
        if decoder.needs_input:
            data = handle.read(min(left, CHUNK))
            if not data:
                break
            left -= len(data)
        chunk = unpack(decoder, data, min(CHUNK, most + 1 - got))
        got += len(chunk)
        if got <= most:
            tick(len(chunk))
            parts.append(chunk)
    if got > limit:
        return None
    contents = b"".join(parts)
    if got != entry.size:
        raise DamagedError(f"holds {'more' if got > most else 'fewer'} than the {entry.size} bytes stated")
    if zlib.crc32(contents) != entry.crc:
        raise DamagedError("fails its checksum")
    return contents


def _decoder(handle: BinaryIO, entry: ZipEntry) -> tuple[Decoder, int]:
    """A decoder for the entry whose data the handle is at, and the number of bytes to feed to it."""
    match entry.method:
        case 0:
            return Copy(), entry.packed
        case 8:
            return Inflate(-15), entry.packed
        case 12:
            return bz2.BZ2Decompressor(), entry.packed
        case 14:
            return _lzma(handle.read(9)), max(0, entry.packed - 9)
    raise DamagedError(f"compression method {entry.method} is not supported")


def _lzma(header: bytes) -> Decoder:
    """LZMA as in APPNOTE 5.8.8: version, length of the properties, then lc, lp and pb, and the dictionary's size."""
    if len(header) < 9:
        raise DamagedError("the compressed data breaks off")
    length, packed, dictionary = struct.unpack("<2xHBL", header)
    if length != 5 or dictionary > XZ_MEMORY:
        raise DamagedError("LZMA properties that are not supported")
    filters = [{
        "id": lzma.FILTER_LZMA1, "dict_size": max(dictionary, 4096),
        "lc": packed % 9, "lp": packed // 9 % 5, "pb": packed // 45,
    }]  # fmt: skip
    try:
        return lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=filters)
    except (lzma.LZMAError, ValueError) as error:
        raise DamagedError(f"LZMA properties that are not supported: {error}") from None
