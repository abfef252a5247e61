"""`seglake convert`: a file's records into a file of any format."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any, cast

import click

from seglake import _values as values

from . import completing, options
from .failure import Trouble
from .help_groups import Command
from .inputs import opened_to_rewrite, tell_written
from .option_names import with_options
from .options import parse_settings
from .render import column_kinds, printable

_EXAMPLES = """
\b
Examples:
  seglake convert january.active january.sealed
  seglake convert events.chunks events.active --drop offset --set type=event
  seglake convert a.active a.tenant --drop uuid,timestamp,type --set partition=0 --set tenant=acme
  seglake convert old.tenant new.tenant --option version=2 --overwrite
  seglake convert a.oplog b.oplog --dialect draft-1.1 --option dialect=draft --drop clock.seq,clock.offset,keys
  seglake convert damaged.active sound.active --on-damage skip
  zstd -dc old.active.zst | seglake convert - old.sealed --option trailer=false
"""
# Options for files that exist already, which the new one does not.
_NOT_NEW = ("if_exists", "zero_torn_tail")
_COLUMNS_NEXT = (
    "  next      --drop NAME gives a column up (a field of a structure: --drop clock.seq), "
    "--set NAME=VALUE fills a missing one"
)


def _names(_context: click.Context, _parameter: click.Parameter, given: Sequence[str]) -> list[str]:
    return [name for names in given for name in values.comma_list(names)]


@click.command(cls=Command, epilog=_EXAMPLES)
@click.argument("source", metavar="SRC", type=options.PATH)
@click.argument("destination", metavar="DST", type=options.PATH)
@click.option(
    "--to",
    metavar="FORMAT",
    shell_complete=completing.format_names,
    help="The format to write. [default: DST's extension]",
)
@click.option(
    "--drop",
    metavar="NAMES",
    multiple=True,
    callback=_names,
    shell_complete=completing.column_names(),
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
@click.option(
    "--option",
    "texts",
    metavar="NAME=VALUE",
    multiple=True,
    callback=parse_settings,
    help="How the new file is laid out, as its format declares it: dialect of an oplog; trailer of a sealed file; "
    "version of a tenant file; level, chunk_bytes, chunk_records and index of a chunked one; can be given again.",
)
@options.overwrite
@click.option(
    "--dry-run", is_flag=True, help="See whether all records fit: convert to a file beside DST, and remove it."
)
@options.as_json("One JSON object: what was written, and the report on SRC.")
@options.wanted
@options.on_damage
@options.sidecar
@options.reading
def command(
    source: str,
    destination: str,
    to: str | None,
    drop: list[str],
    settings: dict[str, str],
    texts: dict[str, str],
    overwrite: bool,
    dry_run: bool,
    as_json: bool,
    sidecar: str | None,
    spool_limit: int,
    **how: Any,
) -> int:
    """Write the records of SRC to DST, a new file of any format.

    No column is lost unless it is named with --drop, and none is made up unless it is set with --set. DST appears when
    it is complete. SRC is a path, a URI such as s3://bucket/key, or - for standard input, which is copied to a
    temporary file first.

    Exit status: 0 all sound, 1 SRC is damaged (nothing is written; with --on-damage skip, what is sound), 2 error.
    """
    import seglake

    options.check_key(how["key"])
    target = to or _format_of(destination)
    write = _typed_options(target, texts)
    formats = seglake.formats(options={"dialect": cast("Any", write.get("dialect"))})
    filled = options.typed(settings, column_kinds(formats[target])) if target in formats else {}
    with opened_to_rewrite(source, destination, spool_limit=spool_limit) as (file, advance):
        try:
            with seglake.open(file.from_start(), **options.given(how), **options.parity(sidecar, [source])) as reader:
                report = seglake.convert(
                    reader,
                    destination,
                    to=target,
                    drop=drop,
                    set=filled,
                    options=cast("Any", write),
                    if_exists=options.if_exists(overwrite=overwrite),
                    dry_run=dry_run,
                    progress=advance,
                )
        except seglake.exceptions.ColumnsError as error:
            raise Trouble(f"{printable(with_options(str(error)))}\n{_COLUMNS_NEXT}") from error
    return tell_written(report, file, None if dry_run else destination, as_json=as_json)


def _typed_options(target: str, texts: dict[str, str]) -> dict[str, Any]:
    """The options of the new file as the library takes them.

    Raises:
        click.BadParameter: the format has no such option, or it does not take a value.
    """
    from seglake import formats

    declared = formats()[target].create_options if target in formats() else {}
    known = [option.name for option in declared.values() if option.kind != "key" and option.name not in _NOT_NEW]
    typed: dict[str, Any] = {}
    for name, text in texts.items() if declared else ():
        if name not in known:
            raise click.BadParameter(
                f"{target} files have no option {name}: there are {', '.join(known) or 'none'}", param_hint="--option"
            )
        try:
            typed[name] = values.option_value(declared[name], text)
        except values.WrongValueError as error:
            raise click.BadParameter(f"{name}={text}: expected {error.expected}", param_hint="--option") from error
    return typed


def _format_of(destination: str) -> str:
    """The format that a file name's extension stands for.

    Raises:
        Trouble: it stands for none.
    """
    from seglake import formats

    extension = PurePath(destination).suffix.removeprefix(".")
    for format in formats():
        if format.extension == extension:
            return format.name
    raise Trouble(
        f"the extension of {printable(destination)} is that of no format\n"
        "  next      name the format with --to; `seglake export` writes Parquet, Arrow, CSV and JSON lines"
    )
