"""By which parity sidecars an ingest reads its files."""

from typing import Final, NamedTuple

import seglake
from seglake._by_sidecar import covered, listed_size

__all__ = ["BESIDE", "Sidecars"]


class Sidecars(NamedTuple):
    """The sidecars that files are read by.

    Attributes:
        parity: "auto" stands for those beside files, None for none; else the sidecar of one file.
        only: the path of the file that a sidecar is named for.
    """

    parity: str | None = "auto"
    only: str | None = None

    def of(self, path: str) -> str | None:
        """Returns the argument `parity` for a file."""
        return self.parity if self.only in (None, path) else "auto"

    def covers(self, path: str) -> bool:
        """Tells whether a file has a sidecar."""
        return covered(path, self.of(path)) is not None

    def size(self, path: str, size: int) -> int:
        """Returns up to where a file is read that had a size when it was listed."""
        return listed_size(path, size, self.of(path))

    def format(self, path: str, **how: str | None) -> str | None:
        """Returns the format of a file as its sidecar restores it; None if it has none, or the format cannot be told.

        Args:
            path: the file.
            how: arguments of `seglake.open`.
        """
        parity = self.of(path)
        if covered(path, parity) is None:
            return None
        try:
            with seglake.open(path, parity=parity, **how) as reader:  # pyright: ignore[reportArgumentType]
                return reader.format
        except seglake.FormatError:
            return None


BESIDE: Final = Sidecars()
"""Those beside files."""
