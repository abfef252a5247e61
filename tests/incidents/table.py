"""What came of all cases, as a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import median

from .judge import Judged, Kind

TARGET = 0.95
"""The share of causes, and of next steps, that must be right."""

# Of what others are wrong is said in the table.
_IN_FULL = (Kind.PROVEN, Kind.FAILS, Kind.LOSES)
_MOST_CHARACTERS = 200


def lines(found: Sequence[Judged]) -> Iterator[str]:
    """The cases by incident, what is wrong with some, and what they add up to."""
    yield from _aligned([_HEAD, *map(_row, found)])
    yield ""
    for own in found:
        for fault in own.faults:
            if fault.kind in _IN_FULL:
                yield f"{own.case.name}: {fault.kind}: {fault.detail}".replace("\n", " ")[:_MOST_CHARACTERS]
    yield ""
    incidents = list(dict.fromkeys(own.case.incident for own in found))
    rows = [_totals(incident, [own for own in found if own.case.incident == incident]) for incident in incidents]
    yield from _aligned([_TOTALS, *rows, _totals("total", found)])


def shares(found: Sequence[Judged]) -> tuple[float, float]:
    """How many of the causes are right, and how many of the next steps."""
    return sum(own.is_named for own in found) / len(found), sum(own.is_advised for own in found) / len(found)


_HEAD = (
    "case",
    "incident",
    "",
    "cause",
    "true cause",
    "certainty",
    "",
    "next",
    "true next",
    "undone",
    "words",
    "faults",
)
_TOTALS = ("incident", "cases", "cause", "next", "undone", "words", *Kind)


def _row(own: Judged) -> tuple[str, ...]:
    case, answer = own.case, own.answer
    faults = " ".join(dict.fromkeys(fault.kind for fault in own.faults))
    return (
        case.name,
        case.incident,
        "" if own.is_named else "X",
        " ".join((answer.reason, *answer.others)),
        " ".join(sorted(case.reasons)),
        answer.certainty or "",
        "" if own.is_advised else "X",
        own.step,
        " ".join(sorted(case.steps)),
        "yes" if own.is_undone else "",
        str(answer.words),
        faults,
    )


def _totals(name: str, found: Sequence[Judged]) -> tuple[str, ...]:
    faults = Counter(fault.kind for own in found for fault in own.faults)
    return (
        name,
        str(len(found)),
        _share(sum(own.is_named for own in found), len(found)),
        _share(sum(own.is_advised for own in found), len(found)),
        str(sum(own.is_undone for own in found)),
        f"{median(own.answer.words for own in found):.0f}",
        *(str(faults[kind]) for kind in Kind),
    )


def _share(part: int, whole: int) -> str:
    return f"{part}/{whole} {part / whole:.0%}"


def _aligned(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
