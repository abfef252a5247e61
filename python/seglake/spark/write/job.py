"""One write into a folder: what its tasks have put aside becomes visible together, or is removed.

Below the folder stands `_temporary/<job>/`, which readers do not see. There each attempt at a task has names of its
own. Which of these files get names in the folder itself only the driver decides, by the messages that Spark accepted.
"""

import contextlib
import uuid
from collections.abc import Generator, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

import seglake
from seglake._publish.manifest import MANIFEST, Manifest, left_over
from seglake._publish.store import LOCAL, Store
from seglake._text import printable_path
from seglake.stores.patterns import is_hidden, owner_of

from .options import extensions

__all__ = ["Existing", "Job", "PartFile"]

_STAGING: Final = "_temporary"
_LOCK: Final = "lock"
_SUCCESS: Final = "_SUCCESS"
_KIND: Final = "write"
# Recognising a file needs no key; with one given, the one in the environment, for the executors, is not read.
_ANY_KEY: Final = bytes(32)


class PartFile(NamedTuple):
    """A file that a task has written.

    Attributes:
        moves: its name in the job's staging folder and the one that it is to have; after it those of the index that
            belongs to it, if it has one.
        records: how many records are in it.
    """

    moves: tuple[tuple[str, str], ...]
    records: int


@dataclass(frozen=True)
class Job:
    """A write that has begun. It holds nothing open: tasks and the commit are other processes.

    Attributes:
        folder: where the files go, as a path within the store.
        id: a name that no other write has.
        overwrites: whether the files that are there are replaced.
        success_file: whether an empty file `_SUCCESS` says in the end that all is there.
        made_folder: whether this write has made the folder.
        store: what the folder is in.
    """

    folder: Path
    id: str
    overwrites: bool
    success_file: bool
    made_folder: bool
    store: Store = LOCAL

    @classmethod
    def begin(cls, folder: Path, *, overwrites: bool, success_file: bool, store: Store = LOCAL) -> "Job":
        """Makes the folders, and puts in order what writes that died have left half done.

        Raises:
            ValueError: there is something in the folder that must not be overwritten.
            OSError: it is no folder, or cannot be written to.
        """
        made_folder = not store.exists(folder)
        if not made_folder and not store.is_folder(folder):
            raise NotADirectoryError(
                f"{_shown(folder, store)}: expected a folder to write files into, or nothing; this is a file"
            )
        for staging in left_over(folder / _STAGING, kind=_KIND, store=store):
            if store.is_put_away(staging):
                store.remove_tree(staging)  # its write had ended, and died removing it
            else:
                _settle(folder, staging, store)
        if overwrites and not made_folder:
            Existing.of(folder, extensions(), store).refuse_others(folder, store)
        if made_folder:
            store.make_folder(folder)
        job = cls(folder, str(uuid.uuid4()), overwrites, success_file, made_folder, store)
        store.make_staging(job.staging)
        return job

    @property
    def staging(self) -> Path:
        """The folder in which tasks put files aside."""
        return self.folder / _STAGING / self.id

    def commit(self, files: Sequence[PartFile]) -> None:
        """Makes these files visible, and removes those that they replace and all that was put aside.

        Raises:
            OSError: that failed. The message says what is visible.
        """
        # An empty file is for a frame without rows.
        filled = [file for file in files if file.records] or files[:1]
        place = [move for file in filled for move in file.moves]
        store = self.store
        with contextlib.ExitStack() as held:
            with _not_begun(self.folder, store):
                is_ours = held.enter_context(store.lock(self.staging / _LOCK))
                if not is_ours:
                    raise BlockingIOError(
                        f"{_shown(self.staging, store)}: expected to be alone in committing this write"
                    )
                remove = Existing.of(self.folder, extensions(), store).segments if self.overwrites else []
            Manifest(self.id, place, remove=remove).carry_out(self.folder, self.staging, kind=_KIND, store=store)
            try:
                if self.overwrites:
                    store.remove(self.folder / _SUCCESS)  # it was about what is no more
                if self.success_file:
                    store.write_durably(self.folder, self.folder / _SUCCESS, b"")
                store.put_away(self.staging, MANIFEST)
            except OSError as error:
                raise OSError(
                    error.errno,
                    f"{_shown(self.folder, store)}: clearing up after the write failed: {error}. All of the write is "
                    "visible: do not repeat it",
                ) from error

    def abort(self) -> None:
        """Removes all that was put aside.

        Raises:
            OSError: a commit had begun, and what it left cannot be put in order.
        """
        _settle(self.folder, self.staging, self.store)
        if self.store.is_folder(self.staging):
            self.store.put_away(self.staging, MANIFEST)
        if self.made_folder:
            self.store.remove_empty(self.folder)


def _settle(folder: Path, staging: Path, store: Store) -> None:
    """Puts in order what a commit has left, if it died. A job that has not come to its commit is left alone."""
    manifest = Manifest.read(staging, kind=_KIND, store=store)
    if manifest is None:
        return
    with contextlib.suppress(FileNotFoundError), store.lock(staging / _LOCK) as is_ours:  # gone: it has ended since
        if is_ours and Manifest.read(staging, kind=_KIND, store=store) is not None:
            manifest.settle(folder, staging, kind=_KIND, store=store)
            store.put_away(staging, MANIFEST)


@contextlib.contextmanager
def _not_begun(folder: Path, store: Store) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise OSError(
            error.errno,
            f"{_shown(folder, store)}: the commit could not begin: {error}. Nothing of it is visible: write again",
        ) from error


def _shown(path: Path, store: Store) -> str:
    return printable_path(store.name(path))


@dataclass
class Existing:
    """The names in a folder that are not hidden: those that a write replaces, and what else there is.

    Attributes:
        segments: files that are segments, an index before the log that it belongs to.
        others: everything else, folders included.
    """

    segments: list[str] = field(default_factory=list[str])
    others: list[str] = field(default_factory=list[str])

    @classmethod
    def of(cls, folder: Path, extensions: Set[str], store: Store = LOCAL) -> "Existing":
        """Looks into a folder. `extensions` are those of segments; other files are looked at themselves.

        Raises:
            OSError: it cannot be listed.
        """
        existing = cls()
        found = {name: is_file for name, is_file in store.names_in(folder).items() if not is_hidden(name)}
        for name, is_file in sorted(found.items(), key=lambda item: (owner_of(item[0]) is None, item[0])):
            belongs = owner_of(name) in found
            if is_file and (belongs or name.rpartition(".")[2] in extensions or _is_segment(folder / name, store)):
                existing.segments.append(name)
            else:
                existing.others.append(name)
        return existing

    def refuse_others(self, folder: Path, store: Store = LOCAL) -> None:
        """Refuses to overwrite what was written by somebody else.

        Raises:
            ValueError: there is something.
        """
        if self.others:
            more = f" and {len(self.others) - 1} more" if len(self.others) > 1 else ""
            raise ValueError(
                f"{_shown(folder, store)}: expected nothing but segments in a folder that is to be overwritten, there "
                f"is {printable_path(self.others[0])}{more}. Nothing was changed: move that away, or write into a new "
                "folder"
            )


def _is_segment(path: Path, store: Store) -> bool:
    try:
        return seglake.detect(store.source(path), key=_ANY_KEY).confidence == "certain"
    except OSError:
        return False
