"""`seglake log info`: the segments of a log, and how far it is on the disk."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .. import options
from ..advice import in_lines, shell_word
from ..failure import Status, say, tell
from ..folders import tell_unread
from ..help_groups import Command
from ..render import count, exact_size, json_text, printable, table
from ..vocabulary import REASONS
from .folder import ahead_in_words, folder, reading

if TYPE_CHECKING:
    from seglake._native import ListedSegment

_EXAMPLES = """
\b
Examples:
  seglake log info logs
  seglake log info --json logs | jq .segments
  seglake log info --key-file key logs
"""


@click.command(cls=Command, epilog=_EXAMPLES, short_help="Show a log's segments, and how far it is on the disk.")
@folder
@options.as_json("One JSON object.")
@options.key_file()
@options.debug
def command(path: str, as_json: bool, key: str | None) -> int:
    """Show the segments of a log, and how far it is known to be on the disk.

    Sizes are those of the files. That of each segment is compared with what its log says, and so is its first record.

    Exit status: 0 nothing is wrong with the folder, 1 a segment is frozen, since it is damaged, or is shorter than its
    log says, or has records that are not read, 2 error.
    """
    import seglake
    from seglake._native import list_log

    with reading(path, key) as log:
        ahead = log.clock_ahead
    segments, synced = list_log(path, key=key)
    shown = [_facts(segment) for segment in segments]
    unread = [segment.unread for segment in segments if segment.unread is not None]
    if as_json:
        mark = None if synced is None else {**synced._asdict(), "last": str(synced.last)}
        not_read = unread[0]._asdict() if unread else None
        seconds = None if ahead is None else ahead.total_seconds()
        said = {"path": path, "synced": mark, "clock_ahead": seconds, "unread": not_read, "segments": shown}
        click.echo(json_text(said))
    else:
        nbytes = sum(own["nbytes"] for own in shown)
        click.echo(f"{printable(path)}: {count(len(segments), 'segment')}, {exact_size(nbytes)}")
        if synced is not None:
            click.echo(f"synced up to offset {synced.byte_offset:,} of segment {synced.sequence}, {synced.last}")
        if ahead is not None:
            click.echo(ahead_in_words(ahead))
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
    status = tell_unread(unread)
    for segment in segments:
        if segment.is_frozen:
            status = max(status, Status.DAMAGED)
        try:
            segment.check(key=key)
        except seglake.DamageError as error:
            reason = REASONS["short_segment"]
            say(
                in_lines(
                    f"{printable(segment.path)}: {reason.title}: expected {error.expected}, found {error.actual}",
                    reason,
                    f"seglake verify {shell_word(segment.path)}",
                )
            )
            status = max(status, Status.DAMAGED)
        except (seglake.SeglakeError, OSError) as error:
            status = max(status, tell(error, label=segment.path))
    return status


def _facts(segment: ListedSegment) -> dict[str, Any]:
    nbytes = segment.nbytes
    with suppress(FileNotFoundError):  # sealed or removed meanwhile
        nbytes = min(nbytes, Path(segment.path).stat().st_size)
    if segment.unread is not None:
        nbytes += segment.unread.nbytes
    return {
        "sequence": segment.sequence,
        "first": str(segment.first),
        "kind": "sealed" if segment.is_sealed else "active",
        "path": segment.path,
        "is_frozen": segment.is_frozen,
        "nbytes": nbytes,
    }
