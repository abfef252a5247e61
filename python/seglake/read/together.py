"""Which files are read together: those of one format, or active and sealed segments, but no segment with its copy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from threading import Lock
from typing import TYPE_CHECKING, Any

from seglake._errors import FormatError, SeglakeError
from seglake._native import formats, identity
from seglake._text import printable_path
from seglake._types import Formats, OpenOptions

if TYPE_CHECKING:
    from seglake.stores import SegmentFile

__all__ = ["Together", "identity_of"]


class Together:
    """Holds the files that are read together against the first of them that is no segment of a log.

    Args:
        options: what concerns some formats only, as in `open`.
        identities: returns the `identity_of` each file, by their paths. It is called once, and only if there are files
            of two formats.

    Attributes:
        formats: all formats, by their names.
    """

    def __init__(self, options: OpenOptions | None, identities: Callable[[], Mapping[str, str | None]]) -> None:
        self.formats: Formats = formats(options=options)
        self._identities = identities
        self._first: tuple[SegmentFile, str] | None = None
        self._alike: frozenset[str] | None = None
        self._looking = Lock()

    @property
    def format(self) -> str | None:
        """The format of that file; of segments of logs alone that of the first; None without any."""
        return self._first and self._first[1]

    def add(self, file: SegmentFile, format: str) -> None:
        """Adds a file. Once there is one that is no segment of a log, any thread may.

        Raises:
            FormatError: its columns are others, or it is of another format and begins with the same record as another
                file: it is probably that one, sealed.
        """
        first, expected = self._first or (file, format)
        if format != expected and (
            self.formats[format].columns != self.formats[expected].columns
            or (file.segment is None and first.segment is None and file.path in self._begin_alike())
        ):
            raise FormatError(
                f"is {format}, while {printable_path(first.path)} is {expected}: files are read together if they "
                "are of one format, or active and sealed segments of which none begins as another one, as a copy does",
                path=file.path,
                next="choose the files with `glob`",
            )
        if self._first is None or (file.segment is None and first.segment is not None):
            self._first = file, format

    def _begin_alike(self) -> frozenset[str]:
        """Returns the paths of files with the first record of another one."""
        with self._looking:
            if self._alike is None:
                identities = self._identities()
                times = Counter(each for each in identities.values() if each is not None)
                self._alike = frozenset(path for path, each in identities.items() if times[each or ""] > 1)
            return self._alike


def identity_of(file: SegmentFile, source: Callable[[SegmentFile], Any], **arguments: Any) -> str | None:
    """Returns the identity of what `source` gives of a file; None where it has no record, or cannot be read."""
    try:
        return identity(source(file), **arguments)
    except (SeglakeError, OSError):
        return None  # reading it raises the error
