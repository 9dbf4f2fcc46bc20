"""Position keys are as wide as what a scheme shows, and no wider; which positions a scheme can show at all."""

import os
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
from random_games import (
    HANDICAPS,
    KOMIS,
    RULES,
    Line,
    Seen,
    games_of,
    ko_fight,
    positions,
    random_record,
    turned,
    under,
)
from scheme_rows import all_rows
from scheme_variants import VARIANTS, Variant
from slow_board import BLACK, WHITE, Point, draw
from slow_planes import Points, banned, kata_seen, komi_of

from pipeline import symmetry
from pipeline.augment import turn_planes
from pipeline.encode import encode_whole
from pipeline.keys import keyed
from pipeline.replay import replay
from pipeline.rules import RULE_SETS, rule_set
from pipeline.schemes import SCHEMES, Scheme

WITHOUT_JIT = os.environ.get("NUMBA_DISABLE_JIT") == "1"
FRAME = (5, 5)
Moves = tuple[tuple[Point | None, int], ...]
SUPERKO = [rules for rules in RULES if rules.ko != "simple"]

# ---- what keys cover beside boards, last moves, side, ko point and size: values, and points that turn

Fact = tuple[object, Points]
NO_POINTS: Points = frozenset()


def rules_shown(seen: Seen) -> Fact:
    """Scoring, suicide and ko rule; Spight's is shown as positional superko."""
    rules = seen.line.rules
    return (rules.scoring, seen.line.suicide, "positional" if rules.ko == "spight" else rules.ko), NO_POINTS


def komi_shown(seen: Seen) -> Fact:
    return (komi_of(seen.line) >= 6, komi_of(seen.line) >= 7), NO_POINTS


def handicap_shown(seen: Seen) -> Fact:
    start = positions(seen.line)[0].boards[-1]
    stones = [colour for _, colour in start]
    return seen.line.handicap >= 2 or (len(stones) >= 2 and WHITE not in stones), NO_POINTS


def area_rules(seen: Seen) -> Fact:
    """Nothing counts under territory scoring before the encore; the taxes of seki and of all draw the same."""
    rules = seen.line.rules
    return None if rules.scoring == "territory" else (rules.tax != "none", seen.line.suicide), NO_POINTS


def superko(seen: Seen) -> Fact:
    kata = kata_seen(seen.line)[seen.ply]
    return None, kata.banned if kata is not None else NO_POINTS


def turns_shown(seen: Seen) -> Fact:
    kata = kata_seen(seen.line)[seen.ply]
    return len(kata.recent) if kata is not None else None, NO_POINTS


def numbers(seen: Seen) -> Fact:
    kata = kata_seen(seen.line)[seen.ply]
    return np.array(kata.numbers, dtype=np.float32).tobytes() if kata is not None else None, NO_POINTS


def boards_known(seen: Seen) -> Fact:
    """How many boards there are before the start; none and empty ones are the same."""
    first = positions(seen.line)[seen.begin].boards[-1]
    return min(seen.ply - seen.begin, 7) if first else 7, NO_POINTS


def played_stones(seen: Seen) -> Fact:
    played = {point for point, _ in seen.line.moves[seen.begin : seen.ply]}
    return None, frozenset(point for point, _ in seen.boards[-1] if point in played)


FACTS: dict[str, tuple[Callable[[Seen], Fact], ...]] = {
    "katago_v7": (superko, turns_shown, numbers),
    "katago22_article": (rules_shown, komi_shown, handicap_shown),
    "legality=rules": (lambda seen: (None, banned(seen)),),
    "setup_age=none": (played_stones,),
    "before_start=oldest": (boards_known,),
    "bans": (superko,),
    "areas": (area_rules,),
    "rules": (rules_shown,),
    "komi": (komi_shown,),
    "handicap": (handicap_shown,),
    "katago_globals": (numbers,),
}
MAIN_PHASE = {"katago_v7", "bans", "katago_globals"}  # these show nothing of the encore


def words_of(variant: Variant) -> list[str]:
    """Return the words of a scheme that facts go by."""
    return str(variant).split()


def can_be_shown(variant: Variant, seen: Seen) -> bool:
    return not MAIN_PHASE & set(words_of(variant)) or kata_seen(seen.line)[seen.ply] is not None


