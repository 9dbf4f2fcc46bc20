"""Bytes of a member to games: decode, find the trees, follow the main line, read the headers.

What a tree is is told by ``trees``, what a node by ``nodes``, what a move by ``mainline``: here they are put
together, and the headers read. Legality is not looked at.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from pipeline.config import Input, Parse, ResultKind, Rules
from pipeline.dialects import OTHER_NAMES, standard_texts, writes_stones_as_moves
from pipeline.handicaps import with_handicap
from pipeline.headers.date import read_date
from pipeline.headers.handicap import read_handicap
from pipeline.headers.komi import read_komi, writer_of
from pipeline.headers.rank import read_rank
from pipeline.headers.result import Winner, read_result
from pipeline.headers.size import read_size
from pipeline.mainline import Line, plain_line, read_line
from pipeline.nodes import Fault, Node, main_line
from pipeline.reasons import Flag, Reason
from pipeline.rules import resolve
from pipeline.scan import (
    HEADER,
    MARK,
    MOVE_BLACK,
    MOVE_WHITE,
    PLAYER,
    ROOT_TEXT,
    STONES_BLACK,
    STONES_NONE,
    STONES_WHITE,
    kind_table,
    name_code,
    scan,
)
from pipeline.text import decode
from pipeline.trees import Tree, read_trees, simple_text

MAX_TEXT = 500  # characters kept of a header text
_MAX_DETAIL = 200

# The flags that ``with_headers`` sets.
HEADER_FLAGS = frozenset({
    Flag.KOMI_UNUSABLE, Flag.KOMI_REPAIRED, Flag.KOMI_UNRECORDED, Flag.KOMI_DEFAULT, Flag.RESULT_UNREAD,
    Flag.RESULT_REPAIRED, Flag.RESULT_CODE, Flag.HANDICAP_UNUSABLE, Flag.HANDICAP_REPAIRED, Flag.RANK_UNREAD,
    Flag.RANK_OTHER, Flag.RANK_TITLE, Flag.RANK_IN_NAME, Flag.DATE_UNREAD, Flag.DATE_REPAIRED, Flag.RULES_UNREAD,
    Flag.OTHER_NAMES, Flag.KOMI_IN_GM, Flag.KOMI_OVERRIDDEN,
})  # fmt: skip
_SETTINGS = ("AP", "CA", "FF", "GM", "SZ")
_FACTS = ("BR", "DT", "EV", "GN", "HA", "KM", "OT", "PB", "PC", "PW", "RE", "RO", "RU", "SO", "TM", "WR")
_HEADERS = frozenset((*_SETTINGS, *_FACTS))
_ROOT_TEXTS = frozenset(("C", "PL", *OTHER_NAMES))  # kept from the root; below it they are no headers
_MARKS = frozenset(("CR", "LB", "MA", "SQ", "TR"))
# What the scan of plain records looks at.
_PROPERTIES = {
    **dict.fromkeys(_ROOT_TEXTS, ROOT_TEXT), **dict.fromkeys(_HEADERS, HEADER), **dict.fromkeys(_MARKS, MARK),
    "PL": PLAYER, "B": MOVE_BLACK, "W": MOVE_WHITE, "AB": STONES_BLACK, "AW": STONES_WHITE, "AE": STONES_NONE,
}  # fmt: skip
_KINDS = kind_table(_PROPERTIES)
_NAMES = {name_code(name): name for name in _PROPERTIES}
_INTEGER = re.compile(r"\s*[+-]?[0-9]+\s*")
_LAST_GAME = 40  # of the numbers that FF4 gives to games
_MAX_BROKEN = 1_000  # broken trees in a row before the rest of a file is given up
_LEAST_RECORD = 128  # bytes: a file may hold this many records beyond the first thousand
_LEAST_LINE = 16  # the same where each line is one
# The work on trees that go wrong (``Tree.work``): times the size of the file, but at least.
_MAX_WORK = 4
_LEAST_WORK = 16_000_000
_EXCERPT = 40  # characters


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
    return [record for record, _ in records_of(data, input, parse, rules)]


def records_of(
    data: bytes, input: Input, parse: Parse, rules: Rules, fast: bool = True
) -> Iterator[tuple[Game | Rejected, bytes]]:
    """Yield what ``parse_member`` returns, each with its bytes: all of ``data``, or its part of the text as UTF-8
    with what stands where it breaks off. ``fast``: whether plain records may be scanned, which changes the time and
    not the records."""
    if b";" not in data and b"[" not in data:
        yield _no_game(data), data
        return
    text, flags = decode(data, input.encodings)
    sgf = text.encode("utf-8", "replace")
    if fast and (plain := _plain(sgf, flags, parse, rules)) is not None:
        yield plain
        return
    index = broken = work = 0
    for tree in read_trees(sgf):
        record = _record(index, _digest(sgf[tree.start : tree.end]), tree, flags, parse, rules)
        yield record, sgf[tree.start : tree.seen or tree.end]
        index += 1
        work += tree.work
        broken = broken + 1 if isinstance(record, Rejected) and record.reason is Reason.BAD_SYNTAX else 0
        if (
            broken >= _MAX_BROKEN
            or index >= _MAX_BROKEN + len(sgf) // (_LEAST_LINE if tree.is_line else _LEAST_RECORD)
            or work > max(_LEAST_WORK, _MAX_WORK * len(sgf))
        ):
            yield _rest(index, sgf, tree.end), sgf[tree.end :]
            return
    if index == 0:
        yield _no_game(data), data


def _plain(sgf: bytes, flags: frozenset[Flag], parse: Parse, rules: Rules) -> tuple[Game, bytes] | None:
    """Return the game of a file that holds one plain record, and its bytes; None for any other file."""
    scanned = scan(sgf, _KINDS) if parse.after_two_passes == "keep" else None
    if scanned is None:
        return None
    nodes, firsts, raw = _scanned_texts(sgf, scanned.entries.tolist())
    size, size_flags = read_size(raw.get("SZ"))
    if raw.get("GM", "1") != "1" or isinstance(size, Reason):
        return None
    line = plain_line(scanned, *size, firsts.get("PL"))
    if line is None:
        return None
    record = sgf[scanned.start : scanned.end]
    flags |= size_flags
    if any(nodes.values()):
        flags |= {Flag.INFO_BELOW_ROOT}
    try:
        return _finished(0, _digest(record), size, line, scanned.marked, raw, flags, parse, rules), record
    except Fault:
        return None


def _scanned_texts(sgf: bytes, entries: list[list[int]]) -> tuple[dict[str, int], dict[str, bytes], dict[str, str]]:
    """Return of each header of a plain record the node it is taken from, its first value there and its text."""
    nodes: dict[str, int] = {}
    firsts: dict[str, bytes] = {}
    raw: dict[str, str] = {}
    repeated: dict[str, list[bytes]] = {}
    for code, node, first, last, odd in entries:
        name, value = _NAMES[code], sgf[first:last]
        if name not in nodes:
            nodes[name], firsts[name] = node, value
            raw[name] = _simple_text(value) if odd or last - first > MAX_TEXT else value.decode()
        elif nodes[name] == node:
            values = repeated.setdefault(name, [firsts[name]])
            values.append(value)
            raw[name] = _text(name, values)
    return nodes, firsts, raw


def _record(
    index: int, content: bytes, tree: Tree, flags: frozenset[Flag], parse: Parse, rules: Rules
) -> Game | Rejected:
    raw = dict(tree.texts)
    try:
        if tree.fault is not None:
            raise Fault(Reason.BAD_SYNTAX, tree.fault)
        nodes = main_line(tree.tokens, parse.branch)
        below = _headers(nodes, raw)
        return _game(index, content, nodes, raw, flags | tree.flags | below, parse, rules)
    except Fault as fault:
        policy = f"; {fault.policy}" if fault.policy else ""
        detail = fault.detail[: _MAX_DETAIL - len(policy)] + policy
        return Rejected(index, content, fault.reason, detail, fault.move, tree.start, raw)


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
    return simple_text(value[: 8 * MAX_TEXT]).decode("utf-8", "replace")[:MAX_TEXT]


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
    marked = not all(map(_MARKS.isdisjoint, nodes))
    return _finished(index, content, size, line, marked, raw, flags | size_flags, parse, rules)


def _finished(
    index: int,
    content: bytes,
    size: tuple[int, int],
    line: Line,
    marked: bool,
    raw: dict[str, str],
    flags: frozenset[Flag],
    parse: Parse,
    rules: Rules,
) -> Game:
    """Return the game of a line; ``marked``: whether points are marked in it. Raises ``Fault``."""
    handicap, _ = read_handicap(raw.get("HA"))
    line = with_handicap(line, size, handicap, writes_stones_as_moves(raw), parse)
    game = with_headers(index, content, size, line, raw, flags, rules)
    if marked and game.winner is None and not (game.black or game.white):
        game = replace(game, flags=tuple(sorted({*game.flags, Flag.LECTURE})))
    return game


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
    texts, named = standard_texts(raw)
    handicap, handicap_flags = read_handicap(texts.get("HA"))
    result, result_flags = read_result(texts.get("RE"))
    even = handicap == 0 and not (line.setup_plies == 0).any()
    komi, komi_flags = read_komi(texts.get("KM"), writer_of(texts), even, result.margin)
    if komi is None and rules.komi_default is not None:
        komi, komi_flags = rules.komi_default, komi_flags | {Flag.KOMI_DEFAULT}
    rule_set, rules_flags = resolve(texts.get("RU"), rules)
    if Flag.HANDICAP_FOLDED in line.flags:
        handicap = int(np.count_nonzero(line.setup_plies == 0))
        if komi is None or not 0 <= komi <= 0.5:
            komi, komi_flags = 0.0, komi_flags - {Flag.KOMI_DEFAULT} | {Flag.KOMI_OVERRIDDEN}
    black_rank, black_flags = read_rank(texts.get("BR"))
    white_rank, white_flags = read_rank(texts.get("WR"))
    date, date_flags = read_date(texts.get("DT"))
    flags = flags.union(line.flags, komi_flags, rules_flags, handicap_flags, result_flags)
    flags = flags.union(black_flags, white_flags, date_flags, named)
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
        black=texts.get("PB", ""),
        white=texts.get("PW", ""),
        raw=raw,
        flags=tuple(sorted(flags)),
    )


def _check_game_value(gm: str | None) -> frozenset[Flag]:
    """GM is 1 for Go; the number of another game is that game, anything else no reason to lose a game."""
    if gm is None:
        return frozenset()
    number = int(gm) if _INTEGER.fullmatch(gm) else 0
    if 1 < number <= _LAST_GAME:
        raise Fault(Reason.NOT_GO, f"GM[{gm}]")
    return frozenset() if number == 1 else frozenset({Flag.GAME_VALUE_ODD})


def _no_game(data: bytes) -> Rejected:
    if not data:
        detail = "empty"
    elif not data.strip(b"\0 \t\r\n"):
        detail = f"{len(data)} bytes, all of them NUL or blank"
    else:
        detail = f"no game tree in {len(data)} bytes: {data[:_EXCERPT].decode('utf-8', 'replace')!r}"
    return Rejected(0, _digest(data), Reason.NO_GAME, detail[:_MAX_DETAIL], None, 0, {})


def _rest(index: int, sgf: bytes, start: int) -> Rejected:
    detail = f"the rest of the file, {len(sgf) - start} bytes: too many trees for its size, or too many broken ones"
    return Rejected(index, _digest(sgf[start:]), Reason.BAD_SYNTAX, detail, None, start, {})


def _digest(record: bytes) -> bytes:
    return blake2b(record, digest_size=16).digest()
