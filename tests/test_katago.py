"""The history of KataGo's inputs, against KataGo's own rows and against the slow history."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import pytest
from katago_views import (
    FILES,
    KO_CODES,
    VIEWS,
    Arrays,
    kata_options,
    needs_vectors,
    rules_of,
    stored_game,
    vectors,
)
from numpy.typing import NDArray
from random_games import Line, games_of, turned
from slow_board import BLACK, WHITE, Point, SlowBoard, draw
from slow_katago import SlowHistory, SlowOptions, SlowRules

from pipeline import symmetry
from pipeline.katago import (
    COUNT_SETUP,
    KATAGO_ROWS,
    KataTrace,
    trace_katago,
)
from pipeline.katago_history import BUTTON_LEFT, FINISHED, NO_RESULT, PAST_END, SCORED


def bits(packed: NDArray[np.uint8], count: int) -> NDArray[np.uint8]:
    """Return planes of 0 and 1."""
    return np.unpackbits(packed, axis=-1, count=count)


def by_mover(planes: NDArray[np.uint8], to_play: NDArray[np.int8]) -> NDArray[np.uint8]:
    """Turn planes [T, 2, B] of Black and White into those of own and opp."""
    return np.where((to_play == WHITE)[:, None, None], planes[:, ::-1], planes)


def recent_planes(trace: KataTrace, area: int) -> NDArray[np.uint8]:
    """Return planes 9-13, packed, drawn from ``recent``."""
    dense = np.zeros((len(trace.recent), 5, area), dtype=np.uint8)
    row, back = np.nonzero((trace.recent >= 0) & (trace.recent < area))
    dense[row, back, trace.recent[row, back]] = 1
    return np.packbits(dense, axis=-1)


# ---- KataGo's own rows


def stored_leads(expected: Arrays, plies: int) -> NDArray[np.int16]:
    """Return Black's area less White's by the stored planes 18 and 19; 0 in rows that are not stored."""
    own, opp = (bits(expected["spatial"][:, plane], 361).sum(axis=-1, dtype=np.int64) for plane in (18, 19))
    leads = np.zeros(plies, dtype=np.int16)
    leads[: len(own)] = np.where(expected["next_player"] == BLACK, own - opp, opp - own)
    return leads


def given_arrays(trace: KataTrace, rows: int) -> Arrays:
    """Return what a trace says under the names of the vectors, in their form."""
    trace = KataTrace(
        *(part[:rows] if name not in ("mask", "accepted") else part for name, part in trace._asdict().items())
    )
    superko = bits(trace.banned, 361).copy()
    banned = np.flatnonzero(trace.ko >= 0)
    superko[banned, trace.ko[banned]] = 0
    planes = {
        0: np.broadcast_to(trace.mask, trace.banned.shape),
        6: trace.banned,
        7: trace.blocked,
        8: 0 * trace.banned,
    }
    planes |= {1 + side: plane for side, plane in enumerate(np.moveaxis(by_mover(trace.stones, trace.to_play), 1, 0))}
    planes |= {9 + back: plane for back, plane in enumerate(np.moveaxis(recent_planes(trace, 361), 1, 0))}
    planes |= {20 + side: plane for side, plane in enumerate(np.moveaxis(by_mover(trace.second, trace.to_play), 1, 0))}
    return {
        "next_player": trace.to_play,
        "presumed_player": trace.presumed,
        "flags": trace.flags,
        "encore_phase": trace.phase,
        "captured_black": trace.lost[:, 0],
        "captured_white": trace.lost[:, 1],
        "approx_valid_turns": trace.valid,
        "white_bonus": trace.bonus,
        "white_handicap_bonus": trace.handicap_bonus,
        "ko_point": trace.ko,
        "stones": trace.stones,
        "legal": trace.legal,
        "superko": np.packbits(superko, axis=-1),
        "ko_recap_blocked": trace.blocked,
        "second_encore_stones": trace.second,
        "global": trace.globals.view(np.uint32),
        **{f"plane {number}": plane for number, plane in planes.items()},
    }


@needs_vectors
@pytest.mark.parametrize(("name", "view"), [(name, view) for name, views in FILES.items() for view in views.split()])
def test_katago_rows(name: str, view: str) -> None:
    data = vectors(name)
    rules, options = VIEWS[view]
    for game in range(len(data["game_name"])):
        games = stored_game(data, view, game, rules)
        start, stop = data[f"{view}_pos_offsets"][game : game + 2]
        expected = {
            key.removeprefix(f"{view}_"): rows[start:stop]
            for key, rows in data.items()
            if key.startswith(f"{view}_") and len(rows) == data[f"{view}_pos_offsets"][-1]
        }
        plies = np.diff(games.move_start)
        trace = trace_katago(
            games,
            np.zeros(1, dtype=np.int64),
            plies,
            (19, 19),
            kata_options(rules, options),
            leads=stored_leads(expected, int(plies[0])) if options.hacks else None,
            legal=True,
        )
        assert trace.accepted[0] == stop - start, f"game {game}"
        expected |= {f"plane {number}": expected["spatial"][:, number] for number in range(22)}
        expected["global"] = expected["global"].view(np.uint32)
        for key, given in given_arrays(trace, stop - start).items():
            wrong = np.flatnonzero((given != expected[key]).reshape(len(given), -1).any(axis=1))
            assert not len(wrong), f"{key} of game {game}, rows {wrong[:5]}"


# ---- the slow history


@dataclass(frozen=True, slots=True)
class Made:
    """A random game under random rules; the last move may be one that cannot be made."""

    line: Line
    rules: SlowRules
    komi: float
    handicap: int | None
    leads: tuple[int, ...]


def random_rules(rng: Random, friendly: bool) -> SlowRules:
    return SlowRules(
        rng.choice(list(KO_CODES)), rng.random() < 0.5, rng.choice(["none", "seki", "all"]), rng.random() < 0.5,
        rng.random() < 0.25, rng.choice(["0", "N-1", "N"]), friendly,
    )  # fmt: skip


def line_of(
    size: tuple[int, int],
    moves: Sequence[tuple[Point | None, int]],
    setup: Sequence[tuple[int, Point, int]],
    rules: SlowRules,
    komi: float,
) -> Line:
    """Return a game under such rules."""
    return Line(*size, tuple(moves), tuple(setup), KO_CODES[rules.ko], rules.suicide, rules_of(rules), komi)


def new_slow(made: Made, options: SlowOptions) -> SlowHistory:
    return SlowHistory(made.line.rows, made.line.cols, made.rules, made.komi, made.handicap, options)


def setup_at(made: Made, ply: int) -> list[tuple[Point, int]]:
    return [(point, colour) for when, point, colour in made.line.setup if when == ply]


def random_setup(rng: Random, board: SlowBoard) -> list[tuple[Point, int]]:
    """Return stones put up or taken away that leave every chain a liberty."""
    while True:
        changes = [(point, rng.choice((0, 1, 1, 2))) for point in sorted(board.neighbours) if rng.random() < 0.3]
        if board.copy().setup(changes):
            return changes


def random_made(rng: Random, size: tuple[int, int], length: int, options: SlowOptions, friendly: bool = False) -> Made:
    """Return a random game: takes kos, passes in runs, plays out of turn, sets up stones."""
    rules = random_rules(rng, friendly)
    komi = rng.choice((-3.5, 0.0, 0.5, 3.75, 6.0, 7.5, 60.0))
    handicap = rng.choice((None, None, 0, 1, 3))
    slow = SlowHistory(*size, rules, komi, handicap, options)
    moves: list[tuple[Point | None, int]] = []
    setup: list[tuple[int, Point, int]] = []
    colour, passes = rng.choice((BLACK, WHITE)), rng.choice((0.05, 0.1, 0.3))
    for ply in range(length):
        if rng.random() < (0.3 if ply == 0 else 0.01):
            changes = random_setup(rng, slow.board)
            setup.extend((ply, point, side) for point, side in changes)
            slow.setup(changes, colour)
        elif ply == 0:
            slow.setup([], colour)
        points = [point for point in slow.board.neighbours if slow.accepts(point, colour)]
        lifting = [point for point in points if slow.lifts(point, colour) is not None or point in slow.banned]
        point = rng.choice(lifting if lifting and rng.random() < 0.4 else points) if points else None
        if rng.random() < (passes if not moves or moves[-1][0] is not None else 0.5):
            point = None
        if rng.random() < 0.01:
            point = rng.choice([*slow.board.stones, (size[0], 0)])
        moves.append((point, colour))
        if not slow.accepts(point, colour):
            break
        slow.play(point, colour)
        colour = 3 - colour if rng.random() < 0.97 else colour
    moves.append((None, slow.presumed))
    leads = tuple(rng.randint(-4, 4) for _ in moves)
    return Made(line_of(size, moves, setup, rules, komi), rules, komi, handicap, leads)


def trace_made(games: list[Made], frame: tuple[int, int], options: SlowOptions) -> KataTrace:
    """Trace games of one size together."""
    batch = games_of([made.line for made in games])
    return trace_katago(
        batch,
        np.arange(len(games), dtype=np.int64),
        np.diff(batch.move_start),
        frame,
        kata_options(games[0].rules, options),
        np.array([COUNT_SETUP if made.handicap is None else made.handicap for made in games], dtype=np.int16),
        np.array([lead for made in games for lead in made.leads], dtype=np.int16) if options.hacks else None,
        legal=True,
    )


def row_of(trace: KataTrace, at: int, frame: tuple[int, int]) -> dict[str, Any]:
    """Return one position of a trace in the terms of the slow history."""

    def points(plane: NDArray[np.uint8]) -> set[Point]:
        return {divmod(int(index), frame[1]) for index in np.flatnonzero(bits(plane, frame[0] * frame[1]))}

    ko, area = int(trace.ko[at]), frame[0] * frame[1]
    return {
        "stones": [points(trace.stones[at, side]) for side in range(2)],
        "second": [points(trace.second[at, side]) for side in range(2)],
        "banned": points(trace.banned[at]),
        "blocked": points(trace.blocked[at]),
        "legal": points(trace.legal[at]),
        "ko": divmod(ko, frame[1]) if ko >= 0 else None,
        "recent": ["pass" if move == area else divmod(int(move), frame[1]) for move in trace.recent[at] if move >= 0],
        "turns": int(trace.turns[at]),
        "numbers": [int(part[at]) for part in (trace.to_play, trace.presumed, trace.flags, trace.phase, trace.valid)],
        "lost": trace.lost[at].tolist(),
        "bonus": [float(trace.bonus[at]), float(trace.handicap_bonus[at])],
        "globals": trace.globals[at].tolist(),
    }


def slow_row(slow: SlowHistory, colour: int, black_lead: int) -> dict[str, Any]:
    """Return the same from the slow history."""
    lead = black_lead if colour == BLACK else -black_lead
    now, second = dict(slow.board.frozen()), dict(slow.second)
    recent = slow.recent(colour, lead)
    flags = slow.flags | (BUTTON_LEFT if slow.button else 0)
    return {
        "stones": [{point for point, side in now.items() if side == one} for one in (BLACK, WHITE)],
        "second": [{point for point, side in second.items() if side == one} for one in (BLACK, WHITE)],
        "banned": slow.banned | ({slow.board.ko} if slow.board.ko else set()),
        "blocked": slow.blocked,
        "legal": {point for point in slow.board.neighbours if slow.legal(point, colour)},
        "ko": slow.board.ko,
        "recent": recent,
        "turns": len(recent),
        "numbers": [colour, slow.presumed, flags, slow.phase, slow.valid],
        "lost": [slow.lost[BLACK], slow.lost[WHITE]],
        "bonus": [slow.bonus, slow.handicap()],
        "globals": [float(value) for value in slow.globals(colour, lead)],
    }


def compare(games: list[Made], frame: tuple[int, int], options: SlowOptions, seen: Counter[str]) -> None:
    """Compare a trace with the slow history, position by position; count what was met."""
    trace = trace_made(games, frame, options)
    start = 0
    for number, made in enumerate(games):
        slow = new_slow(made, options)
        for ply, (point, colour) in enumerate(made.line.moves):
            if ply == 0 or setup_at(made, ply):
                slow.setup(setup_at(made, ply), colour)
            expected = slow_row(slow, colour, made.leads[ply])
            assert row_of(trace, start + ply, frame) == expected, f"{made}, ply {ply}\n{slow.board.text()}"
            seen.update(key for key in ("banned", "blocked", "ko") if expected[key])
            seen.update(
                {f"flags {expected['numbers'][2]}", f"phase {expected['numbers'][3]}", f"n {expected['turns']}"}
            )
            seen["hidden"] += slow.hidden(colour, made.leads[ply] if colour == BLACK else -made.leads[ply])
            if not slow.accepts(point, colour):
                seen["refused"] += 1
                assert trace.accepted[number] == ply + 1
                break
            for_ko = slow.play(point, colour)
            seen["for ko"] += for_ko
            assert trace.for_ko[start + ply] == for_ko
        else:
            assert trace.accepted[number] == len(made.line.moves)
        start += len(made.line.moves)


OPTIONS = (
    SlowOptions(),
    SlowOptions(draw_for_white=0.2, hacks=True, early_black=True),
    SlowOptions(conservative=True, max_history=2, advantage=0.7),
    SlowOptions(prevent_encore=True),
)


def test_random_games_equal_the_slow_history() -> None:
    rng = Random(8)
    seen: Counter[str] = Counter()
    for size, count, length in (
        ((1, 1), 2, 8),
        ((1, 2), 6, 30),
        ((2, 2), 12, 50),
        ((2, 3), 14, 60),
        ((3, 3), 6, 60),
        ((3, 4), 3, 60),
    ):
        for number, options in enumerate(OPTIONS):
            friendly = rng.random() < 0.5  # one parameter for the whole batch
            games = [random_made(rng, size, length, options, friendly) for _ in range(count)]
            compare(games, size if number % 2 else (4, 5), options, seen)
    for flags in (FINISHED | NO_RESULT, FINISHED | SCORED, PAST_END, BUTTON_LEFT, BUTTON_LEFT | FINISHED | NO_RESULT):
        assert seen[f"flags {flags}"], flags
    for what in ("banned", "blocked", "ko", "refused", "for ko", "hidden", "phase 1", "phase 2", "n 0", "n 5"):
        assert seen[what] > 3, what


def test_planes_turn_with_the_game() -> None:
    rng = Random(5)
    area = 20
    for _ in range(12):
        made = random_made(rng, (3, 4), 50, SlowOptions())
        plain = trace_made([made], (4, 5), SlowOptions())
        for turn in range(1, 8):
            image = Made(turned(made.line, turn), made.rules, made.komi, made.handicap, made.leads)
            frame = (5, 4) if turn & 4 else (4, 5)
            other = trace_made([image], frame, SlowOptions())
            np.testing.assert_array_equal(other.globals, plain.globals)
            np.testing.assert_array_equal(other.turns, plain.turns)
            for name in ("banned", "blocked", "legal"):
                here, there = bits(getattr(plain, name), area), bits(getattr(other, name), area)
                for row in range(3):
                    for col in range(4):
                        r, c = symmetry.image_point(row, col, 3, 4, turn)
                        np.testing.assert_array_equal(here[:, row * 5 + col], there[:, r * frame[1] + c], err_msg=name)


# ---- worked examples


def play_out(text: str, moves: list[tuple[Point | None, int]], rules: SlowRules, **options: Any) -> KataTrace:
    """Trace a game from a drawn board; a last pass shows the final position."""
    lines = text.split("\n")
    rows, cols = len(lines), len(lines[0].split())
    setup = tuple((0, point, colour) for point, colour in draw(text).items())
    last = (None, 3 - moves[-1][1])
    line = line_of((rows, cols), (*moves, last), setup, rules, 7.5)
    return trace_made([Made(line, rules, 7.5, None, ())], (rows, cols), SlowOptions(**options))


KO = """. X O . .
X O . O .
. X O . .
. . . . ."""


def test_superko_bans_where_simple_ko_has_lapsed() -> None:
    take: list[tuple[Point | None, int]] = [((1, 2), BLACK), (None, WHITE), (None, BLACK)]
    positional = play_out(KO, take, SlowRules("positional"))
    assert [np.flatnonzero(bits(row, 20)).tolist() for row in positional.banned] == [[], [6], [], [6]]
    assert positional.ko.tolist() == [-1, 6, -1, -1]
    # Passes lift the ban under Spight's rule, and there is none under simple ko once the ko point is gone.
    for rule in ("spight", "simple"):
        assert [bool(row.any()) for row in play_out(KO, take, SlowRules(rule)).banned] == [False, True, False, False]


def test_suicide_on_a_point_never_played_can_be_banned() -> None:
    moves: list[tuple[Point | None, int]] = [((0, 0), BLACK), (None, WHITE)]
    for rule, banned in (("positional", True), ("situational", False), ("spight", False)):
        trace = play_out(". .", moves, SlowRules(rule, suicide=True))  # both stones go: the empty board again
        assert [bool(row[0]) for row in trace.banned] == [False, False, banned]
        assert bits(trace.legal[2], 3).tolist() == [0, not banned, 1]


def test_a_pass_with_other_blocks_is_not_a_repeated_one() -> None:
    begin: list[tuple[Point | None, int]] = [(None, BLACK), (None, WHITE), ((1, 2), BLACK), (None, WHITE)]
    lifted = play_out(KO, [*begin, ((1, 1), WHITE), (None, WHITE)], SlowRules(territory=True))
    assert lifted.for_ko.tolist() == [False, False, False, False, True, False, False]
    assert lifted.phase.tolist() == [0, 0, 1, 1, 1, 1, 1]
    same = play_out(KO, [*begin, ((3, 4), BLACK), (None, WHITE), (None, BLACK)], SlowRules(territory=True))
    assert same.phase.tolist() == [0, 0, 1, 1, 1, 1, 1, 2]


def test_a_pass_is_shown_unless_a_friendly_one_may_follow() -> None:
    moves: list[tuple[Point | None, int]] = [((3, 4), BLACK), ((3, 3), WHITE), (None, BLACK)]
    shown = play_out(KO, moves, SlowRules("positional"))
    assert shown.recent[3].tolist() == [20, 18, 19, -1, -1]
    assert (shown.turns[3], shown.globals[3, :5].tolist(), shown.globals[3, 14]) == (3, [1, 0, 0, 0, 0], 1)
    hidden = play_out(KO, moves, SlowRules("positional", friendly=True))
    assert (hidden.turns[3], hidden.globals[3, :5].tolist(), hidden.globals[3, 14]) == (0, [0] * 5, 0)
    assert hidden.turns[2] == 2


def test_two_moves_of_one_side_hide_what_was_before() -> None:
    moves: list[tuple[Point | None, int]] = [((3, 4), BLACK), ((3, 3), WHITE), ((0, 0), WHITE), ((3, 2), BLACK)]
    trace = play_out(KO, moves, SlowRules())
    assert trace.turns.tolist() == [0, 1, 0, 1, 2]
    assert trace.to_play[2] == WHITE
    assert trace.presumed[2] == BLACK


def test_the_encore_blocks_a_retaken_ko() -> None:
    passes: list[tuple[Point | None, int]] = [(None, BLACK), (None, WHITE)]
    fight: list[tuple[Point | None, int]] = [((1, 2), BLACK), ((1, 1), WHITE), (None, BLACK), ((1, 1), WHITE)]
    trace = play_out(KO, passes + fight, SlowRules(territory=True))
    assert trace.phase.tolist() == [0, 0, 1, 1, 1, 1, 1]
    assert [np.flatnonzero(bits(row, 20)).tolist() for row in trace.blocked] == [[], [], [], [7], [], [], [6]]
    assert trace.for_ko.tolist() == [False, False, False, True, False, False, False]
    assert trace.ko.tolist() == [-1] * 7
    # Black has taken this ko from these stones before: with the same stones he may not do so again.
    assert [np.flatnonzero(bits(row, 20)).tolist() for row in trace.banned] == [[]] * 6 + [[7]]


def test_komi_under_territory_scoring_moves_with_every_stone() -> None:
    moves: list[tuple[Point | None, int]] = [((3, 4), BLACK), ((3, 3), WHITE), (None, BLACK)]
    trace = play_out(KO, moves, SlowRules(territory=True))
    assert trace.bonus.tolist() == [-1, 0, -1, -1]  # 3 black stones, 4 white ones were set up
    assert trace.globals[:, 5].tolist() == [np.float32(value) / np.float32(20) for value in (-6.5, 7.5, -6.5, 6.5)]


def test_the_parity_wave_of_the_text() -> None:
    line = line_of((19, 19), ((None, BLACK), (None, WHITE)), (), SlowRules(), 7.5)
    trace = trace_made([Made(line, SlowRules(), 7.5, None, ())], (19, 19), SlowOptions())
    assert trace.globals[:, 18].tolist() == [-0.5, 0.5]


def test_passing_hacks_need_leads() -> None:
    batch = games_of([Line(2, 2, ((None, BLACK),))])
    hacks = KATAGO_ROWS._replace(passing_hacks=True)
    with pytest.raises(ValueError, match="lead on the board in 1 positions, not in 0"):
        trace_katago(batch, np.zeros(1, dtype=np.int64), np.diff(batch.move_start), (2, 2), hacks)


def test_a_ko_taken_again_and_again_is_remembered_once() -> None:
    black, white = ((1, 2), BLACK), ((1, 1), WHITE)
    cycle: list[tuple[Point | None, int]] = [black, white, white, black]  # take, lift the block, take, lift
    trace = play_out(KO, [(None, BLACK), (None, WHITE), *cycle * 500], SlowRules(territory=True))
    assert trace.for_ko.tolist() == [False, False, *[False, True] * 1000, False]
    banned = [np.flatnonzero(bits(row, 20)).tolist() for row in trace.banned]
    # The presumed side is banned where it has taken from the same stones: Black at 7, White at 6, never twice in a row.
    assert banned == [[]] * 5 + [[7], [], [6], []] * 499 + [[7], []]
    # The third time that the stones, the blocks and the side to move are those after the first capture, move 2.
    assert np.flatnonzero(trace.flags == FINISHED | NO_RESULT)[0] == 11
