"""One write into an object store: tasks put their files under their final names, and the driver tidies up.

Stores have no renames and no locks. So files of a write are visible before it ends, and after it was killed. While it
goes on an object `_writing-<id>` stands in the folder. What says that a folder is complete is `_SUCCESS`: it is removed
when a write begins, and put when one ends and no other goes on.
"""

import contextlib
import errno
import tempfile
import uuid
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from seglake._text import printable_path
from seglake.stores import RemoteFile
from seglake.stores.object_store import ObjectStore
from seglake.stores.patterns import owner_of

from ..stores import SparkStores
from .existing import SUCCESS, Existing, PartFile, shown_files

__all__ = ["StoreJob"]

_MARKER: Final = "_writing-"
_MOST_NAMED: Final = 3


@dataclass(frozen=True)
class StoreJob:
    """A write that has begun. It holds nothing open: tasks and the commit are other processes.

    Attributes:
        uri: the URI of the folder.
        stores: reaches it.
        id: a name that no other write has, and that all names of its files contain.
        overwrites: whether the files that are there are replaced.
        success_file: whether `_SUCCESS` says in the end that all is there.
        had_success: whether there was one when the write began.
    """

    uri: str
    stores: SparkStores
    id: str
    overwrites: bool
    success_file: bool
    had_success: bool

    @classmethod
    def begin(cls, uri: str, stores: SparkStores, *, overwrites: bool, success_file: bool) -> "StoreJob":
        """Puts the object that says that a write goes on, and removes `_SUCCESS`.

        Raises:
            ValueError: there is something in the folder that must not be overwritten.
            OSError: it is no folder, or cannot be written to.
        """
        store, path = stores.writable(uri)
        found = store.find(path, uri)
        if found is not None and found.is_file:
            raise NotADirectoryError(
                f"{printable_path(uri)}: expected a folder to write files into, or nothing; this is a file"
            )
        job = cls(uri, stores, str(uuid.uuid4()), overwrites, success_file, False)
        names = job._names()
        if overwrites:
            Existing.of(names, job._opened).refuse_others(uri)
        try:
            job._put(job._marker, job._going_on)
            # Also one that a write puts just now: it looks afterwards for this one.
            job._remove(SUCCESS)
        except OSError:
            job.discard([job._marker])  # its answer may have been lost
            raise
        return cls(uri, stores, job.id, overwrites, success_file, SUCCESS in names)

    @contextlib.contextmanager
    def writing(self) -> Generator[Path]:
        """Gives a temporary folder of this machine, in which a task writes its files.

        Raises:
            FileNotFoundError: the write has ended.
        """
        self._check_going_on()
        with tempfile.TemporaryDirectory(prefix="seglake-") as folder:
            yield Path(folder)

    def put(self, file: Path) -> None:
        """Uploads a complete file, and removes it here.

        Raises:
            FileNotFoundError: the write has ended meanwhile.
            OSError: that failed.
        """
        self._put(file.name, file)
        file.unlink()
        # The end of a write first changes what is asked here, and then looks at what is there. So a file that it does
        # not find is removed by its task.
        self._check_going_on()

    def discard(self, names: Sequence[str]) -> None:
        """Removes files of a task that failed, as far as that goes."""
        with contextlib.suppress(OSError):
            for name in reversed(names):  # an index before its log
                self._remove(name)

    def commit(self, files: Sequence[PartFile]) -> None:
        """Removes the files that are replaced, and those of attempts that do not count, and puts `_SUCCESS`.

        Raises:
            OSError: that failed. The message says what is visible.
        """
        shown = shown_files(files)
        uri = printable_path(self.uri)
        try:
            names = self._names()
            for name in shown:
                if name not in names:
                    raise FileNotFoundError(
                        errno.ENOENT, f"expected the file {name} that a task of this write has put, it is gone"
                    )
            self._put(self._marker, "\n".join((self._committed, *shown)).encode())
        except OSError as error:
            raise OSError(
                error.errno,
                f"{uri}: the commit could not begin: {error}. What was there is untouched. The files of this write are "
                f"removed now; if part-*-{self.id}-* are still there, remove them and {self._marker}, then write again",
            ) from error
        left: list[str] = []
        try:
            names = self._names()
            own = self._own(names)
            old = {name: is_file for name, is_file in names.items() if self.overwrites and name not in own}
            counts = set(shown)
            left += [name for name in (*own, *Existing.of(old, self._opened).segments) if name not in counts]
            left += [*(self._others(names) if self.overwrites else ()), self._marker]
            while left:
                self._remove(left[0])
                del left[0]
            if self.success_file:
                self._put_success()
        except OSError as error:
            more = f" and {len(left) - _MOST_NAMED} more" if len(left) > _MOST_NAMED else ""
            todo = f"; remove {', '.join(map(printable_path, left[:_MOST_NAMED]))}{more}" if left else ""
            raise OSError(
                error.errno,
                f"{uri}: clearing up after the write failed: {error}. All of the write is visible: do not repeat it"
                f"{todo}",
            ) from error

    def abort(self) -> None:
        """Removes the files of the write, if its commit had not come so far that all of them are to stay.

        Raises:
            OSError: a file could not be removed.
        """
        if self._state() != self._going_on:
            return
        self._remove_own()
        self._remove(self._marker)
        self._remove_own()  # also those that came while the first were removed
        if self.had_success:
            self._put_success()

    @property
    def _marker(self) -> str:
        return f"{_MARKER}{self.id}"

    @property
    def _going_on(self) -> bytes:
        return f"A write goes on. If it was killed, remove part-*-{self.id}-*, and then this file.\n".encode()

    @property
    def _committed(self) -> str:
        replaced = "the segments that are not listed here" if self.overwrites else f"other part-*-{self.id}-*"
        return f"These files of a write are complete. If it was killed, remove {replaced}, and then this file."

    def _state(self) -> bytes | None:
        store, key, name = self._at(self._marker)
        return store.read(key, name)

    def _check_going_on(self) -> None:
        if self._state() != self._going_on:
            raise FileNotFoundError(
                errno.ENOENT, "the write has ended meanwhile: of this attempt nothing counts", self._at(self._marker)[2]
            )

    def _names(self) -> dict[str, bool]:
        """Returns the names in the folder, and whether each is that of a file."""
        store, key, _ = self._at("")
        try:
            found = list(store.entries(key, self.uri, recursive=False))
        except FileNotFoundError:
            return {}
        return {entry.path.rpartition("/")[2]: entry.is_file for entry in found if entry.path != key}

    def _opened(self, name: str) -> RemoteFile:
        store, key, uri = self._at(name)
        return store.open(key, uri)

    def _put(self, name: str, content: bytes | Path) -> None:
        store, key, uri = self._at(name)
        store.put(content, key, uri)

    def _remove(self, name: str) -> None:
        store, key, uri = self._at(name)
        store.remove(key, uri)

    def _put_success(self) -> None:
        """Says that the folder is complete, unless another write goes on, which does that, or was killed."""
        if not self._others(self._names()):
            self._put(SUCCESS, b"")
            if self._others(self._names()):  # it began meanwhile
                self._remove(SUCCESS)

    def _others(self, names: Iterable[str]) -> list[str]:
        """Returns what other writes have put that go on or were killed."""
        return [name for name in names if name.startswith(_MARKER) and name != self._marker]

    def _own(self, names: Iterable[str]) -> list[str]:
        """Returns the files of this write, an index before its log: alone it would look like a file of its own."""
        own = [name for name in names if self.id in name and name != self._marker]
        return sorted(own, key=lambda name: (owner_of(name) is None, name))

    def _remove_own(self) -> None:
        for name in self._own(self._names()):
            self._remove(name)

    def _at(self, name: str) -> tuple[ObjectStore, str, str]:
        """Returns the store, the key of a file in the folder, and its URI."""
        store, folder = self.stores.writable(self.uri)
        return store, f"{folder}/{name}".strip("/"), f"{self.uri}/{name}".rstrip("/")
