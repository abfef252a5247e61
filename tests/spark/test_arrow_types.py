"""Types of columns in Arrow and in Spark: they are what PySpark makes of them. Without Spark."""

from __future__ import annotations

import inspect
from typing import Any, cast

import pyarrow as pa
import pytest
from pyspark.sql.pandas import types as private
from pyspark.sql.types import DateType, StructType

import seglake
from seglake.read.formats import FormatOptions, native_schema
from seglake.spark.arrow_types import arrow_schema, spark_schema, spark_type
from seglake.spark.formats import contains_uint64
from seglake.spark.functions import ERROR_TYPE
from seglake.spark.schema import DAMAGE_TYPE

DIALECTS: tuple[Any, ...] = ("draft", "draft-1.1", "autobase")
CASES = [(name, None) for name in seglake.formats().names if name != "oplog"] + [("oplog", each) for each in DIALECTS]


def expected(schema: StructType) -> pa.Schema:
    """What PySpark compares batches with. Its versions differ in how they are told that times are of UTC."""
    to_arrow_schema: Any = private.to_arrow_schema
    by_zone = "timezone" in inspect.signature(to_arrow_schema).parameters
    return to_arrow_schema(schema, timezone="UTC") if by_zone else to_arrow_schema(schema)


@pytest.mark.parametrize("uuid_type", ["string", "binary"])
@pytest.mark.parametrize("uint64_type", ["bigint", "decimal"])
@pytest.mark.parametrize(("format", "dialect"), CASES)
def test_types_are_those_of_pyspark(format: str, dialect: Any, uint64_type: Any, uuid_type: Any) -> None:
    schema = native_schema(format, None, uuid_type, FormatOptions(dialect=dialect))
    spark = spark_schema(schema, uint64_type)
    # Spark has no uint64: the batches that it gets have another type for it.
    without = arrow_schema(spark)
    assert "uint64" not in str(without)
    assert spark == cast("Any", private.from_arrow_schema)(without, prefer_timestamp_ntz=False)
    if not contains_uint64(schema):
        assert spark == cast("Any", private.from_arrow_schema)(schema, prefer_timestamp_ntz=False)
    spark = spark.add("damage", DAMAGE_TYPE)
    assert arrow_schema(spark).equals(expected(spark))
    assert spark_schema(arrow_schema(spark)) == spark


def test_the_type_of_errors_is_that_of_pyspark() -> None:
    assert spark_type(ERROR_TYPE) == private.from_arrow_type(ERROR_TYPE)


def test_other_types_are_refused() -> None:
    with pytest.raises(TypeError, match=r"Arrow type timestamp\[us\]: expected one that columns"):
        spark_type(pa.timestamp("us"))
    with pytest.raises(TypeError, match="Spark type date: expected one that columns"):
        arrow_schema(StructType().add("day", DateType()))
