"""What the rules of docs/formats, as slow and plain code, make of a damaged file.

They are asked where something is missing or strange: what the rules themselves lose, or cannot tell, is no fault of
the library, and is counted apart.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

from .layouts import Identity, Layout

# The plain readers are modules of the tests beside this package.
sys.path.append(str(Path(__file__).parents[1] / "python"))

import active_reference
import chunked_reference
import oplog_reference
import sealed_reference
import tenant_reference

Ledger = list[tuple[int, int, str, str | None]]
Found = tuple[int, Identity, bytes | None]
"""A record's position, what tells it from others, and its value."""


def read_by_the_rules(layout: Layout, data: bytes) -> tuple[list[Found], Ledger]:
    """The records and the ledger."""
    match layout.format:
        case "active":
            scan = active_reference.Scanner(data).scan()
            return [_active(data, position) for position in scan.records], _plain(scan.ledger)
        case "sealed":
            scan = sealed_reference.read(data)
            found = [(one["position"], (UUID(bytes=one["uuid"]),), one["value"]) for one in scan.records]
        case "tenant":
            scan = tenant_reference.read(data)
            found = [
                (one["position"], (one["partition"], one["tenant"], one["index"]), one["value"]) for one in scan.records
            ]
        case "chunked":
            scan = chunked_reference.read(data)
            found = [(one["position"], (one["offset"],), one["value"]) for one in scan.records]
        case _:
            scan = oplog_reference.read(data, layout.reading["options"]["dialect"])
            found = [(one["position"], (one["seq"],), one["value"]) for one in scan.records]
    return found, _plain(scan.ledger)


def _active(data: bytes, at: int) -> Found:
    length_at = at + 17 + data[at + 16]
    value_at = length_at + 4
    value = data[value_at : value_at + int.from_bytes(data[length_at:value_at], "big")]
    return at, (UUID(bytes=data[at : at + 16]),), value


def _plain(ledger: Sequence[tuple[int, int, str, str | None]]) -> Ledger:
    return [(start, end, kind, cause) for start, end, kind, cause in ledger]
