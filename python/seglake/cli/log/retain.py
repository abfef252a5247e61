"""`seglake log retain`: the oldest segments removed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .. import options
from ..failure import Status
from ..help_groups import Command
from ..render import count, printable
from .folder import DURATION, changing, folder, tell_recovered

if TYPE_CHECKING:
    from datetime import timedelta

_EXAMPLES = """
\b
Examples:
  seglake log retain --age 30d logs
  seglake log retain --bytes 100GiB logs
  seglake log retain --age 12h --bytes 1TiB --key-file key logs
"""


@click.command(cls=Command, epilog=_EXAMPLES)
@folder
@click.option("--age", metavar="TIME", type=DURATION, help="Remove segments that are older: 12h, 30d.")
@click.option(
    "--bytes",
    "nbytes",
    metavar="SIZE",
    type=options.SIZE,
    help="Remove the oldest segments while all of them have more bytes.",
)
@options.key_file()
@options.debug
def command(path: str, age: timedelta | None, nbytes: int | None, key: str | None) -> int:
    """Remove the oldest sealed and frozen segments of a log, for good. The newest segment stays.

    Exit status: 0 done, 2 error, such as another writer.
    """
    if age is None and nbytes is None:
        raise click.UsageError("give --age, --bytes or both")
    with changing(path, key) as log:
        tell_recovered(log, path)
        removed = log.retain(age=age, bytes=nbytes)
    for segment in removed:
        click.echo(f"removed {printable(segment.path)}")
    click.echo(f"{printable(path)}: {count(len(removed), 'segment')} removed")
    return Status.SOUND
