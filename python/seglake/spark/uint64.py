"""Unsigned integers of 64 bits, which Spark has not: as `bigint` where they fit, or as `decimal(20,0)`.

The functions go as deep as the columns of the formats are nested, which no file has a say in.
"""

from collections.abc import Iterator
from typing import Any, Final, Literal, NamedTuple, cast

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["TooLarge", "Uint64Type", "find_too_large", "without_uint64"]

Uint64Type = Literal["bigint", "decimal"]

_BIGINT_MAX: Final = (1 << 63) - 1
_STAND_INS: Final[dict[Uint64Type, Any]] = {"bigint": pa.int64(), "decimal": pa.decimal128(20, 0)}


class TooLarge(NamedTuple):
    """A value that a bigint cannot hold: its row, the path of its field (`clock.length`), and the value."""

    row: int
    field: str
    value: int


def without_uint64(schema: pa.Schema, uint64_type: Uint64Type) -> pa.Schema:
    """Returns a schema with what stands in for uint64, also within structs and lists."""
    stand_in = _STAND_INS[uint64_type]
    return pa.schema([field.with_type(_without_uint64(field.type, stand_in)) for field in _fields(schema)])


def find_too_large(rows: pa.RecordBatch) -> TooLarge | None:
    """Returns the first value above 2^63-1, in the order of columns and then of rows; None where there is none."""
    for name in rows.schema.names:
        found = _find(cast("Any", rows).column(name), name)
        if found is not None:
            return found
    return None


def _without_uint64(type: Any, stand_in: Any) -> Any:
    if pa.types.is_uint64(type):
        return stand_in
    if pa.types.is_list(type):
        return pa.list_(type.value_field.with_type(_without_uint64(type.value_type, stand_in)))
    if pa.types.is_struct(type):
        return pa.struct([field.with_type(_without_uint64(field.type, stand_in)) for field in _fields(type)])
    return type


def _find(values: Any, path: str) -> TooLarge | None:
    """Searches an array. The row of what is found in a list is that of the list."""
    compute = cast("Any", pc)
    if pa.types.is_uint64(values.type):
        row = compute.index(compute.greater(values, pa.scalar(_BIGINT_MAX, pa.uint64())), True).as_py()
        return TooLarge(row, path, values[row].as_py()) if row >= 0 else None
    if pa.types.is_struct(values.type):
        for number, field in enumerate(_fields(values.type)):
            found = _find(compute.struct_field(values, [number]), f"{path}.{field.name}")
            if found is not None:
                return found
    elif pa.types.is_list(values.type):
        found = _find(values.flatten(), path)
        if found is not None:
            return found._replace(row=compute.list_parent_indices(values)[found.row].as_py())
    return None


def _fields(parent: Any) -> Iterator[Any]:
    """The fields of a schema or of a struct."""
    return iter(parent)
