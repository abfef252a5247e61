"""Which columns of records commands show, by the kinds that `seglake.formats` gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seglake import Format

_FOR_PEOPLE = ("timestamp", "text", "int64")
_NUMBERS = ("int64", "uint64")


def kinds(format: Format) -> Mapping[str, str]:
    """The kind of each column by its name."""
    return {column.name: column.kind for column in format.columns}


def for_people(format: Format) -> list[str]:
    """The columns that a person wants to see of each record, in their order.

    Those that say which record it is (identifiers, numbers, times, short texts), and its value. A UUID says little
    beside the time that is in it; counters, flags and structures are for who asks for them.
    """

    def is_shown(name: str, kind: str) -> bool:
        return name == "value" or kind in _FOR_PEOPLE or (name in format.identifier and kind != "uuid")

    return [name for name, kind in kinds(format).items() if is_shown(name, kind)]


def numbers(format: Format) -> frozenset[str]:
    """The columns that hold one number each, which stand flush right."""
    return frozenset(name for name, kind in kinds(format).items() if kind in _NUMBERS)
