"""`seglake verify`: every byte of a file checked, and what was found."""

from __future__ import annotations

import sys
from pathlib import PurePath
from typing import Any

import click

from . import options
from .escape import json_text
from .failure import Status, describe, report_status
from .inputs import Input, each
from .terminal import byte_progress
from .verdict import Tally, one_line, show_in_full

_EXAMPLES = """
\b
Examples:
  seglake verify today.active
  seglake verify --quiet /var/log/segments/*.active || echo "look at the disk"
  seglake verify --json *.active | jq -c 'select(.ok | not) | {path, damage}'
  SEGLAKE_KEY=$(cat secret.hex) seglake verify today.active
"""


@click.command(epilog=_EXAMPLES)
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path())
@options.as_json("One JSON object a line, one line a file: the report.")
@click.option("--quiet", "-q", is_flag=True, help="Say nothing of sound files.")
@options.segment_format
@options.key_file
@options.spool_limit
@options.debug
def command(
    files: tuple[str, ...],
    as_json: bool,
    quiet: bool,
    segment_format: Any,
    key_file: str | None,
    spool_limit: int,
) -> int:
    """Check every byte of files and tell what is damaged, where and why.

    Nothing is changed. FILE may be - for standard input, which is copied to a temporary file first. A file that cannot
    be read does not stop the others.

    Exit status: 0 all sound, 1 something is damaged, 2 trouble: a file cannot be read or its key is probably wrong.
    """
    import seglake

    options.check_key(key_file)
    tally = Tally()

    def check(file: Input) -> int:
        with byte_progress(PurePath(file.label).name) as advance:
            report = seglake.verify(file.from_start(), format=segment_format, key_file=key_file, progress=advance)
        tally.add(report)
        if not (quiet and report.ok):
            if as_json:
                # The path as it was given: the report's own has lost what is not UTF-8.
                click.echo(json_text({**report.to_dict(), "path": file.path}))
            elif len(files) > 1 and report.ok:
                click.echo(one_line(report, file.label))
            else:
                show_in_full(report, file.label, sys.stdout)
        return report_status(report)

    def failed(name: str, error: Exception) -> None:
        tally.unreadable += 1
        if as_json:
            click.echo(json_text({"ok": False, "path": name, "error": describe(error)}))

    worst = each(files, spool_limit=spool_limit, action=check, failed=failed)
    if len(files) > 1 and not as_json and not (quiet and worst == Status.SOUND):
        click.echo(tally.summary())
    return worst
