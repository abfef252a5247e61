"""`seglake verify`: every byte of a file checked, and what was found."""

from __future__ import annotations

import os
import sys
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from . import folders, index_state, options, reading
from .escape import json_text
from .failure import Status, describe, report_status, tell
from .inputs import Input, each, is_uri
from .terminal import Advance, byte_progress
from .verdict import IndexVerdict, Tally, one_line, show_in_full

if TYPE_CHECKING:
    import seglake

# Each takes some 8 MiB, so a machine with very many cores is not to have one for each unless somebody says so.
_MAX_THREADS = 8
_LARGE_BYTES = 256 << 20

_EXAMPLES = """
\b
Examples:
  seglake verify today.active
  seglake verify logs                      all below a folder, one line a file
  seglake verify --quiet /var/log/segments/*.active || echo "look at the disk"
  seglake verify --json *.active | jq -c 'select(.ok | not) | {path, damage}'
  seglake verify --dialect draft-1.1 writer.oplog
  seglake verify --index none events.chunks s3://bucket/january.sealed
  SEGLAKE_KEY=$(cat secret.hex) seglake verify today.active
"""


@click.command(epilog=_EXAMPLES)
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path())
@options.as_json("One JSON object a line, one line a file: the report.")
@click.option("--quiet", "-q", is_flag=True, help="Say nothing of sound files.")
@click.option(
    "--explain",
    type=click.IntRange(min=0),
    default=100,
    metavar="N",
    help="Find what damage probably comes from, for the first N ranges. [default: 100]",
)
@click.option(
    "--threads",
    type=click.IntRange(min=1),
    metavar="N",
    help=f"Read sealed, tenant and chunked files with N threads. [default: one a core, {_MAX_THREADS} at most]",
)
@folders.glob
@reading.layout
@reading.index
@reading.limits
@options.spool_limit
@options.debug
def command(
    files: tuple[str, ...],
    globs: tuple[str, ...],
    as_json: bool,
    quiet: bool,
    explain: int,
    threads: int | None,
    spool_limit: int,
    **how: Any,
) -> int:
    """Check every byte of files and tell what is damaged, where and why.

    Nothing is changed. FILE is a path, a folder with all below it, a URI such as s3://bucket/key, or - for standard
    input, which is copied to a temporary file first. A file that cannot be read does not stop the others. Files of
    folders are checked side by side and have one line each; names that begin with _ or . are left out.

    What damage probably comes from is looked for in a second reading of damaged files, and where a single flipped bit
    explains it, that is proposed: never applied.

    Exit status: 0 all sound, 1 something is damaged, 2 trouble: a file cannot be read or its key is probably wrong. The
    index of a chunked file is checked, too, but holds nothing of its own: damage to it alone is said, with status 0.
    """
    import seglake

    named = folders.files_named(files, globs)
    reading.check_index(how, named.files)
    options.check_key(how["key"])
    tally = Tally()
    arguments = reading.only(how, "format", "dialect", "key", "limits")
    cores = threads or min(os.cpu_count() or 1, _MAX_THREADS)
    formats = seglake.formats(dialect=how["dialect"])

    def checked(file: Input, threads: int, explain: int, progress: Advance | None) -> Checked:
        report = seglake.verify(file.from_start(), **arguments, explain=explain, threads=threads, progress=progress)
        if formats[report.format].index_extension is None:
            return Checked(report, None)
        with seglake.open(file.from_start(), **reading.given(how)) as reader:
            found = index_state.index_of(reader)
        return Checked(report, None if found is None else index_state.facts(found))

    def tell_of(found: Checked, label: str, path: str | None, *, in_one_line: bool) -> int:
        report, index = found
        tally.add(report)
        if quiet and report.ok and (index is None or index["ok"]):
            return Status.SOUND
        verdict = None if index is None else _of_index(index, path, how["index"])
        if as_json:
            # The path as it was given: the report's own has lost what is not UTF-8.
            click.echo(json_text({**report.to_dict(), "path": path, "index": index}))
        elif in_one_line:
            click.echo(one_line(report, verdict, label))
        else:
            show_in_full(report, verdict, label, sys.stdout)
        return report_status(report)

    def check(file: Input) -> int:
        with byte_progress(PurePath(file.label).name) as advance:
            found = checked(file, cores, explain, advance)
        return tell_of(found, file.label, file.path, in_one_line=len(files) > 1 and found.report.ok)

    def failed(name: str, error: Exception) -> None:
        tally.unreadable += 1
        if as_json:
            click.echo(json_text({"ok": False, "path": name, "error": describe(error)}))

    def check_beside_others(file: Input) -> Checked:
        # Large ones by several threads, so that the last is not read by one alone.
        large = file.path is not None and not is_uri(file.path) and file.size > _LARGE_BYTES
        return checked(file, cores if large else 1, explain if as_json else 0, None)

    if not named.in_folders:
        worst = each(files, spool_limit=spool_limit, action=check, failed=failed)
    else:
        tally.unreadable += named.empty
        worst = named.status
        for name, found in folders.side_by_side(named, check_beside_others, spool_limit=spool_limit, threads=cores):
            if isinstance(found, Exception):
                failed(name, found)
                worst = max(worst, tell(found, label=name))
            else:
                worst = max(worst, tell_of(found, name, name, in_one_line=True))
    if (len(files) > 1 or named.in_folders) and named.files and not as_json and not (quiet and worst == Status.SOUND):
        click.echo(tally.summary())
        if tally.damaged and named.in_folders:
            click.echo("`seglake verify FILE` shows where a file is damaged, why, and what to do")
    return worst


class Checked(NamedTuple):
    """What was found in a file, and of its index."""

    report: seglake.Report
    index_facts: dict[str, Any] | None


def _of_index(index: dict[str, Any], log: str | None, named: str | None) -> IndexVerdict:
    return IndexVerdict(index["ok"], index_state.for_people(index), index_state.rebuilding(log, named))
