"""Compressed data read once, front to back, with every size bounded; and which kind of archive bytes are."""

import bz2
import lzma
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO, Final, Literal, Protocol

CHUNK: Final = 1 << 16  # bytes asked of a file or a decompressor at once
XZ_MEMORY: Final = 1 << 28  # the largest dictionary that is granted to xz and lzma data

# What a member of an archive is. "partial": its stored bytes are not its contents, as of a sparse file.
EntryKind = Literal["file", "folder", "link", "special", "partial"]


@dataclass(frozen=True, slots=True)
class StreamEntry:
    """One member of an archive that is read front to back: its name as text and as stored, and what it is."""

    name: str
    raw: bytes
    kind: EntryKind
    encrypted: bool = False


class DamagedError(ValueError):
    """Bytes that are not what they should be; the text says what is wrong."""


class Decoder(Protocol):
    """The interface of ``bz2.BZ2Decompressor`` and ``lzma.LZMADecompressor``."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


class Inflate:
    """zlib as a ``Decoder``; ``wbits`` is -15 for bare deflate data, 31 for gzip."""

    __slots__ = ("_full", "_zlib")

    def __init__(self, wbits: int) -> None:
        self._zlib = zlib.decompressobj(wbits)
        self._full = False

    @property
    def eof(self) -> bool:
        return self._zlib.eof

    @property
    def needs_input(self) -> bool:
        # A full answer may leave a part of a match inside zlib, although all input was taken.
        return not (self._full or self._zlib.unconsumed_tail)

    @property
    def unused_data(self) -> bytes:
        return self._zlib.unused_data

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        chunk = self._zlib.decompress(self._zlib.unconsumed_tail + data, max_length)
        self._full = len(chunk) == max_length
        return chunk


class Copy:
    """Bytes that are not compressed, as a ``Decoder`` without an end."""

    __slots__ = ("_rest",)
    eof: Final = False
    unused_data: Final = b""

    def __init__(self) -> None:
        self._rest = b""

    @property
    def needs_input(self) -> bool:
        return not self._rest

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        data = self._rest + data
        self._rest = data[max_length:]
        return data[:max_length]


def unpack(decoder: Decoder, data: bytes, most: int) -> bytes:
    """Feed ``data`` and take at most ``most`` bytes (at least 1). Raises ``DamagedError``."""
    try:
        return decoder.decompress(data, most)
    except (zlib.error, lzma.LZMAError, OSError, EOFError, ValueError) as error:
        raise DamagedError(str(error)) from None


def _xz() -> Decoder:
    return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=XZ_MEMORY)


_COMPRESSIONS: Final[tuple[tuple[bytes, Callable[[], Decoder]], ...]] = (
    (b"\x1f\x8b", lambda: Inflate(31)),
    (b"BZh", bz2.BZ2Decompressor),
    (b"\xfd7zXZ\0", _xz),
)
# 7z, rar, cab, lha, cpio; tar in zstd, lz4, lzip and compress.
_LIBRARY: Final = re.compile(
    rb"7z\xbc\xaf\x27\x1c|Rar!\x1a\x07|MSCF\0{4}|(?s:..)-l[hz][0-9a-z]-|07070[127]"
    rb"|\x28\xb5\x2f\xfd|\x04\x22\x4d\x18|LZIP|\x1f\x9d"
)


def archive_kind(head: bytes) -> Literal["zip", "stream"] | None:
    """What the first 512 bytes of a file show: a zip, another archive that is read front to back, or neither."""
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return "zip"
    if head[257:262] == b"ustar" or head.startswith(tuple(magic for magic, _ in _COMPRESSIONS)):
        return "stream"
    return "stream" if needs_library(head) else None


def needs_library(head: bytes) -> bool:
    """Whether the first 512 bytes of a file are those of an archive that only libarchive reads."""
    return _LIBRARY.match(head) is not None and head[257:262] != b"ustar"  # a tar begins with a name


class Unpacked:
    """The contents of a gzip, bzip2 or xz file, or of a plain one, read forward.

    Concatenated streams are one, as for the tools of the same names; other bytes after the last are ignored.
    ``tick`` is called with the number of bytes each time that some come out, and may raise to stop.
    Where a compressed chunk is damaged, the up to 64 KiB that it would have given are lost with it.
    """

    __slots__ = ("_at", "_buffer", "_decoder", "_ended", "_magic", "_pending", "_raw", "_start", "_tick")

    def __init__(self, raw: BinaryIO, tick: Callable[[int], None]) -> None:
        self._raw = raw
        self._tick = tick
        self._pending = raw.read(CHUNK)
        self._magic, self._start = next(
            (pair for pair in _COMPRESSIONS if self._pending.startswith(pair[0])), (b"", Copy)
        )
        self._decoder = self._start()
        self._buffer = b""
        self._at = 0
        self._ended = False

    def _next_stream(self) -> None:
        """Go on with the next of several streams, if there is one. NULs between them are padding."""
        rest = self._decoder.unused_data.lstrip(b"\0")
        while len(rest) < len(self._magic) and (more := self._raw.read(CHUNK)):
            rest = (rest + more).lstrip(b"\0")
        self._ended = not rest.startswith(self._magic)
        self._decoder = self._start()
        self._pending = rest

    def chunk(self) -> bytes:
        """The next bytes, as many as are at hand; empty at the end. Raises ``DamagedError``."""
        if self._at < len(self._buffer):
            chunk, self._buffer, self._at = self._buffer[self._at :], b"", 0
            return chunk
        while not self._ended:
            data = b""
            if self._decoder.needs_input:
                data = self._pending or self._raw.read(CHUNK)
                self._pending = b""
                if not data and self._magic:
                    raise DamagedError("the compressed data breaks off")
                self._ended = not data
            chunk = unpack(self._decoder, data, CHUNK)
            if self._decoder.eof:
                self._next_stream()
            if chunk:
                self._tick(len(chunk))
                return chunk
        return b""

    def read(self, size: int) -> bytes:
        """``size`` bytes, fewer only at the end. Raises ``DamagedError``."""
        stop = self._at + size
        if stop <= len(self._buffer):
            data = self._buffer[self._at : stop]
            self._at = stop
            return data
        parts = []
        missing = size
        while missing > 0 and (chunk := self.chunk()):
            if len(chunk) > missing:
                self._buffer, self._at = chunk, missing
            parts.append(chunk[:missing])
            missing -= len(parts[-1])
        return b"".join(parts)

    def skip(self, size: int) -> bool:
        """Pass over ``size`` bytes; false where the stream ends before."""
        while size > 0:
            passed = len(self.read(min(size, CHUNK)))
            if not passed:
                return False
            size -= passed
        return True
