"""Runs tasks in threads of this process: decoding and writing Parquet release the interpreter's lock."""

import errno
import itertools
import os
import tempfile
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

from seglake._text import printable_path

from .outcome import TaskOutcome
from .result import IngestError, can_pass
from .task import TaskRunner

__all__ = ["ThreadEngine", "thread_engine"]

_POLL_S: Final = 0.1


@contextmanager
def thread_engine(threads: int | None) -> "Generator[ThreadEngine]":
    """Makes the engine; None takes as many threads as this process has cores."""
    if threads is None:
        # Not all cores of the machine, where a container or `taskset` allows fewer.
        threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    yield ThreadEngine(threads)


class ThreadEngine:
    """Runs tasks in threads."""

    is_here = True

    def __init__(self, threads: int) -> None:
        self._threads = threads

    def parallelism(self) -> int:
        """Returns how many threads there are."""
        return self._threads

    def run_tasks(self, runner: TaskRunner, tasks: int, watch: Callable[[], object] | None) -> list[TaskOutcome]:
        """Runs all tasks; returns their outcomes in their order. Calls `watch` in the meantime.

        Raises:
            IngestError: a task failed.
        """
        job = _Job(runner, tasks)
        threads = [
            threading.Thread(target=job.run, name=f"seglake-ingest-{number}", daemon=True)
            for number in range(min(self._threads, tasks))
        ]
        try:
            for thread in threads:
                thread.start()
            # The calling thread only waits: it is the one that Ctrl-C interrupts.
            while not job.ended.wait(_POLL_S) and any(thread.is_alive() for thread in threads):
                if watch is not None:
                    watch()
        finally:
            job.stop()
            for thread in threads:
                if thread.ident is not None:
                    thread.join()
        if watch is not None:
            watch()
        if job.error is not None:
            raise IngestError(_told(job.error, runner), may_pass=can_pass(job.error)) from job.error
        return job.outcomes()


def _told(error: BaseException, runner: TaskRunner) -> str:
    """Returns what an error of a task says: the file first. pyarrow does not say which file it was writing."""
    name, text, advice = None, str(error), ""
    if isinstance(error, OSError) and error.strerror is not None:
        name, text = error.filename if isinstance(error.filename, str) else None, error.strerror
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        folder = str(runner.staging.folder) if runner.staging.is_local else tempfile.gettempdir()
        name = name or folder
        advice = f". Free space on the disk of {printable_path(folder)}, and ingest again"
    place = "" if name is None else f"{printable_path(name)}: "
    return f"{place}a task failed, nothing was ingested: {type(error).__name__}: {text}{advice}"


class _Job:
    """What the threads share."""

    def __init__(self, runner: TaskRunner, tasks: int) -> None:
        self.ended = threading.Event()
        self.error: BaseException | None = None
        self._runner = runner
        self._tasks = tasks
        self._next = itertools.count()
        self._done: dict[int, TaskOutcome] = {}
        self._stopped = False

    def run(self) -> None:
        """Runs one task after the other, until none is left or one has failed."""
        while not self._stopped and (task := next(self._next)) < self._tasks:
            try:
                self._done[task] = self._runner.run(task, lambda: self._stopped)
            except BaseException as error:
                if self.error is None:
                    self.error = error
                self.stop()
        if len(self._done) == self._tasks:
            self.ended.set()

    def stop(self) -> None:
        """Has the tasks stop, those that run as well."""
        self._stopped = True
        self.ended.set()

    def outcomes(self) -> list[TaskOutcome]:
        """Returns the outcomes in the order of the tasks."""
        return [self._done[task] for task in sorted(self._done)]
