"""The options of writing: parsed and checked once, on the driver, before any job."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import seglake
from seglake import _values as values
from seglake._text import printable_path
from seglake._types import DialectName, OpenOptions
from seglake.read.formats import FormatOptions
from seglake.stores import check_writable
from seglake.stores.patterns import mounted_path

from ..formats import write_options
from ..option_table import OptionValues, Secret, camel_case
from ..stores import SparkStores, is_elsewhere

__all__ = ["WriteOptions", "extensions"]

# What Spark names a session to its Python by, and all those that have nothing of their own.
_SESSION: Final = "SPARK_JOB_ARTIFACT_UUID"
_NO_SESSION: Final = "default"


@dataclass(frozen=True)
class WriteOptions:
    """What one write was asked for.

    Attributes:
        folder: the absolute path, or the URI, of the folder that files are written into.
        stores: reaches the folder where that is a URI; None where it is mounted.
        segment_format: the format to write.
        create: how files are laid out, as arguments of `seglake.create`.
        corrupt_column: the column that reports damage in a frame that was read in mode `PERMISSIVE`.
        max_records: the most records of a file, None for any number.
        max_bytes: the most bytes of a file's records before compression, unless a single one has more; None likewise.
        success_file: whether an empty file `_SUCCESS` says that the write is complete.
        key_file: the path of the key's file, opened on the executors only.
        key: the key itself.
    """

    folder: str
    stores: SparkStores | None
    segment_format: str
    create: Mapping[str, Any]
    corrupt_column: str
    max_records: int | None
    max_bytes: int | None
    success_file: bool
    key_file: str | None
    key: Secret | None

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> "WriteOptions":
        """Parses what Spark hands over; names count regardless of their case.

        Raises:
            ValueError: an option is unknown or for reading, its value is wrong, it does not concern the format, or
                none says which format to write or where. The message names it; it never shows a secret.
        """
        given = {name.lower(): value for name, value in options.items()}
        read = OptionValues(given, "writing")
        folder = _folder(given)
        stores = SparkStores.parse(given, [folder])
        format: str | None = read.get("segmentFormat")
        if format is None:
            known = ", ".join(seglake.formats().names)
            raise ValueError(f"option segmentFormat is missing: name the format to write, one of {known}")
        key_file, key = read.key()
        dialect: DialectName | None = read.get("dialect")
        create = _create_options(read, format, dialect)
        if "key" not in seglake.formats()[format].create_options and (key_file is not None or key is not None):
            name = "keyFile" if key is None else "secretKey"
            raise ValueError(f"option {name} does not concern format {format}: its checksums take no key")
        return cls(
            folder=folder,
            stores=stores if is_elsewhere(folder) else None,
            segment_format=format,
            create=create,
            corrupt_column=read.get("columnNameOfCorruptRecord"),
            max_records=read.get("maxRecordsPerFile"),
            max_bytes=read.get("maxBytesPerFile"),
            success_file=read.get("successFile"),
            key_file=key_file,
            key=key,
        )

    @property
    def format(self) -> seglake.Format:
        """What the library says of the format."""
        return seglake.formats(options=self._reading)[self.segment_format]

    @property
    def format_options(self) -> FormatOptions:
        """What of this decides on the columns that records have."""
        return FormatOptions(dialect=self._reading.get("dialect"))

    @property
    def _reading(self) -> OpenOptions:
        return {"dialect": self.create.get("options", {}).get("dialect")}

    def open(self, path: Path) -> seglake.Writer:
        """Creates a file; for executors, since it may open the key's file.

        Raises:
            OSError: it cannot be created, or the key's file cannot be read.
            ValueError: what is in the key's file is no key.
        """
        key = self.key.reveal() if self.key is not None else self.key_file
        return seglake.create(path, format=self.segment_format, key=key, **self.create)


def extensions() -> frozenset[str]:
    """Returns the usual extensions of all formats, without the dot."""
    return frozenset(format.extension for format in seglake.formats())


def _create_options(read: OptionValues, format: str, dialect: DialectName | None) -> dict[str, Any]:
    """The options of the format, of those that were given.

    Raises:
        ValueError: one does not concern it, or its value is wrong.
    """
    declared = seglake.formats()[format].create_options
    options: dict[str, Any] = {}
    if dialect is not None:
        _refuse("dialect", format, declared)
        options["dialect"] = dialect
    for name, option in write_options().items():
        value = read.given(camel_case(name), partial(values.option_value, declared.get(name, option)))
        if value is not None:
            _refuse(name, format, declared)
            options[name] = value
    return {"options": options} if options else {}


def _refuse(name: str, format: str, declared: Mapping[str, seglake.types.FormatOption]) -> None:
    if name not in declared:
        raise ValueError(f"option {camel_case(name)} does not concern format {format}")


def _folder(given: Mapping[str, str]) -> str:
    named = given.get("path") or given.get("location")
    if named is None:
        raise ValueError(
            'no path is given: name a folder, as in .save("/logs/2024"). For writing into a table of the catalog Spark '
            "hands over none of the options that the table was made with, not even its path"
        )
    text = mounted_path(named, "folder")
    if text is None:
        path = named.partition("://")[2]
        if not path.strip("/") or {"", ".", ".."} & set(path.strip("/").split("/")[1:]):
            raise ValueError(f"{printable_path(named)}: expected a path, or the URI of a folder as in s3://bucket/logs")
        check_writable(named)
        return named.rstrip("/")
    folder = Path(text).absolute()
    # Spark gives the Python of such a session a working folder of its own, which it removes with the session.
    if not Path(text).is_absolute() and os.environ.get(_SESSION, _NO_SESSION) != _NO_SESSION:
        raise ValueError(
            f"{printable_path(named)}: expected an absolute path: in a session of Connect, or one with artifacts, "
            f"this would be {printable_path(folder)}, which is removed with the session"
        )
    return str(folder)
