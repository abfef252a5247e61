"""Files as the source of a stream: new ones, and what others grew by, batch by batch."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from seglake._text import printable_path
from seglake.read.formats import format_named
from seglake.stores import SegmentFile, find_files
from seglake.stores.patterns import is_hidden
from seglake.tracking.tasks import Growth, Slice

from ..stores import is_elsewhere
from .log import Quota
from .look import Look, alike
from .offset import StateOffset
from .plan import BatchPlan, Listed, Memory
from .state import State, StateStore
from .state_folder import state_folders

if TYPE_CHECKING:
    from ..decode import Decoder
    from ..options import ReadOptions, StreamOptions

__all__ = ["FolderStream"]


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
        about = {
            "path": [path if is_elsewhere(path) else str(Path(path).absolute()) for path in options.paths],
            "option segmentFormat": alike(format, options.format_options)[0],
            "option dialect": options.format_options.dialect
            if "dialect" in format_named(format).open_options
            else None,
        }
        self._store = StateStore(state_folders(own.state_location or "", options.stores), about, own.retained)
        self._look = Look(options, format)
        # The state that the last batch began with, and the one that it ends with.
        self._states: dict[StateOffset, State] = {}
        self._memory = Memory()
        self._available: _Available | None = None

    def stop_at_now(self) -> None:
        """Notes what there is now: nothing else is read from then on."""
        self._available = _Available(self._listed(), set())

    def next(self, start: StateOffset, quota: Quota) -> StateOffset:
        """Returns the end of a batch that begins at `start`, with its state on the disk; `start` if there is nothing.

        Raises:
            seglake.ReplacedError: a file is not the one that was read.
            seglake.SeglakeError: a file cannot be read.
            ValueError: the state of `start` is not there, or was made with other options.
        """
        with _uncollected():
            return self._next(start, quota)

    def _next(self, start: StateOffset, quota: Quota) -> StateOffset:
        before = self._states.get(start) or self._store.load(start)
        self._states = {start: before}
        skips = self._own.starting_from == "now" and start.number == 0
        listed, done = self._available or _Available(self._listed(), set())
        plan = BatchPlan(
            self._look, self._decoder, before.copy(), Quota() if skips else quota, self._memory, self._listed
        )
        plan.make(listed, done)
        if not skips and not plan.batch:
            # What was looked at is not looked at again, until a restart.
            self._states = {start: plan.state}
            return start
        # A stream from now on has a first batch of nothing: the checkpoint is to have where it began.
        after = self._store.write(plan.state, [] if skips else plan.batch)
        self._states[after.offset] = after
        return after.offset

    def slices(self, end: StateOffset) -> list[Slice]:
        """Returns what the batch reads that ends at an offset."""
        batch = self._store.batch(end)
        files = [(SegmentFile(own.path, own.path, own.nbytes), own) for own in batch]
        return [
            Slice(file, file.size, growth=own) if isinstance(own, Growth) else Slice(file, 0, bad=own.cause)
            for file, own in files
        ]

    @property
    def _own(self) -> StreamOptions:
        own = self.options.stream
        assert own is not None
        return own

    def _listed(self) -> Listed:
        options = self.options
        listing = find_files(options.paths, options.filter, options.stores)
        if listing.logs:
            raise ValueError(
                f"{printable_path(listing.logs[0].path)}: this is the folder of a log, and option stateLocation is for "
                "other files. Stream the log alone, without that option"
            )
        location = self._store.folders.location
        streamed = [str(folder) for folder in listing.folders]
        if is_elsewhere(location):
            streamed = [path.rstrip("/") for path in options.paths if is_elsewhere(path)]
        else:
            location = str(Path(location).resolve())
        for folder in streamed:
            below = location.removeprefix(folder)
            if below != location and below[:1] in ("", "/") and not any(map(is_hidden, below.split("/"))):
                raise ValueError(
                    f"option stateLocation: {printable_path(location)}: expected a folder outside of those that are "
                    f"streamed, this is below {printable_path(folder)}"
                )
        return Listed({file.path: file for file in listing.files}, listing.listed_ns)


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


class _Available(NamedTuple):
    """The files of a query that ends with them, and those that were read to their ends."""

    listed: Listed
    done: set[str]
