"""What callers of the ingest see: its progress, its result and its errors."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Final

from seglake._errors import SeglakeError

__all__ = ["DamageTotal", "IngestError", "IngestProgress", "IngestResult"]


class IngestError(SeglakeError):
    """The ingest cannot start or has to stop. Nothing of it has become visible, unless the message says otherwise.

    Example:
        >>> import seglake
        >>> try:
        ...     seglake.ingest("none", "lake")
        ... except seglake.IngestError as error:
        ...     print(error)
        /.../none: there is no such file or folder
    """

    exit_status: Final = 2


@dataclass(frozen=True)
class IngestProgress:
    """How far an ingest is.

    Attributes:
        files_done: input files that are finished.
        files_total: input files in all.
        bytes_done: bytes of the input that have been read.
        bytes_total: bytes of the input in all, as they were when the files were listed.
        records: records found so far.

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


@dataclass(frozen=True)
class IngestResult:
    """What an ingest did.

    Attributes:
        run_id: names the run; the output files carry it. None where there was nothing to ingest.
        destination: the folder with the tables.
        formats: the formats that were found, and below `destination` the names of their folders.
        files: input files, readable or not.
        damaged_files: input files that were read and in which something is damaged.
        records: records written.
        nbytes: bytes of the files that were read; each is accounted for.
        damage: the damage by its cause, in the ledger's words.
        errors: path and error of each file that could not be read. No records of it were written.
        skipped: path and reason of each thing met that is neither a regular file nor an ordinary folder.
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
    files: int = 0
    damaged_files: int = 0
    records: int = 0
    nbytes: int = 0
    damage: dict[str, DamageTotal] = field(default_factory=dict[str, DamageTotal])
    errors: tuple[tuple[str, str], ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether every file could be read and none is damaged."""
        return not self.errors and not self.damaged_files

    @property
    def exit_status(self) -> int:
        """0 if all is sound, 1 if something is damaged or could not be read; 2, an error, is an `IngestError`."""
        return 0 if self.ok else 1

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
            "errors": [{"path": path, "error": error} for path, error in self.errors],
            "skipped": [{"path": path, "reason": reason} for path, reason in self.skipped],
            "ok": self.ok,
            "exit_status": self.exit_status,
            "records_per_second": self.records_per_second,
        }
