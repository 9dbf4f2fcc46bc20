"""Makes the games of ``examples/games`` that are not given: the same bytes on every run.

The files ``loose/gnugo-*.sgf`` and ``loose/random-*.sgf`` are given (self-play of GNU Go, and random play).
The rest is made here: games between invented players by seeded random play, two broken records, a copy of a
given game turned on the board, and the archives. Run it as ``python examples/make_examples.py [FOLDER]``.

The play keeps to the strictest rules (no suicide, no position twice), so every game is legal under all of them.
"""

import gzip
import io
import random
import re
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

EMPTY, BLACK, WHITE = 0, 1, 2
LETTERS = "abcdefghijklmnopqrstuvwxyz"
STARS_19 = ((3, 15), (15, 3), (15, 15), (3, 3))
PLAYERS = (
    ("Ada", "4d"), ("Bo", "3d"), ("Chidi", "1k"), ("Dora", "2d"), ("Eun-ji", "6d"), ("Finn", "2k"),
    ("Gil", "5d"), ("Hana", "3d"), ("Ivo", "1d"), ("Jun", "7d"), ("Kofi", "4k"), ("Zoë", "2d"),
)  # fmt: skip
KOMI = {"Japanese": 6.5, "Chinese": 7.5, "AGA": 7.5, "Korean": 6.5}
ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)


class Board:
    """Stones on a rectangle with captures, suicide forbidden and positional superko: small, slow and plain."""

    def __init__(self, rows: int, cols: int) -> None:
        self.rows, self.cols = rows, cols
        self.stones = [EMPTY] * (rows * cols)
        self.seen = {tuple(self.stones)}

    def neighbours(self, point: int) -> Iterator[int]:
        """The two to four points next to ``point``."""
        row, col = divmod(point, self.cols)
        if row > 0:
            yield point - self.cols
        if row < self.rows - 1:
            yield point + self.cols
        if col > 0:
            yield point - 1
        if col < self.cols - 1:
            yield point + 1

    def area(self, stones: list[int], point: int) -> tuple[set[int], set[int]]:
        """The connected points of one colour (or empty) around ``point``, and the points that border on them."""
        colour, inside, border, todo = stones[point], {point}, set[int](), [point]
        while todo:
            for near in self.neighbours(todo.pop()):
                if stones[near] != colour:
                    border.add(near)
                elif near not in inside:
                    inside.add(near)
                    todo.append(near)
        return inside, border

    def liberties(self, stones: list[int], point: int) -> int:
        """How many liberties the chain on ``point`` has."""
        return sum(stones[near] == EMPTY for near in self.area(stones, point)[1])

    def after(self, point: int, colour: int) -> tuple[list[int], int] | None:
        """The stones after a move and how many it captures; None if the move is illegal."""
        if self.stones[point] != EMPTY:
            return None
        stones = self.stones.copy()
        stones[point] = colour
        captured = 0
        for near in self.neighbours(point):
            if stones[near] == 3 - colour and not self.liberties(stones, near):
                chain, _ = self.area(stones, near)
                captured += len(chain)
                for dead in chain:
                    stones[dead] = EMPTY
        if not self.liberties(stones, point) or tuple(stones) in self.seen:
            return None
        return stones, captured

    def put(self, stones: list[int]) -> None:
        """Take over what ``after`` gave."""
        self.stones = stones
        self.seen.add(tuple(stones))

    def is_eye(self, point: int, colour: int) -> bool:
        """Whether ``point`` is an empty point whose neighbours are all stones of ``colour``."""
        return all(self.stones[near] == colour for near in self.neighbours(point))

    def lead(self) -> int:
        """Black's area minus White's: stones, and empty points that border on one colour only."""
        lead, counted = 0, set[int]()
        for point, colour in enumerate(self.stones):
            if colour != EMPTY:
                lead += 1 if colour == BLACK else -1
            elif point not in counted:
                region, border = self.area(self.stones, point)
                counted |= region
                colours = {self.stones[near] for near in border}
                if len(colours) == 1:
                    lead += len(region) if colours == {BLACK} else -len(region)
        return lead


