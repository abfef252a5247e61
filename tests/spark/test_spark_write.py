"""Frames become segments: all formats, both save modes, and nothing visible of a write that fails."""

from datetime import timedelta
from pathlib import Path

import pytest
from jobs import no_jobs
from pyspark.errors import AnalysisException, PySparkException, PySparkValueError
from pyspark.sql import DataFrame, SparkSession, datasource
from pyspark.sql.functions import col, expr, lit, monotonically_increasing_id
from pyspark.sql.utils import is_remote
from samples import SAMPLES, draft
from segments import DAY, write_segment

import seglake

pytestmark = pytest.mark.spark


def write(frame: DataFrame, folder: Path, format: str, mode: str = "append", **options: str) -> None:
    frame.write.format("seglake").option("segmentFormat", format).options(**options).mode(mode).save(str(folder))


def read(spark: SparkSession, folder: Path, **options: str) -> DataFrame:
    return spark.read.format("seglake").options(**options).load(str(folder))


def files(folder: Path, extension: str = "*") -> list[Path]:
    return sorted(path for path in folder.glob(f"[!_.]*.{extension}"))


def values(frame: DataFrame) -> list[bytes]:
    return sorted(bytes(row.value) for row in frame.collect())


@pytest.fixture(scope="module")
def segments(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    """Forty records of two files."""
    folder = tmp_path_factory.mktemp("segments")
    for name, hour in (("a", 0), ("b", 1)):
        write_segment(folder / f"{name}.active", 20, first=DAY + timedelta(hours=hour))
    return read(spark, folder)


@pytest.mark.parametrize("name", list(SAMPLES))
def test_what_was_read_is_written_as_it_was(spark: SparkSession, tmp_path: Path, name: str) -> None:
    sample = SAMPLES[name]
    source = tmp_path / "in" / f"a.{sample.extension}"
    sample.write(source)
    options = {"chunkRecords": "4"} if name == "chunked" else {}
    write(read(spark, source, **sample.read_options), tmp_path / "out", sample.format, **sample.read_options, **options)
    (copy,) = files(tmp_path / "out", sample.extension)
    assert copy.read_bytes() == source.read_bytes()
    assert copy.with_suffix(".index").exists() == source.with_suffix(".index").exists()
    back = read(spark, tmp_path / "out", **sample.read_options)
    assert back.collect() == read(spark, source, **sample.read_options).collect()


def test_append_adds_and_overwrite_replaces(spark: SparkSession, tmp_path: Path, segments: DataFrame) -> None:
    out = tmp_path / "out"
    write(segments.where("value LIKE 'a-%'"), out, "active")
    write(segments.where("value LIKE 'b-%'"), out, "active")
    assert values(read(spark, out)) == values(segments)
    write(segments.where("value LIKE 'a-00001%'").orderBy("uuid"), out, "sealed", mode="overwrite")
    assert len(values(read(spark, out))) == 10
    assert {path.suffix for path in files(out)} == {".sealed"}
    assert sorted(path.name for path in out.iterdir() if path.name.startswith("_")) == ["_SUCCESS"]


@pytest.mark.parametrize("mode", ["error", "errorifexists", "ignore", None])
def test_spark_has_no_other_modes_for_such_sources(tmp_path: Path, segments: DataFrame, mode: str | None) -> None:
    writer = segments.write.format("seglake").option("segmentFormat", "active")
    refusal: tuple[type[PySparkException], str] = (AnalysisException, 'use either the "Append" or "Overwrite" mode')
    if mode == "errorifexists" and is_remote():  # which a client of Connect knows as `error` alone
        refusal = (PySparkValueError, "errorifexists is not supported")
    with pytest.raises(refusal[0], match=refusal[1]):
        (writer if mode is None else writer.mode(mode)).save(str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_a_folder_that_is_read_can_be_overwritten(spark: SparkSession, tmp_path: Path, segments: DataFrame) -> None:
    out = tmp_path / "out"
    write(segments, out, "active")
    before = read(spark, out)
    write(before.where("value LIKE '%5 %'"), out, "active", mode="overwrite")
    assert values(read(spark, out)) == values(segments.where("value LIKE '%5 %'"))
    if hasattr(datasource, "Filter"):
        with pytest.raises(PySparkException, match="was there when the read was planned and is gone now"):
            before.collect()
    else:  # PySpark 4.0 plans each query anew
        assert values(before) == values(read(spark, out))


def test_files_follow_one_another_in_a_sorted_frame(spark: SparkSession, tmp_path: Path, segments: DataFrame) -> None:
    write(segments.repartition(3).sort("uuid"), tmp_path / "out", "sealed", maxRecordsPerFile="7")
    found = files(tmp_path / "out")
    ends = [[record.uuid for record in seglake.open(path)] for path in found]
    assert max(len(end) for end in ends) == 7
    assert [uuid for end in ends for uuid in end] == sorted(uuid for end in ends for uuid in end)
    assert values(read(spark, tmp_path / "out")) == values(segments)


def test_rows_of_other_origin(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.range(40).repartition(2).select(expr("'t' AS type"), expr("cast(id AS string) AS value"))
    write(rows, tmp_path / "active", "active")
    assert len(files(tmp_path / "active")) == 2
    assert values(read(spark, tmp_path / "active")) == sorted(b"%d" % number for number in range(40))
    numbered = rows.select(monotonically_increasing_id().alias("offset"), col("value"))
    write(numbered, tmp_path / "chunked", "chunked", level="9", index="false")
    back = read(spark, tmp_path / "chunked")
    assert back.select("offset").distinct().count() == 40
    assert files(tmp_path / "chunked", "index") == []
    tenants = rows.selectExpr("cast(length(value) AS int) AS partition", "value AS tenant", "value")
    write(tenants, tmp_path / "tenant", "tenant", version="1")
    assert read(spark, tmp_path / "tenant").where("tenant = value AND partition = length(value)").count() == 40


def test_structures_and_large_numbers(spark: SparkSession, tmp_path: Path) -> None:
    large = (1 << 64) - 1
    made = draft(4) | {"batch": large, "clock": [{"key": bytes(range(32)), "length": large}]}
    with seglake.create(tmp_path / "a.oplog", format="oplog") as writer:
        writer.write(made)
    frame = read(spark, tmp_path / "a.oplog", uint64Type="decimal")
    changed = frame.withColumn("clock", expr("concat(clock, array(named_struct('key', clock[0].key, 'length', 7)))"))
    write(changed.drop("seq", "keys").withColumn("keys", lit(None)), tmp_path / "out", "oplog")
    (path,) = files(tmp_path / "out")
    (record,) = seglake.open(path)
    assert record.batch == large
    assert [entry["length"] for entry in record.clock] == [large, 7]
    assert record.checkpoint == made["checkpoint"]


def test_a_frame_without_rows_leaves_a_file_without_records(
    spark: SparkSession, tmp_path: Path, segments: DataFrame
) -> None:
    write(segments.where("type = 'none'"), tmp_path / "out", "sealed")
    assert len(files(tmp_path / "out")) == 1
    assert read(spark, tmp_path / "out").columns == segments.columns
    assert read(spark, tmp_path / "out").collect() == []
    write(spark.createDataFrame([], "type string, value binary"), tmp_path / "none", "active")
    assert read(spark, tmp_path / "none").count() == 0


def test_nothing_is_left_of_a_write_that_fails(spark: SparkSession, tmp_path: Path, segments: DataFrame) -> None:
    out = tmp_path / "out"
    write(segments, out, "active")
    before = sorted(out.iterdir())
    # The second partition is refused, long after the first is complete.
    rows = spark.range(0, 2000, 1, 2).selectExpr(
        "if(id < 1000, id, 3000 - id) AS offset", "cast(id AS string) AS value"
    )
    for mode in ("append", "overwrite"):
        with pytest.raises(
            PySparkException, match=r"partition 1, row 1: the message offset 1999 does not ascend"
        ) as error:
            write(rows, out, "chunked", mode=mode)
        assert 'Add .sortWithinPartitions("offset") as the last step before .write' in str(error.value)
        assert sorted(out.iterdir()) == before
    with pytest.raises(PySparkException, match="does not ascend"):
        write(rows, tmp_path / "new", "chunked")
    assert not (tmp_path / "new").exists()


def test_damage_is_not_written_as_if_it_were_a_record(spark: SparkSession, tmp_path: Path) -> None:
    written = write_segment(tmp_path / "a.active", 10)
    content = bytearray((tmp_path / "a.active").read_bytes())
    content[written[4].end - 10] ^= 1
    (tmp_path / "a.active").write_bytes(content)
    frame = read(spark, tmp_path / "a.active")
    with pytest.raises(
        PySparkException, match=r"column _corrupt_record reports damage \(checksum_mismatch in .*a\.active"
    ):
        write(frame, tmp_path / "out", "active")
    write(frame.where("_corrupt_record IS NULL"), tmp_path / "out", "active")
    assert read(spark, tmp_path / "out").count() == 9


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ("type, value", {"segmentFormat": ""}, "option segmentFormat is ''"),
        ("type, value", {"level": "3"}, "option level does not concern format active"),
        ("value", {}, "column type is missing"),
        ("type, value, 1 AS q", {}, r"column q of the frame is none of format active"),
    ],
)
def test_what_is_wrong_with_a_write_is_told_before_any_job(
    spark: SparkSession, tmp_path: Path, segments: DataFrame, columns: str, options: dict[str, str], message: str
) -> None:
    with no_jobs(spark), pytest.raises(PySparkException, match=message):
        write(segments.selectExpr(*columns.split(", ")), tmp_path / "out", "active", **options)
    assert not (tmp_path / "out").exists()


def test_tables_of_the_catalog_lack_their_options(spark: SparkSession, tmp_path: Path, segments: DataFrame) -> None:
    spark.sql(f"CREATE TABLE made USING seglake OPTIONS (segmentFormat 'active', path '{tmp_path}')")
    write_segment(tmp_path / "a.active", 3)
    try:
        with pytest.raises(PySparkException, match=r"no path is given: .* temporary view instead"):
            spark.table("made").collect()
        assert spark.sql(f"SELECT * FROM made WITH (path = '{tmp_path}')").count() == 3
        for overwrite in (False, True):
            with pytest.raises(PySparkException, match="hands over none of the options that the table was made with"):
                segments.write.insertInto("made", overwrite=overwrite)
    finally:
        spark.sql("DROP TABLE made")
