"""A slow board to test the fast one against, written from the rules and not from ``pipeline.board``.

Stones are a dictionary, chains are found by flood fill, a suicide is found out by trying it, and
superko by comparing whole boards. Points are (row, col), row 0 on top; colours are 1 and 2.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

Point = tuple[int, int]
Stones = frozenset[tuple[Point, int]]

BLACK, WHITE = 1, 2
OCCUPIED, KO, SUICIDE, SUPERKO, OFF_BOARD = "occupied", "ko", "suicide", "superko", "off-board"


@cache
def neighbours_of(rows: int, cols: int) -> dict[Point, tuple[Point, ...]]:
    """Return the orthogonal neighbours of every point of a board."""
    return {
        (row, col): tuple(
            (r, c)
            for r, c in ((row - 1, col), (row + 1, col), (row, col - 1), (row, col + 1))
            if 0 <= r < rows and 0 <= c < cols
        )
        for row in range(rows)
        for col in range(cols)
    }


@dataclass(frozen=True, slots=True)
class Chain:
    """Connected stones of one colour and the empty points next to them."""

    colour: int
    stones: frozenset[Point]
    liberties: frozenset[Point]


class SlowBoard:
    """Stones and the simple-ko point of a board of any size."""

    def __init__(self, rows: int, cols: int) -> None:
        self.rows = rows
        self.cols = cols
        self.neighbours = neighbours_of(rows, cols)
        self.stones: dict[Point, int] = {}
        self.ko: Point | None = None

    def copy(self) -> "SlowBoard":
        """Return a board of its own that looks the same."""
        other = SlowBoard(self.rows, self.cols)
        other.stones = dict(self.stones)
        other.ko = self.ko
        return other

    def frozen(self) -> Stones:
        """Return all stones as a value that can be compared and hashed."""
        return frozenset(self.stones.items())

    def empty_points(self) -> list[Point]:
        """Return all empty points, row by row."""
        return [point for point in self.neighbours if point not in self.stones]

    def chain(self, point: Point) -> Chain:
        """Return the chain of the stone at ``point``."""
        colour = self.stones[point]
        stones, liberties, to_visit = {point}, set(), [point]
        while to_visit:
            for neighbour in self.neighbours[to_visit.pop()]:
                there = self.stones.get(neighbour)
                if there is None:
                    liberties.add(neighbour)
                elif there == colour and neighbour not in stones:
                    stones.add(neighbour)
                    to_visit.append(neighbour)
        return Chain(colour, frozenset(stones), frozenset(liberties))

    def chains(self) -> list[Chain]:
        """Return every chain on the board once."""
        found: list[Chain] = []
        seen: set[Point] = set()
        for point in self.stones:
            if point not in seen:
                found.append(self.chain(point))
                seen |= found[-1].stones
        return found

    def has_liberty(self, point: Point) -> bool:
        """Return whether the chain of the stone at ``point`` has a liberty; stops at the first one."""
        colour = self.stones[point]
        seen, to_visit = {point}, [point]
        while to_visit:
            for neighbour in self.neighbours[to_visit.pop()]:
                there = self.stones.get(neighbour)
                if there is None:
                    return True
                if there == colour and neighbour not in seen:
                    seen.add(neighbour)
                    to_visit.append(neighbour)
        return False

    def setup(self, changes: Iterable[tuple[Point, int]]) -> bool:
        """Put stones (or take them away: colour 0), clear the ko; return whether all chains have liberties."""
        for point, colour in changes:
            self.stones.pop(point, None)
            if colour:
                self.stones[point] = colour
        self.ko = None
        return all(chain.liberties for chain in self.chains())

    def play(self, point: Point, colour: int) -> frozenset[Point]:
        """Play on an empty point and return the stones removed, the player's own after a suicide."""
        if point in self.stones:
            raise ValueError(f"there is a stone at {point}")
        self.stones[point] = colour
        captured: set[Point] = set()
        for neighbour in self.neighbours[point]:
            if self.stones.get(neighbour) == 3 - colour and not self.has_liberty(neighbour):
                captured |= self.chain(neighbour).stones
        for stone in captured:
            self.stones.pop(stone)
        own = self.chain(point)
        self.ko = None
        if len(captured) == 1 and len(own.stones) == 1 and len(own.liberties) == 1:
            (self.ko,) = captured
        if not own.liberties:
            for stone in own.stones:
                del self.stones[stone]
            return own.stones
        return frozenset(captured)

    def play_pass(self) -> None:
        """Pass: lifts the ko."""
        self.ko = None

    def suicide_size(self, point: Point, colour: int) -> int:
        """Return how many stones a move on the empty ``point`` would kill by suicide, 0 for no suicide."""
        if any(neighbour not in self.stones for neighbour in self.neighbours[point]):
            return 0
        self.stones[point] = colour
        captures = any(
            self.stones[neighbour] == 3 - colour and not self.has_liberty(neighbour)
            for neighbour in self.neighbours[point]
        )
        lost = 0 if captures or self.has_liberty(point) else len(self.chain(point).stones)
        del self.stones[point]
        return lost

    def fault(self, point: Point, colour: int, suicide: bool) -> str | None:
        """Return why a move is illegal, None where it is legal; superko apart.

        The ko ban names a point, whoever plays there. Suicide of one stone is illegal under all rules.
        """
        if point not in self.neighbours:
            return OFF_BOARD
        if point in self.stones:
            return OCCUPIED
        if point == self.ko:
            return KO
        lost = self.suicide_size(point, colour)
        return SUICIDE if lost == 1 or (lost > 1 and not suicide) else None

    def text(self) -> str:
        """Return the board as text, for messages and for boards drawn in tests."""
        return "\n".join(
            " ".join(".XO"[self.stones.get((row, col), 0)] for col in range(self.cols)) for row in range(self.rows)
        )


