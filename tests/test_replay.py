"""Replay against the slow board and KataGo's stored superko bans; game keys; traces."""

import os
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import slow_board
from numpy.typing import NDArray
from random_games import Line, games_of, plain_terms, positions, random_line, turned
from slow_board import Point, SlowBoard, SlowGame

from pipeline import board as fast
from pipeline import symmetry
from pipeline.board import ILLEGAL_SUPERKO, LEGAL
from pipeline.gamekeys import game_keys
from pipeline.games import Games
from pipeline.replay import ILLEGAL_SETUP, replay
from pipeline.rules import KO_POSITIONAL, KO_SIMPLE, KO_SITUATIONAL, KO_SPIGHT, RULE_SETS
from pipeline.trace import trace

WITHOUT_JIT = os.environ.get("NUMBA_DISABLE_JIT") == "1"
VECTORS = Path(__file__).parents[2] / "shared" / "vectors" / "katago" / "superko.npz"
KO_RULES = {
    "simple": KO_SIMPLE,
    "positional": KO_POSITIONAL,
    "situational": KO_SITUATIONAL,
    "spight": KO_SPIGHT,
}
FAULTS = {
    None: fast.LEGAL,
    slow_board.OCCUPIED: fast.ILLEGAL_OCCUPIED,
    slow_board.KO: fast.ILLEGAL_KO,
    slow_board.SUICIDE: fast.ILLEGAL_SUICIDE,
    slow_board.SUPERKO: fast.ILLEGAL_SUPERKO,
    slow_board.OFF_BOARD: fast.ILLEGAL_OFF_BOARD,
}


def random_record(rng: Random, size: tuple[int, int], ko_rule: str, suicide: bool) -> tuple[Line, int, int]:
    """Return a random game with setup stones in mid-game and perhaps a fault, its legal moves and the fault.

    Moves go on after the fault, as they do in a record.
    """
    rows, cols = size
    game = SlowGame(rows, cols, ko_rule, suicide)
    moves: list[tuple[Point | None, int]] = []
    setup: list[tuple[int, Point, int]] = []
    legal, fault = -1, fast.LEGAL
    colour, length = rng.choice((1, 2)), rng.choice((0, 1, 5, 60))
    anywhere = [(row, col) for row in range(rows) for col in range(cols)]
    for ply in range(length + 1):
        changes = []
        if ply == 0 or rng.random() < 0.02:
            changes = [(point, rng.choice((0, 1, 2))) for point in rng.sample(anywhere, rng.randrange(len(anywhere)))]
        setup.extend((ply, point, paint) for point, paint in changes)
        if legal < 0 and (changes or ply == 0) and not game.setup(changes, colour):
            legal, fault = ply, ILLEGAL_SETUP
        if ply == length:
            break
        points = [*anywhere, (rows, 0), (0, -1)] if rng.random() < 0.02 else game.board.empty_points()
        point: Point | None = None
        if points and rng.random() > 0.1:
            point = rng.choice(points)
        if legal < 0 and rng.random() < 0.95 and game.fault(point, colour):
            point = next((p for p in rng.sample(points, len(points)) if not game.fault(p, colour)), None)
        moves.append((point, colour))
        word = game.fault(point, colour) if legal < 0 else None
        if word:
            legal, fault = ply, FAULTS[word]
        elif legal < 0:
            game.play(point, colour)
        colour = 3 - colour if rng.random() < 0.9 else colour
    line = Line(rows, cols, tuple(moves), tuple(setup), KO_RULES[ko_rule], suicide)
    return line, length if legal < 0 else legal, fault


@pytest.mark.parametrize("suicide", [False, True])
@pytest.mark.parametrize("ko_rule", KO_RULES)
def test_first_fault(ko_rule: str, suicide: bool) -> None:
    """The ply and the kind of the first fault are the slow board's, in games of several sizes at once."""
    rng = Random(f"faults {ko_rule} {suicide}")
    sizes = [(2, 2), (2, 3), (3, 3), (1, 4)]
    records = [random_record(rng, sizes[i % 4], ko_rule, suicide) for i in range(60 if WITHOUT_JIT else 1_200)]
    replayed = replay(games_of([line for line, _, _ in records]))
    for i, (line, legal, fault) in enumerate(records):
        assert (replayed.legal[i], replayed.faults[i]) == (legal, fault), line
    if not WITHOUT_JIT:
        seen = Counter(fault for _, _, fault in records)
        assert seen.keys() >= {*FAULTS.values(), ILLEGAL_SETUP} - (
            {fast.ILLEGAL_SUPERKO} if ko_rule == "simple" else set()
        )
        assert sum(legal for _, legal, _ in records) > 5_000


