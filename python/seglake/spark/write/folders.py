"""What a write does to mounted folders: the names of files, durably, and the lock of a commit."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Final

from seglake._text import printable_path
from seglake.write import durable

_TRIES: Final = 100


def make_staging(folder: Path) -> None:
    """Makes the staging folder of a write."""
    for _ in range(_TRIES):
        with contextlib.suppress(FileNotFoundError):  # another write, at its end, has just removed an empty folder
            folder.mkdir(parents=True)
            return
    raise FileNotFoundError(f"{printable_path(folder)}: this folder cannot be made: those above it disappear")


def put_away(staging: Path) -> None:
    """Gives a staging folder another name, in one step, and removes it."""
    # Under another name no task that is still running, its result not wanted any more, finds its way into it.
    aside = staging.with_name(f".{staging.name}")
    durable.rename(staging, aside)
    # Sync the new name before anything below it is removed. After a loss of power, a manifest under the old name
    # would be carried out once more, on whatever files have the names by then.
    sync_names(staging.parent, [aside])
    remove_tree(aside)
    remove_empty(staging.parent)


def is_put_away(staging: Path) -> bool:
    """Tells whether a staging folder has the name by which it is removed."""
    return staging.name.startswith(".")


def sync_names(root: Path, files: Iterable[Path]) -> None:
    """Syncs the names of files below `root`, and of the folders on the way to them, to the disk."""
    for folder in durable.folders_between(root, files):
        # Another write may remove an empty folder at any time: then there are no names in it.
        with contextlib.suppress(FileNotFoundError):
            durable.sync_folder(folder)


def place(file: Path, target: Path) -> None:
    """Gives a file another name."""
    durable.rename(file, target)


def write_durably(root: Path, path: Path, content: bytes) -> None:
    """Writes a small file in one step. On return it and the names of the folders from `root` on are on the disk."""
    new = durable.written(path, content)
    try:
        durable.rename(new, path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
    sync_names(root, [path])


def remove(path: Path) -> None:
    """Removes a file, if it is there."""
    path.unlink(missing_ok=True)


def remove_empty(folder: Path) -> None:
    """Removes a folder if nothing is in it."""
    with contextlib.suppress(OSError):
        folder.rmdir()


def remove_tree(folder: Path) -> None:
    """Removes a folder as far as that goes: a task of a write that died may still be writing into it."""
    shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def lock(path: Path) -> Generator[bool]:
    """Holds the operating system's lock on a file while the block runs; False if another process has it.

    The lock is free when the process that holds it has ended, however it ended. The file stays: removing it would let
    two processes hold locks on two files of the same name.

    Raises:
        OSError: the file cannot be opened, or is a link: the file that it leads to would be written to.
    """
    import fcntl  # not on Windows

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
