"""`seglake scrub`: all files of folders verified at a bounded rate, for a timer."""

from __future__ import annotations

import os
from contextlib import ExitStack, closing
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from . import folders, options
from .failure import Status, describe, report_status, tell
from .help_groups import Command
from .html import html, opened_report
from .inputs import opened
from .other import other_line
from .render import count, exact_size, json_text, printable
from .report import how_to_undo, left_by_format, parity_ranges
from .terminal import Advance, byte_progress
from .verdict import Tally, one_line

if TYPE_CHECKING:
    from seglake.parity import Scrubbed

    from .html.writer import HtmlReport

_EXAMPLES = """
\b
Examples:
  seglake scrub --rate 20MiB /var/log/segments
  seglake scrub --repair --rate 20MiB --state /var/lib/seglake/scrub /var/log/segments
  seglake scrub --subset $(date +%u)/7 /archive          a seventh each day of the week
"""


def _subset(_context: click.Context, _parameter: click.Parameter, text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    numbers = text.split("/")
    if len(numbers) == 2 and all(number.isascii() and number.isdigit() for number in numbers):
        k, n = map(int, numbers)
        if 1 <= k <= n:
            return k, n
    raise click.BadParameter(f"expected K/N with K from 1 to N, such as 1/7, found {printable(text)}")


@click.command(cls=Command, epilog=_EXAMPLES, short_help="Verify folders at a bounded rate, and repair: for a timer.")
@click.argument("paths", metavar="DIR...", nargs=-1, required=True, type=options.PATH)
@click.option(
    "--repair",
    is_flag=True,
    help="Repair what a parity sidecar restores, as `seglake repair` does: the damaged file is kept as FILE.damaged.",
)
@click.option(
    "--rate", metavar="SIZE", type=options.SIZE, help="Verify at most so many bytes a second. [default: no limit]"
)
@click.option(
    "--subset", metavar="K/N", callback=_subset, help="Only the K-th of N parts of the files. A file stays in its part."
)
@click.option(
    "--state",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Note in FILE how far the pass has come. If it is ended early, it goes on there the next time.",
)
@options.as_json("One JSON object a line, one line a file: what was found, and what was repaired.")
@html
@folders.glob
@options.dialect
@options.key_file(multiple=True)
@options.limits
@options.debug
def command(
    paths: tuple[str, ...],
    repair: bool,
    rate: int | None,
    subset: tuple[int, int] | None,
    state: str | None,
    as_json: bool,
    html: str | None,
    no_values: bool,
    globs: tuple[str, ...],
    **how: Any,
) -> int:
    """Verify all files below DIR with their parity sidecars, one after the other, at a bounded rate.

    Disks change bytes that nobody reads. A scrub that a timer runs finds that while it can be repaired. It says what is
    not sound, and how much it read. With --repair, what a sidecar restores is repaired as `seglake repair` does: the
    damaged file is then FILE.damaged. A folder that is a log is read as one, up to what is on the disk.

    A file that is not a segment is verified by its sidecar alone. Without one it is skipped, and named. Where neither
    content nor name tells the format of a segment any more, it counts as such a file: protect segments, or name them
    with their extensions.

    Exit status: 0 all sound, 1 damage was found, also where it was repaired, 2 error: a file or folder cannot be read
    or repaired, or its key is probably wrong. What one file has does not stop the others.
    """
    import seglake

    options.check_key(how["key"])
    page = opened_report(html, no_values=no_values)
    is_only = len(paths) == 1 and not os.path.isdir(paths[0])  # noqa: PTH112
    tally, status, mended, skipped = Tally(), int(Status.SOUND), 0, 0
    with ExitStack() as display:
        shown: dict[str, Advance | None] = {}

        def advance(path: str, done: int, total: int) -> None:
            if path not in shown:
                display.close()
                shown.clear()
                shown[path] = display.enter_context(byte_progress(os.path.basename(path)))  # noqa: PTH119
            if (bar := shown[path]) is not None:
                bar(done, total)

        found = seglake.scrub(
            paths,
            repair=repair,
            rate=rate,
            subset=subset,
            state=state,
            glob=globs or None,
            progress=advance,
            **options.given(how),
        )
        with closing(found) as results:
            for each in results:
                display.close()
                shown.clear()
                status = max(status, _status(each))
                mended += each.is_mended
                if each.report is not None:
                    tally.add(each.report)
                elif each.parity is not None:
                    tally.add_other(each.parity)
                elif each.skipped is not None:
                    skipped += 1
                else:
                    tally.unreadable += 1
                _tell(each, as_json=as_json)
                if page is not None:
                    _add(page, each, how, is_only=is_only)
    if page is not None:
        page.note(_summary(tally, mended, skipped))
        wrote = page.write()
        if not as_json:
            click.echo(wrote)
    if not as_json:
        click.echo(_summary(tally, mended, skipped))
    return status


def _status(found: Scrubbed) -> int:
    if found.error is not None:
        return Status.TROUBLE
    if found.report is not None:
        return report_status(found.report)
    return Status.SOUND if found.ok else Status.DAMAGED


def _add(page: HtmlReport, found: Scrubbed, how: dict[str, Any], *, is_only: bool) -> None:
    """Add a file to the report: as it was before it was repaired, if it was."""
    if found.error is not None:
        page.add_failed(found.path, found.error)
    elif found.report is not None:
        kept = (found.repaired and found.repaired.damaged) or found.path
        again = partial(opened, kept, spool_limit=0)
        page.add(found.report, _json(found), found.path, again, how, is_only=is_only, explain=True)
    elif found.parity is not None:
        page.add_other(found.parity, _json(found), found.path)


def _json(found: Scrubbed) -> dict[str, Any]:
    return {
        "path": found.path,
        "ok": found.ok,
        "report": None if found.report is None else found.report.to_dict(),
        "parity": found.parity and found.parity.to_dict(),
        "skipped": found.skipped,
        "repaired": found.repaired and found.repaired.to_dict(),
        "error": found.error and describe(found.error, label=found.path),
    }


def _tell(found: Scrubbed, *, as_json: bool) -> None:
    if found.error is not None:
        tell(found.error, label=found.path)
    if as_json:
        click.echo(json_text(_json(found)))
        return
    if found.skipped is not None:
        click.echo(f"skipped  {printable(found.path)}  {found.skipped}")
    parity = found.parity if found.report is None else found.report.parity
    covers_nothing = parity is not None and parity.covers_nothing
    if (found.ok and not covers_nothing) or (found.report is None and found.parity is None):
        return
    if found.report is not None:
        line = one_line(found.report, found.path, None, None)
    else:
        assert found.parity is not None
        line = other_line(found.parity, found.path)
    repaired = found.repaired
    if repaired is None:
        click.echo(line)
        return
    click.echo(line.splitlines()[0])  # without that it can be repaired
    if repaired.outcome == "lost":
        click.echo(f"    not all of it could be repaired; {exact_size(repaired.changed_bytes)} changed")
        for kind, text in parity_ranges(repaired):
            if kind == "lost":
                click.echo(f"    lost: {text}")
        left = left_by_format(repaired)
        if left is not None:
            click.echo(f"    {left[0]}: {left[1]}")
    else:
        click.echo(f"    repaired: {exact_size(repaired.changed_bytes)} changed")
    undo = how_to_undo(repaired)
    if undo is not None:
        click.echo(f"    to undo that: {undo}")


def _summary(tally: Tally, mended: int, skipped: int) -> str:
    files = tally.sound + tally.damaged + tally.misread.total() + tally.unreadable
    said = tally.summary() if files else "no files: nothing was verified"
    said += f"; {count(mended, 'file')} repaired" if mended else ""
    return said + (f"; {count(skipped, 'file')} skipped" if skipped else "")
