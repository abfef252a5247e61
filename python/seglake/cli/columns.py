"""What a column holds, told from its Arrow type, so that commands need to know no format's columns."""

from __future__ import annotations

from enum import Enum

from seglake import Schema


class Kind(Enum):
    """What a column's values are. The values are how the names of their Arrow types begin."""

    UUID = "FixedSizeBinary(16)"
    TIMESTAMP = "Timestamp("
    TEXT = "Utf8"
    BINARY = "Binary"
    INTEGER = "Int64"
    COUNTER = "UInt64"
    BOOLEAN = "Boolean"
    LIST = "List("
    STRUCT = "Struct("


_FOR_PEOPLE = (Kind.TIMESTAMP, Kind.TEXT, Kind.INTEGER)


def kinds(schema: Schema) -> dict[str, Kind | None]:
    """The kind of each column by its name, None where it is none of them."""
    return {name: _kind(type_name) for name, type_name in zip(schema.names, schema.types, strict=True)}


def for_people(schema: Schema) -> list[str]:
    """The columns that a person wants to see of each record, in their order.

    Those that say which record it is (numbers, times, short texts), and its value. A UUID says little beside the time
    that is in it; counters, flags and structures are for who asks for them.
    """
    return [name for name, kind in kinds(schema).items() if name == "value" or kind in _FOR_PEOPLE]


def numbers(schema: Schema) -> frozenset[str]:
    """The columns that hold one number each, which stand flush right."""
    return frozenset(name for name, kind in kinds(schema).items() if kind in (Kind.INTEGER, Kind.COUNTER))


def _kind(type_name: str) -> Kind | None:
    return next((kind for kind in Kind if type_name.startswith(kind.value)), None)
