"""A few kills of an ingest's processes. `python -m tests.ingest_kills` makes many, and has executors of their own."""

import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.ingest_kills import compare, in_spark, kill_and_compare

pytestmark = [
    pytest.mark.spark,
    pytest.mark.more,
    pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc"),
]


def test_the_tables_are_those_of_whole_runs(spark: SparkSession, tmp_path: Path) -> None:
    # The ingest after a kill has no Spark, which would take most of the time.
    found = kill_and_compare(2, 3, tmp_path, masters=["local[2]"], on_spark=False)
    assert sum(found["killed"].values()) == 2
    compare(tmp_path / "expected", tmp_path / "found", in_spark(spark))
