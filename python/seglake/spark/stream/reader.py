"""What Spark asks of a stream. Needs PySpark 4.2: before that a stream is not told how much a batch may take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)

from seglake._text import printable_path
from seglake.stores import FileFilter

from ..decode import Decoder
from ..formats import FORMAT_OF_LOGS
from ..option_names import naming_options
from ..partitions import SegmentPartition, partitions
from ..schema import ReadSchema
from ..versions import reduced
from .folder import FolderStream
from .log import LogStream, Quota, streaming_files
from .offset import LogOffset, StateOffset

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql.types import StructType

    from ..options import ReadOptions, StreamOptions

__all__ = ["RefusedStreamReader", "plan"]

_NO_QUOTA: Final = Quota()


def plan(options: ReadOptions, format: str | None, schema: StructType) -> DataSourceStreamReader:
    """Checks what a stream was asked for. What is wrong is raised when the reader is asked for something.

    Spark calls a method of the reader also if it could not be made, and tells of that alone.

    Args:
        options: what it was asked for.
        format: the format of its files, if one is known.
        schema: its columns.
    """
    stream = options.stream
    try:
        with naming_options():
            options.check_sidecar()
            if stream is not None and stream.state_location is not None:
                return FolderStreamReader.plan(options, format, schema)
            return LogStreamReader.plan(options, schema)
    except Exception as error:
        return RefusedStreamReader(error)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """What all streams have in common."""

    def __init__(self, decoder: Decoder) -> None:
        self._decoder = decoder

    def getDefaultReadLimit(self) -> ReadLimit:
        """Returns the limit of a batch. Spark takes one: of two the other is seen to when a batch is planned."""
        if self._own.most_files is not None:
            return ReadMaxFiles(self._own.most_files)
        if self._own.most_bytes is not None:
            return ReadMaxBytes(self._own.most_bytes)
        return ReadAllAvailable()

    def read(self, partition: InputPartition) -> Iterator[RecordBatch]:
        """Decodes what a task has of the segments; runs on an executor."""
        if not isinstance(partition, SegmentPartition):
            return iter(())
        return self._decoder.decode(partition.slices)

    def _quota(self, limit: ReadLimit) -> Quota:
        return _NO_QUOTA if isinstance(limit, ReadAllAvailable) else Quota(self._own.most_files, self._own.most_bytes)

    @property
    def _own(self) -> StreamOptions:
        own = self._decoder.options.stream
        assert own is not None
        return own


class FolderStreamReader(StreamReader):
    """A stream of the records of files: of new ones, and those that are added to others."""

    def __init__(self, stream: FolderStream, decoder: Decoder) -> None:
        super().__init__(decoder)
        self._stream = stream

    @classmethod
    def plan(cls, options: ReadOptions, format: str | None, schema: StructType) -> FolderStreamReader:
        """Checks what a stream was asked for.

        Raises:
            ValueError: the format is not known, or an option or the schema does not fit.
        """
        format = options.segment_format or format
        if format is None:
            raise ValueError(
                f"no files to tell the format by in {', '.join(map(printable_path, options.paths))}: name it with "
                "option segmentFormat"
            )
        options.check_format(format)
        decoder = Decoder(format, options, ReadSchema.check(schema, format, options))
        return cls(FolderStream(decoder), decoder)

    def __reduce__(self) -> tuple[object, ...]:
        return reduced(_folder_reader, self._decoder)

    def initialOffset(self) -> dict[str, Any]:
        """Returns where the first batch begins. Spark asks twice."""
        return StateOffset().to_json()

    @naming_options()
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Returns the end of the next batch, or `start` where there is nothing to read."""
        return self._stream.next(StateOffset.from_json(start), self._quota(limit)).to_json()

    @naming_options()
    def prepareForTriggerAvailableNow(self) -> None:
        """Notes what there is now: the query reads up to there, and ends."""
        self._stream.stop_at_now()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Returns where the last batch ended, and what has not been read, for the progress of the query."""
        return self._stream.available()

    @naming_options()
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Returns the tasks of a batch. Its end says it all."""
        StateOffset.from_json(start)
        return partitions(self._stream.slices(StateOffset.from_json(end)), self._decoder)


def _folder_reader(decoder: Decoder) -> FolderStreamReader:
    return FolderStreamReader(FolderStream(decoder), decoder)


class RefusedStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A stream that cannot be: all that Spark asks of it raises why."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def initialOffset(self) -> dict[str, Any]:
        """Raises the error."""
        raise self._error

    def getDefaultReadLimit(self) -> ReadLimit:
        """Raises the error."""
        raise self._error

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Raises the error."""
        raise self._error

    def prepareForTriggerAvailableNow(self) -> None:
        """Raises the error."""
        raise self._error

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Raises the error."""
        raise self._error

    def read(self, partition: InputPartition) -> Iterator[RecordBatch]:
        """Raises the error."""
        raise self._error


class LogStreamReader(StreamReader):
    """A stream of the records of a log, as they come to its disk."""

    def __init__(self, stream: LogStream, decoder: Decoder) -> None:
        super().__init__(decoder)
        self._stream = stream
        self._begin: LogOffset | None = None
        self._most: LogOffset | None = None

    @classmethod
    def plan(cls, options: ReadOptions, schema: StructType) -> LogStreamReader:
        """Checks what a stream was asked for.

        Raises:
            ValueError: it is not the folder of a log, or an option or the schema does not fit.
        """
        options.check_format(FORMAT_OF_LOGS)
        if len(options.paths) != 1:
            raise ValueError(
                f"expected the folder of one log to stream from, {len(options.paths)} paths are given. "
                f"{streaming_files(options.paths[0])}"
            )
        if options.filter != FileFilter() or options.ignore_missing_files or options.ignore_corrupt_files:
            raise ValueError(
                "options pathGlobFilter, modifiedAfter, modifiedBefore, recursiveFileLookup, ignoreMissingFiles and "
                "ignoreCorruptFiles choose among files, and a stream reads a whole log: leave them out. "
                f"{streaming_files(options.paths[0])}"
            )
        stream = LogStream(options.paths[0], options)
        stream.end()
        return cls(stream, Decoder(FORMAT_OF_LOGS, options, ReadSchema.check(schema, FORMAT_OF_LOGS, options)))

    def __reduce__(self) -> tuple[object, ...]:
        return reduced(LogStreamReader, self._stream, self._decoder)

    @naming_options()
    def initialOffset(self) -> dict[str, Any]:
        """Returns where the first batch begins. Spark asks twice."""
        if self._begin is None:
            self._begin = self._stream.begin(self._own.starting_from)
        return self._begin.to_json()

    @naming_options()
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Returns the end of the next batch, or `start` where there is nothing to read."""
        begin = LogOffset.from_json(start)
        end = self._stream.next(begin, self._quota(limit), self._most)
        if self._own.starting_from == "now" and begin == self._begin:
            # Where a stream began is not in its checkpoint, and now is another place when Spark asks the next time. So
            # the end of the first batch says it, and there is a first batch also where there is nothing to read.
            return end.ending_first(begin).to_json()
        return end.to_json() if begin.is_before(end) else start

    @naming_options()
    def prepareForTriggerAvailableNow(self) -> None:
        """Notes what there is now: the query reads up to there, and ends."""
        self._most = self._stream.end()

    @naming_options()
    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Returns how far the log is on the disk, for the status of the query."""
        return self._stream.end().to_json()

    @naming_options()
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Returns the tasks of a batch."""
        slices = self._stream.slices(LogOffset.from_json(start), LogOffset.from_json(end))
        return partitions(slices, self._decoder)
