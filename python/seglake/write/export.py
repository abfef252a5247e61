"""A scan as one file of another kind: Parquet, Arrow, CSV or JSON lines."""

from __future__ import annotations

import errno
import json
import os
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Literal, NamedTuple, TypeAlias, cast
from uuid import UUID

from seglake._json_text import VALUE_FORMS, ValueForm, base64_text, is_json, json_text, json_value
from seglake._text import printable_path
from seglake._values import instant_us
from seglake.read.scan import Scan
from seglake.read.scan import scan as scan_of
from seglake.stores import Stores
from seglake.stores.object_store import ObjectStore
from seglake.stores.patterns import mounted_path

from .new_file import new_file

if TYPE_CHECKING:
    import pyarrow as pa

    from seglake._native import Report

__all__ = ["FILE_KINDS", "Exported", "FileKind", "export", "kind_of"]

FileKind: TypeAlias = Literal["parquet", "arrow", "csv", "jsonl"]

_EXTENSIONS: Final[dict[str, FileKind]] = {
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
}
FILE_KINDS: Final = tuple(dict.fromkeys(_EXTENSIONS.values()))
"""The kinds of files that `export` writes."""

# A row group is in memory until it is written.
_ROW_GROUP_BYTES: Final = 128 << 20


class Exported(NamedTuple):
    """What `export` wrote.

    Attributes:
        records: how many records.
        damaged_ranges: how many damaged ranges were skipped.
        damaged_bytes: how many bytes they have.
        wrong_key: the files, by their paths, in which nothing is verified though their structure is sound. The key is
            probably not theirs. All of them counts as damage.

    Example:
        >>> import seglake
        >>> seglake.export(seglake.scan("orders.active"), "orders.arrow").records
        3
    """

    records: int
    damaged_ranges: int
    damaged_bytes: int
    wrong_key: tuple[str, ...]


