"""Options that say how files are to be understood, and which of their records are wanted.

Each is named like the library's argument, which is its to judge: what concerns no file of the command line's is refused
or ignored by the same rules as in Python.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

import click

from seglake._filters import FILTER_OPTIONS, conditions

from .options import Command, key_file, parse_bound, parse_size, segment_format, whole_number

NO_INDEX = "none"
DEFAULT_DIALECT = "draft"
_MAX_OFFSET = 2**63 - 1
_CONDITION = re.compile(r"(\w+)\s*(==|=|!=|<=|>=|<|>)\s*(.*)", re.DOTALL)
_MAX_PARTITION = 2**32 - 1


def given(options: dict[str, Any]) -> dict[str, Any]:
    """The options that are on the command line, as the library's arguments."""
    arguments = {name: value for name, value in options.items() if value is not None and name not in FILTER_OPTIONS}
    filters = conditions(options)
    if filters:
        arguments["filters"] = list(filters.values())
    return arguments


def only(options: dict[str, Any], *names: str) -> dict[str, Any]:
    """Those of the options that are on the command line that a function of these argument names takes."""
    return {name: value for name, value in given(options).items() if name in names}


def layout(command: Command) -> Command:
    """`--format`, `--dialect` and `--key-file`: what it takes to make sense of a file's bytes."""
    for option in (key_file, dialect, segment_format):
        command = option(command)
    return command


def dialect(command: Command) -> Command:
    """`--dialect`: names are the library's to judge."""
    return click.option(
        "--dialect",
        metavar="NAME",
        help="How an oplog's messages are laid out, which its bytes do not tell: draft, draft-1.1 or autobase. "
        "[default: draft]",
    )(command)


def index(command: Command) -> Command:
    """`--index`: a path, or `none`."""
    return click.option(
        "--index",
        metavar="PATH|none",
        callback=_index,
        help="The index of a chunked file. [default: the file beside it, if there is one]",
    )(command)


def check_index(options: dict[str, Any], files: Sequence[str]) -> None:
    """Refuse one index for several files.

    Raises:
        click.UsageError: an index is named and there is more than one file.
    """
    if options["index"] and len(files) > 1:
        raise click.UsageError("--index is the index of one file: name one file, or use --index none")


def limits(command: Command) -> Command:
    """`--limits`: how much is read at once or at most."""
    return click.option(
        "--limits",
        metavar="NAME=SIZE",
        multiple=True,
        callback=_limits,
        help="Another limit than the usual: record_bytes (2GiB), chunk_bytes (1GiB) and chunk_memory_bytes (64MiB) of "
        "chunked files; can be given again.",
    )(command)


def on_damage(command: Command) -> Command:
    """`--on-damage`: stop or go on."""
    return click.option(
        "--on-damage",
        type=click.Choice(["stop", "skip"]),
        default="stop",
        callback=_on_damage,
        show_default=True,
        help="Stop at the first damage, or go on after it and say at the end what was skipped.",
    )(command)


def wanted(command: Command) -> Command:
    """Which records: by time or UUID, by offset, by partition and tenant, by type."""
    offset = whole_number(_MAX_OFFSET)
    for option in (
        click.option(
            "--type",
            "types",
            metavar="TYPE",
            multiple=True,
            callback=_names,
            help=r"Of this type, as cat shows it (\xNN is a byte); can be given again.",
        ),
        click.option(
            "--tenant",
            "tenants",
            metavar="ID",
            multiple=True,
            callback=_names,
            help=r"Of this tenant, as cat shows it (\xNN is a byte); can be given again.",
        ),
        click.option(
            "--partition",
            "partitions",
            metavar="ID",
            multiple=True,
            type=whole_number(_MAX_PARTITION),
            callback=_partitions,
            help="Of this partition; can be given again.",
        ),
        click.option("--end-offset", metavar="N", type=offset, help="Up to this message offset, without it."),
        click.option("--start-offset", metavar="N", type=offset, help="From this message offset on."),
        click.option(
            "--where",
            metavar="'COLUMN OP VALUE'",
            multiple=True,
            callback=_where,
            help="Of which this is true, such as 'offset >= 500': ==, !=, <, <=, >, >=; can be given again.",
        ),
        click.option("--until", metavar="WHEN", type=parse_bound, help="Up to this time or UUID, without it."),
        click.option(
            "--since", metavar="WHEN", type=parse_bound, help="From this time (ISO 8601, with zone) or UUID on."
        ),
    ):
        command = option(command)
    return command


def _limits(_context: click.Context, _parameter: click.Parameter, given: Sequence[str]) -> dict[str, int] | None:
    limits: dict[str, int] = {}
    for limit in given:
        name, equals, size = limit.partition("=")
        if not (name and equals):
            raise click.BadParameter(f"{limit!r} is not NAME=SIZE, such as record_bytes=64MiB")
        limits[name] = parse_size(size)
    return limits or None


def _where(
    _context: click.Context, _parameter: click.Parameter, given: Sequence[str]
) -> list[tuple[str, str, str]] | None:
    conditions: list[tuple[str, str, str]] = []
    for condition in given:
        match = _CONDITION.fullmatch(condition.strip())
        if match is None:
            raise click.BadParameter(f"{condition!r} is not COLUMN OP VALUE, such as 'offset >= 500'")
        conditions.append((match[1], match[2], match[3]))
    return conditions or None


def _on_damage(_context: click.Context, _parameter: click.Parameter, value: str) -> str:
    """Return what the library calls it: a program raises where a command stops."""
    return "raise" if value == "stop" else value


def _index(_context: click.Context, _parameter: click.Parameter, text: str | None) -> str | bool | None:
    return False if text == NO_INDEX else text


def _partitions(_context: click.Context, _parameter: click.Parameter, ids: Sequence[int]) -> list[int] | None:
    return list(ids) or None


def _names(_context: click.Context, _parameter: click.Parameter, names: Sequence[str]) -> list[str | bytes] | None:
    return [shown_bytes(name) for name in names] or None


def shown_bytes(text: str) -> str | bytes:
    """Text of the command line as the library takes it: as bytes where it is not UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return os.fsencode(text)
    return text