def draw(text: str) -> dict[Point, int]:
    """Return the stones of a board drawn as ``SlowBoard.text`` does."""
    return {
        (row, col): ".XO".index(sign)
        for row, line in enumerate(text.split("\n"))
        for col, sign in enumerate(line.split())
        if sign != "."
    }


class SlowGame:
    """A game under a ko rule: "simple", "positional", "situational" or "spight"."""

    def __init__(self, rows: int, cols: int, ko_rule: str, suicide: bool) -> None:
        self.board = SlowBoard(rows, cols)
        self.ko_rule = ko_rule
        self.suicide = suicide
        self.earlier: list[tuple[Stones, int]] = []  # boards with the side to move, the present one last

    def setup(self, changes: Iterable[tuple[Point, int]], to_move: int) -> bool:
        """Begin, or begin anew, with these stones changed; return whether the position is a legal one."""
        sound = self.board.setup(changes)
        self.earlier = [(self.board.frozen(), to_move)]
        return sound

    def fault(self, point: Point | None, colour: int) -> str | None:
        """Return why a move is illegal, None where it is legal. A pass (None) is always legal."""
        if point is None:
            return None
        fault = self.board.fault(point, colour, self.suicide)
        if fault is None and self.ko_rule != "simple":
            after = self.board.copy()
            after.play(point, colour)
            for stones, to_move in self.earlier:
                if stones == after.frozen() and (self.ko_rule != "situational" or to_move == 3 - colour):
                    return SUPERKO
        return fault

    def play(self, point: Point | None, colour: int) -> frozenset[Point]:
        """Make a legal move, return the stones removed."""
        removed: frozenset[Point] = frozenset()
        if point is None:
            self.board.play_pass()
            if self.ko_rule == "spight":
                self.earlier.clear()
        else:
            removed = self.board.play(point, colour)
        self.earlier.append((self.board.frozen(), 3 - colour))
        return removed
