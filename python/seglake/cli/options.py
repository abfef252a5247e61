"""Options that several commands share, and what is typed for them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar, get_args

import click

from seglake import _values as values
from seglake._types import ProfileName
from seglake.read.filters import FILTER_OPTIONS, MOST_OFFSET, MOST_PARTITION, conditions, plain

from . import completing, failure
from .render import printable

if TYPE_CHECKING:
    from seglake.read.filters import Condition

Command = TypeVar("Command", bound=Callable[..., Any])
"""A function that click makes a command of."""


class Option(Protocol):
    """What adds an option to a command."""

    def __call__(self, command: Command, /) -> Command:
        """Add it."""
        ...


def together(*options: Option) -> Option:
    """Several options as one, in their order."""

    def add(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add


_KEY = re.compile(r"\s*[0-9a-fA-F]{64}\s*")


class Typed(click.ParamType[Any]):
    """An argument that is read by a function of `seglake._values`, or by one that takes more than the text."""

    name = "text"

    def __init__(self, read: Callable[..., Any], *arguments: Any) -> None:
        self._read = read
        self._arguments = arguments

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read the text; what is none was read before."""
        if not isinstance(value, str):
            return value
        try:
            return self._read(value, *self._arguments)
        except ValueError as error:
            self.fail(str(error), param, ctx)


SIZE = Typed(values.size, 1)
"""A number of bytes above 0."""

PATH = click.Path(readable=False)
"""A path or URI. Whether it may be read is for the command to find: of several files it reads the others."""

sources: Option = click.argument("sources", metavar="SRC...", nargs=-1, type=PATH)
"""What is read, of a command that writes one thing of several."""
destination: Option = click.argument("destination", metavar="DST", type=PATH)
"""What is written: the last argument, as of `cp`."""


def check_sources(sources: Sequence[str], destination: str) -> None:
    """Refuse one argument where it takes two."""
    if not sources:
        raise click.UsageError(f"expected SRC... DST, found one argument: {printable(destination)}")


class _KeyFile(click.Path):
    """The path of a key file. A key in its place is refused without being repeated."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str) and _KEY.fullmatch(value) and not Path(value).exists():
            self.fail("expected the path of a file: this is 64 hexadecimal digits, a key itself", param, ctx)
        return super().convert(value, param, ctx)


def _joined(_context: click.Context, _parameter: click.Parameter, given: Sequence[list[Condition]]) -> Any:
    """All conditions of an option that can be given again, None where it was not given."""
    return [condition for conditions in given for condition in conditions] or None


def _or_none(_context: click.Context, _parameter: click.Parameter, given: Any) -> Any:
    """All that an option was given with, None where it was not given."""
    return given or None


typed_key: ContextVar[str | None] = ContextVar("typed_key", default=None)
"""The key that was named; None where none was, or several."""


def _noted(context: click.Context, parameter: click.Parameter, given: Any) -> Any:
    """The same of keys, noted for the commands that are advised."""
    keys = [given] if isinstance(given, str) else given
    typed_key.set(keys[0] if keys and len(keys) == 1 else None)
    return _or_none(context, parameter, given)


def key_file(*, multiple: bool = False) -> Option:
    """`--key-file`: the only way to name a key on the command line, since arguments show in process lists.

    With `multiple` as often as there are keys to try.
    """
    several = "; can be given again, to be tried in order" if multiple else ""
    return click.option(
        "--key-file",
        "key",
        metavar="FILE",
        type=_KeyFile(exists=True, dir_okay=False, allow_dash=False),
        multiple=multiple,
        callback=_noted,
        help=f"The key: a file of 64 hex digits or 32 raw bytes{several}. [default: the 64 hex digits in SEGLAKE_KEY, "
        "else the public default key]",
    )


def check_key(key: str | Sequence[str] | None) -> None:
    """Refuse a key that cannot be used before any file is read: it would fail for each of them.

    Raises:
        ValueError: the key file or SEGLAKE_KEY is malformed; the message does not show what it holds.
        OSError: the key file cannot be read.
    """
    import seglake

    seglake.detect(b"", key=key)


segment_format: Option = click.option(
    "--format",
    metavar="NAME",
    shell_complete=completing.format_names,
    help="The segment's format. [default: detected from its bytes]",
)
dialect: Option = click.option(
    "--dialect",
    metavar="NAME",
    shell_complete=completing.dialect_names,
    help="How an oplog's messages are laid out: draft, draft-1.1 or autobase. [default: draft]",
)
layout: Option = together(segment_format, dialect, key_file(multiple=True))
"""What it takes to make sense of a file's bytes."""


