"""Whether a frame has the columns of its format, and how its rows have to follow one another.

The library's writers check the order. Here stands what of it concerns Spark: which columns it is about, where a further
file may begin, and in which words of Spark's it is mended.
"""

import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

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

import seglake
from seglake.read.formats import LOCATION_COLUMNS, column_names, native_schema

from ..arrow_types import spark_schema
from ..schema import DAMAGE_TYPE, near_name, same_but_for_null
from .options import WriteOptions

__all__ = ["Order", "WriteSchema"]

# The numbers of groups of records, such as partitions, have at most 32 bits.
_LAST_GROUP: Final = (1 << 32) - 1


@dataclass(frozen=True)
class Order:
    """What a frame's columns say of the order of its rows.

    Attributes:
        ascending: the column that ascends strictly within a file, None where there is none.
        counting: the column that counts from 0 in each file, None likewise.
        groups: the columns within whose values it counts, none where it counts all records.
    """

    ascending: str | None
    counting: str | None
    groups: tuple[str, ...]

    @classmethod
    def of(cls, names: Sequence[str], format: seglake.Format) -> "Order":
        """Returns the order of rows with these columns, in files of this format."""
        ordered = {column.order: column.name for column in format.columns if column.name in names}
        counting = ordered.get("counting")
        groups = tuple(name for name in format.identifier if name != counting) if counting is not None else ()
        return cls(ordered.get("ascending"), counting, groups)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that decide on it."""
        return tuple(name for name in (self.ascending, self.counting) if name is not None)

    @property
    def watched(self) -> list[str]:
        """The columns by which `advice` tells what is wrong with a row."""
        return [*self.columns, *self.groups]

    def advice(self, refused: Mapping[str, Any] | None, last: Any) -> str:
        """Returns what to add to the frame, empty where the order is not what is wrong.

        Args:
            refused: of the row that the writer did not take, what is `watched`; None where it refused to complete a
                file.
            last: what the last record of the file is found by, as `Writer.last` has it.
        """
        if self.groups:
            if refused is not None and not all(_is_possible(refused[name]) for name in self.groups):
                return ""
            groups = ", ".join(f'"{name}"' for name in self.groups)
            return (
                f'. Add .drop("{self.counting}") to have messages numbered anew in each file, or .repartition({groups})'
                f'.sortWithinPartitions({groups}, "{self.counting}") to keep the numbers of a single segment'
            )
        if refused is None:
            return ""
        if self.counting is not None and refused[self.counting] != (0 if last is None else last + 1):
            return (
                f'. Add .drop("{self.counting}") to have messages numbered anew in each file, or .repartition(1)'
                f'.sortWithinPartitions("{self.counting}") to keep the numbers of a single file'
            )
        given = _comparable(refused[self.ascending]) if self.ascending is not None else None
        if isinstance(given, uuid.UUID) and given.version != 6:
            return '. Add .drop("uuid", "timestamp") to have UUIDs of the time of writing made'
        if self.ascending is not None and last is not None:
            if given == last:
                return (
                    f'. Add .dropDuplicates(["{self.ascending}"]).sortWithinPartitions("{self.ascending}") as the last '
                    "steps before .write, or find out where the second one comes from"
                )
            if given is not None and given < last:
                return (
                    f'. Add .sortWithinPartitions("{self.ascending}") as the last step before .write, or '
                    f'.sort("{self.ascending}") for files that follow one another'
                )
        return ""


def _is_possible(group: Any) -> bool:
    return not isinstance(group, int | Decimal) or 0 <= group <= _LAST_GROUP


def _comparable(value: Any) -> Any:
    """A value of a column as `Writer.last` gives it; None where it is no such value."""
    try:
        if isinstance(value, bytes):
            return uuid.UUID(bytes=value)
        if isinstance(value, str):
            return uuid.UUID(value)
    except ValueError:
        return None
    return value


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
        order = Order.of(names, options.format)
        required = _required(options)
        not_null = [name for name in names if name in required or name in order.columns]
        if "timestamp" in names:
            not_null.append("timestamp")
        return cls(tuple(names), tuple(not_null), corrupt_column, order)


def _required(options: WriteOptions) -> list[str]:
    """Returns the columns of which each record has a value of its own."""
    return [column.name for column in options.format.columns if not column.optional]


def _refuse_missing(names: Collection[str], known: Sequence[str], options: WriteOptions) -> None:
    required = [name for name in _required(options) if name not in _MADE]
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
    near = near_name(name, [*known, options.corrupt_column])
    hint = f"did you mean {near}?" if near else f"it has {', '.join(known)}."
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
