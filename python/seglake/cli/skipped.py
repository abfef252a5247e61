"""What a pass over a damaged file left out, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .advice import KEY_NEXT, meaning
from .render import count, exact_size, printable

if TYPE_CHECKING:
    from seglake import Report


def skipped(report: Report, label: str) -> str:
    """What was skipped of a file, and what was kept though something of it is missing."""
    where = printable(label)
    if report.wrong_key:
        return f"{where}: nothing checks, but the structure is sound: probably the wrong key\n  next      {KEY_NEXT}"
    damaged = [total for total in report.totals if total["cause"] is not None]
    left_out = [total for total in damaged if total["kind"] != "record"]
    said: list[str] = []
    if left_out:
        ranges, volume = (sum(total[what] for total in left_out) for what in ("ranges", "bytes"))
        said.append(
            f"{where}: skipped {count(ranges, 'damaged range')}, {exact_size(volume)}: `seglake verify` shows where"
        )
    said.extend(
        f"{where}: {count(total['ranges'], 'record')} with something missing: {total['cause']}: "
        f"{meaning(total['cause'])}: `seglake cat --columns position,cause` marks them"
        for total in damaged
        if total["kind"] == "record"
    )
    return "\n".join(said)
