"""The fields of a record, one by one, as text for people and as values for JSON."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, cast

from seglake._instants import instant, instant_us

from .escape import json_compact, printable, printable_bytes

if TYPE_CHECKING:
    from seglake import Record

ValueForm = Literal["text", "json", "hex", "base64"]


def base64_text(value: bytes) -> str:
    """Bytes in base64."""
    return base64.b64encode(value).decode("ascii")


def plain(value: Any, of_bytes: Callable[[bytes], str] = base64_text) -> Any:
    """A field as JSON knows it: instants as ISO 8601 in UTC, UUIDs as text, bytes in base64, also within lists."""
    if isinstance(value, datetime):
        return instant(value)
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, bytes):
        return of_bytes(value)
    if isinstance(value, dict):
        return {str(name): plain(item, of_bytes) for name, item in cast("dict[Any, Any]", value).items()}
    if isinstance(value, (list, tuple)):
        return [plain(item, of_bytes) for item in cast("list[Any]", value)]
    return value


class Fields:
    """The fields of a file's records by column name, among them the `path` that every file has."""

    def __init__(self, path: str | None) -> None:
        """Name the file."""
        self._path = path

    def of(self, record: Record, name: str) -> Any:
        """The field of a record."""
        return self._path if name == "path" else getattr(record, name)


def instant_shown(record: Record) -> str:
    """A record's time for people."""
    moment = record.timestamp
    return instant(moment) if moment is not None else instant_us(record.timestamp_us)


def shown(value: Any, form: ValueForm) -> str:
    """A field other than the value as printable text on one line: structures as JSON, bytes as hex or base64."""
    if value is None:
        return "-"
    if isinstance(value, str):
        return printable(value)
    converted = plain(value, base64_text if form == "base64" else bytes.hex)
    return converted if isinstance(converted, str) else json_compact(converted)


def preview(value: bytes, form: ValueForm, most: int) -> str:
    """The beginning of a value, `most` bytes of it, as printable text on one line."""
    head = value[:most]
    if form == "hex":
        return head.hex()
    if form == "base64":
        return base64_text(head[: max(3, most // 3 * 3)])
    if len(value) > most:
        # Not half a character at the cut: a continuation byte belongs to what stands in front of it.
        while len(head) > max(most - 3, 1) and value[len(head)] & 0xC0 == 0x80:
            head = head[:-1]
    return printable_bytes(head)
