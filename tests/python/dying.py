"""Processes that die in front of a step, as a machine may do at any time."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any


def in_a_process(work: Callable[[], object]) -> int:
    """Runs something in a fork; returns how that ended."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def import_what_takes(work: Callable[[], object]) -> None:
    """Runs something in a fork, and imports the modules that it imported. No thread of it is left in this process."""
    with tempfile.TemporaryFile("w+") as names:

        def noted() -> None:
            work()
            print(*sys.modules, file=names, flush=True)

        if in_a_process(noted) == 0:
            names.seek(0)
            for name in names.read().split():
                with suppress(ImportError):
                    importlib.import_module(name)


def print_deaths(work: Callable[[int], object], most: int, stride: int = 1) -> None:
    """Runs something in forks, each with the number of the step that it is to die at, and prints how each ended.

    The numbers begin with 1 and are a stride apart. The last fork is the first that does not die. Before them one with
    the number 0, which does not die either, says what is imported, so that no other fork spends its time on that.
    """
    import_what_takes(lambda: work(0))
    for fatal in range(1, most, stride):
        status = in_a_process(lambda fatal=fatal: work(fatal))
        print(status, flush=True)
        if status != -signal.SIGKILL:
            break


def deadly(
    target: object, names: Iterable[str], fatal: int, patch: Callable[[object, str, Any], None] = setattr
) -> None:
    """Has the process die in front of the n-th call of any of these methods."""
    calls = 0

    def before(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == fatal:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments, **options)

        return call

    for name in names:
        patch(target, name, before(getattr(target, name)))
