"""Small archives of other formats than zip and tar, from the descriptions of their formats.

``seven_zip``: 7zFormat.txt of the LZMA SDK. ``rar`` and ``rar5``: the technical notes of RAR 4 and RAR 5. ``cab``:
MS-CAB. ``lha``: headers of level 0. ``cpio``: its "new ASCII" form. Members are stored as they are, LZMA2 in 7z apart.
"""

import lzma
import struct
import zlib

AES = b"\x06\xf1\x07\x01"
COPY, LZMA, LZMA2 = b"\x00", b"\x03\x01\x01", b"\x21"
LINK = 0o120777 << 16 | 0x8000  # attributes: the upper half is the mode of Unix
Named = tuple[str, bytes]


def number(value: int) -> bytes:
    """A number of 7z: the first byte says by its upper bits how many follow."""
    for extra in range(8):
        if value < 1 << (7 * (extra + 1)):
            low = value & ((1 << 8 * extra) - 1)
            return bytes([0xFF00 >> extra & 0xFF | value >> 8 * extra]) + low.to_bytes(extra, "little")
    return b"\xff" + value.to_bytes(8, "little")


def lzma2(data: bytes) -> bytes:
    return lzma.compress(data, lzma.FORMAT_RAW, filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 20}])


def coder(method: bytes, properties: bytes) -> bytes:
    if not properties:
        return bytes([len(method)]) + method
    return bytes([len(method) | 0x20]) + method + number(len(properties)) + properties


def bits(values: list[bool]) -> bytes:
    return bytes(
        sum(value << 7 - place for place, value in enumerate(values[at : at + 8])) for at in range(0, len(values), 8)
    )


def property_of(kind: int, body: bytes) -> bytes:
    return bytes([kind]) + number(len(body)) + body


def seven_zip(
    *members: Named,
    solid: bool = True,
    method: bytes = COPY,
    properties: bytes = b"",
    attributes: dict[str, int] | None = None,
    wrong: tuple[str, ...] = (),
    files: int | None = None,
) -> bytes:
    """A 7z of members (a name that ends in "/" is a folder), all in one stream if ``solid``, else in one each.

    ``wrong``: names of members whose checksum is not that of their data. ``files``: a count to state that is not true.
    """
    full = [(name, data) for name, data in members if data]
    streams = ([full] if full else []) if solid else [[one] for one in full]
    plain = [b"".join(data for _, data in stream) for stream in streams]
    packed = [lzma2(data) if method == LZMA2 else data for data in plain]
    header = b"\x01"
    if streams:
        header += b"\x04\x06" + number(0) + number(len(packed)) + b"\x09" + b"".join(number(len(one)) for one in packed)
        header += b"\x00\x07\x0b" + number(len(packed)) + b"\x00"
        header += (b"\x01" + coder(method, properties)) * len(packed)
        header += b"\x0c" + b"".join(number(len(one)) for one in plain) + b"\x00"
        header += b"\x08\x0d" + b"".join(number(len(stream)) for stream in streams)
        header += b"\x09" + b"".join(number(len(data)) for stream in streams for _, data in stream[:-1])
        header += b"\x0a\x01"
        header += b"".join(struct.pack("<L", zlib.crc32(data) ^ (name in wrong)) for name, data in full)
        header += b"\x00\x00"
    header += b"\x05" + number(len(members) if files is None else files)
    if len(full) < len(members):
        header += property_of(0x0E, bits([not data for _, data in members]))
        header += property_of(0x0F, bits([not name.endswith("/") for name, data in members if not data]))
    names = b"".join(name.removesuffix("/").encode("utf-16-le", "surrogatepass") + b"\0\0" for name, _ in members)
    header += property_of(0x11, b"\0" + names)
    if attributes:
        header += property_of(
            0x15, b"\1\0" + b"".join(struct.pack("<L", attributes.get(name, 0x20)) for name, _ in members)
        )
    return seven_zip_file(b"".join(packed), header + b"\x00\x00")


