"""Steps are done once, and again where anything of them is missing; a crash anywhere changes no result."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from repeated_games import SIZES_ASKED_FOR, write_collection
from stages import RULES, read_parts

from pipeline.build import check_config
from pipeline.config import Config, make_config
from pipeline.files import write_report
from pipeline.gamestages import decided_games
from pipeline.pieces import DamagedWork, whole_table
from pipeline.positionstages import decided_positions
from pipeline.steps import Step, do_all, do_step, each


class Crash(Exception):
    """A task that ends in the middle."""


class Work:
    """A function that writes two files and notes how often it ran; ``crash`` says where it ends too early."""

    def __init__(self, folder: Path) -> None:
        self.outputs = (str(folder / "one"), str(folder / "two"))
        self.runs = 0
        self.crash = -1

    def __call__(self, task: str) -> dict[str, Any]:
        self.runs += 1
        for number, path in enumerate(self.outputs):
            if number == self.crash:
                raise Crash
            Path(path).write_text(task)
        if self.crash == len(self.outputs):
            raise Crash
        return {"written": task, "run": self.runs}

    @property
    def step(self) -> Step:
        return Step(self, "words", self.outputs)


@pytest.fixture
def work(tmp_path: Path) -> Work:
    return Work(tmp_path)


def test_a_step_is_done_once(work: Work) -> None:
    """Its report lies beside the last output, and is what is returned from then on."""
    assert do_step(work.step) == {"written": "words", "run": 1}
    assert work.step.report == Path(work.outputs[1] + ".json")
    assert work.step.report.is_file()
    assert do_all([work.step] * 3, 0) == [{"written": "words", "run": 1}] * 3
    assert work.runs == 1


@pytest.mark.parametrize("missing", ["one", "two", "two.json"])
def test_a_step_is_done_again_where_a_file_is_missing(work: Work, tmp_path: Path, missing: str) -> None:
    do_step(work.step)
    (tmp_path / missing).unlink()
    assert do_step(work.step)["run"] == 2
    assert [Path(path).read_text() for path in work.outputs] == ["words"] * 2
    assert do_step(work.step)["run"] == 2


@pytest.mark.parametrize("damage", ["", "{}", '{"written": "words", "run": 1}', "half"])
def test_a_step_is_done_again_where_the_report_is_damaged(work: Work, damage: str) -> None:
    do_step(work.step)
    text = work.step.report.read_text()
    work.step.report.write_text(text[: len(text) // 2] if damage == "half" else damage)
    assert do_step(work.step)["run"] == 2


def test_a_report_of_nothing_is_a_report(tmp_path: Path) -> None:
    """An empty one says as much as any other that the outputs are whole."""
    runs = []

    def write(task: str) -> dict[str, Any]:
        runs.append(task)
        Path(task).write_text("")
        return {}

    step = Step(write, str(tmp_path / "out"), (str(tmp_path / "out"),))
    assert [do_step(step), do_step(step)] == [{}, {}]
    assert len(runs) == 1


@pytest.mark.parametrize("crash", [0, 1, 2])
def test_a_crash_before_the_report_leaves_nothing_that_counts(work: Work, crash: int) -> None:
    """Neither on the first run nor where a step that had been done is done again: its old report is gone by then."""
    for before in (False, True):
        if before:
            Path(work.outputs[0]).unlink()
        runs = work.runs
        work.crash = crash
        with pytest.raises(Crash):
            do_step(work.step)
        assert not work.step.report.exists()
        work.crash = -1
        assert do_step(work.step)["run"] == runs + 2


def test_a_folder_in_place_of_an_output_is_no_output(work: Work) -> None:
    Path(work.outputs[0]).mkdir()
    write_report(work.step.report, {"run": 0})
    with pytest.raises(IsADirectoryError):
        do_step(work.step)


def test_steps_of_many_tasks() -> None:
    steps = each(dict, ["a", "b"], ("1", "2"), ("3", "4"))
    assert [(step.task, list(step.outputs)) for step in steps] == [("a", ["1", "3"]), ("b", ["2", "4"])]
    assert each(dict, [], (), ()) == []
    with pytest.raises(ValueError, match="shorter"):
        each(dict, ["a", "b"], ("1",))


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Config:
    inputs = write_collection(tmp_path_factory.mktemp("steps") / "in", "steps")
    tables = {
        "input": {"paths": [str(inputs)]},
        "rules": RULES,
        "filter": {"sizes": SIZES_ASKED_FOR},
        "split": {"val": 0.25, "test": 0.25, "plies": 4},
        "output": {"games_per_block": 30},
    }
    return make_config(tables, "test")


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two or three ranges and buckets of each kind."""
    monkeypatch.setattr("pipeline.read._RECORDS_AT_ONCE", 10)
    monkeypatch.setattr("pipeline.ordering.RANGE_RECORDS", 40)
    monkeypatch.setattr("pipeline.ordering._ROUTED_RECORDS", 40)
    monkeypatch.setattr("pipeline.ordering._BUCKET_RECORDS", 40)
    monkeypatch.setattr("pipeline.claims._BUCKET_POSITIONS", 500)


