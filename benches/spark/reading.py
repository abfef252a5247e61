"""Reading with Spark, compared with the engine's limit: a data source that returns ready batches.

Both give the same rows, in as many tasks, in one session, in turns, into nothing (`noop`) and into a count: in one
task, which has all cores for its JVM, its worker and what is decoded ahead, and in as many as there are cores, where
nothing is left to decode ahead with. A row is told in time that passes, planning and starting included, and once more
in the processor time of the JVM and its workers, which hardly depends on what else the machine does.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from seglake.spark.source import SegmentDataSource

sys.path.insert(0, str(Path(__file__).parents[1] / "python"))

from _interleaved import Suite
from _logs import EXTENSIONS, FORMATS, write
from _pass_through import PassThrough
from _processes import processor_seconds
from _session import TASKS, session

TARGET: Final = 0.9
ROUNDS: Final = int(os.environ.get("SEGLAKE_SPARK_ROUNDS", "7"))
WARM_UP: Final = 2
SIZES: Final = {"128 B": (128, 500_000), "4 KiB": (4096, 32_768)}
"""Bytes of a value, and records of a file."""
FILES_OF_A_TASK: Final = int(os.environ.get("SEGLAKE_SPARK_FILES", "6"))


@dataclass(frozen=True)
class Load:
    """The same rows twice, in the same number of tasks: from segments, and prebuilt."""

    tasks: int
    ours: DataFrame
    theirs: DataFrame
    rows: int


def loads(spark: SparkSession, folder: Path, format: str, value_bytes: int, records: int) -> list[Load]:
    """Makes a file, its links, and its batches. Returns what one task reads, and what all do."""
    path = folder / f"0.{EXTENSIONS[format]}"
    write(path, format, records, value_bytes)
    for number in range(1, TASKS * FILES_OF_A_TASK):
        path.with_stem(str(number)).hardlink_to(path)
    batches = folder / "batches.arrow"
    source = SegmentDataSource({"path": str(path), "segmentformat": format})
    reader = source.reader(source.schema())
    with pa.OSFile(str(batches), "wb") as file:
        made = [batch for partition in reader.partitions() for batch in reader.read(partition)]
        with pa.ipc.new_file(file, made[0].schema) as writer:
            for batch in made:
                writer.write_batch(batch)
    given = []
    for tasks in sorted({1, TASKS}):
        ours = (
            spark.read.format("seglake")
            .options(segmentFormat=format, minPartitionNum=str(tasks), maxPartitionBytes="1t", openCostInBytes="0")
            .load([str(path.with_stem(str(number))) for number in range(tasks * FILES_OF_A_TASK)])
        )
        times = ",".join([str(FILES_OF_A_TASK)] * tasks)
        theirs = spark.read.format("pass_through").option("times", times).load(str(batches))
        load = Load(tasks, ours, theirs, records * tasks * FILES_OF_A_TASK)
        assert ours.schema == theirs.schema
        assert ours.rdd.getNumPartitions() == theirs.rdd.getNumPartitions() == tasks
        assert ours.count() == theirs.count() == load.rows
        given.append(load)
    return given


def into_nothing(frame: DataFrame) -> None:
    """Reads all columns and keeps none."""
    frame.write.format("noop").mode("overwrite").save()


def measure(suite: Suite, name: str, load: Load, action: Callable[[DataFrame], object]) -> None:
    """Measures both in turns, by both clocks. Each goes first in every other round."""
    passed: list[tuple[float, float]] = []
    taken: list[tuple[float, float]] = []
    for number in range(WARM_UP + ROUNDS):
        rates: list[tuple[float, float]] = []
        swapped = number % 2 == 1
        for frame in (load.theirs, load.ours) if swapped else (load.ours, load.theirs):
            begun = time.perf_counter(), processor_seconds()
            action(frame)
            rates.append((load.rows / (time.perf_counter() - begun[0]), load.rows / (processor_seconds() - begun[1])))
        if swapped:
            rates.reverse()
        if number >= WARM_UP:
            passed.append((rates[0][0], rates[1][0]))
            taken.append((rates[0][1], rates[1][1]))
    suite.add(name, "pass-through", passed, TARGET, kind="limit")
    suite.add(f"{name}, cpu time", "pass-through", taken, kind="limit")


def fixed(suite: Suite, spark: SparkSession, folder: Path) -> None:
    """The time of a query that reads almost nothing."""
    path = folder / "0.active"
    write(path, "active", 1, 128)
    source = SegmentDataSource({"path": str(path)})
    reader = source.reader(source.schema())
    (batch,) = reader.read(reader.partitions()[0])
    with pa.ipc.new_file(str(folder / "batches.arrow"), batch.schema) as writer:
        writer.write_batch(batch)

    def ours() -> None:
        assert spark.read.format("seglake").load(str(path)).count() == 1

    def theirs() -> None:
        options = spark.read.format("pass_through").option("times", "1")
        assert options.load(str(folder / "batches.arrow")).count() == 1

    for _ in range(5 * WARM_UP):
        ours()
        theirs()
    suite.compare("spark/one record", "pass-through", (ours, 1), (theirs, 1), unit="1/s", kind="limit")


def main() -> int:
    """Measures the formats that are named, or all."""
    formats = sys.argv[1:] or FORMATS
    suite = Suite("spark", time.perf_counter, ROUNDS)
    with session() as spark, tempfile.TemporaryDirectory() as name:
        spark.dataSource.register(PassThrough)
        for format in formats:
            for size, (value_bytes, records) in SIZES.items():
                folder = Path(name, f"{format}-{value_bytes}")
                folder.mkdir()
                for load in loads(spark, folder, format, value_bytes, records):
                    row = f"spark/{format}/{size}, {load.tasks} task{'s' * (load.tasks > 1)}"
                    measure(suite, row, load, into_nothing)
                    measure(suite, f"{row}, count", load, DataFrame.count)
                shutil.rmtree(folder)
        fixed(suite, spark, Path(name))
    suite.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main())
