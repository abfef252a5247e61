"""What a task tells the driver: what became of its files, and what it staged."""

import json
from dataclasses import asdict, dataclass, field
from typing import Final, Self

import seglake
from seglake._formats import grows
from seglake._text import error_text, path_text

from .growth import Grown
from .plan import PlannedFile
from .result import FileStatus
from .sink import FileSink

__all__ = ["AFTER_REPLACED", "WRONG_KEY", "FileOutcome", "RefusedError", "StagedData", "TaskOutcome", "refused"]

WRONG_KEY: Final = (
    "no record checks although the structure is sound, so the key is probably not the one that it was written with"
)


AFTER_REPLACED: Final = (
    "Its rows of earlier runs stay. Give the new file another name, or ingest into another destination"
)
"""What is to be done about a file that was replaced."""


_AFTER_UNPROVEN: Final = (
    "The file has no checksums, and its parity sidecar does not prove it. Restore the file; if the sidecar is of "
    "another one, remove it; or have the file read as it is: `parity=None`"
)


class RefusedError(Exception):
    """Nothing of an input file is ingested. `wrote` tells whether rows of it have gone to the output by then."""

    status: FileStatus

    def __init__(self, status: FileStatus, reason: str, format: str | None, *, wrote: bool) -> None:
        super().__init__(reason)
        self.status = status
        self.format = format
        self.wrote = wrote

    @classmethod
    def by(cls, error: Exception, format: str | None, *, wrote: bool) -> Self:
        """Makes it of what the library has raised."""
        status: FileStatus = "unreadable"
        if isinstance(error, seglake.WrongKeyError):
            status = "wrong_key"
        elif isinstance(error, seglake.LimitError):
            status = "limit"
        elif isinstance(error, seglake.FormatError):
            status = "not_a_segment"
        elif isinstance(error, seglake.ReplacedError):
            return cls("replaced", f"{error}. {AFTER_REPLACED}", format, wrote=wrote)
        elif isinstance(error, seglake.DamageError):
            return cls(status, f"{error}. {_AFTER_UNPROVEN}", format, wrote=wrote)
        return cls(status, error_text(error), format, wrote=wrote)


@dataclass
class FileOutcome:
    """What became of one input file: a row of `files`, and its damage by cause.

    All numbers of the row are of the whole segment up to `end`, of which this run has read from `start` on. The
    timestamps are microseconds since 1970. Not in the row: `added`, the records that this run has added;
    `repaired_records`, the records that it has read and a sidecar restores; `refused_sidecar`, why its sidecar was
    ignored; `damage`, the ranges and bytes that it has added for each cause; `is_news`, whether the row says anything
    that the last did not.
    """

    segment: str
    path: str
    status: FileStatus
    format: str | None = None
    checked: str | None = None
    start: int | None = None
    end: int | None = None
    pending_bytes: int | None = None
    nbytes: int | None = None
    records: int = 0
    record_bytes: int | None = None
    header_bytes: int | None = None
    padding_bytes: int | None = None
    unused_bytes: int | None = None
    torn_bytes: int | None = None
    corrupt_bytes: int | None = None
    first_timestamp: int | None = None
    last_timestamp: int | None = None
    size: int | None = None
    modified: int | None = None
    carry: str | None = None
    error: str | None = None
    added: int = 0
    repaired_records: int = 0
    refused_sidecar: str | None = None
    is_news: bool = True
    damage: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])

    @classmethod
    def of(
        cls, file: PlannedFile, grown: Grown, sink: FileSink, *, copy_of: str | None = None, is_news: bool = False
    ) -> Self:
        """Makes the row of a file that was read to its end.

        Args:
            file: the file.
            grown: what it is by now.
            sink: what took its records and its damage.
            copy_of: for a copy, the text for the column `error`: none of its records went to the output.
            is_news: whether the row is to be there in any case.
        """
        before = file.before
        # Of a segment that was sealed, or sealed anew, the bytes have moved.
        stays = grows(grown.format) or (before is not None and before.end == grown.end)
        goes_on = before is not None and before.format == grown.format and stays
        sums = asdict(grown.sums)
        ranges = sums.pop("ranges")
        row = cls(
            segment=file.segment_name,
            path=path_text(file.path),
            status="damaged" if ranges or grown.hides_records else "sound",
            format=grown.format,
            checked=grown.checked,
            start=before.end if before is not None and goes_on else 0,
            end=grown.end,
            pending_bytes=grown.pending_bytes,
            nbytes=grown.sums.nbytes + grown.pending_bytes,
            size=file.size,
            modified=file.modified,
            carry=grown.carry.to_json(),
            added=sink.records,
            repaired_records=grown.repaired_records,
            refused_sidecar=grown.refused_sidecar,
            damage=sink.damage,
            error=copy_of,
            **sums,
        )
        row.records = 0 if copy_of is not None else row.records
        row.is_news = (
            is_news
            or before is None
            or any(
                getattr(row, name) != getattr(before, name)
                for name in ("path", "status", "format", "end", "pending_bytes", "records", "size", "modified")
            )
        )
        return row


@dataclass(frozen=True)
class StagedData:
    """A finished file of `records` or `damage`: where it is below the run's staging folder, and what it is for."""

    staged: str
    format: str
    folder: str


@dataclass
class TaskOutcome:
    """What a task tells the driver. Only what it names is made visible.

    Attributes:
        task: its number.
        files: an entry for each of its files, unless it stopped.
        staged: the files that it wrote.
        wrong_key: the input file for which the key seems to be wrong, where that is to stop the run. The task stopped
            there.
        key_error: why the key could not be read. The task did nothing.
        stopped: whether the task was stopped before its end.
    """

    task: int
    files: list[FileOutcome] = field(default_factory=list[FileOutcome])
    staged: list[StagedData] = field(default_factory=list[StagedData])
    wrong_key: str | None = None
    key_error: str | None = None
    stopped: bool = False

    def to_json(self) -> str:
        """Returns it as text, for the way through Spark."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Reads what `to_json` wrote."""
        content = json.loads(text)
        content["files"] = [FileOutcome(**entry) for entry in content["files"]]
        content["staged"] = [StagedData(**entry) for entry in content["staged"]]
        return cls(**content)


def refused(file: PlannedFile, error: RefusedError) -> FileOutcome:
    """Makes the row of a file of which nothing is ingested."""
    return FileOutcome(
        file.segment_name,
        path_text(file.path),
        error.status,
        error.format,
        size=file.size,
        modified=file.modified,
        error=path_text(str(error)),
    )