KO = ((0, (0, 0), 2), (0, (0, 2), 2), (0, (1, 0), 1), (0, (1, 1), 2))  # Black takes at (0, 1)
CYCLE: tuple[tuple[Point | None, int], ...] = (((0, 1), 1), (None, 2), (None, 1), ((0, 0), 2))
POCKET = ((0, (0, 2), 1), (0, (1, 0), 1), (0, (1, 1), 1))  # White dies with two stones at (0, 0), (0, 1)
IN: tuple[Point, int] = (0, 0), 2
DIE: tuple[Point, int] = (0, 1), 2


@pytest.mark.parametrize(
    ("setup", "moves", "illegal_under"),
    [
        pytest.param(KO, CYCLE, {"positional", "situational"}, id="ko retaken after two passes"),
        pytest.param(KO, (*CYCLE[:2], CYCLE[3]), {"positional", "situational"}, id="the passer retakes"),
        pytest.param(POCKET, (IN, (None, 1), DIE), {"positional"}, id="the other side is to move"),
        pytest.param(
            POCKET, ((None, 1), IN, (None, 1), DIE), {"positional", "situational"}, id="the same side is to move"
        ),
        pytest.param(POCKET, (IN, DIE), {"positional", "spight"}, id="no pass in between"),
        pytest.param(POCKET, ((None, 2), IN, DIE), {"positional", "situational", "spight"}, id="after a pass"),
    ],
)
def test_superko(
    setup: tuple[tuple[int, Point, int], ...], moves: tuple[tuple[Point | None, int], ...], illegal_under: set[str]
) -> None:
    """The last move brings an earlier board back: what each rule says."""
    lines = [Line(3, 3, moves, setup, KO_RULES[rule]) for rule in KO_RULES]
    replayed = replay(games_of(lines))
    expected = [fast.ILLEGAL_SUPERKO if rule in illegal_under else fast.LEGAL for rule in KO_RULES]
    assert replayed.faults.tolist() == expected
    assert replayed.legal.tolist() == [len(moves) - (fault != fast.LEGAL) for fault in expected]


def test_setup_begins_a_new_list_of_boards() -> None:
    """Under superko a board from before the last setup stones may come again."""
    moves = (IN, (None, 1), DIE)
    fresh = tuple((1, point, 1) for point in ((0, 2), (1, 0), (1, 1)))
    games = games_of([Line(3, 3, moves, POCKET + more, KO_POSITIONAL) for more in ((), fresh)])
    assert replay(games).faults.tolist() == [fast.ILLEGAL_SUPERKO, fast.LEGAL]


def test_empty_input_and_games_without_moves() -> None:
    assert len(replay(games_of([])).legal) == 0
    assert len(game_keys(games_of([]), np.zeros(0, dtype=np.int64))) == 0
    lines = [Line(9, 9, (), ko_rule=rule) for rule in KO_RULES.values()]
    replayed = replay(games_of(lines))
    assert replayed.legal.tolist() == replayed.faults.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("point", [(0, 9), (9, 0), (-1, 3)])
def test_move_off_the_board(point: Point) -> None:
    """It ends the game there, whatever comes after."""
    line = Line(9, 9, (((0, 0), 1), (None, 2), (point, 1), ((0, 1), 2)))
    replayed = replay(games_of([line, replace(line, moves=line.moves[:2])]))
    assert replayed.legal.tolist() == [2, 2]
    assert replayed.faults.tolist() == [fast.ILLEGAL_OFF_BOARD, fast.LEGAL]


@pytest.mark.parametrize("last", [0, 1, 2])
def test_setup_without_liberties(last: int) -> None:
    """Found at its ply, also where it stands after the last move."""
    moves: tuple[tuple[Point | None, int], ...] = (((1, 1), 1), ((0, 1), 2))
    line = Line(2, 2, moves, ((last, (1, 0), 2), (last, (0, 1), 2), (last, (0, 0), 1)))
    replayed = replay(games_of([line]))
    assert (replayed.legal.tolist(), replayed.faults.tolist()) == ([last], [ILLEGAL_SETUP])


