"""Folders on the command line: the files in them, gone through side by side."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from seglake._in_order import SMALL_BYTES, in_order
from seglake._values import is_uri

from .failure import Status, Trouble, is_about_one_file, say, tell
from .inputs import STANDARD_INPUT, Input, opened
from .options import Command
from .render import count, printable
from .terminal import Advance, file_progress

_Found = TypeVar("_Found")

# Each has a file's window in memory, so a machine with very many cores is not to have one for each.
MOST_THREADS = 8


class _NotWantedError(Exception):
    """Ends the work on a file that nobody waits for any more."""


class Named(NamedTuple):
    """The files that the command line names.

    Attributes:
        files: their names, those of folders behind the folder's.
        in_folders: whether one of the names is a folder.
        small: whether all are files in folders on this machine, and small on average.
        empty: how many folders there is nothing to read in, or that cannot be listed, which has been said.
    """

    files: Sequence[str]
    in_folders: bool
    small: bool
    empty: int

    @property
    def status(self) -> int:
        """The exit status that the names alone deserve."""
        return Status.TROUBLE if self.empty else Status.SOUND


def glob(command: Command) -> Command:
    """`--glob`: which files of folders."""
    return click.option(
        "--glob",
        "globs",
        metavar="PATTERN",
        multiple=True,
        help="Of folders, only files whose name matches, such as '*.active'; can be given again.",
    )(command)


def files_named(names: Sequence[str], globs: Sequence[str]) -> Named:
    """The files that are named, and those in folders that are, by the rules of `seglake.scan`.

    What is left out of a folder though it is no hidden file is said, and so is a folder in which nothing is to be read.
    """
    files: list[str] = []
    in_folders = False
    all_in_folders = True
    nbytes = empty = 0
    for name in names:
        if not _is_folder(name):
            files.append(name)
            all_in_folders = False
            continue
        in_folders = True
        all_in_folders = all_in_folders and not is_uri(name)
        try:
            found, not_listed = _within(name, globs)
        except (Trouble, OSError) as error:
            tell(error, label=name)
            empty += 1
        else:
            empty += not_listed
            files += [path for path, _ in found]
            nbytes += sum(size for _, size in found)
    return Named(files, in_folders, all_in_folders and nbytes < SMALL_BYTES * len(files), empty)


def _is_folder(name: str) -> bool:
    if name == STANDARD_INPUT:
        return False
    if not is_uri(name):
        return Path(name).is_dir()
    from seglake._files import Stores

    try:
        store, path = Stores().connect(name)
        entry = store.find(path, name)
    except (ImportError, ValueError, OSError):
        return False  # opening it says what is wrong
    return entry is not None and not entry.is_file


def _within(folder: str, globs: Sequence[str]) -> tuple[list[tuple[str, int]], int]:
    """The files in a folder, with their sizes in bytes, and how many folders in it cannot be listed."""
    from seglake._files import FileFilter, Stores, find_files

    listing = find_files([folder], FileFilter(recursive=True, name_pattern=globs or None, goes_on=True), Stores())
    for path, reason in listing.skipped:
        say(f"{printable(path)}: passed over: {reason}")
    for error in listing.not_listed:
        tell(error)
    if not listing.files and not listing.not_listed:
        left = f": {count(listing.left_out, 'file')} there do not match --glob" if listing.left_out else ""
        raise Trouble(f"{printable(folder)}: no files to read in this folder{left}")
    if is_uri(folder):
        return [(file.path, file.size) for file in listing.files], 0
    # As they were named, not as absolute paths.
    root = os.fspath(Path(folder).absolute())
    shown = folder.rstrip(os.sep) or os.sep
    return [(shown + file.path[len(root) :], file.size) for file in listing.files], len(listing.not_listed)


def side_by_side(
    named: Named, action: Callable[[Input, Advance], _Found], *, spool_limit: int, threads: int | None = None
) -> Generator[tuple[str, _Found | Exception]]:
    """Yields each file's name with what `action` makes of it, or with the error of one that cannot be read, in order.

    Args:
        named: files, pipes, or `-`.
        action: what to do with a file, in any thread. It is to call its second argument as a progress bar's now and
            then, which raises where the results are not wanted any more: of a large file nobody waits for the end.
        spool_limit: as for `opened`.
        threads: how many; None is one for each core.
    """
    is_over = threading.Event()

    def go_on(done: int, total: int | None = None) -> None:
        if is_over.is_set():
            raise _NotWantedError

    def results(name: str) -> list[Any]:
        try:
            with opened(name, spool_limit=spool_limit) as file:
                return [action(file, go_on)]
        except Exception as error:
            if not is_about_one_file(error):
                raise
            return [error]

    cores = threads or min(os.cpu_count() or 1, MOST_THREADS)
    threads = 1 if named.small else max(1, min(cores, len(named.files)))
    with file_progress(len(named.files)) as advance, closing(in_order(named.files, results, threads)) as found:
        try:
            for name, result in found:
                yield name, result
                if advance is not None:
                    advance()
        finally:
            is_over.set()
