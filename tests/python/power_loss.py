"""A model of a disk: from the calls that reach the file system it derives what a folder may hold after a loss of power.

The model knows files and folders by identity. Names belong to their folder, content to its file:

- A name that was made, moved or removed is certain once its folder is synced; a moved one, the folder that it moved to.
- Content is certain once its file is synced.

Any part of everything else may be lost. A rename is one step: it is lost as a whole, or not at all. If a new folder is
lost, its uncertain names are lost with it. Its certain names are kept, but no path leads to them.
"""

import itertools
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from seglake.write import durable

__all__ = ["Disk", "State", "lay_out"]

# The functions of `os` that change names. At each call the folder is read again, which also shows the files that Arrow
# or Rust has created or written.
_CALLS: Final = ("rename", "replace", "link", "symlink", "unlink", "remove", "mkdir", "rmdir")
# Up to so many uncertain steps every subset is tried. Of more steps these are tried: all, none, each one alone, and all
# but each one.
_ALL_SUBSETS: Final = 4

State = Mapping[str, bytes | None]
"""Paths below the folder, with the content of files; None for a folder."""


@dataclass(frozen=True)
class _Names:
    """One step that removes and sets names. Each is a folder, a name, and the file or folder of that name."""

    removed: tuple[tuple[int, str, int], ...]
    named: tuple[tuple[int, str, int], ...]

    @property
    def folder(self) -> int:
        """The folder whose sync makes it certain."""
        return (self.named or self.removed)[0][0]


@dataclass(frozen=True)
class _Content:
    """A write: the file has this content, which is uncertain until a sync."""

    file: int
    content: bytes


@dataclass(frozen=True)
class _Sync:
    """A sync: the earlier writes to this file, or changes of names in this folder, are certain."""

    what: int


