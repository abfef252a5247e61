"""Writes the small files of plain Parquet anew, as fewer. Delta Lake and Iceberg have tools for that."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq

from seglake.tracking.place import LocalPlace, place_of

from .ingest import apply
from .log import DataFile, LakeState, RunEntry, lake_log, new_run_id
from .options import TARGET_FILE_BYTES
from .parquet import RollingWriter, Target
from .result import IngestError
from .tables import commit, tables_of

__all__ = ["compact"]


def compact(lake: str | os.PathLike[str], target_file_size: int = TARGET_FILE_BYTES) -> tuple[int, int]:
    """Writes the files of each folder that are smaller than half of a size anew, as fewer of about that size.

    Readers may see rows twice while the new files are there and the old ones are not gone yet, so it is for hours in
    which nobody reads. Runs of the ingest may go on.

    Args:
        lake: the folder of the lake.
        target_file_size: the size in bytes from which on a file is not added to.

    Returns:
        How many files there are now in place of how many.

    Raises:
        IngestError: it is no lake of plain Parquet, or another compaction came first.
        OSError: it cannot be read or written.
    """
    try:
        place = place_of(os.fspath(lake))
    except ValueError as error:
        raise IngestError(str(error)) from None
    log = lake_log(place)
    state = log.load()
    if not isinstance(place, LocalPlace) or state.table_format != "parquet":
        raise IngestError(
            f"{place.uri()}: expected a lake of plain Parquet, found {state.table_format or 'none'}. Delta Lake and "
            "Iceberg have tools of their own: OPTIMIZE, rewrite_data_files"
        )
    tables = tables_of("parquet", place)
    apply(place, log, tables, state)
    run = new_run_id(state.run)
    target = Target(place, run, "compact", True, target_file_size)
    data: dict[str, list[DataFile]] = {}
    removed: dict[str, list[str]] = {}
    try:
        for table, files in _small(state, target_file_size // 2):
            data.setdefault(table, []).extend(_written(place, target, files))
            removed.setdefault(table, []).extend(file.path for file in files)
        if not removed:
            return 0, 0
        entry = RunEntry(run, "parquet", data=data, removed=removed)
        if not commit(log, tables, state, entry, lambda other: bool(other.removed)):
            raise IngestError(f"{place.uri()}: another compaction came first", may_pass=True)
    except BaseException:
        tables.remove(run)
        raise
    apply(place, log, tables, state)
    log.save(state)
    return sum(map(len, data.values())), sum(map(len, removed.values()))


def _small(state: LakeState, nbytes: int) -> Iterator[tuple[str, list[DataFile]]]:
    """Yields the files of each folder that are small, where there are several."""
    for table, files in state.data.items():
        folders: dict[str, list[DataFile]] = {}
        for file in files:
            if file.nbytes < nbytes:
                folders.setdefault(file.path.rpartition("/")[0], []).append(file)
        yield from ((table, own) for own in folders.values() if len(own) > 1)


def _written(place: LocalPlace, target: Target, files: list[DataFile]) -> list[DataFile]:
    readers: list[Any] = [pq.ParquetFile(place.uri(file.path)) for file in files]
    writer = RollingWriter(target, files[0].path.rpartition("/")[0], cast("pa.Schema", readers[0].schema_arrow))
    for reader in readers:
        for batch in reader.iter_batches():
            writer.append(batch)
    return writer.finish()
