"""What people type to choose records, as the filters that `seglake.open` takes: for the command line and for Spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

__all__ = ["FILTER_OPTIONS", "MOST_OFFSET", "MOST_PARTITION", "Condition", "conditions"]

Condition = tuple[str, str, Any]
"""A column, an operator and a value, as `seglake.open` takes them in `filters`."""

_CONDITIONS: Final = {
    "since": ("timestamp", ">="),
    "until": ("timestamp", "<"),
    "start_offset": ("offset", ">="),
    "end_offset": ("offset", "<"),
    "partitions": ("partition", "in"),
    "tenants": ("tenant", "in"),
    "types": ("type", "in"),
}

MOST_OFFSET: Final = (1 << 63) - 1
"""The greatest offset of a message."""
MOST_PARTITION: Final = (1 << 32) - 1
"""The greatest number of a partition."""

FILTER_OPTIONS: Final = tuple(_CONDITIONS)
"""The names of the options that choose records."""


def conditions(options: Mapping[str, Any]) -> dict[str, Condition]:
    """Returns the conditions of the options that are given, by the options' names.

    Times (`since`, `until`) may be UUIDs instead, which are compared with the records' UUIDs. Other options are passed
    over.
    """
    found: dict[str, Condition] = {}
    for name, (column, operator) in _CONDITIONS.items():
        value = options.get(name)
        if value is not None:
            found[name] = ("uuid" if isinstance(value, UUID) else column, operator, value)
    return found
