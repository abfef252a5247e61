"""Each format, dialect and version: how messages become a file of it, and by what its records are told apart."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import seglake

from .messages import START, Message, messages

Fields = dict[str, Any]
Identity = tuple[Any, ...]

_MESSAGES_PER_BLOCK = 10
_TENANTS_PER_PARTITION = 5


@dataclass(frozen=True)
class Layout:
    """How messages become a file. `identity` are the columns that tell a record from all others of its file."""

    format: str
    identity: tuple[str, ...]
    make: Callable[[Message], Fields]
    writing: Mapping[str, Any] = field(default_factory=dict[str, Any])
    reading: Mapping[str, Any] = field(default_factory=dict[str, Any])
    checked: bool = True
    """Whether the format's own checksums tell a changed record."""
    appended: bool = False
    """Whether the file grows by appending; else it is written whole."""
    nested: bool = False
    """Whether messages hold whole records."""

    def identity_of(self, fields: Fields) -> Identity:
        """What tells the record from all others of its file; ascending in the order of the file."""
        return tuple(fields[name] for name in self.identity)

    @property
    def options(self) -> dict[str, Any]:
        """What a reader has to be told."""
        return {"format": self.format, **self.reading}

    def write(self, path: Path, made: Iterable[Fields]) -> None:
        """Write a file of such records."""
        with seglake.create(path, format=self.format, **self.writing) as writer:
            for fields in made:
                writer.write(fields)

    def encode(self, made: Iterable[Fields]) -> tuple[bytes, bytes | None]:
        """The bytes of a file of such records, and of its index where it has one."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "segment.chunks"
            self.write(path, made)
            index = path.with_suffix(".index")
            return path.read_bytes(), index.read_bytes() if index.exists() else None

    def read(self, data: bytes) -> tuple[list[int], dict[Identity, Fields]]:
        """The positions and the fields of the records of a sound file."""
        with seglake.open(data, **self.options) as reader:
            read = [fields_of(record) for record in reader]
        return [position for position, _ in read], {self.identity_of(fields): fields for _, fields in read}


def fields_of(record: seglake.Record) -> tuple[int, Fields]:
    """A record's position, and everything else that it has."""
    fields = record.to_dict()
    return fields.pop("position"), fields


def _with_uuid(message: Message) -> Fields:
    return {"uuid": message.uuid, "type": message.type.decode(), "value": message.value}


def _nested(message: Message) -> Fields:
    fields = _with_uuid(message)
    if message.number % 3 == 0:
        # Newer than the message, and than the next two: given out, they would bar those.
        later = messages(3, start=message.time + timedelta(milliseconds=100), seed=message.number)
        fields["value"] = LAYOUTS["active"].encode(map(_with_uuid, later))[0]
    return fields


def _of_tenant(message: Message) -> Fields:
    partition, tenant = divmod(message.number // _MESSAGES_PER_BLOCK, _TENANTS_PER_PARTITION)
    return {"partition": 3 * partition, "tenant": f"tenant {tenant}", "value": message.value}


def _in_chunk(message: Message) -> Fields:
    # By time, so that an earlier file has earlier offsets.
    offset = 10_000_000 + (message.time - START) // timedelta(seconds=1)
    return {"offset": offset, "timestamp_us": message.timestamp_us, "value": message.value}


def _key(number: int) -> bytes:
    return hashlib.sha256(b"%d" % number).digest()


def _clock(number: int) -> list[Fields]:
    return [{"key": _key(writer), "length": number + writer} for writer in range(number % 3)]


def _draft(message: Message) -> Fields:
    number = message.number
    return {
        "version": 1,
        "checkpointer": number % 4,
        "checkpoint": {"tree_hash": _key(number), "length": number} if number % 4 == 0 else None,
        "clock": _clock(number),
        "abi": 0,
        "batch": 1,
        "value": message.value,
    }


def _autobase(message: Message) -> Fields:
    number = message.number
    pointer = {"checkpointer": number, "signature": None, "length": None}
    return {
        "version": 2,
        "clock": _clock(number),
        "batch": 1,
        "value": message.value or None,
        "optimistic": number % 2 == 1,
        "checkpoint": {"system": pointer, "encryption": None, "user": [pointer]} if number % 4 == 0 else None,
        "digest": {"pointer": number, "key": _key(number)} if number % 3 == 0 else None,
        "trace": {"system": [1, 2], "encryption": [], "user": [{"view": 7, "blocks": [number]}]},
    }


def _uuid_keyed(format: str, *, appended: bool, checked: bool = True, nested: bool = False, **writing: Any) -> Layout:
    make = _nested if nested else _with_uuid
    return Layout(format, ("uuid",), make, writing, checked=checked, appended=appended, nested=nested)


def _tenant(version: int) -> Layout:
    identity = ("partition", "tenant_bytes", "index")
    return Layout("tenant", identity, _of_tenant, {"options": {"version": version}}, checked=version == 2)


def _chunked(**writing: Any) -> Layout:
    return Layout("chunked", ("offset",), _in_chunk, writing, appended=True)


def _oplog(dialect: str, make: Callable[[Message], Fields]) -> Layout:
    options = {"options": {"dialect": dialect}}
    return Layout("oplog", ("seq",), make, options, options, checked=False, appended=True)


LAYOUTS: dict[str, Layout] = {
    "active": _uuid_keyed("active", appended=True),
    "active-preallocated": _uuid_keyed("active", appended=True, options={"preallocate": 100_000}),
    "active-nested": _uuid_keyed("active", appended=True, nested=True),
    "sealed": _uuid_keyed("sealed", appended=False),
    "sealed-no-trailer": _uuid_keyed("sealed", appended=False, checked=False, options={"trailer": False}),
    "tenant": _tenant(2),
    "tenant-version-1": _tenant(1),
    "chunked": _chunked(options={"chunk_records": 20, "index": True}),
    "chunked-default": _chunked(),
    "oplog": _oplog("draft", _draft),
    "oplog-draft-1.1": _oplog("draft-1.1", _draft),
    "oplog-autobase": _oplog("autobase", _autobase),
}
