"""States of a stream of files: what was read of each file, durable before Spark notes the end of a batch."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from seglake._text import printable_path
from seglake.tracking.tasks import BadFile, Growth

from .offset import NEW_CHECKPOINT, StateOffset

if TYPE_CHECKING:
    from .state_folder import StateFolders

__all__ = ["ReadSegment", "SeenFile", "State", "StateStore"]

_VERSION: Final = 3
# The number of the state, that of the base that it needs, and the hash of its content; or a base.
_STATE: Final = re.compile(r"state-(\d{10})-(\d{10})-([0-9a-f]{32})\.json")
_BASE: Final = re.compile(r"base-(\d{10})-[0-9a-f]{32}\.json")
# A base is not worth its sync for fewer entries.
_FEW: Final = 1000


class SeenFile(NamedTuple):
    """A file as it was when it was last looked at.

    Attributes:
        modified: when it was modified, in nanoseconds since 1970; None if it has to be looked at again in any case.
        size: its size in bytes.
        segment: the key of its segment.
        bad: why nothing could be read of it then, in the words of `BadFile`; None if it could.
    """

    modified: int | None
    size: int
    segment: str
    bad: str | None = None


class ReadSegment(NamedTuple):
    """How far a segment was read, whatever its files are called.

    Attributes:
        position: the JSON of a `seglake.Position`; None if nothing was read.
        path: the file that it was last read from.
        batch: the number of the state whose batch read of it last; 0 for none.
    """

    position: str | None
    path: str
    batch: int


@dataclass
class State:
    """What was read of all files that are still listed.

    Attributes:
        offset: what the checkpoint has of it.
        files: files by their paths.
        segments: segments by their keys.
        base: the number and the name of the file that has all entries but those that changed since; None is no file.
        written: how many changed entries were written since.
        changed: the files and segments that changed since.
    """

    offset: StateOffset
    files: dict[str, SeenFile] = field(default_factory=dict[str, SeenFile])
    segments: dict[str, ReadSegment] = field(default_factory=dict[str, ReadSegment])
    base: tuple[int, str | None] = (0, None)
    written: int = 0
    changed: tuple[set[str], set[str]] = field(default_factory=lambda: (set(), set()))

    def see(self, path: str, seen: SeenFile) -> None:
        """Notes a file as it is."""
        if self.files.get(path) != seen:
            self.files[path] = seen
            self.changed[0].add(path)

    def read(self, key: str, segment: ReadSegment) -> None:
        """Notes how far a segment was read."""
        if self.segments.get(key) != segment:
            self.segments[key] = segment
            self.changed[1].add(key)

    def forget_file(self, path: str) -> None:
        """Drops a file that is no longer listed."""
        del self.files[path]
        self.changed[0].add(path)

    def forget_segment(self, key: str) -> None:
        """Drops a segment of which no file is listed."""
        del self.segments[key]
        self.changed[1].add(key)

    def copy(self) -> State:
        """Returns a state that can be changed without this one."""
        files, segments = self.changed
        own = dict(self.files), dict(self.segments)
        return State(self.offset, *own, self.base, self.written, (set(files), set(segments)))


@dataclass(frozen=True)
class StateStore:
    """The folder of the states of streams. Each stream has a folder of its own in it.

    Attributes:
        folders: the folder, which has one for each stream.
        about: what the stream was asked for that a restart must not change, by the names of the options.
        retained: how many states stay.
    """

    folders: StateFolders
    about: Mapping[str, Any]
    retained: int

    def load(self, offset: StateOffset) -> State:
        """Reads a state.

        Raises:
            ValueError: it is not there, is not the one that the checkpoint has, or was made with other options.
        """
        if offset.stream is None:
            return State(offset)
        content = self._content(offset)
        state = State(offset, base=(content["base"][0], content["base"][1]), written=content["written"])
        if state.base[1] is not None:
            _apply(state, self._base_of(offset, state.base[1]))
        _apply(state, content)
        state.changed = _entries(content)
        return state

    def batch(self, offset: StateOffset) -> list[Growth | BadFile]:
        """Returns what the batch reads that ends with a state.

        Raises:
            ValueError: as `load`.
        """
        if offset.stream is None:
            return []
        content = self._content(offset)
        paths, at = content["paths"], [*content["positions"], None]
        growths = [Growth(paths[path], at[start], at[end], nbytes) for path, start, end, nbytes in content["batch"]]
        return [*growths, *(BadFile(paths[path], nbytes, cause) for path, nbytes, cause in content["bad"])]

    def write(self, state: State, batch: Sequence[Growth | BadFile]) -> State:
        """Writes the state after another, which was changed into it, to the disk, and removes those that are too old.

        Returns the state with its offset.

        Raises:
            OSError: the folder cannot be written to.
        """
        number, stream = state.offset.number + 1, state.offset.stream or secrets.token_hex(8)
        files, segments = state.changed
        base, written = state.base, state.written + len(files) + len(segments)
        if written >= max(_FEW, len(state.segments) + len(state.files)):
            content = _packed({"version": _VERSION}, state, state.files, state.segments, [])
            base = (number, f"base-{number:010}-{_hash(content)}.json")
            self.folders.write(stream, str(base[1]), content)
            written, files, segments = 0, set[str](), set[str]()
        content = _packed(
            {
                "version": _VERSION,
                "stream": stream,
                "state": number,
                "about": self.about,
                "base": base,
                "written": written,
            },
            state,
            files,
            segments,
            batch,
        )
        offset = StateOffset(number, stream, _hash(content))
        self.folders.write(stream, f"state-{number:010}-{base[0]:010}-{offset.hash}.json", content)
        self._clean(stream, number - self.retained)
        return State(offset, state.files, state.segments, base, written, (files, segments))

    def _clean(self, stream: str, oldest: int) -> None:
        """Removes states from before one, and bases that no other state needs."""
        names = self.folders.names(stream)
        states = {name: match for name in names if (match := _STATE.fullmatch(name))}
        stays = {name for name, match in states.items() if int(match[1]) >= oldest}
        needed = min((int(states[name][2]) for name in stays), default=0)
        for name in states.keys() - stays:
            self.folders.remove(stream, name)
        for name in names:
            base = _BASE.fullmatch(name)
            if base is not None and int(base[1]) < needed:
                self.folders.remove(stream, name)

    def _content(self, offset: StateOffset) -> dict[str, Any]:
        """Reads the file of a state."""
        stream = str(offset.stream)
        found = [
            name
            for name in self.folders.names(stream)
            if (match := _STATE.fullmatch(name)) and (int(match[1]), match[3]) == (offset.number, offset.hash)
        ]
        if not found:
            raise ValueError(
                f"option stateLocation: {printable_path(self.folders.location)}: expected state {offset.number} of "
                f"stream {stream} with the hash {offset.hash}, which the checkpoint has, found none. Give the query "
                f"the folder that it had when it began. If its states are lost, it cannot go on. {NEW_CHECKPOINT}"
            )
        content = self._read(stream, found[0], str(offset.hash))
        for name, own in self.about.items():
            before = content["about"].get(name)
            if before != own:
                raise ValueError(
                    f"{name} is {own!r}: expected {before!r}, with which the checkpoint was made. Give the query what "
                    "it had then, or another checkpoint"
                )
        return content

    def _base_of(self, offset: StateOffset, name: str) -> dict[str, Any]:
        return self._read(str(offset.stream), name, name.removesuffix(".json").rpartition("-")[2])

    def _read(self, stream: str, name: str, hash: str) -> dict[str, Any]:
        content = self.folders.read(stream, name)
        found = _hash(content)
        shown = printable_path(self.folders.name(stream, name))
        if found != hash:
            raise ValueError(
                f"{shown}: expected a file of a stream's states with the hash {hash}, found {len(content)} bytes with "
                f"the hash {found}: it is damaged or gone. Restore it. {NEW_CHECKPOINT}"
            )
        head, *positions = content.decode().split("\n")
        parsed: dict[str, Any] = {**json.loads(head), "positions": positions}
        if parsed.get("version", _VERSION) != _VERSION:
            raise ValueError(
                f"{shown}: expected version {_VERSION} of a stream's state, found {parsed['version']}: it is of "
                "another version of seglake"
            )
        return parsed


def _apply(state: State, content: Mapping[str, Any]) -> None:
    """Puts the entries of a file in the place of those that are known, and drops what it removes."""
    removed_paths, removed_keys = content["removed"]
    for path in removed_paths:
        state.files.pop(path, None)
    for key in removed_keys:
        state.segments.pop(key, None)
    paths: list[str] = content["paths"]
    keys: list[str] = content["keys"]
    positions: list[str | None] = [*content["positions"], None]  # the number -1 takes the None
    path, key, position = paths.__getitem__, keys.__getitem__, positions.__getitem__
    own, modified, size, segment, bad = content["files"]
    seen = map(SeenFile._make, zip(modified, size, map(key, segment), bad, strict=True))
    state.files.update(zip(map(path, own), seen, strict=True))
    own, at, last, batch = content["segments"]
    read = map(ReadSegment._make, zip(map(position, at), map(path, last), batch, strict=True))
    state.segments.update(zip(map(key, own), read, strict=True))


def _entries(content: Mapping[str, Any]) -> tuple[set[str], set[str]]:
    """Returns the paths and the keys of a file's entries."""
    removed_paths, removed_keys = content["removed"]
    paths, keys = content["paths"], content["keys"]
    return (
        {*removed_paths, *(paths[own] for own in content["files"][0])},
        {*removed_keys, *(keys[own] for own in content["segments"][0])},
    )


