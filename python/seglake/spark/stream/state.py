"""States of a stream of files: what was read of each source, durable before Spark notes the end of a batch.

Each batch is an entry of a log, which says what was seen of files and exactly what the batch reads. A batch that is in
the log is that batch for ever: a query that Spark starts anew before it has noted its end gets it once more.
"""

from __future__ import annotations

import os
from typing import Any

import msgspec

from seglake._text import path_text
from seglake.stores import SegmentFile
from seglake.tracking.state import FileState
from seglake.tracking.tasks import Growth, Slice

__all__ = ["BatchEntry", "Planned", "SourceEnd", "StreamState"]


class SourceEnd(msgspec.Struct, frozen=True):
    """How far a source was read, whatever its files are called.

    Attributes:
        position: the JSON of a `seglake.incremental.Position`.
        path: the file that it was last read from.
    """

    position: str
    path: str


class Planned(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a batch reads of a file.

    Attributes:
        path: the file, as it was called then.
        source: the source that it has records of.
        nbytes: about how many bytes that is.
        start: the JSON of the `seglake.incremental.Position` after which it begins; None is the beginning.
        end: the JSON of the one at which it ends; None of a file of which nothing can be read.
        cause: why that is.
        name: the bytes of a path that is no UTF-8.
    """

    path: str
    source: str
    nbytes: int
    start: str | None = None
    end: str | None = None
    cause: str = ""
    name: bytes = b""

    @classmethod
    def of(
        cls, path: str, source: str, nbytes: int, start: str | None = None, end: str | None = None, cause: str = ""
    ) -> Planned:
        """Makes it of a file with any path."""
        text = path_text(path)
        return cls(text, source, nbytes, start, end, cause, b"" if text == path else os.fsencode(path))

    def to_slice(self) -> Slice:
        """Returns it as tasks take it."""
        path = os.fsdecode(self.name) if self.name else self.path
        file = SegmentFile(path, path, self.nbytes)
        if self.end is None:
            return Slice(file, 0, bad=self.cause)
        return Slice(file, self.nbytes, growth=Growth(path, self.start, self.end, self.nbytes))


class BatchEntry(msgspec.Struct, omit_defaults=True):
    """What one batch commits.

    Attributes:
        about: what the stream was asked for that a restart must not change, by the names of the options.
        files: files as they were seen.
        gone: the paths of files that are not there any more.
        batch: what the batch reads.
        ends: how far sources are read beside that.
        forgotten: sources of which no file was there for long.
        waiting: how many files have more to read, and about how many bytes.
        newest: the file that was modified last, and when, in nanoseconds since 1970.
        last: the file that was looked at last: the next batch begins after it.
        version: of the log.
    """

    about: dict[str, Any] = {}
    files: dict[str, FileState] = {}
    gone: list[str] = []
    batch: list[Planned] = []
    ends: dict[str, SourceEnd] = {}
    forgotten: list[str] = []
    waiting: tuple[int, int] = (0, 0)
    newest: tuple[str, int] = ("", 0)
    last: str = ""
    version: int = 1


class StreamState(msgspec.Struct):
    """The sum of all entries.

    Attributes:
        number: that of the last entry.
        about: what the stream was asked for, as in an entry.
        files: what was seen of each file, by its path.
        sources: how far each source was read.
        read: how many files were read, and about how many bytes.
        waiting, newest, last: as in the last entry.
        version: of the log.
    """

    number: int = 0
    about: dict[str, Any] = {}
    files: dict[str, FileState] = {}
    sources: dict[str, SourceEnd] = {}
    read: tuple[int, int] = (0, 0)
    waiting: tuple[int, int] = (0, 0)
    newest: tuple[str, int] = ("", 0)
    last: str = ""
    version: int = 1

    def add(self, number: int, entry: BatchEntry) -> None:
        """Adds the next entry."""
        self.number = number
        self.about = entry.about or self.about
        self.see(entry)
        files, nbytes = self.read
        self.read = files + len(entry.batch), nbytes + sum(each.nbytes for each in entry.batch)
        self.waiting, self.newest, self.last = entry.waiting, max(self.newest, entry.newest, key=_when), entry.last

    def see(self, entry: BatchEntry) -> None:
        """Adds what an entry says of files and sources."""
        self.files.update(entry.files)
        for path in entry.gone:
            self.files.pop(path, None)
        ends = {each.source: SourceEnd(each.end, each.path) for each in entry.batch if each.end is not None}
        self.sources.update(ends)
        self.sources.update(entry.ends)
        for source in entry.forgotten:
            self.sources.pop(source, None)


def _when(newest: tuple[str, int]) -> int:
    return newest[1]
