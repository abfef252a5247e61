"""One task of an ingest, on whatever engine: reads its files, each once, and stages their records and damage."""

import json
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple, Self, cast

import pyarrow as pa

import seglake
from seglake._files import SegmentFile
from seglake._formats import FormatOptions, column_names
from seglake._native import ListedSegment
from seglake._text import path_text, printable_path

from .tables import DAMAGE_SCHEMA, RAW_PART_BYTES, DamageWriter, DateWriter, RollingWriter, StagedFile, records_schema

__all__ = ["FileOutcome", "PlannedFile", "StagedData", "TaskOutcome", "TaskRunner", "read_plan", "write_plan"]

_REPORT_INTERVAL_S: Final = 0.25

_BYTE_COLUMNS: Final = {
    "record": "record_bytes",
    "chunk": "record_bytes",
    "block": "record_bytes",
    "header": "header_bytes",
    "trailer": "header_bytes",
    "padding": "padding_bytes",
    "unused": "unused_bytes",
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
    ok: bool = False
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
            format=report.format,
            checked=report.checked,
            nbytes=nbytes,
            records=report.records,
            first_timestamp=report.first_timestamp_us,
            last_timestamp=report.last_timestamp_us,
            ok=report.ok,
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
        wrong_key: the input file for which the key seems to be wrong. The task stopped there.
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


class PlannedFile(NamedTuple):
    """A file that a task reads: its path without links, and if it is a segment of a log, that as it was planned."""

    path: str
    segment: ListedSegment | None

    @property
    def source(self) -> str | ListedSegment:
        """What `seglake.open` takes."""
        return self.path if self.segment is None else self.segment


def write_plan(staging: Path, task: int, files: Sequence[SegmentFile]) -> None:
    """Writes down which files a task reads: as a file, so that the job itself stays small however many there are."""
    (staging / "plan").mkdir(exist_ok=True)
    plan = [(file.real_path, file.segment and file.segment.__getnewargs__()) for file in files]
    (staging / "plan" / f"{task}.json").write_text(json.dumps(plan))


def read_plan(staging: Path, task: int) -> list[PlannedFile]:
    """Reads what `write_plan` wrote."""
    plan: list[tuple[str, Any]] = json.loads((staging / "plan" / f"{task}.json").read_bytes())
    return [PlannedFile(path, None if segment is None else ListedSegment(*segment)) for path, segment in plan]


class _UnreadableError(Exception):
    """Reading an input file failed. `wrote` tells whether rows of it have gone to the output by then."""

    def __init__(self, reason: str, *, wrote: bool) -> None:
        super().__init__(reason)
        self.wrote = wrote


class _WrongKeyError(Exception):
    """The key seems to be wrong for the file that is the argument."""


class _StopError(Exception):
    """The run stops: another task has found the key to be wrong, or has failed, or the caller was interrupted."""


@dataclass(frozen=True)
class TaskRunner:
    """Runs tasks. Spark sends it to its executors, so it can be pickled and holds no key.

    Attributes:
        staging: the run's staging folder.
        format: the format of all files; None finds it for each.
        format_options: what concerns files of some formats only.
        record_bytes: the largest record that is read, in bytes; None is the library's default.
        key_file: the file of the key; None takes it from the environment of the process, or the default key.
        target_bytes: the size from which on an output file is not added to.
    """

    staging: str
    format: str | None
    format_options: FormatOptions
    record_bytes: int | None
    key_file: str | None
    target_bytes: int

    def run(self, task: int, is_stopped: Callable[[], bool] = lambda: False) -> TaskOutcome:
        """Runs one task.

        Args:
            task: its number.
            is_stopped: asked now and then whether to stop before the end.

        Raises:
            OSError: the output cannot be written.
        """
        try:
            seglake.detect(b"", key=self.key_file)
        except (OSError, ValueError) as error:
            return TaskOutcome(task, key_error=str(error))
        staging = Path(self.staging)
        files = read_plan(staging, task)
        try:
            # All files of the task share the output files. If reading one fails when rows of it are in them already,
            # those rows cannot be taken out again: the task starts anew, with output files for each input file.
            try:
                return self._run(task, staging, [files], is_stopped)
            except _UnreadableError:
                return self._run(task, staging, [[file] for file in files], is_stopped)
        except _WrongKeyError as error:
            (staging / "stop").touch()
            return TaskOutcome(task, wrong_key=path_text(str(error)))
        except _StopError:
            return TaskOutcome(task, stopped=True)

    def _run(
        self, task: int, staging: Path, groups: Sequence[Sequence[PlannedFile]], is_stopped: Callable[[], bool]
    ) -> TaskOutcome:
        """Reads groups of files; the files of a group share output files.

        Raises:
            _UnreadableError: a file of a group of several failed when rows of it had been written.
        """
        outcome = TaskOutcome(task)
        # Spark may run a task twice, also at the same time: each attempt has a folder of its own.
        attempt = staging / f"task-{task:05d}-{uuid.uuid4().hex[:8]}"
        attempt.mkdir()
        progress = _Progress(staging, task, is_stopped)
        for number, files in enumerate(groups):
            output = _Output(attempt, f"{number:05d}", self.format_options, self.target_bytes)
            try:
                for planned in files:
                    try:
                        file = self._ingest(planned, output, progress)
                    except _UnreadableError as error:
                        if error.wrote and len(files) > 1:
                            raise
                        if error.wrote:
                            output.discard()
                            output = _Output(attempt, f"{number:05d}-rest", self.format_options, self.target_bytes)
                        file = FileOutcome(path_text(planned.path), error=path_text(str(error)))
                    outcome.files.append(file)
                    progress.file_done(file.nbytes)
                for format, staged in output.finish():
                    outcome.staged.append(StagedData(str(staged.path.relative_to(staging)), format, staged.folder))
            except BaseException:
                output.discard()
                raise
        progress.write()
        return outcome

    def _ingest(self, file: PlannedFile, output: "_Output", progress: "_Progress") -> FileOutcome:
        """Reads one file to its end, once.

        Raises:
            _UnreadableError: it cannot be read.
            _WrongKeyError: the key seems to be wrong.
        """
        wrote, path = False, file.path
        try:
            # A segment of a log says itself which format it has by now.
            format = self.format or (file.segment.format if file.segment is not None else self._detect(path))
            reader = self._open(file, format)
            format = reader.format
        except (OSError, seglake.SeglakeError) as error:
            raise _UnreadableError(str(error), wrote=wrote) from None
        with reader:
            batches = reader.batches(warn=False)  # damage has a table of its own
            while True:
                try:
                    batch = next(batches, None)
                except (OSError, seglake.SeglakeError) as error:
                    raise _UnreadableError(str(error), wrote=wrote) from None
                if batch is None:
                    break
                if batch.num_rows:
                    rows = _with_path(path, pa.record_batch(cast("Any", batch)))
                    wrote = True
                    output.add_records(format, rows)
                    progress.read_to(_last(rows, "position"), batch.num_rows)
                for span in batch.damage:
                    wrote = True
                    for row in _damage_rows(path, span, reader):
                        output.add_damage(format, row)
                    progress.read_to(span.end, 0)
            if batches.report.wrong_key:
                raise _WrongKeyError(path)
            return FileOutcome.of(file, batches.report)

    def _detect(self, path: str) -> str:
        found = seglake.detect(path, dialect=self.format_options.dialect, key=self.key_file)
        if found.format is None:
            raise seglake.FormatError(f"cannot tell the format: {found.reason}", path=path)
        return found.format

    def _open(self, file: PlannedFile, format: str) -> seglake.Reader:
        return seglake.open(
            file.source,
            format=format if file.segment is None else self.format,
            key=self.key_file,
            on_damage="skip",
            columns=[*column_names(format, self.format_options), "position"],
            uuid_type="string",
            **self.format_options.arguments(format, record_bytes=self.record_bytes),
        )


def _with_path(path: str, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Adds the column `path` in front of the last one, `position`."""
    column = pa.repeat(pa.scalar(path_text(path)), rows.num_rows)
    return cast("Any", rows).add_column(rows.num_columns - 1, "path", column)


def _last(rows: pa.RecordBatch, column: str) -> int:
    return cast("Any", rows).column(column)[-1].as_py()


def _damage_rows(path: str, span: seglake.Span, reader: seglake.Reader) -> Iterator[dict[str, Any]]:
    # A range without bytes (a file that has none and must have some) is a row all the same.
    for part, start in enumerate(range(span.start, max(span.end, span.start + 1), RAW_PART_BYTES)):
        try:
            raw = reader.read_bytes(start, min(start + RAW_PART_BYTES, span.end))
        except (OSError, seglake.SeglakeError) as error:
            raise _UnreadableError(str(error), wrote=True) from None
        yield {
            "path": path_text(path),
            "start": span.start,
            "end": span.end,
            "kind": span.kind,
            "cause": span.cause,
            "part": part,
            "raw": raw,
        }


class _Output:
    """The output files of a group of input files, by format."""

    def __init__(self, folder: Path, name: str, format_options: FormatOptions, target_bytes: int) -> None:
        self._folder = folder
        self._name = name
        self._format_options = format_options
        self._target_bytes = target_bytes
        self._records: dict[str, DateWriter] = {}
        self._damage: dict[str, DamageWriter] = {}

    def add_records(self, format: str, rows: pa.RecordBatch) -> None:
        """Adds records with their `path` and `position`."""
        writer = self._records.get(format)
        if writer is None:
            schema = records_schema(format, self._format_options)
            name = f"{self._name}-{format}-records"
            writer = self._records[format] = DateWriter(self._folder, name, schema, self._target_bytes)
        writer.append(rows)

    def add_damage(self, format: str, row: dict[str, Any]) -> None:
        """Adds a row of `damage`."""
        writer = self._damage.get(format)
        if writer is None:
            name = f"{self._name}-{format}-damage"
            rolling = RollingWriter(self._folder, name, "damage", DAMAGE_SCHEMA, self._target_bytes)
            writer = self._damage[format] = DamageWriter(rolling)
        writer.append(row)

    def finish(self) -> list[tuple[str, StagedFile]]:
        """Closes all files; returns them with their formats."""
        writers = [*self._records.items(), *self._damage.items()]
        return [(format, file) for format, writer in writers for file in writer.finish()]

    def discard(self) -> None:
        """Closes all files and forgets them."""
        for writer in (*self._records.values(), *self._damage.values()):
            writer.discard()


class _Progress:
    """Tells the driver how far a task is, through a small file that is replaced now and then."""

    def __init__(self, staging: Path, task: int, is_stopped: Callable[[], bool]) -> None:
        self._staging = staging
        self._task = task
        self._is_stopped = is_stopped
        self._files = 0
        self._bytes_before = 0
        self._bytes_in_file = 0
        self._records = 0
        self._written_at = 0.0

    def read_to(self, offset: int, records: int) -> None:
        """Notes that the present file is read up to an offset, and that records were found."""
        self._bytes_in_file = max(self._bytes_in_file, offset)
        self._records += records
        self._write_if_due()

    def file_done(self, size: int | None) -> None:
        """Notes that the present file is finished: its size in bytes, None where it could not be read to its end."""
        self._files += 1
        self._bytes_before += self._bytes_in_file if size is None else size
        self._bytes_in_file = 0
        self._write_if_due()

    def _write_if_due(self) -> None:
        if time.monotonic() - self._written_at >= _REPORT_INTERVAL_S:
            if self._is_stopped() or (self._staging / "stop").exists():
                raise _StopError
            self.write()

    def write(self) -> None:
        """Writes how far it is."""
        self._written_at = time.monotonic()
        folder = self._staging / "progress"
        state = [self._files, self._bytes_before + self._bytes_in_file, self._records]
        # Renamed into place, so that the driver never reads half of it; another attempt may be doing the same.
        new = folder / f"{self._task}-{uuid.uuid4().hex[:8]}.new"
        new.write_text(json.dumps(state))
        new.rename(folder / f"{self._task}.json")
