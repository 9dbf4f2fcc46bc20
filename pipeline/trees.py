"""Where the game trees of a file begin and end, and their tokens.

The grammar is sgfmill's, and this is the only module that imports it. Its tokeniser is used as it is; what stands
around trees, and what is missing at their two ends, is told here. Time is linear in the file, memory in its largest
tree.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from sgfmill import sgf_grammar

from pipeline.reasons import Flag
from pipeline.vendor import Line, find_lines

Token = tuple[str, bytes]  # sgfmill's: "I" property name, "V" value, "D" one of ( ; )

_BLANK = b" \t\r\n\f\v\0\x1a"  # what may stand around a tree and means nothing; old systems end a file with 1A
_NOTHING_LEFT = re.compile(rb"[\s\0\x1a]*\Z")
_ROOT = b"AP|BR|CA|DT|EV|FF|GM|GN|HA|KM|PB|PC|PW|RE|RO|RU|SO|ST|SZ|US|WR|FileFormat|GaMe|SiZe"
# A tree opens with "(;". Where the semicolon is missing, what follows must be a property of a root.
_OPENING = re.compile(rb"\(\s*(?:;|(?=(?:%s|TE|RD)\s*\[))" % _ROOT)
_NO_PARENTHESIS = re.compile(rb"\s*;\s*(?=(?:%s)\s*\[)" % _ROOT)  # at the start of a file
# Inside a tree that goes wrong only a node that opens like a root begins a game: any other is a variation.
_RESTART = re.compile(rb"\(\s*;\s*(?:%s)\s*\[" % _ROOT)
_VARIATION = re.compile(rb"\(\s*;\s*(?:B|W|Black|White)\s*\[")  # opens with a move, as no root with headers does
_STOP = re.compile(rb"\s*(\[)?")  # what is looked at where a tree breaks off
_SPLITS = 3  # places where the next game could begin that are tried in a tree without its end
# The work on trees that go wrong, which may be read again and again, in bytes: one looked at is one, and a token,
# which takes about as long as eight of them do in a value whose bracket is missing, eight more.
_TOKEN_WORK = 8
# A token takes some 70 bytes, a node 300, an escape 130 while it is matched: in a file with more than
# two million bytes that may end a token, a tree is read for three million bytes and no further.
_TOKEN_ENDS = b"(;)[\\ \n\r\t\f\v"
_MAX_TOKEN_ENDS = 2_000_000
_MAX_DENSE_TREE = 3_000_000
_MAX_LINE = 1_000_000  # bytes of nodes in a text of one game a line
_EXCERPT = 40  # bytes

_ODD_TEXT = re.compile(rb"[\\\n\r\t\f\v]")


@dataclass(frozen=True, slots=True)
class Tree:
    """A game tree in a file: its first byte, the one after its last, and its tokens, parentheses balanced.

    ``fault`` says why it cannot be read (None: it can), ``flags`` what was repaired. ``texts`` are headers that stand
    outside the tree. ``seen`` is the byte after what shows the fault, ``work`` what the tree has cost beyond
    reading it once, ``is_line`` whether it is a line of a text of one game a line.
    """

    start: int
    end: int
    tokens: list[Token]
    fault: str | None = None
    flags: frozenset[Flag] = frozenset()
    texts: dict[str, str] = field(default_factory=dict)
    seen: int | None = None
    work: int = 0
    is_line: bool = False


@dataclass(frozen=True, slots=True)
class _Opening:
    """Where a tree begins, and the name of its first property where "(;" does not stand before it."""

    start: int
    name: int | None = None


def simple_text(value: bytes) -> bytes:
    """Return a text value without its escapes, line breaks as blanks (FF4, SimpleText)."""
    unescaped: bytes = sgf_grammar.simpletext_value(value) if _ODD_TEXT.search(value) else value
    return unescaped


def read_trees(sgf: bytes) -> Iterator[Tree]:
    """Yield the game trees of a file in order; after one that cannot be read they may overlap.

    Junk before and between trees is passed over. Repaired, with a flag: "(" or ";" missing at the start, closing
    parentheses missing at the end of the file or before the next game, remains of something else after the last
    parenthesis. A variation outside its tree is a tree that cannot be read. A text of one game a line
    (``vendor``) is a tree a line.
    """
    lines = find_lines(sgf)
    if lines is not None:
        for line in lines:
            yield _of_line(line)
        return
    dense = len(sgf) - len(sgf.translate(None, _TOKEN_ENDS)) > _MAX_TOKEN_ENDS
    reader = _Reader(sgf, dense)
    opening = reader.first()
    rooted = False  # a tree with headers was met: what opens with a move is none
    while opening is not None:
        tree = reader.read(opening)
        if rooted and tree.fault is None and _VARIATION.match(sgf, tree.start):
            tree = replace(tree, fault="a variation outside its game tree")
        rooted = rooted or opening.name is not None or _RESTART.match(sgf, tree.start) is not None
        opening, remains = reader.following(tree)
        yield replace(tree, flags=tree.flags | {Flag.REMAINS}) if remains else tree


@dataclass(slots=True)
class _Reader:
    """A file that is being read; ``patched`` is a copy, shifted by one byte, for trees that do not open with "(;"."""

    sgf: bytes
    dense: bool
    patched: bytearray | None = None

    def first(self) -> _Opening | None:
        match = _NO_PARENTHESIS.match(self.sgf)
        if match is not None:
            return _Opening(self.sgf.index(b";"), match.end())
        return self.next(0)

    def next(self, position: int) -> _Opening | None:
        """Find the next tree at or after a byte."""
        match = _OPENING.search(self.sgf, position)
        if match is None:
            return None
        return _Opening(match.start(), None if match[0].endswith(b";") else match.end())

    def tokens(self, opening: _Opening, stop: int) -> tuple[list[Token], int]:
        """Return the tokens of a tree, read no further than ``stop``, and the byte after the last of them."""
        if opening.name is None:
            source = self.sgf if stop == len(self.sgf) else memoryview(self.sgf)[:stop]
            return sgf_grammar.tokenise(source, opening.start)  # type: ignore[no-any-return]
        if self.patched is None:
            self.patched = bytearray(b" " + self.sgf)
        # The two bytes before the name: what stands there is a parenthesis, a semicolon, blanks or no longer needed.
        self.patched[opening.name - 1 : opening.name + 1] = b"(;"
        tokens, end = sgf_grammar.tokenise(memoryview(self.patched)[: stop + 1], opening.name - 1)
        return tokens, end - 1

    def read(self, opening: _Opening) -> Tree:
        """Read one tree, and mend its two ends."""
        stop = min(len(self.sgf), opening.start + _MAX_DENSE_TREE) if self.dense else len(self.sgf)
        tokens, end = self.tokens(opening, stop)
        flags = set() if opening.name is None else {Flag.OPENING_REPAIRED}
        missing = _missing(tokens)
        if missing == 0:
            return Tree(opening.start, end, tokens, None, frozenset(flags))
        work = self.work(opening.start, end, stop, tokens)
        if not _NOTHING_LEFT.match(self.sgf, end):
            # Up to the next game, if that is near.
            near = _RESTART.search(self.sgf, end, end + 2 * _EXCERPT)
            seen = min(len(self.sgf), end + _EXCERPT, near.start() if near else len(self.sgf))
            return Tree(opening.start, end, tokens, self.broken_off(end), seen=seen, work=work)
        for at in self.restarts(opening, end):
            before, last = self.tokens(opening, at)
            work += self.work(opening.start, last, at, before)
            # Elsewhere the place is inside a value.
            if not self.sgf[last:at].strip(_BLANK):
                tokens, end, missing = before, last, _missing(before)
                break
        tokens += [("D", b")")] * missing
        return Tree(opening.start, end, tokens, None, frozenset(flags | {Flag.UNCLOSED}), work=work)

    def restarts(self, opening: _Opening, end: int) -> Iterator[int]:
        """Yield the first places inside a tree at which another game may begin."""
        position = opening.start + 1
        for _ in range(_SPLITS):
            match = _RESTART.search(self.sgf, position, end)
            if match is None:
                return
            yield match.start()
            position = match.end()

    def work(self, start: int, end: int, stop: int, tokens: list[Token]) -> int:
        """What a tree has cost: a value without its bracket was looked at up to ``stop``, though it is no token."""
        match = _STOP.match(self.sgf, end)
        seen = end if match is None else stop if match[1] else match.end()
        return seen - start + _TOKEN_WORK * len(tokens)

    def broken_off(self, end: int) -> str:
        """Say where a tree breaks off, and at what."""
        excerpt = self.sgf[end : end + _EXCERPT].lstrip()
        return f"the game tree breaks off at byte {end}: {excerpt.decode('utf-8', 'replace')!r}"

    def following(self, tree: Tree) -> tuple[_Opening | None, bool]:
        """Return where the next tree begins, and whether remains of SGF stand before it."""
        if tree.fault is not None and _missing(tree.tokens):
            match = _RESTART.search(self.sgf, tree.start + 1)
            return None if match is None else _Opening(match.start()), False
        opening = self.next(tree.end)
        gap = self.sgf[tree.end : len(self.sgf) if opening is None else opening.start]
        return opening, b"]" in gap or gap.lstrip(_BLANK).startswith((b")", b";"))


def _missing(tokens: list[Token]) -> int:
    """How many parentheses a tree lacks: sgfmill stops at the one that closes it, at the end, or at no token."""
    return tokens.count(("D", b"(")) - tokens.count(("D", b")"))


def _of_line(line: Line) -> Tree:
    """Return the tree of one line of a vendor's text."""
    texts = {"ID": line.name} if line.name else {}
    if not line.nodes or len(line.nodes) > _MAX_LINE:
        no_line = "a line without moves" if not line.nodes else f"a line of {len(line.nodes)} bytes"
        return Tree(line.start, line.end, [], no_line, texts=texts, is_line=True)
    nodes = b"(" + line.nodes + b")"
    tokens, end = sgf_grammar.tokenise(nodes)
    fault: str | None = None
    if end < len(nodes) or _missing(tokens):
        fault = f"the line breaks off: {nodes[end:-1][:_EXCERPT].decode('utf-8', 'replace')!r}"
    return Tree(line.start, line.end, tokens, fault, texts=texts, is_line=True)
