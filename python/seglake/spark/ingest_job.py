"""The Spark job of an ingest: one task for each pack of files.

It uses nothing but the DataFrame API, so that Spark Connect will do.
"""

import builtins
import pickle
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.errors import PySparkException

from seglake.lake.plan import FileGroup
from seglake.lake.progress import Progress
from seglake.lake.result import IngestError
from seglake.lake.task import TaskOutcome, TaskRunner
from seglake.spark.session import session
from seglake.spark.versions import reduced

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["SentRunner", "SparkEngine", "spark_engine"]

_POLL_S: Final = 0.25
_STOP_TIMEOUT_S: Final = 30
_MOST_PARALLELISM: Final = 1 << 16


@contextmanager
def spark_engine(spark: "SparkSession | Callable[[], SparkSession] | None") -> "Generator[SparkEngine]":
    """Makes the engine of a session, or of the active one, or of one that is made and stopped in the end."""
    if spark is not None:
        yield SparkEngine(spark() if callable(spark) else spark)
        return
    with session() as made:
        yield SparkEngine(made)


@dataclass(frozen=True)
class SparkEngine:
    """Runs each task as one of a Spark job."""

    spark: "SparkSession"

    def parallelism(self) -> int:
        """Returns how many tasks the session runs at a time.

        Raises:
            IngestError: the job that finds out failed.
        """
        try:
            return self.spark.sparkContext.defaultParallelism
        except PySparkException:
            pass
        # A client of Connect is not told, but a range has as many partitions.
        try:
            partitions = self.spark.range(_MOST_PARALLELISM).selectExpr("spark_partition_id()")
            return partitions.distinct().count()
        except Exception as error:
            raise _failed(error) from error

    def run_tasks(
        self, runner: TaskRunner, tasks: Sequence[Sequence[FileGroup]], progress: Progress, watch: Callable[[], object]
    ) -> list[TaskOutcome]:
        """Runs all tasks; returns their outcomes in their order. Calls `watch` in the meantime, and at the end.

        Executors report nothing before their end, so that is when there is progress.

        Raises:
            IngestError: the job failed.
        """
        job = _Job(self.spark, SentRunner(runner), tasks, tag=f"seglake-ingest-{runner.run_id}")
        job.start()
        try:
            while job.is_alive():
                job.join(_POLL_S)
                watch()
        except BaseException:
            # Ctrl-C, or the caller's display failed: without this the tasks would go on.
            self.spark.interruptTag(job.tag)
            job.join(_STOP_TIMEOUT_S)
            raise
        if job.error is not None:
            raise _failed(job.error) from job.error
        for outcome in job.outcomes:
            size = sum(group.size for group in tasks[outcome.task])
            records = sum(row.added for row in outcome.files)
            ranges = sum(total.ranges for row in outcome.files for total in row.damage.values())
            progress.add(files=len(outcome.files), nbytes=size, records=records, damage=ranges)
        watch()
        return sorted(job.outcomes, key=lambda outcome: outcome.task)


@dataclass(frozen=True)
class SentRunner:
    """Runs tasks on the executors, which get it pickled."""

    runner: TaskRunner

    def __reduce__(self) -> tuple[object, ...]:
        return reduced(SentRunner, self.runner)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Runs the tasks that come in, and yields their outcomes, pickled: the function for `mapInArrow`."""
        for batch in batches:
            rows: Any = batch
            for number, task in zip(rows.column(0).to_pylist(), rows.column(1).to_pylist(), strict=True):
                outcome = self.runner.run(number, pickle.loads(task), Progress())
                yield pa.RecordBatch.from_pydict({"outcome": [pickle.dumps(outcome)]})


class _Job(threading.Thread):
    """Runs the job in a thread of its own, so that the calling one can show progress and be interrupted."""

    def __init__(
        self, spark: "SparkSession", runner: SentRunner, tasks: Sequence[Sequence[FileGroup]], tag: str
    ) -> None:
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
            packed = [(number, pickle.dumps(task)) for number, task in enumerate(self._tasks)]
            tasks = self._spark.createDataFrame(packed, "number int, task binary")
            # A partition for each task.
            alone = tasks.repartitionByRange(len(packed), "number")
            rows = alone.mapInArrow(work, "outcome binary").collect()
            self.outcomes = [pickle.loads(row["outcome"]) for row in rows]
        except Exception as error:
            self.error = error


def _failed(error: Exception) -> IngestError:
    brief = _brief(error)
    return IngestError(f"the Spark job failed, nothing was ingested: {brief}", may_pass=_names_os_error(brief))


def _names_os_error(brief: str) -> bool:
    """Tells whether a line is that of an error of a disk or a store, raised by a task: the session goes on."""
    kind = getattr(builtins, brief.partition(":")[0], None)
    return isinstance(kind, type) and issubclass(kind, OSError)


def _brief(error: Exception) -> str:
    """What went wrong, out of a message of Spark's: of a worker's traceback the last line, and no stack of Java's."""
    text = str(error).partition("JVM stacktrace:")[0].strip()
    _, traceback, rest = text.partition("Traceback (most recent call last):")
    # For a client of Connect a line with the error's class of SQL's follows.
    lines = [line for line in rest.splitlines() if line.strip() and not line.startswith(" SQLSTATE: ")]
    return lines[-1] if traceback and lines else text
