"""What is refused before any job: options of a write, and frames that are no records of the format."""

import pickle
from pathlib import Path

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from seglake.spark.schema import DAMAGE_TYPE
from seglake.spark.source import SegmentDataSource
from seglake.spark.write.options import WriteOptions, extensions
from seglake.spark.write.schema import WriteSchema

HEX = "ab" * 32


def clock(**fields: DataType) -> ArrayType:
    return ArrayType(StructType([StructField(name, type) for name, type in fields.items()]))


TYPES: dict[str, DataType] = {
    "string": StringType(),
    "binary": BinaryType(),
    "smallint": ShortType(),
    "int": IntegerType(),
    "bigint": LongType(),
    "double": DoubleType(),
    "uint64": DecimalType(20, 0),
    "money": DecimalType(20, 2),
    "timestamp": TimestampType(),
    "timestamp_ntz": TimestampNTZType(),
    "strings": ArrayType(StringType()),
    "damage": DAMAGE_TYPE,
    "length": StructType([StructField("length", LongType())]),
    "clock": clock(key=BinaryType(), length=DecimalType(20, 0)),
    "clock of sizes": clock(key=BinaryType(), size=LongType()),
    "clock of numbers": clock(key=LongType(), length=LongType()),
}
MESSAGE = "version int, checkpointer int, abi int, batch int, value binary"


def frame(columns: str) -> StructType:
    """The schema of a frame without a JVM: `name type, name type`."""
    pairs = [column.split(" ", 1) for column in columns.split(", ")]
    return StructType([StructField(name, TYPES[type]) for name, type in pairs])


def parse(format: str = "active", **options: str) -> WriteOptions:
    return WriteOptions.parse({"path": "/logs", "segmentFormat": format, **options})


def check(format: str, columns: str, **options: str) -> WriteSchema:
    return WriteSchema.check(frame(columns), parse(format, **options))


def test_defaults() -> None:
    options = parse()
    assert (options.folder, options.segment_format, options.create) == ("/logs", "active", {})
    assert (options.max_records, options.max_bytes, options.success_file) == (None, None, True)
    assert (options.key, options.key_file, options.corrupt_column) == (None, None, "_corrupt_record")


def test_all_options_of_a_format() -> None:
    options = parse("Chunked", chunkBytes="64k", CHUNKRECORDS="100", level="-3", index="false", maxBytesPerFile="1m")
    assert options.create == {"options": {"chunk_bytes": 65536, "chunk_records": 100, "level": -3, "index": False}}
    assert (options.segment_format, options.format.extension, options.max_bytes) == ("chunked", "chunks", 1 << 20)
    assert parse("tenant", version="1", memoryBytes="0").create == {"options": {"version": 1, "memory_bytes": 0}}
    assert parse(maxRecordsPerFile="10000000000").max_records == 10**10
    assert parse("sealed", trailer="false").create == {"options": {"trailer": False}}
    assert parse("oplog", dialect="draft-1.1").create == {"options": {"dialect": "draft-1.1"}}
    assert extensions() == {"active", "sealed", "tenant", "chunks", "oplog", "tfrecord"}


@pytest.mark.parametrize(("path", "folder"), [("file:///a/b", "/a/b"), ("file:/a/b", "/a/b"), ("/a/*", "/a/*")])
def test_a_folder_may_be_named_by_its_url(path: str, folder: str) -> None:
    assert WriteOptions.parse({"path": path, "segmentFormat": "active"}).folder == folder


def test_nothing_is_written_below_the_working_folder_of_a_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for session in ("default", "3d7df3b2-736d-4631-9950-55c1cd22d544"):
        monkeypatch.setenv("SPARK_JOB_ARTIFACT_UUID", session)
        assert parse(path="/logs").folder == "/logs"
        if session == "default":
            assert parse(path="out").folder == f"{tmp_path}/out"
        else:
            with pytest.raises(ValueError, match=f"^out: expected an absolute path: .*{tmp_path}/out, which is rem"):
                parse(path="out")


