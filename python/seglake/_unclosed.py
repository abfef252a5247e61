"""The end of a process: writers that nobody closed write what they have while an error can still be reported."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from io import StringIO
from typing import TYPE_CHECKING, Any

from ._native import keep_unclosed

if TYPE_CHECKING:
    from multiprocessing.util import Finalize


class _Failing:
    """Standard error that cannot be flushed: Python's way to end a process with a status of its own (120)."""

    closed = False

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def flush(self) -> None:
        self._stream.flush()
        raise OSError("a writer that nobody closed has lost records")


@atexit.register
def _end() -> None:
    if keep_unclosed():
        sys.stderr = _Failing(sys.stderr or StringIO())


def _end_child() -> None:
    # As at the end of any process: threads that still write come first. multiprocessing would wait for them afterwards.
    threading._shutdown()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    # Another exception has a status of its own, and its traceback.
    if keep_unclosed() and isinstance(sys.exception(), SystemExit | None):
        atexit.unregister(_end)  # called in a spawned child alone
        sys.exit(120)


_child: tuple[int, Finalize] | None = None


def opened() -> None:
    """Prepares the end of a child of multiprocessing, which calls nothing of atexit. Called for each new writer."""
    global _child
    if "multiprocessing.util" in sys.modules:
        from multiprocessing import parent_process
        from multiprocessing.util import Finalize

        # A child forgets what its parent would call at the end.
        if parent_process() is not None and not (_child and _child[0] == os.getpid() and _child[1].still_active()):
            _child = (
                os.getpid(),
                Finalize(None, _end_child, exitpriority=-sys.maxsize),
            )  # last: what else is called may write
