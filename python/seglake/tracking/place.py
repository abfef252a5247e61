"""Where a lake, or the state of a stream, is: a folder of a mounted file system, or one in an object store.

Names below it have `/`.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeAlias

from seglake._text import printable_path
from seglake.stores import Stores
from seglake.stores.object_store import ObjectStore
from seglake.stores.patterns import mounted_path
from seglake.write import durable

# What one library takes as it stands and another decodes, cuts off or takes for a slash, and bytes that are no text.
_READ_OTHERWISE: Final = re.compile(r"[?#\\\x00-\x1f\x7f\udc80-\udcff]|%[0-9A-Fa-f]{2}")

__all__ = ["LocalPlace", "Place", "StorePlace", "check_path", "place_of"]


@dataclass(frozen=True)
class LocalPlace:
    """A folder of a mounted file system. It goes to the tasks, on whatever machine."""

    folder: Path

    def uri(self, name: str = "") -> str:
        """Returns the path or URI of a file, as `deltalake`, `pyiceberg` and users take it."""
        return str(self.folder / name)

    def read(self, name: str) -> bytes | None:
        """Reads a small file; None where there is none."""
        try:
            return (self.folder / name).read_bytes()
        except FileNotFoundError:
            return None

    def put_new(self, name: str, content: bytes) -> bool:
        """Writes a file if there is none of this name, in one step and durably; returns whether it did."""
        new = self._written(name, content)
        try:
            try:
                durable.rename_new(new, self.folder / name)
            except FileExistsError:
                return False
            except OSError:  # network file systems have links and no such rename
                os.link(new, self.folder / name)
        except FileExistsError:
            return False
        finally:
            new.unlink(missing_ok=True)
        self.sync([name])
        return True

    def put(self, name: str, content: bytes) -> None:
        """Writes a file in one step, whether there is one or not."""
        durable.rename(self._written(name, content), self.folder / name)

    def names(self, folder: str, after: str = "") -> list[str]:
        """Returns the names of the files in a folder that come after one, in their order."""
        try:
            return sorted(name for name in os.listdir(self.folder / folder) if name > after)  # noqa: PTH208
        except FileNotFoundError:
            return []

    @contextmanager
    def writing(self, name: str) -> Generator[Path]:
        """Gives a path of this machine to write a large file to; at the end of the block it is in its place, durably.

        Nothing is there if the block fails.
        """
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield path
            durable.sync_file(path)
        except BaseException:
            path.unlink(missing_ok=True)
            raise

    def remove(self, names: Iterable[str]) -> None:
        """Removes files, as far as they are there."""
        for name in names:
            with contextlib.suppress(OSError):
                (self.folder / name).unlink()

    def open(self, path: str) -> Any:
        """Opens a Parquet file, by its path or URI, for Arrow."""
        return path.removeprefix("file://")

    def make(self) -> None:
        """Makes the folder, durably, where it is missing."""
        durable.make_folder(self.folder)

    def sync(self, names: Iterable[str]) -> None:
        """Syncs the names of files, and of the folders on the way to them."""
        for folder in durable.folders_between(self.folder, (self.folder / name for name in names)):
            durable.sync_folder(folder)

    def _written(self, name: str, content: bytes) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            return durable.written(path, content)
        except OSError as error:
            if error.filename is None:
                error.filename = str(path)
            raise


@dataclass(frozen=True)
class StorePlace:
    """A folder in an object store, by `obstore`.

    Attributes:
        address: its URI.
        options: its settings, as in `storage_options`.
    """

    address: str
    options: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)

    @cached_property
    def _reached(self) -> tuple[ObjectStore, str]:
        """The store, and the key of the folder in it."""
        store, key = Stores(None, self.options).connect(self.address)
        if not isinstance(store, ObjectStore):
            raise ValueError(f"{self.address}: expected a store that can put an object only if there is none")
        return store, key

    def check(self) -> None:
        """Sees to it that there is such a store, as far as its URI and options tell.

        Raises:
            ImportError: `obstore` is not installed.
            ValueError: there is none, or an option is wrong.
        """
        _ = self._reached

    def uri(self, name: str = "") -> str:
        """Returns the path or URI of a file."""
        return f"{self.address}/{name}".rstrip("/")

    def read(self, name: str) -> bytes | None:
        """Reads a small file; None where there is none."""
        store, key = self._reached
        return store.read(f"{key}/{name}", self.uri(name))

    def put_new(self, name: str, content: bytes) -> bool:
        """Writes a file if there is none of this name; returns whether it did."""
        try:
            self._put(name, content, create=True)
        except FileExistsError:
            return False
        return True

    def put(self, name: str, content: bytes) -> None:
        """Writes a file, whether there is one or not."""
        self._put(name, content)

    def names(self, folder: str, after: str = "") -> list[str]:
        """Returns the names of the files in a folder that come after one."""
        store, key = self._reached
        prefix = f"{key}/{folder}/"
        with store.errors(self.uri(folder)):
            chunks = store.call("list", prefix, offset=f"{prefix}{after}")
            found = [each["path"].removeprefix(prefix) for chunk in chunks for each in chunk]
        return sorted(name for name in found if "/" not in name)

    @contextmanager
    def writing(self, name: str) -> Generator[Path]:
        """Gives a path to write a large file to."""
        with TemporaryDirectory(prefix="seglake-") as folder:
            path = Path(folder) / "file"
            yield path
            self._put(name, path)

    def remove(self, names: Iterable[str]) -> None:
        """Removes files, as far as they are there."""
        store, key = self._reached
        for name in names:
            with contextlib.suppress(OSError):
                store.remove(f"{key}/{name}", self.uri(name))

    def open(self, path: str) -> Any:
        """Opens a Parquet file for Arrow."""
        import pyarrow as pa

        store, key = self._reached
        name = path.removeprefix(self.address).strip("/")
        with store.errors(self.uri(name)):
            return pa.PythonFile(store.call("open_reader", f"{key}/{name}"), mode="r")

    def _put(self, name: str, content: bytes | Path, *, create: bool = False) -> None:
        store, key = self._reached
        store.put(content, f"{key}/{name}", self.uri(name), create=create)

    def __reduce__(self) -> tuple[object, ...]:
        return StorePlace, (self.address, dict(self.options))


Place: TypeAlias = LocalPlace | StorePlace
"""Where a lake or the state of a stream is."""


def place_of(named: str, options: Mapping[str, str] | None = None) -> Place:
    """Returns the place that a path or URI names.

    Raises:
        ValueError: it cannot be one.
    """
    mounted = mounted_path(named, "folder")
    if not named or mounted is None:
        scheme, _, rest = named.partition("://")
        if not rest.strip("/") or _READ_OTHERWISE.search(rest) or ".." in rest.split("/"):
            raise ValueError(
                f"{printable_path(named)}: expected a folder: a path, or a URI such as "
                f"{scheme or 's3'}://bucket/folder, without escapes (%20), queries (?) and fragments (#)"
            )
        place = StorePlace(named.rstrip("/"), dict(options or {}))
        try:
            place.check()
        except ImportError as error:
            raise ValueError(str(error)) from None
        return place
    folder = Path(mounted).resolve()
    if _has_bytes(str(folder)):
        raise ValueError(f"{printable_path(named)}: expected a path of UTF-8")
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{printable_path(named)}: expected a folder, or nothing yet; a file is there")
    return LocalPlace(folder)


def _has_bytes(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return True
    return False


def check_path(path: str) -> None:
    """Sees to it that a path means the same to all readers of Delta Lake and Iceberg.

    Raises:
        ValueError: it does not.
    """
    found = _READ_OTHERWISE.search(path)
    if found is not None:
        raise ValueError(
            f"{printable_path(path)}: expected a folder for tables of Delta Lake and Iceberg without "
            f"{printable_path(found[0])} in its path, which their readers take for something else. Choose another"
        )
