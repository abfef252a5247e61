"""What is written to stores elsewhere: objects and files that appear when they are complete."""

from __future__ import annotations

import errno
import inspect
import os
import shutil
import tempfile
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from seglake.stores import Entry, RemoteFile, Store
from seglake.stores.arrow_store import ArrowStore
from seglake.stores.fsspec_store import FsspecStore
from seglake.stores.object_store import ObjectStore
from seglake.write.new_file import prefix_of

__all__ = ["Target", "new_object", "target_of"]

# S3 copies no larger object in one request, and pyarrow.fs makes one.
_MOST_COPIED: Final = 5 << 30
_PIECE_BYTES: Final = 8 << 20
_MOST_IN_ONE_REQUEST: Final = 8 << 20
# How often a small file is read that is replaced while it is read.
_TRIES: Final = 3
# Where an object appears under its key when its upload is completed, never before.
_ARROW_OBJECTS: Final = frozenset({"s3", "abfs"})
_FSSPEC_OBJECTS: Final = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "adl", "az", "oss", "oci"})


class Target(ABC):
    """A store that is written to, by paths within it. Every error is an OSError that names the file by its URI.

    Attributes:
        store: the store, as it is read.
        is_objects: whether it is an object store: an upload shows when it is complete, and there are no renames.
        has_conditions: whether it refuses to create what is there in one step with creating it.
        most_copied: the most bytes of a file that it copies; None for any number.
    """

    def __init__(self, store: Store, is_objects: bool, has_conditions: bool, most_copied: int | None = None) -> None:
        self.store = store
        self.is_objects = is_objects
        self.has_conditions = has_conditions
        self.most_copied = most_copied

    def upload(self, local: Path, path: str, name: str, *, create: bool = False) -> None:
        """Stores a local file. It shows when it is complete, and not at all if that fails.

        Where a file that is there has to be removed first, the error says where the new one is if it was removed.

        Args:
            local: the file.
            path: its path within the store.
            name: what errors call it.
            create: refuse to replace what is there.

        Raises:
            FileExistsError: there is something, and `create` is set.
            OSError: the store refuses, or does not have what was sent to it.
        """
        if create and self.store.find(path, name) is not None:
            raise _exists(name)
        try:
            if self.is_objects:
                self._send(local, path, create=create)
            else:
                self._rename_into(local, path, name, create=create)
        except FileExistsError:
            # The client may have repeated a request whose answer was lost: then what is there is ours.
            if not self.holds(local, path, name):
                raise _exists(name) from None
        except Exception as error:
            raise self.store.failure(name, error) from None
        found = self.store.find(path, name)
        if found is None or found.size != local.stat().st_size:
            has = "nothing" if found is None else f"{found.size} bytes"
            raise OSError(
                errno.EIO, f"expected the {local.stat().st_size} bytes that were sent, the store has {has}", name
            )

    def put(self, content: bytes, path: str, name: str, *, create: bool = False) -> None:
        """Stores a few bytes, as `upload` does. If an error does not say whether they are there, that is looked at."""
        try:
            with tempfile.TemporaryDirectory(prefix="seglake-") as folder:
                local = Path(folder) / "content"
                local.write_bytes(content)
                self.upload(local, path, name, create=create)
        except FileExistsError:
            raise
        except OSError:
            if self.get(path, name) != content:
                raise

    def replace_if(self, content: bytes, path: str, name: str, expected: Callable[[bytes], bool]) -> None:
        """Stores a few bytes in the place of others.

        That is one step in the stores of `obstore`. Elsewhere the bytes that are there are read before, and what others
        put there in between is lost.

        Args:
            content: the bytes.
            path: the path of the file within the store.
            name: what errors call it.
            expected: tells whether what is there may be replaced.

        Raises:
            FileExistsError: it may not, or is gone.
            OSError: the store refuses.
        """
        there = self.get(path, name)
        if there is None or not expected(there):
            raise _exists(name)
        self.put(content, path, name)

    def get(self, path: str, name: str) -> bytes | None:
        """Returns all bytes of a small file; None where there is none. It may be replaced or removed meanwhile."""
        for left in reversed(range(_TRIES)):
            try:
                file = self.store.open(path, name)
            except FileNotFoundError:
                return None
            try:
                return file.read_at(0, file.size) if file.size else b""
            except OSError:
                if not left or not _was_replaced(file):
                    raise
        return None

    def copy(self, source: str, target: str, name: str) -> None:
        """Copies a file within the store, which shows when it is complete. An error leaves nothing new."""
        with self.store.errors(name):
            self._copy(source, target)

    def move(self, source: str, target: str, name: str) -> None:
        """Renames a file; its folder is made where it is missing. Only where that is one step."""
        with self.store.errors(name):
            self._make_folder(target.rpartition("/")[0])
            self._move(source, target)

    def remove(self, path: str, name: str) -> None:
        """Removes a file, if it is there. An error after which it is gone is none."""
        try:
            with self.store.errors(name), suppress(FileNotFoundError):
                self._remove(path)
        except OSError:
            if self.store.find(path, name) is not None:
                raise

    def make_folder(self, path: str, name: str) -> None:
        """Makes a folder, where the store has such."""
        if not self.is_objects:
            with self.store.errors(name):
                self._make_folder(path)

    def remove_tree(self, path: str, name: str) -> None:
        """Removes a folder with all below it, if it is there."""
        with self.store.errors(name), suppress(FileNotFoundError):
            self._remove_tree(path)

    def children(self, path: str, name: str) -> list[Entry]:
        """Returns what is directly in a folder, by names; nothing where there is no such folder."""
        try:
            found = list(self.store.entries(path, name, recursive=False))
        except FileNotFoundError:
            return []
        return sorted(entry for entry in found if entry.path.rstrip("/") != path.rstrip("/"))

    def _rename_into(self, local: Path, path: str, name: str, *, create: bool) -> None:
        folder, _, file = path.rpartition("/")
        within = f"{folder}/" if folder or path.startswith("/") else ""
        staged = f"{within}.{prefix_of(file)}.{uuid.uuid4().hex}.tmp"
        old: Entry | None = None
        try:
            self._make_folder(folder)
            self._write(local, staged)
            old = self.store.find(path, name)
            if create and old is not None:
                raise _exists(name)
            try:
                self._move(staged, path)
            except OSError:
                there = self.store.find(path, name)
                if there is not None and self.store.find(staged, name) is None:
                    return  # it is done, and the answer was lost
                # Some refuse to rename onto a file: HDFS does.
                if create or there is None:
                    raise
                self._remove(path)
                self._move(staged, path)
        except BaseException as error:
            if old is None or self._has(old, path, name):
                with suppress(Exception):
                    self._remove(staged)
            elif isinstance(error, Exception):
                raise OSError(
                    errno.EIO, f"{error}. What was there may be gone, and the new file is {staged}: rename it", name
                ) from None
            raise

    def _has(self, entry: Entry, path: str, name: str) -> bool:
        """Tells whether a file is certain to be as it was."""
        try:
            return self.store.find(path, name) == entry
        except OSError:
            return False

    def holds(self, local: Path, path: str, name: str) -> bool:
        """Tells whether a file of the store has the bytes of a local one."""
        try:
            there = self.store.open(path, name)
        except OSError:
            return False
        if there.size != local.stat().st_size:
            return False
        with local.open("rb") as file:
            for at in range(0, there.size, _PIECE_BYTES):
                piece = file.read(_PIECE_BYTES)
                if there.read_at(at, len(piece)) != piece:
                    return False
        return True

    @abstractmethod
    def _send(self, local: Path, path: str, *, create: bool) -> None:
        """Uploads a file to its key; it shows when it is complete. Only for object stores."""

    @abstractmethod
    def _write(self, local: Path, path: str) -> None:
        """Writes a file, which may show before it is complete."""

    @abstractmethod
    def _copy(self, source: str, target: str) -> None: ...

    @abstractmethod
    def _move(self, source: str, target: str) -> None: ...

    @abstractmethod
    def _remove(self, path: str) -> None: ...

    @abstractmethod
    def _remove_tree(self, path: str) -> None: ...

    @abstractmethod
    def _make_folder(self, path: str) -> None: ...