def covered(variant: Variant, scheme: Scheme, seen: Seen, turn: int) -> tuple[object, ...]:
    """Return what the key of a position covers, turned."""
    size = seen.line.rows, seen.line.cols

    def image(point: Point | None) -> Point | None:
        return None if point is None else symmetry.image_point(*point, *size, turn)

    boards = tuple(
        frozenset((image(point), colour) for point, colour in board) for board in seen.boards[-1 - scheme.history :]
    )
    recent = tuple(image(point) for point in seen.recent[: scheme.recent])
    facts = [fact(seen) for word in words_of(variant) for fact in FACTS.get(word, ())]
    turning = tuple((value, frozenset(image(point) for point in points)) for value, points in facts)
    return boards, recent, seen.to_play, image(seen.ko), size, turning


# ---- games that meet the same positions, turned, in other orders, under other rules


@np.errstate(over="ignore")  # uint64 wraps where kernels run as plain Python; this runs before conftest's fixture
def transposing_games(rng: Random) -> list[Line]:
    """Return short games on small boards, each under other rules too, where it is legal."""
    lines = []
    for number in range(24 if WITHOUT_JIT else 110):
        rules, size = RULES[number % len(RULES)], ((2, 2), (2, 3), (3, 3), (2, 2), (3, 3))[number % 5]
        setups = ((), (), (0, 5), ())[number % 4]
        line = random_record(rng, size, 14, setups, 1 + number % 2, rules, 0.9)
        others = rng.choice(RULES), rng.choice((rules, rng.choice(SUPERKO)))
        lines += [line, *(under(line, other, rng.choice(KOMIS), rng.choice(HANDICAPS)) for other in others)]
        lines += [turned(line, rng.randrange(8))] * (number % 2)
    lines += [random_record(rng, (2, 2 + number % 2), 20, rules=SUPERKO[-1 - number % 5]) for number in range(15)]
    opening = random_record(rng, (5, 5), 3, in_turn=1)
    lines += [turned(opening, turn) for turn in range(8)]
    lines += [replace(opening, moves=opening.moves[::-1])] * 2
    lines += [ko_fight(rng, (3, 4 + number % 2), 8, rules) for number, rules in enumerate((*RULES, *SUPERKO))]
    lines += [*takes_or_not(), *set_up_or_played(), *third_times()]
    return [line for line, fault in zip(lines, replay(games_of(lines)).faults.tolist(), strict=True) if fault == 0]


def takes_or_not() -> list[Line]:
    """Return two games that stand on the same board after a move; in one it took a stone that was laddered."""
    black = tuple((0, point, 1) for point in ((3, 0), (3, 1)))
    moves: Moves = (((4, 1), 1), ((0, 4), 2), ((0, 3), 1), (None, 2))
    return [Line(5, 5, moves, black), Line(5, 5, moves, (*black, (0, (4, 0), 2)))]


def set_up_or_played() -> list[Line]:
    """Return two games with the same boards and the same last ten moves; a stone was set up in one of them."""
    moves: Moves = tuple(((row, col), 1 + (row + col) % 2) for row in (2, 4) for col in range(5))
    return [Line(5, 5, moves, ((0, (0, 0), 1),)), Line(5, 5, (((0, 0), 1), (None, 2), *moves))]


def third_times() -> list[Line]:
    """Return games that go round in the same positions, with simple ko and so without result at the third time."""
    rng, rules = Random("third"), RULE_SETS["chinese"]
    return [random_record(rng, (1, 3 + number % 2), 60, rules=rules, in_turn=1) for number in range(6)]


LINES = transposing_games(Random("keys"))

# Schemes whose planes show all that their keys cover. The others show less of it: gnugo's no stones, only what
# is around the empty points; a pass and no move at all are the same in planes of recent moves, not in the key.
SHOWS_ALL = {"board", "agz17", "agz17 side=both", "agz17_grouped", "leela_zero18", "seven_plane"}


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_equal_keys_are_equal_planes_and_globals(variant: Variant) -> None:
    """After each row is turned by its key's symmetry: one key for each (boards, moves, side, ko, size and facts) that
    the scheme covers, no more; and one set of planes and globals for each key."""
    games, scheme = games_of(LINES), variant.scheme
    row_games, row_plies = all_rows(games)
    found = keyed(games, scheme)
    planes, values = encode_whole(scheme, games, row_games, row_plies, FRAME)
    turns = found.replayed.turns
    planes = turn_planes(planes, games.rows[row_games], games.cols[row_games], FRAME[1], turns)
    seen = [position for line in LINES for position in positions(line, scheme.history)]
    assert found.shown.tolist() == [can_be_shown(variant, position) for position in seen]
    at = np.flatnonzero(found.shown).tolist()
    drawn = [planes[row].tobytes() + values[row].tobytes() for row in at]
    behind = [covered(variant, scheme, seen[row], int(turns[row])) for row in at]
    for keys in (found.replayed.keys[at].tolist(), found.replayed.keys_hi[at].tolist()):
        assert len(set(keys)) == len(set(zip(keys, drawn, strict=True)))
        assert len(set(keys)) == len(set(zip(keys, behind, strict=True)))
        assert len(set(keys)) == len(set(behind)) < 0.9 * len(keys)
        if str(variant) in SHOWS_ALL:
            assert len(set(keys)) == len({(row, *rest[2:]) for row, rest in zip(drawn, behind, strict=True)})


