"""What earlier runs have ingested: the rows of `files`. The latest of each segment says how far it was read."""

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple, Self, cast, get_args
from urllib.parse import quote

import pyarrow as pa

import seglake
from seglake._files import SegmentFile
from seglake._formats import FormatOptions
from seglake._text import path_text, printable
from seglake._types import DialectName

from .carry import Carry
from .checkpoint import Rows, read_checkpoint, write_checkpoint
from .destination import Destination
from .lake.tables import LakeTables
from .layout import is_run_id
from .result import INGESTED, IngestError, TableKind
from .tables import records_schema, uint64_type_of

__all__ = ["Ingested", "State", "load_state", "refuse_other_columns", "save_state"]


@dataclass(frozen=True)
class Ingested:
    """How far a segment was ingested, as its latest row of `files` says."""

    path: str
    status: str
    format: str
    end: int | None
    pending_bytes: int
    records: int
    size: int
    modified: int | None
    carry_json: str

    @classmethod
    def of(cls, row: Any) -> Self:
        """Takes it from a row of a file that was ingested, by its attributes."""
        columns = [each.name for each in fields(cls) if each.name != "carry_json"]
        return cls(**{name: getattr(row, name) for name in columns}, carry_json=row.carry)

    @cached_property
    def carry(self) -> Carry:
        """What the next run needs to go on. It is parsed when it is asked for: most files have not changed.

        Raises:
            IngestError: another version of seglake has written it.
        """
        try:
            return Carry.from_json(self.carry_json)
        except ValueError as error:
            raise _other_version("files", self.path, error) from None

    @cached_property
    def identity(self) -> str | None:
        """What identifies the segment, as its position says; None as long as it had no sound record."""
        try:
            return json.loads(self.carry_json)["position"]["identity"]
        except (ValueError, LookupError, TypeError):
            return self.carry.position.identity

    def with_carry(self, carry: Carry) -> Self:
        """Returns it with another carry."""
        return replace(self, carry_json=carry.to_json())

    def to_plan(self) -> dict[str, Any]:
        """Returns it in types that JSON has."""
        return asdict(self)

    @classmethod
    def from_plan(cls, content: dict[str, Any]) -> Self:
        """Reads what `to_plan` returned."""
        return cls(**content)


class Copy(NamedTuple):
    """A file that has no more than another one.

    Attributes:
        size: its size in bytes.
        modified: when it was modified; None if it may have changed since at the same time.
        damaged: if it is damaged, how far its damage was listed.
        pending_bytes: how many bytes its unfinished tail has, which differ from those of the other file.
    """

    size: int
    modified: int | None
    damaged: Ingested | None = None
    pending_bytes: int = 0


@dataclass
class State:
    """What `files` says of all segments.

    Attributes:
        ingested: the latest state of each segment that is in the tables, by its identity.
        by_path: which of them is at a path, as far as is known.
        copies: the files that have no more than another one, by their paths.
        refused: status and error of each file whose latest row says that no record of it was ingested, by its path.
        last_run: the latest run; None if there is none.
        files: the files of the tables `files` that it was read from, below the destination, and their sizes in bytes.
        uncovered: how many of these are newer than the checkpoint that was read; all of them where there is none.
    """

    ingested: dict[str, Ingested] = field(default_factory=dict[str, Ingested])
    by_path: dict[str, str] = field(default_factory=dict[str, str])
    copies: dict[str, Copy] = field(default_factory=dict[str, Copy])
    refused: dict[str, tuple[str, str | None]] = field(default_factory=dict[str, "tuple[str, str | None]"])
    last_run: str | None = None
    files: dict[str, int] = field(default_factory=dict[str, int])
    uncovered: int = 0

    def is_damaged(self, file: SegmentFile) -> bool:
        """Tells whether the tables say that a file is damaged, if nobody has changed it since."""
        path = path_text(file.real_path)
        copy = self.copies.get(path)
        if copy is not None:
            return copy.damaged is not None
        name = self.by_path.get(path) if file.segment is None else str(file.segment.first)
        ingested = None if name is None else self.ingested.get(name)
        return ingested is not None and ingested.status == "damaged"


class _Row(NamedTuple):
    """What the state needs of a row of `files`."""

    segment: str
    run: str
    path: str
    status: str
    format: str
    end: int | None
    pending_bytes: int
    records: int
    size: int
    modified: int | None
    carry: str
    error: str | None


# A new checkpoint is written once so many files are newer than the last one.
_CHECKPOINT_FILES: Final = 64


