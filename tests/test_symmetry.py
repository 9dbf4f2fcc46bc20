"""The eight symmetries against numpy's own turns and flips, and against the peers' definitions of theirs."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pipeline import symmetry

Turn = Callable[[NDArray[Any]], NDArray[Any]]

# Flip rows, flip columns, transpose by the bits of the number, in numpy's words.
TURNS: tuple[Turn, ...] = (
    lambda a: a,
    np.flipud,
    np.fliplr,
    lambda a: np.rot90(a, 2),
    lambda a: a.T,
    lambda a: np.rot90(a, -1),
    np.rot90,
    lambda a: np.rot90(a, 2).T,
)
SIZES = [(19, 19), (9, 9), (2, 2), (1, 1), (5, 9), (9, 5), (1, 7), (25, 24)]


def turn_by_points(array: NDArray[Any], turn: int) -> NDArray[Any]:
    """Turn an array by sending each element where ``image_point`` sends its point."""
    rows, cols = array.shape
    turned = np.full((cols, rows) if turn & 4 else (rows, cols), -1, dtype=array.dtype)
    for row in range(rows):
        for col in range(cols):
            turned[symmetry.image_point(row, col, rows, cols, turn)] = array[row, col]
    return turned


def numbered(rows: int, cols: int) -> NDArray[np.int64]:
    """Return a board that holds each point's own number."""
    return np.arange(rows * cols).reshape(rows, cols)


@pytest.mark.parametrize("turn", range(8))
@pytest.mark.parametrize(("rows", "cols"), SIZES)
def test_image_points(rows: int, cols: int, turn: int) -> None:
    board = numbered(rows, cols)
    assert np.array_equal(turn_by_points(board, turn), TURNS[turn](board))


@pytest.mark.parametrize(("rows", "cols"), SIZES)
def test_destinations(rows: int, cols: int) -> None:
    board = numbered(rows, cols)
    turns = range(8 if rows == cols else 4)
    assert symmetry.count(rows, cols) == len(turns)
    for turn in turns:
        for frame_cols in (cols, 25):
            frame = np.full(25 * frame_cols, -1)
            frame[symmetry.destinations(rows, cols, frame_cols, turn).ravel()] = board.ravel()
            assert np.array_equal(frame.reshape(25, frame_cols)[:rows, :cols], TURNS[turn](board))
            assert np.count_nonzero(frame >= 0) == rows * cols


@pytest.mark.parametrize(("rows", "cols", "turn"), [(5, 9, 4), (5, 9, 7), (9, 9, 8), (9, 9, -1)])
def test_symmetries_that_a_board_lacks(rows: int, cols: int, turn: int) -> None:
    with pytest.raises(ValueError, match=f"{rows}x{cols}"):
        symmetry.destinations(rows, cols, cols, turn)


def test_destinations_cannot_be_spoilt() -> None:
    with pytest.raises(ValueError, match="read-only"):
        symmetry.destinations(9, 9, 9, 3)[0, 0] = 1


@pytest.mark.parametrize("first", range(8))
def test_compositions_and_inverses(first: int) -> None:
    board = numbered(4, 4)
    for second in range(8):
        both = TURNS[second](TURNS[first](board))
        assert np.array_equal(TURNS[symmetry.compose(first, second)](board), both)
    assert symmetry.compose(first, symmetry.INVERSE[first]) == 0
    assert np.array_equal(TURNS[symmetry.INVERSE[first]](TURNS[first](board)), board)


def test_table_of_compositions() -> None:
    table = symmetry.composed()
    assert table.shape == (8, 8)
    assert table.tolist() == [[symmetry.compose(first, second) for second in range(8)] for first in range(8)]
    with pytest.raises(ValueError, match="read-only"):
        table[0, 0] = 1


def first_of_each_image(board: NDArray[Any], turns: range) -> tuple[int, ...]:
    """Return the symmetries that make an image of a board that none before them makes."""
    images = [TURNS[turn](board) for turn in turns]
    return tuple(turn for turn in turns if not any(np.array_equal(images[turn], images[one]) for one in range(turn)))


def fixing(board: NDArray[Any], turns: range) -> int:
    """Return, as bits, the symmetries that leave a board as it is."""
    return sum(1 << turn for turn in turns if np.array_equal(TURNS[turn](board), board))


