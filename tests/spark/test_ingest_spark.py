"""The ingest on a real session: the same rows as without Spark, and what is Spark's own."""

import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import polars
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from golden_files import CASES, link
from pyspark.sql import SparkSession
from samples import SAMPLES
from segments import DAY, flip, write_segment

import seglake
from seglake import SegmentLog
from seglake.spark import IngestError, IngestProgress, IngestResult, ingest
from seglake.spark.schema import DAMAGE_TYPE

pytestmark = pytest.mark.spark


def rows(dst: Path, table: str) -> Counter[str]:
    """The rows of a table, whatever the files that they are in; with the date of records, that of their folder."""
    found: Counter[str] = Counter()
    for path in (dst / table).rglob("*.parquet"):
        content = ds.dataset(str(path)).to_table()
        # Python's calendar does not hold all of the times that there are.
        for number, field in enumerate(content.schema):
            if pa.types.is_timestamp(field.type):
                content = content.set_column(number, field.name, content.column(number).cast(pa.int64()))
        # Which differ from run to run.
        own = ("run", "modified", "started", "seconds")
        content = content.drop_columns([name for name in own if name in content.column_names])
        found.update(f"{path.parent.name} {row}" for row in content.to_pylist())
    return found


def schemas(dst: Path) -> dict[str, pa.Schema]:
    """The schema of each table, which is that of all its files."""
    found: dict[str, pa.Schema] = {}
    for path in dst.rglob("*.parquet"):
        name = path.relative_to(dst).parts[0]
        schema = ds.dataset(str(path)).schema
        assert found.setdefault(name, schema).equals(schema)
    return found


def told(result: IngestResult) -> dict[str, Any]:
    own = result.to_dict()
    return {name: own[name] for name in own if name not in ("run_id", "destination", "seconds", "records_per_second")}


def all_files(root: Path) -> dict[str, Path]:
    """Golden files that the default key reads, by their formats, nearly all of them damaged; a mixed folder, a log."""
    folders: dict[str, Path] = {}
    for case in CASES:
        is_default = not any(case.options.get("key", b"")) and (case.dialect or "draft") == "draft"
        if is_default and not seglake.verify(case.path, **case.options).wrong_key:
            folders[case.format] = root / case.format
            folders[case.format].mkdir(parents=True, exist_ok=True)
            link(case, folders[case.format])
    mixed = folders["mixed"] = root / "mixed"
    for name in ("active", "sealed", "tenant", "chunked", "draft"):
        SAMPLES[name].write(mixed / f"{name}.{SAMPLES[name].extension}")
    for day in range(3):
        write_segment(mixed / f"{day}.active", 200, first=DAY.replace(day=1 + day))
    write_segment(mixed / "other.active", 20, key=bytes(range(32)))
    (mixed / "notes.txt").write_text("no segment, but text that is long enough to be taken for something\n")
    (mixed / "link").symlink_to(root)
    log = folders["log"] = root / "log"
    with SegmentLog(log) as writer:
        for number in range(40):
            writer.write("t", str(number))
            if number in (9, 19):
                writer.roll()
        writer.wait_sealed()
    return folders


@pytest.mark.slow
def test_both_engines_write_the_same_rows(spark: SparkSession, tmp_path: Path) -> None:
    for name, folder in all_files(tmp_path / "src").items():
        format = name if name in seglake.formats() else None  # what is damaged at its beginning cannot be told
        results = [
            ingest(folder, tmp_path / "spark", spark=spark, format=format, final=True),
            # As many files a task as Spark gives it or fewer: the rows depend on none of that.
            seglake.ingest(folder, tmp_path / "local", format=format, final=True, threads=3, target_file_size=10_000),
        ]
        assert told(results[0]) == told(results[1])
        if name == "mixed":
            assert results[0].statuses["wrong_key"] == results[0].statuses["not_a_segment"] == 1
    assert schemas(tmp_path / "spark") == schemas(tmp_path / "local")
    for table in (*seglake.formats().names, "damage", "files", "runs"):
        found = rows(tmp_path / "spark", table)
        assert found == rows(tmp_path / "local", table)
        assert sum(found.values()) > 7, table


