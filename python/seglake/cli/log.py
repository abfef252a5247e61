"""`seglake log`: a durable log, from writing to following."""

from __future__ import annotations

import json
import os
import re
import select
import sys
from collections.abc import Callable, Generator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from seglake import _values as values

from . import options
from .failure import OutputClosedError, Status, Trouble, say
from .log_write import LongLineError, RefusedError, write_input
from .render import (
    Fields,
    JsonLines,
    Lines,
    PlainLines,
    ValueForm,
    columns_for_people,
    count,
    exact_size,
    json_text,
    number_columns,
    printable,
    table,
)

if TYPE_CHECKING:
    from uuid import UUID

    from seglake import Record, SegmentLog, Tail
    from seglake._native import ListedSegment
    from seglake._types import ProfileName

_Command = TypeVar("_Command", bound=Callable[..., Any])

_MOST_TYPE_BYTES = 255
_ESCAPE = re.compile(rb"\\x[0-9a-fA-F]{2}")
# How long it may take to notice that nobody reads the output any more.
_OUTPUT_CHECK_S = 0.5
_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}


def _seconds(text: str) -> float:
    """Read a time such as `90s`, `15m`, `12h` or `7d`.

    Raises:
        WrongValueError: it is something else.
    """
    for unit, seconds in _UNITS.items():
        number = text.removesuffix(unit)
        if number != text and number.isascii() and number.isdigit() and len(number) < 10:
            return int(number) * seconds
    raise values.WrongValueError(text, "a time such as 90s, 15m, 12h or 7d")


_DURATION = options.Typed(_seconds)


_folder = click.argument("path", metavar="DIR", type=click.Path(exists=True, file_okay=False))


class _Group(click.Group):
    """Lists its commands in the order of a log's life."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


_EXAMPLES = """
\b
Examples:
  producer | seglake log write logs
  seglake log tail logs
  seglake log info logs
  seglake log verify logs
"""


@click.group(cls=_Group, epilog=_EXAMPLES, short_help="Write, follow and check a log, a folder of segments.")
@options.debug
def command() -> None:
    """Write, follow and check a log: a folder of segments, one of which is written.

    A log has one writer and any number of readers. Its segments are active and sealed files, which all other commands
    read, too. DIR is the folder.

    Exit status: 0 all sound, 1 damage was met, 2 error.
    """


def _opened(path: str, key: str | None, **how: Any) -> SegmentLog:
    import seglake

    options.check_key(key)
    return seglake.SegmentLog(path, key=key, **how)


def _reading(path: str, key: str | None) -> SegmentLog:
    log = _opened(path, key, readonly=True)
    if not log.segments() and not (Path(path) / "_mark").exists():
        raise Trouble(
            f"{printable(path)}: expected a log, found a folder without segments\n"
            "  next      name the folder of a log; `seglake log write DIR` makes one"
        )
    return log


def _tell_recovered(log: SegmentLog, path: str) -> None:
    """Say what opening the log put in order."""
    for step in log.recovered:
        where = f"{printable(path)}: segment {step.sequence}"
        if step.kind == "torn_tail":
            size = exact_size(step.nbytes or 0)
            say(f"{where}: moved a torn tail of {size} at offset {step.byte_offset} into a file beside it")
        elif step.kind == "frozen":
            say(f"{where}: is damaged and kept as it is, writing goes on in a new one: {printable(step.reason or '')}")


def _segment_options(command: _Command) -> _Command:
    for option in (
        click.option(
            "--segment-bytes",
            metavar="SIZE",
            type=options.SIZE,
            default="64MiB",
            show_default=True,
            help="A segment ends before it is larger.",
        ),
        click.option(
            "--segment-age",
            metavar="TIME",
            type=_DURATION,
            help="A segment ends before a record so much later than its first: 15m, 12h. [default: no limit]",
        ),
    ):
        command = option(command)
    return command


_WRITE_EXAMPLES = """
\b
Examples:
  tail -F app.log | seglake log write --type app.line logs
  producer | seglake log write --json logs
  seglake log write --durability flush --segment-bytes 256MiB logs < events.txt
