"""What publishing asks of the storage that files appear in, and the local disk as such a storage."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import uuid
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from seglake._text import printable_path
from seglake.write import durable

if TYPE_CHECKING:
    from seglake.stores import RemoteFile

__all__ = ["LOCAL", "LocalStore", "LockTakenError", "Store", "json_object"]

_TRIES: Final = 100


class LockTakenError(OSError):
    """A lock was taken by another process, which held this one for dead: this one may change nothing any more."""


class Store(Protocol):
    """A storage in which files are staged and then get their final names.

    `place` and `write_durably` are each one step: after a loss of power all of it is there, or nothing. A storage
    without renames may copy in `place`, if a copy that is not complete shows to nobody.
    """

    def name(self, path: Path) -> str:
        """Returns what messages call a file or folder: its path, or its URI."""
        ...

    def exists(self, path: Path) -> bool:
        """Tells whether a file or folder is there."""
        ...

    def is_folder(self, path: Path) -> bool:
        """Tells whether a folder is there."""
        ...

    def is_link(self, path: Path) -> bool:
        """Tells whether something leads elsewhere, where nothing may be removed."""
        ...

    def children(self, folder: Path) -> list[Path]:
        """Returns what is in a folder, sorted; nothing where there is no such folder."""
        ...

    def names_in(self, folder: Path) -> dict[str, bool]:
        """Returns the names in a folder, and whether each is that of a file."""
        ...

    def sizes_in(self, folder: Path) -> dict[str, int]:
        """Returns the names of the files in a folder, and their sizes in bytes; nothing where there is none."""
        ...

    def source(self, path: Path) -> str | RemoteFile:
        """Returns what `seglake.detect` takes for a file."""
        ...

    def make_folder(self, folder: Path) -> None:
        """Makes a folder and its missing parents, durably."""
        ...

    def make_staging(self, folder: Path) -> None:
        """Makes a publisher's staging folder, which is one from then on until it is put away."""
        ...

    def put_away(self, staging: Path, manifest: str) -> None:
        """Removes a staging folder and all in it. From the first step on its manifest is not found any more."""
        ...

    def is_put_away(self, staging: Path) -> bool:
        """Tells whether what is in a staging folder is left of putting it away: nobody needs it."""
        ...

    def scratch(self, staging: Path) -> contextlib.AbstractContextManager[Path]:
        """A folder of this machine, in which a file is written that is staged when it is complete."""
        ...

    def stage(self, written: Path, staged: Path) -> None:
        """Stages a complete file of the scratch folder under the same name, readable for whoever reads its folder."""
        ...

    def sync_names(self, root: Path, files: Iterable[Path]) -> None:
        """Has the names of files below `root`, and of the folders on the way to them, be durable."""
        ...

    def place(self, staged: Path, final: Path) -> None:
        """Gives a staged file its final name; its folder is made where it is missing."""
        ...

    def move_back(self, final: Path, staged: Path) -> None:
        """Takes the final name of a file away again, if it has it, and stages the file as before."""
        ...

    def write_durably(self, root: Path, path: Path, content: bytes, *, is_new: bool = False) -> None:
        """Writes a small file in one step. On return it and the names of the folders from `root` on are durable.

        Args:
            root: the folder from which on names are made durable.
            path: the file.
            content: what it has.
            is_new: refuse to replace another, where the storage does that in one step with writing.

        Raises:
            FileExistsError: there is another one, and `is_new` is set.
            OSError: that failed.
        """
        ...

    def read_json(self, path: Path) -> dict[str, Any] | None:
        """Reads a file's JSON object; None where there is no such file.

        Raises:
            ValueError: something else is in the file. The message says what, as half of a sentence about the file.
            OSError: the file could not be read.
        """
        ...

    def remove(self, path: Path) -> None:
        """Removes a file, if it is there."""
        ...

    def remove_empty(self, folder: Path) -> None:
        """Removes a folder if nothing is in it."""
        ...

    def remove_tree(self, folder: Path) -> None:
        """Removes a folder as far as that goes: a task of a publisher that died may still be writing into it."""
        ...

    def lock(self, path: Path) -> contextlib.AbstractContextManager[bool]:
        """Holds a lock while the block runs, and tells whether it could be had: it may be somebody else's.

        The lock is free when the process that holds it has ended, however it ended. So none is ever left over.

        Args:
            path: a file that the lock is on. It stays: removing it would let two processes hold locks on two files of
                the same name.

        Raises:
            OSError: the file cannot be opened, or is a link: what it leads to would be written to.
        """
        ...

    def confirm(self) -> None:
        """Makes sure that the locks that this object holds are still its own.

        Raises:
            LockTakenError: one is not, where locks are not those of the operating system.
        """
        ...


