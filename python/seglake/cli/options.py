"""Options that several commands share, and what is typed for them."""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast

import click

from seglake._filters import FILTER_OPTIONS, conditions

from . import failure
from .render import column_kinds

if TYPE_CHECKING:
    from seglake._filters import Condition

    from .inputs import Input

__all__ = ["given_for", "typed_conditions"]

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


def overwrite(command: Command) -> Command:
    """`--overwrite`."""
    return click.option(
        "--overwrite", is_flag=True, help="Replace the file if it exists, once the new one is complete."
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


_INTEGER = re.compile(r"-?[0-9]{1,20}|0[xX][0-9a-fA-F]{1,16}")
NOW = "now"
NULL = "null"


def parse_settings(
    _context: click.Context | None, _parameter: click.Parameter | None, given: Sequence[str]
) -> dict[str, str]:
    """The names and values of `NAME=VALUE`, as text.

    Raises:
        click.BadParameter: one is nothing of the kind, or a name is there twice.
    """
    settings: dict[str, str] = {}
    for setting in given:
        name, equals, value = setting.partition("=")
        if not (name and equals):
            raise click.BadParameter(f"{setting!r} is not NAME=VALUE, such as type=order")
        if name in settings:
            raise click.BadParameter(f"{name} is set twice")
        settings[name] = value
    return settings


def typed(settings: Mapping[str, str], kinds: Mapping[str, str]) -> dict[str, Any]:
    """The values as the library takes them. Names of no column are left for the library to refuse.

    Raises:
        click.BadParameter: a value is not of its column's kind.
    """
    return {name: _typed(name, text, kinds.get(name)) for name, text in settings.items()}


def _typed(name: str, text: str, kind: str | None) -> Any:
    if kind in ("uuid", "timestamp") and text == NOW:
        # What the library makes values of the present of.
        return None
    # In text and bytes the letters are what they say.
    if kind not in ("text", "binary") and text == NULL:
        return None
    return typed_value(name, text, kind, hint="--set")


def typed_value(name: str, text: str, kind: str | None, *, hint: str) -> Any:
    """The value of a column of this kind that a text stands for.

    Raises:
        click.BadParameter: the text is not a value of that kind; `hint` is the option that it was given with.
    """
    parse = _PARSERS.get(kind, shown_bytes)
    try:
        return parse(text)
    except click.BadParameter as error:
        raise click.BadParameter(f"{name}: {error.message}", param_hint=hint) from error
    except ValueError as error:
        raise click.BadParameter(f"{name}={text}: {error}", param_hint=hint) from error


def _uuid(text: str) -> uuid.UUID:
    try:
        return uuid.UUID(text)
    except ValueError:
        raise ValueError("not a UUID; `now` makes a new one for each record") from None


def _time(text: str) -> datetime | int:
    if _INTEGER.fullmatch(text):
        return int(text, 0)
    bound = parse_bound(text)
    if isinstance(bound, uuid.UUID):
        raise ValueError("not a time: give ISO 8601 with a zone, microseconds since 1970, or `now`")
    return bound


def _integer(text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise ValueError("not a whole number")
    return int(text, 0) if "x" in text.lower() else int(text)


def _boolean(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError("neither true nor false")
    return text == "true"


def _bytes(text: str) -> bytes:
    known = shown_bytes(text)
    return known.encode() if isinstance(known, str) else known


def _json(text: str) -> Any:
    try:
        return json.loads(text, object_hook=_bytes_within, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error}") from None


def _bytes_within(fields: dict[str, Any]) -> Any:
    """`{"hex": "..."}` and `{"base64": "..."}` as bytes: JSON has none of its own."""
    if len(fields) != 1:
        return fields
    [(name, text)] = fields.items()
    if name not in _BYTES or not isinstance(text, str):
        return fields
    try:
        return _BYTES[name](text)
    except (ValueError, binascii.Error):
        raise ValueError(f"{text!r} is not {name}") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_BYTES: dict[str, Callable[[str], bytes]] = {
    "hex": bytes.fromhex,
    "base64": lambda text: base64.b64decode(text, validate=True),
}
_PARSERS = cast(
    "dict[str | None, Callable[[str], Any]]",
    {
        "uuid": _uuid,
        "timestamp": _time,
        "text": shown_bytes,
        "binary": _bytes,
        "int64": _integer,
        "uint64": _integer,
        "boolean": _boolean,
        "list": _json,
        "struct": _json,
    },
)


def given_for(file: Input, options: dict[str, Any]) -> dict[str, Any]:
    """The options that are on the command line, as the library's arguments for one file.

    Raises:
        click.BadParameter: a value of `--where` is not of its column's kind, or there is no such column.
        seglake.FormatError: the file's format is needed to know that, and cannot be told.
    """
    arguments = given({name: value for name, value in options.items() if name != "where"})
    if not options["where"]:
        return arguments
    import seglake

    how = only(options, "format", "dialect", "key")
    with seglake.open(file.from_start(), on_damage="skip", **how) as reader:
        name = reader.format
    filters = arguments.setdefault("filters", [])
    filters += typed_conditions(options["where"], name, options["dialect"])
    return arguments


def typed_conditions(given: Sequence[tuple[str, str, str]], format: str, dialect: Any) -> list[Condition]:
    """The conditions of `--where` with values of their columns' kinds.

    Raises:
        click.BadParameter: as `given_for`.
    """
    import seglake

    kinds = column_kinds(seglake.formats(dialect=dialect)[format])
    found: list[Condition] = []
    for column, operator, text in given:
        if column not in kinds:
            raise click.BadParameter(
                f"{format} records have no column {column}: there are {', '.join(kinds)}", param_hint="--where"
            )
        found.append((column, operator, typed_value(column, text, kinds[column], hint="--where")))
    return found
