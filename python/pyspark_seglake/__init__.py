"""Lets Spark find `format("seglake")` by itself.

Spark imports the top-level modules whose names begin with `pyspark_`, and registers their `DefaultSource`.
"""

from seglake.spark.source import SegmentDataSource as DefaultSource

__all__ = ["DefaultSource"]
