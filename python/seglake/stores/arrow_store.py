"""Stores that `pyarrow.fs` reaches."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

from .store import Entry, RemoteFile, Store

if TYPE_CHECKING:
    from pyarrow import NativeFile
    from pyarrow.fs import FileInfo, FileSystem

__all__ = ["ArrowStore"]

# The types of file systems whose paths begin with the name of a bucket or container.
_BUCKETS = frozenset({"s3", "gcs", "abfs"})

# What tells an object from another under the same key. The lower case is that of Google Cloud Storage.
_IDENTITY = ("ETag", "Last-Modified", "Content-Length", "etag", "generation", "size")
_MODIFIED = ("Last-Modified", "updated")
# How often a file is opened that is replaced while it is opened.
_TRIES = 20


class ArrowStore(Store):
    """A `pyarrow.fs.FileSystem`."""

    def __init__(self, filesystem: FileSystem, secrets: tuple[str, ...] = ()) -> None:
        inner: Any = filesystem
        while inner.type_name == "subtree":
            inner = inner.base_fs
        self.kind = str(inner.type_name)
        # Some stores do not tell the one from the other.
        bucket = ", or no such bucket" if self.kind in _BUCKETS else ""
        super().__init__(secrets, f"No such file or directory{bucket}")
        self.filesystem = filesystem
        self.lists_all_below = self.kind == "gcs"

    def path_of(self, source: str) -> str:
        """Returns the path within the store of a path or URI."""
        _, separator, rest = source.partition("://")
        if not separator:
            return source
        authority, slash, path = rest.partition("/")
        if self.filesystem.type_name in _BUCKETS:
            before, at, after = authority.rpartition("@")
            # Azure has `container@account`, the others `user@bucket`.
            bucket = before if at and self.kind == "abfs" else after
            return (bucket + slash + path).rstrip("/")
        return slash + path

    def open(self, path: str, name: str) -> RemoteFile:
        """Opens a file for reading."""
        try:
            return ArrowFile(self, path, name)
        except Exception as error:
            raise self.failure(name, error) from None

    def find(self, path: str, name: str) -> Entry | None:
        """Tells what is at a path."""
        try:
            return _entry(self._info(path))
        except Exception as error:
            raise self.failure(name, error) from None

    def entries(self, folder: str, name: str, *, recursive: bool) -> Iterator[Entry]:
        """Lists a folder."""
        from pyarrow.fs import FileSelector

        try:
            if self.kind == "gcs":
                listed = self._in_google(folder, recursive=recursive)
            else:
                listed = self.filesystem.get_file_info(FileSelector(folder, recursive=recursive))
        except Exception as error:
            raise self.failure(name, error) from None
        for info in listed:
            entry = _entry(info)
            if entry is not None:
                yield entry

    def files(self, folder: str, name: str) -> Iterator[Entry]:
        """Lists the files that are directly in a folder; nothing where there is no such folder."""
        from pyarrow.fs import FileSelector

        try:
            # Of Google Cloud Storage it has these alone, whatever is below: that is one request for 1,000 of them.
            listed = self.filesystem.get_file_info(FileSelector(folder, allow_not_found=True))
        except Exception as error:
            raise self.failure(name, error) from None
        found = (_entry(info) for info in listed)
        return (entry for entry in found if entry is not None and entry.is_file)

    def _in_google(self, folder: str, *, recursive: bool) -> list[FileInfo]:
        """Lists a folder of Google Cloud Storage, of which `pyarrow` lists only what has an object of its own."""
        from pyarrow.fs import FileSelector, FileType

        # There is an error for a folder that is not there, but none that says so.
        listed = self.filesystem.get_file_info(FileSelector(folder, allow_not_found=True, recursive=True))
        if not listed and self._info(folder).type == FileType.NotFound:
            raise FileNotFoundError(folder)
        return _with_folders(listed, folder, recursive=recursive)

    def _info(self, path: str) -> FileInfo:
        return self.filesystem.get_file_info(path)


class ArrowFile(RemoteFile):
    """A file that `pyarrow.fs` has opened."""

    def __init__(self, store: ArrowStore, path: str, name: str) -> None:
        self._filesystem = store.filesystem
        self._file = self._opened(path)
        self._identity, modified = self._look(path, self._file)
        super().__init__(store, path, name, self._file.size(), modified)

    def _read(self, offset: int, size: int) -> bytes:
        # By position, not by seeking: several threads read at a time.
        return cast("Any", self._file).read_at(size, offset)

    def _is_unchanged(self) -> bool:
        with self._opened(self.path) as now:
            return self._look(self.path, now)[0] == self._identity

    def _opened(self, path: str) -> NativeFile:
        # Google Cloud Storage is asked twice, for what the object is and for its content. If the object is replaced in
        # between, `pyarrow` gives a file that is closed.
        for _ in range(_TRIES):
            file = self._filesystem.open_input_file(path)
            if not file.closed:
                return file
        raise OSError(errno.ESTALE, "the file was replaced each time it was opened, or cannot be read; read it again")

    def _look(self, path: str, file: NativeFile) -> tuple[object, float | None]:
        """Returns what tells the file from another under its name, and when it was modified."""
        metadata = cast("dict[str, bytes] | None", cast("Any", file).metadata())
        if metadata:
            modified = next((metadata[name] for name in _MODIFIED if name in metadata), None)
            identity = {name: metadata.get(name) for name in _IDENTITY}
            return identity, _seconds(modified.decode()) if modified else None
        info = self._filesystem.get_file_info(path)
        entry = _entry(info)
        if entry is None:
            raise FileNotFoundError(path)
        return (file.size(), info.mtime_ns), entry.modified


def _with_folders(listed: list[FileInfo], folder: str, *, recursive: bool) -> list[FileInfo]:
    """Adds the folders to all that is below a folder, and leaves out what is not directly in it, if not `recursive`."""
    from pyarrow.fs import FileInfo, FileType

    start = len(folder.rstrip("/")) + 1
    found = {info.path: info for info in listed}
    for info in listed:
        end = info.path.find("/", start)
        while end >= 0:
            above = info.path[:end]
            found.setdefault(above, FileInfo(above, FileType.Directory))
            end = info.path.find("/", end + 1)
    return [info for path, info in found.items() if recursive or "/" not in path[start:]]


def _entry(info: FileInfo) -> Entry | None:
    from pyarrow.fs import FileType

    if info.type == FileType.NotFound:
        return None
    modified = info.mtime_ns
    is_file = info.type == FileType.File
    return Entry(info.path, is_file, (info.size or 0) if is_file else 0, None if modified is None else modified / 1e9)


def _seconds(text: str) -> float | None:
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None
