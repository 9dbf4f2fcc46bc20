"""The table of schemes, and positions + scheme -> packed bits.

A scheme is a list of plane groups. Adding one that uses existing groups is one entry of ``SCHEMES``.
"""

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pipeline.games import Games
from pipeline.planes import constants, edges, eyes, ko, ladders, liberties, moves, recent, stones
from pipeline.planes.group import Group, Plane
from pipeline.traces import Traces

_POSITIONS_AT_ONCE = 4096  # boards traced together: a few MB, so that they are still cached when drawn

Size = tuple[int, int]


@dataclass(frozen=True)
class Scheme:
    """A feature-plane scheme: ``version`` rises whenever a plane changes its meaning."""

    name: str
    version: int
    summary: str
    groups: tuple[Group, ...]
    options: tuple[tuple[str, str | int | bool], ...] = ()

    @cached_property
    def planes(self) -> tuple[Plane, ...]:
        """All planes in their stored order."""
        return tuple(plane for group in self.groups for plane in group.planes)

    @property
    def plane_names(self) -> tuple[str, ...]:
        """The planes' names in their stored order."""
        return tuple(plane.name for plane in self.planes)

    @property
    def history(self) -> int:
        """How many earlier boards the planes show (what a position key has to cover)."""
        return max(group.history for group in self.groups)

    @property
    def recent(self) -> int:
        """How many of the last moves the planes show (what a position key has to cover)."""
        return max(group.recent for group in self.groups)

    def traces(
        self, games: Games, order: NDArray[np.int64], plies: NDArray[np.int64], frame: tuple[int, int]
    ) -> Traces:
        """Return the boards that this scheme's planes are drawn from."""
        liberties, ages = (any(getattr(group, name) for group in self.groups) for name in ("liberties", "ages"))
        return Traces(games, order, plies, frame, liberties, ages)


_ARTICLES = "the two articles on board states and input features"
_NATURE = "AlphaGo (Nature 2016), Extended Data Table 2, as RocAlphaGo reads it"
_AGZ = "AlphaGo Zero (Nature 2017), Methods"
_LEELA = "Leela Zero, Training.cpp"
_MINIGO = "minigo, features.py (DEFAULT_FEATURES)"
_SEVEN = "Clark and Storkey 2014; kgsgo, betago, dlgo `sevenplane`"

_NATURE_PLANES = (
    stones.own_opp(1, True, _NATURE),
    stones.empty(_NATURE),
    constants.ones(_NATURE),
    recent.ages(8, _NATURE),
    liberties.chain_liberties(8, _NATURE),
    moves.capture_size(7, _NATURE),
    moves.self_atari_size(8, _NATURE),
    moves.liberties_after(8, _NATURE),
    ladders.alphago_ladders(_NATURE),
    eyes.sensible(_NATURE),
    constants.zeros(_NATURE),
)

