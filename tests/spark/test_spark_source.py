import json
import re
import uuid
from pathlib import Path

import pytest
from jobs import no_jobs, task_count
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import InputPartition
from segments import DAY, OTHER_KEY, TYPE, Written, flip, tear, write_segment

import seglake.spark
from seglake.spark.source import SegmentDataSource

pytestmark = pytest.mark.spark

DAMAGE = "struct<path: string, start: bigint, end: bigint, kind: string, cause: string>"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two sound segments, one with a record damaged, one torn."""
    root = tmp_path_factory.mktemp("segments")
    for name in ("a", "b", "c", "d"):
        write_segment(root / f"{name}.active", 10)
    flip(root / "c.active", at(3).end - 9)
    tear(root / "d.active", at(9).start + 50)
    return root


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> list[Written]:
    return write_segment(tmp_path_factory.mktemp("same") / "a.active", 10)


def at(number: int) -> Written:
    """The place of a record in each of the files: they are of the same sizes."""
    size = 16 + 1 + len(TYPE) + 4 + 40 + 8
    return Written(number * size, (number + 1) * size, uuid.UUID(int=0), DAY, b"")


def load(spark: SparkSession, *paths: Path, schema: str | None = None, **options: str) -> DataFrame:
    reader = spark.read.format("seglake").options(**options)
    if schema is not None:
        reader = reader.schema(schema)
    return reader.load([str(path) for path in paths])


def sound_names(frame: DataFrame) -> list[str]:
    rows = frame.selectExpr("string(value) AS value").collect()
    return sorted(row.value.split()[0] for row in rows if row.value is not None)


def expected_names(*files: str) -> list[str]:
    damaged = {"c-000003", "d-000009"}
    return sorted({f"{file}-{number:06d}" for file in files for number in range(10)} - damaged)


def test_permissive_gives_records_and_a_row_for_each_damaged_range(
    spark: SparkSession, folder: Path, records: list[Written]
) -> None:
    frame = load(spark, folder)
    assert frame.schema.simpleString().replace(" ", "") == (
        f"struct<uuid:string,timestamp:timestamp,type:string,value:binary,_corrupt_record:{DAMAGE}>".replace(" ", "")
    )
    rows = frame.selectExpr(
        "uuid", "unix_micros(timestamp) AS us", "type", "value", "_corrupt_record AS damage"
    ).collect()
    damage = [row for row in rows if row.damage is not None]
    assert sorted(tuple(row.damage) for row in damage) == [
        (str(folder / "c.active"), at(3).start, at(3).end, "corrupt", "checksum_mismatch"),
        (str(folder / "d.active"), at(9).start, at(9).start + 50, "torn_tail", "length_out_of_bounds"),
    ]
    assert {(row.uuid, row.us, row.type, row.value) for row in damage} == {(None, None, None, None)}
    of_a = {
        (row.uuid, row.us, row.type, bytes(row.value))
        for row in rows
        if row.value is not None and row.value[:1] == b"a"
    }
    assert of_a == {(str(each.uuid), int(each.timestamp.timestamp()) * 1_000_000, TYPE, each.value) for each in records}
    assert len(rows) == 38 + 2


def test_dropmalformed_leaves_damage_out(spark: SparkSession, folder: Path) -> None:
    frame = load(spark, folder, mode="dropmalformed")
    assert frame.columns == ["uuid", "timestamp", "type", "value"]
    assert sound_names(frame) == expected_names("a", "b", "c", "d")


def test_failfast_names_file_and_offset(spark: SparkSession, folder: Path) -> None:
    assert sound_names(load(spark, folder / "a.active", folder / "b.active", mode="FAILFAST")) == expected_names(
        "a", "b"
    )
    with pytest.raises(PySparkException) as error:
        load(spark, folder / "a.active", folder / "c.active", mode="FAILFAST").collect()
    assert re.search(rf"DamageError: .*{folder / 'c.active'}.*\b{at(3).start}\b", str(error.value))


def test_a_schema_without_the_column_for_damage(spark: SparkSession, folder: Path) -> None:
    assert sound_names(load(spark, folder / "a.active", schema="value binary")) == expected_names("a")
    with pytest.raises(PySparkException) as error:
        load(spark, folder / "c.active", schema="value binary").collect()
    assert re.search(
        rf"{folder / 'c.active'}.*\b{at(3).start}\b.*no column to report damage in.*_corrupt_record", str(error.value)
    )


def test_a_schema_chooses_columns_down_to_the_walk(spark: SparkSession, folder: Path) -> None:
    schema = f"position bigint, path string, broken {DAMAGE}"
    rows = load(spark, folder, schema=schema, columnNameOfCorruptRecord="broken").collect()
    assert sorted(row.position for row in rows if row.path == str(folder / "c.active")) == [
        at(number).start for number in range(10) if number != 3
    ]
    assert sorted(row.broken.cause for row in rows if row.broken) == ["checksum_mismatch", "length_out_of_bounds"]
    assert {(row.position, row.path) for row in rows if row.broken} == {(None, None)}


def test_metadata_columns_say_where_a_record_is(spark: SparkSession, folder: Path) -> None:
    frame = load(spark, folder, metadataColumns="path,position")
    assert frame.columns == ["uuid", "timestamp", "type", "value", "path", "position", "_corrupt_record"]
    rows = frame.select("path", "position", "value", "_corrupt_record").collect()
    assert {(row.path, row.position) for row in rows if row.value is None} == {(None, None)}
    places = sorted((row.path, row.position) for row in rows if row.value is not None)
    assert places == sorted(
        (str(folder / f"{name}.active"), at(number).start)
        for name, damaged in (("a", None), ("b", None), ("c", 3), ("d", 9))
        for number in range(10)
        if number != damaged
    )
    assert load(spark, folder, metadataColumns="position", mode="FAILFAST").columns[-1] == "position"
    schema = "value binary, position bigint"
    assert load(spark, folder / "a.active", schema=schema, metadataColumns="position").columns == ["value", "position"]
    with pytest.raises(PySparkException, match="metadataColumns names path, which the schema given lacks: add path"):
        load(spark, folder, schema=schema, metadataColumns="path,position").collect()


def test_a_schema_of_nothing_but_damage_still_counts_records(spark: SparkSession, folder: Path) -> None:
    frame = load(spark, folder, schema=f"_corrupt_record {DAMAGE}")
    assert (frame.count(), frame.where("_corrupt_record IS NOT NULL").count()) == (40, 2)


def test_uuids_as_bytes(spark: SparkSession, folder: Path, records: list[Written]) -> None:
    by_option = load(spark, folder / "a.active", uuidType="binary")
    by_schema = load(spark, folder / "a.active", schema="uuid binary")
    for frame in (by_option, by_schema):
        assert frame.schema["uuid"].dataType.simpleString() == "binary"
        assert sorted(bytes(row.uuid) for row in frame.select("uuid").collect()) == [
            each.uuid.bytes for each in records
        ]


@pytest.mark.parametrize(
    ("schema", "options", "message"),
    [
        (
            "uuid string, valu binary",
            {},
            "column valu of the schema given is none of format active: did you mean value",
        ),
        ("Value binary", {}, "column Value .* did you mean value"),
        (
            "q int",
            {},
            "column q of the schema given is none of format active: it has uuid, timestamp, type, value, path",
        ),
        ("value string", {}, "column value of the schema given is string: expected binary"),
        ("uuid int", {}, "column uuid of the schema given is int: expected string"),
        ("uuid binary", {"uuidType": "string"}, "column uuid of the schema given is binary: expected string"),
        ("value binary NOT NULL", {}, "column value of the schema given is NOT NULL"),
        (
            "value binary, _corrupt_record string",
            {},
            "column _corrupt_record of the schema given is string: expected struct",
        ),
        ("value binary, value binary", {}, "value"),
        (f"path {DAMAGE}", {"columnNameOfCorruptRecord": "path"}, "format active has a column of that name"),
    ],
)
def test_a_wrong_schema_names_the_column(
    spark: SparkSession, folder: Path, schema: str, options: dict[str, str], message: str
) -> None:
    with no_jobs(spark), pytest.raises(PySparkException, match=message):
        load(spark, folder, schema=schema, **options).collect()


@pytest.mark.parametrize(
    ("path", "options", "message"),
    [
        ("", {"mood": "FAILFAST"}, "unknown option 'mood'. Did you mean mode"),
        ("", {"mode": "SOFT"}, "option mode is 'SOFT'"),
        ("none", {}, "none: there is no such file or folder"),
        # Files are listed when Spark sends the data source on.
        ("none", {"segmentFormat": "active"}, "none: there is no such file or folder"),
        ("*.none", {}, "no file or folder matches this pattern"),
        ("", {"segmentFormat": "zip"}, "option segmentFormat is 'zip'"),
        ("", {"columnNameOfCorruptRecord": "Value"}, "format active has a column of that name"),
        ("", {"columnNameOfCorruptRecord": "path"}, "format active has a column of that name"),
        ("", {"pathGlobFilter": "*.none"}, "no files to read in .*; files left out by pathGlobFilter, .*: 4. With"),
    ],
)
def test_errors_on_loading(spark: SparkSession, folder: Path, path: str, options: dict[str, str], message: str) -> None:
    with no_jobs(spark), pytest.raises(AnalysisException, match=message):
        load(spark, folder / path, **options).schema  # noqa: B018 - behind Connect, loading asks nothing


def test_a_format_that_cannot_be_told_is_named(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    write_segment(tmp_path / "a.active", 2)
    (tmp_path / "notes.txt").write_text("no segment at all, but some text that is long enough to be one\n")
    with pytest.raises(PySparkException, match=r"notes\.txt: cannot tell the format: .*segmentFormat.*pathGlobFilter"):
        load(spark, tmp_path, mode="FAILFAST").collect()
    assert load(spark, tmp_path, pathGlobFilter="*.active").count() == 2
    (told,) = load(spark, tmp_path).where("_corrupt_record IS NOT NULL").collect()
    assert (told._corrupt_record.kind, told._corrupt_record.cause) == ("file", "not_a_segment")
    named = load(spark, tmp_path, segmentFormat="active").where("_corrupt_record IS NOT NULL").collect()
    assert [Path(row._corrupt_record.path).name for row in named] == ["notes.txt"]


def rows_of(path: Path, **options: str) -> int:
    """What is read without Spark."""
    source = SegmentDataSource({"path": str(path), **options})
    reader = source.reader(source.schema())
    return sum(batch.num_rows for partition in reader.partitions() for batch in reader.read(partition))  # pyright: ignore


def test_active_and_sealed_files_are_read_together(spark: SparkSession, tmp_path: Path) -> None:
    write_segment(tmp_path / "b.active", 10, key=OTHER_KEY)
    write_segment(tmp_path / "c.active", 10, key=OTHER_KEY)
    seglake.seal(tmp_path / "c.active", tmp_path / "a.sealed", key=OTHER_KEY)
    (tmp_path / "c.active").unlink()
    (tmp_path / "_key").write_text(OTHER_KEY.hex())
    for key in ({"secretKey": OTHER_KEY.hex()}, {"keyFile": str(tmp_path / "_key")}):
        frame = load(spark, tmp_path, mode="FAILFAST", lookupTableBytes="1m", maxPartitionBytes="500", **key)
        assert sound_names(frame) == sorted({*expected_names("b", "c"), "c-000003"})
        # The driver has the key of the executors: a copy is noticed under no other.
        for wrong in ({}, {"keyFile": str(tmp_path / "none")}):
            with pytest.raises(seglake.FormatError, match=r"under the driver's key.* option keyFile, or load"):
                rows_of(tmp_path, **wrong)
    seglake.seal(tmp_path / "b.active", tmp_path / "d.sealed", key=OTHER_KEY)
    told = r"b\.active: is active, while .*a\.sealed is sealed: .* none begins as another one.*option pathGlobFilter"
    with no_jobs(spark), pytest.raises(PySparkException, match=told):
        load(spark, tmp_path, secretKey=OTHER_KEY.hex()).collect()
    assert load(spark, tmp_path, secretKey=OTHER_KEY.hex(), pathGlobFilter="*.sealed").count() == 20


def test_files_of_other_columns_are_refused(folder: Path, tmp_path: Path) -> None:
    with seglake.create(tmp_path / "a.tfrecord") as segment:
        segment.write(value=b"1")
    source = SegmentDataSource({"paths": json.dumps([str(folder), str(tmp_path)])})
    with pytest.raises(seglake.FormatError, match=r"is (active|tfrecord), while .* is .*option pathGlobFilter"):
        source.reader(source.schema())


def test_limits_are_told_by_the_options_that_raise_them(folder: Path) -> None:
    source = SegmentDataSource({"path": str(folder / "a.active"), "recordBytes": "20"})
    reader = source.reader(source.schema())
    with pytest.raises(
        seglake.exceptions.LimitError, match=r"needs \d+ bytes, .*: raise option recordBytes and read again$"
    ):
        list(reader.read(reader.partitions()[0]))


def test_no_files_with_a_format_or_a_schema_is_nothing(spark: SparkSession, tmp_path: Path) -> None:
    assert load(spark, tmp_path, segmentFormat="active").collect() == []
    assert load(spark, tmp_path, schema="value binary").collect() == []


def test_small_files_share_a_task(spark: SparkSession, tmp_path: Path) -> None:
    for number in range(12):
        write_segment(tmp_path / f"{number}.active", 2)
    packed = load(spark, tmp_path, openCostInBytes="1k", minPartitionNum="3")
    assert task_count(packed) == 3
    assert packed.count() == 24


def test_files_that_vanish(folder: Path, tmp_path: Path) -> None:
    """Without Spark, because in between planning and reading there is no place for a test."""
    for name in ("a", "b"):
        write_segment(tmp_path / f"{name}.active", 2)

    def read_after_deletion(**options: str) -> int:
        source = SegmentDataSource({"path": str(tmp_path), "openCostInBytes": "0", **options})
        reader = source.reader(source.schema())
        partitions = list(reader.partitions())
        (tmp_path / "a.active").rename(tmp_path / "_gone")
        try:
            return sum(batch.num_rows for partition in partitions for batch in reader.read(partition))  # pyright: ignore
        finally:
            (tmp_path / "_gone").rename(tmp_path / "a.active")

    with pytest.raises(FileNotFoundError, match=r"a\.active: was there when the read was planned.*ignoreMissingFiles"):
        read_after_deletion()
    assert read_after_deletion(ignoreMissingFiles="true") == 2


def test_a_missing_key_file_is_no_missing_segment(tmp_path: Path) -> None:
    write_segment(tmp_path / "a.active", 2)
    options = {"path": str(tmp_path), "ignoreMissingFiles": "true", "keyFile": str(tmp_path / "_key")}
    source = SegmentDataSource(options)
    reader = source.reader(source.schema())
    with pytest.raises(FileNotFoundError, match="_key"):
        list(reader.read(reader.partitions()[0]))


def test_nothing_is_read_without_partitions(tmp_path: Path) -> None:
    reader = SegmentDataSource({"path": str(tmp_path), "segmentFormat": "active"}).reader(
        SegmentDataSource({"path": str(tmp_path), "segmentFormat": "active"}).schema()
    )
    assert reader.partitions() == []
    assert list(reader.read(InputPartition(None))) == []


@pytest.fixture
def keyed(tmp_path: Path) -> Path:
    write_segment(tmp_path / "in" / "k.active", 5, key=OTHER_KEY)
    (tmp_path / "key").write_text(OTHER_KEY.hex() + "\n")
    return tmp_path / "in"


def test_keys(spark: SparkSession, keyed: Path) -> None:
    from_file = load(spark, keyed, keyFile=str(keyed.parent / "key"), mode="FAILFAST")
    from_option = load(spark, keyed, secretKey=OTHER_KEY.hex(), mode="FAILFAST")
    assert (from_file.count(), from_option.count()) == (5, 5)


def test_a_wrong_key(spark: SparkSession, keyed: Path) -> None:
    whole = (keyed / "k.active").stat().st_size
    rows = load(spark, keyed).collect()
    assert {row.value for row in rows} == {None}
    assert (rows[0]._corrupt_record.start, rows[-1]._corrupt_record.end) == (0, whole)
    with pytest.raises(PySparkException, match=r"WrongKeyError: .*k\.active"):
        load(spark, keyed, mode="FAILFAST").collect()
    for options in ({"mode": "DROPMALFORMED"}, {"mode": "FAILFAST", "ignoreCorruptFiles": "true"}):
        assert load(spark, keyed, **options).collect() == []


def test_sql_tables_and_views(spark: SparkSession, folder: Path) -> None:
    spark.sql(f"CREATE TEMPORARY VIEW segments USING seglake OPTIONS (path '{folder}', mode 'DROPMALFORMED')")
    try:
        assert spark.sql("SELECT count(*) AS n FROM segments WHERE type = 'sensor/reading'").head()["n"] == 38  # pyright: ignore
    finally:
        spark.sql("DROP VIEW segments")


def test_registering_by_hand(spark: SparkSession, folder: Path) -> None:
    seglake.spark.register(spark)
    assert load(spark, folder / "a.active").count() == 10
