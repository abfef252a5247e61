"""`seglake protect`: the parity sidecars of files, from which `seglake repair` restores them."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import click

from . import folders, options
from .failure import damage_next, describe, is_about_one_file, tell
from .help_groups import Command
from .render import count, exact_size, json_text, printable
from .terminal import byte_progress

if TYPE_CHECKING:
    from seglake.parity import Protected

_EXAMPLES = """
\b
Examples:
  seglake protect today.active                   writes today.active.par
  seglake protect --lazy today.active            again, now and then, while it grows
  seglake protect --format raw notes.txt photo.jpg
  seglake protect --profile 128+16 --glob '*.sealed' logs
  seglake protect --sidecar /other/disk/today.par today.active
"""

_CHANGES = {
    "created": "protected",
    "extended": "extended",
    "rewritten": "extended, and the sidecar written anew",
    "unchanged": "covered already",
}


@click.command(cls=Command, epilog=_EXAMPLES, short_help="Write or extend the parity sidecars of files.")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=options.PATH)
@click.option(
    "--profile",
    type=click.Choice(options.PROFILES),
    help="Data and parity blocks of a group. 128+8 takes 7 % of the size of FILE and repairs 1 MB in a row, in each "
    "16 MiB. 128+4 is half of both, 128+16 twice; 128+8-long repairs 8 MB in each 128 MiB. A file below 0.5 MB takes "
    "more: 10 % of 100 kB, 112 % of 4 kB. [default: that of the sidecar, 128+8 for a new one]",
)
@click.option("--as-it-is", is_flag=True, help="Begin a new sidecar for a file as it is, damaged or not.")
@click.option(
    "--lazy", is_flag=True, help="Leave the last 16 MiB until what is not covered of them is 1/16 of what is."
)
@options.needed_sidecar("Where the sidecar of one file is.")
@options.as_json("One JSON object a line, one line a file: what is covered.")
@folders.glob
@options.layout
@options.limits
@options.debug
def command(
    files: tuple[str, ...],
    globs: tuple[str, ...],
    as_json: bool,
    sidecar: str | None,
    **how: Any,
) -> int:
    """Write the parity sidecar of each FILE, or extend it if FILE has grown.

    FILE.par lets `seglake repair` restore damaged bytes of FILE, or of itself. FILE is a path, or a folder with all
    below it. It is verified first, or what was appended since it was protected, and refused if that is damaged; it is
    never written to. --format raw takes files of any kind, which are not verified.

    What is covered must not change afterwards: append to FILE, then protect it again.

    Exit status: 0 all are protected, 1 a file is damaged and was refused, 2 error: a file cannot be read, its format
    is unknown or its key is probably wrong. A file that is refused does not stop the others.
    """
    import seglake

    options.refuse_standard_input(files)
    named = folders.files_named(files, globs, how["key"])
    if sidecar is not None and len(named.files) != 1:
        raise click.UsageError("--sidecar is the sidecar of one file: name one file")
    options.check_key(how["key"])
    damage_next.set("`seglake recover` saves what is sound; --as-it-is protects the file as it is")
    status = named.status
    for name in named.files:
        try:
            with byte_progress(PurePath(name).name) as advance:
                protected = seglake.protect(name, sidecar=sidecar or "auto", progress=advance, **options.given(how))
        except Exception as error:
            if not (is_about_one_file(error) or isinstance(error, ValueError)):
                raise
            status = max(status, tell(error, label=name))
            if as_json:
                click.echo(json_text({"path": name, "error": describe(error, label=name)}))
            continue
        click.echo(json_text({**protected.to_dict(), "path": name}) if as_json else _line(protected, name))
    return status


def _line(protected: Protected, name: str) -> str:
    said = _CHANGES[protected.change]
    if protected.healed:
        said = f"sidecar repaired, {said}"
    left = protected.nbytes - protected.covered_bytes
    unused = f", {exact_size(left)} not covered" if left else ""
    par = f"{printable(protected.sidecar)}: {exact_size(protected.sidecar_bytes)}, {protected.profile}"
    report = protected.report
    if report is None or protected.verified_from == protected.nbytes:
        records = ""
    else:
        records = f", {count(report.records, 'new record' if protected.verified_from else 'record')}"
    return f"{printable(name)}: {said}: {exact_size(protected.covered_bytes)}{records}{unused}; {par}"
