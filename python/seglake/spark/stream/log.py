"""A log as the source of a stream: what comes to its disk, batch by batch."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

import seglake
from seglake._native import ListedSegment
from seglake._text import printable_path
from seglake.stores import FileFilter, SegmentFile, find_files
from seglake.tracking.tasks import After, Slice

from ..notes import Notes
from .offset import NEW_CHECKPOINT, LogOffset

if TYPE_CHECKING:
    from ..options import ReadOptions

__all__ = ["LogStream", "Quota", "streaming_files"]

_LOG: Final = logging.getLogger(__name__)


class Quota(NamedTuple):
    """The most that a batch takes. One segment it takes in any case; None is no limit."""

    files: int | None = None
    nbytes: int | None = None


class _Listed(NamedTuple):
    """A segment of the log as it is now: the file, and the offset at which what is on the disk of it ends."""

    file: SegmentFile
    segment: ListedSegment
    end: LogOffset


def streaming_files(path: str) -> str:
    """Returns how to stream what is at a path if that is no log, for errors."""
    folder = re.split(r"/?[^/]*[*?\[{]", path)[0].rstrip("/")
    return (
        f'To stream other files, add .option("stateLocation", "{printable_path(folder)}-states"): a folder outside of '
        "theirs for what was read, to keep with the checkpoint"
    )


@dataclass(frozen=True)
class LogStream:
    """Plans the batches of a log.

    Attributes:
        folder: the log's folder.
        options: what the stream was asked for.
        notes: what it said of files.
    """

    folder: str
    options: ReadOptions
    notes: Notes = field(default_factory=Notes, compare=False)

    def begin(self, starting_from: str) -> LogOffset:
        """Returns where the stream begins: at the "start", "now", or after the record of a UUID.

        Raises:
            seglake.exceptions.SegmentGoneError: retention may have removed records after that of the UUID.
        """
        if starting_from == "start":
            return LogOffset()
        if starting_from == "now":
            return self.end()
        listed, last = self._listed(), UUID(starting_from)
        within = [each for each in listed if each.segment.first <= last]
        if within:
            return LogOffset(within[-1].end.sequence, within[-1].end.first, 0, str(last))
        if listed and listed[0].segment.sequence > 1:
            raise self._gone(listed[0].segment.sequence - 1)
        return LogOffset()

    def end(self) -> LogOffset:
        """Returns the end of what is on the disk.

        Raises:
            ValueError: the folder is not that of a log, or has other files too.
        """
        listed = self._listed()
        return listed[-1].end if listed else LogOffset()

    def next(self, start: LogOffset, quota: Quota, most: LogOffset | None = None) -> LogOffset:
        """Returns the end of a batch that begins at `start`: what is on the disk, as far as the quota allows.

        Args:
            start: where the batch begins.
            quota: the most that it takes.
            most: where it ends at the latest.

        Raises:
            seglake.exceptions.SegmentGoneError: retention removed a segment that was not read.
            seglake.FormatError: another log is in the folder by now.
        """
        listed = self._listed()
        end = listed[-1].end if listed else LogOffset()
        if most is not None and most.is_before(end):
            end = most
        if not start.is_before(end):
            return start
        self._check(start, listed)
        reached, files, nbytes = start, 0, 0
        for piece in _between(start, end, listed):
            files, nbytes = files + 1, nbytes + piece.size
            if files > 1 and (files > (quota.files or files) or nbytes > (quota.nbytes or nbytes)):
                break
            reached = _end_of(piece, end)
        return reached

    def slices(self, start: LogOffset, end: LogOffset) -> list[Slice]:
        """Returns what a batch from `start` to `end` reads: for the same offsets always the same records.

        Raises:
            seglake.exceptions.SegmentGoneError: retention removed a segment of it.
            seglake.FormatError: another log is in the folder by now, or its synced mark is before the end of the batch.
        """
        start = end.since or start
        if not start.is_before(end):
            return []
        listed = self._listed()
        self._check(start, listed)
        self._check(end, listed)
        return list(_between(start, end, listed))

    def _listed(self) -> list[_Listed]:
        options = self.options
        listing = find_files([self.folder], FileFilter(), options.stores, key=options.read_key)
        with self.notes.written(_LOG) as notes:
            for unread in listing.unread:
                notes.add(unread.path, str(unread), once=(unread.path, unread))
        if not listing.logs:
            raise ValueError(
                f"{printable_path(self.folder)}: expected the folder of a log to stream from. "
                f"{streaming_files(self.folder)}"
            )
        foreign = next((file for file in listing.files if file.segment is None), None)
        if foreign is not None:
            raise ValueError(
                f"{printable_path(foreign.path)}: expected nothing but the segments of a log in its folder. The stream "
                "would not read this file: move it elsewhere"
            )
        segments = [(file, file.segment) for file in listing.files if file.segment is not None]
        synced = listing.logs[0].synced if listing.logs else None
        listed: list[_Listed] = []
        for file, segment in segments:
            end = LogOffset(segment.sequence, str(segment.first))
            if segment.is_open:
                if synced is None or synced.sequence != segment.sequence:
                    continue  # nothing of it is known to be on the disk
                end = LogOffset(segment.sequence, end.first, synced.byte_offset, str(synced.last))
            listed.append(_Listed(file, segment, end))
        return listed

    def _check(self, offset: LogOffset, listed: Sequence[_Listed]) -> None:
        """Refuses a log that has not all of what comes before and after an offset."""
        if offset.first is None:
            return
        there = {each.end.sequence: each.end for each in listed}
        found = there.get(offset.sequence)
        if found is None:
            first = listed[0].end.sequence if listed else 0
            if first > offset.sequence:
                # All that follows a segment that was read wholly is there.
                if offset.byte is None and first == offset.sequence + 1:
                    return
                raise self._gone(offset.sequence if offset.byte is not None else offset.sequence + 1)
        elif found.first == offset.first and not found.is_before(offset):
            return
        state = (
            "no such segment, or nothing of it that is known to be on the disk"
            if found is None
            else f"{found.sequence:020}-{found.first}"
            if found.first != offset.first
            else f"{found.byte} bytes that are known to be on the disk"
        )
        raise seglake.FormatError(
            f"the stream has read segment {offset.sequence:020}-{offset.first} up to "
            f"{'its end' if offset.byte is None else f'offset {offset.byte}'}, found {state}",
            path=self.folder,
            next="If power was lost, open the log for writing once, which proves what is on the disk. If another log "
            f"is in the folder, the stream cannot go on. {NEW_CHECKPOINT}",
        )

    def _gone(self, sequence: int) -> seglake.exceptions.SegmentGoneError:
        return seglake.exceptions.SegmentGoneError(path=self.folder, sequence=sequence)


def _between(start: LogOffset, end: LogOffset, listed: Sequence[_Listed]) -> list[Slice]:
    """Returns what there is of each segment after `start` and up to `end`."""
    slices: list[Slice] = []
    for file, segment, there in listed:
        before = there.sequence < start.sequence or (there.sequence == start.sequence and start.byte is None)
        if before or there.sequence > end.sequence:
            continue
        after = None
        if there.sequence == start.sequence and start.last is not None and start.byte is not None:
            after = After(start.byte, UUID(start.last))
        if there.sequence == end.sequence and end.byte is not None:
            # As it was at the end of the batch, whatever has been appended since.
            own = segment.up_to(end.byte, end.last)
            file = file._replace(size=end.byte, segment=own)
        size = max(0, file.size - (after.byte if after is not None else 0))
        slices.append(Slice(file, size, None, after))
    return slices


def _end_of(piece: Slice, end: LogOffset) -> LogOffset:
    """Returns the offset at which a slice of a batch that may go up to `end` ends."""
    segment = piece.file.segment
    assert segment is not None
    return end if segment.sequence == end.sequence else LogOffset(segment.sequence, str(segment.first))
