"""One task of an ingest, on whatever engine: reads its files, each once, and stages their records and damage."""

import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

import seglake
from seglake._formats import FormatOptions, column_names
from seglake._text import path_text

from .outcome import FileOutcome, StagedData, TaskOutcome
from .output import Output
from .plan import PlannedFile, read_plan
from .progress import StopError, TaskProgress
from .tables import RAW_PART_BYTES

__all__ = ["TaskRunner"]


class _UnreadableError(Exception):
    """Reading an input file failed. `wrote` tells whether rows of it have gone to the output by then."""

    def __init__(self, reason: str, *, wrote: bool) -> None:
        super().__init__(reason)
        self.wrote = wrote


class _WrongKeyError(Exception):
    """The key seems to be wrong for the file that is the argument."""


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
        except StopError:
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
        progress = TaskProgress(staging, task, is_stopped)
        for number, files in enumerate(groups):
            output = Output(attempt, f"{number:05d}", self.format_options, self.target_bytes)
            try:
                for planned in files:
                    try:
                        file = self._ingest(planned, output, progress)
                    except _UnreadableError as error:
                        if error.wrote and len(files) > 1:
                            raise
                        if error.wrote:
                            output.discard()
                            output = Output(attempt, f"{number:05d}-rest", self.format_options, self.target_bytes)
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

    def _ingest(self, file: PlannedFile, output: Output, progress: TaskProgress) -> FileOutcome:
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
