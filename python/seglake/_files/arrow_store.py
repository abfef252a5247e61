"""Stores that `pyarrow.fs` reaches."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

from .file import Entry, RemoteFile, Store

if TYPE_CHECKING:
    from pyarrow import NativeFile
    from pyarrow.fs import FileInfo, FileSystem

__all__ = ["ArrowStore"]

# The types of file systems whose paths begin with the name of a bucket or container.
_BUCKETS = frozenset({"s3", "gcs", "abfs"})

# What tells an object from another under the same key.
_IDENTITY = ("ETag", "Last-Modified", "Content-Length", "Generation")


class ArrowStore(Store):
    """A `pyarrow.fs.FileSystem`."""

    def __init__(self, filesystem: FileSystem, secrets: tuple[str, ...] = ()) -> None:
        # Some stores do not tell the one from the other.
        bucket = ", or no such bucket" if filesystem.type_name in _BUCKETS else ""
        super().__init__(secrets, f"No such file or directory{bucket}")
        self.filesystem = filesystem

    def path_of(self, source: str) -> str:
        """Returns the path within the store of a path or URI."""
        _, separator, rest = source.partition("://")
        if not separator:
            return source
        authority, slash, path = rest.partition("/")
        if self.filesystem.type_name in _BUCKETS:
            return (authority.partition("@")[0] + slash + path).rstrip("/")
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
            listed = self.filesystem.get_file_info(FileSelector(folder, recursive=recursive))
        except Exception as error:
            raise self.failure(name, error) from None
        for info in listed:
            entry = _entry(info)
            if entry is not None:
                yield entry

    def _info(self, path: str) -> FileInfo:
        return self.filesystem.get_file_info(path)


class ArrowFile(RemoteFile):
    """A file that `pyarrow.fs` has opened."""

    def __init__(self, store: ArrowStore, path: str, name: str) -> None:
        self._filesystem = store.filesystem
        self._file = self._filesystem.open_input_file(path)
        self._identity, modified = self._look(path, self._file)
        super().__init__(store, path, name, self._file.size(), modified)

    def _read(self, offset: int, size: int) -> bytes:
        # By position, not by seeking: several threads read at a time.
        return cast("Any", self._file).read_at(size, offset)

    def _is_unchanged(self) -> bool:
        with self._filesystem.open_input_file(self.path) as now:
            return self._look(self.path, now)[0] == self._identity

    def _look(self, path: str, file: NativeFile) -> tuple[object, float | None]:
        """Returns what tells the file from another under its name, and when it was modified."""
        metadata = cast("dict[str, bytes] | None", cast("Any", file).metadata())
        if metadata:
            modified = metadata.get("Last-Modified")
            identity = {name: metadata.get(name) for name in _IDENTITY}
            return identity, _seconds(modified.decode()) if modified else None
        info = self._filesystem.get_file_info(path)
        entry = _entry(info)
        if entry is None:
            raise FileNotFoundError(path)
        return (file.size(), info.mtime_ns), entry.modified


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
