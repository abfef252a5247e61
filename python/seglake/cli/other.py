"""Files that are not segments, and what their parity sidecars say of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import click

from seglake.parity import ParityReport
from seglake.parity.by_sidecar import RAW

from .render import exact_size, json_text, named_lines, printable
from .report import parity_in_words, parity_ranges


class Other(NamedTuple):
    """What was found in a file that is not a segment, by its sidecar alone."""

    parity: ParityReport
    nbytes: int

    @property
    def is_ok(self) -> bool:
        """Whether file and sidecar are sound."""
        return self.parity.outcome == "sound"


def _how_checked(parity: ParityReport) -> str:
    return "not a segment, not checked" if parity.covers_nothing else "not a segment, checked by parity"


def other_line(parity: ParityReport, label: str) -> str:
    """A file that is not a segment in one line, in one more what is wrong."""
    verdict = "ok" if parity.outcome == "sound" else "damaged"
    line = f"{verdict}  {printable(label)}  {_how_checked(parity)}"
    return (
        line
        if parity.outcome == "sound" and not parity.covers_nothing
        else f"{line}\n    {parity_in_words(parity, label)}"
    )


def _show(found: Other, label: str) -> None:
    """What was found in a file that is not a segment: its damaged ranges, and what to do about them."""
    parity = found.parity
    verdict = "sound" if found.is_ok else "damaged"
    click.echo(f"{printable(label)}: {verdict}\n{exact_size(found.nbytes)}, {_how_checked(parity)}")
    ranges = parity_ranges(parity)
    if ranges:
        click.echo("\n".join(["", *named_lines(ranges)]))
    click.echo(f"\n{parity_in_words(parity, label)}")


def other_json(found: Other, path: str | None) -> dict[str, Any]:
    """What was found in a file that is not a segment, ready for JSON."""
    checked = None if found.parity.covers_nothing else "parity"
    facts = {"ok": found.is_ok, "path": path, "nbytes": found.nbytes, "format": RAW, "checked": checked}
    return {**facts, "parity": found.parity.to_dict()}


def tell_other(found: Other, label: str, path: str | None, *, as_json: bool, in_one_line: bool) -> None:
    """Say what was found in a file that is not a segment."""
    if as_json:
        click.echo(json_text(other_json(found, path)))
    elif in_one_line:
        click.echo(other_line(found.parity, label))
    else:
        _show(found, label)
