"""Planes that are picked, turned and unpacked in one pass, against numpy's own words for each step."""

import os
from typing import Any

import numpy as np
import pytest
from test_augment import BOARDS, IMAGES, in_frame, packed

from pipeline import symmetry
from pipeline.unpack import ones, trailing_zeros, unpack_planes

WITHOUT_JIT = os.environ.get("NUMBA_DISABLE_JIT") == "1"


@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64"])
@pytest.mark.parametrize("order", ["NCHW", "NHWC"])
@pytest.mark.parametrize(("size", "frame"), BOARDS)
def test_all_symmetries_of_all_boards(size: tuple[int, int], frame: tuple[int, int], order: Any, dtype: str) -> None:
    """Rows in any order and more than once; what was in the buffer before is gone."""
    rng = np.random.default_rng(size[0] * 100 + size[1])
    count = symmetry.count(*size)
    boards = (rng.random((5, 3, *size)) < 0.5).astype(np.uint8)
    boards[0], boards[1] = 1, 0
    boards[2] |= (rng.random((3, *size)) < 0.8).astype(np.uint8)  # few holes
    numbers = rng.integers(0, 5, 4 * count)
    turns = np.tile(np.arange(count, dtype=np.uint8), 4)
    shape = (3, *frame) if order == "NCHW" else (*frame, 3)
    out = np.full((len(numbers), *shape), 7, dtype=dtype)
    sizes = np.tile(np.array(size, dtype=np.uint8), (len(numbers), 1))
    unpack_planes(packed(boards, frame), numbers, sizes, turns, frame, order, out)
    for i, (number, turn) in enumerate(zip(numbers, turns, strict=True)):
        expected = in_frame(IMAGES[turn](boards[number]), frame)
        found = out[i] if order == "NCHW" else np.moveaxis(out[i], -1, 0)
        np.testing.assert_array_equal(found, expected)


def test_boards_of_several_sizes_in_one_call() -> None:
    frame = (9, 9)
    rng = np.random.default_rng(3)
    sizes = [(9, 9), (5, 9), (9, 5), (7, 7), (1, 1), (9, 9)]
    boards = [(rng.random((2, *size)) < 0.5).astype(np.uint8) for size in sizes]
    planes = np.concatenate([packed(board[None], frame) for board in boards])
    turns = np.array([5, 3, 2, 6, 7, 0], dtype=np.uint8)
    out = np.empty((6, 2, *frame), dtype=np.float32)
    unpack_planes(planes, np.arange(6), np.array(sizes, dtype=np.uint8), turns, frame, "NCHW", out)
    for i in range(6):
        np.testing.assert_array_equal(out[i], in_frame(IMAGES[turns[i]](boards[i]), frame))


def test_bits_that_are_no_points_write_nowhere() -> None:
    """Padding bits, and of a turned row those off its board: a hostile file may have them set."""
    planes = np.full((1, 1, 46), 255, dtype=np.uint8)
    out = np.empty((1, 1, 19, 19), dtype=np.uint8)
    for turn, size, bits in ((0, (19, 19), 361), (5, (19, 19), 361), (5, (9, 9), 81), (0, (9, 9), 361)):
        sizes, turns = np.array([size], dtype=np.uint8), np.array([turn], dtype=np.uint8)
        unpack_planes(planes, np.zeros(1, dtype=np.int64), sizes, turns, (19, 19), "NCHW", out)
        assert out.sum() == bits


def test_a_rectangle_is_not_transposed() -> None:
    out = np.empty((1, 1, 5, 9), dtype=np.uint8)
    arguments = np.zeros(1, dtype=np.int64), np.array([[5, 9]], dtype=np.uint8), np.array([4], dtype=np.uint8)
    with pytest.raises(ValueError, match="5x9 is not square: it has no symmetries 4 to 7"):
        unpack_planes(np.zeros((1, 1, 6), dtype=np.uint8), *arguments, (5, 9), "NCHW", out)


def test_bits_are_counted() -> None:
    assert [ones(np.uint64(word)) for word in (0, 1, 2**63, 2**64 - 1, 0b1011)] == [0, 1, 1, 64, 3]


def test_trailing_zeros_of_every_length() -> None:
    for bit in range(64):
        assert trailing_zeros(np.uint64(1 << bit)) == trailing_zeros(np.uint64((2**64 - 1) >> bit << bit)) == bit


@pytest.mark.skipif(WITHOUT_JIT, reason="there is nothing compiled")
def test_the_compiled_trailing_zeros_are_the_same() -> None:
    """Each bit alone and with all lower ones, through the kernel."""
    words = [1 << bit for bit in range(64)] + [(2 << bit) - 1 for bit in range(64)]
    planes = np.array(words, dtype=">u8").view(np.uint8).reshape(128, 1, 8)
    out = np.empty((128, 1, 8, 8), dtype=np.uint8)
    sizes, turns = np.full((128, 2), 8, dtype=np.uint8), np.zeros(128, dtype=np.uint8)
    unpack_planes(planes, np.arange(128), sizes, turns, (8, 8), "NCHW", out)
    np.testing.assert_array_equal(out.reshape(128, 64), np.unpackbits(planes.reshape(128, 8), axis=-1))


def test_buffers_that_are_not_contiguous_are_refused() -> None:
    """numpy would write into a copy of them."""
    out = np.empty((2, 1, 8, 8), dtype=np.uint8)[:, :, :, ::-1]
    arguments = np.zeros(2, dtype=np.int64), np.full((2, 2), 8, dtype=np.uint8), np.zeros(2, dtype=np.uint8)
    with pytest.raises(ValueError, match="contiguous"):
        unpack_planes(np.zeros((1, 1, 8), dtype=np.uint8), *arguments, (8, 8), "NCHW", out)
