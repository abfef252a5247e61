"""The options of the Spark data source: parsed and checked once, on the driver, before any job."""

import errno
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

import seglake
from seglake._text import printable_path
from seglake.read.filters import FILTER_OPTIONS, Condition, conditions
from seglake.read.formats import FormatOptions, UuidType, column_names, limit_options
from seglake.stores import FileFilter, SegmentFile

from .formats import Uint64Type, has_uint64
from .option_table import Mode, OptionValues, Purpose, Secret, camel_case
from .stores import SparkStores, is_elsewhere

__all__ = ["ReadOptions", "is_about"]


@dataclass(frozen=True)
class StreamOptions:
    """What a stream was asked for beside what a load is.

    Attributes:
        starting_from: where the first batch begins: "start", "now" or a UUID.
        most_files: the most files that a batch takes; None is no limit.
        most_bytes: the most bytes that a batch takes; None likewise.
        state_location: the folder of the states of a stream of files; None is a stream of a log.
        retained: how many states stay.
    """

    starting_from: str
    most_files: int | None
    most_bytes: int | None
    state_location: str | None
    retained: int

    @classmethod
    def parse(cls, read: OptionValues) -> "StreamOptions":
        """Takes them out of all options."""
        return cls(
            read.get("startingFrom"),
            read.get("maxFilesPerTrigger"),
            read.get("maxBytesPerTrigger"),
            read.get("stateLocation"),
            read.get("minStatesToRetain"),
        )


@dataclass(frozen=True)
class ReadOptions:
    """What one load was asked for.

    Attributes:
        paths: files, folders and patterns, as the user wrote them.
        segment_format: the format of all files; None finds it for each of them.
        format_options: what concerns files of some formats only, and limits.
        conditions: which records are read, each with the name of the option that says so.
        mode: what becomes of damage.
        sidecar: the sidecar of the only file, "auto" for those beside files, or None.
        repair: whether records that sidecars restore are given.
        corrupt_column: the name of the column that reports damage.
        metadata_columns: which columns that say where a record is the schema has, beside the format's own.
        uuid_type: how UUIDs come; None leaves it to the schema, and is `string` where that is inferred too.
        uint64_type: how unsigned integers of 64 bits come; None likewise, and is `bigint`.
        filter: which of the files found are read.
        ignore_missing_files: leave out files that are gone when they are to be read.
        ignore_corrupt_files: leave out files of which nothing can be read.
        key_files: the paths of the files of keys, opened on the executors only; none takes the usual key.
        key: the key itself.
        max_partition_bytes: the most bytes that one task reads, unless a single file is larger.
        open_cost_bytes: what opening a file counts for when files are packed into tasks, in bytes.
        min_partitions: make at least about this many tasks if the files allow it.
        stores: opens files elsewhere.
        stream: what concerns a stream alone; None of a load that is none.
    """

    paths: tuple[str, ...]
    segment_format: str | None
    format_options: FormatOptions
    conditions: Sequence[tuple[str, Condition]]
    mode: Mode
    sidecar: str | None
    repair: bool
    corrupt_column: str
    metadata_columns: tuple[str, ...]
    uuid_type: UuidType | None
    uint64_type: Uint64Type | None
    filter: FileFilter
    ignore_missing_files: bool
    ignore_corrupt_files: bool
    key_files: tuple[str, ...]
    key: Secret | None
    max_partition_bytes: int
    open_cost_bytes: int
    min_partitions: int
    stores: SparkStores
    stream: StreamOptions | None = None

    @classmethod
    def parse(cls, options: Mapping[str, str], purpose: Purpose = "reading") -> "ReadOptions":
        """Parses what Spark hands over; names count regardless of their case.

        Args:
            options: names and values.
            purpose: "reading", or "streaming", which has some more.

        Raises:
            ValueError: an option is unknown, its value is wrong, or it does not concern the format that is named. The
                message names it; it never shows a secret.
        """
        given = {name.lower(): value for name, value in options.items()}
        read = OptionValues(given, purpose)
        key_files, key = read.key()
        paths = _paths(given)
        parsed = cls(
            paths=paths,
            segment_format=read.get("segmentFormat"),
            format_options=_format_options(read),
            conditions=_conditions(read),
            mode=read.get("mode"),
            sidecar=read.get("sidecar"),
            repair=_repair(read),
            corrupt_column=read.get("columnNameOfCorruptRecord"),
            metadata_columns=read.get("metadataColumns") or (),
            uuid_type=read.get("uuidType"),
            uint64_type=read.get("uint64Type"),
            filter=_filter(read),
            ignore_missing_files=read.get("ignoreMissingFiles"),
            ignore_corrupt_files=read.get("ignoreCorruptFiles"),
            key_files=key_files or (),
            key=key,
            max_partition_bytes=read.get("maxPartitionBytes"),
            open_cost_bytes=_open_cost(read, paths),
            min_partitions=read.get("minPartitionNum") or os.cpu_count() or 1,
            stores=SparkStores.parse(given, [*paths, *(given[name] for name in ["statelocation"] if name in given)]),
            stream=StreamOptions.parse(read) if purpose == "streaming" else None,
        )
        if parsed.segment_format is not None:
            parsed.check_format(parsed.segment_format)
        return parsed

    def goes_on(self, error: Exception, path: str) -> bool:
        """Tells whether an error by which nothing of a file can be read stops no other file.

        A store may fail for a moment: that is no trait of the file, unless the option says so.
        """
        if not is_about(error, path):
            return False
        if isinstance(error, seglake.DamageError) and not isinstance(error, seglake.WrongKeyError):
            return self.mode != "FAILFAST"  # nothing proves it, and its sidecar disagrees
        if isinstance(error, OSError):
            if error.errno in (errno.ENOENT, errno.ESTALE):
                return False
            # Others, such as too many open files, are no trait of the file, and Spark tries the task again.
            if is_elsewhere(path) or error.errno not in (errno.EACCES, errno.EPERM, errno.EISDIR, errno.EIO):
                return self.ignore_corrupt_files
        return self.ignore_corrupt_files or self.mode != "FAILFAST"

    @property
    def read_key(self) -> bytes | tuple[str, ...] | None:
        """What `seglake.open` takes as the key. Only for who may open the files of keys."""
        return self.driver_key or self.key_files or None

    @property
    def driver_key(self) -> bytes | None:
        """The same without the files of keys, which are for the executors alone."""
        return self.key.reveal() if self.key is not None else None

    def check_sidecar(self, files: Sequence[SegmentFile] | None = None) -> None:
        """Refuses a sidecar that is named for anything but one file: it is that of one.

        Args:
            files: what is to be read; None is a stream.

        Raises:
            ValueError: there are several files, or a stream.
        """
        if self.sidecar in (None, "auto") or (files is not None and len(files) < 2):
            return
        found = "this is a stream" if files is None else f"there are {len(files):,} to read"
        raise ValueError(
            f"option sidecar names the sidecar of one file, and {found}: load one file, or give auto, for the sidecars "
            "beside files, or none"
        )

    def as_stream(self) -> "ReadOptions":
        """Returns the options of a stream, for which none was given that concerns streams alone."""
        return replace(self, stream=self.stream or StreamOptions.parse(OptionValues({}, "streaming")))

    def check_format(self, format: str) -> None:
        """Checks the options against a format, the one that is named or that was found.

        Where it was found, those that say how files of some formats are understood are for the files they concern. The
        choice of records concerns all files: it must not be left out silently.

        Raises:
            ValueError: an option does not concern the format. The message names it.
        """
        columns = column_names(format, self.format_options)
        for name, (column, _, _) in self.conditions:
            if column not in columns:
                by_uuid = " by UUID" if column == "uuid" else ""
                raise ValueError(
                    f"option {camel_case(name)}{by_uuid} does not concern format {format}: "
                    f"its records have no column {column}"
                )
        if self.segment_format is None:
            return
        foreign = [camel_case(name) for name in self.format_options.foreign(format)]
        if self.uuid_type is not None and "uuid" not in columns:
            foreign.append("uuidType")
        if self.uint64_type is not None and not has_uint64(format, self.format_options):
            foreign.append("uint64Type")
        if foreign:
            raise ValueError(f"option {foreign[0]} does not concern format {format}")


