"""Work on many things side by side, whose results come in the things' order."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator, Iterable
from queue import SimpleQueue
from typing import Final, Generic, TypeVar

__all__ = ["SMALL_BYTES", "in_order"]

SMALL_BYTES: Final = 128 << 10
"""Files that are smaller on average are read faster by one thread: several mostly wait for Python's lock."""

_Thing = TypeVar("_Thing")
_Result = TypeVar("_Result")

# How many results of one thing wait, beside the one that is being made.
_WAITING: Final = 1
# How many things for each thread are begun or done before their results are asked for.
_THINGS_AHEAD: Final = 2


def in_order(
    things: Iterable[_Thing], results: Callable[[_Thing], Iterable[_Result]], threads: int
) -> Generator[tuple[_Thing, _Result]]:
    """Yields each thing with each of its results, in order, made by so many threads ahead of who asks for them.

    At most `2 * threads` things are begun, of each of which at most two results exist that nobody has asked for. What
    making one raises is raised in its place. Nothing is made before the first is asked for. When the generator is
    closed the threads end after the results that they are at. With one thread nothing is made ahead.

    Args:
        things: what to work on. They are taken by one thread at a time.
        results: makes the results of a thing; called in one of the threads, and gone through there.
        threads: how many, at least 1.
    """
    if threads == 1:
        for thing in things:
            for result in results(thing):
                yield thing, result
        return
    work = _Work(iter(things), results, threads)
    try:
        work.start(threads)
        while (slot := work.next_slot()) is not None:
            while made := work.next_made(slot):
                yield slot.thing, made[0]
            work.finished()
    finally:
        work.stop()


class _Slot(Generic[_Thing, _Result]):
    """A thing that is begun, and what has been made of it."""

    def __init__(self, thing: _Thing) -> None:
        self.thing = thing
        # Each result in a tuple, and in the end an empty one, or what was raised.
        self.made: SimpleQueue[tuple[_Result, ...] | BaseException] = SimpleQueue()
        self.room = threading.Semaphore(_WAITING + 1)


class _Work(Generic[_Thing, _Result]):
    """The threads, and what they have begun. Whoever asks first is always served: each thing begun has its thread."""

    def __init__(self, things: Iterable[_Thing], results: Callable[[_Thing], Iterable[_Result]], threads: int) -> None:
        self._things = iter(things)
        self._results = results
        self._taking = threading.Lock()
        self._open = threading.Semaphore(_THINGS_AHEAD * threads)
        self._begun: SimpleQueue[_Slot[_Thing, _Result] | BaseException | None] = SimpleQueue()
        self._stopped = False
        self._slots: set[_Slot[_Thing, _Result]] = set()
        self._threads: list[threading.Thread] = []
        self._process = os.getpid()

    def start(self, threads: int) -> None:
        """Starts as many of the threads as the system lets it.

        Raises:
            RuntimeError: it lets it start none.
        """
        for _ in range(threads):
            # An interpreter that ends does not wait for them.
            thread = threading.Thread(target=self._run, name="seglake", daemon=True)
            try:
                thread.start()
            except RuntimeError:
                if not self._threads:
                    raise
                return
            self._threads.append(thread)

    def next_slot(self) -> _Slot[_Thing, _Result] | None:
        """Returns the next thing that was begun, waiting for it; None at the end."""
        self._refuse_fork()
        begun = self._begun.get()
        if isinstance(begun, BaseException):
            raise begun
        if begun is None:
            self._begun.put(None)
        return begun

    def next_made(self, slot: _Slot[_Thing, _Result]) -> tuple[_Result, ...]:
        """Returns the next result of a thing in a tuple, waiting for it; an empty one at the end."""
        self._refuse_fork()
        made = slot.made.get()
        if isinstance(made, BaseException):
            raise made
        slot.room.release()
        return made

    def finished(self) -> None:
        """Lets another thing be begun."""
        self._open.release()

    def stop(self) -> None:
        """Ends the threads, and waits for that."""
        self._stopped = True
        if self._process != os.getpid():
            return  # they were left behind, perhaps with these locks
        self._open.release()  # each lets the next one go
        for slot in tuple(self._slots):
            slot.room.release()
        for thread in self._threads:
            # A thread may be the one that the garbage collector runs in.
            if thread is not threading.current_thread():
                thread.join()

    def _refuse_fork(self) -> None:
        if self._process != os.getpid():
            raise RuntimeError("threads that this process was forked without were reading: begin anew here")

    def _run(self) -> None:
        while (slot := self._begin()) is not None:
            try:
                self._make(slot)
            except BaseException as error:  # whatever it is, it is for who asks
                slot.made.put(error)
            else:
                slot.made.put(())
            self._slots.discard(slot)

    def _begin(self) -> _Slot[_Thing, _Result] | None:
        self._open.acquire()
        with self._taking:
            if self._stopped:
                self._open.release()
                return None
            try:
                slot = _Slot[_Thing, _Result](next(self._things))
            except StopIteration:
                self._begun.put(None)
                self._open.release()  # the next thread finds the end as well
                return None
            except BaseException as error:
                # What was begun before it is made to its end.
                self._begun.put(error)
                self._things = iter(())
                self._open.release()
                return None
            self._slots.add(slot)
            self._begun.put(slot)
            return slot

    def _make(self, slot: _Slot[_Thing, _Result]) -> None:
        for result in self._results(slot.thing):
            slot.room.acquire()
            if self._stopped:
                return
            slot.made.put((result,))
