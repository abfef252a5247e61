"""A file elsewhere as a stream of bytes, for what looks at no format."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING

from .store import RemoteFile

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["stream"]

_BUFFER_BYTES = 1 << 20


def stream(file: RemoteFile) -> io.BufferedReader:
    """Makes a binary file object that reads a megabyte at a time."""
    return io.BufferedReader(_Raw(file), _BUFFER_BYTES)


class _Raw(io.RawIOBase):
    def __init__(self, file: RemoteFile) -> None:
        super().__init__()
        self._file = file
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._file.size}[whence]
        if start + offset < 0:
            raise ValueError(f"negative position {start + offset}")
        self._at = start + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Buffer, /) -> int:
        with memoryview(buffer) as view:
            size = max(0, min(len(view), self._file.size - self._at))
            if size:
                view[:size] = self._file.read_at(self._at, size)
        self._at += size
        return size
