"""`seglake convert`: a file's records into a file of any format."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any, cast

import click

from . import columns, options, outputs, reading
from .escape import printable
from .failure import Trouble
from .inputs import opened
from .settings import parse_settings, typed
from .terminal import byte_progress

_EXAMPLES = """
\b
Examples:
  seglake convert january.active january.sealed
  seglake convert events.chunks events.active --drop offset --set type=event
  seglake convert a.active a.tenant --drop uuid,timestamp,type --set partition=0 --set tenant=acme
  seglake convert old.tenant new.tenant --version 2 --overwrite
  seglake convert a.oplog b.oplog --dialect draft-1.1 --to-dialect draft --drop clock.seq,clock.offset,keys
  seglake convert damaged.active sound.active --on-damage skip
  zstd -dc old.active.zst | seglake convert - old.sealed --no-trailer
"""
_COLUMNS_NEXT = (
    "  next      --drop NAME gives a column up (a field of a structure: --drop clock.seq), "
    "--set NAME=VALUE fills a missing one"
)


def _names(_context: click.Context, _parameter: click.Parameter, given: Sequence[str]) -> list[str]:
    return [name.strip() for names in given for name in names.split(",")]


@click.command(epilog=_EXAMPLES)
@click.argument("source", metavar="SRC", type=click.Path())
@click.argument("destination", metavar="DST", type=click.Path())
@click.option("--to", metavar="FORMAT", help="The format to write. [default: told from DST's extension]")
@click.option(
    "--drop",
    metavar="NAMES",
    multiple=True,
    callback=_names,
    help="Columns that may be lost, with commas between; can be given again.",
)
@click.option(
    "--set",
    "settings",
    metavar="NAME=VALUE",
    multiple=True,
    callback=parse_settings,
    help="A value for a column that SRC does not have, the same for all records: text, a number, an ISO 8601 time, "
    'JSON for structures ({"hex": "..."} for bytes in them); `now` for times and UUIDs; can be given again.',
)
@click.option("--to-dialect", metavar="NAME", help="How the messages of the new oplog are laid out. [default: draft]")
@click.option("--version", type=click.IntRange(1, 0xFFFF), metavar="N", help="The version of the new tenant file.")
@click.option("--no-trailer", is_flag=True, help="Write a sealed file without checksums.")
@click.option("--no-index", is_flag=True, help="Write a chunked file without an index.")
@click.option("--level", type=int, metavar="N", help="How hard to compress chunks, as for zstd. [default: 1]")
@click.option(
    "--chunk-bytes", type=options.parse_size, metavar="SIZE", help="Close a chunk at so much content. [default: 256KiB]"
)
@click.option("--chunk-records", type=click.IntRange(min=1), metavar="N", help="Close a chunk at so many records.")
@outputs.overwrite
@options.as_json("One JSON object: what was written, and the report on SRC.")
@reading.wanted
@reading.on_damage
@reading.layout
@reading.limits
@options.spool_limit
@options.debug
def command(
    source: str,
    destination: str,
    to: str | None,
    drop: list[str],
    settings: dict[str, str],
    to_dialect: str | None,
    version: int | None,
    no_trailer: bool,
    no_index: bool,
    level: int | None,
    chunk_bytes: int | None,
    chunk_records: int | None,
    overwrite: bool,
    as_json: bool,
    spool_limit: int,
    **how: Any,
) -> int:
    """Write the records of SRC to DST, a new file of any format.

    No column is lost unless it is named with --drop, and none is made up unless it is set with --set. DST appears when
    it is complete. SRC is a path, a URI such as s3://bucket/key, or - for standard input, which is copied to a
    temporary file first.

    Exit status: 0 all sound, 1 SRC is damaged (nothing is written; with --on-damage skip, what is sound), 2 trouble.
    """
    import seglake

    options.check_key(how["key_file"])
    write = {
        "dialect": to_dialect,
        "version": version,
        "trailer": False if no_trailer else None,
        "index": False if no_index else None,
        "level": level,
        "chunk_bytes": chunk_bytes,
        "chunk_records": chunk_records,
    }
    target: Any = to or _format_of(destination)
    known = seglake.formats(dialect=cast("Any", to_dialect)).get(target)
    values = typed(settings, columns.kinds(known)) if known is not None else {}
    with (
        opened(source, spool_limit=spool_limit) as file,
        outputs.telling_of_existing(),
        byte_progress(PurePath(file.label).name) as advance,
    ):
        outputs.check_destination(file, destination)
        try:
            report = seglake.convert(
                file.from_start(),
                destination,
                to=target,
                drop=drop,
                set=values,
                write=reading.given(write),
                overwrite=overwrite,
                progress=advance,
                **reading.given(how),
            )
        except seglake.ColumnsError as error:
            raise Trouble(f"{printable(str(error))}\n{_COLUMNS_NEXT}") from error
    return outputs.tell_of(report, file, destination, as_json=as_json)


def _format_of(destination: str) -> str:
    """The format that a file name's extension stands for.

    Raises:
        Trouble: it stands for none.
    """
    from seglake import formats

    extension = PurePath(destination).suffix.removeprefix(".")
    for format in formats().values():
        if format.extension == extension:
            return format.name
    raise Trouble(
        f"the extension of {printable(destination)} is that of no format\n  next      name the format with --to"
    )