def seven_zip_hidden() -> bytes:
    """A 7z whose list of members is encrypted itself."""
    header = b"\x17\x06" + number(0) + number(1) + b"\x09" + number(32) + b"\x00"
    header += b"\x07\x0b\x01\x00\x01" + coder(AES, b"\x53\x07" + bytes(16)) + b"\x0c" + number(32) + b"\x00\x00"
    return seven_zip_file(bytes(32), header)


def seven_zip_file(body: bytes, header: bytes, size: int | None = None) -> bytes:
    """What stands at the start and at the end of a 7z. ``size``: of the header, where it is not to be the true one."""
    where = struct.pack("<QQL", len(body), len(header) if size is None else size, zlib.crc32(header))
    return b"7z\xbc\xaf\x27\x1c\0\4" + struct.pack("<L", zlib.crc32(where)) + where + body + header


def rar(*members: tuple[bytes, bytes], encrypted: bool = False, more: int = 0) -> bytes:
    """A RAR 4 archive; names as bytes, since the format does not say what they are.

    ``more``: bytes that the first member is said to have beyond its own.
    """
    out = b"Rar!\x1a\x07\x00" + _rar_block(0x73, 0, bytes(6))
    for name, data in members:
        size = len(data) + more * (name == members[0][0])
        fields = struct.pack("<LLBLLBBHL", len(data), size, 3, zlib.crc32(data), 0, 20, 0x30, len(name), 0o100644)
        out += _rar_block(0x74, 0x8000 | 0x4 * encrypted, fields + name) + data
    return out + _rar_block(0x7B, 0x4000, b"")


def _rar_block(kind: int, flags: int, fields: bytes) -> bytes:
    rest = struct.pack("<BHH", kind, flags, 7 + len(fields)) + fields
    return struct.pack("<H", zlib.crc32(rest) & 0xFFFF) + rest


def rar5(*members: Named) -> bytes:
    out = b"Rar!\x1a\x07\x01\x00" + _rar5_block(b"\x01\x00\x00")
    for name, data in members:
        text = name.encode()
        head = b"\x02\x02" + _vint(len(data)) + b"\x04" + _vint(len(data)) + _vint(0o100644)
        head += struct.pack("<L", zlib.crc32(data)) + b"\x00\x01" + _vint(len(text)) + text
        out += _rar5_block(head) + data
    return out + _rar5_block(b"\x05\x00\x00")


def _rar5_block(head: bytes) -> bytes:
    rest = _vint(len(head)) + head
    return struct.pack("<L", zlib.crc32(rest)) + rest


def _vint(value: int) -> bytes:
    out = b""
    while value >= 128:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def cab(*members: tuple[bytes, bytes]) -> bytes:
    """A cabinet of one folder with one block of data."""
    data = b"".join(data for _, data in members)
    files, at = b"", 0
    for name, one in members:
        files += struct.pack("<LLHHHH", len(one), at, 0, 0x21, 0, 0x20) + name + b"\0"
        at += len(one)
    first = 36 + 8
    block = struct.pack("<LHH", 0, len(data), len(data)) + data  # a checksum of 0 is none
    size = first + len(files) + len(block)
    head = struct.pack("<4sLLLLLBBHHHHH", b"MSCF", 0, size, 0, first, 0, 3, 1, 1, len(members), 0, 0, 0)
    return head + struct.pack("<LHH", first + len(files), 1, 0) + files + block


def lha(*members: tuple[bytes, bytes]) -> bytes:
    out = b""
    for name, data in members:
        body = b"-lh0-" + struct.pack("<LLLBB", len(data), len(data), 0, 0x20, 0)
        body += bytes([len(name)]) + name + struct.pack("<H", _crc16(data))
        out += bytes([len(body), sum(body) & 0xFF]) + body + data
    return out + b"\0"


def _crc16(data: bytes) -> int:
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0xA001 if crc & 1 else 0)
    return crc


def cpio(*members: tuple[bytes, bytes]) -> bytes:
    out = b""
    for number_, (name, data) in enumerate([*members, (b"TRAILER!!!", b"")], 1):
        fields = (number_, 0o100644, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0)
        head = b"070701" + b"".join(b"%08x" % field for field in fields) + name + b"\0"
        out += head + bytes(-len(head) % 4) + data + bytes(-len(data) % 4)
    return out
