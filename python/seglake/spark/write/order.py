"""How rows have to follow one another in a file, and what to add to a frame whose rows do not.

The library's writers check it. Here stands what of it concerns Spark: which columns it is about, where a further file
may begin, and in which words of Spark's it is mended.
"""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["Order"]

_ASCENDING: Final = ("uuid", "offset")
# Numbers that count from 0 in each file: of its records, or of a tenant's in a partition.
_COUNTING: Final = ("seq", "index")
_LAST_PARTITION: Final = (1 << 32) - 1


@dataclass(frozen=True)
class Order:
    """What a frame's columns say of the order of its rows.

    Attributes:
        ascending: the column that ascends strictly within a file, None where there is none.
        counting: the column that counts from 0 in each file, None likewise.
    """

    ascending: str | None
    counting: str | None

    @classmethod
    def of(cls, columns: Sequence[str]) -> "Order":
        """Returns the order for these columns."""
        return cls(
            next((name for name in _ASCENDING if name in columns), None),
            next((name for name in _COUNTING if name in columns), None),
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that decide on it."""
        return tuple(name for name in (self.ascending, self.counting) if name is not None)

    @property
    def watched(self) -> list[str]:
        """The columns by which `advice` tells what is wrong with a row."""
        return [*self.columns, *(("partition",) if self.counting == "index" else ())]

    def advice(self, refused: Mapping[str, Any] | None, last: Any) -> str:
        """Returns what to add to the frame, empty where the order is not what is wrong.

        Args:
            refused: of the row that the writer did not take, what is `watched`; None where it refused to complete a
                file.
            last: what the last record of the file is found by, as `Writer.last` has it.
        """
        if self.counting == "index" and (refused is None or 0 <= refused["partition"] <= _LAST_PARTITION):
            return (
                '. Add .drop("index") to have messages numbered anew in each file, or .repartition("partition", '
                '"tenant").sortWithinPartitions("partition", "tenant", "index") to keep the numbers of a single segment'
            )
        if refused is None:
            return ""
        if self.counting == "seq" and refused["seq"] != (0 if last is None else last + 1):
            return (
                '. Add .drop("seq") to have messages numbered anew in each file, or .repartition(1)'
                '.sortWithinPartitions("seq") to keep the numbers of a single oplog'
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
