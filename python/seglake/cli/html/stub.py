"""Advice, until there is that of the command line."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, NamedTuple

from ..vocabulary import title

if TYPE_CHECKING:
    from seglake import Report
    from seglake.types import Diagnosis


class Advice(NamedTuple):
    """As that of `seglake.cli.advice`."""

    headline: str
    lost: str
    kept: str
    command: str | None
    do_not: str | None
    evidence: str
    against: str
    question: str | None


def advise(report: Report, diagnosis: Diagnosis | None, path: str | None) -> Advice:
    """What happened, what is lost, and what to do."""
    if diagnosis is None:
        return Advice("sound" if report.ok else "damaged", "nothing", "all", None, None, "", "", None)
    return Advice(
        f"{title(diagnosis.reason)} ({diagnosis.certainty})",
        f"bytes {diagnosis.start:,} to {diagnosis.end:,}",
        f"{report.records:,} records",
        shlex.join(["seglake", "recover", path or "FILE", "NEW"]),
        "append to it",
        diagnosis.evidence,
        "",
        None,
    )
