"""`seglake info`: what a file is, without reading it whole."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import closing, nullcontext
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, cast

import click

from seglake._values import instant_us

from . import folders, options
from .advice import titled
from .failure import Status, exit_status, report_status, tell
from .help_groups import Command
from .inputs import Input, each, log_facts
from .render import count, exact_size, json_text, plain, printable, size
from .report import index_facts, index_in_words, index_of, index_rebuilding, reads_with
from .terminal import Advance, byte_progress
from .vocabulary import KEY_NEXT, REASONS, WRONG_KEY, meaning

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seglake import Reader, Record

_CHECKED = {
    "checksum": "by checksums",
    "parity": "by the parity sidecar: the file has no checksums of its own",
    "structure": "by structure only: nothing tells a changed byte within a record",
}

_OF_FILES = (
    *("empty", "only_zeros", "compressed", "base64", "other_content", "other_format"),
    *("text_conversion", "reencoded", "byte_order"),
)
"""Reasons by which a file is not what its name says."""
# So much of the beginning of a file shows what it is.
_HEAD_BYTES = 64 << 10

_DAMAGED = ("truncated", "no_frame")
"""States of a sidecar that are damage, of the file or of itself."""

_EXAMPLES = """
\b
Examples:
  seglake info today.active
  seglake info logs                        all below a folder, one line a file
  seglake info --count *.active            read all, count records and damage
  seglake info --json today.active | jq .format
  seglake info --sidecar /other/disk/today.par today.active
  seglake info --dialect autobase writer.oplog
  seglake info s3://bucket/2024/january.sealed
  zstd -dc old.active.zst | seglake info -
