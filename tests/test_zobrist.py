"""Position keys against keys computed from scratch, their symmetries, histories and collisions."""

import os
from functools import cache
from random import Random

import numpy as np
import pytest
from numpy.typing import NDArray
from random_games import Line, Seen, games_of, plain_terms, positions, random_line, turned
from slow_board import Point, Stones

from pipeline import board as fast
from pipeline import replay as replaying
from pipeline import symmetry, zobrist
from pipeline.games import Games
from pipeline.replay import replay
from pipeline.words import Words, chain_words, mix_words, seed_word

WITHOUT_JIT = os.environ.get("NUMBA_DISABLE_JIT") == "1"
SIZES = [(1, 1), (1, 7), (2, 2), (3, 3), (5, 5), (5, 9), (9, 5), (9, 9), (13, 13), (19, 19), (25, 25), (25, 1)]
STEP = 0xD6E8FEB86659FD93


@cache
def word(family: str, *parts: int) -> int:
    """Return one word of a family as the definition has it."""
    return int(chain_words(seed_word(f"zobrist {family}"), *parts)[0])


def point_word(family: str, kind: int, point: Point, rows: int, cols: int, turn: int) -> int:
    """Return the word of a stone (kind 1, 2) or a ko point (kind 0) on the board turned by ``turn``."""
    row, col = symmetry.image_point(*point, rows, cols, turn)
    return word(family, kind, 25 * row + col)


@cache
def point_words(rows: int, cols: int) -> Words:
    """Return uint64[3, rows, cols, 2, 8]: the word of each kind, point, family and symmetry."""
    turns = [turn % symmetry.count(rows, cols) for turn in range(8)]
    words = [
        point_word(family, kind, (row, col), rows, cols, turn)
        for kind in range(3)
        for row in range(rows)
        for col in range(cols)
        for family in ("choosing", "stored")
        for turn in turns
    ]
    return np.array(words, dtype=np.uint64).reshape(3, rows, cols, 2, 8)


def stone_words(stones: Stones, rows: int, cols: int) -> Words:
    """Return uint64[2, 8]: both families' words of a board's stones under all symmetries."""
    words = point_words(rows, cols)
    total = np.zeros((2, 8), dtype=np.uint64)
    for (row, col), colour in stones:
        total ^= words[colour, row, col]
    return total


def key_from_scratch(seen: Seen, rows: int, cols: int) -> tuple[int, int]:
    """Return the symmetry and the key that the definition gives a position."""
    *earlier, current = (stone_words(stones, rows, cols) for stones in seen.boards)
    sums = np.zeros((2, 8), dtype=np.uint64)
    for words in earlier:
        sums = (sums + words) * np.uint64(STEP)
    for f, family in enumerate(("choosing", "stored")):
        current[f] ^= np.uint64(word(family, 3, rows * 26 + cols))
        if seen.to_play == 2:
            current[f] ^= np.uint64(word(family, 4, 2))
        if seen.ko is not None:
            current[f] ^= point_words(rows, cols)[0, seen.ko[0], seen.ko[1], f]
    choosing, stored = sums + current
    turn = int(np.argmin(choosing[: symmetry.count(rows, cols)]))
    return turn, int(mix_words(stored[turn : turn + 1])[0])


def image_of_seen(seen: Seen, rows: int, cols: int, turn: int) -> Seen:
    """Return a position and its history turned by a symmetry."""

    def image(point: Point) -> Point:
        return symmetry.image_point(*point, rows, cols, turn)

    return Seen(
        tuple(frozenset((image(point), colour) for point, colour in stones) for stones in seen.boards),
        None if seen.ko is None else image(seen.ko),
        seen.to_play,
    )


def plain(seen: Seen) -> tuple[object, ...]:
    """Return a position as a value that has an order."""
    return tuple(tuple(sorted(stones)) for stones in seen.boards), seen.ko or (-1, -1), seen.to_play


def canonical(seen: Seen, rows: int, cols: int) -> tuple[object, ...]:
    """Return what all images of a position and its history have in common, and no other position has."""
    return min(plain(image_of_seen(seen, rows, cols, turn)) for turn in range(symmetry.count(rows, cols)))


