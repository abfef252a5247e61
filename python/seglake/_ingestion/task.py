"""One task of an ingest, on whatever engine: reads its files, each once, and stages their records and damage."""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import seglake
from seglake._formats import FormatOptions, column_names
from seglake._text import path_text

from .growth import WrongKeyFoundError, read_growth
from .outcome import WRONG_KEY, FileOutcome, StagedData, TaskOutcome
from .output import Output
from .plan import PlannedFile, read_plan
from .progress import StopError, TaskProgress
from .result import FileStatus
from .sink import FileSink, ReplacedError, UnreadableError
from .tables import Uint64Type

__all__ = ["TaskRunner"]

_AFTER_REPLACED: Final = (
    "Its rows of earlier runs stay. Give the new file another name, or ingest into another destination"
)


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
        elif isinstance(error, seglake.ReplacedError):
            return cls("replaced", f"{error}. {_AFTER_REPLACED}", format, wrote=wrote)
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
        final: whether no file grows any more, so that an unfinished tail is damage.
        uint64_type: how unsigned integers of 64 bits are written.
    """

    staging: str
    format: str | None
    format_options: FormatOptions
    record_bytes: int | None
    key_file: str | None
    target_bytes: int
    stops_on_wrong_key: bool = False
    final: bool = False
    uint64_type: Uint64Type = "uint64"

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
            output = self._output(attempt, f"{number:05d}")
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
                            output = self._output(attempt, f"{number:05d}-rest")
                        file = _refused(planned, error)
                    outcome.files.append(file)
                    progress.file_done(file.nbytes)
                for format, staged in output.finish():
                    outcome.staged.append(StagedData(str(staged.path.relative_to(staging)), format, staged.folder))
            except BaseException:
                output.discard()
                raise
        progress.write()
        return outcome

    def _output(self, folder: Path, name: str) -> Output:
        return Output(folder, name, self.format_options, self.target_bytes, self.uint64_type)

    def _ingest(self, file: PlannedFile, output: Output, progress: TaskProgress) -> FileOutcome:
        """Reads what is new of one file to its end.

        Raises:
            _RefusedError: nothing of it is to be ingested.
        """
        format = self.format
        before = None if file.before is None else file.before.carry.position
        is_final = self.final or (file.segment is not None and file.segment.is_frozen)

        def opening(position: seglake.Position | None, *, final: bool) -> seglake.Reader:
            return self._open(file, str(format), position, final=final)

        try:
            format = format or self._format_of(file)
            reader = opening(before, final=False)
        except (OSError, seglake.SeglakeError) as error:
            raise _RefusedError.by(error, format, wrote=False) from None
        with reader:
            sink = FileSink(file, Path(self.staging).name, output)
            try:
                grown = read_growth(file, reader, opening, sink, progress, final=is_final, uint64_type=self.uint64_type)
                return FileOutcome.of(file, grown, sink)
            except WrongKeyFoundError:
                reason = f"{path_text(file.path)}: {WRONG_KEY}"
                raise _RefusedError("wrong_key", reason, reader.format, wrote=sink.wrote) from None
            except ReplacedError as error:
                reason = f"{path_text(file.path)}: {error}. {_AFTER_REPLACED}"
                raise _RefusedError("replaced", reason, reader.format, wrote=sink.wrote) from None
            except UnreadableError as error:
                raise _RefusedError.by(error.error, reader.format, wrote=sink.wrote) from None

    def _format_of(self, file: PlannedFile) -> str:
        """Returns the format of a file, from which follows how it is read."""
        if file.segment is not None:  # it says itself which format it has by now
            return file.segment.format
        if file.before is not None and file.before.carry.position.identity is not None:
            # It is of that one, or of one with the same columns.
            return file.before.format
        found = seglake.detect(file.path, dialect=self.format_options.dialect, key=self.key_file)
        if found.format is None:
            raise seglake.FormatError(f"cannot tell the format: {found.reason}", path=file.path)
        return found.format

    def _open(
        self, file: PlannedFile, format: str, position: seglake.Position | None, *, final: bool
    ) -> seglake.Reader:
        is_known = position is not None and position.identity is not None
        return seglake.resume(
            file.source,
            position,
            size=file.size if file.segment is None else None,
            final=final,
            format=self.format if file.segment is not None or is_known else format,
            key=self.key_file,
            on_damage="skip",
            columns=[*column_names(format, self.format_options), "position"],
            uuid_type="string",
            **self.format_options.arguments(format, record_bytes=self.record_bytes),
        )


def _refused(file: PlannedFile, error: _RefusedError) -> FileOutcome:
    return FileOutcome(
        file.identity,
        path_text(file.path),
        error.status,
        error.format,
        size=file.size,
        modified=file.modified,
        error=path_text(str(error)),
    )
