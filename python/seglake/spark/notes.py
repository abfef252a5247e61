"""What the log says of files: one line for each kind of trouble, however many files there are."""

from __future__ import annotations

import logging
from collections.abc import Generator, Hashable
from contextlib import contextmanager

__all__ = ["Notes"]


class Notes:
    """Collects what is to be said of files."""

    def __init__(self) -> None:
        self._said: dict[str, Hashable] = {}
        self._found: dict[str, tuple[str, int]] = {}

    def add(self, kind: str, text: str, *, once: tuple[str, Hashable] | None = None) -> None:
        """Notes something about a file. Of each kind the first text is shown, and how many others there are.

        Args:
            kind: what kind of trouble it is.
            text: the line of the log.
            once: a file, and what is said of it: again only when that has changed.
        """
        if once is not None:
            if self.has_said(*once):
                return
            self._said[once[0]] = once[1]
        first, number = self._found.get(kind, (text, 0))
        self._found[kind] = first, number + 1

    def has_said(self, file: str, what: Hashable) -> bool:
        """Tells whether this is what was said last of a file."""
        return self._said.get(file) == what

    @contextmanager
    def written(self, log: logging.Logger) -> Generator[Notes]:
        """Writes the lines when the block ends, however it ends."""
        try:
            yield self
        finally:
            for first, number in self._found.values():
                log.warning("%s%s", first, f" ({number - 1:,} more files likewise)" if number > 1 else "")
            self._found.clear()
