"""The three tables that the ingest wrote, read back with pyarrow: not with Spark, and not with seglake."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds

FORMAT = "active"


@dataclass(frozen=True)
class Lake:
    """What was ingested, as Arrow tables.

    `records` has `uuid` (text), `type` and `value`, ordered by `uuid`; `damage` has `path`, `start`, `end`, `kind`,
    `cause`, `part` and `raw`, in file order; `files` has one row for each segment.
    """

    records: pa.Table
    damage: pa.Table
    files: pa.Table


def read_lake(folder: Path) -> Lake:
    """Read all three tables below `folder`. Raises `FileNotFoundError` where one is missing."""

    def table(name: str, columns: list[str] | None = None) -> pa.Table:
        path = folder / FORMAT / name
        if not path.is_dir():
            raise FileNotFoundError(f"{path}: expected a folder of Parquet files written by the ingest, there is none")
        return ds.dataset(path, format="parquet", partitioning="hive").to_table(columns=columns)

    return Lake(
        records=table("records", ["uuid", "type", "value"]).sort_by("uuid"),
        damage=table("damage").sort_by([("path", "ascending"), ("start", "ascending"), ("part", "ascending")]),
        files=table("files"),
    )
