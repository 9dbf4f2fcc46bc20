"""The table of schemes: which groups of planes each is made of, and the options it has.

Adding a scheme that uses existing groups is one entry of ``_RECIPES``. A scheme may also be composed in the
configuration from the named groups of ``pipeline.compose``.
"""

import difflib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pipeline.games import Games
from pipeline.planes import areas, constants, edges, eyes, katago, ko, ladders, liberties, moves, recent, stones, terms
from pipeline.planes.group import Group, Plane
from pipeline.planes.legality import by_the_rules
from pipeline.traces import Traces

Choices = Mapping[str, str]  # of every option of a scheme


@dataclass(frozen=True, slots=True)
class Option:
    """A choice that a definition leaves open; the first value is the default."""

    name: str
    values: tuple[str, ...]
    meaning: str


@dataclass(frozen=True)
class Scheme:
    """A feature-plane scheme: ``version`` rises whenever a plane changes its meaning; ``options`` as chosen."""

    name: str
    version: int
    summary: str
    groups: tuple[Group, ...]
    options: tuple[tuple[str, str], ...] = ()

    @cached_property
    def planes(self) -> tuple[Plane, ...]:
        """All planes in their stored order."""
        return tuple(plane for group in self.groups for plane in group.planes)

    @cached_property
    def globals(self) -> tuple[Plane, ...]:
        """All globals in their stored order."""
        return tuple(each for group in self.groups for each in group.globals)

    @property
    def plane_names(self) -> tuple[str, ...]:
        """The planes' names in their stored order."""
        return tuple(plane.name for plane in self.planes)

    @property
    def global_names(self) -> tuple[str, ...]:
        """The globals' names in their stored order."""
        return tuple(each.name for each in self.globals)

    @property
    def history(self) -> int:
        """How many earlier boards the planes show (what a position key has to cover)."""
        return max(group.history for group in self.groups)

    @property
    def recent(self) -> int:
        """How many of the last moves the planes show (what a position key has to cover)."""
        return max(group.recent for group in self.groups)

    @property
    def komi(self) -> bool:
        """Whether planes or globals need a komi."""
        return any(group.komi for group in self.groups)

    def traces(
        self, games: Games, order: NDArray[np.int64], plies: NDArray[np.int64], frame: tuple[int, int]
    ) -> Traces:
        """Return what this scheme's planes are drawn from."""
        wants = frozenset(want for group in self.groups for want in group.wants)
        return Traces(games, order, plies, frame, wants)


@dataclass(frozen=True, slots=True)
class _Recipe:
    """A scheme before its options are chosen."""

    name: str
    version: int
    summary: str
    groups: Callable[[Choices], tuple[Group, ...]]
    options: tuple[Option, ...] = ()


_ARTICLES = "the two articles on board states and input features"
_NATURE = "AlphaGo (Nature 2016), Extended Data Table 2, as RocAlphaGo reads it"
_AGZ = "AlphaGo Zero (Nature 2017), Methods"
_LEELA = "Leela Zero, Training.cpp"
_MINIGO = "minigo, features.py (DEFAULT_FEATURES)"
_SEVEN = "Clark and Storkey 2014; kgsgo, betago, dlgo `sevenplane`"
_KATAGO = "KataGo, nninputs.cpp (fillRowV7)"

_LEGALITY = Option(
    "legality",
    ("simple", "rules"),
    "legal moves: by simple ko, or without what superko bans by the rules",
)
_SETUP_AGE = Option("setup_age", ("oldest", "none"), "the age plane of setup stones: the last, or none")
_LADDER_ESCAPE = Option(
    "ladder_escape", ("own", "counter"), "moves that save a chain: its own last liberty, or captures beside it too"
)
_BEFORE_START = Option("before_start", ("empty", "oldest"), "boards before the start: empty, or the first one again")
_SIDE = Option("side", ("black", "both"), "the side to move: a plane for Black, or one for each side (18 planes)")


def _legal(group: Group, chosen: Choices) -> Group:
    """Return planes of moves under the chosen legality."""
    return by_the_rules(group) if chosen["legality"] == "rules" else group


def _board(_: Choices) -> tuple[Group, ...]:
    return stones.black_white(1, _ARTICLES), stones.empty(_ARTICLES)


