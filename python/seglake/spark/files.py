"""Finds the files to read, and packs them into tasks."""

import fnmatch
import glob
import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple, Protocol, TypeVar

from seglake._text import printable_path

__all__ = ["FileFilter", "FileListing", "SegmentFile", "find_files", "pack", "path_text", "task_bytes"]

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:(?=/)")
_GLOB: Final = re.compile(r"[*?\[{]")
_BRACES: Final = re.compile(r"\{([^{}]*)\}")


class SegmentFile(NamedTuple):
    """A file to read: its absolute path as it was named or found, its path without links, and its size in bytes."""

    path: str
    real_path: str
    size: int


@dataclass(frozen=True)
class FileFilter:
    """Which files of a folder are read.

    Attributes:
        recursive: look into folders below the ones named.
        name_pattern: only files whose name matches, such as `*.active`.
        modified_after: only files modified after this, in seconds since 1970.
        modified_before: only files modified before this, in seconds since 1970.
    """

    recursive: bool = False
    name_pattern: str | None = None
    modified_after: float | None = None
    modified_before: float | None = None

    def accepts(self, name: str, modified: float) -> bool:
        """Tells whether a file of this name and modification time (seconds since 1970) is to be read."""
        if self.modified_after is not None and not modified > self.modified_after:
            return False
        if self.modified_before is not None and not modified < self.modified_before:
            return False
        return self.name_pattern is None or any(
            fnmatch.fnmatchcase(name, pattern) for pattern in _alternatives(self.name_pattern)
        )


@dataclass
class FileListing:
    """What was found: the files to read in the order of their paths, and what was passed over.

    Attributes:
        files: each once, also where several paths lead to it.
        skipped: path and reason of each thing that is neither a regular file nor an ordinary folder.
        folders: the folders that were searched, without links in their paths; not those below them.
        folders_not_entered: how many folders were left alone because the look-up is not recursive.
    """

    files: list[SegmentFile] = field(default_factory=list[SegmentFile])
    skipped: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    folders: list[Path] = field(default_factory=list[Path])
    folders_not_entered: int = 0


def find_files(paths: Sequence[str], chosen: FileFilter) -> FileListing:
    """Finds the files that `paths` name: files, folders and patterns (`*`, `?`, `[abc]`, `{a,b}`).

    In folders, and where a pattern matches, names that begin with `_` or `.` are skipped and linked folders are not
    entered; so is `x.index` beside `x.chunks`, which is read with it or not at all. What is named without a pattern is
    taken whatever its name.

    Raises:
        FileNotFoundError: a path does not exist, or a pattern matches nothing.
        ValueError: a path is neither a regular file nor a folder, or not on a file system.
        OSError: a folder cannot be listed.
    """
    listing = FileListing()
    found: dict[str, SegmentFile] = {}
    for named in paths:
        for path, literal in _roots(named):
            for file in _below(path, literal, chosen, listing):
                found.setdefault(file.real_path, file)
    listing.files = sorted(found.values())
    return listing


