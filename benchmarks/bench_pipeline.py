"""What each step from an archive to shards costs, beside the time sgfmill takes to parse the same games.

    python benchmarks/bench_pipeline.py [ARCHIVE] [--repeat 5] [--only NAME ...]

ARCHIVE is a folder, a record or an archive (default: the games in ``examples/``); its 19x19 games are measured. Every
number is the best of ``--repeat`` runs on one core, unless it says otherwise. The last column gives it per game, as a
share of the time sgfmill needs for a game in the same run: that share hardly depends on the machine.
"""

import argparse
import os
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from sgfmill.sgf import Sgf_game

from pipeline import shard
from pipeline.augment import turn_planes
from pipeline.build import build, check_config
from pipeline.columns import Columns, Layout
from pipeline.config import Config, make_config
from pipeline.encode import encode, plane_bytes
from pipeline.gamekeys import game_keys
from pipeline.games import Games, terms_of
from pipeline.parse import parse_member
from pipeline.read import ReadTask, read_unit
from pipeline.replay import replay
from pipeline.rules import KO_POSITIONAL, KO_SIMPLE, RULE_SETS, RuleSet
from pipeline.schemes import SCHEMES, Scheme
from pipeline.sources import Member, Unit, find_inputs, members, spool, units
from pipeline.table import games_of
from pipeline.warm import compile_replay

FRAME = (19, 19)
EXAMPLES = Path(__file__).parents[1] / "examples" / "games"
SGFMILL_GAMES = 500  # enough to know its time, a second or so a run
TRACED_GAMES = 15  # their boards fit the cache, as they do in a build
WRITTEN_ROWS = 30_000
LIMITS = {"agz17": 1.0, "alphago48": 25.0, "katago_v7": 37.0}  # us a position, one core, replay included
COLD_LIMIT = 30  # seconds to compile for a scheme
SECTIONS = ("read", "parse", "replay", "encode", "turn", "write", "build", "cold")


@dataclass(slots=True)
class Table:
    """Prints the lines of the table as they are measured."""

    repeat: int
    games: int = 1  # that the lines are about
    sgfmill: float = 0.0  # seconds a game

    def best(self, run: Callable[[], object]) -> float:
        """Return the seconds of the fastest of several runs; the first one, which warms up, counts for little."""
        times = []
        for _ in range(self.repeat):
            start = time.perf_counter()
            run()
            times.append(time.perf_counter() - start)
        return min(times)

    def line(self, what: str, seconds: float, count: int, unit: str, note: str = "") -> None:
        """Print ``seconds`` for ``count`` things in ns or us each, and per game as a share of sgfmill's time."""
        each = seconds / max(1, count) * 1e6
        number = f"{1000 * each:9.0f} ns" if unit == "move" else f"{each:9.2f} us"
        share = f"{100 * seconds / self.games / self.sgfmill:9.2f} %"
        print(f"{what:<65} {number} per {unit:<9} {share:>11}  {note}".rstrip(), flush=True)

    def fact(self, what: str, value: str, note: str = "") -> None:
        """Print a line that is no time per thing."""
        print(f"{what:<65} {value:>16}{'':<21}  {note}".rstrip(), flush=True)


def read_all(config: Config, folder: str) -> Iterator[bytes]:
    """Yield the bytes of all members of the inputs."""
    files, _ = find_inputs(config.input)
    found: list[Unit] = units(files, config.input)
    for file in files:
        if file.kind == "stream":
            found += spool(file, config.input, folder)
    for unit in found:
        for member in members(unit, config.input):
            if isinstance(member, Member):
                yield member.data


def count_all(config: Config, folder: Path) -> int:
    return sum(1 for _ in read_all(config, str(folder)))


def config_for(path: Path, **tables: Any) -> Config:
    return make_config({**tables, "input": {"paths": [str(path)]}}, "benchmark")


def pack(records: list[bytes], folder: Path) -> dict[str, Path]:
    """Write the records as a folder, a zip and a tar.gz."""
    loose = folder / "loose"
    loose.mkdir()
    for number, record in enumerate(records):
        (loose / f"{number:06d}.sgf").write_bytes(record)
    with zipfile.ZipFile(folder / "games.zip", "w", zipfile.ZIP_DEFLATED) as made:
        for number, record in enumerate(records):
            made.writestr(f"{number:06d}.sgf", record)
    with tarfile.open(folder / "games.tar.gz", "w:gz") as made_tar:
        for number, record in enumerate(records):
            entry = tarfile.TarInfo(f"{number:06d}.sgf")
            entry.size = len(record)
            made_tar.addfile(entry, BytesIO(record))
    return {"a folder": loose, "a zip": folder / "games.zip", "a tar.gz": folder / "games.tar.gz"}


