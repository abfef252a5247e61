"""`seglake log snapshot`: a copy of a log, also while it is written."""

from __future__ import annotations

import warnings

import click

from .. import options
from ..folders import tell_unread
from ..help_groups import Command
from ..render import count, printable
from .folder import folder, opened

_EXAMPLES = """
\b
Examples:
  seglake log snapshot logs /backup/logs-2024-01-31
  seglake log snapshot --key-file key logs /backup/logs
  seglake log snapshot logs taken && seglake log verify taken
"""


@click.command(cls=Command, epilog=_EXAMPLES, short_help="Copy a log to a new folder, also while it is written.")
@folder
@click.argument("to", metavar="DST", type=options.PATH)
@options.key_file()
@options.debug
def command(path: str, to: str, key: str | None) -> int:
    """Copy a log to DST, a new folder that is a log of its own. The log may be written meanwhile.

    DST has the records that are on the disk, and appears when it is complete. On the same file system sealed segments
    are linked, so that the snapshot takes hardly any room.

    Exit status: 0 done, 1 records of the log are not read, which is said, 2 error.
    """
    import seglake

    with opened(path, key, readonly=True) as log, warnings.catch_warnings():
        warnings.simplefilter("ignore", seglake.exceptions.UnreadWarning)
        unread = log.unread
        log.snapshot(to)
    taken = opened(to, key, readonly=True)
    click.echo(f"{printable(to)}: {count(len(taken.segments()), 'segment')}")
    return tell_unread([unread])
