"""The rows of a task on their way into files: what is refused of them, and how many go into one file."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

import pyarrow as pa
import pyarrow.compute as pc

from seglake._text import printable

from .schema import WriteSchema

__all__ = ["Rows", "Share", "refuse"]

_NUMBER_BYTES: Final = 8
_OF_BYTES: Final = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_string, pa.types.is_large_string)


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
