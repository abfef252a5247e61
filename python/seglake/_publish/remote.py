"""Stores elsewhere as a storage to publish in: object stores, which copy and delete, and file systems, which rename.

A request may be carried out although its answer is lost. So after an error the store is asked what is there: what was
to be done and is done counts as done, and nothing is done twice. All objects have names that no other publisher gives.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
import threading
import time
import uuid
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from seglake.stores import Entry

from .elsewhere import target_of
from .leases import GIVEN_UP, Held, Leases, leases_of
from .store import Store, json_object

if TYPE_CHECKING:
    from seglake.stores import RemoteFile
    from seglake.stores.store import Connecting

    from .elsewhere import Target

__all__ = ["RemoteStore"]

# How often a holder renews its locks.
_RENEWAL_SECONDS: Final = 10.0
# Says that a staging folder has begun: object stores have no folders without objects in them.
_BEGUN: Final = "begun"
_PIECE_BYTES: Final = 8 << 20


class RemoteStore(Store):
    """A store of `pyarrow.fs` or `fsspec`. Paths are those within it. It is reached again where it is unpickled.

    Args:
        stores: what reaches the store.
        uri: the folder that is published to.
    """

    def __init__(self, stores: Connecting, uri: str) -> None:
        self._stores = stores
        self._uri = uri.rstrip("/")
        self._connected: tuple[Target, Path] | None = None
        self._held: dict[Path, Held] = {}
        # One renewal at a time, and none of a lock that was given up.
        self._renewing = threading.RLock()

    def __reduce__(self) -> tuple[Any, ...]:
        return RemoteStore, (self._stores, self._uri)

    @property
    def root(self) -> Path:
        """The path of the folder that is published to."""
        return self._connect()[1]

    @property
    def _target(self) -> Target:
        return self._connect()[0]

    @property
    def _leases(self) -> Leases:
        return leases_of(self._target, self.name, self._now)

    def _connect(self) -> tuple[Target, Path]:
        if self._connected is None:
            store, path = self._stores.connect(self._uri)
            self._connected = target_of(store), Path(path)
        return self._connected

    def name(self, path: Path) -> str:
        """Returns the URI."""
        root = self.root
        if path == root:
            return self._uri
        return f"{self._uri}/{path.relative_to(root).as_posix()}" if path.is_relative_to(root) else path.as_posix()

    def exists(self, path: Path) -> bool:
        """Tells whether a file or folder is there."""
        return self._find(path) is not None

    def is_folder(self, path: Path) -> bool:
        """Tells whether a folder is there: in an object store whether anything is below it."""
        found = self._find(path)
        return found is not None and not found.is_file

    def is_link(self, path: Path) -> bool:
        """Tells that there are none."""
        return False

    def children(self, folder: Path) -> list[Path]:
        """Returns what is in a folder, sorted; nothing where there is no such folder."""
        return sorted(folder / name for name in self.names_in(folder))

    def names_in(self, folder: Path) -> dict[str, bool]:
        """Returns the names in a folder, and whether each is that of a file."""
        found = self._target.children(_key(folder), self.name(folder))
        return {_name_of(entry): entry.is_file for entry in found}

    def sizes_in(self, folder: Path) -> dict[str, int]:
        """Returns the names of the files in a folder, and their sizes in bytes; nothing where there is none."""
        return {
            _name_of(entry): entry.size
            for entry in self._target.children(_key(folder), self.name(folder))
            if entry.is_file
        }

    def source(self, path: Path) -> RemoteFile:
        """Opens a file for reading."""
        return self._target.store.open(_key(path), self.name(path))

    def make_folder(self, folder: Path) -> None:
        """Makes a folder, where the store has such."""
        self._target.make_folder(_key(folder), self.name(folder))

    def make_staging(self, folder: Path) -> None:
        """Puts an object into the folder, which says that it has begun."""
        self._put(folder / _BEGUN, b"")

    def put_away(self, staging: Path, manifest: str) -> None:
        """Removes the manifest of a staging folder, and then all in it."""
        # A lock that is renewed after it was removed would be there again.
        with self._renewing:
            for path in [path for path in self._held if path.is_relative_to(staging)]:
                del self._held[path]
        self.remove(staging / manifest)
        self.remove(staging / _BEGUN)
        self.remove_tree(staging)

    def is_put_away(self, staging: Path) -> bool:
        """Tells whether the object is gone that says that the folder has begun."""
        # File systems have the folder before they have the file in it.
        return self._target.is_objects and not self.exists(staging / _BEGUN)

    @contextlib.contextmanager
    def scratch(self, staging: Path) -> Generator[Path]:
        """A temporary folder of this machine."""
        with tempfile.TemporaryDirectory(prefix="seglake-") as folder:
            yield Path(folder)

    def stage(self, written: Path, staged: Path) -> None:
        """Uploads a complete file, and removes it here."""
        try:
            self._target.upload(written, _key(staged), self.name(staged))
        except OSError:
            if not self._target.holds(written, _key(staged), self.name(staged)):
                raise
        written.unlink()

    def sync_names(self, root: Path, files: Iterable[Path]) -> None:
        """Does nothing: what a store has acknowledged is durable."""

    def place(self, staged: Path, final: Path) -> None:
        """Renames a staged file, or copies it and deletes what was staged."""
        self._renew()
        self._transfer(staged, final)

    def move_back(self, final: Path, staged: Path) -> None:
        """Takes the final name of a file away again, if it has it, and stages the file as before."""
        self._renew()
        if not self.exists(final):
            return
        if self.exists(staged):
            self.remove(final)
        else:
            self._transfer(final, staged)

    def write_durably(self, root: Path, path: Path, content: bytes, *, is_new: bool = False) -> None:
        """Stores a small file in one step."""
        self._put(path, content, create=is_new and self._target.has_conditions)

    def read_json(self, path: Path) -> dict[str, Any] | None:
        """Reads a file's JSON object; None where there is no such file.

        Raises:
            ValueError: something else is in the file. The message says what, as half of a sentence about the file.
            OSError: the file could not be read.
        """
        content = self._get(path)
        return None if content is None else json_object(content)

    def remove(self, path: Path) -> None:
        """Removes a file, if it is there."""
        self._renew()
        self._target.remove(_key(path), self.name(path))

    def remove_empty(self, folder: Path) -> None:
        """Does nothing: stores remove folders with all in them, be it what another has put there just now."""

    def remove_tree(self, folder: Path) -> None:
        """Removes a folder with all below it."""
        with contextlib.suppress(OSError):
            if self.exists(folder):
                self._target.remove_tree(_key(folder), self.name(folder))

    @contextlib.contextmanager
    def lock(self, path: Path) -> Generator[bool]:
        """Holds a lock while the block runs, unless somebody else does who has renewed it lately."""
        held = Held(uuid.uuid4().hex)
        try:
            is_ours = self._leases.take(path, held)
        except BaseException:
            # It may be there all the same.
            GIVEN_UP.add(held.token)
            with contextlib.suppress(OSError):
                self._leases.give_up(path, held)
            raise
        if not is_ours:
            # It may be there all the same, if what was read back was cut.
            GIVEN_UP.add(held.token)
            yield False
            return
        held.renewed = time.monotonic()
        self._held[path] = held
        try:
            yield True
        finally:
            with self._renewing:
                is_there = self._held.pop(path, None) is not None
            # Gone with the staging folder that it was in, or free for others.
            if is_there:
                GIVEN_UP.add(held.token)
                with contextlib.suppress(OSError):
                    self._leases.give_up(path, held)
                    GIVEN_UP.discard(held.token)

    def confirm(self) -> None:
        """Makes sure that the locks that this object holds are still its own.

        Raises:
            LockTakenError: another has taken one, or it is gone.
        """
        with self._renewing:
            for path, held in self._held.items():
                if not self._leases.is_ours(path, held):
                    raise self._leases.taken(path)

    def _now(self, beside: Path) -> float | None:
        """Returns the time by the clock of the store, in seconds since 1970, as it gives it to a file there."""
        probe = beside.with_name(f"{beside.name}.{uuid.uuid4().hex}")
        self._put(probe, b"")
        found = self._find(probe)
        self.remove(probe)
        return None if found is None else found.modified

    def _renew(self) -> None:
        if all(time.monotonic() - held.renewed <= _RENEWAL_SECONDS for held in list(self._held.values())):
            return
        with self._renewing:
            for path, held in self._held.items():
                if time.monotonic() - held.renewed > _RENEWAL_SECONDS:
                    self._leases.renew(path, held)
                    held.renewed = time.monotonic()

    def _transfer(self, source: Path, target: Path) -> None:
        """Moves a file to a name that no other file has, now or later."""
        if not self._target.is_objects:
            try:
                self._target.move(_key(source), _key(target), self.name(source))
            except OSError:
                if self.exists(source) or not self.exists(target):
                    raise
            return
        found = self._find(source)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self.name(source))
        self._copy(source, target, found.size)
        self.remove(source)

    def _copy(self, source: Path, target: Path, size: int) -> None:
        failure: OSError | None = None
        try:
            most = self._target.most_copied
            if most is not None and size > most:
                self._copy_through(source, target)
            else:
                self._target.copy(_key(source), _key(target), self.name(target))
        except OSError as error:
            failure = error
        there = self._find(target)
        if there is None or there.size != size:
            has = "nothing" if there is None else f"{there.size} bytes"
            raise failure or OSError(
                errno.EIO,
                f"expected a copy of the {size} bytes of {self.name(source)}, there is {has}",
                self.name(target),
            )

    def _copy_through(self, source: Path, target: Path) -> None:
        """Copies what is larger than the store copies itself."""
        from seglake.stores import stream

        with self.scratch(source.parent) as folder:
            local = folder / "content"
            with local.open("wb") as file, stream(self.source(source)) as content:
                shutil.copyfileobj(content, file, _PIECE_BYTES)
            self._target.upload(local, _key(target), self.name(target))

    def _find(self, path: Path) -> Entry | None:
        return self._target.store.find(_key(path), self.name(path))

    def _get(self, path: Path) -> bytes | None:
        return self._target.get(_key(path), self.name(path))

    def _put(self, path: Path, content: bytes, *, create: bool = False) -> None:
        self._target.put(content, _key(path), self.name(path), create=create)


def _name_of(entry: Entry) -> str:
    return entry.path.rstrip("/").rpartition("/")[2]


def _key(path: Path) -> str:
    key = path.as_posix()
    return "" if key == "." else key
