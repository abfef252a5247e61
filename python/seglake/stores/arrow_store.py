"""File systems of `pyarrow.fs`: those that users hand over, and HDFS."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, cast

from .store import Entry, RemoteFile, Store

__all__ = ["ArrowStore"]

# Those whose paths begin with the name of a bucket or container.
_BUCKETS = frozenset({"s3", "abfs"})
_IDENTITY = ("ETag", "Last-Modified", "Content-Length")


class ArrowStore(Store):
    """A `pyarrow.fs.FileSystem`."""

    def __init__(self, filesystem: Any) -> None:
        inner = filesystem
        while inner.type_name == "subtree":
            inner = inner.base_fs
        kind = str(inner.type_name)
        if kind == "gcs":
            raise ValueError(
                "pyarrow.fs.GcsFileSystem lists only folders that have an object of their own: name URIs "
                "(gs://bucket/path) without filesystem=, which takes storage_options="
            )
        # Some stores do not tell the one from the other.
        bucket = ", or no such bucket" if kind in _BUCKETS else ""
        super().__init__(missing=f"No such file or directory{bucket}")
        self.filesystem: Any = filesystem

    def path_of(self, source: str) -> str:
        """Returns the path within the file system of a path or URI."""
        _, separator, rest = source.partition("://")
        if not separator:
            return source
        authority, slash, path = rest.partition("/")
        if self.filesystem.type_name in _BUCKETS:
            return f"{authority.partition('@')[0]}{slash}{path}".rstrip("/")  # of `container@account`
        return slash + path

    def _opened(self, path: str, name: str) -> RemoteFile:
        return _ArrowFile(self, path, name)

    def _found(self, path: str) -> Entry | None:
        return _entry(self.filesystem.get_file_info(path))

    def _listed(self, folder: str, *, recursive: bool) -> Iterator[Entry]:
        from pyarrow.fs import FileSelector

        found = map(_entry, self.filesystem.get_file_info(FileSelector(folder, recursive=recursive)))
        return (entry for entry in found if entry is not None)


class _ArrowFile(RemoteFile):
    def __init__(self, store: ArrowStore, path: str, name: str) -> None:
        self._filesystem = store.filesystem
        self._file = self._filesystem.open_input_file(path)
        self._identity, modified = self._look(path, self._file)
        super().__init__(store, path, name, self._file.size(), modified)

    def _read(self, offset: int, size: int) -> bytes:
        # By position, not by seeking: several threads read at a time.
        return self._file.read_at(size, offset)

    def _is_unchanged(self) -> bool:
        with self._filesystem.open_input_file(self.path) as now:
            return self._look(self.path, now)[0] == self._identity

    def _look(self, path: str, file: Any) -> tuple[object, float | None]:
        """Returns what tells the file from another under its name, and when it was modified."""
        metadata = cast("Mapping[str, bytes] | None", file.metadata())
        if metadata:
            modified = metadata.get("Last-Modified")
            identity = {name: metadata.get(name) for name in _IDENTITY}
            return identity, _seconds(modified.decode()) if modified else None
        info = self._filesystem.get_file_info(path)
        entry = _entry(info)
        if entry is None:
            raise FileNotFoundError(path)
        return (file.size(), info.mtime_ns), entry.modified


def _entry(info: Any) -> Entry | None:
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
