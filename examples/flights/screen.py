"""What the demo prints: short sections for a person to read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from seglake.spark import IngestProgress, IngestResult

from .checks import Check
from .damage import Damage
from .delays import CarrierDelay
from .layout import Segment


def section(console: Console, title: str) -> None:
    """The heading of a section."""
    console.print()
    console.print(title, style="bold", highlight=False)


def show_segments(console: Console, folder: Path, segments: Sequence[Segment], built: bool) -> None:
    """How many messages there are, and where."""
    count = sum(segment.messages.num_rows for segment in segments)
    size = sum((folder / segment.file_name).stat().st_size for segment in segments)
    say(console, f"{count:,} flights, each a JSON message timed by its scheduled departure")
    kept = "written to" if built else "still as an earlier run left them in"
    say(console, f"{len(segments)} segments, {size / 1e6:.1f} MB, {kept} {folder}/")


def show_damages(console: Console, segments: Sequence[Segment], damages: Mapping[str, Damage]) -> None:
    """Which files were broken, and how."""
    table = _table("file", "what was done to it", "flights lost >")
    for segment in segments:
        if segment.month in damages:
            damage = damages[segment.month]
            table.add_row(segment.file_name, damage.about, f"{len(damage.lost)}")
    console.print(table)


def show_checks(console: Console, results: Sequence[Check]) -> bool:
    """Each claim with a mark, and the numbers behind it; returns whether all hold."""
    for check in results:
        mark = "[green]✓[/]" if check.holds else "[bold red]✗[/]"
        console.print(f"  {mark} {check.claim}", highlight=False)
        console.print(f"    {check.detail}", style="dim" if check.holds else "red", highlight=False, markup=False)
    return all(check.holds for check in results)


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
    """What the ingest says of itself: how much it read, and what damage it found."""
    rate = f"{result.seconds:.1f} s, {result.records_per_second:,.0f} records a second"
    say(console, f"{result.files} files, {result.damaged_files} of them damaged; {result.bytes:,} bytes")
    say(console, f"{result.records:,} records arrived in {result.destination} ({rate})")
    table = _table("damage by cause", "ranges >", "bytes >")
    for cause, total in sorted(result.damage.items()):
        table.add_row(cause, f"{total.ranges:,}", f"{total.bytes:,}")
    console.print(table)


def _table(*columns: str) -> Table:
    """A table without lines; a column whose name ends in `>` is aligned to the right."""
    table = Table(box=None, padding=(0, 1, 0, 2), header_style="dim")
    for column in columns:
        table.add_column(column.removesuffix(" >"), justify="right" if column.endswith(">") else "left", no_wrap=True)
    return table
