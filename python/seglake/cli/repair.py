"""`seglake repair`: a file restored from its parity sidecar, and back."""

from __future__ import annotations

import shlex
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import click

from . import options
from .failure import Status, report_status, telling_of_existing
from .render import count, exact_size, json_text, printable
from .report import left_by_format, parity_ranges
from .terminal import byte_progress

if TYPE_CHECKING:
    from seglake import Repaired

_EXAMPLES = """
\b
Examples:
  seglake repair today.active
  seglake repair --to /other/disk/today.active today.active
  seglake repair --range 0x40000000:0x40100000 huge.active
  seglake repair --undo today.active
"""

_END = (1 << 64) - 1
"""An offset after the end of any file."""


@click.command(epilog=_EXAMPLES, short_help="Restore a file and its parity sidecar, bit for bit.")
@click.argument("file", metavar="FILE", type=options.PATH)
@click.option("--to", metavar="PATH", type=options.PATH, help="Write the repaired file here, and PATH.par beside it.")
@click.option("--overwrite", is_flag=True, help="Replace files at PATH that exist, once the new ones are complete.")
@options.needed_sidecar("Where the sidecar is.")
@click.option(
    "--replaced",
    metavar="PATH",
    type=options.PATH,
    help="Where the bytes go that are replaced, or with --undo: where they are. [default: FILE.undo]",
)
@click.option(
    "--force",
    is_flag=True,
    help="Repair also a file of which nothing is as it was protected, one without checksums that was modified since, "
    "and records that their own checksums prove.",
)
@click.option(
    "--range",
    "within",
    metavar="START:END",
    callback=options.byte_range,
    help="Judge and repair only the bands (16 MiB; 128 MiB with 128+8-long) with bytes from offset START up to END, "
    "without it; decimal or 0x hexadecimal; the file's ends where left out. [default: all of FILE]",
)
@click.option("--undo", is_flag=True, help="The other way round: FILE and its sidecar as before the last repair.")
@options.as_json("One JSON object: what was found, and what changed.")
@options.layout
@options.limits
@options.debug
def command(
    file: str,
    to: str | None,
    overwrite: bool,
    sidecar: str | None,
    replaced: str | None,
    force: bool,
    within: tuple[int, int | None] | None,
    undo: bool,
    as_json: bool,
    **how: Any,
) -> int:
    """Restore FILE and its parity sidecar, each from the other, bit for bit.

    In place, the bytes that change are first kept in FILE.undo; FILE.undo.manifest.jsonl says where they belong. A
    repair that was interrupted is run again. FILE keeps the time at which it was modified. What cannot be repaired
    stays as it is and is listed: `seglake recover` writes what is sound of such a file to a new one.

    With --range the result and the exit status are about these bands, and say nothing of the rest of FILE. A repair
    that was interrupted is completed whole.

    The repaired file is verified by its own format: bytes that were never covered may be damaged, too.

    Exit status: 0 FILE is sound, or those bands of it are as they were protected, 1 something could not be repaired,
    2 error: nothing was changed, or the repair is to be run again, or the key is probably wrong.
    """
    import seglake

    options.refuse_standard_input([file])
    if undo:
        given = {"--to": to, "--overwrite": overwrite, "--force": force, "--range": within}
        given.update({f"--{name}": value for name, value in how.items()})
        for name, value in given.items():
            if value:
                raise click.UsageError(
                    f"{name.replace('_', '-')} does not concern --undo: the manifest says where all bytes belong"
                )
        undone = seglake.undo_repair(file, undo=replaced, sidecar=sidecar)
        if as_json:
            click.echo(json_text(undone.to_dict()))
        else:
            done = "as before it was repaired"
            if undone.already_undone:
                done = f"already {done}; only the replaced bytes were left to be removed"
            click.echo(f"{printable(file)}: {exact_size(undone.nbytes)}, {done}")
        return Status.SOUND
    options.check_key(how["key"])
    with telling_of_existing(), byte_progress(PurePath(file).name) as advance:
        repaired = seglake.repair(
            file,
            to=to,
            overwrite=overwrite,
            undo=replaced,
            force=force,
            range=None if within is None else (within[0], _END if within[1] is None else within[1]),
            sidecar=sidecar,
            progress=advance,
            **options.given(how),
        )
    # A repair that was interrupted was completed whole.
    judged = None if repaired.continued else within
    if as_json:
        click.echo(json_text({**repaired.to_dict(), "path": to or file, "range": judged}))
    else:
        click.echo(_summary(repaired, file, to, replaced, sidecar, within=judged is not None))
    if repaired.lost:
        return Status.DAMAGED
    return Status.SOUND if repaired.report is None else report_status(repaired.report)


def _summary(
    repaired: Repaired, file: str, to: str | None, replaced: str | None, sidecar: str | None, *, within: bool
) -> str:
    """What was found and done, for people."""
    lines: list[str] = []

    def line(name: str, text: str) -> None:
        lines.append(f"  {name:<11} {text}")

    for kind, text in parity_ranges(repaired):
        line(kind, text)
    worst = repaired.worst
    if worst is not None:
        where = f"group {worst['group']} of band {worst['band']}"
        line("worst group", f"needs {count(worst['needs'], 'block')} of {worst['of']} ({where})")
    left = left_by_format(repaired)
    if left is not None:
        line(*left)
    if repaired.lost:
        line("next", printable(f"seglake recover writes what is sound of {to or file} to a new file"))
    if repaired.undo is not None and repaired.manifest is not None:
        line("replaced", f"{printable(repaired.undo)}: the bytes that changed")
        line("manifest", f"{printable(repaired.manifest)}: where they belong")
        undo = ["seglake", "repair", "--undo", file]
        undo += [] if replaced is None else ["--replaced", replaced]
        undo += [] if sidecar is None else ["--sidecar", sidecar]
        line("to undo", printable(shlex.join(undo)))
    done = {
        "sound": "sound in the bands of that range" if within else "sound",
        "repaired": "repaired in the bands of that range" if within else "repaired, as it was protected",
        "lost": "not all of it could be repaired",
    }[repaired.outcome]
    if repaired.continued:
        done = f"{done}; this completed a repair that was interrupted"
    changed = f"{exact_size(repaired.changed_bytes)} changed"
    return "\n".join([f"{printable(repaired.path)}: {done}; {changed}", *lines])
