"""A log of commits: an entry for each, put only if there is none of its number. It is the only state.

An entry is the object `_log/<number>.json`. From then on it is certain. A checkpoint has the sum of all entries up to
one; it saves reading them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec

from .place import Place

__all__ = ["LOG", "CommitLog"]

LOG: Final = "_log"
"""The folder of the log, below its place."""
_NAME: Final = re.compile(r"(\d{20})\.(json|checkpoint)")
_VERSION: Final = 1

_Entry = TypeVar("_Entry")
_Entry_contra = TypeVar("_Entry_contra", contravariant=True)


class _Sum(Protocol[_Entry_contra]):
    """The sum of all entries up to the one of its number."""

    number: int

    def add(self, number: int, entry: _Entry_contra) -> None:
        """Adds the next entry."""
        ...


_State = TypeVar("_State", bound=_Sum[Any])


@dataclass(frozen=True)
class CommitLog(Generic[_Entry, _State]):
    """A log at a place.

    Attributes:
        place: the place.
        entry: the type of its entries, a structure of msgspec with a `version`.
        state: the type of their sum, likewise.
        error: what is raised about what is in it.
        advice: what can be done about that.
    """

    place: Place
    entry: type[_Entry]
    state: type[_State]
    error: type[Exception]
    advice: str

    def load(self, most: int | None = None) -> _State:
        """Reads the state, or the one after the entry of a number.

        Raises:
            Exception: `error`: an entry is missing, or is not one.
        """
        hint = self.place.read(f"{LOG}/_last_checkpoint")
        after = int(hint) if hint is not None and hint.isdigit() else 0
        if most is not None and after > most:
            after = max((number for number in self._numbers("checkpoint") if number <= most), default=0)
        state = self.state()
        if after:
            content = self.place.read(f"{LOG}/{after:020}.checkpoint")
            state = self.state() if content is None else self._decoded(f"{after:020}.checkpoint", content, self.state)
        self.add_new(state, most)
        return state

    def add_new(self, state: _State, most: int | None = None) -> list[tuple[int, _Entry]]:
        """Adds to a state the entries that have come since, up to the one of a number; returns them."""
        found: list[tuple[int, _Entry]] = []
        for number in self._numbers("json", f"{state.number:020}.json"):
            if most is not None and number > most:
                break
            if number != state.number + 1:
                raise self.error(
                    f"{self.place.uri(LOG)}: expected the entry {state.number + 1:020}.json, found {number:020}.json "
                    f"after {state.number:020}.json: one was removed. {self.advice}"
                )
            entry = self.read(number)
            state.add(number, entry)
            found.append((number, entry))
        return found

    def forget(self, number: int) -> None:
        """Removes the entries and checkpoints that nobody needs who loads the state of this number or a later one."""
        needed = max((own for own in self._numbers("checkpoint") if own <= number), default=0)
        for kind in ("json", "checkpoint"):
            old = [own for own in self._numbers(kind) if own < needed]
            self.place.remove(f"{LOG}/{own:020}.{kind}" for own in old)

    def _numbers(self, kind: str, after: str = "") -> list[int]:
        matches = (_NAME.fullmatch(name) for name in self.place.names(LOG, after))
        return [int(match[1]) for match in matches if match is not None and match[2] == kind]

    def read(self, number: int) -> _Entry:
        """Reads an entry."""
        entry = self.find(number)
        return self._decoded(f"{number:020}.json", b"", self.entry) if entry is None else entry

    def find(self, number: int) -> _Entry | None:
        """Reads an entry; None if there is none of its number."""
        name = f"{number:020}.json"
        content = self.place.read(f"{LOG}/{name}")
        return None if content is None else self._decoded(name, content, self.entry)

    def put(self, number: int, entry: _Entry) -> bool:
        """Commits an entry of a number; returns False if another one has that number."""
        return self.place.put_new(f"{LOG}/{number:020}.json", msgspec.json.encode(entry))

    def save(self, state: _State) -> None:
        """Writes a checkpoint. It only saves time: nobody fails for it."""
        try:
            self.place.put(f"{LOG}/{state.number:020}.checkpoint", msgspec.json.encode(state))
            self.place.put(f"{LOG}/_last_checkpoint", str(state.number).encode())
        except OSError:
            return

    def _decoded(self, name: str, content: bytes, type: Any) -> Any:
        try:
            found = msgspec.json.decode(content, type=type)
        except msgspec.DecodeError as error:
            raise self.error(
                f"{self.place.uri(f'{LOG}/{name}')}: expected an entry of the log: {error}. {self.advice}"
            ) from None
        if found.version != _VERSION:
            raise self.error(
                f"{self.place.uri(f'{LOG}/{name}')}: expected version {_VERSION} of the log, found {found.version}, "
                "of another version of seglake"
            )
        return found
