"""What callers of the ingest see: its progress, its result and its errors."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal, NamedTuple, TypedDict, get_args

from seglake._errors import SeglakeError
from seglake._types import LogUnread, OpenOptions
from seglake.tracking.status import FileStatus

__all__ = [
    "DamageTotal",
    "FileError",
    "IngestArguments",
    "IngestError",
    "IngestProgress",
    "IngestResult",
    "OnDamage",
    "TableFormat",
    "add_damage",
    "can_pass",
    "no_files",
]

TableFormat = Literal["parquet", "delta", "iceberg"]
"""What keeps track of a table's files: their folder alone, Delta Lake, or Apache Iceberg."""

OnDamage = Literal["repair", "skip"]
"""What becomes of records that a parity sidecar restores: they are ingested, or left out. `damage` tells of both."""


class IngestArguments(TypedDict, total=False):
    """The arguments that `seglake.ingest` has for all engines. Its docstring says what each means."""

    format: str | None
    key: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None
    options: OpenOptions | None
    target_file_size: int
    final: bool
    sidecar: str | os.PathLike[str] | None
    on_damage: OnDamage
    table: TableFormat
    catalog: str | Mapping[str, str] | None
    storage_options: Mapping[str, str] | None


def no_files() -> dict[FileStatus, int]:
    """Returns each status with the number 0."""
    return dict.fromkeys(get_args(FileStatus), 0)


class FileError(NamedTuple):
    """A file of which nothing was ingested.

    Attributes:
        path: its path.
        status: `conflict`, `wrong_key`, `limit`, `unreadable` or `not_a_segment`.
        error: why.

    Example:
        >>> import seglake
        >>> written = open("notes.txt", "w").write("no segment, but some text")
        >>> [error.status for error in seglake.ingest(["notes.txt", "orders.active"], "lake").errors]
        ['not_a_segment']
    """

    path: str
    status: FileStatus
    error: str


class IngestError(SeglakeError):
    """The ingest cannot start or has to stop. Nothing of it has become visible, unless the message says otherwise.

    Attributes:
        may_pass: whether the same call may work later: the disk is full, or a store or a
            source cannot be reached or refuses access. Other errors stay until something is changed.

    Example:
        >>> import seglake
        >>> try:
        ...     seglake.ingest("none", "lake")
        ... except seglake.exceptions.IngestError as error:
        ...     print(error)
        /.../none: there is no such file or folder
    """

    exit_status: Final = 2

    def __init__(self, reason: str, *, may_pass: bool = False) -> None:
        super().__init__(reason)
        self.may_pass = may_pass


_LASTING: Final = (NotADirectoryError, IsADirectoryError, FileExistsError)
_LASTING_NUMBERS: Final = (errno.ELOOP, errno.ENAMETOOLONG)


def can_pass(error: BaseException | None) -> bool:
    """Tells whether an error may be over later: one of a disk or a store, or an `IngestError` that says so."""
    if isinstance(error, IngestError):
        return error.may_pass
    if not isinstance(error, OSError):
        return False
    return not isinstance(error, _LASTING) and error.errno not in _LASTING_NUMBERS


@dataclass(frozen=True)
class IngestProgress:
    """How far an ingest is.

    Attributes:
        files_done: input files that are finished.
        files_total: input files in all.
        bytes_done: bytes of the input that are finished.
        bytes_total: bytes of the input in all, as they were when the files were listed. Of a file that grew these are
            the new ones.
        records: records found so far.
        damage: damaged ranges found so far.

    Example:
        >>> import seglake
        >>> seen = []
        >>> result = seglake.ingest("logs", "lake", progress=seen.append)
        >>> seen[-1].files_done, seen[-1].files_total, seen[-1].records
        (2, 2, 6)
    """

    files_done: int
    files_total: int
    bytes_done: int
    bytes_total: int
    records: int
    damage: int = 0


@dataclass(frozen=True)
class DamageTotal:
    """All damage of one cause: how many ranges and how many bytes.

    Example:
        >>> import seglake
        >>> seglake.ingest("damaged.active", "lake").damage
        {'checksum_mismatch': DamageTotal(ranges=1, nbytes=51)}
    """

    ranges: int
    nbytes: int


def add_damage(damage: dict[str, DamageTotal], more: Mapping[str, DamageTotal]) -> None:
    """Adds damage, by its cause, to other damage."""
    for cause, total in more.items():
        before = damage.get(cause, DamageTotal(0, 0))
        damage[cause] = DamageTotal(before.ranges + total.ranges, before.nbytes + total.nbytes)