def load_state(destination: Destination, tables: LakeTables | None = None) -> State:
    """Reads the state from the tables `files`, in the order of the runs.

    Args:
        destination: the folder of the tables.
        tables: what keeps track of their files, if not their folders alone.

    Raises:
        IngestError: a table has other columns.
    """
    files = _files(destination, tables)
    found = None if files is None else read_checkpoint(destination, files)
    if files is not None and found is not None:
        run, saved = found
        later = [destination.folder / name for name in files if Path(name).stem > run]
        rows = list(_rows(destination, later))
        # A file that others have written may have rows of earlier runs, whatever its name.
        if all(row.run > run for _, row in rows):
            state = _replayed(_restored(run, saved), rows)
            state.files, state.uncovered = files, len(later)
            return state
    if tables is None:
        rows = _rows(destination, [destination.folder / name for name in files or []])
    else:
        # Tables without files need not be opened again.
        formats = seglake.formats() if files is None else {name.partition("/")[0] for name in files}
        rows = _lake_rows(destination, tables, sorted(formats))
    state = _replayed(State(), rows)
    state.files = files or {}  # without names there is no checkpoint
    state.uncovered = len(state.files)
    return state


def _files(destination: Destination, tables: LakeTables | None) -> dict[str, int] | None:
    """Returns the files of the tables `files`, below the destination, and their sizes in bytes.

    None where these do not tell the rows. Of a lake's tables the size is 0, as they never have two files of one name.
    """
    if tables is None:
        found = destination.files_tables()
        return {path.relative_to(destination.folder).as_posix(): size for path, size in found.items()}
    names: list[str] = []
    for format in seglake.formats():
        own = tables.of(format, "files").files()
        if own is None:
            return None
        names += [_name(format, path) for path in own]
    return dict.fromkeys(names, 0)


def _name(format: str, path: str) -> str:
    """Returns what a file of a lake's table is called in checkpoints, and where it is if a run has written it.

    What others have written, as a compaction does, may have the rows of any run. Its name comes before all runs, so
    that only a checkpoint that was made of it counts.
    """
    name, dot, extension = path.rpartition(".")
    is_own = is_run_id(name) and f"{dot}{extension}" == ".parquet"
    return f"{format}/files/{path}" if is_own else f"{format}/files/0-{quote(path, safe='')}"


def save_state(destination: Destination, state: State) -> None:
    """Writes a checkpoint of the state, if many files had to be read for it. The caller has the lock.

    No run fails because a checkpoint cannot be written: it only saves time.
    """
    run = state.last_run
    # A file that no run has written may sort after the last run. A checkpoint would have its rows, and not its name.
    if run is None or state.uncovered < _CHECKPOINT_FILES or any(Path(path).stem > run for path in state.files):
        return
    with suppress(OSError):
        write_checkpoint(destination, run, state.files, _saved(state))


def _replayed(state: State, rows: Iterable[tuple[str, _Row]]) -> State:
    """Takes rows into the state, in the order of their runs.

    Raises:
        IngestError: a row is of another version.
    """
    latest: dict[str, tuple[str, _Row]] = {}
    for name, row in sorted(rows, key=lambda each: each[1].run):
        segment, path = row.segment, row.path
        state.last_run = row.run
        state.copies.pop(path, None)
        state.refused.pop(path, None)
        is_damaged_copy = row.status in INGESTED and row.error is not None
        if row.status == "copy" or is_damaged_copy:
            damaged = _ingested(name, row) if is_damaged_copy else None
            state.copies[path] = Copy(row.size, row.modified, damaged, row.pending_bytes or 0)
        if row.status not in INGESTED or is_damaged_copy:
            state.refused[path] = (row.status, row.error)
            continue
        latest[segment] = (name, row)
        state.by_path[path] = segment
    state.ingested |= {segment: _ingested(name, row) for segment, (name, row) in latest.items()}
    state.by_path = {path: name for path, name in state.by_path.items() if state.ingested[name].path == path}
    return state


def _ingested(name: str, row: _Row) -> Ingested:
    try:
        Carry.check(row.carry)
    except (TypeError, ValueError, AttributeError) as error:
        raise _other_version(name, row.path, error) from None
    return Ingested.of(row)


def _restored(run: str, rows: Rows) -> State:
    """Returns the state that a checkpoint has."""
    state = State(last_run=run)
    for segment, path, status, format, end, pending_bytes, records, size, modified, carry, error, is_here in rows:
        own = Ingested(path, status, format, end, pending_bytes, records, size, modified, carry)
        if segment is None:
            state.copies[path] = Copy(size, modified, None if status == "copy" else own, pending_bytes or 0)
        elif status in INGESTED and error is None:
            state.ingested[segment] = own
            if is_here:
                state.by_path[path] = segment
        else:
            state.refused[path] = (status, error)
    return state


