"""The boards of some games, and what plane families work out of them: each once, and only if a plane asks."""

from collections.abc import Set
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pipeline.areas import AreaTrace, trace_areas
from pipeline.eyes import trace_eyes, trace_new_eyes
from pipeline.games import Games
from pipeline.katago import KATAGO_ROWS, KataOptions, KataTrace, trace_katago
from pipeline.ladders import LadderTrace, trace_ladders
from pipeline.ladders_alphago import AlphaGoLadderTrace, trace_alphago_ladders
from pipeline.trace import Trace, trace
from pipeline.whatif import Moves, trace_moves

# Parts of a trace that cost time: liberties and ages of ``boards``, escaping moves of ``ladders``; and the reading
# of ``alphago_ladders`` in which captures beside a chain save it.
Want = Literal["liberties", "ages", "escapes", "counter_captures"]


class Traces:
    """All positions of the games in ``order`` (one size, legal throughout) over their first ``plies[g]`` moves.

    Each part is made when it is first asked for, with what is in ``wants``.
    """

    def __init__(
        self,
        games: Games,
        order: NDArray[np.int64],
        plies: NDArray[np.int64],
        frame: tuple[int, int],
        wants: Set[Want] = frozenset(),
        kata_options: KataOptions = KATAGO_ROWS,
    ) -> None:
        self.games = games
        self.frame = frame
        self.size = int(games.rows[order[0]]), int(games.cols[order[0]])
        self._where = games, order, plies, frame
        self._wants = wants
        self._kata_options = kata_options

    @cached_property
    def game(self) -> NDArray[np.int64]:
        """The game of each position, int64[T]."""
        _, order, plies, _ = self._where
        return np.repeat(order, plies[order])

    @cached_property
    def boards(self) -> Trace:
        """The boards, with liberties and ages if wanted."""
        return trace(*self._where, "liberties" in self._wants, "ages" in self._wants)

    @cached_property
    def moves(self) -> Moves:
        """What each move of the side to move would do."""
        return trace_moves(*self._where)

    @cached_property
    def opponent_moves(self) -> Moves:
        """What each move of the other side would do if it were its turn, with no ko point."""
        return trace_moves(*self._where, opponent=True)

    @cached_property
    def own_eyes(self) -> NDArray[np.uint8]:
        """Packed planes uint8[T, B] of the true eyes of the side to move."""
        return trace_eyes(*self._where)

    @cached_property
    def new_eyes(self) -> NDArray[np.uint8]:
        """Packed planes uint8[T, B] of the legal moves that make an own true eye."""
        return trace_new_eyes(*self._where)

    @cached_property
    def alphago_ladders(self) -> AlphaGoLadderTrace:
        """The moves that capture in a ladder, or escape from one."""
        return trace_alphago_ladders(*self._where, counter_captures="counter_captures" in self._wants)

    @cached_property
    def ladders(self) -> LadderTrace:
        """The ladders of both sides, with the escaping moves if wanted."""
        return trace_ladders(*self._where, escapes="escapes" in self._wants)

    @cached_property
    def areas(self) -> AreaTrace:
        """What counts for each side by the rules of its game."""
        return trace_areas(*self._where)

    @cached_property
    def katago(self) -> KataTrace:
        """The history of each game as KataGo's inputs see it: bans, moves shown, globals."""
        return trace_katago(*self._where, self._kata_options)