def sgfmill_parse(records: list[bytes]) -> int:
    """Parse with sgfmill alone, moves of the main line included; return how many it could."""
    parsed = 0
    for record in records:
        try:
            game = Sgf_game.from_bytes(record)
            for node in game.get_main_sequence():
                node.get_move()
        except ValueError:
            continue
        parsed += 1
    return parsed


def bench_sgfmill(table: Table, records: list[bytes]) -> None:
    chosen = records[:: max(1, len(records) // SGFMILL_GAMES)]
    seconds = table.best(lambda: sgfmill_parse(chosen))
    table.sgfmill = seconds / len(chosen)
    table.games = len(chosen)
    table.line("sgfmill: from_bytes and the moves of the main line", seconds, len(chosen), "game", "the yardstick")
    table.games = len(records)


def bench_read(table: Table, records: list[bytes], folder: Path) -> None:
    for name, path in pack(records, folder).items():
        config = config_for(path)
        seconds = table.best(partial(count_all, config, folder))
        table.line(f"read {name}", seconds, len(records), "game")


def bench_parse(table: Table, records: list[bytes]) -> None:
    config = Config()

    def run() -> None:
        for record in records:
            parse_member(record, config.input, config.parse, config.rules)

    table.line("parse: decode, main line, headers", table.best(run), len(records), "game")


def kept_games(config: Config, folder: Path, table: Table) -> Games:
    """Return the games that a build would keep, duplicates included, by its own first stage."""
    files, _ = find_inputs(config.input)
    found = units(files, config.input)
    for file in files:
        if file.kind == "stream":
            found += spool(file, config.input, str(folder))
    parts = [str(folder / f"part-{number}") for number in range(len(found))]
    compile_replay()
    start = time.perf_counter()
    records = 0
    for unit, part in zip(found, parts, strict=True):
        records += read_unit(ReadTask(unit, config, part))["records"]
    seconds = time.perf_counter() - start
    table.line("the whole first stage (read, parse, legality, table)", seconds, records, "game", "one run")
    whole = pq.read_table([f"{part}.parquet" for part in parts])
    return games_of(whole.filter(pc.equal(whole.column("status"), "kept")).combine_chunks())


def bench_replay(table: Table, games: Games) -> None:
    lengths = np.diff(games.move_start)
    for name, rule in (("simple ko", KO_SIMPLE), ("positional superko", KO_POSITIONAL)):
        ruled = games._replace(ko_rule=np.full(games.number, rule, dtype=np.int8))
        for history in (0, 7):
            moves = int(replay(ruled, history).legal.sum())
            seconds = table.best(partial(replay, ruled, history))
            table.line(f"replay: legality, both key families, {name}, {history + 1} boards", seconds, moves, "move")
    table.line("keys of whole games", table.best(lambda: game_keys(games, lengths)), int(lengths.sum()), "move")


def all_rows(games: Games) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    lengths = np.diff(games.move_start)
    rows = np.repeat(np.arange(games.number, dtype=np.int64), lengths)
    return rows, np.arange(len(rows), dtype=np.int64) - games.move_start[rows]


def draw_all(scheme: Scheme, traced: Any, positions: NDArray[np.int64], out: NDArray[np.uint8]) -> None:
    first = 0
    for group in scheme.groups:
        group.draw(traced, positions, out, first)
        first += len(group.planes)
        if group.fill is not None:
            group.fill(traced, positions)


def under_rules(games: Games, rules: RuleSet) -> Games:
    """Return the same games as if all had been played under these rules."""
    terms = terms_of([rules] * games.number, games.terms.komi.tolist(), games.terms.handicap.tolist())
    ko_rule = np.full(games.number, rules.ko_code, dtype=np.int8)
    return games._replace(ko_rule=ko_rule, suicide=np.full(games.number, rules.suicide), terms=terms)


def bench_encode(table: Table, games: Games) -> None:
    """Encode with every scheme under Tromp-Taylor rules, so that all that schemes show is there: superko, areas."""
    games = under_rules(games, RULE_SETS["tromp-taylor"])
    costs: dict[str, float] = {}
    few = np.arange(min(TRACED_GAMES, games.number), dtype=np.int64)
    lengths = np.diff(games.move_start).astype(np.int64)
    rows, plies = all_rows(games)
    chosen = slice(0, min(len(rows), 200_000))
    for name, scheme in SCHEMES.items():
        seconds = table.best(partial(encode, scheme, games, rows[chosen], plies[chosen], FRAME))
        whole = seconds * len(rows) / len(rows[chosen])
        costs[name] = whole / len(rows) * 1e6
        table.line(f"encode {name}: replay and draw", whole, len(rows), "position", f"{row_bytes(scheme)} bytes packed")
        traced = scheme.traces(games, few, lengths, FRAME)
        positions = np.arange(len(traced.boards.begin), dtype=np.int64)
        out = np.zeros((len(positions), len(scheme.planes), traced.boards.mask.shape[0]), dtype=np.uint8)
        seconds = table.best(partial(draw_all, scheme, traced, positions, out))
        table.line(f"encode {name}: draw alone", seconds * len(rows) / len(positions), len(rows), "position")
    compare(costs)


def row_bytes(scheme: Scheme) -> int:
    """Return the bytes of the packed planes and the globals of one position."""
    return len(scheme.planes) * plane_bytes(FRAME) + 4 * len(scheme.globals)


def compare(costs: dict[str, float]) -> None:
    """Print what every scheme costs, in ``costs`` microseconds a position, beside the 17 planes of AlphaGo Zero."""
    base = SCHEMES["agz17"]
    print("\nThe articles' comparison: they expect 48 planes to cost 5 to 10 times the 17 of agz17.\n")
    print(f"{'':<20}{'planes':>8}{'bytes':>8}{'of agz17':>10}{'us':>10}{'of agz17':>10}{'at most':>10}")
    for name, cost in costs.items():
        size = row_bytes(SCHEMES[name])
        limit = f"{LIMITS[name]:.0f} us" if name in LIMITS else ""
        print(
            f"{name:<20}{len(SCHEMES[name].planes):>8}{size:>8}{size / row_bytes(base):>10.1f}"
            f"{cost:>10.2f}{cost / costs[base.name]:>10.1f}{limit:>10}".rstrip()
        )
    print()


def bench_turn(table: Table, games: Games) -> None:
    rows, plies = all_rows(games)
    chosen = slice(0, min(len(rows), 20_000))
    sides = np.full(len(rows[chosen]), FRAME[0], dtype=np.uint8)
    for name in ("agz17", "seven_plane"):
        planes = encode(SCHEMES[name], games, rows[chosen], plies[chosen], FRAME)
        for turn, what in ((1, "flip rows"), (2, "flip columns"), (5, "rotate")):
            turns = np.full(len(planes), turn, dtype=np.uint8)
            seconds = table.best(partial(turn_planes, planes, sides, sides, FRAME[1], turns))
            table.line(f"turn {name}: {what}", seconds * len(rows) / len(planes), len(rows), "row")


def stored_rows(config: Config) -> Columns:
    """Build a data set and return some of its rows."""
    built = build(config)
    _scheme, layout = check_config(config)
    batches: list[Columns] = []
    for item in built.manifest.shards:
        batches += shard.read(built.path / item.path, layout)
        if sum(shard.count(batch) for batch in batches) >= WRITTEN_ROWS:
            break
    return {name: np.concatenate([batch[name] for batch in batches])[:WRITTEN_ROWS] for name in batches[0]}


def count_batches(path: Path, layout: Layout) -> int:
    return sum(1 for _ in shard.read(path, layout))


def bench_write(table: Table, archive: Path, folder: Path, moves: int) -> None:
    outputs: dict[str, dict[str, Any]] = {
        "Parquet, zstd": {"format": "parquet"},
        "Parquet, no compression": {"format": "parquet", "compression": "none"},
        "HDF5, gzip-1": {"format": "hdf5"},
        "HDF5, no compression": {"format": "hdf5", "compression": "none"},
        "HDF5, gzip-1, not packed": {"format": "hdf5", "packed": False},
    }
    output = {"path": str(folder / "to-read")}
    rows = stored_rows(config_for(archive, output=output, run={"workers": 0}))
    count = len(rows["move"])
    for name, output in outputs.items():
        _scheme, layout = check_config(config_for(archive, output=output))
        path = folder / f"shard{shard.SUFFIXES[layout.format]}"
        made = shard.write(path, [rows], layout)
        seconds = table.best(partial(shard.write, path, [rows], layout))
        table.line(
            f"write agz17: {name}", seconds * moves / count, moves, "row", f"{made.bytes / count:.1f} bytes a row"
        )
        seconds = table.best(partial(count_batches, path, layout))
        table.line(f"read agz17 back: {name}", seconds * moves / count, moves, "row")


def bench_build(table: Table, archive: Path, folder: Path) -> None:
    for workers in (0, 1, 2):
        times, built = [], None
        for number in range(max(1, table.repeat // 2)):
            config = config_for(
                archive, output={"path": str(folder / f"built-{workers}-{number}")}, run={"workers": workers}
            )
            start = time.perf_counter()
            built = build(config)
            times.append(time.perf_counter() - start)
        assert built is not None
        rows = sum(item.rows for item in built.manifest.shards)
        size = sum(item.bytes for item in built.manifest.shards)
        stages = ", ".join(f"{name} {seconds:.1f}" for name, seconds in built.seconds.items() if seconds >= 0.05)
        where = "in one process" if workers == 0 else f"{workers} worker" + "s" * (workers > 1)
        table.line(f"build agz17 to Parquet, {where}", min(times), rows, "row", f"{size / rows:.1f} bytes a row")
        table.fact("", f"{rows / min(times):,.0f} rows/s", f"{rows:,} rows; seconds: {stages}")


COLD = """
import time
start = time.perf_counter()
from pipeline import warm
from pipeline.schemes import SCHEMES
imported, busy = time.perf_counter(), time.process_time()
warm.compile_replay()
warm.compile_scheme(SCHEMES[{name!r}])
compiled, busy = time.perf_counter(), time.process_time() - busy
warm.compile_turns()
print(imported - start, compiled - imported, time.perf_counter() - compiled, busy)
"""


def bench_cold(table: Table) -> None:
    """Compile what a build needs into an empty cache, once for each scheme, then load it from there."""
    seconds = {}
    package = str(Path(__file__).parents[1])
    for name in SCHEMES:
        with tempfile.TemporaryDirectory() as cache:
            environment = {**os.environ, "NUMBA_CACHE_DIR": cache, "PYTHONPATH": package}
            times = []
            for _ in range(2):
                command = [sys.executable, "-c", COLD.format(name=name)]
                done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
                times.append([float(word) for word in done.stdout.split()])
        (_, compiled, turns, busy), (imports, loaded, _, _) = times
        seconds[name] = compiled
        note = f"augmentation {turns:.1f} s more; from the cache {loaded:.2f} s; imports {imports:.2f} s"
        table.fact(f"compile for {name}, empty cache", f"{compiled:.1f} s", f"{busy:.1f} s of CPU; {note}")
    worst = max(seconds, key=lambda name: seconds[name])
    verdict = "met" if seconds[worst] <= COLD_LIMIT else "MISSED"
    table.fact(f"the slowest to compile: {worst}", f"{seconds[worst]:.1f} s", f"at most {COLD_LIMIT} s: {verdict}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("archive", nargs="?", type=Path, default=EXAMPLES)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--only", nargs="*", choices=SECTIONS, default=SECTIONS)
    options = parser.parse_args()
    table = Table(max(1, options.repeat))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        records = list(read_all(config_for(options.archive), name))
        print(
            f"{len(records)} files; numpy {np.__version__}, Python {sys.version.split()[0]}, {os.cpu_count()} cores\n"
        )
        print(f"{'':<65} {'':>12} {'':<13} {'of sgfmill':>11}")
        bench_sgfmill(table, records)
        games = kept_games(config_for(options.archive), folder, table)
        moves = len(games.moves)
        sections: dict[str, Callable[[], None]] = {
            "read": lambda: bench_read(table, records, folder),
            "parse": lambda: bench_parse(table, records),
            "replay": lambda: bench_replay(table, games),
            "encode": lambda: bench_encode(table, games),
            "turn": lambda: bench_turn(table, games),
            "write": lambda: bench_write(table, options.archive, folder, moves),
            "build": lambda: bench_build(table, options.archive, folder),
            "cold": lambda: bench_cold(table),
        }
        for section in options.only:
            table.games = len(records) if section in ("read", "parse", "build") else games.number
            sections[section]()


if __name__ == "__main__":
    main()
