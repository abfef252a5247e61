"""One task of an ingest, on whatever engine: reads its files, each once, and stages their records and damage."""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self, cast

import pyarrow as pa

import seglake
from seglake._formats import FormatOptions, column_names
from seglake._text import path_text

from .outcome import WRONG_KEY, FileOutcome, StagedData, TaskOutcome
from .output import Output
from .plan import PlannedFile, read_plan
from .progress import StopError, TaskProgress
from .result import FileStatus
from .tables import RAW_PART_BYTES

__all__ = ["TaskRunner"]


# How much is held back of a file while its key may be wrong, a few hundred bytes each.
_HELD_RANGES: Final = 4096


class _RefusedError(Exception):
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
        return cls(status, str(error), format, wrote=wrote)


class _WrongKeyError(Exception):
    """The key seems to be wrong for the file that is the argument, and the run is to stop."""


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
        stops_on_wrong_key: whether all tasks stop at a file for which the key seems to be wrong.
    """

    staging: str
    format: str | None
    format_options: FormatOptions
    record_bytes: int | None
    key_file: str | None
    target_bytes: int
    stops_on_wrong_key: bool = False

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
            except _RefusedError:
                return self._run(task, staging, [[file] for file in files], is_stopped)
        except _WrongKeyError as error:
            (staging / "stop").touch()
            return TaskOutcome(task, wrong_key=path_text(str(error)))
        except StopError:
            return TaskOutcome(task, stopped=True)

    def _run(
        self, task: int, staging: Path, groups: Sequence[Sequence[PlannedFile]], is_stopped: Callable[[], bool]
    ) -> TaskOutcome:
        """Reads groups of files; the files of a group share output files.

        Raises:
            _RefusedError: a file of a group of several failed when rows of it had been written.
        """
        outcome = TaskOutcome(task)
        # Spark may run a task twice, also at the same time: each attempt has a folder of its own.
        attempt = staging / f"task-{task:05d}-{uuid.uuid4().hex[:8]}"
        attempt.mkdir()
        progress = TaskProgress(staging, task, is_stopped)
        for number, files in enumerate(groups):
            output = Output(attempt, f"{number:05d}", self.format_options, self.target_bytes)
            try:
                for planned in files:
                    try:
                        file = self._ingest(planned, output, progress)
                    except _RefusedError as error:
                        if error.status == "wrong_key" and self.stops_on_wrong_key:
                            raise _WrongKeyError(planned.path) from None
                        if error.wrote and len(files) > 1:
                            raise
                        if error.wrote:
                            output.discard()
                            output = Output(attempt, f"{number:05d}-rest", self.format_options, self.target_bytes)
                        file = FileOutcome(
                            path_text(planned.path), error.status, error.format, error=path_text(str(error))
                        )
                    outcome.files.append(file)
                    progress.file_done(file.nbytes)
                for format, staged in output.finish():
                    outcome.staged.append(StagedData(str(staged.path.relative_to(staging)), format, staged.folder))
            except BaseException:
                output.discard()
                raise
        progress.write()
        return outcome

    def _ingest(self, file: PlannedFile, output: Output, progress: TaskProgress) -> FileOutcome:
        """Reads one file to its end, once.

        Raises:
            _RefusedError: nothing of it is to be ingested.
        """
        format = self.format
        try:
            # A segment of a log says itself which format it has by now.
            format = format or (file.segment.format if file.segment is not None else self._detect(file.path))
            reader = self._open(file, format)
        except (OSError, seglake.SeglakeError) as error:
            raise _RefusedError.by(error, format, wrote=False) from None
        with reader:
            sink = _FileSink(path_text(file.path), reader, output)
            batches = reader.batches(warn=False)  # damage has a table of its own
            while True:
                try:
                    batch = next(batches, None)
                except (OSError, seglake.SeglakeError) as error:
                    raise _RefusedError.by(error, reader.format, wrote=sink.wrote) from None
                if batch is None:
                    break
                if batch.num_rows:
                    rows = pa.record_batch(cast("Any", batch))
                    sink.add_records(rows)
                    progress.read_to(_last(rows, "position"), batch.num_rows)
                for span in batch.damage:
                    sink.add_damage(span)
                    progress.read_to(span.end, 0)
            if batches.report.wrong_key:
                reason = f"{path_text(file.path)}: {WRONG_KEY}"
                raise _RefusedError("wrong_key", reason, reader.format, wrote=sink.wrote)
            sink.finish()
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


def _last(rows: pa.RecordBatch, column: str) -> int:
    return cast("Any", rows).column(column)[-1].as_py()


class _FileSink:
    """Puts the records and the damage of one input file into the output.

    A file for which the key is wrong has no record. So damage in front of the first record is held back, as far as it
    goes into little memory: nothing has to be taken out of the output again, once the key is known to be wrong.
    """

    def __init__(self, path: str, reader: seglake.Reader, output: Output) -> None:
        self.wrote = False
        self._path = path
        self._reader = reader
        self._format = reader.format
        self._output = output
        self._held: list[seglake.Span] | None = []

    def add_records(self, rows: pa.RecordBatch) -> None:
        """Adds records, whose last column is `position`; `path` comes in front of it."""
        self.finish()
        column = pa.repeat(pa.scalar(self._path), rows.num_rows)
        with_path = cast("Any", rows).add_column(rows.num_columns - 1, "path", column)
        self.wrote = True
        self._output.add_records(self._format, with_path)

    def add_damage(self, span: seglake.Span) -> None:
        """Adds a damaged range.

        Raises:
            _RefusedError: its bytes cannot be read.
        """
        if self._held is None:
            self._write(span)
            return
        self._held.append(span)
        if len(self._held) > _HELD_RANGES:
            self.finish()

    def finish(self) -> None:
        """Writes what is held back; from now on, nothing is."""
        held, self._held = self._held or [], None
        for span in held:
            self._write(span)

    def _write(self, span: seglake.Span) -> None:
        self.wrote = True
        # A range without bytes (a file that has none and must have some) is a row all the same.
        for part, start in enumerate(range(span.start, max(span.end, span.start + 1), RAW_PART_BYTES)):
            try:
                raw = self._reader.read_bytes(start, min(start + RAW_PART_BYTES, span.end))
            except (OSError, seglake.SeglakeError) as error:
                raise _RefusedError.by(error, self._format, wrote=True) from None
            row = {"path": self._path, "start": span.start, "end": span.end, "kind": span.kind, "cause": span.cause}
            self._output.add_damage(self._format, {**row, "part": part, "raw": raw})
