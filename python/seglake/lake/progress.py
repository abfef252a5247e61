"""How far the tasks of a run are, and whether they are to stop."""

import threading
from dataclasses import dataclass, field

__all__ = ["Progress", "StoppedError", "TaskProgress"]


class StoppedError(Exception):
    """The run stops: another task has failed, or the caller was interrupted."""


@dataclass
class Progress:
    """What all tasks of this process have done. Those of others report nothing before their end."""

    files: int = 0
    nbytes: int = 0
    records: int = 0
    damage: int = 0
    stopped: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def add(self, *, files: int = 0, nbytes: int = 0, records: int = 0, damage: int = 0) -> None:
        """Adds to it.

        Raises:
            StoppedError: the task is to stop.
        """
        with self._lock:
            self.files += files
            self.nbytes += nbytes
            self.records += records
            self.damage += damage
        if self.stopped:
            raise StoppedError

    def stop(self) -> None:
        """Has all tasks stop."""
        self.stopped = True


class TaskProgress:
    """How far one file is."""

    def __init__(self, progress: Progress, start: int, nbytes: int) -> None:
        self._progress = progress
        self._start = start
        self._nbytes = nbytes
        self._done = 0

    def read_to(self, offset: int, records: int = 0, damage: int = 0) -> None:
        """Notes that it is read up to an offset, and what was found."""
        done = min(self._nbytes, max(self._done, offset - self._start))
        self._progress.add(nbytes=done - self._done, records=records, damage=damage)
        self._done = done

    def end(self) -> None:
        """Notes that it is finished."""
        self._progress.add(files=1, nbytes=self._nbytes - self._done)
        self._done = self._nbytes