@pytest.mark.skipif(WITHOUT_JIT, reason="tens of thousands of moves")
@pytest.mark.parametrize("ko_rule", KO_RULES)
def test_longest_records_take_no_time(ko_rule: str) -> None:
    """65,535 passes, and as many setups, under every rule: nothing is done over for every one of them."""
    moves: tuple[tuple[Point | None, int], ...] = ((None, 1), (None, 2)) * 32_767
    setup = tuple((ply, (ply % 3, 0), 1 + ply % 2) for ply in range(len(moves)))
    games = games_of([Line(19, 19, moves, stones, KO_RULES[ko_rule]) for stones in ((), setup)])
    replay(games_of([Line(19, 19, moves[:2])]))
    start = time.perf_counter()
    assert replay(games).legal.tolist() == [len(moves)] * 2
    assert time.perf_counter() - start < 2


def variants(
    moves: NDArray[np.integer[Any]],
    colours: NDArray[np.integer[Any]],
    trials: Sequence[tuple[int, int, int]],
    size: tuple[int, int],
    ko_rule: int,
    suicide: bool,
) -> Games:
    """Return a game for each trial (ply, point, colour): the moves before ``ply`` and then that one."""
    count = len(trials)
    return Games(
        rows=np.full(count, size[0], dtype=np.uint8),
        cols=np.full(count, size[1], dtype=np.uint8),
        ko_rule=np.full(count, ko_rule, dtype=np.int8),
        suicide=np.full(count, suicide),
        move_start=np.cumsum([0] + [ply + 1 for ply, _, _ in trials], dtype=np.int64),
        moves=np.concatenate([np.append(moves[:ply], point) for ply, point, _ in trials]).astype(np.uint16),
        colours=np.concatenate([np.append(colours[:ply], colour) for ply, _, colour in trials]).astype(np.int8),
        setup_start=np.zeros(count + 1, dtype=np.int64),
        setup_plies=np.zeros(0, dtype=np.uint16),
        setup_points=np.zeros(0, dtype=np.uint16),
        setup_colours=np.zeros(0, dtype=np.int8),
        terms=plain_terms(count),
    )


