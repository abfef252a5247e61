"""Which files a run reads, and which task reads what."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby, repeat
from pathlib import Path
from typing import Any, Final, NamedTuple

from seglake._files import FileListing, SegmentFile
from seglake._native import ListedSegment
from seglake._text import path_text

from .carry import Sums
from .exchange import Exchange
from .repaired import may_be_repaired
from .state import Ingested, State

__all__ = ["Known", "PlannedFile", "PlannedGroup", "groups_of", "plan_files", "read_plan", "write_plan"]

# How many files are identified at a time: that is mostly waiting for their first bytes.
_THREADS: Final = 16


Identify = Callable[[SegmentFile, str | None], str | None]


class Known(NamedTuple):
    """A segment that earlier runs have ingested.

    Attributes:
        name: what it is known by among runs.
        before: how far it was ingested.
        path: its file; None if that is gone.
    """

    name: str
    before: Ingested
    path: str | None


class PlannedFile(NamedTuple):
    """A file that a task reads.

    Attributes:
        path: its path without links.
        segment: of a segment of a log, that segment as it was planned.
        size: its size in bytes; of a segment of a log, how much of it is to be read.
        modified: when it was modified, in nanoseconds since 1970; None if it may have changed since at the same time.
        before: how far earlier runs have ingested it.
        name: what it is known by among runs, if that is not its path.
        identity: what identifies it; None as long as it has no whole record, and for a segment of a log.
        known: the segments of this identity. Files of one identity come after each other in one task.
        copy: if earlier runs have listed it as a damaged copy of a segment, how far its damage was listed.
    """

    path: str
    segment: ListedSegment | None = None
    size: int = 0
    modified: int | None = None
    before: Ingested | None = None
    name: str = ""
    identity: str | None = None
    known: tuple[Known, ...] = ()
    copy: Ingested | None = None

    @property
    def source(self) -> str | ListedSegment:
        """What `seglake.open` takes."""
        return self.path if self.segment is None else self.segment

    @property
    def segment_name(self) -> str:
        """What it is known by among runs: the first UUID of a log's segment, the identity, or else the path."""
        if self.segment is not None:
            return str(self.segment.first)
        return self.name or path_text(self.path)

    @property
    def new_bytes(self) -> int:
        """About how many bytes of it are to be read."""
        is_same = self.before is not None and self.segment is None
        return max(0, self.size - self.before.carry.position.byte_offset) if self.before and is_same else self.size


class PlannedGroup(NamedTuple):
    """Files that begin with the same record, or a single one."""

    files: list[PlannedFile]

    @property
    def size(self) -> int:
        """How many bytes they have."""
        return sum(file.size for file in self.files)


def plan_files(
    listing: FileListing, state: State, *, final: bool, identify: Identify
) -> tuple[list[PlannedGroup], int]:
    """Returns the files that are new or may have changed, and how many others there are.

    Args:
        listing: all files that there are.
        state: what earlier runs have ingested.
        final: whether no file grows any more.
        identify: finds out what identifies a file of a format; None stands for that of the run.
    """
    files = listing.files
    changed: list[tuple[SegmentFile, PlannedFile]] = []
    for file in files:
        found = _planned(file, listing, state)
        if _may_have_changed(found, state, final=final):
            changed.append((file, found))
    logs = [found._replace(before=state.ingested.get(found.segment_name)) for _, found in changed if found.segment]
    plain = [each for each in changed if each[1].segment is None]
    with ThreadPoolExecutor(_THREADS) as threads:

        def identified(files: Sequence[tuple[SegmentFile, PlannedFile]]) -> list[PlannedFile]:
            identities = threads.map(identify, [file for file, _ in files], repeat(None))
            return [found._replace(identity=identity) for (_, found), identity in zip(files, identities, strict=True)]

        own = identified(plain)
        planned, paths = {file.path for file in own}, _kin_paths(own, state)
        more = [
            (file, _planned(file, listing, state))
            for file in files
            if file.segment is None and file.real_path not in planned and path_text(file.real_path) in paths
        ]
        changed += more
        own += identified(more)
    new_paths = {file.path for file in own}
    unchanged = {path_text(each.real_path): each.real_path for each in files if each.real_path not in new_paths}
    groups = [PlannedGroup([file]) for file in logs] + _groups(own, state, unchanged, identify)
    return groups, len(files) - len(changed)


