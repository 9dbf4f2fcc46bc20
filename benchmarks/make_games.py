"""Make an archive of any number of distinct 19x19 games, the same bytes for the same count and seed.

    python -m benchmarks.make_games [COUNT] OUTPUT.zip [--seed 0]

Openings are drawn from a small book, so that early positions meet again in other games as they do in real archives:
after any beginning some continuations are much more popular than others. What follows is random but legal under
every rule set: most moves are near the last or an earlier one, stones in atari are often taken or saved, nobody fills
an eye of one point, and no board is repeated (a game that would repeat one ends). Headers are as three servers
might write them.

A game depends on the seed and its number alone, so that a larger archive begins with the games of a smaller one.
That all are distinct, symmetric images included, is checked at the end by the keys that a build compares; they are
all that grows in memory, 8 bytes a game. The bytes are the same wherever zlib is the same.

Run it as a module, in the folder of the project: compiled kernels are loaded by the name of the module that they were
compiled in, which has to be found whoever compiled them.
"""

import argparse
import struct
import tempfile
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from pipeline import symmetry
from pipeline.board import (
    BLACK,
    CHAIN,
    COLOUR,
    EMPTY,
    LEGAL,
    LIBERTIES,
    NO_SPOT,
    OFF,
    REMOVED,
    STRIDE,
    USED_WORDS,
    WHITE,
    WORDS,
    Board,
    clear,
    count_bits,
    legality,
    new_board,
    play,
    rebuild,
    set_colour,
    spot_at,
    spot_of,
)
from pipeline.files import whole_file
from pipeline.gamekeys import game_keys
from pipeline.games import Games, terms_of
from pipeline.handicaps import MAX_FIXED, fixed_points
from pipeline.jit import kernel
from pipeline.rules import RULE_SETS
from pipeline.words import GOLDEN, Words, chain_words, mix, mix_words, repeated, seed_word

SIDE = 19
AREA = SIDE * SIDE
SHORTEST, SPREAD = 120, 86  # plies: the shortest and two draws below the spread, a triangle around 205
LONGEST = SHORTEST + 2 * SPREAD  # with the passes at the end
BATCH = 1_000  # games made at once
MOST_GAMES = 3_000_000  # places in an archive are stored in 32 bits

# The book, in one corner: (row, column) from the edges, as often as each is to be met. Its images are added.
CORNER_POINTS = ((3, 3), (3, 3), (3, 3), (2, 3), (2, 3), (2, 2), (2, 4))
FOLLOWING_POINTS = ((2, 5), (2, 5), (5, 3), (2, 6), (3, 9), (2, 9), (2, 8), (3, 5), (2, 13), (3, 10), (4, 6), (2, 2))
CORNER_PLIES = 4
CORNER_ROOM, FOLLOWING_ROOM = 4, 1  # lines around such a point without a stone
SHORTEST_OPENING, OPENING_SPREAD = 6, 15  # plies from the book
CANDIDATES, TRIES = 12, 24


@kernel
def _draw(chance, count):
    """Return a random number below ``count``; ``chance`` uint64[1] is the state of splitmix64."""
    word = mix(chance[0])
    chance[0] += GOLDEN
    return np.int64((word >> np.uint64(33)) % np.uint64(count))


@kernel
def _is_sound(board, spot, colour):
    """Return whether a move is legal and fills no eye of one point."""
    if legality(board, spot, colour, False) != LEGAL:
        return False
    stride = np.int64(board.points[STRIDE])
    for step in (-stride, -1, 1, stride):
        there = board.points[COLOUR + spot + step]
        if there == OFF:
            continue
        if there != colour:
            return True
    return False


@kernel
def _has_room(board, row, col, room):
    """Return whether there is no stone within ``room`` lines of a point."""
    for near_row in range(max(0, row - room), min(SIDE, row + room + 1)):
        for near_col in range(max(0, col - room), min(SIDE, col + room + 1)):
            if board.points[COLOUR + spot_at(board, near_row, near_col)] != EMPTY:
                return False
    return True


