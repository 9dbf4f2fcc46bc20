"""What always holds for planes, whatever the scheme that has them, on random games of several sizes."""

from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from random_games import positions
from scheme_variants import FRAME, LINES, VARIANTS, Variant, rows_of
from slow_board import BLACK, Point
from slow_planes import by_liberties, everywhere, kata_seen, outcomes, present

Points = NDArray[np.bool_]  # bool[T, *FRAME]
Planes = dict[str, Points]


@dataclass(frozen=True, slots=True)
class Boards:
    """The positions of ``LINES`` found on slow boards: points bool[T, *FRAME], and flags bool[T]."""

    board: Points
    own: Points
    opp: Points
    atari: Points  # chains with one liberty
    two: Points  # with two
    three: Points
    legal: Points
    ko: Points
    black_moves: NDArray[np.bool_]
    square: NDArray[np.bool_]
    territory: NDArray[np.bool_]
    taxed: NDArray[np.bool_]
    encore: NDArray[np.bool_]

    @property
    def stones(self) -> Points:
        """All stones."""
        return self.own | self.opp

    @property
    def empty(self) -> Points:
        """All empty points."""
        return self.board & ~self.stones


@cache
def boards() -> Boards:
    """Return what is known of the positions without a kernel."""
    seen = [position for line in LINES for position in positions(line)]
    sizes = [(position.line.rows, position.line.cols) for position in seen]
    every = list(zip(seen, sizes, strict=True))

    def marked(points: Callable[..., set[Point]]) -> Points:
        found = np.zeros((len(seen), *FRAME), dtype=np.bool_)
        for at, (position, size) in enumerate(every):
            for point in points(position, size):
                found[(at, *point)] = True
        return found

    def chains(liberties: int) -> Points:
        return marked(lambda p, size: set().union(*(by_liberties(p, size, c, liberties, liberties) for c in (1, 2))))

    return Boards(
        marked(lambda _, size: everywhere(size)),
        marked(lambda p, _: {point for point, colour in p.boards[-1] if colour == p.to_play}),
        marked(lambda p, _: {point for point, colour in p.boards[-1] if colour != p.to_play}),
        chains(1),
        chains(2),
        chains(3),
        marked(lambda p, size: set(outcomes(present(p, size), p.to_play))),
        marked(lambda p, _: set() if p.ko is None else {p.ko}),
        np.array([position.to_play == BLACK for position in seen]),
        np.array([rows == cols for rows, cols in sizes]),
        np.array([position.line.rules.scoring == "territory" for position in seen]),
        np.array([position.line.rules.tax != "none" for position in seen]),
        np.array([view is None for line in LINES for view in kata_seen(line)]),
    )


def named(planes: Planes, *patterns: str) -> list[Points]:
    """Return the planes whose names match one of the patterns, in their order."""
    return [plane for pattern in patterns for name, plane in planes.items() if fnmatch(name, pattern)]


def beside(points: Points) -> Points:
    """Return the points next to some points."""
    found = np.zeros_like(points)
    found[:, 1:] |= points[:, :-1]
    found[:, :-1] |= points[:, 1:]
    found[:, :, 1:] |= points[:, :, :-1]
    found[:, :, :-1] |= points[:, :, 1:]
    return found


def times(planes: list[Points]) -> NDArray[np.int64]:
    """Return in how many of the planes each point is."""
    return np.sum(planes, axis=0, dtype=np.int64) if planes else np.zeros(boards().board.shape, dtype=np.int64)


def full(plane: Points) -> NDArray[np.bool_]:
    """Return in which positions a plane is 1 all over the board; fails unless it is that or nothing."""
    filled = (plane == boards().board).all(axis=(1, 2))
    assert (filled | ~plane.any(axis=(1, 2))).all()
    return filled


def some(plane: Points) -> NDArray[np.bool_]:
    """Return in which positions a plane is not empty."""
    return plane.any(axis=(1, 2))


# ---- each of these returns whether there were planes to look at


def stones_are_of_one_side(planes: Planes) -> bool:
    own, opp, black_moves = boards().own, boards().opp, boards().black_moves[:, None, None]
    black, white = np.where(black_moves, own, opp), np.where(black_moves, opp, own)
    sides = {"own": own, "opp": opp, "black": black, "white": white}
    for side, stones in sides.items():
        assert all(np.array_equal(plane, stones) for plane in named(planes, f"{side}_0"))
    for back in range(1, 9):
        for pair in (("own", "opp"), ("black", "white")):
            assert (times(named(planes, *(f"{side}_{back}" for side in pair))) <= 1).all()
    return bool(named(planes, "own_0", "black_0"))


def empty_is_what_has_no_stone(planes: Planes) -> bool:
    found = named(planes, "empty")
    assert all(np.array_equal(plane, boards().empty) for plane in found)
    return bool(found)


