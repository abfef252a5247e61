"""The few things that the ingest and the data source's writer ask of the file system below their destination.

All writing but that of segments themselves goes through here. Another kind of storage has to offer the same: streams,
durable renames, removal.
"""

import contextlib
import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
from pyarrow import fs

from seglake._durable import sync_file, sync_folder

__all__ = [
    "make_folder",
    "open_output",
    "place",
    "read_json",
    "remove",
    "remove_empty",
    "remove_tree",
    "share",
    "sync_file",
    "sync_folder",
    "sync_folders",
    "write_durably",
]

_LOCAL = fs.LocalFileSystem()


def open_output(path: Path) -> pa.NativeFile:
    """Opens a new file for Arrow to write to."""
    return _LOCAL.open_output_stream(str(path))


def write_durably(root: Path, path: Path, content: bytes) -> None:
    """Writes a file in one step: if the machine stops, the file is there whole or not at all.

    On return the file and the names of the folders from `root` down to it are on the disk.
    """
    new = path.with_name(f"{path.name}.new")
    new.write_bytes(content)
    sync_file(new)
    new.rename(path)
    sync_folders(root, [path])


def read_json(path: Path) -> dict[str, Any] | None:
    """Reads a file's JSON object; None where there is no such file.

    Raises:
        ValueError: something else is in the file. The message says what, as half of a sentence about the file.
        OSError: the file could not be read.
    """
    try:
        content: Any = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is no JSON: {error}") from None
    # `null` as well: it is not as if nothing were there.
    if not isinstance(content, dict):
        raise ValueError("it is no JSON object")
    return cast("dict[str, Any]", content)


def share(path: Path) -> None:
    """Lets those read and write a file who may do so with its folder. Some writers begin theirs as their own alone."""
    path.chmod(path.parent.stat().st_mode & 0o666)


def make_folder(folder: Path) -> None:
    """Makes a folder and its missing parents, and syncs their names to the disk."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for each in missing:
        sync_folder(each.parent)


def place(staged: Path, final: Path) -> None:
    """Gives a staged file its final name; its folder is made where it is missing."""
    final.parent.mkdir(parents=True, exist_ok=True)
    staged.rename(final)


def sync_folders(root: Path, files: Iterable[Path]) -> None:
    """Syncs the names of files below `root`, and of the folders on the way to them, to the disk.

    Folders are synced from the top down. In the other order a loss of power could keep a file's new place and lose the
    new folder that it is in, and the file with it.
    """
    own = {file.parent for file in files}
    folders = {folder for each in own for folder in (each, *each.parents) if folder.is_relative_to(root)}
    for folder in sorted(folders):
        # Another write may remove an empty folder at any time: then there are no names in it.
        with contextlib.suppress(FileNotFoundError):
            sync_folder(folder)


def remove(path: Path) -> None:
    """Removes a file, if it is there."""
    path.unlink(missing_ok=True)


def remove_empty(folder: Path) -> None:
    """Removes a folder if nothing is in it."""
    with contextlib.suppress(OSError):
        folder.rmdir()


def remove_tree(folder: Path) -> None:
    """Removes a folder as far as that goes: a task of a dead run may still be writing into it."""
    shutil.rmtree(folder, ignore_errors=True)