"""


@click.command(cls=Command, epilog=_EXAMPLES)
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=options.PATH)
@click.option("--count", "whole", is_flag=True, help="Read the whole file: records, last record, damage.")
@options.as_json("One JSON object a line, one line a file.")
@folders.glob
@options.sidecar
@options.index
@options.reading
def command(
    files: tuple[str, ...],
    whole: bool,
    as_json: bool,
    globs: tuple[str, ...],
    sidecar: str | None,
    spool_limit: int,
    **how: Any,
) -> int:
    """Tell what a file is: its format, size, parts and first record.

    Reads no more than the beginning of the file and its own directory (an index, a table of contents, a trailer),
    unless --count is given. FILE is a path, a folder with all below it, whose files have one line each, a URI such as
    s3://bucket/key, or - for standard input, which is copied to a temporary file first.

    Of FILE.par, the parity sidecar that `seglake protect` writes, it tells what is covered. `seglake verify` checks it.

    Exit status: 0 recognised, 1 damage was met, 2 unknown format or another error.
    """
    named = folders.files_named(files, globs, how["key"])
    options.check_index(how, named.files)
    options.check_key(how["key"])
    parity = options.parity(sidecar, named.files)
    shown = 0

    def describe(file: Input) -> int:
        nonlocal shown
        with byte_progress(PurePath(file.label).name) if whole else nullcontext() as advance:
            facts, status = _facts(file, advance, how, parity, whole=whole)
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
    facts_of = partial(_facts, how=how, parity=parity, whole=whole)
    with closing(folders.side_by_side(named, facts_of, spool_limit=spool_limit)) as results:
        for name, found in results:
            if isinstance(found, Exception):
                unreadable += 1
                worst = max(worst, tell(found, label=name))
                continue
            facts, status = found
            worst = max(worst, status)
            format = facts["format"] or "unknown"
            numbers[format] += 1
            sizes[format] += facts["nbytes"]
            click.echo(json_text(facts) if as_json else one_line(name, facts))
    for log in () if as_json else named.logs:
        click.echo(folders.log_line(log))
    if named.files and not as_json:
        kinds = [f"{number:,} {format} ({size(sizes[format])})" for format, number in sorted(numbers.items())]
        kinds += [f"{unreadable:,} unreadable"] if unreadable else []
        click.echo(f"{count(len(named.files), 'file')}: {', '.join(kinds)}")
    return worst


def _format(
    file: Input, how: dict[str, Any], parity: dict[str, Any], *, is_covered: bool
) -> tuple[str | None, str, str]:
    """The format of the file, how sure that is, and why."""
    import seglake

    if file.segment is not None:
        return file.segment.format, "certain", "it is a segment of a log"
    if how["format"] is not None:
        return how["format"], "given", "named with --format"
    found = seglake.detect(file.from_start(), **options.only(how, "key", "options"))
    if found.format is None and is_covered:
        try:
            with seglake.open(file.from_start(), **options.given(how), **parity) as reader:
                return reader.format, "certain", "of the file as its parity sidecar restores it"
        except seglake.FormatError:
            pass
    how_to = "" if found.format else "; --format NAME reads it as one"
    return found.format, found.confidence, f"{found.reason}{how_to}"


def _facts(
    file: Input, advance: Advance | None, how: dict[str, Any], parity: dict[str, Any], *, whole: bool
) -> tuple[dict[str, Any], int]:
    """What can be told about the file, ready for JSON, and the exit status that it deserves."""
    import seglake

    coverage = seglake.parity.coverage(file.from_start(), **parity)
    format, confidence, reason = _format(file, how, parity, is_covered=coverage is not None)
    facts: dict[str, Any] = {
        "path": file.path,
        "log": log_facts(file.segment),
        "nbytes": file.size,
        "format": format,
        "confidence": confidence,
        "reason": reason,
        "sidecar": None if coverage is None else coverage.to_dict(),
        # Where the format is known, some of these are told below.
        **dict.fromkeys(("dialect", "checked", "columns", "partitions", "tenants", "index", "first_record", "damage")),
        "wrong_key": False,
        "report": None,
    }
    status: int = Status.DAMAGED if coverage is not None and coverage.state in _DAMAGED else Status.SOUND
    if facts["format"] is None:
        # What is protected as it is need not be a segment.
        return facts, Status.TROUBLE if coverage is None or coverage.profile is None else status
    with seglake.open(file.from_start(), **options.given(how), **parity) as reader:
        schema = reader.schema
        if reads_with(reader.format, "dialect"):
            facts["dialect"] = how["dialect"] or options.DEFAULT_DIALECT
        facts["columns"] = [{"name": n, "type": t} for n, t in zip(schema.names, schema.types, strict=True)]
        index = index_of(reader)
        facts["index"] = None if index is None else index_facts(index)
        try:
            _count_parts(reader, facts)
            first = next(iter(reader), None)
        except seglake.WrongKeyError as error:
            facts["wrong_key"] = True
            status = max(status, exit_status(error))
        except seglake.DamageError as error:
            facts["damage"] = {"byte_offset": error.byte_offset, "cause": error.cause}
            status = max(status, exit_status(error))
        else:
            facts["first_record"] = first and _record_facts(first, ("position", *schema.names))
        facts["checked"] = reader.report.checked
    if facts["damage"] is not None or not file.size:
        other = _other_content(file, facts, how)
        if other is not None:
            columns = dict.fromkeys(("dialect", "checked", "columns", "partitions", "tenants", "index", "damage"))
            return {**facts, **columns, "format": None, "confidence": "unknown", "reason": other}, Status.TROUBLE
    if whole:
        report = seglake.verify(
            file.from_start(),
            explain=0,
            **options.only(how, "format", "key", "options"),
            **parity,
            progress=advance,
        )
        told = {**report.to_dict(), "path": file.path}
        del told["diagnoses"]  # nothing was looked for: that is what `seglake verify` does
        facts["report"] = told
        status = report_status(report)
    return facts, status


def _other_content(file: Input, facts: dict[str, Any], how: dict[str, Any]) -> str | None:
    """What a file is by its beginning, if it is of another kind than its name says."""
    import seglake

    if facts["confidence"] != "likely":
        return None
    with file.bytes() as read_at:
        head = read_at(0, _HEAD_BYTES)
    # The index is that of the whole file.
    how = {**how, "format": facts["format"], "index": None}
    report = seglake.verify(head, explain=1, **options.only(how, "format", "key", "options"))
    if report.records or not report.diagnoses or report.diagnoses[0].reason not in _OF_FILES:
        return None
    own = report.diagnoses[0]
    content = f"by its content {titled(own)}"
    if file.size > len(head):
        # What is certain of these bytes is not of the others.
        first = count(len(head), "byte")
        content = f"by its first {first}, read as if they were all, {REASONS[own.reason].title}"
    return f"by its name {facts['format']}, {content}: {printable(own.evidence)}"


def _count_parts(reader: Reader, facts: dict[str, Any]) -> None:
    """How many partitions and tenants there are, where records have them: from the file's own table."""
    if "partition" in reader.schema.names:
        facts["partitions"] = len(reader.partitions())
        facts["tenants"] = len(reader.tenants())


