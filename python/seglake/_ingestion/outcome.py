"""What a task tells the driver: what became of its files, and what it staged."""

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Self, cast

import seglake
from seglake._text import path_text, printable_path

from .plan import PlannedFile
from .result import FileStatus
from .sink import FileSink

__all__ = ["WRONG_KEY", "FileOutcome", "StagedData", "TaskOutcome"]

WRONG_KEY: Final = (
    "no record checks although the structure is sound, so the key is probably not the one that it was written with"
)

_BYTE_COLUMNS: Final = {
    "record": "record_bytes",
    "chunk": "record_bytes",
    "block": "record_bytes",
    "header": "header_bytes",
    "trailer": "header_bytes",
    "padding": "padding_bytes",
    "unused": "unused_bytes",
    "unproven": "unused_bytes",
    "torn_tail": "torn_bytes",
    "corrupt": "corrupt_bytes",
}
"""The kinds of the ledger, and the columns of `files` that their bytes count for."""


@dataclass
class FileOutcome:
    """What became of one input file: a row of `files`, and its damage by cause.

    All numbers of the row are of the whole segment up to `end`, of which this run has read from `start` on. The
    timestamps are microseconds since 1970. Not in the row: `added`, the records that this run has added; `damage`, the
    ranges and bytes that it has added for each cause; `is_news`, whether the row says anything that the last did not.
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
    is_news: bool = True
    damage: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])

    @classmethod
    def of(cls, file: PlannedFile, report: seglake.Report, sink: FileSink, *, is_growing: bool) -> Self:
        """Makes the row of a file that was read to its end.

        Raises:
            RuntimeError: its parts do not add up to the file.
            UnreadableError: its first or last bytes cannot be read.
        """
        sizes = dict.fromkeys(_BYTE_COLUMNS.values(), 0)
        for total in report.totals:
            sizes[_BYTE_COLUMNS[total.kind]] += total.nbytes
        nbytes = sum(sizes.values())
        # A segment of a log that was sealed since it was planned is not read to its end.
        if nbytes != report.nbytes and file.segment is None:
            raise RuntimeError(
                f"{printable_path(file.path)}: of {report.nbytes} bytes {nbytes} are accounted for: {sizes}"
            )
        for span in sink.pending:
            sizes[_BYTE_COLUMNS[span.kind]] -= span.end - span.start
        end = report.nbytes
        if is_growing:
            end = sink.pending[0].start if sink.pending else report.nbytes - sizes["unused_bytes"]
        before = file.before
        row = cls(
            segment=file.identity,
            path=path_text(file.path),
            status="damaged" if sink.ranges else "sound",
            format=report.format,
            checked=report.checked,
            start=before.end if before is not None and before.format == report.format else 0,
            end=end,
            pending_bytes=sum(span.end - span.start for span in sink.pending),
            nbytes=nbytes,
            records=report.records,
            first_timestamp=report.first_timestamp_us,
            last_timestamp=report.last_timestamp_us,
            size=file.size,
            modified=file.modified,
            carry=sink.carry(end).to_json(),
            added=sink.records,
            damage=sink.damage,
            **cast("Any", sizes),
        )
        row.is_news = before is None or any(
            getattr(row, name) != getattr(before, name)
            for name in ("status", "format", "end", "pending_bytes", "records", "size", "modified")
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
