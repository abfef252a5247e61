"""What a task tells the driver: what became of its files, and what it staged."""

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Self, cast

import seglake
from seglake._text import path_text, printable_path

from .plan import PlannedFile
from .result import FileStatus

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

    The timestamps are microseconds since 1970; `damage` has for each cause its ranges and bytes.
    """

    path: str
    status: FileStatus
    format: str | None = None
    checked: str | None = None
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
    error: str | None = None
    damage: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])

    @classmethod
    def of(cls, file: "PlannedFile", report: seglake.Report) -> Self:
        """Makes the row of a file that was read to its end.

        Raises:
            RuntimeError: its parts do not add up to the file.
        """
        sizes = dict.fromkeys(_BYTE_COLUMNS.values(), 0)
        damage: dict[str, tuple[int, int]] = {}
        for total in report.totals:
            sizes[_BYTE_COLUMNS[total.kind]] += total.nbytes
            if total.cause is not None:
                ranges, size = damage.get(total.cause, (0, 0))
                damage[total.cause] = (ranges + total.ranges, size + total.nbytes)
        nbytes = sum(sizes.values())
        # A segment of a log that was sealed since it was planned is not read to its end.
        if nbytes != report.nbytes and file.segment is None:
            raise RuntimeError(
                f"{printable_path(file.path)}: of {report.nbytes} bytes {nbytes} are accounted for: {sizes}"
            )
        return cls(
            path=path_text(file.path),
            status="sound" if report.ok else "damaged",
            format=report.format,
            checked=report.checked,
            nbytes=nbytes,
            records=report.records,
            first_timestamp=report.first_timestamp_us,
            last_timestamp=report.last_timestamp_us,
            damage=damage,
            **cast("Any", sizes),
        )


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
