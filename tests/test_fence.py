"""Marks of runs on a cluster: who holds them, who waits for them, and what a worker says that sees none."""

import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

from pipeline.fence import UnseenFolder, held, leave_mark, remove_mark, wait_for_tasks
from pipeline.workfolder import FolderBusy


def hold(mark: str, holding: Event, enough: Event) -> None:
    """Hold a mark, as a task on another machine does."""
    with held(mark):
        holding.set()
        enough.wait(60)


@contextmanager
def held_elsewhere(mark: Path) -> Iterator[Event]:
    """Hold a mark in another process until the event is set."""
    context = multiprocessing.get_context("spawn")
    holding, enough = context.Event(), context.Event()
    process = context.Process(target=hold, args=(str(mark), holding, enough))
    process.start()
    try:
        assert holding.wait(60)
        yield enough
    finally:
        enough.set()
        process.join()


def test_a_mark_that_nobody_holds_is_removed(tmp_path: Path) -> None:
    first, second = leave_mark(tmp_path), leave_mark(tmp_path)
    assert first != second
    said: list[str] = []
    wait_for_tasks(tmp_path, said.append)
    assert (list(tmp_path.iterdir()), said) == ([], [])
    assert remove_mark(first)  # is gone already


def test_tasks_of_an_earlier_run_are_waited_for(tmp_path: Path) -> None:
    mark = leave_mark(tmp_path)
    with held_elsewhere(mark) as enough:
        assert not remove_mark(mark)
        with pytest.raises(FolderBusy, match="tasks of an earlier run are still at work on a cluster"):
            wait_for_tasks(mark.parent, str, patience=0.3)
        assert mark.exists()
        said: list[str] = []

        def say(text: str) -> None:
            said.append(text)
            enough.set()

        wait_for_tasks(mark.parent, say, patience=60)
    assert not mark.exists()
    assert len(said) == 1


def test_several_tasks_hold_one_mark(tmp_path: Path) -> None:
    mark = leave_mark(tmp_path)
    with held(str(mark)), held(str(mark)):
        assert not remove_mark(mark)
    assert remove_mark(mark)


def test_a_task_without_its_mark_does_not_begin(tmp_path: Path) -> None:
    mark = leave_mark(tmp_path)
    assert remove_mark(mark)
    with (
        pytest.raises(UnseenFolder, match=f"does not see {tmp_path}: all workers need the same file system"),
        held(str(mark)),
    ):
        raise AssertionError("the task ran")


def test_a_file_that_a_task_misses_is_no_missing_mark(tmp_path: Path) -> None:
    mark = leave_mark(tmp_path)
    with pytest.raises(FileNotFoundError) as missing, held(str(mark)):
        (tmp_path / "none").read_bytes()
    assert not isinstance(missing.value, UnseenFolder)
    assert missing.value.filename == str(tmp_path / "none")