def constants_fill_the_board(planes: Planes) -> bool:
    black = boards().black_moves
    wanted = {"ones": black | True, "zeros": black & False, "black_to_move": black, "white_to_move": ~black}
    found = [name for name in wanted if name in planes]
    assert all(np.array_equal(full(planes[name]), wanted[name]) for name in found)
    return bool(found)


def one_rule_of_a_kind(planes: Planes) -> bool:
    scoring = [full(plane) for plane in named(planes, "area_scoring", "territory_scoring")]
    ko_rules = [full(plane) for plane in named(planes, "simple_ko", "*_superko")]
    if scoring:
        assert np.array_equal(scoring[1], boards().territory)
        assert np.array_equal(scoring[0], ~scoring[1])
        assert (np.sum(ko_rules, axis=0) == 1).all()
        full(planes["suicide_legal"])
    return bool(scoring)


def a_high_komi_is_more_than_a_low_one(planes: Planes) -> bool:
    if "komi_7" not in planes:
        return False
    assert not (full(planes["komi_7"]) & ~full(planes["komi_6"])).any()
    return True


def handicap_fills_the_board(planes: Planes) -> bool:
    return "handicap" in planes and full(planes["handicap"]).any()


def one_age_a_stone(planes: Planes) -> bool:
    ages = named(planes, "age_*")
    assert (times(ages) <= boards().stones).all()
    assert all((plane.sum(axis=(1, 2)) <= 1).all() for plane in ages[:-1])
    return bool(ages)


def every_stone_has_liberties(planes: Planes) -> bool:
    exact = [boards().atari, boards().two, boards().three]
    of_all, own, opp = (named(planes, f"{side}liberties_[0-9]*") for side in ("", "own_", "opp_"))
    for found, stones in ((of_all, boards().stones), (own, boards().own), (opp, boards().opp)):
        whole = (found and "liberties_3" not in planes) or len(found) > 3  # KataGo has no plane of more
        if whole:
            assert np.array_equal(times(found), stones)
        assert (times(found) <= 1).all()
        one_by_one = found[:-1] if whole else found
        assert all(np.array_equal(plane, few & stones) for plane, few in zip(one_by_one, exact, strict=False))
    return bool(of_all or own)


def kos_are_single_and_empty(planes: Planes) -> bool:
    assert all(np.array_equal(plane, boards().ko) for plane in named(planes, "ko"))
    for plane in named(planes, "ko_banned"):  # in the encore there is no ko point, and no row
        assert not (boards().ko & ~plane)[~boards().encore].any()
        assert not (plane & ~boards().empty)[~boards().encore].any()
    return bool(named(planes, "ko", "ko_banned"))


def moves_are_legal(planes: Planes) -> bool:
    """Each one-hot number of a move is there once at most; moves of opp are on empty points."""
    numbers = ["capture_*", "self_atari_*", "liberties_after_*", "enemy_liberties_*", "own_target_*"]
    flags = ["own_makes_ko", "can_*", "creates_eye", "legal", "sensible", "ladder_capture", "ladder_escape"]
    assert all((times(named(planes, pattern)) <= boards().legal).all() for pattern in numbers)
    assert not any((plane & ~boards().legal).any() for plane in named(planes, *flags))
    assert (times(named(planes, "opp_target_*")) <= boards().empty).all()
    assert not any((plane & ~boards().empty).any() for plane in named(planes, "opp_makes_ko"))
    return bool(named(planes, *numbers, *flags))


def numbers_of_a_move_go_together(planes: Planes) -> bool:
    """A legal move has liberties and captures; one into atari has one liberty."""
    after, captures = named(planes, "liberties_after_*"), named(planes, "capture_*")
    self_atari, legal = named(planes, "self_atari_*"), named(planes, "legal")
    for one_hot in (captures, legal):
        if after and one_hot:
            assert np.array_equal(times(after), times(one_hot))
    if self_atari:
        assert np.array_equal(times(self_atari), after[0])
    for plane in named(planes, "can_*", "creates_eye", "own_target_*") if legal else []:
        assert not (plane & ~legal[0]).any()
    return bool(after and (captures or legal))


def laddered_chains_have_two_liberties_at_most(planes: Planes) -> bool:
    """And there is a move against each of two liberties, and none that saves one in atari."""
    short = boards().atari | boards().two
    for side, stones in (("own", boards().own), ("opp", boards().opp)):
        if f"{side}_laddered" in planes:
            caught, moves = planes[f"{side}_laddered"], planes[f"{side}_ladder_moves"]
            escapes, free = planes[f"{side}_ladder_escapes"], stones & boards().atari & ~planes[f"{side}_laddered"]
            assert not (caught & ~(stones & short)).any()
            assert not (moves & ~(boards().empty & ~boards().ko & beside(caught & boards().two))).any()
            assert np.array_equal(some(moves), some(caught & boards().two))
            assert not (escapes & ~boards().empty).any()
            assert np.array_equal(some(escapes), some(free))
            assert not (planes[f"{side}_laddered_before"] & ~boards().board).any()
    if "laddered" in planes:
        caught, moves = planes["laddered"], planes["ladder_moves"]
        assert not (caught & ~short).any()
        assert not (moves & ~(boards().empty & ~boards().ko & beside(caught & boards().opp & boards().two))).any()
        assert np.array_equal(some(moves), some(caught & boards().opp & boards().two))
    for plane in named(planes, "ladder_capture"):
        assert not (plane & ~beside(boards().opp & boards().two)).any()
    return bool(named(planes, "*ladder*"))


