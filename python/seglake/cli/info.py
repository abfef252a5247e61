"""`seglake info`: what a file is, without reading it whole."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import click

from . import folders, index_state, options, reading
from .escape import json_text
from .failure import Status, exit_status, report_status, tell
from .fields import plain
from .inputs import Input, each
from .paragraph import one_line, paragraph
from .quantity import count, size
from .terminal import byte_progress

if TYPE_CHECKING:
    from seglake import Reader

_EXAMPLES = """
\b
Examples:
  seglake info today.active
  seglake info logs                        all below a folder, one line a file
  seglake info --count *.active            read all, count records and damage
  seglake info --json today.active | jq .format
  seglake info --dialect autobase writer.oplog
  seglake info s3://bucket/2024/january.sealed
  zstd -dc old.active.zst | seglake info -
"""


@click.command(epilog=_EXAMPLES)
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path())
@click.option("--count", "whole", is_flag=True, help="Read the whole file: records, last record, damage.")
@options.as_json("One JSON object a line, one line a file.")
@folders.glob
@reading.index
@reading.layout
@reading.limits
@options.spool_limit
@options.debug
def command(
    files: tuple[str, ...], whole: bool, as_json: bool, globs: tuple[str, ...], spool_limit: int, **how: Any
) -> int:
    """Tell what a file is: its format, size, parts and first record.

    Reads no more than the beginning of the file and its own directory (an index, a table of contents, a trailer),
    unless --count is given. FILE is a path, a folder with all below it, whose files have one line each, a URI such as
    s3://bucket/key, or - for standard input, which is copied to a temporary file first.

    Exit status: 0 recognised, 1 damage was met, 2 unknown format or other trouble.
    """
    named = folders.files_named(files, globs)
    reading.check_index(how, named.files)
    options.check_key(how["key"])
    shown = 0

    def describe(file: Input) -> int:
        nonlocal shown
        facts, status = _facts(file, how, whole=whole)
        if as_json:
            click.echo(json_text(facts))
        else:
            click.echo("\n" * (shown > 0) + paragraph(file.label, facts, how))
        shown += 1
        return status

    if not named.in_folders:
        return each(files, spool_limit=spool_limit, action=describe)
    worst, sizes, unreadable = named.status, Counter[str](), 0
    numbers = Counter[str]()
    facts_of = partial(_facts, how=how, whole=whole)
    for name, found in folders.side_by_side(named, facts_of, spool_limit=spool_limit):
        if isinstance(found, Exception):
            unreadable += 1
            worst = max(worst, tell(found, label=name))
            continue
        facts, status = found
        worst = max(worst, status)
        format = facts["format"] or "unknown"
        numbers[format] += 1
        sizes[format] += facts["bytes"]
        click.echo(json_text(facts) if as_json else one_line(name, facts))
    if named.files and not as_json:
        kinds = [f"{number:,} {format} ({size(sizes[format])})" for format, number in sorted(numbers.items())]
        kinds += [f"{unreadable:,} unreadable"] if unreadable else []
        click.echo(f"{count(len(named.files), 'file')}: {', '.join(kinds)}")
    return worst


def _facts(file: Input, how: dict[str, Any], *, whole: bool) -> tuple[dict[str, Any], int]:
    """What can be told about the file, ready for JSON, and the exit status that it deserves."""
    import seglake

    detection = seglake.detect(file.from_start(), **reading.only(how, "dialect", "key"))
    facts: dict[str, Any] = {
        "path": file.path,
        "bytes": file.size,
        "format": how["format"] or detection.format,
        "confidence": "given" if how["format"] else detection.confidence,
        "reason": "named with --format" if how["format"] else detection.reason,
        "dialect": None,
        "checked": None,
        "columns": None,
        "partitions": None,
        "tenants": None,
        "index": None,
        "first_record": None,
        "damage": None,
        "wrong_key": False,
        "report": None,
    }
    if facts["format"] is None:
        return facts, Status.TROUBLE
    status: int = Status.SOUND
    with seglake.open(file.from_start(), **reading.given(how)) as reader:
        schema = reader.schema
        if "dialect" in seglake.formats()[reader.format].open_options:
            facts["dialect"] = how["dialect"] or reading.DEFAULT_DIALECT
        facts["columns"] = [{"name": n, "type": t} for n, t in zip(schema.names, schema.types, strict=True)]
        index = index_state.index_of(reader)
        facts["index"] = None if index is None else index_state.facts(index)
        try:
            _count_parts(reader, facts)
            first = next(iter(reader), None)
        except seglake.WrongKeyError as error:
            facts["wrong_key"] = True
            status = exit_status(error)
        except seglake.DamageError as error:
            facts["damage"] = {"offset": error.byte_offset, "cause": error.cause}
            status = exit_status(error)
        else:
            names = ("position", *schema.names)
            facts["first_record"] = first and _without_value({name: getattr(first, name) for name in names})
        facts["checked"] = reader.report.checked
    if whole:
        with byte_progress(PurePath(file.label).name) as advance:
            report = seglake.verify(
                file.from_start(),
                **reading.only(how, "format", "dialect", "key", "limits"),
                progress=advance,
            )
        told = {**report.to_dict(), "path": file.path}
        del told["diagnoses"]  # nothing was looked for: that is what `seglake verify` does
        facts["report"] = told
        status = report_status(report)
    return facts, status


def _count_parts(reader: Reader, facts: dict[str, Any]) -> None:
    """How many partitions and tenants there are, where records have them: from the file's own table."""
    if "partition" in reader.schema.names:
        facts["partitions"] = len(reader.partitions())
        facts["tenants"] = len(reader.tenants())


def _without_value(fields: dict[str, Any]) -> dict[str, Any]:
    """A record's fields ready for JSON, a length in place of a value that may be gigabytes: `value_bytes`."""
    return {
        f"{name}_bytes" if name == "value" else name: (len(field) if field is not None else None)
        if name == "value"
        else plain(field)
        for name, field in fields.items()
    }
