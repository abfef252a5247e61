"""Plans a batch of a stream of files: what is read of which file, and the state after it."""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

import seglake
from seglake import Position
from seglake._text import printable_path
from seglake.tracking.tasks import BadFile, Growth

from ..decode import cause_of
from ..notes import Notes
from ..option_names import in_options
from ..options import is_about
from .look import NoRoomError
from .offset import NEW_CHECKPOINT
from .state import ReadSegment, SeenFile

if TYPE_CHECKING:
    from seglake.stores import SegmentFile

    from ..decode import Decoder
    from .log import Quota
    from .look import Grown, Look
    from .state import State

__all__ = ["BatchPlan", "Listed", "Memory"]

_LOG: Final = logging.getLogger(__name__)
# The key of a segment that has no identity yet; with the path of its file. A key is an identity otherwise.
_UNKNOWN: Final = "path:"
# To look at smaller files takes hardly longer than to hand them to a thread.
_LARGE_BYTES: Final = 1 << 20
_THREADS: Final = os.cpu_count() or 1
_AHEAD: Final = 2 * _THREADS


class Listed(NamedTuple):
    """The files that there were, by their paths, and when they were listed, in nanoseconds since 1970."""

    files: Mapping[str, SegmentFile]
    listed_ns: int


@dataclass
class Memory:
    """What one plan leaves to the next ones. None of it is needed.

    Attributes:
        identities: those of files that no batch had room for yet, as they were listed.
        unlisted: of segments of which no file is listed, the number of the state since when.
        notes: what the log said of files.
        bad: files of which nothing could be read, as they were listed: they are tried again when they have changed.
    """

    identities: dict[SegmentFile, str | None] = field(default_factory=dict["SegmentFile", str | None])
    unlisted: dict[str, int] = field(default_factory=dict[str, int])
    notes: Notes = field(default_factory=Notes)
    bad: set[SegmentFile] = field(default_factory=set["SegmentFile"])


