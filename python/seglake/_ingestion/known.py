"""Which records of a file that is read from its start are in `records` already."""

import bisect
import math
from collections.abc import Iterator, Sequence
from typing import Any

from .carry import Carry
from .digest import RecordDigest

__all__ = ["KnownRecords", "KnownUpTo", "ReplacedError", "SealedAnew", "is_sealed_anew"]


class ReplacedError(Exception):
    """What earlier runs ingested of a file is not in it any more."""


class KnownRecords:
    """Tells which records of a file are in `records`: those up to where it was read, but for what damage hid.

    Args:
        before: what earlier runs have noted; None if all records of the file are known.

    Attributes:
        sound: hashes of the bytes that another file has in ranges that are damaged in this one, and whose records are
            known from there, by their start and end.
    """

    def __init__(self, before: Carry | None) -> None:
        self._end: float = math.inf if before is None else before.position.byte_offset
        ranges = () if before is None or before.damage is None else before.damage.ranges
        hidden = sorted((each.start, each.end) for each in ranges if each.hides_records)
        self._starts = [start for start, _ in hidden]
        self._ends = [end for _, end in hidden]
        self.sound = {(each.start, each.end): each.sound for each in ranges if each.sound is not None}

    def among(self, rows: Any) -> list[bool]:
        """Tells of each record, by the byte at which it begins, whether it is in `records`."""
        return [self._has(position) for position in rows.column("position").to_pylist()]

    def check(self, first_damage: float) -> None:
        """Checks that the file has the known records; called when all of it was read.

        Args:
            first_damage: where the first damaged range of the file begins; infinity if there is none.

        Raises:
            ReplacedError: it does not have them.
        """
        # There is nothing to check: these records are known by their places.

    def count(self, rows: Any) -> tuple[int, int]:
        """Returns how many of these records are known, and how many others begin before the end of what was read."""
        until = sum(position < self._end for position in rows.column("position").to_pylist())
        known = sum(self.among(rows))
        return known, until - known

    def _has(self, position: int) -> bool:
        if position >= self._end:
            return False
        at = bisect.bisect_right(self._starts, position) - 1
        return at < 0 or position >= self._ends[at]

    def cut(self, start: int, end: int) -> Iterator[tuple[int, int, bool]]:
        """Cuts a range of bytes where known records begin or end; yields each piece, and whether it has known ones."""
        hidden = [*zip(self._starts, self._ends, strict=True), (self._end, math.inf)]
        at = start
        for first, after in hidden:
            for stop, is_known in ((min(first, end), True), (min(after, end), False)):
                if at < stop:
                    yield at, int(stop), is_known
                    at = int(stop)


class KnownUpTo(KnownRecords):
    """Tells which records of a file are in `records` if they were read from another file: those up to a UUID.

    What is damaged in this file is not in `records`: otherwise its records are not those of the other file.

    Args:
        before: what earlier runs have noted.
        but_for: the first and the last UUID of each range of records up to there that are not.
    """

    def __init__(self, before: Carry, but_for: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(None)
        self._last = str(before.position.uuid)
        self._end = 0
        self._but_for = but_for

    def among(self, rows: Any) -> list[bool]:
        """Tells of each record, by its UUID, whether it is in `records`."""
        uuids = rows.column("uuid").to_pylist()
        known = bisect.bisect_right(uuids, self._last)  # they ascend
        found = [number < known for number in range(len(uuids))]
        for first, last in self._but_for:
            start, end = bisect.bisect_left(uuids, first), bisect.bisect_right(uuids, last)
            found[start:end] = [False] * (end - start)
        return found


class SealedAnew(KnownUpTo):
    """Tells which records of a sealed file are in `records` if they were read from another file: those up to a UUID.

    They are compared with those that were read, by a hash of all of them. If one of them is damaged in this file, the
    hashes differ. Then the last one has to be there, and the damage is listed.

    Args:
        before: what earlier runs have noted, of a file in which nothing was damaged.
    """

    def __init__(self, before: Carry) -> None:
        super().__init__(before)
        self._expected = before.digest
        self._found = RecordDigest()
        self._has_last = False

    def among(self, rows: Any) -> list[bool]:
        """Tells of each record, by its UUID, whether it is in `records`."""
        found = super().among(rows)
        known = sum(found)
        if known:
            self._found = self._found.plus(rows.slice(0, known))
            self._has_last = rows.column("uuid")[known - 1].as_py() == self._last
            self._end = rows.column("position")[known - 1].as_py() + 1
        return found

    def check(self, first_damage: float) -> None:
        """Checks that the file has the known records; called when all of it was read.

        Args:
            first_damage: where the first damaged range of the file begins; infinity if there is none.

        Raises:
            ReplacedError: it does not have them.
        """
        is_damaged = first_damage < self._end or (not self._has_last and first_damage < math.inf)
        if self._found == self._expected or (is_damaged and self._has_last):
            return
        number = 0 if self._expected is None else self._expected.number
        found = "other records" if self._found.number == number else f"{self._found.number}"
        raise ReplacedError(
            f"expected the {number} records that were read before it was sealed, the last of which is {self._last}, "
            f"found {found} up to that one"
        )


def is_sealed_anew(before: Carry, format: str, size: int) -> bool:
    """Tells whether a segment goes on in a sealed file with other places of its records, which can be compared."""
    position, digest = before.position, before.digest
    is_another = format == "sealed" and (position.format, position.byte_offset) != (format, size)
    is_sound = before.sums.ranges == 0 and (before.tail is None or not before.tail.records)
    is_known = digest is not None and digest.number == before.sums.records > 0 and position.uuid is not None
    return is_another and is_sound and is_known
