"""`seglake index`: the index of a chunked log, built from the log."""

from __future__ import annotations

from typing import Any

import click

from . import index_state, options, outputs, reading
from .escape import json_text, printable
from .failure import Status
from .inputs import opened

_EXAMPLES = """
\b
Examples:
  seglake index events.chunks                      writes events.index
  seglake index events.chunks --output /tmp/events.index
  seglake index - --output events.index < events.chunks
"""


@click.command(epilog=_EXAMPLES)
@click.argument("file", metavar="FILE", type=click.Path())
@click.option("--output", metavar="PATH", type=click.Path(), help="Where to write it. [default: beside FILE]")
@options.as_json("One JSON object: where the index is and how much is in it.")
@reading.limit_chunk_bytes
@options.spool_limit
@options.debug
def command(file: str, output: str | None, as_json: bool, spool_limit: int, **how: Any) -> int:
    """Build or rebuild the index of FILE, a chunked log.

    The index makes looking up by offset faster; it holds nothing that the log does not. An existing one is replaced.
    Only sound chunks are indexed.

    Exit status: 0 written, 2 trouble.
    """
    import seglake

    with opened(file, spool_limit=spool_limit) as log:
        if output is None and (log.path is None or "://" in log.path):
            raise click.UsageError(f"{printable(log.label)} has no place beside it: name the index with --output")
        if output is not None:
            outputs.check_destination(log, output)
        index = seglake.index(log.from_start(), output, **reading.given(how))
    facts = index_state.facts(index)
    if as_json:
        click.echo(json_text(facts))
    else:
        click.echo(f"{printable(str(index.path))}: {index_state.for_people(facts, file)}")
    return Status.SOUND
