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
    ranks_of,
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


def ids_of(*contents: tuple[int, int]) -> list[int]:
    """Return the ids of records in the order of the game table."""
    hashes = np.array(contents, dtype=np.uint64).reshape(-1, 2)
    ids: list[int] = game_ids(hashes, ranks_of(hashes)).tolist()
    return ids


def test_ranks_among_identical_records() -> None:
    """How many the same there are before each one; both halves of a hash count."""
    rng = Random("ranks")
    for count in (0, 1, 2, 40, 41):
        contents = [(rng.choice((0, 1, 2**64 - 1)), rng.choice((0, 1, 2**63))) for _ in range(count)]
        ranks = ranks_of(np.array(contents, dtype=np.uint64).reshape(-1, 2))
        assert ranks.tolist() == [contents[:number].count(contents[number]) for number in range(count)]


def test_game_ids_of_identical_records() -> None:
    """Byte-identical records have ids of their own; each depends on the content and the rank alone."""
    a, b, c = (1, 2), (1, 3), (2, 2)
    ids = ids_of(a, b, a, c, a, b)
    assert len(set(ids)) == 6
    assert ids_of(c, a, a, a) == [ids[3], ids[0], ids[2], ids[4]]
    assert ids_of(b, c) == [ids[1], ids[3]]
    assert ids_of() == []


def test_game_ids_do_not_collide() -> None:
    contents = [(one, two) for one in range(60) for two in range(60)] * 2
    assert len(set(ids_of(*contents))) == len(contents)


def none_old(count: int) -> NDArray[np.bool_]:
    return np.zeros(count, dtype=np.bool_)


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
    verdict, of = dedup_games(words(*[5] * len(games)), outcomes(*games), none_old(len(games)))
    assert verdict.tolist() == verdicts
    assert of.tolist() == [kept] * len(games)


@pytest.mark.parametrize("grown", [False, True])
def test_copies_among_other_games(grown: bool) -> None:
    """Of the games with a key the one that is there already stays, or the first of known result, or the first.

    A data set that grows has no more than one game of each key that is kept; new ones may be anywhere in the table.
    """
    rng = Random(f"games {grown}")
    seen = 0
    for _ in range(200):
        count = rng.randint(0, 12)
        keys = [rng.randint(0, 4) * 2**61 for _ in range(count)]
        facts = [(rng.randint(0, 2), rng.choice((UNKNOWN, 0.5, 1.5)), rng.choice((UNKNOWN, 6.5, 7.5))) for _ in keys]
        there = {
            key: rng.choice([n for n in range(count) if keys[n] == key]) for key in set(keys) if rng.random() < 0.5
        }
        old = [grown and there.get(keys[game]) == game for game in range(count)]
        given = outcomes(*facts) if facts else Outcomes(*np.zeros((3, 0)))
        verdict, of = dedup_games(words(*keys), given, np.array(old, dtype=np.bool_))
        for game in range(count):
            same = [other for other in range(count) if keys[other] == keys[game]]
            best = min(same, key=lambda other: (not old[other], not facts[other][0], other))
            assert of[game] == best
            pairs = list(zip(facts[game], facts[best], strict=True))
            known = [(one, two) for one, two in pairs[1:] if not isnan(one) and not isnan(two)]
            known += [pairs[0]] if all(pairs[0]) else []
            expected = KEPT if game == best else CONFLICTING if any(one != two for one, two in known) else DUPLICATE
            assert verdict[game] == expected
            seen += old[game] and any(facts[other][0] and not facts[game][0] for other in same)
    assert (seen > 10) == grown  # an unknown result stays before a known one only where it was there first


def test_games_that_are_kept_as_they_are() -> None:
    """Copies that were kept before (``dedup.games`` was off) stay kept, whatever their results; the first leads."""
    facts = outcomes((0, UNKNOWN, 6.5), (1, 2.5, 6.5), (2, 0.5, 7.5), (1, 2.5, 6.5))
    verdict, of = dedup_games(words(5, 5, 5, 5), facts, np.array([False, True, True, False]))
    assert verdict.tolist() == [DUPLICATE, KEPT, KEPT, DUPLICATE]
    assert of.tolist() == [1, 1, 1, 1]


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


