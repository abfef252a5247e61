"""Processes that die in front of a step, as a machine may do at any time."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterable
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


def print_deaths(work: Callable[[int], object], most: int, stride: int = 1) -> None:
    """Runs something in forks, each with the number of the step that it is to die at, and prints how each ended.

    The numbers begin with 1 and are a stride apart. The last fork is the first that does not die.
    """
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
