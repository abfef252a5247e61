"""How a run becomes visible: one at a time, all or nothing, and after what dead runs have begun is finished.

The files of a run get their names in the order `records`, `damage`, `files`, of which the last are the commit records.
A manifest that lists all of them is on the disk before the first has its name. From then on the run is certain: if it
dies, the next one gives the other files their names. It never reads an input again for that, nor takes anything back.
"""

import contextlib
import json
import os
import socket
import time
from collections.abc import Generator
from pathlib import Path
from typing import Final

from seglake._publish.manifest import MANIFEST, Manifest, left_over
from seglake._publish.store import LOCAL
from seglake._text import printable, printable_path

from .layout import LOCK, STAGING, TABLES
from .result import IngestError

__all__ = ["commit", "locked", "settle_dead_runs"]

_KIND: Final = "ingest"
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


def commit(destination: Path, manifest: Manifest) -> None:
    """Makes a run visible. Its staging folder stays for the caller to remove.

    Raises:
        IngestError: that failed. The message says what becomes of the run.
    """
    staging = destination / STAGING / manifest.publisher
    try:
        missing = manifest.write_down(destination, staging)
        if missing is None:
            _roll_forward(destination, staging, manifest)
    except OSError as error:
        where = printable_path(destination)
        if LOCAL.exists(staging / MANIFEST):
            raise IngestError(
                f"{where}: giving the files of the run their names failed: {error}. A part of it may be visible; the "
                "next ingest into the folder completes it"
            ) from error
        LOCAL.remove_tree(staging)
        raise IngestError(f"{where}: writing the manifest of the run failed: {error}. Nothing was ingested") from error
    if missing is not None:
        raise IngestError(
            f"{printable_path(missing)}: expected the file that a task has put there, there is none. Nothing was "
            "ingested; ingest again, where all machines see the same folder"
        )


def settle_dead_runs(destination: Path) -> None:
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
                _roll_forward(destination, staging, manifest)
                LOCAL.remove_tree(staging)
            elif time.time() - _last_changed(staging) > _KEPT_S:
                LOCAL.remove_tree(staging)
    except (ValueError, NotADirectoryError) as error:
        raise IngestError(str(error)) from None
    except OSError as error:
        raise IngestError(
            f"{printable_path(destination)}: completing a run that died failed: {error}. Nothing was ingested"
        ) from error


def _roll_forward(destination: Path, staging: Path, manifest: Manifest) -> None:
    """Gives the files of a run their names, as far as they do not have them. Once all have, it does nothing.

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
