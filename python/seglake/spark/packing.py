"""Packs files, or slices of them, into tasks."""

from collections.abc import Sequence
from typing import Protocol, TypeVar

from seglake._files import SegmentFile

__all__ = ["pack", "task_bytes"]


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
