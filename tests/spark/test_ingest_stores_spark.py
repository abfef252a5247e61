"""The ingest into a store with Spark: the executors upload the files, and the driver commits them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pyarrow.fs as pafs
import pytest
from object_store import ACCESS_KEY, REGION, SECRET_KEY, ObjectStore
from pyspark.sql import SparkSession
from segments import OTHER_KEY, flip, write_segment

from seglake.exceptions import IngestError
from seglake.spark import ingest

pytestmark = pytest.mark.spark


def files(store: ObjectStore, folder: str) -> list[str]:
    found = store.filesystem().get_file_info(pafs.FileSelector(f"logs/{folder}", recursive=True, allow_not_found=True))
    return [info.path for info in found if info.type == pafs.FileType.File]


def count(store: ObjectStore, folder: str) -> int:
    found = [path for path in files(store, folder) if path.endswith(".parquet")]
    return ds.dataset(found, filesystem=store.filesystem()).count_rows()


def how(store: ObjectStore, table: str, folder: Path) -> dict[str, Any]:
    endpoint = f"http://{store.endpoint}"
    options: Mapping[str, str] = {
        "aws_access_key_id": ACCESS_KEY,
        "aws_secret_access_key": SECRET_KEY,
        "aws_endpoint": endpoint,
        "aws_region": REGION,
        "aws_allow_http": "true",
    }
    own: dict[str, Any] = {"table": table, "storage_options": options}
    if table == "iceberg":
        own["catalog"] = {
            "uri": f"sqlite:///{folder}/catalog.db",
            "s3.endpoint": endpoint,
            "s3.region": REGION,
            "s3.access-key-id": ACCESS_KEY,
            "s3.secret-access-key": SECRET_KEY,
        }
    return own


def sources(folder: Path) -> Path:
    for name in "abcd":
        write_segment(folder / f"{name}.active", 6)
    written = write_segment(folder / "damaged.active", 6)
    flip(folder / "damaged.active", written[3].end - 9)
    for path in folder.iterdir():
        os.utime(path, (1_700_000_000, 1_700_000_000))  # so that their times tell
    return folder


@pytest.mark.parametrize("table", ["delta", "iceberg"])
def test_the_executors_write_to_the_store(spark: SparkSession, store: ObjectStore, tmp_path: Path, table: str) -> None:
    source, given = sources(tmp_path / "src"), how(store, table, tmp_path)
    for records in (29, 0):
        done = ingest(source, f"s3://logs/{table}", spark=spark, **given)
        assert (done.records, done.destination) == (records, f"s3://logs/{table}")
    write_segment(source / "e.active", 2)
    assert ingest(source, f"s3://logs/{table}", spark=spark, **given).records == 2
    found = [count(store, f"{table}/{name}") for name in ("active", "damage", "files", "runs")]
    assert found == [31, 1, 6, 2]


def test_a_wrong_key_leaves_nothing_in_the_store(spark: SparkSession, store: ObjectStore, tmp_path: Path) -> None:
    source = tmp_path / "src"
    write_segment(source / "other.active", 6, key=OTHER_KEY)
    with pytest.raises(IngestError, match=r"other\.active: no record checks"):
        ingest(source, "s3://logs/key", spark=spark, **how(store, "delta", tmp_path))
    assert files(store, "key") == []


def test_a_store_that_refuses_stops_the_job(spark: SparkSession, store: ObjectStore, tmp_path: Path) -> None:
    source, given = sources(tmp_path / "src"), how(store, "delta", tmp_path)
    store.fault = lambda request: "403" if request.path.endswith(".parquet") and request.method == "PUT" else None
    with pytest.raises(IngestError, match=r"the Spark job failed, nothing was ingested: ") as caught:
        ingest(source, "s3://logs/refused", spark=spark, **given)
    store.fault = None
    assert SECRET_KEY not in str(caught.value)
    assert files(store, "refused") == []
    assert ingest(source, "s3://logs/refused", spark=spark, **given).records == 29


def test_plain_parquet_is_refused(store: ObjectStore, tmp_path: Path) -> None:
    source, given = sources(tmp_path / "src"), how(store, "parquet", tmp_path)
    with pytest.raises(IngestError, match="plain Parquet has folders alone"):
        ingest(source, "s3://logs/parquet", spark=lambda: pytest.fail("Spark starts"), **given)
