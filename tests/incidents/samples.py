"""Sound files of each format, as an application of a shop may write them. The same arguments make the same bytes."""

from __future__ import annotations

import json
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from active_reference import encode
from segments import uuid6

import seglake

DAY = datetime(2026, 11, 27, tzinfo=UTC)
LAST_MONTH = DAY - timedelta(days=30)
KEY = bytes(range(7, 39))
"""A secret key; files without one are under the public default key."""

_CITIES = ("Zürich", "São Paulo", "Kraków", "Łódź", "北京", "Graz", "Oslo", "Lyon")
_TYPES = ("order.created", "order.paid", "order.shipped", "cart.updated", "refund.issued")
_NOTES = ("", "leave at the door", "call\nfirst", "gift: yes")
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


@dataclass(frozen=True)
class Event:
    """What one record says. `number` counts from 0 within its file, `time` ascends."""

    number: int
    time: datetime
    type: str
    value: bytes

    @property
    def uuid(self) -> uuid.UUID:
        """The UUID, version 6, of the event's time and number."""
        return uuid6(self.time, self.number)


def events(
    count: int, *, day: datetime = DAY, seed: int = 1, attached: int = 0, pretty: bool = False, line_end: str = "\n"
) -> Iterator[Event]:
    """Events three seconds apart, of JSON of some 250 bytes.

    `attached` is how many bytes more the last one has. With `pretty` the JSON is broken into lines that end with
    `line_end`.
    """
    random = Random(seed)
    for number in range(count):
        items = [
            {"sku": f"SKU-{random.randrange(9999):04d}", "qty": random.randrange(1, 9)}
            for _ in range(random.randrange(1, 6))
        ]
        fields: dict[str, Any] = {
            "order": 100_000 + seed * 1000 + number,
            "customer": f"c-{random.randrange(10**6):06d}",
            "city": random.choice(_CITIES),
            "total": round(random.uniform(3, 900), 2),
            "trace": f"{random.getrandbits(128):032x}",
            "items": items,
            "note": random.choice(_NOTES),
        }
        if attached and number == count - 1:
            fields["attachment"] = "".join(random.choices(_LETTERS, k=attached))
        time = day + timedelta(seconds=number * 3, microseconds=random.randrange(10**6))
        value = json.dumps(fields, ensure_ascii=False, indent=1 if pretty else None)
        yield Event(number, time, random.choice(_TYPES), value.replace("\n", line_end).encode())


@dataclass(frozen=True)
class Sample:
    """A sound file, and its index where its format has one."""

    format: str
    data: bytes
    index: bytes | None = None

    @property
    def extension(self) -> str:
        """What the name of such a file ends with."""
        return seglake.formats()[self.format].extension

    def __len__(self) -> int:
        return len(self.data)


@cache
def active(count: int, *, key: bytes | None = None, preallocate: int = 0, **said: Any) -> Sample:
    """An active segment."""
    return _made("active", map(_with_uuid, events(count, **said)), key=key, options={"preallocate": preallocate})


def of_random_uuids(count: int) -> Sample:
    """An active segment of which each record but the first has a UUID of version 4, under a checksum that is right."""
    random = Random(count)
    records = [
        encode(
            (uuid.UUID(bytes=random.randbytes(16), version=4) if own.number else own.uuid).bytes, b"order", own.value
        )
        for own in events(count)
    ]
    return Sample("active", b"".join(records))


@cache
def sealed(count: int, *, key: bytes | None = None, trailer: bool = True, **said: Any) -> Sample:
    """A sealed segment."""
    return _made("sealed", map(_with_uuid, events(count, **said)), key=key, options={"trailer": trailer})


@cache
def tenant(count: int, *, version: int = 2, tenants: int = 7, **said: Any) -> Sample:
    """A tenant segment of three partitions."""
    made = sorted(
        (own.number % 3, f"shop-{own.number % tenants}", own.number, own.value) for own in events(count, **said)
    )
    rows = ({"partition": partition, "tenant": name, "value": value} for partition, name, _, value in made)
    return _made("tenant", rows, options={"version": version})


@cache
def chunked(count: int, *, first: int = 0, chunk_bytes: int = 32_768, **said: Any) -> Sample:
    """A chunked log from the message offset `first` on."""
    rows = ({"offset": first + own.number, "timestamp": own.time, "value": own.value} for own in events(count, **said))
    return _made("chunked", rows, options={"chunk_bytes": chunk_bytes})


@cache
def oplog(count: int, *, dialect: str = "draft", clocks: bool = False, **said: Any) -> Sample:
    """An oplog; with `clocks` later messages refer to keys of earlier ones."""
    rows = (
        {
            "version": 1,
            "checkpointer": own.number + 1,
            "abi": 2,
            "batch": 0,
            "clock": [{"key": bytes([own.number // 40]) * 32, "length": own.number}] if clocks else [],
            "value": own.value,
        }
        for own in events(count, **said)
    )
    return _made("oplog", rows, options={"dialect": dialect})


@cache
def tfrecord(count: int, **said: Any) -> Sample:
    """A TFRecord file."""
    return _made("tfrecord", ({"value": own.value} for own in events(count, **said)))


def log(*days: tuple[int, int], segment_bytes: int = 64 << 20, key: bytes | None = None) -> list[dict[str, bytes]]:
    """The folder of a log after each of its writers: each writes the events from one number up to another.

    Returns what files there are then, by their name in the folder.
    """
    found: list[dict[str, bytes]] = []
    with tempfile.TemporaryDirectory() as folder:
        for first, end in days:
            with seglake.SegmentLog(folder, segment_bytes=segment_bytes, durability="flush", key=key) as writer:
                for own in events(end):
                    if own.number >= first:
                        writer.write(own.type, own.value, uuid=own.uuid)
                writer.wait_sealed()
            found.append({path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())})
    return found


def _with_uuid(own: Event) -> dict[str, Any]:
    return {"uuid": own.uuid, "type": own.type, "value": own.value}


def _made(format: str, rows: Iterator[Mapping[str, Any]], **how: Any) -> Sample:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"made.{seglake.formats()[format].extension}"
        with seglake.create(path, format=format, **how) as writer:
            for fields in rows:
                writer.write(fields)
        index = path.with_suffix(".index")
        return Sample(format, path.read_bytes(), index.read_bytes() if index.exists() else None)


def ledger(sample: Sample, **how: Any) -> list[tuple[int, int, str]]:
    """The ranges of a sound file: start, end, kind."""
    with seglake.open(sample.data, format=sample.format, **how) as reader:
        return [(span.start, span.end, span.kind) for span in reader.ledger()]


def protected(sample: Sample) -> bytes:
    """The parity sidecar of a sound file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"made.{sample.extension}"
        path.write_bytes(sample.data)
        seglake.protect(path)
        return path.with_name(f"{path.name}.par").read_bytes()
