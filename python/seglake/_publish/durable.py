"""Hands files and folders to the disk."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

__all__ = ["sync", "sync_file", "sync_folder"]


def sync(descriptor: int) -> None:
    """Has the content of an open file, or the names in an open folder, written to the disk.

    Raises:
        OSError: that failed. Nothing is certain then, and a further call says nothing of what failed.
    """
    os.fsync(descriptor)
    if sys.platform == "darwin":
        import fcntl

        # There fsync leaves it in the drive's own cache. Network file systems know nothing else.
        try:
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
        except OSError as error:
            if error.errno not in (errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOTTY):
                raise


def sync_file(path: Path) -> None:
    """Has a closed file's content written to the disk.

    Raises:
        OSError: it cannot be opened, or as for `sync`.
    """
    _sync_at(path, os.O_RDONLY)


def sync_folder(path: Path) -> None:
    """Has the names in a folder written to the disk. Windows syncs no folders, so there it does nothing.

    Raises:
        OSError: it cannot be opened, or as for `sync`.
    """
    if sys.platform != "win32":
        _sync_at(path, os.O_RDONLY | os.O_DIRECTORY)


def _sync_at(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        sync(descriptor)
    finally:
        os.close(descriptor)
