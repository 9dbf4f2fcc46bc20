"""Duplicates and equal positions by their definitions, in plain Python, against what a build finds.

    python tests/e2e/brute_force.py PATH... [--positions 300] [--workers 2] [--set KEY=VALUE ...]

Builds the records in the given files and folders. Then every game that could be played is compared with every
other in all its images, as strings and boards in dictionaries, without Zobrist keys or kernels: exact, turned
and conflicting copies, prefixes and near-duplicates must be those of games.parquet, with ``dedup.near`` "keep"
and "drop". Of some 300 records, the first of every archive in turn, the positions are grouped by comparing
boards (with the history that the scheme shows), and the rows of the shards, their counts, weights, results
and values must be those that the groups give. Prints duplicates by kind and pair of sources. It takes
a few minutes. Exit code 0: all equal; 1: the differences are printed.
"""

import argparse
import json
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from plain_go import Position, Row, Score, images, pickers, positions, score_of

MARKS = (50, 75, 100, 150, 200, 250, 300)
LEAST_PLIES = 30
REPEATS = ("turned-copy", "prefix-of", "near-duplicate-of")
PARTS = ("train", "val", "test")
HISTORY = {"board": 0, "agz17": 7}
SHOWN = 5  # of the differences of one kind


def build(inputs: list[str], output: Path, workers: int, scheme: str, settings: list[str]) -> None:
    """Run the command, all board sizes allowed."""
    command = [sys.executable, "-m", "pipeline", "build", "--scheme", scheme, "--output", str(output)]
    command += ["--workers", str(workers)]
    command += [part for path in inputs for part in ("--input", path)]
    command += [part for setting in ('filter.sizes="any"', *settings) for part in ("--set", setting)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")


def name_of(row: Row) -> str:
    """Return how the game table names a record."""
    member = f"/{row['member']}" if row["member"] is not None else ""
    return str(row["source"]) + member + (f" game {row['index'] + 1}" if row["index"] else "")


@dataclass(slots=True)
class Found:
    """What one game was found to be: its status, the kind of repeat, the other game, whether it had to be turned."""

    status: str = "kept"
    kind: str | None = None
    other: int | None = None
    turned: bool = False


def exact_copies(rows: list[Row], scores: list[list[Score]]) -> list[Found]:
    """Find equal games: of each group the first with a known result stays."""
    groups: dict[tuple[int, int, str], list[int]] = defaultdict(list)
    for number, (row, all_images) in enumerate(zip(rows, scores, strict=True)):
        groups[row["board_rows"], row["board_cols"], min(score.text for score in all_images)].append(number)
    found = [Found() for _ in rows]
    for members in groups.values():
        kept = next((member for member in members if rows[member]["winner"] is not None), members[0])
        for member in set(members) - {kept}:
            both = [(rows[member][fact], rows[kept][fact]) for fact in ("winner", "margin", "komi")]
            clash = any(mine is not None and its is not None and mine != its for mine, its in both)
            status = "conflicting" if clash else "duplicate"
            turned = scores[member][0].text != scores[kept][0].text
            found[member] = Found(status, status, kept, turned)
    return found


def find_prefixes(rows: list[Row], scores: list[list[Score]], found: list[Found]) -> None:
    """Find games that are the beginning of another: all images of each are looked up among all beginnings."""
    ended: dict[tuple[int, int], dict[int, dict[str, list[int]]]] = defaultdict(lambda: defaultdict(dict))
    alone = [number for number, game in enumerate(found) if game.kind is None]
    for number in alone:
        row = rows[number]
        if row["plies"] >= LEAST_PLIES:
            of_length = ended[row["board_rows"], row["board_cols"]][row["plies"]]
            for text in {score.text for score in scores[number]}:
                of_length.setdefault(text, []).append(number)
    best: dict[int, tuple[int, int]] = {}
    for number in alone:
        row, score = rows[number], scores[number][0]
        for length, texts in ended[row["board_rows"], row["board_cols"]].items():
            if length < row["plies"]:
                for shorter in texts.get(score.text[: score.ends[length]], ()):
                    best[shorter] = min(best.get(shorter, (0, 0)), (-row["plies"], number))
    for shorter, (_, longer) in best.items():
        found[shorter].kind, found[shorter].other = "prefix-of", longer


def seen_from_anywhere(row: Row, position: Position) -> tuple[Any, ...]:
    """Return what all images of a position have in common, and no other position."""
    size = row["board_rows"], row["board_cols"]
    boards = min(
        (bytes(pick(position.stones)), -1 if position.ko is None else image[position.ko])
        for pick, image in zip(pickers(*size), images(*size), strict=True)
    )
    return *size, position.colour, *boards


def find_near(rows: list[Row], found: list[Found]) -> None:
    """Find games that meet at a mark; prefixes join clusters but stay what they are."""
    meeting: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    alone = [number for number, game in enumerate(found) if game.kind in {None, "prefix-of"}]
    for number in alone:
        if rows[number]["plies"] > MARKS[0]:
            for ply, position in enumerate(positions(rows[number])):
                if ply in MARKS:
                    meeting[ply, *seen_from_anywhere(rows[number], position)].append(number)
    cluster = {number: {number} for number in alone}
    for members in meeting.values():
        for member in members[1:]:
            one, other = cluster[members[0]], cluster[member]
            if one is not other:
                one |= other
                cluster.update(dict.fromkeys(other, one))
    for group in {id(joined): joined for joined in cluster.values()}.values():
        free = [member for member in group if found[member].kind is None]
        if len(free) > 1:
            first = min(free, key=lambda n: (rows[n]["winner"] is None, -rows[n]["plies"], n))
            for member in set(free) - {first}:
                found[member].kind, found[member].other = "near-duplicate-of", first


def goal_of(found: list[Found], number: int, drop: bool) -> int | None:
    """Return the game that a repeat points to: the next one that is kept."""
    at = found[number].other
    while at is not None and found[at].kind is not None and (drop or found[at].kind in {"duplicate", "conflicting"}):
        at = found[at].other
    return at


@dataclass(slots=True)
class Report:
    """Differences by what they are about."""

    faults: Counter[str] = field(default_factory=Counter)

    def differ(self, about: str, what: str) -> None:
        self.faults[about] += 1
        if self.faults[about] <= SHOWN:
            print(f"DIFFERENT {about}: {what}")


def compare_games(folder: Path, rows: list[Row], found: list[Found], drop: bool, report: Report) -> None:
    """Compare the game table of a build with what was found; rows come in the order of the table."""
    table = {row["game"]: row for row in pq.read_table(folder / "games.parquet").to_pylist()}
    for number, row in enumerate(rows):
        mine, theirs = found[number], table[row["game"]]
        goal = goal_of(found, number, drop)
        status = "duplicate" if drop and mine.status == "kept" and mine.kind else mine.status
        flags = {mine.kind} & set(REPEATS) | ({"turned-copy"} if mine.turned else set())
        expected = (status, None if goal is None else rows[goal]["game"], flags)
        actual = (theirs["status"], theirs["duplicate_of"], set(theirs["flags"]) & set(REPEATS))
        if expected != actual:
            report.differ(f"games, near {'drop' if drop else 'keep'}", f"{name_of(row)}: {expected}, not {actual}")
        if mine.other is not None and not theirs["detail"].endswith(name_of(rows[goal if goal is not None else -1])):
            report.differ("names", f"{name_of(row)}: {theirs['detail']}")


def print_repeats(rows: list[Row], found: list[Found]) -> None:
    """Print how many repeats of each kind there are, and between which sources."""
    kinds: Counter[str] = Counter()
    pairs: dict[str, Counter[str]] = defaultdict(Counter)
    for number, game in enumerate(found):
        if game.kind is not None and game.other is not None:
            for kind in [game.kind] + ["turned-copy"] * game.turned:
                kinds[kind] += 1
                pairs[kind][f"{rows[number]['source']} -> {rows[game.other]['source']}"] += 1
    for kind, count in sorted(kinds.items()):
        print(f"{kind:<20}{count:>6,}")
        for pair, number in sorted(pairs[kind].items(), key=lambda item: (-item[1], item[0]))[:12]:
            print(f"    {number:>6,}  {pair}")


# Positions.


@dataclass(slots=True)
class Occurrence:
    """One position of one game: the images of its boards and ko as numbers, in the order of ``images``."""

    game: int
    ply: int
    size: tuple[int, int]
    position: Position
    seen: list[tuple[int, ...]]


def occurrences(row: Row, history: int, numbers: dict[bytes, int]) -> Iterator[Occurrence]:
    """Yield the positions of a game; equal boards have equal ``numbers``, an absent one that of an empty one."""
    size = row["board_rows"], row["board_cols"]
    maps, picks = images(*size), pickers(*size)
    empty = [numbers.setdefault(bytes(size[0] * size[1]) + b"\3", len(numbers))] * len(maps)
    past: list[list[int]] = []
    for ply, position in enumerate(positions(row)):
        boards = [numbers.setdefault(bytes(pick(position.stones)), len(numbers)) for pick in picks]
        past = [boards] if position.begins else [boards, *past[:history]]
        shown = past + [empty] * (history + 1 - len(past))
        kos = [-1 if position.ko is None else image[position.ko] for image in maps]
        seen = [(*(board[turn] for board in shown), kos[turn]) for turn in range(len(maps))]
        yield Occurrence(row["game"], ply, size, position, seen)


@dataclass(slots=True)
class Expected:
    """What one row of a shard must hold."""

    weight: int = 0
    counts: Counter[int] = field(default_factory=Counter)
    outcomes: Counter[int] = field(default_factory=Counter)

    def facts(self) -> Row:
        known = sum(self.outcomes.values())
        most = max(self.counts.values())
        return {
            "move": min(move for move, count in self.counts.items() if count == most),
            "weight": float(self.weight),
            "counts": dict(self.counts),
            "wins": self.outcomes[1],
            "draws": self.outcomes[0],
            "losses": self.outcomes[-1],
            "value": (self.outcomes[1] - self.outcomes[-1]) / known if known else None,
        }


def outcome_of(row: Row, colour: int) -> int | None:
    """Return 1, 0 or -1 for the side to move, None where the result says nothing about play."""
    if row["winner"] is None or row["result_kind"] in {"forfeit", "void"}:
        return None
    return 0 if row["winner"] == "draw" else 1 if (row["winner"] == "B") == (colour == 1) else -1


def expected_row(members: list[Occurrence], rows: dict[int, Row], frame: tuple[int, int]) -> Expected:
    """Merge equal positions of one part into the first of them."""
    first, expected = members[0], Expected()
    maps = images(*first.size)
    fixed = [image for image, seen in zip(maps, first.seen, strict=True) if seen == first.seen[0]]
    cols = first.size[1]
    for member in members:
        # A symmetry that puts the member's boards where those of the first are.
        there = next(image for image, seen in zip(maps, member.seen, strict=True) if seen == first.seen[0])
        for image in fixed:
            point = image[there[member.position.move]]
            is_pass = point == first.size[0] * cols
            expected.counts[frame[0] * frame[1] if is_pass else point // cols * frame[1] + point % cols] += 1
        outcome = outcome_of(rows[member.game], member.position.colour)
        if outcome is not None:
            expected.outcomes[outcome] += 1
        expected.weight += 1
    return expected


def shard_rows(folder: Path, manifest: Row) -> dict[tuple[str, int, int], Row]:
    """Return the rows of all shards by part, game and ply."""
    found = {}
    for shard in manifest["shards"]:
        for row in pq.read_table(folder / shard["path"]).drop_columns(["planes"]).to_pylist():
            row["counts"] = dict(zip(row["policy_moves"], row["policy_counts"], strict=True))
            found[shard["split"], row["game"], row["ply"]] = row
    return found


def compare_positions(folder: Path, history: int, report: Report) -> None:
    """Compare the shards of a build with the groups that comparing boards gives."""
    manifest = json.loads((folder / "dataset.json").read_text("utf-8"))
    rows = {row["game"]: row for row in pq.read_table(folder / "games.parquet").to_pylist() if row["status"] == "kept"}
    groups: dict[Any, dict[str, list[Occurrence]]] = defaultdict(lambda: defaultdict(list))
    numbers: dict[bytes, int] = {}
    for game in sorted(rows):
        for found in occurrences(rows[game], history, numbers):
            groups[found.size, found.position.colour, min(found.seen)][rows[game]["split"]].append(found)
    stored = shard_rows(folder, manifest)
    merged = overlap = 0
    for parts in groups.values():
        owner = next(part for part in PARTS if part in parts)
        overlap += sum(len(members) for part, members in parts.items() if part != owner)
        merged += len(parts[owner]) - 1
        first = parts[owner][0]
        name = (owner, first.game, first.ply)
        expected, row = expected_row(parts[owner], rows, tuple(manifest["frame"])).facts(), stored.pop(name, None)
        if row is None:
            report.differ("rows", f"{name} is missing")
            continue
        for column, value in expected.items():
            close = row[column] == value
            if column == "value" and value is not None and row[column] is not None:
                close = abs(row[column] - value) < 1e-6
            if not close:
                report.differ(column, f"{name}: {value}, not {row[column]}")
    for name in stored:
        report.differ("rows", f"{name} should not be there")
    if (merged, overlap) != (manifest["positions"]["merged"], manifest["positions"]["overlap"]):
        report.differ("sums", f"merged {merged}, overlap {overlap}, not {manifest['positions']}")
    symmetric = sum(
        len(set(parts[part][0].seen)) < len(parts[part][0].seen) for parts in groups.values() for part in parts
    )
    print(
        f"    {len(rows):,} games, {len(groups):,} positions, {symmetric:,} of them their own image under a symmetry;"
    )
    print(f"    {merged:,} merged, {overlap:,} overlap")


def records(path: Path) -> Iterator[bytes]:
    """Yield the records of an archive."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as file:
            for name in file.namelist():
                if name.lower().endswith(".sgf"):
                    yield file.read(name)
    elif path.name.endswith((".tar", ".tar.gz", ".tgz")):
        with tarfile.open(path) as file:
            for member in file:
                handle = file.extractfile(member) if member.name.lower().endswith(".sgf") else None
                if handle is not None:
                    yield handle.read()
    elif path.suffix.lower() == ".sgf":
        yield path.read_bytes()


def deal(inputs: list[str], count: int, folder: Path) -> None:
    """Write the first records of all inputs in turn as files of a new folder."""
    folder.mkdir()
    paths = [file for path in map(Path, inputs) for file in (sorted(path.rglob("*")) if path.is_dir() else [path])]
    open_archives = [records(path) for path in paths if path.is_file()]
    written = 0
    while open_archives and written < count:
        for archive in list(open_archives):
            data = next(archive, None)
            if data is None:
                open_archives.remove(archive)
            elif written < count:
                (folder / f"{written:05d}.sgf").write_bytes(data)
                written += 1


def check_games(inputs: list[str], folder: Path, workers: int, settings: list[str], report: Report) -> None:
    """Build twice, find all repeats, and compare."""
    for near in ("keep", "drop"):
        # One position of a game is enough: shards are not looked at here.
        build(inputs, folder / near, workers, "board", [*settings, f"dedup.near={near}", "sample.per_game=1"])
    start = time.perf_counter()
    table = pq.read_table(folder / "keep" / "games.parquet").to_pylist()
    rows = [row for row in table if row["status"] in {"kept", "duplicate", "conflicting"}]
    scores = [[score_of(row, image) for image in images(row["board_rows"], row["board_cols"])] for row in rows]
    found = exact_copies(rows, scores)
    find_prefixes(rows, scores, found)
    find_near(rows, found)
    print(f"{len(table):,} records, {len(rows):,} games compared in {time.perf_counter() - start:.0f} s")
    print_repeats(rows, found)
    for near in ("keep", "drop"):
        compare_games(folder / near, rows, found, near == "drop", report)


def check_positions(
    inputs: list[str], count: int, folder: Path, workers: int, settings: list[str], report: Report
) -> None:
    """Build some records with each scheme, group their positions, and compare."""
    deal(inputs, count, folder / "dealt")
    parts = ["split.val=0.2", "split.test=0.2", "output.games_per_block=70", "dedup.positions=aggregate"]
    for scheme, history in HISTORY.items():
        print(f"{scheme}, {history} earlier boards:", flush=True)
        build([str(folder / "dealt")], folder / scheme, workers, scheme, [*settings, *parts])
        compare_positions(folder / scheme, history, report)


def main() -> None:
    """Run both checks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("inputs", nargs="+")
    parser.add_argument("--positions", type=int, default=300, help="records whose positions are compared")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--set", action="append", default=[], dest="settings", metavar="KEY=VALUE")
    arguments = parser.parse_args()
    report = Report()
    with tempfile.TemporaryDirectory(prefix="goplanes-brute-") as name:
        folder = Path(name)
        check_games(arguments.inputs, folder, arguments.workers, arguments.settings, report)
        check_positions(arguments.inputs, arguments.positions, folder, arguments.workers, arguments.settings, report)
    print(f"differences: {sum(report.faults.values()):,} {dict(report.faults) or ''}")
    sys.exit(1 if report.faults else 0)


if __name__ == "__main__":
    main()
