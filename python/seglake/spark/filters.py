"""The filters of a query as filters of `seglake.open`, so that what cannot match is not read. PySpark 4.0 has none.

A filter is taken over where the library compares as Spark does. Others are left out: Spark evaluates all filters again,
so that records that do not match may be read, but no record that matches may be left out.
"""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
)

import seglake
from seglake._filters import Condition
from seglake._text import unescape

__all__ = ["pushed", "rows_wanted"]

_OPERATORS: Final[dict[type[Filter], str]] = {
    GreaterThan: ">",
    GreaterThanOrEqual: ">=",
    LessThan: "<",
    LessThanOrEqual: "<=",
}
_SHOWN_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def rows_wanted(filters: Sequence[Filter], corrupt_column: str | None) -> tuple[bool, bool]:
    """Returns whether rows without a report of damage can match filters that all have to be true, and rows with one."""
    sound = damaged = True
    for each in filters:
        path: tuple[str, ...] = tuple(getattr(each, "attribute", ()))
        if not path or path[0] != corrupt_column:
            continue
        if isinstance(each, IsNull) and len(path) == 1:
            damaged = False
        # A field of null is null, which no comparison keeps.
        elif isinstance(each, IsNotNull) or _compared(each)[0]:
            sound = False
    return sound, damaged


def pushed(filters: Sequence[Filter], columns: Sequence[seglake.Column]) -> list[Condition]:
    """Returns what `seglake.open` can tell by itself of filters that all have to be true.

    Args:
        filters: the filters.
        columns: the columns that the format's records have.
    """
    kinds = {column.name: column.kind for column in columns}
    conditions: list[Condition] = []
    for each in filters:
        path: tuple[str, ...] = tuple(getattr(each, "attribute", ()))
        if len(path) == 1 and path[0] in kinds:
            operator, values = _compared(each)
            translated = _translated(kinds[path[0]], operator, values)
            if translated is not None:
                conditions.append((path[0], operator, translated if operator == "in" else translated[0]))
    return conditions


def _compared(given: Filter) -> tuple[str, tuple[Any, ...]]:
    """What a filter compares with: an operator and values; an empty operator where it is of another kind."""
    match given:
        case EqualTo(value=value) | EqualNullSafe(value=value):
            return ("in", (value,)) if value is not None else ("", ())
        case In(value=values):
            # Nothing is equal to null.
            return "in", tuple(value for value in values if value is not None)
        case _:
            return _OPERATORS.get(type(given), ""), (getattr(given, "value", None),)


def _translated(kind: str, operator: str, values: tuple[Any, ...]) -> list[Any] | None:
    """The values for the library, without those that no record has; None where it does not compare as Spark does."""
    if not operator:
        return None
    is_range = operator != "in"
    if kind == "uuid":
        if not all(isinstance(value, str | bytes | bytearray) for value in values):
            return None
        uuids = [uuid for uuid in map(_uuid, values) if uuid is not None]
        # As text UUIDs compare as their bytes do, but any other text does not.
        return None if is_range and not any(uuid.version == 6 for uuid in uuids) else uuids
    if kind == "timestamp":
        # A column without a zone has times without one.
        aware = all(type(value) is datetime and value.tzinfo is not None for value in values)
        return list(values) if aware else None
    if kind in ("int64", "uint64"):
        return list(values) if all(type(value) is int for value in values) else None
    if kind == "text" and not is_range:
        if not all(type(value) is str for value in values):
            return None
        return [name for name in map(unescape, values) if name is not None]
    return None


def _uuid(value: Any) -> UUID | None:
    """The UUID that a literal is, as the column shows it; None where it is none."""
    if isinstance(value, str) and _SHOWN_UUID.fullmatch(value):
        return UUID(value)
    if isinstance(value, bytes | bytearray) and len(value) == 16:
        return UUID(bytes=bytes(value))
    return None
