"""Segments for measurements: one file of each format, and as many names of it as a read needs."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa

import seglake

__all__ = ["EXTENSIONS", "FORMATS", "write", "write_log"]

EXTENSIONS: Final = {
    "active": "active",
    "sealed": "sealed",
    "tenant": "tenant",
    "chunked": "chunks",
    "oplog": "oplog",
}
FORMATS: Final = tuple(EXTENSIONS)
TENANTS: Final = 16
_BATCH: Final = 8192
_SEED: Final = 7
_START_US: Final = 1_700_000_000_000_000
_OPLOG: Final = pa.schema(
    {
        "version": pa.uint64(),
        "checkpointer": pa.uint64(),
        "checkpoint": pa.struct({"tree_hash": pa.binary(), "length": pa.uint64()}),
        "clock": pa.list_(pa.struct({"key": pa.binary(), "length": pa.uint64()})),
        "abi": pa.uint64(),
        "batch": pa.uint64(),
        "value": pa.binary(),
    }
)


def values(records: int, value_bytes: int, seed: int = _SEED) -> Iterator[list[bytes]]:
    """Values like those of a log, in groups: half of each is repeated words, half random digits."""
    pick = random.Random(seed)
    words = " ".join(pick.choices(["order", "created", "user", "status=200", "GET", "/api/v1/items", "ms"], k=4096))
    for first in range(0, records, _BATCH):
        made: list[bytes] = []
        for _ in range(min(_BATCH, records - first)):
            half = value_bytes // 2
            at = pick.randrange(len(words) - half)
            made.append(words[at : at + half].encode() + pick.randbytes((value_bytes - half) // 2 + 1).hex().encode())
        yield [value[:value_bytes] for value in made]


def write(path: Path, format: str, records: int, value_bytes: int, seed: int = _SEED) -> None:
    """Writes one file of that many records, values of `value_bytes` bytes each. Another seed makes another file."""
    first = 0
    with seglake.create(path, format=format) as writer:
        for some in values(records, value_bytes, seed):
            numbers = range(first, first + len(some))
            writer.write_batch(_columns(format, numbers, records, pa.array(some, pa.binary())))
            first += len(some)


def write_log(folder: Path, segments: int, records: int, value_bytes: int) -> None:
    """Writes a log of sealed segments and an active one, of so many records each."""
    with seglake.SegmentLog(folder, segment_bytes=1 << 40) as log:
        for number in range(segments):
            for some in values(records, value_bytes):
                log.write_batch([("order.created", value) for value in some])
            if number < segments - 1:
                log.roll()
        log.wait_sealed()


def _columns(format: str, numbers: range, records: int, value: pa.Array) -> pa.Table:
    match format:
        case "active" | "sealed":
            uuids = pa.array(map(_uuid6, numbers), pa.binary(16))
            return pa.table({"uuid": uuids, "type": ["order.created"] * len(numbers), "value": value})
        case "tenant":
            # By partition, then tenant, as the format asks.
            sixteenths = [number * 4 * TENANTS // records for number in numbers]
            tenants = [f"tenant {sixteenth % TENANTS:02}" for sixteenth in sixteenths]
            return pa.table({"partition": [each // TENANTS for each in sixteenths], "tenant": tenants, "value": value})
        case "chunked":
            timestamps = pa.array([_START_US + number for number in numbers], pa.timestamp("us"))
            return pa.table({"timestamp": timestamps, "value": value})
        case _:
            return pa.Table.from_pylist(
                [_message(number) | {"value": each} for number, each in zip(numbers, value, strict=True)], _OPLOG
            )


def _message(number: int) -> dict[str, object]:
    """A checkpoint every 64 messages, which the others refer to, and a clock in every eighth."""
    since = number % 64
    return {
        "version": 1,
        "checkpointer": since,
        "checkpoint": None if since else {"tree_hash": number.to_bytes(32), "length": number},
        "clock": [] if number % 8 else [{"key": (number % 5).to_bytes(32), "length": number}],
        "abi": 0,
        "batch": 1,
    }


def _uuid6(number: int) -> bytes:
    tick = 0x01EE_0000_0000_0000 + 10_000 * number
    return ((tick >> 12 << 16 | 0x6000 | tick & 0xFFF) << 64 | 0x8007_0102_0304_0506).to_bytes(16)