class _ArrowTarget(Target):
    """A store of `pyarrow.fs`, which knows neither conditions nor how to abort an upload."""

    def __init__(self, store: ArrowStore) -> None:
        self._filesystem: Any = store.filesystem
        super().__init__(store, store.kind in _ARROW_OBJECTS, False, _MOST_COPIED if store.kind == "s3" else None)

    def _send(self, local: Path, path: str, *, create: bool) -> None:
        import pyarrow as pa

        file: Any = self._filesystem.open_output_stream(path, compression=None)
        # In one call. A stream that is freed completes its upload: an interrupt between two calls would show a half.
        if local.stat().st_size:
            with pa.memory_map(str(local)) as content:
                file.write(cast("Any", content).read_buffer())
        file.close()

    def _write(self, local: Path, path: str) -> None:
        with local.open("rb") as content, self._filesystem.open_output_stream(path, compression=None) as file:
            shutil.copyfileobj(content, file, _PIECE_BYTES)

    def _copy(self, source: str, target: str) -> None:
        self._filesystem.copy_file(source, target)

    def _move(self, source: str, target: str) -> None:
        self._filesystem.move(source, target)

    def _remove(self, path: str) -> None:
        self._filesystem.delete_file(path)

    def _remove_tree(self, path: str) -> None:
        self._filesystem.delete_dir(path)

    def _make_folder(self, path: str) -> None:
        if path:
            self._filesystem.create_dir(path, recursive=True)


