"""Compact-encoding, as docs/formats/oplog.md has it: what the messages of all dialects are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

MAX_ITEMS = 0x100000
MAX_UINT = (1 << 64) - 1

Fields = dict[str, Any]
T = TypeVar("T")


class Undecodable(Exception):
    """Bytes that are no message, and the cause."""

    def __init__(self, cause: str) -> None:
        super().__init__(cause)
        self.cause = cause


class Cursor:
    """Reads compact-encoding from the first byte of a message on. What reaches beyond its end is an error."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    @property
    def left(self) -> int:
        """How many bytes were not read yet."""
        return len(self.data) - self.at

    def fixed(self, size: int) -> bytes:
        """So many bytes."""
        if size > self.left:
            raise Undecodable("length_out_of_bounds")
        self.at += size
        return self.data[self.at - size : self.at]

    def uint(self) -> int:
        """An integer of 1, 3, 5 or 9 bytes, whether or not it needs as many."""
        first = self.fixed(1)[0]
        return first if first < 0xFD else int.from_bytes(self.fixed(1 << (first - 0xFC)), "little")

    def buffer(self) -> bytes:
        """A length and as many bytes."""
        return self.fixed(self.uint())

    def array(self, item: Callable[[Cursor], T]) -> list[T]:
        """A count and as many items."""
        count = self.uint()
        if count > MAX_ITEMS or count > self.left:
            raise Undecodable("length_out_of_bounds")
        return [item(self) for _ in range(count)]

    def end(self) -> None:
        """Nothing may be left."""
        if self.left:
            raise Undecodable("trailing_bytes")


def uint(value: int) -> bytes:
    """An integer in the fewest bytes."""
    if not 0 <= value <= MAX_UINT:
        raise ValueError(f"a uint is 0 to 2^64-1, not {value}")
    if value <= 0xFC:
        return bytes([value])
    power = 1 if value < 1 << 16 else 2 if value < 1 << 32 else 3
    return bytes([0xFC + power]) + value.to_bytes(1 << power, "little")


def buffer(data: bytes) -> bytes:
    """A length and the bytes."""
    return uint(len(data)) + data


def array(items: Iterable[bytes]) -> bytes:
    """A count and the items."""
    encoded = list(items)
    return uint(len(encoded)) + b"".join(encoded)


def fixed(data: bytes, size: int) -> bytes:
    """The bytes, if they are so many."""
    if len(data) != size:
        raise ValueError(f"{size} bytes are expected, not {len(data)}")
    return data


def clock_entry(cursor: Cursor) -> Fields:
    """A writer's key, and a length of its core."""
    return {"key": cursor.fixed(32), "length": cursor.uint()}


def encode_clock_entry(entry: Fields) -> bytes:
    """The reverse."""
    return fixed(entry["key"], 32) + uint(entry["length"])