def lengths(rows: int, cols: int) -> int:
    """Return how many random moves to make on a board."""
    return min(2 * rows * cols + 20, 60 if WITHOUT_JIT else 400)


@pytest.mark.parametrize(("rows", "cols"), SIZES)
def test_word_table(rows: int, cols: int) -> None:
    """Every word of the table, by its definition; rows of spots off the board are never used and 0."""
    table = zobrist.word_table(rows, cols)
    spots = (len(table) - 2) // 3
    board = fast.new_board(rows, cols)
    expected = np.zeros((3, spots, 16), dtype=np.uint64)
    for row in range(rows):
        for col in range(cols):
            expected[:, fast.spot_at(board, row, col)] = point_words(rows, cols)[:, row, col].reshape(3, 16)
    assert np.array_equal(table[:-2], expected.reshape(-1, 16))
    for f, family in enumerate(("choosing", "stored")):
        assert set(table[-2, 8 * f : 8 * f + 8].tolist()) == {word(family, 3, rows * 26 + cols)}
        assert set(table[-1, 8 * f : 8 * f + 8].tolist()) == {word(family, 4, 2)}


@pytest.mark.parametrize(("rows", "cols"), SIZES)
def test_both_families_after_every_move(rows: int, cols: int) -> None:
    """The words kept move by move are those of the stones alone, under all symmetries."""
    rng = Random(f"families {rows}x{cols}")
    table = zobrist.word_table(rows, cols)
    for game in range(3):
        line = random_line(rng, rows, cols, lengths(rows, cols), turns=game == 2)
        board = fast.new_board(rows, cols)
        keys = np.zeros(zobrist.LANES, dtype=np.uint64)
        for seen, (point, colour) in zip(positions(line), line.moves, strict=True):
            assert np.array_equal(keys.reshape(2, 8), stone_words(seen.boards[-1], rows, cols))
            if point is not None:
                spot = fast.spot_at(board, *point)
                captured = fast.play(board, spot, colour, None)
                replaying._toggle_move(board, table, keys, spot, colour, captured)


@pytest.mark.parametrize("history", [0, 1, 7, 15])
@pytest.mark.parametrize(("rows", "cols"), SIZES)
def test_replay_gives_the_key_from_scratch(rows: int, cols: int, history: int) -> None:
    rng = Random(f"scratch {rows}x{cols} {history}")
    lines = [random_line(rng, rows, cols, lengths(rows, cols), turns=game == 2) for game in range(3)]
    replayed = replay(games_of(lines), history)
    expected = [key_from_scratch(seen, rows, cols) for line in lines for seen in positions(line, history)]
    assert list(zip(replayed.turns.tolist(), replayed.keys.tolist(), strict=True)) == expected


@pytest.mark.parametrize("history", [0, 3])
@pytest.mark.parametrize(("rows", "cols"), [(2, 2), (5, 5), (9, 9), (5, 9), (1, 7), (19, 19)])
def test_images_have_one_key(rows: int, cols: int, history: int) -> None:
    """All images of a game have the same keys, and ``turns`` brings all of them to one orientation."""
    line = random_line(Random(f"images {rows}x{cols}"), rows, cols, min(150, lengths(rows, cols)))
    turns = range(symmetry.count(rows, cols))
    replayed = replay(games_of([turned(line, turn) for turn in turns]), history)
    keys = replayed.keys.reshape(len(turns), -1)
    assert (keys == keys[0]).all()
    seen = positions(line, history)
    by_turn = replayed.turns.reshape(len(turns), -1).T.tolist()
    for position, to_canonical in zip(seen, by_turn, strict=True):
        images = {
            plain(image_of_seen(image_of_seen(position, rows, cols, turn), rows, cols, to_canonical[turn]))
            for turn in turns
        }
        assert len(images) == 1