def _alphago48(chosen: Choices) -> tuple[Group, ...]:
    return (
        stones.own_opp(1, True, _NATURE),
        stones.empty(_NATURE),
        constants.ones(_NATURE),
        recent.ages(8, _NATURE, chosen["setup_age"] == "oldest"),
        liberties.chain_liberties(8, _NATURE),
        _legal(moves.capture_size(7, _NATURE), chosen),
        _legal(moves.self_atari_size(8, _NATURE), chosen),
        _legal(moves.liberties_after(8, _NATURE), chosen),
        _legal(ladders.alphago_ladders(_NATURE, chosen["ladder_escape"] == "counter"), chosen),
        _legal(eyes.sensible(_NATURE), chosen),
        constants.zeros(_NATURE),
    )


def _alphago49(chosen: Choices) -> tuple[Group, ...]:
    return *_alphago48(chosen), constants.black_to_move(_NATURE)


def _agz17(chosen: Choices) -> tuple[Group, ...]:
    side = (constants.black_to_move(_AGZ), constants.white_to_move(_AGZ))
    boards = stones.own_opp(8, True, _AGZ, chosen["before_start"] == "oldest")
    return boards, *(side if chosen["side"] == "both" else side[:1])


def _agz17_grouped(_: Choices) -> tuple[Group, ...]:
    return stones.black_white(8, _ARTICLES), constants.black_to_move(_ARTICLES)


def _leela_zero18(_: Choices) -> tuple[Group, ...]:
    return stones.own_opp(8, False, _LEELA), constants.black_to_move(_LEELA), constants.white_to_move(_LEELA)


def _seven_plane(_: Choices) -> tuple[Group, ...]:
    return liberties.own_opp_liberties(3, _SEVEN), ko.ko_point(_SEVEN)


def _minigo21(_: Choices) -> tuple[Group, ...]:
    return (
        stones.own_opp(1, True, _MINIGO),
        stones.empty(_MINIGO),
        constants.ones(_MINIGO),
        liberties.chain_liberties(8, _MINIGO),
        recent.recent_moves(8, _MINIGO),
        liberties.last_liberties(_MINIGO),
    )


def _gnugo(chosen: Choices) -> tuple[Group, ...]:
    return (
        edges.patterns(_ARTICLES),
        _legal(moves.can_capture(_ARTICLES), chosen),
        _legal(moves.can_connect(_ARTICLES), chosen),
        _legal(eyes.creates_eye(_ARTICLES), chosen),
        _legal(moves.liberties_after(8, _ARTICLES), chosen),
        _legal(moves.enemy_liberties(8, _ARTICLES), chosen),
        edges.edge_distance(5, _ARTICLES),
        _legal(moves.legal(_ARTICLES), chosen),
    )


def _alphago48_strings(chosen: Choices) -> tuple[Group, ...]:
    return (
        stones.black_white(1, _ARTICLES),
        stones.empty(_ARTICLES),
        constants.ones(_ARTICLES),
        liberties.chain_liberties(8, _ARTICLES),
        _legal(moves.enemy_liberties(8, _ARTICLES), chosen),
        _legal(moves.liberties_after(8, _ARTICLES), chosen),
        recent.recent_moves(8, _ARTICLES),
        ladders.article_ladders(_ARTICLES),
        edges.lines(_ARTICLES),
        constants.black_to_move(_ARTICLES),
    )


def _alphago48_history(chosen: Choices) -> tuple[Group, ...]:
    return (
        stones.black_white(1, _ARTICLES),
        stones.empty(_ARTICLES),
        stones.black_white_before(8, _ARTICLES),
        liberties.own_opp_liberties(4, _ARTICLES),
        _legal(moves.target_size(4, _ARTICLES), chosen),
        moves.target_size(4, _ARTICLES, opponent=True),
        ladders.article_ladders(_ARTICLES),
        _legal(moves.legal(_ARTICLES), chosen),
        edges.edge_distance(4, _ARTICLES),
    )


def _katago22_article(chosen: Choices) -> tuple[Group, ...]:
    return (
        stones.black_white(1, _ARTICLES),
        stones.empty(_ARTICLES),
        constants.ones(_ARTICLES),
        constants.black_to_move(_ARTICLES),
        recent.recent_moves(5, _ARTICLES),
        ko.ko_point(_ARTICLES),
        _legal(moves.makes_ko(_ARTICLES), chosen),
        moves.makes_ko(_ARTICLES, opponent=True),
        terms.rules(_ARTICLES),
        terms.komi_steps((6, 7), _ARTICLES),
        terms.handicap(_ARTICLES),
    )


