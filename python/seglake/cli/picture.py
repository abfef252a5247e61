"""A file as a bar of characters: where it is sound, and where it is not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from .report import bytes_of

if TYPE_CHECKING:
    from rich.text import Text

    from seglake import Report

__all__ = ["bar", "cells", "legend"]


class Mark(NamedTuple):
    """How one sort of range is drawn: told apart by its character where there is no colour."""

    character: str
    ascii: str
    style: str
    name: str


# By rank: where several sorts share a cell, the last of them shows. The smallest damage must never be drawn over.
SOUND = Mark("━", "=", "green", "sound")
UNUSED = Mark("·", ".", "bright_black", "unused")
UNLISTED = Mark("?", "?", "yellow", "after the last range listed")
DOUBTFUL = Mark("!", "!", "yellow", "kept, with a cause")
TORN = Mark("~", "~", "bold magenta", "torn tail")
RESTORABLE = Mark("R", "R", "bold yellow", "damaged, and comes back from the parity sidecar")
CORRUPT = Mark("X", "X", "bold red", "corrupt")
_RANK = (SOUND, UNUSED, UNLISTED, DOUBTFUL, RESTORABLE, TORN, CORRUPT)
_BY_KIND = {"corrupt": CORRUPT, "torn_tail": TORN, "repaired": RESTORABLE}


def cells(report: Report, width: int) -> list[Mark]:
    """The file in `width` equal cells, each marked with the worst that it holds.

    Damage stands where the report lists it. Unused space runs to the end of a file by definition, so its size tells
    where it is.
    """
    if report.nbytes == 0:
        return []
    width = min(width, report.nbytes)
    marks = [SOUND] * width
    unused = bytes_of(report, "unused")
    if unused:
        # Only cells that hold nothing else.
        for cell in range(-(-(report.nbytes - unused) * width // report.nbytes), width):
            marks[cell] = UNUSED
    if report.damage_truncated and report.damage:
        _draw(marks, report.damage[-1].end, report.nbytes - unused, report.nbytes, UNLISTED)
    for span in report.damage:
        _draw(marks, span.start, span.end, report.nbytes, _BY_KIND.get(span.kind, DOUBTFUL))
    return marks


def bar(marks: Sequence[Mark], *, unicode: bool) -> Text:
    """The cells as one line of text."""
    from rich.text import Text

    return Text.assemble(*((mark.character if unicode else mark.ascii, mark.style) for mark in marks))


def legend(report: Report, marks: Sequence[Mark], *, unicode: bool) -> Text:
    """What the characters that were drawn mean, and what the sound parts are where they are not all records."""
    from rich.text import Text

    line = Text()
    for mark in _RANK:
        if mark in marks:
            line.append("   " if line else "")
            line.append(mark.character if unicode else mark.ascii, mark.style)
            line.append(f" {mark.name}")
            line.append(_parts(report) if mark is SOUND and report.ok else "")
    return line


def _parts(report: Report) -> str:
    kinds = [total.kind for total in report.totals if total.cause is None and total.kind != "unused"]
    return "" if kinds == ["record"] else f" ({', '.join(kinds)})" if kinds else ""


def _draw(marks: list[Mark], start: int, end: int, whole: int, mark: Mark) -> None:
    """Mark every cell that bytes `start` to `end` of `whole` touch."""
    if start >= end:
        return
    for cell in range(start * len(marks) // whole, -(-end * len(marks) // whole)):
        if _RANK.index(mark) > _RANK.index(marks[cell]):
            marks[cell] = mark
