"""Schemas: what a format's records look like in Spark, and whether a schema that the user gives fits."""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import LongType, StringType, StructField, StructType

import seglake

from .options import ReadOptions, UuidType

__all__ = [
    "DAMAGE_TYPE",
    "LOCATION_COLUMNS",
    "ReadSchema",
    "arrow_field",
    "arrow_schema",
    "column_names",
    "inferred_schema",
    "native_schema",
]

LOCATION_COLUMNS: Final = ("path", "position")
"""The columns that any format's records have when they are asked for: the file, and where in it the record begins."""

DAMAGE_TYPE: Final = StructType(
    [
        StructField("path", StringType()),
        StructField("start", LongType()),
        StructField("end", LongType()),
        StructField("kind", StringType()),
        StructField("cause", StringType()),
    ]
)
"""One damaged range: bytes `start` to `end` (half-open) of the file `path`, and the ledger's words for what it is."""


def column_names(format: str) -> list[str]:
    """Returns the names of a format's own columns."""
    return _open_empty(format, None, "string").names


def native_schema(format: str, columns: Sequence[str] | None, uuid_type: UuidType) -> pa.Schema:
    """Returns the Arrow schema of a format's records: the columns given, or all of the format's own."""
    return pa.schema(cast("Any", _open_empty(format, columns, uuid_type)))


def _open_empty(format: str, columns: Sequence[str] | None, uuid_type: UuidType) -> seglake.Schema:
    # A schema depends on the format alone, so that no file of that format is needed for it.
    name = cast("FormatName", format)
    with seglake.open(b"", format=name, on_damage="skip", columns=columns, uuid_type=uuid_type) as reader:
        return reader.schema


def arrow_field(schema: pa.Schema, name: str) -> "pa.Field[Any]":
    """Returns a field of an Arrow schema, typed as far as anything is known of it."""
    return cast("Any", schema).field(name)


def inferred_schema(format: str, options: ReadOptions) -> StructType:
    """Returns the schema of a load for which the user gives none.

    Raises:
        ValueError: the column that reports damage has the name of one of the format's columns.
    """
    schema = _spark_schema(format, None, options.uuid_type or "string")
    if options.mode == "PERMISSIVE":
        if options.corrupt_column in schema.names:
            raise ValueError(
                f"option columnNameOfCorruptRecord is {options.corrupt_column!r}: "
                f"format {format} has a column of that name, choose another"
            )
        schema.add(options.corrupt_column, DAMAGE_TYPE)
    return schema


def _spark_schema(format: str, columns: Sequence[str] | None, uuid_type: UuidType) -> StructType:
    return from_arrow_schema(native_schema(format, columns, uuid_type), prefer_timestamp_ntz=False)


def arrow_schema(schema: StructType) -> pa.Schema:
    """Returns the Arrow schema that Spark holds the batches of a data source to."""
    return to_arrow_schema(schema, timezone="UTC")


@dataclass(frozen=True)
class ReadSchema:
    """A schema that was found to fit a format.

    Attributes:
        schema: the schema itself.
        columns: the columns to decode, all but `path`, which is the same for all records of a file. Never empty: the
            number of records has to come from something.
        uuid_type: how UUIDs come.
        corrupt_column: the column that reports damage, None where the schema has none.
    """

    schema: StructType
    columns: tuple[str, ...]
    uuid_type: UuidType
    corrupt_column: str | None

    @classmethod
    def check(cls, schema: StructType, format: str, options: ReadOptions) -> "ReadSchema":
        """Checks a schema against a format's columns.

        Raises:
            ValueError: a column is unknown, named twice or of another type. The message names it.
        """
        _refuse_duplicates(schema)
        corrupt_column = None
        fields: list[StructField] = []
        for field in schema.fields:
            if not field.nullable:
                raise ValueError(f"column {field.name} of the schema given is NOT NULL: it has to be nullable")
            if field.name == options.corrupt_column:
                corrupt_column = field.name
                _require_type(field, StructField(field.name, DAMAGE_TYPE))
            else:
                fields.append(field)
        uuid_type = _check_columns(fields, format, options)
        columns = tuple(field.name for field in fields if field.name != "path") or ("position",)
        return cls(schema, columns, uuid_type, corrupt_column)


def _refuse_duplicates(schema: StructType) -> None:
    if not schema.names:
        raise ValueError("the schema given has no columns")
    for name in schema.names:
        if schema.names.count(name) > 1:
            raise ValueError(f"column {name} stands in the schema given more than once")


def _check_columns(fields: Sequence[StructField], format: str, options: ReadOptions) -> UuidType:
    """Checks the columns that come from records; returns the way of giving UUIDs under which all of them fit."""
    known = [*column_names(format), *LOCATION_COLUMNS]
    for field in fields:
        if field.name not in known:
            raise ValueError(_unknown_column(field.name, [*known, options.corrupt_column], format))
    kinds: tuple[UuidType, ...] = (options.uuid_type,) if options.uuid_type else ("string", "binary")
    by_kind: dict[UuidType, StructType] = {kind: _spark_schema(format, known, kind) for kind in kinds}
    for kind, expected in by_kind.items():
        if all(_same_type(field, expected[field.name]) for field in fields):
            return kind
    expected = by_kind[kinds[0]]
    for field in fields:
        if not any(_same_type(field, each[field.name]) for each in by_kind.values()):
            _require_type(field, expected[field.name])
    # Each column fits one way of giving UUIDs, but they do not agree on it.
    for field in fields:
        _require_type(field, expected[field.name])
    return kinds[0]


def _unknown_column(name: str, known: Sequence[str], format: str) -> str:
    folded = {column.lower(): column for column in known}
    near = difflib.get_close_matches(name.lower(), folded, n=1)
    hint = f"did you mean {folded[near[0]]}?" if near else f"it has {', '.join(known)}"
    return f"column {name} of the schema given is none of format {format}: {hint}"


def _same_type(field: StructField, expected: StructField) -> bool:
    return field.dataType == expected.dataType


def _require_type(field: StructField, expected: StructField) -> None:
    if not _same_type(field, expected):
        raise ValueError(
            f"column {field.name} of the schema given is {field.dataType.simpleString()}: "
            f"expected {expected.dataType.simpleString()}"
        )
