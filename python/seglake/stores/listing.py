"""What is looked for in folders, and what was found."""

import fnmatch
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from .patterns import alternatives

if TYPE_CHECKING:
    from seglake._native import ListedSegment
    from seglake._types import LogMark, LogUnread

__all__ = ["IN_A_LOG", "FileFilter", "FileListing", "FoundLog", "SegmentFile"]

IN_A_LOG: Final = "a folder in that of a log"
"""Why a folder is not entered."""
# A file system may give two writes one time. A file that changed so recently is looked at again the next time.
_YOUNG_NS: Final = 2_000_000_000


class SegmentFile(NamedTuple):
    """A file to read.

    Attributes:
        path: its absolute path or URI, as it was named or found.
        real_path: its path without links; the same for a URI.
        size: its size in bytes.
        modified: when it was modified, in seconds since 1970, as far as its store says; None on mounted file systems.
        segment: of a segment of a log, that segment as it was listed, which is to be opened instead of the path.
        modified_ns: when it was modified, in nanoseconds since 1970, on mounted file systems; None of a log's segment.
        changed_ns: when anything of it was changed, likewise, as no program can set it; None in a store.
        inode: its number in its file system; None in a store.
    """

    path: str
    real_path: str
    size: int
    modified: float | None = None
    segment: "ListedSegment | None" = None
    modified_ns: int | None = None
    changed_ns: int | None = None
    inode: int | None = None

    def settled_ns(self, listed_ns: int) -> int | None:
        """Returns when it was modified; None if it may have changed at the same time since it was listed.

        Args:
            listed_ns: when the listing began, in nanoseconds since 1970 by the clock of this machine.
        """
        modified = self.modified_ns
        if modified is None and self.modified is not None:
            modified = int(self.modified * 1_000_000_000)  # elsewhere
        return modified if modified is not None and listed_ns - modified > _YOUNG_NS else None


class FoundLog(NamedTuple):
    """A folder that is a log.

    Attributes:
        path: its path, as it was named or found.
        segments: how many segments it had when it was listed.
        synced: how far it was known to be on the disk; None while nothing was.
        unread: what is left out of it; None where that is nothing, or its segment is not asked for.
    """

    path: str
    segments: int
    synced: "LogMark | None"
    unread: "LogUnread | None"


@dataclass(frozen=True)
class FileFilter:
    """Which files of a folder are read.

    Attributes:
        recursive: look into folders below the ones named.
        name_pattern: only files whose name matches, such as `*.active`; or any of several patterns.
        modified_after: only files modified after this, in seconds since 1970.
        modified_before: only files modified before this, in seconds since 1970.
        goes_on: note folders that cannot be listed, instead of raising what is said of the first.
    """

    recursive: bool = False
    name_pattern: str | Sequence[str] | None = None
    modified_after: float | None = None
    modified_before: float | None = None
    goes_on: bool = False

    @property
    def is_by_time(self) -> bool:
        """Whether it asks when files were modified."""
        return self.modified_after is not None or self.modified_before is not None

    def accepts(self, name: str, modified: float) -> bool:
        """Tells whether a file of this name and modification time (seconds since 1970) is to be read."""
        if self.modified_after is not None and not modified > self.modified_after:
            return False
        if self.modified_before is not None and not modified < self.modified_before:
            return False
        if self.name_pattern is None:
            return True
        patterns = [self.name_pattern] if isinstance(self.name_pattern, str) else self.name_pattern
        return any(fnmatch.fnmatchcase(name, each) for pattern in patterns for each in alternatives(pattern))


@dataclass
class FileListing:
    """What was found: the files to read in the order of their paths, and what was passed over.

    Attributes:
        files: each once, also where several paths lead to it.
        skipped: path and reason of each thing that is neither a regular file nor an ordinary folder.
        folders: the folders that were searched, without links in their paths; not those below them.
        folders_not_entered: how many folders were left alone because the look-up is not recursive.
        left_out: how many files the filter does not accept.
        not_listed: what was said of each folder that cannot be listed.
        logs: the folders that are logs.
        listed_ns: when the listing began, in nanoseconds since 1970.
    """

    files: list[SegmentFile] = field(default_factory=list[SegmentFile])
    skipped: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    folders: list[Path] = field(default_factory=list[Path])
    folders_not_entered: int = 0
    left_out: int = 0
    not_listed: list[Exception] = field(default_factory=list[Exception])
    logs: list[FoundLog] = field(default_factory=list[FoundLog])
    listed_ns: int = field(default_factory=time.time_ns)

    @property
    def unread(self) -> "list[LogUnread]":
        """What is left out of logs."""
        return [log.unread for log in self.logs if log.unread is not None]
