"""What a task does: rows in, files of its job out."""

import contextlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import WriterCommitMessage

import seglake
from seglake._text import printable

from .existing import PartFile
from .job import Job
from .options import WriteOptions
from .schema import WriteSchema
from .store_job import StoreJob

__all__ = ["Rows", "SegmentCommitMessage", "Share", "TaskWriter", "refuse"]

_INDEX: Final = ".index"
_NUMBER_BYTES: Final = 8
_OF_BYTES: Final = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_string, pa.types.is_large_string)


@dataclass(frozen=True)
class SegmentCommitMessage(WriterCommitMessage):
    """What one attempt at a task has written."""

    files: tuple[PartFile, ...]


class TaskWriter:
    """Writes the rows of one partition of a frame.

    Args:
        options: what the write was asked for.
        schema: what was found out about the columns.
        job: where files are put.
        partition: the number of the partition.
        attempt: a number that no other attempt at any task has.
    """

    def __init__(
        self, options: WriteOptions, schema: WriteSchema, job: Job | StoreJob, partition: int, attempt: int
    ) -> None:
        self._options = options
        self._schema = schema
        self._job = job
        self._partition = partition
        self._attempt = attempt
        self._share = Share(options.max_records, options.max_bytes)
        self._writer: seglake.Writer | None = None
        self._files: list[PartFile] = []
        # Where files are until they are complete.
        self._folder = Path()

    def write(self, batches: Iterable[pa.RecordBatch]) -> SegmentCommitMessage:
        """Writes all rows, and says what is where. If that fails nothing is left.

        No rows make no file, but in the first partition an empty one, as Spark's own sources have it: then a frame
        without rows leaves something that can be read.

        Raises:
            ValueError: a row cannot be a record of the format, or does not follow the one before it. The message says
                which row, counted from 0 within the partition, and what to add to the frame.
            OSError: a file cannot be written, or the key's file not be read.
        """
        with self._job.writing() as self._folder:
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
            raise ValueError(
                f"partition {self._partition}, row {first_row + row}: {error.__cause__ or error}{advice}"
            ) from None

    def _begin_file(self) -> seglake.Writer:
        # Of two attempts at a task one counts, so that names are those of an attempt.
        own = f"{self._partition:05d}-{self._job.id}-{self._attempt}-c{len(self._files):03d}"
        self._writer = self._options.open(self._folder / f"part-{own}.{self._options.format.extension}")
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
        written = [each for each in (path, path.with_suffix(_INDEX)) if each.exists()]
        # Before they are put: what fails half way has to be removed.
        self._files.append(PartFile(tuple(each.name for each in written), self._share.records))
        for each in written:
            self._job.put(each)
        self._share.records = self._share.bytes = 0

    def _abandon(self) -> None:
        """Leaves nothing, as far as that goes: the first error is the one to tell of."""
        names = [name for file in self._files for name in file.names]
        if self._writer is not None:
            path = Path(self._writer.path)
            names += [path.name, path.with_suffix(_INDEX).name]
            with contextlib.suppress(OSError, ValueError):
                self._writer.abandon()
        self._job.discard(names)


def refuse(batch: pa.RecordBatch, schema: WriteSchema, first_row: int) -> pa.RecordBatch:
    """Returns the columns to write of a batch.

    Args:
        batch: rows of the frame.
        schema: what was found out about their columns.
        first_row: the number of the first of them within the task.

    Raises:
        ValueError: a row reports damage, or has null where a value is needed. The message says which.
    """
    if schema.corrupt_column is not None:
        reports = _column(batch, schema.corrupt_column)
        if reports.null_count < len(reports):
            row = _first(reports.is_valid())
            raise ValueError(_damage(schema.corrupt_column, reports[row].as_py(), first_row + row))
    for name in schema.not_null:
        values = _column(batch, name)
        if values.null_count:
            row = first_row + _first(values.is_null())
            raise ValueError(f'row {row}: column {name} is null. Leave such rows out with .where("{name} IS NOT NULL")')
    return batch.select(list(schema.columns))