@pytest.mark.parametrize("history", [0, 1, 2, 7])
@pytest.mark.parametrize(("rows", "cols"), [(1, 5), (2, 2), (2, 3), (3, 3)])
def test_equal_keys_mean_equal_positions(rows: int, cols: int, history: int) -> None:
    """On boards where positions come again and again: keys are equal where boards, side and ko are."""
    rng = Random(f"histories {rows}x{cols} {history}")
    lines = [random_line(rng, rows, cols, 12, passes=0.2, turns=game % 2 == 1) for game in range(300)]
    seen = [canonical(position, rows, cols) for line in lines for position in positions(line, history)]
    keys = replay(games_of(lines), history).keys.tolist()
    assert len(set(zip(keys, seen, strict=True))) == len(set(keys)) == len(set(seen))
    assert len(set(keys)) < 0.9 * len(keys)


def key_hi_from_scratch(seen: Seen, rows: int, cols: int) -> int:
    """Return the upper half that the definition gives a key: the smallest choosing word, mixed."""
    *earlier, current = (stone_words(stones, rows, cols)[0] for stones in seen.boards)
    sums = np.zeros(8, dtype=np.uint64)
    for words in earlier:
        sums = (sums + words) * np.uint64(STEP)
    current ^= np.uint64(word("choosing", 3, rows * 26 + cols))
    if seen.to_play == 2:
        current ^= np.uint64(word("choosing", 4, 2))
    if seen.ko is not None:
        current ^= point_words(rows, cols)[0, seen.ko[0], seen.ko[1], 0]
    least = (sums + current)[: symmetry.count(rows, cols)].min()
    return int(mix_words(np.array([least], dtype=np.uint64))[0])


def symmetric_lines(rng: Random, rows: int, cols: int) -> list[Line]:
    """Return games that stay symmetric for a while: passes, the centre, mirrored moves, setup; and any others."""

    def mirrored(turn: int, length: int) -> Line:
        moves: list[tuple[Point | None, int]] = []
        for point, _ in random_line(rng, rows, cols, length).moves:
            image = None if point is None else symmetry.image_point(*point, rows, cols, turn)
            taken = {place for place, _ in moves if place is not None}
            if point is not None and point != image and not {point, image} & taken:
                moves += [(point, 1), (image, 1)]
        return Line(rows, cols, tuple(moves[:8]))

    lines = [random_line(rng, rows, cols, 8, passes=0.5, turns=True) for _ in range(20)]
    lines += [mirrored(turn, 10) for turn in range(1, symmetry.count(rows, cols)) for _ in range(3)]
    lines += [Line(rows, cols, ((None, 1), *line.moves), ((1, (0, 0), 1),)) for line in lines[:5]]
    games = games_of(lines)
    legal = replay(games).legal
    return [
        Line(rows, cols, line.moves[:length], tuple(stone for stone in line.setup if stone[0] <= length))
        for line, length in zip(lines, legal.tolist(), strict=True)
    ]


@pytest.mark.parametrize("history", [0, 1, 7])
@pytest.mark.parametrize(("rows", "cols"), [(1, 1), (1, 5), (2, 2), (3, 3), (5, 5), (3, 5), (4, 4)])
def test_symmetries_that_leave_a_position_as_it_is(rows: int, cols: int, history: int) -> None:
    """``fixed``: exactly those under which all boards of the key, and the ko point, stay where they are."""
    lines = symmetric_lines(Random(f"fixed {rows}x{cols} {history}"), rows, cols)
    replayed = replay(games_of(lines), history)
    seen = [one for line in lines for one in positions(line, history)]
    turns = range(symmetry.count(rows, cols))
    expected = [
        sum(1 << turn for turn in turns if plain(image_of_seen(one, rows, cols, turn)) == plain(one)) for one in seen
    ]
    assert replayed.fixed.tolist() == expected
    if min(rows, cols) > 2:
        assert len(set(expected)) > 3
    if history and rows > 2:
        now = [
            sum(1 << t for t in turns if image_of_seen(one, rows, cols, t).boards[-1] == one.boards[-1]) for one in seen
        ]
        assert any(one != other for one, other in zip(expected, now, strict=True))


