"""`seglake seal`: an active segment, done with, into one that is read at random."""

from __future__ import annotations

import os
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import click

from . import options
from .failure import Trouble
from .help_groups import Command
from .inputs import opened_to_rewrite, tell_written
from .render import printable
from .terminal import byte_progress

if TYPE_CHECKING:
    from seglake._types import ProfileName

_EXAMPLES = """
\b
Examples:
  seglake seal yesterday.active yesterday.sealed
  seglake seal --on-damage skip damaged.active sound.sealed
  seglake seal --protect yesterday.active yesterday.sealed
  seglake seal --no-trailer --overwrite yesterday.active yesterday.sealed
"""


@click.command(cls=Command, epilog=_EXAMPLES, short_help="Make a sealed segment of an active one.")
@click.argument("source", metavar="SRC", type=options.PATH)
@click.argument("destination", metavar="DST", type=options.PATH)
@click.option(
    "--no-trailer", is_flag=True, help="Leave the checksums out: changed bytes can then not be told any more."
)
@options.overwrite
@options.protection
@options.as_json("One JSON object: what was written, and the report on SRC.")
@options.on_damage
@options.key_file(multiple=True)
@options.spool_limit
@options.debug
def command(
    source: str,
    destination: str,
    no_trailer: bool,
    overwrite: bool,
    protect: bool,
    profile: ProfileName | None,
    as_json: bool,
    spool_limit: int,
    **how: Any,
) -> int:
    """Write the messages of SRC, an active segment, to DST, a sealed one.

    A sealed segment is indexed by UUID and never changed again. The checksum of each message is checked and carried
    over, so that damage between the two is found. SRC stays as it is. DST appears when it is complete and on the disk.
    With --protect DST.par is written then, from which `seglake repair` restores damaged bytes of DST.

    Exit status: 0 all sound, 1 SRC is damaged (nothing is written; with --on-damage skip, what is sound), 2 error.
    """
    import seglake

    options.check_key(how["key"])
    profile = options.chosen_profile(protect=protect, profile=profile)
    sidecar = f"{destination}.par"
    if profile is not None and not overwrite and os.path.lexists(sidecar):
        raise Trouble(
            f"{printable(sidecar)}: it exists, so it may be the sidecar of another file\n"
            "  next      --overwrite replaces it, and DST; or name another DST"
        )
    with opened_to_rewrite(source, destination, spool_limit=spool_limit) as (file, advance):
        report = seglake.seal(
            file.from_start(),
            destination,
            trailer=not no_trailer,
            if_exists=options.if_exists(overwrite=overwrite),
            progress=advance,
            **options.given(how),
        )
    protected = None
    if profile is not None:
        with byte_progress(PurePath(destination).name) as advance:
            # DST is new, and sealing has compared what was written: a sidecar that is there is of another file.
            protected = seglake.protect(destination, profile=profile, as_it_is=True, key=how["key"], progress=advance)
    return tell_written(report, file, destination, protected, as_json=as_json)
