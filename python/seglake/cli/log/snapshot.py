"""`seglake log snapshot`: a copy of a log, also while it is written."""

from __future__ import annotations

import click

from .. import options
from ..failure import Status
from ..render import count, printable
from .folder import folder

_EXAMPLES = """
\b
Examples:
  seglake log snapshot logs /backup/logs-2024-01-31
  seglake log snapshot --key-file key logs /backup/logs
  seglake log snapshot logs taken && seglake log verify taken
"""


@click.command(epilog=_EXAMPLES, short_help="Copy a log to a new folder, also while it is written.")
@folder
@click.argument("to", metavar="DST", type=options.PATH)
@options.key_file
@options.debug
def command(path: str, to: str, key: str | None) -> int:
    """Copy a log to DST, a new folder that is a log of its own. The log may be written meanwhile.

    DST has the records that are on the disk, and appears when it is complete. On the same file system sealed segments
    are linked, so that the snapshot takes hardly any room.

    Exit status: 0 done, 2 error.
    """
    import seglake

    seglake.SegmentLog(path, key=key, readonly=True).snapshot(to)
    taken = seglake.SegmentLog(to, key=key, readonly=True)
    click.echo(f"{printable(to)}: {count(len(taken.segments()), 'segment')}")
    return Status.SOUND
