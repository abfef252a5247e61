"""What the formats are to Spark: their columns, and which options concern them. All of it is asked of the library."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Final, Literal, TypeVar, cast
from uuid import UUID

import pyarrow as pa

import seglake
from seglake._types import DialectName, FormatName

from .uint64 import without_uint64

__all__ = [
    "LOCATION_COLUMNS",
    "FormatOptions",
    "UuidType",
    "Wanted",
    "column_names",
    "gives_out_damage",
    "has_uint64",
    "native_schema",
]

UuidType = Literal["string", "binary"]
_T = TypeVar("_T")

LOCATION_COLUMNS: Final = ("path", "position")
"""The columns that any format's records have when they are asked for: the file, and where in it the record begins."""

# A schema depends on no key: with one given, the one in the environment, which is for the executors, is not looked at.
_ANY_KEY: Final = bytes(32)

# The column that records must have if they are to be chosen by this.
_WANTED_BY: Final = {
    "since": "timestamp",
    "until": "timestamp",
    "start_offset": "offset",
    "end_offset": "offset",
    "partitions": "partition",
    "tenants": "tenant",
    "types": "type",
}


# Where the times of UUIDs of version 6 begin, which count steps of 100 ns.
_UUID_EPOCH: Final = datetime(1582, 10, 15, tzinfo=UTC)


@dataclass(frozen=True)
class FormatOptions:
    """The options that concern files of some formats only, named as in `seglake.open`; None is the library's default.

    Attributes:
        dialect: how an oplog's messages are laid out.
        index: whether the index beside a chunked log is used.
        max_chunk_bytes: the largest chunk that is decoded into a buffer, in bytes.
        limit_chunk_bytes: the largest chunk that is decoded at all, in bytes.
    """

    dialect: DialectName | None = None
    index: bool | None = None
    max_chunk_bytes: int | None = None
    limit_chunk_bytes: int | None = None

    def arguments(self, format: str) -> dict[str, Any]:
        """Returns those that are given and concern a format, as keyword arguments for `seglake.open`."""
        concerning = _format(format).open_options
        return {name: value for name, value in _given(self) if name in concerning}

    def foreign(self, format: str) -> list[str]:
        """Returns the names of those that are given and do not concern a format."""
        concerning = _format(format).open_options
        return [name for name, _ in _given(self) if name not in concerning]


@dataclass(frozen=True)
class Wanted:
    """Which records are read, named as in `seglake.open`; ranges are half-open, None lets everything through.

    Tenants and types are bytes: different texts may stand for the same ones.
    """

    since: datetime | UUID | None = None
    until: datetime | UUID | None = None
    start_offset: int | None = None
    end_offset: int | None = None
    partitions: tuple[int, ...] | None = None
    tenants: tuple[bytes, ...] | None = None
    types: tuple[bytes, ...] | None = None

    def arguments(self) -> dict[str, Any]:
        """Returns what is given as keyword arguments for `seglake.open`."""
        return dict(_given(self))

    def both(self, other: "Wanted") -> "Wanted":
        """Returns the choice of the records that are among both."""
        return Wanted(
            since=max(_present(self.since, other.since), key=_place_in_time, default=None),
            until=min(_present(self.until, other.until), key=_place_in_time, default=None),
            start_offset=max(_present(self.start_offset, other.start_offset), default=None),
            end_offset=min(_present(self.end_offset, other.end_offset), default=None),
            partitions=_common(self.partitions, other.partitions),
            tenants=_common(self.tenants, other.tenants),
            types=_common(self.types, other.types),
        )

    def missing(self, columns: Sequence[str]) -> tuple[str, str] | None:
        """Returns an argument by which records of these columns cannot be chosen, and the column they lack for it."""
        for name, value in _given(self):
            column = "uuid" if isinstance(value, UUID) else _WANTED_BY[name]
            if column not in columns:
                return name, column
        return None


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


def gives_out_damage(format: str) -> bool:
    """Tells whether a format has damage that leaves a record readable, so that it is given out with a cause."""
    return _format(format).marks_damage


def has_uint64(format: str, options: FormatOptions) -> bool:
    """Tells whether a format's records have unsigned integers of 64 bits."""
    schema = native_schema(format, None, "string", options)
    return without_uint64(schema, "bigint") != schema


def _schema_of_nothing(
    format: str, columns: Sequence[str] | None, uuid_type: UuidType, options: FormatOptions | None
) -> seglake.Schema:
    # A schema depends on the format and its options alone, so that no file of that format is needed for it.
    with seglake.open(
        b"",
        format=cast("FormatName", format),
        key=_ANY_KEY,
        on_damage="skip",
        columns=columns,
        uuid_type=uuid_type,
        **(options.arguments(format) if options is not None else {}),
    ) as reader:
        return reader.schema


def _present(*values: _T | None) -> list[_T]:
    return [value for value in values if value is not None]


def _common(one: tuple[_T, ...] | None, other: tuple[_T, ...] | None) -> tuple[_T, ...] | None:
    if one is None or other is None:
        return one if other is None else other
    return tuple(value for value in one if value in other)


def _place_in_time(bound: datetime | UUID) -> tuple[int, int]:
    """Where a bound stands among others: a time is in front of all UUIDs of that time."""
    if isinstance(bound, UUID):
        return (bound.int >> 80) << 12 | bound.int >> 64 & 0xFFF, bound.int
    return (bound - _UUID_EPOCH) // timedelta(microseconds=1) * 10, -1


def _given(options: FormatOptions | Wanted) -> Iterator[tuple[str, Any]]:
    for field in fields(options):
        value = getattr(options, field.name)
        if value is not None:
            yield field.name, value


@cache
def _format(name: str) -> seglake.Format:
    formats = seglake.formats()
    if name not in formats:
        raise ValueError(f"there is no format {name!r}: it is one of {', '.join(formats)}")
    return formats[name]
