"""Texts of one game a line, as some collections are sold and shared: a name, a tab, the nodes without parentheses.

    1024<TAB>;B[pd];W[dp];B[pq]

Columns between and after them are passed over. Nothing but the moves is known of such a game; the name is kept as its
ID. A text with a whole game tree a line needs nothing of its own: it is trees in a file.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

HEAD = 16_384  # bytes of a text that tell whether it holds records
_MAX_NAME = 200  # bytes
_COLUMN = rb"[^\t\r\n;()\[\]]{0,%d}\t" % _MAX_NAME
_LINE = re.compile(rb"[^\s;()\[\]]%s(?:%s){0,9} *;\s*[A-Z][A-Za-z]{0,63}\s*\[" % (_COLUMN, _COLUMN))
_TREE = re.compile(rb"\(;[A-Z]")
_TREES = 2  # lines that open a tree


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a text: its bytes [``start``, ``end``), its name, and its nodes (none: a line without moves)."""

    start: int
    end: int
    name: str
    nodes: bytes


def holds_records(head: bytes) -> bool:
    """Whether the first bytes of a text file are those of records, one a line: by names and nodes, or by whole trees.

    A text with one game tree alone is left to its name or to who names it.
    """
    head = head.removeprefix(b"\xef\xbb\xbf")[:HEAD]
    return _is_text_of_lines(head) or sum(bool(_TREE.match(line)) for line in head.splitlines()) >= _TREES


def find_lines(text: bytes) -> Iterator[Line] | None:
    """Return the lines of a text of one game a line that are not blank; None for any other text."""
    return _lines(text) if _is_text_of_lines(text[:HEAD]) else None


def _is_text_of_lines(head: bytes) -> bool:
    first, second = ([line for line in head.splitlines() if line.strip()] + [b"", b""])[:2]
    # The first line may be the names of the columns.
    return bool(_LINE.match(first) or (b"[" not in first and _LINE.match(second)))


def _lines(text: bytes) -> Iterator[Line]:
    start = 0
    while start < len(text):
        stop = text.find(b"\n", start)
        stop = len(text) if stop < 0 else stop
        line = text[start:stop].rstrip()
        if line:
            # The nodes are the first column that begins with a semicolon; what stands after them is not known.
            name, *columns = line.split(b"\t")
            nodes = next((column.strip() for column in columns if column.lstrip().startswith(b";")), b"")
            yield Line(start, start + len(line), name[:_MAX_NAME].decode("utf-8", "replace").strip(), nodes)
        start = stop + 1
