"""Keys of whole games: words over the size, the setup and the moves, the same for all images of a game.

As with positions, the symmetry is chosen by one family of words and the key is another under it.
"""

import numpy as np
from numpy.typing import NDArray

from pipeline import symmetry
from pipeline.games import Games
from pipeline.jit import kernel
from pipeline.words import Words, mix, seed_word

GAME_FAMILIES = np.array([seed_word("game choosing"), seed_word("game stored")], dtype=np.uint64)


@kernel
def game_word(games, game, start):
    """Return the word of a game without setup and moves: of its size."""
    return mix(mix(start ^ np.uint64(games.rows[game])) ^ np.uint64(games.cols[game]))


@kernel
def with_setup(games, game, cursor, ply, word, start, images, turn):
    """Return (cursor, word) after the setup of ply ``ply``, entries from ``cursor`` on, as seen under ``turn``."""
    setup = np.uint64(0)
    while cursor < games.setup_start[game + 1] and games.setup_plies[cursor] == ply:
        point, colour = images[games.setup_points[cursor], turn], np.uint64(games.setup_colours[cursor])
        # A sum, since the order of setup stones means nothing; clearing the bare board neither.
        if ply > 0 or colour != 0:
            setup += mix(start + (np.uint64(point) << np.uint64(2)) + colour)
        cursor += 1
    return cursor, mix(word ^ setup) if setup != 0 else word


@kernel
def add_move(games, game, ply, words, images, first, last):
    """Add move ``ply`` to the words of the symmetries ``first`` to ``last - 1``: chains that run side by side."""
    place = games.move_start[game] + ply
    move, colour = np.int64(games.moves[place]), np.uint64(games.colours[place])
    for turn in range(first, last):
        words[turn] = mix(words[turn] ^ ((np.uint64(images[move, turn]) << np.uint64(2)) + colour))


@kernel
def _prefix_words(games, game, plies, start, images, first, last, words):
    """Set ``words`` to those over the size, the setup and the first ``plies`` moves, for some symmetries."""
    for turn in range(first, last):
        words[turn] = game_word(games, game, start)
    cursor = games.setup_start[game]
    for ply in range(plies + 1):
        if cursor < games.setup_start[game + 1] and games.setup_plies[cursor] == ply:
            after = cursor
            for turn in range(first, last):
                after, words[turn] = with_setup(games, game, cursor, ply, words[turn], start, images, turn)
            cursor = after
        if ply < plies:
            add_move(games, game, ply, words, images, first, last)


@kernel
def _game_keys(games, order, plies, images, families, words, turns, keys):
    """Fill ``turns`` and ``keys``; ``words`` uint64[8] is scratch."""
    for game in order:
        symmetries = images.shape[1]
        _prefix_words(games, game, plies[game], families[0], images, np.int64(0), symmetries, words)
        chosen = np.int64(0)
        for turn in range(1, symmetries):
            if words[turn] < words[chosen]:
                chosen = turn
        _prefix_words(games, game, plies[game], families[1], images, chosen, chosen + 1, words)
        turns[game], keys[game] = chosen, words[chosen]


def move_images(rows: int, cols: int) -> NDArray[np.int32]:
    """Return int32[rows * cols + 1, symmetries]: the images of each move of a board, passes included."""
    turns = range(symmetry.count(rows, cols))
    images = np.full((rows * cols + 1, len(turns)), rows * cols, dtype=np.int32)
    for turn in turns:
        images[:-1, turn] = symmetry.destinations(rows, cols, cols, turn).ravel()
    return images


def turned_game_keys(games: Games, plies: NDArray[np.int64]) -> tuple[NDArray[np.uint8], Words]:
    """Return (turns uint8[G], keys uint64[G]) over size, setup and the first ``plies[g]`` moves.

    Keys are equal for all images of a game; of games with equal keys those that are the same as they
    stand have the same turn, the first symmetry that leads to the canonical image. Setup stones of one
    ply count as a set. Setup after the last counted move counts as well.
    """
    turns = np.zeros(games.number, dtype=np.uint8)
    keys: Words = np.zeros(games.number, dtype=np.uint64)
    words = np.zeros(symmetry.SYMMETRIES, dtype=np.uint64)
    for (rows, cols), order in games.by_size().items():
        _game_keys(games, order, plies, move_images(rows, cols), GAME_FAMILIES, words, turns, keys)
    return turns, keys


def game_keys(games: Games, plies: NDArray[np.int64]) -> Words:
    """Return uint64[G]: the keys of ``turned_game_keys``."""
    return turned_game_keys(games, plies)[1]