def _kin_paths(planned: Sequence[PlannedFile], state: State) -> set[str]:
    """Returns the paths of files that are to be read although they have not changed, as others have."""
    # What was at the path of a file that begins anew may be left in a copy of it alone.
    paths = set(state.copies) if any(_begins_anew(file, state) for file in planned) else set[str]()
    # Another file may take the place of one that is damaged, which is the copy then.
    wanted = {file.identity for file in planned} - {None}
    damaged = ((path, state.ingested[name]) for path, name in state.by_path.items())
    return paths | {path for path, own in damaged if own.status == "damaged" and own.identity in wanted}


def _planned(file: SegmentFile, listing: FileListing, state: State) -> PlannedFile:
    found = PlannedFile(file.real_path, file.segment, file.size, file.settled_ns(listing.listed_ns))
    copy = None if file.segment is not None else state.copies.get(path_text(file.real_path))
    return found if copy is None else found._replace(copy=copy.damaged)


def _begins_anew(file: PlannedFile, state: State) -> bool:
    """Tells whether a file begins otherwise than what was ingested from its path, or not at all."""
    name = state.by_path.get(path_text(file.path))
    before = None if name is None else state.ingested[name].identity
    return before is not None and file.identity != before


def _groups(
    files: Sequence[PlannedFile],
    state: State,
    unchanged: Mapping[str, str],
    identify: Identify,
) -> list[PlannedGroup]:
    """Groups files by what they begin with, each with the segments that begin so."""
    by_identity = _by_identity(files, state)
    paths: dict[str | None, set[str]] = {}
    for file in files:
        paths.setdefault(file.identity, set()).add(file.path)
    groups: dict[str, list[PlannedFile]] = {}
    for file in files:
        path = path_text(file.path)
        own, identity = state.by_path.get(path), file.identity
        if own is not None and identity not in by_identity:
            before = state.ingested[own]
            position = before.identity
            # Unless the segment that was at this path is at another now, it is that one, or has taken its place. What
            # had nothing so far begins now.
            if identity is None or (position is not None and not paths.get(position, set()) - {file.path}):
                groups[path] = [file._replace(before=before, name=own)]
                continue
        if identity is None:
            groups[path] = [file]
            continue
        names = by_identity.get(identity, [])
        here = {**unchanged, **{path_text(path): path for path in paths[identity]}}
        known = tuple(_known(each, state, here, identify) for each in names)
        groups.setdefault(identity, []).append(file._replace(name=identity, known=known))
    return [PlannedGroup(own) for own in groups.values()]


def _by_identity(files: Sequence[PlannedFile], state: State) -> dict[str, list[str]]:
    """Returns the names of the segments that were ingested of each identity of these files, but for those of logs."""
    names: dict[str, list[str]] = {}
    wanted = {file.identity for file in files} - {None}
    for name, before in state.ingested.items() if wanted else ():
        own = name.partition("#")[0]
        if own in wanted or _is_path(name):
            identity = before.identity
            if identity in wanted and (own == identity or _is_path(name)):
                names.setdefault(str(identity), []).append(name)
    for file in files:
        # It had no sound record so far, but damage, which is in the tables under its path.
        own = state.by_path.get(path_text(file.path))
        carry = None if own is None else state.ingested[own].carry
        if own is None or carry is None or file.identity is None or carry.position.identity is not None:
            continue
        if carry.sums != Sums() or carry.tail is not None:
            names.setdefault(file.identity, []).append(own)
    return names


