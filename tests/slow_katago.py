"""A slow history of a game as KataGo's inputs see it, written from SEMANTICS.md alone, sections 2, 4, 8 and 9.

Positions are remembered whole and compared one by one; every empty point is tried for a superko ban.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from slow_board import BLACK, WHITE, Point, SlowBoard, Stones

FINISHED, PAST_END, NO_RESULT, SCORED, BUTTON = 1, 2, 4, 8, 16
f32 = np.float32
Recent = list[Point | str]


@dataclass(frozen=True, slots=True)
class SlowRules:
    """The rules of one game."""

    ko: str = "simple"
    territory: bool = False
    tax: str = "none"
    suicide: bool = False
    button: bool = False
    bonus: str = "0"
    friendly: bool = False


@dataclass(frozen=True, slots=True)
class SlowOptions:
    """The parameters of section 5."""

    draw_for_white: float = 0.5
    conservative: bool = False
    hacks: bool = False
    advantage: float = 0.0
    max_history: int = 1000
    prevent_encore: bool = False
    early_black: bool = False


class SlowHistory:
    """One game; ``setup`` begins it."""

    def __init__(
        self, rows: int, cols: int, rules: SlowRules, komi: float, handicap: int | None, options: SlowOptions
    ) -> None:
        self.board = SlowBoard(rows, cols)
        self.rules, self.options, self.komi, self.given_handicap = rules, options, f32(komi), handicap
        self.button = rules.button
        self.bonus = 0.0
        self.lost = {BLACK: 0, WHITE: 0}
        self.moves: list[tuple[Point | None, int]] = []
        self.root: Stones = frozenset()

    def setup(self, changes: Iterable[tuple[Point, int]], to_play: int) -> None:
        """Put up stones; the main phase begins anew."""
        before = self._balance()
        assert self.board.setup(changes)
        if not self.moves:
            self.root = self.board.frozen()
        if self.rules.territory:
            self.bonus += self._balance() - before
        self.phase, self.valid, self.presumed, self.flags = 0, 0, to_play, 0
        self.second: Stones = frozenset()
        self._new_phase(to_play)

    def _balance(self) -> int:
        colours = list(self.board.stones.values())
        return colours.count(BLACK) - colours.count(WHITE)

    def _new_phase(self, to_play: int) -> None:
        self.consecutive = 0
        self.blocked: set[Point] = set()
        self.banned: set[Point] = set()
        self.captures: list[tuple[Stones, Point, int]] = []
        self.passes: list[object] = []
        self.positions = [self._position(self.board.frozen(), to_play)]

    def _position(self, stones: Stones, to_move: int) -> object:
        if self.phase > 0 or self.rules.ko in ("simple", "situational"):
            return stones, to_move, frozenset(self.blocked)
        return stones, frozenset(self.blocked)

    def _ko_capture(self, point: Point, colour: int) -> Point | None:
        """Return the stone that a move would take and so set a ko point."""
        around = self.board.neighbours[point]
        if point in self.board.stones or any(self.board.stones.get(other) != 3 - colour for other in around):
            return None
        in_atari = [other for other in around if len(self.board.chain(other).liberties) == 1]
        if len(in_atari) != 1 or len(self.board.chain(in_atari[0]).stones) != 1:
            return None
        return in_atari[0]

    def lifts(self, point: Point, colour: int) -> Point | None:
        """Return the stone whose block a pass for ko at ``point`` would lift."""
        if point not in self.board.neighbours:
            return None
        stone: Point | None = point
        if self.board.stones.get(point) == 3 - colour:
            chain = self.board.chain(point)
            stone = point if len(chain.stones) == 1 and len(chain.liberties) == 1 else None
        else:
            stone = self._ko_capture(point, colour)
        return stone if stone in self.blocked else None

    def accepts(self, point: Point | None, colour: int) -> bool:
        """Return whether a move can be made, legal or not."""
        if point is None or self.lifts(point, colour) is not None:
            return True
        inside = point in self.board.neighbours and point not in self.board.stones
        return inside and self.board.suicide_size(point, colour) != 1

    def legal(self, point: Point, colour: int) -> bool:
        """Return whether the rules allow a move of ``colour``."""
        if colour == self.presumed:
            if self.lifts(point, colour) is not None:
                return True
            if point in self.banned:
                return False
        return self.board.fault(point, colour, self.rules.suicide) is None

    def _forgets(self) -> bool:
        return self.phase > 0 or self.rules.ko in ("simple", "spight")

    def _passes_after(self) -> int:
        return self.consecutive + (0 if self.rules.ko == "spight" and self.phase == 0 else 1)

    def _repeats_pass(self, colour: int) -> bool:
        return self._forgets() and (colour, self.board.frozen(), frozenset(self.blocked)) in self.passes

    def ends_phase(self, colour: int) -> bool:
        """Return whether a pass ends the phase."""
        return not self.button and (self._passes_after() >= 2 or self._repeats_pass(colour))

    def play(self, point: Point | None, colour: int) -> bool:
        """Make a move; return whether it is a pass for ko."""
        if self.flags & (FINISHED | PAST_END):
            self.valid = min(self.valid, 1)
        self.flags = 0
        ends = point is None and self.ends_phase(colour)
        block = None if point is None else self.lifts(point, colour)
        if point is None:
            self._pass(colour)
        elif block is not None:
            self.consecutive = 0
            self.blocked.remove(block)
        else:
            self.consecutive = 0
            self._put(point, colour)
        self.moves.append((point, colour))
        self.valid += 1
        self.presumed = 3 - colour
        self.positions.append(self._position(self.board.frozen(), self.presumed))
        self._ban()
        if ends:
            self._end_phase()
        counts = point is not None and (self.phase > 0 or self.rules.ko == "simple")
        if counts and self.positions.count(self.positions[-1]) >= 3:
            self.flags = FINISHED | NO_RESULT
        return block is not None

    def _pass(self, colour: int) -> None:
        self.board.play_pass()
        if self.button:
            self.button = False
            self.bonus += 0.5 if colour == WHITE else -0.5
            self.positions.clear()
            return
        self.consecutive = self._passes_after()
        if self._forgets():
            self.positions.clear()
            self.passes.append((colour, self.board.frozen(), frozenset(self.blocked)))

    def _put(self, point: Point, colour: int) -> None:
        before = self.board.frozen()
        removed = self.board.play(point, colour)
        self.lost[colour if point in removed else 3 - colour] += len(removed)
        if self.rules.territory and self.phase < 2:
            self.bonus += 1 if colour == BLACK else -1
        if self.phase > 0:
            if self.board.ko is not None:
                self.board.ko = None
                self.blocked.add(point)
                self.captures.append((before, point, colour))
            self.blocked &= self.board.stones.keys()

    def _ban(self) -> None:
        colour = self.presumed
        self.banned = set()
        if self.phase > 0:
            now = self.board.frozen()
            self.banned = {point for stones, point, player in self.captures if stones == now and player == colour}
        elif self.rules.ko != "simple":
            for point in self.board.empty_points():
                if self.board.fault(point, colour, self.rules.suicide) is None:
                    after = self.board.copy()
                    after.play(point, colour)
                    if self._position(after.frozen(), 3 - colour) in self.positions:
                        self.banned.add(point)

    def _end_phase(self) -> None:
        if not self.rules.territory or self.phase == 2:
            self.flags = FINISHED | SCORED
        elif self.options.prevent_encore:
            self.flags = PAST_END
            self.valid = min(self.valid, 1)
        else:
            self.phase += 1
            self.valid = 0
            self._new_phase(self.presumed)
            if self.phase == 2:
                self.second = self.board.frozen()

    def handicap(self) -> int:
        """Return White's points for the handicap."""
        stones = self.given_handicap
        if stones is None:
            colours = [colour for _, colour in self.root]
            early = 0
            for point, colour in self.moves if self.options.early_black else []:
                if point is not None and colour == WHITE:
                    break
                early += point is not None
            stones = len(colours) + (early if early > 1 else 0)
            if WHITE in colours or stones < 2:
                stones = 0
        return {"0": 0, "N": stones, "N-1": max(0, stones - 1)}[self.rules.bonus]

    def own_komi(self, colour: int) -> np.float32:
        """Return the komi for ``colour``."""
        white = self.komi + f32(self.handicap()) + f32(self.bonus)
        if float(self.komi).is_integer() != self.rules.button:
            white = white + f32(self.options.draw_for_white - 0.5)
        most = self.board.rows * self.board.cols + 20
        return f32(min(max(white if colour == WHITE else -white, f32(-most)), f32(most)))

    def hidden(self, colour: int, lead: int) -> bool:
        """Return whether all history is hidden; ``lead`` is that of ``colour`` on the board."""
        if not self.ends_phase(colour) or (self.rules.territory and self.phase < 2):
            return False
        friendly = self.rules.friendly and not self.rules.territory
        return (
            self.options.conservative
            or (self.options.hacks and bool(lead + self.own_komi(colour) <= 0))
            or (friendly and self._passes_after() == 2 and not self._repeats_pass(colour))
        )

    def recent(self, colour: int, lead: int) -> Recent:
        """Return the moves shown, latest first."""
        cap = 0 if self.hidden(colour, lead) else 1 if self.flags & (FINISHED | PAST_END) else 5
        shown: Recent = []
        for back in range(1, min(cap, self.options.max_history, self.valid) + 1):
            point, mover = self.moves[-back]
            if mover != (3 - colour if back % 2 else colour):
                break
            shown.append("pass" if point is None else point)
        return shown

    def globals(self, colour: int, lead: int) -> list[np.float32]:
        """Return the 19 globals."""
        rules, own = self.rules, self.own_komi(colour)
        passes: list[float] = [move == "pass" for move in self.recent(colour, lead)]
        ko = {"simple": (0, 0), "positional": (1, 0.5), "spight": (1, 0.5), "situational": (1, -0.5)}[rules.ko]
        tax = {"none": (0, 0), "seki": (1, 0), "all": (1, 1)}[rules.tax]
        ends = self.ends_phase(colour) and not self.hidden(colour, lead)
        advantage = self.options.advantage
        values: list[Any] = [
            *passes, *[0] * (5 - len(passes)), own / f32(20), *ko, rules.suicide, rules.territory, *tax,
            self.phase >= 1, self.phase >= 2, ends, advantage != 0, advantage / 2, self.button, self._wave(own),
        ]  # fmt: skip
        return [f32(value) for value in values]

    def _wave(self, own: np.float32) -> np.float32:
        if self.rules.territory and self.phase < 2:
            return f32(0)
        floor = math.floor(own)
        if (floor - self.board.rows * self.board.cols) % 2:
            floor -= 1
        over = f32(own - f32(floor))
        return over if over < 0.5 else f32(1) - over if over < 1.5 else over - f32(2)