@pytest.mark.parametrize(
    ("format", "options", "message"),
    [
        ("zip", {}, "option segmentFormat is 'zip'"),
        ("active", {"lavel": "1"}, r"unknown option 'lavel'. Did you mean level\?"),
        ("active", {"since": "2024-01-01"}, "option since is for reading, and this is writing: leave it out"),
        ("active", {"level": "1"}, "option level does not concern format active"),
        ("oplog", {"trailer": "true"}, "option trailer does not concern format oplog"),
        ("chunked", {"level": "high"}, "option level is 'high': expected a whole number"),
        ("chunked", {"level": "99"}, "option level is '99': expected a whole number from -131072 to 22"),
        ("chunked", {"chunkRecords": "0"}, "option chunkRecords is '0': expected a whole number from 1 to 4294967295$"),
        ("chunked", {"chunkBytes": "2g"}, "option chunkBytes is '2g': expected 1 to 134217728 bytes"),
        ("tenant", {"version": "3"}, "option version is '3': expected a whole number from 1 to 2"),
        ("oplog", {"dialect": "klingon"}, "option dialect is 'klingon'"),
        ("sealed", {"trailer": "maybe"}, "option trailer is 'maybe': expected true or false"),
        ("active", {"maxRecordsPerFile": "0"}, "option maxRecordsPerFile is '0'"),
        ("active", {"maxBytesPerFile": "0"}, "option maxBytesPerFile is '0': expected at least one byte"),
        ("tenant", {"secretKey": HEX}, "option secretKey does not concern format tenant"),
        ("oplog", {"keyFile": "/k"}, "option keyFile does not concern format oplog"),
        ("active", {"secretKey": HEX, "keyFile": "/k"}, "are both given"),
        ("active", {"path": "s3://"}, "s3://: expected a path, or the URI of a folder"),
        ("active", {"path": "s3:/bucket/logs"}, "s3:/bucket/logs: expected a path, or the URI of a folder"),
        ("active", {"path": "s3://bucket/a/../b"}, "s3://bucket/a/../b: expected a path, or the URI of a folder"),
        ("active", {"path": "s3://a:password@bucket/logs"}, "a path of s3:// has a password in it"),
        ("active", {"path": "s3://bucket/logs", "fs.acess_key": "5"}, "fs.: s3://bucket: .*'acess_key' is not valid"),
        ("active", {"path": "/logs", "fs.access_key": "k"}, "option fs.access_key concerns no path"),
        ("active", {"path": "file://host/logs"}, "expected a folder of this machine"),
        ("active", {"path": ""}, "no path is given"),
    ],
)
def test_wrong_options_are_named(format: str, options: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse(format, **options)


def test_a_format_has_to_be_named() -> None:
    with pytest.raises(ValueError, match=r"option segmentFormat is missing: .* one of active, sealed, tenant"):
        WriteOptions.parse({"path": "/logs"})


def test_no_text_of_the_options_shows_the_key() -> None:
    options = pickle.loads(pickle.dumps(parse(secretKey=HEX)))
    assert options.key is not None
    assert options.key.reveal() == bytes.fromhex(HEX)
    assert HEX not in repr(options)
    with pytest.raises(ValueError, match="secretKey") as error:
        parse(secretKey=HEX + "0")
    assert HEX not in str(error.value)


def test_options_of_writing_are_none_of_reading(tmp_path: Path) -> None:
    source = SegmentDataSource({"path": str(tmp_path), "segmentFormat": "active", "maxRecordsPerFile": "5"})
    with pytest.raises(ValueError, match="option maxRecordsPerFile is for writing, and this is reading: leave it out"):
        source.schema()


def test_what_is_wrong_with_reading_is_told_before_spark_gets_the_source(tmp_path: Path) -> None:
    missing = SegmentDataSource({"path": str(tmp_path / "none"), "segmentFormat": "active"})
    with pytest.raises(FileNotFoundError, match="there is no such file or folder"):
        pickle.dumps(missing)
    with pytest.raises(FileNotFoundError, match=r"none: there is no such file.* with option segmentFormat"):
        SegmentDataSource({"path": str(tmp_path / "none")})
    with pytest.raises(ValueError, match="unknown option"):
        SegmentDataSource({"path": str(tmp_path), "segmentFormat": "active", "lavel": "1"})


def test_the_source_goes_on_without_the_options_as_they_came(tmp_path: Path) -> None:
    source = SegmentDataSource({"path": str(tmp_path), "segmentFormat": "active", "secretKey": HEX})
    state = pickle.dumps(source)
    assert HEX.encode() not in state
    assert pickle.loads(state).reader(source.schema()).partitions() == []


@pytest.mark.parametrize(
    ("format", "schema", "columns", "not_null"),
    [
        ("active", "type string, value binary", ("type", "value"), ("type", "value")),
        ("sealed", "value string, uuid binary, type binary", ("value", "uuid", "type"), ("value", "uuid", "type")),
        ("chunked", "offset int, value binary", ("offset", "value"), ("offset", "value")),
        (
            "tenant",
            "partition smallint, tenant string, index bigint, value binary",
            ("partition", "tenant", "index", "value"),
            ("partition", "tenant", "index", "value"),
        ),
        (
            "oplog",
            f"seq uint64, checkpoint length, clock clock, {MESSAGE}",
            ("seq", "checkpoint", "clock", "version", "checkpointer", "abi", "batch", "value"),
            ("seq", "clock", "version", "checkpointer", "abi", "batch", "value"),
        ),
    ],
)
def test_frames_that_fit(format: str, schema: str, columns: tuple[str, ...], not_null: tuple[str, ...]) -> None:
    found = check(format, schema)
    assert (found.columns, set(found.not_null)) == (columns, set(not_null))
    assert found.corrupt_column is None


def test_the_column_that_reports_damage_is_known_by_its_name() -> None:
    schema = "type string, value binary, _corrupt_record damage"
    assert check("active", schema).corrupt_column == "_corrupt_record"
    named = check("active", schema.replace("_corrupt_record", "broken"), columnNameOfCorruptRecord="broken")
    assert (named.corrupt_column, named.columns) == ("broken", ("type", "value"))
    with pytest.raises(ValueError, match=r'column _corrupt_record of the frame is none of format active.*\.drop\("_co'):
        check("active", schema, columnNameOfCorruptRecord="broken")
    with pytest.raises(ValueError, match="column _corrupt_record of the frame is string: expected struct"):
        check("active", "type string, value binary, _corrupt_record string")


@pytest.mark.parametrize(
    ("format", "schema", "message"),
    [
        ("active", "value binary", "column type is missing: records of format active need type, value"),
        ("active", "Type string, value binary", "column Type of the frame is none of format active: did you mean type"),
        ("active", "type string, value binary, q int", 'column q .* uuid, timestamp, type, value.*drop\\("q"\\)'),
        (
            "active",
            "type string, value binary, path string",
            'column path .* where a record was read.*drop\\("path"\\)',
        ),
        ("sealed", "type string, value binary, position bigint", 'column position .*drop\\("position"\\)'),
        ("active", "type string, value binary, timestamp timestamp", "column timestamp without column uuid"),
        ("active", "uuid string, timestamp timestamp_ntz, type string, value binary", "timestamp_ntz.*in the zone of"),
        ("active", "type int, value binary", "column type of the frame is int: expected string"),
        ("active", "type string, value strings", "column value of the frame is array<string>: expected binary"),
        ("chunked", "timestamp timestamp, value binary", "column offset is missing: .*monotonically_increasing_id"),
        ("chunked", "offset double, value binary", "column offset of the frame is double: expected bigint"),
        ("chunked", "offset money, value binary", "column offset of the frame is decimal"),
        ("tenant", "tenant string, value binary", "column partition is missing: .* need partition, tenant, value"),
        (
            "oplog",
            f"clock clock of sizes, {MESSAGE}",
            "column clock of the frame has a field size, which would be lost: expected struct<key",
        ),
        (
            "oplog",
            f"clock clock of numbers, {MESSAGE}",
            r"column clock\.key of the frame is bigint: expected binary",
        ),
    ],
)
def test_frames_that_do_not_fit_name_the_column(format: str, schema: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check(format, schema)


def test_a_column_that_is_there_twice() -> None:
    schema = frame("type string, value binary, type string")
    with pytest.raises(ValueError, match="column type stands in the frame more than once"):
        WriteSchema.check(schema, parse())
