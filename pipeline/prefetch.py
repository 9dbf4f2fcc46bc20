"""Items of an iterator made ahead by a thread: kernels, readers and numpy leave the interpreter to others meanwhile."""

import queue
import threading
from collections.abc import Iterator
from typing import TypeVar

Item = TypeVar("Item")


def prefetched(items: Iterator[Item], ahead: int) -> Iterator[Item]:
    """Yield ``items``, up to ``ahead`` of them made before they are asked for (0: ``items`` itself).

    The thread starts with the first item and ends with the iteration, also one that is given up; an error of ``items``
    is raised at its place.
    """
    return _ahead(items, ahead) if ahead else items


def _ahead(items: Iterator[Item], ahead: int) -> Iterator[Item]:
    made: queue.Queue[tuple[Item | None, BaseException | None, bool]] = queue.Queue(ahead)
    given_up = threading.Event()

    def put(entry: tuple[Item | None, BaseException | None, bool]) -> bool:
        while not given_up.is_set():
            try:
                made.put(entry, timeout=0.1)
            except queue.Full:
                continue
            return True
        return False

    def make() -> None:
        try:
            for item in items:
                if not put((item, None, False)):
                    return
            put((None, None, True))
        except BaseException as error:  # noqa: BLE001 (raised where the item would have come)
            put((None, error, True))
        finally:
            if hasattr(items, "close"):
                items.close()

    thread = threading.Thread(target=make, name="prefetch", daemon=True)
    thread.start()
    try:
        while True:
            item, error, last = made.get()
            if error is not None:
                raise error
            if last:
                return
            yield item  # type: ignore[misc]
    finally:
        given_up.set()
        thread.join()
