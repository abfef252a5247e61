"""The tables as Parquet: their schemas, and writers that keep memory and the number of open files bounded."""

import contextlib
import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any, Final, Literal, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow.fs import LocalFileSystem

from seglake.read.formats import LOCATION_COLUMNS, column_names, native_schema
from seglake.tracking.place import Place

from .log import DataFile
from .options import IngestOptions
from .result import TableFormat
from .table import lake_schema

__all__ = [
    "DAMAGE_SCHEMA",
    "FILES_SCHEMA",
    "RAW_PART_BYTES",
    "RUNS_SCHEMA",
    "STAGING",
    "DateWriter",
    "RollingWriter",
    "Target",
    "Uint64Type",
    "records_folder",
    "records_schema",
    "staged_name",
    "uint64_type_of",
    "write_rows",
]

STAGING: Final = "_staging"
"""Below the lake: the files of runs of plain Parquet that have no final names yet."""

STAGED_SUFFIX: Final = ".inprogress"
NULL_DATE: Final = "__HIVE_DEFAULT_PARTITION__"
"""How Hive, and with it Spark, DuckDB and polars, name the partition of null."""

# The columns of which the commit tells the bounds.
_BOUNDED: Final = frozenset({"source", "path", "uuid", "offset", "position", "seq", "timestamp", "run"})
RAW_PART_BYTES: Final = 8 << 20
"""The most bytes of a damaged range that one row of `damage` holds."""

_ROW_GROUP_BYTES: Final = 32 << 20
_BUFFERED_BYTES: Final = 128 << 20
_OPEN_FILES: Final = 32
_DATES: Final = 1024
_DAY_US: Final = 86_400_000_000
_EPOCH: Final = date(1970, 1, 1)
_FIRST_DAY: Final = (date.min - _EPOCH).days
_LAST_DAY: Final = (date.max - _EPOCH).days
_compute: Final = cast("Any", pc)  # typed in part only

_TIMESTAMP: Final = pa.timestamp("us", "UTC")


def _schema(columns: str) -> pa.Schema:
    """Returns a schema of columns such as `path: string!`; those with `!` are never null."""
    types: dict[str, Any] = {"string": pa.string(), "long": pa.int64(), "int": pa.int32(), "binary": pa.binary()}
    types |= {"double": pa.float64(), "time": _TIMESTAMP}
    pairs = [each.split(": ") for each in columns.split(", ")]
    return pa.schema([pa.field(name, types[type.rstrip("!")], nullable="!" not in type) for name, type in pairs])


DAMAGE_SCHEMA: Final = _schema(
    "source: string!, run: string!, path: string!, start: long!, end: long!, kind: string!, cause: string!, "
    "part: int!, raw: binary!"
)
"""`damage`: bytes `start` to `end` of `path` in one row or several, `part` counting them from 0."""

FILES_SCHEMA: Final = _schema(
    "source: string!, run: string!, path: string!, status: string!, format: string, checked: string, start: long, "
    "end: long, pending_bytes: long, nbytes: long, records: long!, added: long!, record_bytes: long, "
    "header_bytes: long, padding_bytes: long, unused_bytes: long, torn_bytes: long, corrupt_bytes: long, "
    "first_timestamp: time, last_timestamp: time, size: long, modified: long, error: string"
)
"""`files`: a row for each input file and run. If nothing was ingested, `path`, `status` and `error` say why."""

RUNS_SCHEMA: Final = _schema(
    "run: string!, started: time!, seconds: double!, files: long!, records: long!, bytes: long!, outcome: string!"
)
"""`runs`: a row for each run that found something."""

Uint64Type = Literal["uint64", "decimal"]
"""How unsigned integers of 64 bits are written: as they are, or as `decimal(20, 0)` for tables that lack them."""


def uint64_type_of(table: TableFormat) -> Uint64Type:
    """Returns how tables of a kind have unsigned integers of 64 bits."""
    return "uint64" if table == "parquet" else "decimal"


