"""Every format through Spark: schemas, round trips, the choice of records, large numbers, dangling references."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from golden_files import PLACE, VECTORS, plain
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType
from samples import EPOCH_US, SAMPLES, draft, includes, value
from test_formats import CASES as WRITTEN
from test_formats import subset

import seglake
from seglake.spark.source import SegmentDataSource

pytestmark = pytest.mark.spark

UINTS = "version: bigint, checkpointer: bigint"
HEAD = "key: binary, length: bigint"
POINT = "struct<checkpointer: bigint, signature: binary, length: bigint>"
DAMAGE = "_corrupt_record: struct<path: string, start: bigint, end: bigint, kind: string, cause: string>"
DRAFT = (
    f"seq: bigint, {UINTS}, checkpoint: struct<tree_hash: binary, length: bigint>, clock: array<struct<%s>>, "
    "abi: bigint, batch: bigint, value: binary, keys: array<binary>"
)
SCHEMAS = {
    "active": "uuid: string, timestamp: timestamp, type: string, value: binary",
    "sealed": "uuid: string, timestamp: timestamp, type: string, value: binary",
    "tenant": "partition: bigint, tenant: string, index: bigint, value: binary",
    "chunked": "offset: bigint, timestamp: timestamp, value: binary",
    "tfrecord": "value: binary",
    "draft": DRAFT % HEAD,
    "draft-1.1": DRAFT % f"{HEAD}, seq: bigint, offset: bigint",
    "autobase": f"seq: bigint, {UINTS}, "
    f"checkpoint: struct<system: {POINT}, encryption: {POINT}, user: array<{POINT}>>, "
    f"clock: array<struct<{HEAD}>>, abi: bigint, batch: bigint, value: binary, keys: array<binary>, "
    "max_supported_version: bigint, optimistic: boolean, digest: struct<pointer: bigint, key: binary>, "
    "trace: struct<system: array<bigint>, encryption: array<bigint>, "
    "user: array<struct<view: bigint, blocks: array<bigint>>>>, extra: binary, flags: bigint",
}


def load(spark: SparkSession, *paths: Path, schema: str | None = None, **options: str) -> DataFrame:
    reader = spark.read.format("seglake").options(**options)
    if schema is not None:
        reader = reader.schema(schema)
    return reader.load([str(path) for path in paths])


def dicts(frame: DataFrame) -> list[dict[str, Any]]:
    """The rows of a frame, timestamps as `timestamp_us`, since Python cannot show all of them."""
    if "timestamp" in frame.columns:
        frame = frame.selectExpr("*", "unix_micros(timestamp) AS timestamp_us").drop("timestamp")
    return [plain(row.asDict(recursive=True)) for row in frame.collect()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("formats")
    for name, sample in SAMPLES.items():
        sample.write(root / f"{name}.{sample.extension}")
    return root


@pytest.mark.parametrize("name", SAMPLES)
def test_a_file_of_each_format_is_told_and_read(spark: SparkSession, folder: Path, name: str) -> None:
    sample = SAMPLES[name]
    frame = load(spark, folder / f"{name}.{sample.extension}", **sample.read_options)
    assert frame.schema.simpleString() == f"struct<{SCHEMAS[name]}, {DAMAGE}>".replace(": ", ":").replace(", ", ",")
    written = [sample.make(number) for number in range(20)]
    found = dicts(frame)
    assert {row.pop("_corrupt_record") for row in found} == {None}
    assert includes(found, written)


@pytest.mark.parametrize("name", WRITTEN)
@settings(
    max_examples=1,
    phases=[Phase.generate],
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(data=st.data())
def test_what_is_written_is_read(spark: SparkSession, name: str, data: st.DataObject, tmp_path: Path) -> None:
    """Many random files in one query: a query takes longer than what it reads."""
    format, options, strategy = WRITTEN[name]
    files: dict[str, Sequence[dict[str, Any]]] = {}
    for number in range(40):
        path = tmp_path / f"{number}.file"
        records = files[str(path)] = data.draw(strategy)
        with seglake.create(path, format=format, **options) as writer:
            for fields in records:
                writer.write(fields)
    source = {"segmentFormat": format}
    if format == "oplog":
        source |= {**options["options"], "uint64Type": "decimal"}
    own = SegmentDataSource({"path": str(tmp_path), "mode": "FAILFAST", **source}).schema()
    schema = StructType([*own.fields, *PLACE])
    frame = spark.read.format("seglake").options(mode="FAILFAST", **source).schema(schema).load(str(tmp_path))
    found: dict[str, list[dict[str, Any]]] = {path: [] for path in files}
    for row in dicts(frame):
        found[row["path"]].append(row)
    for path, records in files.items():
        expected = [record.to_dict() for record in seglake.open(path, format=format, **_reading(options))]
        assert subset([_shown(fields) for fields in records], found[path])
        assert [row["position"] for row in found[path]] == [record["position"] for record in expected]


def _reading(options: dict[str, Any]) -> dict[str, Any]:
    return {name: options[name] for name in options if name == "options" and "dialect" in options[name]}


def _shown(fields: dict[str, Any]) -> dict[str, Any]:
    """What was written as Spark shows it: UUIDs and bytes that are meant to be text as text."""
    shown = dict(fields)
    for name in ("type", "tenant"):
        if f"{name}_bytes" in shown:
            text: bytes = shown.pop(f"{name}_bytes")
            shown[name] = text.replace(b"\\", b"\\x5c").decode("utf-8", "backslashreplace")
    if "uuid" in shown:
        shown["uuid"] = str(shown["uuid"])
    return shown


@pytest.mark.parametrize(
    ("name", "options", "numbers"),
    [
        ("active", {"since": "2024-01-31T00:05:00Z"}, range(5, 20)),
        ("active", {"until": "2024-01-31T01:05:00", "timeZone": "Europe/Berlin"}, range(5)),
        ("sealed", {"since": "2024-01-31T01:05:00+01:00", "until": "2024-01-31T00:07:00Z"}, range(5, 7)),
        ("chunked", {"since": "2023-11-17T00:00:00Z", "until": "2023-11-19T00:00:00Z"}, range(3, 5)),
        ("chunked", {"startOffset": "110", "endOffset": "116"}, range(5, 8)),
        ("chunked", {"startOffset": "137", "index": "none"}, range(19, 20)),
        ("tenant", {"partitions": "1"}, range(10, 20)),
        ("tenant", {"partitions": "0, 1, 7", "tenants": "carrier 1"}, [*range(5, 10), *range(15, 20)]),
        ("tenant", {"tenants": '["carrier 1", "nobody"]', "partitions": "0"}, range(5, 10)),
    ],
)
def test_a_choice_of_records(
    spark: SparkSession, folder: Path, name: str, options: dict[str, str], numbers: Sequence[int]
) -> None:
    sample = SAMPLES[name]
    rows = load(spark, folder / f"{name}.{sample.extension}", **options).select("value").collect()
    assert sorted(bytes(row.value) for row in rows) == [value(number) for number in numbers]


def test_a_choice_of_records_by_uuid(spark: SparkSession, folder: Path) -> None:
    made = [SAMPLES["sealed"].make(number) for number in range(20)]
    options = {"since": str(made[3]["uuid"]), "until": str(made[5]["uuid"])}
    rows = load(spark, folder / "sealed.sealed", folder / "active.active", segmentFormat="active", **options)
    assert rows.where("value IS NOT NULL").count() == 2
    assert load(spark, folder / "sealed.sealed", **options).count() == 2


@pytest.mark.parametrize(
    ("format", "options", "message"),
    [
        ("active", {"dialect": "draft"}, "option dialect does not concern format active"),
        ("tenant", {"chunkBytes": "1m"}, "option chunkBytes does not concern format tenant"),
        ("oplog", {"chunkBytes": "1m"}, "option chunkBytes does not concern format oplog"),
        ("sealed", {"index": "none"}, "option index does not concern format sealed"),
        ("active", {"index": "beside"}, "option index does not concern format active"),
        ("tenant", {"uuidType": "binary"}, "option uuidType does not concern format tenant"),
        ("chunked", {"uint64Type": "decimal"}, "option uint64Type does not concern format chunked"),
        ("active", {"startOffset": "1"}, "option startOffset does not concern format active: .*no column offset"),
        ("chunked", {"partitions": "1"}, "option partitions does not concern format chunked: .*no column partition"),
        ("oplog", {"tenants": "a"}, "option tenants does not concern format oplog: .*no column tenant"),
        ("tenant", {"where": "type = 'a'"}, "option where does not concern format tenant: .*no column type"),
        ("tenant", {"since": "2024-01-01T00:00:00Z"}, "option since does not concern format tenant: .*timestamp"),
        (
            "chunked",
            {"until": "1eeafd69-9b8a-6cee-b9f1-1b8e6a30ade3"},
            "option until by UUID does not concern format chunked: .*no column uuid",
        ),
    ],
)
def test_options_of_other_formats_are_refused_on_the_driver(
    spark: SparkSession, folder: Path, format: str, options: dict[str, str], message: str
) -> None:
    with pytest.raises(AnalysisException, match=message):
        load(spark, folder, segmentFormat=format, **options).schema  # noqa: B018 - behind Connect, loading asks nothing


def test_where_the_format_is_found_options_are_for_the_files_they_concern(spark: SparkSession, folder: Path) -> None:
    assert load(spark, folder / "active.active", dialect="autobase", chunkBytes="1m", index="none").count() == 20
    # A choice of records is not left out, though.
    with pytest.raises(AnalysisException, match="option partitions does not concern format active"):
        load(spark, folder / "active.active", partitions="1").schema  # noqa: B018


def test_a_dialect_tells_the_columns_and_the_format(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "without-extension"
    path.write_bytes((folder / "autobase.oplog").read_bytes())
    frame = load(spark, path, dialect="autobase", mode="FAILFAST")
    assert "max_supported_version" in frame.columns
    assert frame.count() == 20


def test_a_limit_is_an_error_that_names_the_option(spark: SparkSession, folder: Path) -> None:
    for name, options in (
        ("chunked", {"chunkBytes": "10"}),
        ("active", {"recordBytes": "10"}),
    ):
        path = folder / f"{name}.{SAMPLES[name].extension}"
        with pytest.raises(PySparkException, match="LimitError"):
            load(spark, path, **options).collect()


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An oplog whose message 3 has a number that no bigint holds, nested."""
    path = tmp_path_factory.mktemp("large") / "large.oplog"
    with seglake.create(path, format="oplog") as writer:
        for number in range(6):
            fields = draft(number)
            if number == 3:
                fields["clock"] = [{"key": bytes(32), "length": 5}, {"key": bytes(32), "length": 2**64 - 1}]
            writer.write(**fields)
    return path


