"""`seglake log verify`: every byte of a log's segments checked."""

from __future__ import annotations

import click

from seglake.exceptions import FormatError

from .. import options
from ..help_groups import Command
from ..html import html
from .folder import folder, reading

_EXAMPLES = """
\b
Examples:
  seglake log verify logs
  seglake log verify --json logs
  seglake log verify --key-file key logs
"""


@click.command(cls=Command, epilog=_EXAMPLES)
@folder
@options.as_json("One JSON object a line for each segment: the report.")
@html
@options.key_file()
@options.debug
def command(path: str, as_json: bool, html: str | None, no_values: bool, key: str | None) -> int:
    """Check every byte of a log's segments, and that none is missing.

    `seglake verify DIR`, of a log alone. What a writer has not synced yet is not read. `seglake verify FILE`
    explains the damage of one segment.

    Exit status: 0 all sound, 1 damage was found, or records are not read, 2 error.
    """
    from ..verify import command as verify_files

    try:
        reading(path, key).close()
    except FormatError as error:
        # What its files are is said, and shown on the page.
        if error.cause is None:
            raise
    context = click.get_current_context()
    how = {"as_json": as_json, "html": html, "no_values": no_values, "key": key, "index": None, "limits": None}
    return context.invoke(verify_files, files=(path,), **how)
