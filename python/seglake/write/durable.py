"""Hands files and folders to the disk: by the calls with which the library's own writers do it."""

import uuid
from collections.abc import Iterable
from pathlib import Path

from seglake._native import rename, rename_new, sync_file, sync_folder

# Callers use them as `durable.rename`, so that tests can follow them in one place.
__all__ = ["folders_between", "make_folder", "rename", "rename_new", "sync_file", "sync_folder", "written"]


def make_folder(folder: Path) -> None:
    """Makes a folder and its missing parents, and syncs their names to the disk."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for each in reversed(missing):
        sync_folder(each.parent)


def folders_between(root: Path, files: Iterable[Path]) -> list[Path]:
    """Returns the folders of files and those on the way from `root` to them, in the order in which they are synced.

    In the other order a loss of power could keep a file's new place and lose the new folder that it is in.
    """
    own = {file.parent for file in files}
    return sorted({folder for each in own for folder in (each, *each.parents) if folder.is_relative_to(root)})


def written(path: Path, content: bytes) -> Path:
    """Writes a new file beside `path`, to be renamed to that, and syncs its content; returns its name."""
    # Another process may write the file at the same time.
    new = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        new.write_bytes(content)
        sync_file(new)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
    return new