"""


@command.command(epilog=_WRITE_EXAMPLES)
@click.argument("path", metavar="DIR", type=click.Path(file_okay=False))
@click.option(
    "--type", "type_", metavar="TYPE", default="", help=r"The type of the records (\xNN is a byte). [default: empty]"
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Each line is a JSON object: type, and value (text) or value_base64; perhaps uuid, or timestamp (ISO 8601). "
    "Other keys are refused.",
)
@click.option(
    "--durability",
    type=click.Choice(["fsync", "flush", "none"]),
    default="fsync",
    show_default=True,
    help="What is waited for before more lines are read: the disk, the operating system, or nothing.",
)
@_segment_options
@options.protection
@click.option(
    "--protect-active", is_flag=True, help="With --protect: a sidecar of the segment that is being written, too."
)
@click.option(
    "--line-bytes",
    metavar="SIZE",
    type=options.SIZE,
    default="64MiB",
    show_default=True,
    help="The longest line; a record takes at most 4GiB.",
)
@options.key_file
@options.debug
def write(
    path: str,
    type_: str,
    as_json: bool,
    durability: str,
    segment_bytes: int,
    segment_age: float | None,
    protect: bool,
    profile: ProfileName | None,
    protect_active: bool,
    line_bytes: int,
    key: str | None,
) -> int:
    """Append the lines of standard input to a log, a record each.

    A record has no line break. Lines that come together are written together, and share a sync. The log is made if
    there is none.

    Ctrl-C or SIGTERM ends it once the lines that have come are on the disk. After an error the message says how many
    lines are on the disk, so that you can go on with the next.

    Exit status: 0 all lines are in the log, 2 error, 130 Ctrl-C, 143 SIGTERM.
    """
    _check_type(type_)
    if protect_active and not protect:
        raise click.UsageError("--protect-active extends what is protected: give --protect, too")

    def plain(log: SegmentLog, block: bytes) -> tuple[int, UUID | None]:
        from seglake import SeglakeError
        from seglake._native import write_lines

        try:
            return write_lines(log, values.argument_text(type_), block, line_bytes)
        except ValueError as error:
            if isinstance(error, SeglakeError):
                raise
            raise LongLineError(line_bytes) from error  # nothing else of a line is refused

    with _opened(
        path,
        key,
        durability=cast("Any", durability),
        segment_bytes=segment_bytes,
        segment_age=segment_age,
        protect=options.chosen_profile(protect=protect, profile=profile),
        protect_active=protect_active,
    ) as log:
        _tell_recovered(log, path)
        write = partial(_write_json, line_bytes=line_bytes) if as_json else plain
        return write_input(log, write, key=key, durability=durability, line_bytes=line_bytes)


def _check_type(type_: str) -> None:
    """Refuse a type that no record can have before anything is read."""
    unescaped = _ESCAPE.sub(b".", os.fsencode(type_))
    if b"\\" in unescaped:
        raise click.BadParameter(r"a backslash begins \xNN, a byte: write \x5c for a backslash", param_hint="--type")
    if len(unescaped) > _MOST_TYPE_BYTES:
        raise click.BadParameter(
            f"expected at most {_MOST_TYPE_BYTES} bytes, found {len(unescaped)}", param_hint="--type"
        )


def _write_json(log: SegmentLog, block: bytes, *, line_bytes: int) -> tuple[int, UUID | None]:
    """Write a block of JSON lines.

    Raises:
        RefusedError: a line is none. Those before it are written.
        LongLineError: a line is longer than allowed. Those before it are written.
        ValueError: the log refuses a record. Those before it are written.
    """
    from seglake import RowError

    records: list[Any] = []
    refused: RefusedError | None = None
    for line in block.removesuffix(b"\n").split(b"\n"):
        try:
            if len(line) > line_bytes:
                raise LongLineError(line_bytes)
            records.append(_json_record(line))
        except RefusedError as error:
            refused = error
            break
        except ValueError as error:
            refused = RefusedError(str(error))
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
    kinds = {"type": "text", "value": "binary", "uuid": "uuid", "timestamp": "timestamp"}
    out: dict[str, Any] = {}
    for name, value in fields.items():
        if not isinstance(value, str):
            raise ValueError(f"expected text as {name}, not {type(value).__name__}")
        if name == "value":
            out["value"] = value.encode()
        elif name == "value_base64":
            out["value"] = _from_base64(value)
        elif name == "type":
            out["type"] = value
        else:
            out[name] = values.column_value(kinds[name], value)
    return out


def _from_base64(text: str) -> bytes:
    import base64

    return base64.b64decode(text, validate=True)


_TAIL_EXAMPLES = """
\b
Examples:
  seglake log tail logs
  seglake log tail --from start --no-follow --json logs
  seglake log tail --from 1eeafd69-b6b0-69f3-b9f1-1b8e6a30ade3 logs
