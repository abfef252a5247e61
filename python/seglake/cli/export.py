"""`seglake export`: the records of many files as Parquet, Arrow, CSV or JSON lines."""

from __future__ import annotations

import sys
from typing import Any, cast

import click

from seglake import _values as values
from seglake._json_text import VALUE_FORMS, ValueForm

from . import completing, folders, options
from .failure import Status, Trouble, say, telling_of_existing
from .help_groups import Command
from .inputs import STANDARD_INPUT
from .render import count, exact_size, json_text, printable, size
from .terminal import byte_progress
from .vocabulary import WRONG_KEY

_STANDARD_OUTPUT = "-"

_EXAMPLES = """
\b
Examples:
  seglake export logs flights.parquet
  seglake export --since 2024-06-01T00:00:00Z 'logs/2024-*/*.active' june.parquet
  seglake export --glob '*.sealed' --on-damage skip --damage damage.csv logs all.parquet
  seglake export --columns timestamp,type orders.active orders.csv
  seglake export --include-file-paths file s3://bucket/logs all.arrow
  seglake export logs s3://bucket/flights.parquet
  seglake export --value json orders.active - | jq .value.id
"""


@click.command(cls=Command, epilog=_EXAMPLES, short_help="Write records as Parquet, Arrow, CSV or JSON lines.")
@options.sources
@options.destination
@folders.glob
@click.option(
    "--columns",
    metavar="NAMES",
    type=options.Typed(values.comma_list),
    shell_complete=completing.column_names(*completing.EVERYWHERE),
    help="The columns, with commas between; also path, position and cause.",
)
@click.option(
    "--include-file-paths", metavar="NAME", help="One more column of this name: which file each record is from."
)
@click.option(
    "--uuid-type",
    type=click.Choice(["string", "uuid", "arrow.uuid", "binary"]),
    default="string",
    show_default=True,
    help="How Parquet and Arrow have UUIDs: as text, 16 bytes, Arrow's own type (in Parquet the type UUID), or bytes.",
)
@click.option(
    "--value",
    "form",
    type=click.Choice(VALUE_FORMS),
    help="How CSV and JSON lines have values. With text and json it is the value itself; what is not JSON (text: not "
    "UTF-8) is base64 in value_base64. [default: text in CSV, base64 in JSON lines]",
)
@click.option("--damage", metavar="FILE", type=options.PATH, help="With --on-damage skip: a table of what was skipped.")
@click.option(
    "--compression", default="zstd", show_default=True, metavar="NAME", help="Of Parquet and Arrow: zstd, lz4, none."
)
@click.option(
    "--row-group-size",
    type=click.IntRange(min=1),
    default=1_048_576,
    show_default=True,
    metavar="N",
    help="A row group of Parquet ends after so many rows, or 128 MiB.",
)
@click.option("--prune", is_flag=True, help="Read no more of each file than the records that are chosen can be in.")
@click.option("--threads", type=click.IntRange(min=1), metavar="N", help="Read with N threads. [default: one a core]")
@options.overwrite
@options.as_json("Say what was written as a JSON object.")
@options.wanted
@options.on_damage_or_repair
@options.layout
@options.limits
@options.debug
def command(
    sources: tuple[str, ...],
    destination: str,
    globs: tuple[str, ...],
    columns: list[str] | None,
    include_file_paths: str | None,
    uuid_type: str,
    form: ValueForm | None,
    damage: str | None,
    compression: str,
    row_group_size: int,
    prune: bool,
    threads: int | None,
    overwrite: bool,
    as_json: bool,
    **given: Any,
) -> int:
    """Write records to DST, one Parquet, Arrow, CSV or JSON lines file.

    Records are in the order of the files' paths. SRC is a file, a folder with all below it, a pattern such as
    'logs/*.active', or a URI of these. All files are of one format, or active and sealed. In folders, names that
    begin with _ or . are left out. DST is a path or URI that ends in .parquet, .arrow, .csv or .jsonl, or - for JSON
    lines to standard output. Needs pyarrow: pip install pyarrow.

    Nothing is written unless all is: damage stops the export, or with --on-damage skip is left out and counted, and
    written to --damage.

    Exit status: 0 all sound, 1 damage was met, or records of a log are not read, 2 error.
    """
    import warnings

    import seglake

    options.check_sources(sources, destination)
    options.check_key(given["key"])
    if STANDARD_INPUT in sources:
        raise click.UsageError("standard input is no file to export: name one")
    if damage is not None and given["on_damage"] == "raise":
        raise click.UsageError("--damage takes what --on-damage skip leaves out: give both")
    to_terminal = destination == _STANDARD_OUTPUT
    with byte_progress("exporting") as advance, telling_of_existing(), warnings.catch_warnings():
        # What was skipped is said once, at the end.
        warnings.simplefilter("ignore", seglake.exceptions.DamageWarning)
        warnings.simplefilter("ignore", seglake.exceptions.UnreadWarning)
        try:
            scan = seglake.scan(
                sources,
                glob=globs or None,
                columns=columns,
                include_file_paths=include_file_paths,
                prune=prune,
                threads=threads,
                uuid_type=cast("Any", uuid_type),
                **options.given(given),
            )
            for path, reason in scan.passed_over():
                say(f"{printable(path)}: passed over: {reason}")
            exported = seglake.export(
                scan,
                sys.stdout.buffer if to_terminal else destination,
                to="jsonl" if to_terminal else None,
                value=form,
                damage=damage,
                compression=compression,
                row_group_size=row_group_size,
                if_exists=options.if_exists(overwrite=overwrite),
                progress=advance,
            )
        except ImportError as error:
            raise Trouble(f"{printable(str(error))}: export needs pyarrow: pip install pyarrow") from error
    status = max(folders.tell_unread(scan.unread()), Status.DAMAGED if exported.damaged_ranges else Status.SOUND)
    if to_terminal:
        sys.stdout.flush()
    elif as_json:
        unread = [unread._asdict() for unread in scan.unread()]
        click.echo(json_text({"path": destination, "files": len(scan.files()), "unread": unread, **exported._asdict()}))
    else:
        written = exact_size(_file_bytes(destination))
        files = count(len(scan.files()), "file")
        click.echo(f"{printable(destination)}: {count(exported.records, 'record')} of {files}, {written}")
    if not exported.records and (remark := options.compared_as_written(given)) is not None:
        say(remark)
    if exported.damaged_ranges:
        ranges = count(exported.damaged_ranges, "damaged range")
        where = "" if damage is None else f": {printable(damage)} has them"
        what = "met" if given["on_damage"] == "repair" else "skipped"
        say(f"{what} {ranges}, {size(exported.damaged_bytes)} in all{where}")
    for path in exported.wrong_key:
        say(f"{printable(path)}: skipped: {WRONG_KEY}")
    return Status.TROUBLE if exported.wrong_key else status


def _file_bytes(destination: str) -> int:
    """Returns the size of what was written."""
    from pathlib import Path

    from seglake.stores import Stores
    from seglake.stores.patterns import mounted_path

    local = mounted_path(destination, "file")
    if local is not None:
        return Path(local).stat().st_size
    store, path = Stores().connect(destination)
    found = store.find(path, destination)
    return found.size if found is not None else 0