def choose(board: Board, colour: int, last: list[int], chance: Callable[[], float]) -> int | None:
    """A move by simple taste (capture, keep liberties, answer nearby, open off the edge); None is a pass.

    ``chance`` is ``random.Random(seed).random``: its sequence, unlike those of the other methods, is fixed.
    """
    best, best_taste = None, 0.0
    early = len(board.seen) < board.rows * board.cols // 6
    for point, stone in enumerate(board.stones):
        row, col = divmod(point, board.cols)
        near = any(abs(row - at // board.cols) + abs(col - at % board.cols) <= 3 for at in last)
        if stone != EMPTY or chance() > (0.7 if near else 0.15) or board.is_eye(point, colour):
            continue
        move = board.after(point, colour)
        if move is None:
            continue
        stones, captured = move
        liberties = board.liberties(stones, point)
        if liberties == 1 and not captured:
            continue
        edge = min(row, col, board.rows - 1 - row, board.cols - 1 - col)
        taste = 1 + 2 * min(captured, 4) + min(liberties, 4) + 2 * near + 3 * chance()
        if early:
            taste += (0, 1, 4, 5)[min(edge, 3)]
        if taste > best_taste:
            best, best_taste = point, taste
    return best


@dataclass(frozen=True, slots=True)
class Plan:
    """One game to be played: the seed draws the players, the date and every move."""

    seed: int
    rows: int = 19
    cols: int = 19
    rules: str = "Japanese"
    end: str = "resign"  # "resign", "time" or "score" (to the second of two passes)
    moves: int = 200  # where a game ends that is not played out
    handicap: int = 0
    event: str = "Club evening"
    charset: str = "UTF-8"
    players: tuple[tuple[str, str], tuple[str, str]] | None = None  # names and ranks, in place of drawn ones


def play(plan: Plan) -> tuple[list[int | None], int]:
    """The moves of a game (None for a pass) and Black's lead on the board at its end."""
    chance = random.Random(plan.seed).random
    board = Board(plan.rows, plan.cols)
    for row, col in STARS_19[: plan.handicap]:
        board.stones[row * plan.cols + col] = BLACK
    board.seen = {tuple(board.stones)}
    moves: list[int | None] = []
    last_move = 3 * plan.rows * plan.cols if plan.end == "score" else plan.moves
    while len(moves) < last_move and moves[-2:] != [None, None]:
        colour = WHITE if (len(moves) + bool(plan.handicap)) % 2 else BLACK
        move = choose(board, colour, [at for at in moves[-2:] if at is not None], chance)
        if move is not None:
            after = board.after(move, colour)
            assert after is not None
            board.put(after[0])
        moves.append(move)
    return moves, board.lead()


def result(plan: Plan, lead: int, komi: float) -> str:
    """The text of RE; who is ahead on the board wins a game that is not played out."""
    score = lead - komi if plan.end == "score" else lead
    winner = "B" if score > 0 else "W"
    return f"{winner}+" + {"resign": "R", "time": "T", "score": f"{abs(score):g}"}[plan.end]


def point_text(point: int | None, cols: int) -> str:
    """A point in SGF letters, column first; nothing for a pass."""
    return "" if point is None else LETTERS[point % cols] + LETTERS[point // cols]


def record(plan: Plan) -> str:
    """The game as SGF."""
    draw = random.Random(plan.seed + 10**6).random
    first = int(draw() * len(PLAYERS))
    second = (first + 1 + int(draw() * (len(PLAYERS) - 1))) % len(PLAYERS)
    (black, black_rank), (white, white_rank) = plan.players or (PLAYERS[first], PLAYERS[second])
    moves, lead = play(plan)
    komi = 0.5 if plan.handicap else KOMI[plan.rules]
    size = str(plan.rows) if plan.rows == plan.cols else f"{plan.cols}:{plan.rows}"
    date = f"2024-{1 + int(draw() * 12):02}-{1 + int(draw() * 28):02}"
    lines = [
        f"(;GM[1]FF[4]CA[{plan.charset}]SZ[{size}]",
        f"PB[{black}]BR[{black_rank}]PW[{white}]WR[{white_rank}]",
        f"EV[{plan.event}]DT[{date}]KM[{komi:g}]RU[{plan.rules}]RE[{result(plan, lead, komi)}]",
    ]
    if plan.handicap:
        stars = "".join(f"[{LETTERS[col]}{LETTERS[row]}]" for row, col in STARS_19[: plan.handicap])
        lines.append(f"HA[{plan.handicap}]AB{stars}")
    colours = "WB" if plan.handicap else "BW"
    nodes = [f";{colours[ply % 2]}[{point_text(move, plan.cols)}]" for ply, move in enumerate(moves)]
    lines += ["".join(nodes[start : start + 12]) for start in range(0, len(nodes), 12)]
    return "\n".join(lines) + ")\n"


def nth_move(text: str, number: int) -> re.Match[str]:
    """Where move ``number`` (from 1) of a record of ours is written."""
    return list(re.finditer(r";[BW]\[(\w\w)\]", text))[number - 1]


def illegal_copy(text: str) -> str:
    """A record whose move 42 is on the stone of move 41."""
    stone, move = nth_move(text, 41), nth_move(text, 42)
    return text[: move.start(1)] + stone[1] + text[move.end(1) :]


def cut_copy(text: str) -> str:
    """A record that breaks off after the first letter of move 101, as an interrupted copy does."""
    return text[: nth_move(text, 101).start(1) + 1]


def turned_copy(text: str) -> str:
    """The same 19x19 game from another place: turned by a quarter, other headers, the same result and komi."""
    kept = "".join(re.findall(r"(?:KM|RU|RE)\[[^]]*\]", text))
    nodes = [
        f";{colour}[{LETTERS[18 - LETTERS.index(point[1])] + point[0] if point else ''}]"
        for colour, point in re.findall(r";([BW])\[(\w\w)?\]", text)
    ]
    return f"(;FF[4]GM[1]SZ[19]GN[Mail game 7]PB[Uma]PW[Vik]DT[2023-11]{kept}\n{''.join(nodes)})\n"


def with_side_line(text: str) -> str:
    """A record with a comment, and with a variation at its last move."""
    last = text.rindex(";")
    main = text[last:].removesuffix(")\n")
    side = main[:2] + "[]C[Passing here \\[as the bot wants\\] loses.]"
    return f"{text[:last]}\n({main}C[Thank you for the game!])\n({side}))\n"


def write_zip(path: Path, members: dict[str, bytes]) -> None:
    """A zip with fixed dates and modes."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            info = zipfile.ZipInfo(name, ZIP_EPOCH)
            info.create_system = 3
            info.external_attr = 0o100644 << 16
            archive.writestr(info, data, zipfile.ZIP_DEFLATED, 9)


def write_tar_gz(path: Path, members: dict[str, bytes]) -> None:
    """A tar.gz with fixed dates, owners and modes."""
    with (
        path.open("wb") as file,
        gzip.GzipFile("", "wb", 9, file, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive,
    ):
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))


def club() -> dict[str, bytes]:
    """The members of club.zip: nine games of 19x19, a note, and the dropping of another system."""
    rules = ("Japanese", "Chinese", "AGA")
    texts = [record(Plan(100 + n, rules=rules[n % 3], moves=150 + 17 * n)) for n in range(8)]
    texts.append(record(Plan(108, handicap=3, moves=180, event="Teaching game")))
    texts[2] = with_side_line(texts[2])
    games = {f"club/{('spring', 'autumn')[n // 5]}/round-{n + 1}.sgf": text.encode() for n, text in enumerate(texts)}
    return games | {"club/notes.txt": b"Tuesdays at seven.\n", "__MACOSX/club/._notes.txt": bytes(16)}


def server() -> dict[str, bytes]:
    """The members of server.tar.gz: seven games of 19x19 (one in GB18030), one of 9x9, two of 5x9."""
    plans = [Plan(200 + n, rules="Chinese", end=("time", "resign")[n % 2], moves=160 + 13 * n) for n in range(5)]
    plans += [
        Plan(205, rules="Chinese", end="score"),
        Plan(
            206,
            rules="Chinese",
            moves=230,
            charset="GB18030",
            event="网络赛",
            players=(("小安", "5段"), ("阿博", "6段")),
        ),
        Plan(207, 9, 9, rules="Chinese", end="score"),
        Plan(208, 5, 9, rules="Chinese", end="score"),
        Plan(209, 5, 9, rules="Chinese", moves=24),
    ]
    return {f"games/{n + 1:04}.sgf": record(plan).encode(plan.charset) for n, plan in enumerate(plans)}


def collection() -> str:
    """Five games in one file: three of 19x19, one of 13x13, one of 9x9."""
    plans = [
        Plan(300, rules="Korean", event="Spring cup"),
        Plan(301, 13, 13, rules="AGA", end="score", event="Spring cup"),
        Plan(302, rules="Korean", moves=241, event="Spring cup"),
        Plan(303, 9, 9, rules="AGA", end="score", event="Spring cup"),
        Plan(304, rules="AGA", end="score", event="Spring cup, final"),
    ]
    return "\n".join(record(plan) for plan in plans)


def make(folder: Path) -> None:
    """Write everything but the given games; they must lie in ``folder/loose``."""
    loose = folder / "loose"
    made = {
        "ada-and-bo.sgf": record(Plan(400, players=PLAYERS[:2])),
        "broken-illegal-move.sgf": illegal_copy(record(Plan(401))),
        "broken-cut.sgf": cut_copy(record(Plan(402))),
        "turned-copy.sgf": turned_copy((loose / "gnugo-19b.sgf").read_text("utf-8")),
    }
    for name, text in made.items():
        (loose / name).write_text(text, "utf-8", newline="\n")
    (folder / "collection.sgf").write_text(collection(), "utf-8", newline="\n")
    write_zip(folder / "club.zip", club())
    write_tar_gz(folder / "server.tar.gz", server())


if __name__ == "__main__":
    make(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "games")