@pytest.mark.skipif(WITHOUT_JIT, reason="there are few games without compiled kernels")
def test_the_games_are_worth_the_test() -> None:
    """Boards come again under other rules, komis, numbers of turns shown, and bans of every ko rule."""
    seen = [position for line in LINES for position in positions(line)]
    views = [kata_seen(position.line)[position.ply] for position in seen]

    def kinds(what: Callable[[Seen], Any]) -> int:
        """Return how many boards come with more than one value of something."""
        met: dict[Any, set[Any]] = {}
        for position in seen:
            met.setdefault((position.line.rows, position.boards, position.ko, position.to_play), set()).add(
                what(position)
            )
        return sum(len(values) > 1 for values in met.values())

    assert kinds(rules_shown) > 30
    assert kinds(lambda position: komi_of(position.line)) > 30
    assert kinds(handicap_shown) > 30
    assert kinds(superko) > 20
    assert kinds(turns_shown) > 30
    assert kinds(numbers) > 30
    for ko_rule in ("positional", "situational", "spight"):
        banning = [
            position
            for position, view in zip(seen, views, strict=True)
            if position.line.rules.ko == ko_rule and view is not None and view.banned
        ]
        assert len(banning) > 3, ko_rule
    assert sum(view is None for view in views) > 50
    assert sum(point is None for line in LINES for point, _ in line.moves) > 200


IMAGES = [
    random_record(Random(f"images {number}"), size, 24, setups, BLACK, SUPERKO[number], 0.9)
    for number, (size, setups) in enumerate(
        [
            ((3, 3), ()),
            ((2, 3), (0, 6)),
            ((1, 5), ()),
            ((1, 7), ()),
            ((3, 4), ()),
            ((2, 2), ()),
            ((4, 4), (3,)),
            ((3, 2), (0,)),
        ]
    )
]
IMAGES += [ko_fight(Random("fight"), (size, 4), 8, rules) for size, rules in ((4, SUPERKO[0]), (3, SUPERKO[-1]))]


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_all_images_of_a_position_have_one_key(variant: Variant) -> None:
    scheme = variant.scheme
    for line in IMAGES:
        whole = None
        for turn in range(8):
            games = games_of([turned(line, turn)])
            frame = (int(games.rows[0]), int(games.cols[0]))
            if frame != (line.rows, line.cols):
                continue
            found = keyed(games, scheme)
            planes, values = encode_whole(scheme, games, *all_rows(games), frame)
            rows = np.full(len(planes), frame[0]), np.full(len(planes), frame[1])
            planes = turn_planes(planes, *rows, frame[1], found.replayed.turns)
            shown = found.shown
            parts = found.replayed.keys[shown], found.replayed.keys_hi[shown], planes[shown], values[shown]
            image = [shown.tolist(), *(part.tobytes() for part in parts)]
            whole = whole or image
            assert image == whole, (line, turn)


def test_the_images_have_bans() -> None:
    views = [view for line in IMAGES for view in kata_seen(line) if view is not None]
    assert sum(bool(view.banned) for view in views) > 10
    assert max(len(view.banned) for view in views) > 1


# ---- what matters to whom


def last_key(line: Line, scheme: Scheme) -> int:
    return int(keyed(games_of([line]), scheme).replayed.keys[-1])


def keyed_alike(one: Line, other: Line) -> set[str]:
    """Return the schemes to which the last positions of two games are the same."""
    names = {str(variant): variant.scheme for variant in VARIANTS}
    return {name for name, scheme in names.items() if last_key(one, scheme) == last_key(other, scheme)}


PLAIN = Line(5, 5, (((1, 1), 1), ((2, 2), 2), ((3, 3), 1), (None, 2)))
EVERY = {str(variant) for variant in VARIANTS}
ARTICLE = {"katago22_article", "katago22_article legality=rules"}
KATAGO = {"katago_v7", "composed katago_globals empty sensible zeros"}
AREAS, RULES_AND_KOMI = "composed areas stones ko", "composed rules liberties=3 komi"
SEKI_TAX = rule_set("ko=simple,scoring=area,tax=seki,suicide=false,button=false,bonus=0,komi=7.5")
HANDICAP = "composed black_white=3 handicap white_to_move"


