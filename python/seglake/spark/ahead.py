"""Decoding ahead: the next batches are made while the engine takes the last one."""

import threading
from collections.abc import Generator
from contextlib import closing
from queue import SimpleQueue
from typing import Final, Generic, TypeVar

__all__ = ["read_ahead"]

_Item = TypeVar("_Item")

# One that waits, beside the one that is being made. With more, whoever is slower is as slow.
_WAITING: Final = 1


def read_ahead(items: Generator[_Item]) -> Generator[_Item]:
    """Yields `items` in their order, made in a thread of its own, at most two ahead of the one that was asked for.

    A worker otherwise decodes and sends in turns, and the JVM waits while it decodes. Both leave Python's lock to
    others. Nothing is made before the first item is asked for. What `items` raises is raised behind the items in front
    of it. When the generator that is returned is closed, so is `items`, in its thread, and the thread ends.
    """
    ahead = _Ahead(items)
    try:
        yield from ahead.made()
    finally:
        ahead.stop()


class _Ahead(Generic[_Item]):
    """The thread, and what it has made."""

    def __init__(self, items: Generator[_Item]) -> None:
        self._items = items
        # Each item in a tuple, and in the end an empty one.
        self._made: SimpleQueue[tuple[_Item, ...] | BaseException] = SimpleQueue()
        self._room = threading.Semaphore(_WAITING)
        self._stopped = False
        # A worker that is told to end does not wait for it.
        self._thread = threading.Thread(target=self._run, name="seglake read-ahead", daemon=True)
        self._thread.start()

    def made(self) -> Generator[_Item]:
        """Yields what has been made, waiting for it."""
        while made := self._made.get():
            if isinstance(made, BaseException):
                raise made
            self._room.release()
            yield made[0]

    def stop(self) -> None:
        """Ends the thread, behind the item that it is at, and waits for that."""
        self._stopped = True
        self._room.release()
        self._thread.join()

    def _run(self) -> None:
        try:
            with closing(self._items) as items:
                for item in items:
                    self._made.put((item,))
                    self._room.acquire()
                    if self._stopped:
                        break
        except BaseException as error:  # whatever it is, it is for who reads
            self._made.put(error)
        else:
            self._made.put(())
