"""`seglake verify`: every byte of a file checked, and what was found."""

from __future__ import annotations

import os
import sys
from pathlib import PurePath
from typing import Any

import click

from . import index_state, options, reading
from .escape import json_text
from .failure import Status, describe, report_status
from .inputs import Input, each
from .terminal import byte_progress
from .verdict import IndexVerdict, Tally, one_line, show_in_full

# Each takes some 8 MiB, so a machine with very many cores is not to have one for each unless somebody says so.
_MAX_THREADS = 8

_EXAMPLES = """
\b
Examples:
  seglake verify today.active
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
@reading.layout
@reading.index
@reading.limits
@options.spool_limit
@options.debug
def command(
    files: tuple[str, ...],
    as_json: bool,
    quiet: bool,
    explain: int,
    threads: int | None,
    spool_limit: int,
    **how: Any,
) -> int:
    """Check every byte of files and tell what is damaged, where and why.

    Nothing is changed. FILE is a path, a URI such as s3://bucket/key, or - for standard input, which is copied to a
    temporary file first. A file that cannot be read does not stop the others.

    What damage probably comes from is looked for in a second reading of damaged files, and where a single flipped bit
    explains it, that is proposed: never applied.

    Exit status: 0 all sound, 1 something is damaged, 2 trouble: a file cannot be read or its key is probably wrong. The
    index of a chunked file is checked, too, but holds nothing of its own: damage to it alone is said, with status 0.
    """
    import seglake

    reading.check_index(how, files)
    options.check_key(how["key"])
    tally = Tally()

    def check(file: Input) -> int:
        with byte_progress(PurePath(file.label).name) as advance:
            report = seglake.verify(
                file.from_start(),
                **reading.only(how, "format", "dialect", "key", "limits"),
                explain=explain,
                threads=threads or min(os.cpu_count() or 1, _MAX_THREADS),
                progress=advance,
            )
        with seglake.open(file.from_start(), **reading.given(how)) as reader:
            found = index_state.index_of(reader)
        index = None if found is None else index_state.facts(found)
        verdict = None if index is None else _of_index(index, file, how["index"])
        tally.add(report)
        if not (quiet and report.ok and (index is None or index["ok"])):
            if as_json:
                # The path as it was given: the report's own has lost what is not UTF-8.
                click.echo(json_text({**report.to_dict(), "path": file.path, "index": index}))
            elif len(files) > 1 and report.ok:
                click.echo(one_line(report, verdict, file.label))
            else:
                show_in_full(report, verdict, file.label, sys.stdout)
        return report_status(report)

    def failed(name: str, error: Exception) -> None:
        tally.unreadable += 1
        if as_json:
            click.echo(json_text({"ok": False, "path": name, "error": describe(error)}))

    worst = each(files, spool_limit=spool_limit, action=check, failed=failed)
    if len(files) > 1 and not as_json and not (quiet and worst == Status.SOUND):
        click.echo(tally.summary())
    return worst


def _of_index(index: dict[str, Any], log: Input, named: str | None) -> IndexVerdict:
    return IndexVerdict(index["ok"], index_state.for_people(index), index_state.rebuilding(log.path, named))
