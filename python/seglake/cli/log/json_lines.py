"""Records as lines of JSON, which `seglake log write --json` writes to a log."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any, cast

from seglake import _values as values

from .standard_input import LongLineError, RefusedError

if TYPE_CHECKING:
    from uuid import UUID

    from seglake import SegmentLog

__all__ = ["write_json"]


def write_json(log: SegmentLog, block: bytes, *, line_bytes: int) -> tuple[int, UUID | None]:
    """Write a block of JSON lines.

    Raises:
        RefusedError: a line is none. Those before it are written.
        LongLineError: a line is longer than allowed. Those before it are written.
        ValueError: the log refuses a record. Those before it are written.
    """
    from seglake.exceptions import RowError

    records: list[Any] = []
    refused: RefusedError | None = None
    for line in block.removesuffix(b"\n").split(b"\n"):
        try:
            if len(line) > line_bytes:
                raise LongLineError(line_bytes)
            records.append(_json_record(line))
        except ValueError as error:
            refused = error if isinstance(error, RefusedError) else RefusedError(str(error))
            break
    try:
        uuids = log.write_batch(records)
    except RowError as error:
        # Its number is that of a row among these: the line has another one.
        raise RefusedError(str(error.__cause__)) from error
    if refused is not None:
        raise refused
    return len(uuids), uuids[-1] if uuids else None


_KEYS = frozenset({"type", "value", "value_base64", "uuid", "timestamp"})


def _json_record(line: bytes) -> dict[str, Any]:
    try:
        record: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"expected a JSON object: {error}") from error
    if not isinstance(record, dict):
        raise ValueError(f"expected a JSON object, not {type(record).__name__}")
    fields = cast("dict[str, Any]", record)
    unknown = sorted(fields.keys() - _KEYS)
    if unknown:
        raise ValueError(f"expected the keys {', '.join(sorted(_KEYS))}, found {unknown[0]!r}")
    if not isinstance(fields.get("type"), str):
        raise ValueError("expected a key type with a text")
    if ("value" in fields) == ("value_base64" in fields):
        raise ValueError("expected one of the keys value and value_base64")
    out: dict[str, Any] = {}
    for name, value in fields.items():
        if not isinstance(value, str):
            raise ValueError(f"expected text as {name}, not {type(value).__name__}")
        if name == "value":
            out["value"] = value.encode()
        elif name == "value_base64":
            out["value"] = base64.b64decode(value, validate=True)
        elif name == "type":
            out["type"] = value
        else:
            # uuid and timestamp are called as their kinds.
            out[name] = values.column_value(name, value)
    return out
