"""How a run becomes visible: one at a time, all or nothing, and after what dead runs have begun is finished.

The files of a run get their names in the order `records`, `damage`, `files`, of which the last are the commit records.
A manifest that lists all of them is on the disk before the first has its name. From then on the run is certain: if it
dies, the next one gives the other files their names. It never reads an input again for that, nor takes anything back.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import pyarrow.parquet as pq

from seglake._publish.manifest import MANIFEST, Manifest, left_over
from seglake._publish.store import LOCAL
from seglake._text import printable, printable_path

from .lake.table import DataFile, TableChangedError
from .layout import LOCK, NULL_DATE, STAGING, TABLES
from .result import IngestError

if TYPE_CHECKING:
    import pyarrow as pa

    from .lake.tables import LakeTables

__all__ = ["commit", "locked", "settle_dead_runs"]

_KIND: Final = "ingest"
# In the staging folder: the number of the run in tables that keep track of files.
_NUMBER: Final = "number.json"
# Where Delta Lake and Iceberg keep track of files.
_LOG_FOLDERS: Final = ("_delta_log", "metadata")
# File systems take the times of files from a clock that is coarser than ours.
_CLOCK_S: Final = 1.0
_KEPT_S: Final = 24 * 60 * 60


@contextlib.contextmanager
def locked(destination: Path) -> Generator[None]:
    """Holds the destination's lock: one run at a time writes to it.

    Raises:
        IngestError: another run holds it, or it cannot be opened.
    """
    path = destination / LOCK
    holder = {"host": socket.gethostname(), "pid": os.getpid()}
    with contextlib.ExitStack() as held:
        try:
            is_ours = held.enter_context(LOCAL.lock(path, json.dumps(holder).encode()))
        except OSError as error:
            raise IngestError(f"{printable_path(path)}: the lock cannot be opened: {error.strerror}") from error
        if not is_ours:
            raise IngestError(
                f"{printable_path(destination)}: another ingest is writing here ({_holder(path)}). Wait for it to end, "
                "or stop it: the next run puts in order what it leaves"
            )
        yield


def commit(destination: Path, manifest: Manifest, tables: LakeTables | None = None, number: int = 0) -> None:
    """Makes a run visible. Its staging folder stays for the caller to remove.

    Args:
        destination: the folder of the tables.
        manifest: the files of the run.
        tables: what keeps track of files, if not their folders alone.
        number: the run's number in these tables.

    Raises:
        IngestError: that failed. The message says what becomes of the run.
    """
    staging = destination / STAGING / manifest.publisher
    try:
        if tables is not None:
            LOCAL.write_durably(destination, staging / _NUMBER, json.dumps({"number": number}).encode())
        missing = manifest.write_down(destination, staging)
        if missing is None:
            _roll_forward(destination, staging, manifest, tables, number)
    except (OSError, TableChangedError) as error:
        where = printable_path(destination)
        if LOCAL.exists(staging / MANIFEST):
            raise IngestError(
                f"{where}: publishing the files of the run failed: {error}. A part of it may be visible; the "
                "next ingest into the folder completes it"
            ) from error
        LOCAL.remove_tree(staging)
        raise IngestError(f"{where}: writing the manifest of the run failed: {error}. Nothing was ingested") from error
    if missing is not None:
        raise IngestError(
            f"{printable_path(missing)}: expected the file that a task has put there, there is none. Nothing was "
            "ingested; ingest again, where all machines see the same folder"
        )


def settle_dead_runs(destination: Path, tables: LakeTables | None = None) -> None:
    """Completes runs that died after writing their manifest, and removes what others left.

    Only for the holder of the lock.

    Without a manifest nothing of a run is visible, nor will be. Tasks of it may still be writing, on machines that do
    not know that it died: what is staged stays for a day.

    Raises:
        IngestError: a manifest is there that no run has written, a file that it lists is gone, or a link is in the
            place of the staging folder.
    """
    try:
        for staging in left_over(destination / STAGING, kind=_KIND):
            manifest = Manifest.read(staging, kind=_KIND)
            if manifest is not None:
                _roll_forward(destination, staging, manifest, tables, _number(staging))
                LOCAL.remove_tree(staging)
            elif time.time() - _last_changed(staging) > _KEPT_S:
                LOCAL.remove_tree(staging)
    except (ValueError, NotADirectoryError) as error:
        raise IngestError(str(error)) from None
    except (OSError, TableChangedError) as error:
        raise IngestError(
            f"{printable_path(destination)}: completing a run that died failed: {error}. Nothing was ingested"
        ) from error


def _number(staging: Path) -> int:
    content = LOCAL.read_json(staging / _NUMBER)
    return 0 if content is None else int(content["number"])


def _roll_forward(destination: Path, staging: Path, manifest: Manifest, tables: LakeTables | None, number: int) -> None:
    """Gives the files of a run their names, as far as they do not have them, and has tables keep track of them.

    Once that is done, it does nothing.

    Raises:
        IngestError: a file is neither staged nor in its place.
        ValueError: a file is not for a table.
        OSError: a file could not be given its name.
    """
    groups = {table: [move for move in manifest.place if Path(move[1]).parts[1:2] == (table,)] for table in TABLES}
    if manifest.remove or sum(map(len, groups.values())) != len(manifest.place):
        raise ValueError(
            f"{printable_path(staging / MANIFEST)}: expected the manifest of an ingest that died, with files of "
            f"the tables {', '.join(TABLES)}; it has others. Nothing was changed; look at what is there and remove "
            f"{printable_path(staging)}"
        )
    for staged, final in manifest.place:
        if not LOCAL.exists(staging / staged) and not LOCAL.exists(destination / final):
            raise IngestError(
                f"{printable_path(destination / final)}: a run that died was to put it there, and it is gone. Nothing "
                f"was changed. Remove {printable_path(staging)} if the file was removed on purpose"
            )
    for moves in groups.values():
        for staged, final in moves:
            if LOCAL.exists(staging / staged):
                LOCAL.place(staging / staged, destination / final)
        # Also the names that were given before: the run that gave them may have died in front of this.
        if moves:
            LOCAL.sync_names(destination, [destination / final for _, final in moves])
        if tables is not None:
            _append(destination, tables, number, [final for _, final in moves])


def _append(destination: Path, tables: LakeTables, number: int, paths: Sequence[str]) -> None:
    """Appends the files of one table, of all formats, as the run of this number."""
    started = time.time() - _CLOCK_S
    by_table: dict[tuple[str, str], list[str]] = {}
    for path in paths:
        format, table, rest = path.split("/", 2)
        by_table.setdefault((format, table), []).append(rest)
    for (format, table), own in by_table.items():
        folder = destination / format / table
        files = [_data_file(folder, path) for path in own]
        # A file without rows is there for the sake of its columns.
        schema: pa.Schema = cast("Any", pq).read_schema(folder / own[0])
        tables.of(format, table).append(number, schema, [file for file in files if file.rows])
        for kept in _LOG_FOLDERS:
            _sync_since(destination, folder / kept, started)


def _sync_since(destination: Path, folder: Path, started: float) -> None:
    """Has what was written to a folder since then be durable: `deltalake` and `pyiceberg` sync nothing of theirs."""
    new = [path for path in LOCAL.children(folder) if path.is_file() and path.stat().st_mtime >= started]
    for path in new:
        LOCAL.sync_file(path)
    LOCAL.sync_names(destination, new)


def _data_file(folder: Path, path: str) -> DataFile:
    status = (folder / path).stat()
    rows: int = cast("Any", pq).read_metadata(folder / path).num_rows
    named = [part.split("=", 1) for part in path.split("/")[:-1]]
    partition = {name: None if value == NULL_DATE else value for name, value in named}
    return DataFile(path, status.st_size, rows, status.st_mtime_ns // 1_000_000, partition)


def _last_changed(folder: Path) -> float:
    """Returns when a folder or something in it was last changed, in seconds since 1970."""
    times = [folder.lstat().st_mtime]
    if not folder.is_symlink() and folder.is_dir():
        times.extend(each.lstat().st_mtime for each in folder.iterdir())
    return max(times)


def _holder(path: Path) -> str:
    try:
        holder = json.loads(path.read_bytes())
        return printable(f"process {holder['pid']} on {holder['host']}")
    except (OSError, ValueError, LookupError, TypeError):
        return "it has not said which"
