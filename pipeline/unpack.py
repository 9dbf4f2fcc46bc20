"""Packed planes to dense ones: rows are picked, turned by a symmetry each and unpacked in one pass.

The pass costs by the bits that are set, and most are not: a row is cleared, then each bit is written to where its
symmetry puts its point. Of a plane that is nearly full the holes are written.
"""

from functools import lru_cache
from typing import Any, Literal

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload
from numpy.typing import NDArray

from pipeline import symmetry
from pipeline.jit import kernel

Axes = Literal["NCHW", "NHWC"]

_ONE, _BYTE = np.uint64(1), np.uint64(8)


def trailing_zeros(word: Any) -> int:
    """Return how many zeros follow the last 1 of a uint64 that is not 0: 0 to 63."""
    return (int(word) & -int(word)).bit_length() - 1


def ones(word: Any) -> int:
    """Return how many bits of a uint64 are 1."""
    return int(word).bit_count()


# The processor's instructions for both: a third of the time of anything that can be written in Python.
@intrinsic
def _count_trailing_zeros(context: Any, word: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), code


@intrinsic
def _count_ones(context: Any, word: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), code


@overload(trailing_zeros)
def _compiled_trailing_zeros(word):
    def trailing_zeros(word):
        return _count_trailing_zeros(word)

    return trailing_zeros


@overload(ones)
def _compiled_ones(word):
    def ones(word):
        return _count_ones(word)

    return ones


@kernel
def _read_words(packed, keep, words):
    """Set ``words`` uint64[W] to the bits of a plane that count, the last point of a word lowest; return how many."""
    last = packed.shape[0]
    count = np.uint64(0)
    for word in range(keep.shape[0]):
        first = 8 * word
        bits = np.uint64(0)
        if first + 8 <= last:
            for byte in range(first, first + 8):
                bits = (bits << _BYTE) | np.uint64(packed[byte])
        else:
            for byte in range(first, first + 8):
                bits <<= _BYTE
                if byte < last:
                    bits |= np.uint64(packed[byte])
        words[word] = bits & keep[word]
        count += ones(words[word])
    return np.int64(count)


@kernel
def _unpack(planes, numbers, tables, places, keep, plane_step, point_step, whole, words, out):
    """Set out[i], any number type [P * area], to row ``numbers[i]`` turned by table ``tables[i]``."""
    area = out.shape[1] // planes.shape[1]
    for i in range(numbers.shape[0]):
        table, number = tables[i], numbers[i]
        out[i, :] = 0
        for plane in range(planes.shape[1]):
            base = plane * plane_step
            value = 1
            count = _read_words(planes[number, plane], keep[table], words)
            # Of a plane that is nearly full the holes are fewer. (A board smaller than the frame has no such planes.)
            if 2 * count > area and whole[table] and point_step == 1:
                value = 0
                for word in range(words.shape[0]):
                    words[word] ^= keep[table, word]
                out[i, base : base + area] = 1
            for word in range(words.shape[0]):
                bits = words[word]
                while bits != 0:  # ``bits & (bits - 1)`` takes one instruction
                    out[i, base + places[table, 64 * word + np.int64(trailing_zeros(bits))] * point_step] = value
                    bits &= bits - _ONE


@lru_cache(maxsize=1024)
def _tables(
    rows: int, cols: int, frame: tuple[int, int]
) -> tuple[NDArray[np.int32], NDArray[np.uint64], NDArray[np.bool_]]:
    """Return (places int32[8, bits], keep uint64[8, words], whole bool[8]): where each symmetry of a board puts the
    points of the frame, 64 to a word, the last of them first; which bits are points at all; whether these are the whole
    frame. Symmetry 0 keeps it whole."""
    area = frame[0] * frame[1]
    words = -(-area // 64)
    places = np.zeros((symmetry.SYMMETRIES, 64 * words), dtype=np.int32)
    kept = np.zeros((symmetry.SYMMETRIES, 64 * words), dtype=np.uint8)
    places[0, :area], kept[0, :area] = np.arange(area), 1
    points = (np.arange(rows)[:, None] * frame[1] + np.arange(cols)).reshape(-1)
    for turn in range(1, symmetry.count(rows, cols)):
        places[turn, points] = symmetry.destinations(rows, cols, frame[1], turn).reshape(-1)
        kept[turn, points] = 1
    keep = np.packbits(kept, axis=-1).view(">u8").astype(np.uint64)
    return places.reshape(-1, words, 64)[:, :, ::-1].reshape(places.shape), keep, kept.sum(axis=1) == area


def unpack_planes(
    planes: NDArray[np.uint8],
    numbers: NDArray[np.int64],
    sizes: NDArray[np.uint8],
    turns: NDArray[np.uint8],
    frame: tuple[int, int],
    axes: Axes,
    out: NDArray[Any],
) -> None:
    """Fill ``out`` [n, P, H, W] (NHWC: [n, H, W, P]), C-contiguous, with rows of packed planes uint8[N, P, B].

    ``numbers`` int64[n]: the rows, from 0 to N - 1; ``sizes`` uint8[n, 2]: rows and columns of their boards; ``turns``
    uint8[n]: their symmetries. Bits beyond the frame, and of turned rows those off the board, count for nothing.
    Raises ValueError for a symmetry that a board does not have, or an ``out`` that is not contiguous.
    """
    if not len(numbers):
        return
    if not out.flags.c_contiguous:
        raise ValueError("planes are unpacked into contiguous arrays only")
    symmetry.require_turns(sizes[:, 0], sizes[:, 1], turns)
    found, which = np.unique(sizes.astype(np.int64) @ [256, 1], return_inverse=True)
    tables_of = [_tables(code >> 8, code & 255, frame) for code in found.tolist()]
    places, keep, whole = (np.concatenate(parts) for parts in zip(*tables_of, strict=True))
    area, count = frame[0] * frame[1], planes.shape[1]
    plane_step, point_step = (area, 1) if axes == "NCHW" else (1, count)
    tables = 8 * which.reshape(-1).astype(np.int64) + turns
    flat = out.reshape(len(numbers), count * area)
    words = np.zeros(keep.shape[1], dtype=np.uint64)
    _unpack(planes, numbers, tables, places, keep, plane_step, point_step, whole, words, flat)
