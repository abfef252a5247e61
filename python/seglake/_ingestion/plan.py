"""Which files a run reads, and which task reads what."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from seglake._files import FileListing
from seglake._native import ListedSegment
from seglake._text import path_text

from .state import Ingested, State

__all__ = ["PlannedFile", "plan_files", "read_plan", "write_plan"]


class PlannedFile(NamedTuple):
    """A file that a task reads.

    Attributes:
        path: its path without links.
        segment: of a segment of a log, that segment as it was planned.
        size: its size in bytes; of a segment of a log, how much of it is to be read.
        modified: when it was modified, in nanoseconds since 1970; None if it may have changed since at the same time.
        before: how far earlier runs have ingested it.
    """

    path: str
    segment: ListedSegment | None = None
    size: int = 0
    modified: int | None = None
    before: Ingested | None = None

    @property
    def source(self) -> str | ListedSegment:
        """What `seglake.open` takes."""
        return self.path if self.segment is None else self.segment

    @property
    def identity(self) -> str:
        """What it is known by among runs: the first UUID of a log's segment, else the path."""
        return path_text(self.path) if self.segment is None else str(self.segment.first)


def plan_files(listing: FileListing, state: State, *, final: bool) -> tuple[list[PlannedFile], int]:
    """Returns the files that are new or may have changed, and how many others there are."""
    planned: list[PlannedFile] = []
    unchanged = 0
    for file in listing.files:
        found = PlannedFile(file.real_path, file.segment, file.size, file.settled_ns(listing.listed_ns))
        before = state.ingested.get(found.identity)
        if before is None or _may_have_changed(found, before, final=final):
            planned.append(found._replace(before=before))
        else:
            unchanged += 1
    return planned, unchanged


def _may_have_changed(file: PlannedFile, before: Ingested, *, final: bool) -> bool:
    if final and before.pending_bytes:
        return True
    if file.segment is not None:
        # A log never changes what was synced, so its size says all.
        return (file.segment.format, file.size) != (before.format, before.size)
    return before.modified is None or (file.modified, file.size) != (before.modified, before.size)


def write_plan(staging: Path, task: int, files: Sequence[PlannedFile]) -> None:
    """Writes down which files a task reads: as a file, so that the job itself stays small however many there are."""
    (staging / "plan").mkdir(exist_ok=True)
    plan = [
        (
            file.path,
            file.segment and file.segment.__getnewargs__(),
            file.size,
            file.modified,
            file.before and file.before.to_plan(),
        )
        for file in files
    ]
    (staging / "plan" / f"{task}.json").write_text(json.dumps(plan))


def read_plan(staging: Path, task: int) -> list[PlannedFile]:
    """Reads what `write_plan` wrote."""
    plan: list[tuple[str, Any, int, int | None, Any]] = json.loads((staging / "plan" / f"{task}.json").read_bytes())
    return [
        PlannedFile(
            path,
            None if fields is None else _segment(*fields),
            size,
            modified,
            None if before is None else Ingested.from_plan(before),
        )
        for path, fields, size, modified, before in plan
    ]


def _segment(path: str, nbytes: int, bound: list[Any] | None, is_open: bool, is_frozen: bool) -> ListedSegment:
    """Makes what `__getnewargs__` gave, of which JSON makes lists."""
    fields: Any = None if bound is None else tuple(bound)
    return ListedSegment(path, nbytes, fields, is_open, is_frozen)
