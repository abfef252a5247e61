"""`seglake verify`: every byte of a file checked, and what was found."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO, TypeAlias

import click

from seglake._by_sidecar import NotASegmentError, verified
from seglake._types import ParityReport
from seglake._values import instant_us, is_uri

from . import folders, options
from .failure import Status, describe, report_status, tell
from .inputs import Input, each, log_facts
from .other import Other, tell_other
from .render import count, exact_size, json_text, printable, size, table
from .report import (
    advice,
    explained,
    index_facts,
    index_in_words,
    index_of,
    index_rebuilding,
    joined,
    meaning,
    parity_in_words,
)
from .terminal import Advance, byte_progress, console, is_unicode

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from seglake import Report

_LARGE_BYTES = 256 << 20
# What a person can take in; --json lists them all.
_MOST_RANGES = 40
_BAR_CELLS = 72
_TEXT_CELLS = 88

_EXAMPLES = """
\b
Examples:
  seglake verify today.active
  seglake verify logs                      all below a folder, one line a file
  seglake verify --quiet /var/log/segments/*.active || echo "look at the disk"
  seglake verify --json *.active | jq -c 'select(.ok | not) | {path, damage}'
  seglake verify --dialect draft-1.1 writer.oplog
  seglake verify --sidecar none today.active            without its parity sidecar
  seglake verify --index none events.chunks s3://bucket/january.sealed
  SEGLAKE_KEY=$(cat secret.hex) seglake verify today.active
"""


@click.command(epilog=_EXAMPLES, short_help="Check every byte and tell what is damaged, where and why.")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=options.PATH)
@options.as_json("One JSON object a line, one line a file: the report.")
@click.option("--quiet", "-q", is_flag=True, help="Say nothing of sound files.")
@click.option(
    "--explain",
    type=click.IntRange(min=0),
    default=100,
    metavar="N",
    help="Find what damage probably comes from, for the first N ranges. [default: 100]",
)
@click.option(
    "--threads",
    type=click.IntRange(min=1),
    metavar="N",
    help=f"Read sealed, tenant and chunked files with N threads. [default: one a core, {folders.MOST_THREADS} at most]",
)
@folders.glob
@options.index
@options.sidecar
@options.reading
def command(
    files: tuple[str, ...],
    globs: tuple[str, ...],
    as_json: bool,
    quiet: bool,
    explain: int,
    threads: int | None,
    sidecar: str | None,
    spool_limit: int,
    **how: Any,
) -> int:
    """Check every byte of files and tell what is damaged, where and why.

    Nothing is changed. FILE is a path, a folder with all below it, a URI such as s3://bucket/key, or - for standard
    input, which is copied to a temporary file first. A file that cannot be read does not stop the others. Files of
    folders are checked side by side and have one line each; names that begin with _ or . are left out.

    What damage probably comes from is looked for in a second reading of damaged files, and where a single flipped bit
    explains it, that is proposed: never applied.

    FILE.par, the parity sidecar that `seglake protect` writes, is checked, too. Bytes that differ from what it covers
    are damage, also in formats without checksums. A file that is not a segment is checked by its sidecar alone.

    A folder that is a log has one line for each sound segment. What is not synced yet is not read. A segment has to
    reach what its log says. Bytes that no reader was promised are counted, and are no damage.

    Exit status: 0 all sound, 1 something is damaged, a parity sidecar included, 2 error: a file cannot be read or its
    key is probably wrong. The index of a chunked file is checked, too, but holds nothing of its own: damage to it alone
    is said, with status 0.
    """
    import seglake

    named = folders.files_named(files, globs, how["key"])
    options.check_index(how, named.files)
    parity = options.parity(sidecar, named.files)
    options.check_key(how["key"])
    tally = Tally()
    arguments = options.only(how, "format", "dialect", "key", "limits")
    cores = threads or min(os.cpu_count() or 1, folders.MOST_THREADS)
    formats = seglake.formats(dialect=how["dialect"])

    def checked(file: Input, threads: int, explain: int, progress: Advance | None) -> Checked | Other:
        how_far: dict[str, Any] = {"explain": explain, "threads": threads, "progress": progress}
        if file.segment is not None:
            report = seglake.verify(file.segment, **arguments, **parity, **how_far)
        else:
            try:
                report = verified(file.from_start, **arguments, **parity, **how_far)
            except NotASegmentError as error:
                raise error.error from None
        if isinstance(report, ParityReport):
            return Other(report, file.size)
        if formats[report.format].index_extension is None:
            return Checked(report, None)
        with seglake.open(file.from_start(), **options.given(how)) as reader:
            found = index_of(reader)
        return Checked(report, None if found is None else index_facts(found))

    def tell_of_other(found: Other, label: str, path: str | None, *, in_one_line: bool) -> int:
        tally.add_other(found.parity)
        if not (quiet and found.is_ok):
            tell_other(found, label, path, as_json=as_json, in_one_line=in_one_line)
        return Status.SOUND if found.is_ok else Status.DAMAGED

    def tell_of(found: Checked | Other, label: str, path: str | None, log: Log, *, in_one_line: bool) -> int:
        if isinstance(found, Other):
            return tell_of_other(found, label, path, in_one_line=in_one_line)
        report, index = found
        tally.add(report)
        if quiet and report_status(report) == Status.SOUND and (index is None or index["ok"]):
            return Status.SOUND
        verdict = None if index is None else _of_index(index, path, how["index"])
        if as_json:
            # The path as it was given: the report's own has lost what is not UTF-8.
            click.echo(json_text({**report.to_dict(), "path": path, "log": log, "index": index}))
        elif in_one_line:
            click.echo(one_line(report, verdict, label))
        else:
            show_in_full(report, verdict, label, sys.stdout)
        return report_status(report)

    def check(file: Input) -> int:
        with byte_progress(PurePath(file.label).name) as advance:
            found = checked(file, cores, explain, advance)
        return tell_of(found, file.label, file.path, file.log, in_one_line=len(files) > 1 and found.is_ok)

    def failed(name: str, error: Exception) -> None:
        tally.unreadable += 1
        if as_json:
            log = log_facts(named.segments.get(name))
            click.echo(json_text({"ok": False, "path": name, "log": log, "error": describe(error)}))

    def check_beside_others(file: Input, go_on: Advance) -> Checked | Other:
        # Large ones by several threads, so that the last is not read by one alone.
        large = file.path is not None and not is_uri(file.path) and file.size > _LARGE_BYTES
        # By itself, the file of a segment does not tell what its log says of it: then it is explained here.
        is_explained = as_json or file.segment is not None
        return checked(file, cores if large else 1, explain if is_explained else 0, go_on)

    if not named.in_folders:
        worst = each(files, spool_limit=spool_limit, action=check, failed=failed)
    else:
        tally.unreadable += named.empty
        worst = named.status
        side_by_side = folders.side_by_side(named, check_beside_others, spool_limit=spool_limit, threads=cores)
        with closing(side_by_side) as results:
            for name, found in results:
                if isinstance(found, Exception):
                    failed(name, found)
                    worst = max(worst, tell(found, label=name))
                else:
                    log = log_facts(named.segments.get(name))
                    is_short = log is None or found.is_ok
                    worst = max(worst, tell_of(found, name, name, log, in_one_line=is_short))
    for log in () if as_json or (quiet and worst == Status.SOUND) else named.logs:
        click.echo(folders.log_line(log))
    if (len(files) > 1 or named.in_folders) and named.files and not as_json and not (quiet and worst == Status.SOUND):
        click.echo(tally.summary())
        if tally.damaged and named.in_folders and len(named.segments) < len(named.files):
            click.echo("`seglake verify FILE` shows where a file is damaged, why, and what to do")
    return worst


Log: TypeAlias = "dict[str, Any] | None"
"""The segment of a log that a file is."""


class Checked(NamedTuple):
    """What was found in a file, and of its index."""

    report: Report
    index_facts: dict[str, Any] | None

    @property
    def is_ok(self) -> bool:
        """Whether the file is sound."""
        return self.report.ok


def _of_index(index: dict[str, Any], log: str | None, named: str | None) -> IndexVerdict:
    return IndexVerdict(index["ok"], index_in_words(index), index_rebuilding(log, named))


def one_line(report: Report, index: IndexVerdict | None, label: str) -> str:
    """A file in one line, in two more what is wrong with its index."""
    structure = {"checksum": "", "parity": ", checked by parity"}.get(report.checked, ", structure only")
    unproven = _nbytes(report, "unproven")
    structure += f", {size(unproven)} that no reader was promised" if unproven else ""
    what = f"{count(report.records, 'record')}, {size(report.nbytes)}{structure}"
    if report.wrong_key:
        line = f"wrong key?  {printable(label)}  {size(report.nbytes)}: nothing checks, but the structure is sound"
    elif report.ok:
        line = f"ok  {printable(label)}  {what}"
    else:
        line = f"damaged  {printable(label)}  {what}; {_damage_in_short(report)}"
    sidecar = parity_in_words(report.parity, label)
    if report.parity is not None and (report.parity.outcome != "sound" or report.parity.covers_nothing):
        line = f"{line}\n    {sidecar}"
    if index is None or index.ok:
        return line
    return f"{line}\n    index {index.text}; to rebuild it:\n    {index.rebuilding}"


def _nbytes(report: Report, kind: str) -> int:
    return sum(total.nbytes for total in report.totals if total.kind == kind)


def _damage_in_short(report: Report) -> str:
    """Each kind of damage with its cause and how much there is: `corrupt, checksum_mismatch: 103 bytes`."""
    damaged = [total for total in report.totals if total.cause is not None]
    return ", ".join(f"{total.kind} ({total.cause}): {size(total.nbytes)}" for total in damaged)


@dataclass(frozen=True)
class IndexVerdict:
    """What was found of a log's index."""

    ok: bool
    text: str
    """The same in words."""
    rebuilding: str
    """The command that builds it anew."""


@dataclass
class Tally:
    """What was found over several files: how many of each sort, and what the ones that were read hold."""

    sound: int = 0
    damaged: int = 0
    wrong_key: int = 0
    unreadable: int = 0
    badly_protected: int = 0
    """Of the sound ones."""
    records: int = 0
    bytes: int = 0

    def add(self, report: Report) -> None:
        """Count a file that was read."""
        self.records += report.records
        self.bytes += report.nbytes
        if report.ok:
            self.sound += 1
        elif report.wrong_key:
            self.wrong_key += 1
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
            "probably with another key": self.wrong_key,
            "unreadable": self.unreadable,
        }
        found = ", ".join(f"{number:,} {sort}" for sort, number in sorts.items() if number)
        if self.badly_protected:
            found += f"; {count(self.badly_protected, 'sidecar')} of a sound file that cannot restore all of it"
        return f"{count(sum(sorts.values()), 'file')}: {found}; {count(self.records, 'record')}, {size(self.bytes)}"


def show_in_full(report: Report, index: IndexVerdict | None, label: str, stream: TextIO) -> None:
    """Totals, a picture of the file, its damaged ranges and what to do about them, and the state of its index."""
    out = console(stream)
    out.print(_headline(report, label), soft_wrap=True)
    # What does not check under a wrong key is no damage: neither counted nor pictured nor listed as if it were.
    if not report.wrong_key:
        if report.totals:
            out.print()
            out.print(_totals(report), soft_wrap=True)
        _print_picture(out, report, unicode=is_unicode(stream), width=_BAR_CELLS)
        if report.damage:
            out.print()
            out.print(_ranges(report), soft_wrap=True)
            out.print(_unlisted(report), end="", soft_wrap=True)
        for block in explained(report, min(out.width, _TEXT_CELLS)):
            out.print()
            out.print(block, soft_wrap=True)
    for sentence in (*advice(report), parity_in_words(report.parity, label)):
        if sentence:
            out.print()
            _print_text(out, sentence)
    if index is not None:
        out.print()
        _print_text(out, f"Index {index.text}" + ("." if index.ok else ". To rebuild it:"))
        if not index.ok:
            # On a line of its own: to be copied.
            out.print(f"  {index.rebuilding}", soft_wrap=True)


def _print_text(out: Console, text: str) -> None:
    width = min(out.width, _TEXT_CELLS)
    out.print(textwrap.fill(text, width, break_long_words=False, break_on_hyphens=False), soft_wrap=True)


def _headline(report: Report, label: str) -> Text:
    from rich.text import Text

    if report.ok:
        verdict, style = "sound", "bold green"
    elif report.wrong_key:
        verdict, style = "probably the wrong key", "bold yellow"
    else:
        verdict, style = "damaged", "bold red"
    what = f"{report.format}, {exact_size(report.nbytes)}, {count(report.records, 'record')}"
    if report.first_timestamp_us is not None and report.last_timestamp_us is not None:
        what += f"\n{instant_us(report.first_timestamp_us)} to {instant_us(report.last_timestamp_us)}"
    if report.checked == "parity":
        what += "\nchecked by parity: the file has no checksums of its own"
    if report.checked == "structure":
        what += "\nstructure checked only: the file has no checksums"
    return Text.assemble((printable(label), "bold"), ": ", (verdict, style), "\n", what)


def _totals(report: Report) -> Text:
    rows = [(total.kind, total.cause or "", f"{total.nbytes:,}", f"{total.ranges:,}") for total in report.totals]
    return table(("kind", "cause", "bytes", "ranges"), rows, right=(2, 3), style="red")


def _ranges(report: Report) -> Text:
    rows = [
        (
            f"{group[0].start:,}",
            f"{group[-1].end:,}",
            f"{sum(span.nbytes for span in group):,}",
            group[0].kind,
            group[0].cause or "",
            meaning(group[0].cause or ""),
        )
        for group in joined(report.damage)[:_MOST_RANGES]
    ]
    return table(("start", "end", "bytes", "kind", "cause", "meaning"), rows, right=(0, 1, 2))


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
RESTORABLE = Mark("R", "R", "bold yellow", "damaged, and in the parity sidecar")
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
    unused = _nbytes(report, "unused")
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
            line.append(_parts(report) if mark is SOUND else "")
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
