"""Executors that die in the middle of a task, as they do when a machine goes or memory runs out.

Run where there are executors: with `make test-clusters`.
"""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import seglake

pytestmark = pytest.mark.spark

ROWS = 1000
ROWS_A_FILE = 150


def kills_its_executor(mark: Path) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Gives a function for `mapInArrow`: in the first attempt at the first partition it ends the JVM above it."""

    def pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        task = TaskContext.get()
        for number, batch in enumerate(batches):
            if task is not None and task.partitionId() == 0 and number == 2 and not mark.exists():
                mark.touch()
                daemon = Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()
                os.kill(int(daemon[1]), signal.SIGKILL)  # the parent of the daemon that this worker is a child of
            yield batch

    return pass_on


@pytest.mark.parametrize("format", ["active", "chunked", "sealed"])
def test_what_they_wrote_is_written_once(spark: SparkSession, tmp_path: Path, format: str) -> None:
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "100")
    rows = spark.range(0, ROWS, 1, 2).selectExpr("id AS offset", "cast(id AS string) AS value")
    rows = rows.mapInArrow(kills_its_executor(tmp_path / "killed"), rows.schema)
    if format != "chunked":
        rows = rows.selectExpr("'t' AS type", "value")
    options = {"segmentFormat": format, "maxRecordsPerFile": str(ROWS_A_FILE)}
    rows.write.format("seglake").options(**options).mode("append").save(str(tmp_path / "out"))
    assert (tmp_path / "killed").exists()

    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    segments = [name for name in names if name != "_SUCCESS" and not name.endswith(".index")]
    read = [[int(record.value) for record in seglake.open(tmp_path / "out" / name)] for name in segments]
    assert [number for numbers in read for number in numbers] == list(range(ROWS))
    assert [len(numbers) for numbers in read] == [150, 150, 150, 50] * 2
    assert len(names) == len(segments) * (2 if format == "chunked" else 1) + 1, "something else was left there"


def test_what_they_read_is_read_once(spark: SparkSession, tmp_path: Path) -> None:
    for number in range(4):
        with seglake.create(tmp_path / f"{number}.active", format="active") as writer:
            for place in range(ROWS):
                writer.write(type="t", value=str(number * ROWS + place).encode())
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "100")
    rows = spark.read.format("seglake").options(mode="FAILFAST", minPartitionNum="2").load(str(tmp_path))
    rows = rows.selectExpr("cast(cast(value AS string) AS long) AS number")
    # In a stage that the next one needs whole, so that rows of the first attempt would be counted if they were kept.
    rows = rows.mapInArrow(kills_its_executor(tmp_path / "killed"), rows.schema).repartition(2, "number")
    found = sorted(row.number for row in rows.collect())
    assert (tmp_path / "killed").exists()
    assert found == list(range(4 * ROWS))
