"""What runs the tasks of an ingest."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from .outcome import TaskOutcome
    from .task import TaskRunner

__all__ = ["Engine", "StartEngine"]


class Engine(Protocol):
    """Runs tasks side by side.

    Attributes:
        is_here: whether the tasks run on this machine alone.
    """

    @property
    def is_here(self) -> bool: ...

    def parallelism(self) -> int:
        """Returns how many tasks run at a time."""
        ...

    def run_tasks(self, runner: TaskRunner, tasks: int, watch: Callable[[], object] | None) -> list[TaskOutcome]:
        """Runs the tasks from 0 on; returns their outcomes in this order. No task runs any more when it ends.

        Args:
            runner: runs one of them.
            tasks: how many there are.
            watch: called now and then in the meantime, in the calling thread.

        Raises:
            IngestError: a task failed.
        """
        ...


StartEngine: TypeAlias = Callable[[], AbstractContextManager[Engine]]
"""Starts an engine for a block. Called after all that can be refused has been."""
