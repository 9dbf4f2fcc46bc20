"""Game ids, duplicate games, the split, duplicate positions and the sample, against dictionaries."""

from collections import defaultdict
from math import isnan
from random import Random
from typing import Any, Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from pipeline.dedup import (
    CONFLICTING,
    DUPLICATE,
    KEPT,
    PARTS,
    TEST,
    TRAIN,
    VAL,
    Outcomes,
    dedup_games,
    dedup_positions,
    game_ids,
    sample_positions,
    split_games,
)

UNKNOWN = float("nan")


def words(*values: int) -> NDArray[np.uint64]:
    return np.array(values, dtype=np.uint64)


def outcomes(*games: tuple[int, float, float]) -> Outcomes:
    """Return what is known of games: (winner, margin, komi) each."""
    winners, margins, komis = zip(*games, strict=True)
    return Outcomes(np.array(winners, dtype=np.int8), np.array(margins, dtype=float), np.array(komis, dtype=float))


def test_game_ids_of_identical_records() -> None:
    """Byte-identical records have ids of their own; each depends on the content and the rank alone."""
    a, b, c = (1, 2), (1, 3), (2, 2)
    ids = game_ids(np.array([a, b, a, c, a, b], dtype=np.uint64)).tolist()
    assert len(set(ids)) == 6
    assert game_ids(np.array([c, a, a, a], dtype=np.uint64)).tolist() == [ids[3], ids[0], ids[2], ids[4]]
    assert game_ids(np.array([b, c], dtype=np.uint64)).tolist() == [ids[1], ids[3]]
    assert game_ids(np.zeros((0, 2), dtype=np.uint64)).tolist() == []


def test_game_ids_do_not_collide() -> None:
    contents = np.array([(one, two) for one in range(60) for two in range(60)] * 2, dtype=np.uint64)
    assert len(set(game_ids(contents).tolist())) == len(contents)


@pytest.mark.parametrize(
    ("games", "verdicts", "kept"),
    [
        pytest.param([(1, 2.5, 6.5)] * 3, [KEPT, DUPLICATE, DUPLICATE], 0, id="first of equals"),
        pytest.param([(0, UNKNOWN, 6.5), (2, UNKNOWN, 6.5)], [DUPLICATE, KEPT], 1, id="known before unknown"),
        pytest.param(
            [(0, UNKNOWN, UNKNOWN), (2, 4.5, 6.5), (1, UNKNOWN, 6.5), (0, UNKNOWN, 6.5)],
            [DUPLICATE, KEPT, CONFLICTING, DUPLICATE],
            1,
            id="first known, unknown never conflicts",
        ),
        pytest.param([(0, UNKNOWN, UNKNOWN)] * 2, [KEPT, DUPLICATE], 0, id="nothing known"),
        pytest.param([(1, 2.5, 6.5), (1, 2.5, 7.5)], [KEPT, CONFLICTING], 0, id="another komi"),
        pytest.param([(1, 2.5, 6.5), (1, 3.5, 6.5)], [KEPT, CONFLICTING], 0, id="another margin"),
        pytest.param([(1, UNKNOWN, 6.5), (1, 3.5, UNKNOWN)], [KEPT, DUPLICATE], 0, id="less known"),
        pytest.param([(0, UNKNOWN, 6.5), (0, UNKNOWN, 0.5)], [KEPT, CONFLICTING], 0, id="komi alone"),
        pytest.param([(3, 0.0, 6.5), (1, 0.5, 6.5)], [KEPT, CONFLICTING], 0, id="draw and win"),
    ],
)
def test_copies_of_a_game(games: list[tuple[int, float, float]], verdicts: list[int], kept: int) -> None:
    verdict, of = dedup_games(words(*[5] * len(games)), outcomes(*games))
    assert verdict.tolist() == verdicts
    assert of.tolist() == [kept] * len(games)


