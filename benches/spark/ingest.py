"""How long `seglake ingest` takes without Spark and with it, from the start of the process to its end.

    python benches/spark/ingest.py [--rounds 3] [few 100MB 1GB many one]

Both read the same files from the page cache and write the same rows to a new folder, in turns. The median of the rounds
is printed.
"""

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import seglake

START: Final = datetime(2024, 1, 1, tzinfo=UTC)
SETS: Final[dict[str, tuple[str, int, int]]] = {
    "few": ("3 files of 50 kB", 3, 50_000),
    "100MB": ("10 files, 100 MB", 10, 10_000_000),
    "1GB": ("20 files, 1 GB", 20, 50_000_000),
    "many": ("10,000 files of 20 kB", 10_000, 20_000),
    "one": ("1 file, 500 MB", 1, 500_000_000),
}
"""What is read: how it is called, how many files, and the bytes of each."""
ENGINES: Final = ("local", "spark")


def write(folder: Path, files: int, nbytes: int) -> None:
    """Writes active segments of readings as JSON, of two days."""
    draw = random.Random(1)
    for number in range(files):
        with seglake.create(folder / f"{number:05d}.active", format="active") as writer:
            written, moment = 0, START + timedelta(days=2 * number / files)
            while written < nbytes:
                moment += timedelta(milliseconds=1)
                reading = {"device": draw.randrange(5000), "value": draw.random(), "unit": "hPa", "state": "ok"}
                value = json.dumps(reading).encode()
                writer.write(uuid=seglake.uuid6(moment), type="sensor/reading", value=value)
                written += 43 + len(value)


def seconds(engine: str, source: Path, destination: Path) -> float:
    """Ingests in a process of its own; returns the seconds that it took."""
    command = [sys.executable, "-m", "seglake", "ingest", source, destination, "--engine", engine, "--json"]
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def measure(folder: Path, rounds: int) -> dict[str, float]:
    """Measures both engines in turns; returns the median of each."""
    taken: dict[str, list[float]] = {engine: [] for engine in ENGINES}
    for turn in range(rounds):
        for engine in ENGINES if turn % 2 == 0 else reversed(ENGINES):
            with tempfile.TemporaryDirectory(dir=folder) as destination:
                taken[engine].append(seconds(engine, folder / "source", Path(destination) / "lake"))
    return {engine: statistics.median(times) for engine, times in taken.items()}


def main() -> None:
    """Measures the sets that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", help="few, 100MB, 1GB, many or one", default=list(SETS))
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()

    def row(*cells: str) -> None:
        print("|", " | ".join(cells), "|", flush=True)

    row("what is read", "`local`", "`spark`", "`spark` takes")
    row("---", "--:", "--:", "--:")
    for name in given.sets:
        title, files, nbytes = SETS[name]
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "source").mkdir()
            write(Path(folder) / "source", files, nbytes)
            taken = measure(Path(folder), given.rounds)
        local, spark = (taken[engine] for engine in ENGINES)
        row(title, f"{local:.1f} s", f"{spark:.1f} s", f"{spark / local:.1f} times as long")


if __name__ == "__main__":
    main()
