"""`seglake log info`: the segments of a log, and how far it is on the disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from .. import options
from ..failure import Status
from ..render import count, exact_size, json_text, printable, table
from .folder import folder, reading

if TYPE_CHECKING:
    from seglake._native import ListedSegment

_EXAMPLES = """
\b
Examples:
  seglake log info logs
  seglake log info --json logs | jq .segments
  seglake log info --key-file key logs
"""


@click.command(epilog=_EXAMPLES, short_help="Show a log's segments, and how far it is on the disk.")
@folder
@options.as_json("One JSON object.")
@options.key_file
@options.debug
def command(path: str, as_json: bool, key: str | None) -> int:
    """Show the segments of a log, and how far it is known to be on the disk.

    Exit status: 0 nothing is wrong with the folder, 1 a segment is frozen, since it is damaged, 2 error.
    """
    from seglake._native import list_log

    reading(path, key).close()
    segments, synced = list_log(path, key=key)
    shown = [_facts(segment) for segment in segments]
    if as_json:
        mark = None if synced is None else {**synced._asdict(), "last": str(synced.last)}
        click.echo(json_text({"path": path, "synced": mark, "segments": shown}))
    else:
        nbytes = sum(segment.nbytes for segment in segments)
        click.echo(f"{printable(path)}: {count(len(segments), 'segment')}, {exact_size(nbytes)}")
        if synced is not None:
            click.echo(f"synced up to offset {synced.byte_offset:,} of segment {synced.sequence}, {synced.last}")
        rows = [
            (
                str(own["sequence"]),
                own["kind"] + (", frozen" if own["is_frozen"] else ""),
                f"{own['nbytes']:,}",
                own["first"],
            )
            for own in shown
        ]
        if rows:
            click.echo("")
            click.echo(table(("segment", "kind", "bytes", "first UUID"), rows, right=(0, 2)).plain)
    return Status.DAMAGED if any(segment.is_frozen for segment in segments) else Status.SOUND


def _facts(segment: ListedSegment) -> dict[str, Any]:
    return {
        "sequence": segment.sequence,
        "first": str(segment.first),
        "kind": "sealed" if segment.is_sealed else "active",
        "path": segment.path,
        "is_frozen": segment.is_frozen,
        "nbytes": segment.nbytes,
    }