def by_rules(name: str, komi: float | None = 7.5, handicap: int = 0) -> Line:
    return under(PLAIN, RULE_SETS[name], komi, handicap)


@pytest.mark.parametrize(
    ("one", "other", "tell"),
    [
        pytest.param(by_rules("chinese"), by_rules("chinese", 8.5), KATAGO, id="komi that crosses no step"),
        pytest.param(
            by_rules("chinese"), by_rules("chinese", 6.5), KATAGO | ARTICLE | {RULES_AND_KOMI}, id="komi 7.5 and 6.5"
        ),
        pytest.param(by_rules("japanese", 6.5), by_rules("korean", None), set(), id="two names for the same rules"),
        pytest.param(by_rules("chinese", None), by_rules("chinese", 7.5), set(), id="komi unknown, komi of the rules"),
        pytest.param(
            by_rules("chinese"), by_rules("chinese", 7.5, 2), ARTICLE | {HANDICAP}, id="HA alone moves no komi"
        ),
        pytest.param(by_rules("chinese"), by_rules("chinese", 7.5, 1), set(), id="one stone is no handicap"),
        pytest.param(
            by_rules("chinese"), by_rules("chinese-kgs"), KATAGO | ARTICLE | {RULES_AND_KOMI}, id="superko, no ban"
        ),
        pytest.param(
            by_rules("chinese-kgs"),
            by_rules("ing"),
            KATAGO | ARTICLE | {RULES_AND_KOMI, AREAS},
            id="suicide, of which areas know",
        ),
        pytest.param(by_rules("chinese"), by_rules("stone-scoring"), KATAGO | {AREAS}, id="a tax on groups"),
        pytest.param(by_rules("stone-scoring"), under(PLAIN, SEKI_TAX, 7.5), KATAGO, id="which groups are taxed"),
        pytest.param(by_rules("japanese"), by_rules("ancient-territory"), KATAGO, id="a tax, territory scoring"),
        pytest.param(by_rules("aga", 7.0), by_rules("aga-button", 7.0), KATAGO, id="a button"),
        pytest.param(
            by_rules("tromp-taylor", 5.5), under(PLAIN, RULES[-2], 5.5), KATAGO | {AREAS}, id="Spight's rule and a tax"
        ),
        pytest.param(
            replace(PLAIN, moves=(*PLAIN.moves, (None, 1))),
            replace(PLAIN, moves=(*PLAIN.moves, (None, 1)), rules=RULE_SETS["japanese"], komi=7.5),
            KATAGO | ARTICLE | {RULES_AND_KOMI, AREAS},
            id="area and territory",
        ),
    ],
)
def test_who_tells_two_games_apart(one: Line, other: Line, tell: set[str]) -> None:
    assert keyed_alike(one, other) == EVERY - tell


def test_bans_of_superko_belong_to_the_key_of_those_that_show_them() -> None:
    """Positional superko bans what Spight's rule does not, after two passes: the ko point has lapsed. (KataGo's
    globals differ, since under Spight's rule two passes do not end the game.)"""
    fights = [replace(ko_fight(Random(1), (3, 4), 4, SUPERKO[0]), komi=7.5) for _ in range(2)]
    fights[1] = under(fights[1], replace(SUPERKO[0], ko="spight"), 7.5, fights[0].handicap)
    fights[0] = replace(fights[0], handicap=fights[1].handicap)
    assert [set(kata_seen(line)[3].banned) for line in fights if kata_seen(line)[3]] == [{(1, 1)}, set()]
    apart = EVERY - keyed_alike(*fights)
    assert apart == {name for name in EVERY if "legality=rules" in name or "bans" in name} | KATAGO


# ---- what can be shown

KO = tuple((0, point, colour) for point, colour in draw(". X O . .\nX O . O .\n. X O . .\n. . . . .").items())
PASSES: Moves = ((None, BLACK), (None, WHITE))


def shown(line: Line, scheme: str = "katago_v7") -> list[bool]:
    return keyed(games_of([line]), SCHEMES[scheme]).shown.tolist()


def japanese(*moves: tuple[Point | None, int], setup: tuple[tuple[int, Point, int], ...] = KO) -> Line:
    return under(Line(4, 5, moves, setup), RULE_SETS["japanese"])


def test_the_encore_is_not_shown() -> None:
    line = japanese(((3, 4), BLACK), *PASSES[::-1], ((3, 3), BLACK), *PASSES[::-1], *PASSES)
    assert shown(line) == [True] * 3 + [False] * 5
    assert shown(under(line, RULE_SETS["chinese"])) == [True] * 8
    for name in set(SCHEMES) - {"katago_v7"}:
        assert shown(line, name) == [True] * 8


