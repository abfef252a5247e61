"""The rules of docs/formats/active.md as slow, plain code: what the library is compared with.

Written from the document alone, without regard for speed or memory, and without the search budget.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

MASK = (1 << 64) - 1
INIT_0 = (0xDBE6D5D5FE4CCE2F, 0xA4093822299F31D0, 0x13198A2E03707344, 0x243F6A8885A308D3)
INIT_1 = (0x3BD39E10CB0EF593, 0xC0ACF169B5F18A8C, 0xBE5466CF34E90C6C, 0x452821E638D01377)


def _rotate_halves(word: int, bits: int) -> int:
    """Both 32-bit halves of a word, rotated left by 1 to 31 bits."""
    halves = [(word >> shift) & 0xFFFFFFFF for shift in (0, 32)]
    low, high = ((half << bits | half >> (32 - bits)) & 0xFFFFFFFF for half in halves)
    return high << 32 | low


def _zipper(high: int, low: int) -> tuple[int, int]:
    """Two words shuffled by HighwayHash's zipper merge: what is added to the low and to the high word."""
    data = low.to_bytes(8, "little") + high.to_bytes(8, "little")
    shuffled = bytes(data[index] for index in (3, 12, 2, 5, 14, 1, 15, 0, 11, 4, 10, 13, 9, 6, 8, 7))
    return int.from_bytes(shuffled[:8], "little"), int.from_bytes(shuffled[8:], "little")


class HighwayHash:
    """HighwayHash-64, from the paper's pseudo code (arXiv 1612.06257)."""

    def __init__(self, key: bytes) -> None:
        words = [int.from_bytes(key[index : index + 8], "little") for index in range(0, 32, 8)]
        self.mul0, self.mul1 = list(INIT_0), list(INIT_1)
        self.v0 = [init ^ word for init, word in zip(INIT_0, words, strict=True)]
        self.v1 = [init ^ (word >> 32 | (word & 0xFFFFFFFF) << 32) for init, word in zip(INIT_1, words, strict=True)]

    def _update(self, lanes: list[int]) -> None:
        for lane in range(4):
            self.v1[lane] = (self.v1[lane] + self.mul0[lane] + lanes[lane]) & MASK
            self.mul0[lane] ^= (self.v1[lane] & 0xFFFFFFFF) * (self.v0[lane] >> 32)
            self.v0[lane] = (self.v0[lane] + self.mul1[lane]) & MASK
            self.mul1[lane] ^= (self.v0[lane] & 0xFFFFFFFF) * (self.v1[lane] >> 32)
        for target, source in ((self.v0, self.v1), (self.v1, self.v0)):
            for lane in (0, 2):
                low, high = _zipper(source[lane + 1], source[lane])
                target[lane] = (target[lane] + low) & MASK
                target[lane + 1] = (target[lane + 1] + high) & MASK

    def _remainder(self, data: bytes) -> None:
        size = len(data)
        self.v0 = [(word + (size << 32) + size) & MASK for word in self.v0]
        self.v1 = [_rotate_halves(word, size) for word in self.v1]
        packet = bytearray(32)
        whole = size & ~3
        packet[:whole] = data[:whole]
        if size & 16:
            packet[28:32] = data[size - 4 : size]
        elif size & 3:
            rest = data[whole:]
            packet[16:19] = bytes((rest[0], rest[len(rest) >> 1], rest[-1]))
        self._update([int.from_bytes(packet[index : index + 8], "little") for index in range(0, 32, 8)])

    def hash(self, data: bytes) -> int:
        """The hash of a message. An object hashes one message."""
        whole = len(data) & ~31
        for start in range(0, whole, 32):
            self._update([int.from_bytes(data[at : at + 8], "little") for at in range(start, start + 32, 8)])
        if len(data) & 31:
            self._remainder(data[whole:])
        for _ in range(4):
            permuted = [self.v0[lane] for lane in (2, 3, 0, 1)]
            self._update([word >> 32 | (word & 0xFFFFFFFF) << 32 for word in permuted])
        return (self.v0[0] + self.v1[0] + self.mul0[0] + self.mul1[0]) & MASK


@lru_cache(maxsize=100_000)
def checksum(data: bytes, key: bytes = bytes(32)) -> bytes:
    """The eight bytes behind a record's value."""
    return HighwayHash(key).hash(data).to_bytes(8, "big")


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