@kernel
def _book_move(board, line, book, room, chance):
    """Return the spot of a move of the book, or NO_SPOT.

    ``line``, the word of the moves so far, orders the points of ``book``; each is played in three of five games in
    which those before it are not.
    """
    for rank in range(CANDIDATES):
        point = np.int64(book[mix(line + np.uint64(rank)) % np.uint64(book.shape[0])])
        if _draw(chance, 5) < 3 and _has_room(board, point // SIDE, point % SIDE, room):
            return spot_of(board, point)
    return np.int64(NO_SPOT)


@kernel
def _liberty(board, chain):
    """Return the one liberty of a chain in atari."""
    word = chain * WORDS
    while board.bits[word] == 0 and word < chain * WORDS + np.int64(board.points[USED_WORDS]):
        word += 1
    return 64 * (word - chain * WORDS) + count_bits(board.bits[word] - np.uint64(1))


@kernel
def _answer(board, last, colour):
    """Return the spot that takes the chain just played, or else saves one beside it; NO_SPOT for neither."""
    points = board.points
    stride = np.int64(points[STRIDE])
    for step in (0, -stride, -1, 1, stride):
        owner = 3 - colour if step == 0 else colour
        chain = np.int64(points[CHAIN + last + step])
        if points[COLOUR + last + step] == owner and points[LIBERTIES + chain] == 1:
            return _liberty(board, chain)
    return np.int64(NO_SPOT)


@kernel
def _near_move(board, colour, moves, ply, chance):
    """Return the spot of a sound move, mostly near one of the last or earlier ``moves``; NO_SPOT if none is left."""
    for _ in range(TRIES):
        row, col = _draw(chance, SIDE), _draw(chance, SIDE)
        kind = _draw(chance, 16)
        if kind > 0 and ply > 0:
            back = _draw(chance, min(ply, 3)) if kind < 11 else _draw(chance, ply)
            anchor = np.int64(moves[ply - 1 - back])
            row = anchor // SIDE + _draw(chance, 3) + _draw(chance, 3) - 2
            col = anchor % SIDE + _draw(chance, 3) + _draw(chance, 3) - 2
        line = min(row, col, SIDE - 1 - row, SIDE - 1 - col)  # 0: the first; negative: off the board
        if line < (2 if ply < 40 else 1 if ply < 90 else 0):
            continue
        spot = spot_at(board, row, col)
        if _is_sound(board, spot, colour):
            return spot
    start = _draw(chance, AREA)
    for step in range(AREA):
        spot = spot_of(board, (start + step) % AREA)
        if _is_sound(board, spot, colour):
            return spot
    return np.int64(NO_SPOT)


@kernel
def _choose(board, colour, moves, ply, last, opening, line, corners, following, chance):
    """Return the spot of the next move, or NO_SPOT where a side has none."""
    spot = np.int64(NO_SPOT)
    if ply < opening:
        if ply < CORNER_PLIES:
            spot = _book_move(board, line, corners, CORNER_ROOM, chance)
        if spot == NO_SPOT:
            spot = _book_move(board, line, following, FOLLOWING_ROOM, chance)
    elif _draw(chance, 4) > 0:
        spot = _answer(board, last, colour)
        if spot != NO_SPOT and not _is_sound(board, spot, colour):
            spot = np.int64(NO_SPOT)
    return _near_move(board, colour, moves, ply, chance) if spot == NO_SPOT else spot


@kernel
def _play_on(board, word, spot, colour):
    """Play; return the word of the stones after it, ``word`` being that before it."""
    captured = play(board, spot, colour, None)
    word ^= mix(np.uint64(4 * spot + colour))
    for number in range(captured):
        word ^= mix(np.uint64(4 * np.int64(board.points[REMOVED + number]) + 3 - colour))
    return word


@kernel
def play_games(board, states, handicaps, stones, corners, following, chance, boards, moves, plies):
    """Play a game for each of ``states`` uint64[G]; fill ``moves`` uint16[G, LONGEST] and ``plies`` int64[G].

    ``handicaps`` int64[G]: stones set up, those of ``stones[n]``; White then begins. ``chance`` uint64[1], ``boards``
    uint64[LONGEST + 1]: scratch.
    """
    stride = SIDE + 1
    for game in range(states.shape[0]):
        clear(board, SIDE, SIDE)
        chance[0] = states[game]
        colour = WHITE if handicaps[game] > 0 else BLACK
        for number in range(handicaps[game]):
            set_colour(board, spot_of(board, np.int64(stones[handicaps[game], number])), BLACK)
        rebuild(board)
        length = SHORTEST + _draw(chance, SPREAD) + _draw(chance, SPREAD)
        opening = SHORTEST_OPENING + _draw(chance, OPENING_SPREAD)
        line = mix(np.uint64(handicaps[game]))
        boards[0] = np.uint64(0)
        last, ply, again = np.int64(NO_SPOT), 0, False
        while ply < length:
            spot = _choose(board, colour, moves[game], ply, last, opening, line, corners, following, chance)
            if spot == NO_SPOT:
                break
            boards[ply + 1] = _play_on(board, boards[ply], spot, colour)
            for earlier in range(ply + 1):
                again |= boards[earlier] == boards[ply + 1]
            if again:
                break
            point = (spot // stride - 1) * SIDE + spot % stride - 1
            moves[game, ply] = point
            line = mix(line ^ np.uint64(point))
            last, colour = spot, 3 - colour
            ply += 1
        plies[game] = ply


def images_of(points: tuple[tuple[int, int], ...]) -> NDArray[np.int64]:
    """Return the points (row * 19 + column) of the book in all corners, from both sides."""
    turned = [symmetry.image_point(*point, SIDE, SIDE, turn) for point in points for turn in range(symmetry.SYMMETRIES)]
    return np.array([row * SIDE + col for row, col in turned], dtype=np.int64)


def handicap_stones() -> NDArray[np.int64]:
    """Return int64[10, 9]: row n begins with the points of n handicap stones."""
    stones = np.zeros((MAX_FIXED + 1, MAX_FIXED), dtype=np.int64)
    for count in range(2, MAX_FIXED + 1):
        points = fixed_points(SIDE, SIDE, count)
        assert points is not None
        stones[count, :count] = points
    return stones


# One game in 16 has a handicap.
_HANDICAPS = np.array([0] * 60 + [2, 3, 4, 6], dtype=np.int64)
_STONES = handicap_stones()
_CORNERS, _FOLLOWING = images_of(CORNER_POINTS), images_of(FOLLOWING_POINTS)
# Of 16 games the first ones end with two passes and a count; from the others on some end by time, or as nobody knows.
_BY_COUNT, _BY_TIME, _UNKNOWN = 6, 14, 15
_FACTS = 12  # words of a game that headers are drawn from


@dataclass(frozen=True, slots=True)
class Batch:
    """Games of consecutive numbers: ``moves`` uint16[G, LONGEST] (passes at the end among ``plies`` int64[G]),
    ``handicaps`` int64[G], ``facts`` uint64[G, _FACTS] for their headers."""

    first: int
    moves: NDArray[np.uint16]
    plies: NDArray[np.int64]
    handicaps: NDArray[np.int64]
    facts: Words

    def keys(self) -> Words:
        """Return uint64[G]: the keys by which a build tells games apart."""
        count = len(self.plies)
        stones = np.concatenate([_STONES[number, :number] for number in self.handicaps])
        ply = np.arange(LONGEST)
        colours = 1 + (ply[None, :] + (self.handicaps > 0)[:, None]) % 2
        played = ply[None, :] < self.plies[:, None]
        games = Games(
            rows=np.full(count, SIDE, dtype=np.uint8),
            cols=np.full(count, SIDE, dtype=np.uint8),
            ko_rule=np.zeros(count, dtype=np.int8),
            suicide=np.zeros(count, dtype=np.bool_),
            move_start=np.concatenate([[0], np.cumsum(self.plies)]).astype(np.int64),
            moves=self.moves[played],
            colours=colours[played].astype(np.int8),
            setup_start=np.concatenate([[0], np.cumsum(self.handicaps)]).astype(np.int64),
            setup_plies=np.zeros(len(stones), dtype=np.uint16),
            setup_points=stones.astype(np.uint16),
            setup_colours=np.full(len(stones), BLACK, dtype=np.int8),
            terms=terms_of([RULE_SETS["chinese"]] * count, [None] * count, [None] * count),
        )
        return game_keys(games, self.plies)


def make_batch(first: int, count: int, seed: int) -> Batch:
    """Play the games ``first`` to ``first + count - 1``."""
    words = chain_words(seed_word("made games", seed), np.arange(first, first + count))
    facts = mix_words(words[:, None] ^ np.arange(1, _FACTS + 1, dtype=np.uint64))
    handicaps = _HANDICAPS[facts[:, 0] % np.uint64(len(_HANDICAPS))]
    moves = np.zeros((count, LONGEST), dtype=np.uint16)
    plies = np.zeros(count, dtype=np.int64)
    board: Board = new_board(SIDE, SIDE)
    chance, boards = np.zeros(1, dtype=np.uint64), np.zeros(LONGEST + 1, dtype=np.uint64)
    play_games(board, words, handicaps, _STONES, _CORNERS, _FOLLOWING, chance, boards, moves, plies)
    counted = np.flatnonzero(facts[:, 1] % np.uint64(16) < _BY_COUNT)
    for _ in range(2):
        moves[counted, plies[counted]] = AREA
        plies[counted] += 1
    return Batch(first, moves, plies, handicaps, facts)


_SYLLABLES = ("ka", "ri", "to", "mun", "shi", "bel", "no", "zu", "ha", "jin", "o", "lek", "mi", "ran", "te", "yo")
_EAST = ("林", "石", "木", "田", "山", "月", "風", "水", "花", "星", "子", "白", "玉", "心", "海", "竹")
_RULES = ("Japanese", "Chinese", "Japanese", "AGA", "Japanese", "Chinese", "Korean", "New Zealand")
_KOMIS = {"Japanese": "6.5", "Chinese": "7.5", "AGA": "7.5", "Korean": "6.5", "New Zealand": "7"}
_OLD_KOMI = "5.5"  # one game in 16
_HANDICAP_KOMI = "0.5"
_TIMES = (("600", "3x30 byo-yomi"), ("1800", "5x30 byo-yomi"), ("1200", "25/600 Canadian"), ("3600", ""))


@dataclass(frozen=True, slots=True)
class Server:
    """The habits of a server: the root node before and after the handicap stones, a pass, words of results."""

    name: str
    root: str
    moves: str  # what stands before the first move
    passing: bytes
    resigned: str
    timed: str
    eastern: bool = False


_SERVERS = (
    Server(
        "hoshi",
        "(;GM[1]FF[4]CA[UTF-8]AP[HoshiClient:2.1]ST[2]\nRU[{rules}]SZ[19]{handicap}KM[{komi}0]TM[{time}]OT[{overtime}]\n"
        "PW[{white}]PB[{black}]WR[{white_rank}]BR[{black_rank}]DT[{date}]PC[hoshi.example]RE[{result}]{stones}",
        "\n",
        b"[]",
        "Resign",
        "Time",
    ),
    Server(
        "sente",
        "(;FF[4]GM[1]SZ[19]CA[UTF-8]\nGN[{black} vs {white}]\nPC[sente.example/{number}]\nDT[{date}]\n"
        "PB[{black}]\nPW[{white}]\nBR[{black_rank}]\nWR[{white_rank}]\nTM[{time}]OT[{overtime}]\nRE[{result}]\n"
        "KM[{komi}]\nRU[{rules}]\n{handicap}{stones}\n",
        "\n",
        b"[]",
        "R",
        "T",
    ),
    Server(
        "yama",
        "(;GM[1]FF[4]SZ[19]CA[UTF-8]EV[{event}]DT[{date}]PB[{black}]PW[{white}]BR[{black_rank}]WR[{white_rank}]"
        "{handicap}KM[{komi}]RU[{rules}]RE[{result}]TM[{time}]AP[yama]{stones}",
        "",
        b"[tt]",
        "R",
        "T",
        eastern=True,
    ),
)


def _tokens() -> NDArray[np.uint8]:
    """Return uint8[2, 362, 6]: the node of each move of Black and of White; a pass is ``[tt]``."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    points = [letters[point % SIDE] + letters[point // SIDE] for point in range(AREA)] + ["tt"]
    text = "".join(f";{colour}[{point}]" for colour in "BW" for point in points)
    return np.frombuffer(text.encode(), dtype=np.uint8).reshape(2, AREA + 1, 6)


_TOKENS = _tokens()
_STONE_TEXTS = [_TOKENS[0, stones, 2:].tobytes().decode() for stones in _STONES]  # [dp][pd] and so on
_SIDES = np.arange(LONGEST) % 2


def _name(word: int, eastern: bool) -> str:
    """Return a player's name. Of the many names of a server some play much more than others."""
    player = (word & 0xFFFF) * (word >> 16 & 0xFFFF) >> 16  # the smaller, the more games
    syllables = _EAST if eastern else _SYLLABLES
    name = "".join(syllables[player >> shift & 15] for shift in (0, 4, 8))
    return name if eastern else f"{name}{player >> 12}"


def _rank(word: int, eastern: bool) -> str:
    """Return a rank between 9 kyu and 8 dan, the middle ones more often."""
    rank = word % 9 + (word >> 8) % 9
    kyu, dan = ("级", "段") if eastern else ("k", "d")
    return f"{9 - rank}{kyu}" if rank < 9 else f"{rank - 8}{dan}"


def _result(server: Server, facts: list[int], komi: float) -> str:
    """Return a result of the kind that the end of the game asks for."""
    winner = "BW"[facts[2] & 1]
    ended = facts[1] % 16
    if ended < _BY_COUNT:
        margin = facts[2] // 2 % 40 + komi % 1
        return f"{winner}+{margin:g}" if margin else "0"
    if ended >= _UNKNOWN and facts[2] % 4 == 0:
        return "?"
    return f"{winner}+{server.timed if ended >= _BY_TIME else server.resigned}"


def record_of(number: int, moves: NDArray[np.uint16], handicap: int, facts: list[int]) -> tuple[str, bytes]:
    """Return one game as (name of the file, SGF)."""
    server = _SERVERS[facts[3] % len(_SERVERS)]
    rules = _RULES[facts[4] % len(_RULES)]
    komi = _OLD_KOMI if facts[5] % 16 == 0 else _KOMIS[rules]
    komi = _HANDICAP_KOMI if handicap else komi
    time_limit, overtime = _TIMES[facts[6] % len(_TIMES)]
    date = f"{2004 + facts[7] % 20}-{1 + facts[7] // 20 % 12:02d}-{1 + facts[7] // 240 % 28:02d}"
    head = server.root.format(
        number=number,
        rules=rules,
        komi=komi if server.name != "hoshi" or "." in komi else f"{komi}.0",
        time=time_limit,
        overtime=overtime,
        white=_name(facts[8], server.eastern),
        black=_name(facts[9], server.eastern),
        white_rank=_rank(facts[10], server.eastern),
        black_rank=_rank(facts[11], server.eastern),
        date=date,
        event=f"{facts[7] % 60 + 1}局",
        result=_result(server, facts, float(komi)),
        handicap=f"HA[{handicap}]" if handicap else "",
        stones=f"AB{_STONE_TEXTS[handicap][: 4 * handicap]}" if handicap else "",
    )
    sides = _SIDES[1:] if handicap else _SIDES
    played = _TOKENS[sides[: len(moves)], moves].tobytes()
    if server.passing != b"[tt]":
        played = played.replace(b"[tt]", server.passing)
    return f"{server.name}/{date[:4]}/{number:07d}.sgf", (head + server.moves).encode() + played + b")\n"


def made_records(batch: Batch) -> Iterator[tuple[str, bytes]]:
    """Yield the games of a batch as (name of the file, SGF)."""
    facts, handicaps, plies = batch.facts.tolist(), batch.handicaps.tolist(), batch.plies.tolist()
    for place, moves in enumerate(batch.moves):
        yield record_of(batch.first + place, moves[: plies[place]], handicaps[place], facts[place])


class ZipWriter:
    """Writes a zip entry by entry, its directory to a second file: the standard library's keeps every entry in memory.

    All entries are deflated and of the first day that a zip can name. Layout: APPNOTE.TXT 6.3.10, 4.3 to 4.5.
    """

    _VERSION, _DEFLATED, _DAY, _MODE = 45, 8, 1 << 5 | 1, 0o100644 << 16

    def __init__(self, archive: BinaryIO, directory: BinaryIO) -> None:
        self._archive, self._directory = archive, directory
        self._count = 0

    def add(self, name: str, data: bytes) -> None:
        """Write one entry; ``name`` is ASCII."""
        squeeze = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
        packed = squeeze.compress(data) + squeeze.flush()
        stored = name.encode("ascii")
        sizes: tuple[Any, ...] = (zlib.crc32(data), len(packed), len(data), len(stored))
        fields = (self._VERSION, 0, self._DEFLATED, 0, self._DAY, *sizes, 0)
        at = self._archive.tell()
        self._directory.write(
            struct.pack("<4sH5H3L2H3H2L", b"PK\1\2", 3 << 8 | self._VERSION, *fields, 0, 0, 0, self._MODE, at) + stored
        )
        self._archive.write(struct.pack("<4s5H3L2H", b"PK\3\4", *fields) + stored + packed)
        self._count += 1

    def close(self) -> None:
        """Write the directory and the ends, that of zip64 first, which holds more than 65,535 entries."""
        start, length = self._archive.tell(), self._directory.tell()
        self._directory.seek(0)
        while chunk := self._directory.read(1 << 20):
            self._archive.write(chunk)
        counts = (self._count, self._count)
        end = struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, self._VERSION, self._VERSION, 0, 0, *counts, length, start)
        locator = struct.pack("<4sLQL", b"PK\6\7", 0, start + length, 1)
        least = (min(self._count, 0xFFFF),) * 2
        self._archive.write(end + locator + struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, *least, length, start, 0))