def test_spark_and_polars_read_what_spark_wrote(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/empty.active").write_bytes(b"")
    ingest(tmp_path / "src", tmp_path / "lake", spark=spark)
    lake = tmp_path / "lake"
    assert spark.read.parquet(str(lake / "damage")).count() == 0
    # With rows to come the column is a date all the same.
    write_segment(tmp_path / "more.active", 3)
    ingest(tmp_path / "more.active", lake, spark=spark)
    frame = spark.read.parquet(str(lake / "active"))
    assert (frame.count(), dict(frame.dtypes)["date"]) == (3, "date")
    assert polars.scan_parquet(lake / "active", hive_partitioning=True).collect()["date"].dtype == polars.Date


def test_progress_ends_complete_and_never_exceeds(spark: SparkSession, tmp_path: Path) -> None:
    for number in range(7):
        write_segment(tmp_path / f"src/{number}.active", 10)
    seen: list[IngestProgress] = []
    ingest(tmp_path / "src", tmp_path / "lake", spark=spark, progress=seen.append)
    assert (seen[-1].files_done, seen[-1].files_total, seen[-1].records) == (7, 7, 70)
    assert seen[-1].bytes_done == seen[-1].bytes_total
    assert all(each.bytes_done <= each.bytes_total for each in seen)


def test_a_key_that_is_wrong_for_every_segment_stops_everything(spark: SparkSession, tmp_path: Path) -> None:
    write_segment(tmp_path / "src/j.active", 5, key=bytes(range(32)))
    write_segment(tmp_path / "src/k.active", 5, key=bytes(range(32)))
    with pytest.raises(IngestError, match=r"j\.active: no record checks .* Nothing was ingested.*[Kk]ey"):
        ingest(tmp_path / "src", tmp_path / "lake", spark=spark)
    assert [path for path in (tmp_path / "lake").rglob("*") if path.is_file()] == []


def test_a_key_that_cannot_be_used_is_told_of_by_the_executors(spark: SparkSession, tmp_path: Path) -> None:
    write_segment(tmp_path / "a.active", 5)
    key = tmp_path / "key"
    key.write_text("00" * 32)

    def removed() -> SparkSession:
        key.unlink()  # the driver has read it
        return spark

    with pytest.raises(IngestError, match=r"the key cannot be used: .*key"):
        ingest(tmp_path / "a.active", tmp_path / "lake", spark=removed, key=key)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"key": "none"}, "the key cannot be used"),
        ({"sources": []}, "no sources are given"),
        ({"destination": "."}, "which is to be ingested"),
        ({"format": "parquet"}, "parquet.*active"),
    ],
)
def test_what_can_be_refused_is_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: dict[str, Any], message: str
) -> None:
    write_segment(tmp_path / "a.active", 5)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(IngestError, match=message):
        ingest(**{"sources": ".", "destination": "../lake", "spark": lambda: pytest.fail("Spark starts"), **arguments})
    assert [path.name for path in tmp_path.iterdir()] == ["a.active"]


def test_a_failed_job_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    write_segment(tmp_path / "a.active", 5)
    in_the_way = tmp_path / "lake" / "_staging"

    def hindered() -> SparkSession:
        in_the_way.write_bytes(b"")
        return spark

    with pytest.raises(IngestError, match=r"the Spark job failed, nothing was ingested: NotADirectoryError: "):
        ingest(tmp_path / "a.active", tmp_path / "lake", spark=hindered)
    in_the_way.unlink()
    assert [path for path in (tmp_path / "lake").rglob("*") if path.is_file()] == []
    assert ingest(tmp_path / "a.active", tmp_path / "lake", spark=spark).records == 5


def test_an_interrupted_caller_stops_the_tasks(spark: SparkSession, tmp_path: Path) -> None:
    write_segment(tmp_path / "a.active", 5)

    def interrupt(_: IngestProgress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ingest(tmp_path / "a.active", tmp_path / "lake", spark=spark, progress=interrupt)
    assert not (tmp_path / "lake/active").exists()
    assert ingest(tmp_path / "a.active", tmp_path / "lake", spark=spark).records == 5


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_a_name_that_is_no_text_is_the_same_in_all_tables(spark: SparkSession, tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/src/\xff.active"))
    written = write_segment(path, 5)
    flip(path, written[2].end - 9)
    ingest(tmp_path / "src", tmp_path / "lake", spark=spark)
    name = f"{tmp_path}/src/\\xff.active"
    for table in ("active", "damage", "files"):
        files = [str(file) for file in (tmp_path / "lake" / table).rglob("*.parquet")]
        assert set(ds.dataset(files).to_table()["path"].to_pylist()) == {name}
    schema = f"path string, _corrupt_record {DAMAGE_TYPE.simpleString()}"
    frame = spark.read.format("seglake").schema(schema).load(str(tmp_path / "src"))
    paths = {row.path or row._corrupt_record.path for row in frame.collect()}
    assert paths == {name}
