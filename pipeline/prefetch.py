"""Items of an iterator made ahead by a thread: kernels, readers and numpy leave the interpreter to others meanwhile."""

import threading
from collections.abc import Generator
from queue import SimpleQueue
from typing import Generic, NamedTuple, TypeVar

Item = TypeVar("Item")


class _Made(NamedTuple, Generic[Item]):
    """What the thread has made: an item, or the end (``items`` empty), or an error in its place."""

    items: tuple[Item, ...]
    error: BaseException | None = None


def prefetched(items: Generator[Item, None, None], ahead: int) -> Generator[Item, None, None]:
    """Yield ``items``, up to ``ahead`` of them made before they are asked for (0: ``items`` itself).

    The thread starts with the first item and ends when this generator is closed or at its end; an error of ``items`` is
    raised at its place.
    """
    return _ahead(items, ahead) if ahead else items


def _ahead(items: Generator[Item, None, None], ahead: int) -> Generator[Item, None, None]:
    made: SimpleQueue[_Made[Item]] = SimpleQueue()
    room = threading.Semaphore(ahead)
    given_up = threading.Event()

    def make() -> None:
        try:
            while True:
                room.acquire()
                if given_up.is_set():
                    return
                try:
                    made.put(_Made((next(items),)))
                except StopIteration:
                    made.put(_Made(()))
                    return
        except BaseException as error:  # noqa: BLE001 (raised where the item would have come)
            made.put(_Made((), error))
        finally:
            items.close()

    thread = threading.Thread(target=make, name="prefetch", daemon=True)
    thread.start()
    try:
        while True:
            found = made.get()
            if found.error is not None:
                raise found.error
            if not found.items:
                return
            room.release()
            yield found.items[0]
    finally:
        given_up.set()
        room.release()
        thread.join()
