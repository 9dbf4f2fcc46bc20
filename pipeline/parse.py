"""Bytes of a member to records, each a game or a reject: decode, find the trees, follow the main line.

What a tree is is told by ``trees``, what a node by ``nodes``, what a move by ``mainline``, what headers say by
``game``: here they are put together. Legality is not looked at.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pipeline.config import Input, Parse, Rules
from pipeline.game import Game, content_hash, make_game
from pipeline.headers.size import read_size
from pipeline.mainline import read_line
from pipeline.nodes import Fault, Node, main_line
from pipeline.plain import plain_game
from pipeline.properties import MARKS, header_texts
from pipeline.reasons import Flag, Reason
from pipeline.text import decode
from pipeline.trees import Tree, read_trees

_MAX_DETAIL = 200
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
    if fast and (plain := plain_game(sgf, flags, parse, rules)) is not None:
        yield plain
        return
    index = broken = work = 0
    for tree in read_trees(sgf):
        record = _record(index, content_hash(sgf[tree.start : tree.end]), tree, flags, parse, rules)
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


def _record(
    index: int, content: bytes, tree: Tree, flags: frozenset[Flag], parse: Parse, rules: Rules
) -> Game | Rejected:
    raw = dict(tree.texts)
    try:
        if tree.fault is not None:
            raise Fault(Reason.BAD_SYNTAX, tree.fault)
        nodes = main_line(tree.tokens, parse.branch)
        texts, below = header_texts(nodes)
        raw |= texts
        if below:
            flags |= {Flag.INFO_BELOW_ROOT}
        return _game(index, content, nodes, raw, flags | tree.flags, parse, rules)
    except Fault as fault:
        policy = f"; {fault.policy}" if fault.policy else ""
        detail = fault.detail[: _MAX_DETAIL - len(policy)] + policy
        return Rejected(index, content, fault.reason, detail, fault.move, tree.start, raw)


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
    marked = not all(map(MARKS.isdisjoint, nodes))
    return make_game(index, content, size, line, marked, raw, flags | size_flags, parse, rules)


def _check_game_value(gm: str | None) -> frozenset[Flag]:
    """GM is 1 for Go; the number of another game is that game, anything else no reason to lose a game."""
    if gm is None:
        return frozenset()
    number = int(gm.strip()) if _INTEGER.fullmatch(gm) else 0
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
    return Rejected(0, content_hash(data), Reason.NO_GAME, detail[:_MAX_DETAIL], None, 0, {})


def _rest(index: int, sgf: bytes, start: int) -> Rejected:
    detail = f"the rest of the file, {len(sgf) - start} bytes: too many trees for its size, or too many broken ones"
    return Rejected(index, content_hash(sgf[start:]), Reason.BAD_SYNTAX, detail, None, start, {})
