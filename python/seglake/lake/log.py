"""The log of a lake: what was committed, an entry for each run that found something. It is the only state.

An entry is the object `_log/<number>.json`, put only if there is none of that number. From then on the run is certain:
`tables` makes its files visible, and whoever comes next does that if it was killed in between. Nothing else is asked
for what earlier runs have done. A checkpoint has the sum of all entries up to one.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

import seglake
from seglake.tracking.place import Place

from .result import FileStatus, IngestError, TableFormat

__all__ = ["BYTE_COLUMNS", "CommitLog", "DataFile", "Entry", "FileState", "State", "Sums", "new_run_id"]

_FOLDER: Final = "_log"
_CHECKPOINT_EVERY: Final = 16
_NAME: Final = re.compile(r"(\d{20})\.(json|checkpoint)")
_TIME: Final = "%Y%m%dT%H%M%SZ"
_VERSION: Final = 1

BYTE_COLUMNS: Final = {
    "record": "record_bytes",
    "chunk": "record_bytes",
    "block": "record_bytes",
    "header": "header_bytes",
    "trailer": "header_bytes",
    "padding": "padding_bytes",
    "unused": "unused_bytes",
    "unproven": "unused_bytes",
    "pending": "unused_bytes",
    "torn_tail": "torn_bytes",
    "corrupt": "corrupt_bytes",
    "repaired": "corrupt_bytes",
}
"""The kinds of the ledger, and the columns of `files` that their bytes count for."""


class Sums(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was read of a file: its records, its damaged ranges, and what its bytes are.

    The timestamps are microseconds since 1970, of the first and the last moment that a record has.
    """

    records: int = 0
    ranges: int = 0
    record_bytes: int = 0
    header_bytes: int = 0
    padding_bytes: int = 0
    unused_bytes: int = 0
    torn_bytes: int = 0
    corrupt_bytes: int = 0
    first_timestamp: int | None = None
    last_timestamp: int | None = None

    @property
    def nbytes(self) -> int:
        """How many bytes these are."""
        return sum(getattr(self, name) for name in set(BYTE_COLUMNS.values()))

    @classmethod
    def of(cls, report: seglake.Report, ranges: int) -> Sums:
        """Returns those of one pass, which found as many damaged ranges."""
        sizes = dict.fromkeys(BYTE_COLUMNS.values(), 0)
        for total in report.totals:
            sizes[BYTE_COLUMNS[total.kind]] += total.nbytes
        first, last = report.first_timestamp_us, report.last_timestamp_us
        return cls(report.records, ranges, first_timestamp=first, last_timestamp=last, **sizes)

    def plus(self, more: Sums) -> Sums:
        """Returns the sums of both."""
        known = [each for each in (self, more) if each.first_timestamp is not None]
        counted = [name for name in self.__struct_fields__ if not name.endswith("_timestamp")]
        return Sums(
            **{name: getattr(self, name) + getattr(more, name) for name in counted},
            first_timestamp=min((each.first_timestamp for each in known), default=None),  # pyright: ignore
            last_timestamp=max((each.last_timestamp for each in known), default=None),  # pyright: ignore
        )


class FileState(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the last run that read a file found.

    Attributes:
        path: its path without links, as text.
        size: its size in bytes, as far as it was read.
        modified: when it was modified, in nanoseconds since 1970; None if it may have changed since at the same time.
        changed: when anything of it was changed, likewise, as no program can set it; None in a store.
        inode: its number in its file system; None in a store.
        sidecar: size and time of its parity sidecar; None if it has none.
        status: what became of it.
        format: its format, if that is known.
        source: the source of its records; the path as long as it has none.
        position: where the next run goes on, as JSON; None if it is to be read whole.
        sums: what was read up to the position.
        pending_bytes: the unfinished tail after it.
        error: why nothing of it was ingested.
    """

    path: str
    size: int
    modified: int | None = None
    changed: int | None = None
    inode: int | None = None
    sidecar: str | None = None
    status: FileStatus = "sound"
    format: str | None = None
    source: str = ""
    position: str | None = None
    sums: Sums = Sums()
    pending_bytes: int = 0
    error: str | None = None


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


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
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
    version: int = _VERSION


class State(msgspec.Struct):
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
    version: int = _VERSION

    def add(self, number: int, entry: Entry) -> None:
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


@dataclass
class CommitLog:
    """The log of the lake at a place."""

    place: Place

    def load(self) -> State:
        """Reads the state.

        Raises:
            IngestError: an entry is missing, or is not one.
        """
        hint = self.place.read(f"{_FOLDER}/_last_checkpoint")
        after = int(hint) if hint is not None and hint.isdigit() else 0
        state = State()
        if after:
            content = self.place.read(f"{_FOLDER}/{after:020}.checkpoint")
            state = State() if content is None else self._decoded(f"{after:020}.checkpoint", content, State)
        self.add_new(state)
        return state

    def add_new(self, state: State) -> list[tuple[int, Entry]]:
        """Adds to a state the entries that have come since; returns them."""
        found: list[tuple[int, Entry]] = []
        for name in self.place.names(_FOLDER, f"{state.number:020}.json"):
            match = _NAME.fullmatch(name)
            if match is None or match[2] != "json":
                continue
            number = int(match[1])
            if number != state.number + 1:
                raise IngestError(
                    f"{self.place.uri(_FOLDER)}: expected the entry {state.number + 1:020}.json, found {name} after "
                    f"{state.number:020}.json: one was removed. Restore it, or ingest into another lake"
                )
            entry = self.read(number)
            state.add(number, entry)
            found.append((number, entry))
        return found

    def read(self, number: int) -> Entry:
        """Reads an entry."""
        name = f"{number:020}.json"
        return self._decoded(name, self.place.read(f"{_FOLDER}/{name}") or b"", Entry)

    def put(self, number: int, entry: Entry) -> bool:
        """Commits a run as the entry of a number; returns False if another run has that number."""
        return self.place.put_new(f"{_FOLDER}/{number:020}.json", msgspec.json.encode(entry))

    def save(self, state: State) -> None:
        """Writes a checkpoint now and then. It only saves time: no run fails for it."""
        if state.number % _CHECKPOINT_EVERY == 0:
            try:
                self.place.put(f"{_FOLDER}/{state.number:020}.checkpoint", msgspec.json.encode(state))
                self.place.put(f"{_FOLDER}/_last_checkpoint", str(state.number).encode())
            except OSError:
                return

    def _decoded(self, name: str, content: bytes, type: Any) -> Any:
        try:
            found = msgspec.json.decode(content, type=type)
        except msgspec.DecodeError as error:
            raise IngestError(
                f"{self.place.uri(f'{_FOLDER}/{name}')}: expected an entry of the log of a lake: {error}. Restore it, "
                "or ingest into another lake"
            ) from None
        if found.version != _VERSION:
            raise IngestError(
                f"{self.place.uri(f'{_FOLDER}/{name}')}: expected version {_VERSION} of the log, found "
                f"{found.version}, of another version of seglake. Ingest into another lake"
            )
        return found


def new_run_id(last: str | None = None) -> str:
    """Returns a name that no other run has, and that comes after the one of the last, whatever the clock says."""
    started = datetime.now(UTC)
    if last is not None:
        before = datetime.strptime(last.partition("-")[0], _TIME).replace(tzinfo=UTC)
        started = max(started, before + timedelta(seconds=1))
    return f"{started:{_TIME}}-{secrets.token_hex(4)}"
