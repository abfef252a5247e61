"""The one mapping from exceptions to what a person reads and to the exit status."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import IntEnum
from typing import TYPE_CHECKING, ClassVar, TextIO

import click

from .option_names import with_options
from .render import printable, printable_lines
from .standard_output import OutputError

if TYPE_CHECKING:
    from seglake import DamageError, Report

tracebacks: ContextVar[bool] = ContextVar("tracebacks", default=False)
"""Whether it is shown where in the code an error came from, too (`--debug`)."""
damage_next: ContextVar[str] = ContextVar(
    "damage_next", default="`seglake cat --on-damage skip` reads all that still checks"
)
"""What errors about damage say last: how to go on with the command that runs."""


class Status(IntEnum):
    """What the process ends with."""

    SOUND = 0
    DAMAGED = 1
    TROUBLE = 2
    INTERRUPTED = 130
    """128 + SIGINT, as a shell reports it."""
    BROKEN_PIPE = 141
    """128 + SIGPIPE: whoever read the output has had enough."""


class Trouble(click.ClickException):
    """Something that the person at the keyboard can put right, said in one message of printable text."""

    exit_code: ClassVar[int] = Status.TROUBLE


class OutputClosedError(Exception):
    """Whoever read the output went away: what comes of a BrokenPipeError, to which click has an answer of its own."""


def is_about_one_file(error: Exception) -> bool:
    """Whether the other files of the command line may still be readable after this."""
    from seglake import SeglakeError

    if isinstance(error, OSError):
        return not isinstance(error, BrokenPipeError | OutputError) and error.filename is not None
    return isinstance(error, (SeglakeError, Trouble))


def tell(error: BaseException, *, label: str | None = None) -> int:
    """Say on standard error what went wrong, and return the exit status.

    Args:
        error: what was raised.
        label: the file that was being read, where the error does not name one.

    Raises:
        OutputError: as `say`, but not if `error` is one.
    """
    if isinstance(error, click.exceptions.Exit):
        return error.exit_code
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else Status.TROUBLE
    if isinstance(error, (BrokenPipeError, OutputClosedError)):
        _discard(sys.stdout)
        return Status.BROKEN_PIPE
    if isinstance(error, (KeyboardInterrupt, click.Abort)):
        message, status = "interrupted", Status.INTERRUPTED
    else:
        message, status = describe(error, label=label), exit_status(error)
    if tracebacks.get():
        message = f"{message}\n{''.join(traceback.format_exception(error)).rstrip()}"
    if isinstance(error, OutputError):
        _discard(sys.stdout)
    say(message)
    return status


def say(message: str) -> None:
    """Write a message to standard error, after all output so far.

    Raises:
        OutputError: after the message, where output before it could not be written.
    """
    lost = None
    try:
        sys.stdout.flush()
    except (OSError, AttributeError) as error:
        # Full disk, closed pipe or no standard output at all: the message matters more than what is lost there.
        _discard(sys.stdout)
        lost = error
    try:
        click.echo(f"seglake: {printable_lines(message)}", err=True)
    except OSError:
        _discard(sys.stderr)  # the status is what is left to tell
    if isinstance(lost, OutputError):
        raise lost


@contextmanager
def telling_of_existing(next: str = "--overwrite replaces it") -> Generator[None]:
    """Say what to do where the block finds that a file exists.

    Raises:
        Trouble: instead of FileExistsError.
    """
    try:
        yield
    except FileExistsError as error:
        where = "" if error.filename is None else f"{printable(os.fsdecode(error.filename))}: "
        raise Trouble(f"{where}exists already: nothing was written\n  next      {next}") from error


def exit_status(error: BaseException) -> int:
    """1 for damage, 2 for all else; a key that is probably wrong is no damage."""
    from seglake import DamageError, WrongKeyError

    if isinstance(error, DamageError) and not isinstance(error, WrongKeyError):
        return Status.DAMAGED
    if isinstance(error, click.ClickException):
        return error.exit_code
    return Status.TROUBLE


def report_status(report: Report) -> int:
    """The exit status that a report of a whole file deserves, by the same rule."""
    from seglake.parity.by_sidecar import is_sound

    if is_sound(report):
        return Status.SOUND
    return Status.TROUBLE if report.wrong_key else Status.DAMAGED


def describe(error: BaseException, *, label: str | None = None) -> str:
    """What went wrong, where, and what to do next: printable text, in several lines where there is much to say."""
    from seglake import DamageError, SeglakeError
    from seglake.exceptions import LimitError

    from .advice import in_full, of_log_error

    if isinstance(error, click.UsageError):
        hint = f"\nTry: {error.ctx.command_path} --help" if error.ctx else ""
        return printable_lines(error.format_message()) + hint
    if isinstance(error, click.ClickException):
        return error.format_message()
    if isinstance(error, DamageError):
        return _damage(error, label)
    if (said := of_log_error(error)) is not None:
        return in_full(said)
    if isinstance(error, SeglakeError):
        where = label if error.path is None else error.path
        about = printable(with_options(error.reason))
        about = about if where is None else f"{printable(where)}: {about}"
        next = error.next and printable(with_options(error.next))
        if isinstance(error, LimitError):
            next = f"raise the limit with --limits {error.option}=SIZE"
        return about if next is None else f"{about}\n  next      {next}"
    text = printable(with_options(str(error)))
    if isinstance(error, OutputError):
        label = "standard output"  # not the file that was being read
    if isinstance(error, OSError) and error.strerror is not None:
        where = label if error.filename is None else os.fsdecode(error.filename)
        said = printable(with_options(error.strerror))
        return said if where is None else f"{printable(where)}: {said}"
    if isinstance(error, (OSError, ValueError, TypeError)):
        return text
    return (
        f"unexpected {type(error).__name__}: {text}\n"
        "  next      this should not happen: please report it with what --debug shows"
    )


def _damage(error: DamageError, label: str | None) -> str:
    from seglake import WrongKeyError

    from .vocabulary import KEY_NEXT, WRONG_KEY, meaning

    wrong_key = isinstance(error, WrongKeyError)
    where = printable(label or error.path or "the input")
    next = KEY_NEXT if wrong_key else f"`seglake verify` lists every damaged range; {damage_next.get()}"
    if error.next is not None and "seglake repair" in error.next:
        next = error.next  # it differs from what a parity sidecar covers
    headline = WRONG_KEY if wrong_key else "damaged"
    return "\n".join(
        [
            f"{where}: {headline}",
            f"  offset    {error.byte_offset:,}",
            f"  cause     {printable(error.cause)}: {meaning(error.cause)}",
            f"  expected  {printable(error.expected)}",
            f"  actual    {printable(error.actual)}",
            *(f"  note      {printable(note)}" for note in getattr(error, "__notes__", [])),
            f"  next      {printable(next)}",
        ]
    )


def _discard(stream: TextIO) -> None:
    """Send what is still buffered for a stream nowhere, or the interpreter would trip over it on its way out."""
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError, AttributeError):
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)
