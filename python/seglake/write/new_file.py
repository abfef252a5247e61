"""New files that appear under their name once they are complete and on the disk."""

from __future__ import annotations

import errno
import io
import os
import secrets
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from . import durable

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["new_file"]

_LONGEST_NAME_BYTES = 200
# In the words of the library's own new files.
_EXISTS = 'cannot open for writing: there is a file: if_exists="overwrite" replaces it'
_NOT_SYNCED = (
    "the new file is complete and in its place, but a loss of power may undo that: its folder cannot be synced: "
)


@contextmanager
def new_file(path: str, *, replace: bool) -> Generator[BinaryIO]:
    """A file that appears under its name when the block ends, and not at all if it raises.

    Raises:
        FileExistsError: there is such a file, and it is not to be replaced.
        OSError: the folder is missing or cannot be written to.
    """
    final = Path(path)
    # A link that leads nowhere is in the way too.
    if not replace and os.path.lexists(final):
        raise FileExistsError(errno.EEXIST, _EXISTS, path)
    prefix = _prefix_of(final.name)
    staged: Path | None = None
    try:
        # The name is known before there is a file of it: an interruption may come as soon as there is one.
        with _about(path):
            while True:
                staged = final.parent / f".{prefix}.{secrets.token_hex(8)}.tmp"
                try:
                    descriptor = _staged(staged)
                    break
                except FileExistsError:
                    staged = None  # the name is taken
        # Closed before it gets its name, because Windows cannot rename or remove an open file.
        with io.BufferedWriter(_Named(descriptor, path)) as file:
            yield file
            file.flush()
            with _about(path):
                durable.sync_file(staged)
        with _about(path):
            _place(staged, final, replace=replace)
        with _about(path, _NOT_SYNCED):
            durable.sync_folder(final.parent)
    finally:
        if staged is not None:
            staged.unlink(missing_ok=True)


def _prefix_of(name: str) -> str:
    """Returns what the temporary name of a file begins with: the longest names have no room for more."""
    return name if len(os.fsencode(name)) <= _LONGEST_NAME_BYTES else "seglake"


def _staged(path: Path) -> int:
    """Creates a file with the permissions of other new files: those of `tempfile` are private."""
    binary: int = getattr(os, "O_BINARY", 0)  # of Windows
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | binary, 0o666)


class _Named(io.FileIO):
    """A file to write, whose errors have the name that it is to get."""

    def __init__(self, descriptor: int, path: str) -> None:
        super().__init__(descriptor, "w")
        self._path = path

    def write(self, content: Buffer, /) -> int:
        with _about(self._path):
            return super().write(content)


@contextmanager
def _about(path: str, state: str = "") -> Generator[None]:
    """Names a file in the system's errors, which name none, or the one that it has until it is complete."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, f"{state}{error.strerror or error}", path) from error


def _place(staged: Path, final: Path, *, replace: bool) -> None:
    if not replace:
        # Both fail if another process has made the file in the meantime.
        try:
            durable.rename_new(staged, final)
            return
        except FileExistsError:
            raise
        except OSError:  # a file system that can only replace
            final.open("xb").close()
    durable.rename(staged, final)
