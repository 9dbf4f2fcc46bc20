"""Games and boards in plain Python, for checks that share nothing with the kernels: strings, bytes and tuples."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from operator import itemgetter
from typing import Any

Row = dict[str, Any]

_SETUP = 0x2000  # codes of setup stones begin here, those of moves are smaller


@cache
def images(rows: int, cols: int) -> tuple[tuple[int, ...], ...]:
    """Return where each point goes under all symmetries of the board, passes staying passes; the identity first."""
    maps = []
    for transpose in (False, True) if rows == cols else (False,):
        for flip_rows in (False, True):
            for flip_cols in (False, True):
                image = []
                for row in range(rows):
                    for col in range(cols):
                        there = (rows - 1 - row if flip_rows else row, cols - 1 - col if flip_cols else col)
                        image.append(there[1] * cols + there[0] if transpose else there[0] * cols + there[1])
                maps.append((*image, rows * cols))
    return tuple(maps)


def inverse(image: tuple[int, ...]) -> tuple[int, ...]:
    """Return the way back."""
    back = [0] * len(image)
    for point, there in enumerate(image):
        back[there] = point
    return tuple(back)


@cache
def pickers(rows: int, cols: int) -> tuple[Any, ...]:
    """Return for each symmetry what picks the image of a board's bytes out of them."""
    return tuple(itemgetter(*inverse(image)[:-1], -1) for image in images(rows, cols))


@dataclass(frozen=True, slots=True)
class Score:
    """A game as text: ``text`` holds a code for each setup stone and move; its first n moves with the setup before
    the next one are ``text[: ends[n]]``."""

    text: str
    ends: tuple[int, ...]


def score_of(row: Row, image: tuple[int, ...]) -> Score:
    """Return the legal part of a game of the game table under a symmetry."""
    stones: dict[int, list[int]] = {}
    for ply, point, colour in zip(row["setup_plies"], row["setup_points"], row["setup_colours"], strict=True):
        if ply > 0 or colour != 0:  # clearing the bare board is nothing
            stones.setdefault(ply, []).append(_SETUP + image[point] * 3 + colour)
    codes, ends = sorted(stones.get(0, ())), []
    for ply, (move, colour) in enumerate(zip(row["moves"][: row["plies"]], row["colours"], strict=False), 1):
        ends.append(len(codes))
        codes.append(1 + image[move] * 4 + colour)
        if ply in stones:
            codes += sorted(stones[ply])
    return Score("".join(map(chr, codes)), (*ends, len(codes)))


class PlainBoard:
    """A board as a bytearray with a border of 3s on every side, one byte more than needed at its end."""

    def __init__(self, rows: int, cols: int) -> None:
        self.rows, self.cols, self.stride = rows, cols, cols + 1
        self.cells = bytearray([3]) * ((rows + 2) * self.stride + 1)
        self.points = [(row + 1) * self.stride + col + 1 for row in range(rows) for col in range(cols)]
        for cell in self.points:
            self.cells[cell] = 0
        self.ko: int | None = None
        self._pick = itemgetter(*self.points, 0)

    def stones(self) -> bytes:
        """Return the colours of all points, and one byte that stays where it is under any symmetry."""
        return bytes(self._pick(self.cells))

    def _chain(self, start: int) -> tuple[list[int], int]:
        """Return the stones of a chain and one of its liberties, 0 where it has none."""
        cells, colour = self.cells, self.cells[start]
        found, seen, stride = [start], {start}, self.stride
        for cell in found:
            for near in (cell - 1, cell + 1, cell - stride, cell + stride):
                if cells[near] == 0:
                    return found, near
                if cells[near] == colour and near not in seen:
                    seen.add(near)
                    found.append(near)
        return found, 0

    def setup(self, point: int, colour: int) -> None:
        """Put or clear a point."""
        self.cells[self.points[point]] = colour
        self.ko = None

    def play(self, point: int, colour: int) -> None:
        """Play a legal move; a point beyond the last is a pass."""
        self.ko = None
        if point == len(self.points):
            return
        cells, stride, cell = self.cells, self.stride, self.points[point]
        around = (cell - 1, cell + 1, cell - stride, cell + stride)
        cells[cell] = colour
        taken: list[int] = []
        for near in around:
            if cells[near] == 3 - colour:
                chain, liberty = self._chain(near)
                if not liberty:
                    taken += chain
                    for stone in chain:
                        cells[stone] = 0
        if taken:
            free = [near for near in around if cells[near] == 0]
            if len(taken) == 1 and len(free) == 1 and all(cells[near] != colour for near in around):
                self.ko = self.points.index(taken[0])
            return
        chain, liberty = self._chain(cell)
        if not liberty:
            for stone in chain:
                cells[stone] = 0


@dataclass(frozen=True, slots=True)
class Position:
    """The board before a move: stones (see ``PlainBoard.stones``), ko point, side to move, its move, and whether
    the history begins here."""

    stones: bytes
    ko: int | None
    colour: int
    move: int
    begins: bool


def positions(row: Row) -> Iterator[Position]:
    """Yield the position before each legal move of a game of the game table."""
    board = PlainBoard(row["board_rows"], row["board_cols"])
    setup = list(zip(row["setup_plies"], row["setup_points"], row["setup_colours"], strict=True))
    cursor = 0
    for ply in range(row["plies"]):
        begins = ply == 0
        while cursor < len(setup) and setup[cursor][0] == ply:
            board.setup(*setup[cursor][1:])
            cursor, begins = cursor + 1, True
        move, colour = row["moves"][ply], row["colours"][ply]
        yield Position(board.stones(), board.ko, colour, move, begins)
        board.play(move, colour)
