"""`seglake log write`: append the lines of standard input."""

from __future__ import annotations

import os
import re
from functools import partial
from itertools import repeat, takewhile
from typing import TYPE_CHECKING, Any, cast

import click

from seglake import _values as values

from .. import options
from ..help_groups import Command
from .folder import DURATION, opened, tell_recovered
from .json_lines import write_json
from .standard_input import LongLineError, RefusedError, write_input

if TYPE_CHECKING:
    from datetime import timedelta
    from uuid import UUID

    from seglake import SegmentLog
    from seglake._types import ProfileName

_MOST_TYPE_BYTES = 255
_ESCAPE = re.compile(rb"\\x[0-9a-fA-F]{2}")


_EXAMPLES = """
\b
Examples:
  tail -F app.log | seglake log write --type app.line logs
  producer | seglake log write --json logs
  seglake log write --durability flush --segment-bytes 256MiB logs < events.txt
"""


@click.command(cls=Command, epilog=_EXAMPLES)
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
@click.option(
    "--max-clock-ahead",
    metavar="TIME",
    type=DURATION,
    default="1d",
    show_default=True,
    help="Refuse a record whose time is further ahead of the clock: all later ones would get its time.",
)
@click.option(
    "--segment-age",
    metavar="TIME",
    type=DURATION,
    help="A segment ends before a record so much later than its first: 15m, 12h. [default: no limit]",
)
@click.option(
    "--segment-bytes",
    metavar="SIZE",
    type=options.SIZE,
    default="64MiB",
    show_default=True,
    help="A segment ends before it is larger.",
)
@options.protection
@click.option(
    "--line-bytes",
    metavar="SIZE",
    type=options.SIZE,
    default="64MiB",
    show_default=True,
    help="The longest line; a record takes at most 4GiB.",
)
@options.key_file()
@options.debug
def command(
    path: str,
    type_: str,
    as_json: bool,
    durability: str,
    segment_bytes: int,
    segment_age: timedelta | None,
    max_clock_ahead: timedelta,
    protect: bool,
    profile: ProfileName | None,
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

    def plain(log: SegmentLog, block: bytes) -> tuple[int, UUID | None]:
        from seglake.exceptions import RowError

        lines = block.removesuffix(b"\n").split(b"\n")
        fitting = takewhile(lambda line: len(line) <= line_bytes, lines)
        try:
            uuids = log.write_batch(zip(repeat(values.argument_text(type_)), fitting, strict=False))
        except RowError as error:
            raise RefusedError(str(error.__cause__)) from error  # by the log, whatever the line is
        if len(uuids) < len(lines):
            raise LongLineError(line_bytes)
        return len(uuids), uuids[-1] if uuids else None

    with opened(
        path,
        key,
        durability=cast("Any", durability),
        segment_bytes=segment_bytes,
        segment_age=segment_age,
        max_clock_ahead=max_clock_ahead,
        protect=options.chosen_profile(protect=protect, profile=profile),
    ) as log:
        tell_recovered(log, path)
        write = partial(write_json, line_bytes=line_bytes) if as_json else plain
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