@pytest.mark.skipif(WITHOUT_JIT or not VECTORS.exists(), reason="KataGo's answers are not there, or it would take long")
@pytest.mark.parametrize(
    ("view", "ko_rule", "suicide"),
    [
        ("tt", KO_POSITIONAL, True),
        ("nz", KO_SITUATIONAL, True),
        ("aga", KO_SITUATIONAL, False),
        ("spight", KO_SPIGHT, True),
        ("cn", KO_SIMPLE, False),
    ],
)
def test_superko_bans_are_katagos(view: str, ko_rule: int, suicide: bool) -> None:
    """Every empty point of every position that is legal so far: KataGo's ban and legality are ours."""
    data = np.load(VECTORS)
    banned = np.unpackbits(data[f"{view}_superko"], axis=-1)
    legal = np.unpackbits(data[f"{view}_legal"], axis=-1)
    stones = np.unpackbits(data[f"{view}_stones"], axis=-1).any(axis=1)
    next_player, presumed = data[f"{view}_next_player"], data[f"{view}_presumed_player"]
    compared = bans = 0
    for game in range(len(data["game_name"])):
        rows, cols = int(data["board_ysize"][game]), int(data["board_xsize"][game])
        first, last = data["move_offsets"][game : game + 2]
        frame, colours = data["move_pos"][first:last].astype(np.int64), data["move_color"][first:last]
        moves = np.where(frame == 361, rows * cols, frame // 19 * cols + frame % 19)
        sound = int(
            replay(variants(moves, colours, [(len(moves), rows * cols, 1)], (rows, cols), ko_rule, suicide)).legal[0]
        )
        begin, end = data[f"{view}_pos_offsets"][game : game + 2]
        plies = [ply for ply in range(min(sound + 1, end - begin)) if next_player[begin + ply] == presumed[begin + ply]]
        trials = [
            (ply, row * cols + col, int(presumed[begin + ply]))
            for ply in plies
            for row in range(rows)
            for col in range(cols)
            if not stones[begin + ply, 19 * row + col]
        ]
        faults = replay(variants(moves, colours, trials, (rows, cols), ko_rule, suicide)).faults
        for (ply, point, _), fault in zip(trials, faults.tolist(), strict=True):
            at = begin + ply, 19 * (point // cols) + point % cols
            assert (fault == fast.ILLEGAL_SUPERKO) == bool(banned[at]), (data["game_name"][game], ply, point)
            assert (fault == fast.LEGAL) == bool(legal[at]), (data["game_name"][game], ply, point)
        compared += len(trials)
        bans += faults.tolist().count(fast.ILLEGAL_SUPERKO)
    assert compared > 5_000
    if suicide:  # without it these games are illegal before their first ban
        assert bans == banned.sum() > 0


def keys_of(lines: Sequence[Line], plies: Sequence[int] | None = None) -> list[int]:
    """Return the game keys of whole games, or of their first ``plies`` moves."""
    counted = [len(line.moves) for line in lines] if plies is None else plies
    keys: list[int] = game_keys(games_of(lines), np.array(counted, dtype=np.int64)).tolist()
    return keys


@pytest.mark.parametrize(("rows", "cols"), [(1, 4), (5, 5), (5, 9), (9, 9), (19, 19)])
def test_game_key_is_that_of_all_images(rows: int, cols: int) -> None:
    rng = Random(f"game keys {rows}x{cols}")
    line = replace(random_line(rng, rows, cols, 30), setup=((0, (0, 1), 1), (0, (0, 3), 2), (4, (0, 0), 0)))
    assert len(set(keys_of([turned(line, turn) for turn in range(symmetry.count(rows, cols))]))) == 1
    mirrored = replace(line, moves=(*line.moves[:-1], ((0, 2), 1)))
    assert keys_of([mirrored]) != keys_of([line])


def test_game_key_is_of_the_game_alone() -> None:
    """The rules, the order of setup stones, and clearing points of the empty board make no other game."""
    line = Line(5, 5, (((2, 2), 1), ((1, 3), 2)), ((0, (0, 1), 1), (0, (3, 3), 2), (0, (4, 0), 1), (1, (0, 1), 0)))
    setup = line.setup
    same = [
        line,
        replace(line, ko_rule=KO_SPIGHT, suicide=False),
        replace(line, setup=(setup[2], setup[0], setup[1], setup[3])),
        replace(line, setup=((0, (2, 4), 0), *setup)),
    ]
    assert len(set(keys_of(same))) == 1
    other = [
        line,
        replace(line, rows=6),
        replace(line, cols=6),
        replace(line, moves=line.moves[:1]),
        replace(line, moves=(*line.moves, (None, 1))),
        replace(line, moves=(((2, 2), 2), ((1, 3), 2))),
        replace(line, moves=(((2, 2), 1), ((1, 2), 2))),
        replace(line, moves=line.moves[::-1]),
        replace(line, setup=setup[:3]),
        replace(line, setup=setup[1:]),
        replace(line, setup=((0, (0, 1), 2), *setup[1:])),
        replace(line, setup=(*setup[:3], (2, (0, 1), 0))),
        replace(line, setup=(*setup[:3], (1, (0, 1), 2))),
    ]
    assert len(set(keys_of(other))) == len(other)


def test_setup_stones_are_no_moves() -> None:
    """A handicap given as setup stones and one played as moves are two games."""
    points: list[Point] = [(2, 6), (6, 2)]
    placed = Line(9, 9, (((4, 4), 2),), tuple((0, point, 1) for point in points))
    played = Line(9, 9, (*((point, 1) for point in points), ((4, 4), 2)))
    assert len(set(keys_of([placed, played]))) == 2


def test_game_key_of_the_first_moves() -> None:
    """Games that begin alike have one key up to there; setup after the last counted move counts."""
    line = random_line(Random("prefix"), 9, 9, 40)
    longer = replace(line, moves=(*line.moves, ((0, 0), 1)))
    twins = [turned(longer, 5), replace(line, moves=line.moves[:20])]
    assert len(set(keys_of([line, *twins], [20, 20, 20]))) == 1
    assert len(set(keys_of([line] * 41, range(41)))) == 41
    later = replace(line, setup=((21, (8, 8), 1),))
    assert keys_of([later], [20]) == keys_of([line], [20])
    assert keys_of([later], [21]) != keys_of([line], [21])


def test_game_keys_do_not_collide() -> None:
    """All games of two moves on 5x5, either colour: as many keys as games up to the symmetries."""
    points: list[Point | None] = [None, *((row, col) for row in range(5) for col in range(5))]
    lines = [
        Line(5, 5, ((one, first), (two, second)))
        for one in points
        for two in points
        for first in (1, 2)
        for second in (1, 2)
    ]
    expected = [min(str(turned(line, turn).moves) for turn in range(8)) for line in lines]
    keys = keys_of(lines)
    assert len(set(keys)) == len(set(expected)) == len(set(zip(keys, expected, strict=True)))


@pytest.mark.parametrize(
    ("rows", "cols", "frame"),
    [
        (1, 1, (1, 1)),
        (3, 3, (3, 3)),
        (2, 3, (5, 4)),
        (5, 9, (9, 9)),
        (9, 5, (13, 7)),
        (9, 9, (19, 19)),
        (19, 19, (19, 19)),
    ],
)
def test_trace(rows: int, cols: int, frame: tuple[int, int]) -> None:
    """Stones, ko, side, liberties and beginning of every position, on a frame at least as large as the board."""
    rng = Random(f"trace {rows}x{cols}")
    lines = [random_line(rng, rows, cols, min(2 * rows * cols, 40 if WITHOUT_JIT else 250)) for _ in range(4)]
    lines.append(with_setup(rng, rows, cols))
    games = games_of(lines)
    order = np.array([4, 2, 0, 1], dtype=np.int64)
    plies = np.array([len(line.moves) for line in lines], dtype=np.int64)
    plies[2] //= 2
    traced = trace(games, order, plies, frame, liberties=True)
    width, at = frame[1], 0
    assert np.unpackbits(traced.mask)[: frame[0] * width].reshape(frame).sum() == rows * cols
    for game in order.tolist():
        start = at
        for ply, seen in enumerate(positions(lines[game])[: plies[game]]):
            board = SlowBoard(rows, cols)
            board.stones = dict(seen.boards[-1])
            expected = np.zeros((2, *frame), dtype=np.uint8)
            liberties = np.zeros(frame, dtype=np.uint8)
            for chain in board.chains():
                for stone in chain.stones:
                    expected[chain.colour - 1][stone] = 1
                    liberties[stone] = min(len(chain.liberties), 255)
            assert np.array_equal(traced.stones[at], np.packbits(expected.reshape(2, -1), axis=-1))
            assert np.array_equal(traced.liberties[at], liberties.ravel())
            assert traced.ko[at] == (-1 if seen.ko is None else seen.ko[0] * width + seen.ko[1])
            assert traced.to_play[at] == seen.to_play
            begins = [when for when, _, _ in lines[game].setup if when <= ply]
            assert traced.begin[at] == start + max(begins, default=0)
            at += 1
    assert at == len(traced.stones)
    bare = trace(games, order, plies, frame)
    assert bare.liberties.shape == (0, frame[0] * width)
    assert np.array_equal(bare.stones, traced.stones)


def with_setup(rng: Random, rows: int, cols: int) -> Line:
    """Return a game with setup stones at its beginning and in the middle, between passes and moves."""
    points = [(row, col) for row in range(rows) for col in range(cols)]
    some = rng.sample(points, len(points) // 3)
    setup = tuple((ply, point, paint) for ply, paint in ((0, 1), (2, 0), (3, 2)) for point in some)
    return Line(rows, cols, ((None, 1), (None, 2), (None, 2), (None, 1), (None, 1)), setup)


def test_trace_counts_liberties_up_to_255() -> None:
    """A comb of 25 rows: more liberties than a byte can count."""
    comb = [(row, col) for row in range(25) for col in range(25) if row % 3 == 1 or (col == 0 and row > 0)]
    line = Line(25, 25, ((None, 2),), tuple((0, point, 1) for point in comb))
    board = SlowBoard(25, 25)
    board.setup((point, 1) for point in comb)
    (chain,) = board.chains()
    assert len(chain.liberties) > 255
    traced = trace(games_of([line]), np.array([0]), np.array([1]), (25, 25), liberties=True)
    assert set(traced.liberties[0].tolist()) == {0, 255}


@pytest.mark.parametrize(("rules", "fault"), [("aga", ILLEGAL_SUPERKO), ("aga-button", LEGAL)])
def test_taking_the_button_lifts_bans(rules: str, fault: int) -> None:
    """On 1x2 Black retakes after two passes: the board and the side to move are those after move 1."""
    moves: tuple[tuple[Point | None, int], ...] = (((0, 0), 1), ((0, 1), 2), (None, 1), (None, 2), ((0, 0), 1))
    line = Line(1, 2, moves, (), KO_SITUATIONAL, suicide=False, rules=RULE_SETS[rules])
    replayed = replay(games_of([line]))
    assert (replayed.legal.tolist(), replayed.faults.tolist()) == ([5 if fault == LEGAL else 4], [fault])
