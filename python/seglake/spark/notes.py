"""What the log says of files: one line for each kind of trouble, however many files there are."""

from __future__ import annotations

import logging
from collections.abc import Generator, Hashable
from contextlib import contextmanager

__all__ = ["Notes"]


class Notes:
    """Collects what is to be said of files.

    Attributes:
        said: what was said once, and is not said again.
    """

    def __init__(self) -> None:
        self.said: set[Hashable] = set()
        self._found: dict[str, tuple[str, int]] = {}

    def add(self, kind: str, text: str, *, once: Hashable = None) -> None:
        """Notes something about a file. Of each kind the first text is shown, and how many others there are."""
        if once is not None:
            if once in self.said:
                return
            self.said.add(once)
        first, number = self._found.get(kind, (text, 0))
        self._found[kind] = first, number + 1

    @contextmanager
    def written(self, log: logging.Logger) -> Generator[Notes]:
        """Writes the lines when the block ends, however it ends."""
        try:
            yield self
        finally:
            for first, number in self._found.values():
                log.warning("%s%s", first, f" ({number - 1:,} more files likewise)" if number > 1 else "")
            self._found.clear()
