"""What an ingest did, for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from .advice import meaning
from .escape import printable
from .table import table
from .terminal import console

if TYPE_CHECKING:
    from rich.console import Console

    from seglake.spark import IngestResult

# What a person can take in; the files table and --json have them all.
_MOST_PATHS = 20


def show(result: IngestResult, stream: TextIO) -> None:
    """The totals, the damage by cause, and what could not be read."""
    out = console(stream)
    sound = result.files - result.damaged_files - len(result.errors)
    totals = [
        ("files", f"{result.files:,}"),
        ("  sound", f"{sound:,}"),
        ("  damaged", f"{result.damaged_files:,}"),
        ("  unreadable", f"{len(result.errors):,}"),
        ("records", f"{result.records:,}"),
        ("bytes", f"{result.bytes:,}"),
        ("seconds", f"{result.seconds:,.1f}"),
        ("records/s", f"{result.records_per_second:,.0f}"),
    ]
    out.print(table(None, totals, right=(1,)), soft_wrap=True)
    if result.damage:
        rows = [
            (cause, f"{total.ranges:,}", f"{total.bytes:,}", meaning(cause))
            for cause, total in sorted(result.damage.items())
        ]
        out.print()
        out.print(table(("damage", "ranges", "bytes", "meaning"), rows, right=(1, 2), style="red"), soft_wrap=True)
    _paths(out, "unreadable", result.errors)
    _paths(out, "skipped", result.skipped)
    out.print()
    for name in result.formats:
        out.print(printable(f"{result.destination.rstrip('/')}/{name}/{{records,damage,files}}/"), soft_wrap=True)
    if not result.files:
        out.print("nothing to ingest: no files were found")


def _paths(out: Console, title: str, reasons: Sequence[tuple[str, str]]) -> None:
    if not reasons:
        return
    out.print()
    out.print(f"{title}:", style="bold")
    for path, reason in reasons[:_MOST_PATHS]:
        out.print(f"  {printable(path)}: {printable(reason)}", soft_wrap=True)
    if len(reasons) > _MOST_PATHS:
        out.print(f"  ... and {len(reasons) - _MOST_PATHS:,} more")
