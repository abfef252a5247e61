"""What became of files since they were read: they are the same, have another name, or may have grown."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress

import msgspec

from seglake._text import path_text
from seglake.stores import SegmentFile

from .state import FileState
from .status import INGESTED

__all__ = ["is_gone", "is_same", "known_before", "may_go_on", "observed", "renamed"]


def is_gone(path: str) -> bool:
    """Tells whether a file is not there any more, by its path as text. In a store only the listing knows."""
    return path.startswith("/") and "\\x" not in path and not os.path.lexists(path)


def observed(file: SegmentFile, listed_ns: int, sidecar: Callable[[str], str | None]) -> FileState:
    """Returns a file as it was listed.

    Args:
        file: the file.
        listed_ns: when the listing began, in nanoseconds since 1970.
        sidecar: returns the parity sidecar that it is read by.
    """
    beside, facts = sidecar(file.real_path), None
    if beside is not None:
        with suppress(OSError):
            found = os.stat(beside)  # noqa: PTH116
            facts = f"{found.st_size} {found.st_mtime_ns}"
    return FileState(
        path_text(file.real_path),
        file.size,
        # A log never changes what was on the disk, so the size of its segments says all.
        0 if file.segment is not None else file.settled_ns(listed_ns),
        file.changed_ns,
        file.inode,
        facts,
    )


def known_before(
    now: FileState, known: Mapping[str, FileState], here: Mapping[str, FileState], inodes: Mapping[int, FileState]
) -> FileState | None:
    """Returns what is known of a file: under its path, or under another where it is not any more."""
    own = known.get(now.path)
    if own is not None and (own.status == "renamed" or own.inode == now.inode):
        return None if own.status == "renamed" else own
    moved = None if now.inode is None else inodes.get(now.inode)
    if moved is None or moved.path == now.path:
        return own
    there = here.get(moved.path)
    is_there = not is_gone(moved.path) if there is None else there.inode == now.inode
    return own if is_there else moved


def is_same(before: FileState, now: FileState, *, final: bool) -> bool:
    """Tells whether a file is as it was when it was read."""
    if before.status not in (*INGESTED, "conflict") or (final and before.pending_bytes):
        return False
    found = (before.size, before.modified, before.sidecar, before.inode)
    if before.modified is None or found != (now.size, now.modified, now.sidecar, now.inode):
        return False
    # A repair may leave it its size and time.
    return before.status != "damaged" or before.changed == now.changed


def may_go_on(before: FileState, now: FileState) -> bool:
    """Tells whether a file may be what it was and more. Opening it tells whether it is."""
    if before.position is None or before.size > now.size or before.sidecar != now.sidecar:
        return False
    if before.size == now.size:
        # A repair may leave it its size and time.
        is_as_it_was = before.modified in (None, now.modified)
        return is_as_it_was and (before.status != "damaged" or before.changed == now.changed)
    return before.status != "damaged" or before.inode == now.inode


def renamed(before: FileState, now: FileState) -> FileState:
    """Returns the state of a file that has another name and is the same."""
    return msgspec.structs.replace(
        before, path=now.path, modified=now.modified, changed=now.changed, inode=now.inode, sidecar=now.sidecar
    )
