"""What came of all cases, as a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from .judge import Judged

TARGET = 0.95
"""The share of causes, and of next steps, that must be right."""


def lines(found: Sequence[Judged]) -> Iterator[str]:
    """The cases by incident, then what they add up to."""
    yield from _aligned([_HEAD, *map(_row, found)])
    yield ""
    yield from (f"{own.case.name}: {fault}" for own in found for fault in own.faults)
    yield ""
    incidents = list(dict.fromkeys(own.case.incident for own in found))
    rows = [_totals(incident, [own for own in found if own.case.incident == incident]) for incident in incidents]
    yield from _aligned([("incident", "cases", "cause", "next", "words", "faults"), *rows, _totals("total", found)])


def shares(found: Sequence[Judged]) -> tuple[float, float]:
    """How many of the causes are right, and how many of the next steps."""
    return sum(own.is_named for own in found) / len(found), sum(own.is_advised for own in found) / len(found)


_HEAD = ("case", "incident", "", "cause", "true cause", "certainty", "", "next", "true next", "words", "beside it")


def _row(own: Judged) -> tuple[str, ...]:
    case, answer = own.case, own.answer
    return (
        case.name,
        case.incident,
        "" if own.is_named else "X",
        answer.reason,
        " ".join(sorted(case.reasons)),
        answer.certainty or "",
        "" if own.is_advised else "X",
        own.step,
        " ".join(sorted(case.steps)),
        str(answer.words),
        " ".join(answer.others),
    )


def _totals(name: str, found: Sequence[Judged]) -> tuple[str, ...]:
    of = len(found)
    named, advised = sum(own.is_named for own in found), sum(own.is_advised for own in found)
    words = median(own.answer.words for own in found)
    faults = sum(len(own.faults) for own in found)
    return (
        name,
        str(of),
        f"{named}/{of} {named / of:.0%}",
        f"{advised}/{of} {advised / of:.0%}",
        f"{words:.0f}",
        str(faults),
    )


def _aligned(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
