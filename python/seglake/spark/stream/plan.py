"""Plans a batch of a stream of files: what is read of which file, by the promise that the ingest keeps, too.

A file that goes on where its source ended adds what is new. Any other is told by its first record: of a source that is
known it adds what follows the source's end, wherever it lies and whatever it is called. Where it does not go on as what
was read, nothing of it is read, and that is said; where records have no keys but their positions, it is another source.
"""

from __future__ import annotations

import errno
import json
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

import seglake
from seglake._text import printable_path
from seglake.incremental import Position
from seglake.read.formats import key_column
from seglake.read.in_order import SMALL_BYTES, in_order
from seglake.tracking.files import is_same, known_before, observed, renamed

from ..decode import cause_of
from ..notes import Notes
from ..option_names import in_options
from ..options import is_about
from ..stores import is_elsewhere
from .look import NoRoomError
from .state import BatchEntry, Planned, SourceEnd

if TYPE_CHECKING:
    from seglake.stores import FileListing, SegmentFile
    from seglake.tracking.state import FileState

    from ..decode import Decoder
    from .log import Quota
    from .look import Grown, Look
    from .state import StreamState

__all__ = ["BatchPlan", "Memory"]

_LOG: Final = logging.getLogger(__name__)
# To verify an oplog takes nearly half as long as to read it, and elsewhere a look is mostly waiting.
_THREADS: Final = os.cpu_count() or 1
_THREADS_ELSEWHERE: Final = 16
# With how many files of its source one is compared that does not go on as that.
_COMPARED: Final = 3


@dataclass
class Memory:
    """What one plan leaves to the next ones. None of it is needed.

    Attributes:
        unlisted: of sources of which no file is listed, the number of the batch since when.
        notes: what the log said of files.
        bad: files of which nothing could be read, as they were then: they are tried again when they have changed.
    """

    unlisted: dict[str, int] = field(default_factory=dict[str, int])
    notes: Notes = field(default_factory=Notes)
    bad: dict[str, FileState] = field(default_factory=dict[str, "FileState"])


class _Changed(NamedTuple):
    """A file that may have something new: as it was listed, as it is kept, and what is known of it."""

    file: SegmentFile
    now: FileState
    before: FileState | None


class _Found(NamedTuple):
    """What a file has: of which source, since where, and what; None of one that has not begun, or is a copy."""

    source: str
    start: SourceEnd | None
    grown: Grown | None


class _UndecidedError(Exception):
    """A file begins as a source and does not go on as that: what it is, the files that are left may tell."""


