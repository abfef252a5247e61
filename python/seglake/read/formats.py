"""The formats as those see them who read files of any: their columns, and which options concern them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Literal, cast

import pyarrow as pa

import seglake
from seglake._types import DialectName, OpenOptions

__all__ = [
    "LOCATION_COLUMNS",
    "FormatOptions",
    "UuidType",
    "column_names",
    "format_named",
    "grows",
    "key_column",
    "limit_options",
    "native_schema",
    "numbering_columns",
]

UuidType = Literal["string", "binary"]

LOCATION_COLUMNS: Final = ("path", "position")
"""The columns that any format's records have when they are asked for: the file, and where in it the record begins."""

# A schema depends on no key: with one given, the one in the environment, which is for the executors, is not looked at.
_ANY_KEY: Final = bytes(32)


@dataclass(frozen=True)
class FormatOptions:
    """How files are read: the options that concern some formats only, and limits. They are named as in `seglake.open`.

    Attributes:
        dialect: how an oplog's messages are laid out; None is the library's default.
        index: whether the index beside a chunked log is used; None likewise.
        limits: names and values of `record_bytes` and `limit_options`, in bytes; the library's defaults are left out.
    """

    dialect: DialectName | None = None
    index: bool | None = None
    limits: tuple[tuple[str, int], ...] = ()

    def telling(self) -> OpenOptions:
        """Returns those that tell a format: the `options` of files whose format is not known."""
        return {"dialect": self.dialect}

    def arguments(self, format: str | None) -> dict[str, Any]:
        """Returns those that are given and concern a format, or all, as keyword arguments for `seglake.open`."""
        foreign = [] if format is None else self.foreign(format)
        options = {name: value for name, value in self._own() if name not in foreign}
        return {"options": options} if options else {}

    def foreign(self, format: str) -> list[str]:
        """Returns the names of those that are given and do not concern a format."""
        concerning = ["record_bytes", *format_named(format).open_options]
        return [name for name, _ in self._own() if name not in concerning]

    def _own(self) -> list[tuple[str, Any]]:
        own = (("dialect", self.dialect), ("index", self.index))
        return [*((name, value) for name, value in own if value is not None), *self.limits]


def limit_options() -> dict[str, seglake.types.FormatOption]:
    """Returns the limits that formats declare for reading, by their names. All have `record_bytes` besides."""
    declared = (option for format in seglake.formats() for option in format.open_options.values())
    return {option.name: option for option in declared if option.kind == "bytes"}


def column_names(format: str, options: FormatOptions | None = None) -> list[str]:
    """Returns the names of a format's own columns.

    Raises:
        ValueError: there is no such format.
    """
    return _schema_of_nothing(format, None, "string", options).names


def native_schema(
    format: str, columns: Sequence[str] | None, uuid_type: UuidType, options: FormatOptions | None = None
) -> pa.Schema:
    """Returns the Arrow schema of a format's records: the columns given, or all of the format's own."""
    return pa.schema(cast("Any", _schema_of_nothing(format, columns, uuid_type, options)))


def _schema_of_nothing(
    format: str, columns: Sequence[str] | None, uuid_type: UuidType, options: FormatOptions | None
) -> seglake.types.Schema:
    # A schema depends on the format and its options alone, so that no file of that format is needed for it.
    with seglake.open(
        b"",
        format=format,
        key=_ANY_KEY,
        on_damage="skip",
        columns=columns,
        uuid_type=uuid_type,
        **(options.arguments(format) if options is not None else {}),
    ) as reader:
        return reader.schema


@cache
def format_named(name: str) -> seglake.Format:
    """Returns what a format is.

    Raises:
        ValueError: there is no such format.
    """
    formats = seglake.formats()
    if name not in formats:
        raise ValueError(f"there is no format {name!r}: it is one of {', '.join(formats.names)}")
    return formats[name]


def grows(name: str) -> bool:
    """Tells whether records may be appended to files of a format. The others are written whole."""
    return "zero_torn_tail" in format_named(name).create_options


def numbering_columns(name: str) -> dict[str, str]:
    """Returns the columns that number or identify the records of a format, each with the order of its values."""
    return {column.name: column.order for column in format_named(name).columns if column.order != "any"}


def key_column(name: str) -> str:
    """Returns the column that identifies a record in every file of its source; `position` where none does."""
    ascending = (column for column, order in numbering_columns(name).items() if order == "ascending")
    return next(ascending, "position")
