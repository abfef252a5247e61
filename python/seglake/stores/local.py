"""Finds files on mounted file systems."""

import errno
import fnmatch
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from seglake._errors import SeglakeError
from seglake._native import is_beside_segment, is_log_name, list_log
from seglake._text import printable_path

from .listing import IN_A_LOG, FileFilter, FileListing, FoundLog, SegmentFile
from .patterns import alternatives, is_hidden, is_pattern, owner_of, passes_hidden

if TYPE_CHECKING:
    from seglake._native import _Key  # pyright: ignore[reportPrivateUsage]

__all__ = ["find_local", "log_names"]


def find_local(path: str, chosen: FileFilter, listing: FileListing, key: "_Key | None" = None) -> Iterator[SegmentFile]:
    """Yields the files that a path or pattern of a mounted file system names; what is passed over goes into `listing`.

    Args:
        path: the path as the user wrote it, without a scheme.
        chosen: which files of folders are wanted.
        listing: takes what is passed over.
        key: the key of logs.
    """
    for root, literal in _roots(path, chosen, listing):
        yield from _below(root, literal, chosen, listing, key)


def log_names(folder: Path) -> list[str]:
    """Returns what makes a folder that of a log: the names of its mark and its segments."""
    return list(filter(is_log_name, os.listdir(folder)))  # noqa: PTH208 - names are wanted


def _roots(text: str, chosen: FileFilter, listing: FileListing) -> Iterator[tuple[Path, bool]]:
    """Yields what a path or pattern names, and whether it is named literally."""
    path = Path(text).absolute()
    if os.path.lexists(path):
        yield path, True
        return
    if not is_pattern(text):
        # Absolute: the working folder may be that of a server.
        raise FileNotFoundError(f"{printable_path(path)}: there is no such file or folder")
    found = False
    for pattern in sorted(set(alternatives(text))):
        for match in sorted(_matches(pattern, chosen, listing)):
            found = True
            if not passes_hidden(Path(pattern).parts, match.parts):
                yield match.absolute(), False
    if not found:
        raise FileNotFoundError(f"{printable_path(path)}: no file or folder matches this pattern")


def _matches(pattern: str, chosen: FileFilter, listing: FileListing) -> list[Path]:
    """Returns what a pattern without braces stands for.

    Unlike `glob`, it does not take a folder that cannot be listed for an empty one.
    """
    found = [Path()]
    for part in Path(pattern).parts:
        found = [match for folder in found for match in _step(folder, part, chosen, listing)]
    return [match for match in found if match.is_dir()] if pattern.endswith("/") else found


def _step(folder: Path, part: str, chosen: FileFilter, listing: FileListing) -> list[Path]:
    """Returns what one part of a pattern stands for in a folder."""
    try:
        if not is_pattern(part):
            (folder / part).lstat()
            return [folder / part]
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries]
    except (OSError, ValueError) as error:
        if isinstance(error, ValueError) or _leads_nowhere(error) or isinstance(error, NotADirectoryError):
            return []
        if not chosen.goes_on:
            raise
        listing.not_listed.append(error)
        return []
    # As in a shell, no wildcard stands for a name's first dot.
    return [folder / name for name in fnmatch.filter(names, part) if part.startswith(".") or not name.startswith(".")]


def _below(
    path: Path, literal: bool, chosen: FileFilter, listing: FileListing, key: "_Key | None"
) -> Iterator[SegmentFile]:
    """Yields the files that one root stands for.

    A link is followed where it is named literally, or as a folder on the way to what a pattern matches.
    """
    try:
        status = path.stat()
    except OSError as error:
        if not _leads_nowhere(error):
            raise
        if literal:
            raise FileNotFoundError(f"{printable_path(path)}: this link leads nowhere") from None
        listing.skipped.append((str(path), "a link that leads nowhere"))
        return
    if stat.S_ISDIR(status.st_mode):
        if not literal and path.is_symlink():
            listing.skipped.append((str(path), "a linked folder"))
        else:
            listing.folders.append(path.resolve())
            yield from _in_folder(path, chosen, listing, key)
    elif stat.S_ISREG(status.st_mode):
        if not literal and _is_index(str(path)):
            return
        if chosen.accepts(path.name, status.st_mtime):
            yield _listed(str(path), str(path.resolve()), status)
        else:
            listing.left_out += 1
    elif literal:
        raise ValueError(
            f"{printable_path(path)}: expected a regular file or a folder, this is {_kind(status.st_mode)}"
        )
    else:
        listing.skipped.append((str(path), _kind(status.st_mode)))