def export(
    source: Scan | str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    destination: str | os.PathLike[str] | BinaryIO,
    *,
    to: FileKind | None = None,
    value: ValueForm | None = None,
    damage: str | os.PathLike[str] | None = None,
    compression: str = "zstd",
    row_group_size: int = 1_048_576,
    if_exists: Literal["error", "overwrite"] = "error",
    progress: Callable[[int, int], object] | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Exported:
    r"""Writes the records of files to one file, in flat memory. The file appears once it is complete and on the disk.

    A path may be a URI of an object store (`s3://bucket/x.parquet`). The file is written to a local temporary file, and
    uploaded when it is complete. For other file systems give a path of a mounted one, or a binary file that you opened.

    In Parquet, statistics and the page index tell readers which row groups they need. In CSV, an empty field is null
    and `""` empty text. In CSV and JSON lines, times are ISO 8601 in UTC, UUIDs are text, and types and tenant IDs are
    as `Record.type` has them. Needs pyarrow.

    Args:
        source: a scan, or what `seglake.scan` takes: paths of files and folders, patterns, URIs.
        destination: the file to write, by its path or URI, or a binary file object, to which Arrow is written as a
            stream.
        to: "parquet", "arrow", "csv" or "jsonl"; None tells it by the extension.
        value: how CSV and JSON lines have values. None is "text" in CSV and "base64" in JSON lines. "text" and "json"
            are the value itself; in `value_base64` is instead what is not UTF-8, or not JSON. "base64" and "hex" take
            any bytes.
        damage: another file, of the kind that its extension says, for the damaged ranges that were skipped: `path`,
            `start`, `end` (bytes), `kind` and `cause`. Needs a scan with on_damage="skip".
        compression: the compression of Parquet, as `pyarrow.parquet.ParquetWriter` takes it; of Arrow "zstd", "lz4" or
            "none". CSV and JSON lines are not compressed.
        row_group_size: a row group of Parquet ends when it has so many rows, or 128 MiB.
        if_exists: "error" raises FileExistsError where there is a file; "overwrite" replaces it once the new one is
            complete. In a store, a file of more than 8 MiB may replace one that another process makes meanwhile.
        progress: called after each file with how many bytes of the scan's files are done, and how many there are.
        storage_options: settings of URIs' stores by the keys of `object_store`, as delta-rs and polars take them; what
            is not given comes from the environment.

    Raises:
        FileExistsError: a file exists.
        ValueError: an argument is wrong, or a file that is read would be written to.
        DamageError, FormatError, OSError: as `Scan.to_table`. Nothing is written then.

    Example:
        >>> import seglake
        >>> seglake.export("orders.active", "orders.csv").records
        3
    """
    scan = source if isinstance(source, Scan) else scan_of(source, storage_options=storage_options)
    _check_arguments(destination, damage, row_group_size)
    if if_exists not in ("error", "overwrite"):
        raise ValueError(f'if_exists is "error" or "overwrite", not {if_exists!r}')
    overwrites = if_exists == "overwrite"
    kind = to or kind_of(destination)
    if kind not in FILE_KINDS:
        raise ValueError(f"to is one of {', '.join(FILE_KINDS)}, not {kind!r}")
    if row_group_size < 1:
        raise ValueError(f"row_group_size is {row_group_size}: it is at least 1")
    if value is not None and value not in VALUE_FORMS:
        raise ValueError(f"`value` is one of {', '.join(VALUE_FORMS)}, not {value!r}")
    if value is not None and kind in ("parquet", "arrow"):
        raise ValueError(f"`value` is for csv and jsonl: {kind} has values as they are")
    if damage is not None and scan.arguments["on_damage"] == "raise":
        raise ValueError('damage= needs a scan with on_damage="skip" or "repair": otherwise damage is an error')
    named = [each for each in (destination, damage) if isinstance(each, str | os.PathLike)]
    places = _places(named, Stores(None, storage_options))
    _check_written(scan, places, len(named))
    with ExitStack() as open_files:
        # What is entered last gets its name first: nobody finds records whose damage is not there yet.
        records = open_files.enter_context(_opened(destination, places, overwrite=overwrites))
        damaged = None
        if damage is not None:
            damaged = open_files.enter_context(_opened(damage, places, overwrite=overwrites))
        schema = cast("Any", scan.schema)
        streamed = not isinstance(destination, str | os.PathLike)
        sheet = open_files.enter_context(
            _sheet(kind, records, schema, compression, row_group_size, value=value, streamed=streamed)
        )
        ranges = None
        if damage is not None and damaged is not None:
            ranges = open_files.enter_context(
                _sheet(kind_of(damage), damaged, _damage_schema(), compression, row_group_size)
            )
        return _write(scan, sheet, ranges, progress)


def _check_arguments(path: object, damage: object, row_group_size: object) -> None:
    """Refuses what is of another type.

    Raises:
        TypeError: something is.
    """
    if not isinstance(path, str | os.PathLike) and not hasattr(path, "write"):
        raise TypeError(f"destination must be a path, a URI or a binary file object, not {type(path).__name__}")
    if damage is not None and not isinstance(damage, str | os.PathLike):
        raise TypeError(f"damage must be a path or a URI, not {type(damage).__name__}")
    if not isinstance(row_group_size, int):
        raise TypeError(f"row_group_size must be an int, not {type(row_group_size).__name__}")


def kind_of(path: str | os.PathLike[str] | BinaryIO) -> FileKind:
    """Returns the kind of file that a path's extension says.

    Raises:
        ValueError: it says none.
    """
    if not isinstance(path, str | os.PathLike):
        raise ValueError("a file object has no extension: name the kind of file with `to`")
    extension = Path(path).suffix.lower()
    if extension not in _EXTENSIONS:
        known = ", ".join(_EXTENSIONS)
        raise ValueError(f"{printable_path(path)}: the extension is none of {known}: use one of them")
    return _EXTENSIONS[extension]


class _Elsewhere(NamedTuple):
    """A file of a store to write: its path within the store, and what messages call it."""

    store: ObjectStore
    path: str
    name: str


def _places(named: Sequence[str | os.PathLike[str]], stores: Stores) -> dict[str | os.PathLike[str], Path | _Elsewhere]:
    """Returns where files are written: on mounted file systems, or elsewhere.

    Raises:
        ValueError, TypeError, OSError, ImportError: as `seglake.open` for URIs.
    """
    places: dict[str | os.PathLike[str], Path | _Elsewhere] = {}
    for each in named:
        name = os.fspath(each)
        local = mounted_path(name, "file")
        if local is not None:
            places[each] = Path(local)
            continue
        places[each] = _Elsewhere(*stores.writable(name), name)
    return places


def _check_written(scan: Scan, places: Mapping[str | os.PathLike[str], Path | _Elsewhere], count: int) -> None:
    """Refuses what cannot be written to, before anything is read.

    Raises:
        ValueError: one file twice, a folder, a device or a pipe, or a file that is read.
    """
    own = [
        (os.path.realpath(place.parent), place.name) if isinstance(place, Path) else (place.store.place, place.path)
        for place in places.values()
    ]
    if len(set(own)) < count:
        shown = printable_path(next(iter(places)))
        raise ValueError(f"{shown}: is to be written twice, as destination and as damage=: name two files")
    for place in places.values():
        shown = printable_path(place if isinstance(place, Path) else place.name)
        if isinstance(place, _Elsewhere):
            if not place.path.rpartition("/")[2]:
                raise ValueError(f"{shown}: names no file in the store: name the file to write")
            if _is_source_elsewhere(scan, place):
                raise ValueError(f"{shown}: is among the files that are read: name another one")
            continue
        if not place.exists():
            continue
        if place.is_dir():
            raise ValueError(f"{shown}: is a folder: name the file to write")
        if not place.is_file():
            raise ValueError(f"{shown}: is a device or a pipe: name the file to write, which would replace it")
        if _is_source(scan, place.stat()):
            raise ValueError(f"{shown}: is among the files that are read: name another one")


def _is_source_elsewhere(scan: Scan, place: _Elsewhere) -> bool:
    """Tells whether a file of a store is read."""
    store = place.store
    return any(store.path_of(file.path) == place.path and store.holds(file.path) for file in scan.files())


def _is_source(scan: Scan, status: os.stat_result) -> bool:
    """Tells whether a file is read, by whatever links it is named."""
    for file in scan.files():
        with suppress(OSError, ValueError):
            if os.path.samestat(os.stat(file.path), status):  # noqa: PTH116 - no path is made for each of many
                return True
    return False


def _opened(
    path: str | os.PathLike[str] | BinaryIO,
    places: Mapping[str | os.PathLike[str], Path | _Elsewhere],
    *,
    overwrite: bool,
) -> AbstractContextManager[BinaryIO]:
    if not isinstance(path, str | os.PathLike):
        return nullcontext(path)  # the caller's, which stays open
    place = places[path]
    if isinstance(place, Path):
        return new_file(os.fspath(place), replace=overwrite)
    return _new_object(place, replace=overwrite)


@contextmanager
def _new_object(place: _Elsewhere, *, replace: bool) -> Generator[BinaryIO]:
    """A file that appears in a store when the block ends, and not at all if it raises.

    It is written to a local temporary file first: no error that comes before the end reaches the store.
    """
    found = place.store.find(place.path, place.name)
    if found is not None and not found.is_file:
        raise IsADirectoryError(errno.EISDIR, "Is a folder: name the file to write", place.name)
    if found is not None and not replace:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), place.name)
    with tempfile.TemporaryDirectory(prefix="seglake-") as folder:
        local = Path(folder) / "content"
        with local.open("wb") as file:
            yield file
        place.store.put(local, place.path, place.name, create=not replace)


