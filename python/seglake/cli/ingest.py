"""`seglake ingest`: segments into Parquet tables, in threads of this process or with Spark."""

from __future__ import annotations

import itertools
import sys
import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TextIO

import click

from . import options
from .failure import describe, say
from .following import LONGEST_PAUSE_S, followed
from .help_groups import Command
from .option_names import with_options
from .render import count, json_text, printable, table
from .report import PARITY_REFUSED
from .terminal import console, is_terminal
from .vocabulary import meaning

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from rich.console import Console

    from seglake import IngestResult
    from seglake.types import IngestProgress

_EXAMPLES = """
\b
Examples:
  seglake ingest /var/log/segments /data/lake
  seglake ingest --json 'logs/2024-01-*.active' /data/lake
  seglake ingest --table delta logs s3://bucket/lake
  seglake ingest --key-file secret.hex --target-file-size 256MiB --threads 4 logs /data/lake
  seglake ingest --master 'local[8]' --conf spark.driver.memory=4g logs /data/lake
  seglake ingest --compact /data/lake
"""


@click.command(cls=Command, epilog=_EXAMPLES, short_help="Write the verified records of segments to Parquet tables.")
@options.sources
@options.destination
@click.option(
    "--engine",
    type=click.Choice(["auto", "local", "spark"]),
    default="auto",
    help="What reads the files: threads of this process, or Spark. auto is spark with --master or --conf, else local.",
)
@click.option(
    "--threads",
    type=click.IntRange(min=1),
    metavar="N",
    help="Read N files at a time without Spark. [default: one a core]",
)
@click.option("--master", metavar="URL", help="Spark's master. [default: this machine, all cores]")
@click.option(
    "--conf",
    "settings",
    metavar="KEY=VALUE",
    multiple=True,
    callback=options.assigned("KEY=VALUE, such as spark.driver.memory=4g"),
    help="A setting of Spark.",
)
@click.option(
    "--target-file-size",
    metavar="SIZE",
    type=options.SIZE,
    help="About how large the Parquet files get. [default: 128MiB]",
)
@click.option(
    "--follow", is_flag=True, help="Run again every two seconds, until Ctrl-C, also after errors that may pass."
)
@click.option("--final", is_flag=True, help="No file grows any more: an unfinished tail is damage.")
@click.option(
    "--compact",
    is_flag=True,
    help="Ingest nothing, and write the small files of plain Parquet in DST anew, as fewer, while nobody reads them.",
)
@options.sidecar
@click.option(
    "--on-damage",
    type=click.Choice(["repair", "skip"]),
    help="What becomes of records that a parity sidecar restores: they are ingested, or left out. [default: repair]",
)
@click.option(
    "--table",
    type=click.Choice(["parquet", "delta", "iceberg"]),
    help="What keeps track of the tables' files: folders alone, Delta Lake, or Apache Iceberg. [default: parquet]",
)
@click.option(
    "--catalog", metavar="URI", help="The SQL database with the catalog of Iceberg tables. [default: DST/_catalog.db]"
)
@click.option(
    "--fail-on",
    type=click.Choice(["new", "all", "never"]),
    default="new",
    help="What ends with exit status 1: damage and files that cannot be read, if this run found them, or also if an "
    "earlier one did. [default: new]",
)
@options.layout
@options.limits
@options.as_json("One JSON object: what was done.")
@options.debug
def command(
    sources: tuple[str, ...],
    destination: str,
    engine: str,
    threads: int | None,
    master: str | None,
    settings: dict[str, str],
    follow: bool,
    compact: bool,
    sidecar: str | None,
    fail_on: str,
    as_json: bool,
    **how: Any,
) -> int:
    """Verify every record of segments and write them to Parquet tables below DST.

    SRC are files, folders and globs. The tables are DST/<format>, the records, partitioned by date, DST/damage, one row
    for each damaged range with its bytes, DST/files, one row for each file and run, and DST/runs. Needs
    pip install "seglake[lake]"; --engine spark needs Spark (pip install "seglake[spark]") and Java.

    Exit status: 0 nothing new is wrong, 1 something new is damaged or could not be read, 2 error: nothing was ingested.
    """
    if compact:
        if sources:
            raise click.UsageError("--compact takes no SRC, only DST")
        from seglake.lake.compact import compact as write_anew

        made, removed = write_anew(destination, **options.only(how, "target_file_size"))
        click.echo(json_text({"files": made, "removed": removed}) if as_json else f"{made:,} files for {removed:,}")
        return 0
    options.check_sources(sources, destination)
    given = options.given(how)
    if sidecar is not None:
        given["sidecar"] = None if sidecar == options.NONE else sidecar
    of_spark = options.given({"master": master, "conf": settings or None})
    if engine == "local" and of_spark:
        raise click.UsageError("--master and --conf are for Spark: leave them out, or --engine local")
    if follow and how["final"]:
        raise click.UsageError("--follow waits for files to grow, and --final says that none does: leave one out")
    on_spark = engine == "spark" or bool(of_spark)
    if on_spark and threads is not None:
        raise click.UsageError("--threads is for --engine local: with Spark it is --master 'local[N]'")
    output = _Output(as_json, fail_on)
    if on_spark:
        return _with_spark(sources, destination, of_spark, given, output, follow=follow)
    given = {**options.given({"threads": threads}), **given}

    def run() -> IngestResult:
        from seglake import ingest

        with _progress(sys.stderr, "finding files") as advance:
            return ingest(sources, destination, **given, progress=advance)

    return _repeated(run, output, follow=follow)


