"""How rows have to follow one another in a file, and what to add to a frame whose rows do not.

The library's writers check it. Here stands what of it concerns Spark: which columns it is about, where a further file
may begin, and in which words of Spark's it is mended.
"""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import seglake

__all__ = ["Order"]

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
