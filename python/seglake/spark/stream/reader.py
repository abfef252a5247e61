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

from seglake._files import FileFilter

from ..decode import Decoder
from ..formats import FORMAT_OF_LOGS
from ..partitions import SegmentPartition, partitions
from ..schema import ReadSchema
from ..versions import reduced
from .log import LogStream, Quota
from .offset import LogOffset

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql.types import StructType

    from ..options import ReadOptions, StreamOptions

__all__ = ["LogStreamReader"]

_NO_QUOTA: Final = Quota()


class LogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A stream of the records of a log, as they come to its disk."""

    def __init__(self, stream: LogStream, decoder: Decoder) -> None:
        self._stream = stream
        self._decoder = decoder
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
            raise ValueError(f"expected the folder of one log to stream from, {len(options.paths)} paths are given")
        if options.filter != FileFilter() or options.ignore_missing_files:
            raise ValueError(
                "options pathGlobFilter, modifiedAfter, modifiedBefore, recursiveFileLookup and ignoreMissingFiles "
                "choose among files, and a stream reads a whole log: leave them out"
            )
        stream = LogStream(options.paths[0], options)
        stream.end()
        return cls(stream, Decoder(FORMAT_OF_LOGS, options, ReadSchema.check(schema, FORMAT_OF_LOGS, options)))

    def __reduce__(self) -> tuple[object, ...]:
        return reduced(LogStreamReader, self._stream, self._decoder)

    def initialOffset(self) -> dict[str, Any]:
        """Returns where the first batch begins. Spark asks twice."""
        if self._begin is None:
            self._begin = self._stream.begin(self._own.starting_from)
        return self._begin.to_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        """Returns the limit of a batch. Spark takes one: of two the other is seen to when a batch is planned."""
        if self._own.most_files is not None:
            return ReadMaxFiles(self._own.most_files)
        if self._own.most_bytes is not None:
            return ReadMaxBytes(self._own.most_bytes)
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Returns the end of the next batch, or `start` where there is nothing to read."""
        begin = LogOffset.from_json(start)
        quota = _NO_QUOTA if isinstance(limit, ReadAllAvailable) else Quota(self._own.most_files, self._own.most_bytes)
        end = self._stream.next(begin, quota, self._most)
        if self._own.starting_from == "now" and begin == self._begin:
            # Where a stream began is not in its checkpoint, and now is another place when Spark asks the next time. So
            # the end of the first batch says it, and there is a first batch also where there is nothing to read.
            return end.ending_first(begin).to_json()
        return end.to_json() if begin.is_before(end) else start

    def prepareForTriggerAvailableNow(self) -> None:
        """Notes what there is now: the query reads up to there, and ends."""
        self._most = self._stream.end()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Returns how far the log is on the disk, for the status of the query."""
        return self._stream.end().to_json()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Returns the tasks of a batch."""
        slices = self._stream.slices(LogOffset.from_json(start), LogOffset.from_json(end))
        return partitions(slices, self._decoder)

    def read(self, partition: InputPartition) -> Iterator[RecordBatch]:
        """Decodes what a task has of the segments; runs on an executor."""
        if not isinstance(partition, SegmentPartition):
            return iter(())
        return self._decoder.decode(partition.slices)

    @property
    def _own(self) -> StreamOptions:
        own = self._stream.options.stream
        assert own is not None
        return own
