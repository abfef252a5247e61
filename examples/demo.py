"""The main job on real data: a year of flights in five formats, some files broken, ingested with Spark, checked.

Run it with `make demo`. It writes below `demo-data/` and exits with 1 if anything that it claims does not hold.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from rich.console import Console

from flights import checks, delays, messages, screen, source
from flights.files import ensure_files
from flights.formats import FORMATS, Segment, all_segments
from flights.formats.oplog import DIALECT
from flights.lake import read_lake
from seglake.spark import IngestResult, ingest
from seglake.spark.session import session


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; returns the exit status: 0 if all that was claimed holds, else 1."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--folder",
        type=Path,
        default=Path("demo-data"),
        help="its folders `segments`, `lake` and `lake-sealed` are made anew (default: %(default)s)",
    )
    options = parser.parse_args(arguments)
    return run(options.folder, source.load_flights(), Console())


def run(folder: Path, flights: pd.DataFrame, console: Console) -> int:
    """Write the `flights` as files below `folder`, break, ingest and check them; returns the exit status."""
    segment_folder, lake_folder = folder / "segments", folder / "lake"

    screen.section(console, "1  Real flights, in five formats")
    ordered = messages.in_segment_order(flights)
    screen.say(console, f"{len(ordered):,} flights, each a JSON message timed by its scheduled departure")
    segments = all_segments(segment_folder, messages.messages_by_month(ordered))
    with console.status("  writing") as status:
        built = ensure_files(segment_folder, segments, lambda file: status.update(f"  writing {file}"))
    screen.show_files(console, segment_folder, segments, built)

    screen.section(console, "2  Some of the files are broken on purpose")
    screen.show_damage(console, segments)

    screen.section(console, "3  Ingested with Spark")
    # A sealed file and the active one that it was made of have one source: into one lake, each record would come once.
    lake_folders = {each.format: lake_folder for each in FORMATS}
    lake_folders["sealed"] = folder / "lake-sealed"
    for each in set(lake_folders.values()):
        shutil.rmtree(each, ignore_errors=True)
    ingested: list[IngestResult] = []
    with console.status("  starting Spark") as status, session("local[*]", {}) as spark:
        status.stop()
        for lake in (lake_folder, lake_folders["sealed"]):
            sources = [segment_folder / name for name, own in lake_folders.items() if own == lake]
            with screen.ingest_progress(console) as progress:
                ingested.append(
                    ingest(sources, lake, spark=spark, options={"dialect": DIALECT}, final=True, progress=progress)
                )
        records = {name: lake / name for name, lake in lake_folders.items()}
        by_sql = delays.delays_by_sql(spark, records)
    lakes = {each.format: read_lake(lake_folders[each.format], each) for each in FORMATS}
    by_format = {each.format: [segment for segment in segments if isinstance(segment, each)] for each in FORMATS}
    for result in ingested:
        screen.show_ingest(console, result)
    screen.show_formats(console, lakes, by_format)

    screen.section(console, "4  Checked against what was written, and what was broken")
    results = {name: checks.all_checks(by_format[name], lake) for name, lake in lakes.items()}
    for name, answer in by_sql.items():
        by_table = delays.delays_by_table(delays.undamaged(ordered, by_format[name]))
        results[name].append(delays.same_answer(answer, by_table))
    holds = screen.show_checks(console, results)

    screen.section(console, "5  Who comes late? The answer, in SQL over what was ingested")
    screen.show_delays(console, by_sql["active"], source.load_airlines())

    screen.section(console, "Try next" if holds else "Something above does not hold. To look into it")
    screen.show_next(console, next_commands(folder, segments))
    return 0 if holds else 1


def next_commands(folder: Path, segments: Sequence[Segment]) -> list[str]:
    """Commands that go on from what the demo has left behind."""
    path = {segment.path.name: segment.path for segment in segments}
    command = Path(sys.executable).with_name("seglake")
    near = command.is_relative_to(Path.cwd())
    seglake = str(command.relative_to(Path.cwd())) if near else "seglake"
    cat = f"{seglake} cat --json --value text --limit 3"
    return [
        f"{seglake} verify {path['2013-03.active']}",
        f"{seglake} recover {path['2013-03.active']} {folder / '2013-03-recovered.active'}",
        f"{cat} {path['2013-01.active']}",
        f"{cat} --dialect {DIALECT} --columns seq,clock,value {path['LGA.oplog']}",
        f"{seglake} seal {path['2013-01.active']} {folder / '2013-01.sealed'}",
        f"{seglake} convert {path['2013-01.active']} {folder / '2013-01.chunks'} --drop uuid,type",
        f"{seglake} ingest --dialect {DIALECT} {folder / 'segments'} {folder / 'another-lake'}",
    ]


if __name__ == "__main__":
    sys.exit(main())
