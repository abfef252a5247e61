"""The writer that Spark asks the data source for."""

import importlib.util
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from ..option_names import naming_options
from ..versions import reduced
from .job import Job
from .options import WriteOptions
from .schema import WriteSchema
from .store_job import StoreJob
from .task import SegmentCommitMessage, TaskWriter

if TYPE_CHECKING:
    from pyarrow import RecordBatch

__all__ = ["SegmentDataSourceWriter"]


class SegmentDataSourceWriter(DataSourceArrowWriter):
    """Writes a frame into a folder of segments of one format. Made on the driver, sent to the executors."""

    def __init__(self, options: WriteOptions, schema: WriteSchema, job: Job | StoreJob) -> None:
        self._options = options
        self._schema = schema
        self._job = job

    @classmethod
    def begin(cls, schema: StructType, options: WriteOptions, *, overwrite: bool) -> "SegmentDataSourceWriter":
        """Checks the frame's columns, and begins the write.

        Raises:
            ValueError: a column is not one of the format, or there is something in the folder that must not be
                overwritten.
            OSError: the folder cannot be made or written to, or this system has no file locks.
        """
        is_mounted = options.stores is None
        if is_mounted and importlib.util.find_spec("fcntl") is None:
            raise OSError("writing segments with Spark needs Linux or macOS: this system lacks the file locks it takes")
        checked = WriteSchema.check(schema, options)
        success_file = options.success_file
        if options.stores is None:
            job = Job.begin(Path(options.folder), overwrites=overwrite, success_file=success_file)
        else:
            job = StoreJob.begin(options.folder, options.stores, overwrites=overwrite, success_file=success_file)
        return cls(options, checked, job)

    def __reduce__(self) -> tuple[object, ...]:
        return reduced(SegmentDataSourceWriter, self._options, self._schema, self._job)

    @naming_options()
    def write(self, iterator: "Iterator[RecordBatch]") -> WriterCommitMessage:
        """Writes the rows of one partition; runs on an executor."""
        task = TaskContext.get()
        if task is None:
            raise RuntimeError("rows are written within a task of Spark's alone")
        return TaskWriter(self._options, self._schema, self._job, task.partitionId(), task.taskAttemptId()).write(
            iterator
        )

    @naming_options()
    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Makes what the tasks have written visible; runs on the driver."""
        self._job.commit(
            [file for message in messages if isinstance(message, SegmentCommitMessage) for file in message.files]
        )

    @naming_options()
    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Removes what the tasks have written; runs on the driver."""
        self._job.abort()
