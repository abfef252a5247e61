"""The end of a process: writers that nobody closed write what they have while an error can still be reported."""

from __future__ import annotations

import atexit
import sys
from io import StringIO
from typing import Any

from ._native import keep_unclosed


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
