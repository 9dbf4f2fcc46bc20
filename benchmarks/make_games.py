"""Make an archive of any number of distinct 19x19 games, the same bytes for the same seed.

    python benchmarks/make_games.py COUNT OUTPUT.zip [--seed N]

Nobody played these games, but to the pipeline they look like games of a server: legal moves of which the first are
taken from a small book of openings, so that early positions repeat; later ones mostly near the last moves, never into
an own eye; two passes at the end; headers of every usual kind. Game n is drawn from (seed, n) alone, so that a longer
archive begins with the games of a shorter one.
"""

import argparse
import hashlib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pipeline.board import COLOUR, EMPTY, LEGAL, OFF, STRIDE, clear, legality, new_board, play, spot_of
from pipeline.jit import kernel
from pipeline.words import chain_words, mix, seed_word

SIDE = 19
AT_ONCE = 2_000
SHORTEST, LONGEST = 120, 300
DATE = (2024, 1, 1, 0, 0, 0)
# In the corner at the top left, (row, col), the likelier ones first: each is as likely as all that follow.
CORNER = np.array([(3, 3), (2, 3), (3, 2), (2, 2), (4, 2), (2, 4), (3, 4), (4, 3)], dtype=np.int64)
APPROACH = np.array([(2, 5), (5, 2), (3, 5), (5, 3), (2, 9), (9, 2), (2, 6), (6, 2)], dtype=np.int64)
RULES, KOMIS = ("Japanese", "Chinese", "AGA", "Japanese"), ("6.5", "7.5", "7.5", "0.5", "6.5", "5.5")
RANKS = ("1k", "1d", "2d", "3d", "4d", "5d", "6d", "7d")


@kernel
def book_move(state, ply, corners, approaches):
    """Return (state, point) of an opening move: one of the first in a corner, one of the next beside it."""
    state = mix(state)
    choices = corners if ply < 4 else approaches
    choice = 0
    while choice < choices.shape[0] - 1 and (state >> np.uint64(choice)) & np.uint64(1) != 0:
        choice += 1
    row, col = choices[choice, 0], choices[choice, 1]
    corner = (state >> np.uint64(40)) % np.uint64(4) if ply >= 4 else np.uint64((ply * 3) % 4)
    if corner & np.uint64(1) != 0:
        row = SIDE - 1 - row
    if corner & np.uint64(2) != 0:
        col = SIDE - 1 - col
    return state, row * SIDE + col


@kernel
def near_move(state, moves, ply):
    """Return (state, point): mostly close to one of the last moves, now and then anywhere."""
    state = mix(state)
    if (state >> np.uint64(60)) < np.uint64(2) or ply == 0:
        return state, np.int64((state >> np.uint64(8)) % np.uint64(SIDE * SIDE))
    last = np.int64(moves[ply - 1 - np.int64((state >> np.uint64(4)) % np.uint64(min(ply, 8)))])
    row = last // SIDE + np.int64((state >> np.uint64(16)) % np.uint64(7)) - 3
    col = last % SIDE + np.int64((state >> np.uint64(24)) % np.uint64(7)) - 3
    return state, max(0, min(SIDE - 1, row)) * SIDE + max(0, min(SIDE - 1, col))


@kernel
def is_own_eye(board, spot, colour):
    """Return whether all neighbours of an empty spot are stones of ``colour`` or off the board."""
    points = board.points
    stride = np.int64(points[STRIDE])
    for step in (-stride, -1, 1, stride):
        there = points[COLOUR + spot + step]
        if there == EMPTY or (there != OFF and there != colour):
            return False
    return True


@kernel
def play_games(board, states, lengths, corners, approaches, moves, played):
    """Fill ``moves`` uint16[G, LONGEST]; ``played`` int64[G]: how many, fewer than ``lengths`` where none was found."""
    for game in range(states.shape[0]):
        clear(board, SIDE, SIDE)
        state = states[game]
        ply = 0
        tries = 0
        while ply < lengths[game] and tries < 400:
            colour = 1 + ply % 2
            if ply < 10 and tries < 20:
                state, point = book_move(state, ply, corners, approaches)
            else:
                state, point = near_move(state, moves[game], ply)
            spot = spot_of(board, point)
            tries += 1
            if legality(board, spot, colour, False) == LEGAL and not is_own_eye(board, spot, colour):
                play(board, spot, colour, None)
                moves[game, ply] = point
                ply += 1
                tries = 0
        played[game] = ply


def sgf_of(number: int, word: int, moves: NDArray[np.uint16]) -> bytes:
    """Return one game as a record; what its headers say is drawn from ``word``."""
    bits = [(word >> shift) & 0xFF for shift in range(0, 64, 8)]
    winner = "BW"[bits[0] & 1]
    result = (f"{winner}+R", f"{winner}+{bits[1] % 60}.5", f"{winner}+R", f"{winner}+T")[bits[2] % 4]
    head = (
        f"(;GM[1]FF[4]CA[UTF-8]SZ[19]KM[{KOMIS[bits[3] % 6]}]RU[{RULES[bits[4] % 4]}]"
        f"PB[player{bits[5]}]PW[player{bits[6]}]BR[{RANKS[bits[5] % 8]}]WR[{RANKS[bits[6] % 8]}]"
        f"DT[20{bits[7] % 25:02}-{bits[1] % 12 + 1:02}-{bits[2] % 28 + 1:02}]RE[{result}]GN[{number}]\n"
    )
    text = np.zeros((len(moves), 6), dtype=np.uint8)
    text[:, :] = np.frombuffer(b";B[  ]", dtype=np.uint8)
    text[1::2, 1] = ord("W")
    text[:, 3], text[:, 4] = ord("a") + moves % SIDE, ord("a") + moves // SIDE
    passes = b";B[];W[]" if len(moves) % 2 == 0 else b";W[];B[]"
    return head.encode() + text.tobytes() + passes + b")\n"


def made_games(count: int, seed: int) -> Iterator[bytes]:
    """Yield ``count`` records. Stops at a game that repeats an earlier one, which chance makes all but
    impossible."""
    board = new_board(SIDE, SIDE)
    seen: set[bytes] = set()
    for first in range(0, count, AT_ONCE):
        numbers = np.arange(first, min(first + AT_ONCE, count))
        moves, played = np.zeros((len(numbers), LONGEST), dtype=np.uint16), np.zeros(len(numbers), dtype=np.int64)
        words = chain_words(seed_word("benchmark games", seed), numbers)
        lengths = (SHORTEST + (words >> np.uint64(32)) % np.uint64(LONGEST - SHORTEST)).astype(np.int64)
        play_games(board, words, lengths, CORNER, APPROACH, moves, played)
        for number, word, row, length in zip(numbers.tolist(), words.tolist(), moves, played.tolist(), strict=True):
            name = hashlib.blake2b(row[:length].tobytes(), digest_size=12).digest()
            if name in seen:
                raise SystemExit(f"game {number} repeats an earlier one: take another --seed")
            seen.add(name)
            yield sgf_of(number, word, row[:length])


def make_archive(path: Path, count: int, seed: int = 0) -> None:
    """Write a zip of ``count`` games."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for number, record in enumerate(made_games(count, seed)):
            archive.writestr(zipfile.ZipInfo(f"{number // 1000:04}/{number:07}.sgf", DATE), record)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("count", type=int, nargs="?", default=200_000)
    parser.add_argument("output", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    make_archive(arguments.output, arguments.count, arguments.seed)


if __name__ == "__main__":
    main()
