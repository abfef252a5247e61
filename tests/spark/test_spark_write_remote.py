"""Writing into an object store through Spark, and reading it back with Spark and with `seglake.scan`."""

from __future__ import annotations

import pytest
from object_store import SECRET_KEY, ObjectStore, Request
from pyarrow.fs import FileSelector
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

import seglake

pytestmark = pytest.mark.spark


def frame(spark: SparkSession, first: int, end: int) -> DataFrame:
    return spark.range(first, end, 1, 3).selectExpr("id AS offset", "cast(id AS string) AS value")


def writer(rows: DataFrame, store: ObjectStore, **options: str) -> DataFrameWriter:
    options = {"segmentFormat": "chunked", "maxRecordsPerFile": "20"} | store.options() | options
    return rows.write.format("seglake").options(**options)


def read(spark: SparkSession, store: ObjectStore, uri: str) -> list[int]:
    by_spark = spark.read.format("seglake").options(**store.options()).load(uri)
    assert by_spark.where("_corrupt_record IS NOT NULL").count() == 0
    by_scan = seglake.scan(uri, filesystem=store.filesystem()).to_table().column("offset").to_pylist()
    found = sorted(row.offset for row in by_spark.select("offset").collect())
    assert sorted(by_scan) == found
    return found


def test_modes(spark: SparkSession, store: ObjectStore) -> None:
    uri = "s3://logs/written/deep"
    writer(frame(spark, 0, 100), store).mode("append").save(uri)
    assert read(spark, store, uri) == list(range(100))
    writer(frame(spark, 100, 150), store).mode("append").save(f"{uri}/")
    assert read(spark, store, uri) == list(range(150))
    # Reads what it overwrites.
    old = spark.read.format("seglake").options(**store.options()).load(uri)
    half = old.where("offset < 70").select("offset", "value").sortWithinPartitions("offset")
    writer(half, store).mode("overwrite").save(uri)
    assert read(spark, store, uri) == list(range(70))
    for mode in ("error", "ignore"):
        with pytest.raises(PySparkException, match=r"(?i)save ?mode|append|overwrite"):
            writer(frame(spark, 0, 1), store).mode(mode).save(uri)
    names = [info.path for info in store.filesystem().get_file_info(_below("logs/written")) if info.is_file]
    assert "logs/written/deep/_SUCCESS" in names
    assert not [name for name in names if "_writing" in name]


def test_a_task_whose_upload_fails_leaves_nothing(spark: SparkSession, store: ObjectStore) -> None:
    def fault(request: Request) -> str | None:
        return "403" if "/part-" in request.path and request.method == "PUT" else None

    store.fault = fault
    try:
        with pytest.raises(PySparkException, match=r"check the credentials.*s3://logs/failed/part-") as caught:
            writer(frame(spark, 0, 10), store).mode("append").save("s3://logs/failed")
    finally:
        store.fault = None
    assert SECRET_KEY not in str(caught.value)
    assert [info.path for info in store.filesystem().get_file_info(_below("logs/failed")) if info.is_file] == []
    writer(frame(spark, 0, 10), store).mode("append").save("s3://logs/failed")
    assert read(spark, store, "s3://logs/failed") == list(range(10))


def _below(folder: str) -> FileSelector:
    return FileSelector(folder, recursive=True, allow_not_found=True)
