"""An object that may be put again, longer, while a task reads it."""

from __future__ import annotations

import hashlib
import threading
from typing import TYPE_CHECKING, Final, NamedTuple

from seglake.stores import RemoteFile

if TYPE_CHECKING:
    from ..stores import Stores

__all__ = ["growing"]

# How many times an object may be put again while it is compared with what was read.
_PUTS: Final = 5


def growing(stores: Stores, path: str, end: int | None = None) -> str | RemoteFile:
    """Returns what `seglake.open` takes for a file that may grow while it is read.

    Args:
        stores: opens what is not mounted.
        path: its path or URI.
        end: how many of its bytes are to stay as they are; None for all.

    Raises:
        FileNotFoundError: nothing is there.
        OSError: it cannot be opened.
    """
    opened = stores.now(path)
    return opened if isinstance(opened, str) else _GrowingObject(opened, opened.size if end is None else end)


class _Read(NamedTuple):
    """What was read: the hash of its bytes, and the object that had them."""

    offset: int
    size: int
    digest: bytes
    file: RemoteFile


class _GrowingObject(RemoteFile):
    """An object that counts as unchanged if a later one has all that was read of it.

    Requests for ranges do not say of which object the answer is. So what was read is kept as hashes, and compared with
    the object that is there when the reader asks whether all was of one object.
    """

    def __init__(self, file: RemoteFile, end: int) -> None:
        super().__init__(file.store, file.path, file.name, file.size, file.modified)
        self._end = end
        self._file = file
        self._reads: list[_Read] = []
        self._lock = threading.Lock()

    def _read(self, offset: int, size: int) -> bytes:
        file = self._file
        content = file._read(offset, size)
        own = content[: max(0, self._end - offset)]
        if own:
            # What a thread reads while another one looks at a later object is compared the next time.
            self._reads.append(_Read(offset, len(own), _digest(own), file))
        return content

    def _is_unchanged(self) -> bool:
        with self._lock:
            if self._file._is_unchanged() and all(read.file is self._file for read in list(self._reads)):
                return True
            for _ in range(_PUTS):
                now = self.store.open(self.path, self.name)
                if now.size < self._end or not self._has_read(now):
                    return False
                self._file = now
                if now._is_unchanged():
                    return True
            return False

    def _has_read(self, file: RemoteFile) -> bool:
        """Tells whether an object has all that was read."""
        reads = list(self._reads)
        for number, read in enumerate(reads):
            if _digest(file._read(read.offset, read.size)) != read.digest:
                return False
            reads[number] = read._replace(file=file)
        self._reads[: len(reads)] = reads
        return True


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16).digest()