class BatchPlan:
    """A batch in the making.

    Args:
        look: looks at files.
        decoder: reads them.
        state: the state before it.
        quota: the most that the batch takes.
        memory: what earlier plans have left.
    """

    def __init__(self, look: Look, decoder: Decoder, state: StreamState, quota: Quota, memory: Memory) -> None:
        self._look = look
        self._decoder = decoder
        self._state = state
        self._quota = quota
        self._memory = memory
        self._entry = BatchEntry()
        self._nbytes = 0
        self._files: dict[str, SegmentFile] = {}
        self._done = set[str]()
        self._is_last = False
        # How far sources are read with this batch.
        self._ends: dict[str, SourceEnd] = {}
        # Sources that begin as others, where records have no keys.
        self._others = [source for source in state.sources if "#" in source]

    def make(self, listing: FileListing, done: set[str]) -> BatchEntry:
        """Plans as much as the quota allows.

        Args:
            listing: the files that there are.
            done: the paths of files that are not looked at; takes those that are read to their ends now.

        Raises:
            seglake.exceptions.ReplacedError: the mode is FAILFAST, and a file does not go on as what was read.
            seglake.SeglakeError: a file cannot be read.
        """
        self._done = done
        with self._memory.notes.written(_LOG):
            waiting = self._changed(listing)
            # After the one that was looked at last, so that no file that grows fast keeps others waiting.
            waiting.sort(key=lambda own: (own.now.path <= self._state.last, own.now.path))
            taken, undecided = 0, list[_Changed]()
            with closing(in_order(waiting, self._finding, self._threads(waiting))) as all_found:
                for changed, found in all_found:
                    try:
                        if not self._take_or_leave(changed, found):
                            break
                    except _UndecidedError:
                        undecided.append(changed)
                    taken += 1
                    if self._is_full():
                        break
            if taken == len(waiting):
                self._is_last = True
                while undecided and not self._is_full():
                    changed = undecided.pop(0)
                    self._take_or_leave(changed, next(self._finding(changed)))
            left = [*waiting[taken:], *undecided]
            self._entry.last = waiting[taken - 1].now.path if taken else self._state.last
            nbytes = (own.now.size - (own.before.size if own.before is not None else 0) for own in left)
            self._entry.waiting = len(left), sum(max(0, size) for size in nbytes)
        return self._entry

    def skipped(self) -> BatchEntry:
        """Returns the batch without what it reads: all of that counts as read."""
        self._entry.ends, self._entry.batch = self._ends, []
        return self._entry

    def add(self, unsaved: BatchEntry) -> None:
        """Adds what plans without a batch have seen since the last entry."""
        entry = self._entry
        entry.files = unsaved.files | entry.files
        entry.ends = {source: end for source, end in unsaved.ends.items() if source not in self._ends} | entry.ends
        entry.forgotten += (source for source in unsaved.forgotten if source not in self._ends)

    def forget(self, retained: int, unsaved: BatchEntry) -> None:
        """Drops files that are not listed, and sources of which none was for as long as entries stay.

        A listing may miss a file that is renamed meanwhile. It is not new when it is there again.
        """
        entry, number, files = self._entry, self._state.number + 1, self._files
        known, unlisted = self._state.files, self._memory.unlisted
        listed = {own.source for path, own in known.items() if path in files and path not in entry.files}
        listed |= {own.source for path, own in entry.files.items() if path in files}
        for source in unlisted.keys() & listed:
            del unlisted[source]
        for source in self._state.sources.keys() - listed - self._ends.keys():
            if number - unlisted.setdefault(source, number) > retained:
                del unlisted[source]
                entry.forgotten.append(source)
        gone = listed.union(entry.forgotten, [""])
        entry.gone = [path for path, own in known.items() if path not in files and own.source in gone]
        entry.gone += (path for path in unsaved.gone if path not in files)

    def _changed(self, listing: FileListing) -> list[_Changed]:
        """Returns the files that may have changed since they were read."""
        known, bad = self._state.files, self._memory.bad
        states = [observed(file, listing.listed_ns, _no_sidecar) for file in listing.files]
        self._files = {now.path: file for file, now in zip(listing.files, states, strict=True)}
        here = {now.path: now for now in states}
        inodes = {old.inode: old for old in known.values() if old.inode is not None}
        changed: list[_Changed] = []
        for file, now in zip(listing.files, states, strict=True):
            before = known_before(now, known, here, inodes)
            if before is not None and is_same(before, now, final=False):
                if before.path != now.path:
                    self._entry.files[now.path] = renamed(before, now)
            elif bad.get(now.path) != now and now.path not in self._done:
                changed.append(_Changed(file, now, before))
        self._memory.bad = {path: own for path, own in bad.items() if here.get(path) == own}
        return changed

    def _threads(self, waiting: Sequence[_Changed]) -> int:
        if self._quota.nbytes is not None or len(waiting) < 2:
            return 1  # what one takes decides how far the next is looked at
        most = len(waiting) if self._quota.files is None else -(-self._quota.files // 2)
        if is_elsewhere(waiting[0].file.path):
            return max(1, min(_THREADS_ELSEWHERE, most))
        is_small = sum(own.now.size for own in waiting) < SMALL_BYTES * len(waiting)
        return 1 if is_small else max(1, min(_THREADS, most))

    def _is_full(self) -> bool:
        files, nbytes = self._quota
        return (files is not None and len(self._entry.batch) >= files) or (
            nbytes is not None and self._nbytes >= nbytes
        )

    def _end(self, source: str) -> SourceEnd | None:
        return self._ends.get(source) or self._state.sources.get(source)

    def _finding(self, changed: _Changed) -> Iterator[_Found | Exception]:
        """Looks at a file, in whatever thread. What that raises is for the file's turn."""
        try:
            yield self._find(changed)
        except Exception as error:
            yield error

    def _find(self, changed: _Changed) -> _Found:
        """Finds out what a file has that is new.

        Raises:
            NoRoomError: it is complete, and larger than the batch has room for.
            seglake.exceptions.ReplacedError: it begins as a source that was read, and does not go on as that.
            seglake.SeglakeError, OSError: it cannot be read.
        """
        found = self._looked(changed)
        if _is_another(changed):
            raise FileNotFoundError(errno.ENOENT, "another file is there than was listed", changed.file.path)
        return found

    def _looked(self, changed: _Changed) -> _Found:
        file, now, before = changed
        old = "" if before is None else before.source
        if (found := self._continued(file, old)) is not None:
            return found
        identity = self._look.identity(file)
        if identity is None:
            return _Found(now.path, None, self._grown(file, None))
        own = [identity, *(source for source in self._others if source.startswith(f"{identity}#"))]
        for source in own:
            if (found := self._continued(file, source)) is not None:
                return found
        is_keyed = key_column(self._look.format) != "position"
        is_the_same = before is not None and before.inode is not None and before.inode == now.inode
        if is_keyed and is_the_same and (found := self._continued(file, old, identity)) is not None:
            return found  # its first record was repaired
        first = self._end(identity)
        if first is None and is_keyed and is_the_same:
            end = self._end(old)
            if end is not None and self._look.has_record(file, Position.from_json(end.position)):
                raise _conflict(file, end, "what was read of it", "what was read, and another first record")
        if first is None:
            return _Found(identity, None, self._grown(file, None, identity))
        if not self._is_last:
            raise _UndecidedError
        if any(self._look.contains(file, read) for read in self._read_of(own, now.path)):
            return _Found(identity, first, None)
        if not is_keyed:
            other = f"{identity}#{self._state.number + 1}.{len(self._entry.batch)}"
            return _Found(other, None, self._grown(file, None, identity))
        which = f"what was read of {printable_path(first.path)}, which begins with the same record"
        raise _conflict(file, first, which, "less, or other records")

    def _read_of(self, sources: Sequence[str], path: str) -> list[SegmentFile]:
        """Returns some files that sources were read from, but for the one of a path."""
        known = {**self._state.files, **self._entry.files}
        paths = [own.path for own in known.values() if own.source in sources and own.path != path and not own.error]
        return [self._files[own] for own in paths if own in self._files][:_COMPARED]

    def _continued(self, file: SegmentFile, source: str, identity: str | None = None) -> _Found | None:
        """Looks at a file as one that goes on where a source ended; None if it does not.

        Args:
            file: the file.
            source: the source.
            identity: what identifies the file, if another first record than the source had.
        """
        end = self._end(source)
        if end is None:
            return None
        position = Position.from_json(end.position)
        if identity is not None:
            position = Position.from_json(json.dumps({**json.loads(end.position), "identity": identity}))
        try:
            return _Found(source, end, self._grown(file, position))
        except seglake.exceptions.ReplacedError:
            return None

    def _grown(self, file: SegmentFile, position: Position | None, identity: str | None = None) -> Grown | None:
        most = None if self._quota.nbytes is None else self._quota.nbytes - self._nbytes
        grown = self._look.grown(file, position, most, is_first=not self._entry.batch)
        if identity is not None and grown is not None and grown.position.identity not in (None, identity):
            raise FileNotFoundError(errno.ENOENT, "another file is there than was identified", file.path)
        return grown

    def _take_or_leave(self, changed: _Changed, found: _Found | Exception) -> bool:
        """Plans what a file has. Returns whether the batch has room for it."""
        file = changed.file
        try:
            if isinstance(found, Exception):
                raise found
            if found.start != self._end(found.source):
                found = self._find(changed)  # another file of its source was taken meanwhile
            self._take(changed, found)
        except NoRoomError:
            return False
        except (OSError, seglake.FormatError, seglake.DamageError, seglake.exceptions.ReplacedError) as error:
            if not (isinstance(error, OSError) and _is_gone(error, file)):
                self._leave(changed, error)
        return True

    def _take(self, changed: _Changed, found: _Found) -> None:
        file, now, _ = changed
        source, start, grown = found
        if grown is None:
            self._see(now, source if start is not None else "", is_all=True)
            return
        end = grown.position
        is_moved = end.identity is not None and source != end.identity and not source.startswith(f"{end.identity}#")
        if is_moved and end.identity is not None:
            # Its first record is there by now, or was repaired.
            self._entry.forgotten.append(source)
            source = end.identity
            if self._end(source) is not None:
                return  # the next batch reads it as that
        if grown.pending_bytes:
            self._check_pending(file, source, grown)
        known = SourceEnd(end.to_json(), now.path)
        if grown.found:
            before = None if start is None else start.position
            self._entry.batch.append(Planned.of(file.path, source, grown.nbytes, before, known.position))
            self._nbytes += grown.nbytes
            self._ends[source] = known
            self._entry.ends.pop(source, None)
            modified = file.modified_ns or int((file.modified or 0) * 1_000_000_000)
            self._entry.newest = max(self._entry.newest, (now.path, modified), key=lambda newest: newest[1])
        elif is_moved or (start is None and end.byte_offset):
            self._entry.ends[source] = self._ends[source] = known
        elif start is not None and start.path not in self._files:
            # It was renamed. The position stays that of the file that it was read from: another one may go on there.
            self._entry.ends[source] = self._ends[source] = SourceEnd(start.position, now.path)
        self._see(now, source, is_all=grown.is_all)

    def _see(self, now: FileState, source: str, *, is_all: bool) -> None:
        modified = None
        if is_all:
            modified = now.modified
            self._done.add(now.path)
        self._entry.files[now.path] = msgspec.structs.replace(now, source=source, modified=modified)

    def _check_pending(self, file: SegmentFile, source: str, grown: Grown) -> None:
        """Says it where records follow what a file has not finished: it is damage, and they wait.

        Raises:
            seglake.DamageError: so it is, and the mode is FAILFAST.
        """
        place = source, grown.position.byte_offset
        if self._memory.notes.has_said(*place):
            return
        damage = self._look.waiting_damage(file, grown.position)
        if damage is None:
            return
        if self._look.options.mode == "FAILFAST":
            raise damage
        self._memory.notes.add("damage", str(damage), once=place)

    def _leave(self, changed: _Changed, error: Exception) -> None:
        """Notes a file of which nothing can be read. What was read of it before stays so.

        Raises:
            Exception: the error, where one file stops all.
        """
        file, now, before = changed
        self._done.add(now.path)
        if not self._decoder.goes_on(error, file.path):
            if not isinstance(error, seglake.FormatError) or not is_about(error, file.path):
                raise error
            raise seglake.FormatError(
                error.reason,
                path=error.path,
                next="Leave the file out with option pathGlobFilter, or choose mode PERMISSIVE, which has a row for it",
            ) from None
        cause = cause_of(error)
        source = "" if before is None else before.source
        if before is None or before.error != cause:
            if self._decoder.reports_bad_files:
                self._entry.batch.append(Planned.of(file.path, source, file.size, cause=cause))
            text = in_options(str(error))
            self._memory.notes.add(cause, f"{text}. Nothing of it is read; it is tried again when it has changed")
        self._entry.files[now.path] = msgspec.structs.replace(now, modified=None, source=source, error=cause)
        # Another sidecar, or a repair, leaves the file's size and time as they are.
        if now.modified is not None and isinstance(error, seglake.SeglakeError):
            self._memory.bad[now.path] = now


def _no_sidecar(_: str) -> None:
    return None


def _is_another(changed: _Changed) -> bool:
    """Tells whether another file is at the path than when it was listed. The next listing has both."""
    if changed.now.inode is None:
        return False
    try:
        return os.stat(changed.file.path).st_ino != changed.now.inode  # noqa: PTH116 - no path is made
    except OSError:
        return True


def _conflict(file: SegmentFile, end: SourceEnd, expected: str, actual: str) -> seglake.exceptions.ReplacedError:
    return seglake.exceptions.ReplacedError(
        path=file.path,
        byte_offset=Position.from_json(end.position).byte_offset,
        expected=expected,
        actual=actual,
        next="Find out which file is right, and stream one alone, in a folder of its own",
    )


def _is_gone(error: OSError, file: SegmentFile) -> bool:
    """Tells whether a file is gone or another since it was listed. The next listing has it, under its name by now."""
    if isinstance(error, FileNotFoundError):
        return error.filename == file.path
    return error.errno == errno.ESTALE  # elsewhere
