"""One task of a stage together with its outputs, and doing it unless it was done before."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.files import read_report, write_report


@dataclass(frozen=True, slots=True)
class Step:
    """Run ``function`` on ``task``, which writes the files ``outputs``, the last of them last. It returns a report:
    counts that JSON holds."""

    function: Callable[[Any], dict[str, Any]]
    task: Any
    outputs: Sequence[str]

    @property
    def report(self) -> Path:
        """Return the file whose presence says that the outputs are whole."""
        return Path(self.outputs[-1] + ".json")


def do_step(step: Step) -> dict[str, Any]:
    """Return the report of a step; it is done only where an output or the report is missing. (A damaged output is
    removed by whoever finds it.)"""
    report = read_report(step.report)
    if report is None or not all(Path(path).is_file() for path in step.outputs):
        step.report.unlink(missing_ok=True)
        report = step.function(step.task)
        write_report(step.report, report)
    return report


def numbered(folder: Path, kind: str, count: int) -> tuple[str, ...]:
    """Return the paths of so many files of a kind of work in progress."""
    return tuple(str(folder / f"{kind}-{number:06d}") for number in range(count))


def each(function: Callable[[Any], dict[str, Any]], tasks: Iterable[Any], *outputs: Sequence[str]) -> list[Step]:
    """Return a step for each task; ``outputs``: of every kind of file the one of each task."""
    return [Step(function, task, paths) for task, *paths in zip(tasks, *outputs, strict=True)]


def do_all(steps: Sequence[Step], _memory: int) -> list[dict[str, Any]]:
    """Do steps one after the other in this process; return their reports."""
    return [do_step(step) for step in steps]
