"""The log of a lake: what each run that found something has committed.

From the moment that its entry is there a run is certain: `tables` makes its files visible, and whoever comes next does
that if it was killed in between. Nothing else is asked for what earlier runs have done.
"""

from __future__ import annotations

import secrets
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeAlias

import msgspec

from seglake.tracking.log import CommitLog
from seglake.tracking.place import Place
from seglake.tracking.state import FileState

from .result import IngestError, TableFormat

__all__ = ["DataFile", "LakeLog", "LakeState", "RunEntry", "lake_log", "new_run_id", "save"]

_CHECKPOINT_EVERY: Final = 16
_TIME: Final = "%Y%m%dT%H%M%SZ"


class DataFile(msgspec.Struct, frozen=True, omit_defaults=True):
    """A finished Parquet file of a table.

    Attributes:
        path: its path below the lake.
        nbytes: its size in bytes.
        rows: how many rows it has.
        modified_ms: when it was finished, in milliseconds since 1970.
        partition: the values of those columns that are in the path alone; None is null.
        least, most: the bounds of its columns of text, integers and times that have bounds.
    """

    path: str
    nbytes: int
    rows: int
    modified_ms: int = 0
    partition: dict[str, str | None] = {}
    least: dict[str, Any] = {}
    most: dict[str, Any] = {}


class RunEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one run commits.

    Attributes:
        run: its name.
        table_format: what keeps track of the tables' files.
        tables: the Arrow schema of each table that it adds to, as `pyarrow` serializes it.
        data: its data files, by their tables.
        files: the state of each file that it read.
        added: how many records it adds of each source.
        removed: data files that others of it take the place of, by their tables.
        version: of the log.
    """

    run: str
    table_format: TableFormat
    tables: dict[str, bytes] = {}
    data: dict[str, list[DataFile]] = {}
    files: list[FileState] = []
    added: dict[str, int] = {}
    removed: dict[str, list[str]] = {}
    version: int = 1


class LakeState(msgspec.Struct):
    """The sum of all entries.

    Attributes:
        number: that of the last entry.
        run: the name of the last run.
        table_format: what keeps track of the tables' files; None while there is no entry.
        tables: the Arrow schema of each table, likewise.
        files: each file, by its path.
        records: how many records of each source the lake has.
        data: of plain Parquet the files of each table.
    """

    number: int = 0
    run: str | None = None
    table_format: TableFormat | None = None
    tables: dict[str, bytes] = {}
    files: dict[str, FileState] = {}
    records: dict[str, int] = {}
    data: dict[str, list[DataFile]] = {}
    version: int = 1

    def add(self, number: int, entry: RunEntry) -> None:
        """Adds the next entry."""
        self.number, self.table_format = number, entry.table_format
        self.run = max(self.run or "", entry.run)
        self.tables.update(entry.tables)
        self.files.update((file.path, file) for file in entry.files)
        for source, records in entry.added.items():
            self.records[source] = self.records.get(source, 0) + records
        if entry.table_format == "parquet":
            for table, files in entry.data.items():
                gone = set(entry.removed.get(table, []))
                self.data[table] = [file for file in self.data.get(table, []) if file.path not in gone] + files


LakeLog: TypeAlias = CommitLog[RunEntry, LakeState]


def lake_log(place: Place) -> LakeLog:
    """Returns the log of the lake at a place. What is wrong in it is an IngestError."""
    return CommitLog(place, RunEntry, LakeState, IngestError, "Restore it, or ingest into another lake")


def save(log: LakeLog, state: LakeState) -> None:
    """Writes a checkpoint now and then."""
    if state.number % _CHECKPOINT_EVERY == 0:
        log.save(state)


def new_run_id(last: str | None = None) -> str:
    """Returns a name that no other run has, and that comes after the one of the last, whatever the clock says."""
    started = datetime.now(UTC)
    if last is not None:
        before = datetime.strptime(last.partition("-")[0], _TIME).replace(tzinfo=UTC)
        started = max(started, before + timedelta(seconds=1))
    return f"{started:{_TIME}}-{secrets.token_hex(4)}"
