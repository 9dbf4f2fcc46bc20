"""Bytes of a member to games: decode, tokenise, follow the main line, read the headers.

The grammar is sgfmill's, and this is the only module that imports it. Its tokeniser is used as it
is; the walk over its tokens is ours, because one pass without a tree needs neither recursion nor
memory for variations. Legality is not looked at here.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray
from sgfmill import sgf_grammar

from pipeline.config import Input, Parse, ResultKind, Rules
from pipeline.headers.date import read_date
from pipeline.headers.handicap import read_handicap
from pipeline.headers.komi import read_komi, writer_of
from pipeline.headers.rank import read_rank_or_name
from pipeline.headers.result import Winner, read_result
from pipeline.headers.size import read_size
from pipeline.mainline import Fault, Line, Node, read_line
from pipeline.reasons import Flag, Reason
from pipeline.rules import resolve
from pipeline.text import decode

MAX_TEXT = 500  # characters kept of a header text
_MAX_DETAIL = 200

# The flags that ``with_headers`` sets.
HEADER_FLAGS = frozenset({
    Flag.KOMI_UNUSABLE, Flag.KOMI_REPAIRED, Flag.KOMI_UNRECORDED, Flag.KOMI_DEFAULT, Flag.RESULT_UNREAD,
    Flag.RESULT_REPAIRED, Flag.RESULT_CODE, Flag.HANDICAP_UNUSABLE, Flag.HANDICAP_REPAIRED, Flag.RANK_UNREAD,
    Flag.RANK_OTHER, Flag.RANK_TITLE, Flag.RANK_IN_NAME, Flag.DATE_UNREAD, Flag.DATE_REPAIRED, Flag.RULES_UNREAD,
})  # fmt: skip
_SETTINGS = ("AP", "CA", "FF", "GM", "SZ")
_FACTS = ("BR", "DT", "EV", "GN", "HA", "KM", "OT", "PB", "PC", "PW", "RE", "RO", "RU", "SO", "TM", "WR")
_HEADERS = frozenset((*_SETTINGS, *_FACTS))
_ROOT_TEXTS = frozenset(("C", "PL"))  # kept from the root; below it they are no headers
_START = re.compile(rb"\(\s*;")
# After a broken tree only a node that opens like a root begins a game: any other is a variation of it.
_RESTART = re.compile(
    rb"\(\s*;\s*(?:AP|BR|CA|DT|EV|FF|GM|GN|HA|KM|PB|PC|PW|RE|RO|RU|SO|ST|SZ|US|WR|FileFormat|GaMe|SiZe)\s*\["
)
_STOP = re.compile(rb"\s*(\[)?")  # what is looked at where a tree breaks off
_ODD_TEXT = re.compile(rb"[\\\n\r\t\f\v]")
_INTEGER = re.compile(r"\s*[+-]?[0-9]+\s*")
_MAX_BROKEN = 1_000  # broken trees in a row before the rest of a file is given up
_LEAST_RECORD = 128  # bytes: a file may hold this many records beyond the first thousand
# The work on broken trees, which may be read again and again, in bytes: one looked at is one, and a token,
# which takes about as long as eight of them do in a value whose bracket is missing, eight more.
_TOKEN_WORK = 8
_MAX_WORK = 4  # times the size of the file, but at least
_LEAST_WORK = 16_000_000
# A token takes some 70 bytes, a node 300, an escape 130 while it is matched: in a file with more than
# two million bytes that may end a token, a tree is read for three million bytes and no further.
_TOKEN_ENDS = b"(;)[\\ \n\r\t\f\v"
_MAX_TOKEN_ENDS = 2_000_000
_MAX_DENSE_TREE = 3_000_000

Token = tuple[str, bytes]  # sgfmill's: "I" property name, "V" value, "D" one of ( ; )


@dataclass(frozen=True, slots=True)
class _Tree:
    """A game tree in a file: its first byte, the one after its last, whether it is closed there, and the work that
    a broken one has cost (0 if closed)."""

    start: int
    end: int
    tokens: list[Token]
    closed: bool
    work: int


@dataclass(frozen=True, slots=True)
class Game:
    """One record that is a game, not yet checked for legality.

    ``index`` is its ordinal in the file (from 0), ``content`` the 16-byte hash of its text. Points
    are ``row * cols + col`` with row 0 on top, a pass is ``rows * cols``, a move outside the board
    is ``games.OFF_BOARD``. ``moves`` uint16[n], ``colours`` int8[n] (1 black, 2 white). Setup:
    ``setup_plies`` uint16[s] (the moves before it), ``setup_points`` uint16[s], ``setup_colours``
    int8[s] (0 empties the point), in order of plies; what it leaves out stays as it is.
    ``komi`` and ``margin`` in points. ``rules`` is a name for ``rules.rule_set``. Ranks are on the
    scale of ``headers.rank``. ``raw`` holds header texts as written, each cut to 500 characters.
    """

    index: int
    content: bytes
    rows: int
    cols: int
    setup_plies: NDArray[np.uint16]
    setup_points: NDArray[np.uint16]
    setup_colours: NDArray[np.int8]
    moves: NDArray[np.uint16]
    colours: NDArray[np.int8]
    komi: float | None
    rules: str
    handicap: int
    winner: Winner | None
    result_kind: ResultKind
    margin: float | None
    black_rank: int | None
    white_rank: int | None
    date: str | None
    black: str
    white: str
    raw: dict[str, str]
    flags: tuple[Flag, ...]


@dataclass(frozen=True, slots=True)
class Rejected:
    """One record of which no game can be made.

    ``detail`` names the value at fault, ``move`` is the number (from 1) of the move at fault,
    ``offset`` is where the record starts in the decoded text as UTF-8 (0 where there is no tree).
    """

    index: int
    content: bytes
    reason: Reason
    detail: str
    move: int | None
    offset: int | None
    raw: dict[str, str]


def parse_member(data: bytes, input: Input, parse: Parse, rules: Rules) -> list[Game | Rejected]:
    """Every game tree of a file, in order, as a game or a reject; never empty.

    A broken tree does not hide those after it. A file without a tree is one reject, NO_GAME. After
    1,000 broken trees in a row, or more records or more work on broken trees than a file of its size
    can need, the rest of the file is one reject: time and memory stay linear.
    Raises on no bytes at all; ``ValueError`` only where the configuration names unknown rules.
    """
    if b"(" not in data or b";" not in data:
        return [_no_game(data)]
    text, flags = decode(data, input.encodings)
    sgf = text.encode("utf-8", "replace")
    records: list[Game | Rejected] = []
    broken = work = 0
    for tree in _trees(sgf):
        content = _digest(sgf[tree.start : tree.end])
        broken_off = None if tree.closed else _break(sgf, tree.end)
        record = _record(len(records), content, tree.start, tree.tokens, broken_off, flags, parse, rules)
        records.append(record)
        work += tree.work
        broken = broken + 1 if isinstance(record, Rejected) and record.reason is Reason.BAD_SYNTAX else 0
        if (
            broken >= _MAX_BROKEN
            or len(records) >= _MAX_BROKEN + len(sgf) // _LEAST_RECORD
            or work > max(_LEAST_WORK, _MAX_WORK * len(sgf))
        ):
            records.append(_rest(len(records), sgf, tree.end))
            break
    return records or [_no_game(data)]


def _trees(sgf: bytes) -> Iterator[_Tree]:
    """The game trees of a file, in order; after a broken one they may overlap."""
    dense = len(sgf) - len(sgf.translate(None, _TOKEN_ENDS)) > _MAX_TOKEN_ENDS
    match = _START.search(sgf)
    while match is not None:
        start = match.start()
        source = memoryview(sgf)[: start + _MAX_DENSE_TREE] if dense else sgf
        tokens, end = sgf_grammar.tokenise(source, start)
        closed = _is_closed(tokens)
        yield _Tree(start, end, tokens, closed, 0 if closed else _work(sgf, start, end, len(source), len(tokens)))
        match = _START.search(sgf, end) if closed else _RESTART.search(sgf, start + 1)


def _work(sgf: bytes, start: int, end: int, limit: int, tokens: int) -> int:
    """What a broken tree has cost: a value without its bracket was looked at up to ``limit``, though it is no token."""
    stop = _STOP.match(sgf, end)
    seen = end if stop is None else limit if stop[1] else stop.end()
    return seen - start + _TOKEN_WORK * tokens


def _is_closed(tokens: list[Token]) -> bool:
    """sgfmill stops at the parenthesis that closes the tree, at the end, or at what is no token."""
    return tokens[-1] == ("D", b")") and tokens.count(("D", b"(")) == tokens.count(("D", b")"))


def _record(
    index: int,
    content: bytes,
    start: int,
    tokens: list[Token],
    broken_off: str | None,
    flags: frozenset[Flag],
    parse: Parse,
    rules: Rules,
) -> Game | Rejected:
    raw: dict[str, str] = {}
    try:
        if broken_off is not None:
            raise Fault(Reason.BAD_SYNTAX, broken_off)
        nodes = _main_line(_longest(tokens) if parse.branch == "longest" else tokens)
        below = _headers(nodes, raw)
        return _game(index, content, nodes, raw, flags | below, parse, rules)
    except Fault as fault:
        return Rejected(index, content, fault.reason, fault.detail[:_MAX_DETAIL], fault.move, start, raw)


def _main_line(tokens: list[Token]) -> list[Node]:
    """The nodes of the first branch: all those before the first closing parenthesis."""
    nodes: list[Node] = []
    node: Node | None = None
    values: list[bytes] | None = None
    for kind, token in tokens:
        if kind == "V":
            if values is None:
                raise Fault(Reason.BAD_SYNTAX, f"a value without a property in node {len(nodes)}")
            values.append(token)
            continue
        if values is not None and not values:
            raise Fault(Reason.BAD_SYNTAX, f"a property without a value in node {len(nodes)}")
        values = None
        if kind == "I":
            if node is None:
                # "(B[aa]" for "(;B[aa]", as some editors write it.
                node = {}
                nodes.append(node)
            values = node.setdefault(token.decode("ascii"), [])
        elif token == b";":
            node = {}
            nodes.append(node)
        elif node is None and nodes:
            raise Fault(Reason.BAD_SYNTAX, f"a variation without a node after node {len(nodes)}")
        elif token == b"(":
            node = None
        else:
            break
    return nodes


def _longest(tokens: list[Token]) -> list[Token]:
    """The tokens of the branch with the most nodes, the first of several, closed by one parenthesis."""
    parents: list[int] = []
    spans: list[tuple[int, int]] = []  # the tokens of a sequence, before its variations
    nodes: list[int] = []  # from the root to the end of a sequence
    current, opened, best = -1, 0, -1
    for position, (kind, token) in enumerate(tokens):
        if kind != "D":
            continue
        if token == b";":
            if len(spans) < len(parents) and current == len(parents) - 1:
                nodes[current] += 1
                continue
            raise Fault(Reason.BAD_SYNTAX, "a node after a variation")
        if len(spans) < len(parents):
            spans.append((opened, position))
            if token == b")" and (best < 0 or nodes[current] > nodes[best]):
                best = current
        if token == b"(":
            nodes.append(nodes[current] if current >= 0 else 0)
            parents.append(current)
            current, opened = len(parents) - 1, position
        else:
            current = parents[current]
    path: list[int] = []
    while best >= 0:
        path.append(best)
        best = parents[best]
    return [token for sequence in reversed(path) for token in tokens[slice(*spans[sequence])]] + [("D", b")")]


def _headers(nodes: list[Node], raw: dict[str, str]) -> frozenset[Flag]:
    """Fill ``raw`` with the header texts of the main line, those of the root first."""
    for name, values in nodes[0].items():
        if name in _HEADERS or name in _ROOT_TEXTS:
            raw[name] = _text(name, values)
    below = False
    for node in nodes[1:]:
        if not _HEADERS.isdisjoint(node):
            for name in node:
                if name in _HEADERS and name not in raw:
                    raw[name] = _text(name, node[name])
                    below = True
    return frozenset({Flag.INFO_BELOW_ROOT}) if below else frozenset()


def _text(name: str, values: list[bytes]) -> str:
    """A text value unescaped; of several the first that is not blank, of AP all (each writer adds its own)."""
    written = [value for value in values if value.strip()] or values[:1]
    chosen = written if name == "AP" else written[:1]
    return "; ".join(map(_simple_text, chosen[:8]))[:MAX_TEXT]


def _simple_text(value: bytes) -> str:
    # Eight bytes a character is more than any text needs, escapes included.
    value = value[: 8 * MAX_TEXT]
    if _ODD_TEXT.search(value):
        value = sgf_grammar.simpletext_value(value)
    return value.decode("utf-8", "replace")[:MAX_TEXT]


def _game(
    index: int,
    content: bytes,
    nodes: list[Node],
    raw: dict[str, str],
    flags: frozenset[Flag],
    parse: Parse,
    rules: Rules,
) -> Game:
    flags |= _check_game_value(raw.get("GM"))
    size, size_flags = read_size(raw.get("SZ"))
    if isinstance(size, Reason):
        raise Fault(size, f"SZ[{raw.get('SZ')}]")
    line = read_line(nodes, *size, parse)
    return with_headers(index, content, size, line, raw, flags | size_flags, rules)


def with_headers(
    index: int,
    content: bytes,
    size: tuple[int, int],
    line: Line,
    raw: dict[str, str],
    flags: frozenset[Flag],
    rules: Rules,
) -> Game:
    """Return the game of a main line on a board of ``size`` (rows, cols), its facts read from the texts ``raw``.

    ``flags``: what was noted of the record before. Raises ``ValueError`` where ``rules`` names unknown rules.
    """
    handicap, handicap_flags = read_handicap(raw.get("HA"))
    result, result_flags = read_result(raw.get("RE"))
    even = handicap == 0 and not (line.setup_plies == 0).any()
    komi, komi_flags = read_komi(raw.get("KM"), writer_of(raw), even, result.margin)
    if komi is None and rules.komi_default is not None:
        komi, komi_flags = rules.komi_default, komi_flags | {Flag.KOMI_DEFAULT}
    rule_set, rules_flags = resolve(raw.get("RU"), rules)
    black_rank, black_flags = read_rank_or_name(raw.get("BR"), raw.get("PB"))
    white_rank, white_flags = read_rank_or_name(raw.get("WR"), raw.get("PW"))
    date, date_flags = read_date(raw.get("DT"))
    flags = flags.union(line.flags, komi_flags, rules_flags, handicap_flags, result_flags)
    flags = flags.union(black_flags, white_flags, date_flags)
    return Game(
        index=index,
        content=content,
        rows=size[0],
        cols=size[1],
        setup_plies=line.setup_plies,
        setup_points=line.setup_points,
        setup_colours=line.setup_colours,
        moves=line.moves,
        colours=line.colours,
        komi=komi,
        rules=rule_set.name,
        handicap=handicap,
        winner=result.winner,
        result_kind=result.kind,
        margin=result.margin,
        black_rank=black_rank,
        white_rank=white_rank,
        date=date,
        black=raw.get("PB", ""),
        white=raw.get("PW", ""),
        raw=raw,
        flags=tuple(sorted(flags)),
    )


def _check_game_value(gm: str | None) -> frozenset[Flag]:
    """GM is 1 for Go; another number is another game, anything else is doubtful but no reason to lose a game."""
    if gm is None:
        return frozenset()
    if not _INTEGER.fullmatch(gm):
        return frozenset({Flag.GAME_VALUE_ODD})
    if int(gm) != 1:
        raise Fault(Reason.NOT_GO, f"GM[{gm}]")
    return frozenset()


def _break(sgf: bytes, end: int) -> str:
    """Why a tree that is not closed stops at a byte."""
    excerpt = sgf[end : end + 40].lstrip()
    if not excerpt:
        return f"the game tree is not closed where the file ends, at byte {end}"
    return f"the game tree breaks off at byte {end}: {excerpt.decode('utf-8', 'replace')!r}"


def _no_game(data: bytes) -> Rejected:
    if not data:
        detail = "empty"
    elif not data.strip(b"\0 \t\r\n"):
        detail = f"{len(data)} bytes, all of them NUL or blank"
    else:
        detail = f"no '(;' in {len(data)} bytes"
    return Rejected(0, _digest(data), Reason.NO_GAME, detail, None, 0, {})


def _rest(index: int, sgf: bytes, start: int) -> Rejected:
    detail = f"the rest of the file, {len(sgf) - start} bytes: too many trees for its size, or too many broken ones"
    return Rejected(index, _digest(sgf[start:]), Reason.BAD_SYNTAX, detail, None, start, {})


def _digest(record: bytes) -> bytes:
    return blake2b(record, digest_size=16).digest()
