"""States of a stream of files: what was read of each file, durable before Spark notes the end of a batch."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from seglake._tasks import Growth
from seglake._text import printable_path

from .offset import NEW_CHECKPOINT, StateOffset

if TYPE_CHECKING:
    from .state_folder import StateFolders

__all__ = ["ReadSegment", "SeenFile", "State", "StateStore"]

_VERSION: Final = 1
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
    """

    modified: int | None
    size: int
    segment: str


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
        state.changed[0].update(content["files"])
        state.changed[1].update(content["segments"])
        return state

    def batch(self, offset: StateOffset) -> list[Growth]:
        """Returns what the batch reads that ends with a state.

        Raises:
            ValueError: as `load`.
        """
        if offset.stream is None:
            return []
        content = self._content(offset)
        at = content["positions"]
        return [
            Growth(path, None if start is None else at[start], at[end], nbytes)
            for path, start, end, nbytes in content["batch"]
        ]

    def write(self, state: State, batch: Sequence[Growth]) -> State:
        """Writes the state after another, which was changed into it, to the disk, and removes those that are too old.

        Returns the state with its offset.

        Raises:
            OSError: the folder cannot be written to.
        """
        number, stream = state.offset.number + 1, state.offset.stream or secrets.token_hex(8)
        files, segments = state.changed
        base, written = state.base, state.written + len(files) + len(segments)
        if written >= max(_FEW, len(state.segments) + len(state.files)):
            content = _packed({"files": state.files}, state.segments, [])
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
                "files": {path: state.files.get(path) for path in files},
            },
            {key: state.segments.get(key) for key in segments},
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
    """Puts the entries of a file in the place of those that are known. None drops one."""
    positions = content["positions"]
    for path, seen in content["files"].items():
        if seen is None:
            state.files.pop(path, None)
        else:
            state.files[path] = SeenFile(*seen)
    for key, segment in content["segments"].items():
        if segment is None:
            state.segments.pop(key, None)
        else:
            at, path, batch = segment
            state.segments[key] = ReadSegment(None if at is None else positions[at], path, batch)


def _packed(content: Mapping[str, Any], segments: Mapping[str, ReadSegment | None], batch: Sequence[Growth]) -> bytes:
    """Returns a line of JSON, and after it a line for each position, which are JSON of their own.

    As texts in the JSON they would take most of the time of a restart, because of the quotes in them.
    """
    positions: list[str] = []

    def line(position: str | None) -> int | None:
        if position is None:
            return None
        positions.append(position)
        return len(positions) - 1

    more = {
        "segments": {
            key: None if own is None else (line(own.position), own.path, own.batch) for key, own in segments.items()
        },
        "batch": [(growth.path, line(growth.start), line(growth.end), growth.nbytes) for growth in batch],
    }
    return "\n".join([json.dumps({**content, **more}, separators=(",", ":")), *positions]).encode()


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]
