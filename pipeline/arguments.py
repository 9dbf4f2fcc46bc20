"""What is typed after a command, as a configuration: presets, files, inputs and single keys."""

import difflib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.config import Config, ConfigError, Run, make_config
from pipeline.settings import preset_names, read_toml, set_value

COMMAND_LINE = "command line"


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments that ``build`` and ``plan`` share; None: not given.

    ``what``: at most one preset or TOML file, then paths to records. ``assignments``: ``table.key=value``.
    """

    what: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    output: str | None = None
    scheme: str | None = None
    assignments: tuple[str, ...] = ()
    workers: int | None = None
    executor: str | None = None


def config_of(arguments: Arguments) -> Config:
    """Return the configuration: the preset or file, over it the keys and options of the command line.

    Raises ConfigError, also for an input that is not there and where there is none at all.
    """
    source, paths = _sorted_out(arguments.what)
    tables = _tables(source, arguments.assignments)
    if inputs := [*paths, *arguments.inputs]:
        _put(tables, "input", "paths", inputs)
    for table, key, value in (
        ("output", "path", arguments.output),
        ("encode", "scheme", arguments.scheme),
        ("run", "workers", arguments.workers),
        ("run", "executor", arguments.executor),
    ):
        if value is not None:
            _put(tables, table, key, value)
    config = make_config(tables, COMMAND_LINE)
    _require_inputs(config.input.paths)
    return config


def run_settings(assignments: Sequence[str], workers: int | None, executor: str | None) -> Run:
    """Return how to run a command whose other settings are those of a data set. Raises ConfigError for other keys."""
    tables = _tables(None, assignments)
    if others := sorted(tables.keys() - {"run"}):
        raise ConfigError(f"{others[0]}: a data set keeps its own configuration, only run.* can be set")
    for key, value in (("workers", workers), ("executor", executor)):
        if value is not None:
            _put(tables, "run", key, value)
    return make_config(tables, COMMAND_LINE).run


def config_without_inputs(source: str | None, assignments: Sequence[str], scheme: str | None = None) -> Config:
    """Return the configuration of a command that is told its records apart from it. Raises ConfigError."""
    tables = _tables(source, assignments)
    if scheme is not None:
        _put(tables, "encode", "scheme", scheme)
    return make_config(tables, COMMAND_LINE)


def _tables(source: str | None, assignments: Sequence[str]) -> dict[str, Any]:
    """Return the tables of a preset or file, single keys set over it."""
    tables = read_toml(source) if source else {}
    if source:
        # Checked alone first, so that a fault of the file is reported under its name.
        make_config(tables, source)
    for assignment in assignments:
        set_value(tables, assignment)
    return tables


def _put(tables: dict[str, Any], table: str, key: str, value: Any) -> None:
    """Set a key; a table that is none is left for the validation to refuse."""
    inner = tables.setdefault(table, {})
    if isinstance(inner, dict):
        inner[key] = value


def _sorted_out(what: Sequence[str]) -> tuple[str | None, list[str]]:
    """Return the preset or TOML file, if any, and the paths to records."""
    sources = [word for word in what if _is_config(word)]
    if len(sources) > 1:
        raise ConfigError(f"one preset or TOML file at a time, not {' and '.join(sources)}")
    return (sources[0] if sources else None), [word for word in what if word not in sources]


def _is_config(word: str) -> bool:
    """A preset's name goes before a file of that name (``./name`` is the file); what is not there is taken
    for a misspelt preset, unless it looks like a path to records."""
    if word in preset_names():
        return True
    path = Path(word)
    if os.path.lexists(path):
        return path.suffix.lower() == ".toml" and not path.is_dir()
    return os.sep not in word and path.suffix.lower() in {"", ".toml"}


def _require_inputs(paths: Sequence[str]) -> None:
    if not paths:
        raise ConfigError(
            "no input: name a folder, an archive or .sgf files, e.g. goplanes build games.zip, or set input.paths"
        )
    for path in paths:
        if not os.path.lexists(path):
            raise ConfigError(f"no such input: {path}{_meant(path)}")


def _meant(path: str) -> str:
    """Return a hint for a missing path that looks like a preset or a configuration; nothing for others."""
    name = Path(path)
    looks_like_toml = bool(difflib.get_close_matches(name.suffix.lower(), [".toml"], 1))
    if name.suffix and not looks_like_toml:
        return ""
    if near := difflib.get_close_matches(name.stem, preset_names(), 1):
        return f" (did you mean the preset {near[0]!r}?)"
    return " (the name of a configuration ends in .toml)" if looks_like_toml else ""
