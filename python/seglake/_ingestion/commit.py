"""How a run becomes visible: one at a time, all or nothing, and after what dead runs have begun is finished.

The files of a run get their names in the order `records`, `damage`, `files`, of which the last are the commit records.
A manifest that lists all of them is on the disk before the first has its name. From then on the run is certain: if it
dies, the next one gives the other files their names. It never reads an input again for that, nor takes anything back.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import socket
import time
from collections.abc import Callable, Generator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from seglake._publish.manifest import MANIFEST, Manifest, Move, left_over
from seglake._publish.store import LOCAL, LockTakenError
from seglake._text import printable

from .destination import Destination
from .lake.table import DataFile, TableChangedError
from .layout import LOCK, NULL_DATE, STAGING, TABLES
from .result import IngestError, can_pass
from .state import load_state

if TYPE_CHECKING:
    import pyarrow as pa

    from .lake.tables import LakeTables

__all__ = ["commit", "end_run", "locked", "settle_dead_runs"]

_KIND: Final = "ingest"
# In the staging folder: the number of the run in tables that keep track of files.
_NUMBER: Final = "number.json"
# Where Delta Lake and Iceberg keep track of files.
_LOG_FOLDERS: Final = ("_delta_log", "metadata")
# File systems take the times of files from a clock that is coarser than ours.
_CLOCK_S: Final = 1.0
_KEPT_S: Final = 24 * 60 * 60
# Short: if a lock is taken too early, that costs time and adds nothing twice. Each manifest names the run before its
# own, and is left out if there has been another one since.
_LEASE_S: Final = 60.0


@contextlib.contextmanager
def locked(destination: Destination, waiting: Callable[[str], object] = lambda _: None) -> Generator[None]:
    """Holds the destination's lock: one run at a time writes to it.

    In a store a run that was killed leaves its lock, which is free a minute after its last renewal. So a lock that is
    there is waited for until its holder renews it, or the minute is over.

    Args:
        destination: where the tables are.
        waiting: called every few seconds while it waits, with a text that says for whom, and for how long at most.

    Raises:
        IngestError: another run holds it, or it cannot be opened.
    """
    path = destination.folder / LOCK
    since = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    holder = json.dumps({"host": socket.gethostname(), "pid": os.getpid(), "since": since}).encode()
    other: list[str] = []

    def waits(seconds: float) -> None:
        if not other:
            other.append(_holder(destination))
        waiting(f"waiting for another ingest ({other[0]}), which may have ended: {math.ceil(seconds)} s at most")

    with contextlib.ExitStack() as held:
        try:
            lock = destination.store.lock(path, holder, lease_s=_LEASE_S, waiting=waits)
            is_ours = held.enter_context(lock)
        except OSError as error:
            reason = error.strerror or error
            raise IngestError(
                f"{destination.shown(path)}: the lock cannot be opened: {reason}", may_pass=can_pass(error)
            ) from error
        if not is_ours:
            raise IngestError(
                f"{destination.shown()}: another ingest is writing here ({_holder(destination)}). Wait for it to end, "
                "or stop it: the next run puts in order what it leaves",
                may_pass=True,
            )
        held.enter_context(destination.store.renewing())
        yield


def commit(destination: Destination, manifest: Manifest, tables: LakeTables | None = None, number: int = 0) -> None:
    """Makes a run visible. Its staging folder stays for the caller to remove.

    Args:
        destination: where the tables are.
        manifest: the files of the run.
        tables: what keeps track of files, if not their folders alone.
        number: the run's number in these tables.

    Raises:
        IngestError: that failed. The message says what becomes of the run.
    """
    store, folder = destination.store, destination.folder
    staging = destination.staging(manifest.publisher)
    try:
        # A run that was held for dead was planned on what is not so any more.
        store.confirm()
        if tables is not None:
            store.write_durably(folder, staging / _NUMBER, json.dumps({"number": number}).encode())
        missing = manifest.write_down(folder, staging, store)
        if missing is None:
            # Whoever takes the lock looks for manifests after that. So one of the two knows of the other.
            store.confirm()
            _roll_forward(destination, staging, manifest, tables, number)
    except (OSError, TableChangedError) as error:
        raise _failed(destination, staging, error) from error
    if missing is not None:
        raise IngestError(
            f"{destination.shown(missing)}: expected the file that a task has put there, there is none. Nothing was "
            "ingested; ingest again, where all machines see the same folder"
        )


def _failed(destination: Destination, staging: Path, error: Exception) -> IngestError:
    """Makes the error of a commit that failed, which says what is visible."""
    where, may_pass = destination.shown(), _may_pass(error)
    try:
        # A lock that was taken explains other errors, too: its new holder completes this run, and removes staged files.
        destination.store.confirm()
    except LockTakenError as taken:
        error = taken
    except OSError:
        pass
    if isinstance(error, LockTakenError):
        return IngestError(
            f"{where}: another run took the lock of this one, which stood still, or began at the same moment: {error}. "
            "All of it is ingested, or nothing. Ingest again: what is missing is added, and nothing twice",
            may_pass=True,
        )
    try:
        is_certain = destination.store.exists(staging / MANIFEST)
    except OSError:
        is_certain = None
    if is_certain:
        return IngestError(
            f"{where}: publishing the files of the run failed: {error}. A part of it may be visible; the "
            "next ingest into the folder completes it",
            may_pass=may_pass,
        )
    if destination.is_local:
        destination.store.remove_tree(staging)
    # What is staged elsewhere stays: a store may carry out a request after its client gave up on it. Then the manifest
    # is there after all, and the next run completes it, or leaves it out where another was first.
    if is_certain is None:
        return IngestError(
            f"{where}: publishing the files of the run failed: {error}. The next ingest into the folder completes the "
            "run, or finds nothing of it",
            may_pass=may_pass,
        )
    reason = f"{where}: writing the manifest of the run failed: {error}. Nothing was ingested"
    return IngestError(reason, may_pass=may_pass)


def _may_pass(error: Exception) -> bool:
    """Tells whether a commit that failed with this error may work later."""
    return isinstance(error, TableChangedError) or can_pass(error)


def end_run(destination: Destination, staging: Path) -> None:
    """Removes what is left of a run that is committed: first its manifest, so that nobody completes it once more."""
    with contextlib.suppress(OSError):
        destination.store.remove(staging / MANIFEST)
        destination.store.remove_tree(staging)


def settle_dead_runs(destination: Destination, tables: LakeTables | None = None) -> None:
    """Completes runs that died after writing their manifest, and removes what others left.

    Only for the holder of the lock.

    Without a manifest nothing of a run is visible, nor will be. Tasks of it may still be writing, on machines that do
    not know that it died: what is staged stays for a day. A run whose manifest came late, when another had taken it for
    dead and had committed, is left out: what it was to add may be there already.

    Raises:
        IngestError: a manifest is there that no run has written, a file that it lists is gone, or a link is in the
            place of the staging folder.
    """
    store = destination.store
    certain: list[tuple[Path, Manifest]] = []
    try:
        for staging in left_over(destination.folder / STAGING, kind=_KIND, store=store):
            manifest = Manifest.read(staging, kind=_KIND, store=store)
            if manifest is not None:
                certain.append((staging, manifest))
            elif store.age_s(staging) > _KEPT_S:
                store.remove_tree(staging)
        if len(certain) > 1:
            # If one was late, it is not the one whose files have names already.
            certain.sort(key=lambda each: not _has_begun(destination, each[1]))
        for staging, manifest in certain:
            if not _is_late(destination, manifest, tables):
                _roll_forward(destination, staging, manifest, tables, _number(destination, staging))
            end_run(destination, staging)
    except (ValueError, NotADirectoryError) as error:
        raise IngestError(str(error)) from None
    except LockTakenError as error:
        raise _failed(destination, destination.folder, error) from error
    except (OSError, TableChangedError) as error:
        raise IngestError(
            f"{destination.shown()}: completing a run that died failed: {error}. Nothing was ingested",
            may_pass=_may_pass(error),
        ) from error


def _is_late(destination: Destination, manifest: Manifest, tables: LakeTables | None) -> bool:
    """Tells whether another run was committed between the state that a run was planned on and its own commit."""
    if manifest.after is None:
        return False
    last = load_state(destination, tables).last_run or ""
    return last > manifest.after and last != manifest.publisher


def _has_begun(destination: Destination, manifest: Manifest) -> bool:
    """Tells whether any file of a run has its name."""
    places = [destination.folder / final for _, final in manifest.place]
    return any(destination.side_by_side(destination.store.exists, places))


def _number(destination: Destination, staging: Path) -> int:
    content = destination.store.read_json(staging / _NUMBER)
    return 0 if content is None else int(content["number"])


def _roll_forward(
    destination: Destination, staging: Path, manifest: Manifest, tables: LakeTables | None, number: int
) -> None:
    """Gives the files of a run their names, as far as they do not have them, and has tables keep track of them.

    Once that is done, it does nothing.

    Raises:
        IngestError: a file is neither staged nor in its place.
        ValueError: a file is not for a table.
        OSError: a file could not be given its name.
    """
    store, folder = destination.store, destination.folder
    groups = {table: [move for move in manifest.place if Path(move[1]).parts[1:2] == (table,)] for table in TABLES}
    if manifest.remove or sum(map(len, groups.values())) != len(manifest.place):
        raise ValueError(
            f"{destination.shown(staging / MANIFEST)}: expected the manifest of an ingest that died, with files of "
            f"the tables {', '.join(TABLES)}; it has others. Nothing was changed; look at what is there and remove "
            f"{destination.shown(staging)}"
        )

    def is_staged(move: Move) -> bool:
        staged, final = move
        if store.exists(staging / staged):
            return True
        if not store.exists(folder / final):
            raise IngestError(
                f"{destination.shown(folder / final)}: a run that died was to put it there, and it is gone. Nothing "
                f"was changed. Remove {destination.shown(staging)} if the file was removed on purpose"
            )
        return False

    def place(move: Move) -> None:
        store.place(staging / move[0], folder / move[1])

    waiting = dict(zip(manifest.place, destination.side_by_side(is_staged, manifest.place), strict=True))
    for moves in groups.values():
        for _ in destination.side_by_side(place, [move for move in moves if waiting[move]]):
            pass
        # Also the names that were given before: the run that gave them may have died before this.
        if moves:
            store.sync_names(folder, [folder / final for _, final in moves])
        if tables is not None:
            _append(destination, tables, number, [final for _, final in moves])


def _append(destination: Destination, tables: LakeTables, number: int, paths: Sequence[str]) -> None:
    """Appends the files of one table, of all formats, as the run of this number."""
    started = time.time() - _CLOCK_S
    by_table: dict[tuple[str, str], list[str]] = {}
    for path in paths:
        format, table, rest = path.split("/", 2)
        by_table.setdefault((format, table), []).append(rest)
    for (format, table), own in by_table.items():
        folder = destination.folder / format / table
        files = list(destination.side_by_side(lambda path, in_=folder: _data_file(destination, in_, path), own))
        # A file without rows is there for the sake of its columns.
        schema: pa.Schema = cast("Any", destination.parquet(folder / own[0])).schema_arrow
        tables.of(format, table).append(number, schema, [file for file in files if file.rows])
        if destination.is_local:
            for kept in _LOG_FOLDERS:
                _sync_since(destination.folder, folder / kept, started)


def _sync_since(destination: Path, folder: Path, started: float) -> None:
    """Has what was written to a folder since then be durable: `deltalake` and `pyiceberg` sync nothing of theirs."""
    new = [path for path in LOCAL.children(folder) if path.is_file() and path.stat().st_mtime >= started]
    for path in new:
        LOCAL.sync_file(path)
    LOCAL.sync_names(destination, new)


def _data_file(destination: Destination, folder: Path, path: str) -> DataFile:
    rows = destination.parquet(folder / path).metadata.num_rows
    nbytes, modified_ms = destination.size_and_time(folder / path)
    named = [part.split("=", 1) for part in path.split("/")[:-1]]
    partition = {name: None if value == NULL_DATE else value for name, value in named}
    return DataFile(path, nbytes, rows, modified_ms, partition)


def _holder(destination: Destination) -> str:
    try:
        holder = json.loads(destination.store.holder(destination.folder / LOCK))
        since = f", since {holder['since']} by its clock" if "since" in holder else ""
        return printable(f"process {holder['pid']} on {holder['host']}{since}")
    except (OSError, ValueError, LookupError, TypeError):
        return "it has not said which"