def make_archive(path: Path, count: int, seed: int = 0) -> int:
    """Write a zip of ``count`` games; return how many plies they have.

    Raises ValueError for a count that is out of range, and where two games are equal: the file is then not written.
    """
    if not 1 <= count <= MOST_GAMES:
        raise ValueError(f"1 to {MOST_GAMES:,} games, not {count:,}")
    keys = np.zeros(count, dtype=np.uint64)
    plies = 0
    with whole_file(path) as temporary, open(temporary, "wb") as file, tempfile.TemporaryFile() as directory:
        archive = ZipWriter(file, directory)
        for first in range(0, count, BATCH):
            batch = make_batch(first, min(BATCH, count - first), seed)
            keys[first : first + BATCH] = batch.keys()
            plies += int(batch.plies.sum())
            for name, data in made_records(batch):
                archive.add(name, data)
        require_distinct(keys)
        archive.close()
    return plies


def require_distinct(keys: Words) -> None:
    """Raise ValueError where two games have the same key."""
    if equal := np.flatnonzero(repeated(keys)).tolist():
        raise ValueError(f"games {equal[0]} and others of {len(equal)} are equal: take another seed")


def main() -> None:
    """Make the archive and say what is in it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("count", type=int, nargs="?", default=200_000)
    parser.add_argument("output", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    begun = time.perf_counter()
    plies = make_archive(options.output, options.count, options.seed)
    size = options.output.stat().st_size / 1e6
    print(f"{options.count:,} games, {plies:,} plies, {size:,.1f} MB, {time.perf_counter() - begun:.1f} s")


if __name__ == "__main__":
    main()
