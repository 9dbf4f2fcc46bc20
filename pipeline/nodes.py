"""The tokens of a game tree to the nodes of one line through it: one pass, no tree in memory, no recursion."""

from typing import Literal

from pipeline.reasons import Reason
from pipeline.trees import Token

Node = dict[str, list[bytes]]  # property name -> its values as written; never an empty list


class Fault(Exception):
    """What makes a record unusable: reason, the value at fault, and the number of the move (from 1).

    ``policy`` is the setting that decided it, where there is one.
    """

    def __init__(self, reason: Reason, detail: str, move: int | None = None, policy: str = "") -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail
        self.move = move
        self.policy = policy


def main_line(tokens: list[Token], branch: Literal["first", "longest"]) -> list[Node]:
    """Return the nodes of a line, the root first; a property that is repeated in a node has all its values.

    ``tokens`` have as many closing parentheses as open ones. "first": all nodes before the first closing parenthesis.
    "longest": the branch with the most nodes, the first of several. Raises ``Fault`` with BAD_SYNTAX.
    """
    return _first(_longest(tokens) if branch == "longest" else tokens)


def _first(tokens: list[Token]) -> list[Node]:
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
            if not token:
                raise Fault(Reason.BAD_SYNTAX, f"a property name without a capital letter in node {len(nodes)}")
            if node is None:
                # "(B[aa]" for "(;B[aa]", as some editors write it.
                node = {}
                nodes.append(node)
            values = node.setdefault(token.decode("ascii"), [])
        elif token == b";":
            node = {}
            nodes.append(node)
        elif token == b"(":
            # A second parenthesis in a row opens nothing more.
            node = None
        elif node is None and nodes:
            raise Fault(Reason.BAD_SYNTAX, f"a variation without a node after node {len(nodes)}")
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
