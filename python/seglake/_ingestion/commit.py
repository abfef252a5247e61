"""How a run becomes visible: one at a time, all or nothing, and after the clearing away of what dead runs have left.

The files of `records` and `damage` get their names first, then those of `files`, which are the commit records: the
first of these that has its name commits the run. A run that died before that is taken back, one that died after it is
finished, in both cases by the next run.
"""

import contextlib
import json
import os
import socket
from collections.abc import Generator
from pathlib import Path
from typing import Final

from seglake._publish.manifest import Manifest, left_over
from seglake._publish.store import LOCAL
from seglake._text import printable, printable_path

from .layout import LOCK, STAGING
from .result import IngestError

__all__ = ["clear_dead_runs", "commit", "locked"]

_KIND: Final = "ingest"


@contextlib.contextmanager
def locked(destination: Path, run_id: str) -> Generator[None]:
    """Holds the destination's lock: one run at a time writes to it.

    Raises:
        IngestError: another run holds it, or it cannot be opened.
    """
    path = destination / LOCK
    holder = {"host": socket.gethostname(), "pid": os.getpid(), "run": run_id}
    with contextlib.ExitStack() as held:
        try:
            is_ours = held.enter_context(LOCAL.lock(path, json.dumps(holder).encode()))
        except OSError as error:
            raise IngestError(f"{printable_path(path)}: the lock cannot be opened: {error.strerror}") from error
        if not is_ours:
            raise IngestError(
                f"{printable_path(destination)}: another ingest is writing here ({_holder(path)}). Wait for it to end, "
                "or stop it: the next run clears away what it leaves"
            )
        yield


def commit(destination: Path, manifest: Manifest) -> None:
    """Makes a run visible. Its staging folder stays for the caller to remove.

    Raises:
        IngestError: that failed. The message says what is visible.
    """
    try:
        manifest.carry_out(destination, destination / STAGING / manifest.publisher, kind=_KIND)
    except BaseException as error:
        with contextlib.suppress(OSError, IngestError):
            clear_dead_runs(destination)
        if isinstance(error, OSError):
            raise IngestError(str(error.strerror or error)) from error
        raise


def clear_dead_runs(destination: Path) -> None:
    """Finishes or takes back the runs whose staging folders are still there. Only for the holder of the lock.

    Raises:
        IngestError: a manifest is there that no run has written, or a link is in the place of the staging folder.
    """
    try:
        for staging in left_over(destination / STAGING, kind=_KIND):
            manifest = Manifest.read(staging, kind=_KIND)
            # Without a manifest nothing has been renamed.
            if manifest is not None:
                manifest.settle(destination, staging, kind=_KIND)
            LOCAL.remove_tree(staging)
    except (ValueError, NotADirectoryError) as error:
        raise IngestError(str(error)) from None


def _holder(path: Path) -> str:
    try:
        holder = json.loads(path.read_bytes())
        return printable(f"process {holder['pid']} on {holder['host']}, run {holder['run']}")
    except (OSError, ValueError, LookupError, TypeError):
        return "it has not said which"