@pytest.mark.parametrize("schema", [None, "clock array<struct<key: binary, length: bigint>>"])
def test_a_number_too_large_for_bigint_is_named(spark: SparkSession, large: Path, schema: str | None) -> None:
    with pytest.raises(PySparkException) as error:
        load(spark, large, schema=schema, mode="FAILFAST").collect()
    assert re.search(
        rf"LimitError: {large}: seq 3, field clock\.length: 18446744073709551615 is above .*uint64Type=decimal",
        str(error.value),
    )


def test_numbers_that_are_not_asked_for_are_not_converted(spark: SparkSession, large: Path) -> None:
    assert load(spark, large, schema="seq bigint, value binary", mode="FAILFAST").count() == 6


def test_large_numbers_as_decimals(spark: SparkSession, large: Path) -> None:
    by_option = load(spark, large, uint64Type="decimal")
    by_schema = load(spark, large, schema="seq bigint, clock array<struct<key: binary, length: decimal(20,0)>>")
    for frame in (by_option, by_schema):
        assert frame.schema["seq"].dataType.simpleString() == "bigint"
        assert frame.schema["clock"].dataType.simpleString() == "array<struct<key:binary,length:decimal(20,0)>>"
        row = frame.where("seq = 3").selectExpr("clock.length AS lengths").head()
        assert row is not None
        assert [int(length) for length in row.lengths] == [5, 2**64 - 1]


