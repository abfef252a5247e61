"""What a run does with each file: nothing, read what is new of it, or read it whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final

import msgspec

import seglake
from seglake._native import ListedSegment
from seglake.stores import FileListing, SegmentFile
from seglake.tracking.files import is_gone, is_same, known_before, may_go_on, observed, renamed
from seglake.tracking.state import FileState
from seglake.tracking.status import INGESTED

from .log import LakeState

__all__ = ["FileGroup", "Plan", "PlannedFile", "formats_of", "moved_away", "plan_files", "source_root"]

# How many files are identified at a time: that is mostly waiting for their first bytes.
_THREADS: Final = 16


@dataclass(frozen=True)
class PlannedFile:
    """A file that a task reads.

    Attributes:
        path: its path without links.
        now: its size and times, as it was listed.
        segment: of a segment of a log, that segment as it was listed.
        before: what an earlier run found of it; None if none has read it, under this name or another.
        goes_on: whether it is read on from where that ended. Else it is read whole.
        is_all: of one that goes on, whether its source had no other records. Then what follows is new.
        identity: of one that is read whole, what identifies it; None as long as it has no whole record.
    """

    path: str
    now: FileState
    segment: ListedSegment | None = None
    before: FileState | None = None
    goes_on: bool = False
    is_all: bool = False
    identity: str | None = None

    @property
    def size(self) -> int:
        """About how many bytes of it are to be read."""
        return max(0, self.now.size - self.before.size) if self.goes_on and self.before else self.now.size


@dataclass
class FileGroup:
    """Files that may have records of one source, which one task reads one after the other.

    Attributes:
        files: those that go on come first.
        sources: the sources that are known of theirs, each with the Parquet files that may have its records, by format.
    """

    files: list[PlannedFile] = field(default_factory=list[PlannedFile])
    sources: dict[str, dict[str, list[str]]] = field(default_factory=dict[str, dict[str, list[str]]])

    @property
    def size(self) -> int:
        """About how many bytes of them are to be read."""
        return sum(file.size for file in self.files)


@dataclass
class Plan:
    """What a run is to do.

    Attributes:
        groups: the files that it reads.
        renamed: the states of files that are known under another name, and have not changed.
        moved: what was known of files under the names that they had.
        unchanged: how many files earlier runs have read, and nobody has changed since.
        unchanged_damaged: how many of these are damaged.
        unchanged_refused: how many of these conflict with what is there.
    """

    groups: list[FileGroup] = field(default_factory=list[FileGroup])
    renamed: list[FileState] = field(default_factory=list[FileState])
    moved: list[FileState] = field(default_factory=list[FileState])
    unchanged: int = 0
    unchanged_damaged: int = 0
    unchanged_refused: int = 0


def source_root(source: str) -> str:
    """Returns the identity that a source is of: several may begin with one record where keys are positions."""
    return source if source.startswith("/") else source.partition("#")[0]


def formats_of(source: str) -> list[str]:
    """Returns the formats that records of a source may have."""
    if source.startswith("/"):
        return seglake.formats().names
    family = source.partition(":")[0]
    return ["active", "sealed"] if family == "segment" else [family]


def plan_files(
    listing: FileListing,
    state: LakeState,
    *,
    final: bool,
    identify: Callable[[SegmentFile], str | None],
    sidecar: Callable[[str], str | None],
    files_with: Callable[[str, str], list[str]],
    only: set[str] | None = None,
) -> Plan:
    """Decides.

    Args:
        listing: all files that there are.
        state: what earlier runs have done.
        final: whether no file grows any more.
        identify: finds out what identifies a file.
        sidecar: returns the parity sidecar that a file is read by.
        files_with: returns the Parquet files of a format that may have records of a source.
        only: read these paths alone, and whole; None decides for each file.
    """
    plan = Plan()
    listed = [(file, observed(file, listing.listed_ns, sidecar)) for file in listing.files]
    here = {now.path: now for _, now in listed}
    inodes = {old.inode: old for old in state.files.values() if old.inode is not None and old.status != "renamed"}
    going_on: list[PlannedFile] = []
    whole: list[tuple[SegmentFile, PlannedFile]] = []
    for file, now in listed:
        if only is not None and now.path not in only:
            continue
        before = known_before(now, state.files, here, inodes)
        if before is not None and before.path != now.path:
            plan.moved.append(before)
        planned = PlannedFile(file.real_path, now, file.segment, before)
        if before is None or only is not None:
            whole.append((file, planned))
        elif is_same(before, now, final=final):
            plan.unchanged += 1
            plan.unchanged_damaged += before.status == "damaged"
            plan.unchanged_refused += before.status == "conflict"
            if before.path != now.path:
                plan.renamed.append(renamed(before, now))
        elif may_go_on(before, now):
            is_all = state.records.get(before.source, 0) == before.sums.records
            going_on.append(PlannedFile(file.real_path, now, file.segment, before, goes_on=True, is_all=is_all))
        else:
            whole.append((file, planned))
    with ThreadPoolExecutor(_THREADS) as threads:
        identities = list(threads.map(identify, [file for file, _ in whole]))
    read = [
        PlannedFile(each.path, each.now, each.segment, each.before, identity=identity)
        for (_, each), identity in zip(whole, identities, strict=True)
    ]
    plan.groups = _grouped(going_on, read, state, files_with)
    return plan


def moved_away(states: Sequence[FileState], plan: Plan, state: LakeState, here: Iterable[str]) -> list[FileState]:
    """Returns the states of files that are not there any more, but at other paths, they or their sources."""
    sources = {each.source for each in states if each.status in INGESTED and each.source}
    moved = {each.path for each in plan.moved}
    taken = {each.path for each in states} | set(here)
    return [
        msgspec.structs.replace(old, status="renamed", error=None)
        for old in state.files.values()
        if (old.source in sources or old.path in moved or not old.source)
        and old.path not in taken
        and old.status != "renamed"
        and is_gone(old.path)
    ]


def _grouped(
    going_on: Sequence[PlannedFile],
    whole: Sequence[PlannedFile],
    state: LakeState,
    files_with: Callable[[str, str], list[str]],
) -> list[FileGroup]:
    """Groups files that may have records of one source: they begin alike, or were at one path."""
    parents: dict[str, str] = {}

    def top(name: str) -> str:
        while parents.get(name, name) != name:
            name = parents[name]
        return name

    roots: list[tuple[PlannedFile, set[str]]] = []
    for file in (*going_on, *whole):
        own = {file.now.path} if file.identity is None and not file.goes_on else set[str]()
        own |= {each for each in (file.identity, file.before and source_root(file.before.source)) if each}
        roots.append((file, own))
        first, *others = own
        for other in others:
            parents[top(other)] = top(first)
    groups: dict[str, FileGroup] = {}
    members: dict[str, set[str]] = {}
    for file, own in roots:
        name = top(next(iter(own)))
        groups.setdefault(name, FileGroup()).files.append(file)
        members.setdefault(name, set()).update(own)
    known: dict[str, list[str]] = {}
    for source in state.records:
        known.setdefault(source_root(source), []).append(source)
    for name, group in groups.items():
        if len(group.files) == 1 and group.files[0].is_all:
            continue  # no key is looked for
        for root in sorted(members[name]):
            for source in known.get(root, []):
                group.sources[source] = {format: files_with(format, source) for format in formats_of(source)}
    return list(groups.values())
