"""What earlier runs have ingested: the rows of `files`. The latest of each segment says how far it was read."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Self, cast, get_args

import pyarrow as pa

import seglake
from seglake._formats import FormatOptions
from seglake._text import printable
from seglake._types import DialectName

from .carry import Carry
from .destination import Destination
from .lake.tables import LakeTables
from .result import INGESTED, IngestError, TableKind
from .tables import records_schema, uint64_type_of

__all__ = ["Ingested", "State", "load_state", "refuse_other_columns"]


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
    carry: Carry

    @classmethod
    def of(cls, row: Any) -> Self:
        """Takes it from a row of a file that was ingested, by its attributes."""
        columns = [each.name for each in fields(cls) if each.name != "carry"]
        return cls(**{name: getattr(row, name) for name in columns}, carry=Carry.from_json(row.carry))

    def to_plan(self) -> dict[str, Any]:
        """Returns it in types that JSON has."""
        own: dict[str, Any] = {each.name: getattr(self, each.name) for each in fields(self)}
        return {**own, "carry": self.carry.to_json()}

    @classmethod
    def from_plan(cls, content: dict[str, Any]) -> Self:
        """Reads what `to_plan` returned."""
        fields: dict[str, Any] = {**content, "carry": Carry.from_json(content["carry"])}
        return cls(**fields)


@dataclass
class State:
    """What `files` says of all segments.

    Attributes:
        ingested: the latest state of each segment that is in the tables, by its identity.
        by_path: which of them is at a path, as far as is known.
        copies: size and time of files that have no more than another one.
        refused: status and error of each segment of whose latest run nothing was ingested.
        last_run: the latest run; None if there is none.
    """

    ingested: dict[str, Ingested] = field(default_factory=dict[str, Ingested])
    by_path: dict[str, str] = field(default_factory=dict[str, str])
    copies: dict[str, tuple[int, int | None]] = field(default_factory=dict[str, "tuple[int, int | None]"])
    refused: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    last_run: str | None = None


_COLUMNS = (
    "segment",
    "run",
    "path",
    "status",
    "format",
    "end",
    "pending_bytes",
    "records",
    "size",
    "modified",
    "carry",
    "error",
)


def load_state(destination: Destination, tables: LakeTables | None = None) -> State:
    """Reads the state from the tables `files`, in the order of the runs.

    Args:
        destination: the folder of the tables.
        tables: what keeps track of their files, if not their folders alone.

    Raises:
        IngestError: a table has other columns.
    """
    rows: list[tuple[str, dict[str, Any]]] = []
    for name, table in _files(destination, tables):
        missing = [column for column in _COLUMNS if column not in table.column_names]
        if missing:
            raise IngestError(
                f"{name}: expected the table of an ingest, which has a column {missing[0]}: write to another "
                "destination"
            )
        rows.extend((name, row) for row in table.select(list(_COLUMNS)).to_pylist())
    state = State()
    latest: dict[str, tuple[str, dict[str, Any]]] = {}
    for name, row in sorted(rows, key=lambda each: each[1]["run"]):
        segment, path = row["segment"], row["path"]
        state.last_run = row["run"]
        state.copies.pop(path, None)
        state.refused.pop(path, None)
        if row["status"] == "copy":
            state.copies[path] = (row["size"], row["modified"])
        if row["status"] not in INGESTED:
            state.refused[segment] = (row["status"], row["error"])
            continue
        state.refused.pop(segment, None)
        latest[segment] = (name, row)
        state.by_path[path] = segment
    state.ingested = {segment: _ingested(name, row) for segment, (name, row) in latest.items()}
    state.by_path = {path: name for path, name in state.by_path.items() if state.ingested[name].path == path}
    return state


def _ingested(name: str, row: dict[str, Any]) -> Ingested:
    try:
        carry = Carry.from_json(row["carry"])
    except (TypeError, ValueError) as error:
        raise IngestError(
            f"{name}: expected in its column carry what the ingest goes on with in {printable(row['path'])}: {error}. "
            f"Another version of seglake has written it: write to another destination"
        ) from None
    columns = ("path", "status", "format", "end", "pending_bytes", "records", "size", "modified")
    return Ingested(**{column: row[column] for column in columns}, carry=carry)


def _files(destination: Destination, tables: LakeTables | None) -> Iterator[tuple[str, Any]]:
    """Yields the names and rows of the tables `files`."""

    def read(path: Path) -> tuple[str, Any]:
        parquet: Any = destination.parquet(path)  # typed in part only
        names = [name for name in _COLUMNS if name in parquet.schema_arrow.names]
        return destination.shown(path), parquet.read(columns=names)

    if tables is None:
        yield from destination.side_by_side(read, destination.files_tables())
        return
    for format in seglake.formats():
        table = tables.of(format, "files")
        schema = table.schema()
        if schema is not None:
            rows = table.read([name for name in _COLUMNS if name in schema.names])
            yield destination.shown(destination.folder / format / "files"), rows


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
