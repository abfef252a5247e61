"""The Spark session that is measured in: `local`, a task for each core."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from seglake.spark.java import ensure_java

__all__ = ["TASKS", "session"]

TASKS: Final = int(os.environ.get("SEGLAKE_SPARK_TASKS", "0")) or os.cpu_count() or 1
"""How many tasks read at a time."""


@contextmanager
def session(**settings: str) -> Iterator[SparkSession]:
    """Starts Spark, and stops it in the end. Its workers can import what is in this folder."""
    ensure_java()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    builder = SparkSession.builder.master(f"local[{TASKS}]").appName("seglake bench")
    silent = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR"}
    for name, value in (silent | {"spark.driver.memory": "3g"} | settings).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()
