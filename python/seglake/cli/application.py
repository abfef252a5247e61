"""The program: its commands, loaded when they are called, and how it ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib import import_module
from io import TextIOWrapper
from typing import Any

import click

from . import failure, options
from .groups import Group
from .standard_output import OutputError, naming_standard_output

_COMMANDS = (
    "info",
    "cat",
    "verify",
    "explain",
    "protect",
    "repair",
    "scrub",
    "recover",
    "extract",
    "convert",
    "seal",
    "index",
    "export",
    "log",
    "ingest",
    "completion",
)


class _LazyGroup(Group):
    """Commands that live in modules of their own, imported when called by name or listed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command = import_module(f".{cmd_name}", __package__).command
        assert isinstance(command, click.Command)
        return command

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        with _telling_of_closed_output():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        with _telling_of_closed_output():
            return super().invoke(ctx)

    def instead_of(self, name: str, known: list[str]) -> str:
        from .log import command as log

        if name in log.commands:
            return f"did you mean `seglake log {name}`?"
        if name == "undo":
            return "did you mean `seglake recover --undo`? To undo a repair, rename FILE.damaged to FILE"
        return super().instead_of(name, known)

    def like_none(self, name: str, known: list[str]) -> str:
        if os.path.lexists(name):
            return (
                "it is a file or folder: `seglake verify FILE` tells whether it is sound, "
                "`seglake info FILE` what it is"
            )
        return super().like_none(name, known)


@contextmanager
def _telling_of_closed_output() -> Generator[None]:
    try:
        yield
    except BrokenPipeError as error:
        raise failure.OutputClosedError from error


def _print_version(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value:
        from seglake import __version__

        click.echo(f"seglake {__version__}")
        context.exit()


@click.group(
    cls=_LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="For a file that may be damaged begin with `seglake verify FILE`: it says what is wrong and what to do.\n\n"
    "Exit status: 0 all sound, 1 damage was met, 2 error. `seglake COMMAND --help` has examples.",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version and exit.",
)
@options.debug
@click.pass_context
def program(context: click.Context) -> None:
    """Read, verify, convert and ingest binary log segments: every record checked, every damaged byte accounted for."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help(), err=True)
        context.exit(failure.Status.TROUBLE)


def run(arguments: Sequence[str] | None) -> int:
    """Run the program to its end, whatever happens, and return the exit status."""
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]
        failure.say("standard output is closed")
        return failure.Status.TROUBLE
    _never_fail_to_print()
    with naming_standard_output():
        try:
            try:
                status: Any = program.main(
                    None if arguments is None else list(arguments), prog_name="seglake", standalone_mode=False
                )
            except SystemExit as ended:  # of completion
                status = ended.code
            sys.stdout.flush()
        except BaseException as error:
            try:
                return int(failure.tell(error))
            except OutputError as lost:
                return int(failure.tell(lost))
        return int(status or failure.Status.SOUND)


def _never_fail_to_print() -> None:
    """Spell out what a stream's encoding does not have instead of ending with an encoding error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
