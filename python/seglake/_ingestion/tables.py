"""The three tables as Parquet: their schemas, and writers that keep memory and the number of open files bounded."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from seglake._formats import LOCATION_COLUMNS, FormatOptions, column_names, native_schema
from seglake._publish.store import LOCAL

from .lake.table import lake_schema
from .layout import NULL_DATE, STAGED_SUFFIX, records_folder
from .result import TableKind

__all__ = [
    "DAMAGE_SCHEMA",
    "FILES_SCHEMA",
    "RAW_PART_BYTES",
    "DamageWriter",
    "DateWriter",
    "RollingWriter",
    "StagedFile",
    "Uint64Type",
    "is_dated",
    "records_schema",
    "uint64_type_of",
    "write_table",
]

RAW_PART_BYTES: Final = 8 << 20
"""The most bytes of a damaged range that one row of `damage` holds."""

_ROW_GROUP_BYTES: Final = 32 << 20
_BUFFERED_BYTES: Final = 128 << 20
_OPEN_FILES: Final = 32
_DATES: Final = 1024
_DAMAGE_ROWS: Final = 1024
_DAY_US: Final = 86_400_000_000
_EPOCH: Final = date(1970, 1, 1)
_FIRST_DAY: Final = (date.min - _EPOCH).days
_LAST_DAY: Final = (date.max - _EPOCH).days
_compute: Final = cast("Any", pc)  # typed in part only

_TIMESTAMP: Final = pa.timestamp("us", "UTC")

_PLACE: Final = (pa.field("segment", pa.string(), nullable=False), pa.field("run", pa.string(), nullable=False))

DAMAGE_SCHEMA: Final = pa.schema(
    [
        *_PLACE,
        pa.field("path", pa.string(), nullable=False),
        pa.field("start", pa.int64(), nullable=False),
        pa.field("end", pa.int64(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("cause", pa.string(), nullable=False),
        pa.field("part", pa.int32(), nullable=False),
        pa.field("raw", pa.binary(), nullable=False),
    ]
)
"""`damage`: bytes `start` to `end` of `path` in one row or several, `part` counting them from 0."""

FILES_SCHEMA: Final = pa.schema(
    [
        *_PLACE,
        pa.field("path", pa.string(), nullable=False),
        pa.field("status", pa.string(), nullable=False),
        pa.field("format", pa.string()),
        pa.field("checked", pa.string()),
        pa.field("start", pa.int64()),
        pa.field("end", pa.int64()),
        pa.field("pending_bytes", pa.int64()),
        pa.field("nbytes", pa.int64()),
        pa.field("records", pa.int64(), nullable=False),
        pa.field("record_bytes", pa.int64()),
        pa.field("header_bytes", pa.int64()),
        pa.field("padding_bytes", pa.int64()),
        pa.field("unused_bytes", pa.int64()),
        pa.field("torn_bytes", pa.int64()),
        pa.field("corrupt_bytes", pa.int64()),
        pa.field("first_timestamp", _TIMESTAMP),
        pa.field("last_timestamp", _TIMESTAMP),
        pa.field("size", pa.int64()),
        pa.field("modified", pa.int64()),
        pa.field("carry", pa.string()),
        pa.field("error", pa.string()),
    ]
)
"""`files`: a row for each input file and run. If nothing was ingested, `path`, `status` and `error` say why."""


Uint64Type = Literal["uint64", "decimal"]
"""How unsigned integers of 64 bits are written: as they are, or as `decimal(20, 0)` for tables that lack them."""


def uint64_type_of(table: TableKind) -> Uint64Type:
    """Returns how tables of a kind have unsigned integers of 64 bits."""
    return "uint64" if table == "parquet" else "decimal"


def records_schema(format: str, options: FormatOptions, uint64_type: Uint64Type = "uint64") -> pa.Schema:
    """Returns the schema of `records`: the columns of the format, and the segment and place of the record."""
    native: Any = native_schema(format, [*column_names(format, options), *LOCATION_COLUMNS], "string", options)
    # Nullable, as all columns of records are: readers find no reason to tell it from the others.
    schema = native.insert(native.get_field_index("path"), pa.field("segment", pa.string()))
    return lake_schema(schema) if uint64_type == "decimal" else schema


def is_dated(schema: pa.Schema) -> bool:
    """Tells whether records of this schema are partitioned by date: those that have a timestamp are."""
    return "timestamp" in schema.names


class StagedFile(NamedTuple):
    """A finished file: the path that it was written to, and the folder of its table or partition."""

    path: Path
    folder: str


def write_table(path: Path, table: pa.Table) -> None:
    """Writes a Parquet file and has it written to the disk."""
    with LOCAL.open_output(path) as stream, _parquet(stream, table.schema, any_time=True) as writer:
        writer.write_table(table)
    _sync(path)


def _sync(path: Path) -> None:
    LOCAL.sync_file(path)


def _parquet(stream: pa.NativeFile, schema: pa.Schema, *, any_time: bool) -> pq.ParquetWriter:
    """Begins a Parquet file. Where times may be outside of the years 1 to 9999, it has no statistics of them.

    Readers that put statistics into the calendar types of Python fail on such times, as Iceberg's does.
    """
    fields: Any = schema  # typed in part only
    names: list[str] = [each.name for each in fields if not pa.types.is_timestamp(each.type)]
    is_partial = any_time and len(names) < len(schema.names)
    return pq.ParquetWriter(stream, schema, compression="zstd", write_statistics=names if is_partial else True)


@dataclass
class RollingWriter:
    """Writes rows to Parquet files one after the other, a new one whenever one has reached its size.

    Attributes:
        staging: the folder to write to, on this machine.
        name: how the files' names begin.
        folder: the folder of the table or partition that the files are for.
        schema: the rows' schema.
        target_bytes: the size from which on a file is not added to.
        complete: called with each file that is written to its end. It may take it elsewhere.
    """

    staging: Path
    name: str
    folder: str
    schema: pa.Schema
    target_bytes: int
    complete: Callable[[Path], object] = _sync
    buffered_bytes: int = 0
    _buffer: list[pa.RecordBatch] = field(default_factory=list[pa.RecordBatch])
    _finished: list[StagedFile] = field(default_factory=list[StagedFile])
    _open: tuple[Path, pa.NativeFile, pq.ParquetWriter] | None = None

    @property
    def is_open(self) -> bool:
        """Whether a file is open."""
        return self._open is not None

    def append(self, batch: pa.RecordBatch) -> None:
        """Adds rows; they are written when there are enough of them for a row group."""
        if not batch.num_rows:
            return
        self._buffer.append(batch)
        self.buffered_bytes += batch.nbytes
        if self.buffered_bytes >= _ROW_GROUP_BYTES:
            self.flush()

    def flush(self) -> None:
        """Writes the rows that are held back, as one row group."""
        if not self._buffer:
            return
        if self._open is None:
            path = self.staging / f"{self.name}-{len(self._finished):05d}{STAGED_SUFFIX}"
            stream = LOCAL.open_output(path)
            self._open = (path, stream, _parquet(stream, self.schema, any_time=NULL_DATE in self.folder))
        _, stream, writer = self._open
        table = pa.Table.from_batches(self._buffer, self.schema)
        writer.write_table(table, row_group_size=table.num_rows)
        self._buffer.clear()
        self.buffered_bytes = 0
        if stream.tell() >= self.target_bytes:
            self.finish()

    def finish(self) -> list[StagedFile]:
        """Closes the open file; returns all files finished so far."""
        self.flush()
        if self._open is not None:
            path, stream, writer = self._open
            self._open = None
            writer.close()
            stream.close()
            self.complete(path)
            self._finished.append(StagedFile(path, self.folder))
        return self._finished

    def discard(self) -> None:
        """Forgets everything; what has been written is left to those who remove the staging folder."""
        self._buffer.clear()
        self.buffered_bytes = 0
        if self._open is not None:
            _, stream, writer = self._open
            self._open = None
            writer.close()
            stream.close()


@dataclass
class DamageWriter:
    """Writes rows of `damage`, many at a time: hostile files have millions of damaged ranges."""

    rolling: RollingWriter
    _rows: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    _raw_bytes: int = 0

    def append(self, row: dict[str, Any]) -> None:
        """Adds a row: a value for each column of `DAMAGE_SCHEMA`."""
        self._rows.append(row)
        self._raw_bytes += len(row["raw"])
        if len(self._rows) >= _DAMAGE_ROWS or self._raw_bytes >= RAW_PART_BYTES:
            self._pass_on()

    def finish(self) -> list[StagedFile]:
        """Writes what is held back; returns all finished files."""
        self._pass_on()
        return self.rolling.finish()

    def discard(self) -> None:
        """Forgets everything."""
        self._rows.clear()
        self.rolling.discard()

    def _pass_on(self) -> None:
        self.rolling.append(pa.RecordBatch.from_pylist(self._rows, DAMAGE_SCHEMA))
        self._rows.clear()
        self._raw_bytes = 0


@dataclass
class DateWriter:
    """Writes records to one partition for each date of their column `timestamp`, in UTC.

    Those that have no such column come into the table itself. Records whose timestamp is null or not in one of the
    years 1 to 9999 are in the partition of null. At most 128 MiB of rows and 1,024 dates are held at a time, and 32
    files open; what has not been used for longest is closed.

    Attributes:
        staging: the folder to write to, on this machine.
        name: how the files' names begin.
        schema: the records' schema.
        target_bytes: the size from which on a file is not added to.
        complete: as in `RollingWriter`.
    """

    staging: Path
    name: str
    schema: pa.Schema
    target_bytes: int
    complete: Callable[[Path], object] = _sync
    # In the order of their last use, the latest last.
    _writers: dict[str | None, RollingWriter] = field(default_factory=dict[str | None, RollingWriter])
    _finished: list[StagedFile] = field(default_factory=list[StagedFile])
    _made: int = 0

    def append(self, batch: pa.RecordBatch) -> None:
        """Adds records."""
        for day, rows in _by_date(batch):
            writer = self._writers.pop(day, None)
            if writer is None:
                folder = records_folder(day, dated=is_dated(self.schema))
                name = f"{self.name}-{self._made:05d}"
                writer = RollingWriter(self.staging, name, folder, self.schema, self.target_bytes, self.complete)
                self._made += 1
            self._writers[day] = writer
            writer.append(rows)
            if len(self._writers) > _DATES:
                oldest = next(iter(self._writers))
                self._finished.extend(self._writers.pop(oldest).finish())
        self._bound_memory()
        self._bound_open_files()

    def finish(self) -> list[StagedFile]:
        """Writes what is held back; returns all finished files."""
        return [*self._finished, *(staged for writer in self._writers.values() for staged in writer.finish())]

    def discard(self) -> None:
        """Forgets everything."""
        for writer in self._writers.values():
            writer.discard()

    def _bound_memory(self) -> None:
        while sum(writer.buffered_bytes for writer in self._writers.values()) > _BUFFERED_BYTES:
            max(self._writers.values(), key=lambda writer: writer.buffered_bytes).flush()

    def _bound_open_files(self) -> None:
        open_files = [writer for writer in self._writers.values() if writer.is_open]
        for writer in open_files[: max(0, len(open_files) - _OPEN_FILES)]:
            writer.finish()


def _by_date(batch: pa.RecordBatch) -> Iterator[tuple[str | None, pa.RecordBatch]]:
    """Splits records by their date, each part in the order of the batch."""
    if not is_dated(batch.schema):
        yield None, batch
        return
    days = _days(cast("Any", batch).column("timestamp"))
    distinct = days.unique()
    if len(distinct) == 1:
        yield _date_text(distinct[0].as_py()), batch
        return
    order = _compute.sort_indices(days)  # stable: equal days stay in the order of the batch
    first = 0
    for counted in days.take(order).value_counts():
        rows = order.slice(first, counted["counts"].as_py())
        first += len(rows)
        # Taking copies the rows: a slice would keep the whole batch in memory for as long as it is buffered.
        yield _date_text(counted["values"].as_py()), batch.take(rows)


def _days(timestamps: Any) -> Any:
    """Returns the UTC days since 1970 of timestamps; a day that cannot be for those that no calendar has."""
    days = timestamps.cast(pa.date32()).cast(pa.int32())
    known = _compute.and_(_compute.greater_equal(days, _FIRST_DAY), _compute.less_equal(days, _LAST_DAY))
    return _compute.if_else(known.fill_null(False), days, pa.scalar(_LAST_DAY + 1, pa.int32()))


def _date_text(day: int) -> str | None:
    return None if day > _LAST_DAY else (_EPOCH + timedelta(days=day)).isoformat()
