"""Whether a frame has the columns of the format that it is to be written in."""

import difflib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    ByteType,
    DataType,
    DecimalType,
    IntegerType,
    LongType,
    NullType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from ..formats import LOCATION_COLUMNS, column_names, format_named, native_schema
from ..schema import DAMAGE_TYPE, same_but_for_null, spark_schema
from .options import WriteOptions
from .order import Order

__all__ = ["WriteSchema"]

# Made of the time of writing where the column is missing.
_MADE: Final = ("uuid", "timestamp")


@dataclass(frozen=True)
class WriteSchema:
    """A frame's columns, found to be those of a format.

    Attributes:
        columns: the columns to write.
        not_null: those of them that need a value in every row.
        corrupt_column: the column that reports damage, None where the frame has none.
        order: how rows have to follow one another within a file.
    """

    columns: tuple[str, ...]
    not_null: tuple[str, ...]
    corrupt_column: str | None
    order: Order

    @classmethod
    def check(cls, schema: StructType, options: WriteOptions) -> "WriteSchema":
        """Checks a frame's columns against those of the format.

        Raises:
            ValueError: a column is unknown, missing, there twice or of another type. The message names it.
        """
        format = options.segment_format
        known = column_names(format, options.format_options)
        expected = spark_schema(native_schema(format, known, "string", options.format_options), "bigint")
        corrupt_column = None
        names: list[str] = []
        for field in schema.fields:
            if schema.names.count(field.name) > 1:
                raise ValueError(f"column {field.name} stands in the frame more than once")
            if field.name in known:
                _check_type(field.dataType, expected[field.name].dataType, field.name)
                names.append(field.name)
            elif field.name == options.corrupt_column:
                corrupt_column = field.name
                _check_damage(field)
            else:
                raise ValueError(_unknown_column(field.name, known, options))
        _refuse_missing(names, known, options)
        order = Order.of(names, format_named(format))
        not_null = [name for name in names if name in options.facts.required or name in order.columns]
        if "timestamp" in names:
            not_null.append("timestamp")
        return cls(tuple(names), tuple(not_null), corrupt_column, order)


def _refuse_missing(names: Collection[str], known: Sequence[str], options: WriteOptions) -> None:
    required = [name for name in options.facts.required if name not in _MADE]
    for name in required:
        if name not in names:
            raise ValueError(
                f"column {name} is missing: records of format {options.segment_format} need {', '.join(required)}"
            )
    if "offset" in known and "offset" not in names:
        # The writer would count, from 0 in each file.
        raise ValueError(
            "column offset is missing: it is what a message is found by, in all files of a log. For numbers that no "
            'two messages share use .withColumn("offset", monotonically_increasing_id())'
        )
    if "uuid" in known and "uuid" not in names and "timestamp" in names:
        raise ValueError(
            "column timestamp without column uuid: it comes from the UUID. Give the UUIDs too, or have UUIDs of the "
            'time of writing made with .drop("timestamp")'
        )


def _unknown_column(name: str, known: Sequence[str], options: WriteOptions) -> str:
    format = options.segment_format
    if name in LOCATION_COLUMNS:
        return (
            f"column {name} of the frame says where a record was read, which files of format {format} have no place "
            f'for: add .drop("{name}")'
        )
    folded = {column.lower(): column for column in (*known, options.corrupt_column)}
    near = difflib.get_close_matches(name.lower(), folded, n=1)
    hint = f"did you mean {folded[near[0]]}?" if near else f"it has {', '.join(known)}."
    return f'column {name} of the frame is none of format {format}: {hint} Rename it, or add .drop("{name}")'


def _check_damage(field: StructField) -> None:
    if not same_but_for_null(field.dataType, DAMAGE_TYPE):
        raise ValueError(
            f"column {field.name} of the frame is {field.dataType.simpleString()}: expected "
            f"{DAMAGE_TYPE.simpleString()}, what is reported of damage in mode PERMISSIVE. Option "
            "columnNameOfCorruptRecord names another column"
        )


def _check_type(given: DataType, expected: DataType, path: str) -> None:
    """Refuses what cannot be written without changing it."""
    if isinstance(given, ArrayType) and isinstance(expected, ArrayType):
        _check_type(given.elementType, expected.elementType, path)
    elif isinstance(given, StructType) and isinstance(expected, StructType):
        for field in given.fields:
            if field.name not in expected.names:
                raise ValueError(
                    f"column {path} of the frame has a field {field.name}, which would be lost: "
                    f"expected {expected.simpleString()}"
                )
            _check_type(field.dataType, expected[field.name].dataType, f"{path}.{field.name}")
    elif not _holds(given, expected):
        zone = " Cast it to timestamp, in the zone of the session" if isinstance(given, TimestampNTZType) else ""
        raise ValueError(
            f"column {path} of the frame is {given.simpleString()}: expected {expected.simpleString()}.{zone}"
        )


def _holds(given: DataType, expected: DataType) -> bool:
    if isinstance(given, NullType):
        return True
    if isinstance(expected, LongType):
        whole = isinstance(given, DecimalType) and given.scale == 0
        return whole or isinstance(given, ByteType | ShortType | IntegerType | LongType)
    if isinstance(expected, StringType | BinaryType):
        return isinstance(given, StringType | BinaryType)
    if isinstance(expected, TimestampType):
        return isinstance(given, TimestampType)
    return given == expected
