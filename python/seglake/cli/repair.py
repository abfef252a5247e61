"""`seglake repair`: a file restored from its parity sidecar."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import click

from . import options
from .failure import Status, report_status, telling_of_existing
from .help_groups import Command
from .render import count, exact_size, json_text, named_lines, printable
from .report import how_to_undo, left_by_format, parity_ranges
from .terminal import byte_progress

if TYPE_CHECKING:
    from seglake.parity import Repaired

_EXAMPLES = """
\b
Examples:
  seglake repair today.active
  seglake repair today.active /other/disk/today.active
  seglake repair --format raw photo.jpg
"""


@click.command(cls=Command, epilog=_EXAMPLES, short_help="Restore a file and its parity sidecar, bit for bit.")
@click.argument("file", metavar="FILE", type=options.PATH)
@click.argument("destination", metavar="[DST]", required=False, type=options.PATH)
@options.needed_sidecar("Where the sidecar is.")
@click.option(
    "--force",
    is_flag=True,
    help="Repair also a file of which nothing is as it was protected, one without checksums that was modified since, "
    "and records that their own checksums prove.",
)
@options.as_json("One JSON object: what was found, and what changed.")
@options.layout
@options.limits
@options.debug
def command(
    file: str,
    destination: str | None,
    sidecar: str | None,
    force: bool,
    as_json: bool,
    **how: Any,
) -> int:
    """Restore FILE and its parity sidecar, each from the other, bit for bit.

    The repaired file is written to a new one and read back, which needs as much space as FILE has. The damaged file
    is then FILE.damaged, and the new one FILE, with the same permissions and time of modification; so is the sidecar
    if it changes. To undo that, rename FILE.damaged to FILE: what was appended since is in the repaired file alone.
    Remove it when it is not needed any more: the next repair refuses to replace it. Run an interrupted repair again.
    Nothing is written if nothing changes.

    With DST nothing of that changes: the repaired file is written to DST, and its sidecar to DST.par. Neither may be
    there: of two names the second could be another damaged file.

    What cannot be repaired stays as it is and is listed: `seglake recover` writes what is sound of such a file to a
    new one. The repaired file is verified by its own format: bytes that were never covered may be damaged, too.

    Exit status: 0 FILE is sound, or as it was protected, 1 something could not be repaired, 2 error: nothing was
    changed, or the repair is to be run again, or the key is probably wrong.
    """
    import seglake

    options.refuse_standard_input([file])
    options.check_key(how["key"])
    with telling_of_existing("name another DST, or move it"), byte_progress(PurePath(file).name) as advance:
        repaired = seglake.repair(
            file,
            destination=destination,
            force=force,
            sidecar=sidecar or "auto",
            progress=advance,
            **options.given(how),
        )
    if as_json:
        click.echo(json_text({**repaired.to_dict(), "path": destination or file}))
    else:
        click.echo(_summary(repaired, destination or file))
    if repaired.lost:
        return Status.DAMAGED
    return Status.SOUND if repaired.report is None else report_status(repaired.report)


def _summary(repaired: Repaired, file: str) -> str:
    """What was found and done, for people."""
    lines = parity_ranges(repaired)
    worst = repaired.worst
    if worst is not None:
        where = f"group {worst['group']} of band {worst['band']}"
        lines.append(("worst group", f"needs {count(worst['needs'], 'block')} of {worst['of']} ({where})"))
    left = left_by_format(repaired)
    if left is not None:
        lines.append(left)
    if repaired.lost:
        lines.append(("next", printable(f"seglake recover writes what is sound of {file} to a new file")))
    if repaired.damaged is not None:
        lines.append(("kept", f"{printable(repaired.damaged)}: the file as it was"))
    if repaired.damaged_sidecar is not None:
        lines.append(("kept", f"{printable(repaired.damaged_sidecar)}: its sidecar as it was"))
    undo = how_to_undo(repaired)
    if undo is not None:
        lines.append(("to undo", undo))
    done = {
        "sound": "sound",
        "repaired": "repaired, as it was protected",
        "lost": "not all of it could be repaired",
    }[repaired.outcome]
    changed = f"{exact_size(repaired.changed_bytes)} changed"
    return "\n".join([f"{printable(repaired.path)}: {done}; {changed}", *named_lines(lines)])
