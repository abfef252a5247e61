"""A small sound file of each format and dialect, with what is in it."""

import hashlib
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from segments import DAY, uuid6

import seglake

EPOCH_US = 1_700_000_000_000_000
RECORDS = 20


@dataclass(frozen=True)
class Sample:
    """How a file is written, which options it takes to read it, and its records as the writer is given them."""

    format: str
    extension: str
    make: Callable[[int], dict[str, Any]]
    write_options: dict[str, Any] = field(default_factory=dict[str, Any])
    read_options: dict[str, str] = field(default_factory=dict[str, str])

    def write(self, path: Path, records: int = RECORDS) -> list[dict[str, Any]]:
        """Writes records to a file; returns them."""
        path.parent.mkdir(parents=True, exist_ok=True)
        made = [self.make(number) for number in range(records)]
        with seglake.create(path, format=self.format, **self.write_options) as writer:
            for fields in made:
                writer.write(**fields)
        return made


def value(number: int) -> bytes:
    return b"value %06d" % number


def key(number: int) -> bytes:
    return hashlib.sha256(b"%d" % number).digest()


def with_uuid(number: int) -> dict[str, Any]:
    moment = DAY.replace(minute=number % 60)
    return {"uuid": uuid6(moment, number), "type": f"t/{number % 3}", "value": value(number)}


def of_tenant(number: int) -> dict[str, Any]:
    # In the order of the file: by partition, then tenant.
    return {"partition": number // 10, "tenant": f"carrier {number // 5 % 2}", "value": value(number)}


def in_chunk(number: int) -> dict[str, Any]:
    return {"offset": 100 + 2 * number, "timestamp_us": EPOCH_US + number * 86_400_000_000, "value": value(number)}


def draft(number: int) -> dict[str, Any]:
    return {
        "version": 1,
        "checkpointer": number % 4,
        "checkpoint": {"tree_hash": key(number), "length": number} if number % 4 == 0 else None,
        "clock": [{"key": key(other), "length": number + other} for other in range(number % 3)],
        "abi": 0,
        "batch": 1,
        "value": value(number),
    }


def autobase(number: int) -> dict[str, Any]:
    pointer = {"checkpointer": number, "signature": None, "length": None}
    return {
        "version": 2,
        "clock": [{"key": key(other), "length": number + other} for other in range(number % 3)],
        "batch": 1,
        "value": value(number) if number % 5 else None,
        "optimistic": number % 2 == 1,
        "checkpoint": {"system": pointer, "encryption": None, "user": [pointer]} if number % 4 == 0 else None,
        "digest": {"pointer": number, "key": key(number)} if number % 3 == 0 else None,
        "trace": {"system": [1, 2], "encryption": [], "user": [{"view": 7, "blocks": [number]}]},
    }


def plain_value(number: int) -> dict[str, Any]:
    return {"value": value(number)}


SAMPLES = {
    "active": Sample("active", "active", with_uuid),
    "sealed": Sample("sealed", "sealed", with_uuid),
    "tenant": Sample("tenant", "tenant", of_tenant),
    "chunked": Sample("chunked", "chunks", in_chunk, {"options": {"chunk_records": 4}}),
    "tfrecord": Sample("tfrecord", "tfrecord", plain_value),
    "draft": Sample("oplog", "oplog", draft),
    "draft-1.1": Sample("oplog", "oplog", draft, {"options": {"dialect": "draft-1.1"}}, {"dialect": "draft-1.1"}),
    "autobase": Sample("oplog", "oplog", autobase, {"options": {"dialect": "autobase"}}, {"dialect": "autobase"}),
}


def includes(found: Any, written: Any) -> bool:
    """Whether what was read has all that was written; a reader may know more."""
    if isinstance(written, dict):
        return all(includes(found[name], part) for name, part in written.items())
    if isinstance(written, list):
        return len(found) == len(written) and all(map(includes, found, written))
    if isinstance(written, uuid.UUID):
        return found == str(written)
    return bool(found == written)
