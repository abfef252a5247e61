"""What the demo prints: short sections for a person to read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow.compute as pc
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from seglake.spark import IngestProgress, IngestResult

from .checks import Check
from .delays import CarrierDelay
from .formats import FORMATS, Segment
from .lake import Lake


def section(console: Console, title: str) -> None:
    """The heading of a section."""
    console.print()
    console.print(title, style="bold", highlight=False)


def show_files(console: Console, folder: Path, segments: Sequence[Segment], built: bool) -> None:
    """How many files there are, and where."""
    size = sum(segment.path.stat().st_size for segment in segments)
    kept = "written to" if built else "still as an earlier run left them in"
    say(console, f"{len(segments)} files in {len(FORMATS)} formats, {size / 1e6:.1f} MB, {kept} {folder}/")


def show_damage(console: Console, segments: Sequence[Segment]) -> None:
    """Which files were broken, and how."""
    table = _table("file", "what was done to it", "flights lost >")
    for segment in segments:
        if segment.damage:
            table.add_row(segment.path.name, segment.damage.about, f"{segment.flights_lost:,}")
    console.print(table)


def show_formats(console: Console, lakes: Mapping[str, Lake], segments: Mapping[str, Sequence[Segment]]) -> None:
    """What the files of each format take, and what arrived of them."""
    table = _table("format", "files >", "damaged >", "MB >", "bytes a flight >", "records >", "flights lost >")
    for name, lake in lakes.items():
        size = pc.sum(lake.files["nbytes"]).as_py()
        flights = sum(segment.flights for segment in segments[name])
        table.add_row(
            name,
            f"{lake.files.num_rows}",
            f"{lake.files['status'].to_pylist().count('damaged')}",
            f"{size / 1e6:.1f}",
            f"{size / flights:.0f}",
            f"{lake.records.num_rows:,}",
            f"{sum(segment.flights_lost for segment in segments[name]):,}",
        )
    console.print(table)


def show_checks(console: Console, results: Mapping[str, Sequence[Check]]) -> bool:
    """Each claim with a mark, and for each format the number behind it; returns whether all hold."""
    _row(console, results)
    for checks in zip(*results.values(), strict=True):
        by_format = dict(zip(results, checks, strict=True))
        failed = {name: check for name, check in by_format.items() if not check.holds}
        mark = "[bold red]✗[/]" if failed else "[green]✓[/]"
        console.print(f"  {mark} {checks[0].claim}", highlight=False)
        for name, check in failed.items():
            console.print(f"    {name}: {check.detail}", style="red", highlight=False, markup=False)
        if not failed:
            _row(console, [check.detail for check in checks])
    return all(check.holds for checks in results.values() for check in checks)


def show_delays(console: Console, answer: Sequence[CarrierDelay], airlines: Mapping[str, str]) -> None:
    """The answer, the most punctual airline first. Less than nothing is early."""
    table = _table("airline", "arrived >", "mean delay >", "")
    longest = max((abs(delay.mean_minutes) for delay in answer), default=0) or 1.0
    for delay in answer:
        bar = "█" * max(1, round(abs(delay.mean_minutes) / longest * 20))
        colour = "green" if delay.mean_minutes <= 0 else "yellow"
        name = airlines.get(delay.carrier, delay.carrier)
        table.add_row(name, f"{delay.flights:,}", f"{delay.mean_minutes:+.1f} min", f"[{colour}]{bar}[/]")
    console.print(table)


def show_next(console: Console, commands: Sequence[str]) -> None:
    """Commands to go on with."""
    for command in commands:
        console.print(f"  {command}", style="cyan", highlight=False, markup=False, soft_wrap=True)
    console.print()


def say(console: Console, sentence: str) -> None:
    """One sentence below a heading."""
    console.print(f"  {sentence}", highlight=False, markup=False)


@contextmanager
def ingest_progress(console: Console) -> Iterator[Callable[[IngestProgress], None]]:
    """A bar that the ingest's own reports move; it is gone when done, and is not drawn where there is no terminal."""
    columns = (TextColumn("  reading and checking"), BarColumn(), DownloadColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("ingest", total=None)

        def report(state: IngestProgress) -> None:
            bar.update(task, completed=state.bytes_done, total=state.bytes_total)

        yield report


def show_ingest(console: Console, result: IngestResult) -> None:
    """What the ingest says of itself: how much it read, and how fast."""
    rate = f"{result.seconds:.1f} s, {result.records_per_second:,.0f} records a second"
    damaged = result.statuses["damaged"]
    say(console, f"{result.files} files, {damaged} of them damaged; {result.nbytes:,} bytes")
    say(console, f"{result.records:,} records arrived in {result.destination} ({rate})")


def _row(console: Console, texts: Iterable[str]) -> None:
    """Short texts in columns, one for each format."""
    console.print("  " + "".join(f"{text:>13}" for text in texts), style="dim", highlight=False, markup=False)


def _table(*columns: str) -> Table:
    """A table without lines; a column whose name ends in `>` is aligned to the right."""
    table = Table(box=None, padding=(0, 1, 0, 2), header_style="dim")
    for column in columns:
        table.add_column(column.removesuffix(" >"), justify="right" if column.endswith(">") else "left", no_wrap=True)
    return table
