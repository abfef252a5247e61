"""What tests see of the jobs that Spark starts."""

from collections.abc import Generator
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import spark_partition_id
from pyspark.sql.utils import is_remote


def task_count(frame: DataFrame) -> int:
    """How many tasks of a read give rows; a client of Connect cannot ask for partitions."""
    return frame.select(spark_partition_id()).distinct().count()


@contextmanager
def no_jobs(spark: SparkSession) -> Generator[None]:
    """Checks that no job starts meanwhile; a client of Connect has no way to see jobs, nor who runs them."""
    if is_remote():
        yield
        return
    scheduler = spark.sparkContext._jsc.sc().dagScheduler()  # pyright: ignore
    before = scheduler.nextJobId()
    yield
    assert scheduler.nextJobId() == before
