"""The Spark session of the measurements: `local`, a task for each core."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from seglake.spark.session import session as silent_session

__all__ = ["TASKS", "session"]

TASKS: Final = int(os.environ.get("SEGLAKE_SPARK_TASKS", "0")) or os.cpu_count() or 1
"""How many tasks read at a time."""


@contextmanager
def session() -> Iterator[SparkSession]:
    """Starts Spark, and stops it at the end. Its workers can import the modules of this folder."""
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    with silent_session(f"local[{TASKS}]", {"spark.app.name": "seglake bench", "spark.driver.memory": "3g"}) as spark:
        yield spark
