"""The main job on real data: a year of flights in twelve segments, four of them broken, ingested with Spark, checked.

Run it with `make demo`. It writes below `demo-data/` and exits with 1 if anything that it claims does not hold.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd
from rich.console import Console

from flights import checks, delays, messages, screen, source
from flights.damage import Damage, intact, plan
from flights.lake import FORMAT, read_lake
from flights.layout import Segment
from flights.segments import ensure_segments
from seglake.spark import ingest
from seglake.spark.session import session


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; returns the exit status: 0 if all that was claimed holds, else 1."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--folder",
        type=Path,
        default=Path("demo-data"),
        help="its folders `segments` and `lake` are made anew (default: %(default)s)",
    )
    options = parser.parse_args(arguments)
    return run(options.folder, source.load_flights(), Console())


def run(folder: Path, flights: pd.DataFrame, console: Console) -> int:
    """Write the `flights` as segments below `folder`, break, ingest and check them; returns the exit status."""
    segment_folder, lake_folder = folder / "segments", folder / "lake"

    screen.section(console, "1  Real flights, as segments")
    ordered = messages.in_segment_order(flights)
    segments = [Segment(month, table) for month, table in messages.messages_by_month(ordered).items()]
    damages = plan(segments)
    with console.status("  writing") as status:
        built = ensure_segments(
            segment_folder, segments, damages, lambda month: status.update(f"  writing {month}.active")
        )
    screen.show_segments(console, segment_folder, segments, built)

    screen.section(console, "2  Some of them are broken on purpose")
    screen.show_damages(console, segments, damages)

    screen.section(console, "3  Ingested with Spark")
    if lake_folder.exists():
        shutil.rmtree(lake_folder)
    with console.status("  starting Spark") as status, session("local[*]", {}) as spark:
        status.stop()
        with screen.ingest_progress(console) as progress:
            result = ingest(segment_folder, lake_folder, spark=spark, progress=progress)
        screen.show_ingest(console, result)
        by_sql = delays.delays_by_sql(spark, lake_folder / FORMAT / "records")

    screen.section(console, "4  Checked against what was written, and what was broken")
    results = checks.all_checks(segment_folder, segments, damages, read_lake(lake_folder))
    results.append(delays.same_answer(by_sql, delays.delays_by_table(ordered.loc[intact(segments, damages)])))
    holds = screen.show_checks(console, results)

    screen.section(console, "5  Who comes late? The answer, in SQL over what was ingested")
    screen.show_delays(console, by_sql, source.load_airlines())

    screen.section(console, "Try next" if holds else "Something above does not hold. To look into it")
    screen.show_next(console, next_commands(segment_folder, lake_folder, segments, damages))
    return 0 if holds else 1


def next_commands(
    segment_folder: Path, lake_folder: Path, segments: Sequence[Segment], damages: Mapping[str, Damage]
) -> list[str]:
    """Commands that go on from what the demo has left behind."""
    broken = segment_folder / next((segment.file_name for segment in segments if segment.month in damages), "*.active")
    command = Path(sys.executable).with_name("seglake")
    near = command.is_relative_to(Path.cwd())
    seglake = str(command.relative_to(Path.cwd())) if near else "seglake"
    return [
        f"{seglake} verify {broken}",
        f"{seglake} cat --json --value text {segment_folder / segments[0].file_name} | head -3",
        f"{seglake} ingest {segment_folder} --to {lake_folder.with_name('another-lake')}",
    ]


if __name__ == "__main__":
    sys.exit(main())