def _open_cost(read: OptionValues, paths: Sequence[str]) -> int:
    given = read.given("openCostInBytes")
    if given is not None:
        return given
    # Measured: a file that is mounted opens in 0.2 ms, and a task of Python costs 50 ms. A store answers in some 30 ms.
    return 4 << 20 if any(map(is_elsewhere, paths)) else 128 << 10


def is_about(error: Exception, path: str) -> bool:
    """Tells whether an error is about a file, and not about its sidecar or the file of a key."""
    if isinstance(error, OSError):
        return error.filename == path
    return isinstance(error, seglake.SeglakeError) and error.path in (None, path, printable_path(path))


def _repair(read: OptionValues) -> bool:
    repair: bool = read.get("repair")
    if repair and read.get("mode") == "FAILFAST":
        raise ValueError(
            "option repair does not go with mode FAILFAST, which also fails at what a sidecar restores: give mode "
            "PERMISSIVE or DROPMALFORMED"
        )
    if repair and read.get("sidecar") is None:
        raise ValueError("option repair needs sidecars, and option sidecar is none: leave one of them out")
    return repair


def _format_options(read: OptionValues) -> FormatOptions:
    limits = {name: read.given(camel_case(name)) for name in ("record_bytes", *limit_options())}
    given = tuple((name, value) for name, value in limits.items() if value is not None)
    return FormatOptions(dialect=read.get("dialect"), index=read.get("index"), limits=given)


def _conditions(read: OptionValues) -> Sequence[tuple[str, Condition]]:
    given = conditions({name: read.given(camel_case(name)) for name in FILTER_OPTIONS})
    return [*given.items(), *(("where", condition) for condition in read.get("where") or ())]


def _filter(read: OptionValues) -> FileFilter:
    return FileFilter(
        recursive=read.get("recursiveFileLookup"),
        name_pattern=read.get("pathGlobFilter"),
        modified_after=read.get("modifiedAfter"),
        modified_before=read.get("modifiedBefore"),
    )


def _paths(given: Mapping[str, str]) -> tuple[str, ...]:
    paths: list[str] = []
    if "paths" in given:
        paths.extend(cast("list[str]", json.loads(given["paths"])))
    if "path" in given:
        paths.append(given["path"])
    elif not paths and "location" in given:
        paths.append(given["location"])
    if not paths or not all(paths):
        raise ValueError(
            'no path is given: name files, folders or patterns, as in .load("/logs/2024"). Of a table of the catalog '
            "Spark hands over none of the options that it was made with, not even its path: make a temporary view "
            "instead, or name the path in the query: SELECT * FROM name WITH (path = '/logs/2024')"
        )
    return tuple(paths)