def _record_facts(record: Record, names: Sequence[str]) -> dict[str, Any]:
    """A record's fields ready for JSON, a length in place of a value that may be gigabytes: `value_bytes`."""
    facts: dict[str, Any] = {}
    for name in names:
        if name == "value":
            facts["value_bytes"] = None if record.value is None else len(record.value)
        elif name == "timestamp" and record.timestamp is None:
            facts["timestamp_us"] = record.timestamp_us
        else:
            facts[name] = plain(getattr(record, name))
    return facts


def paragraph(label: str, facts: dict[str, Any], how: dict[str, Any]) -> str:
    """The facts that `seglake info` gathers with options of reading `how`, one a line below the file's name."""
    lines = [printable(label)]

    def line(name: str, text: str) -> None:
        lines.append(f"  {name:<13} {text}")

    line("format", _format_in_words(facts))
    line("size", exact_size(facts["nbytes"]))
    if facts["sidecar"] is not None:
        line("sidecar", _sidecar(facts["sidecar"]))
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
        log_ok = facts["report"] and facts["report"]["ok"]
        line("index", index_in_words(facts["index"], log_ok=log_ok))
        rebuilding = index_rebuilding(facts["index"], facts["path"], how["index"], log_ok=log_ok)
        if rebuilding is not None:
            line("", f"to rebuild it: {rebuilding}")
    if columns is not None:
        line("columns", ", ".join(f"{column['name']} {_short(column['type'])}" for column in columns))
    if facts["wrong_key"]:
        line("first record", f"{WRONG_KEY}; {KEY_NEXT}")
    elif facts["damage"] is not None:
        cause = facts["damage"]["cause"]
        line("first record", f"damaged at offset {facts['damage']['byte_offset']:,}: {cause} ({meaning(cause)})")
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
            line("", f"{exact_size(total['nbytes'])} in {count(total['ranges'], 'range')}: {what}")
        line("damage", "none" if report["ok"] else "yes: `seglake verify` shows where")
    elif report is None and facts["format"] is not None:
        line("records", "not counted: --count reads the whole file")
    return "\n".join(lines)


def _format_in_words(facts: dict[str, Any]) -> str:
    reason = printable(facts["reason"])
    if facts["format"] is None:
        return f"unknown: {reason}"
    return f"{printable(facts['format'])} ({facts['confidence']}: {reason})"


def one_line(label: str, facts: dict[str, Any]) -> str:
    """The facts that matter among many files: format, size, the first record's time, what is wrong."""
    parts = [facts["format"] or "unknown", size(facts["nbytes"])]
    report = facts["report"]
    if report is not None and not report["wrong_key"]:
        parts.append(count(report["records"], "record"))
    first = facts["first_record"]
    if first is not None and first.get("timestamp") is not None:
        parts.append(f"from {first['timestamp']}")
    sidecar = facts["sidecar"]
    if sidecar is not None and sidecar["profile"] is not None:
        parts.append(f"sidecar {sidecar['profile']}" + (" of less" if sidecar["state"] == "grown" else ""))
    is_damaged = facts["damage"] is not None or (report is not None and not report["ok"])
    if facts["wrong_key"] or (report is not None and report["wrong_key"]):
        parts.append(REASONS["wrong_key"].title)
    elif is_damaged or (sidecar is not None and sidecar["state"] in _DAMAGED):
        parts.append("damaged")
    return f"{printable(label)}  {', '.join(parts)}"


def _sidecar(own: dict[str, Any]) -> str:
    """What a sidecar says of itself, in words."""
    where = printable(own["sidecar"] or "given")
    if own["state"] == "no_frame":
        return f"{where}: is not a parity sidecar, or nothing of it is left"
    if own["profile"] is None:
        return f"{where} is empty and covers nothing"
    said = {
        "covered": "covers all of it",
        "grown": f"covers {exact_size(own['covered_bytes'])} of it; `seglake protect` covers what was appended since",
        "truncated": f"covers {exact_size(own['covered_bytes'])}: the end of the file is missing, see `seglake verify`",
    }[own["state"]]
    return f"{where} ({own['profile']}, {exact_size(own['sidecar_bytes'])}) {said}"


def _key(key: Sequence[str] | None) -> str:
    if key is not None:
        return f"from {' or '.join(map(printable, key))}"
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