def test_a_setup_ends_the_encore() -> None:
    line = japanese(*PASSES, ((3, 4), BLACK), ((3, 3), WHITE), setup=(*KO, (3, (3, 0), BLACK)))
    assert shown(line) == [True, True, False, True]


def test_nothing_is_shown_after_a_pass_for_ko() -> None:
    """White retakes the ko, which in the encore lifts a block and leaves the stones: from here on KataGo's board is
    another than the record's. Its next move is on a stone there; and a setup does not mend it."""
    fight = ((1, 2), BLACK), ((3, 4), WHITE), ((3, 0), BLACK), ((1, 1), WHITE), ((3, 1), BLACK), ((3, 3), WHITE)
    line = japanese(*PASSES, *fight, ((1, 2), BLACK), ((0, 4), WHITE), ((0, 3), BLACK))
    assert not replay(games_of([line])).faults.any()
    assert shown(line) == [True, True] + [False] * 9
    for ply in (8, 9, 10):
        assert shown(replace(line, setup=(*KO, (ply, (2, 4), BLACK)))) == [True, True] + [False] * 9
    others = games_of([PLAIN, line, PLAIN])
    assert keyed(others, SCHEMES["katago_v7"]).shown.tolist() == [True] * 6 + [False] * 9 + [True] * 4


# ---- many games, and games with faults


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_games_together_are_games_by_themselves(variant: Variant) -> None:
    """In any order of sizes; a game of more positions than are traced at once, and one without moves."""
    long = random_record(Random("long"), (3, 3), 30 if WITHOUT_JIT else 300, rules=SUPERKO[3])
    lines = [*IMAGES, PLAIN, Line(3, 3, ()), long, *IMAGES[::-1]]
    lines.insert(3, replace(PLAIN, moves=(*PLAIN.moves, *PASSES * (20 if WITHOUT_JIT else 2_100))))
    scheme = variant.scheme
    together, alone = keyed(games_of(lines), scheme), [keyed(games_of([line]), scheme) for line in lines]
    assert together.shown.tolist() == [shown for found in alone for shown in found.shown.tolist()]
    for part in ("turns", "keys", "keys_hi", "fixed"):
        assert np.array_equal(
            getattr(together.replayed, part), np.concatenate([getattr(found.replayed, part) for found in alone])
        )


def faulty() -> list[tuple[Line, int]]:
    """Return games with a fault and the number of legal moves before it."""
    occupied = replace(PLAIN, moves=(*PLAIN.moves, ((1, 1), 1), ((0, 0), 2)))
    off_board = replace(PLAIN, moves=(*PLAIN.moves[:2], ((7, 7), 1), ((0, 0), 2)))
    dead = replace(PLAIN, setup=((3, (0, 0), 1), (3, (0, 1), 2), (3, (1, 0), 2)))
    at_once = replace(PLAIN, setup=((0, (0, 0), 1), (0, (0, 1), 2), (0, (1, 0), 2)))
    return [(occupied, 4), (off_board, 2), (dead, 3), (at_once, 0)]


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_a_fault_does_not_change_what_is_before_it(variant: Variant) -> None:
    lines, legal = zip(*faulty(), strict=True)
    games, scheme = games_of([PLAIN, *lines, PLAIN]), variant.scheme
    found = keyed(games, scheme)
    assert found.replayed.legal.tolist() == [4, *legal, 4]
    for game, line in enumerate([PLAIN, *lines, PLAIN]):
        first, count = games.move_start[game], (4, *legal, 4)[game]
        if count == 0:
            continue
        cut = replace(line, moves=line.moves[:count], setup=tuple(stone for stone in line.setup if stone[0] < count))
        alone = keyed(games_of([cut]), scheme)
        assert found.replayed.keys[first : first + count].tolist() == alone.replayed.keys.tolist()
        assert found.shown[first : first + count].tolist() == alone.shown.tolist()


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_keys_that_reach_the_board_alone(variant: Variant) -> None:
    games, scheme = games_of(LINES[::5]), variant.scheme
    narrow, plain = keyed(games, scheme, whole=False), replay(games)
    assert all(np.array_equal(one, other) for one, other in zip(narrow.replayed, plain, strict=True))
    assert np.array_equal(narrow.shown, keyed(games, scheme).shown)


def test_no_games() -> None:
    for scheme in (SCHEMES["board"], SCHEMES["katago_v7"]):
        assert [len(part) for part in keyed(games_of([]), scheme).replayed] == [0] * 6
