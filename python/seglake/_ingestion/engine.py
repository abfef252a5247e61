"""What runs the tasks of an ingest."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from .outcome import TaskOutcome
    from .task import TaskRunner

__all__ = ["Engine", "EngineChoice"]


class Engine(Protocol):
    """Runs tasks side by side."""

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


@dataclass(frozen=True)
class EngineChoice:
    """An engine that is not started yet.

    Attributes:
        start: starts it for a block. Called after all that can be refused has been.
        is_here: whether all tasks run on this machine, so that what is wrong with the key shows before it starts.
    """

    start: Callable[[], AbstractContextManager[Engine]]
    is_here: bool
