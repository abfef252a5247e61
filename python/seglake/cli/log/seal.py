"""`seglake log seal`: all segments sealed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .. import options
from ..failure import Status
from ..help_groups import Command
from ..render import count, printable
from .folder import changing, folder, tell_recovered

if TYPE_CHECKING:
    from seglake._types import ProfileName

_EXAMPLES = """
\b
Examples:
  seglake log seal logs
  seglake log seal --protect logs
  seglake log seal --key-file key logs
  seglake log seal logs && seglake log info logs
"""


@click.command(cls=Command, epilog=_EXAMPLES, short_help="End the active segment, and wait until all are sealed.")
@folder
@options.protection
@options.key_file()
@options.debug
def command(path: str, protect: bool, profile: ProfileName | None, key: str | None) -> int:
    """End the active segment of a log, and wait until all segments are sealed.

    With --protect, sealed segments that have no parity sidecar yet get one, too.

    Exit status: 0 all are sealed, 1 one is damaged and stays as it is, 2 error, such as another writer.
    """
    protection = options.chosen_profile(protect=protect, profile=profile)
    with changing(path, key, protect=protection) as log:
        tell_recovered(log, path)
        log.roll()
        log.wait_sealed()
        segments = log.segments()
    sealed = sum(segment.kind == "sealed" for segment in segments)
    click.echo(f"{printable(path)}: {sealed:,} of {count(len(segments), 'segment')} sealed")
    return Status.SOUND if sealed == len(segments) else Status.DAMAGED
