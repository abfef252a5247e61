"""The locks of stores, in each order in which the requests of several processes can reach the store."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from seglake._files import Entry
from seglake._publish import leases
from seglake._publish.elsewhere import Target
from seglake._publish.leases import Held, Leases, leases_of
from seglake._publish.store import LockTakenError

LOCK = Path("lake/_lock")


class SuspendedError(BaseException):
    """A process stops in front of its next request."""


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
    """A store that renames onto nothing, as HDFS: each request is one step.

    Args:
        files: what it has.
        request: makes one request, and returns what it returns.
    """

    def __init__(self, files: Files, request: Callable[[Callable[[], Any]], Any] = lambda make: make()) -> None:
        self.store: Any = files
        self.is_objects = self.has_conditions = False
        self.replaces_in_one_step = False
        self._at = files.at
        self._request = request

    def put(self, content: bytes, path: str, name: str, *, create: bool = False) -> None:
        def writes(*, replaces: bool) -> str:
            if path not in self._at:
                self._at[path] = content
                return "put"
            if not replaces:
                raise FileExistsError(path)
            del self._at[path]
            return "removed to be replaced"

        if self._request(lambda: writes(replaces=not create)) != "put":
            self._request(lambda: writes(replaces=False))

    def get(self, path: str, name: str) -> bytes | None:
        return self._request(lambda: self._at.get(path))

    def remove(self, path: str, name: str) -> None:
        self._request(lambda: self._at.pop(path, None) and None)

    def children(self, path: str, name: str) -> list[Entry]:
        there = self._request(lambda: tuple(each for each in sorted(self._at) if each.startswith(f"{path}/")))
        return [Entry(each, True, 1, 0.0) for each in there]

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

        def renames() -> None:
            del self._at[hidden]  # another that removed it has taken a live writer for dead
            self._at[path] = content

        self._request(lambda: self._at.__setitem__(hidden, content))
        self._request(renames)


class Told(NamedTuple):
    """What a process was told: what a request returned or raised, and who had the lock then."""

    found: Any
    owner: str | None
    is_step: bool


@dataclass
class Process:
    """A process that takes, renews and gives up one lock; its steps are those of its requests.

    It runs from its start at each step, is told again what it was told before, makes one more request, and stops in
    front of the next. So it can stand still at any place without a thread of its own.
    """

    name: str
    run: Callable[[Process], object]
    order: Order
    held: Held
    told: list[Told] = field(default_factory=list[Told])
    has_ended: bool = False
    owner_then: str | None = None
    is_asked: bool = False
    leases: Leases = field(init=False)
    _next: int = 0
    _known: int = 0

    def step(self) -> None:
        """Makes its next request."""
        kept, self._next, self._known = self.held, 0, len(self.told)
        self.held = replace(kept)
        target = self.order.target(self.order.files, self._request)
        target.store = self
        self.leases = leases_of(target, str, lambda _: 0.0)
        try:
            self.run(self)
            self.has_ended = True
        except SuspendedError:
            pass
        self.held = kept

    @property
    def is_new(self) -> bool:
        """Whether this has not been at an earlier step."""
        return self._next > self._known

    def take(self) -> bool:
        is_ours = self.leases.take(LOCK, self.held, None)
        if is_ours and self.is_new:
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

    def find(self, path: str, name: str) -> Entry | None:
        return self._tell(lambda: self.order.files.find(path, name), is_step=False)

    def _request(self, make: Callable[[], Any]) -> Any:
        found = self._tell(make, is_step=True)
        if not self.is_asked:
            self.is_asked, self.owner_then = True, self.told[self._next - 1].owner
        if isinstance(found, OSError):
            raise found
        return found

    def _tell(self, make: Callable[[], Any], *, is_step: bool) -> Any:
        if self._next == len(self.told):
            if is_step and any(each.is_step for each in self.told[self._known :]):
                raise SuspendedError
            owner = self.order.owner
            try:
                found = make()
            except FileExistsError as error:
                found = error
            self.told.append(Told(found, owner, is_step))
        self._next += 1
        return self.told[self._next - 1].found


class Order:
    """One order of the steps of several processes, of which the one named "holder" has the lock."""

    def __init__(self, target: type[Model] = Model, **runs: Callable[[Process], object]) -> None:
        self.target = target
        self.files = Files()
        self.owner: str | None = None
        self.given_up: set[str] = set()
        self.processes = [Process(name, run, self, Held(name, "", 60.0)) for name, run in runs.items()]
        if "holder" in runs:
            self.owner = "holder"
            assert leases_of(Model(self.files), str, lambda _: 0.0).take(LOCK, self.processes[0].held, None)

    def alive(self) -> list[int]:
        return [number for number, process in enumerate(self.processes) if not process.has_ended]

    def step(self, number: int) -> None:
        self.processes[number].step()

    def copy(self) -> Order:
        """Returns another one that goes on from here."""
        other = Order(self.target)
        other.files, other.owner, other.given_up = Files(dict(self.files.at)), self.owner, set(self.given_up)
        for each in self.processes:
            other.processes.append(
                Process(each.name, each.run, other, replace(each.held), list(each.told), each.has_ended)
            )
        return other

    def state(self) -> object:
        """What decides what comes: the store, and what each process was told."""
        told = tuple(
            (tuple(repr(each.found) for each in process.told), process.has_ended) for process in self.processes
        )
        return (tuple(sorted(self.files.at.items())), told, self.owner, frozenset(self.given_up))


def orders(make: Callable[[], Order]) -> Iterator[Order]:
    """Yields the state after each step of each order, and does not go on from one that has been before."""
    seen: set[object] = set()
    waiting = [make()]
    while waiting:
        before = waiting.pop()
        for number in before.alive():
            order = before.copy()
            order.step(number)
            state = order.state()
            if state not in seen:
                seen.add(state)
                waiting.append(order)
                yield order


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
            assert not process.is_new or not process.order.given_up
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
