"""Reading with Spark beside the engine's limit: a data source that returns the very batches that it has.

Both give the same rows, in as many tasks, in one session, in turns, into nothing (`noop`) and into a count. A row is
told in time that passes, planning and starting included, and once more in the processor time of the JVM and its
workers, which hardly depends on what else the machine does.
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
    """The same rows twice: from segments, and prebuilt."""

    ours: DataFrame
    theirs: DataFrame
    rows: int


def loads(spark: SparkSession, folder: Path, format: str, value_bytes: int, records: int) -> Load:
    """Makes one file, as many links to it as are read, and its batches."""
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
    ours = (
        spark.read.format("seglake")
        .options(segmentFormat=format, pathGlobFilter=f"*.{EXTENSIONS[format]}")
        .options(minPartitionNum=str(TASKS), maxPartitionBytes="1t")
        .load(str(folder))
    )
    times = ",".join([str(FILES_OF_A_TASK)] * TASKS)
    theirs = spark.read.format("pass_through").option("times", times).load(str(batches))
    load = Load(ours, theirs, records * TASKS * FILES_OF_A_TASK)
    assert ours.schema == theirs.schema
    assert ours.count() == theirs.count() == load.rows
    return load


def into_nothing(frame: DataFrame) -> None:
    """Reads all columns and keeps none."""
    frame.write.format("noop").mode("overwrite").save()


def measure(suite: Suite, name: str, load: Load, action: Callable[[DataFrame], object]) -> None:
    """Both in turns, by both clocks."""
    passed: list[tuple[float, float]] = []
    taken: list[tuple[float, float]] = []
    for number in range(WARM_UP + ROUNDS):
        rates: list[tuple[float, float]] = []
        for frame in (load.ours, load.theirs):
            begun = time.perf_counter(), processor_seconds()
            action(frame)
            rates.append((load.rows / (time.perf_counter() - begun[0]), load.rows / (processor_seconds() - begun[1])))
        if number >= WARM_UP:
            passed.append((rates[0][0], rates[1][0]))
            taken.append((rates[0][1], rates[1][1]))
    suite.add(name, "pass-through", passed, TARGET)
    suite.add(f"{name}, processor time", "pass-through", taken)


def fixed(suite: Suite, spark: SparkSession, folder: Path) -> None:
    """What a query takes that reads next to nothing."""
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
    suite.compare("spark/one record", "pass-through", (ours, 1), (theirs, 1), unit="1/s")


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
                load = loads(spark, folder, format, value_bytes, records)
                measure(suite, f"spark/{format}/{size}", load, into_nothing)
                measure(suite, f"spark/{format}/{size}, count", load, DataFrame.count)
                shutil.rmtree(folder)
        fixed(suite, spark, Path(name))
    suite.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main())
