"""The folder of the states of a stream: on a mounted file system, or in a store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from seglake.stores.patterns import mounted_path
from seglake.write import durable
from seglake.write.new_file import new_file

if TYPE_CHECKING:
    from ..stores import Stores

__all__ = ["LocalFolders", "StateFolders", "StoredFolders", "state_folders"]


class StateFolders(Protocol):
    """Small files in folders below one, each of which appears in one step and is durable then."""

    @property
    def location(self) -> str:
        """The path or URI of the folder that has the others."""
        ...

    def name(self, folder: str, file: str) -> str:
        """Returns what messages call a file."""
        ...

    def names(self, folder: str) -> list[str]:
        """Returns the names in a folder; none where there is no such folder."""
        ...

    def read(self, folder: str, file: str) -> bytes:
        """Reads a file; nothing where there is none."""
        ...

    def write(self, folder: str, file: str, content: bytes) -> None:
        """Writes a file in one step. On return it is durable.

        Raises:
            OSError: it cannot be written.
        """
        ...

    def remove(self, folder: str, file: str) -> None:
        """Removes a file, if it is there."""
        ...


class LocalFolders(StateFolders):
    """Folders on a mounted file system."""

    def __init__(self, location: str) -> None:
        self._location = Path(location).absolute()

    @property
    def location(self) -> str:
        """The path of the folder that has the others."""
        return str(self._location)

    def name(self, folder: str, file: str) -> str:
        """Returns the path of a file."""
        return str(self._location / folder / file)

    def names(self, folder: str) -> list[str]:
        """Returns the names in a folder; none where there is no such folder."""
        try:
            return [path.name for path in (self._location / folder).iterdir()]
        except FileNotFoundError:
            return []

    def read(self, folder: str, file: str) -> bytes:
        """Reads a file; nothing where there is none."""
        try:
            return (self._location / folder / file).read_bytes()
        except FileNotFoundError:
            return b""

    def write(self, folder: str, file: str, content: bytes) -> None:
        """Writes a file in one step, and syncs it and the names on the way to it."""
        own = self._location / folder
        if not own.is_dir():
            own.mkdir(parents=True, exist_ok=True)
            for parent in list(own.parents)[:2]:
                durable.sync_folder(parent)
        with new_file(str(own / file), replace=True) as written:
            written.write(content)

    def remove(self, folder: str, file: str) -> None:
        """Removes a file, if it is there."""
        (self._location / folder / file).unlink(missing_ok=True)


class StoredFolders(StateFolders):
    """Folders in a store, which has a file once it has all of it."""

    def __init__(self, location: str, stores: Stores) -> None:
        self._location = location.rstrip("/")
        self._store, self._folder = stores.writable(self._location)

    @property
    def location(self) -> str:
        """The URI of the folder that has the others."""
        return self._location

    def name(self, folder: str, file: str) -> str:
        """Returns the URI of a file."""
        return f"{self._location}/{folder}/{file}"

    def names(self, folder: str) -> list[str]:
        """Returns the names of the files in a folder; none where there is no such folder."""
        key = f"{self._folder}/{folder}"
        try:
            found = list(self._store.entries(key, f"{self._location}/{folder}", recursive=False))
        except FileNotFoundError:
            return []
        return [entry.path.rpartition("/")[2] for entry in found if entry.is_file]

    def read(self, folder: str, file: str) -> bytes:
        """Reads a file; nothing where there is none."""
        return self._store.read(self._key(folder, file), self.name(folder, file)) or b""

    def write(self, folder: str, file: str, content: bytes) -> None:
        """Stores a file in one step."""
        self._store.put(content, self._key(folder, file), self.name(folder, file))

    def remove(self, folder: str, file: str) -> None:
        """Removes a file, if it is there."""
        self._store.remove(self._key(folder, file), self.name(folder, file))

    def _key(self, folder: str, file: str) -> str:
        return f"{self._folder}/{folder}/{file}".strip("/")


def state_folders(location: str, stores: Stores) -> StateFolders:
    """Returns the folders below a path, or below a URI.

    Raises:
        ValueError: it is of another machine.
    """
    path = mounted_path(location, "folder")
    return LocalFolders(path) if path is not None else StoredFolders(location, stores)
