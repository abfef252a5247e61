"""Options that say how files are to be understood, and which of their records are wanted.

Each is named like the library's argument, which is its to judge: what concerns no file of the command line's is refused
or ignored by the same rules as in Python.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import click

from .options import Command, key_file, parse_bound, parse_size, segment_format, whole_number

NO_INDEX = "none"
DEFAULT_DIALECT = "draft"
_MAX_OFFSET = 2**63 - 1
_MAX_PARTITION = 2**32 - 1


def given(options: dict[str, Any]) -> dict[str, Any]:
    """The options that are on the command line, to be handed to the library as they are."""
    return {name: value for name, value in options.items() if value is not None}


def only(options: dict[str, Any], *names: str) -> dict[str, Any]:
    """Those of the options that are on the command line that a function of these argument names takes."""
    return {name: value for name, value in given(options).items() if name in names}


def concerns(format_name: str, **option: Any) -> bool:
    """Whether an option of reading is for files of a format: the library, which refuses it elsewhere, knows."""
    import seglake

    how: dict[str, Any] = {"format": format_name, "on_damage": "skip", **option}
    try:
        with seglake.open(b"", **how):
            return True
    except ValueError:
        return False


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


def max_record_bytes(command: Command) -> Command:
    """`--max-record-bytes`: the largest record that is given out."""
    return click.option(
        "--max-record-bytes", metavar="SIZE", type=parse_size, help="Refuse records larger than this. [default: 2GiB]"
    )(command)


def max_chunk_bytes(command: Command) -> Command:
    """`--max-chunk-bytes`: the largest chunk that is decoded into memory."""
    return click.option(
        "--max-chunk-bytes",
        metavar="SIZE",
        type=parse_size,
        help="Decode chunks with more content than this twice, instead of into memory. [default: 64MiB]",
    )(command)


def limit_chunk_bytes(command: Command) -> Command:
    """`--limit-chunk-bytes`: the largest chunk that is decoded at all."""
    return click.option(
        "--limit-chunk-bytes",
        metavar="SIZE",
        type=parse_size,
        help="Refuse chunks with more content than this. [default: 1GiB]",
    )(command)


def limits(command: Command) -> Command:
    """All limits of a reader."""
    for option in (limit_chunk_bytes, max_chunk_bytes, max_record_bytes):
        command = option(command)
    return command


def on_damage(command: Command) -> Command:
    """`--on-damage`: stop or go on."""
    return click.option(
        "--on-damage",
        type=click.Choice(["raise", "skip"]),
        default="raise",
        show_default=True,
        help="Stop at the first damage, or go on behind it and say at the end what was skipped.",
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
        click.option("--until", metavar="WHEN", type=parse_bound, help="Up to this time or UUID, without it."),
        click.option(
            "--since", metavar="WHEN", type=parse_bound, help="From this time (ISO 8601, with zone) or UUID on."
        ),
    ):
        command = option(command)
    return command


WANTED = ("since", "until", "start_offset", "end_offset", "partitions", "tenants", "types")
"""The names of the arguments that `wanted` gives."""


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
