"""The fields of a record, one by one, as text for people and as values for JSON."""

from __future__ import annotations

import base64
import uuid
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, cast

from .escape import json_text, printable, printable_bytes
from .quantity import instant, instant_us

if TYPE_CHECKING:
    from seglake import Record

ValueForm = Literal["text", "json", "hex", "base64"]


def plain(value: Any) -> Any:
    """A field as JSON knows it: instants as ISO 8601 in UTC, UUIDs as text, bytes as base64, also within lists."""
    if isinstance(value, datetime):
        return instant(value)
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in cast("dict[Any, Any]", value).items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in cast("list[Any]", value)]
    return value


def shown(record: Record, name: str, path: str | None) -> str:
    """A field other than the value as printable text on one line."""
    value: Any = path if name == "path" else getattr(record, name)
    if name == "timestamp":
        return instant(value) if value is not None else instant_us(record.timestamp_us)
    if value is None:
        return "-"
    if isinstance(value, bytes):
        return printable_bytes(value)
    if isinstance(value, str):
        return printable(value)
    converted = plain(value)
    return converted if isinstance(converted, str) else json_text(converted)


def preview(value: bytes, form: ValueForm, most: int) -> str:
    """The beginning of a value, `most` bytes of it, as printable text on one line."""
    head = value[:most]
    if form == "hex":
        return head.hex()
    if form == "base64":
        return base64.b64encode(head[: max(3, most // 3 * 3)]).decode("ascii")
    if len(value) > most:
        # Not half a character at the cut: a continuation byte belongs to what stands in front of it.
        while len(head) > max(most - 3, 1) and value[len(head)] & 0xC0 == 0x80:
            head = head[:-1]
    return printable_bytes(head)
