"""The properties of a record beside moves and stones: which are kept as header texts, and how a text is made of one."""

from collections.abc import Sequence

from pipeline.dialects import OTHER_NAMES
from pipeline.nodes import Node
from pipeline.trees import simple_text

MAX_TEXT = 500  # characters kept of a header text
_MAX_WRITERS = 8  # of which AP is kept

_SETTINGS = ("AP", "CA", "FF", "GM", "SZ")
_FACTS = ("BR", "DT", "EV", "GN", "HA", "KM", "OT", "PB", "PC", "PW", "RE", "RO", "RU", "SO", "TM", "WR")
HEADERS = frozenset((*_SETTINGS, *_FACTS))
ROOT_TEXTS = frozenset(("C", "PL", *OTHER_NAMES))  # kept from the root; below it they are no headers
MARKS = frozenset(("CR", "LB", "MA", "SQ", "TR"))


def header_texts(nodes: Sequence[Node]) -> tuple[dict[str, str], bool]:
    """Return the header texts of a main line, those of the root first, and whether any stands below it."""
    texts = {name: text_of(name, nodes[0][name]) for name in nodes[0] if name in HEADERS or name in ROOT_TEXTS}
    in_root = len(texts)
    for node in nodes[1:]:
        if not HEADERS.isdisjoint(node):
            for name in node:
                if name in HEADERS and name not in texts:
                    texts[name] = text_of(name, node[name])
    return texts, len(texts) > in_root


def text_of(name: str, values: Sequence[bytes]) -> str:
    """Return a header text unescaped; of several values the first that is not blank, of AP all (a writer each)."""
    written = [value for value in values if value.strip()] or values[:1]
    chosen = written if name == "AP" else written[:1]
    return "; ".join(map(unescaped, chosen[:_MAX_WRITERS]))[:MAX_TEXT]


def unescaped(value: bytes) -> str:
    """Return the first 500 characters of a value without its escapes, line breaks as blanks."""
    # Eight bytes a character is more than any text needs, escapes included.
    return simple_text(value[: 8 * MAX_TEXT]).decode("utf-8", "replace")[:MAX_TEXT]
