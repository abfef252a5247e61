"""What runs the tasks of an ingest: threads of this process, or Spark."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from seglake._text import printable_path

from .progress import Progress
from .result import IngestError, can_pass

if TYPE_CHECKING:
    from .plan import FileGroup
    from .task import TaskOutcome, TaskRunner

__all__ = ["Engine", "StartEngine", "thread_engine"]

_POLL_S: Final = 0.1


class Engine(Protocol):
    """Runs tasks side by side."""

    def parallelism(self) -> int:
        """Returns how many tasks run at a time."""
        ...

    def run_tasks(
        self, runner: TaskRunner, tasks: Sequence[Sequence[FileGroup]], progress: Progress, watch: Callable[[], object]
    ) -> list[TaskOutcome]:
        """Runs tasks; returns their outcomes in their order. No task runs any more when it ends.

        Args:
            runner: runs one of them.
            tasks: the files of each.
            progress: what tasks of this process report to.
            watch: called now and then in the meantime, in the calling thread.

        Raises:
            IngestError: a task failed.
        """
        ...


StartEngine: TypeAlias = Callable[[], AbstractContextManager[Engine]]
"""Starts an engine for a block. Called after all that can be refused has been."""


@contextmanager
def thread_engine(threads: int) -> Generator[_ThreadEngine]:
    """Makes an engine of so many threads."""
    yield _ThreadEngine(threads)


class _ThreadEngine:
    """Runs tasks in threads of this process: decoding and writing Parquet release the interpreter's lock."""

    def __init__(self, threads: int) -> None:
        self._threads = threads

    def parallelism(self) -> int:
        """Returns how many threads there are."""
        return self._threads

    def run_tasks(
        self, runner: TaskRunner, tasks: Sequence[Sequence[FileGroup]], progress: Progress, watch: Callable[[], object]
    ) -> list[TaskOutcome]:
        """Runs tasks in threads."""
        # No task begins before all are handed over: the pool does not wait for a thread during whose start Ctrl-C came.
        begin = threading.Event()

        def run(number: int, task: Sequence[FileGroup]) -> TaskOutcome:
            begin.wait()
            progress.add()
            return runner.run(number, task, progress)

        with ThreadPoolExecutor(self._threads, thread_name_prefix="seglake-ingest") as threads:
            try:
                started = [threads.submit(run, number, task) for number, task in enumerate(tasks)]
                begin.set()
                # The calling thread only waits: it is the one that Ctrl-C interrupts.
                waiting = set(started)
                while waiting:
                    done, waiting = wait(waiting, _POLL_S, return_when="FIRST_COMPLETED")
                    for each in done:
                        each.result()
                    watch()
            except BaseException as error:
                progress.stop()
                begin.set()
                threads.shutdown(wait=True, cancel_futures=True)
                if not isinstance(error, Exception) or isinstance(error, IngestError):
                    raise
                raise IngestError(_told(error, runner), may_pass=can_pass(error)) from error
        return [each.result() for each in started]


def _told(error: BaseException, runner: TaskRunner) -> str:
    """Returns what an error of a task says: the file first. pyarrow does not say which file it was writing."""
    name, text, advice = None, str(error), ""
    if isinstance(error, OSError) and error.strerror is not None:
        name, text = error.filename if isinstance(error.filename, str) else None, error.strerror
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        name = name or runner.place.uri()
        advice = f". Free space on the disk of {printable_path(runner.place.uri())}, and ingest again"
    where = "" if name is None else f"{printable_path(name)}: "
    return f"{where}a task failed, nothing was ingested: {type(error).__name__}: {text}{advice}"
