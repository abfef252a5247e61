"""What was read of a file, as the ingest and streams keep it."""

from __future__ import annotations

from typing import Final

import msgspec

import seglake

from .status import FileStatus

__all__ = ["BYTE_COLUMNS", "FileState", "Sums"]

BYTE_COLUMNS: Final = {
    "record": "record_bytes",
    "chunk": "record_bytes",
    "block": "record_bytes",
    "header": "header_bytes",
    "trailer": "header_bytes",
    "padding": "padding_bytes",
    "unused": "unused_bytes",
    "unproven": "unused_bytes",
    "pending": "unused_bytes",
    "torn_tail": "torn_bytes",
    "corrupt": "corrupt_bytes",
    "repaired": "corrupt_bytes",
}
"""The kinds of the ledger, and the columns of `files` that their bytes count for."""


class Sums(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was read of a file: its records, its damaged ranges, and what its bytes are.

    The timestamps are microseconds since 1970, of the first and the last moment that a record has.
    """

    records: int = 0
    ranges: int = 0
    record_bytes: int = 0
    header_bytes: int = 0
    padding_bytes: int = 0
    unused_bytes: int = 0
    torn_bytes: int = 0
    corrupt_bytes: int = 0
    first_timestamp: int | None = None
    last_timestamp: int | None = None

    @property
    def nbytes(self) -> int:
        """How many bytes these are."""
        return sum(getattr(self, name) for name in set(BYTE_COLUMNS.values()))

    @classmethod
    def of(cls, report: seglake.Report, ranges: int) -> Sums:
        """Returns those of one pass, which found as many damaged ranges."""
        sizes = dict.fromkeys(BYTE_COLUMNS.values(), 0)
        for total in report.totals:
            sizes[BYTE_COLUMNS[total.kind]] += total.nbytes
        first, last = report.first_timestamp_us, report.last_timestamp_us
        return cls(report.records, ranges, first_timestamp=first, last_timestamp=last, **sizes)

    def plus(self, more: Sums) -> Sums:
        """Returns the sums of both."""
        known = [each for each in (self, more) if each.first_timestamp is not None]
        counted = [name for name in self.__struct_fields__ if not name.endswith("_timestamp")]
        return Sums(
            **{name: getattr(self, name) + getattr(more, name) for name in counted},
            first_timestamp=min((each.first_timestamp for each in known), default=None),  # pyright: ignore
            last_timestamp=max((each.last_timestamp for each in known), default=None),  # pyright: ignore
        )


class FileState(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was found of a file when it was read last.

    Attributes:
        path: its path without links, as text.
        size: its size in bytes, as far as it was read.
        modified: when it was modified, in nanoseconds since 1970; None if it may have changed since at the same time.
        changed: when anything of it was changed, likewise, as no program can set it; None in a store.
        inode: its number in its file system; None in a store.
        sidecar: size and time of its parity sidecar; None if it has none.
        status: what became of it.
        format: its format, if that is known.
        source: the source of its records; the path as long as it has none.
        position: where reading goes on, as JSON; None if it is to be read whole.
        sums: what was read up to the position.
        pending_bytes: the unfinished tail after it.
        error: why nothing of it was read.
    """

    path: str
    size: int
    modified: int | None = None
    changed: int | None = None
    inode: int | None = None
    sidecar: str | None = None
    status: FileStatus = "sound"
    format: str | None = None
    source: str = ""
    position: str | None = None
    sums: Sums = Sums()
    pending_bytes: int = 0
    error: str | None = None
