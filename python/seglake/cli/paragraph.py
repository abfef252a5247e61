"""What is known about a file, as a paragraph for people."""

from __future__ import annotations

import os
from typing import Any, cast

from seglake._instants import instant_us

from . import index_state
from .advice import KEY_NEXT, meaning
from .escape import json_text, printable
from .quantity import count, exact_size, size

_CHECKED = {
    "checksum": "by checksums",
    "structure": "by structure only: nothing tells a changed byte within a record",
}


def paragraph(label: str, facts: dict[str, Any], how: dict[str, Any]) -> str:
    """The facts that `seglake info` gathers with options of reading `how`, one a line below the file's name."""
    lines = [printable(label)]

    def line(name: str, text: str) -> None:
        lines.append(f"  {name:<13} {text}")

    line("format", f"{printable(facts['format'] or 'unknown')} ({facts['confidence']}: {printable(facts['reason'])})")
    line("size", exact_size(facts["bytes"]))
    columns = facts["columns"]
    if columns is None or any(column["name"] == "uuid" for column in columns):
        # What has a UUID is hashed under a key.
        line("key", _key(how["key"]))
    if facts["dialect"] is not None:
        line("dialect", f"{printable(facts['dialect'])}: the file does not say which; --dialect does")
    if facts["checked"] is not None and not facts["wrong_key"]:
        line("checked", _CHECKED[facts["checked"]])
    if facts["partitions"] is not None:
        line("parts", f"{count(facts['partitions'], 'partition')}, {count(facts['tenants'], 'tenant')}")
    if facts["index"] is not None:
        line("index", index_state.for_people(facts["index"]))
        if not facts["index"]["ok"]:
            line("", f"to rebuild it: {index_state.rebuilding(facts['path'], how['index'])}")
    if columns is not None:
        line("columns", ", ".join(f"{column['name']} {_short(column['type'])}" for column in columns))
    if facts["wrong_key"]:
        line("first record", f"nothing checks, but the structure is sound: probably the wrong key: {KEY_NEXT}")
    elif facts["damage"] is not None:
        cause = facts["damage"]["cause"]
        line("first record", f"damaged at offset {facts['damage']['offset']:,}: {cause} ({meaning(cause)})")
    elif columns is not None:
        first = facts["first_record"]
        line("first record", "none" if first is None else _record(first))
    report = facts["report"]
    if report is not None and not report["wrong_key"]:
        if report["last_timestamp_us"] is not None:
            line("last record", instant_us(report["last_timestamp_us"]))
        line("records", f"{report['records']:,}")
        for total in report["totals"]:
            what = total["kind"] if total["cause"] is None else f"{total['kind']}, {total['cause']}"
            line("", f"{exact_size(total['bytes'])} in {count(total['ranges'], 'range')}: {what}")
        line("damage", "none" if report["ok"] else "yes: `seglake verify` shows where")
    elif report is None and facts["format"] is not None:
        line("records", "not counted: --count reads the whole file")
    return "\n".join(lines)


def one_line(label: str, facts: dict[str, Any]) -> str:
    """The facts that matter among many files: format, size, the first record's time, what is wrong."""
    parts = [facts["format"] or "unknown", size(facts["bytes"])]
    report = facts["report"]
    if report is not None and not report["wrong_key"]:
        parts.append(count(report["records"], "record"))
    first = facts["first_record"]
    if first is not None and first.get("timestamp") is not None:
        parts.append(f"from {first['timestamp']}")
    if facts["wrong_key"] or (report is not None and report["wrong_key"]):
        parts.append("probably the wrong key")
    elif facts["damage"] is not None or (report is not None and not report["ok"]):
        parts.append("damaged")
    return f"{printable(label)}  {', '.join(parts)}"


def _key(key: str | None) -> str:
    if key is not None:
        return f"from {printable(key)}"
    return "from SEGLAKE_KEY" if os.environ.get("SEGLAKE_KEY") else "the public default key"


def _short(type_name: str) -> str:
    """A column's type, without what a structure or list is made of: --json has that."""
    outer, parenthesis, _ = type_name.partition("(")
    return outer if parenthesis and outer in ("List", "Struct") else type_name


def _record(fields: dict[str, Any]) -> str:
    parts: list[str] = []
    for name, field in fields.items():
        if name == "position" or field is None:
            continue
        if name == "value_bytes":
            parts.append(f"value of {size(field)}")
        elif isinstance(field, list):
            parts.append(f"{name} of {count(len(cast('list[Any]', field)), 'item')}")
        elif isinstance(field, dict):
            parts.append(name)
        elif isinstance(field, str):
            parts.append(printable(field) or f"empty {name}")
        else:
            parts.append(f"{name} {json_text(field)}")
    return f"{', '.join(parts)}, at offset {fields['position']:,}"