def _write(scan: Scan, sheet: _Sheet, ranges: _Sheet | None, progress: Callable[[int, int], object] | None) -> Exported:
    import pyarrow as pa

    nbytes = {file.path: file.nbytes for file in scan.files()}
    total = sum(nbytes.values())
    records = damaged_ranges = damaged_bytes = done = 0
    last: str | None = None
    wrong_key: list[str] = []

    def read(path: str, report: Report) -> None:
        if report.wrong_key:
            wrong_key.append(path)

    with closing(scan.batches_by_file(read)) as batches:
        for path, batch in batches:
            if path != last:
                done += nbytes[last] if last is not None else 0
                last = path
                if progress is not None:
                    progress(done, total)
            if batch.num_rows:
                sheet.write(pa.record_batch(cast("Any", batch)))
                records += batch.num_rows
            damage = batch.damage
            if damage:
                damaged_ranges += len(damage)
                damaged_bytes += sum(span.nbytes for span in damage)
                if ranges is not None:
                    rows = [{"path": path, **span._asdict()} for span in damage]
                    ranges.write(pa.RecordBatch.from_pylist(rows, _damage_schema()))
    if progress is not None:
        progress(total, total)
    return Exported(records, damaged_ranges, damaged_bytes, tuple(sorted(wrong_key)))


