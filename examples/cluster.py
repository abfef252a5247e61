"""Reads segments on a cluster, writes them as Parquet, and reports what is damaged in them.

    spark-submit --master spark://host:7077 examples/cluster.py /logs/2024-06-15 /lake/2024-06-15
    python examples/cluster.py /logs/2024-06-15 /lake/2024-06-15      # on this machine, or where SPARK_REMOTE says

The table has the records, and below `damage=true` a row for each damaged range. Nothing is read twice. The executors
need the package `seglake`, and the paths have to be the same on all of them; docs/spark.md says how.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col

from seglake.spark import register

CORRUPT = "_corrupt_record"
SHOWN = 20


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit status: 0, 1 where --fail-on-damage finds damage, 2 where it failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", help="files, folders and patterns, all of one format")
    parser.add_argument("destination", help="the folder of the Parquet table, replaced if it is there")
    parser.add_argument("--format", help="the format of the files; found from each of them where it is not given")
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help="an option of the source")
    parser.add_argument("--fail-on-damage", action="store_true", help="exit with 1 where anything is damaged")
    given = parser.parse_args(arguments)
    options = dict(option.partition("=")[::2] for option in given.option)
    if given.format:
        options["segmentFormat"] = given.format

    spark = SparkSession.builder.appName("segments to Parquet").getOrCreate()
    register(spark)  # Spark also finds it by itself; with this, a package that is missing here is told here
    try:
        written = convert(spark, given.paths, given.destination, options)
        damaged = report(written, given.destination)
    except PySparkException as error:
        print(f"failed, {given.destination} is not complete: {error}", file=sys.stderr)
        return 2
    return 1 if damaged and given.fail_on_damage else 0


def convert(spark: SparkSession, paths: Sequence[str], to: str, options: dict[str, str]) -> DataFrame:
    """Reads segments and writes them as Parquet; gives what was written."""
    segments = spark.read.format("seglake").options(**options).load(list(paths))
    rows = segments.withColumn("damage", col(CORRUPT).isNotNull())
    rows.write.mode("overwrite").partitionBy("damage").parquet(to)
    return spark.read.schema(rows.schema).parquet(to)


def report(written: DataFrame, to: str) -> int:
    """Prints how many records there are and what is damaged; gives the number of damaged ranges."""
    counts = {row["damage"]: row["count"] for row in written.groupBy("damage").count().collect()}
    damaged = counts.get(True, 0)
    print(f"{counts.get(False, 0):,} records written to {to}, {damaged:,} damaged ranges")
    ranges = written.where("damage").select(f"{CORRUPT}.*").orderBy("path", "start")
    for row in ranges.limit(SHOWN).collect():
        print(f"  {row.path}: bytes {row.start:,} to {row.end:,}: {row.kind}, {row.cause}")
    if damaged > SHOWN:
        print(f"  and {damaged - SHOWN:,} more: the rows of {to}/damage=true")
    return damaged


if __name__ == "__main__":
    sys.exit(main())
