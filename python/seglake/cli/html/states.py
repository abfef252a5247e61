"""How each part of a file is drawn: told apart by a letter, a pattern and a word, not by its colour alone."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from ..advice import misread
from ..report import bytes_of

if TYPE_CHECKING:
    from seglake import Report, Span

__all__ = ["MISSING", "STATES", "UNREACHED", "Run", "State", "runs_of", "within", "worst"]


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
    State("N", "unreadable until it is read rightly", "unlisted"),
    State("!", "kept, with a cause", "kept"),
    State("L", "not reached: nothing intact leads to it", "unlisted"),
    State("U", "intact, but not read", "unreached"),
    State("C", "intact, and comes back with the damage undone", "back"),
    State("R", "damaged, and comes back from the parity sidecar", "restorable"),
    State("~", "torn tail", "torn"),
    State("X", "corrupt", "corrupt"),
    MISSING,
)
STATES: Final = {own.letter: own for own in _RANKED}
"""By letter, the least first."""
_RANK: Final = {own.letter: rank for rank, own in enumerate(_RANKED)}
_BY_KIND: Final = {"corrupt": "X", "torn_tail": "~", "repaired": "R"}
# The first check, and are left out. Of the others nothing says what they are.
_BY_CAUSE: Final = {"out_of_order": "U", "unreferenced": "L", "offset_out_of_bounds": "L"}
UNREACHED: Final = tuple(_BY_CAUSE)


_UNIT_BYTES: Final = 512


class Run(NamedTuple):
    """Bytes `start` to `end` of one state."""

    start: int
    end: int
    letter: str


def runs_of(report: Report, nbytes: int) -> list[Run]:
    """The file in runs, without gaps, in file order: what no range is listed of is sound.

    Damaged bytes are intact, and come back, if what explains them is elsewhere, and they are verified without it. A
    segment of `nbytes` that is shorter than its log says goes on with what is missing.
    """
    if nbytes < report.nbytes:
        there = [run._replace(end=min(run.end, nbytes)) for run in runs_of(report, report.nbytes) if run.start < nbytes]
        return [*there, Run(nbytes, report.nbytes, MISSING.letter)]
    unused = report.nbytes - bytes_of(report, "unused")
    found: list[Run] = []
    if misread(report):
        return [Run(0, report.nbytes, "N")] if report.nbytes else []
    spans = report.damage
    places: dict[int, tuple[int, int] | None] = {
        span.start: None if own.reason == "concatenated" else own.place
        for own in report.diagnoses
        if own.regained or own.is_sound
        for span in own.ranges
    }
    at = 0
    for span in spans:
        # Unused space runs to the end of a file, and a torn tail may be before it.
        found += _sound(at, span.start, unused)
        letter = _BY_CAUSE.get(span.cause or "") or _BY_KIND.get(span.kind, "!")
        for run in _around(span, places.get(span.start, (span.start, span.end)), letter):
            if found and found[-1].letter == run.letter and found[-1].end == run.start:
                found[-1] = found[-1]._replace(end=run.end)
            else:
                found.append(run)
        at = span.end
    if report.damage_truncated and spans and at < unused:
        found.append(Run(at, unused, "?"))
        at = unused
    return found + _sound(at, report.nbytes, unused)


def _around(span: Span, place: tuple[int, int] | None, letter: str) -> Iterator[Run]:
    """A range of which only the bytes at a place are damaged: the others are intact, but for the units at its edges."""
    first, last = place or (span.end, span.end)
    first = min(max(first - _UNIT_BYTES, span.start), span.end)
    last = max(min(last + _UNIT_BYTES, span.end), first)
    for run in (Run(span.start, first, "C"), Run(first, last, letter), Run(last, span.end, "C")):
        if run.end > run.start:
            yield run


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