def _damage_schema() -> pa.Schema:
    import pyarrow as pa

    number, text = pa.int64(), pa.string()
    fields = [("path", text), ("start", number), ("end", number), ("kind", text), ("cause", text)]
    return pa.schema([pa.field(name, kind, nullable=name == "cause") for name, kind in fields])


class _Sheet(ABC):
    """A file of rows that is being written."""

    def __enter__(self) -> _Sheet:
        return self

    def __exit__(self, kind: type[BaseException] | None, *raised: object) -> None:
        if kind is None:
            self.close(complete=True)
            return
        # The file goes away, and what was raised is what matters.
        with suppress(Exception):
            self.close(complete=False)

    @abstractmethod
    def write(self, batch: pa.RecordBatch) -> None:
        """Writes rows, at least one."""

    @abstractmethod
    def close(self, *, complete: bool) -> None:
        """Writes what is left; where it is not complete only lets go of the file."""


def _sheet(
    kind: FileKind,
    file: BinaryIO,
    schema: Any,
    compression: str,
    row_group_size: int,
    *,
    value: ValueForm | None = None,
    streamed: bool = False,
) -> _Sheet:
    import pyarrow as pa

    schema = pa.schema(schema)
    try:
        if kind == "parquet":
            return _Parquet(file, schema, compression, row_group_size)
        if kind == "arrow":
            return _Arrow(file, schema, compression, streamed=streamed)
    except pa.ArrowException as error:
        raise ValueError(f"compression={compression!r}: {error}") from error
    return _Csv(file, schema, value or "text") if kind == "csv" else _JsonLines(file, value or "base64")


class _Parquet(_Sheet):
    def __init__(self, file: BinaryIO, schema: pa.Schema, compression: str, row_group_size: int) -> None:
        import pyarrow.parquet as pq

        self._schema = schema
        self._writer: Any = cast("Any", pq).ParquetWriter(
            file, schema, compression=compression, write_statistics=True, write_page_index=True
        )
        self._most = row_group_size
        self._waiting: list[pa.RecordBatch] = []
        self._rows = 0
        self._bytes = 0

    def write(self, batch: pa.RecordBatch) -> None:
        while batch.num_rows:
            part = batch.slice(0, self._most - self._rows)
            batch = batch.slice(part.num_rows)
            self._waiting.append(part)
            self._rows += part.num_rows
            self._bytes += part.nbytes
            if self._rows >= self._most or self._bytes >= _ROW_GROUP_BYTES:
                self._flush()

    def close(self, *, complete: bool) -> None:
        if complete and self._waiting:
            self._flush()
        self._writer.close()

    def _flush(self) -> None:
        import pyarrow as pa

        table = pa.Table.from_batches(self._waiting, self._schema)
        self._waiting, self._rows, self._bytes = [], 0, 0
        self._writer.write_table(table, row_group_size=max(table.num_rows, 1))


class _Arrow(_Sheet):
    def __init__(self, file: BinaryIO, schema: pa.Schema, compression: str, *, streamed: bool) -> None:
        from pyarrow import ipc

        options = ipc.IpcWriteOptions(compression=None if compression == "none" else cast("Any", compression))
        new = ipc.new_stream if streamed else ipc.new_file
        self._writer: Any = new(cast("Any", file), schema, options=options)

    def write(self, batch: pa.RecordBatch) -> None:
        self._writer.write_batch(batch)

    def close(self, *, complete: bool) -> None:
        self._writer.close()