"""


@command.command(epilog=_TAIL_EXAMPLES)
@_folder
@click.option(
    "--from",
    "from_",
    metavar="WHERE",
    default="now",
    show_default=True,
    help="Where to begin: now, start, or after the record of this UUID.",
)
@click.option("--no-follow", is_flag=True, help="Stop at the last record instead of waiting for more.")
@click.option("--limit", metavar="N", type=click.IntRange(min=0), help="Stop after so many records.")
@options.as_json("One JSON object a line; its keys are the column names.")
@click.option(
    "--value",
    "form",
    type=click.Choice(["text", "json", "hex", "base64"]),
    help="How values are written; what is not UTF-8 (or not JSON) has the key value_base64 in --json. [default: text]",
)
@options.key_file
@options.debug
def tail(
    path: str, from_: str, no_follow: bool, limit: int | None, as_json: bool, form: ValueForm | None, key: str | None
) -> int:
    """Print the records of a log as they come to the disk.

    The writer may be another process. What is printed is on the disk: no crash takes it back. Ctrl-C ends it, and
    so does a closed pipe.

    Exit status: 0 all sound, 1 damage was met, 2 error.
    """
    with _reading(path, key) as log:
        try:
            follower = log.tail(cast("Any", from_))
        except ValueError as error:
            raise click.UsageError(f"--from is now, start or a UUID: {printable(str(error))}") from error
        lines = _lines(path, as_json=as_json, form=form)
        try:
            # With a limit of 0 nothing is waited for.
            for number, record in enumerate(_followed(follower, waits=not no_follow) if limit != 0 else (), start=1):
                sys.stdout.write(lines.line(record) + "\n")
                if number == limit:
                    break
        except KeyboardInterrupt:
            if no_follow:
                raise
            return Status.INTERRUPTED  # the way to end it, so nothing is said
    return Status.SOUND


def _followed(follower: Tail, *, waits: bool) -> Generator[Record]:
    """Yield records. Before waiting for one, show those that were yielded, and end if nobody reads them."""
    while True:
        record = follower.poll()
        if record is None:
            sys.stdout.flush()
            if not waits:
                return
            while (record := follower.poll(_OUTPUT_CHECK_S)) is None:
                if _is_output_closed():
                    raise OutputClosedError
        yield record


def _is_output_closed() -> bool:
    """Whether the reader of a pipe has gone, which a program that writes nothing does not notice by itself."""
    if sys.platform == "win32":
        return False
    try:
        output = sys.stdout.fileno()
    except (OSError, ValueError):
        return False  # not a file
    poll = select.poll()
    poll.register(output, 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def _lines(path: str, *, as_json: bool, form: ValueForm | None) -> Lines:
    import seglake

    format = seglake.formats()["active"]
    names = [column.name for column in format.columns]
    fields = Fields(path)
    if as_json:
        # What `log write --json` takes.
        return JsonLines(names, form or "text", fields)
    shown = columns_for_people(format)
    return PlainLines(shown, form or "text", fields, numbers=number_columns(format), stream=sys.stdout, file_bytes=0)


_INFO_EXAMPLES = """
\b
Examples:
  seglake log info logs
  seglake log info --json logs | jq .segments
  seglake log info --key-file key logs
"""


@command.command(epilog=_INFO_EXAMPLES, short_help="Show a log's segments, and how far it is on the disk.")
@_folder
@options.as_json("One JSON object.")
@options.key_file
@options.debug
def info(path: str, as_json: bool, key: str | None) -> int:
    """Show the segments of a log, and how far it is known to be on the disk.

    Exit status: 0 nothing is wrong with the folder, 1 a segment is frozen, since it is damaged, 2 error.
    """
    from seglake._native import list_log

    _reading(path, key).close()
    segments, synced = list_log(path, key=key)
    shown = [_facts(segment) for segment in segments]
    if as_json:
        mark = None if synced is None else {**synced._asdict(), "last": str(synced.last)}
        click.echo(json_text({"path": path, "synced": mark, "segments": shown}))
    else:
        nbytes = sum(segment.nbytes for segment in segments)
        click.echo(f"{printable(path)}: {count(len(segments), 'segment')}, {exact_size(nbytes)}")
        if synced is not None:
            click.echo(f"synced up to offset {synced.byte_offset:,} of segment {synced.sequence}, {synced.last}")
        rows = [
            (
                str(own["sequence"]),
                own["kind"] + (", frozen" if own["is_frozen"] else ""),
                f"{own['nbytes']:,}",
                own["first"],
            )
            for own in shown
        ]
        if rows:
            click.echo("")
            click.echo(table(("segment", "kind", "bytes", "first UUID"), rows, right=(0, 2)).plain)
    return Status.DAMAGED if any(segment.is_frozen for segment in segments) else Status.SOUND


def _facts(segment: ListedSegment) -> dict[str, Any]:
    return {
        "sequence": segment.sequence,
        "first": str(segment.first),
        "kind": "sealed" if segment.is_sealed else "active",
        "path": segment.path,
        "is_frozen": segment.is_frozen,
        "nbytes": segment.nbytes,
    }


_VERIFY_EXAMPLES = """
\b
Examples:
  seglake log verify logs
  seglake log verify --json logs
  seglake log verify --key-file key logs
