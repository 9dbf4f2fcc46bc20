"""Why a record is kept, repaired or rejected: of files before a build, or of a data set after it."""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipeline import gamefile
from pipeline.archives import printable
from pipeline.build import check_config
from pipeline.config import Config, make_config
from pipeline.gamestages import decided_games
from pipeline.headers.rank import rank_name
from pipeline.load import Dataset
from pipeline.pieces import whole_table
from pipeline.progress import Progress
from pipeline.read import ReadTask, omitted_of, read_unit
from pipeline.reasons import meaning
from pipeline.report import counted
from pipeline.sources import find_inputs, spool, units
from pipeline.steps import do_all
from pipeline.warm import warm_up

Facts = dict[str, Any]

_AT_ONCE = 1000  # records as Python objects at a time
_ARRAYS = ("setup_plies", "setup_points", "setup_colours", "moves", "colours")


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which records to explain; None: all. ``game`` is an id, or a source, member or source/member."""

    game: str | None = None
    status: str | None = None

    def __contains__(self, row: Facts) -> bool:
        if self.status is not None and row["status"] != self.status:
            return False
        source, member = row["source"], row["member"]
        return self.game is None or self.game in {str(row["game"]), source, member, f"{source}/{member}"}


def of_records(path: str, config: Config, wanted: Wanted, progress: Progress | None = None) -> Iterator[Facts]:
    """Yield what a build of ``path`` alone (a file, an archive or a folder) would make of each record, then
    what it would not read. Raises ConfigError, OSError."""
    scheme, _ = check_config(config)
    warm_up(progress or Progress(quiet=True))
    config = with_inputs(config, (path,))
    limits = config.input
    with tempfile.TemporaryDirectory(prefix="goplanes-") as folder:
        files, omitted = find_inputs(limits)
        work = units(files, limits)
        for file in files:
            if file.kind == "stream":
                work += spool(file, limits, folder)
        tasks = [
            ReadTask(unit, config, str(Path(folder) / f"part-{number}"), scheme.komi)
            for number, unit in enumerate(work)
        ]
        reports = [read_unit(task) for task in tasks]
        decided = decided_games([task.part for task in tasks], reports, config, Path(folder), 0, do_all)
        for table in decided.tables:
            yield from _explained(whole_table(table), wanted)
    for item in omitted_of(omitted, reports):
        row = {**item, "game": None, "flags": [], "meaning": meaning(item["reason"])}
        if row in wanted:
            yield row


def with_inputs(config: Config, paths: tuple[str, ...]) -> Config:
    """Return a configuration with other inputs."""
    return config.model_copy(update={"input": config.input.model_copy(update={"paths": paths})})


def config_of(dataset: Dataset) -> Config:
    """Return the configuration that a data set was built with, without its inputs. Raises ConfigError."""
    return make_config(dataset.manifest.config, "dataset.json: config")


def of_dataset(dataset: Dataset, wanted: Wanted) -> Iterator[Facts]:
    """Yield what became of the records of a data set. Raises ShardError where its game table is damaged."""
    for table in gamefile.batches(dataset):
        yield from _explained(table, wanted)


def _explained(table: pa.Table, wanted: Wanted) -> Iterator[Facts]:
    for start in range(0, table.num_rows, _AT_ONCE):
        for row in table.slice(start, _AT_ONCE).to_pylist():
            if row in wanted:
                yield _facts(row)


def _facts(row: Facts) -> Facts:
    """Return a row of the game table with meanings in place of arrays."""
    facts = {name: value for name, value in row.items() if name not in _ARRAYS}
    return facts | {
        "content": row["content"].hex() if row["content"] is not None else None,
        "meaning": meaning(row["reason"]) if row["reason"] else None,
        "flags": {flag: meaning(flag) for flag in row["flags"] or ()},
        "setup_stones": len(row["setup_points"] or ()),
        "moves_recorded": len(row["moves"]) if row["moves"] is not None else None,
        "raw": dict(row["raw"] or ()),
    }


def lines(facts: Facts) -> list[str]:
    """Return one record, or one file that was not read, for people."""
    text = [f"{gamefile.record_name(facts)}: {facts['status']}"]
    if facts["reason"]:
        text.append(f"  reason      {facts['reason']}: {facts['meaning']}")
    if facts["detail"]:
        text.append(f"  detail      {printable(facts['detail'])}")
    if facts["game"] is None:
        return text
    text += [f"  flag        {flag}: {meaning}" for flag, meaning in facts["flags"].items()]
    text.append(f"  game        {facts['game']}")
    for name in ("move", "offset", "split", "rows"):
        if facts[name] is not None:
            text.append(f"  {name:<12}{facts[name]}")
    if facts["board_rows"] is not None:
        text += _fact_lines(facts)
    return text + [f"  {name:<12}{printable(value)}" for name, value in facts["raw"].items() if value and value.strip()]


def _fact_lines(facts: Facts) -> list[str]:
    """Return what was read out of a record that could be parsed."""
    stones = f", {counted(facts['setup_stones'], 'setup entry', 'setup entries')}" if facts["setup_stones"] else ""
    margin = f" by {facts['margin']:g}" if facts["margin"] is not None else ""
    ranks = ["?" if facts[name] is None else rank_name(facts[name]) for name in ("black_rank", "white_rank")]
    komi = "unknown" if facts["komi"] is None else format(facts["komi"], "g")
    shown = [
        ("board", f"{facts['board_rows']}x{facts['board_cols']}{stones}"),
        ("moves", f"{facts['moves_recorded']}, of which {facts['plies']} count"),
        ("komi", komi),
        ("rules", facts["rules"] or "unknown"),
        ("handicap", str(facts["handicap"])),
        ("result", f"{facts['winner'] or 'unknown'}{margin} ({facts['result_kind']})"),
        ("players", f"{facts['black'] or '?'} - {facts['white'] or '?'}"),
        ("ranks", " - ".join(ranks)),
        ("date", facts["date"] or "unknown"),
    ]
    return [f"  {name:<12}{printable(value)}" for name, value in shown]
