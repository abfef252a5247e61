"""Functions on columns. They work on classic sessions and over Spark Connect."""

from typing import TYPE_CHECKING, Any, Literal, cast, get_args

import pyarrow as pa
from pyspark.sql.types import StructField, StructType

from seglake._types import DialectName

from .arrow_types import arrow_schema, spark_type
from .formats import FormatOptions, column_names, native_schema
from .messages import ERROR_TYPE, MessageDecoder
from .schema import spark_schema
from .uint64 import Uint64Type

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = ["from_oplog"]


def from_oplog(
    column: "Column | str",
    dialect: DialectName = "draft",
    mode: Literal["PERMISSIVE", "FAILFAST"] = "PERMISSIVE",
    *,
    seq: "Column | str | None" = None,
    uint64_type: Uint64Type = "bigint",
    error_field: str = "_error",
) -> "Column":
    """Decodes oplog messages in a binary column: from Kafka, from Parquet, from the values of another segment.

    The result is a struct of the fields that the dialect has, without `seq`; null where the column is null. A message
    is what stands in an oplog file behind its length.

    Args:
        column: the messages, a binary column or its name.
        dialect: how they are laid out: `draft`, `draft-1.1` or `autobase`.
        mode: `PERMISSIVE` gives null fields for a bad message and says in the last field what is wrong with it;
            `FAILFAST` fails, and has no such field.
        seq: the numbers of the messages in their oplog, a bigint column or its name. It is of use for `draft-1.1`
            alone: a message can refer to keys of its own by it. References to keys of other messages, and without `seq`
            all, stay without their key; `clock.seq` and `clock.offset` say what they refer to.
        uint64_type: unsigned integers of 64 bits as `bigint`, a message with one above 2^63-1 being bad, or as
            `decimal`, decimal(20,0).
        error_field: the name of the last field, a struct: the `cause` in the words of the ledger, the `byte_offset` in
            the message, and a `message`. The first two are null where a number is too large for bigint.

    Raises:
        ValueError: an argument is none of the above, or `error_field` is the name of another field.
    """
    for name, given, known in (
        ("dialect", dialect, get_args(DialectName)),
        ("mode", mode, ("PERMISSIVE", "FAILFAST")),
        ("uint64_type", uint64_type, get_args(Uint64Type)),
    ):
        if given not in known:
            raise ValueError(f"{name} is {given!r}: expected one of {', '.join(known)}")
    from pyspark.sql import functions

    options = FormatOptions(dialect=dialect)
    names = [name for name in column_names("oplog", options) if name != "seq"]
    fields = native_schema("oplog", names, "binary", options)
    result = spark_schema(fields, uint64_type)
    if mode == "PERMISSIVE":
        if error_field in names:
            raise ValueError(f"error_field is {error_field!r}: messages have a field of that name, choose another")
        result = StructType([*result.fields, StructField(error_field, spark_type(ERROR_TYPE))])
    decoder = MessageDecoder(dialect, fields, arrow_schema(result), error_field if mode == "PERMISSIVE" else None)

    # Plans call the functions by their names.
    if hasattr(functions, "arrow_udf"):
        # Spark tells from the types what kind of function it is, and takes them without what they hold.
        def from_oplog(messages: pa.Array, *seqs: pa.Array) -> pa.Array:  # pyright: ignore
            return decoder.decode(messages, *seqs)

        decode = cast("Any", functions).arrow_udf(from_oplog, result)
    else:  # PySpark 4.0

        def from_oplog(message: bytes | None, *seqs: int | None) -> dict[str, Any] | None:
            return decoder.decode_one(message, *seqs)

        decode = functions.udf(from_oplog, result, useArrow=False)
    return decode(column) if seq is None else decode(column, seq)
