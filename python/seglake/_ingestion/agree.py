"""Compares the records of two files of which one or both are damaged, and have not the same bytes.

Every record that both can read must agree, in order. What one of them has alone must be where the other is damaged, and
as large as what is damaged there. Otherwise, and where that is not certain, the files count as different: a record that
comes twice is better than one that is lost because two logs were taken for one.
"""

import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, NamedTuple

import seglake

from .digest import record_batches

__all__ = ["Agreement", "agreement"]

# So many bytes has a record beside its type and its value.
_OVERHEAD: Final = {"active": 29, "sealed": 5}


class _Record(NamedTuple):
    uuid: str
    type: str
    value: bytes | None
    position: int

    @property
    def content(self) -> tuple[str, str, bytes | None]:
        return self.uuid, self.type, self.value

    @property
    def size(self) -> int:
        return len(self.type.encode()) + len(self.value or b"")


@dataclass
class Agreement:
    """How two files agree.

    Attributes:
        is_longer: whether the one has all that the other has up to its end, but for what is damaged.
        goes_on: whether it has more after that.
        adds: the first and the last UUID of each range of records that it has where the other is damaged.
        lacks: whether it is damaged where the other has records.
    """

    is_longer: bool = False
    goes_on: bool = False
    adds: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    lacks: bool = False


class _File:
    """The records of a file in their order.

    Attributes:
        present: the record that is looked at; None after the last one.
        at: where the last record begins that both files have; -1 if there is none yet.
        alone: the first and the last UUID of the records after that which this file alone has; None if it has none.
        alone_number: how many these are.
        alone_bytes: how large their types and values are.
    """

    def __init__(self, reader: seglake.Reader, lost: Sequence[tuple[int, int]], most: int | None = None) -> None:
        self._lost = sorted(lost)
        self._starts = [start for start, _ in self._lost]
        self._overhead = _OVERHEAD[reader.format]
        self._records = islice(_records(reader), most)
        self.present = next(self._records, None)
        self.at = -1
        self.alone: tuple[str, str] | None = None
        self.alone_number = self.alone_bytes = 0

    def pass_over(self) -> None:
        """Goes on: the other file does not have this record."""
        if self.present is not None:
            self.alone = (self.alone or (self.present.uuid, ""))[0], self.present.uuid
            self.alone_number += 1
            self.alone_bytes += self.present.size
            self.present = next(self._records, None)

    def lost_until(self, end: float) -> int:
        """Returns how many bytes are damaged between the last record that both have and a place."""
        first, last = bisect.bisect_right(self._starts, self.at), bisect.bisect_left(self._starts, end)
        return sum(after - start for start, after in self._lost[first:last])

    def bytes_for(self, other: "_File") -> int:
        """Returns how many bytes the records would have here that the other file alone has."""
        return other.alone_bytes + self._overhead * other.alone_number

    def go_on(self) -> None:
        """Goes on: both have this record."""
        if self.present is not None:
            self.at, self.alone = self.present.position, None
            self.alone_number = self.alone_bytes = 0
            self.present = next(self._records, None)


def _records(reader: seglake.Reader) -> Iterator[_Record]:
    for batch in record_batches(reader):
        columns = [batch.column(name).to_pylist() for name in _Record._fields]
        yield from map(_Record._make, zip(*columns, strict=True))


def _is_bridged(one: _File, other: _File, found: Agreement) -> bool:
    """Looks at what is in front of a record that both have: what one has alone, and what is damaged in the other.

    Returns:
        Whether these can be the same.
    """
    if one.present is None or other.present is None:
        return False
    lost = one.lost_until(one.present.position), other.lost_until(other.present.position)
    for own_lost, other_lost, missing in ((*lost, one.bytes_for(other)), (*reversed(lost), other.bytes_for(one))):
        # What the other one has must fill what is damaged here. Where both are damaged there may be more.
        if own_lost < missing or (not other_lost and own_lost > missing):
            return False
    if one.alone:
        found.adds.append(one.alone)
    found.lacks = found.lacks or other.alone is not None
    return True


def agreement(
    reader: seglake.Reader,
    lost: Sequence[tuple[int, int]],
    other: seglake.Reader,
    other_lost: Sequence[tuple[int, int]],
    number: int,
    *,
    most: int,
) -> Agreement | None:
    """Compares the records of a file with the first ones of another.

    The last record of the shorter one has to be in both: logs that went on in different ways differ there.

    Args:
        reader: the one file.
        lost: the ranges that are damaged in it.
        other: the other one.
        other_lost: those that are damaged in that, up to the last of these records.
        number: how many records of the other one are compared.
        most: the most ranges of records that the one may have alone.

    Returns:
        How they agree; None if they do not, or if that is not certain.

    Raises:
        OSError, seglake.SeglakeError: one of them cannot be read.
    """
    one, two, found = _File(reader, lost), _File(other, other_lost, number), Agreement()
    while one.present is not None and two.present is not None:
        if one.present.uuid != two.present.uuid:
            (one if one.present.uuid < two.present.uuid else two).pass_over()
            # The first records are the same: that is what the files are known by.
            if one.at < 0 or (one.alone and two.alone):
                return None
            continue
        if one.present.content != two.present.content:
            return None
        if not _is_bridged(one, two, found) or len(found.adds) > most:
            return None
        one.go_on()
        two.go_on()
    if one.at < 0:
        return None
    if two.present is None and not two.alone and not two.lost_until(float("inf")):
        found.is_longer, found.goes_on = True, one.present is not None or bool(one.alone)
        return found
    is_shorter = one.present is None and not one.alone and not one.lost_until(float("inf"))
    return found if is_shorter else None
