"""What the driver and the tasks of a run tell each other: plans, how far a task is, and that all are to stop."""

from __future__ import annotations

import contextlib
import json
import uuid
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

from seglake._publish.store import Store

__all__ = ["Exchange", "FolderExchange", "StoreExchange"]

_PLANS: Final = "plan"
_REPORTS: Final = "progress"
_STOP: Final = "stop"


class Exchange(ABC):
    """A folder that the driver and all tasks see, with small files in it.

    Attributes:
        interval_s: how many seconds at least are between two looks at what others have told.
    """

    interval_s: ClassVar[float] = 0.0

    def write_plan(self, task: int, plan: list[Any]) -> None:
        """Writes down which files a task reads: as a file, so that the job itself stays small."""
        self._write(f"{_PLANS}/{task}.json", plan)

    def read_plan(self, task: int) -> list[Any]:
        """Reads what `write_plan` wrote."""
        return self._read(f"{_PLANS}/{task}.json")

    def report(self, task: int, state: list[int]) -> None:
        """Tells how far a task is. Another attempt at it may be doing the same."""
        self._write(f"{_REPORTS}/{task}.json", state)

    def reports(self) -> list[list[int]]:
        """Returns what the tasks have told last."""
        return [self._read(f"{_REPORTS}/{name}") for name in self._names(_REPORTS) if _is_report(name)]

    def stop(self) -> None:
        """Has all tasks stop."""
        self._write(_STOP, [])

    def is_stopped(self) -> bool:
        """Tells whether all tasks are to stop."""
        return self._exists(_STOP)

    @abstractmethod
    def begin(self) -> None:
        """Makes the folders, where there are such."""

    @abstractmethod
    def _write(self, name: str, content: list[Any]) -> None:
        """Writes a file in one step: nobody reads half of it."""

    @abstractmethod
    def _read(self, name: str) -> list[Any]: ...

    @abstractmethod
    def _names(self, folder: str) -> list[str]: ...

    @abstractmethod
    def _exists(self, name: str) -> bool: ...


@dataclass(frozen=True)
class FolderExchange(Exchange):
    """A folder of a mounted file system."""

    folder: Path

    def begin(self) -> None:
        """Makes the folders."""
        for name in (_PLANS, _REPORTS):
            (self.folder / name).mkdir(parents=True, exist_ok=True)

    def _write(self, name: str, content: list[Any]) -> None:
        final = self.folder / name
        new = final.with_name(f"{final.name}-{uuid.uuid4().hex[:8]}.new")
        new.write_text(json.dumps(content))
        new.rename(final)

    def _read(self, name: str) -> list[Any]:
        return json.loads((self.folder / name).read_bytes())

    def _names(self, folder: str) -> list[str]:
        return [path.name for path in (self.folder / folder).iterdir()]

    def _exists(self, name: str) -> bool:
        return (self.folder / name).exists()


@dataclass(frozen=True)
class StoreExchange(Exchange):
    """A folder of a store elsewhere. Each look at it is a request, so nobody looks often."""

    store: Store
    folder: Path

    interval_s = 5.0

    def begin(self) -> None:
        """Does nothing: files make their folders."""

    def report(self, task: int, state: list[int]) -> None:
        """Tells how far a task is, if the store takes it: no run fails for that."""
        with contextlib.suppress(OSError):
            super().report(task, state)

    def reports(self) -> list[list[int]]:
        """Returns what the tasks have told last, but for what is being replaced while it is read."""
        found: list[list[int]] = []
        with contextlib.suppress(OSError):
            for name in filter(_is_report, self._names(_REPORTS)):
                with contextlib.suppress(OSError, ValueError):
                    found.append(self._read(f"{_REPORTS}/{name}"))
        return found

    def is_stopped(self) -> bool:
        """Tells whether all tasks are to stop, if the store says so."""
        try:
            return super().is_stopped()
        except OSError:
            return False

    def _write(self, name: str, content: list[Any]) -> None:
        self.store.write_durably(self.folder, self.folder / name, json.dumps({"content": content}).encode())

    def _read(self, name: str) -> list[Any]:
        found = self.store.read_json(self.folder / name)
        if found is None:
            raise FileNotFoundError(f"{self.store.name(self.folder / name)}: there is no such file")
        return found["content"]

    def _names(self, folder: str) -> list[str]:
        return sorted(self.store.sizes_in(self.folder / folder))

    def _exists(self, name: str) -> bool:
        return self.store.exists(self.folder / name)


def _is_report(name: str) -> bool:
    return name.endswith(".json")
