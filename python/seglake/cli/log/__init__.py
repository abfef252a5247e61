"""`seglake log`: a durable log, from writing to following. One file a command, and what they share."""

from __future__ import annotations

import click

from .. import options
from ..failure import Status
from ..groups import Group
from . import info, retain, seal, snapshot, tail, verify, write

__all__ = ["command"]


class _Group(Group):
    """Lists its commands in the order of a log's life."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def instead_of(self, name: str, known: list[str]) -> str:
        return "did you mean tail?" if name == "follow" else super().instead_of(name, known)


_EXAMPLES = """
\b
Examples:
  producer | seglake log write logs
  seglake log tail --from start logs
  seglake log info logs
  seglake log verify logs
"""


@click.group(
    cls=_Group,
    invoke_without_command=True,
    epilog=_EXAMPLES,
    short_help="Write, tail, verify and seal a log, a folder of segments.",
)
@options.debug
@click.pass_context
def command(context: click.Context) -> None:
    """Write, tail, verify and seal a log: a folder of segments, one of which is written.

    A log has one writer and any number of readers. Its segments are active and sealed files, which all other commands
    read, too. DIR is the folder.

    Exit status: 0 all sound, 1 damage was met, 2 error.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help(), err=True)
        context.exit(Status.TROUBLE)


for _name, _command in (
    ("write", write.command),
    ("tail", tail.command),
    ("info", info.command),
    ("verify", verify.command),
    ("seal", seal.command),
    ("snapshot", snapshot.command),
    ("retain", retain.command),
):
    command.add_command(_command, _name)