class _FsspecTarget(Target):
    """A store of `fsspec`. Its object stores take conditions, and abort uploads."""

    def __init__(self, store: FsspecStore) -> None:
        self._filesystem = store.filesystem
        named = store.filesystem.protocol
        protocols = {named} if isinstance(named, str) else set(named)
        is_objects = bool(protocols & _FSSPEC_OBJECTS)
        if type(store.filesystem).__module__.partition(".")[0] == "obstore":
            raise ValueError("obstore.fsspec is for reading: name URIs, with storage_options=, to write")
        # Older versions do not know what they are asked for, and would not say so.
        takes_mode = "mode" in inspect.signature(store.filesystem.pipe_file).parameters
        super().__init__(store, is_objects, is_objects and takes_mode)

    def _send(self, local: Path, path: str, *, create: bool) -> None:
        file: Any = self._filesystem.open(path, "xb" if create and self.has_conditions else "wb")
        try:
            with local.open("rb") as content:
                shutil.copyfileobj(content, file, _PIECE_BYTES)
            file.close()
        except BaseException:
            with suppress(Exception):
                file.discard()
            file.closed = True  # what is not closed is completed when it is freed
            raise

    def _write(self, local: Path, path: str) -> None:
        with local.open("rb") as content, self._filesystem.open(path, "wb") as file:
            shutil.copyfileobj(content, file, _PIECE_BYTES)

    def _copy(self, source: str, target: str) -> None:
        self._filesystem.cp_file(source, target)

    def _move(self, source: str, target: str) -> None:
        self._filesystem.mv(source, target)
        # WebHDFS says in its answer that it did not rename, as where the name is taken, and `fsspec` does not look.
        if self.store.find(source, source) is not None:
            raise OSError(
                f"not renamed to {target}: the name is taken, or the store refused. Look at the folder, then try again"
            )

    def _remove(self, path: str) -> None:
        self._filesystem.rm_file(path)

    def _remove_tree(self, path: str) -> None:
        self._filesystem.rm(path, recursive=True)

    def _make_folder(self, path: str) -> None:
        if path.strip("/"):
            self._filesystem.makedirs(path, exist_ok=True)


class _ObjectTarget(Target):
    """A store of `obstore`, which takes conditions, and aborts uploads."""

    def __init__(self, store: ObjectStore) -> None:
        self._call = store.call
        super().__init__(store, True, True, _MOST_COPIED if store.scheme == "s3" else None)

    def _send(self, local: Path, path: str, *, create: bool) -> None:
        from obstore.exceptions import AlreadyExistsError

        # What has a condition is sent in one request, out of memory.
        in_one_step = create and local.stat().st_size <= _MOST_IN_ONE_REQUEST
        try:
            self._call("put", path, local, mode="create" if in_one_step else "overwrite")
        except AlreadyExistsError:
            raise FileExistsError(path) from None

    def replace_if(self, content: bytes, path: str, name: str, expected: Callable[[bytes], bool]) -> None:
        """Stores a few bytes in the place of others, in one step: if these are still the ones that were looked at."""
        from obstore.exceptions import PreconditionError

        with self.store.errors(name), suppress(FileNotFoundError, PreconditionError):
            there = self._call("get", path)
            version = {part: there.meta[part] for part in ("e_tag", "version") if there.meta[part] is not None}
            if expected(bytes(there.bytes())):
                self._call("put", path, content, mode=version)
                return
        raise _exists(name)

    def _write(self, local: Path, path: str) -> None:
        self._send(local, path, create=False)

    def _copy(self, source: str, target: str) -> None:
        self._call("copy", source, target)

    def _move(self, source: str, target: str) -> None:
        self._call("rename", source, target)

    def _remove(self, path: str) -> None:
        self._call("delete", path)

    def _remove_tree(self, path: str) -> None:
        for entries in self._call("list", path):
            self._call("delete", [entry["path"] for entry in entries])

    def _make_folder(self, path: str) -> None:
        """Does nothing: folders are what names of objects begin with."""


def target_of(store: Store) -> Target:
    """Returns what writes to a store."""
    if isinstance(store, ObjectStore):
        return _ObjectTarget(store)
    return _ArrowTarget(store) if isinstance(store, ArrowStore) else _FsspecTarget(cast("FsspecStore", store))


@contextmanager
def new_object(target: Target, path: str, name: str, *, replace: bool) -> Generator[BinaryIO]:
    """A file that appears in a store when the block ends, and not at all if it raises.

    What is written goes into a local temporary file first: no error that comes before the end reaches the store.

    Raises:
        FileExistsError: there is such a file, and it is not to be replaced.
        IsADirectoryError: it is a folder.
        OSError: the store cannot be reached or written to.
    """
    found = target.store.find(path, name)
    if found is not None and not found.is_file:
        raise IsADirectoryError(errno.EISDIR, "Is a folder: name the file to write", name)
    if found is not None and not replace:
        raise _exists(name)
    with tempfile.TemporaryDirectory(prefix="seglake-") as folder:
        local = Path(folder) / "content"
        with local.open("wb") as file:
            yield file
        target.upload(local, path, name, create=not replace)


def _was_replaced(file: RemoteFile) -> bool:
    try:
        file.confirm()
    except OSError:
        return True
    return False


def _exists(name: str) -> FileExistsError:
    return FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)