@dataclass(frozen=True)
class IngestResult:
    """What an ingest did.

    Attributes:
        run_id: names the run; the output files carry it. None where there was nothing to ingest.
        destination: the folder with the tables.
        formats: the formats that were found, and below `destination` the names of their folders.
        statuses: how many input files have each status. `sound`; `damaged`: something in it is damaged; `pending`:
            sound, but its last record is unfinished, or it has none yet. No record is ingested of a file that is
            `conflict`: a record of it has the key of one that is there, and other content; `wrong_key`: no record
            checks although the structure is sound; `limit`: a limit refuses it; `unreadable`: reading it failed;
            `not_a_segment`: it is of no format, or not of the one named.
        known_damaged: how many of the damaged ones an earlier run found damaged, and this one found nothing more in.
        unchanged: how many files more there were, of which nothing is new.
        unchanged_damaged: how many of these are damaged, as the tables say. They are no part of `ok` and `exit_status`,
            which are of what was read.
        unchanged_refused: how many of these nothing is ingested of, for the reason that `files` has already, likewise.
        pending_bytes: bytes of unfinished tails, which later runs take once they are finished.
        records: records written.
        repaired_records: records that were read and that parity sidecars restored; 0 with `on_damage="skip"`.
        nbytes: bytes of the files that were read; each is accounted for.
        damage: the damage by its cause, in the ledger's words.
        errors: each file of which nothing was ingested, and why.
        refused_sidecars: the path of each file that was read and whose parity sidecar was ignored, and why, as
            `ParityReport.refused` says it.
        skipped: path and reason of each thing met that is neither a regular file nor an ordinary folder, and of each
            file that was renamed or removed after it was listed.
        unread: what was left out of logs, since it is after their synced mark and no writer has them open.
        seconds: how long it took, without the start of Spark.

    Example:
        >>> import seglake
        >>> result = seglake.ingest("logs", "lake")
        >>> result.ok, result.exit_status, result.records
        (True, 0, 6)
    """

    run_id: str | None
    destination: str
    formats: tuple[str, ...] = ()
    statuses: dict[FileStatus, int] = field(default_factory=no_files)
    known_damaged: int = 0
    unchanged: int = 0
    unchanged_damaged: int = 0
    unchanged_refused: int = 0
    pending_bytes: int = 0
    records: int = 0
    repaired_records: int = 0
    nbytes: int = 0
    damage: dict[str, DamageTotal] = field(default_factory=dict[str, DamageTotal])
    errors: tuple[FileError, ...] = ()
    refused_sidecars: tuple[tuple[str, str], ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()
    unread: tuple[LogUnread, ...] = ()
    seconds: float = 0.0

    @property
    def files(self) -> int:
        """How many input files there were, of whatever status."""
        return sum(self.statuses.values())

    @property
    def damaged(self) -> int:
        """How many of the input files are damaged: those that were read, and those of which nothing is new."""
        return self.statuses["damaged"] + self.unchanged_damaged

    @property
    def ok(self) -> bool:
        """Whether every file that was read is sound, no sidecar was refused, and nothing was left out of a log."""
        are_sound = self.statuses["sound"] + self.statuses["pending"] == self.files
        return are_sound and not self.refused_sidecars and not self.unread

    @property
    def exit_status(self) -> int:
        """0 if `ok`, or only damage is in the way that an earlier run found; else 1. 2 is an `IngestError`."""
        is_known = self.statuses["damaged"] == self.known_damaged
        return 0 if self.ok or (is_known and not (self.errors or self.refused_sidecars or self.unread)) else 1

    @property
    def records_per_second(self) -> float:
        """Records written for each second that it took."""
        return self.records / self.seconds if self.seconds > 0 else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Returns it all in types that JSON has.

        Example:
            >>> import seglake
            >>> seglake.ingest("logs", "lake").to_dict()["files"]
            2
        """
        return {
            **asdict(self),
            "formats": list(self.formats),
            "files": self.files,
            "errors": [error._asdict() for error in self.errors],
            "refused_sidecars": [{"path": path, "refused": refused} for path, refused in self.refused_sidecars],
            "skipped": [{"path": path, "reason": reason} for path, reason in self.skipped],
            "unread": [unread._asdict() for unread in self.unread],
            "ok": self.ok,
            "exit_status": self.exit_status,
            "records_per_second": self.records_per_second,
        }
