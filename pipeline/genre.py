"""What is recorded, where it is no game of Go from its start on: problems, lectures, gomoku, nothing at all.

None of these is certain, so that a stated result makes a game of all of them, but of gomoku that shows its five.
"""

import numpy as np

from pipeline.board import BLACK, EMPTY, WHITE
from pipeline.config import Filter
from pipeline.game import Game
from pipeline.handicaps import MAX_FIXED
from pipeline.reasons import Flag, Reason

_FIVE = 5
_WAYS = ((0, 1), (1, 0), (1, 1), (1, -1))


def no_game(game: Game, plies: int, wanted: Filter) -> tuple[Reason, str] | None:
    """Return why a record is not taken for a game of Go, with what shows it; None where it is.

    ``plies``: moves of the game after it was cut at an illegal move. EMPTY: nothing in it. NOT_GO: on one of
    ``wanted.gomoku_boards`` the last move makes the first five in a row, or it has few moves and no result. PROBLEM:
    few moves and no result, and stones set up that are no handicap, or marks where nobody plays. Few are
    fewer than ``wanted.problem_moves``.
    """
    stones = _stones(game)
    if game.winner is None and not (len(game.moves) or game.setup_points.size or game.black or game.white):
        return Reason.EMPTY, "no move, no stone, no player, no result"
    few = plies < wanted.problem_moves and game.winner is None
    seen = f"{plies} moves, no result"
    policy = f"filter.problem_moves = {wanted.problem_moves}"
    if game.rows == game.cols and game.rows in wanted.gomoku_boards:
        board = f"a {game.rows}x{game.cols} board, filter.gomoku_boards = {list(wanted.gomoku_boards)}"
        if _ends_with_five(game, plies):
            return Reason.NOT_GO, f"ends with the first five in a row; {board}"
        if few:
            return Reason.NOT_GO, f"{seen}; {board}, {policy}"
    if few and stones and not _is_start(game):
        return Reason.PROBLEM, f"{stones}, {seen}; {policy}"
    if few and Flag.LECTURE in game.flags:
        return Reason.PROBLEM, f"marks, no player, {seen}; {policy}"
    return None


def _stones(game: Game) -> str:
    """Name what is set up before and during a game; "" for nothing."""
    if not game.setup_points.size:
        return ""
    kinds = ((BLACK, "Black"), (WHITE, "White"), (EMPTY, "emptied"))
    counts = [(int(np.count_nonzero(game.setup_colours == colour)), name) for colour, name in kinds]
    named = " and ".join(f"{count} {name}" for count, name in counts if count)
    return f"{named} set up" if named else ""


def _is_start(game: Game) -> bool:
    """Whether all that is set up is how games begin: a handicap, or the four stones of old Chinese games."""
    if game.setup_plies.any():
        return False
    black, white = (set(game.setup_points[game.setup_colours == colour].tolist()) for colour in (BLACK, WHITE))
    if white:
        rows, cols = game.rows, game.cols
        far = (rows - 4) * cols
        diagonals = ({3 * cols + 3, far + cols - 4}, {3 * cols + cols - 4, far + 3})
        return rows >= 13 and cols >= 13 and (black, white) in (diagonals, diagonals[::-1])
    if not black:
        return False
    # A handicap is named by HA, or White moves first.
    named = game.handicap >= 2
    return len(black) <= max(MAX_FIXED, game.handicap) and (named or game.colours[:1].tolist() != [BLACK])


def _ends_with_five(game: Game, plies: int) -> bool:
    """Whether the last move makes five in a row, none before did, and no point is played twice."""
    cells: dict[tuple[int, int], int] = {}
    for ply in range(plies):
        cell = divmod(int(game.moves[ply]), game.cols)
        colour = int(game.colours[ply])
        if cell in cells or cell[0] >= game.rows:
            return False
        cells[cell] = colour
        if _in_a_row(cells, cell, colour) >= _FIVE:
            return ply == plies - 1
    return False


def _in_a_row(cells: dict[tuple[int, int], int], cell: tuple[int, int], colour: int) -> int:
    """How many stones of a colour stand in the longest line through a point."""
    longest = 0
    for down, right in _WAYS:
        count = 1
        for sign in (1, -1):
            row, col = cell[0] + sign * down, cell[1] + sign * right
            while cells.get((row, col)) == colour and count < _FIVE:
                row, col, count = row + sign * down, col + sign * right, count + 1
        longest = max(longest, count)
    return longest