@pytest.mark.parametrize(
    ("schema", "options", "message"),
    [
        (
            "clock array<struct<key: binary, length: int>>",
            {},
            r"column clock of the schema given is array<struct<key:binary,length:int>>: "
            r"expected array<struct<key:binary,length:bigint>>",
        ),
        (
            "clock array<struct<key: binary>>",
            {},
            r"column clock .*: expected array<struct<key:binary,length:bigint>>",
        ),
        (
            "checkpoint struct<tree_hash: binary, length: bigint NOT NULL>",
            {},
            "column checkpoint of the schema given has a field that is NOT NULL",
        ),
        (
            "abi decimal(20,0)",
            {"uint64Type": "bigint"},
            r"column abi of the schema given is decimal\(20,0\): expected bigint",
        ),
        ("abi decimal(20,0), batch bigint", {}, r"column abi .* decimal\(20,0\): expected bigint"),
        ("flags bigint", {}, "column flags of the schema given is none of format oplog"),
    ],
)
def test_nested_columns_are_checked(
    spark: SparkSession, large: Path, schema: str, options: dict[str, str], message: str
) -> None:
    with pytest.raises(PySparkException, match=message):
        load(spark, large, schema=schema, **options).collect()


DANGLING = VECTORS / "oplog" / "reference_forward_11.bin"
DANGLING_OPTIONS = {"segmentFormat": "oplog", "dialect": "draft-1.1"}


