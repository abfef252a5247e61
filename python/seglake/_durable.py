"""Hands files and folders to the disk."""

from __future__ import annotations

import errno
import os
import sys

__all__ = ["sync"]


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
