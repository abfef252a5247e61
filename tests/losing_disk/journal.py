"""What was done to a file system, and what of it a loss of power may leave.

Certain is the content of a file up to its last sync, and the names in a folder up to the last sync of that folder; a
name that was moved belongs to the folder that it moved to. Anything else may be lost: each 512 bytes of a write, each
change of a length, each name. A rename is one step. If a new folder is lost, so are its names that are not certain.
Closing syncs nothing.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

SECTOR_BYTES = 512
ROOT = 1
TOLD = ".told"
"""What is written to this file in the root is what the writer was promised by then. It is no file of the disk."""

State = dict[str, bytes | None]
"""Paths below the root, with the content of files; None for a folder."""


class Write(NamedTuple):
    """Bytes are written to a file."""

    node: int
    offset: int
    content: bytes


class Length(NamedTuple):
    """A file is cut off, or extended by zeros."""

    node: int
    length: int


class Names(NamedTuple):
    """Names are removed and set in one step: each a folder, a name, and the file or folder of that name."""

    folder: int
    removed: tuple[tuple[int, str, int], ...]
    named: tuple[tuple[int, str, int], ...]


class Sync(NamedTuple):
    """A file is synced, or a folder, whose path ends in a slash."""

    node: int
    path: str


class Told(NamedTuple):
    """The writer was promised something."""

    content: bytes


Event = Write | Length | Names | Sync | Told


@dataclass
class Journal:
    """All that was done, in order. The first `begun` events made what was there at the beginning, which is certain."""

    folders: set[int] = field(default_factory=lambda: {ROOT})
    events: list[Event] = field(default_factory=list[Event])
    begun: int = 0
    before: bytes = b""
    """What was told before the first of them, on a disk that lost power since."""

    def told(self, moment: int) -> bytes:
        """What the writer had told by then."""
        return self.before + b"".join(event.content for event in self.events[:moment] if isinstance(event, Told))

    def moment(self, choice: random.Random) -> int:
        """One of the moments at which power may be lost, often one after something was told."""
        told = [at for at in range(self.begun, len(self.events)) if isinstance(self.events[at], Told)]
        if told and choice.random() < 0.4:
            return choice.choice(told) + 1
        return choice.randint(self.begun, len(self.events))

    def without(self, is_left_out: Callable[[str], bool]) -> Journal:
        """A journal in which the syncs of some paths did nothing."""
        events = [each for each in self.events if not (isinstance(each, Sync) and is_left_out(each.path))]
        return Journal(self.folders, events, self.begun, self.before)

    def synced(self) -> set[str]:
        """The paths that were synced."""
        return {event.path for event in self.events[self.begun :] if isinstance(event, Sync)}

    def state(self, moment: int, choice: random.Random) -> State:
        """One of the states that a loss of power after so many events may leave."""
        last: dict[int, int] = {}
        for at, event in enumerate(self.events[:moment]):
            if isinstance(event, Sync):
                last[event.node] = at
        keeps = _keeping(choice, moment)
        names: dict[tuple[int, str], int] = {}
        contents: dict[int, bytearray] = {}
        for at, event in enumerate(self.events[:moment]):
            match event:
                case Names():
                    is_certain = at < max(self.begun, last.get(event.folder, 0))
                    # What was to be moved into a folder that is lost is where it was.
                    if is_certain or (keeps(at) and event.folder in (ROOT, *names.values())):
                        for folder, name, node in event.removed:
                            if names.get((folder, name)) == node:
                                del names[folder, name]
                        names.update({(folder, name): node for folder, name, node in event.named})
                case Write():
                    is_certain = at < max(self.begun, last.get(event.node, 0))
                    content = contents.setdefault(event.node, bytearray())
                    for start, end in _sectors(event):
                        if is_certain or keeps(at):
                            _put(content, start, event.content[start - event.offset : end - event.offset])
                case Length():
                    if at < max(self.begun, last.get(event.node, 0)) or keeps(at):
                        content = contents.setdefault(event.node, bytearray())
                        del content[event.length :]
                        content.extend(bytes(event.length - len(content)))
                case Sync() | Told():
                    pass
        return self._below(names, contents)

    def _below(self, names: dict[tuple[int, str], int], contents: dict[int, bytearray]) -> State:
        state: State = {}
        below = [("", ROOT)]
        while below:
            path, folder = below.pop()
            for (parent, name), node in names.items():
                if parent != folder:
                    continue
                state[path + name] = None if node in self.folders else bytes(contents.get(node, b""))
                if node in self.folders:
                    below.append((f"{path}{name}/", node))
        return state


def _keeping(choice: random.Random, moment: int) -> Callable[[int], bool]:
    """Whether what is not certain is kept: everything up to a moment, or by chance."""
    if choice.random() < 0.3:
        end = choice.randrange(moment + 1)
        return lambda at: at < end
    share = choice.choice([0, 0, 0.1, 0.5, 0.9, 1])
    return lambda _: choice.random() < share


def _sectors(event: Write) -> Iterator[tuple[int, int]]:
    end = event.offset + len(event.content)
    start = event.offset
    while start < end:
        stop = min(end, (start // SECTOR_BYTES + 1) * SECTOR_BYTES)
        yield start, stop
        start = stop


def _put(content: bytearray, start: int, piece: bytes) -> None:
    if start > len(content):
        content.extend(bytes(start - len(content)))
    content[start : start + len(piece)] = piece