"""


@command.command(epilog=_VERIFY_EXAMPLES)
@_folder
@options.as_json("One JSON object a line for each segment: the report.")
@options.key_file
@options.debug
def verify(path: str, as_json: bool, key: str | None) -> int:
    """Check every byte of a log's segments, and that none is missing.

    `seglake verify DIR`, of a log alone. What a writer has not synced yet is not read. `seglake verify FILE`
    explains the damage of one segment.

    Exit status: 0 all sound, 1 damage was found, 2 error.
    """
    from .verify import command as verify_files

    _reading(path, key).close()
    context = click.get_current_context()
    return context.invoke(verify_files, files=(path,), as_json=as_json, key=key, index=None, limits=None)


_SEAL_EXAMPLES = """
\b
Examples:
  seglake log seal logs
  seglake log seal --protect logs
  seglake log seal --key-file key logs
  seglake log seal logs && seglake log info logs
"""


@command.command(epilog=_SEAL_EXAMPLES, short_help="End the active segment, and wait until all are sealed.")
@_folder
@options.protection
@options.key_file
@options.debug
def seal(path: str, protect: bool, profile: ProfileName | None, key: str | None) -> int:
    """End the active segment of a log, and wait until all segments are sealed.

    With --protect, sealed segments that have no parity sidecar yet get one, too.

    Exit status: 0 all are sealed, 1 one is damaged and stays as it is, 2 error, such as another writer.
    """
    protection = options.chosen_profile(protect=protect, profile=profile)
    with _opened(path, key, protect=protection) as log:
        _tell_recovered(log, path)
        log.roll()
        log.wait_sealed()
        segments = log.segments()
    sealed = sum(segment.kind == "sealed" for segment in segments)
    click.echo(f"{printable(path)}: {sealed:,} of {count(len(segments), 'segment')} sealed")
    return Status.SOUND if sealed == len(segments) else Status.DAMAGED


_SNAPSHOT_EXAMPLES = """
\b
Examples:
  seglake log snapshot logs /backup/logs-2024-01-31
  seglake log snapshot --key-file key logs /backup/logs
  seglake log snapshot logs taken && seglake log verify taken
"""


@command.command(epilog=_SNAPSHOT_EXAMPLES, short_help="Copy a log to a new folder, also beside its writer.")
@_folder
@click.argument("to", metavar="DST", type=options.PATH)
@options.key_file
@options.debug
def snapshot(path: str, to: str, key: str | None) -> int:
    """Copy a log to DST, a new folder that is a log of its own, also beside a writer.

    DST has the records that are on the disk, and appears when it is complete. On the same file system sealed segments
    are linked, so that the snapshot takes hardly any room.

    Exit status: 0 done, 2 error.
    """
    import seglake

    seglake.SegmentLog(path, key=key, readonly=True).snapshot(to)
    taken = seglake.SegmentLog(to, key=key, readonly=True)
    click.echo(f"{printable(to)}: {count(len(taken.segments()), 'segment')}")
    return Status.SOUND


_RETAIN_EXAMPLES = """
\b
Examples:
  seglake log retain --age 30d logs
  seglake log retain --bytes 100GiB logs
  seglake log retain --age 12h --bytes 1TiB --key-file key logs
"""


@command.command(epilog=_RETAIN_EXAMPLES)
@_folder
@click.option("--age", metavar="TIME", type=_DURATION, help="Remove segments that are older: 12h, 30d.")
@click.option(
    "--bytes",
    "nbytes",
    metavar="SIZE",
    type=options.SIZE,
    help="Remove the oldest segments while all of them have more bytes.",
)
@options.key_file
@options.debug
def retain(path: str, age: float | None, nbytes: int | None, key: str | None) -> int:
    """Remove the oldest sealed and frozen segments of a log, for good. The newest segment stays.

    Exit status: 0 done, 2 error, such as another writer.
    """
    if age is None and nbytes is None:
        raise click.UsageError("give --age, --bytes or both")
    with _opened(path, key) as log:
        _tell_recovered(log, path)
        removed = log.retain(age=None if age is None else timedelta(seconds=age), bytes=nbytes)
    for segment in removed:
        click.echo(f"removed {printable(segment.path)}")
    click.echo(f"{printable(path)}: {count(len(removed), 'segment')} removed")
    return Status.SOUND
