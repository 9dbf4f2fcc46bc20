"""What all tests share."""

import signal
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import settings

# The same examples on every run, none kept on disk; a first call that compiles a kernel is not too slow.
settings.register_profile("goplanes", derandomize=True, database=None, deadline=None)
settings.load_profile("goplanes")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the tests marked ``full`` out unless they are asked for."""
    if "full" not in config.getoption("markexpr"):
        left_out = [item for item in items if "full" in item.keywords]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if "full" not in item.keywords]


@pytest.fixture(autouse=True)
def _wrapping_words() -> Iterator[None]:
    """Let uint64 wrap without a warning where kernels run as plain Python (NUMBA_DISABLE_JIT=1)."""
    with np.errstate(over="ignore"):
        yield


@pytest.fixture(autouse=True, scope="session")
def _hear_interrupts() -> None:
    """A shell's background job ignores SIGINT, and so would every program that a test starts and interrupts."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