def _is_path(name: str) -> bool:
    """Tells whether a segment is known by its path: it began with damage, and had no record then."""
    return name.startswith("/")


def _known(name: str, state: State, here: Mapping[str, str], identify: Identify) -> Known:
    before = state.ingested[name]
    # Another segment may be at its path by now, in a file that has not changed since.
    path = here.get(before.path) if state.by_path.get(before.path) == name else None
    if path is None:
        # It may be in a folder that other runs ingest.
        try:
            size = Path(before.path).stat().st_size
        except OSError:
            return Known(name, before, None)
        is_there = identify(SegmentFile(before.path, before.path, size), before.format) == before.identity
        path = before.path if is_there else None
    return Known(name, before, path)


def _may_have_changed(file: PlannedFile, state: State, *, final: bool) -> bool:
    if file.segment is not None:
        before = state.ingested.get(file.segment_name)
        # A log never changes what was synced, so its size says all.
        is_same = before is not None and (file.segment.format, file.size) == (before.format, before.size)
        return not is_same or (
            before is not None and (_has_tail(before, final=final) or _may_be_repaired(file, before))
        )
    path = path_text(file.path)
    copy = state.copies.get(path)
    if copy is not None:
        if copy.damaged is not None and _may_be_repaired(file, copy.damaged):
            return True
        if final and copy.pending_bytes > 0:
            return True
        return copy.modified is None or (copy.size, copy.modified) != (file.size, file.modified)
    name = state.by_path.get(path)
    before = None if name is None else state.ingested[name]
    if before is None or _has_tail(before, final=final) or _may_be_repaired(file, before):
        return True
    return before.modified is None or (file.modified, file.size) != (before.modified, before.size)


def _has_tail(before: Ingested, *, final: bool) -> bool:
    return final and before.pending_bytes > 0


def _may_be_repaired(file: PlannedFile, before: Ingested) -> bool:
    """Tells whether a file was damaged, and may be repaired by now: that leaves its size and time as they are."""
    return before.status == "damaged" and may_be_repaired(file.path, before.carry)


def write_plan(exchange: Exchange, task: int, files: Sequence[PlannedFile]) -> None:
    """Writes down which files a task reads."""
    plan = [
        file._replace(
            segment=file.segment and file.segment.__getnewargs__(),  # pyright: ignore[reportArgumentType]
            before=file.before and file.before.to_plan(),  # pyright: ignore[reportArgumentType]
            copy=file.copy and file.copy.to_plan(),  # pyright: ignore[reportArgumentType]
            known=[(name, before.to_plan(), path) for name, before, path in file.known],  # pyright: ignore
        )
        for file in files
    ]
    exchange.write_plan(task, plan)


def read_plan(exchange: Exchange, task: int) -> list[PlannedFile]:
    """Reads what `write_plan` wrote."""
    files: list[PlannedFile] = []
    for fields in exchange.read_plan(task):
        file = PlannedFile(*fields)
        segment: Any = file.segment
        before: Any = file.before
        copy: Any = file.copy
        known: Any = file.known
        files.append(
            file._replace(
                segment=None if segment is None else _segment(*segment),
                before=None if before is None else Ingested.from_plan(before),
                copy=None if copy is None else Ingested.from_plan(copy),
                known=tuple(Known(name, Ingested.from_plan(own), path) for name, own, path in known),
            )
        )
    return files


def groups_of(files: Iterable[PlannedFile]) -> list[list[PlannedFile]]:
    """Groups the files of a task as they were planned."""
    by_identity = groupby(enumerate(files), key=lambda each: each[1].identity or each[0])
    return [[file for _, file in own] for _, own in by_identity]


def _segment(path: str, nbytes: int, bound: list[Any] | None, is_open: bool, is_frozen: bool) -> ListedSegment:
    """Makes what `__getnewargs__` gave, of which JSON makes lists."""
    fields: Any = None if bound is None else tuple(bound)
    return ListedSegment(path, nbytes, fields, is_open, is_frozen)
