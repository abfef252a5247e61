"""`seglake recover`: what is sound of a damaged file to a new one, the rest put aside, and all of it put back."""

from __future__ import annotations

import os
import sys
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import click

from . import options
from .advice import advise, in_lines, shell_word
from .advice import as_json as as_json_report
from .failure import Status, Trouble, describe, say
from .help_groups import Command
from .html import html, opened_report
from .inputs import Input, opened_to_rewrite
from .render import count, exact_size, json_text, named_lines, printable
from .verdict import show_cause
from .vocabulary import meaning

if TYPE_CHECKING:
    from seglake import Report
    from seglake.types import Recovered

_EXAMPLES = """
\b
Examples:
  seglake recover today.active sound.active
  seglake recover --quarantine /safe/damaged.bytes events.chunks sound.chunks
  seglake recover --dialect draft-1.1 --renumber writer.oplog sound.oplog
  seglake recover --undo sound.active today-as-it-was.active
"""


# The options whose arguments are called otherwise.
_OPTIONS = {"key": "--key-file", "limits": "--limits"}


@click.command(cls=Command, epilog=_EXAMPLES, short_help="Write what is sound of a file to a new one.")
@click.argument("source", metavar="SRC", type=options.PATH)
@click.argument("destination", metavar="DST", type=options.PATH)
@click.option(
    "--quarantine",
    metavar="FILE",
    type=options.PATH,
    help="Where the bytes go that are not in DST. [default: DST.quarantine, if there are any]",
)
@click.option("--overwrite", is_flag=True, help="Replace files that exist, once the new ones are complete.")
@click.option("--force", is_flag=True, help="Recover a file in which nothing checks: all of it is put aside.")
@click.option(
    "--renumber",
    is_flag=True,
    help="Where an oplog's message is lost that others follow, renumber those, and rewrite what refers to them. "
    "Other formats need no such thing.",
)
@click.option("--undo", is_flag=True, help="The other way round: write to DST the file that SRC was recovered from.")
@options.as_json("One JSON object: what was written, and the report on SRC.")
@html
@options.reading
def command(
    source: str,
    destination: str,
    quarantine: str | None,
    overwrite: bool,
    force: bool,
    renumber: bool,
    undo: bool,
    as_json: bool,
    html: str | None,
    no_values: bool,
    spool_limit: int,
    **how: Any,
) -> int:
    """Write the sound records of SRC to a new file, and all else beside it.

    DST has the format of SRC, and every byte that is not in it goes to a quarantine. Records keep the checksums
    that they have; none is computed anew. Beside the quarantine FILE, FILE.manifest.jsonl says where each byte of
    SRC is now. DST is read back, and SRC put together again to see that it can be, before any of the files appears.
    SRC stays as it is, and a sound one is copied.

    What happened to a damaged SRC is said first, as `seglake verify` says it: most often there is better than this.

    With --html, REPORT is a page for a browser that shows the damage of SRC, as of `seglake verify`, and where its
    bytes are now.

    With --undo, SRC is what was recovered, and DST becomes the damaged file again, bit for bit.

    Exit status: 0 SRC is sound, 1 something of it is damaged (DST has the rest), 2 error: nothing was written.
    """
    if undo:
        given = {
            "--force": force,
            "--renumber": renumber,
            "--html": html,
            **{_OPTIONS.get(name, f"--{name}"): value for name, value in how.items()},
        }
        for name, value in given.items():
            if value:
                raise click.UsageError(
                    f"{name.replace('_', '-')} does not concern --undo: the manifest says where all bytes belong"
                )
        return _undo(source, destination, quarantine, overwrite=overwrite, as_json=as_json, spool_limit=spool_limit)
    import seglake
    from seglake._native import is_log_name

    options.check_key(how["key"])
    # What happened to a segment of a log is known with the log's mark, by which recovering does not go.
    is_told = as_json or not is_log_name(PurePath(source).name)
    page = opened_report(html, no_values=no_values)
    with opened_to_rewrite(source, destination, quarantine, spool_limit=spool_limit) as (file, advance):
        found = None if page is None else page.verify(file, how)
        # First, as it may have no room.
        written = None if page is None else page.write()
        is_restorable = _tell_of_sidecar(file)
        try:
            recovered = seglake.recover(
                file.from_start(),
                destination,
                quarantine=quarantine,
                if_exists=options.if_exists(overwrite=overwrite),
                force=force,
                renumber=renumber,
                progress=advance,
                **options.given(how),
            )
            report = recovered.report
            if is_told and not report.ok:
                report = found or _explained(file, how)
            if page is not None:
                page.remark(_in_a_sentence(recovered, destination, quarantine))
                written = page.write()
        except ValueError as error:
            if "`force`" not in str(error):
                raise
            raise _nothing_sound(file, how) from error
        finally:
            if written is not None:
                # It says what there was, also where recovering is refused.
                click.echo(written, err=as_json)
    reading = options.as_typed(how)
    if as_json:
        told = json_text(
            {**recovered.to_dict(), "path": destination, "report": as_json_report(report, file.path, reading)}
        )
        click.echo(told)
    else:
        if is_told and not report.ok:
            show_cause(report, file, reading, sys.stdout, running="recover")
        click.echo(_summary(recovered, file, destination, quarantine))
    return Status.DAMAGED if recovered.lost or is_restorable else Status.SOUND


