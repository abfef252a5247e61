"""What goes wrong, as exceptions with fields. Their texts are made of these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from ._text import printable_path


class SeglakeError(Exception):
    """The base of all that only this library raises. A bug in it raises this class itself: please report it.

    Attributes:
        reason: what is wrong, without the file and without advice.
        path: the file, None where it has no name or none is meant.
        next: what to do next, None where nothing is known.
    """

    _before_next = ": "

    def __init__(self, reason: str, *, path: str | None = None, next: str | None = None) -> None:
        where = "" if path is None else f"{printable_path(path)}: "
        super().__init__(where + reason + ("" if next is None else self._before_next + next))
        self.reason = reason
        self.path = path
        self.next = next

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), self.args), dict(self.__dict__))


class FormatError(SeglakeError, ValueError):
    """The bytes are not of the format asked for, or no format could be told from them.

    Attributes:
        cause: what is wrong with the files of a log, such as `missing_segment`: a word of docs/verify.md; else None.
    """

    def __init__(
        self, reason: str, *, path: str | None = None, next: str | None = None, cause: str | None = None
    ) -> None:
        super().__init__(reason, path=path, next=next)
        self.cause = cause


class LimitError(SeglakeError):
    """A reader's own limit was met: the data may be sound.

    Attributes:
        option: the name of the limit, such as `record_bytes`: an item of `limits`.
    """

    def __init__(self, reason: str, *, option: str, path: str | None = None, next: str | None = None) -> None:
        super().__init__(reason, path=path, next=next)
        self.option = option


class ColumnsError(SeglakeError, ValueError):
    """A conversion would lose columns of its source, or lacks some that the new format needs.

    Attributes:
        lost: the names of the former, with fields of structures as `clock.seq`: `drop` gives them up.
        missing: the names of the latter: `set` gives values for them.
    """

    def __init__(self, reason: str, *, lost: Sequence[str], missing: Sequence[str]) -> None:
        super().__init__(reason)
        self.lost: list[str] = list(lost)
        self.missing: list[str] = list(missing)


class RowError(SeglakeError, ValueError):
    """A row of a batch cannot be written. Those before it are written. It comes of the error that says why.

    Attributes:
        row: the number of the row in what was given, from 0.
    """

    def __init__(self, reason: str, row: int) -> None:
        super().__init__(f"row {row}: {reason}")
        self.row = row


class DamageError(SeglakeError):
    """The file is damaged. A WrongKeyError is one, too: `except` that before this one.

    Attributes:
        byte_offset: the offset in the file, in bytes, at which the damage begins.
        cause: the ledger's word for it.
        expected: what should have been there.
        actual: what was there.
    """

    _before_next = ". "

    def __init__(
        self, *, path: str | None, byte_offset: int, cause: str, expected: str, actual: str, next: str | None = None
    ) -> None:
        reason = f"{cause} at offset {byte_offset}: expected {expected}, found {actual}"
        super().__init__(reason, path=path, next=next)
        self.byte_offset = byte_offset
        self.cause = cause
        self.expected = expected
        self.actual = actual


class WrongKeyError(DamageError):
    """No record checks but the structure is sound: the key is probably not the one it was written with."""


class OutcomeUnknownError(SeglakeError):
    """A sync of a log failed, so nobody knows whether records are on the disk: each is in the log later, or is not.

    Attributes:
        path: the log's folder.
        uuids: the UUIDs of the records.
        written: those of the records of the same batch that are in the log. They come before these; what comes after is
            not in the log.
    """

    def __init__(self, *, reason: str, path: str, uuids: Sequence[UUID], written: Sequence[UUID] = ()) -> None:
        super().__init__(
            f"cannot tell whether {len(uuids)} record(s) are in the log: {reason}",
            path=path,
            next="see to the disk, open the log again and look the UUIDs up",
        )
        self.uuids: list[UUID] = list(uuids)
        self.written: list[UUID] = list(written)


class PartialWriteError(SeglakeError):
    """The first records of a batch are in the log, and the others are not. `__cause__` is what hindered the next.

    Attributes:
        path: the log's folder.
        written: the UUIDs of the records that are in the log.
    """

    def __init__(self, *, reason: str, path: str, written: Sequence[UUID]) -> None:
        super().__init__(
            f"{len(written)} record(s) of the batch are in the log, the others are not: {reason}",
            path=path,
            next="put that right, and write the others",
        )
        self.written: list[UUID] = list(written)


class SegmentGoneError(SeglakeError):
    """A segment of a log was removed by its retention before it was read.

    Attributes:
        path: the log's folder.
        sequence: the segment's place in the log, counted from 1.
    """

    def __init__(self, *, path: str, sequence: int) -> None:
        super().__init__(
            f"segment {sequence} was removed by the log's retention", path=path, next="begin at a later record"
        )
        self.sequence = sequence


class ReplacedError(SeglakeError):
    """The file is not the one that was read before, or less is left of it than was read.

    Attributes:
        byte_offset: the offset in the file, in bytes, of what differs.
        expected: what was there when it was read.
        actual: what is there now.
    """

    def __init__(
        self,
        *,
        path: str | None,
        byte_offset: int,
        expected: str,
        actual: str,
        next: str = "read it from the beginning, as another file",
    ) -> None:
        super().__init__(
            "the file was replaced or cut since it was read: "
            f"at offset {byte_offset}, expected {expected}, found {actual}",
            path=path,
            next=next,
        )
        self.byte_offset = byte_offset
        self.expected = expected
        self.actual = actual


class DamageWarning(UserWarning):
    """Damage was skipped while reading (the reader's `report` lists it), or bytes were moved aside before appending."""


class UnreadWarning(UserWarning):
    """Records of a log are not read: they are after its synced mark, and no writer has it open."""


class ClockAheadWarning(UserWarning):
    """The time of the last record of a log is ahead of the clock, so that later ones get times after it."""


def _rebuild(kind: type[SeglakeError], arguments: tuple[Any, ...]) -> SeglakeError:
    """Returns an error without its fields, which pickling sets."""
    return kind.__new__(kind, *arguments)
