"""A stream beside a batch load of the same files, and what planning the batches of many files costs.

The stream takes all in one batch (`availableNow`), with a new checkpoint each time; the load reads the same files in
the same session, in turns, both into nothing (`noop`). The time of the stream is that of its batch as Spark says it,
planning included, without the start of the query: Spark starts processes for that, whatever the query reads.
SEGLAKE_SPARK_MANY (200,000) is the number of files of the second part.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable

from seglake.spark.source import SegmentDataSource

sys.path.insert(0, str(Path(__file__).parents[1] / "python"))

import planning
from _interleaved import Suite
from _logs import EXTENSIONS, FORMATS, write, write_log
from _session import TASKS, session

TARGET: Final = 0.8
ROUNDS: Final = int(os.environ.get("SEGLAKE_SPARK_ROUNDS", "5"))
WARM_UP: Final = 1
FILES: Final = 6
SIZES: Final = {"128 B": (128, 500_000), "4 KiB": (4096, 32_768)}
LOG: Final = "log"
"""Instead of a format: the folder of a log, of which a stream keeps no states."""
PLAN_S: Final = 2.0
"""The target in seconds for planning a batch, of any number of files of which few have changed."""
RESTART_S: Final = 3.0
"""The target in seconds for planning the first batch after a restart."""


def streamed(spark: SparkSession, source: Path, format: str, folder: Path) -> float:
    """Reads all files by a new query. Returns the seconds of its batches."""
    own = {} if format == LOG else {"segmentFormat": format, "stateLocation": str(folder / "states")}
    stream = spark.readStream.format("seglake").options(minPartitionNum=str(TASKS), **own).load(str(source))
    written = stream.writeStream.format("noop").option("checkpointLocation", str(folder / "checkpoint"))
    query = written.trigger(availableNow=True).start()
    query.awaitTermination()
    took = sum(progress["durationMs"]["triggerExecution"] for progress in query.recentProgress)
    return took / 1000


def loaded(spark: SparkSession, source: Path, format: str) -> float:
    """Reads all files by a load. Returns its seconds."""
    begun = time.perf_counter()
    own = {} if format == LOG else {"segmentFormat": format}
    load = spark.read.format("seglake").options(minPartitionNum=str(TASKS), **own).load(str(source))
    load.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - begun


def compared(suite: Suite, spark: SparkSession, format: str, size: str, folder: Path) -> None:
    """Measures both in turns. Each goes first in every other round."""
    value_bytes, records = SIZES[size]
    source = folder / "source"
    source.mkdir()
    if format == LOG:
        write_log(source, FILES, records, value_bytes)
    else:
        for number in range(FILES):
            # Files with records of their own: files that are alike would be one segment to a stream, and read once.
            write(source / f"{number}.{EXTENSIONS[format]}", format, records, value_bytes, number)
    rows = FILES * records
    measured: list[tuple[float, float]] = []
    for number in range(WARM_UP + ROUNDS):
        own = folder / f"own-{number}"
        own.mkdir()
        rates: dict[str, float] = {}
        for name in ("stream", "load") if number % 2 else ("load", "stream"):
            took = streamed(spark, source, format, own) if name == "stream" else loaded(spark, source, format)
            rates[name] = rows / took
        if number >= WARM_UP:
            measured.append((rates["stream"], rates["load"]))
    suite.add(f"spark/stream/{format}/{size}", "load", measured, TARGET, kind="limit")
    shutil.rmtree(folder)


def reader(folder: Path, states: Path) -> Any:
    """A reader of a stream, as a new process makes it."""
    options = {
        "path": str(folder),
        "recursivefilelookup": "true",
        "segmentformat": "active",
        "statelocation": str(states),
    }
    source = SegmentDataSource(options)
    return source.streamReader(source.schema())


def seconds(call: Any) -> tuple[float, Any]:
    """What a call takes, and gives."""
    begun = time.perf_counter()
    given = call()
    return time.perf_counter() - begun, given


def planned(suite: Suite) -> None:
    """Measures the plans of batches of many files."""
    count = planning.MOST
    with tempfile.TemporaryDirectory() as name:
        folder, states = Path(name, "files"), Path(name, "states")
        folder.mkdir()
        made(folder, count)
        everything = ReadAllAvailable()
        running = reader(folder, states)
        first, offset = seconds(lambda: running.latestOffset(running.initialOffset(), everything))
        grown = folder / "0000" / "0000000.active"
        times: dict[str, list[tuple[float, float]]] = {"nothing new": [], "one file grew": [], "after a restart": []}
        for number in range(ROUNDS):
            took, same = seconds(lambda: running.latestOffset(offset, everything))  # noqa: B023
            assert same == offset
            times["nothing new"].append((took, PLAN_S))
            grow(grown, count + number)
            took, after = seconds(lambda: running.latestOffset(offset, everything))  # noqa: B023
            assert after != offset
            times["one file grew"].append((took, PLAN_S))
            grow(grown, 2 * count + number)
            took, offset = seconds(lambda: reader(folder, states).latestOffset(after, everything))  # noqa: B023
            times["after a restart"].append((took, RESTART_S))
            running.latestOffset(offset, everything)  # which takes over
        suite.add(f"spark/stream plan/{count:,} files, all new", "the goal", [(first, PLAN_S)], unit="s", kind="goal")
        for what, own in times.items():
            suite.add(f"spark/stream plan/{count:,} files, {what}", "the goal", own, 1.0, "s", "goal")


def made(folder: Path, count: int) -> None:
    """Makes small segments, each with records of its own, of some time ago."""
    import seglake

    past = (time.time() - 3600,) * 2
    for number in range(count):
        below = folder / f"{number // planning.IN_A_FOLDER:04}"
        if number % planning.IN_A_FOLDER == 0:
            below.mkdir()
        path = below / f"{number:07}.active"
        with seglake.create(path, format="active") as writer:
            for _ in range(2):
                writer.write(type="t", value=str(number).encode())
        os.utime(path, past)


def grow(path: Path, number: int) -> None:
    """Appends a record."""
    import seglake

    with seglake.create(path, format="active", if_exists="append") as writer:
        writer.write(type="t", value=str(number).encode())


def main() -> int:
    """Measures the formats that are named, or all; or with `--plan` the plans alone."""
    formats = [each for each in sys.argv[1:] if each != "--plan"] or [*FORMATS, LOG]
    suite = Suite("spark_streaming", time.perf_counter, ROUNDS)
    if "--plan" not in sys.argv[1:]:
        with session() as spark, tempfile.TemporaryDirectory() as name:
            for format in formats:
                for size in SIZES:
                    folder = Path(name, f"{format}-{size.replace(' ', '')}")
                    folder.mkdir()
                    compared(suite, spark, format, size, folder)
    planned(suite)
    suite.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main())
