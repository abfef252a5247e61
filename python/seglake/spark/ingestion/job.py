"""The Spark job of an ingest: one task for each pack of files.

It uses nothing but the DataFrame API, so that Spark Connect will do.
"""

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.errors import PySparkException

from seglake._files import SegmentFile

from .result import IngestError, IngestProgress
from .task import TaskOutcome, TaskRunner

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["parallelism", "run_tasks"]

_POLL_S: Final = 0.25
_STOP_TIMEOUT_S: Final = 30
_MOST_PARALLELISM: Final = 1 << 16


def parallelism(spark: "SparkSession") -> int:
    """Returns how many tasks the session runs at a time.

    Raises:
        IngestError: the job that finds out failed.
    """
    try:
        return spark.sparkContext.defaultParallelism
    except PySparkException:
        pass
    # A client of Connect is not told, but a range has as many partitions.
    try:
        return spark.range(_MOST_PARALLELISM).selectExpr("spark_partition_id()").distinct().count()
    except Exception as error:
        raise _failed(error) from error


def run_tasks(
    spark: "SparkSession",
    runner: TaskRunner,
    staging: Path,
    files: Sequence[SegmentFile],
    tasks: int,
    progress: Callable[[IngestProgress], object] | None,
) -> list[TaskOutcome]:
    """Runs all tasks; returns their outcomes in their order. Calls `progress` in the meantime.

    Raises:
        IngestError: the job failed.
    """
    job = _Job(spark, runner, tasks, tag=f"seglake-ingest-{staging.name}")
    job.start()
    try:
        while job.is_alive():
            job.join(_POLL_S)
            if progress is not None:
                progress(_progress(staging, files))
    except BaseException:
        # Ctrl-C, or the caller's display failed: without this the tasks would go on.
        spark.interruptTag(job.tag)
        job.join(_STOP_TIMEOUT_S)
        raise
    if job.error is not None:
        raise _failed(job.error) from job.error
    return sorted(job.outcomes, key=lambda outcome: outcome.task)


class _Job(threading.Thread):
    """Runs the job in a thread of its own, so that the calling one can show progress and be interrupted."""

    def __init__(self, spark: "SparkSession", runner: TaskRunner, tasks: int, tag: str) -> None:
        super().__init__(name=tag, daemon=True)
        self.tag = tag
        self.outcomes: list[TaskOutcome] = []
        self.error: Exception | None = None
        self._spark = spark
        self._runner = runner
        self._tasks = tasks

    def run(self) -> None:
        runner = self._runner

        # A plain function, because Spark looks at the arguments of what it is given.
        def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return runner(batches)

        try:
            self._spark.addTag(self.tag)
            # As many partitions as numbers: each task gets one.
            numbers = self._spark.range(0, self._tasks, 1, self._tasks)
            rows = numbers.mapInArrow(work, "outcome string").collect()
            self.outcomes = [TaskOutcome.from_json(row["outcome"]) for row in rows]
        except Exception as error:
            self.error = error


def _progress(staging: Path, files: Sequence[SegmentFile]) -> IngestProgress:
    states = [json.loads(path.read_bytes()) for path in (staging / "progress").glob("*.json")]
    return IngestProgress(
        files_done=sum(done for done, _, _ in states),
        files_total=len(files),
        bytes_done=sum(size for _, size, _ in states),
        bytes_total=sum(file.size for file in files),
        records=sum(records for _, _, records in states),
    )


def _failed(error: Exception) -> IngestError:
    return IngestError(f"the Spark job failed, nothing was ingested: {_brief(error)}")


def _brief(error: Exception) -> str:
    """What went wrong, out of a message of Spark's: of a worker's traceback the last line, and no stack of Java's."""
    text = str(error).partition("JVM stacktrace:")[0].strip()
    _, traceback, rest = text.partition("Traceback (most recent call last):")
    # For a client of Connect a line with the error's class of SQL's follows.
    lines = [line for line in rest.splitlines() if line.strip() and not line.startswith(" SQLSTATE: ")]
    return lines[-1] if traceback and lines else text