def _in_folder(top: Path, chosen: FileFilter, listing: FileListing, key: "_Key | None") -> Iterator[SegmentFile]:
    pending = [top]
    while pending:
        folder = pending.pop()
        real_folder = os.path.join(folder.resolve(), "")  # noqa: PTH118 - with a separator at its end
        try:
            # scandir, because it knows most entries' kinds without a call each.
            listed = os.scandir(folder)
        except OSError as error:
            if folder != top and isinstance(error, FileNotFoundError | NotADirectoryError):
                continue  # it has just been deleted
            if not chosen.goes_on:
                raise
            listing.not_listed.append(error)
            continue
        is_log = False
        below: list[Path] = []
        beside: list[SegmentFile] = []
        with listed as entries:
            for entry in entries:
                if is_log_name(entry.name):
                    is_log = True
                    continue
                if is_hidden(entry.name):
                    continue
                try:
                    status = entry.stat()
                except OSError as error:
                    if _leads_nowhere(error):
                        if entry.is_symlink():
                            listing.skipped.append((entry.path, "a link that leads nowhere"))
                        continue  # otherwise it has just been deleted
                    if not chosen.goes_on:
                        raise
                    listing.not_listed.append(error)
                    continue
                if stat.S_ISDIR(status.st_mode):
                    if entry.is_symlink():
                        listing.skipped.append((entry.path, "a linked folder"))
                    else:
                        below.append(Path(entry.path))
                elif not stat.S_ISREG(status.st_mode):
                    listing.skipped.append((entry.path, _kind(status.st_mode)))
                elif _is_index(entry.path):
                    continue  # it belongs to the log, and holds no records of its own
                elif chosen.accepts(entry.name, status.st_mtime):
                    # Joined as texts: paths as objects take as long as all else here.
                    real = str(Path(entry.path).resolve()) if entry.is_symlink() else f"{real_folder}{entry.name}"
                    file = _listed(entry.path, real, status)
                    if is_beside_segment(entry.name):
                        beside.append(file)  # retention may have removed the segment a moment ago
                        continue
                    yield file
                else:
                    listing.left_out += 1
        if is_log:
            listing.skipped += [(str(path), IN_A_LOG) for path in below]
            try:
                yield from _of_log(folder, real_folder, chosen, listing, key)
            except (SeglakeError, OSError) as error:
                if not chosen.goes_on:
                    raise
                listing.not_listed.append(error)
            continue
        yield from beside
        if chosen.recursive:
            pending += below
        else:
            listing.folders_not_entered += len(below)


def _of_log(
    folder: Path, real_folder: str, chosen: FileFilter, listing: FileListing, key: "_Key | None"
) -> Iterator[SegmentFile]:
    """Yields the segments of a log. What they are now, and how far they are on the disk, is for the library to say."""
    segments, synced = list_log(folder, key=key)
    unread = None
    for segment in segments:
        name = os.path.basename(segment.path)  # noqa: PTH119 - no path is made
        # What the log's own listing has not is looked up only if it is asked for.
        if chosen.accepts(name, _modified(segment.path) if chosen.is_by_time else 0.0):
            path, (changed_ns, inode) = f"{real_folder}{name}", _facts(segment.path)
            yield SegmentFile(segment.path, path, segment.nbytes, None, segment, None, changed_ns, inode)
            unread = segment.unread
        else:
            listing.left_out += 1
    listing.logs.append(FoundLog(str(folder), len(segments), synced, unread))


def _listed(path: str, real_path: str, status: os.stat_result) -> SegmentFile:
    times = status.st_mtime_ns, status.st_ctime_ns
    return SegmentFile(path, real_path, status.st_size, None, None, *times, status.st_ino)


def _facts(path: str) -> tuple[int | None, int | None]:
    """Returns when a file was changed, in nanoseconds since 1970, and its number; None if it is gone."""
    try:
        status = os.stat(path)  # noqa: PTH116 - no path is made
    except OSError:
        return None, None  # just sealed, or removed
    return status.st_ctime_ns, status.st_ino


def _modified(path: str) -> float:
    try:
        return os.stat(path).st_mtime  # noqa: PTH116 - no path is made
    except FileNotFoundError:
        return time.time()  # just sealed, or removed: then opening it says so


def _leads_nowhere(error: OSError) -> bool:
    """Tells whether there is nothing at a path: it is gone, or a link to that, or a link that leads to itself."""
    return isinstance(error, FileNotFoundError) or error.errno == errno.ELOOP


def _is_index(path: str) -> bool:
    """Tells whether a file is the index of a log that stands beside it."""
    log = owner_of(path)
    return log is not None and os.path.isfile(log)  # noqa: PTH113 - no path is made


def _kind(mode: int) -> str:
    if stat.S_ISFIFO(mode):
        return "a named pipe"
    if stat.S_ISSOCK(mode):
        return "a socket"
    return "a device"