Run = Callable[[Sequence[Step], int], list[dict[str, Any]]]


def run_to_the_end(config: Config, folder: Path, run: Run) -> list[Any]:
    """Run all stages between reading and encoding in a folder that may hold work; return all that they give."""
    folder.mkdir(exist_ok=True)
    parts, reports = read_parts(config, folder)
    games = decided_games(parts, reports, config, folder, 0, run)
    layout = check_config(config)[1]
    found = decided_positions(games, config, layout, folder, [], lambda _, steps, memory: run(steps, memory))
    assert min(len(games.tables), games.blocks, len(list(folder.glob("answers-*.json")))) > 1
    tables: list[pa.Table] = [whole_table(path) for path in (*games.tables, *found.games, *found.rows)]
    return [*(table.to_pylist() for table in tables), found.reports, found.seen, found.sampled_out, games.plies]


@pytest.mark.usefixtures("tiny")
def test_a_crash_after_any_step_changes_nothing(config: Config, tmp_path: Path) -> None:
    """Stopped after each step, before its report is written, and begun again: every step is done twice."""
    whole = run_to_the_end(config, tmp_path / "whole", do_all)
    crashed: set[Path] = set()

    def crash_once(steps: Sequence[Step], memory: int) -> list[dict[str, Any]]:
        reports = []
        for step in steps:
            new = not step.report.exists()
            reports.append(do_step(step))
            if new and step.report not in crashed:
                crashed.add(step.report)
                step.report.unlink()
                raise Crash
        return reports

    found = None
    while found is None:
        try:
            found = run_to_the_end(config, tmp_path / "again", crash_once)
        except Crash:
            continue
    assert found == whole
    assert len(crashed) > 20


def damage(path: Path, kind: int) -> None:
    """Flip a bit, cut a file in half, or remove it."""
    data = path.read_bytes()
    middle = len(data) // 2
    if kind == 0:
        path.write_bytes(data[:middle] + bytes([data[middle] ^ 4]) + data[middle + 1 :])
    elif kind == 1:
        path.write_bytes(data[:middle])
    else:
        path.unlink()


@pytest.mark.usefixtures("tiny")
def test_a_damaged_file_is_made_again(config: Config, tmp_path: Path) -> None:
    """Each file of work, damaged after its step was done: the next run stops, the one after it ends as ever."""
    order: list[Step] = []

    def noted(steps: Sequence[Step], memory: int) -> list[dict[str, Any]]:
        order.extend(steps)
        return do_all(steps, memory)

    whole = run_to_the_end(config, tmp_path, noted)
    stopped = 0
    for number, step in enumerate(list(order)):
        path = step.outputs[number % len(step.outputs)]
        damage(Path(path), number % 3)
        for later in order[number + 1 :]:
            later.report.unlink()
        error = None
        try:
            found = run_to_the_end(config, tmp_path, do_all)
        except DamagedWork as caught:
            error = caught
        if error is not None:
            assert (error.path, Path(path).exists()) == (path, False)
            stopped += 1
            found = run_to_the_end(config, tmp_path, do_all)
        assert found == whole
    assert stopped > 10