def test_copies_among_other_games() -> None:
    rng = Random("games")
    for _ in range(200):
        count = rng.randint(0, 12)
        keys = [rng.randint(0, 4) * 2**61 for _ in range(count)]
        facts = [(rng.randint(0, 2), rng.choice((UNKNOWN, 0.5, 1.5)), rng.choice((UNKNOWN, 6.5, 7.5))) for _ in keys]
        verdict, of = dedup_games(words(*keys), outcomes(*facts) if facts else Outcomes(*np.zeros((3, 0))))
        for game in range(count):
            same = [other for other in range(count) if keys[other] == keys[game]]
            best = next((other for other in same if facts[other][0]), same[0])
            assert of[game] == best
            pairs = list(zip(facts[game], facts[best], strict=True))
            known = [(one, two) for one, two in pairs[1:] if not isnan(one) and not isnan(two)]
            known += [pairs[0]] if all(pairs[0]) else []
            expected = KEPT if game == best else CONFLICTING if any(one != two for one, two in known) else DUPLICATE
            assert verdict[game] == expected


def test_the_split_has_its_shares() -> None:
    keys = np.random.default_rng(1).integers(0, 2**64, 100_000, dtype=np.uint64)
    parts = split_games(keys, 0.1, 0.05, 3)
    shares = np.bincount(parts, minlength=3) / len(keys)
    # Five standard deviations of a binomial share.
    for part, share in ((TRAIN, 0.85), (VAL, 0.1), (TEST, 0.05)):
        assert abs(shares[part] - share) < 5 * (share * (1 - share) / len(keys)) ** 0.5
    assert PARTS == ("train", "val", "test")


def test_a_game_does_not_move() -> None:
    """Its part depends on its key, the seed and the shares: not on the other games or their order."""
    keys = np.random.default_rng(2).integers(0, 2**64, 2_000, dtype=np.uint64)
    parts = split_games(keys, 0.2, 0.2, 0)
    order = np.random.default_rng(3).permutation(len(keys))
    assert np.array_equal(split_games(keys[order], 0.2, 0.2, 0), parts[order])
    assert np.array_equal(split_games(keys[:100], 0.2, 0.2, 0), parts[:100])
    assert all(split_games(keys[i : i + 1], 0.2, 0.2, 0)[0] == parts[i] for i in range(50))
    other = split_games(keys, 0.2, 0.2, 1)
    assert 0.3 < (other != parts).mean() < 0.7
    # A larger share takes games of train and leaves the rest where it is.
    more = split_games(keys, 0.4, 0.2, 0)
    assert set(zip(parts.tolist(), more.tolist(), strict=True)) == {(0, 0), (0, 1), (1, 1), (2, 2)}


def test_no_val_and_no_test() -> None:
    keys = np.random.default_rng(4).integers(0, 2**64, 1_000, dtype=np.uint64)
    assert set(split_games(keys, 0, 0, 0).tolist()) == {TRAIN}
    assert TEST not in split_games(keys, 0.5, 0, 0)
    assert split_games(keys[:0], 0.5, 0, 0).tolist() == []


def slow_dedup(
    keys: list[Any], parts: list[int], merge: bool, overlap: str
) -> tuple[list[int], dict[int, int], int, int]:
    """Decide with dictionaries: (leader or -1, weight of each kept one, merged, overlap)."""
    first_part: dict[Any, int] = {}
    for key, part in zip(keys, parts, strict=True):
        first_part[key] = min(part, first_part.get(key, part))
    representative: dict[tuple[Any, int], int] = {}
    leaders, weights, merged, outside = [], dict[int, int](), 0, 0
    for number, (key, part) in enumerate(zip(keys, parts, strict=True)):
        if overlap == "drop" and part != first_part[key]:
            outside += 1
            leaders.append(-1)
        elif merge and (key, part) in representative:
            merged += 1
            leaders.append(representative[key, part])
            weights[leaders[-1]] += 1
        else:
            leaders.append(number)
            representative[key, part] = number
            weights[number] = 1
    return leaders, weights, merged, outside


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("overlap", ["drop", "keep"])
@pytest.mark.parametrize("merge", [True, False])
def test_positions_against_dictionaries(merge: bool, overlap: Literal["drop", "keep"], wide: bool) -> None:
    """Positions come in the order of (game, ply): the first of equals represents them, by part.

    Of wide keys both halves count: a lower or an upper half alone that is the same means nothing.
    """
    rng = Random(f"{merge} {overlap} {wide}")
    for trial in range(300):
        count = trial % 30
        keys = [rng.choice((0, 1, 2**63, 2**64 - 1, 77, 5)) for _ in range(count)]
        upper = [rng.choice((0, 2**64 - 1, 77)) for _ in range(count)]
        parts = [rng.choice((0, 0, 0, 1, 2)) for _ in range(count)]
        given = words(*upper) if wide else None
        fate = dedup_positions(words(*keys), np.array(parts, dtype=np.int8), merge, overlap, given)
        whole = list(zip(keys, upper, strict=True)) if wide else keys
        leaders, weights, merged, outside = slow_dedup(whole, parts, merge, overlap)
        assert fate.leader.tolist() == leaders
        assert (fate.merged, fate.overlap) == (merged, outside)
        kept = np.flatnonzero(fate.leader == np.arange(count)).tolist()
        assert {number: int(fate.weight[number]) for number in kept} == weights
        assert len(kept) + fate.merged + fate.overlap == count
        assert int(fate.weight[kept].sum()) == count - outside