def path_text(path: str) -> str:
    r"""Returns a path, or a text with a path in it, as columns show it: bytes that are no UTF-8 as `\xNN`."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


class _Sized(Protocol):
    @property
    def size(self) -> int: ...


_File = TypeVar("_File", bound=_Sized)


def pack(files: Sequence[_File], limit_bytes: int, open_cost_bytes: int) -> list[list[_File]]:
    """Packs files, or slices of them, into tasks of at most `limit_bytes`, each counting for `open_cost_bytes` more.

    Files stay in order, so that what is close in name, and so mostly in time, comes into the same task.
    """
    tasks: list[list[_File]] = []
    room = 0
    for file in files:
        cost = file.size + open_cost_bytes
        if not tasks or cost > room:
            tasks.append([])
            room = limit_bytes
        tasks[-1].append(file)
        room -= cost
    return tasks


def task_bytes(files: Sequence[SegmentFile], *, most: int, open_cost_bytes: int, parallelism: int) -> int:
    """Returns the limit for `pack` by the rule of Spark's own file sources: an even share, within bounds.

    Args:
        files: all files.
        most: the upper bound in bytes.
        open_cost_bytes: the lower bound, and what each file counts for beside its size.
        parallelism: how many tasks run at a time.
    """
    total = sum(file.size + open_cost_bytes for file in files)
    return min(most, max(open_cost_bytes, -(-total // parallelism)))


def _roots(named: str) -> Iterator[tuple[Path, bool]]:
    """Yields what a path or pattern names, and whether it is named literally."""
    text = _without_scheme(named)
    path = Path(text).absolute()
    if os.path.lexists(path):
        yield path, True
        return
    if not _GLOB.search(text):
        raise FileNotFoundError(f"{printable_path(named)}: there is no such file or folder")
    found = False
    for pattern in sorted(set(_alternatives(text))):
        for match in sorted(glob.iglob(pattern)):  # noqa: PTH207 - Path.glob takes no absolute pattern
            found = True
            if not _passes_hidden(pattern, match):
                yield Path(match).absolute(), False
    if not found:
        raise FileNotFoundError(f"{printable_path(named)}: no file or folder matches this pattern")


def _passes_hidden(pattern: str, match: str) -> bool:
    """Tells whether a wildcard of the pattern stands for a name that is to be skipped."""
    # No wildcard matches a separator, so that the two have the same number of parts.
    parts = zip(Path(pattern).parts, Path(match).parts, strict=True)
    return any(_is_hidden(name) and not _is_hidden(asked) for asked, name in parts)


def _without_scheme(named: str) -> str:
    scheme = _SCHEME.match(named)
    if scheme is None:
        return named
    if scheme[0].lower() != "file:":
        raise ValueError(
            f"{printable_path(named)}: expected a path of a mounted file system; {scheme[0]}// cannot be read yet"
        )
    rest = named[scheme.end() :]
    # file:/a and file:///a name the same; file://host/a would be a file of another machine.
    if rest.startswith("//") and not rest.startswith("///"):
        raise ValueError(f"{printable_path(named)}: expected a file of this machine, as in file:///logs")
    return rest[2:] if rest.startswith("///") else rest


def _below(path: Path, literal: bool, chosen: FileFilter, listing: FileListing) -> Iterator[SegmentFile]:
    """Yields the files that one root stands for.

    A link is followed where it is named literally, or as a folder on the way to what a pattern matches.
    """
    try:
        status = path.stat()
    except FileNotFoundError:
        if literal:
            raise FileNotFoundError(f"{printable_path(path)}: this link leads nowhere") from None
        listing.skipped.append((str(path), "a link that leads nowhere"))
        return
    if stat.S_ISDIR(status.st_mode):
        if not literal and path.is_symlink():
            listing.skipped.append((str(path), "a linked folder"))
        else:
            listing.folders.append(path.resolve())
            yield from _in_folder(path, chosen, listing)
    elif stat.S_ISREG(status.st_mode):
        if not literal and _is_index(str(path)):
            return
        if chosen.accepts(path.name, status.st_mtime):
            yield SegmentFile(str(path), str(path.resolve()), status.st_size)
    elif literal:
        raise ValueError(
            f"{printable_path(path)}: expected a regular file or a folder, this is {_kind(status.st_mode)}"
        )
    else:
        listing.skipped.append((str(path), _kind(status.st_mode)))


def _in_folder(top: Path, chosen: FileFilter, listing: FileListing) -> Iterator[SegmentFile]:
    pending = [top]
    while pending:
        folder = pending.pop()
        real_folder = folder.resolve()
        # scandir, because it knows most entries' kinds without a call each.
        with os.scandir(folder) as entries:
            for entry in entries:
                if _is_hidden(entry.name):
                    continue
                try:
                    status = entry.stat()
                except FileNotFoundError:
                    if entry.is_symlink():
                        listing.skipped.append((entry.path, "a link that leads nowhere"))
                    continue  # otherwise it has just been deleted
                if stat.S_ISDIR(status.st_mode):
                    if entry.is_symlink():
                        listing.skipped.append((entry.path, "a linked folder"))
                    elif chosen.recursive:
                        pending.append(Path(entry.path))
                    else:
                        listing.folders_not_entered += 1
                elif not stat.S_ISREG(status.st_mode):
                    listing.skipped.append((entry.path, _kind(status.st_mode)))
                elif _is_index(entry.path):
                    continue  # it belongs to the log, and holds no records of its own
                elif chosen.accepts(entry.name, status.st_mtime):
                    real = Path(entry.path).resolve() if entry.is_symlink() else real_folder / entry.name
                    yield SegmentFile(entry.path, str(real), status.st_size)


def _is_index(path: str) -> bool:
    """Tells whether a file is the index of a log that stands beside it."""
    log, dot, extension = path.rpartition(".")
    return dot == "." and extension == "index" and os.path.isfile(f"{log}.chunks")  # noqa: PTH113 - no path is made


def _is_hidden(name: str) -> bool:
    return name.startswith(("_", "."))


def _kind(mode: int) -> str:
    if stat.S_ISFIFO(mode):
        return "a named pipe"
    if stat.S_ISSOCK(mode):
        return "a socket"
    return "a device"


def _alternatives(pattern: str) -> Iterator[str]:
    """Yields the patterns that one with `{a,b}` stands for."""
    braces = _BRACES.search(pattern)
    if braces is None:
        yield pattern
        return
    for choice in braces[1].split(","):
        yield from _alternatives(pattern[: braces.start()] + choice + pattern[braces.end() :])