class BatchPlan:
    """A batch in the making.

    Args:
        look: looks at files.
        decoder: reads them.
        state: the state before it, which becomes the one after it.
        quota: the most that the batch takes.
        memory: what earlier plans have left.
        listed: lists the files again.

    Attributes:
        state: as above.
        batch: what is read.
    """

    def __init__(
        self,
        look: Look,
        decoder: Decoder,
        state: State,
        quota: Quota,
        memory: Memory,
        listed: Callable[[], Listed],
    ) -> None:
        self.state = state
        self.batch: list[Growth | BadFile] = []
        self._look = look
        self._decoder = decoder
        self._quota = quota
        self._memory = memory
        self._list_again = listed
        self._nbytes = 0
        self._number = state.offset.number + 1
        self._files: Mapping[str, SegmentFile] = {}
        self._listed_ns = 0
        # What was looked at ahead of time, by paths: since which position, and what there is.
        self._ahead: dict[str, tuple[Position | None, Future[Grown | None]]] = {}
        # The keys of new files, by their paths.
        self._new: dict[str, str] = {}
        # What is looked at in turn, and how far that has come.
        self._order: Sequence[SegmentFile] = ()
        self._at = 0
        # Paths where another file is by now, and the keys of files that a listing has which was made after that.
        self._moved: tuple[set[str], set[str]] = (set(), set())
        stream = look.options.stream
        assert stream is not None
        self._skips_replaced = stream.on_replaced == "skip"
        self._retained = stream.retained

    def make(self, listed: Listed, done: set[str]) -> None:
        """Plans as much as the quota allows.

        Args:
            listed: the files that there are.
            done: files that are not looked at; takes those that are read to their ends now.

        Raises:
            seglake.ReplacedError: a file is not the one that was read.
            seglake.SeglakeError: a file cannot be read.
        """
        with self._memory.notes.written(_LOG):
            self._make(listed, done)

    def _make(self, listed: Listed, done: set[str]) -> None:
        files, self._listed_ns = listed
        self._files = files
        self._memory.bad = {file for file in self._memory.bad if files.get(file.path) == file}
        self._forget()
        # What was read longest ago comes first, so that no file that grows fast keeps others waiting.
        waiting = [file for _, file in sorted(self._waiting(files, done), key=lambda each: (each[0], each[1].path))]
        self._order = waiting
        with self._looking_ahead(waiting) as look_ahead:
            for number, file in enumerate(waiting):
                if self._is_full():
                    break
                self._at = number
                look_ahead(number)
                try:
                    if self._take(file, self._key(file)):
                        done.add(file.path)
                except NoRoomError:
                    break
                except (OSError, seglake.FormatError, seglake.DamageError) as error:
                    if isinstance(error, OSError) and _is_gone(error, file):
                        continue
                    self._leave(file, error)
                    done.add(file.path)
        self._memory.identities = {
            file: identity for file, identity in self._memory.identities.items() if file.path not in self.state.files
        }

    @contextmanager
    def _looking_ahead(self, waiting: Sequence[SegmentFile]) -> Generator[Callable[[int], None]]:
        """Gives a function that has threads look at the large ones of the next files, from a number on.

        To verify an oplog takes nearly half as long as to read it. How far to look is known ahead of time only where
        the bytes of a batch have no limit.
        """
        large = [file for file in waiting if file.size >= _LARGE_BYTES]
        if self._quota.nbytes is not None or len(large) < 2:
            yield lambda _: None
            return
        reach = 0

        def look_ahead(number: int) -> None:
            nonlocal reach
            files = self._quota.files
            room = _AHEAD if files is None else min(_AHEAD, files - len(self.batch))
            while reach < min(number + room, len(waiting)):
                file = waiting[reach]
                reach += 1
                if file.size >= _LARGE_BYTES:
                    seen = self.state.files.get(file.path)
                    position = self._position(self._new[file.path] if seen is None else seen.segment)
                    looked = threads.submit(self._look.grown, file, position, is_first=True)
                    self._ahead[file.path] = (position, looked)

        with ThreadPoolExecutor(_THREADS) as threads:
            try:
                yield look_ahead
            finally:
                threads.shutdown(cancel_futures=True)
                self._ahead.clear()

    def _position(self, key: str) -> Position | None:
        known = self.state.segments.get(key)
        return None if known is None or known.position is None else Position.from_json(known.position)

    def _grown(self, file: SegmentFile, position: Position | None, most: int | None) -> Grown | None:
        """Looks at a file, unless that was done ahead of time."""
        before, looked = self._ahead.pop(file.path, (None, None))
        if looked is not None and before == position:
            return looked.result()
        return self._look.grown(file, position, most, is_first=not self.batch)

    def _waiting(self, files: Mapping[str, SegmentFile], done: set[str]) -> Iterator[tuple[int, SegmentFile]]:
        """Yields the files that may have changed, and the state of the batch that has read of each last."""
        known, segments = self.state.files, self.state.segments
        for path, file in files.items():
            seen = known.get(path)
            # A clock that was put back may give a file the same time once more.
            modified = file.settled_ns(self._listed_ns)
            if seen is not None and modified is not None and seen.modified == modified and seen.size == file.size:
                continue
            if path in done or file in self._memory.bad:
                continue
            if seen is None:
                try:
                    self._new[path] = self._key(file)
                except (OSError, seglake.FormatError) as error:
                    if isinstance(error, OSError) and _is_gone(error, file):
                        continue
                    self._new[path] = f"{_UNKNOWN}{path}"  # it is raised again in its turn
            segment = segments.get(self._new[path] if seen is None else seen.segment)
            yield (0 if segment is None else segment.batch), file

    def _leave(self, file: SegmentFile, error: Exception) -> None:
        """Notes a file of which nothing can be read. What was read of it before stays so.

        Raises:
            Exception: the error, where one file stops all.
        """
        if not self._decoder.goes_on(error, file.path):
            if not isinstance(error, seglake.FormatError) or not is_about(error, file.path):
                raise error
            raise seglake.FormatError(
                error.reason,
                path=error.path,
                next="Leave the file out with option pathGlobFilter, or choose mode PERMISSIVE, which has a row for it",
            ) from None
        cause = cause_of(error)
        seen = self.state.files.get(file.path)
        if seen is None or seen.bad != cause:
            if self._decoder.reports_bad_files:
                self.batch.append(BadFile(file.path, file.size, cause))
            text = in_options(str(error))
            self._memory.notes.add(cause, f"{text}. Nothing of it is read; it is tried again when it has changed")
        key = self._new[file.path] if seen is None else seen.segment
        self.state.see(file.path, SeenFile(None, file.size, key, cause))
        # Another sidecar, or a repair, leaves the file's size and time as they are.
        is_settled = file.settled_ns(self._listed_ns) is not None
        if is_settled and isinstance(error, (seglake.FormatError, seglake.WrongKeyError)):
            self._memory.bad.add(file)

    def _key(self, file: SegmentFile) -> str:
        seen = self.state.files.get(file.path)
        return self._own_key(file) if seen is None else seen.segment

    def _own_key(self, file: SegmentFile) -> str:
        """Returns the key by what the file has now."""
        identities = self._memory.identities
        identity = identities.get(file)
        if identity is None:
            identity = self._look.identity(file)
            if file.settled_ns(self._listed_ns) is not None:
                identities[file] = identity
        return identity or f"{_UNKNOWN}{file.path}"

    def _forget(self) -> None:
        """Drops files that are not listed, and segments of which none was for as long as states stay.

        A listing may miss a file that is renamed meanwhile. It is not new when it is there again.
        """
        for path in self.state.files.keys() - self._files.keys():
            self.state.forget_file(path)
        listed = {seen.segment for seen in self.state.files.values()}
        unlisted = self._memory.unlisted
        for key in unlisted.keys() & listed:
            del unlisted[key]
        for key in self.state.segments.keys() - listed:
            since = unlisted.setdefault(key, self._number)
            if self._number - since > self._retained:
                del unlisted[key]
                self.state.forget_segment(key)

    def _is_full(self) -> bool:
        files, nbytes = self._quota
        return (files is not None and len(self.batch) >= files) or (nbytes is not None and self._nbytes >= nbytes)

    def _take(self, file: SegmentFile, key: str) -> bool:
        """Plans what a file of a segment grew by. Tells whether that is all that it has.

        Raises:
            NoRoomError: the batch has no room for it.
        """
        known = self.state.segments.get(key)
        position = self._position(key)
        most = None if self._quota.nbytes is None else self._quota.nbytes - self._nbytes
        try:
            grown = self._grown(file, position, most)
        except seglake.ReplacedError as error:
            return self._take_other(file, key, error)
        if grown is None:
            self._see(file, key, is_all=True)
            return True
        identity = grown.position.identity
        if identity is not None and identity != key and key.startswith(_UNKNOWN):
            # Its first record is there by now.
            if identity in self.state.segments and position is None:
                return self._take(file, identity)
            if identity in self.state.segments:
                return self._refuse(file, key, _same_beginning(file, identity))
            if known is not None:
                self.state.forget_segment(key)
            key = identity
        if grown.pending_bytes:
            self._check_pending(file, key, grown)
        if identity is None and position is None and grown.found and self._has_told(file, key, grown):
            return grown.is_all
        self._note(file, key, known, position, grown)
        self._see(file, key, is_all=grown.is_all)
        return grown.is_all

    def _check_pending(self, file: SegmentFile, key: str, grown: Grown) -> None:
        """Says it where records follow what a file has not finished: it is damage, and they wait.

        Raises:
            seglake.DamageError: so it is, and the mode is FAILFAST.
        """
        place = key, grown.position.byte_offset
        if self._memory.notes.has_said(*place):
            return
        damage = self._look.waiting_damage(file, grown.position)
        if damage is None:
            return
        if self._look.options.mode == "FAILFAST":
            raise damage
        self._memory.notes.add("damage", str(damage), once=place)

    def _has_told(self, file: SegmentFile, key: str, grown: Grown) -> bool:
        """Tells whether a file without a sound record is one that was read under another name, which it has no more."""
        text = grown.position.to_json()
        for other in self._memory.unlisted:
            known = self.state.segments.get(other)
            if known is None or not other.startswith(_UNKNOWN) or known.path in self._files:
                continue
            if known.position == text:
                self.state.forget_segment(other)
                del self._memory.unlisted[other]
                self.state.read(key, ReadSegment(text, file.path, known.batch))
                self._see(file, key, is_all=grown.is_all)
                return True
        return False

    def _note(
        self, file: SegmentFile, key: str, known: ReadSegment | None, position: Position | None, grown: Grown
    ) -> None:
        end = grown.position
        if grown.found:
            text = end.to_json()
            start = None if known is None else known.position
            self.batch.append(Growth(file.path, start, text, grown.nbytes))
            self._nbytes += grown.nbytes
            self.state.read(key, ReadSegment(text, file.path, self._number))
        elif known is None or position is None:
            text = end.to_json() if end.byte_offset else None
            self.state.read(key, ReadSegment(text, file.path, 0))
        elif end.format != position.format or known.path not in self._files:
            # It was sealed or renamed.
            self.state.read(key, ReadSegment(end.to_json(), file.path, known.batch))

    def _see(self, file: SegmentFile, key: str, *, is_all: bool) -> None:
        self.state.see(file.path, SeenFile(file.settled_ns(self._listed_ns) if is_all else None, file.size, key))

    def _take_other(self, file: SegmentFile, key: str, error: seglake.ReplacedError) -> bool:
        """Plans what there is of a file that does not go on where its segment was read to."""
        known = self.state.segments[key]
        if key.startswith(_UNKNOWN) and file.path not in self.state.files:
            # Nothing but its name was that of a file which has been gone since.
            self.state.forget_segment(key)
            self._memory.unlisted.pop(key, None)
            return self._take(file, key)
        read = self._files.get(known.path)
        if read is not None and read.path != file.path and self._look.contains(file, read):
            # A copy, or what the segment was sealed from: nothing in it was not read, or is not read from the other.
            self._see(file, key, is_all=True)
            return True
        if file.path in self.state.files:
            own = self._own_key(file)
            if own != key:
                others = [path for path, new in self._new.items() if new == key]
                others += [path for path, seen in self.state.files.items() if seen.segment == key and path != file.path]
                if not others and self._has_moved(file, key):
                    return False  # the next listing has both
                if others or self._skips_replaced:
                    if not others:
                        self._memory.notes.add(
                            "another", f"{error}. Option onReplaced is skip: it is read as another file"
                        )
                    self.state.forget_file(file.path)
                    self._new[file.path] = own
                    return self._take(file, own)
                return self._refuse(file, key, error, is_another=True)
        return self._refuse(file, key, error)

    def _has_moved(self, file: SegmentFile, key: str) -> bool:
        """Tells whether a segment is in a file that was not listed: the listing was before it was renamed."""
        paths, keys = self._moved
        if file.path not in paths:
            # One listing is for all files that are others by now, as there may be many.
            paths = {file.path, *self._others()}
            again = self._list_again().files.items()
            unknown = [other for path, other in again if path not in self._files or path not in self.state.files]
            keys = {own for other in unknown if (own := self._key_now(other)) is not None}
            self._moved = paths, keys
        return key in keys

    def _others(self) -> Iterator[str]:
        """Yields the paths, of those that are still to be looked at, where another file is by now."""
        for file in self._order[self._at :]:
            seen = self.state.files.get(file.path)
            if seen is not None and self._key_now(file) != seen.segment:
                yield file.path

    def _key_now(self, file: SegmentFile) -> str | None:
        """Returns the key by what a file has now; None if it is gone or no segment."""
        try:
            return self._own_key(file)
        except seglake.FormatError:
            return None
        except OSError as error:
            if not _is_gone(error, file):
                raise
            return None

    def _refuse(self, file: SegmentFile, key: str, error: seglake.ReplacedError, *, is_another: bool = False) -> bool:
        """Ends the query at a file that does not go on as its segment; with option onReplaced=skip, passes it by.

        Args:
            file: the file.
            key: that of the segment.
            error: how it differs.
            is_another: whether it begins with another record, so that the option would have it read.
        """
        if not self._skips_replaced:
            known = self.state.segments.get(key)
            if is_another:
                advice = (
                    "The stream has read another file with this name. Put that back, or set option onReplaced to "
                    f"skip, which reads this one too. {NEW_CHECKPOINT}"
                )
            elif known is not None and known.path != file.path and known.path in self._files:
                advice = (
                    f"It begins with the same record as {printable_path(known.path)}, which the stream has read, and "
                    "goes on otherwise. Move it into another folder, and stream that by a query of its own"
                )
            else:
                advice = (
                    "The stream has read a file that begins with the same record, and goes on otherwise. Put that "
                    f"back, and move this one into another folder. {NEW_CHECKPOINT}"
                )
            raise seglake.ReplacedError(
                path=error.path or file.path,
                byte_offset=error.byte_offset,
                expected=error.expected,
                actual=error.actual,
                next=advice,
            ) from None
        self._memory.notes.add("replaced", f"{error}. Option onReplaced is skip: what it has is not read")
        self._see(file, key, is_all=True)
        return True


def _is_gone(error: OSError, file: SegmentFile) -> bool:
    """Tells whether a file is gone or another since it was listed. The next listing has it, under its name by now."""
    if isinstance(error, FileNotFoundError):
        return error.filename == file.path
    return error.errno == errno.ESTALE  # elsewhere


def _same_beginning(file: SegmentFile, identity: str) -> seglake.ReplacedError:
    return seglake.ReplacedError(
        path=printable_path(file.path),
        byte_offset=0,
        expected="a file that begins with another record than those that were read",
        actual=f"the beginning of {identity} after damage",
    )