def records_schema(format: str, options: IngestOptions) -> pa.Schema:
    """Returns the schema of a table of records: the columns of the format, and the source and place of the record."""
    own = options.format_options
    native: Any = native_schema(format, [*column_names(format, own), *LOCATION_COLUMNS], "string", own)
    # Nullable, as all columns of records are: readers find no reason to tell it from the others.
    schema = native.insert(native.get_field_index("path"), pa.field("source", pa.string()))
    return lake_schema(schema) if uint64_type_of(options.table) == "decimal" else schema


def is_dated(schema: pa.Schema) -> bool:
    """Tells whether records of this schema are partitioned by date: those that have a timestamp are."""
    return "timestamp" in schema.names


def _parquet(stream: pa.NativeFile, schema: pa.Schema, found: list[Any], *, any_time: bool) -> pq.ParquetWriter:
    """Begins a Parquet file. Where times may be outside of the years 1 to 9999, it has no statistics of them.

    Readers that put statistics into the calendar types of Python fail on such times, as Iceberg's does.
    """
    fields: Any = schema  # typed in part only
    names: list[str] = [each.name for each in fields if not pa.types.is_timestamp(each.type)]
    is_partial = any_time and len(names) < len(schema.names)
    statistics: Any = names if is_partial else True
    return pq.ParquetWriter(stream, schema, compression="zstd", write_statistics=statistics, metadata_collector=found)


@dataclass(frozen=True)
class Target:
    """Where the data files of an attempt at a task go.

    Attributes:
        place: the lake.
        run: the name of the run.
        attempt: what no other attempt is called.
        is_staged: whether files get their final names by the commit, as their folder is all that tells of them.
        file_bytes: the size from which on a file is not added to.
    """

    place: Place
    run: str
    attempt: str
    is_staged: bool
    file_bytes: int
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def name(self, folder: str) -> str:
        """Returns the name of another file in a folder of the lake."""
        return f"{folder}/{self.run}-{self.attempt}-{next(self._numbers):05d}.parquet"

    def written(self, name: str) -> str:
        """Returns the name under which a file is written."""
        return staged_name(self.run, name) if self.is_staged else name


def staged_name(run: str, name: str) -> str:
    """Returns the name under which a file of plain Parquet is staged: no reader takes it for one of a table."""
    return f"{STAGING}/{run}/{name.rpartition('/')[2]}{STAGED_SUFFIX}"


@dataclass
class RollingWriter:
    """Writes rows to Parquet files one after the other, a new one whenever one has reached its size.

    Attributes:
        target: where they go.
        folder: the folder of the table or partition that the files are for, below the lake.
        schema: the rows' schema.
    """

    target: Target
    folder: str
    schema: pa.Schema
    buffered_bytes: int = 0
    _buffer: list[pa.RecordBatch] = field(default_factory=list[pa.RecordBatch])
    _finished: list[DataFile] = field(default_factory=list[DataFile])
    _open: tuple[str, contextlib.ExitStack, pa.NativeFile, pq.ParquetWriter, list[Any]] | None = None

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
            name, stack, found = self.target.name(self.folder), contextlib.ExitStack(), list[Any]()
            path = stack.enter_context(self.target.place.writing(self.target.written(name)))
            stream = LocalFileSystem().open_output_stream(str(path))
            writer = _parquet(stream, self.schema, found, any_time=NULL_DATE in self.folder)
            self._open = (name, stack, stream, writer, found)
        _, _, stream, writer, _ = self._open
        table = pa.Table.from_batches(self._buffer, self.schema)
        writer.write_table(table, row_group_size=table.num_rows)
        self._buffer.clear()
        self.buffered_bytes = 0
        if stream.tell() >= self.target.file_bytes:
            self.finish()

    def finish(self) -> list[DataFile]:
        """Closes the open file; returns all files finished so far."""
        self.flush()
        if self._open is not None:
            name, stack, stream, writer, found = self._open
            self._open = None
            with stack:
                writer.close()
                nbytes = stream.tell()
                stream.close()
            self._finished.append(_data_file(name, nbytes, found[0]))
        return self._finished

    def discard(self) -> None:
        """Forgets everything, and removes what it wrote."""
        self._buffer.clear()
        self.buffered_bytes = 0
        if self._open is not None:
            _, stack, stream, writer, _ = self._open
            self._open = None
            for close in (writer.close, stream.close):
                with contextlib.suppress(Exception):  # as on a full disk, which is why it is discarded
                    close()
            with contextlib.suppress(_DiscardedError), stack:
                raise _DiscardedError
        self.target.place.remove(self.target.written(file.path) for file in self._finished)
        self._finished.clear()


