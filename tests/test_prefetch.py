"""Items made ahead by a thread: the same items, errors at their place, no thread left over."""

import threading
import time
from collections.abc import Generator

import pytest

from pipeline.prefetch import prefetched


def threads() -> int:
    return sum(thread.name == "prefetch" for thread in threading.enumerate())


@pytest.mark.parametrize("ahead", [0, 1, 2, 50])
def test_the_same_items_in_their_order(ahead: int) -> None:
    for items in (range(20), [], [None, None]):
        assert list(prefetched((item for item in items), ahead)) == list(items)
    assert threads() == 0


@pytest.mark.parametrize("ahead", [1, 3])
def test_no_more_than_asked_for_is_made_ahead(ahead: int) -> None:
    made: list[int] = []

    def items() -> Generator[int, None, None]:
        for number in range(10):
            made.append(number)
            yield number

    taken = prefetched(items(), ahead)
    assert made == []  # nothing happens before the first is asked for
    assert next(taken) == 0
    deadline = time.monotonic() + 20
    while len(made) < ahead + 1 and time.monotonic() < deadline:
        time.sleep(0.001)
    time.sleep(0.05)
    assert len(made) == ahead + 1  # one was taken
    assert list(taken) == list(range(1, 10))


def test_an_error_comes_at_its_place() -> None:
    def items() -> Generator[int, None, None]:
        yield 1
        raise ValueError("the second")

    taken = prefetched(items(), 5)
    assert next(taken) == 1
    with pytest.raises(ValueError, match="the second"):
        next(taken)
    assert threads() == 0


def test_an_iteration_that_is_given_up_ends_the_thread() -> None:
    closed = threading.Event()

    def items() -> Generator[int, None, None]:
        try:
            yield from range(1000)
        finally:
            closed.set()

    taken = prefetched(items(), 1)
    next(taken)
    assert threads() == 1
    taken.close()
    assert closed.is_set()
    assert threads() == 0
