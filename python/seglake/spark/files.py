"""Finds the files to read, and packs them into tasks."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from seglake._text import printable_path

from .listing import FileFilter, FileListing, SegmentFile
from .local_files import find_local

if TYPE_CHECKING:
    from .stores import Stores

__all__ = ["FileFilter", "FileListing", "SegmentFile", "find_files", "pack", "path_text", "task_bytes"]

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:(?=/)")


def find_files(paths: Sequence[str], chosen: FileFilter, stores: "Stores | None" = None) -> FileListing:
    """Finds the files that `paths` name: files, folders and patterns (`*`, `?`, `[abc]`, `{a,b}`).

    In folders, and where a pattern matches, names that begin with `_` or `.` are skipped and linked folders are not
    entered; so is `x.index` beside `x.chunks`, which is read with it or not at all. What is named without a pattern is
    taken whatever its name.

    Args:
        paths: as the user wrote them.
        chosen: which files of folders are wanted.
        stores: reaches files elsewhere; None refuses them.

    Raises:
        FileNotFoundError: a path does not exist, or a pattern matches nothing.
        ValueError: a path is neither a regular file nor a folder, or not on a file system.
        OSError: a folder cannot be listed, or a store cannot be reached.
    """
    listing = FileListing()
    found: dict[str, SegmentFile] = {}
    for named in paths:
        local = _local_path(named, allow_others=stores is not None)
        if local is not None:
            files = find_local(local, chosen, listing)
        else:
            # Imported here: the ingest, which reads no files elsewhere, has no use for it.
            from .remote_files import find_remote

            assert stores is not None
            files = find_remote(named, chosen, listing, stores)
        for file in files:
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


def _local_path(named: str, *, allow_others: bool) -> str | None:
    """Returns the path on a mounted file system; None for a URI of another."""
    scheme = _SCHEME.match(named)
    if scheme is None:
        return named
    rest = named[scheme.end() :]
    if scheme[0].lower() != "file:":
        if allow_others and rest.startswith("//"):
            return None
        raise ValueError(
            f"{printable_path(named)}: expected a path of a mounted file system"
            + ("" if not allow_others else f", or a URI such as {scheme[0]}//bucket/path")
        )
    # file:/a and file:///a name the same; file://host/a would be a file of another machine.
    if rest.startswith("//") and not rest.startswith("///"):
        raise ValueError(f"{printable_path(named)}: expected a file of this machine, as in file:///logs")
    return rest[2:] if rest.startswith("///") else rest