class _Csv(_Sheet):
    def __init__(self, file: BinaryIO, schema: pa.Schema, form: ValueForm) -> None:
        from pyarrow import csv

        self._form: ValueForm = form
        self._writer: Any = csv.CSVWriter(cast("Any", file), _as_text(schema.empty_table(), form).schema)

    def write(self, batch: pa.RecordBatch) -> None:
        import pyarrow as pa

        self._writer.write_table(_as_text(pa.Table.from_batches([batch]), self._form))

    def close(self, *, complete: bool) -> None:
        self._writer.close()


class _JsonLines(_Sheet):
    def __init__(self, file: BinaryIO, form: ValueForm) -> None:
        self._file = file
        self._form: ValueForm = form

    def write(self, batch: pa.RecordBatch) -> None:
        members = [self._members(name, batch.column(name)) for name in batch.schema.names]
        self._file.write("".join(f"{{{', '.join(row)}}}\n" for row in zip(*members, strict=True)).encode())

    def close(self, *, complete: bool) -> None:
        pass

    def _members(self, name: str, column: Any) -> list[str]:
        if name == "value":
            return [json_value(value, self._form) for value in column.to_pylist()]
        key = json_text(name)
        return [f"{key}: {json_text(value)}" for value in _values(column, base64_text)]


def _as_text(table: pa.Table, form: ValueForm) -> pa.Table:
    """Returns the columns that CSV has no way to write as text."""
    import pyarrow as pa

    columns: dict[str, Any] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        kind = column.type
        if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_string(kind):
            columns[name] = column
            continue
        if name == "value":
            texts = {own: pa.array(values, pa.string()) for own, values in _texts(column.to_pylist(), form).items()}
            columns |= {own: pa.chunked_array([values]) for own, values in texts.items()}
            continue
        values = _values(column, _shown)
        nested = pa.types.is_nested(kind)
        texts = [json.dumps(value) if nested and value is not None else value for value in values]
        columns[name] = pa.chunked_array([pa.array(texts, pa.string())])
    return pa.table(columns)


def _texts(values: Sequence[bytes | None], form: ValueForm) -> dict[str, list[str | None]]:
    """Returns the columns of values as text. What is not in the form `text` or `json` is base64 in one of its own."""
    if form in ("base64", "hex"):
        encode = base64_text if form == "base64" else bytes.hex
        return {"value": [None if value is None else encode(value) for value in values]}
    texts: list[str | None] = []
    others: list[str | None] = []
    for value in values:
        text = None if value is None else _text_of(value, form)
        texts.append(text)
        others.append(None if value is None or text is not None else base64_text(value))
    return {"value": texts, "value_base64": others}


def _text_of(value: bytes, form: ValueForm) -> str | None:
    if form == "json" and not is_json(value):
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


def _values(column: Any, of_bytes: Callable[[bytes], str]) -> list[Any]:
    """Returns a column's values as JSON knows them."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_timestamp(kind):
        # By their numbers: not every one is in Python's calendar.
        return [None if moment is None else instant_us(moment) for moment in column.cast(pa.int64()).to_pylist()]
    is_uuid = pa.types.is_fixed_size_binary(kind) or isinstance(kind, pa.UuidType)
    return [_plain(value, of_bytes, is_uuid=is_uuid) for value in column.to_pylist()]


def _plain(value: Any, of_bytes: Callable[[bytes], str], *, is_uuid: bool = False) -> Any:
    match value:
        case bytes():
            return str(UUID(bytes=value)) if is_uuid else of_bytes(value)
        case UUID():
            return str(value)
        case dict():
            return {name: _plain(each, of_bytes) for name, each in cast("dict[str, Any]", value).items()}
        case list():
            return [_plain(each, of_bytes) for each in cast("list[Any]", value)]
        case _:
            return value


def _shown(value: bytes) -> str:
    return value.replace(b"\\", b"\\x5c").decode("utf-8", "backslashreplace")
