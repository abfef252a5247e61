"""What the formats are to Spark. All of it is asked of the library."""

from collections.abc import Iterable
from typing import Any, Final, Literal

import pyarrow as pa

import seglake
from seglake.read.formats import FormatOptions, format_named, native_schema

__all__ = ["FORMAT_OF_LOGS", "Uint64Type", "contains_uint64", "gives_out_damage", "has_uint64", "write_options"]

Uint64Type = Literal["bigint", "decimal"]
"""How unsigned integers of 64 bits come, which Spark has not: as `bigint` where they fit, or as `decimal(20,0)`."""

FORMAT_OF_LOGS: Final = "active"
"""Stands for the segments of logs, which are active and sealed: their records have the same columns."""

# Options for files that exist, and for appending: Spark writes new files, each once.
_NOT_WRITTEN: Final = ("dialect", "if_exists", "preallocate", "zero_torn_tail")


def write_options() -> dict[str, seglake.types.FormatOption]:
    """Returns the options that formats declare for new files, by their names, but for those that Spark has itself."""
    declared = (option for format in seglake.formats() for option in format.create_options.values())
    return {option.name: option for option in declared if option.kind != "key" and option.name not in _NOT_WRITTEN}


def gives_out_damage(format: str) -> bool:
    """Tells whether a format has damage that leaves a record readable, so that it is given out with a cause."""
    return format_named(format).marks_damage


def has_uint64(format: str, options: FormatOptions) -> bool:
    """Tells whether a format's records have unsigned integers of 64 bits."""
    return contains_uint64(native_schema(format, None, "string", options))


def contains_uint64(fields: Iterable[Any]) -> bool:
    """Tells whether fields have unsigned integers of 64 bits, also within structs and lists."""
    for field in fields:
        type = field.type
        if pa.types.is_uint64(type) or (
            (pa.types.is_list(type) and contains_uint64([type.value_field]))
            or (pa.types.is_struct(type) and contains_uint64(type))
        ):
            return True
    return False
