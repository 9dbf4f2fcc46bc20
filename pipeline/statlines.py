"""What ``stats`` counts, as tables for people."""

from collections.abc import Sequence
from typing import Any

from pipeline.archives import printable
from pipeline.manifest import SPLITS
from pipeline.report import counted
from pipeline.stats import KINDS, Facts

TOP = 20  # entries of a table; the others are added up
_MOVES = 5  # moves shown of a repeated position


def lines(found: Facts) -> list[str]:
    """Return what ``facts`` found as tables for people; of long ones the largest entries."""
    shares = ("games", "kept", "rows")
    text = [f"{found['path']}: " + ", ".join(f"{count:,} {name}" for name, count in found["records"].items())]
    for title, key, heads in (
        ("winner", "results", shares),
        ("kind of result", "result_kinds", shares),
        ("rank (kept games)", "ranks", ("black", "white")),
        ("year", "years", shares),
        ("moves in a game", "lengths", shares),
        ("rows by ply", "plies", SPLITS),
        ("komi", "komi", shares),
        ("rules", "rules", shares),
        ("handicap", "handicap", shares),
        ("board", "sizes", shares),
        ("source", "sources", ("records", "kept", "rows")),
    ):
        entries = [(_shown(item.get("value", item.get("source"))), item) for item in found[key]]
        text += _counts(title, entries, heads)
    kinds = [(kind, {"records": count}) for kind, count in found["duplicates"].items()]
    text += _counts("points to another record", kinds, ("records",))
    pairs = [
        (f"{printable(item['source'])} <- {printable(item['kept_source'])}", item) for item in found["duplicate_pairs"]
    ]
    met = [kind for kind in KINDS if found["duplicates"][kind]]
    text += _counts("source <- source of the other", pairs, ("all", *met))
    return text + _repeated_lines(found["repeated_positions"])


def _shown(value: Any) -> str:
    if value is None:
        return "unknown"
    return printable(value) if isinstance(value, str) else format(value, "g")


def _counts(title: str, entries: Sequence[tuple[str, Facts]], heads: Sequence[str]) -> list[str]:
    """Return a table of counts under ``heads``; of more than TOP entries the largest, then the sum of the others."""
    if not entries:
        return []
    by_size = sorted(range(len(entries)), key=lambda number: (-entries[number][1][heads[0]], number))
    shown = [entries[number] for number in sorted(by_size[:TOP])]
    if others := [entries[number][1] for number in by_size[TOP:]]:
        total = {head: sum(item[head] for item in others) for head in heads}
        shown.append((counted(len(others), "other"), total))
    cells = [[title, *heads], *([name, *(f"{item[head]:,}" for head in heads)] for name, item in shown)]
    return ["", *_aligned(cells)]


def _repeated_lines(found: Sequence[Facts]) -> list[str]:
    """Return the table of the positions met most often, with the moves played there."""
    if not found:
        return []
    cells = [["most repeated", "part", "row", "ply", "game", "key", "to play", "moves"]]
    for item in found:
        moves = [move["move"] + (f" {move['count']:,}" if move["count"] else "") for move in item["moves"]]
        more = [counted(len(moves) - _MOVES, "other")] if len(moves) > _MOVES else []
        numbers = [f"{item['weight']:,g}", item["split"], *(str(item[name]) for name in ("row", "ply", "game", "key"))]
        side = {1: "Black", 2: "White"}.get(item["to_play"], "?")
        cells.append([*numbers, side, ", ".join([*moves[:_MOVES], *more])])
    return ["", *_aligned(cells, left=(0, 1, 7))]


def _aligned(cells: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> list[str]:
    """Return rows of cells with columns of one width: those of ``left`` flush left, the others right."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if number in left else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]
