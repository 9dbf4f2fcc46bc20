"""The boards of some games, and what plane families work out of them: each once, and only if a plane asks."""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pipeline.eyes import trace_eyes, trace_new_eyes
from pipeline.games import Games
from pipeline.ladders import LadderTrace, trace_ladders
from pipeline.ladders_alphago import AlphaGoLadderTrace, trace_alphago_ladders
from pipeline.trace import Trace, trace
from pipeline.whatif import Moves, trace_moves


class Traces:
    """All positions of the games in ``order`` (one size, legal throughout) over their first ``plies[g]`` moves.

    ``boards`` is made at once, with liberties and ages if told so; the rest when it is first asked for.
    """

    def __init__(
        self,
        games: Games,
        order: NDArray[np.int64],
        plies: NDArray[np.int64],
        frame: tuple[int, int],
        liberties: bool = False,
        ages: bool = False,
    ) -> None:
        self.frame = frame
        self.size = int(games.rows[order[0]]), int(games.cols[order[0]])
        self._where = games, order, plies, frame
        self.boards: Trace = trace(*self._where, liberties, ages)

    @cached_property
    def moves(self) -> Moves:
        """What each move of the side to move would do."""
        return trace_moves(*self._where)

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
        """The moves that capture in a ladder, or escape from one by the chain's own last liberty."""
        return trace_alphago_ladders(*self._where)

    @cached_property
    def ladders(self) -> LadderTrace:
        """The ladders of both sides, escaping moves too."""
        return trace_ladders(*self._where, escapes=True)

    @cached_property
    def opponent_moves(self) -> Moves:
        """What each move of the other side would do if it were its turn, with no ko point."""
        return trace_moves(*self._where, opponent=True)