_TABLE = (
    Scheme(
        "board",
        1,
        "the board itself, three planes",
        (stones.black_white(1, _ARTICLES), stones.empty(_ARTICLES)),
    ),
    Scheme("alphago48", 1, "AlphaGo's policy network: stones, ages, liberties, captures, ladders", _NATURE_PLANES),
    Scheme(
        "alphago49",
        1,
        "AlphaGo's value network: alphago48 and the side to move",
        (*_NATURE_PLANES, constants.black_to_move(_NATURE)),
    ),
    Scheme(
        "agz17",
        1,
        "AlphaGo Zero: 8 boards, own and opp alternating, and the side to move",
        (stones.own_opp(8, True, _AGZ), constants.black_to_move(_AGZ)),
    ),
    Scheme(
        "agz17_grouped",
        1,
        "the articles' AlphaGo Zero: 8 black boards, 8 white boards, and the side to move",
        (stones.black_white(8, _ARTICLES), constants.black_to_move(_ARTICLES)),
    ),
    Scheme(
        "leela_zero18",
        1,
        "Leela Zero: 8 own boards, 8 opp boards, and a plane for each side to move (row 0 on top)",
        (stones.own_opp(8, False, _LEELA), constants.black_to_move(_LEELA), constants.white_to_move(_LEELA)),
    ),
    Scheme(
        "seven_plane",
        1,
        "chains by liberties 1, 2, 3 or more for both sides, and the ko point",
        (liberties.own_opp_liberties(3, _SEVEN), ko.ko_point(_SEVEN)),
    ),
    Scheme(
        "minigo21",
        1,
        "minigo: stones, ones, liberties, the last 8 moves, and what can be captured",
        (
            stones.own_opp(1, True, _MINIGO),
            stones.empty(_MINIGO),
            constants.ones(_MINIGO),
            liberties.chain_liberties(8, _MINIGO),
            recent.recent_moves(8, _MINIGO),
            liberties.last_liberties(_MINIGO),
        ),
    ),
    Scheme(
        "gnugo",
        1,
        "hand-made features of empty points: pattern, captures, connections, eyes, liberties, edge",
        (
            edges.patterns(_ARTICLES),
            moves.can_capture(_ARTICLES),
            moves.can_connect(_ARTICLES),
            eyes.creates_eye(_ARTICLES),
            moves.liberties_after(8, _ARTICLES),
            moves.enemy_liberties(8, _ARTICLES),
            edges.edge_distance(5, _ARTICLES),
            moves.legal(_ARTICLES),
        ),
    ),
    Scheme(
        "alphago48_strings",
        1,
        "the first article's 48 planes: stones, liberties, recent moves, ladders, lines",
        (
            stones.black_white(1, _ARTICLES),
            stones.empty(_ARTICLES),
            constants.ones(_ARTICLES),
            liberties.chain_liberties(8, _ARTICLES),
            moves.enemy_liberties(8, _ARTICLES),
            moves.liberties_after(8, _ARTICLES),
            recent.recent_moves(8, _ARTICLES),
            ladders.article_ladders(_ARTICLES),
            edges.lines(_ARTICLES),
            constants.black_to_move(_ARTICLES),
        ),
    ),
    Scheme(
        "alphago48_history",
        1,
        "the second article's 48 planes: stones of eight turns, liberties, targets, ladders",
        (
            stones.black_white(1, _ARTICLES),
            stones.empty(_ARTICLES),
            stones.black_white_before(8, _ARTICLES),
            liberties.own_opp_liberties(4, _ARTICLES),
            moves.target_size(4, _ARTICLES),
            moves.target_size(4, _ARTICLES, opponent=True),
            ladders.article_ladders(_ARTICLES),
            moves.legal(_ARTICLES),
            edges.edge_distance(4, _ARTICLES),
        ),
    ),
)
SCHEMES = {scheme.name: scheme for scheme in _TABLE}


def find_scheme(name: str) -> Scheme:
    """Return a scheme by name. Raises ValueError with the known names, the nearest one first."""
    if name in SCHEMES:
        return SCHEMES[name]
    near = difflib.get_close_matches(name, SCHEMES, 1)
    hint = f"did you mean {near[0]!r}? Known are" if near else "known are"
    raise ValueError(f"unknown scheme {name!r}: {hint} {', '.join(SCHEMES)}")


def plane_bytes(frame: Size) -> int:
    """Return the bytes of one packed plane: ceil(rows * cols / 8)."""
    return (frame[0] * frame[1] + 7) // 8


def _chunks(games: Games, row_games: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Cut rows, ordered by game, into runs of whole games of one size, some thousand positions each."""
    starts = np.flatnonzero(np.diff(row_games, prepend=-1))
    lengths = np.diff(games.move_start)
    first, positions = 0, 0
    for number, start in enumerate(starts):
        game = row_games[start]
        size_changes = number > 0 and (
            games.rows[game] != games.rows[row_games[start - 1]] or games.cols[game] != games.cols[row_games[start - 1]]
        )
        if start > first and (size_changes or positions + lengths[game] > _POSITIONS_AT_ONCE):
            yield first, int(start)
            first, positions = int(start), 0
        positions += int(lengths[game])
    if len(row_games) > first:
        yield first, len(row_games)


def encode(
    scheme: Scheme, games: Games, row_games: NDArray[np.int64], row_plies: NDArray[np.int64], frame: Size
) -> NDArray[np.uint8]:
    """Return uint8[N, P, B]: the packed planes of the positions before move ``row_plies`` of ``row_games``.

    Rows must come in the order of games; the games' moves must be legal up to the last ply asked for.
    """
    out = np.zeros((len(row_games), len(scheme.planes), plane_bytes(frame)), dtype=np.uint8)
    plies = np.zeros(games.number, dtype=np.int64)
    np.maximum.at(plies, row_games, row_plies + 1)
    for first, last in _chunks(games, row_games):
        chunk = row_games[first:last]
        order = chunk[np.flatnonzero(np.diff(chunk, prepend=-1))]
        traces = scheme.traces(games, order, plies, frame)
        start_of = np.zeros(games.number, dtype=np.int64)
        start_of[order] = np.cumsum(plies[order]) - plies[order]
        positions = start_of[chunk] + row_plies[first:last]
        for group, plane in zip(scheme.groups, _first_planes(scheme), strict=True):
            group.draw(traces, positions, out[first:last], plane)
    return out


def _first_planes(scheme: Scheme) -> list[int]:
    counts = [len(group.planes) for group in scheme.groups]
    return [sum(counts[:number]) for number in range(len(counts))]
