"""One task of an ingest, on whatever engine: reads its files and writes their records and damage."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

import seglake
from seglake._text import path_text, printable_path
from seglake.parity.by_sidecar import covered
from seglake.read.formats import key_column
from seglake.tracking.place import Place

from .keys import SourceKeys
from .log import DataFile
from .options import IngestOptions
from .output import FileOutput, Output
from .parquet import Target
from .plan import FileGroup, PlannedFile, formats_of
from .progress import Progress, TaskProgress
from .read import ConflictError, FileReading, FileRow, NotContinuedError, NotReadError, load_keys

__all__ = ["TaskOutcome", "TaskRunner"]


@dataclass
class TaskOutcome:
    """What a task tells the driver. Only what it names is made visible.

    Attributes:
        task: its number.
        files: what became of each of its files.
        again: the paths of files that do not go on as was planned: the next round reads them whole.
        data: the files that it wrote, by their tables.
        key_error: why the key could not be read. The task did nothing.
    """

    task: int
    files: list[FileRow] = field(default_factory=list[FileRow])
    again: list[PlannedFile] = field(default_factory=list[PlannedFile])
    data: dict[str, list[DataFile]] = field(default_factory=dict[str, list[DataFile]])
    key_error: str | None = None


@dataclass(frozen=True)
class TaskRunner:
    """Runs tasks. Spark sends it to its executors, so it can be pickled and holds no key.

    Attributes:
        place: the lake.
        run_id: the name of the run.
        options: how files are read.
    """

    place: Place
    run_id: str
    options: IngestOptions

    def run(self, task: int, groups: Sequence[FileGroup], progress: Progress) -> TaskOutcome:
        """Runs one task.

        Raises:
            OSError: the output cannot be written.
        """
        outcome, options = TaskOutcome(task), self.options
        try:
            seglake.detect(b"", key=options.key_files)
        except (OSError, ValueError) as error:
            outcome.key_error = str(error)
            return outcome
        # Spark may run a task twice, also at the same time: the files of each attempt have other names.
        attempt = f"{task:05d}-{uuid.uuid4().hex[:8]}"
        target = Target(self.place, self.run_id, attempt, options.table == "parquet", options.target_file_size)
        output = Output(target, options)
        try:
            for group in groups:
                with _GroupReading(self, group, output, outcome, progress) as reading:
                    for file in group.files:
                        reading.read(file)
            _extend(outcome.data, output.finish())
        except BaseException:
            output.discard()
            self.place.remove(target.written(file.path) for files in outcome.data.values() for file in files)
            raise
        return outcome


class _GroupReading:
    """Reads the files of a group one after the other: each adds what those before it have not."""

    def __init__(
        self,
        runner: TaskRunner,
        group: FileGroup,
        output: Output,
        outcome: TaskOutcome,
        progress: Progress,
    ) -> None:
        self._runner = runner
        self._group = group
        self._output = output
        self._outcome = outcome
        self._progress = progress
        self._keys: dict[str, SourceKeys] = {}
        self._sources = list(group.sources)
        self._read_sources = set[str]()
        self._stack = ExitStack()
        # What was noted of a file that was given up after that: the others are for the next round.
        self._is_spoiled = False

    def __enter__(self) -> _GroupReading:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def read(self, file: PlannedFile) -> None:
        """Reads a file."""
        if self._is_spoiled:
            self._outcome.again.append(file)
            return
        start = file.before.size if file.goes_on and file.before is not None else 0
        progress = TaskProgress(self._progress, start, file.size)
        try:
            row = self._go_on(file, progress) if file.goes_on else self._whole(file, progress)
        except (NotContinuedError, ConflictError, NotReadError) as error:
            if file.goes_on or not isinstance(error, NotReadError):
                # It is not what it was when it was planned: the next round reads it whole.
                self._outcome.again.append(file)
                return
            state = msgspec.structs.replace(
                file.now, status=error.status, format=error.format, error=path_text(str(error)), source=""
            )
            before = file.before
            is_known = before is not None and (before.path, before.status, before.error) == (
                state.path,
                state.status,
                state.error,
            )
            if before is not None:
                # What was ingested of it stays known.
                state = msgspec.structs.replace(state, source=before.source, format=before.format or state.format)
            row = FileRow(state, has_row=not is_known)
        progress.end()
        self._outcome.files.append(row)

    def _go_on(self, file: PlannedFile, progress: TaskProgress) -> FileRow:
        assert file.before is not None
        source = file.before.source
        keys = None if file.is_all and source not in self._read_sources else self._known(source)
        return self._read(file, source, progress, keys, str(file.before.format))

    def _whole(self, file: PlannedFile, progress: TaskProgress) -> FileRow:
        format = self._format_of(file)
        identity = file.identity or path_text(file.path)
        own = [source for source in self._sources if source == identity or source.startswith(f"{identity}#")]
        before = None if file.before is None else file.before.source
        if before and before not in own and before in self._sources and format in formats_of(before):
            # It begins otherwise than what was there: it is damaged there, or was, or is another file.
            reading = self._reading(file, before, progress)
            reading.keys = self._known(before)
            if reading.has_any(format):
                own = [before]
        conflict: ConflictError | None = None
        for source in own or [identity]:
            is_new = source not in self._sources
            keys = None if is_new else self._known(source)
            try:
                return self._read(file, source, progress, keys, format)
            except ConflictError as error:
                conflict = error
                if key_column(format) != "position":
                    reason = (
                        f"{printable_path(file.path)}: its record {error.key} has other content than the one of this "
                        f"key that its source {source} has: nothing of it was added. Find out which one is right"
                    )
                    raise NotReadError("conflict", reason, format) from None
        assert conflict is not None
        number = conflict.fingerprint & 0xFFFFFFFF
        # One that begins like it may have been named for the same record.
        while (source := f"{identity}#{number:08x}") in self._sources:
            number += 1
        return self._read(file, source, progress, None, format)

    def _reading(self, file: PlannedFile, source: str, progress: TaskProgress) -> FileReading:
        runner = self._runner
        return FileReading(file, source, runner.options, runner.run_id, progress, FileOutput(self._output))

    def _read(
        self,
        file: PlannedFile,
        source: str,
        progress: TaskProgress,
        keys: SourceKeys | None,
        format: str,
    ) -> FileRow:
        noted = self._known(source) if len(self._group.files) > 1 else None
        reading = self._reading(file, source, progress)
        reading.keys, reading.noted = keys, noted
        try:
            row = reading.read(format)
        except BaseException:
            reading.output.discard()
            self._is_spoiled = self._is_spoiled or (noted is not None and reading.added > 0)
            raise
        _extend(self._outcome.data, reading.output.finish())
        self._read_sources.add(source)
        if source not in self._sources:
            self._sources.append(source)
        return row

    def _known(self, source: str) -> SourceKeys:
        """Returns the keys that a source has, in the lake and of the files of the group that were read."""
        keys = self._keys.get(source)
        if keys is None:
            folder = self._stack.enter_context(TemporaryDirectory(prefix="seglake-"))
            keys = self._keys[source] = self._stack.enter_context(SourceKeys(Path(folder)))
            files = self._group.sources.get(source, {})
            load_keys(keys, source, files, self._runner.options, self._runner.place.open)
        return keys

    def _format_of(self, file: PlannedFile) -> str:
        """Returns the format of a file, from which follows how it is read.

        Raises:
            NotReadError: it cannot be told.
        """
        options = self._runner.options
        if options.format is not None:
            return options.format
        if file.segment is not None:  # it says itself which format it has by now
            return file.segment.format
        how: dict[str, Any] = {
            "options": options.format_options.telling(),
            "key": options.key_files,
            "storage_options": options.storage_options,
        }
        try:
            if covered(file.path, options.sidecar) is not None:
                try:
                    with seglake.open(file.path, sidecar=options.sidecar, **how) as reader:
                        return reader.format
                except seglake.FormatError:
                    pass
            found = seglake.detect(file.path, **how)
        except (OSError, seglake.SeglakeError) as error:
            raise NotReadError.of(error) from None
        if found.format is None:
            raise NotReadError("not_a_segment", f"{printable_path(file.path)}: cannot tell the format: {found.reason}")
        return found.format


def _extend(data: dict[str, list[DataFile]], more: dict[str, list[DataFile]]) -> None:
    for table, files in more.items():
        data.setdefault(table, []).extend(files)
