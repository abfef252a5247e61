"""How each part of a file is drawn: told apart by a letter, a pattern and a word, not by its colour alone."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from ..report import bytes_of

if TYPE_CHECKING:
    from seglake import Report

__all__ = ["MISSING", "STATES", "Run", "State", "runs_of", "within", "worst"]


class State(NamedTuple):
    """One sort of part of a file.

    Attributes:
        letter: what it is in margins, and as the name of its style.
        name: what it is in words.
        style: the name of its pattern and colour.
    """

    letter: str
    name: str
    style: str


MISSING: Final = State("M", "missing beyond the end", "missing")
# By rank: where several share a cell, the last of them shows. The smallest damage must never be drawn over.
_RANKED: Final = (
    State("S", "sound", "sound"),
    State("·", "unused", "unused"),
    State("?", "after the last range listed", "unlisted"),
    State("!", "kept, with a cause", "kept"),
    State("U", "intact, but not reached", "unreached"),
    State("R", "damaged, and in the parity sidecar", "restorable"),
    State("~", "torn tail", "torn"),
    State("X", "corrupt", "corrupt"),
    MISSING,
)
STATES: Final = {own.letter: own for own in _RANKED}
"""By letter, the least first."""
_RANK: Final = {own.letter: rank for rank, own in enumerate(_RANKED)}
_BY_KIND: Final = {"corrupt": "X", "torn_tail": "~", "repaired": "R"}
# By their causes the bytes check: what leads to them does not.
_UNREACHED: Final = ("out_of_order", "unreferenced", "offset_out_of_bounds")


class Run(NamedTuple):
    """Bytes `start` to `end` of one state."""

    start: int
    end: int
    letter: str


def runs_of(report: Report) -> list[Run]:
    """The file in runs, without gaps, in file order: what no range is listed of is sound."""
    unused = report.nbytes - bytes_of(report, "unused")
    found: list[Run] = []
    spans = [] if report.wrong_key else report.damage
    at = 0
    for span in spans:
        # Unused space runs to the end of a file, and a torn tail may be before it.
        found += _sound(at, span.start, unused)
        letter = "U" if span.cause in _UNREACHED else _BY_KIND.get(span.kind, "!")
        if found and found[-1].letter == letter and found[-1].end == span.start:
            found[-1] = found[-1]._replace(end=span.end)
        else:
            found.append(Run(span.start, span.end, letter))
        at = span.end
    if report.damage_truncated and spans and at < unused:
        found.append(Run(at, unused, "?"))
        at = unused
    return found + _sound(at, report.nbytes, unused)


def _sound(start: int, end: int, unused: int) -> list[Run]:
    middle = min(max(start, unused), end)
    return [own for own in (Run(start, middle, "S"), Run(middle, end, "·")) if own.end > own.start]


def within(runs: Sequence[Run], start: int, end: int) -> Iterator[Run]:
    """The runs that a range touches."""
    first = max(bisect_right(runs, start, key=lambda own: own.start) - 1, 0)
    for at in range(first, len(runs)):
        if runs[at].start >= end:
            return
        if runs[at].end > start:
            yield runs[at]


def worst(runs: Sequence[Run], start: int, end: int) -> str:
    """The letter of the worst state in a range; nothing where there is none."""
    return max((own.letter for own in within(runs, start, end)), key=_RANK.__getitem__, default="")
