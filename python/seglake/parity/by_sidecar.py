"""Files and their parity sidecars: the rule for both, and files that sidecars alone verify."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from seglake._errors import FormatError
from seglake._native import Report, coverage, detect, verify, verify_parity
from seglake._types import Coverage, ParityReport

__all__ = ["RAW", "NotASegmentError", "covered", "is_sound", "listed_size", "verified"]

RAW = "raw"
"""The format of what is protected whatever it is."""


def is_sound(report: Report) -> bool:
    """Tells whether a file and its sidecar, if it was verified by one, were found sound: the rule of all verbs."""
    return report.ok and (report.parity is None or report.parity.outcome == "sound")


def covered(path: str, sidecar: Any = "auto") -> Coverage | None:
    """Returns what `coverage` does, and sooner for a path that has no sidecar, as most have none.

    Raises:
        SeglakeError, OSError: as `coverage`.
    """
    may_have = sidecar != "auto" or os.path.lexists(f"{path}.par") or Path(path).is_symlink()
    return coverage(path, sidecar=sidecar) if may_have and sidecar is not None else None


def listed_size(path: str, size: int, sidecar: Any = "auto") -> int:
    """Returns up to where a file is read that had a size when it was listed: what was cut off of it counts as listed.

    Raises:
        SeglakeError, OSError: as `coverage`.
    """
    found = covered(path, sidecar)
    if found is None or found.covered_bytes is None or size < found.nbytes:
        return size
    return max(size, found.covered_bytes)


class NotASegmentError(Exception):
    """Neither the content of a file nor its name tells a format, and it has no sidecar. `error` says so to users."""

    def __init__(self, error: FormatError) -> None:
        super().__init__(error)
        self.error = error


def verified(
    source: Callable[[], Any],
    *,
    format: str | None = None,
    sidecar: Any = "auto",
    progress: Callable[[int, int], object] | None = None,
    **how: Any,
) -> Report | ParityReport:
    """Verifies a file by its format, or one that is not a segment by its parity sidecar alone.

    Args:
        source: gives what to read, from its start.
        format: as in `verify`; "raw" is not a segment.
        sidecar: as in `verify`.
        progress: likewise.
        how: other arguments of `verify`.

    Raises:
        NotASegmentError: there is nothing to verify it by.
        SeglakeError, OSError: as `verify`.
    """
    unknown = FormatError(
        "expected a parity sidecar to verify the file by, found none",
        path=None,
        next="`seglake protect --format raw` writes one; `sidecar` names one that is elsewhere",
    )
    if format != RAW:
        try:
            return verify(source(), format=format, sidecar=sidecar, progress=progress, **how)
        except FormatError as error:
            if format is not None or detect(source(), **_named(how, "key", "options")).format is not None:
                raise
            unknown = error
    found = verify_parity(source(), sidecar=sidecar, progress=progress)
    if found is None:
        raise NotASegmentError(unknown)
    return found


def _named(how: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: how[name] for name in names if name in how}