def _limits(_context: click.Context, _parameter: click.Parameter, given: Sequence[str]) -> dict[str, int] | None:
    limits = assigned("NAME=SIZE, such as record_bytes=64MiB")(_context, _parameter, given)
    return {name: SIZE.convert(text, _parameter, _context) for name, text in limits.items()} or None


limits: Option = click.option(
    "--limits",
    metavar="NAME=SIZE",
    multiple=True,
    callback=_limits,
    help="A limit other than the default: record_bytes (2GiB); for chunked files chunk_bytes (256MiB); for sealed ones "
    "lookup_table_bytes (16MiB); can be given again.",
)
spool_limit: Option = click.option(
    "--spool-limit",
    metavar="SIZE",
    type=SIZE,
    default="4GiB",
    show_default=True,
    help="The most that is copied to a temporary file when reading a pipe.",
)
overwrite: Option = click.option(
    "--overwrite", is_flag=True, help="Replace the file if it exists, once the new one is complete."
)


def if_exists(*, overwrite: bool) -> Literal["error", "overwrite"]:
    """Returns the library's argument for `--overwrite`."""
    return "overwrite" if overwrite else "error"


def _show_tracebacks(_context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value:
        failure.tracebacks.set(True)


debug: Option = click.option(
    "--debug",
    is_flag=True,
    envvar="SEGLAKE_DEBUG",
    expose_value=False,
    is_eager=True,
    callback=_show_tracebacks,
    help="Show where in the code an error came from. Also: SEGLAKE_DEBUG=1.",
)
reading: Option = together(layout, limits, spool_limit, debug)
"""What all that read a file take."""


def as_json(text: str) -> Option:
    """`--json`, with what one line of it holds."""
    return click.option("--json", "as_json", is_flag=True, help=text)


NONE = "none"
"""What is given instead of a path for no index or sidecar."""
DEFAULT_DIALECT = "draft"
DEFAULT_PROFILE: ProfileName = "128+8"
PROFILES: tuple[ProfileName, ...] = get_args(ProfileName)


protection: Option = together(
    click.option(
        "--protect", is_flag=True, help="Write a parity sidecar beside each sealed segment, as `seglake protect` does."
    ),
    click.option(
        "--profile",
        type=click.Choice(PROFILES),
        help="With --protect: data and parity blocks of a group. [default: 128+8]",
    ),
)


def chosen_profile(*, protect: bool, profile: ProfileName | None) -> ProfileName | None:
    """The profile of the sidecars that are asked for; None if none are."""
    if profile is not None and not protect:
        raise click.UsageError("--profile says how sidecars are made: give --protect, too")
    return (profile or DEFAULT_PROFILE) if protect else None


_OF_READING = ("dialect", "index", "limits")


def given(options: dict[str, Any]) -> dict[str, Any]:
    """The options that are on the command line, as the library's arguments."""
    arguments = {
        name: value
        for name, value in options.items()
        if value is not None and name not in ("where", *FILTER_OPTIONS, *_OF_READING)
    }
    dialect, index, limits = (options.get(name) for name in _OF_READING)
    own: dict[str, Any] = {"dialect": dialect, "index": index, **(limits or {})}
    own = {name: value for name, value in own.items() if value is not None}
    if own:
        arguments["options"] = own
    filters = [*conditions(options).values(), *(options.get("where") or ())]
    if filters:
        arguments["filters"] = filters
    return arguments


def only(options: dict[str, Any], *names: str) -> dict[str, Any]:
    """Those of the options that are on the command line that a function of these argument names takes."""
    return {name: value for name, value in given(options).items() if name in names}


def as_typed(options: dict[str, Any]) -> list[str]:
    """The options that say what a file is, as they are typed, for commands that are to read it in the same way."""
    keys = options.get("key") or ()
    return [
        *(word for name in ("format", "dialect") if options.get(name) for word in (f"--{name}", options[name])),
        *(word for key in ([keys] if isinstance(keys, str) else keys) for word in ("--key-file", key)),
    ]


def _index(_context: click.Context, _parameter: click.Parameter, text: str | None) -> str | bool | None:
    return False if text == NONE else text


index: Option = click.option(
    "--index",
    metavar="PATH|none",
    callback=_index,
    shell_complete=completing.path_or_none,
    help="The index of a chunked file. [default: the file beside it, if there is one]",
)
sidecar: Option = click.option(
    "--sidecar",
    metavar="PATH|none",
    shell_complete=completing.path_or_none,
    help="The parity sidecar that the file is checked by. [default: FILE.par, if there is one]",
)


def needed_sidecar(text: str) -> Option:
    """`--sidecar` of a command that cannot do without one: a path.

    Args:
        text: which sidecar that is.
    """

    def path(_context: click.Context, _parameter: click.Parameter, given: str | None) -> str | None:
        # Other commands take it for "without the sidecar": a file of this name would be found by none of them.
        if given == NONE:
            raise click.BadParameter(f"{given!r}: expected a path. A file of this name is ./{NONE}")
        return given

    return click.option("--sidecar", metavar="PATH", type=PATH, callback=path, help=f"{text} [default: FILE.par]")


def parity(sidecar: str | None, files: Sequence[str]) -> dict[str, Any]:
    """The library's argument for what `--sidecar` names: a sidecar is that of one file."""
    if sidecar is None:
        return {}
    if sidecar == NONE:
        return {"sidecar": None}
    if len(files) != 1:
        raise click.UsageError("--sidecar is the sidecar of one file: name one file, or use --sidecar none")
    return {"sidecar": sidecar}


def refuse_standard_input(files: Sequence[str]) -> None:
    """Refuse `-` where a file has a sidecar beside it."""
    if "-" in files:
        raise click.UsageError("standard input has no sidecar beside it: name a file; one of the name - is ./-")


def check_index(options: dict[str, Any], files: Sequence[str]) -> None:
    """Refuse one index for several files."""
    if options["index"] and len(files) > 1:
        raise click.UsageError("--index is the index of one file: name one file, or use --index none")


def _on_damage(_context: click.Context, _parameter: click.Parameter, value: str) -> str:
    """Have errors name the option from now on."""
    failure.damage_next.set("--on-damage skip goes on with what is sound")
    return value


def _damage_option(choices: Sequence[str], more: str) -> Option:
    return click.option(
        "--on-damage",
        type=click.Choice(choices),
        default="raise",
        callback=_on_damage,
        show_default=True,
        help=f"raise stops at the first damage; skip goes on after it and lists at the end what was skipped.{more}",
    )


on_damage: Option = _damage_option(["raise", "skip"], "")
on_damage_or_repair: Option = _damage_option(
    ["raise", "skip", "repair"],
    " repair goes on, too, and reads what the parity sidecar restores; nothing is written.",
)
_OFFSET = Typed(values.whole_number, 0, MOST_OFFSET)
wanted: Option = together(
    click.option(
        "--since",
        metavar="WHEN",
        type=Typed(values.bound),
        help="Only records from this time on: 2024-01-10T16:00, 2024-01-10, today, yesterday, or 1h, 7d, 2w for "
        "that long ago; or from this UUID on. Without an offset they are in UTC.",
    ),
    click.option("--until", metavar="WHEN", type=Typed(values.bound), help="Only records before this time or UUID."),
    click.option(
        "--where",
        metavar="'COLUMN OP VALUE'",
        multiple=True,
        type=Typed(plain),
        callback=_joined,
        help="Only records for which this is true, as in SQL: \"type = 'order.paid' AND offset >= 500\" (=, !=, <, <=, "
        ">, >=, IN, LIKE, BETWEEN, IS NULL, NOT); can be given again.",
    ),
    click.option("--start-offset", metavar="N", type=_OFFSET, help="Only records from this message offset on."),
    click.option("--end-offset", metavar="N", type=_OFFSET, help="Only records before this message offset."),
    click.option(
        "--partition",
        "partitions",
        metavar="ID",
        multiple=True,
        type=Typed(values.whole_number, 0, MOST_PARTITION),
        callback=_or_none,
        help="Only records of this partition; can be given again.",
    ),
    click.option(
        "--tenant",
        "tenants",
        metavar="ID",
        multiple=True,
        type=Typed(values.argument_text),
        callback=_or_none,
        help=r"Only records of this tenant, as cat shows it (\xNN is a byte); can be given again.",
    ),
    click.option(
        "--type",
        "types",
        metavar="TYPE",
        multiple=True,
        type=Typed(values.argument_text),
        callback=_or_none,
        help=r"Only records of this type, as cat shows it (\xNN is a byte); can be given again.",
    ),
)
"""Which records: by time or UUID, by offset, by partition and tenant, by type."""


def compared_as_written(given: Mapping[str, Any]) -> str | None:
    """What to say where no record was chosen, and a value that has to be equal looks like a pattern; else None."""
    texts = [*(given.get("types") or ()), *(given.get("tenants") or ())]
    for _, operator, value in given.get("where") or ():
        if operator in ("==", "in"):
            texts += value if operator == "in" else [value]
    for text in (os.fsdecode(text) for text in texts if isinstance(text, str | bytes)):
        if any(sign in text for sign in "*?%'\""):
            return (
                f"no record matched: {printable(text)} is compared as it is written, with its *, ?, % and quotes. "
                "--where \"type LIKE 'order.%'\" compares with a pattern"
            )
    return None


def byte_ranges(
    context: click.Context, parameter: click.Parameter, texts: Sequence[str]
) -> list[tuple[int, int | None] | int]:
    """Read each `START:END`, two offsets, of which each may be left out, or `+N`, so many zeros."""
    return [
        Typed(values.byte_offset).convert(text[1:], parameter, context)
        if text.startswith("+")
        else _byte_range(context, parameter, text)
        for text in texts
    ]


def _byte_range(context: click.Context, parameter: click.Parameter, text: str) -> tuple[int, int | None]:
    first, colon, last = text.partition(":")
    if not colon:
        raise click.BadParameter(f"{text!r}: expected START:END, such as 308:411, 0x134:, or :4096")
    offset = Typed(values.byte_offset)
    start = offset.convert(first, parameter, context) if first else 0
    end = offset.convert(last, parameter, context) if last else None
    if end is not None and end < start:
        raise click.BadParameter(f"{text!r} ends before it starts")
    return start, end


_Assign: TypeAlias = Callable[[click.Context | None, click.Parameter | None, Sequence[str]], dict[str, str]]


def assigned(form: str) -> _Assign:
    """What makes names and values of the texts of an option; `form` says how one looks.

    It raises click.BadParameter where one is something else, or a name is there twice.
    """

    def assign(
        _context: click.Context | None, _parameter: click.Parameter | None, given: Sequence[str]
    ) -> dict[str, str]:
        try:
            return values.assignments(given, form)
        except ValueError as error:
            raise click.BadParameter(str(error)) from None

    return assign


parse_settings: _Assign = assigned("NAME=VALUE, such as type=order")


def typed(settings: Mapping[str, str], kinds: Mapping[str, str]) -> dict[str, Any]:
    """The values as the library takes them. Names of no column are left for the library to refuse.

    Raises:
        click.BadParameter: a value is not of its column's kind.
    """
    return {name: _typed(name, text, kinds.get(name)) for name, text in settings.items()}


def _typed(name: str, text: str, kind: str | None) -> Any:
    if kind in ("uuid", "timestamp") and text == "now":
        # What the library makes values of the present of.
        return None
    # In text and bytes the letters are what they say.
    if kind not in ("text", "binary") and text == "null":
        return None
    try:
        return values.column_value(kind, text)
    except values.WrongValueError as error:
        more = ", or `now`" if kind in ("uuid", "timestamp") else ""
        raise click.BadParameter(f"{name}={text}: expected {error.expected}{more}", param_hint="--set") from error
