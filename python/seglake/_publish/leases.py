"""Locks in stores elsewhere. None ends with its process, so its holder renews it.

Any process may take a lock that was not renewed for ten minutes. A process that finds a lock asks the store how old it
is, by the store's clock alone.
"""

from __future__ import annotations

import errno
import json
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from .elsewhere import Target
from .store import LockTakenError, json_object

__all__ = ["GIVEN_UP", "LEASE_SECONDS", "Held", "Leases", "leases_of", "token_of"]

# The holder of a lock counts as dead if it has not renewed the lock for so long.
LEASE_SECONDS: Final = 600.0
GIVEN_UP: Final[set[str]] = set()
"""The tokens of locks that this process gave up, but could not remove, as the store could not be reached.

This process does not wait for them.
"""
# How often a process tries again that began at the same moment as another, so that neither has the lock.
_TRIES: Final = 5
_PAUSE_SECONDS: Final = 0.2
# For how long a file of a lock may be one that is being written, and was not named yet. Its writer may stand still.
_UNNAMED_SECONDS: Final = 86_400.0

Found = Mapping[Path, bytes]
"""The files that a lock consists of at one moment, and what they say; nothing where it is free."""


@dataclass
class Held:
    """A lock that this process holds, or is about to take.

    Attributes:
        token: tells it from all others.
        renewed: when it was renewed, by the clock of this process.
        renewals: how often.
        file: the file that stands for it, where it has one of its own.
    """

    token: str
    renewed: float = 0.0
    renewals: int = 0
    file: Path = field(default_factory=Path)

    def content(self, **more: Any) -> bytes:
        """Returns what its file says. The text differs after each renewal: so others see that it was renewed."""
        own = {"token": self.token, "renewals": self.renewals}
        return json.dumps(own | more).encode()


class Leases(ABC):
    """How a store keeps locks.

    Args:
        target: the store.
        name: what messages call a path.
        now: tells the time by the clock of the store, in seconds since 1970, as it gives it to a file beside a path;
            None where it does not say.
    """

    def __init__(self, target: Target, name: Callable[[Path], str], now: Callable[[Path], float | None]) -> None:
        self._target = target
        self._name = name
        self._now = now

    def take(self, path: Path, held: Held) -> bool:
        """Takes a lock, unless somebody else holds it who has renewed it lately.

        Raises:
            OSError: the store cannot be reached, or refuses.
        """
        for _ in range(_TRIES):
            there = self._found_free(path)
            if there is None:
                return False
            is_ours = self._enter(path, held, there)
            if is_ours is not None:
                return is_ours
            time.sleep(random.random() * _PAUSE_SECONDS)
        return False

    @abstractmethod
    def look(self, path: Path) -> Found:
        """Returns what is there of a lock."""

    @abstractmethod
    def renew(self, path: Path, held: Held) -> None:
        """Renews a lock.

        Raises:
            LockTakenError: another has it.
            OSError: the store cannot be reached, or refuses. It may be renewed all the same.
        """

    @abstractmethod
    def is_ours(self, path: Path, held: Held) -> bool:
        """Tells whether a lock is still its holder's."""

    @abstractmethod
    def give_up(self, path: Path, held: Held) -> None:
        """Removes a lock, if it is still its holder's."""

    @abstractmethod
    def _enter(self, path: Path, held: Held, there: Found) -> bool | None:
        """Takes a lock that was found free, or left over.

        Returns:
            Whether it is ours now; None if it has to be looked at again.
        """

    def taken(self, path: Path) -> LockTakenError:
        """Makes the error for a lock that is another's by now."""
        return LockTakenError(
            errno.ESTALE, "expected the lock of this process, another has taken it for dead", self._name(path)
        )

    def _found_free(self, path: Path) -> Found | None:
        """Returns what is there of a lock that nobody holds; None if somebody does who is alive."""
        there = self.look(path)
        if any(map(_is_held, there.values())):
            now = self._now(path)
            if any(self._age_of(file, now) <= LEASE_SECONDS for file in there):
                return None
        return there

    def _age_of(self, file: Path, now: float | None) -> float:
        """Returns for how many seconds at least a file was as it is, by the clock of the store."""
        then = self._target.store.find(file.as_posix(), self._name(file))
        if now is None or then is None or then.modified is None:
            return 0.0
        # A clock that was set back since says that the file is of the future.
        return max(0.0, now - then.modified)

    def _get(self, file: Path) -> bytes | None:
        return self._target.get(file.as_posix(), self._name(file))

    def _put(self, file: Path, content: bytes, *, create: bool = False) -> None:
        self._target.put(content, file.as_posix(), self._name(file), create=create)

    def _remove(self, file: Path) -> None:
        self._target.remove(file.as_posix(), self._name(file))


class _ObjectLeases(Leases):
    """A lock is an object. Its holder replaces it in one step: the old one or the new one is there at any moment."""

    def look(self, path: Path) -> Found:
        content = self._get(path)
        return {} if content is None else {path: content}

    def renew(self, path: Path, held: Held) -> None:
        held.renewals += 1
        try:
            self._replace(path, held.content(), lambda there: token_of(there) == held.token)
        except OSError:
            # Done, and the answer lost; or taken by another, which is worth its own words.
            if self._get(path) != held.content():
                if not self.is_ours(path, held):
                    raise self.taken(path) from None
                raise

    def is_ours(self, path: Path, held: Held) -> bool:
        return token_of(self._get(path)) == held.token

    def give_up(self, path: Path, held: Held) -> None:
        if self.is_ours(path, held):
            self._remove(path)

    def _enter(self, path: Path, held: Held, there: Found) -> bool | None:
        content = held.content()
        try:
            if not there:
                self._put(path, content, create=True)
            else:
                self._replace(path, content, lambda found: found == there[path])
        except OSError:
            now = self.look(path)
            if not now and there:
                return None  # its holder gave it up just then
            # Another may have been first, or have put its own in the place of this one.
            if not now or now == there:
                raise
        return self._get(path) == content

    def _replace(self, path: Path, content: bytes, expected: Callable[[bytes], bool]) -> None:
        self._target.replace_if(content, path.as_posix(), self._name(path), expected)


