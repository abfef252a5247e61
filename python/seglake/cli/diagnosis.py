"""What damage probably comes from, for people: a few ranges in full, the others counted."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from seglake._instants import instant_us

from .render import count, printable

if TYPE_CHECKING:
    from rich.text import Text

    from seglake import Diagnosis, Neighbour, Repair, Report

# What a person can take in; --json has them all.
_MOST_SHOWN = 5
_LABEL_CELLS = 10
_TITLES = {
    "flipped_bit": "single flipped bit",
    "zeroed_sector": "zeroed sector",
    "erased_sector": "erased sector (0xff)",
    "moved_sector": "sector written to the wrong place",
    "duplicated_sector": "duplicated sector",
    "duplicated_records": "records written twice",
    "stale_data": "older records",
    "inserted_bytes": "bytes inserted",
    "missing_bytes": "bytes missing",
    "interrupted_write": "interrupted write",
    "truncated": "file cut off",
    "text_conversion": "copied as text",
    "wrong_key": "another key",
    "other_dialect": "another dialect",
    "other_content": "something else's content",
    "as_written": "intact, but written wrong",
    "lost_reference": "reference to what is not there",
    "consequence": "follows from other damage",
    "unknown": "unknown",
}
REASONS = tuple(_TITLES)
"""All of them, as the library names them."""


def title(reason: str) -> str:
    """A reason in a few words."""
    return _TITLES.get(reason, reason)


def explained(report: Report, width: int) -> Iterator[Text]:
    """The likely reasons of the first damaged ranges, a block each, and a line on the others.

    Ranges one behind the other that share reason and evidence are one block.

    Args:
        report: a report whose diagnoses are wanted.
        width: where lines are broken, in cells.
    """
    blocks = _blocks(report.diagnoses)
    said: set[str] = set()
    for block in blocks[:_MOST_SHOWN]:
        yield _block(block, width, next_too=block[0].next not in said)
        said.add(block[0].next)
    if blocks[_MOST_SHOWN:]:
        yield _others([own for block in blocks[_MOST_SHOWN:] for own in block])


def _blocks(diagnoses: list[Diagnosis]) -> list[list[Diagnosis]]:
    blocks: list[list[Diagnosis]] = []
    for own in diagnoses:
        last = blocks[-1][-1] if blocks else None
        if last is not None and (last.reason, last.evidence) == (own.reason, own.evidence):
            blocks[-1].append(own)
        else:
            blocks.append([own])
    return blocks


def _others(diagnoses: list[Diagnosis]) -> Text:
    from rich.text import Text

    counted = Counter(title(own.reason) for own in diagnoses)
    reasons = ", ".join(f"{number:,} {reason}" for reason, number in counted.most_common())
    return Text(f"... and {count(len(diagnoses), 'more range')} explained by --json: {reasons}")


def _block(block: list[Diagnosis], width: int, *, next_too: bool) -> Text:
    from rich.text import Text

    first, last = block[0], block[-1]
    where = f"{first.start:,} to {last.end:,}"
    if len(block) > 1:
        apart = any(own.end < behind.start for own, behind in pairwise(block))
        where += f" ({len(block):,} ranges{', other bytes between them' if apart else ''})"
    text = Text.assemble((where, "bold"), ": ", (title(first.reason), "" if first.certainty is None else "bold"))
    text.append("" if first.certainty is None else f" ({first.certainty})")
    lines = [("shown by", first.evidence)]
    lines += [("before", _neighbour(first.before)), ("after", _neighbour(last.after))]
    lines += [("proposal", _proposal(repair)) for own in block for repair in own.repairs]
    if next_too:
        lines.append(("next", first.next))
    for label, content in lines:
        text.append("\n" + _line(label, content, width))
    return text


def _line(label: str, content: str, width: int) -> str:
    head = f"  {label:<{_LABEL_CELLS}}"
    return textwrap.fill(
        content,
        max(width, len(head) + 20),
        initial_indent=head,
        subsequent_indent=" " * len(head),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _neighbour(own: Neighbour | None) -> str:
    if own is None:
        return "no good record"
    parts = [_identifier(own.id)]
    if own.timestamp_us is not None:
        parts.append(instant_us(own.timestamp_us))
    return f"{', '.join(parts)}, at {own.position:,}"


def _identifier(columns: dict[str, Any]) -> str:
    match list(columns.items()):
        case [(name, int(number))]:
            return f"{name} {number:,}"
        case several:
            return "/".join(printable(str(value)) for _, value in several)


def _proposal(own: Repair) -> str:
    # Octal is what every printf knows.
    return f"in a copy: printf '\\{own.new:03o}' | dd of=COPY bs=1 seek={own.byte_offset} conv=notrunc"
