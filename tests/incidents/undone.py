"""A file with a cause of damage undone, as a diagnosis proposes it."""

from __future__ import annotations

from typing import Any


def undone(data: bytes, own: dict[str, Any]) -> bytes | None:
    """The file as proposed; None if nothing is, or if other bytes belong there, which the diagnosis does not have.

    `own` is a diagnosis as JSON has it.
    """
    edits = sorted(own.get("edits", ()), key=lambda edit: -edit["start"])
    if not own["repairs"] and (not edits or any(edit["nbytes"] and edit["source"] is None for edit in edits)):
        return None
    mended = bytearray(data)
    for repair in own["repairs"]:
        mended[repair["byte_offset"]] = repair["new"]
    for edit in edits:
        source = edit["source"] or 0
        mended[edit["start"] : edit["end"]] = data[source : source + edit["nbytes"]]
    return bytes(mended)


def price(own: dict[str, Any]) -> int:
    """How many bytes are other ones then."""
    edits = own.get("edits", ())
    return sum(max(edit["end"] - edit["start"], edit["nbytes"]) for edit in edits) or len(own["repairs"])