def test_the_part_that_claims_a_position() -> None:
    """Train before val before test, wherever the position comes first; the rest is overlap, not merged."""
    keys = words(9, 9, 9, 9, 9, 4)
    parts = np.array([TEST, VAL, TRAIN, VAL, TRAIN, TEST], dtype=np.int8)
    fate = dedup_positions(keys, parts, True, "drop")
    assert fate.leader.tolist() == [-1, -1, 2, -1, 2, 5]
    assert (fate.weight[2], fate.merged, fate.overlap) == (2, 1, 3)
    fate = dedup_positions(keys, parts, True, "keep")
    assert fate.leader.tolist() == [0, 1, 2, 1, 2, 5]
    assert (fate.merged, fate.overlap) == (2, 0)
    fate = dedup_positions(keys, parts, False, "drop")
    assert fate.leader.tolist() == [-1, -1, 2, -1, 4, 5]
    assert (fate.weight.tolist(), fate.merged, fate.overlap) == ([0, 0, 1, 0, 1, 1], 0, 3)


def sampled(games: list[int], plies: list[int], **how: Any) -> list[bool]:
    arguments = {"per_game": None, "span": None, "seed": 0, **how}
    wanted: list[bool] = sample_positions(
        words(*games), np.array(games and plies, dtype=np.int64), **arguments
    ).tolist()
    return wanted


def test_plies_are_counted_from_0_with_both_ends() -> None:
    assert sampled([1] * 6, list(range(6)), span=(2, 4)) == [False, False, True, True, True, False]
    assert sampled([1] * 3, [0, 1, 2]) == [True] * 3
    assert sampled([], [], per_game=2) == []


def test_so_many_positions_of_each_game() -> None:
    games = [7] * 30 + [3] * 2 + [9] * 10
    plies = [*range(30), *range(2), *range(10)]
    wanted = sampled(games, plies, per_game=4, span=(5, 100))
    by_game: dict[int, list[int]] = defaultdict(list)
    for game, ply, is_wanted in zip(games, plies, wanted, strict=True):
        if is_wanted:
            by_game[game].append(ply)
    assert {game: len(chosen) for game, chosen in by_game.items()} == {7: 4, 9: 4}
    assert min(by_game[7] + by_game[9]) >= 5


def test_the_sample_of_a_game_is_its_own() -> None:
    """It depends on (seed, game, ply): not on the other games; a smaller sample lies in a larger one."""
    alone = sampled([7] * 50, list(range(50)), per_game=10)
    together = sampled([2] * 9 + [7] * 50, [*range(9), *range(50)], per_game=10)
    assert together[9:] == alone
    smaller = sampled([7] * 50, list(range(50)), per_game=5)
    assert all(one <= other for one, other in zip(smaller, alone, strict=True))
    assert sampled([7] * 50, list(range(50)), per_game=10, seed=1) != alone
    assert sampled([8] * 50, list(range(50)), per_game=10) != alone


def test_every_ply_is_sampled_as_often() -> None:
    games = [game for game in range(2_000) for _ in range(10)]
    wanted = np.array(sampled(games, list(range(10)) * 2_000, per_game=3)).reshape(2_000, 10)
    assert wanted.sum(axis=1).tolist() == [3] * 2_000
    assert abs(wanted.mean(axis=0) - 0.3).max() < 0.05
