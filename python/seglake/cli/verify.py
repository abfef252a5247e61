"""`seglake verify`: every byte of a file checked, and what was found."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from seglake._threads import MOST_THREADS, thread_count
from seglake._types import ParityReport
from seglake._values import is_uri
from seglake.exceptions import FormatError
from seglake.parity.by_sidecar import NotASegmentError, verified

from . import folders, options
from .advice import as_json, of_unread
from .failure import Status, describe, report_status, tell
from .help_groups import Command
from .html import html, opened_report
from .inputs import Input, each, log_facts, opened
from .other import Other, other_json, tell_other
from .render import json_text
from .report import about_index, beside, index_facts, index_of
from .terminal import Advance, byte_progress
from .verdict import Shown, Tally, one_line, show_in_full

if TYPE_CHECKING:
    from seglake import Report

    from .html.writer import HtmlReport

_LARGE_BYTES = 256 << 20
# What a line has room for.
_MOST_REASONS = 3

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


@click.command(cls=Command, epilog=_EXAMPLES, short_help="Check every byte and tell what is damaged, where and why.")
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
    help=f"Read sealed, tenant and chunked files with N threads. [default: one a core, {MOST_THREADS} at most]",
)
@html
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
    html: str | None,
    no_values: bool,
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

    Segments of a log have to reach what the log says. In a log's folder, sound segments show only their name, damaged
    ones their causes. What its writer has not synced yet is not read, and said if no writer has the log open.

    With --html, REPORT is one file that a browser shows without a network: a map of the file, and of each damage what
    it comes from, with the records, fields and bytes around it. A report of that name is replaced, any other file is
    not.

    Exit status: 0 all sound, 1 something is damaged, a parity sidecar included, or is not read, 2 error: a file cannot
    be read or its key is probably wrong. The index of a chunked file is checked, too, but holds nothing of its own:
    damage to it alone is said, with status 0.
    """
    import seglake

    report = opened_report(html, no_values=no_values)
    named = folders.files_named(files, globs, how["key"])
    alone = folders.segments_named(files, how["key"])
    not_read = folders.tell_unread(segment.unread for segment in alone.values())
    named = named._replace(segments={**alone, **named.segments})
    options.check_index(how, named.files)
    parity = options.parity(sidecar, named.files)
    options.check_key(how["key"])
    indexed = {format.name for format in seglake.formats() if format.index_extension is not None}
    verifying = _Verifying(
        named=named,
        as_json=as_json,
        quiet=quiet,
        explain=explain,
        cores=thread_count(threads),
        spool_limit=spool_limit,
        how=how,
        parity=parity,
        indexed=indexed,
        html=report,
    )
    worst = max(not_read, verifying.side_by_side() if named.in_folders else verifying.one_by_one(named.files))
    verifying.sum_up(worst, many=len(named.files) > 1 or named.in_folders)
    return worst


class Checked(NamedTuple):
    """What was found in a file, and of its index, and how many bytes it has.

    The report of a segment that is shorter than its log says is about what is missing, too.
    """

    report: Report
    index_facts: dict[str, Any] | None
    held_bytes: int

    @property
    def is_ok(self) -> bool:
        """Whether the file is sound."""
        return self.report.ok


