"""The symmetries applied: packed planes, moves, dense images and policies, the averaged prediction."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pipeline import symmetry
from pipeline.augment import augment, predict_with_symmetry, turn_dense, turn_moves, turn_planes, turn_policy

BOARDS = [
    ((1, 1), (1, 1)),
    ((1, 4), (2, 5)),
    ((2, 2), (3, 7)),
    ((5, 9), (5, 9)),
    ((9, 5), (9, 9)),
    ((7, 7), (8, 8)),
    ((9, 9), (9, 19)),
    ((13, 13), (19, 13)),
    ((19, 19), (19, 19)),
    ((19, 19), (25, 25)),
    ((25, 25), (25, 25)),
    ((24, 25), (25, 25)),
]
# SCHEMES.md, section 6: what symmetry s makes of an array [..., row, col], in numpy's words.
IMAGES = (
    lambda a: a,
    lambda a: np.flip(a, -2),
    lambda a: np.flip(a, -1),
    lambda a: np.rot90(a, 2, (-2, -1)),
    lambda a: np.swapaxes(a, -1, -2),
    lambda a: np.rot90(a, -1, (-2, -1)),
    lambda a: np.rot90(a, 1, (-2, -1)),
    lambda a: np.swapaxes(np.flip(a, (-2, -1)), -1, -2),
)


def in_frame(boards: NDArray[Any], frame: tuple[int, int]) -> NDArray[np.uint8]:
    """Put boards [..., rows, cols] into the top-left corner of the frame."""
    framed = np.zeros((*boards.shape[:-2], *frame), dtype=np.uint8)
    framed[..., : boards.shape[-2], : boards.shape[-1]] = boards
    return framed


def packed(boards: NDArray[Any], frame: tuple[int, int]) -> NDArray[np.uint8]:
    framed = in_frame(boards, frame)
    return np.packbits(framed.reshape(*framed.shape[:-2], -1), axis=-1)


@pytest.mark.parametrize(("size", "frame"), BOARDS)
def test_turned_planes_are_numpys(size: tuple[int, int], frame: tuple[int, int]) -> None:
    """All symmetries, in rows of one call; nothing appears off the board, no padding bit is set."""
    rng = np.random.default_rng(size[0] * 100 + size[1])
    turns = symmetry.count(*size)
    boards = (rng.random((3 * turns, 4, *size)) < 0.5).astype(np.uint8)
    boards[0] = 1
    order = rng.permutation(np.repeat(np.arange(turns), 3)).astype(np.uint8)
    rows, cols = (np.full(len(order), side, dtype=np.uint8) for side in size)
    turned = turn_planes(packed(boards, frame), rows, cols, frame[1], order)
    expected = np.stack([packed(IMAGES[turn](board), frame) for turn, board in zip(order, boards, strict=True)])
    assert np.array_equal(turned, expected)


def test_boards_of_several_sizes_in_one_call() -> None:
    rng = np.random.default_rng(7)
    sizes = [(9, 9), (3, 5), (5, 3), (2, 2), (9, 4), (1, 9)] * 4
    turns = np.array([rng.integers(symmetry.count(*size)) for size in sizes], dtype=np.uint8)
    boards = [(rng.random((2, *size)) < 0.5).astype(np.uint8) for size in sizes]
    planes = np.stack([packed(board, (9, 9)) for board in boards])
    rows, cols = (np.array([size[axis] for size in sizes], dtype=np.uint8) for axis in (0, 1))
    before = planes.copy()
    turned = turn_planes(planes, rows, cols, 9, turns)
    for image, board, turn in zip(turned, boards, turns, strict=True):
        assert np.array_equal(image, packed(IMAGES[turn](board), (9, 9)))
    assert np.array_equal(planes, before)
    inverse = np.array(symmetry.INVERSE, dtype=np.uint8)[turns]
    assert np.array_equal(turn_planes(turned, rows, cols, 9, inverse), before)


def test_rectangles_are_not_transposed() -> None:
    planes, ones = np.zeros((2, 1, 2), dtype=np.uint8), np.ones(2, dtype=np.uint8)
    with pytest.raises(ValueError, match="3x4 is not square: it has no symmetries 4 to 7"):
        turn_planes(planes, 3 * ones, np.array([3, 4], dtype=np.uint8), 4, 4 * ones)


def test_nothing_to_turn() -> None:
    none = np.zeros(0, dtype=np.uint8)
    assert turn_planes(np.zeros((0, 3, 46), dtype=np.uint8), none, none, 19, none).shape == (0, 3, 46)
    assert turn_moves(none.astype(np.int16), none, none, 19, none).shape == (0,)


@pytest.mark.parametrize(("size", "frame"), BOARDS)
def test_moves_turn_with_the_planes(size: tuple[int, int], frame: tuple[int, int]) -> None:
    """A plane that marks one point, turned, marks the turned move; a pass stays a pass."""
    points = np.flatnonzero(in_frame(np.ones(size), frame).ravel())
    marks = np.eye(frame[0] * frame[1], dtype=np.uint8)[points]
    planes = np.packbits(marks, axis=-1)[:, np.newaxis]
    rows, cols = (np.full(len(points), side, dtype=np.uint8) for side in size)
    for turn in range(symmetry.count(*size)):
        turns = np.full(len(points), turn, dtype=np.uint8)
        moves = turn_moves(points.astype(np.int16), rows, cols, frame[1], turns)
        bits = np.unpackbits(turn_planes(planes, rows, cols, frame[1], turns), axis=-1)
        assert np.array_equal(moves, bits[:, 0].argmax(axis=-1))
        passes = np.full(len(points), frame[0] * frame[1], dtype=np.int16)
        assert np.array_equal(turn_moves(passes, rows, cols, frame[1], turns), passes)


@pytest.mark.parametrize("size", [(3, 3), (9, 9), (3, 5), (1, 4), (1, 1)])
def test_images_of_a_dense_position(size: tuple[int, int]) -> None:
    """Image s is the input turned by symmetry s: planes and policy by the same map; the value stays."""
    rng = np.random.default_rng(3)
    area = size[0] * size[1]
    planes, policy = rng.random((4, *size)), rng.random(area + 1)
    images = augment(planes, policy, -0.25)
    assert len(images) == (8 if size[0] == size[1] else 4)
    for turn, (image, turned_policy, value) in enumerate(images):
        assert np.array_equal(image, IMAGES[turn](planes))
        assert np.array_equal(turned_policy[:-1].reshape(size), IMAGES[turn](policy[:-1].reshape(size)))
        assert turned_policy[-1] == policy[-1]
        assert value == -0.25
        assert np.array_equal(turn_dense(planes, turn), image)
        assert np.array_equal(turn_policy(turned_policy, symmetry.INVERSE[turn], *size), policy)
    if area > 4:
        assert len({image.tobytes() for image, _, _ in images}) == len(images)


def test_images_keep_the_type() -> None:
    images = augment(np.zeros((2, 3, 3), dtype=np.uint8), np.zeros(10, dtype=np.float32), 0.0)
    assert {(image.dtype.name, policy.dtype.name) for image, policy, _ in images} == {("uint8", "float32")}


def test_images_of_the_dense_and_of_the_packed_form_are_one() -> None:
    rng = np.random.default_rng(5)
    planes = (rng.random((3, 9, 9)) < 0.4).astype(np.uint8)
    sides = np.full(8, 9, dtype=np.uint8)
    turns = np.arange(8, dtype=np.uint8)
    turned = turn_planes(np.repeat(packed(planes, (9, 9))[np.newaxis], 8, axis=0), sides, sides, 9, turns)
    for turn, (image, _, _) in enumerate(augment(planes, np.zeros(82), 0.0)):
        assert np.array_equal(turned[turn], packed(image, (9, 9)))


@pytest.mark.parametrize("entries", [81, 83, 362])
def test_a_policy_of_another_board(entries: int) -> None:
    with pytest.raises(ValueError, match="the policy of a 9x9 board has 82 entries"):
        augment(np.zeros((1, 9, 9)), np.zeros(entries), 0.0)


def equivariant(planes: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """A model that turns with the board: the policy is a function of each point and the sum of all."""
    points = planes[:, 0] * 2 + planes[:, 1] + planes.sum(axis=(1, 2, 3))[:, np.newaxis, np.newaxis]
    policy = np.concatenate([points.reshape(len(planes), -1), planes.sum(axis=(1, 2, 3))[:, np.newaxis]], axis=1)
    return policy, planes[:, 1].mean(axis=(1, 2))


@pytest.mark.parametrize("size", [(5, 5), (3, 4)])
def test_prediction_of_an_equivariant_model_is_its_own(size: tuple[int, int]) -> None:
    planes = np.random.default_rng(1).random((6, 2, *size))
    policy, value = predict_with_symmetry(equivariant, planes)
    expected = equivariant(planes)
    assert np.allclose(policy, expected[0])
    assert np.allclose(value, expected[1])
    one_policy, one_value = predict_with_symmetry(equivariant, planes[2])
    assert one_policy.shape == (size[0] * size[1] + 1,)
    assert np.shape(one_value) == ()
    assert np.allclose(one_policy, expected[0][2])
    assert np.allclose(one_value, expected[1][2])


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((17, 46), r"not \[17, 46\] \(np.unpackbits unpacks packed ones\)"),
        ((46,), r"not \[46\]"),
        ((2, 17, 46), r"policy is \[1, 26\], not \[1, 783\] for 1 boards of 17x46"),
        ((3, 2, 6, 6), r"policy is \[3, 26\], not \[3, 37\] for 3 boards of 6x6"),
    ],
)
def test_planes_and_policies_that_do_not_fit_are_told(shape: tuple[int, ...], message: str) -> None:
    def model(planes: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        return np.zeros((len(planes), 26)), np.zeros(len(planes))

    with pytest.raises(ValueError, match=message):
        predict_with_symmetry(model, np.zeros(shape, dtype=np.uint8))


@pytest.mark.parametrize("size", [(5, 5), (3, 4)])
def test_prediction_of_any_model_becomes_equivariant(size: tuple[int, int]) -> None:
    """A model with a weight for each input: the average over all images turns with the board."""
    rng = np.random.default_rng(2)
    area = size[0] * size[1]
    to_policy, to_value = rng.standard_normal((2 * area, area + 1)), rng.standard_normal(2 * area)
    calls = []

    def model(planes: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        calls.append(planes.shape)
        flat = planes.reshape(len(planes), -1)
        return flat @ to_policy, np.tanh(flat @ to_value)

    planes = rng.random((4, 2, *size))
    policy, value = predict_with_symmetry(model, planes)
    turns = symmetry.count(*size)
    assert calls == [planes.shape] * turns
    for turn in range(turns):
        image_policy, image_value = predict_with_symmetry(model, IMAGES[turn](planes))
        points = policy[:, :-1].reshape(-1, *size)
        assert np.allclose(image_policy[:, :-1], IMAGES[turn](points).reshape(-1, area))
        assert np.allclose(image_policy[:, -1], policy[:, -1])
        assert np.allclose(image_value, value)
    assert not np.allclose(policy, model(planes)[0])
    by_hand = [model(IMAGES[turn](planes)) for turn in range(turns)]
    assert np.allclose(value, np.mean([image_value for _, image_value in by_hand], axis=0))
    assert np.allclose(policy[:, -1], np.mean([image_policy[:, -1] for image_policy, _ in by_hand], axis=0))
