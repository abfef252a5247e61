"""Which files a task reads, written down for it."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from seglake._files import SegmentFile
from seglake._native import ListedSegment

__all__ = ["PlannedFile", "read_plan", "write_plan"]


class PlannedFile(NamedTuple):
    """A file that a task reads: its path without links, and if it is a segment of a log, that as it was planned."""

    path: str
    segment: ListedSegment | None

    @property
    def source(self) -> str | ListedSegment:
        """What `seglake.open` takes."""
        return self.path if self.segment is None else self.segment


def write_plan(staging: Path, task: int, files: Sequence[SegmentFile]) -> None:
    """Writes down which files a task reads: as a file, so that the job itself stays small however many there are."""
    (staging / "plan").mkdir(exist_ok=True)
    plan = [(file.real_path, file.segment and file.segment.__getnewargs__()) for file in files]
    (staging / "plan" / f"{task}.json").write_text(json.dumps(plan))


def read_plan(staging: Path, task: int) -> list[PlannedFile]:
    """Reads what `write_plan` wrote."""
    plan: list[tuple[str, Any]] = json.loads((staging / "plan" / f"{task}.json").read_bytes())
    return [PlannedFile(path, None if fields is None else _segment(*fields)) for path, fields in plan]


def _segment(path: str, nbytes: int, bound: list[Any] | None, is_open: bool, is_frozen: bool) -> ListedSegment:
    """Makes what `__getnewargs__` gave, of which JSON makes lists."""
    fields: Any = None if bound is None else tuple(bound)
    return ListedSegment(path, nbytes, fields, is_open, is_frozen)
