"""The locks of stores, in each order in which the requests of several processes can reach the store."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from seglake._files import Entry
from seglake._publish import leases
from seglake._publish.elsewhere import Target
from seglake._publish.leases import Held, Leases, leases_of
from seglake._publish.store import LockTakenError

LOCK = Path("lake/_lock")


class EndedError(BaseException):
    """The rest of this order has been seen before."""


class Files:
    """What a store has, and what `Target.store` is asked for."""

    def __init__(self, at: dict[str, bytes] | None = None) -> None:
        self.at = at or {}
        self.written: dict[str, float] = {}  # when, if not at 0

    def find(self, path: str, name: str) -> Entry | None:
        if path in self.at:
            return Entry(path, True, len(self.at[path]), self.written.get(path, 0.0))
        return Entry(path, False, 0, None) if any(each.startswith(f"{path}/") for each in self.at) else None


class Model(Target):
    """A store that renames onto nothing, as HDFS: each request is one step, and `before` is called before it."""

    def __init__(self, files: Files, before: Callable[[], None] = lambda: None, after: Any = lambda _: None) -> None:
        self.store: Any = files
        self.is_objects = self.has_conditions = False
        self.replaces_in_one_step = False
        self._before, self._after = before, after

    def put(self, content: bytes, path: str, name: str, *, create: bool = False) -> None:
        self._before()
        is_there = path in self.store.at
        if is_there and not create:
            del self.store.at[path]
            self._after("removed to be replaced")
            self._before()
        if path in self.store.at:
            raise FileExistsError(path)
        self.store.at[path] = content
        self._after("put")

    def get(self, path: str, name: str) -> bytes | None:
        self._before()
        content = self.store.at.get(path)
        self._after(content)
        return content

    def remove(self, path: str, name: str) -> None:
        self._before()
        self.store.at.pop(path, None)
        self._after("removed")

    def children(self, path: str, name: str) -> list[Entry]:
        self._before()
        there = [Entry(each, True, 1, 0.0) for each in sorted(self.store.at) if each.startswith(f"{path}/")]
        self._after(tuple(entry.path for entry in there))
        return there

    def _send(self, local: Path, path: str, *, create: bool) -> None: ...
    def _write(self, local: Path, path: str) -> None: ...
    def _copy(self, source: str, target: str) -> None: ...
    def _move(self, source: str, target: str) -> None: ...
    def _remove(self, path: str) -> None: ...
    def _remove_tree(self, path: str) -> None: ...
    def _make_folder(self, path: str) -> None: ...


class Staging(Model):
    """The same, where a file is written under a hidden name first, and then renamed."""

    def put(self, content: bytes, path: str, name: str, *, create: bool = False) -> None:
        folder, _, own = path.rpartition("/")
        hidden = f"{folder}/.{own}.0.tmp"
        self._before()
        self.store.at[hidden] = content
        self._after("written")
        self._before()
        del self.store.at[hidden]  # another that removed it has taken a live writer for dead
        self.store.at[path] = content
        self._after("put")


@dataclass
class Process:
    """A process that takes, renews and gives up one lock; its steps are those of its requests."""

    name: str
    run: Callable[[Process], object]
    order: Order
    turn: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    seen: list[Any] = field(default_factory=list[Any])
    has_ended: bool = False
    owner_then: str | None = None
    is_asked: bool = False
    leases: Leases = field(init=False)
    held: Held = field(init=False)

    def __post_init__(self) -> None:
        target = self.order.target(self.order.files, self._before, self._after)
        self.leases = leases_of(target, str, lambda _: 0.0)
        self.held = Held(self.name, "", 60.0)

    def begin(self) -> None:
        def runs() -> None:
            try:
                self.turn.acquire()
                if not self.order.is_over:
                    self.run(self)
            except EndedError:
                pass
            except BaseException as error:
                self.order.failures.append(error)
            self.has_ended = True
            self.order.turn.release()

        threading.Thread(target=runs, daemon=True).start()

    def take(self) -> bool:
        is_ours = self.leases.take(LOCK, self.held, None)
        if is_ours:
            self.order.owner = self.name
        return is_ours

    def is_ours(self) -> bool:
        """Confirms the lock. It may be confirmed only to the process that was its last taker at the first request."""
        self.is_asked = False
        is_ours = self.leases.is_ours(LOCK, self.held)
        assert not is_ours or self.owner_then == self.name, "two hold the lock"
        return is_ours

    def renew(self) -> bool:
        self.is_asked = False
        try:
            self.leases.renew(LOCK, self.held)
        except LockTakenError:
            return False
        assert self.owner_then == self.name, "a lock was renewed that is another's"
        return True

    def give_up(self) -> None:
        self.order.given_up.add(self.name)
        self.leases.give_up(LOCK, self.held)

    def _before(self) -> None:
        self.order.turn.release()
        self.turn.acquire()
        if self.order.is_over:
            raise EndedError
        if not self.is_asked:
            self.is_asked, self.owner_then = True, self.order.owner

    def _after(self, seen: object) -> None:
        self.seen.append(seen)


class Order:
    """One order of the steps of several processes, of which the one named "holder" has the lock."""

    def __init__(self, target: type[Model] = Model, **runs: Callable[[Process], object]) -> None:
        self.target = target
        self.files = Files()
        self.turn = threading.Semaphore(0)
        self.is_over = False
        self.owner: str | None = None
        self.given_up: set[str] = set()
        self.failures: list[BaseException] = []
        self.processes = [Process(name, run, self) for name, run in runs.items()]
        if "holder" in runs:
            self.owner = "holder"
            assert leases_of(Model(self.files), str, lambda _: 0.0).take(LOCK, self.processes[0].held, None)
        for process in self.processes:
            process.begin()
            process.turn.release()  # up to its first request
            self.turn.acquire()

    def alive(self) -> list[int]:
        return [number for number, process in enumerate(self.processes) if not process.has_ended]

    def step(self, number: int) -> None:
        self.processes[number].turn.release()
        self.turn.acquire()

    def end(self) -> None:
        self.is_over = True
        for number in self.alive():
            self.step(number)

    def state(self) -> object:
        """What decides what comes: the store, and what each process was told."""
        told = tuple((tuple(process.seen), process.has_ended) for process in self.processes)
        return (tuple(sorted(self.files.at.items())), told, self.owner, frozenset(self.given_up))


def orders(make: Callable[[], Order]) -> Iterator[Order]:
    """Yields the state after each step of each order, and does not go on from one that has been before."""
    seen: set[object] = set()
    waiting: list[list[int]] = [[]]
    while waiting:
        prefix = waiting.pop()
        order = make()
        for number in prefix:
            order.step(number)
        while order.alive():
            first, *others = order.alive()
            waiting += [[*prefix, other] for other in others]
            order.step(first)
            prefix.append(first)
            assert not order.failures, (prefix, order.failures, order.processes)
            state = order.state()
            if state in seen:
                break
            seen.add(state)
            yield order
        order.end()


def taken_later(files: Files) -> None:
    """Another process comes when all others are dead: it gets the lock, and leaves nothing."""
    own, held = leases_of(Model(Files(dict(files.at))), str, lambda _: 0.0), Held("last", "", 60.0)
    assert own.take(LOCK, held, None)
    assert own.is_ours(LOCK, held)
    own.renew(LOCK, held)
    assert own.is_ours(LOCK, held)
    own.give_up(LOCK, held)
    assert own.look(LOCK) == {}


@pytest.fixture(autouse=True)
def one_try(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that comes at the same moment as another gives up at once: each try is like the first."""
    monkeypatch.setattr(leases, "_TRIES", 1)
    monkeypatch.setattr(time, "sleep", lambda _: None)


