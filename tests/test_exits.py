"""The last line of a log: what a monitor reads, whatever names and messages hold."""

import json
import re
from typing import Any

import pytest

from pipeline.exits import Ending

FIELD = re.compile(r' ([a-z_]+)=("(?:[^"\\]|\\.)*"|[^ "]+)')


def fields(line: str) -> tuple[str, dict[str, str]]:
    """Read a line as the README says."""
    word, _, rest = line.partition(":")
    assert "".join(match.group() for match in FIELD.finditer(rest)) == rest
    return word, {name: json.loads(value) if value[0] == '"' else value for name, value in FIELD.findall(rest)}


def test_what_was_done() -> None:
    line = Ending("build", {"outcome": "built", "rows": 12_000, "seconds": 0.5}).line(0)
    assert line == "done: command=build exit=0 outcome=built rows=12000 seconds=0.5"


def test_what_failed() -> None:
    assert Ending("compact", reason="busy").line(3) == "failed: command=compact exit=3 reason=busy"
    line = Ending("build", {"kept": 0}, "no game was kept").line(1)
    assert line == 'failed: command=build exit=1 reason="no game was kept" kept=0'
    line = Ending("build", reason="it differs:\n  here\n  there").line(2)
    assert line == 'failed: command=build exit=2 reason="it differs:"'
    line = Ending("build").line(1)
    assert line is not None
    assert "a fault of goplanes itself" in line


def test_where_there_is_nothing_to_say() -> None:
    assert Ending(reason="unknown option").line(2) is None  # of another command
    assert Ending("build").line(0) is None  # --help


@pytest.mark.parametrize(
    "path", ["a b", "", 'a"b', "a=b", "a\\b", "a\nb\r\x85\u2028c", "\x1b[31m", "'", "\udcff", "甲 乙", "甲"]
)
def test_any_value_is_one_field(path: Any) -> None:
    line = Ending("build", {"path": path, "rows": 1}).line(0)
    assert line is not None
    assert len(line.splitlines()) == 1
    assert line.isprintable()
    assert fields(line) == ("done", {"command": "build", "exit": "0", "path": path, "rows": "1"})
