"""What was found in a file, for people: in one line, in full, and summed up over several files."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from seglake._values import instant_us
from seglake.parity import ParityReport

from .advice import Advice, in_full, misread, titled
from .failure import Status, report_status
from .picture import bar, cells, legend
from .render import count, exact_size, printable, size, table
from .report import bytes_of, damage_in_short, explained, index_in_words, joined, misnamed, parity_in_words, verdict_of
from .terminal import console, is_unicode
from .vocabulary import REASONS

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from seglake import Report

    from .inputs import Input

__all__ = ["Shown", "Tally", "one_line", "show_cause", "show_in_full"]

# What a person can take in; --json lists them all.
_MOST_RANGES = 40
_BAR_CELLS = 72
_TEXT_CELLS = 88


@dataclass
class Tally:
    """What was found over several files: how many of each sort, and what the ones that were read hold."""

    sound: int = 0
    damaged: int = 0
    misread: Counter[str] = field(default_factory=Counter[str])
    """By the option that they are not read with rightly."""
    unreadable: int = 0
    badly_protected: int = 0
    """Of the sound ones."""
    records: int = 0
    bytes: int = 0

    def add(self, report: Report, held_bytes: int | None = None) -> None:
        """Count a file that was read, and the bytes that it has, if these are not all that the report is about."""
        self.records += report.records
        self.bytes += report.nbytes if held_bytes is None else held_bytes
        if report.ok:
            self.sound += 1
        elif (wrong := misread(report)) is not None:
            self.misread[wrong] += 1
        else:
            self.damaged += 1
        if report.ok and report_status(report) != Status.SOUND:
            self.badly_protected += 1

    def add_other(self, parity: ParityReport) -> None:
        """Count a file that is not a segment."""
        if parity.outcome == "sound":
            self.sound += 1
        else:
            self.damaged += 1

    def summary(self) -> str:
        """All of it in one line."""
        sorts = {
            "sound": self.sound,
            "damaged": self.damaged,
            **{f"not read with the right {wrong}": number for wrong, number in self.misread.items()},
            "unreadable": self.unreadable,
        }
        found = ", ".join(f"{number:,} {sort}" for sort, number in sorts.items() if number)
        if self.badly_protected:
            found += f"; {count(self.badly_protected, 'sidecar')} of a sound file that cannot restore all of it"
        return f"{count(sum(sorts.values()), 'file')}: {found}; {count(self.records, 'record')}, {size(self.bytes)}"


def one_line(
    report: Report, label: str, index: dict[str, Any] | None, about_index: Advice | None, *, in_log: bool = False
) -> str:
    """A file in one line, and in more what is wrong with its index and what to do.

    A sound segment of a log has its name and what is special: the log's records are counted below.
    """
    structure = {"checksum": "", "parity": ", checked by parity"}.get(
        report.checked, ", structure only" if report.records else ""
    )
    unproven = bytes_of(report, "unproven")
    structure += f", {size(unproven)} that no reader was promised" if unproven else ""
    pending = bytes_of(report, "pending")
    structure += f", {size(pending)} that the writer has not finished" if pending else ""
    what = f"{count(report.records, 'record')}, {size(report.nbytes)}{structure}"
    if report.wrong_key:
        line = f"wrong key?  {printable(label)}  {size(report.nbytes)}: {REASONS['wrong_key'].happened}"
    elif misread(report) is not None:
        line = (
            f"not read  {printable(label)}  {size(report.nbytes)}: {verdict_of(report)}; {titled(report.diagnoses[0])}"
        )
    elif report.ok:
        line = f"ok  {printable(label)}  {structure.removeprefix(', ') if in_log else what}".rstrip()
    else:
        reasons = ", ".join(dict.fromkeys(titled(own) for own in report.diagnoses if own.reason != "consequence"))
        line = f"damaged  {printable(label)}  {what}; {reasons or damage_in_short(report)}"
    sidecar = parity_in_words(report.parity, label)
    if report.parity is not None and (report.parity.outcome != "sound" or report.parity.covers_nothing):
        line = f"{line}\n    {sidecar}"
    if index is None or index["ok"]:
        return line
    line = f"{line}\n    index {index_in_words(index, log_ok=report.ok)}"
    return line if about_index is None else f"{line}\n{textwrap.indent(in_full(about_index), '    ')}"


class Shown(NamedTuple):
    """How a file is named for people and in commands, and what is known of its index.

    Attributes:
        label: the file, for people.
        path: the file, for commands; None if it has no name.
        reading: the options that it is read with, for commands.
        index_facts: what there is to say of its index; None if it has none.
        about_index: what is wrong with the index of a file without damage, and what to do; None where nothing is.
        held_bytes: how many bytes it has.
    """

    label: str
    path: str | None
    reading: Sequence[str]
    index_facts: dict[str, Any] | None
    about_index: Advice | None
    held_bytes: int


def show_in_full(report: Report, file: Shown, stream: TextIO, *, with_picture: bool = True) -> None:
    """What happened and what to do, then a picture of the file, its damaged ranges and the state of its index."""
    from rich.text import Text

    out = console(stream)
    if report.ok:
        out.print(Text.assemble((printable(file.label), "bold"), ": ", ("sound", "bold green")), soft_wrap=True)
        if file.about_index is not None:
            headline, *lines = in_full(file.about_index).splitlines()
            _print_text(out, f"also: {headline}")
            out.print("\n".join([*lines, ""]), soft_wrap=True)
    else:
        for block in explained(report, file.label, file.path, file.reading, min(out.width, _TEXT_CELLS)):
            out.print(block, soft_wrap=True)
            out.print()
    if with_picture:
        out.print(_facts(report, file.held_bytes), soft_wrap=True)
        if (other := misnamed(report, file.label)) is not None:
            out.print(other, soft_wrap=True)
    # What does not check under a wrong key is no damage: neither counted nor pictured nor listed as if it were.
    if with_picture and not report.wrong_key:
        if report.totals and (report.ok or _unlisted(report)):
            out.print()
            out.print(_totals(report), soft_wrap=True)
        _print_picture(out, report, unicode=is_unicode(stream), width=_BAR_CELLS)
        if report.damage:
            out.print()
            out.print(_ranges(report), soft_wrap=True)
            out.print(_unlisted(report), end="", soft_wrap=True)
    sidecar = parity_in_words(report.parity, file.label)
    if sidecar:
        out.print()
        _print_text(out, sidecar)
    if file.index_facts is not None:
        out.print()
        _print_text(out, f"Index {index_in_words(file.index_facts, log_ok=report.ok)}.")


def show_cause(report: Report, file: Input, reading: Sequence[str], stream: TextIO, running: str) -> None:
    """What happened to a damaged file first and what to do, but for the command that is running."""
    out = console(stream)
    width = min(out.width, _TEXT_CELLS)
    first, *others = explained(report, file.label, file.path, reading, width, running)
    out.print(first, soft_wrap=True)
    if others:
        out.print("also: other causes, of which `seglake verify` tells")
    out.print()


def _print_text(out: Console, text: str) -> None:
    width = min(out.width, _TEXT_CELLS)
    out.print(textwrap.fill(text, width, break_long_words=False, break_on_hyphens=False), soft_wrap=True)


def _facts(report: Report, held_bytes: int) -> str:
    what = f"{report.format}, {count(held_bytes, 'byte')}"
    if held_bytes < report.nbytes:
        what += f" of the {report.nbytes:,} that its log says"
    if report.ok:
        what = f"{report.format}, {exact_size(report.nbytes)}, {count(report.records, 'record')}"
    if report.ok and report.first_timestamp_us is not None and report.last_timestamp_us is not None:
        what += f"\n{instant_us(report.first_timestamp_us)} to {instant_us(report.last_timestamp_us)}"
    if report.checked == "parity":
        what += "\nchecked by parity: the file has no checksums of its own"
    if report.checked == "structure" and report.records:
        what += f"\nstructure checked only: {_why_structure(report)}"
    if report.ok and not report.records:
        what += "\nempty: sound if it is new; if it had records, the copy or the write failed"
    return what


def _why_structure(report: Report) -> str:
    """Why a file was not checked by checksums."""
    if report.format == "sealed" and report.damage and report.damage[-1].end == report.nbytes:
        return "its checksums are missing"
    return "the file has no checksums"


def _totals(report: Report) -> Text:
    rows = [(total.kind, total.cause or "", f"{total.nbytes:,}", f"{total.ranges:,}") for total in report.totals]
    return table(("kind", "cause", "bytes", "ranges"), rows, right=(2, 3), style="red")


def _ranges(report: Report) -> Text:
    groups = joined(report.damage)[:_MOST_RANGES]
    rows = [
        (
            f"{group[0].start:,}",
            f"{group[-1].end:,}",
            f"{sum(span.nbytes for span in group):,}",
            group[0].kind,
            group[0].cause or "",
            f"{len(group):,} ranges" if len(group) > 1 else "",
        )
        for group in groups
    ]
    return table(("start", "end", "bytes", "kind", "cause", ""), rows, right=(0, 1, 2))


def _unlisted(report: Report) -> str:
    """A line on the damaged ranges that the table leaves out, or nothing."""
    whole = sum(total.ranges for total in report.totals if total.cause is not None)
    left = whole - sum(map(len, joined(report.damage)[:_MOST_RANGES]))
    if left <= 0:
        return ""
    where = f"--json lists the first {len(report.damage):,}" if report.damage_truncated else "--json lists them all"
    return f"... and {count(left, 'more range')}: {where}\n"


def _print_picture(out: Console, report: Report, *, unicode: bool, width: int) -> None:
    marks = cells(report, min(width, out.width))
    if marks:
        out.print()
        out.print(bar(marks, unicode=unicode))
        out.print("0" + size(report.nbytes).rjust(len(marks) - 1))
        out.print(legend(report, marks, unicode=unicode), soft_wrap=True)
