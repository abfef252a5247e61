"""`seglake index`: the index of a chunked log, built from the log."""

from __future__ import annotations

from typing import Any

import click

from seglake._values import is_uri

from . import options
from .failure import Status, Trouble
from .help_groups import Command
from .inputs import Input, opened_to_rewrite
from .render import json_text, printable
from .report import index_facts, index_in_words, reads_with

_EXAMPLES = """
\b
Examples:
  seglake index events.chunks                      writes events.index
  seglake index --overwrite events.chunks          replaces a damaged one
  seglake index events.chunks /tmp/events.index
  seglake index - events.index < events.chunks
"""


@click.command(cls=Command, epilog=_EXAMPLES)
@click.argument("file", metavar="FILE", type=options.PATH)
@click.argument("destination", metavar="[DST]", required=False, type=options.PATH)
@options.overwrite
@options.as_json("One JSON object: where the index is and how much is in it.")
@options.limits
@options.segment_format
@options.spool_limit
@options.debug
def command(
    file: str, destination: str | None, overwrite: bool, as_json: bool, format: str | None, spool_limit: int, **how: Any
) -> int:
    """Build or rebuild the index of FILE, a chunked log.

    It is written beside FILE, or to DST. It makes looking up by offset faster. Only sound chunks are indexed. An
    existing index is replaced with --overwrite, but never one that knows more than FILE has: it lists what is missing
    of a FILE that was cut off.

    Exit status: 0 written, 2 error.
    """
    import seglake

    with opened_to_rewrite(file, destination, spool_limit=spool_limit) as (log, advance):
        if destination is None and (log.path is None or is_uri(log.path)):
            raise click.UsageError(
                f"nothing can be written beside {printable(log.label)}: name the index to write as DST"
            )
        _check(log, format)
        index = seglake.index(
            log.from_start(),
            destination,
            if_exists=options.if_exists(overwrite=overwrite),
            format=format,
            progress=advance,
            **options.given(how),
        )
    facts = index_facts(index)
    if as_json:
        click.echo(json_text(facts))
    else:
        click.echo(f"{printable(str(index.path))}: {index_in_words(facts)}")
    return Status.SOUND


def _check(log: Input, format: Any) -> None:
    """Refuse a file of which there is no index: none would be found to be in it.

    Raises:
        Trouble: it is of a format without.
        seglake.FormatError: its format cannot be told.
    """
    import seglake

    with seglake.open(log.from_start(), format=format) as reader:
        if not reads_with(reader.format, "index"):
            raise Trouble(f"{printable(log.label)}: is {reader.format}: files of this format have no index beside them")
