"""Schemas: what a format's records look like in Spark, and whether a schema that the user gives fits."""

import difflib
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, cast

from pyspark.sql.types import ArrayType, DataType, LongType, StringType, StructField, StructType

from seglake.read.formats import LOCATION_COLUMNS, UuidType, column_names, native_schema

from .arrow_types import spark_schema
from .formats import Uint64Type, contains_uint64, gives_out_damage
from .options import ReadOptions

__all__ = [
    "DAMAGE_TYPE",
    "ReadSchema",
    "inferred_schema",
    "near_name",
    "same_but_for_null",
]

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


def inferred_schema(format: str, options: ReadOptions) -> StructType:
    """Returns the schema of a load for which the user gives none.

    Raises:
        ValueError: the column that reports damage has the name of one of the format's columns.
    """
    columns = [*column_names(format, options.format_options), *options.metadata_columns]
    native = native_schema(format, columns, options.uuid_type or "string", options.format_options)
    schema = spark_schema(native, options.uint64_type or "bigint")
    if options.mode == "PERMISSIVE":
        _refuse_as_corrupt_column(schema.names, format, options)
        schema.add(options.corrupt_column, DAMAGE_TYPE)
    return schema


def _refuse_as_corrupt_column(columns: Sequence[str], format: str, options: ReadOptions) -> None:
    # Queries name columns regardless of case, unless Spark is told otherwise.
    name = options.corrupt_column
    if name.lower() in (column.lower() for column in (*columns, *LOCATION_COLUMNS)):
        raise ValueError(
            f"option columnNameOfCorruptRecord is {name!r}: format {format} has a column of that name, choose another"
        )


class Representation(NamedTuple):
    """In which of the possible types values come."""

    uuid_type: UuidType
    uint64_type: Uint64Type


@dataclass(frozen=True)
class ReadSchema:
    """A schema that was found to fit a format.

    Attributes:
        schema: the schema itself.
        columns: the columns to decode: of the schema all but `path`, which is the same for all records of a file, and
            those that are needed to say what is wrong with a record. Never empty: the number of records has to come
            from something.
        uuid_type: how UUIDs come.
        uint64_type: how unsigned integers of 64 bits come.
        corrupt_column: the column that reports damage, None where the schema has none.
    """

    schema: StructType
    columns: tuple[str, ...]
    uuid_type: UuidType
    uint64_type: Uint64Type
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
                _refuse_as_corrupt_column(column_names(format, options.format_options), format, options)
                corrupt_column = field.name
                _require_type(field, StructField(field.name, DAMAGE_TYPE))
            else:
                fields.append(field)
        for name in options.metadata_columns:
            if name not in schema.names:
                raise ValueError(
                    f"option metadataColumns names {name}, which the schema given lacks: add {name} to it, or leave "
                    "the option out"
                )
        found = _check_columns(fields, format, options)
        names = [field.name for field in fields if field.name != "path"]
        columns = dict.fromkeys((*names, *_columns_for_reports(fields, format, options)))
        return cls(schema, tuple(columns) or ("position",), found.uuid_type, found.uint64_type, corrupt_column)


def _columns_for_reports(fields: Sequence[StructField], format: str, options: ReadOptions) -> list[str]:
    """Returns the columns that are needed to say what is wrong with a record that can be read all the same."""
    columns: list[str] = []
    if gives_out_damage(format) and options.mode != "FAILFAST":
        columns.extend(("position", "cause"))
    native = native_schema(format, [field.name for field in fields], "string", options.format_options)
    if contains_uint64(native) and "seq" in column_names(format, options.format_options):
        columns.append("seq")
    return columns


def _refuse_duplicates(schema: StructType) -> None:
    if not schema.names:
        raise ValueError("the schema given has no columns")
    for name in schema.names:
        if schema.names.count(name) > 1:
            raise ValueError(f"column {name} stands in the schema given more than once")


def _check_columns(fields: Sequence[StructField], format: str, options: ReadOptions) -> Representation:
    """Checks the columns that come from records; returns the types of values under which all of them fit."""
    known = [*column_names(format, options.format_options), *LOCATION_COLUMNS]
    for field in fields:
        if field.name not in known:
            raise ValueError(_unknown_column(field.name, [*known, options.corrupt_column], format))
    possible = [
        Representation(uuid_type, uint64_type)
        for uuid_type, uint64_type in itertools.product(
            (options.uuid_type,) if options.uuid_type else cast("tuple[UuidType, ...]", ("string", "binary")),
            (options.uint64_type,) if options.uint64_type else cast("tuple[Uint64Type, ...]", ("bigint", "decimal")),
        )
    ]
    schemas = {
        each: spark_schema(native_schema(format, known, each.uuid_type, options.format_options), each.uint64_type)
        for each in possible
    }
    for each, expected in schemas.items():
        if all(field.dataType == expected[field.name].dataType for field in fields):
            return each
    expected = schemas[possible[0]]
    for field in fields:
        if not any(field.dataType == each[field.name].dataType for each in schemas.values()):
            _require_type(field, expected[field.name])
    # Each column fits some types of values, but they do not agree on them.
    for field in fields:
        _require_type(field, expected[field.name])
    return possible[0]


def _unknown_column(name: str, known: Sequence[str], format: str) -> str:
    near = near_name(name, known)
    hint = f"did you mean {near}?" if near else f"it has {', '.join(known)}"
    return f"column {name} of the schema given is none of format {format}: {hint}"


def near_name(name: str, known: Sequence[str]) -> str | None:
    """Returns the name that was probably meant, of those that are known."""
    folded = {each.lower(): each for each in known}
    return next((folded[near] for near in difflib.get_close_matches(name.lower(), folded, n=1)), None)


def same_but_for_null(type: DataType, expected: DataType) -> bool:
    """Tells whether two types are the same, but for what in them may be null."""
    return _nullable(type) == _nullable(expected)


def _require_type(field: StructField, expected: StructField) -> None:
    if field.dataType == expected.dataType:
        return
    if _nullable(field.dataType) == expected.dataType:
        raise ValueError(f"column {field.name} of the schema given has a field that is NOT NULL: it has to be nullable")
    raise ValueError(
        f"column {field.name} of the schema given is {field.dataType.simpleString()}: "
        f"expected {expected.dataType.simpleString()}"
    )


def _nullable(type: DataType) -> DataType:
    """Returns a type with everything in it nullable."""
    if isinstance(type, StructType):
        return StructType([StructField(field.name, _nullable(field.dataType)) for field in type.fields])
    if isinstance(type, ArrayType):
        return ArrayType(_nullable(type.elementType))
    return type
