"""Finds the files that paths, patterns and URIs name."""

from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

from seglake._text import printable_path

from .listing import FileFilter, FileListing, SegmentFile
from .local import find_local
from .patterns import mounted_path

if TYPE_CHECKING:
    from seglake._native import _Key  # pyright: ignore[reportPrivateUsage]

    from .opening import Stores

__all__ = ["find_files"]


def find_files(
    paths: Sequence[str],
    chosen: FileFilter,
    stores: "Stores | None" = None,
    *,
    key: "_Key | None" = None,
) -> FileListing:
    """Finds the files that `paths` name: files, folders and patterns (`*`, `?`, `[abc]`, `{a,b}`).

    In folders, and where a pattern matches, names that begin with `_` or `.` are skipped and linked folders are not
    entered; so is `x.index` beside `x.chunks`, which is read with it or not at all. What is named without a pattern is
    taken whatever its name.

    A folder that is a log gives its segments at one moment, each once, as far as they were on the disk then.

    Args:
        paths: as the user wrote them.
        chosen: which files of folders are wanted.
        stores: reaches files elsewhere, or holds all of them; None refuses files elsewhere.
        key: the key of logs, as in `open`.

    Raises:
        FileNotFoundError: a path does not exist, or a pattern matches nothing.
        ValueError: a path is neither a regular file nor a folder, or not on a file system.
        OSError: a folder cannot be listed, or a store cannot be reached.
        seglake.FormatError: segments of a log are missing.
        seglake.WrongKeyError: the key is not that of a log.
    """
    listing = FileListing()
    found: dict[str, SegmentFile] = {}
    for named in paths:
        holds_all = stores is not None and stores.hold_all
        local = None if holds_all else _local_path(named, allow_others=stores is not None)
        if local is not None:
            files = find_local(local, chosen, listing, key)
        else:
            # Imported here: most have no files elsewhere.
            from .remote import find_remote

            assert stores is not None
            files = find_remote(named, chosen, listing, stores)
        for file in files:
            if file.segment is not None:
                found[file.real_path] = file  # which says how far to read, unlike its name alone
            found.setdefault(file.real_path, file)
    listing.files = sorted(found.values(), key=attrgetter("path"))
    return listing


def _local_path(named: str, *, allow_others: bool) -> str | None:
    """Returns the path on a mounted file system; None for a URI of another."""
    local = mounted_path(named, "file")
    scheme, _, rest = named.partition(":")
    if local is not None or (allow_others and rest.startswith("//")):
        return local
    raise ValueError(
        f"{printable_path(named)}: expected a path of a mounted file system"
        + ("" if not allow_others else f", or a URI such as {scheme}://bucket/path")
    )