def _katago_v7(_: Choices) -> tuple[Group, ...]:
    return (
        constants.ones(_KATAGO),
        stones.own_opp(1, True, _KATAGO),
        liberties.few_liberties(3, _KATAGO),
        katago.bans(_KATAGO),
        katago.blocks(_KATAGO),
        constants.zeros(_KATAGO),
        katago.recent_moves(_KATAGO),
        ladders.katago_ladders(_KATAGO),
        areas.own_opp_areas(_KATAGO),
        katago.second_stones(_KATAGO),
        katago.global_inputs(_KATAGO),
    )


_NATURE_OPTIONS = (_LADDER_ESCAPE, _LEGALITY, _SETUP_AGE)
_RECIPES = {
    recipe.name: recipe
    for recipe in (
        _Recipe("board", 1, "the board itself, three planes", _board),
        _Recipe(
            "alphago48",
            1,
            "AlphaGo's policy network: stones, ages, liberties, captures, ladders",
            _alphago48,
            _NATURE_OPTIONS,
        ),
        _Recipe("alphago49", 1, "AlphaGo's value network: alphago48 and the side to move", _alphago49, _NATURE_OPTIONS),
        _Recipe(
            "agz17",
            1,
            "AlphaGo Zero: 8 boards, own and opp alternating, and the side to move",
            _agz17,
            (_BEFORE_START, _SIDE),
        ),
        _Recipe(
            "agz17_grouped",
            1,
            "the articles' AlphaGo Zero: 8 black boards, 8 white boards, and the side to move",
            _agz17_grouped,
        ),
        _Recipe(
            "leela_zero18",
            1,
            "Leela Zero: 8 own boards, 8 opp boards, and a plane for each side to move (row 0 on top)",
            _leela_zero18,
        ),
        _Recipe("seven_plane", 1, "chains by liberties 1, 2, 3 or more for both sides, and the ko point", _seven_plane),
        _Recipe(
            "minigo21", 1, "minigo: stones, ones, liberties, the last 8 moves, and what can be captured", _minigo21
        ),
        _Recipe(
            "gnugo",
            1,
            "hand-made features of empty points: pattern, captures, connections, eyes, liberties, edge",
            _gnugo,
            (_LEGALITY,),
        ),
        _Recipe(
            "alphago48_strings",
            1,
            "the first article's 48 planes: stones, liberties, recent moves, ladders, lines",
            _alphago48_strings,
            (_LEGALITY,),
        ),
        _Recipe(
            "alphago48_history",
            1,
            "the second article's 48 planes: stones of eight turns, liberties, targets, ladders",
            _alphago48_history,
            (_LEGALITY,),
        ),
        _Recipe(
            "katago22_article",
            1,
            "the second article's KataGo: stones, recent moves, kos, and planes for rules and komi",
            _katago22_article,
            (_LEGALITY,),
        ),
        _Recipe("katago_v7", 1, "KataGo's V7 inputs under each game's own rules: 22 planes and 19 globals", _katago_v7),
    )
}


def _made(recipe: _Recipe, options: Mapping[str, object]) -> Scheme:
    """Return a scheme with its options chosen. Raises ValueError for an option or a value it does not have."""
    known = {option.name: option for option in recipe.options}
    for name, value in options.items():
        if name not in known:
            has = f"has {', '.join(known)}" if known else "has none"
            raise ValueError(f"scheme {recipe.name} has no option {name!r}{hint(name, known)}; it {has}")
        if value not in known[name].values:
            raise ValueError(
                f"option {name} of scheme {recipe.name} is {' or '.join(map(repr, known[name].values))}, not {value!r}"
            )
    chosen = {name: str(options.get(name, option.values[0])) for name, option in known.items()}
    return Scheme(recipe.name, recipe.version, recipe.summary, recipe.groups(chosen), tuple(chosen.items()))


SCHEMES = {name: _made(recipe, {}) for name, recipe in _RECIPES.items()}


def find_scheme(name: str, options: Mapping[str, object] | None = None) -> Scheme:
    """Return a scheme by name, its options chosen.

    Raises ValueError with the known names, the nearest one first, for an unknown name, option or value.
    """
    if name not in _RECIPES:
        raise ValueError(f"unknown scheme {name!r}{hint(name, _RECIPES)}; known are {', '.join(_RECIPES)}")
    return _made(_RECIPES[name], options) if options else SCHEMES[name]


def scheme_options(name: str) -> tuple[Option, ...]:
    """Return the options of a known scheme."""
    return _RECIPES[name].options


def hint(name: str, known: Collection[str]) -> str:
    """Return the nearest known name in words, for a message; nothing where none is near."""
    near = difflib.get_close_matches(name, known, 1)
    return f" (did you mean {near[0]!r}?)" if near else ""