@dataclass
class _Verifying:
    """A run of the command: what it verifies, how it says what it finds, and what it found so far."""

    named: folders.Named
    as_json: bool
    quiet: bool
    explain: int
    cores: int
    spool_limit: int
    how: dict[str, Any]
    """The options of reading."""
    parity: dict[str, Any]
    indexed: Collection[str]
    """The formats that have an index beside the file."""
    html: HtmlReport | None = None
    tally: Tally = field(default_factory=Tally)

    def one_by_one(self, files: Sequence[str]) -> int:
        """Verify files that are named, and return the worst exit status."""

        def check(file: Input) -> int:
            with byte_progress(PurePath(file.label).name) as advance:
                found = self._checked(file, self.cores, self.explain, advance)
            is_short = len(files) > 1 and found.is_ok
            return self._tell_of(found, file.label, file.path, lambda: nullcontext(file), in_one_line=is_short)

        spool_limit, segments = self.spool_limit, self.named.segments
        return each(files, spool_limit=spool_limit, action=check, failed=self._failed, segments=segments)

    def side_by_side(self) -> int:
        """Verify the files of folders, and return the worst exit status."""
        for name, error in self.named.failed:
            self._failed(name, error)
        worst = self.named.status
        side_by_side = folders.side_by_side(
            self.named, self._checked_beside_others, spool_limit=self.spool_limit, threads=self.cores
        )
        with closing(side_by_side) as results:
            for name, found in results:
                if isinstance(found, Exception):
                    self._failed(name, found)
                    worst = max(worst, tell(found, label=name))
                else:
                    in_log = name in self.named.segments
                    is_short = not in_log or found.is_ok
                    again = partial(self._opened, name)
                    status = self._tell_of(found, name, name, again, in_one_line=is_short, in_log=in_log)
                    worst = max(worst, status)
        return worst

    def sum_up(self, worst: int, *, many: bool) -> None:
        """Say what was found in all, if there is more to say than of one file, and write the report."""
        if self.html is not None:
            for log in self.named.logs:
                self.html.note(folders.log_line(log))
                if log.unread is not None:
                    self.html.note(of_unread(log.unread))
            wrote = self.html.write()
            if not self.as_json:
                click.echo(wrote)
        if self.as_json or (self.quiet and worst == Status.SOUND):
            return
        for log in self.named.logs:
            click.echo(folders.log_line(log))
        if not (many and self.named.files):
            return
        click.echo(self.tally.summary())
        if self.tally.damaged and self.named.in_folders and len(self.named.segments) < len(self.named.files):
            click.echo("`seglake verify FILE` shows where a file is damaged, why, and what to do")

    def _checked_beside_others(self, file: Input, go_on: Advance) -> Checked | Other:
        # Large ones by several threads, so that the last is not read by one alone.
        large = file.path is not None and not is_uri(file.path) and file.size > _LARGE_BYTES
        # By itself, the file of a segment does not tell what its log says of it: then it is explained here.
        is_explained = self.as_json or self.html is not None or file.segment is not None
        explain = self.explain if is_explained else min(self.explain, _MOST_REASONS)
        return self._checked(file, self.cores if large else 1, explain, go_on)

    def _checked(self, file: Input, threads: int, explain: int, progress: Advance | None) -> Checked | Other:
        import seglake

        arguments: dict[str, Any] = {
            **options.only(self.how, "format", "key", "options"),
            **self.parity,
            "explain": explain,
            "threads": threads,
            "progress": progress,
        }
        if file.segment is not None:
            report = seglake.verify(file.segment, **arguments)
        else:
            try:
                report = verified(file.from_start, **arguments)
            except NotASegmentError as error:
                raise error.error from None
        if isinstance(report, ParityReport):
            return Other(report, file.size)
        held_bytes = report.nbytes
        if file.segment is not None and not report.ok:
            held_bytes = min(held_bytes, file.held_bytes)
        if report.format not in self.indexed:
            return Checked(report, None, held_bytes)
        with seglake.open(file.from_start(), **options.given(self.how)) as reader:
            found = index_of(reader)
        return Checked(report, None if found is None else index_facts(found), held_bytes)

    def _tell_of(
        self,
        found: Checked | Other,
        label: str,
        path: str | None,
        opened: Callable[[], AbstractContextManager[Input]],
        *,
        in_one_line: bool,
        in_log: bool = False,
    ) -> int:
        if isinstance(found, Other):
            if self.html is not None:
                self.html.add_other(found.parity, other_json(found, path), label)
            self.tally.add_other(found.parity)
            if not (self.quiet and found.is_ok):
                tell_other(found, label, path, as_json=self.as_json, in_one_line=in_one_line)
            return Status.SOUND if found.is_ok else Status.DAMAGED
        report, index, held_bytes = found
        json = self._json(found, path) if self.as_json or self.html is not None else {}
        if self.html is not None:
            mark, is_only = self._mark(label), len(self.named.files) == 1
            self.html.add(report, json, label, opened, self.how, mark, held_bytes, is_only=is_only)
        self.tally.add(report, held_bytes)
        if self.quiet and report_status(report) == Status.SOUND and (index is None or index["ok"]):
            return Status.SOUND
        named = self.how["index"]
        beside_it = None if named is False else about_index(report, index, path, named)
        if self.as_json:
            click.echo(json_text(json))
        elif in_one_line:
            click.echo(one_line(report, label, index, beside_it, in_log=in_log))
        else:
            shown = Shown(label, path, options.as_typed(self.how), index, beside_it, held_bytes)
            show_in_full(report, shown, sys.stdout, with_picture=not in_log)
        return report_status(report)

    def _json(self, found: Checked, path: str | None) -> dict[str, Any]:
        # The path as it was given: the report's own has lost what is not UTF-8.
        told = as_json(found.report, path, options.as_typed(self.how))
        index = found.index_facts
        return {**told, "log": self._log(path), "index": index, "reason": beside(found.report, index)}

    def _opened(self, name: str) -> AbstractContextManager[Input]:
        return opened(name, spool_limit=self.spool_limit, segments=self.named.segments)

    def _mark(self, label: str) -> int | None:
        """Up to where a log says that a segment is synced; None if none does."""
        segment = self.named.segments.get(label)
        synced = next((log.synced for log in self.named.logs if segment and log.path == segment.log), None)
        return synced[1] if segment and synced and synced[0] == segment.sequence else None

    def _failed(self, name: str, error: Exception) -> None:
        self.tally.unreadable += 1
        reason = error.cause if isinstance(error, FormatError) else None
        json = {"ok": False, "path": name, "log": self._log(name), "reason": reason, "error": describe(error)}
        if self.html is not None:
            self.html.add_failed(name, error, json)
        if self.as_json:
            click.echo(json_text(json))

    def _log(self, path: str | None) -> dict[str, Any] | None:
        """The segment of a log that a file is."""
        return log_facts(self.named.segments.get(path or ""))
