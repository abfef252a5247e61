"""`seglake log tail`: the records of a log as they come to the disk."""

from __future__ import annotations

import select
import sys
import time
import warnings
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import click

from .. import options
from ..failure import OutputClosedError, Status, Trouble, describe, say
from ..folders import tell_unread
from ..help_groups import Command
from ..render import JsonLines, PlainLines, ValueForm, columns_for_people, printable
from .folder import reading

if TYPE_CHECKING:
    from seglake import Record, SegmentLog, Tail

# How long it may take to notice that nobody reads the output any more.
_OUTPUT_CHECK_S = 0.5
# How long a log is waited for between two looks.
_RETRY_S = 0.2

_EXAMPLES = """
\b
Examples:
  seglake log tail logs
  seglake log tail --from start --no-follow --json logs
  seglake log tail --retry --on-damage skip logs
  seglake log tail --from 1eeafd69-b6b0-69f3-b9f1-1b8e6a30ade3 logs
"""


@click.command(cls=Command, epilog=_EXAMPLES)
@click.argument("path", metavar="DIR", type=click.Path(file_okay=False))
@click.option("--retry", is_flag=True, help="Wait for a log that is not there yet, and give all of it.")
@options.on_damage
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
@options.key_file()
@options.debug
def command(
    path: str,
    retry: bool,
    on_damage: Literal["raise", "skip"],
    from_: str,
    no_follow: bool,
    limit: int | None,
    as_json: bool,
    form: ValueForm | None,
    key: str | None,
) -> int:
    """Print records as they come: from now on, or --from start.

    The writer may be another process. What is printed is on the disk: no crash takes it back. Ctrl-C ends it, and
    so does a closed pipe. A segment that is damaged, missing or removed ends it with an error, and so does another log
    in its place. With --on-damage skip each is said, and it goes on after it.

    Exit status: 0 all sound, 1 damage was met, or records of a log are not read, 2 error.
    """
    import seglake

    status: int = Status.SOUND

    def tell_skipped(message: Warning | str, category: type[Warning], *_: object) -> None:
        nonlocal status
        if issubclass(category, seglake.exceptions.DamageWarning):
            status = Status.DAMAGED
        say(str(message))

    if not retry and not Path(path).is_dir():
        raise click.BadParameter(f"Directory {path!r} does not exist: --retry waits for it", param_hint="DIR")
    log, is_new = _opened(path, key, on_damage, waits=retry)
    with log, warnings.catch_warnings():
        warnings.simplefilter("ignore", seglake.exceptions.UnreadWarning)
        warnings.simplefilter("always", seglake.exceptions.DamageWarning)
        warnings.showwarning = tell_skipped
        status = tell_unread([log.unread])
        try:
            begin = "start" if is_new and from_ == "now" else from_
            follower = log.tail(cast("Any", begin))
        except seglake.SeglakeError:
            raise
        except ValueError as error:
            raise click.UsageError(f"--from is now, start or a UUID: {printable(str(error))}") from error
        format = seglake.formats()["active"]
        if as_json:
            # What `log write --json` takes.
            line = JsonLines([column.name for column in format.columns], form or "text", path).line
        else:
            shown = columns_for_people(format)
            line = PlainLines(shown, form or "text", path, format=format, stream=sys.stdout, file_bytes=0).line
        try:
            # With a limit of 0 nothing is waited for.
            for number, record in enumerate(_followed(follower, waits=not no_follow) if limit != 0 else (), start=1):
                sys.stdout.write(line(record) + "\n")
                if number == limit:
                    break
        except KeyboardInterrupt:
            if no_follow:
                raise
            return Status.INTERRUPTED  # the way to end it, so nothing is said
    return status


def _opened(path: str, key: str | None, on_damage: Literal["raise", "skip"], *, waits: bool) -> tuple[SegmentLog, bool]:
    """Open a log to read, and wait for it if asked to. Tells whether it had to be waited for."""
    waited = False
    while True:
        try:
            return reading(path, key, on_damage=on_damage), waited
        except (FileNotFoundError, Trouble) as error:
            if not waits:
                raise
            if not waited:
                say(f"{describe(error).splitlines()[0]}: waiting for it")
            waited = True
            time.sleep(_RETRY_S)


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
