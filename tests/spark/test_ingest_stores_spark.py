"""The ingest into a store with Spark: the executors write there, and driver and tasks tell each other through it."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pyarrow.fs as pafs
import pytest
from object_store import ACCESS_KEY, REGION, SECRET_KEY, ObjectStore
from pyspark.sql import SparkSession
from segments import OTHER_KEY, flip, write_segment

import seglake
from seglake import IngestError, IngestProgress
from seglake.spark import ingest

pytestmark = pytest.mark.spark


def files(filesystem: pafs.FileSystem, folder: str) -> list[str]:
    found = filesystem.get_file_info(pafs.FileSelector(folder, recursive=True, allow_not_found=True))
    return [info.path for info in found if info.type == pafs.FileType.File]


def rows(filesystem: pafs.FileSystem, folder: str, table: str) -> Counter[str]:
    found = [path for path in files(filesystem, folder) if f"/{table}/" in path and not path.startswith(f"{folder}/_")]
    content: Any = ds.dataset(found, filesystem=filesystem).to_table()
    content = content.drop_columns([name for name in ("run", "modified") if name in content.column_names])
    return Counter(map(str, content.to_pylist()))


def sources(folder: Path) -> Path:
    for name in "abcd":
        write_segment(folder / f"{name}.active", 6)
    written = write_segment(folder / "damaged.active", 6)
    flip(folder / "damaged.active", written[3].end - 9)
    for path in folder.iterdir():
        os.utime(path, (1_700_000_000, 1_700_000_000))  # so that their times tell
    return folder


def test_the_executors_write_to_the_store(spark: SparkSession, store: ObjectStore, tmp_path: Path) -> None:
    source, filesystem, seen = sources(tmp_path / "src"), store.filesystem(), list[IngestProgress]()
    done = ingest(source, "logs/executors", spark=spark, filesystem=filesystem, progress=seen.append)
    assert (done.records, done.statuses["damaged"], done.destination) == (29, 1, "logs/executors")
    assert (seen[-1].files_done, seen[-1].records) == (5, 29)
    write_segment(source / "e.active", 2)
    assert ingest(source, "logs/executors", spark=spark, filesystem=filesystem).records == 2
    seglake.ingest(source, tmp_path / "plain")
    local = pafs.LocalFileSystem()
    for table in ("records", "damage"):
        assert rows(filesystem, "logs/executors", table) == rows(local, str(tmp_path / "plain"), table)
    assert [path for path in files(filesystem, "logs/executors") if path.startswith("logs/executors/_")] == []


def test_a_wrong_key_stops_all_tasks_through_the_store(spark: SparkSession, store: ObjectStore, tmp_path: Path) -> None:
    source = sources(tmp_path / "src")
    write_segment(source / "other.active", 6, key=OTHER_KEY)
    with pytest.raises(IngestError, match=r"other\.active: no record checks"):
        ingest(source, "logs/wrong-key", spark=spark, filesystem=store.filesystem(), on_wrong_key="stop")
    assert [request.path for request in store.requests if request.path.endswith("/stop")]
    assert files(store.filesystem(), "logs/wrong-key") == []


def test_a_store_that_refuses_stops_the_job(spark: SparkSession, store: ObjectStore, tmp_path: Path) -> None:
    source = sources(tmp_path / "src")
    client = store.filesystem(retry_strategy=pafs.AwsStandardS3RetryStrategy(max_attempts=1))
    store.fault = lambda request: "403" if "/task-" in request.path and request.method in ("PUT", "POST") else None
    with pytest.raises(IngestError, match=r"the Spark job failed, nothing was ingested: ") as caught:
        ingest(source, "logs/refused", spark=spark, filesystem=client)
    store.fault = None
    assert SECRET_KEY not in str(caught.value)
    left = files(store.filesystem(), "logs/refused")  # a task that Spark has not stopped yet tells how far it is
    assert [path for path in left if not ("/_staging/" in path and "/progress/" in path)] == []
    assert ingest(source, "logs/refused", spark=spark, filesystem=store.filesystem()).records == 29


@pytest.mark.parametrize("table", ["delta", "iceberg"])
def test_tables(
    spark: SparkSession, store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: Any
) -> None:
    for name, value in {
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_ENDPOINT_URL": f"http://{store.endpoint}",
        "AWS_REGION": REGION,
        "AWS_ALLOW_HTTP": "true",
    }.items():
        monkeypatch.setenv(name, value)
    source, own = sources(tmp_path / "src"), {}
    if table == "iceberg":
        own = {"catalog": f"sqlite:///{tmp_path}/catalog.db"}
    filesystem = store.filesystem()
    for records in (29, 0):
        done = ingest(source, f"s3://logs/{table}", spark=spark, filesystem=filesystem, table=table, **own)
        assert done.records == records
    assert len([path for path in files(filesystem, f"logs/{table}/active/files") if path.endswith(".parquet")]) == 1