@pytest.mark.parametrize("history", [0, 2])
@pytest.mark.parametrize(("rows", "cols"), [(2, 2), (3, 3), (3, 5), (9, 9)])
def test_upper_halves_of_keys(rows: int, cols: int, history: int) -> None:
    """By their definition; equal where positions are equal up to the symmetries, else independent of the lower half."""
    rng = Random(f"upper {rows}x{cols} {history}")
    lines = [random_line(rng, rows, cols, 12, passes=0.2) for _ in range(60)]
    lines += [turned(line, turn) for line in lines[:9] for turn in range(1, symmetry.count(rows, cols))]
    seen = [one for line in lines for one in positions(line, history)]
    replayed = replay(games_of(lines), history)
    upper = replayed.keys_hi.tolist()
    assert upper == [key_hi_from_scratch(one, rows, cols) for one in seen]
    same = [canonical(one, rows, cols) for one in seen]
    assert len(set(upper)) == len(set(same)) == len(set(zip(upper, same, strict=True)))
    # Two independent words share half of their bits: 32 of 64, give or take five standard deviations of the mean.
    pairs = set(zip(upper, replayed.keys.tolist(), strict=True))
    shared = np.mean([64 - (one ^ other).bit_count() for one, other in pairs])
    assert abs(shared - 32) < 5 * 4 / len(pairs) ** 0.5


def games_of_boards(boards: NDArray[np.int8], to_play: NDArray[np.int8]) -> Games:
    """Return a game for each 5x5 board int8[N, 25]: its stones set up, and one pass."""
    count = len(boards)
    game, point = np.nonzero(boards)
    return Games(
        rows=np.full(count, 5, dtype=np.uint8),
        cols=np.full(count, 5, dtype=np.uint8),
        ko_rule=np.zeros(count, dtype=np.int8),
        suicide=np.zeros(count, dtype=np.bool_),
        move_start=np.arange(count + 1, dtype=np.int64),
        moves=np.full(count, 25, dtype=np.uint16),
        colours=to_play,
        setup_start=np.searchsorted(game, np.arange(count + 1)).astype(np.int64),
        setup_plies=np.zeros(len(game), dtype=np.uint16),
        setup_points=point.astype(np.uint16),
        setup_colours=boards[game, point],
        terms=plain_terms(count),
    )


@pytest.mark.skipif(WITHOUT_JIT, reason="a hundred thousand positions")
def test_no_collisions_and_even_keys() -> None:
    """As many keys as there are positions up to the symmetries, and spread evenly over files by prefix.

    The smallest of eight words would fill the first of 16 files with 40 % of the keys.
    """
    rng = np.random.default_rng(1)
    boards = rng.choice(np.array([0, 0, 1, 2], dtype=np.int8), size=(300_000, 25))
    to_play = rng.choice(np.array([1, 2], dtype=np.int8), size=len(boards))
    turns = [symmetry.destinations(5, 5, 5, turn).ravel() for turn in range(8)]
    for turn in range(8):
        boards[turn * 10_000 : (turn + 1) * 10_000, turns[turn]] = boards[90_000:100_000]
        to_play[turn * 10_000 : (turn + 1) * 10_000] = to_play[90_000:100_000]
    replayed = replay(games_of_boards(boards, to_play))
    sound = replayed.faults == fast.LEGAL
    boards, to_play, keys = boards[sound], to_play[sound], replayed.keys[sound]
    canonical_boards = np.full(len(boards), b"\xff", dtype="S26")
    for images_of in turns:
        image = np.empty((len(boards), 26), dtype=np.int8)
        image[:, images_of] = boards
        image[:, 25] = to_play  # never 0, which numpy would cut off
        images = image.view("S26").ravel()
        canonical_boards = np.where(images < canonical_boards, images, canonical_boards)
    distinct = len(np.unique(canonical_boards))
    assert 100_000 < distinct < len(boards) - 20_000
    assert len(np.unique(keys)) == distinct
    pairs = np.unique(np.stack([np.unique(canonical_boards, return_inverse=True)[1].astype(np.uint64), keys]), axis=1)
    assert pairs.shape[1] == distinct
    by_prefix = np.bincount((np.unique(keys) >> np.uint64(60)).astype(np.int64), minlength=16)
    assert np.abs(by_prefix - distinct / 16).max() < 5 * (distinct / 16) ** 0.5


