"""File systems of `fsspec` that users hand over."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from .store import Entry, RemoteFile, Store

__all__ = ["FsspecStore", "is_fsspec"]

# What implementations call what tells a file from another under its name, and when it was modified.
_IDENTITY = (
    *("ETag", "etag", "e_tag", "Content-MD5", "md5Hash", "checksum"),
    *("generation", "version", "version_id", "VersionId", "ino", "fileId"),
)
_MODIFIED = ("mtime", "LastModified", "last_modified", "Last-Modified", "modified", "updated", "created")
_MODIFIED_MS = "modificationTime"  # of WebHDFS
# Implementations without a type that pyright could know.
_FileSystem = Any


def is_fsspec(filesystem: object) -> bool:
    """Tells whether something is a file system of `fsspec`, without importing that."""
    return all(callable(getattr(filesystem, name, None)) for name in ("cat_file", "info", "ls", "find"))


class FsspecStore(Store):
    """An `fsspec.AbstractFileSystem`."""

    def __init__(self, filesystem: _FileSystem) -> None:
        super().__init__()
        self.filesystem: Any = filesystem

    def path_of(self, source: str) -> str:
        """Returns the path within the file system of a path or URI."""
        path = str(self.filesystem._strip_protocol(source))
        # Those of obstore leave the scheme where it is.
        scheme, separator, rest = path.partition("://")
        named = self.filesystem.protocol
        return rest if separator and scheme in ({named} if isinstance(named, str) else named) else path

    def info(self, path: str) -> Mapping[str, Any]:
        """Asks what is at a path."""
        self.filesystem.invalidate_cache()  # what it remembers may be of yesterday
        return self.filesystem.info(path)

    def _opened(self, path: str, name: str) -> RemoteFile:
        info = self.info(path)
        if info.get("type") == "directory":
            raise IsADirectoryError(errno.EISDIR, "Is a folder", name)
        if not isinstance(info.get("size"), int):
            raise OSError(errno.EINVAL, "the store does not tell how long it is: copy it here first", name)
        return FsspecFile(self, path, name, info)

    def _found(self, path: str) -> Entry | None:
        return _entry(self.info(path))

    def _listed(self, folder: str, *, recursive: bool) -> Iterator[Entry]:
        self.filesystem.invalidate_cache()
        if recursive:
            listed = self.filesystem.find(folder, detail=True).values()
        else:
            listed = self.filesystem.ls(folder, detail=True)
        # Some list a folder as a member of itself.
        return (_entry(info) for info in listed if info["name"].rstrip("/") != folder.rstrip("/"))


class FsspecFile(RemoteFile):
    """A file of `fsspec`. Nothing is held open: each read is a request of its own."""

    def __init__(self, store: FsspecStore, path: str, name: str, info: Mapping[str, Any]) -> None:
        super().__init__(store, path, name, info["size"], _modified(info))
        self._store = store
        self._identity = _identity(info)

    def _read(self, offset: int, size: int) -> bytes:
        return self._store.filesystem.cat_file(self.path, start=offset, end=offset + size)

    def _is_unchanged(self) -> bool:
        return _identity(self._store.info(self.path)) == self._identity


def _identity(info: Mapping[str, Any]) -> list[object]:
    return [info.get(name) for name in ("size", *_IDENTITY, *_MODIFIED, _MODIFIED_MS)]


def _entry(info: Mapping[str, Any]) -> Entry:
    is_file = info.get("type") != "directory"
    size = info.get("size")
    return Entry(str(info["name"]).rstrip("/"), is_file, size if isinstance(size, int) else 0, _modified(info))


def _modified(info: Mapping[str, Any]) -> float | None:
    for name in _MODIFIED:
        value = info.get(name)
        if isinstance(value, int | float):
            return float(value)
        if isinstance(value, str):
            try:
                value = datetime.fromisoformat(value)
            except ValueError:
                continue
        if isinstance(value, datetime):
            return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
    milliseconds = info.get(_MODIFIED_MS)
    return milliseconds / 1000 if isinstance(milliseconds, int) else None
