"""`scan`: the records of many files of one format, or of active and sealed segments, as if they were one."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, NoReturn, TypeAlias, TypeVar, cast

from seglake._errors import FormatError, UnreadWarning
from seglake._native import Batch, Reader, Record, Report, Schema, open
from seglake._text import printable_path
from seglake._threads import thread_count
from seglake._types import LogUnread, OpenOptions, Span
from seglake._values import is_uri

from . import frames
from .filters import plain
from .frames import ScanBatches
from .in_order import SMALL_BYTES, in_order
from .together import Together, identity_of

if TYPE_CHECKING:
    import pandas  # pyright: ignore[reportMissingTypeStubs]
    import polars
    import pyarrow

    from seglake._native import ListedSegment, _Filters, _Key  # pyright: ignore[reportPrivateUsage]
    from seglake.stores import RemoteFile, SegmentFile, Stores

__all__ = ["Damaged", "PassedOver", "Scan", "ScannedFile", "scan"]

_Result = TypeVar("_Result")
_Source: TypeAlias = str | os.PathLike[str]

# Larger files are read one after another by as many threads as there are, smaller ones side by side.
_LARGE_BYTES: Final = 64 << 20

_BATCH_SIZE: Final = 131_072

_NO_SEGMENT: Final = "if it is not a segment, leave it out with `glob`; if it is one, name its format with `format`"


class ScannedFile(NamedTuple):
    """A file of a scan.

    Attributes:
        path: its absolute path or URI.
        nbytes: its size in bytes when it was found.

    Example:
        >>> import seglake
        >>> orders = seglake.scan("logs", glob="*.active")
        >>> [file.nbytes for file in orders.files()]
        [159, 159]
    """

    path: str
    nbytes: int


class PassedOver(NamedTuple):
    """Something in a folder that is not read though its name is not hidden: no regular file, or a link to a folder.

    Attributes:
        path: its absolute path.
        reason: what it is, in words.

    Example:
        >>> import seglake
        >>> [one.path for one in seglake.scan("logs", glob="*.active").passed_over()]
        []
    """

    path: str
    reason: str


class Damaged(NamedTuple):
    """A damaged range of one of many files.

    Attributes:
        path: the file's absolute path or URI.
        start: the offset in the file, in bytes, at which the range begins.
        end: the offset after its last byte.
        kind: what the bytes seem to be, as in `Span`.
        cause: what is wrong with them.

    Example:
        >>> import seglake
        >>> [range.cause for range in seglake.scan("damaged.active").find_damage()]
        ['checksum_mismatch']
    """

    path: str
    start: int
    end: int
    kind: str
    cause: str | None


def scan(
    sources: _Source | Sequence[_Source],
    *,
    format: str | None = None,
    columns: Sequence[str] | None = None,
    filters: _Filters | None = None,
    on_damage: Literal["raise", "skip", "repair"] = "raise",
    key: _Key | None = None,
    glob: str | Sequence[str] | None = None,
    include_file_paths: str | None = None,
    prune: bool = False,
    threads: int | None = None,
    uuid_type: Literal["uuid", "arrow.uuid", "binary", "string"] = "uuid",
    options: OpenOptions | None = None,
    filesystem: object | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Scan:
    """Finds files to read as one: in the order of their paths, side by side, with flat memory.

    The files are listed now, and read whenever the scan is asked for records. A folder may hold other files than
    segments: `glob` says which ones are meant, since what is not recognised is an error, never left out in silence.

    The folder of a `SegmentLog` is one log: its records at the moment of the listing, as far as they were on the disk,
    each once, also while it is written. What is left out of a log that is not being written is warned of
    (UnreadWarning), and listed by `Scan.unread`.

    Args:
        sources: a file, a folder with all below it, a pattern such as "logs/*.active" (`*`, `?`, `[abc]`, `{a,b}`), the
            URI of a store (`s3://bucket/logs`), or a list of these. In folders, and where a pattern matches, names that
            begin with "_" or "." are left out, and links to folders are not followed; so is the index of a chunked log,
            which is read with that. A file that is named twice is read once.
        format: the format's name; None tells it by content and extension. All files have to be of one format, but
            active and sealed segments go together: leave it out there. One that begins with
            the same record as a file of the other format is refused, as it is probably that one, sealed. Copies of one
            format are not noticed.
        columns: the columns to read, as in `open`.
        filters: the records to give, as in `open`.
        on_damage: "raise" raises DamageError at damage, after all records before it; "skip" reads on after it, and
            warns once for each damaged file (DamageWarning); "repair" is as "skip", and gives records that parity
            sidecars restore. Files of this machine are read by the sidecars beside them, where there are any.
        key: the key of the checksums, as in `open`.
        glob: read only those files of folders whose name matches, such as "*.active" or "*.{active,sealed}"; or any of
            several patterns. It also chooses among the segments of a log.
        include_file_paths: the name of a column with each record's file, after the others.
        prune: read no more of each file than records of `filters` can be in, as in `open`: a file whose index, table of
            contents or first record proves that it has none is passed over. Damage elsewhere goes unnoticed, but not by
            `Scan.find_damage`; `Scan.files` lists all files.
        threads: how many threads read. None: one for each core, 8 at most. Rows and errors are those of one thread, in
            the same order; memory is for a few batches for each. Files of this machine that have less than 128 KiB on
            average are read by one, which is faster.
        uuid_type: the type of UUID columns, as in `open`.
        options: what concerns some formats only, and limits in bytes, as in `open`.
        filesystem: a `pyarrow.fs.FileSystem` or an `fsspec` file system. `sources` are then paths or URIs within it.
        storage_options: settings of URIs' stores by the keys of `object_store`, as delta-rs and polars take them; what
            is not given comes from the environment.

    Returns:
        The scan: an object of Arrow's stream interface, which pyarrow, polars and DuckDB take as it is.

    Raises:
        FileNotFoundError: a source does not exist, or there is no file to read.
        OSError: a folder cannot be listed, a store not be reached, or a file not be opened.
        FormatError: the first file's format cannot be told (that of another is found when it is read), or a segment of
            a log is missing.
        WrongKeyError: the key is not that of a log.
        ValueError: an argument is wrong, or does not concern the format.
        TypeError: a source is no path.

    Example:
        >>> import seglake
        >>> orders = seglake.scan("logs", glob="*.active")
        >>> orders.count_rows(), len(orders.files())
        (6, 2)
    """
    names = list(sources) if isinstance(sources, Sequence) and not isinstance(sources, str | bytes) else [sources]
    for name in names:
        if not isinstance(name, str | os.PathLike):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"sources are paths, patterns and URIs, not {type(name).__qualname__}: open() reads that")
    threads = thread_count(threads)
    arguments: dict[str, Any] = {
        "format": format,
        "columns": columns,
        "filters": filters if filters is None else plain(filters),
        "on_damage": on_damage,
        "key": key,
        "prune": prune,
        "uuid_type": uuid_type,
        "options": options,
    }
    from seglake.stores import Stores

    stores = Stores(filesystem, storage_options)
    files = _Files([os.fspath(name) for name in names], stores, glob=glob, key=key)
    found = Scan(files, arguments, None, threads)
    if include_file_paths is None:
        return found
    names = found.schema.names
    if include_file_paths in names or "path" in names:
        twice = include_file_paths if include_file_paths in names else "path"
        raise ValueError(
            f"include_file_paths={include_file_paths!r}: there is a column {twice!r} already, leave that out"
        )
    return Scan(files, {**arguments, "columns": [*names, "path"]}, include_file_paths, threads)


class _Files:
    """The files that were found, and how they are opened.

    Raises:
        FileNotFoundError: there are none.
    """

    def __init__(
        self,
        names: list[str],
        stores: Stores,
        *,
        glob: str | Sequence[str] | None,
        key: _Key | None,
    ) -> None:
        from seglake.stores import FileFilter, find_files

        chosen = FileFilter(recursive=True, name_pattern=glob)
        listing = find_files(names, chosen, stores, key=key)
        if not listing.files:
            text = f"no files to read in {', '.join(map(printable_path, names)) or 'an empty list of sources'}"
            if listing.left_out:
                text += f"; {listing.left_out} files do not match glob={glob!r}"
            raise FileNotFoundError(text)
        for unread in listing.unread:
            warnings.warn(str(unread), UnreadWarning, stacklevel=3)
        self.found: Sequence[SegmentFile] = listing.files
        self.passed_over: list[PassedOver] = [PassedOver(path, reason) for path, reason in listing.skipped]
        self.unread: list[LogUnread] = listing.unread
        self._stores = stores

    def __getstate__(self) -> dict[str, Any]:
        """Pickling keeps the list of the files, whatever their folders hold by then."""
        if self._stores.hold_all:
            raise TypeError("a scan with a file system cannot be pickled: give URIs without filesystem=")
        return self.__dict__

    @property
    def are_small(self) -> bool:
        """Whether they are on this machine and small on average."""
        if self._stores.hold_all or any(is_uri(file.path) for file in self.found):
            return False
        return sum(file.size for file in self.found) < SMALL_BYTES * len(self.found)

    def identities(self, **arguments: Any) -> dict[str, str | None]:
        """Returns the `identity_of` each file, by their paths."""
        return {file.path: identity_of(file, self.source, **arguments) for file in self.found}

    def source(self, file: SegmentFile) -> str | RemoteFile | ListedSegment:
        """Returns what `open` takes for a file: its path, the open file if it is elsewhere, or the segment of a log."""
        if file.segment is not None:
            return file.segment
        if not self._stores.hold_all and not is_uri(file.path):
            return file.path
        store, path = self._stores.connect(file.path)
        return store.open(path, file.path)


class Scan:
    """The records of many files of one format, or of active and sealed segments. Each use reads the files anew.

    Of a log that gives the same records each time: those that it had when the scan was made. SegmentGoneError says that
    its retention has removed some of them.

    It has Arrow's stream interface: `pyarrow.table(scan)`, `polars.from_arrow(scan)`, or in DuckDB `FROM scan`. Errors
    come wrapped from there, while the methods raise them as they are.

    Example:
        >>> import seglake
        >>> orders = seglake.scan("logs", glob="*.active")
        >>> orders.to_table().num_rows
        6
    """

    def __init__(self, files: _Files, arguments: dict[str, Any], include_file_paths: str | None, threads: int) -> None:
        self._files = files
        self._include_file_paths = include_file_paths
        self._arguments = arguments
        self._threads = 1 if files.are_small else threads
        # What no other file may differ in. Active and sealed segments have the same columns.
        chosen = next((file for file in files.found if file.segment is None), files.found[0])
        own = {name: arguments[name] for name in ("options", "key")}
        self._together = Together(arguments["options"], partial(files.identities, **own))
        with self._opened(chosen) as first:
            self._format = first.format
            schema = first.schema
        self._schema = schema if include_file_paths is None else schema.renamed("path", include_file_paths)

    @property
    def format(self) -> str:
        """The format's name; of logs alone that of the first segment.

        Example:
            >>> import seglake
            >>> orders = seglake.scan("logs", glob="*.active")
            >>> orders.format
            'active'
        """
        return self._format

    @property
    def schema(self) -> Schema:
        """The columns. `pyarrow.schema(scan.schema)` makes it a pyarrow schema.

        Example:
            >>> import seglake
            >>> orders = seglake.scan("logs", glob="*.active")
            >>> orders.schema.names
            ['uuid', 'timestamp', 'type', 'value']
        """
        return self._schema

    def files(self) -> list[ScannedFile]:
        """Returns the files, in the order in which they are read.

        Example:
            >>> import seglake
            >>> orders = seglake.scan("logs", glob="*.active")
            >>> len(orders.files())
            2
        """
        return [ScannedFile(file.path, file.size) for file in self._files.found]

    def passed_over(self) -> list[PassedOver]:
        """Returns what folders hold beside files: pipes, sockets, devices, links to folders, and dead links.

        Example:
            >>> import seglake
            >>> orders = seglake.scan("logs", glob="*.active")
            >>> orders.passed_over()
            []
        """
        return list(self._files.passed_over)

    def unread(self) -> list[LogUnread]:
        """Returns what is left out of logs, since it is after their synced mark and no writer has them open.

        Example:
            >>> import seglake
            >>> orders = seglake.scan("logs", glob="*.active")
            >>> orders.unread()
            []
        """
        return list(self._files.unread)

    def count_rows(self) -> int:
        """Returns the number of records: those of `filters`, where there are some. Every record is checked.

        Raises:
            DamageError: there is damage, unless `on_damage` is "skip".
            FormatError: a file is of another format, or its format cannot be told.
            OSError: a file cannot be read.

        Example:
            >>> import seglake
            >>> orders = seglake.scan("logs", glob="*.active")
            >>> orders.count_rows()
            6
        """
        # Not by `Reader.count_rows`: between batches, which have no columns, what counts can be stopped.
        with closing(Scan(self._files, {**self._arguments, "columns": []}, None, self._threads).batches()) as batches:
            return sum(batch.num_rows for batch in batches)

    def head(self, rows: int = 5) -> pyarrow.Table:
        """Returns the first records as a `pyarrow.Table`, without reading much more than these. Needs pyarrow.

        Raises:
            ValueError: `rows` is negative.
            DamageError, FormatError, OSError: as `count_rows`, for what is read.

        Example:
            >>> import seglake
            >>> orders = seglake.scan("logs", glob="*.active")
            >>> orders.head(4).num_rows
            4
        """
        import pyarrow as pa

        if rows < 0:
            raise ValueError(f"rows is {rows}: it is at least 0")
        schema = self._pyarrow_schema()
        tables = [schema.empty_table()]
        for file in self._files.found:
            if rows == 0:
                break
            with self._opened(file) as reader:
                table = reader.head(rows)
            tables.append(table.rename_columns(schema.names))
            rows -= table.num_rows
        return pa.concat_tables(tables)

    def to_table(self) -> pyarrow.Table:
        """Returns all records as a `pyarrow.Table`, which takes as much memory as they do. Needs pyarrow.

        Raises:
            DamageError, FormatError, OSError: as `count_rows`.

        Example:
            >>> import seglake
            >>> orders = seglake.scan("logs", glob="*.active")
            >>> orders.to_table().num_rows
            6
        """
        with closing(self.batches()) as batches:
            return frames.to_table(batches)

    def to_pandas(self) -> pandas.DataFrame:
        """Returns all records as a `pandas.DataFrame`, whose columns are made of those of `to_table`.

        Raises:
            ImportError: pyarrow or pandas is not installed.
            DamageError, FormatError, OSError: as `count_rows`.

        Example:
            >>> import seglake
            >>> orders = seglake.scan("logs", glob="*.active", columns=["type"])
            >>> orders.to_pandas().shape
            (6, 1)
        """
        with closing(self.batches()) as batches:
            return frames.to_pandas(batches)

    def to_polars(self) -> polars.LazyFrame:
        """Returns a `polars.LazyFrame` that reads the files when it is collected. Needs polars.

        Only the columns that a query needs are read, no more of the files than its first rows take, and conditions on
        columns of the format are answered here as far as they can be: polars applies them all again.

        Raises:
            ImportError: polars is not installed.

        Example:
            >>> import seglake
            >>> orders = seglake.scan("logs", glob="*.active")
            >>> orders.to_polars().select("type").collect().height
            6
        """
        frames.need("polars", "to_polars")
        from .polars import lazy_frame

        return lazy_frame(self)

    def find_damage(self) -> Generator[Damaged]:
        """Yields every damaged range of the files, whatever `on_damage`, `filters` and `prune` say. Checks all records.

        Raises:
            FormatError, OSError: as `count_rows`.

        Example:
            >>> import seglake
            >>> orders = seglake.scan("logs", glob="*.active")
            >>> list(orders.find_damage())
            []
        """

        def damaged(file: SegmentFile) -> Generator[Span]:
            with self._opened(file) as reader:
                yield from reader.ledger(damaged_only=True)

        with closing(in_order(self._files.found, damaged, self._threads)) as ranges:
            for file, span in ranges:
                yield Damaged(file.path, *span)

    def __arrow_c_schema__(self) -> object:
        return self._schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        del requested_schema  # as the interface allows
        return self.batches().__arrow_c_stream__()

    def __iter__(self) -> Generator[Record]:
        """Yields the records one by one, file by file in the order of their paths, by one thread."""
        for file in self._files.found:
            with self._opened(file) as reader:
                yield from reader

    def __contains__(self, record: object, /) -> NoReturn:
        raise TypeError("`in` would read all records and compare them: choose records by `filter`")

    def __bool__(self) -> Literal[True]:
        return True

    def __len__(self) -> NoReturn:
        raise TypeError("a scan has no length: count_rows() reads all records to count them")

    def __array__(self, *arguments: object, **options: object) -> NoReturn:
        raise TypeError(
            "records are no array of numpy: to_pandas() makes a pandas.DataFrame of them, to_table() a pyarrow.Table"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickling keeps the list of the files: elsewhere they are opened again.

        Raises:
            TypeError: the key was given as bytes, which would have to be in the pickle; or a file system was given.
        """
        key: object = self._arguments["key"]
        keys = cast("Sequence[object]", key if isinstance(key, list | tuple) else [key])
        if not all(own is None or isinstance(own, str | os.PathLike) for own in keys):
            raise TypeError(
                "a scan whose key was given as bytes cannot be pickled: give the path of a file that holds it, or set "
                "SEGLAKE_KEY"
            )
        return (Scan, (self._files, self._arguments, self._include_file_paths, self._threads))

    def __repr__(self) -> str:
        files = self._files.found
        nbytes = sum(file.size for file in files)
        others = f" and {len(files) - 1:,} more" if len(files) > 1 else ""
        return f"Scan({files[0].path!r}{others}, format={self._format!r}, nbytes={nbytes})"

    @property
    def arguments(self) -> Mapping[str, Any]:
        """What `scan` was given for reading a file, by the names of its arguments.

        Example:
            >>> import seglake
            >>> orders = seglake.scan("logs", glob="*.active")
            >>> orders.arguments["on_damage"]
            'raise'
        """
        return self._arguments

    @property
    def include_file_paths(self) -> str | None:
        """The name of the column with each record's file, if there is one."""
        return self._include_file_paths

    def select(self, columns: Sequence[str]) -> Scan:
        """Returns a scan of the same files with other columns, among which `include_file_paths` may be.

        Raises:
            ValueError: there is no such column.
            TypeError: `columns` is not a list.

        Example:
            >>> import seglake
            >>> orders = seglake.scan("logs", glob="*.active")
            >>> orders.select(["type"]).schema.names
            ['type']
        """
        if isinstance(columns, str):
            raise TypeError(f'columns must be a list of names, such as ["{printable_path(columns)}"], not str')
        if self._include_file_paths is not None and "path" in columns:
            raise ValueError(f'there is no column "path": it is called {self._include_file_paths!r} here')
        own = ["path" if name == self._include_file_paths else name for name in columns]
        return Scan(self._files, {**self._arguments, "columns": own}, self._include_file_paths, self._threads)

    def filter(self, filters: _Filters) -> Scan:
        """Returns a scan of the same files whose records meet these conditions, too.

        Args:
            filters: the conditions, as in `open`.

        Raises:
            ValueError: there is no such column, or a value is not of its kind.

        Example:
            >>> import seglake
            >>> orders = seglake.scan("logs", glob="*.active")
            >>> orders.filter([("type", "==", "order.paid")]).count_rows()
            2
        """
        both = [*(self._arguments["filters"] or ()), *plain(filters)]
        return Scan(self._files, {**self._arguments, "filters": both}, self._include_file_paths, self._threads)

    def batches(self, batch_size: int = _BATCH_SIZE) -> ScanBatches:
        """Returns an iterator over the records as `Batch`es, in flat memory; one may have damage and no rows.

        Args:
            batch_size: a batch ends before it has more rows; it has at least one.

        Raises:
            DamageError, FormatError, OSError: as `count_rows`, after the batches before it.

        Example:
            >>> import seglake
            >>> orders = seglake.scan("logs", glob="*.active")
            >>> [batch.num_rows for batch in orders.batches()]
            [3, 3]
        """

        def batches() -> Generator[Batch]:
            with closing(self.batches_by_file(batch_size=batch_size)) as found:
                for _, batch in found:
                    yield batch

        return ScanBatches(self._schema, batches())

    def batches_by_file(
        self, read: Callable[[str, Report], object] | None = None, *, batch_size: int = _BATCH_SIZE
    ) -> Generator[tuple[str, Batch]]:
        """Yields what `batches` gives, each with its file's path.

        Args:
            read: called with the path and the report of each file that was read to its end, by the thread that did it.
            batch_size: as of `batches`.

        Raises:
            DamageError, FormatError, OSError: as `count_rows`, after the batches before it.

        Example:
            >>> import seglake
            >>> orders = seglake.scan("logs", glob="*.active")
            >>> [batch.num_rows for path, batch in orders.batches_by_file()]
            [3, 3]
        """

        def batches(file: SegmentFile) -> Generator[Batch]:
            with self._opened(file, threads=self._threads if self._is_large(file) else 1) as reader:
                for batch in reader.batches(batch_size):
                    yield batch if self._include_file_paths is None else batch.renamed(self._schema)
                if read is not None:
                    read(file.path, reader.report)

        with closing(self._in_order(batches)) as found:
            for file, batch in found:
                yield file.path, batch

    def _pyarrow_schema(self) -> pyarrow.Schema:
        import pyarrow as pa

        return pa.schema(cast("Any", self._schema))

    def _opened(self, file: SegmentFile, *, threads: int = 1) -> Reader:
        try:
            reader = open(self._files.source(file), **self._arguments, threads=threads)
        except FormatError as error:
            if error.next is None or "`format`" not in error.next or len(self._files.found) == 1:
                raise
            raise FormatError(error.reason, path=error.path, next=_NO_SEGMENT) from error
        try:
            self._together.add(file, reader.format)
        except FormatError:
            reader.close()
            raise
        return reader

    def _is_large(self, file: SegmentFile) -> bool:
        """Tells whether a file is read by several threads itself."""
        if file.size <= _LARGE_BYTES or self._arguments["prune"]:
            return False
        return self._together.formats[self._format if file.segment is None else file.segment.format].splittable

    def _in_order(self, results: Callable[[SegmentFile], Iterable[_Result]]) -> Generator[tuple[SegmentFile, _Result]]:
        """Yields each file with what is made of it: a large one by itself, those between large ones side by side."""
        for large, files in groupby(self._files.found, key=self._is_large):
            own = list(files)
            with closing(in_order(own, results, 1 if large else min(self._threads, len(own)))) as made:
                yield from made
