"""Functions on columns. They work on classic sessions and over Spark Connect."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, cast, get_args

import pyarrow as pa
from pyspark.sql.types import StructField, StructType

import seglake
from seglake._types import DialectName
from seglake.read.formats import FormatOptions, column_names, native_schema

from .arrow_types import arrow_schema, spark_schema, spark_type
from .formats import Uint64Type
from .versions import reduced

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = ["from_oplog"]

_BIGINT_MAX: Final = (1 << 63) - 1


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
    is what stands in an oplog file after its length.

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


ERROR_TYPE: Final = pa.struct([("cause", pa.string()), ("byte_offset", pa.int64()), ("message", pa.string())])
"""Why a message has no fields: the cause in the ledger's words, the offset within the message, and a text."""


@dataclass(frozen=True)
class MessageDecoder:
    """Decodes an array of messages into an array of structs.

    Attributes:
        dialect: how the messages are laid out.
        fields: the fields of the dialect with their Arrow types.
        result: the type of the structs: these fields, in the types that Spark has for them, and last, unless bad
            messages are raised, what is wrong with one.
        error_field: the name of that last field; None raises.
    """

    dialect: DialectName
    fields: pa.Schema
    result: pa.Schema
    error_field: str | None

    def __reduce__(self) -> tuple[object, ...]:
        return reduced(MessageDecoder, self.dialect, self.fields, self.result, self.error_field)

    def decode(self, messages: Any, seqs: Any = None) -> Any:
        """Decodes an array of binary; null where there is no message. `seqs` are the messages' numbers, if known.

        Raises:
            TypeError: it is an array of something else.
            ValueError: a seq is negative.
            seglake.DamageError: a message is bad, and is to be raised.
            seglake.exceptions.LimitError: likewise where a number is above 2^63-1 and comes as bigint.
        """
        if not (pa.types.is_binary(messages.type) or pa.types.is_large_binary(messages.type)):
            raise TypeError(f"from_oplog takes a binary column, this is of type {messages.type}")
        records: list[dict[str, Any] | None] = []
        errors: list[dict[str, Any] | None] = []
        numbers = [None] * len(messages) if seqs is None else seqs.to_pylist()
        for message, seq in zip(messages.to_pylist(), numbers, strict=True):
            record, error = None, None
            if message is not None:
                if seq is not None and seq < 0:
                    raise ValueError(f"seq is {seq}: expected the number of the message in its oplog, from 0 on")
                try:
                    record = seglake.oplog.decode(message, dialect=self.dialect, seq=seq).to_dict()
                except seglake.DamageError as damage:
                    error = self._damaged(damage)
            records.append(record)
            errors.append(error)
        return self._structs(records, errors, messages.is_null())

    def decode_one(self, message: bytes | None, seq: int | None = None) -> dict[str, Any] | None:
        """Decodes one message, with its number if that is known. Raises what `decode` raises."""
        given = cast("Any", pa).array([message])
        if message is None:
            given = given.cast(pa.binary())
        return self.decode(given, cast("Any", pa).array([seq], pa.int64()))[0].as_py()

    def _structs(self, records: list[dict[str, Any] | None], errors: list[dict[str, Any] | None], absent: Any) -> Any:
        array = cast("Any", pa).array
        rows = array(records, pa.struct(list(cast("Any", self.fields))))
        own = pa.struct([field for field in cast("Any", self.result) if field.name != self.error_field])
        try:
            rows = rows.cast(own)
        except pa.ArrowInvalid:
            # Some number is too large; which, is looked for one by one.
            for number, record in enumerate(records):
                large = next(_too_large(record), None) if record is not None else None
                if large is not None:
                    records[number], errors[number] = None, self._too_large(*large)
            rows = array(records, rows.type).cast(own)
        columns = rows.flatten()  # unlike its fields, null where the struct is
        if self.error_field is not None:
            columns.append(array(errors, ERROR_TYPE))
        return cast("Any", pa).StructArray.from_arrays(columns, fields=list(cast("Any", self.result)), mask=absent)

    def _damaged(self, damage: seglake.DamageError) -> dict[str, Any]:
        # What the error says as a text is of a file, and what to do about one.
        if self.error_field is None:
            raise type(damage)(
                path=None,
                byte_offset=damage.byte_offset,
                cause=damage.cause,
                expected=damage.expected,
                actual=damage.actual,
                next=f"This is no message of dialect {self.dialect}. Mode PERMISSIVE gives null fields and an error",
            ) from None
        wrong = f"expected {damage.expected}, found {damage.actual}"
        return {"cause": damage.cause, "byte_offset": damage.byte_offset, "message": wrong}

    def _too_large(self, field: str, value: int) -> dict[str, Any]:
        message = (
            f"field {field}: {value} is above 2^63-1, the most that a bigint holds; "
            'uint64_type="decimal" gives such numbers as decimal(20,0)'
        )
        if self.error_field is None:
            raise seglake.exceptions.LimitError(message, option="uint64_type")
        # The message is sound: no cause, and no place in it.
        return {"cause": None, "byte_offset": None, "message": message}


def _too_large(value: Any, field: str = "") -> Iterator[tuple[str, int]]:
    """Yields each number of a message that a bigint cannot hold, with its field (`clock.length`)."""
    if isinstance(value, int) and value > _BIGINT_MAX:
        yield field, value
    elif isinstance(value, dict):
        for name, own in cast("dict[str, Any]", value).items():
            yield from _too_large(own, f"{field}.{name}" if field else name)
    elif isinstance(value, list):
        for own in cast("list[Any]", value):
            yield from _too_large(own, field)
