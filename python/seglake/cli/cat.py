"""`seglake cat`: the records of a file, one a line."""

from __future__ import annotations

import re
import sys
import uuid
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from seglake import DamageError
from seglake import _values as values
from seglake.read.filters import conditions

from . import completing, folders, options
from .failure import Status, Trouble, report_status, say
from .help_groups import Command
from .inputs import Input, each
from .render import JsonLines, PlainLines, ValueForm, column_kinds, columns_for_people, printable
from .report import PARITY_REFUSED, skipped

if TYPE_CHECKING:
    from seglake import Format, Reader, Record

_Line: TypeAlias = "Callable[[Record], str]"
"""What writes a record as a line."""

# They are kept in memory until the last one is known.
_MOST_LAST = 1_000_000

_EXAMPLES = """
\b
Examples:
  seglake cat today.active | head
  seglake cat --last 10 today.active
  seglake cat --json --value json today.active | jq .value.id
  seglake cat --since 2024-01-10T16:00:00Z --until 2024-01-10T17:00:00Z today.active
  seglake cat --at 225 --limit 1 --value hex today.active
  seglake cat --get 1eeafd69-9b8a-6cee-b9f1-1b8e6a30ade3 january.sealed
  seglake cat --tenant acme --partition 3 --columns tenant,index,value by-tenant.tenant
  seglake cat --start-offset 1000 --end-offset 2000 events.chunks
  seglake cat --dialect autobase --columns seq,clock,value writer.oplog
  seglake cat --on-damage skip damaged.active > records.txt
  zstd -dc old.active.zst | seglake cat --columns timestamp,type -
"""


@click.command(cls=Command, epilog=_EXAMPLES)
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=options.PATH)
@options.as_json("One JSON object a line; its keys are the column names.")
@click.option(
    "--value",
    "form",
    type=click.Choice(["text", "json", "hex", "base64"]),
    help="How values are written. With --json, json puts the value itself into the line, and a value that is not JSON "
    "(text: not UTF-8) stands as base64 under the key value_base64. [default: base64 with --json, else text]",
)
@click.option(
    "--columns",
    metavar="NAMES",
    type=options.Typed(values.comma_list),
    shell_complete=completing.column_names(*completing.EVERYWHERE),
    help="The columns to show, with commas between; also path, position and cause.",
)
@click.option(
    "--at",
    metavar="OFFSET",
    type=options.Typed(values.byte_offset),
    help="Start with the record at this place, in bytes.",
)
@click.option(
    "--get",
    "ids",
    metavar="ID",
    multiple=True,
    help="Look this record up: by UUID, message offset, sequence number, position, or PARTITION/TENANT/INDEX; can be "
    "repeated.",
)
@click.option("--limit", metavar="N", type=click.IntRange(min=0), help="Stop after so many records.")
@click.option(
    "--last",
    metavar="N",
    type=click.IntRange(min=0, max=_MOST_LAST),
    help="Only the last so many records; everything before them is read, and checked, too.",
)
@folders.glob
@options.wanted
@options.on_damage_or_repair
@options.sidecar
@options.index
@options.reading
def command(
    files: tuple[str, ...],
    globs: tuple[str, ...],
    as_json: bool,
    form: ValueForm | None,
    columns: list[str] | None,
    at: int | None,
    ids: tuple[str, ...],
    limit: int | None,
    last: int | None,
    sidecar: str | None,
    spool_limit: int,
    **given: Any,
) -> int:
    """Print the records of files, one a line.

    Without --json a line is for people: position, what tells the record from others (time, type, number), then the
    value, cut to the terminal's width (in a pipe: at 64 KiB), control characters escaped. FILE is a path, a folder with
    all below it, a log, a URI such as s3://bucket/key, or - for standard input, which is copied to a temporary file
    first.

    Exit status: 0 all sound, 1 damage was met (the records before it are printed), records of a log are not read, or a
    record to --get is not there, 2 error.
    """
    named = folders.files_named(files, globs, given["key"])
    if at is not None and len(named.files) > 1:
        raise click.UsageError("--at is a place in one file: name one file")
    if ids and (at is not None or conditions(given) or given["where"]):
        raise click.UsageError("--get names the records: leave out --at and what chooses others")
    if last is not None and (ids or at is not None or limit is not None):
        raise click.UsageError("--last is the end of what is printed: leave out --limit, --at and --get")
    options.check_index(given, named.files)
    parity = options.parity(sidecar, named.files)
    options.check_key(given["key"])
    wanted = Wanted(ids)
    left = limit
    is_any_printed = False
    ending: deque[tuple[_Line, Record]] | None = None if last is None else deque(maxlen=last)

    import seglake

    # Once: asking takes longer than finding a record in a small file.
    formats = seglake.formats(options={"dialect": given["dialect"]})

    def show(file: Input) -> int:
        nonlocal left, is_any_printed
        if left == 0:
            return Status.SOUND
        if at is not None and at > (nbytes := file.size):
            raise Trouble(
                f"{printable(file.label)}: --at is {at:,}: expected at most the file's size, {nbytes:,} bytes"
            )
        with (
            seglake.open(file.from_start(), **options.given(given), **parity) as reader,
            warnings.catch_warnings(),
        ):
            # What was skipped is said once, at the end, from the report.
            warnings.simplefilter("ignore", seglake.exceptions.DamageWarning)
            format = formats[reader.format]
            _check_columns(columns or (), reader)
            if as_json:
                line = JsonLines(columns or ["position", *reader.schema.names], form or "base64", file.path).line
            else:
                shown, nbytes = columns or ["position", *columns_for_people(format)], reader.nbytes
                line = PlainLines(
                    shown, form or "text", file.path, format=format, stream=sys.stdout, file_bytes=nbytes
                ).line
            try:
                if ids:
                    records: Iterable[Record] = wanted.found_in(reader, [identifier(format, text) for text in ids])
                else:
                    records = iter(reader) if at is None else reader.records_from(at)
                printed = _print(records, line, left) if ending is None else _keep(records, line, ending)
            except seglake.DamageError as error:
                if error.byte_offset == at:
                    error.add_note("no record begins at --at, or the one there is damaged")
                raise
            is_any_printed = is_any_printed or printed > 0
            report, refused = reader.report, reader.parity_refused
        if left is not None:
            left -= printed
        if not report.ok:
            say(skipped(report, file.label))
        if refused is None:
            return report_status(report)
        say(f"{printable(sidecar or f'the sidecar of {file.label}')}: refused: {PARITY_REFUSED[refused]}.")
        return Status.DAMAGED

    status = max(named.status, each(named.files, spool_limit=spool_limit, action=show, segments=named.segments))
    for line, record in ending or ():
        sys.stdout.write(line(record) + "\n")
    if not is_any_printed and (remark := options.compared_as_written(given)) is not None:
        say(remark)
    if left == 0 or not wanted.missing:
        return status
    say("\n".join(wanted.missing_said()))
    return max(status, Status.DAMAGED)