class _FileLeases(Leases):
    """A lock is a folder that is never empty, for stores that cannot replace a file in one step, such as HDFS.

    Each file in it has a name that no other gets, and appears when it is complete. It says which files it takes the
    place of: those that its writer found left over, or its own one before. Then its writer lists the folder. If any
    other file is there, somebody else came in between, and the writer goes back. Of two that come at the same moment at
    least one sees the other. A holder renews its lock by the next file, and removes the one before after that.
    """

    def look(self, path: Path) -> Found:
        while True:
            found = {file: self._get(file) for file in self._files(path)}
            there = {file: content for file, content in found.items() if content is not None}
            if len(there) == len(found):  # else one was renewed in between
                return there

    def renew(self, path: Path, held: Held) -> None:
        before = held.file
        try:
            renewed = self._write(path, held, [before])
        except OSError:
            if not self.is_ours(path, held):
                raise self.taken(path) from None
            raise
        if not self._are_ours(path, held, {before, renewed}):
            self._remove(renewed)
            raise self.taken(path)
        held.file = renewed
        with suppress(OSError):  # the next renewal tries again
            self._remove_of({held.token}, path, but=renewed)

    def is_ours(self, path: Path, held: Held) -> bool:
        return self._are_ours(path, held, {held.file})

    def give_up(self, path: Path, held: Held) -> None:
        self._remove_of({held.token}, path)

    def _enter(self, path: Path, held: Held, there: Found) -> bool | None:
        if path in there:
            self._remove(path)
        own = self._write(path, held, there)
        now = self._files(path)
        if own not in now or not now <= {own, *there}:
            self._remove(own)
            return None
        self._remove_of({_owner_of(file) for file in there}, path)
        held.file = own
        with suppress(OSError):  # the next one that takes it tries again
            self._remove_unnamed(path)
        if self.is_ours(path, held):
            return True
        self._remove_of({held.token}, path)  # this process stood still for so long that another took it
        return None

    def _are_ours(self, path: Path, held: Held, own: set[Path]) -> bool:
        """Tells whether files of this process are there, and no other takes their place."""
        names = {file.name for file in own}
        while True:
            now = self._files(path)
            if not own <= now:
                return False
            others = [self._get(file) for file in now if _owner_of(file) != held.token]
            there = [content for content in others if content is not None]
            if len(there) == len(others):
                return not any(names & _replaced_by(content) for content in there)

    def _files(self, path: Path) -> set[Path]:
        return {file for file in self._all_files(path) if not file.name.startswith(".")}

    def _all_files(self, path: Path) -> list[Path]:
        """Returns the files of a lock, also those that are being written."""
        listed: list[Path] = []
        try:
            listed = [
                path / Path(entry.path).name for entry in self._target.children(path.as_posix(), self._name(path))
            ]
        except OSError:
            if not self._is_file(path):
                raise
        # Where the same place was a mounted folder, its lock is a file.
        return listed or ([path] if self._is_file(path) else [])

    def _is_file(self, path: Path) -> bool:
        found = self._target.store.find(path.as_posix(), self._name(path))
        return found is not None and found.is_file

    def _write(self, path: Path, held: Held, replaced: Iterable[Path]) -> Path:
        held.renewals += 1
        file = path / f"{held.token}-{held.renewals}"
        self._put(file, held.content(replaces=sorted(each.name for each in replaced)))
        return file

    def _remove_unnamed(self, path: Path) -> None:
        """Removes what processes left that died while they wrote a file of the lock."""
        unnamed = [file for file in self._all_files(path) if file.name.startswith(".")]
        now = self._now(path) if unnamed else None
        for file in unnamed:
            if self._age_of(file, now) > _UNNAMED_SECONDS:
                self._remove(file)

    def _remove_of(self, tokens: Collection[str], path: Path, but: Path | None = None) -> None:
        for file in self._all_files(path):
            if _owner_of(file) in tokens and file != but:
                self._remove(file)


def leases_of(target: Target, name: Callable[[Path], str], now: Callable[[Path], float | None]) -> Leases:
    """Returns how a store keeps locks; the arguments are those of `Leases`."""
    return (_ObjectLeases if target.is_objects else _FileLeases)(target, name, now)


def _owner_of(file: Path) -> str:
    """Returns the token in the name of a file of a lock, also of one that is being written."""
    return file.name.removeprefix(".").partition("-")[0]


def _replaced_by(content: bytes) -> set[str]:
    """Returns the names of the files that the writer of a file of a lock takes the place of."""
    try:
        return set(map(str, json_object(content)["replaces"]))
    except (ValueError, LookupError, TypeError):
        return set()


def token_of(content: bytes | None) -> str | None:
    """Returns what tells a lock from all others; None where there is none."""
    try:
        return None if content is None else str(json_object(content)["token"])
    except (ValueError, KeyError):
        return None


def _is_held(content: bytes) -> bool:
    """Tells whether a lock may be held: not one that this process gave up, nor what no holder has written."""
    token = token_of(content)
    return token is not None and token not in GIVEN_UP