@dataclass
class Share:
    """How much of a file is taken, and by which rows a further one may begin."""

    max_records: int | None
    max_bytes: int | None
    records: int = 0
    bytes: int = 0

    @property
    def is_bounded(self) -> bool:
        """Whether there may be a second file at all."""
        return self.max_records is not None or self.max_bytes is not None


class Rows:
    """A batch, and what files take of it one after the other."""

    def __init__(self, batch: pa.RecordBatch, share: Share, counting: str | None) -> None:
        self.batch = batch
        self._share = share
        self._next = 0
        # Up to each row, the row itself included.
        self._ends: Sequence[int] | None = None
        if share.max_bytes is not None:
            self._ends = cast("Any", pc).cumulative_sum(_row_bytes(batch)).to_pylist()
        # The rows by which a file may begin; all of them where nothing counts them.
        self._starts: Sequence[int] | None = None
        if share.is_bounded and counting is not None:
            zero = cast("Any", pc).equal(_column(batch, counting), 0)
            self._starts = cast("Any", pc).indices_nonzero(zero).to_pylist()

    @property
    def next(self) -> int:
        """The first row that no file has taken."""
        return self._next

    def take(self) -> pa.RecordBatch:
        """Takes the rows that still go into the file; none if a further one has to be begun first."""
        start, end = self._next, self._end()
        self._next = end
        self._share.records += end - start
        if self._ends is not None and end > start:
            self._share.bytes += self._ends[end - 1] - self._before(start)
        return self.batch.slice(start, end - start)

    @property
    def is_done(self) -> bool:
        """Whether all rows are taken."""
        return self._next == self.batch.num_rows

    def _end(self) -> int:
        share, start, rows = self._share, self._next, self.batch.num_rows
        end = rows
        if share.max_records is not None:
            end = min(end, start + max(share.max_records - share.records, 0))
        if self._ends is not None and share.max_bytes is not None:
            room = share.max_bytes - share.bytes + self._before(start)
            end = min(end, max(bisect_right(self._ends, room), start))
        if end == start and share.records == 0:
            end = start + 1  # a record that is larger than a file is to be has one of its own
        if self._starts is not None and end < rows:
            number = bisect_left(self._starts, end)
            end = self._starts[number] if number < len(self._starts) else rows
        return end

    def _before(self, row: int) -> int:
        return self._ends[row - 1] if self._ends is not None and row else 0


def _row_bytes(batch: pa.RecordBatch) -> Any:
    """Returns about how many bytes each row has."""
    compute = cast("Any", pc)
    total: Any = cast("Any", pa).repeat(cast("Any", pa).scalar(0, pa.int64()), batch.num_rows)
    for column in cast("Any", batch).columns:
        lengths: Any = _NUMBER_BYTES
        if pa.types.is_nested(column.type):
            # Not worth going into: all rows the same.
            lengths = -(-column.nbytes // max(len(column), 1))
        elif any(of_bytes(column.type) for of_bytes in _OF_BYTES):
            lengths = compute.fill_null(compute.binary_length(column), 0).cast(pa.int64())
        total = compute.add(total, lengths)
    return total


def _column(batch: pa.RecordBatch, name: str) -> Any:
    return cast("Any", batch).column(name)


def _first(truths: Any) -> int:
    return cast("Any", pc).index(truths, True).as_py()


def _damage(name: str, report: dict[str, Any], row: int) -> str:
    where = f"{report['cause']} in {report['path']} from {report['start']} to {report['end']}"
    return (
        f"row {row}: column {name} reports damage ({printable(where)}), which cannot be written as a record. See what "
        f'is lost with .where("{name} IS NOT NULL"), and leave it out with .where("{name} IS NULL")'
    )