def _explained(file: Input, how: dict[str, Any], explain: bool | int = True) -> Report:
    """What is found in a file by itself, with what its damage comes from."""
    import seglake

    return seglake.verify(file.from_start(), sidecar=None, explain=explain, **options.given(how))


def _nothing_sound(file: Input, how: dict[str, Any]) -> Trouble:
    """What happened to a file in which no record is sound, and what to do instead of recovering it."""
    report = _explained(file, how, explain=1)
    said = advise(report, report.diagnoses[0], file.path, options.as_typed(how))
    headline = f"{printable(file.label)}: nothing to recover, nothing was written: {said.headline}"
    forced = "\n  --force   recovers no record: it puts all of the file into the quarantine"
    return Trouble(in_lines(headline, said, said.command) + f"\n  shown by  {said.evidence}" + forced)


def _tell_of_sidecar(file: Input) -> bool:
    """Say that a parity sidecar restores damage: recovering goes by the file alone. Whether it does."""
    import seglake

    try:
        parity = seglake.parity.verify(file.from_start())
    except PermissionError as error:
        if error.filename is None or os.fsdecode(error.filename) == file.label:
            raise  # it is the file itself
        say(f"{describe(error, label=file.label)}. Recovering goes by the file alone")
        return False
    if parity is None or parity.outcome not in ("repaired", "lost") or not parity.damage:
        return False
    restores = "all of it" if parity.outcome == "repaired" else "some of it, perhaps"
    say(
        f"{printable(file.label)}: differs from what its parity sidecar covers, which restores {restores}; "
        "to recover is to do without that\n"
        f"  next      seglake repair {shell_word(file.label)}"
    )
    return True


def _summary(recovered: Recovered, file: Input, destination: str, quarantine: str | None) -> str:
    """What is where now, for people."""
    report, source = recovered.report, printable(file.label)
    lines: list[tuple[str, str]] = []

    if report.ok:
        headline = f"a copy of {source}, which is sound"
    else:
        headline = f"recovered from {source}"
        carried = f"{recovered.carried_bytes:,} of {exact_size(report.nbytes)}"
        lines.append(("kept", f"{count(recovered.records, 'record')}, {carried}"))
    damaged = [total for total in report.totals if total.cause is not None]
    for total in damaged:
        what = f"{total.cause}: {meaning(total.cause or '')}"
        if total.kind == "record":
            lines.append(("incomplete", f"{count(total.ranges, 'record')} of those: {what}"))
        else:
            where = f"{exact_size(total.nbytes)} in {count(total.ranges, 'range')}"
            lines.append(("lost", f"{where}: {total.kind}, {what}"))
    lost = sum(total.nbytes for total in damaged if total.kind != "record")
    anew = recovered.quarantined_bytes - lost
    if anew > 0:
        lines.append(("replaced", f"{exact_size(anew)} of index, counts or numbers, which are written anew"))
    if recovered.index is not None:
        lines.append(("index", printable(recovered.index)))
    lines += _put_aside(recovered, destination, quarantine)
    what = f"{count(recovered.records, 'record')}, {exact_size(recovered.nbytes)}"
    return "\n".join([f"{printable(destination)}: {what}, {headline}", *named_lines(lines)])


def _put_aside(recovered: Recovered, destination: str, quarantine: str | None) -> list[tuple[str, str]]:
    """Where the bytes are that were left out, and the command that puts all together again."""
    if recovered.quarantine is None or recovered.manifest is None:
        return []
    beside = "" if quarantine is None else f" --quarantine {shell_word(quarantine)}"
    return [
        ("quarantine", f"{printable(recovered.quarantine)}: {exact_size(recovered.quarantined_bytes)}"),
        ("manifest", f"{printable(recovered.manifest)}: where each byte is now"),
        ("to undo", f"seglake recover --undo {shell_word(destination)} ORIGINAL{beside}"),
    ]


def _in_a_sentence(recovered: Recovered, destination: str, quarantine: str | None) -> str:
    """What was written, for a page."""
    aside = [f"{name} {text}" for name, text in _put_aside(recovered, destination, quarantine)]
    written = f"{printable(destination)}: {count(recovered.records, 'record')}, {exact_size(recovered.nbytes)}"
    return f"Written: {'; '.join([written, *aside])}."


def _undo(
    recovered: str, destination: str, quarantine: str | None, *, overwrite: bool, as_json: bool, spool_limit: int
) -> int:
    import seglake

    with opened_to_rewrite(recovered, destination, spool_limit=spool_limit) as (file, advance):
        size = seglake.undo_recover(
            file.from_start(),
            destination,
            quarantine=quarantine,
            if_exists=options.if_exists(overwrite=overwrite),
            progress=advance,
        )
    if as_json:
        click.echo(json_text({"written": {"path": destination, "nbytes": size}}))
    else:
        click.echo(f"{printable(destination)}: {exact_size(size)}, as it was before {printable(file.label)} was made")
    return Status.SOUND
