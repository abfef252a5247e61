"""`seglake info`: what a file is, without reading it whole."""

from __future__ import annotations

import os
from pathlib import PurePath
from typing import Any

import click

from . import options
from .advice import KEY_NEXT, meaning
from .escape import json_text, printable
from .failure import Status, exit_status, report_status
from .fields import plain
from .inputs import Input, each
from .quantity import count, exact_size, instant_us, size
from .terminal import byte_progress

_EXAMPLES = """
\b
Examples:
  seglake info today.active
  seglake info --count *.active            read all, count records and damage
  seglake info --json today.active | jq .format
  zstd -dc old.active.zst | seglake info -
"""


@click.command(epilog=_EXAMPLES)
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path())
@click.option("--count", "whole", is_flag=True, help="Read the whole file: records, last record, damage.")
@options.segment_format
@options.key_file
@options.as_json("One JSON object a line, one line a file.")
@options.spool_limit
@options.debug
def command(
    files: tuple[str, ...],
    whole: bool,
    segment_format: str | None,
    key_file: str | None,
    as_json: bool,
    spool_limit: int,
) -> int:
    """Tell what a file is: its format, size and first record.

    Reads no more than the beginning of the file, unless --count is given. FILE may be - for standard input, which is
    copied to a temporary file first.

    Exit status: 0 recognised, 1 damage was met, 2 unknown format or other trouble.
    """
    options.check_key(key_file)
    shown = 0

    def describe(file: Input) -> int:
        nonlocal shown
        facts, status = _facts(file, segment_format, key_file, whole=whole)
        if as_json:
            click.echo(json_text(facts))
        else:
            click.echo("\n" * (shown > 0) + _for_people(file, facts, key_file))
        shown += 1
        return status

    return each(files, spool_limit=spool_limit, action=describe)


def _facts(file: Input, segment_format: str | None, key_file: str | None, *, whole: bool) -> tuple[dict[str, Any], int]:
    """What can be told about the file, ready for JSON, and the exit status that it deserves."""
    import seglake

    detection = seglake.detect(file.from_start(), key_file=key_file)
    facts: dict[str, Any] = {
        "path": file.path,
        "bytes": file.size,
        "format": segment_format or detection.format,
        "confidence": "given" if segment_format else detection.confidence,
        "reason": "named with --format" if segment_format else detection.reason,
        "columns": None,
        "first_record": None,
        "damage": None,
        "wrong_key": False,
        "report": None,
    }
    if facts["format"] is None:
        return facts, Status.TROUBLE
    status: int = Status.SOUND
    with seglake.open(file.from_start(), format=facts["format"], key_file=key_file) as reader:
        schema = reader.schema
        facts["columns"] = [{"name": n, "type": t} for n, t in zip(schema.names, schema.types, strict=True)]
        try:
            first = next(iter(reader), None)
        except seglake.WrongKeyError as error:
            facts["wrong_key"] = True
            status = exit_status(error)
        except seglake.DamageError as error:
            facts["damage"] = {"offset": error.offset, "cause": error.cause}
            status = exit_status(error)
        else:
            names = ("position", *schema.names)
            facts["first_record"] = first and _without_value({name: getattr(first, name) for name in names})
    if whole:
        with byte_progress(PurePath(file.label).name) as advance:
            report = seglake.verify(file.from_start(), format=facts["format"], key_file=key_file, progress=advance)
        facts["report"] = {**report.to_dict(), "path": file.path}
        status = report_status(report)
    return facts, status


def _without_value(fields: dict[str, Any]) -> dict[str, Any]:
    """A record's fields ready for JSON, a length in place of a value that may be gigabytes: `value_bytes`."""
    return {
        f"{name}_bytes" if name == "value" else name: len(field) if name == "value" else plain(field)
        for name, field in fields.items()
    }


def _for_people(file: Input, facts: dict[str, Any], key_file: str | None) -> str:
    lines = [printable(file.label)]

    def line(name: str, text: str) -> None:
        lines.append(f"  {name:<13} {text}")

    line("format", f"{printable(facts['format'] or 'unknown')} ({facts['confidence']}: {printable(facts['reason'])})")
    line("size", exact_size(facts["bytes"]))
    line("key", _key(key_file))
    if facts["columns"] is not None:
        line("columns", ", ".join(f"{column['name']} {column['type']}" for column in facts["columns"]))
    if facts["wrong_key"]:
        line("first record", f"nothing checks, but the structure is sound: probably the wrong key: {KEY_NEXT}")
    elif facts["damage"] is not None:
        cause = facts["damage"]["cause"]
        line("first record", f"damaged at offset {facts['damage']['offset']:,}: {cause} ({meaning(cause)})")
    elif facts["columns"] is not None:
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


def _key(key_file: str | None) -> str:
    if key_file is not None:
        return f"from {printable(key_file)}"
    return "from SEGLAKE_KEY" if os.environ.get("SEGLAKE_KEY") else "the public default key"


def _record(fields: dict[str, Any]) -> str:
    parts: list[str] = []
    for name, field in fields.items():
        if name == "position":
            continue
        if name == "value_bytes":
            parts.append(f"value of {size(field)}")
        elif isinstance(field, str):
            parts.append(printable(field) or f"empty {name}")
        else:
            parts.append(f"{name} {json_text(field)}")
    return f"{', '.join(parts)}, at offset {fields['position']:,}"
