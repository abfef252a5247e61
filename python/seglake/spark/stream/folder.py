"""Files as the source of a stream: new ones, and what others grew by, batch by batch."""

from __future__ import annotations

import gc
import secrets
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from seglake._text import printable_path
from seglake.read.formats import format_named
from seglake.stores import FileListing, find_files
from seglake.stores.patterns import is_hidden
from seglake.tracking.log import CommitLog
from seglake.tracking.place import place_of
from seglake.tracking.tasks import Slice

from ..stores import is_elsewhere
from .log import Quota
from .look import Look, alike
from .offset import NEW_CHECKPOINT, StateOffset
from .plan import BatchPlan, Memory
from .state import BatchEntry, StreamState

if TYPE_CHECKING:
    from ..decode import Decoder
    from ..options import ReadOptions, StreamOptions

__all__ = ["FolderStream"]

# A checkpoint of many files is large, and a restart reads the entries after one.
_CHECKPOINT_EVERY: Final = 100


class FolderStream:
    """Plans the batches of a stream of files.

    Args:
        decoder: reads the files.
    """

    def __init__(self, decoder: Decoder) -> None:
        options: ReadOptions = decoder.options
        format: str = decoder.format
        self.options: ReadOptions = options
        self.format: str = format
        self._decoder = decoder
        own = self._own
        if own.starting_from not in ("start", "now"):
            raise ValueError(
                f"option startingFrom is {own.starting_from!r}: expected start or now; a UUID is a place in a log, and "
                "this is a stream of files"
            )
        self._about: dict[str, Any] = {
            "path": [path if is_elsewhere(path) else str(Path(path).absolute()) for path in options.paths],
            "option segmentFormat": alike(format, options.format_options)[0],
            "option dialect": options.format_options.dialect
            if "dialect" in format_named(format).open_options
            else None,
        }
        self._location = place_of(own.state_location or "", options.stores.storage_options).uri()
        self._look = Look(options, format)
        self._memory = Memory()
        # The files of a query that ends with them, and those that were read to their ends.
        self._available: tuple[FileListing, set[str]] | None = None
        # Where the last batch ended, with what was seen since, and what of it no entry has; and the entry after it, if
        # that was planned before a restart.
        self._last: tuple[StateOffset, StreamState] | None = None
        self._unsaved = BatchEntry()
        self._planned: BatchEntry | None = None

    def stop_at_now(self) -> None:
        """Notes what there is now: nothing else is read from then on."""
        self._available = self._listed(), set()

    def next(self, start: StateOffset, quota: Quota) -> StateOffset:
        """Returns the end of a batch that begins at `start`, with its entry on the disk; `start` if there is nothing.

        Raises:
            seglake.exceptions.ReplacedError: the mode is FAILFAST, and a file conflicts with what was read.
            seglake.SeglakeError: a file cannot be read.
            ValueError: the state of `start` is not there, or was made with other options.
        """
        with _uncollected():
            return self._next(start, quota)

    def _next(self, start: StateOffset, quota: Quota) -> StateOffset:
        state = self._state(start)
        if start.stream is not None and self._planned is not None:
            # The query ended before Spark noted it.
            return self._ended(start.stream, state, self._planned)
        skips = self._own.starting_from == "now" and start.number == 0
        plan = BatchPlan(self._look, self._decoder, state, Quota() if skips else quota, self._memory)
        entry = plan.make(*(self._available or (self._listed(), set[str]())))
        if not skips and not entry.batch:
            # What was looked at is not looked at again, until a restart.
            plan.forget(self._own.retained, self._unsaved)
            state.see(entry)
            self._unsaved.files |= entry.files
            for path in entry.gone:
                self._unsaved.files.pop(path, None)
            self._unsaved.gone = entry.gone
            self._unsaved.ends |= entry.ends
            self._unsaved.forgotten += entry.forgotten
            return start
        if skips:
            # A stream from now on has a first batch of nothing: the checkpoint is to have where it began.
            entry = plan.skipped()
        plan.add(self._unsaved)
        entry.about = {} if state.about else self._about
        plan.forget(self._own.retained, self._unsaved)
        stream = start.stream or secrets.token_hex(8)
        log = self._log(stream)
        if not log.put(state.number + 1, entry):
            # Another query with this checkpoint was first: its batch is this one's, too.
            self._last = None
            if self._available is not None:
                self._available = self._available[0], set()
            return self._next(start, quota)
        return self._ended(stream, state, entry)

    def _ended(self, stream: str, state: StreamState, entry: BatchEntry) -> StateOffset:
        """Goes on to the end of a batch."""
        state.add(state.number + 1, entry)
        offset = StateOffset.of(stream, state)
        self._last, self._unsaved, self._planned = (offset, state), BatchEntry(), None
        retained = max(self._own.retained, 1)
        if state.number % min(_CHECKPOINT_EVERY, retained) == 0:
            log = self._log(stream)
            log.save(state)
            log.forget(state.number - retained)
        return offset

    def slices(self, end: StateOffset) -> list[Slice]:
        """Returns what the batch reads that ends at an offset."""
        if end.stream is None:
            return []
        self._state(end)
        return [each.to_slice() for each in self._log(end.stream).read(end.number).batch]

    def available(self) -> dict[str, Any] | None:
        """Returns what Spark shows as the latest offset: where the last batch ended, and what has not been read."""
        return None if self._last is None else self._last[0].to_json()

    @property
    def _own(self) -> StreamOptions:
        own = self.options.stream
        assert own is not None
        return own

    def _log(self, stream: str) -> CommitLog[BatchEntry, StreamState]:
        place = place_of(f"{self._location}/{stream}", self.options.stores.storage_options)
        return CommitLog(place, BatchEntry, StreamState, ValueError, f"Restore it. {NEW_CHECKPOINT}")

    def _state(self, offset: StateOffset) -> StreamState:
        """Returns the state at an offset, and begins there.

        Raises:
            ValueError: it is not there, or was made with other options.
        """
        if self._last is not None and self._last[0] == offset:
            return self._last[1]
        state, self._planned = StreamState(), None
        if offset.stream is not None:
            log = self._log(offset.stream)
            state, self._planned = log.load(offset.number), log.find(offset.number + 1)
            if state.number != offset.number:
                raise ValueError(
                    f"option stateLocation: {printable_path(self._location)}: expected state {offset.number} of stream "
                    f"{offset.stream}, which the checkpoint has, found {state.number or 'none'}. Give the query the "
                    f"folder that it had when it began. If its states are lost, it cannot go on. {NEW_CHECKPOINT}"
                )
            for name, own in self._about.items():
                before = state.about.get(name)
                if before != own:
                    raise ValueError(
                        f"{name} is {own!r}: expected {before!r}, with which the checkpoint was made. Give the query "
                        "what it had then, or another checkpoint"
                    )
        self._last, self._unsaved = (offset, state), BatchEntry()
        return state

    def _listed(self) -> FileListing:
        options = self.options
        listing = find_files(options.paths, options.filter, options.stores)
        if listing.logs:
            raise ValueError(
                f"{printable_path(listing.logs[0].path)}: this is the folder of a log, and option stateLocation is for "
                "other files. Stream the log alone, without that option"
            )
        location = self._location
        streamed = [str(folder) for folder in listing.folders]
        if is_elsewhere(location):
            streamed = [path.rstrip("/") for path in options.paths if is_elsewhere(path)]
        for folder in streamed:
            below = location.removeprefix(folder)
            if below != location and below[:1] in ("", "/") and not any(map(is_hidden, below.split("/"))):
                raise ValueError(
                    f"option stateLocation: {printable_path(location)}: expected a folder outside of those that are "
                    f"streamed, this is below {printable_path(folder)}"
                )
        return listing


@contextmanager
def _uncollected() -> Generator[None]:
    """Keeps Python from looking for garbage among hundreds of thousands of files, which stay."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
