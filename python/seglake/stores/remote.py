"""Finds files elsewhere, by the same rules as on mounted file systems."""

import fnmatch
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from seglake._errors import FormatError
from seglake._native import ListedSegment, is_beside_segment, is_log_name
from seglake._text import printable_path

from .listing import IN_A_LOG, FileFilter, FileListing, SegmentFile
from .patterns import alternatives, is_hidden, is_pattern, owner_of, passes_hidden
from .store import Entry, Store

if TYPE_CHECKING:
    from .opening import Stores

__all__ = ["find_remote"]


class _Place(NamedTuple):
    """A file or folder of a store: its URI as users write it, and its path within the store."""

    uri: str
    path: str

    def child(self, path: str) -> "_Place":
        """Something below, by its path."""
        own = self.path.rstrip("/")
        return _Place(self.uri.rstrip("/") + path[len(own) :], path)

    def named(self, name: str) -> "_Place":
        """Something directly below, by its name."""
        return _Place(f"{self.uri.rstrip('/')}/{name}", f"{self.path.rstrip('/')}/{name}")

    def holds(self, path: str) -> bool:
        """Whether a path lies below."""
        return path.startswith(f"{self.path.rstrip('/')}/")


class _Found(NamedTuple):
    place: _Place
    entry: Entry


def find_remote(named: str, chosen: FileFilter, listing: FileListing, stores: "Stores") -> Iterator[SegmentFile]:
    """Yields the files that a URI or a pattern of URIs names; sizes and times come with the listing.

    A folder is listed whole where it is read with those below it: stores answer that by thousands of files at a time.

    Raises:
        FileNotFoundError: the URI does not exist, or the pattern matches nothing.
        OSError: the store cannot be reached, or refuses.
    """
    store, path = stores.connect(named)
    place = _Place(named.rstrip("/"), path)
    entry = store.find(path, named)
    if entry is not None:
        yield from _below(store, [_Found(place, entry)], True, chosen, listing)
        return
    if not is_pattern(named):
        raise FileNotFoundError(f"{printable_path(named)}: there is no such file or folder (or no such bucket)")
    matched = False
    for pattern in sorted(set(alternatives(named))):
        matches = _matches(store, pattern)
        matched = matched or bool(matches)
        shown = [match for match in matches if not passes_hidden(_names(pattern), _names(match.place.uri))]
        yield from _below(store, shown, False, chosen, listing)
    if not matched:
        raise FileNotFoundError(f"{printable_path(named)}: no file or folder matches this pattern")


def _names(uri: str) -> list[str]:
    return uri.rstrip("/").split("/")


def _matches(store: Store, pattern: str) -> list[_Found]:
    """Returns what a pattern without braces stands for, going down folder by folder, in the order of names."""
    parts = _names(pattern)
    fixed = next((number for number, part in enumerate(parts) if is_pattern(part)), len(parts))
    base = "/".join(parts[:fixed])
    if fixed == len(parts):
        place = _Place(base, store.path_of(base))
        entry = store.find(place.path, base)
        return [_Found(place, entry)] if entry is not None else []
    found = [_Found(_Place(base, store.path_of(base)), Entry(store.path_of(base), False, 0, None))]
    for part in parts[fixed:]:
        folders = [place for place, entry in found if not entry.is_file]
        found = [next for folder in folders for next in _step(store, folder, part)]
    return found


def _step(store: Store, folder: _Place, part: str) -> Iterator[_Found]:
    """Yields what one part of a pattern stands for in a folder."""
    if not is_pattern(part):
        place = folder.named(part)
        entry = store.find(place.path, place.uri)
        if entry is not None:
            yield _Found(place, entry)
        return
    try:
        entries = sorted(store.entries(folder.path, folder.uri, recursive=False))
    except FileNotFoundError:
        return
    for entry in entries:
        if not folder.holds(entry.path):
            continue
        name = entry.path.rpartition("/")[2]
        # As in a shell, no wildcard stands for a name's first dot.
        if fnmatch.fnmatchcase(name, part) and (part.startswith(".") or not name.startswith(".")):
            yield _Found(folder.child(entry.path), entry)


def _below(
    store: Store, roots: Iterable[_Found], literal: bool, chosen: FileFilter, listing: FileListing
) -> Iterator[SegmentFile]:
    """Yields the files that roots are, and those of folders among them."""
    files = [root for root in roots if root.entry.is_file]
    yield from _chosen(store, files, literal, chosen, listing)
    for place, entry in roots:
        if not entry.is_file:
            yield from _chosen(store, _in_folder(store, place, chosen, listing), False, chosen, listing)


def _in_folder(store: Store, folder: _Place, chosen: FileFilter, listing: FileListing) -> list[_Found]:
    found: list[_Found] = []
    logs: set[str] = set()
    for entry in store.entries(folder.path, folder.uri, recursive=chosen.recursive):
        if not folder.holds(entry.path):
            listing.skipped.append((entry.path, "a file that is listed where it is not"))
            continue
        below = entry.path[len(folder.path.rstrip("/")) + 1 :]
        inside, _, name = entry.path.rpartition("/")
        if entry.is_file and is_log_name(name):
            logs.add(inside)
        if any(map(is_hidden, below.split("/"))):
            continue
        if entry.is_file:
            found.append(_Found(folder.child(entry.path), entry))
        elif not chosen.recursive:
            listing.folders_not_entered += 1
    if logs:
        found = [each for each in found if not _is_of_a_log(each, logs, listing)]
    for each in found:
        _refuse_open_segment(each, chosen)
    return found


def _is_of_a_log(found: _Found, logs: set[str], listing: FileListing) -> bool:
    """Tells whether a file belongs to a segment of a log, or is in a folder in that of a log, which is noted."""
    inside, _, name = found.entry.path.rpartition("/")
    if inside in logs and is_beside_segment(name):
        return True
    while inside:
        outer = inside.rpartition("/")[0]
        if outer in logs:
            note = (inside, IN_A_LOG)
            listing.skipped += [] if note in listing.skipped else [note]
            return True
        inside = outer
    return False


def _refuse_open_segment(found: _Found, chosen: FileFilter) -> None:
    """Refuses a segment of a log that may still be written: how far it may be read is not known elsewhere."""
    place, entry = found
    name = entry.path.rpartition("/")[2]
    if not is_log_name(name) or not chosen.accepts(name, entry.modified if entry.modified is not None else 0.0):
        return
    if not ListedSegment(name, entry.size, None, False, False).is_sealed:
        raise FormatError(
            "is a segment of a log that may still be written, or was not copied whole: elsewhere than on a mounted "
            "file system logs are read by their sealed segments alone",
            path=place.uri,
            next="choose them by the pattern *.sealed, or name this file itself to read it as it is",
        )


def _chosen(
    store: Store, found: list[_Found], literal: bool, chosen: FileFilter, listing: FileListing
) -> Iterator[SegmentFile]:
    listed = {entry.path for _, entry in found}
    for place, entry in found:
        name = entry.path.rpartition("/")[2]
        if not literal and _is_index(store, place, listed):
            continue
        if chosen.accepts(name, entry.modified if entry.modified is not None else 0.0):
            yield SegmentFile(place.uri, place.uri, entry.size, entry.modified)
        else:
            listing.left_out += 1


def _is_index(store: Store, place: _Place, listed: set[str]) -> bool:
    """Tells whether a file is the index of a log that stands beside it: most often that has been listed, too."""
    log = owner_of(place.path)
    if log is None:
        return False
    if log in listed:
        return True
    uri = owner_of(place.uri) or place.uri
    beside = store.find(log, uri)
    return beside is not None and beside.is_file
