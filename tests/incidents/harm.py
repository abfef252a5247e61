"""What is done to bytes. Offsets and sizes are in bytes, ranges end before their end."""

from __future__ import annotations

SECTOR = 512
PAGE = 4096
STRIPE = 65_536


def flipped(data: bytes, at: int, bit: int = 0) -> bytes:
    """One bit of the byte at `at` is another one."""
    return overwritten(data, at, bytes([data[at] ^ 1 << bit]))


def overwritten(data: bytes, at: int, by: bytes) -> bytes:
    """Bytes are others; the length stays."""
    return data[:at] + by + data[at + len(by) :]


def zeroed(data: bytes, start: int, end: int | None = None) -> bytes:
    """A range is zeros; without an end, all up to the end of the file."""
    return overwritten(data, start, bytes((len(data) if end is None else end) - start))


def moved(data: bytes, to: int, source: int, size: int) -> bytes:
    """A range is written a second time, over others."""
    return overwritten(data, to, data[source : source + size])


def swapped(data: bytes, one: int, other: int, size: int) -> bytes:
    """Two ranges are in each other's place."""
    first, second = data[one : one + size], data[other : other + size]
    return overwritten(overwritten(data, one, second), other, first)


def inserted(data: bytes, at: int, what: bytes) -> bytes:
    """Bytes come between others."""
    return data[:at] + what + data[at:]


def repeated(data: bytes, at: int, size: int) -> bytes:
    """A range comes twice, the second time directly after the first."""
    return inserted(data, at + size, data[at : at + size])


def without(data: bytes, start: int, end: int) -> bytes:
    """A range is missing."""
    return data[:start] + data[end:]


def reversed_words(data: bytes, size: int) -> bytes:
    """The bytes of each word are in the other order; an incomplete word at the end is left out."""
    whole = len(data) // size * size
    return b"".join(data[at : at + size][::-1] for at in range(0, whole, size))