def areas_are_of_one_side(planes: Planes) -> bool:
    if "own_area" not in planes:
        return False
    assert not (planes["own_area"] & planes["opp_area"]).any()
    both, territory, taxed = planes["own_area"] | planes["opp_area"], boards().territory, boards().taxed
    assert not both[territory].any()
    whole = ~territory & ~taxed
    assert not (boards().stones[whole] & ~both[whole]).any()
    assert some(both)[taxed & ~territory].any()
    return True


def a_move_is_one_point(planes: Planes) -> bool:
    """The last move's stone is there still, and opp's, but for suicides and where a side moved twice."""
    found = named(planes, "move_*")
    assert all((plane.sum(axis=(1, 2)) <= 1).all() for plane in found)
    if found:
        assert (found[0] & boards().opp).sum() > 0.8 * found[0].sum()
    return bool(found)


def every_point_has_a_distance(planes: Planes) -> bool:
    found = named(planes, "edge_*")
    assert not found or np.array_equal(times(found), boards().board)
    return bool(found)


def the_centre_is_on_the_middle_lines(planes: Planes) -> bool:
    if "centre" not in planes:
        return False
    centre, square = planes["centre"], boards().square
    assert (centre.sum(axis=(1, 2)) <= 1).all()
    assert not (centre & ~planes["middle_lines"]).any()
    assert not (centre & ~planes["diagonals"])[square].any()
    assert some(planes["diagonals"]).tolist() == square.tolist()
    return True


def patterns_are_of_empty_points(planes: Planes) -> bool:
    bits = named(planes, "pattern_bit_*")
    numbers = times([plane.astype(np.int64) << bit for bit, plane in enumerate(bits)])
    assert not bits or (np.array_equal(numbers > 0, boards().empty) and np.max(numbers) <= 1117)
    return bool(bits)


def last_liberties_are_empty(planes: Planes) -> bool:
    found = named(planes, "would_capture")
    assert not any((plane & ~(boards().empty & beside(boards().opp & boards().atari))).any() for plane in found)
    return bool(found)


HOLDS: tuple[Callable[[Planes], bool], ...] = (
    stones_are_of_one_side,
    empty_is_what_has_no_stone,
    constants_fill_the_board,
    one_rule_of_a_kind,
    a_high_komi_is_more_than_a_low_one,
    handicap_fills_the_board,
    one_age_a_stone,
    every_stone_has_liberties,
    kos_are_single_and_empty,
    moves_are_legal,
    numbers_of_a_move_go_together,
    laddered_chains_have_two_liberties_at_most,
    areas_are_of_one_side,
    a_move_is_one_point,
    every_point_has_a_distance,
    the_centre_is_on_the_middle_lines,
    patterns_are_of_empty_points,
    last_liberties_are_empty,
)


def planes_of(variant: Variant) -> Planes:
    """Return the planes of a scheme by name."""
    return dict(zip(variant.scheme.plane_names, np.moveaxis(rows_of(variant).astype(np.bool_), 1, 0), strict=True))


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_what_always_holds(variant: Variant) -> None:
    planes = planes_of(variant)
    assert not any((plane & ~boards().board).any() for plane in planes.values())
    assert [holds.__name__ for holds in HOLDS if holds(planes)]


@pytest.mark.parametrize("holds", HOLDS, ids=lambda holds: holds.__name__)
def test_every_check_has_something_to_check(holds: Callable[[Planes], bool]) -> None:
    assert any(holds(planes_of(variant)) for variant in VARIANTS)


def test_the_invariants_of_alphago48() -> None:
    """SCHEMES.md, section 1."""
    drawn = rows_of(Variant("alphago48")).astype(int)
    assert (drawn[:, :3].sum(axis=1) == drawn[:, 3]).all()
    stones, legal = drawn[:, :2].sum(axis=1), drawn[:, 20:28].sum(axis=1)
    assert (drawn[:, 4:12].sum(axis=1) == stones).all()
    assert (drawn[:, 12:20].sum(axis=1) == stones).all()
    assert (drawn[:, 36:44].sum(axis=1) == legal).all()
    assert (legal == boards().legal).all()
    assert (drawn[:, 28:36].sum(axis=1) <= drawn[:, 36]).all()
    assert all((drawn[:, plane] <= legal).all() for plane in (44, 45, 46))
