"""Where things stand below the destination, and what a run is called.

- `<format>/records/date=2024-01-31/<run>-<task>-<number>.parquet`; `<format>/records/<run>-<task>-<number>.parquet`
  for formats whose records have no timestamp
- `<format>/damage/<run>-<task>-<number>.parquet`
- `<format>/files/<run>.parquet`
- `_staging/<run>/`: files on their way, none of them named `*.parquet`
- `_state/<run>.checkpoint`: what `files` of all runs up to that one say of each segment
- `_lock`: held by the run that writes
- `_tables.json`: of which kind the tables are; missing where they are plain Parquet
"""

import re
import secrets
from datetime import UTC, datetime, timedelta
from typing import Final

__all__ = [
    "KIND",
    "LOCK",
    "NULL_DATE",
    "STAGED_SUFFIX",
    "STAGING",
    "STATE",
    "TABLES",
    "data_path",
    "files_path",
    "is_run_id",
    "new_run_id",
    "records_folder",
]

STAGING: Final = "_staging"
STATE: Final = "_state"
LOCK: Final = "_lock"
KIND: Final = "_tables.json"
STAGED_SUFFIX: Final = ".inprogress"

TABLES: Final = ("records", "damage", "files")
"""The tables of a format, in the order in which their files become visible."""

NULL_DATE: Final = "__HIVE_DEFAULT_PARTITION__"
"""How Hive, and with it Spark, DuckDB and polars, name the partition of null."""


_RUN: Final = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{8}")
_TIME: Final = "%Y%m%dT%H%M%SZ"


def is_run_id(name: str) -> bool:
    """Tells whether a name is that of a run."""
    return _RUN.fullmatch(name) is not None


def new_run_id(last: str | None = None) -> str:
    """Returns a name that no other run has, and that comes after the one of the last, whatever the clock says."""
    started = datetime.now(UTC)
    if last is not None:
        before = datetime.strptime(last.partition("-")[0], _TIME).replace(tzinfo=UTC)
        started = max(started, before + timedelta(seconds=1))
    return f"{started:{_TIME}}-{secrets.token_hex(4)}"


def records_folder(date: str | None, *, dated: bool) -> str:
    """Returns the folder of the records of a date, None where it is not known; or of a table without dates."""
    return f"records/date={NULL_DATE if date is None else date}" if dated else "records"


def data_path(format: str, folder: str, run_id: str, task: int, number: int) -> str:
    """Returns the place of a file of `records` or `damage` below the destination."""
    return f"{format}/{folder}/{run_id}-{task:05d}-{number:05d}.parquet"


def files_path(format: str, run_id: str) -> str:
    """Returns the place of a run's commit record for one format below the destination."""
    return f"{format}/files/{run_id}.parquet"