def _saved(state: State) -> Rows:
    """Yields the rows of a checkpoint."""
    for name, own in state.ingested.items():
        numbers = (own.end, own.pending_bytes, own.records, own.size, own.modified)
        is_here = state.by_path.get(own.path) == name
        yield (name, own.path, own.status, own.format, *numbers, own.carry_json, None, is_here)
    for path, (size, modified, own, pending_bytes) in state.copies.items():
        if own is None:
            yield (None, path, "copy", None, None, pending_bytes, None, size, modified, None, None, None)
        else:
            numbers = (own.end, pending_bytes, own.records, size, modified)
            yield (None, path, own.status, own.format, *numbers, own.carry_json, None, None)
    for path, (status, error) in state.refused.items():
        yield (path, path, status, *[None] * 7, error, None)


def _other_version(name: str, path: str, error: Exception) -> IngestError:
    return IngestError(
        f"{name}: expected in its column carry what the ingest goes on with in {printable(path)}: {error}. Another "
        "version of seglake has written it: write to another destination"
    )


def _rows(destination: Destination, paths: Iterable[Path]) -> Iterator[tuple[str, _Row]]:
    """Yields the rows of files of the tables `files`, each with the name of its file."""

    def read(path: Path) -> tuple[str, Any]:
        return destination.shown(path), destination.columns(path, _Row._fields)

    for name, table in destination.side_by_side(read, paths):
        yield from _rows_of(name, table)


def _lake_rows(destination: Destination, tables: LakeTables, formats: Iterable[str]) -> Iterator[tuple[str, _Row]]:
    """Yields the rows of tables whose files something else keeps track of."""
    for format in formats:
        table = tables.of(format, "files")
        schema = table.schema()
        if schema is not None:
            rows = table.read([name for name in _Row._fields if name in schema.names])
            yield from _rows_of(destination.shown(destination.folder / format / "files"), rows)


def _rows_of(name: str, table: Any) -> Iterator[tuple[str, _Row]]:
    missing = [column for column in _Row._fields if column not in table.column_names]
    if missing:
        raise IngestError(
            f"{name}: expected the table of an ingest, which has a column {missing[0]}: write to another destination"
        )
    columns = [table.column(column).to_pylist() for column in _Row._fields]
    return ((name, row) for row in map(_Row._make, zip(*columns, strict=True)))


def refuse_other_columns(
    destination: Destination, tables: LakeTables | None, formats: Iterable[str], options: FormatOptions, kind: TableKind
) -> None:
    """Sees to it that all records of a table have the same columns.

    Raises:
        IngestError: an earlier run has written records with other columns, as those of another dialect are.
    """
    uint64_type = uint64_type_of(kind)
    for format in formats:
        found = _records_schema(destination, tables, format)
        if found is None or _has(found, records_schema(format, options, uint64_type)):
            continue
        folder = destination.shown(destination.folder / format / "records")
        dialects = [
            dialect
            for dialect in get_args(DialectName)
            if _has(found, records_schema(format, replace(options, dialect=dialect), uint64_type))
        ]
        if dialects:
            asked = options.dialect or get_args(DialectName)[0]
            raise IngestError(
                f"{folder}: its records are of dialect {dialects[0]} and so have other columns than those of "
                f"dialect {asked}. Name the dialect of the files, or another destination"
            )
        raise IngestError(
            f"{folder}: its records have other columns than {format} records, {', '.join(found.names)}: write to "
            "another destination"
        )


def _records_schema(destination: Destination, tables: LakeTables | None, format: str) -> pa.Schema | None:
    if tables is not None:
        return tables.of(format, "records").schema()
    table = next(destination.records_files(format), None)
    return None if table is None else cast("Any", destination.parquet(table)).schema_arrow


def _has(found: pa.Schema, expected: pa.Schema) -> bool:
    """Tells whether a table has these columns: their names and types, whatever else its own library keeps of them."""
    return _shape(pa.struct(found)) == _shape(pa.struct(expected))


def _shape(type: Any) -> Any:
    if pa.types.is_struct(type):
        return [(name, _shape(inner)) for name, inner in ((each.name, each.type) for each in list[Any](type))]
    if pa.types.is_list(type) or pa.types.is_large_list(type):
        return ["list", _shape(type.value_type)]
    return str(type).removeprefix("large_")