class _DiscardedError(Exception):
    """What is in a file is not wanted."""


def _data_file(name: str, nbytes: int, found: Any) -> DataFile:
    """Returns what the commit needs to know of a file that was written, without opening it again."""
    least: dict[str, Any] = {}
    most: dict[str, Any] = {}
    groups = [found.row_group(number) for number in range(found.num_row_groups)]
    for number in range(found.num_columns):
        column = found.schema.column(number).path
        bounds = [group.column(number).statistics for group in groups] if column in _BOUNDED else []
        if bounds and all(each is not None and each.has_min_max for each in bounds):
            raw = "_raw" if column == "timestamp" else ""  # microseconds since 1970
            least[column] = min(getattr(each, f"min{raw}") for each in bounds)
            most[column] = max(getattr(each, f"max{raw}") for each in bounds)
    named = [part.split("=", 1) for part in name.split("/")[:-1] if "=" in part]
    partition = {name: None if value == NULL_DATE else value for name, value in named}
    return DataFile(name, nbytes, found.num_rows, time.time_ns() // 1_000_000, partition, least, most)


def write_rows(target: Target, folder: str, table: pa.Table) -> DataFile:
    """Writes the rows of a table as one file, also if there are none."""
    name, found = target.name(folder), list[Any]()
    with target.place.writing(target.written(name)) as path:
        stream = LocalFileSystem().open_output_stream(str(path))
        with _parquet(stream, table.schema, found, any_time=True) as writer:
            writer.write_table(table)
        nbytes = stream.tell()
        stream.close()
    return _data_file(name, nbytes, found[0])


@dataclass
class DateWriter:
    """Writes records to one partition for each date of their column `timestamp`, in UTC.

    Those that have no such column come into the table itself. Records whose timestamp is null or not in one of the
    years 1 to 9999 are in the partition of null. At most 128 MiB of rows and 1,024 dates are held at a time, and 32
    files open; what has not been used for longest is closed.

    Attributes:
        target: where its files go.
        table: the table's folder below the lake.
        schema: the records' schema.
    """

    target: Target
    table: str
    schema: pa.Schema
    # In the order of their last use, the latest last.
    _writers: dict[str | None, RollingWriter] = field(default_factory=dict[str | None, RollingWriter])
    _finished: list[DataFile] = field(default_factory=list[DataFile])

    def append(self, batch: pa.RecordBatch) -> None:
        """Adds records."""
        for day, rows in _by_date(batch):
            writer = self._writers.pop(day, None)
            if writer is None:
                writer = RollingWriter(self.target, records_folder(self.table, day, self.schema), self.schema)
            self._writers[day] = writer
            writer.append(rows)
            if len(self._writers) > _DATES:
                oldest = next(iter(self._writers))
                self._finished.extend(self._writers.pop(oldest).finish())
        self._bound_memory()
        self._bound_open_files()

    def finish(self) -> list[DataFile]:
        """Writes what is held back; returns all finished files."""
        return [*self._finished, *(staged for writer in self._writers.values() for staged in writer.finish())]

    def discard(self) -> None:
        """Forgets everything."""
        for writer in self._writers.values():
            writer.discard()
        self.target.place.remove(self.target.written(file.path) for file in self._finished)

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


def records_folder(table: str, day: str | None, schema: pa.Schema) -> str:
    """Returns the folder of the records of a date, None where it is not known; or of a table without dates."""
    return f"{table}/date={NULL_DATE if day is None else day}" if is_dated(schema) else table
