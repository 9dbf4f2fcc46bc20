"""Schemes composed in the configuration from named groups of planes."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pipeline.config import Encode
from pipeline.planes import areas, constants, edges, eyes, katago, ko, ladders, liberties, moves, recent, stones, terms
from pipeline.planes.group import Group
from pipeline.schemes import Scheme, find_scheme, hint

COMPOSED = "composed"
_OWN = "this scheme's configuration"
_VERSION = 1


@dataclass(frozen=True, slots=True)
class _Named:
    """A group by name. ``make(n)`` builds it for a number from 1 to ``most``; ``usual`` where none is given."""

    meaning: str
    make: Callable[[int], Group]
    usual: int = 1
    most: int = 1


_GROUPS: dict[str, _Named] = {
    "stones": _Named("own and opp stones of the last N boards", lambda n: stones.own_opp(n, True, _OWN), 1, 16),
    "black_white": _Named("black and white stones of the last N boards", lambda n: stones.black_white(n, _OWN), 1, 16),
    "empty": _Named("empty points", lambda _: stones.empty(_OWN)),
    "ones": _Named("1 everywhere on the board", lambda _: constants.ones(_OWN)),
    "zeros": _Named("0 everywhere", lambda _: constants.zeros(_OWN)),
    "black_to_move": _Named("1 everywhere if Black is to move", lambda _: constants.black_to_move(_OWN)),
    "white_to_move": _Named("1 everywhere if White is to move", lambda _: constants.white_to_move(_OWN)),
    "ages": _Named("stones by age, 1 to N or more turns", lambda n: recent.ages(n, _OWN), 8, 16),
    "recent": _Named("the points played 1 to N turns ago", lambda n: recent.recent_moves(n, _OWN), 8, 15),
    "liberties": _Named("chains by liberties, 1 to N or more", lambda n: liberties.chain_liberties(n, _OWN), 8, 16),
    "side_liberties": _Named(
        "own, then opp chains by liberties", lambda n: liberties.own_opp_liberties(n, _OWN), 4, 16
    ),
    "last_liberties": _Named("the last liberties of opp chains in atari", lambda _: liberties.last_liberties(_OWN)),
    "ko": _Named("the simple-ko point", lambda _: ko.ko_point(_OWN)),
    "bans": _Named("points banned by the ko rule of the game", lambda _: katago.bans(_OWN)),
    "legal": _Named("legal moves", lambda _: moves.legal(_OWN)),
    "captures": _Named("moves by stones captured, 0 to N or more", lambda n: moves.capture_size(n, _OWN), 7, 16),
    "self_atari": _Named(
        "moves that put their chain in atari, by its size", lambda n: moves.self_atari_size(n, _OWN), 8, 16
    ),
    "liberties_after": _Named(
        "moves by the liberties of their chain after them", lambda n: moves.liberties_after(n, _OWN), 8, 16
    ),
    "enemy_liberties": _Named(
        "moves by the fewest liberties left to opp beside them", lambda n: moves.enemy_liberties(n, _OWN), 8, 16
    ),
    "targets": _Named(
        "moves beside opp chains of 2 liberties, by their size", lambda n: moves.target_size(n, _OWN), 4, 16
    ),
    "opp_targets": _Named(
        "the same for opp beside own chains", lambda n: moves.target_size(n, _OWN, opponent=True), 4, 16
    ),
    "can_capture": _Named("moves that take at least one stone", lambda _: moves.can_capture(_OWN)),
    "can_connect": _Named("moves that join own chains", lambda _: moves.can_connect(_OWN)),
    "makes_ko": _Named("moves that make a ko", lambda _: moves.makes_ko(_OWN)),
    "opp_makes_ko": _Named("moves of opp that make a ko", lambda _: moves.makes_ko(_OWN, opponent=True)),
    "sensible": _Named("moves that fill no own true eye", lambda _: eyes.sensible(_OWN)),
    "creates_eye": _Named("moves that make an own true eye", lambda _: eyes.creates_eye(_OWN)),
    "ladders": _Named(
        "ladders of both sides: stones now and 1 turn ago, moves, escapes", lambda _: ladders.article_ladders(_OWN)
    ),
    "ladder_moves": _Named(
        "moves that capture in a ladder, or escape from one, as AlphaGo has them",
        lambda _: ladders.alphago_ladders(_OWN),
    ),
    "areas": _Named(
        "what counts for own and opp by the rules; none under territory scoring", lambda _: areas.own_opp_areas(_OWN)
    ),
    "patterns": _Named("the number of the 3x3 pattern around empty points, in 11 bits", lambda _: edges.patterns(_OWN)),
    "edge": _Named("points by lines from the edge, 0 to N - 1 or more", lambda n: edges.edge_distance(n, _OWN), 4, 12),
    "lines": _Named("diagonals, middle lines, centre", lambda _: edges.lines(_OWN)),
    "rules": _Named("scoring, suicide and ko rule of the game", lambda _: terms.rules(_OWN)),
    "komi": _Named("White's komi is 6 or more; 7 or more", lambda _: terms.komi_steps((6, 7), _OWN)),
    "handicap": _Named("1 everywhere in a handicap game", lambda _: terms.handicap(_OWN)),
    "katago_globals": _Named("KataGo's 19 globals, no planes", lambda _: katago.global_inputs(_OWN)),
}


def group_lines() -> list[str]:
    """Return the named groups, a line each."""
    lines = []
    for name, group in _GROUPS.items():
        number = f" (N = {group.usual} unless written, {group.most} at most)" if group.most > 1 else ""
        lines.append(f"{name:<18}{group.meaning}{number}")
    return lines


def compose(names: Sequence[str]) -> Scheme:
    """Return the scheme of the groups ``names``, each "name" or "name=N", in this order.

    Raises ValueError for a group that is not known, with the list of those that are; for a number out of its
    range; and where two groups have a plane or a global of the same name, or none has a plane.
    """
    groups = tuple(_group(name) for name in names)
    for kind, planes in (
        ("global", [each.name for group in groups for each in group.globals]),
        ("plane", [plane.name for group in groups for plane in group.planes]),
    ):
        if twice := [name for name, count in Counter(planes).items() if count > 1]:
            raise ValueError(f"two groups have the {kind} {twice[0]!r}: name each group once")
    if not planes:
        raise ValueError("a composed scheme needs a group with planes")
    return Scheme(COMPOSED, _VERSION, f"composed of {', '.join(names)}", groups, (("planes", ",".join(names)),))


def _group(text: str) -> Group:
    name, equals, number = text.partition("=")
    if name not in _GROUPS:
        raise ValueError(f"no group of planes is named {name!r}{hint(name, _GROUPS)}; known are {', '.join(_GROUPS)}")
    named = _GROUPS[name]
    if not equals:
        return named.make(named.usual)
    if named.most == 1:
        raise ValueError(f"the group {name} takes no number: {text!r}")
    if not (number.isascii() and number.isdecimal() and len(number) <= 4 and 1 <= int(number) <= named.most):
        raise ValueError(f"the number of the group {name} is 1 to {named.most}: {text!r}")
    return named.make(int(number))


def configured_scheme(encode: Encode) -> Scheme:
    """Return the scheme that a configuration names or composes. Raises ValueError for what there is not."""
    if not encode.planes:
        return find_scheme(encode.scheme, encode.options)
    if encode.scheme not in (Encode().scheme, COMPOSED):
        raise ValueError(f"encode.scheme = {encode.scheme!r} and encode.planes: name a scheme or compose one")
    if encode.options:
        raise ValueError("encode.options belong to a named scheme, not to encode.planes")
    return compose(encode.planes)


def stored_scheme(name: str, options: Mapping[str, object]) -> Scheme:
    """Return the scheme that a data set was made with. Raises ValueError for what there is not."""
    if name == COMPOSED:
        return compose(str(options.get("planes", "")).split(","))
    return find_scheme(name, options)
