"""What the log says of files: one line for each kind of trouble, however many files there are."""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager

__all__ = ["Notes"]


class Notes:
    """Collects what is to be said of files."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[str, int]] = {}

    def add(self, kind: str, text: str) -> None:
        """Notes something about a file. Of each kind the first text is shown, and how many others there are."""
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
