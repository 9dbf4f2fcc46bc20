"""Compressed streams: what comes out, in what pieces, and what stops it."""

import bz2
import gzip
import lzma
import random
import zlib
from io import BytesIO

import pytest

from pipeline.streams import CHUNK, DamagedError, Inflate, Unpacked, archive_kind

PACKERS = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "plain": bytes}
NOISE = random.Random(1).randbytes(3 * CHUNK + 17)


def unpacked(data: bytes, ticks: list[int] | None = None) -> Unpacked:
    return Unpacked(BytesIO(data), (ticks if ticks is not None else []).append)


@pytest.mark.parametrize("packer", PACKERS)
@pytest.mark.parametrize("data", [b"", b"a", NOISE, bytes(5 * CHUNK)], ids=["empty", "one", "noise", "zeros"])
def test_what_was_packed_comes_out(packer, data):
    ticks: list[int] = []
    stream = unpacked(PACKERS[packer](data), ticks)
    out = b""
    while piece := stream.read(1000):
        out += piece
    assert out == data
    assert sum(ticks) == len(data)
    assert all(tick <= CHUNK for tick in ticks)


def test_reads_and_skips_of_any_size_agree_with_slices():
    order = random.Random(2)
    stream = unpacked(gzip.compress(NOISE))
    at = 0
    while at < len(NOISE):
        size = order.choice((0, 1, 511, 512, CHUNK, CHUNK + 1))
        if order.random() < 0.3:
            assert stream.skip(size) == (at + size <= len(NOISE))
        else:
            assert stream.read(size) == NOISE[at : at + size]
        at += size
    assert stream.chunk() == b""


@pytest.mark.parametrize("packer", ["gz", "bz2", "xz"])
@pytest.mark.parametrize("padding", [b"", bytes(8)])
def test_concatenated_streams_are_one(packer, padding):
    pack = PACKERS[packer]
    stream = unpacked(pack(b"first") + padding + pack(b"") + pack(b"second"))
    assert stream.read(100) == b"firstsecond"


def test_other_bytes_after_the_last_stream_are_ignored():
    assert unpacked(gzip.compress(b"moves") + b"not gzip").read(100) == b"moves"


@pytest.mark.parametrize("packer", ["gz", "bz2", "xz"])
def test_data_that_breaks_off_is_damaged_after_what_was_whole(packer):
    stream = unpacked(PACKERS[packer](NOISE)[:-20])
    if packer == "gz":
        assert stream.read(2 * CHUNK) == NOISE[: 2 * CHUNK]
    with pytest.raises(DamagedError, match="breaks off"):
        stream.skip(len(NOISE) + 1)


def test_a_wrong_checksum_is_damage():
    data = bytearray(gzip.compress(b"moves"))
    data[-8] ^= 1
    with pytest.raises(DamagedError, match="incorrect data check"):
        unpacked(bytes(data)).read(10)


def test_a_huge_xz_dictionary_is_refused():
    filters = [{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 20}]
    data = bytearray(lzma.compress(b"moves", filters=filters))
    # The block header (xz format 3.1): size, flags, filter 0x21, length 1, dictionary, padding, CRC32.
    assert data[12:17] == b"\x02\x00\x21\x01\x10"
    data[16] = 40  # 4 GiB - 1
    data[20:24] = zlib.crc32(data[12:20]).to_bytes(4, "little")
    with pytest.raises(DamagedError, match=r"[Mm]emory"):
        unpacked(bytes(data)).read(10)


def test_a_full_answer_of_zlib_may_hide_more():
    packed = zlib.compressobj(wbits=-15)
    data = packed.compress(b"x" * 1000) + packed.flush()
    inflate = Inflate(-15)
    out = inflate.decompress(data, 1)
    while not inflate.eof:
        assert not inflate.needs_input
        out += inflate.decompress(b"", 7)
    assert out == b"x" * 1000


def test_kinds_by_their_first_bytes():
    assert archive_kind(b"PK\x03\x04rest") == archive_kind(b"PK\x05\x06") == "zip"
    assert {archive_kind(PACKERS[packer](b"data")) for packer in ("gz", "bz2", "xz")} == {"stream"}
    assert archive_kind(bytes(257) + b"ustar\0" + bytes(249)) == "stream"
    assert archive_kind(b"(;GM[1])") is archive_kind(b"") is None