def test_side_size_and_ko_belong_to_the_key() -> None:
    sizes = [(rows, cols) for rows in range(1, 26) for cols in range(1, 26)]
    lines = [Line(rows, cols, ((None, colour),)) for rows, cols in sizes for colour in (1, 2)]
    keys = replay(games_of(lines)).keys
    assert len(np.unique(keys)) == len(lines)
    # Black takes a ko; a pass lifts the ban; after two passes White is to move again on the same stones.
    stones = (((0, 0), 2), ((1, 0), 1), ((0, 2), 2), ((1, 1), 2))
    setup = tuple((0, point, colour) for point, colour in stones)
    ko = replay(games_of([Line(3, 3, (((0, 1), 1), (None, 2), (None, 1), (None, 2)), setup)])).keys
    assert ko[1] != ko[3]
    assert ko[2] != ko[3]


def test_short_history_is_one_of_empty_boards() -> None:
    """Passes on the empty board, or none: the boards of the key are the same."""
    moves = (((2, 2), 1), ((3, 4), 2), ((4, 4), 1))
    lines = [Line(9, 9, ((None, 1), (None, 2)) * passes + moves) for passes in range(3)]
    for history in (0, 1, 2, 4, 15):
        games = games_of(lines)
        keys = [part.tolist() for part in np.split(replay(games, history).keys, games.move_start[1:-1])]
        assert keys[1][2:] == keys[0]
        assert keys[2][4:] == keys[0]


@pytest.mark.parametrize("history", [0, 2, 7])
def test_setup_in_mid_game_begins_a_new_history(history: int) -> None:
    """A game with setup stones before move 4 has the keys of the game that begins there."""
    before: tuple[tuple[Point | None, int], ...] = (((0, 0), 1), ((4, 4), 2), ((2, 2), 1))
    after: tuple[tuple[Point | None, int], ...] = (((0, 1), 2), ((3, 3), 1), (None, 2), ((1, 3), 1))
    changes: tuple[tuple[Point, int], ...] = (((2, 2), 0), ((1, 1), 2), ((0, 4), 1))
    whole = Line(5, 5, before + after, tuple((3, point, colour) for point, colour in changes))
    stones = (((0, 0), 1), ((4, 4), 2), ((1, 1), 2), ((0, 4), 1))
    rest = Line(5, 5, after, tuple((0, point, colour) for point, colour in stones))
    replayed = replay(games_of([whole, rest]), history)
    assert replayed.legal.tolist() == [7, 4]
    assert replayed.keys[3:7].tolist() == replayed.keys[7:].tolist()


def test_one_board_reached_with_and_without_a_capture() -> None:
    """Taking a stone leaves the key of the stones that are there, as in a game where it never stood."""
    capture = Line(9, 9, (((1, 0), 1), ((0, 0), 2), ((0, 1), 1), ((6, 6), 2), ((2, 2), 1), ((4, 4), 2)))
    plainly = Line(9, 9, (((1, 0), 1), ((6, 6), 2), ((0, 1), 1), (None, 2), ((2, 2), 1), ((4, 4), 2)))
    keys = replay(games_of([capture, plainly])).keys.reshape(2, 6)
    assert (keys[0] == keys[1]).tolist() == [True, True, False, False, True, True]
    assert len(np.unique(keys)) == 8
    other_side = Line(9, 9, ((None, 1), ((1, 0), 1), (None, 2), ((0, 1), 1), (None, 2), ((6, 6), 2), ((2, 2), 1)))
    seen, same = positions(plainly)[4], positions(other_side)[6]
    assert seen == same
    assert replay(games_of([other_side])).keys[6] == keys[1, 4]


@pytest.mark.parametrize("history", [-1, 16])
def test_longest_history(history: int) -> None:
    with pytest.raises(ValueError, match="15"):
        replay(games_of([Line(3, 3, ())]), history)
