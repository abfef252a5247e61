"""One run at a time writes to a destination."""

import json
import os
import socket
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from seglake._text import printable, printable_path

from .layout import LOCK
from .result import IngestError

__all__ = ["locked"]


@contextmanager
def locked(destination: Path, run_id: str) -> Generator[None]:
    """Holds the destination's lock.

    The operating system drops the lock when the process ends, however it ends, so that none is ever left behind. The
    file itself stays: removing it would let two runs hold locks on two files of the same name.

    Raises:
        IngestError: another run holds it, or it cannot be opened.
    """
    import fcntl  # not on Windows, where this module is imported by `seglake.spark`

    path = destination / LOCK
    try:
        # What a link in its place leads to would be written to.
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    except OSError as error:
        raise IngestError(f"{printable_path(path)}: the lock cannot be opened: {error.strerror}") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise IngestError(
                f"{printable_path(destination)}: another ingest is writing here ({_holder(path)}). Wait for it to end, "
                "or stop it: the next run clears away what it leaves"
            ) from None
        holder = {"host": socket.gethostname(), "pid": os.getpid(), "run": run_id}
        os.truncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(holder).encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _holder(path: Path) -> str:
    try:
        holder = json.loads(path.read_bytes())
        return printable(f"process {holder['pid']} on {holder['host']}, run {holder['run']}")
    except (OSError, ValueError, LookupError, TypeError):
        return "it has not said which"
