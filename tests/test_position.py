"""One position to bytes and to a board."""

from typing import Any

import numpy as np
import pytest

import pipeline
from pipeline.board import BLACK, WHITE
from pipeline.position import encode_position, label_name, position_at, single_game, turned

# Black D4 C3 B2, White C4 D3: White retakes at C4 after Black took C4 ... a ko in the corner of 5x5.
KO_MOVES = [("B", "B2"), ("W", "C2"), ("B", "A3"), ("W", "D3"), ("B", "B4"), ("W", "C4"), ("B", "C3"), ("W", "B3")]


def dense(planes: Any, rows: int, cols: int) -> Any:
    return np.unpackbits(planes, axis=-1, count=rows * cols).reshape(len(planes), rows, cols)


def test_the_planes_show_own_and_opp_stones() -> None:
    planes = dense(encode_position(None, [("black", "D4"), ("white", (3, 15))], scheme="agz17"), 19, 19)
    assert planes.shape == (17, 19, 19)
    assert np.argwhere(planes[0]).tolist() == [[15, 3]]  # own: Black is to move
    assert np.argwhere(planes[1]).tolist() == [[3, 15]]
    assert np.argwhere(planes[2]).tolist() == [[15, 3]]  # one turn ago
    assert not planes[3].any()
    assert planes[16].all()  # black to move


def test_the_side_to_move_is_the_other_one_unless_told() -> None:
    moves = [("B", "D4")]
    assert not dense(encode_position(None, moves), 19, 19)[16].any()
    assert dense(encode_position(None, moves, to_play="black"), 19, 19)[16].all()
    assert dense(encode_position({"white": ["Q16"]}, []), 19, 19)[16].all()


def test_setup_stones_are_on_the_board_and_in_no_history() -> None:
    planes = dense(encode_position({"black": ["A1", (0, 0)], "white": ["E5"]}, [], rows=9, cols=9), 9, 9)
    assert np.argwhere(planes[0]).tolist() == [[0, 0], [8, 0]]
    assert np.argwhere(planes[1]).tolist() == [[4, 4]]
    assert not planes[2:16].any()


def test_a_small_board_lies_in_the_corner_of_the_frame() -> None:
    planes = dense(encode_position(None, [("B", "A1")], scheme="board", rows=5, cols=7, frame=(9, 9)), 9, 9)
    assert np.argwhere(planes[0]).tolist() == [[4, 0]]
    assert planes[2].sum() == 34


def test_a_pass_is_a_turn() -> None:
    planes = dense(encode_position(None, [("B", "D4"), ("W", "pass")]), 19, 19)
    assert planes[0].sum() == 1
    assert planes[2].sum() == 1
    assert planes[16].all()


@pytest.mark.parametrize(
    ("setup", "moves", "options", "message"),
    [
        (None, [("B", "I4")], {}, "'I4'"),
        (None, [("B", (19, 0))], {}, r"\(19, 0\)"),
        (None, [("green", "D4")], {}, "'green'"),
        ({"red": ["D4"]}, [], {}, "'red'"),
        ({"black": ["pass"]}, [], {}, "pass"),
        ({"black": ["D4"], "white": ["D4"]}, [], {}, "D4 is set up twice"),
        (None, [("B", "D4"), ("W", "D4")], {}, r"move 2 \(W D4\): illegal move: on a stone"),
        ({"black": ["A2", "B1"], "white": ["A1"]}, [], {}, "without liberties"),
        (None, [], {"to_play": "x"}, "'x'"),
        (None, [], {"scheme": "agz71"}, "did you mean 'agz17'"),
        (None, [], {"rows": 26}, "26x26"),
        (None, [], {"frame": (9, 9)}, "9x9"),
        ([("black", "Q16")], [], {}, r"not a setup: \[\('black', 'Q16'\)\]"),
        ({"black": "D4"}, [], {}, "not a list of points: 'D4'"),
        ({"black": 3}, [], {}, "not a list of points: 3"),
        (None, ["Q16"], {}, "not a move: 'Q16'"),
        (None, ["B4"], {}, "not a move: 'B4'"),
        (None, [("B", "D4", 1)], {}, r"not a move: \('B', 'D4', 1\)"),
        (None, [("B", 7)], {}, r"7 is not a \(row, col\)"),
        (None, [("B", (1.5, 2))], {}, r"\(1.5, 2\) is not a \(row, col\)"),
        (None, [("B", None)], {}, r"None is not a \(row, col\)"),
        (None, [], {"rules": "house"}, "house"),
    ],
)
def test_bad_input_is_quoted(setup: Any, moves: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        encode_position(setup, moves, **options)


def test_columns_are_as_many_as_rows_unless_told() -> None:
    assert encode_position(rows=9).shape == (17, 11)
    assert encode_position(rows=9, cols=13).shape == (17, 15)


def test_points_may_be_arrays() -> None:
    moves = [("B", np.array([3, 15])), ("W", [15, 3])]
    assert np.array_equal(encode_position(None, moves), encode_position(None, [("B", (3, 15)), ("W", (15, 3))]))


def test_a_ko_is_illegal_at_once_and_seen() -> None:
    encode_position(None, KO_MOVES, rows=5, cols=5)
    with pytest.raises(ValueError, match=r"move 9 \(B C3\): illegal move: retakes a ko"):
        encode_position(None, [*KO_MOVES, ("B", "C3")], rows=5, cols=5)
    planes = dense(encode_position(None, KO_MOVES, scheme="seven_plane", rows=5, cols=5), 5, 5)
    assert np.argwhere(planes[6]).tolist() == [[2, 2]]


def test_a_board_of_a_game() -> None:
    game = single_game((3, 4), ([0, 12, 5], [BLACK, WHITE, BLACK]), ([], [], []), "chinese")
    first, second, last = position_at(game, 0), position_at(game, 2), position_at(game, 3)
    assert not first.stones.any()
    assert (first.to_play, first.last, first.passed) == (BLACK, None, False)
    assert (second.to_play, second.last, second.passed) == (BLACK, None, True)
    assert np.argwhere(last.stones == BLACK).tolist() == [[0, 0], [1, 1]]
    assert (last.to_play, last.last) == (WHITE, (1, 1))
    with pytest.raises(ValueError, match="3 moves"):
        position_at(game, 4)


def test_a_turned_board() -> None:
    game = single_game((3, 3), ([1], [BLACK]), ([], [], []), "chinese")
    image = turned(position_at(game, 1), 5)  # rows flipped, then transposed
    assert np.argwhere(image.stones).tolist() == [[1, 2]]
    assert image.last == (1, 2)


def test_labels_have_names() -> None:
    assert label_name(0, 9, 9, (19, 19)) == "A9"
    assert label_name(19, 9, 9, (19, 19)) == "A8"
    assert label_name(361, 9, 9, (19, 19)) == "pass"
    with pytest.raises(ValueError, match="off the board"):
        label_name(9, 9, 9, (19, 19))


def test_the_functions_of_the_package_are_functions_whatever_was_imported_before() -> None:
    for name in pipeline.__all__:
        if name != "__version__":
            assert callable(getattr(pipeline, name))
    assert pipeline.encode_position is encode_position
    with pytest.raises(AttributeError, match="nothing"):
        pipeline.nothing  # noqa: B018
