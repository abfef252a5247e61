"""Arrow types as Spark's, and back: those that columns of records and of damage have.

PySpark's own functions for it are private, and their arguments differ between its versions.
"""

from typing import Any, Final, cast

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DecimalType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from .formats import Uint64Type

__all__ = ["arrow_schema", "spark_schema", "spark_type"]

_SIMPLE: Final[tuple[tuple[Any, DataType], ...]] = (
    (pa.bool_(), BooleanType()),
    (pa.int64(), LongType()),
    (pa.string(), StringType()),
    (pa.binary(), BinaryType()),
    (pa.timestamp("us", tz="UTC"), TimestampType()),
)


def spark_schema(schema: pa.Schema, uint64_type: Uint64Type = "bigint") -> StructType:
    """Returns an Arrow schema as Spark's, with unsigned integers of 64 bits, which Spark has not, as this type.

    Raises:
        TypeError: a column is of another type than records have.
    """
    return _struct(schema, uint64_type)


def spark_type(type: Any, uint64_type: Uint64Type = "bigint") -> DataType:
    """Returns an Arrow type as Spark's, with unsigned integers of 64 bits as this type.

    Raises:
        TypeError: it is another type than columns of records have.
    """
    for arrow, spark in _SIMPLE:
        if type == arrow:
            return spark
    if pa.types.is_uint64(type):
        return LongType() if uint64_type == "bigint" else DecimalType(20, 0)
    if pa.types.is_decimal128(type):
        return DecimalType(type.precision, type.scale)
    if pa.types.is_list(type):
        return ArrayType(spark_type(type.value_type, uint64_type), type.value_field.nullable)
    if pa.types.is_struct(type):
        return _struct(type, uint64_type)
    raise TypeError(f"Arrow type {type}: expected one that columns of records have")


def arrow_schema(schema: StructType) -> pa.Schema:
    """Returns the Arrow schema that Spark holds the batches of a data source to.

    Raises:
        TypeError: a column is of another type than records have.
    """
    return pa.schema(_fields(schema))


def _arrow_type(type: DataType) -> Any:
    for arrow, spark in _SIMPLE:
        if type == spark:
            return arrow
    if isinstance(type, DecimalType):
        return pa.decimal128(type.precision, type.scale)
    if isinstance(type, ArrayType):
        # Spark calls the items of arrays so.
        return pa.list_(pa.field("element", _arrow_type(type.elementType), type.containsNull))
    if isinstance(type, StructType):
        return pa.struct(_fields(type))
    raise TypeError(f"Spark type {type.simpleString()}: expected one that columns of records have")


def _struct(parent: Any, uint64_type: Uint64Type) -> StructType:
    fields = [StructField(field.name, spark_type(field.type, uint64_type), field.nullable) for field in parent]
    return StructType(fields)


def _fields(schema: StructType) -> list["pa.Field[Any]"]:
    return [cast("Any", pa).field(field.name, _arrow_type(field.dataType), field.nullable) for field in schema.fields]