@dataclass
class Disk:
    """Follows the changes in a folder, and gives the states that a loss of power may leave.

    What is in the folder at the start is certain. `watch` makes the calls of `os` and of `durable` known to it.
    """

    root: Path
    _steps: list[_Names | _Content | _Sync] = field(default_factory=list[_Names | _Content | _Sync])
    _ids: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])
    _count: Iterator[int] = field(default_factory=itertools.count)
    _names: dict[tuple[int, str], int] = field(default_factory=dict[tuple[int, str], int])
    _folders: set[int] = field(default_factory=set[int])
    _contents: dict[int, bytes] = field(default_factory=dict[int, bytes])

    def __post_init__(self) -> None:
        self.root_id = self._id(self.root)
        self._folders.add(self.root_id)
        self.look()
        self._first = (dict(self._names), dict(self._contents))
        self._steps.clear()

    def watch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Follow the calls of `os` and of `durable` from now on. A sync is noted but not done, which saves time."""
        for name in ("sync_file", "sync_folder"):
            monkeypatch.setattr(durable, name, self.sync)
        for module, names in ((os, _CALLS), (durable, ("rename", "rename_new"))):
            for name in names:
                monkeypatch.setattr(module, name, self._looking(getattr(module, name)))

    def sync(self, path: Path) -> None:
        """Note a sync, also one that was not made by `durable`."""
        self.look()
        stat = path.stat()
        self._sync((stat.st_dev, stat.st_ino))

    def look(self) -> None:
        """Note what has changed since the last look."""
        names: dict[tuple[int, str], int] = {}
        contents: dict[int, bytes] = {}
        self._walk(self.root, self.root_id, names, contents)
        gone = {key: what for key, what in self._names.items() if names.get(key) != what}
        new = {key: what for key, what in names.items() if self._names.get(key) != what}
        for (folder, name), what in new.items():
            moved = tuple((*key, what) for key, each in gone.items() if each == what)
            self._steps.append(_Names(moved, ((folder, name, what),)))
            for each in moved:
                del gone[each[:2]]
        # A name that another file took was removed by the same step.
        self._steps.extend(_Names(((*key, what),), ()) for key, what in gone.items() if key not in new)
        for file, content in contents.items():
            if self._contents.get(file, b"") != content:
                self._steps.append(_Content(file, content))
        self._names, self._contents = names, contents
        present = {self.root_id, *names.values()}
        self._ids = {inode: each for inode, each in self._ids.items() if each in present}  # the system reuses inodes

    def moment(self) -> int:
        """Note what has changed, and return the number of steps so far."""
        self.look()
        return len(self._steps)

    def states(self, start: int = 0) -> Iterator[tuple[int, State]]:
        """Yield each state that a loss of power may leave after `start` steps or more, with the number of steps."""
        for moment in range(start, len(self._steps) + 1):
            seen: set[frozenset[tuple[str, bytes | None]]] = set()
            for state in self._at(moment):
                key = frozenset(state.items())
                if key not in seen:
                    seen.add(key)
                    yield moment, state

    def states_kept(self, start: int = 0) -> Iterator[State]:
        """Yield each state after `start` steps or more if nothing is lost, as when only the process dies."""
        seen: list[State] = []
        for moment in range(start, len(self._steps) + 1):
            state = self._state([(step, True) for step in self._steps[:moment]])
            if state not in seen:
                seen.append(state)
                yield state

    def _at(self, moment: int) -> Iterator[State]:
        steps = list(enumerate(self._steps[:moment]))
        certain: set[int] = set()
        for at, step in steps:
            if isinstance(step, _Sync):
                certain.update(
                    before
                    for before, earlier in steps[:at]
                    if (isinstance(earlier, _Names) and earlier.folder == step.what)
                    or (isinstance(earlier, _Content) and earlier.file == step.what)
                )
        open_ones = [at for at, step in steps if at not in certain and not isinstance(step, _Sync)]
        for lost in _choices(open_ones):
            yield self._state([(step, at in certain) for at, step in steps if at not in lost])

    def _state(self, steps: list[tuple[_Names | _Content | _Sync, bool]]) -> State:
        """Return the state after these steps, each with whether it is certain."""
        names, contents = dict(self._first[0]), dict(self._first[1])
        for step, is_certain in steps:
            if isinstance(step, _Content):
                contents[step.file] = step.content
            elif isinstance(step, _Names) and (is_certain or step.folder in (self.root_id, *names.values())):
                for folder, name, what in step.removed:
                    if names.get((folder, name)) == what:
                        del names[folder, name]
                for folder, name, what in step.named:
                    names[folder, name] = what
        state: dict[str, bytes | None] = {}
        below: list[tuple[str, int]] = [("", self.root_id)]
        while below:
            path, folder = below.pop()
            for (parent, name), what in names.items():
                if parent == folder:
                    is_folder = what in self._folders
                    state[path + name] = None if is_folder else contents.get(what, b"")
                    if is_folder:
                        below.append((f"{path}{name}/", what))
        return state

    def _walk(self, path: Path, folder: int, names: dict[tuple[int, str], int], contents: dict[int, bytes]) -> None:
        for entry in sorted(os.scandir(path), key=lambda entry: entry.name):
            what = names[folder, entry.name] = self._id(Path(entry.path))
            if entry.is_dir(follow_symlinks=False):
                self._folders.add(what)
                self._walk(Path(entry.path), what, names, contents)
            else:
                contents[what] = Path(entry.path).read_bytes()

    def _id(self, path: Path) -> int:
        stat = path.lstat()
        return self._ids.setdefault((stat.st_dev, stat.st_ino), next(self._count))

    def _sync(self, inode: tuple[int, int]) -> None:
        if inode in self._ids:
            self._steps.append(_Sync(self._ids[inode]))

    def _looking(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def looked_at(*arguments: Any, **options: Any) -> Any:
            self.look()
            try:
                return call(*arguments, **options)
            finally:
                self.look()

        return looked_at


def _choices(uncertain: list[int]) -> Iterator[set[int]]:
    """Yield the sets of uncertain steps to lose."""
    if len(uncertain) <= _ALL_SUBSETS:
        for count in range(len(uncertain) + 1):
            yield from map(set, itertools.combinations(uncertain, count))
        return
    yield set()
    yield set(uncertain)
    for each in uncertain:
        yield {each}
        yield set(uncertain) - {each}


def lay_out(state: State, folder: Path) -> None:
    """Make a folder with the files and folders of a state."""
    folder.mkdir()
    for path, content in sorted(state.items()):
        if content is None:
            (folder / path).mkdir()
        else:
            (folder / path).write_bytes(content)