def _check_columns(chosen: Sequence[str], reader: Reader) -> None:
    """Refuse columns that a file does not have."""
    names = reader.schema.names
    for name in chosen:
        if name not in names and name not in completing.EVERYWHERE:
            known = ", ".join([*names, *completing.EVERYWHERE])
            raise click.UsageError(f"{reader.format} records have no column {name!r}: there are {known}")


def _print(records: Iterable[Record], line: _Line, limit: int | None) -> int:
    """Print up to `limit` records and return how many."""
    write = sys.stdout.write
    printed = 0
    for record in islice(records, limit):
        write(line(record) + "\n")
        printed += 1
    return printed


def _keep(records: Iterable[Record], line: _Line, ending: deque[tuple[_Line, Record]]) -> int:
    """Keep the last records of all files, as many as they may be, and return how many there were."""
    seen = 0
    for record in records:
        ending.append((line, record))
        seen += 1
    return seen


_WRITTEN: dict[tuple[str, ...], str] = {
    ("uuid",): "UUID, such as 1eeafd69-9b8a-6cee-b9f1-1b8e6a30ade3",
    ("partition", "tenant", "index"): "PARTITION/TENANT/INDEX, such as 3/acme/0",
}
# How the values of identifiers are written, and what reads them. Texts may have slashes.
_IDENTIFIERS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "uuid": ("([^/]*)", uuid.UUID),
    "text": ("(.*)", values.argument_text),
    "int64": ("([0-9]{1,20})", int),
    "uint64": ("([0-9]{1,20})", int),
}


def identifier(format: Format, text: str) -> tuple[Any, ...]:
    """What to hand to `Reader.get` for an ID as it stands on the command line.

    Raises:
        click.UsageError: records of this format are not found by anything of the kind.
    """
    by_name = {"position": "int64", **column_kinds(format)}
    own = [_IDENTIFIERS[by_name[name]] for name in format.identifier]
    match = re.fullmatch("/".join(pattern for pattern, _ in own), text, re.DOTALL)
    if match:
        try:
            return tuple(read(part) for (_, read), part in zip(own, match.groups(), strict=True))
        except ValueError:
            pass
    names = format.identifier
    written = "/".join(names).upper() if len(names) > 1 else f"{', '.join(names)}: a number"
    raise click.UsageError(
        f"--get {text!r}: records of this {format.name} file are found by {_WRITTEN.get(names, written)}"
    )


class Wanted:
    """The IDs that are looked for in one file after the other, and which of them were in none."""

    def __init__(self, ids: Sequence[str]) -> None:
        self.missing: list[str] = list(dict.fromkeys(ids))
        """What was found in no file so far, in the order of the command line."""
        self._ids = ids
        self._unproven: set[str] = set()

    def found_in(self, reader: Reader, identifiers: Sequence[tuple[Any, ...]]) -> Iterator[Record]:
        """The records of a file that are wanted, in the order of the command line."""
        for text, identifier in zip(self._ids, identifiers, strict=True):
            try:
                record = reader.get(*identifier)
            except DamageError:
                self._unproven.add("damage")
                raise
            if record is not None:
                if text in self.missing:
                    self.missing.remove(text)
                yield record
        if reader.unproven:
            self._unproven.add(reader.unproven)

    def missing_said(self) -> list[str]:
        """A line for each ID that was not found."""
        remark = ""
        if "unchecked" in self._unproven:
            remark = ", as far as a file without checksums can tell"
        if "damage" in self._unproven:
            remark = ", unless it is where a file is damaged"
        return [f"{printable(text)}: no such record{remark}" for text in self.missing]