@pytest.fixture
def expired(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each lock that is found counts as that of a dead process, also if it was written just now."""
    monkeypatch.setattr(leases, "_lease_of", lambda _: -1.0)


def holds(process: Process) -> None:
    """Renews its lock twice, and gives it up."""
    assert process.renew()
    assert process.is_ours()
    assert process.renew()
    assert process.is_ours()
    process.give_up()


def loses(process: Process) -> None:
    """Renews its lock until it is another's."""
    if process.renew() and process.renew():
        process.is_ours()
    process.give_up()


def takes(process: Process) -> None:
    """Takes the lock if it can, and holds it for a while."""
    if process.take():
        process.is_ours()
        process.give_up()


def test_nobody_takes_a_lock_while_it_is_renewed() -> None:
    def takes_what_is_free(process: Process) -> None:
        if process.take():
            assert "holder" in process.order.given_up

    count = sum(1 for _ in orders(lambda: Order(holder=holds, other=takes_what_is_free)))
    assert count > 50


def test_of_two_takers_one_gets_a_free_lock() -> None:
    def keeps(process: Process) -> None:
        if process.take():
            assert not process.order.given_up
            process.order.given_up.add(process.name)
            assert process.renew()
            assert process.is_ours()

    count = sum(1 for _ in orders(lambda: Order(one=keeps, two=keeps)))
    assert count > 50


@pytest.mark.usefixtures("expired")
def test_only_the_last_taker_has_the_lock() -> None:
    """Also if each takes all others for dead at any moment, and stands still for any time."""
    count = 0
    for order in orders(lambda: Order(holder=loses, other=takes)):
        count += 1
        taken_later(order.files)
    assert count > 500


@pytest.mark.usefixtures("expired")
def test_only_the_last_of_three_has_the_lock() -> None:
    """In orders that are drawn at random: there are too many to try all."""
    drawn, count = random.Random(7), 0
    for _ in range(400):
        order = Order(holder=loses, one=takes, two=takes)
        while order.alive():
            order.step(drawn.choice(order.alive()))
            assert not order.failures
            count += 1
            if drawn.random() < 0.1:
                taken_later(order.files)
        taken_later(order.files)
    assert count > 400 * 12


LATER = 86_401.0  # a second after the time from which on a file counts as that of a dead process


def taken_at(files: Files, now: float) -> Files:
    """Another process takes the lock at a time, and gives it up; returns what is left."""
    left = Files(dict(files.at))
    left.written = dict(files.written)
    own, held = leases_of(Staging(left), str, lambda _: now), Held("last", "", 60.0)
    assert own.take(LOCK, held, None)
    own.give_up(LOCK, held)
    return left


@pytest.mark.usefixtures("expired")
def test_what_dead_takers_were_writing_is_removed_once_it_is_old() -> None:
    """Wherever they die. As long as one of them may be alive, it is not."""
    kept = 0
    for order in orders(lambda: Order(Staging, one=takes, two=takes)):
        hidden = {file for file in order.files.at if "/." in file}
        assert hidden <= set(taken_at(order.files, LATER - 2).at) | {file for file in hidden if "/.last" in file}
        kept += bool(hidden)
        assert taken_at(order.files, LATER).at == {}
    assert kept > 50


@pytest.mark.usefixtures("expired")
def test_only_what_is_old_is_removed() -> None:
    files = Files({f"{LOCK}/.old-1.0.tmp": b"", f"{LOCK}/.new-1.0.tmp": b""})
    files.written[f"{LOCK}/.new-1.0.tmp"] = 1.5
    assert set(taken_at(files, LATER).at) == {f"{LOCK}/.new-1.0.tmp"}
    own, held = leases_of(Staging(files), str, lambda _: None), Held("other", "", 60.0)  # a store that has no clock
    assert own.take(LOCK, held, None)
    assert len(files.at) == 3
