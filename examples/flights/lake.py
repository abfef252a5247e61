"""The tables that the ingest wrote, read back with pyarrow: not with Spark, nor with seglake."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from .formats import Segment


@dataclass(frozen=True)
class Lake:
    """What was ingested of one format, as Arrow tables.

    `records` has `path`, `position` and the columns of the format that the demo knows, in file order; `damage` has
    `path`, `start`, `end`, `kind`, `cause`, `part` and `raw`, in file order; `files` has one row for each file.
    These two are of all formats below the folder: here they have the rows of this one.
    """

    records: pa.Table
    damage: pa.Table
    files: pa.Table


def read_lake(folder: Path, format: type[Segment]) -> Lake:
    """Read the tables of a format below `folder`. Raises `FileNotFoundError` where one is missing."""

    def table(name: str, *order: str, columns: list[str] | None = None) -> pa.Table:
        path = folder / name
        if not path.is_dir():
            raise FileNotFoundError(f"{path}: expected a folder of Parquet files written by the ingest, there is none")
        rows = ds.dataset(path, format="parquet", partitioning="hive").to_table(columns=columns)
        return rows.sort_by([(column, "ascending") for column in order])

    # All records of a chunk have its position; what comes first in the columns tells them apart.
    columns = ["path", "position", *format.columns]
    files = table("files", "path").filter(pc.field("format") == format.format)
    damage = table("damage", "path", "start", "part")
    return Lake(
        records=table(format.format, "path", "position", format.columns[0], columns=columns),
        damage=damage.filter(pc.field("path").isin(files["path"].to_pylist())),
        files=files,
    )