def test_distinct_images_of_every_board_of_3x3() -> None:
    """All 512 boards of one colour: one image each, and 8 of them for as many symmetries as leave it alone."""
    kinds = set()
    for bits in range(512):
        board = np.array([bits >> point & 1 for point in range(9)]).reshape(3, 3)
        fixed = fixing(board, range(8))
        chosen = symmetry.distinct_images(fixed, 3, 3)
        assert chosen == first_of_each_image(board, range(8))
        assert len(chosen) * fixed.bit_count() == 8
        kinds.add(fixed)
    # Nothing, one of five symmetries of order 2, two pairs of mirrors, everything: no quarter turn alone on 3x3.
    assert len(kinds) == 1 + 5 + 2 + 1


def test_distinct_images_under_every_subgroup() -> None:
    """All ten groups of symmetries of a square, found by closing sets of symmetries; each is that of some board."""

    def closed(members: frozenset[int]) -> frozenset[int]:
        more = members | {symmetry.compose(one, other) for one in members for other in members}
        return members if more == members else closed(more)

    groups = {closed(frozenset({0, one, other})) for one in range(8) for other in range(8)}
    assert sorted(map(len, groups)) == [1, 2, 2, 2, 2, 2, 4, 4, 4, 8]
    # Each point of a generic board stands for the set of points that the group sends it to.
    points = numbered(6, 6)
    for group in groups:
        board = np.minimum.reduce([TURNS[turn](points) for turn in sorted(group)])
        fixed = sum(1 << turn for turn in group)
        assert fixing(board, range(8)) == fixed
        assert symmetry.distinct_images(fixed, 6, 6) == first_of_each_image(board, range(8))


def test_distinct_images_of_a_rectangle() -> None:
    points = numbered(4, 7)
    for group in ((0,), (0, 1), (0, 2), (0, 3), (0, 1, 2, 3)):
        board = np.minimum.reduce([TURNS[turn](points) for turn in group])
        fixed = sum(1 << turn for turn in group)
        assert fixing(board, range(4)) == fixed
        assert symmetry.distinct_images(fixed, 4, 7) == first_of_each_image(board, range(4))
    assert symmetry.distinct_images(1, 4, 7) == (0, 1, 2, 3)
    assert symmetry.distinct_images(15, 4, 7) == (0,)


def test_names() -> None:
    """The names say what the tables do; numpy turns counter-clockwise."""
    by_name: dict[str, Turn] = {
        "identity": lambda a: a,
        "flip rows": lambda a: a[::-1],
        "flip columns": lambda a: a[:, ::-1],
        "rotate 180": lambda a: a[::-1, ::-1],
        "transpose": lambda a: np.swapaxes(a, 0, 1),
        "rotate 90 clockwise": lambda a: np.rot90(a, k=1, axes=(1, 0)),
        "rotate 90 counter-clockwise": lambda a: np.rot90(a, k=1, axes=(0, 1)),
        "anti-transpose": lambda a: np.swapaxes(a[::-1, ::-1], 0, 1),
    }
    board = numbered(3, 3)
    for turn, name in enumerate(symmetry.NAMES):
        assert np.array_equal(turn_by_points(board, turn), by_name[name](board))


def test_numbers_of_the_katago_trainer() -> None:
    """Its numbers: s & 3 quarter turns counter-clockwise, and a transposition after them where s & 4."""
    board = numbered(4, 4)
    for theirs, ours in enumerate(symmetry.FROM_KATAGO_TRAINER):
        turned = np.rot90(board, theirs & 3)
        assert np.array_equal(turn_by_points(board, ours), turned.T if theirs & 4 else turned)


def test_numbers_of_leela_zero() -> None:
    """Its numbers tell where each point of the new array takes its value from, on the array as stored.

    The point's row and column are exchanged where s & 4, then the column is mirrored where s & 1 and the
    row where s & 2.
    """
    side = 4
    board = numbered(side, side)
    for theirs, ours in enumerate(symmetry.FROM_LEELA_ZERO):
        gathered = np.empty_like(board)
        for row in range(side):
            for col in range(side):
                from_row, from_col = (col, row) if theirs & 4 else (row, col)
                if theirs & 1:
                    from_col = side - 1 - from_col
                if theirs & 2:
                    from_row = side - 1 - from_row
                gathered[row, col] = board[from_row, from_col]
        assert np.array_equal(turn_by_points(board, ours), gathered)
