"""Folders on the command line: the files in them, gone through side by side."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from seglake import SeglakeError
from seglake._threads import thread_count
from seglake._values import is_uri
from seglake.read.in_order import SMALL_BYTES, in_order
from seglake.stores.patterns import without_kept

from .advice import in_full, of_unread
from .failure import Status, Trouble, describe, is_about_one_file, say, tell
from .inputs import STANDARD_INPUT, Input, opened
from .options import Option
from .render import count, printable
from .terminal import Advance, file_progress

if TYPE_CHECKING:
    from seglake._native import ListedSegment
    from seglake._types import LogUnread
    from seglake.stores import FileListing, FoundLog

_Found = TypeVar("_Found")


class _NotWantedError(Exception):
    """Ends the work on a file that nobody waits for any more."""


class Named(NamedTuple):
    """The files that the command line names.

    Attributes:
        files: their names, those of folders after the folder's.
        in_folders: whether one of the names is a folder.
        small: whether all are files in folders on this machine, and small on average.
        failed: the folders that cannot be listed or have nothing to read, each with its error, which has been said.
        segments: of the names that are segments of logs, these as they were listed: what is to be read.
        logs: the logs among the folders.
    """

    files: Sequence[str]
    in_folders: bool
    small: bool
    failed: Sequence[tuple[str, Exception]]
    segments: Mapping[str, ListedSegment]
    logs: Sequence[FoundLog]

    @property
    def status(self) -> int:
        """The exit status that the names alone deserve."""
        if self.failed:
            return Status.TROUBLE
        return Status.DAMAGED if any(log.unread is not None for log in self.logs) else Status.SOUND


glob: Option = click.option(
    "--glob",
    "globs",
    metavar="PATTERN",
    multiple=True,
    help="Of folders, only files whose name matches, such as '*.active'; can be given again.",
)
"""Which files of folders."""


def files_named(names: Sequence[str], globs: Sequence[str], key: Sequence[str] | None) -> Named:
    """The files that are named, and those in folders that are, by the rules of `seglake.scan`.

    What is left out of a folder though it is no hidden file is said, and so is a folder in which nothing is to be read.
    A folder that is a log is its segments at this moment, under the key given.
    """
    files: list[str] = []
    segments: dict[str, ListedSegment] = {}
    logs: list[FoundLog] = []
    in_folders = False
    all_in_folders = True
    failed: list[tuple[str, Exception]] = []
    nbytes = 0
    for name in without_kept(names):
        if not _is_folder(name):
            files.append(name)
            all_in_folders = False
            continue
        in_folders = True
        all_in_folders = all_in_folders and not is_uri(name)
        try:
            listing = _within(name, globs, key)
        except (Trouble, OSError, ImportError, ValueError, SeglakeError) as error:
            tell(error, label=name)
            failed.append((name, error))
            continue
        failed += [(name, error) for error in listing.not_listed]
        shown = _as_named(name)
        logs += [log._replace(path=shown(log.path)) for log in listing.logs]
        tell_unread([unread._replace(path=shown(unread.path)) for unread in listing.unread])
        for file in listing.files:
            files.append(shown(file.path))
            nbytes += file.size
            if file.segment is not None:
                segments[files[-1]] = file.segment
    small = all_in_folders and nbytes < SMALL_BYTES * len(files)
    return Named(files, in_folders, small, failed, segments, logs)


def segments_named(names: Sequence[str], key: str | None) -> dict[str, ListedSegment]:
    """The names that are segments of a log, as they are in it at this moment. One alone in a folder is a plain file.

    Of a log that cannot be listed, that is said, and its files are taken by themselves.
    """
    from seglake._native import is_log_name, list_log
    from seglake.stores import log_names

    found: dict[str, ListedSegment] = {}
    logs: dict[Path, dict[str, ListedSegment]] = {}
    for name in names:
        path = Path(name)
        if is_uri(name) or not is_log_name(path.name) or not path.exists():
            continue
        if path.parent not in logs:
            logs[path.parent] = {}
            try:
                segments = list_log(path.parent, key=key)[0] if len(log_names(path.parent)) > 1 else ()
            except (SeglakeError, OSError) as error:
                say(f"{describe(error)}\n  so        what is named of this log is taken by itself")
            else:
                logs[path.parent] = {Path(segment.path).name: segment for segment in segments}
        if path.name in logs[path.parent]:
            found[name] = logs[path.parent][path.name]
    return found


def _is_folder(name: str) -> bool:
    if name == STANDARD_INPUT:
        return False
    if not is_uri(name):
        return Path(name).is_dir()
    from seglake.stores import Stores

    try:
        store, path = Stores().connect(name)
        entry = store.find(path, name)
    except (ImportError, ValueError, OSError):
        return False  # opening it says what is wrong
    return entry is not None and not entry.is_file


def _within(folder: str, globs: Sequence[str], key: Sequence[str] | None) -> FileListing:
    """What is in a folder. What cannot be listed in it has been said.

    Raises:
        Trouble: there are no files to read.
    """
    from seglake.stores import FileFilter, Stores, find_files

    chosen = FileFilter(recursive=True, name_pattern=globs or None, goes_on=True)
    listing = find_files([folder], chosen, Stores(), key=key)
    for path, reason in listing.skipped:
        say(f"{printable(path)}: passed over: {reason}")
    for error in listing.not_listed:
        tell(error, label=folder)
    is_empty_log = listing.logs and not listing.left_out
    if not listing.files and not listing.not_listed and not is_empty_log:
        left = f": {count(listing.left_out, 'file')} there do not match --glob" if listing.left_out else ""
        raise Trouble(f"{printable(folder)}: no files to read in this folder{left}")
    return listing


def _as_named(folder: str) -> Callable[[str], str]:
    """What makes a path in a folder what it is below the folder as it was named, and not an absolute path."""
    if is_uri(folder):
        return lambda path: path
    root = os.fspath(Path(folder).absolute())
    shown = folder.rstrip(os.sep) or os.sep
    return lambda path: shown + path[len(root) :]


def tell_unread(found: Iterable[LogUnread | None]) -> int:
    """Say what is left out of logs, and return the exit status that it deserves."""
    status: int = Status.SOUND
    for unread in filter(None, found):
        said = of_unread(unread)
        say(in_full(said))
        status = Status.DAMAGED
    return status


def log_line(log: FoundLog) -> str:
    """A line on a log: how far it was known to be on the disk."""
    segments = count(log.segments, "segment")
    if not log.segments:
        return f"{printable(log.path)}: a log without segments"
    if log.synced is None:
        return f"{printable(log.path)}: a log of {segments}, of which no mark says how far it is synced"
    sequence, offset, last = log.synced
    return f"{printable(log.path)}: a log of {segments}, synced up to offset {offset:,} of segment {sequence}, {last}"


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
            with opened(name, spool_limit=spool_limit, segments=named.segments) as file:
                return [action(file, go_on)]
        except Exception as error:
            if not is_about_one_file(error):
                raise
            return [error]

    threads = 1 if named.small else max(1, min(thread_count(threads), len(named.files)))
    with file_progress(len(named.files)) as advance, closing(in_order(named.files, results, threads)) as found:
        try:
            for name, result in found:
                yield name, result
                if advance is not None:
                    advance()
        finally:
            is_over.set()
