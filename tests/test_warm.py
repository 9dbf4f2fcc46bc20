"""Kernels are compiled beforehand, and it is said where that takes long."""

import errno
from pathlib import Path

import pytest

from pipeline.progress import Progress
from pipeline.schemes import SCHEMES
from pipeline.warm import warm_up


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what is said; the cache looks empty, while the kernels compile in no time."""
    lines: list[str] = []
    monkeypatch.setattr(Progress, "line", lambda self, text: lines.append(text))
    monkeypatch.setattr("pipeline.warm.cache_folder", lambda: tmp_path)
    for name in ("compile_replay", "compile_scheme", "compile_turns"):
        monkeypatch.setattr(f"pipeline.warm.{name}", lambda *arguments: None)
    return lines


def test_the_first_time_of_all_is_told_beforehand(said: list[str]) -> None:
    warm_up(Progress())
    assert said == ["compiling kernels, once for this version (10 to 30 seconds)"]


def test_another_scheme_or_augmentation_is_told_only_where_it_took_long(
    said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    warm_up(Progress())
    del said[:]
    warm_up(Progress(), SCHEMES["board"], turns=True)
    assert said == []
    monkeypatch.setattr("pipeline.warm._LONG", 0.0)
    warm_up(Progress(), SCHEMES["board"], turns=True)  # loaded, not compiled, however long it takes
    assert said == []
    warm_up(Progress(), SCHEMES["agz17"], turns=True)
    assert len(said) == 1
    assert said[0].startswith("kernels compiled in ")


def test_what_failed_is_compiled_again(said: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pipeline.warm.compile_replay", fail)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            warm_up(Progress())
    assert len(said) == 2


def test_the_seconds_are_those_of_a_stage(said: list[str]) -> None:
    progress = Progress()
    warm_up(progress)
    assert list(progress.seconds) == ["compile"]


def test_a_cache_that_cannot_be_written_is_named(
    said: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("pipeline.warm.compile_replay", fail)
    with pytest.raises(OSError, match=r"NUMBA_CACHE_DIR.*No space left on device") as caught:
        warm_up(Progress())
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(tmp_path))
