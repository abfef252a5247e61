"""Makes segments for the tests, and knows where in them each record stands."""

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import seglake

DAY = datetime(2024, 1, 31, tzinfo=UTC)
TYPE = "sensor/reading"
OTHER_KEY = bytes(range(32))


@dataclass(frozen=True)
class Written:
    """A record as it was written, and its range in the file."""

    start: int
    end: int
    uuid: uuid.UUID
    timestamp: datetime
    value: bytes


def uuid6(moment: datetime, node: int) -> uuid.UUID:
    ticks = (moment - datetime(1582, 10, 15, tzinfo=UTC)) // timedelta(microseconds=1) * 10
    return uuid.UUID(int=(ticks >> 12) << 80 | 6 << 76 | (ticks & 0xFFF) << 64 | 2 << 62 | node)


def write_segment(
    path: Path,
    records: int = 20,
    *,
    first: datetime = DAY,
    every: timedelta = timedelta(hours=3),
    value_bytes: int = 40,
    key: bytes | None = None,
    preallocate: int = 0,
) -> list[Written]:
    """Writes a segment of that many records; returns what and where they are."""
    path.parent.mkdir(parents=True, exist_ok=True)
    written: list[Written] = []
    position = 0
    with seglake.create(path, format="active", key=key, options={"preallocate": preallocate}) as writer:
        for number in range(records):
            moment = first + number * every
            value = f"{path.stem}-{number:06d} ".encode("utf-8", "surrogateescape").ljust(value_bytes, b".")
            name = uuid6(moment, number)
            writer.write(uuid=name, type=TYPE, value=value)
            end = position + 16 + 1 + len(TYPE) + 4 + len(value) + 8
            written.append(Written(position, end, name, moment, value))
            position = end
    return written


def flip(path: Path, offset: int) -> None:
    """Changes one bit of a file."""
    content = bytearray(path.read_bytes())
    content[offset] ^= 0x10
    path.write_bytes(content)


def tear(path: Path, length: int) -> None:
    """Cuts a file off."""
    path.write_bytes(path.read_bytes()[:length])
