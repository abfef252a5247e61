"""Loads from an object store: the same rows as from a disk, in few requests, and errors that say what is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from object_store import ACCESS_KEY, SECRET_KEY, ObjectStore
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from samples import SAMPLES
from segments import flip, write_segment

import seglake
from seglake.spark.source import SegmentDataSource
from seglake.spark.stores import SparkStores
from seglake.stores import FileFilter, FileListing, find_files

pytestmark = pytest.mark.spark


def load(spark: SparkSession, store: ObjectStore, **options: str) -> DataFrameReader:
    return spark.read.format("seglake").options(**store.options(), **options)


def stores(store: ObjectStore) -> SparkStores:
    return SparkStores.parse(store.options(), ["s3://logs"])


def rows(frame: DataFrame) -> list[str]:
    return sorted(repr(row) for row in frame.drop("_corrupt_record").where("value IS NOT NULL").collect())


def damage(frame: DataFrame) -> list[tuple[Any, ...]]:
    found = frame.where("_corrupt_record IS NOT NULL").select("_corrupt_record.*").collect()
    return sorted((row.start, row.end, row.kind, row.cause) for row in found)


@pytest.mark.parametrize("name", SAMPLES)
def test_every_format_reads_as_from_a_disk(name: str, spark: SparkSession, store: ObjectStore, tmp_path: Path) -> None:
    sample = SAMPLES[name]
    for number, harm in enumerate((False, True)):
        path = tmp_path / name / f"{number}.{sample.extension}"
        sample.write(path)
        if harm:
            flip(path, path.stat().st_size // 2)
        store.put(f"{name}/{path.name}", path.read_bytes())
    options = {"segmentFormat": sample.format, **sample.read_options}
    local = spark.read.format("seglake").options(**options).load(str(tmp_path / name))
    remote = load(spark, store, **options).load(f"s3://logs/{name}")
    assert remote.schema == local.schema
    assert rows(remote) == rows(local)
    assert damage(remote) == damage(local)
    assert {row.path for row in remote.select("_corrupt_record.path").distinct().collect()} <= {
        None,
        f"s3://logs/{name}/1.{sample.extension}",
    }


def test_files_are_found_by_the_rules_of_a_disk(store: ObjectStore, tmp_path: Path) -> None:
    names = (
        "a.active",
        "b.active",
        "_hidden",
        ".hidden",
        "c.txt",
        "d.chunks",
        "d.index",
        "e.index",
        "2024/d.active",
        "2024/01/e.active",
        "2024/_x/e.active",
        "_x/f",
        "[1].active",
        "a b%20c.active",
    )
    for name in names:
        (tmp_path / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tree" / name).write_bytes(b"x" * 7)
        store.put(f"tree/{name}", b"x" * 7)

    def found(root: str, pattern: str, chosen: FileFilter) -> list[tuple[str, int]] | type[Exception]:
        try:
            listing = find_files([f"{root}/{pattern}".rstrip("/")], chosen, stores(store))
        except FileNotFoundError as error:
            return type(error)
        return [(file.path.removeprefix(root), file.size) for file in listing.files]

    patterns = [
        "",
        "*",
        "*.active",
        "{a,c}.*",
        "[ab].active",
        "*/d.active",
        "20??",
        "20??/",
        "*/f",
        "_*/f",
        "_x",
        "_hidden",
    ]
    patterns += [
        "a.active",
        "[1].active",
        "*.index",
        "d.index",
        "none",
        "none/*",
        "*/none",
        "x?",
        "*/*/e.*",
        ".*",
        "*20c*",
    ]
    for chosen in (FileFilter(), FileFilter(recursive=True), FileFilter(name_pattern="*.{active,x}", recursive=True)):
        for pattern in patterns:
            by_path = found(str(tmp_path / "tree"), pattern, chosen)
            assert found("s3://logs/tree", pattern, chosen) == by_path, (pattern, chosen)
    assert found("s3://logs/tree", "a.active", FileFilter(modified_after=4e9)) == []
    assert found("s3://logs/tree", "a.active", FileFilter(modified_before=4e9)) == [("/a.active", 7)]


def test_listing_asks_for_no_file(store: ObjectStore) -> None:
    for number in range(30):
        store.put(f"many/{number % 3}/{number}.active", b"x")
    with store.counting() as made:
        listing: FileListing = find_files(["s3://logs/many"], FileFilter(recursive=True), stores(store))
    assert len(listing.files) == 30
    assert not any(request.path.endswith(".active") for request in made)
    assert len(made) < 6


def test_a_small_file_takes_two_requests_beside_the_listing(
    spark: SparkSession, store: ObjectStore, tmp_path: Path
) -> None:
    for number in range(4):
        SAMPLES["active"].write(tmp_path / f"{number}.active")
        store.put(f"counted/{number}.active", (tmp_path / f"{number}.active").read_bytes())
    frame = load(spark, store, segmentFormat="active").load("s3a://logs/counted/*.active")
    with store.counting() as made:
        assert frame.count() == 80
    asked = [
        (request.method, request.path)
        for request in made
        if request.path.endswith(("0.active", "1.active", "2.active", "3.active"))
    ]
    assert sorted(asked) == sorted(
        (method, f"/logs/counted/{number}.active") for method in ("HEAD", "GET") for number in range(4)
    )


def test_one_tenant_is_no_whole_file(spark: SparkSession, store: ObjectStore, tmp_path: Path) -> None:
    import seglake

    path = tmp_path / "large.tenant"
    with seglake.create(path, format="tenant") as writer:
        for number in range(300):
            writer.write(partition=number // 10, tenant=f"t{number // 5 % 2}", value=bytes([number % 251]) * 20_000)
    store.put("tenants/large.tenant", path.read_bytes())
    frame = load(spark, store, segmentFormat="tenant", minPartitionNum="1", partitions="7", tenants="t1").load(
        "s3://logs/tenants/"
    )
    with store.counting() as made:
        assert [row["index"] for row in frame.collect()] == [0, 1, 2, 3, 4]
    sent = sum(request.sent for request in made if request.method == "GET" and "large" in request.path)
    assert 100_000 <= sent < path.stat().st_size / 4


@pytest.mark.parametrize(
    ("path", "options", "said"),
    [
        ("s3://logs/none", {}, "s3://logs/none: there is no such file or folder"),
        ("s3://no-such-bucket/x", {}, "no such bucket"),
        ("s3://logs/none/*.active", {}, "no file or folder matches this pattern"),
        ("s3://logs", {"fs.regoin": "x"}, "options that begin with fs.: s3://logs: .*'regoin' is not valid"),
        ("s3://logs", {"fs.timeout": "soon"}, 'fs.: s3://logs: .*parse "soon" as Duration'),
        ("s3://logs", {"fs.secret.region": "x"}, "fs.region and fs.secret.region are both given"),
        ("/tmp", {}, "concerns no path"),
        ("s3://me:hunter2@logs", {}, "has a password in it"),
        ("parchment://shelf/1", {}, "parchment"),
    ],
)
def test_what_is_wrong_is_said_before_any_job(
    path: str, options: dict[str, str], said: str, spark: SparkSession, store: ObjectStore
) -> None:
    with pytest.raises(PySparkException, match=said) as caught:
        load(spark, store, segmentFormat="active", **options).load(path).schema  # noqa: B018
    assert not any(secret in str(caught.value) for secret in (ACCESS_KEY, SECRET_KEY, "hunter2"))


def test_what_is_no_uri_is_said(spark: SparkSession) -> None:
    with pytest.raises(PySparkException, match="s3:/logs: expected a path of a mounted file system, or a URI"):
        spark.read.format("seglake").load("s3:/logs").schema  # noqa: B018


def test_wrong_credentials_are_said(spark: SparkSession, store: ObjectStore) -> None:
    store.put("guarded/x.active", b"")
    options = store.options() | {"fs.access_key_id": "AKIAWRONG42", "fs.secret_access_key": "wrong-too"}
    with pytest.raises(PySparkException, match="check the credentials") as caught:
        spark.read.format("seglake").options(**options).load("s3://logs/guarded").schema  # noqa: B018
    assert not any(secret in str(caught.value) for secret in ("AKIAWRONG42", "wrong-too"))


def test_what_changes_or_goes_after_planning_is_said(spark: SparkSession, store: ObjectStore, tmp_path: Path) -> None:
    for name in "ab":
        SAMPLES["active"].write(tmp_path / f"{name}.active")
        store.put(f"moving/{name}.active", (tmp_path / f"{name}.active").read_bytes())

    def before_it_is_opened(act: Any) -> None:
        """Lets something happen between the listing and the first request for the file itself."""
        done: list[bool] = []

        def fault(request: Any) -> None:
            if request.path.endswith("a.active") and request.method == "HEAD" and not done:
                done.append(True)
                store.fault = None
                act()

        store.fault = fault

    frame = load(spark, store, segmentFormat="active").load("s3://logs/moving/")
    before_it_is_opened(lambda: store.put("moving/a.active", b"another"))
    with pytest.raises(PySparkException, match=r"s3://logs/moving/a\.active: changed since the read was planned"):
        frame.collect()
    delete = store.filesystem().delete_file
    store.put("moving/a.active", (tmp_path / "a.active").read_bytes())
    before_it_is_opened(lambda: delete("logs/moving/a.active"))
    with pytest.raises(PySparkException, match=r"s3://logs/moving/a\.active: was there when the read was planned"):
        frame.collect()
    store.put("moving/a.active", (tmp_path / "a.active").read_bytes())
    before_it_is_opened(lambda: delete("logs/moving/a.active"))
    assert load(spark, store, segmentFormat="active", ignoreMissingFiles="true").load("s3://logs/moving/").count() == 20


def test_a_store_that_fails_fails_the_job(spark: SparkSession, store: ObjectStore, tmp_path: Path) -> None:
    SAMPLES["active"].write(tmp_path / "a.active")
    store.put("failing/a.active", (tmp_path / "a.active").read_bytes())
    frame = load(spark, store, segmentFormat="active", **{"fs.max_retries": "0"}).load("s3://logs/failing/")
    store.fault = lambda request: "503" if request.method == "GET" and request.range else None
    with pytest.raises(
        PySparkException, match=r"cannot read \d+ bytes at offset 0.*try later.*s3://logs/failing"
    ) as caught:
        frame.collect()
    assert not any(secret in str(caught.value) for secret in (ACCESS_KEY, SECRET_KEY))
    store.fault = None
    assert frame.count() == 20


def test_the_format_of_many_files_is_found_in_their_order(store: ObjectStore, tmp_path: Path) -> None:
    for number in range(40):
        sample = SAMPLES["tenant" if number in (25, 30) else "active"]
        sample.write(tmp_path / "file", 1)
        store.put(f"many/{number:02}", (tmp_path / "file").read_bytes())
        (tmp_path / "file").unlink()
    source = SegmentDataSource({**store.options(), "path": "s3://logs/many"})
    with pytest.raises(ValueError, match=r"many/25: is tenant, while s3://logs/many/00 is active"):
        source.reader(source.schema())


def test_active_and_sealed_objects_are_read_together_and_no_copies(store: ObjectStore, tmp_path: Path) -> None:
    for name in ("a.active", "b.active"):
        write_segment(tmp_path / name, 5)
    seglake.seal(tmp_path / "b.active", tmp_path / "b.sealed")
    for name in ("a.active", "b.sealed"):
        store.put(f"both/{name}", (tmp_path / name).read_bytes())

    def count() -> int:
        source = SegmentDataSource({**store.options(), "path": "s3://logs/both"})
        reader = source.reader(source.schema())
        return sum(batch.num_rows for own in reader.partitions() for batch in reader.read(own))  # pyright: ignore

    assert count() == 10
    store.put("both/b.active", (tmp_path / "b.active").read_bytes())
    with pytest.raises(
        seglake.FormatError, match=r"both/b\.sealed: is sealed, while s3://logs/both/a\.active is active"
    ):
        count()
