"""`seglake cat`: the records of a file, one a line."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from . import options
from .advice import KEY_NEXT
from .escape import printable
from .failure import Status, report_status, say
from .fields import ValueForm
from .inputs import Input, each
from .lines import JsonLines, Lines, PlainLines
from .quantity import count, exact_size

if TYPE_CHECKING:
    from seglake import Reader, Report

_EXAMPLES = """
\b
Examples:
  seglake cat today.active | head
  seglake cat --json --value json today.active | jq .value.id
  seglake cat --since 2024-01-10T16:00:00Z --until 2024-01-10T17:00:00Z today.active
  seglake cat --at 225 --limit 1 --value hex today.active
  seglake cat --on-damage skip damaged.active > records.txt
  zstd -dc old.active.zst | seglake cat --columns timestamp,type -
"""


@click.command(epilog=_EXAMPLES)
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path())
@options.as_json("One JSON object a line; its keys are the column names.")
@click.option(
    "--value",
    "form",
    type=click.Choice(["text", "json", "hex", "base64"]),
    help="How values are written. With --json, json puts the value itself into the line, and a value that is not JSON "
    "(text: not UTF-8) stands as base64 under the key value_base64. [default: base64 with --json, else text]",
)
@click.option("--columns", metavar="NAMES", help="The columns to show, with commas between; also path and position.")
@click.option("--at", metavar="OFFSET", type=options.parse_offset, help="Start with the record at this offset.")
@click.option("--limit", metavar="N", type=click.IntRange(min=0), help="Stop after so many records.")
@click.option("--since", metavar="WHEN", type=options.parse_bound, help="From this time (ISO 8601, with zone) or UUID.")
@click.option("--until", metavar="WHEN", type=options.parse_bound, help="Up to this time or UUID, without it.")
@click.option(
    "--on-damage",
    type=click.Choice(["raise", "skip"]),
    default="raise",
    show_default=True,
    help="Stop at the first damage, or go on behind it and say at the end what was skipped.",
)
@click.option(
    "--max-record-bytes",
    metavar="SIZE",
    type=options.parse_size,
    help="Refuse records larger than this. [default: 2GiB]",
)
@options.segment_format
@options.key_file
@options.spool_limit
@options.debug
def command(
    files: tuple[str, ...],
    as_json: bool,
    form: ValueForm | None,
    columns: str | None,
    at: int | None,
    limit: int | None,
    max_record_bytes: int | None,
    segment_format: Any,
    spool_limit: int,
    **reading: Any,
) -> int:
    """Print the records of files, one a line.

    Without --json a line is for people: position, timestamp and type, then the value, cut to the terminal's width (in
    a pipe: at 64 KiB), control characters escaped. FILE may be - for standard input, which is copied to a temporary
    file first.

    Exit status: 0 all sound, 1 damage was met (the records in front of it are printed), 2 trouble.
    """
    if at is not None and len(files) > 1:
        raise click.UsageError("--at is an offset in one file: name one file")
    wanted = None if columns is None else [name.strip() for name in columns.split(",")]
    if max_record_bytes is not None:
        reading["max_record_bytes"] = max_record_bytes
    options.check_key(reading["key_file"])
    left = limit

    def show(file: Input) -> int:
        nonlocal left
        import seglake

        if left == 0:
            return Status.SOUND
        with (
            seglake.open(file.from_start(), format=segment_format, columns=wanted, **reading) as reader,
            warnings.catch_warnings(),
        ):
            # What was skipped is said once, at the end, from the report.
            warnings.simplefilter("ignore", seglake.DamageWarning)
            lines = _lines(reader, file, wanted, as_json=as_json, form=form)
            try:
                printed = _print(reader, lines, at=at, limit=left)
            except seglake.DamageError as error:
                if error.offset == at:
                    error.add_note("no record begins at --at, or the one there is damaged")
                raise
            report = reader.report
        if left is not None:
            left -= printed
        if not report.ok:
            say(_skipped(report, file.label))
        return report_status(report)

    return each(files, spool_limit=spool_limit, action=show)


def _lines(
    reader: Reader, file: Input, wanted: Sequence[str] | None, *, as_json: bool, form: ValueForm | None
) -> Lines:
    names = reader.schema.names
    if as_json:
        return JsonLines(wanted or ["position", *names], form or "base64", file.path)
    if wanted is None:
        # The time in a UUID has a column of its own, which says it better where room is short.
        wanted = ["position", *(name for name in names if name != "uuid" or "timestamp" not in names)]
    return PlainLines(wanted, form or "text", file.path, stream=sys.stdout, file_bytes=reader.size)


def _print(reader: Reader, lines: Lines, *, at: int | None, limit: int | None) -> int:
    """Print up to `limit` records, from the one at offset `at` or the first, and return how many."""
    records = iter(reader) if at is None else reader.records_from(at)
    write = sys.stdout.write
    printed = 0
    for record in islice(records, limit):
        write(lines.line(record) + "\n")
        printed += 1
    return printed


def _skipped(report: Report, label: str) -> str:
    where = printable(label)
    if report.wrong_key:
        return f"{where}: nothing checks, but the structure is sound: probably the wrong key\n  next      {KEY_NEXT}"
    damaged = [total for total in report.totals if total["cause"] is not None]
    ranges, volume = (sum(total[what] for total in damaged) for what in ("ranges", "bytes"))
    return f"{where}: skipped {count(ranges, 'damaged range')}, {exact_size(volume)}: `seglake verify` shows where"
