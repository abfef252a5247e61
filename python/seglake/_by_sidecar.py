"""Files and their parity sidecars: the rule for both, and files that sidecars alone verify."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._errors import FormatError
from ._native import Report, detect, verify, verify_parity
from ._types import ParityReport

__all__ = ["RAW", "NotASegmentError", "is_sound", "verified"]

RAW = "raw"
"""The format of what is protected whatever it is."""


def is_sound(report: Report) -> bool:
    """Tells whether a file and its sidecar, if it was verified by one, were found sound: the rule of all verbs."""
    return report.ok and (report.parity is None or report.parity.outcome == "sound")


class NotASegmentError(Exception):
    """Neither the content of a file nor its name tells a format, and it has no sidecar. `error` says so to users."""

    def __init__(self, error: FormatError) -> None:
        super().__init__(error)
        self.error = error


def verified(
    source: Callable[[], Any],
    *,
    format: str | None = None,
    parity: Any = "auto",
    progress: Callable[[int, int], object] | None = None,
    **how: Any,
) -> Report | ParityReport:
    """Verifies a file by its format, or one that is not a segment by its parity sidecar alone.

    Args:
        source: gives what to read, from its start.
        format: as in `verify`; "raw" is not a segment.
        parity: as in `verify`.
        progress: likewise.
        how: other arguments of `verify`.

    Raises:
        NotASegmentError: there is nothing to verify it by.
        SeglakeError, OSError: as `verify`.
    """
    unknown = FormatError(
        "expected a parity sidecar to verify the file by, found none",
        path=None,
        next="`seglake protect --format raw` writes one; --sidecar names one that is elsewhere",
    )
    if format != RAW:
        try:
            return verify(source(), format=format, parity=parity, progress=progress, **how)
        except FormatError as error:
            if format is not None or detect(source(), **_named(how, "dialect", "key")).format is not None:
                raise
            unknown = error
    found = verify_parity(source(), parity=parity, progress=progress)
    if found is None:
        raise NotASegmentError(unknown)
    return found


def _named(how: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: how[name] for name in names if name in how}
