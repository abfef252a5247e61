"""What an ingest reads: finds it, and refuses what must not be ingested."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast, get_args

import pyarrow as pa
import pyarrow.parquet as pq

from seglake._files import FileFilter, FileListing, find_files
from seglake._text import path_text, printable_path
from seglake._types import DialectName
from seglake.spark.formats import FormatOptions

from .layout import files_tables, records_files
from .result import IngestError
from .tables import records_schema

__all__ = ["absolute_destination", "find_inputs", "refuse_ingested", "refuse_other_columns"]


def absolute_destination(dst: str | os.PathLike[str]) -> Path:
    """Returns the destination's path without links; it need not exist.

    Raises:
        IngestError: something that is no folder is in its place.
    """
    text = os.fspath(dst)
    if not text:
        raise IngestError("no destination is given: name the folder that the tables are to be written to")
    if "://" in text:
        raise IngestError(
            f"{printable_path(text)}: expected a folder of a mounted file system; other storage cannot be "
            "written to yet"
        )
    path = Path(text).resolve()
    if path.exists() and not path.is_dir():
        raise IngestError(f"{printable_path(text)}: expected a folder for the tables, or nothing yet; a file is there")
    return path


def find_inputs(sources: Sequence[str], destination: Path) -> FileListing:
    """Finds the files to ingest; folders are searched with all that is below them.

    Raises:
        IngestError: a source does not exist or cannot be listed, or the destination is among the sources.
    """
    if not sources:
        raise IngestError("no sources are given: name files, folders or patterns")
    try:
        listing = find_files(sources, FileFilter(recursive=True))
    except (OSError, ValueError) as error:
        raise IngestError(str(error)) from error
    for folder in listing.folders:
        if destination.is_relative_to(folder):
            raise IngestError(
                f"{printable_path(destination)}: the destination is in {printable_path(folder)}, which is to be "
                "ingested; the next ingest would take the tables for segments. Write to a folder beside it"
            )
    return listing


def refuse_ingested(destination: Path, listing: FileListing) -> None:
    """Sees to it that no file is ingested twice.

    Raises:
        IngestError: a file has been ingested by an earlier run. Those that could not be read then may be.
    """
    done: set[str] = set()
    for table in files_tables(destination):
        parquet: Any = pq.ParquetFile(table)  # typed in part only
        rows: list[dict[str, Any]] = parquet.read(columns=["path", "error"]).to_pylist()
        done.update(row["path"] for row in rows if row["error"] is None)
    again = [path for file in listing.files if (path := path_text(file.real_path)) in done]
    if again:
        more = f" and {len(again) - 1} more" if len(again) > 1 else ""
        raise IngestError(
            f"{printable_path(again[0])}{more}: already ingested into {printable_path(destination)}, a second time "
            "would double the records. Name only the new files, or another destination"
        )


def refuse_other_columns(destination: Path, formats: Iterable[str], options: FormatOptions) -> None:
    """Sees to it that all records of a table have the same columns.

    Raises:
        IngestError: an earlier run has written records with other columns, as those of another dialect are.
    """
    for format in formats:
        table = next(records_files(destination, format), None)
        if table is None:
            continue
        found: pa.Schema = cast("Any", pq).read_schema(table)
        if found.equals(records_schema(format, options)):
            continue
        dialects = [
            dialect
            for dialect in get_args(DialectName)
            if found.equals(records_schema(format, replace(options, dialect=dialect)))
        ]
        if dialects:
            asked = options.dialect or get_args(DialectName)[0]
            raise IngestError(
                f"{printable_path(destination / format / 'records')}: its records are of dialect "
                f"{dialects[0]} and so have other columns than those of dialect {asked}. Name the dialect of the "
                "files, or another destination"
            )
        raise IngestError(
            f"{printable_path(destination / format / 'records')}: its records have other columns than {format} "
            f"records, {', '.join(found.names)}: write to another destination"
        )
