"""Segments in Apache Spark: a data source, and the ingest of segments into Parquet tables.

`spark.read.format("seglake")` finds the data source without a call to anything here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglake.lake.result import IngestError, IngestProgress, IngestResult

from .ingest import ingest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["IngestError", "IngestProgress", "IngestResult", "ingest", "register"]


def register(spark: SparkSession) -> None:
    """Registers the data source `seglake` with a session.

    Spark finds it without this call where the package `pyspark_seglake` is on the path of the driver's Python; the call
    is for those who prefer to say what they use.
    """
    from pyspark.errors import AnalysisException

    from .source import SegmentDataSource

    try:
        spark.dataSource.register(SegmentDataSource)
    except AnalysisException as error:
        # Spark 4.0 lets nothing take the place of what it has found by itself: of this very data source.
        if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
            raise
