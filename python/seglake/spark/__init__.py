"""Segments in Apache Spark: a data source, and the ingest of segments into Parquet tables.

`spark.read.format("seglake")` finds the data source without a call to anything here. Spark looks for it with the Python
that it starts: activate the virtual environment or set PYSPARK_PYTHON, or loading fails with DATA_SOURCE_NOT_FOUND.

- Columns are those of the format, and `_corrupt_record`: null in a record, and in the row of a damaged range what is
  damaged. `where("_corrupt_record IS NULL")` are the records.
- Options of all: `segmentFormat` (of files written; of files read where names do not tell it), `keyFile` (a path, or
  several), `secretKey` (the key itself).
- Of reading: `mode` ("PERMISSIVE", "DROPMALFORMED", "FAILFAST"), `since`, `until`, `where`, `sidecar`, `repair`,
  `pathGlobFilter`, `metadataColumns` (a column with each record's place).
- Of streams: a log needs none; of other files `stateLocation` is the folder of the stream's states.

docs/spark.md has all of them.
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