class _Numbered(dict[str, int]):
    """Texts by their numbers, in the order in which they were first asked for."""

    def __missing__(self, text: str) -> int:
        self[text] = number = len(self)
        return number


def _packed(
    content: Mapping[str, Any],
    state: State,
    files: Iterable[str],
    segments: Iterable[str],
    batch: Sequence[Growth | BadFile],
) -> bytes:
    """Returns a line of JSON, and after it a line for each position, which are JSON of their own.

    Args:
        content: what else the line has.
        state: the state.
        files: the files to write; one that the state has no more is removed.
        segments: likewise the keys of the segments.
        batch: what was planned.
    """
    # Columns, and a number for each text: with an object for each file, a restart would take a second longer.
    paths, keys, positions = _Numbered(), _Numbered(), _Numbered()
    seen = [(path, own) for path in files if (own := state.files.get(path)) is not None]
    read = [(key, own) for key in segments if (own := state.segments.get(key)) is not None]

    def at(position: str | None) -> int:
        return -1 if position is None else positions[position]

    more = {
        "files": [
            [paths[path] for path, _ in seen],
            [own.modified for _, own in seen],
            [own.size for _, own in seen],
            [keys[own.segment] for _, own in seen],
            [own.bad for _, own in seen],
        ],
        "segments": [
            [keys[key] for key, _ in read],
            [at(own.position) for _, own in read],
            [paths[own.path] for _, own in read],
            [own.batch for _, own in read],
        ],
        "removed": [
            [path for path in files if path not in state.files],
            [key for key in segments if key not in state.segments],
        ],
        "batch": [
            (paths[own.path], at(own.start), at(own.end), own.nbytes) for own in batch if isinstance(own, Growth)
        ],
        "bad": [(paths[own.path], own.nbytes, own.cause) for own in batch if isinstance(own, BadFile)],
    }
    head = {**content, **more, "paths": list(paths), "keys": list(keys)}
    return "\n".join([json.dumps(head, separators=(",", ":")), *positions]).encode()


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]
