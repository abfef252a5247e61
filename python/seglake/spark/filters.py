"""The filters of a query as a choice of records: of those that can match, so that no others need be read.

What a filter says is taken as far as `seglake.open` can choose by it, and never further: Spark evaluates all filters
again, so that a choice may let records through that do not match, but must leave none out that do.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar, cast
from uuid import UUID

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from seglake._text import unescape

from .formats import Wanted

__all__ = ["narrowed"]

_T = TypeVar("_T")
_MICROSECOND: Final = timedelta(microseconds=1)
_NEVER: Final = Wanted(since=datetime(1970, 1, 1, tzinfo=UTC), until=datetime(1970, 1, 1, tzinfo=UTC))
_MAX_OFFSET: Final = (1 << 63) - 1
_MAX_PARTITION: Final = (1 << 32) - 1
# A range of so many partitions is still written out, since they can only be chosen one by one.
_MANY_PARTITIONS: Final = 4096
_SHOWN_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True)
class Condition:
    """What a filter says of a column's value: that it is one of some values, or between two bounds.

    Attributes:
        values: the values that it can have; None where it is a matter of bounds.
        low: the least value that it can have.
        high: the greatest value that it can have.
        is_below: whether it cannot be `high` itself.
    """

    values: tuple[Any, ...] | None = None
    low: Any = None
    high: Any = None
    is_below: bool = False

    @classmethod
    def of(cls, given: Filter) -> "Condition | None":
        """Returns what a filter says; None where it is of another kind."""
        match given:
            case EqualTo(value=value):
                return cls(values=(value,))
            case EqualNullSafe(value=value) if value is not None:
                return cls(values=(value,))
            case In(value=values):
                # Nothing is equal to null.
                return cls(values=tuple(value for value in values if value is not None))
            case GreaterThan(value=value) | GreaterThanOrEqual(value=value):
                return cls(low=value)
            case LessThan(value=value):
                return cls(high=value, is_below=True)
            case LessThanOrEqual(value=value):
                return cls(high=value)
            case _:
                return None

    def within(self, kind: type[_T]) -> "Condition | None":
        """Returns the same condition if all that it names is of this very type."""
        named = self.values if self.values is not None else (self.low, self.high)
        return self if all(value is None or type(value) is kind for value in named) else None

    def spanned(self) -> "Condition":
        """Returns the bounds between which the values are that it can have."""
        return Condition(low=min(self.values), high=max(self.values)) if self.values else self


def narrowed(wanted: Wanted, filters: Sequence[Filter], columns: Sequence[str]) -> Wanted:
    """Returns the part of a choice of records that can match all of the filters.

    Args:
        wanted: the choice.
        filters: the filters, of which all have to be true.
        columns: the columns that the format's records have.
    """
    partitions: list[Condition] = []
    for each in filters:
        path: tuple[str, ...] = tuple(getattr(each, "attribute", ()))
        condition = Condition.of(each)
        if condition is None or len(path) != 1 or path[0] not in columns:
            continue
        if path[0] == "partition":
            partitions.append(condition)
        elif path[0] in _BY_COLUMN:
            wanted = wanted.both(_BY_COLUMN[path[0]](condition))
    return wanted.both(_by_partition(partitions))


def _by_uuid(condition: Condition) -> Wanted:
    if condition.values is None:
        low, high = _uuid(condition.low), _uuid(condition.high)
        return Wanted(since=low, until=high if condition.is_below else _behind(high))
    if not all(isinstance(value, str | bytes | bytearray) for value in condition.values):
        return Wanted()
    # What is no UUID of version 6 as the column shows it, no record has.
    possible = [uuid for uuid in map(_uuid, condition.values) if uuid is not None]
    return Wanted(since=min(possible), until=_behind(max(possible))) if possible else _NEVER


def _uuid(value: Any) -> UUID | None:
    """The UUID of version 6 that a literal is; None where it is none.

    As text it compares as its bytes do, but only if it is written as the column shows UUIDs.
    """
    uuid = None
    if isinstance(value, str) and _SHOWN_UUID.fullmatch(value):
        uuid = UUID(value)
    elif isinstance(value, bytes | bytearray) and len(value) == 16:
        uuid = UUID(bytes=bytes(value))
    return uuid if uuid is not None and uuid.version == 6 else None


def _behind(uuid: UUID | None) -> UUID | None:
    """The next greater UUID; None where it is none of version 6, so that no bound can be had."""
    if uuid is None or uuid.int + 1 >= 1 << 128:
        return None
    behind = UUID(int=uuid.int + 1)
    return behind if behind.version == 6 else None


def _by_timestamp(condition: Condition) -> Wanted:
    if condition.values == ():
        return _NEVER
    times = condition.within(datetime)
    if times is None:
        return Wanted()
    times = times.spanned()
    if any(time is not None and time.tzinfo is None for time in (times.low, times.high)):
        return Wanted()  # of a column without a zone
    until = times.high
    if until is not None and not times.is_below:
        until = until + _MICROSECOND if until <= datetime.max.replace(tzinfo=UTC) - _MICROSECOND else None
    return Wanted(since=times.low, until=until)


def _by_offset(condition: Condition) -> Wanted:
    if condition.values == ():
        return Wanted(start_offset=0, end_offset=0)
    offsets = condition.within(int)
    if offsets is None:
        return Wanted()
    offsets = offsets.spanned()
    end = offsets.high
    if end is not None and not offsets.is_below:
        end += 1
    if end is not None and end <= 0:
        return Wanted(start_offset=0, end_offset=0)
    return Wanted(
        start_offset=min(offsets.low, _MAX_OFFSET) if offsets.low is not None and offsets.low > 0 else None,
        end_offset=end if end is not None and end <= _MAX_OFFSET else None,
    )


def _by_partition(conditions: Sequence[Condition]) -> Wanted:
    """All conditions at once, since a range of partitions can only be chosen if both of its bounds are known."""
    wanted, low, end = Wanted(), 0, _MAX_PARTITION + 1
    for condition in conditions:
        if condition.within(int) is None:
            continue
        if condition.values is not None:
            possible = tuple(value for value in condition.values if 0 <= value <= _MAX_PARTITION)
            wanted = wanted.both(Wanted(partitions=possible))
        if condition.low is not None:
            low = max(low, condition.low)
        if condition.high is not None:
            end = min(end, condition.high + (not condition.is_below))
    return wanted if end - low > _MANY_PARTITIONS else wanted.both(Wanted(partitions=tuple(range(low, end))))


def _shown(condition: Condition) -> tuple[bytes, ...] | None:
    """The names that can match; None where that cannot be said."""
    if condition.values is None or condition.within(str) is None:
        return None
    return tuple(name for name in map(unescape, cast("tuple[str, ...]", condition.values)) if name is not None)


_BY_COLUMN: Final[dict[str, Callable[[Condition], Wanted]]] = {
    "uuid": _by_uuid,
    "timestamp": _by_timestamp,
    "type": lambda condition: Wanted(types=_shown(condition)),
    "tenant": lambda condition: Wanted(tenants=_shown(condition)),
    "offset": _by_offset,
}