def test_a_dangling_reference_is_a_row_with_its_fields_and_what_is_wrong(spark: SparkSession) -> None:
    rows = load(spark, DANGLING, **DANGLING_OPTIONS).collect()
    assert [row.seq for row in rows] == [0, 1, 2, 3]
    (damaged,) = [row for row in rows if row._corrupt_record is not None]
    assert bytes(damaged.value) == b"dangling reference"
    assert [(entry.key is None, entry.seq, entry.offset) for entry in damaged.clock] == [(False, 0, 0), (True, 3, 0)]
    assert tuple(damaged._corrupt_record) == (str(DANGLING), 145, 177, "record", "dangling_reference")


@pytest.mark.parametrize("name", ["broken", "cause"])
def test_the_column_for_damage_may_be_called_anything_else(spark: SparkSession, name: str) -> None:
    schema = f"value binary, {name} {DAMAGE.partition(': ')[2]}"
    rows = load(spark, DANGLING, schema=schema, columnNameOfCorruptRecord=name, **DANGLING_OPTIONS).collect()
    assert [None if row[name] is None else (row[name].start, row[name].cause) for row in rows] == [
        None,
        None,
        (145, "dangling_reference"),
        None,
    ]


def test_dangling_references_in_the_other_modes(spark: SparkSession) -> None:
    dropped = load(spark, DANGLING, mode="DROPMALFORMED", schema="seq bigint", **DANGLING_OPTIONS).collect()
    assert [row.seq for row in dropped] == [0, 1, 3]
    for options in ({"mode": "FAILFAST"}, {"schema": "value binary"}):
        with pytest.raises(PySparkException, match=rf"DamageError: .*{DANGLING}.*\b145\b"):
            load(spark, DANGLING, **DANGLING_OPTIONS, **options).collect()


def test_timestamps_that_no_calendar_holds(spark: SparkSession, tmp_path: Path) -> None:
    moments = [-(2**63), -1, 0, EPOCH_US, 2**63 - 1]
    with seglake.create(tmp_path / "t.chunks", format="chunked") as writer:
        for moment in moments:
            writer.write(timestamp_us=moment, value=b"")
    assert [row["timestamp_us"] for row in dicts(load(spark, tmp_path))] == moments


def test_an_index_beside_its_log_is_no_file_of_its_own(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    SAMPLES["chunked"].write(tmp_path / "a.chunks")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.chunks", "a.index"]
    assert load(spark, tmp_path, mode="FAILFAST").count() == 20
    assert load(spark, tmp_path / "*", mode="FAILFAST").count() == 20
    assert load(spark, tmp_path, segmentFormat="chunked", mode="FAILFAST").count() == 20
    # What is named is read, and what has no log is no index.
    (tmp_path / "a.index").rename(tmp_path / "b.index")
    for path in (tmp_path, tmp_path / "b.index"):
        with pytest.raises(PySparkException, match=r"b\.index"):
            load(spark, path, mode="FAILFAST").collect()


@pytest.mark.parametrize("name", [path.stem for path in sorted((VECTORS / "autobase").glob("real-*.oplog"))])
def test_what_autobase_itself_wrote(spark: SparkSession, name: str) -> None:
    path = VECTORS / "autobase" / f"{name}.oplog"
    frame = load(spark, path, segmentFormat="oplog", dialect="autobase", mode="FAILFAST")
    records = [record.to_dict() for record in seglake.open(path, format="oplog", options={"dialect": "autobase"})]
    assert len(records) > 5
    for record in records:
        del record["position"]
    assert dicts(frame) == records
