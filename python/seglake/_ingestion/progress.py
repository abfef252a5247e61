"""How far a task is, and whether it is to stop."""

import time
from collections.abc import Callable
from typing import Final

from .exchange import Exchange

__all__ = ["StopError", "TaskProgress"]

_REPORT_INTERVAL_S: Final = 0.25


class StopError(Exception):
    """The run stops: another task has found the key to be wrong, or has failed, or the caller was interrupted."""


class TaskProgress:
    """Tells the driver now and then how far a task is."""

    def __init__(self, exchange: Exchange, task: int, is_stopped: Callable[[], bool]) -> None:
        self._exchange = exchange
        self._task = task
        self._is_stopped = is_stopped
        self._files = 0
        self._bytes_before = 0
        self._bytes_in_file = 0
        self._start = 0
        self._size = 0
        self._records = 0
        self._damage = 0
        self._written_at = 0.0

    def begin(self, start: int, size: int) -> None:
        """Notes that a file is read from an offset on, and how many bytes of it about."""
        self._start = start
        self._size = size
        self._bytes_in_file = 0

    def read_to(self, offset: int, records: int) -> None:
        """Notes that the present file is read up to an offset, and that records were found."""
        self._bytes_in_file = min(self._size, max(self._bytes_in_file, offset - self._start))
        self._records += records
        self._write_if_due()

    def damage_found(self) -> None:
        """Notes that a damaged range was found."""
        self._damage += 1

    def file_done(self, size: int) -> None:
        """Notes that a file is finished, of which as many bytes were to be read."""
        self._files += 1
        self._bytes_before += size
        self._bytes_in_file = 0
        self._write_if_due()

    def _write_if_due(self) -> None:
        if time.monotonic() - self._written_at >= max(_REPORT_INTERVAL_S, self._exchange.interval_s):
            if self._is_stopped() or self._exchange.is_stopped():
                raise StopError
            self.write()

    def write(self) -> None:
        """Writes how far it is."""
        self._written_at = time.monotonic()
        state = [self._files, self._bytes_before + self._bytes_in_file, self._records, self._damage]
        self._exchange.report(self._task, state)
