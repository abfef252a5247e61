"""What earlier runs have ingested: the rows of `files`. The latest of each segment says how far it was read."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

import pyarrow.parquet as pq

from seglake._text import printable_path

from .layout import files_tables
from .result import INGESTED, IngestError

__all__ = ["Carry", "Ingested", "State", "load_state"]


@dataclass(frozen=True)
class Carry:
    """What a later run needs to go on with a segment, beside its row.

    Attributes:
        ranges: how many damaged ranges of it are in `damage`.
        edges: a hash of its first and last bytes that were read. None for a segment of a log, which has an identity.
        last: the UUID of its last record, where records have one.
    """

    ranges: int = 0
    edges: str | None = None
    last: str | None = None

    def to_json(self) -> str:
        """Returns it as the column `carry` has it."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Reads what `to_json` wrote."""
        return cls(**json.loads(text))


@dataclass(frozen=True)
class Ingested:
    """How far a segment was ingested. `end` is the place in the file of that time up to which it was, in bytes."""

    status: str
    format: str
    end: int
    pending_bytes: int
    records: int
    size: int
    modified: int | None
    carry: Carry

    def to_plan(self) -> dict[str, Any]:
        """Returns it in types that JSON has."""
        return asdict(self)

    @classmethod
    def from_plan(cls, content: dict[str, Any]) -> Self:
        """Reads what `to_plan` returned."""
        fields: dict[str, Any] = {**content, "carry": Carry(**content["carry"])}
        return cls(**fields)


@dataclass
class State:
    """What `files` says of all segments.

    Attributes:
        ingested: the latest state of each segment that is in the tables, by its identity.
        refused: status and error of each segment of whose latest run nothing was ingested.
        last_run: the latest run; None if there is none.
    """

    ingested: dict[str, Ingested] = field(default_factory=dict[str, Ingested])
    refused: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    last_run: str | None = None


_COLUMNS = (
    "segment",
    "run",
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


def load_state(destination: Path) -> State:
    """Reads the state from the tables `files`, in the order of the runs.

    Raises:
        IngestError: a table has other columns.
    """
    rows: list[dict[str, Any]] = []
    for table in files_tables(destination):
        parquet: Any = pq.ParquetFile(table)  # typed in part only
        missing = [name for name in _COLUMNS if name not in parquet.schema_arrow.names]
        if missing:
            raise IngestError(
                f"{printable_path(table)}: expected the table of an ingest, which has a column {missing[0]}: write "
                "to another destination"
            )
        rows.extend(parquet.read(columns=list(_COLUMNS)).to_pylist())
    state = State()
    for row in sorted(rows, key=lambda row: row["run"]):
        segment = row["segment"]
        state.last_run = row["run"]
        if row["status"] not in INGESTED:
            state.refused[segment] = (row["status"], row["error"])
            continue
        state.refused.pop(segment, None)
        state.ingested[segment] = Ingested(
            row["status"],
            row["format"],
            row["end"],
            row["pending_bytes"],
            row["records"],
            row["size"],
            row["modified"],
            Carry.from_json(row["carry"]),
        )
    return state