def slow_dedup(keys: list[Any], parts: list[int], merge: bool, overlap: str, old: int = 0) -> list[int]:
    """Decide with dictionaries which position stands for each one, -1 for none.

    ``old``: so many, the first ones, are rows that are there already: each is a position of its own, none is left out,
    and the first of the parts that have one holds the key against all others.
    """
    holder: dict[Any, int] = {}
    for number, (key, part) in enumerate(zip(keys, parts, strict=True)):
        if number < old:
            holder[key] = min(part, holder.get(key, part))
    first_part = dict(holder)
    for key, part in zip(keys, parts, strict=True):
        if key not in holder:
            first_part[key] = min(part, first_part.get(key, part))
    representative: dict[tuple[Any, int], int] = {}
    leaders = []
    for number, (key, part) in enumerate(zip(keys, parts, strict=True)):
        if number >= old and overlap == "drop" and part != first_part[key]:
            leaders.append(-1)
        elif number >= old and merge and (key, part) in representative:
            leaders.append(representative[key, part])
        else:
            leaders.append(number)
            representative.setdefault((key, part), number)
    return leaders


@pytest.mark.parametrize("grown", [False, True])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("overlap", ["drop", "keep"])
@pytest.mark.parametrize("merge", [True, False])
def test_positions_against_dictionaries(merge: bool, overlap: Literal["drop", "keep"], wide: bool, grown: bool) -> None:
    """Positions come in the order of (game, ply): the first of equals represents them, by part.

    Of wide keys both halves count: a lower or an upper half alone that is the same means nothing. Rows that are there
    already come first.
    """
    rng = Random(f"{merge} {overlap} {wide} {grown}")
    left_out = stood_for = 0
    for trial in range(300):
        count = trial % 30
        keys = [rng.choice((0, 1, 2**63, 2**64 - 1, 77, 5)) for _ in range(count)]
        upper = [rng.choice((0, 2**64 - 1, 77)) for _ in range(count)]
        parts = [rng.choice((0, 0, 0, 1, 2)) for _ in range(count)]
        there = rng.randint(0, count) if grown else 0
        given = words(*upper) if wide else None
        old = np.arange(count) < there if grown else None
        found = dedup_positions(words(*keys), np.array(parts, dtype=np.int8), merge, overlap, given, old).tolist()
        whole = list(zip(keys, upper, strict=True)) if wide else keys
        assert found == slow_dedup(whole, parts, merge, overlap, there)
        left_out += found.count(-1)
        stood_for += sum(0 <= leader < there <= number for number, leader in enumerate(found))
    assert (left_out > 50) == (overlap == "drop")
    assert (stood_for > 50) == (grown and merge)


def test_the_part_that_claims_a_position() -> None:
    """Train before val before test, wherever the position comes first; the rest is overlap, not merged."""
    keys = words(9, 9, 9, 9, 9, 4)
    parts = np.array([TEST, VAL, TRAIN, VAL, TRAIN, TEST], dtype=np.int8)
    assert dedup_positions(keys, parts, True, "drop").tolist() == [-1, -1, 2, -1, 2, 5]
    assert dedup_positions(keys, parts, True, "keep").tolist() == [0, 1, 2, 1, 2, 5]
    assert dedup_positions(keys, parts, False, "drop").tolist() == [-1, -1, 2, -1, 4, 5]
    assert dedup_positions(keys, parts, False, "keep").tolist() == list(range(6))


def test_the_part_that_has_a_row_keeps_the_position() -> None:
    """A row of test that is there already wins against new positions of train; its own part's are merged into it."""
    keys = words(9, 4, 9, 9, 9, 4)
    parts = np.array([TEST, TRAIN, TRAIN, TEST, TRAIN, TEST], dtype=np.int8)
    old = np.array([True, True, False, False, False, False])
    assert dedup_positions(keys, parts, True, "drop", None, old).tolist() == [0, 1, -1, 0, -1, -1]
    assert dedup_positions(keys, parts, True, "keep", None, old).tolist() == [0, 1, 2, 0, 2, 5]
    assert dedup_positions(keys, parts, False, "drop", None, old).tolist() == [0, 1, -1, 3, -1, -1]


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
