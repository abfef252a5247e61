"""Keeps what child processes write (a Java virtual machine, Python workers) away from our own output."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

_OUTPUT, _ERROR = 1, 2


@dataclass
class Diverted:
    """Where output goes while it is diverted."""

    error: TextIO
    """Our own standard error, as it was."""
    log: Path
    """What everybody else writes, standard output and standard error together."""
    keep_log: bool = False
    """Whether the log stays when the block ends."""

    def log_text(self, text: str) -> None:
        """Add a text of our own to the log."""
        with self.log.open("a", encoding="utf-8", errors="backslashreplace") as log:
            log.write(f"{text}\n")


@contextmanager
def diverted() -> Generator[Diverted]:
    """Send both output descriptors of this process, and of all it starts, to a log file while the block runs.

    Java and Spark write to the descriptors that they inherit before any setting of theirs is read: nothing above the
    descriptors keeps them quiet. A process that outlives the block goes on writing to the log.
    """
    with tempfile.NamedTemporaryFile(prefix="seglake-spark-", suffix=".log", delete=False) as file:
        log = Path(file.name)
        _flush()
        saved = {descriptor: os.dup(descriptor) for descriptor in (_OUTPUT, _ERROR)}
        for descriptor in saved:
            os.dup2(file.fileno(), descriptor)
    error = os.fdopen(saved[_ERROR], "w", encoding=sys.stderr.encoding, errors="backslashreplace", closefd=False)
    now = Diverted(error, log)
    try:
        with error:
            yield now
    finally:
        _flush()
        for descriptor, original in saved.items():
            os.dup2(original, descriptor)
            os.close(original)
        if not now.keep_log:
            log.unlink()


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
