"""Options and argument types that several commands share."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import click

from . import failure

Bound = datetime | uuid.UUID
"""Where a range of records begins or ends."""

Command = TypeVar("Command", bound=Callable[..., Any])
"""A function that click makes a command of."""

_SIZE = re.compile(r"([0-9]{1,18})\s*([KMGTP]i?B?|B)?", re.IGNORECASE)
_DECIMAL = re.compile(r"[0-9]{1,20}")
_KEY = re.compile(r"\s*[0-9a-fA-F]{64}\s*")
_OFFSET = re.compile(r"[0-9]{1,20}|0[xX][0-9a-fA-F]{1,16}")
_POWERS = {"": 0, "B": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}


def parse_size(text: str) -> int:
    """A number of bytes above 0: `4096`, `64KiB`; K, M, G, T and P are powers of 1024.

    Raises:
        click.BadParameter: the text is nothing of the kind.
    """
    match = _SIZE.fullmatch(text.strip())
    number = int(match[1]) * 1024 ** _POWERS[(match[2] or "")[:1].upper()] if match else 0
    if number == 0:
        raise click.BadParameter(f"{text!r} is not a size: give a number of bytes, or one with a unit, such as 64MiB")
    return number


def parse_offset(text: str) -> int:
    """An offset in a file in bytes: decimal, or hexadecimal with `0x`.

    Raises:
        click.BadParameter: the text is nothing of the kind.
    """
    if not _OFFSET.fullmatch(text):
        raise click.BadParameter(f"{text!r} is not an offset: give a number of bytes, such as 225 or 0xe1")
    return int(text, 0) if text[:2].lower() == "0x" else int(text)


def whole_number(most: int) -> Callable[[str], int]:
    """A parser of decimal numbers from 0 to `most`, which raises click.BadParameter for all else."""

    def parse(text: str) -> int:
        if not (_DECIMAL.fullmatch(text) and int(text) <= most):
            raise click.BadParameter(f"{text!r} is not a whole number from 0 to {most}")
        return int(text)

    return parse


def parse_bound(text: str) -> Bound:
    """An instant in ISO 8601 with its zone, or the UUID of a record.

    Raises:
        click.BadParameter: the text is neither, or a time without a zone.
    """
    try:
        return uuid.UUID(text)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is neither an ISO 8601 time, such as 2024-01-10T16:00:00Z, nor a UUID"
        ) from None
    if moment.tzinfo is None:
        complete = moment.isoformat()
        raise click.BadParameter(f"{text!r} has no time zone: write {complete}Z for UTC, or {complete}+01:00")
    return moment


class _KeyFile(click.Path):
    """The path of a key file. A key in its place is refused without being repeated."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str) and _KEY.fullmatch(value) and not Path(value).exists():
            self.fail("expected the path of a file: this is 64 hexadecimal digits, a key itself", param, ctx)
        return super().convert(value, param, ctx)


def key_file(command: Command) -> Command:
    """`--key-file`: the only way to name a key on the command line, since arguments show in process lists."""
    return click.option(
        "--key-file",
        "key",
        metavar="FILE",
        type=_KeyFile(exists=True, dir_okay=False, allow_dash=False),
        help="The key: a file of 64 hex digits or 32 raw bytes. Without it the environment variable SEGLAKE_KEY "
        "(64 hex digits) is used, and where that is not set the public default key.",
    )(command)


def check_key(key: str | None) -> None:
    """Refuse a key that cannot be used before any file is read: it would fail for each of them.

    Raises:
        ValueError: the key file or SEGLAKE_KEY is malformed; the message does not show what it holds.
        OSError: the key file cannot be read.
    """
    import seglake

    seglake.detect(b"", key=key)


def segment_format(command: Command) -> Command:
    """`--format`: names are the library's to judge."""
    return click.option("--format", metavar="NAME", help="The segment's format. [default: told from its bytes]")(
        command
    )


def spool_limit(command: Command) -> Command:
    """`--spool-limit`: how much of a pipe is copied to a temporary file."""
    return click.option(
        "--spool-limit",
        metavar="SIZE",
        type=parse_size,
        default="4GiB",
        show_default=True,
        help="The most that is copied to a temporary file when reading a pipe.",
    )(command)


def debug(command: Command) -> Command:
    """`--debug`: tracebacks for errors."""

    def switch(_context: click.Context, _parameter: click.Parameter, value: bool) -> None:
        if value:
            failure.show_tracebacks()

    return click.option(
        "--debug",
        is_flag=True,
        envvar="SEGLAKE_DEBUG",
        expose_value=False,
        is_eager=True,
        callback=switch,
        help="Show where in the code an error came from. Also: SEGLAKE_DEBUG=1.",
    )(command)


def as_json(text: str) -> Callable[[Command], Command]:
    """`--json`, with what one line of it holds."""
    return click.option("--json", "as_json", is_flag=True, help=text)
