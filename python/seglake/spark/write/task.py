"""What a task does: rows in, files in the hidden folder of its job out."""

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import WriterCommitMessage

import seglake
from seglake._publish.store import LOCAL
from seglake._text import printable_path

from .job import Job, PartFile
from .options import WriteOptions
from .rows import Rows, Share, refuse
from .schema import WriteSchema

__all__ = ["SegmentCommitMessage", "TaskWriter"]

_INDEX: Final = ".index"


@dataclass(frozen=True)
class SegmentCommitMessage(WriterCommitMessage):
    """What one attempt at a task has written."""

    files: tuple[PartFile, ...]


class TaskWriter:
    """Writes the rows of one partition of a frame.

    Args:
        options: what the write was asked for.
        schema: what was found out about the columns.
        job: where files are put aside.
        partition: the number of the partition.
        attempt: a number that no other attempt at any task has.
    """

    def __init__(self, options: WriteOptions, schema: WriteSchema, job: Job, partition: int, attempt: int) -> None:
        self._options = options
        self._schema = schema
        self._job = job
        self._partition = partition
        self._attempt = attempt
        self._share = Share(options.max_records, options.max_bytes)
        self._writer: seglake.Writer | None = None
        self._files: list[PartFile] = []

    def write(self, batches: Iterable[pa.RecordBatch]) -> SegmentCommitMessage:
        """Writes all rows, and says what is where. If that fails nothing is left.

        No rows make no file, but in the first partition an empty one, as Spark's own sources have it: then a frame
        without rows leaves something that can be read.

        Raises:
            ValueError: a row cannot be a record of the format, or does not follow the one before it. The message says
                which row, counted from 0 within the partition, and what to add to the frame.
            OSError: a file cannot be written, or the key's file not be read.
        """
        if not self._job.staging.is_dir():
            raise FileNotFoundError(
                f"{printable_path(self._job.staging)}: the folder that the driver has made for this write is not "
                "there. All machines have to see the destination under the same path; or the write has ended meanwhile"
            )
        try:
            first_row = 0
            for batch in batches:
                self._write_batch(batch, first_row)
                first_row += batch.num_rows
            if self._writer is None and not self._files and self._partition == 0:
                self._begin_file()
            self._end_file()
        except BaseException:
            self._abandon()
            raise
        return SegmentCommitMessage(tuple(self._files))

    def _write_batch(self, batch: pa.RecordBatch, first_row: int) -> None:
        try:
            rows = Rows(refuse(batch, self._schema, first_row), self._share, self._schema.order.counting)
        except ValueError as error:
            raise ValueError(f"partition {self._partition}, {error}") from None
        while not rows.is_done:
            start = rows.next
            some = rows.take()
            if some.num_rows:
                self._write_rows(some, first_row + start)
            if not rows.is_done:
                self._end_file()

    def _write_rows(self, rows: pa.RecordBatch, first_row: int) -> None:
        writer = self._writer or self._begin_file()
        try:
            writer.write_batch(rows)
        except ValueError as error:
            row: int | None = getattr(error, "row", None)
            if row is None:
                raise
            order = self._schema.order
            refused: dict[str, Any] = rows.select(order.watched).slice(row, 1).to_pylist()[0]
            advice = order.advice(refused, writer.last)
            raise ValueError(f"partition {self._partition}, row {first_row + row}: {error}{advice}") from None

    def _begin_file(self) -> seglake.Writer:
        name = f"part-{self._partition:05d}-{self._job.id}-c{len(self._files):03d}.{self._options.facts.extension}"
        self._writer = self._options.open(self._job.staging / f"{self._attempt}-{name}")
        return self._writer

    def _end_file(self) -> None:
        if self._writer is None:
            return
        writer, path = self._writer, Path(self._writer.path)
        try:
            # What gets its name has to be on the disk before.
            writer.sync()
            writer.close()
        except ValueError as error:
            advice = self._schema.order.advice(None, None)
            raise ValueError(f"partition {self._partition}: {error}{advice}") from None
        self._writer = None
        staged = [each for each in (path, path.with_suffix(_INDEX)) if each.exists()]
        for each in staged:
            LOCAL.share(each)
        moves = tuple((each.name, each.name.removeprefix(f"{self._attempt}-")) for each in staged)
        self._files.append(PartFile(moves, self._share.records))
        self._share.records = self._share.bytes = 0

    def _abandon(self) -> None:
        """Leaves nothing, as far as that goes: the first error is the one to tell of."""
        staged = [self._job.staging / name for file in self._files for name, _ in file.moves]
        if self._writer is not None:
            path = Path(self._writer.path)
            staged.extend((path, path.with_suffix(_INDEX)))
            with contextlib.suppress(OSError, ValueError):
                self._writer.abandon()
        with contextlib.suppress(OSError):
            for each in staged:
                LOCAL.remove(each)