def _repeated(run: Callable[[], IngestResult], output: _Output, *, follow: bool) -> int:
    """Run an ingest, and with `follow` again and again.

    Raises:
        SeglakeError: an ingest cannot start or had to stop.
    """
    import seglake

    with warnings.catch_warnings():
        # What the result says as well.
        warnings.simplefilter("ignore", seglake.exceptions.UnreadWarning)
        if follow:
            shown = itertools.count()
            followed(run, lambda result: output.result(result, is_first=next(shown) == 0), output.error)
        result = run()
    output.result(result)
    if output.fail_on == "all":
        return int(not result.ok or result.unchanged_damaged > 0 or result.unchanged_refused > 0)
    return 0 if output.fail_on == "never" else result.exit_status


@dataclass(frozen=True)
class _Output:
    """Where results go, and with --follow errors that may pass."""

    as_json: bool
    fail_on: str

    def result(self, result: IngestResult, *, is_first: bool = True) -> None:
        if self.as_json:
            click.echo(json_text(result.to_dict()))
        else:
            if not is_first:
                click.echo()
            show(result, sys.stdout)
        sys.stdout.flush()  # with --follow somebody may read along

    def error(self, error: Exception, seconds: float) -> None:
        if self.as_json:
            click.echo(json_text({"error": describe(error), "retry_seconds": seconds}))
            sys.stdout.flush()
        else:
            again = f"this is tried again in {seconds:g} s, then after pauses of up to {LONGEST_PAUSE_S:g} s"
            say(f"{describe(error)}\n  next      {again}")


def _with_spark(
    sources: Sequence[str],
    destination: str,
    of_spark: dict[str, Any],
    given: dict[str, Any],
    output: _Output,
    *,
    follow: bool,
) -> int:
    """Run the ingest in one session of Spark.

    Raises:
        SeglakeError: the ingest cannot start or had to stop.
    """
    from seglake.spark import ingest
    from seglake.spark.session import check_settings, session

    check_settings(of_spark.get("conf", {}))
    with ExitStack() as stack:

        @cache
        def spark() -> SparkSession:
            return stack.enter_context(session(**of_spark))

        def run() -> IngestResult:
            with _progress(sys.stderr, "starting Spark") as advance:
                return ingest(sources, destination, spark=spark, **given, progress=advance)

        return _repeated(run, output, follow=follow)


@contextmanager
def _progress(stream: TextIO, beginning: str) -> Generator[Callable[[IngestProgress], None] | None]:
    """A display of the progress on a terminal while the block runs; None where the stream is none."""
    if not is_terminal(stream):
        yield None
        return
    from .ingest_progress import ingest_progress

    with ingest_progress(stream, beginning) as advance:
        yield advance


# What a person can take in; the files table and --json have them all.
_MOST_PATHS = 20


def show(result: IngestResult, stream: TextIO) -> None:
    """The totals, the damage by cause, and what could not be read."""
    out = console(stream)
    totals = [
        ("files", f"{result.files:,}"),
        *(
            (f"  {_word(status)}", f"{number:,}")
            for status, number in result.statuses.items()
            if number or status == "sound"
        ),
        *([("  unchanged", f"{result.unchanged:,}")] if result.unchanged else []),
        *([("    known damaged", f"{result.unchanged_damaged:,}")] if result.unchanged_damaged else []),
        *([("    known refused", f"{result.unchanged_refused:,}")] if result.unchanged_refused else []),
        ("records", f"{result.records:,}"),
        *([("  restored by sidecars", f"{result.repaired_records:,}")] if result.repaired_records else []),
        ("bytes", f"{result.nbytes:,}"),
        *([("  pending", f"{result.pending_bytes:,}")] if result.pending_bytes else []),
        ("seconds", f"{result.seconds:,.1f}"),
        ("records/s", f"{result.records_per_second:,.0f}"),
    ]
    out.print(table(None, totals, right=(1,)), soft_wrap=True)
    if result.damage:
        rows = [
            (cause, f"{total.ranges:,}", f"{total.nbytes:,}", meaning(cause))
            for cause, total in sorted(result.damage.items())
        ]
        out.print()
        out.print(table(("damage", "ranges", "bytes", "meaning"), rows, right=(1, 2), style="red"), soft_wrap=True)
    if result.statuses["damaged"]:
        out.print(end="" if result.damage else "\n")
        out.print("`seglake verify` of the same files and folders says which are damaged", soft_wrap=True)
    refused = [
        (path, f"{_word(status)}: {with_options(reason).removeprefix(f'{path}: ')}")
        for path, status, reason in result.errors
    ]
    _paths(out, "not ingested", refused)
    _paths(out, "sidecars ignored", [(path, PARITY_REFUSED[why]) for path, why in result.refused_sidecars])
    _paths(out, "skipped", result.skipped)
    _paths(out, "not read", [(unread.path, unread.reason) for unread in result.unread])
    out.print()
    if result.run_id is not None:
        names = ",".join([*result.formats, "damage", "files", "runs"])
        out.print(printable(f"{result.destination.rstrip('/')}/{{{names}}}/"), soft_wrap=True)
    if result.unchanged_damaged:
        known = count(result.unchanged_damaged, "unchanged file is", "unchanged files are")
        out.print(f"{known} damaged, as earlier runs found: `seglake verify` of the same files and folders says which")
    if not result.files:
        out.print("nothing to ingest: " + ("no file is new" if result.unchanged else "no files were found"))


def _word(status: str) -> str:
    return status.replace("_", " ")


def _paths(out: Console, title: str, reasons: Sequence[tuple[str, str]]) -> None:
    if not reasons:
        return
    out.print()
    out.print(f"{title}:", style="bold")
    for path, reason in reasons[:_MOST_PATHS]:
        out.print(f"  {printable(path)}: {printable(reason)}", soft_wrap=True)
    if len(reasons) > _MOST_PATHS:
        out.print(f"  ... and {len(reasons) - _MOST_PATHS:,} more")