class LocalStore(Store):
    """The mounted file systems of this machine."""

    def __reduce__(self) -> str:
        return "LOCAL"  # the one that there is, also in other processes

    def name(self, path: Path) -> str:
        """Returns the path as it is."""
        return str(path)

    def exists(self, path: Path) -> bool:
        """Tells whether a file or folder is there."""
        return path.exists()

    def is_folder(self, path: Path) -> bool:
        """Tells whether a folder is there."""
        return path.is_dir()

    def is_link(self, path: Path) -> bool:
        """Tells whether something is a symbolic link."""
        return path.is_symlink()

    def children(self, folder: Path) -> list[Path]:
        """Returns what is in a folder, sorted; nothing where there is no such folder."""
        try:
            return sorted(folder.iterdir())
        except FileNotFoundError:
            return []

    def names_in(self, folder: Path) -> dict[str, bool]:
        """Returns the names in a folder, and whether each is that of a file."""
        with os.scandir(folder) as entries:
            return {entry.name: entry.is_file() for entry in entries}

    def sizes_in(self, folder: Path) -> dict[str, int]:
        """Returns the names of the files in a folder, and their sizes in bytes; nothing where there is none."""
        sizes: dict[str, int] = {}
        with contextlib.suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):  # it was removed since
                    if entry.is_file():
                        sizes[entry.name] = entry.stat().st_size
        return sizes

    def source(self, path: Path) -> str:
        """Returns the path."""
        return str(path)

    def make_folder(self, folder: Path) -> None:
        """Makes a folder and its missing parents, and syncs their names to the disk."""
        missing = [each for each in (folder, *folder.parents) if not each.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        for each in missing:
            durable.sync_folder(each.parent)

    def make_staging(self, folder: Path) -> None:
        """Makes a publisher's staging folder."""
        for _ in range(_TRIES):
            with contextlib.suppress(FileNotFoundError):  # another one, at its end, has just removed an empty folder
                folder.mkdir(parents=True)
                return
        raise FileNotFoundError(f"{printable_path(folder)}: this folder cannot be made: those above it disappear")

    def put_away(self, staging: Path, manifest: str) -> None:
        """Gives a staging folder another name, in one step, and removes it."""
        # Under another name no task that is still running, its result not wanted any more, finds its way into it.
        aside = staging.with_name(f".{staging.name}")
        durable.rename(staging, aside)
        # Sync the new name before anything below it is removed. After a loss of power, a manifest under the old name
        # would be carried out once more, on whatever files have the names by then.
        self.sync_names(staging.parent, [aside])
        self.remove_tree(aside)
        self.remove_empty(staging.parent)

    def is_put_away(self, staging: Path) -> bool:
        """Tells whether a staging folder has the other name."""
        return staging.name.startswith(".")

    @contextlib.contextmanager
    def scratch(self, staging: Path) -> Generator[Path]:
        """The staging folder itself."""
        yield staging

    def stage(self, written: Path, staged: Path) -> None:
        """Lets those read and write a file who may do so with its folder. Some writers begin theirs as their own."""
        staged.chmod(staged.parent.stat().st_mode & 0o666)

    def sync_file(self, path: Path) -> None:
        """Syncs the content of a file to the disk."""
        durable.sync_file(path)

    def sync_names(self, root: Path, files: Iterable[Path]) -> None:
        """Syncs the names of files below `root`, and of the folders on the way to them, to the disk.

        Folders are synced from the top down. In the other order a loss of power could keep a file's new place and lose
        the new folder that it is in, and the file with it.
        """
        own = {file.parent for file in files}
        folders = {folder for each in own for folder in (each, *each.parents) if folder.is_relative_to(root)}
        for folder in sorted(folders):
            # Another write may remove an empty folder at any time: then there are no names in it.
            with contextlib.suppress(FileNotFoundError):
                durable.sync_folder(folder)

    def place(self, staged: Path, final: Path) -> None:
        """Gives a staged file its final name; its folder is made where it is missing."""
        final.parent.mkdir(parents=True, exist_ok=True)
        durable.rename(staged, final)

    def move_back(self, final: Path, staged: Path) -> None:
        """Gives a file the name again that it was staged under, if it has the final one."""
        with contextlib.suppress(FileNotFoundError):
            durable.rename(final, staged)

    def write_durably(self, root: Path, path: Path, content: bytes, *, is_new: bool = False) -> None:
        """Writes a small file in one step. On return it and the names of the folders from `root` on are on the disk."""
        # Another may write the file at the same time.
        new = path.with_name(f"{path.name}.{uuid.uuid4().hex}.new")
        try:
            new.write_bytes(content)
            durable.sync_file(new)
            durable.rename(new, path)
        except BaseException:
            new.unlink(missing_ok=True)
            raise
        self.sync_names(root, [path])

    def read_json(self, path: Path) -> dict[str, Any] | None:
        """Reads a file's JSON object; None where there is no such file.

        Raises:
            ValueError: something else is in the file. The message says what, as half of a sentence about the file.
            OSError: the file could not be read.
        """
        try:
            return json_object(path.read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            return None

    def remove(self, path: Path) -> None:
        """Removes a file, if it is there."""
        path.unlink(missing_ok=True)

    def remove_empty(self, folder: Path) -> None:
        """Removes a folder if nothing is in it."""
        with contextlib.suppress(OSError):
            folder.rmdir()

    def remove_tree(self, folder: Path) -> None:
        """Removes a folder as far as that goes: a task of a publisher that died may still be writing into it."""
        shutil.rmtree(folder, ignore_errors=True)

    @contextlib.contextmanager
    def lock(self, path: Path) -> Generator[bool]:
        """Holds the operating system's lock on a file while the block runs, unless somebody else does."""
        import fcntl  # not on Windows, where this module is imported too

        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        try:
            is_ours = True
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                is_ours = False
            yield is_ours
        finally:
            os.close(descriptor)

    def confirm(self) -> None:
        """Does nothing: nobody takes a lock of the operating system away."""


def json_object(content: bytes) -> dict[str, Any]:
    """Reads a file's JSON object.

    Raises:
        ValueError: something else is in the file. The message says what, as half of a sentence about the file.
    """
    try:
        read: Any = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is no JSON: {error}") from None
    # `null` as well: it is not as if nothing were there.
    if not isinstance(read, dict):
        raise ValueError("it is no JSON object")
    return cast("dict[str, Any]", read)


LOCAL = LocalStore()
"""The mounted file systems of this machine."""
