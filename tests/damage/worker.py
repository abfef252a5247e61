"""Runs trials in a process of its own, so that one which crashes or hangs is a finding and not the end."""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Self

from . import index_trial
from .judge import Verdict
from .peers import trial as peer_trial
from .trial import Trial

TIMEOUT_S = 300
"""A trial takes a second, and now and then some. One that takes this long hangs, however busy the machine is."""

MEMORY_BYTES = 8 << 30
"""More address space than any trial needs; what wants more is stopped by its own allocation failing."""


def perform(name: str) -> Verdict:
    """Run the trial of that name, ours or a peer's."""
    trial = Trial.named(name)
    if trial.layout == index_trial.NAME:
        return index_trial.run(trial.kind, trial.seed)
    if trial.layout in peer_trial.PEER_NAMES:
        return peer_trial.run(trial.layout, trial.kind, trial.seed, trial.count)
    return trial.run()


class Worker:
    """A process that runs trials, replaced by a new one where it ends."""

    def __init__(self, run: Callable[[str], Verdict] = perform, timeout_s: float = TIMEOUT_S) -> None:
        self._run = run
        self._timeout_s = timeout_s
        self._process: BaseProcess | None = None

    def perform(self, name: str) -> Verdict:
        """Run one trial; a verdict with `crash` if it did not come to its end."""
        if self._process is None:
            # Spawned, not forked: nothing of what this process holds may change a trial.
            context = multiprocessing.get_context("spawn")
            self._ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs, self._run), daemon=True)
            process.start()
            self._process = process
            theirs.close()
        try:
            self._ours.send(name)
            if not self._ours.poll(self._timeout_s):
                return self._ended(f"took more than {self._timeout_s} s")
            return self._ours.recv()
        except (EOFError, ConnectionError):
            return self._ended("ended the process")

    def _ended(self, what: str) -> Verdict:
        process = self._process
        assert process is not None
        if process.is_alive():
            process.join(1)
        if process.is_alive():
            process.kill()
        process.join()
        self.close()
        code = process.exitcode or 0
        how = signal.Signals(-code).name if code < 0 else f"exit status {code}"
        return Verdict(crash=f"{what}: {how}")

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._ours.close()
            self._process.join(10)
            self._process = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _serve(pipe: Connection, run: Callable[[str], Verdict]) -> None:
    _limit_memory()
    # Where the other end is gone, or the user has had enough, there is nobody to tell.
    with contextlib.suppress(EOFError, ConnectionError, KeyboardInterrupt):
        while True:
            pipe.send(_verdict(pipe.recv(), run))


def _verdict(name: str, run: Callable[[str], Verdict]) -> Verdict:
    try:
        return run(name)
    except KeyboardInterrupt:
        raise
    # A panic of the extension is no Exception.
    except BaseException as error:
        return Verdict(crash=f"{type(error).__name__}: {error}"[:500])


def _limit_memory() -> None:
    try:
        import resource
    except ImportError:  # not a Unix
        return
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
