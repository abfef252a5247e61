"""The rules of docs/formats/active.md as slow, plain code: what the library is compared with.

Written from the document alone, without regard for speed or memory, and without the search budget.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from highway_hash import checksum


def encode(uuid: bytes, type_: bytes, value: bytes) -> bytes:
    """One record."""
    hashed = uuid + bytes([len(type_)]) + type_ + len(value).to_bytes(4, "big") + value
    return hashed + checksum(hashed)


class Range(NamedTuple):
    """A range of the ledger."""

    start: int
    end: int
    kind: str
    cause: str | None


@dataclass
class Scan:
    """What is in a file."""

    records: list[int]
    ledger: list[Range]


def is_version_6(uuid: bytes) -> bool:
    """Version 6 and variant 10."""
    return uuid[6] >> 4 == 6 and uuid[8] >> 6 == 2


class Scanner:
    """Reads one segment."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.last = b""
        self.checked = False
        self.result = Scan([], [])
        self.at = 0

    def lengths(self, at: int) -> int | str:
        """Where the record at `at` ends by its own lengths, or why it cannot."""
        if at + 17 > len(self.data):
            return "truncated_header"
        value_at = at + 17 + self.data[at + 16] + 4
        if value_at > len(self.data):
            return "truncated_header"
        end = value_at + int.from_bytes(self.data[value_at - 4 : value_at], "big") + 8
        return end if end <= len(self.data) else "length_out_of_bounds"

    def checks(self, at: int) -> bool:
        """Whether lengths fit and the checksum is right."""
        end = self.lengths(at)
        return isinstance(end, int) and checksum(self.data[at : end - 8]) == self.data[end - 8 : end]

    def is_good(self, at: int) -> bool:
        """Whether a valid record begins here."""
        uuid = self.data[at : at + 16]
        return len(uuid) == 16 and is_version_6(uuid) and uuid > self.last and self.checks(at)

    def unused(self, at: int) -> bool:
        """Whether only zeros, or nothing, stand from here on."""
        return not any(self.data[at:])

    def cover(self, end: int, kind: str, cause: str | None = None) -> None:
        """Adds a range, joined to the one before where they are alike."""
        ledger = self.result.ledger
        if end > self.at:
            if ledger and kind != "record" and ledger[-1][2:] == (kind, cause):
                ledger[-1] = ledger[-1]._replace(end=end)
            else:
                ledger.append(Range(self.at, end, kind, cause))
        self.at = end

    def cause(self, at: int) -> str | None:
        """The first check that fails."""
        uuid = self.data[at : at + 16]
        if uuid == bytes(16):
            return "nonzero_unused"
        end = self.lengths(at)
        if isinstance(end, str):
            return end
        if not self.checks(at):
            return "checksum_mismatch"
        self.checked = True
        if not is_version_6(uuid):
            return "bad_uuid"
        return "out_of_order" if uuid <= self.last else None

    def scan(self) -> Scan:
        """Reads to the end."""
        while self.at < len(self.data):
            at = self.at
            if self.unused(at):
                self.cover(len(self.data), "unused")
                break
            cause = self.cause(at)
            end = self.lengths(at)
            if cause is None and isinstance(end, int):
                self.last = self.data[at : at + 16]
                self.result.records.append(at)
                self.cover(end, "record")
            elif cause in {"bad_uuid", "out_of_order"} and isinstance(end, int):
                self.cover(end, "corrupt", cause)
            else:
                assert cause is not None
                self.damage(cause)
        return self.result

    def damage(self, cause: str) -> None:
        """Finds the end of the damage at the present offset."""
        at, end = self.at, self.lengths(self.at)
        if isinstance(end, int):
            if end < len(self.data) and self.is_good(end):
                self.cover(end, "corrupt", cause)
                return
            if self.unused(end) and any(self.data[end - 8 : end]):
                self.cover(end, self.kind_at_the_end(cause, older=False), cause)
                return
        older = False
        for candidate in range(at + 1, len(self.data)):
            if self.is_good(candidate):
                self.cover(candidate, "corrupt", cause)
                return
            uuid = self.data[candidate : candidate + 16]
            if len(uuid) == 16 and is_version_6(uuid) and self.checks(candidate):
                older = self.checked = True
        self.cover(len(self.data.rstrip(b"\0")), self.kind_at_the_end(cause, older=older), cause)
        self.cover(len(self.data), "unused")

    def kind_at_the_end(self, cause: str, *, older: bool) -> str:
        """Whether damage with no record behind it is a torn tail."""
        nothing_checks = not self.checked and cause not in {"truncated_header", "length_out_of_bounds"}
        return "corrupt" if older or nothing_checks else "torn_tail"
