"""The Spark data source `seglake`."""

import contextlib
import logging
import socket
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

import pyspark
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceWriter, InputPartition
from pyspark.sql.types import StructType

import seglake
from seglake._text import printable_path
from seglake.read.together import Together, identity_of
from seglake.stores import FileListing, SegmentFile, find_files
from seglake.tracking.tasks import Slice

from .decode import Decoder, cause_of
from .formats import FORMAT_OF_LOGS
from .option_names import naming_options
from .option_table import Purpose, purposes, refuse_unknown
from .options import ReadOptions
from .partitions import SegmentPartition, partitions
from .schema import ReadSchema, inferred_schema
from .stores import is_elsewhere
from .versions import reduced
from .write.options import WriteOptions
from .write.writer import SegmentDataSourceWriter

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql.datasource import DataSourceStreamReader

__all__ = ["SegmentDataSource"]

_LOG: Final = logging.getLogger(__name__)
# How many files elsewhere are looked at at a time, and how many of them wait for that.
_LOOKS: Final = 32
_GROUP: Final = 1024
_Found = TypeVar("_Found")


class SegmentDataSource(DataSource):
    """Reads and writes binary log segments: `spark.read.format("seglake").load(paths)`, and `df.write` likewise.

    The options are described in the documents under "Spark". Whatever is wrong with them, with a path or with a schema
    is an error before a load's first job. Of a write Spark lets it be raised only before the last stage.
    """

    @naming_options()
    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__({})
        self._given: Mapping[str, str] = options
        self._read_options: ReadOptions | None = None
        self._format: str | None = None
        self._listing: FileListing | None = None
        # Spark does not say whether it is going to read or to write. What would be wrong with both is told at once.
        names = {name.lower() for name in options}
        if "checkpointlocation" in names:  # which only what a stream is written to has
            raise _no_sink()
        refuse_unknown(names)
        wanted = purposes(names)
        self._purpose: Purpose = "streaming" if "streaming" in wanted and "reading" not in wanted else "reading"
        if "streaming" in wanted and names & {"path", "paths", "location"} and not self._options.segment_format:
            try:
                self._find()
            except FileNotFoundError as error:
                raise FileNotFoundError(
                    f"{error}. To read, check the path; to write, name the format with option segmentFormat"
                ) from None

    @naming_options()
    def __getstate__(self) -> object:
        # Spark sends the object on where it reads, and not where it writes: what is wrong with reading is told before.
        if self._streams_files:
            self._format = (
                self._format or self._options.segment_format or _first_format(self._find().files, self._options)
            )
        else:
            self._find()
        # The options as they came stay behind: the object is written into query plans, and they may hold a key. What
        # was found does too: it is long, and each query is to find what is there then.
        return {**self.__dict__, "_given": {}, "_listing": None}

    @classmethod
    def name(cls) -> str:
        """Returns the name for `spark.read.format`."""
        return "seglake"

    @naming_options()
    def schema(self) -> StructType:
        """Infers the schema from the first file, or from the format alone where that is given."""
        self._format = self._format or self._options.segment_format
        if self._format is None:
            listing = self._find()
            if listing.logs and not listing.files:
                return inferred_schema(FORMAT_OF_LOGS, self._options)
            self._format = _first_format(listing.files, self._options)
            if self._format is None:
                raise FileNotFoundError(
                    f"{_no_files(self._options, listing)}. With option segmentFormat or a schema that is no error"
                )
            self._options.check_format(self._format)
        return inferred_schema(self._format, self._options)

    @naming_options()
    def reader(self, schema: StructType) -> DataSourceReader:
        """Plans the read: finds the files and checks the schema against their format."""
        if self._options.stream is not None:
            raise ValueError("options of streams were given, and this is a load: leave them out, or use readStream")
        files = self._find().files
        self._options.check_sidecar(files)
        format = self._options.segment_format
        slices = [Slice(file, file.size) for file in files]
        if format is None:
            format, slices = _with_formats(files, self._options)
        if format is None:
            return SegmentDataSourceReader(None, ())
        self._options.check_format(format)
        decoder = Decoder(format, self._options, ReadSchema.check(schema, format, self._options))
        return SegmentDataSourceReader(decoder, slices)

    @naming_options()
    def streamReader(self, schema: StructType) -> "DataSourceStreamReader":
        """Plans a stream: checks the schema against the format, and what there is against what can be streamed."""
        try:
            from .stream.reader import plan
        except ImportError as error:
            if not (error.name or "").startswith("pyspark"):
                raise
            raise NotImplementedError(
                f"streams need PySpark 4.2 or newer, this is {pyspark.__version__}: load the files instead, or run "
                "`seglake ingest`"
            ) from None
        return plan(self._options.as_stream(), self._format, schema)

    @naming_options()
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Checks options and columns, and begins the write."""
        return SegmentDataSourceWriter.begin(schema, WriteOptions.parse(self._given), overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> NoReturn:
        """Raises: a stream is written with `foreachBatch`."""
        raise _no_sink()

    @property
    def _streams_files(self) -> bool:
        stream = self._options.stream
        return stream is not None and stream.state_location is not None

    @property
    def _options(self) -> ReadOptions:
        if self._read_options is None:
            self._read_options = ReadOptions.parse(self._given, self._purpose)
        return self._read_options

    def _find(self) -> FileListing:
        """Finds the files, once: Spark asks for the schema and sends the object on in one process."""
        if self._listing is None:
            options = self._options
            try:
                self._listing = find_files(options.paths, options.filter, options.stores, key=options.read_key)
            except FileNotFoundError as error:
                if error.filename not in options.key_files:
                    raise
                raise FileNotFoundError(
                    f"option keyFile: {printable_path(error.filename)}: there is no such file on "
                    f"{socket.gethostname()}, where the read is planned: the mark of a log is checked under its key"
                ) from None
            for unread in self._listing.unread:
                _LOG.warning("%s", unread)
        return self._listing


class SegmentDataSourceReader(DataSourceReader):
    """Reads files. `decoder` is None where there are none."""

    def __init__(self, decoder: Decoder | None, slices: Sequence[Slice]) -> None:
        self._decoder: Decoder | None = decoder
        self._slices = slices

    @naming_options()
    def partitions(self) -> Sequence[InputPartition]:
        """Returns one partition for each task. Large files are split."""
        return [] if self._decoder is None else partitions(self._slices, self._decoder)

    def __reduce__(self) -> tuple[object, ...]:
        # The executors get their partition with their task, so the reader that they all get is sent without them.
        return reduced(SegmentDataSourceReader, self._decoder, ())

    def read(self, partition: InputPartition) -> Iterator["RecordBatch"]:
        """Decodes what one partition has of the files; runs on an executor."""
        # Spark makes up an empty partition where there is none.
        if self._decoder is None or not isinstance(partition, SegmentPartition):
            return iter(())
        return self._decoder.decode(partition.slices)


def _no_sink() -> NotImplementedError:
    return NotImplementedError(
        "seglake is not a sink of streams, and checkpointLocation is an option of writeStream: for readStream there is "
        "stateLocation. To write a stream, use writeStream.foreachBatch with a function that writes each batch, by its "
        "number, into a folder of its own: "
        'frame.write.format("seglake").option("segmentFormat", "sealed").mode("overwrite").save(f"/logs/{number}")'
    )


def _with_formats(files: Sequence[SegmentFile], options: ReadOptions) -> tuple[str | None, list[Slice]]:
    """Returns a format whose columns all files have, None if there are no files; and what is to be read.

    Raises:
        FileNotFoundError: a file is gone since it was listed.
        seglake.FormatError: files do not go together; or the format of one cannot be told, and the mode is FAILFAST, or
            there is no other file.
        OSError: a file cannot be read, likewise.
    """
    together = Together(options.format_options.telling(), partial(_identities, files, options))
    slices: list[Slice] = []
    failed: Exception | None = None
    for file, format in zip(files, _of_each(files, partial(_format_of, options=options)), strict=True):
        if isinstance(format, Exception):
            failed = failed or format
            slices.append(Slice(file, 0, bad=cause_of(format)))
            continue
        if format is not None:
            together.add(file, format)
        differs = file.segment is None and format != together.format
        slices.append(Slice(file, file.size, format=format if differs else None))
    if together.format is None and failed is not None:
        raise failed
    return together.format, slices


def _identities(files: Sequence[SegmentFile], options: ReadOptions) -> dict[str, str | None]:
    """Returns what identifies the first record of each file.

    Raises:
        seglake.FormatError: there is none. The executors may have another key, in their environment.
    """
    own = {"options": options.format_options.telling(), "key": options.read_key, "sidecar": options.sidecar}
    found = _of_each(files, partial(identity_of, source=options.stores.source, **own))
    identities = {file.path: identity for file, identity in zip(files, found, strict=True)}
    if not any(identities.values()):
        raise seglake.FormatError(
            "the files are active and sealed, and none has a sound record under the driver's key: which ones are "
            "copies cannot be told",
            path=files[0].path,
            next="give the driver the key with `key`, or load one format at a time with `glob`",
        )
    return identities


def _first_format(files: Sequence[SegmentFile], options: ReadOptions) -> str | None:
    """Returns the format of the first file that has one; None if there are no files.

    Raises:
        FileNotFoundError, seglake.FormatError, OSError: as `_with_formats`.
    """
    failed: Exception | None = None
    for file in files:
        found = _format_of(file, options)
        if isinstance(found, str):
            return found
        failed = failed or found
    if failed is not None:
        raise failed
    return None


def _of_each(files: Sequence[SegmentFile], look: Callable[[SegmentFile], _Found]) -> Iterator[_Found]:
    """Yields what a look at each file gives.

    Elsewhere a look is mostly waiting, so that many files are looked at together; here threads would only cost.
    """
    if not any(is_elsewhere(file.path) for file in files):
        yield from map(look, files)
        return
    with ThreadPoolExecutor(_LOOKS) as threads:
        # In groups: what waits for a thread takes memory, and after an error there is nothing more to look at.
        for first in range(0, len(files), _GROUP):
            yield from threads.map(look, files[first : first + _GROUP])


def _format_of(file: SegmentFile, options: ReadOptions) -> str | Exception | None:
    """Returns a file's format; None of one that is gone where such files are to be left out.

    Where files of which nothing can be read stop no others, returns why the format cannot be told instead of raising.
    """
    try:
        return _detect(file, options)
    except FileNotFoundError:
        if options.ignore_missing_files:
            return None
        raise
    except (seglake.FormatError, OSError) as error:
        if file.segment is not None or not options.goes_on(error, file.path):
            raise
        return error


def _detect(file: SegmentFile, options: ReadOptions) -> str:
    if file.segment is not None:
        return file.segment.format
    # The structure tells the format too, without the key.
    own: Any = {"options": options.format_options.telling(), "key": options.driver_key}
    found = seglake.detect(options.stores.source(file), **own)
    if found.format is None:
        if options.sidecar is not None:
            # Its beginning is damaged.
            with (
                contextlib.suppress(seglake.FormatError),
                seglake.open(options.stores.source(file), sidecar=options.sidecar, **own) as reader,
            ):
                return reader.format
        raise seglake.FormatError(
            f"cannot tell the format: {found.reason}",
            path=file.path,
            next="name it with option segmentFormat, or leave the file out with option pathGlobFilter",
        )
    return found.format


def _no_files(options: ReadOptions, listing: FileListing) -> str:
    text = f"no files to read in {', '.join(map(printable_path, options.paths))}"
    if listing.left_out:
        text += f"; files left out by pathGlobFilter, modifiedAfter or modifiedBefore: {listing.left_out}"
    if listing.folders_not_entered:
        text += f"; folders not entered, which option recursiveFileLookup does: {listing.folders_not_entered}"
    return text
