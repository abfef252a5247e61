"""The ingest of all formats: a folder of them in one run, their tables, and what is refused."""

import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import polars
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from golden import shown
from golden_files import CASES, VECTORS, Case, damage_of, link, plain
from pyspark.sql import SparkSession
from samples import SAMPLES, includes, with_uuid

import seglake
from seglake.spark import IngestError, IngestResult, ingest

pytestmark = pytest.mark.spark

FORMATS = ("active", "sealed", "tenant", "chunked", "oplog", "tfrecord")
MIXED = ("active", "sealed", "tenant", "chunked", "draft", "tfrecord")
# Not what the active one has, which would be the same segment.
OWN = {**SAMPLES, "sealed": replace(SAMPLES["sealed"], make=lambda number: {**with_uuid(number), "type": "sealed"})}


def table(dst: Path, name: str) -> pa.Table:
    files = [str(path) for path in sorted((dst / name).rglob("*.parquet"))]
    return ds.dataset(files).to_table()


def rows(dst: Path, name: str, format: str | None = None) -> list[dict[str, Any]]:
    """The rows of a table, of one format if that is named."""
    found = table(dst, name)
    # Python's calendar does not hold all of the times that are listed.
    every = found.select([name for name in found.column_names if not name.endswith("_timestamp")]).to_pylist()
    return [row for row in every if format is None or row["format"] == format]


class Lake:
    """A file of each format, ingested in one run."""

    def __init__(self, root: Path, spark: SparkSession) -> None:
        self.src, self.dst = root / "src", root / "lake"
        self.sound: dict[str, Path] = {}
        for name in MIXED:
            sample = OWN[name]
            self.sound[sample.format] = self.src / f"{name}.{sample.extension}"
            sample.write(self.sound[sample.format])
        self.result: IngestResult = ingest(self.src, self.dst, spark=spark, options={"chunk_bytes": 1 << 20})


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Lake:
    return Lake(tmp_path_factory.mktemp("ingest"), spark)


def test_each_format_has_tables_of_its_own(lake: Lake) -> None:
    assert (lake.result.files, lake.result.records, lake.result.exit_status) == (6, 120, 0)
    assert set(lake.result.formats) == set(FORMATS)
    assert lake.result.skipped == ()
    for format, path in lake.sound.items():
        (file,) = rows(lake.dst, "files", format)
        report = seglake.verify(path)
        assert (file["path"], file["format"], file["checked"]) == (str(path), format, report.checked)
        assert (file["nbytes"], file["records"], file["status"]) == (path.stat().st_size, 20, "sound")
        assert file["nbytes"] == sum(size for name, size in file.items() if name.endswith("_bytes"))
    assert rows(lake.dst, "damage") == []
    (run,) = rows(lake.dst, "runs")
    assert (run["run"], run["files"], run["records"]) == (lake.result.run_id, 6, 120)
    assert {rows(lake.dst, "files", format)[0]["checked"] for format in ("active", "sealed", "tenant", "chunked")} == {
        "checksum"
    }
    assert rows(lake.dst, "files", "oplog")[0]["checked"] == "structure"


@pytest.mark.parametrize("name", MIXED)
def test_records_are_what_the_library_reads(lake: Lake, name: str) -> None:
    format = OWN[name].format
    found = table(lake.dst, format)
    with seglake.open(lake.sound[format], columns=_columns(format), uuid_type="string") as reader:
        expected = pa.table(reader)
    sources = pa.array([seglake.incremental.identity(lake.sound[format], format=format)] * expected.num_rows)  # pyright: ignore
    expected = expected.add_column(expected.num_columns - 2, "source", sources)
    assert found.schema.equals(expected.schema)
    assert sorted(found.to_pylist(), key=repr) == sorted(expected.to_pylist(), key=repr)


def _columns(format: Any) -> list[str]:
    return [*seglake.open(b"", format=format, on_damage="skip").schema.names, "path", "position"]


@pytest.mark.parametrize("name", MIXED)
def test_spark_duckdb_and_polars_read_records(lake: Lake, spark: SparkSession, name: str) -> None:
    sample = OWN[name]
    records = lake.dst / sample.format
    dated = "timestamp" in table(lake.dst, sample.format).column_names
    frame = spark.read.parquet(str(records))
    assert ("date" in frame.columns) == dated
    # Numbers without a sign come as decimals, nested ones too.
    shown = [plain(row.asDict(recursive=True)) for row in frame.drop("timestamp").collect()]
    written = [sample.make(number) for number in range(20)]
    for fields in written:
        fields.pop("timestamp_us", None)
    in_order = sorted(shown, key=lambda row: row["value"])
    assert includes(in_order, written)
    with duckdb.connect() as connection:
        read = f"read_parquet('{records}/**', hive_partitioning => true)"
        assert connection.execute(f"SELECT count(*), count(DISTINCT value) FROM {read}").fetchall() == [(20, 20)]
        assert connection.execute(f"SELECT count(*) FROM read_parquet('{records}/**/*.parquet')").fetchall() == [(20,)]
    assert polars.scan_parquet(records).collect().height == 20
    folders = {path.name for path in records.iterdir() if path.is_dir()}
    assert all(folder.startswith("date=") for folder in folders)
    assert bool(folders) == dated


def test_unsigned_integers_stay_what_they_are(lake: Lake, spark: SparkSession) -> None:
    schema = table(lake.dst, "oplog").schema
    assert str(schema.field("batch").type) == "uint64"
    assert str(schema.field("clock").type) == "list<element: struct<key: binary, length: uint64>>"
    frame = spark.read.parquet(str(lake.dst / "oplog"))
    assert frame.schema["clock"].dataType.simpleString() == "array<struct<key:binary,length:decimal(20,0)>>"


def test_golden_files(spark: SparkSession, tmp_path: Path) -> None:
    """All that can be read with the default key and dialect. Many begin alike, and are damaged in different places."""
    files: dict[str, Case] = {}
    for case in CASES:
        is_default = not any(case.options.get("key", b"")) and (case.dialect or "draft") == "draft"
        if is_default and not seglake.verify(case.path, **case.options).wrong_key:
            folder = tmp_path / "src" / case.format
            folder.mkdir(parents=True, exist_ok=True)
            files[str(case.path.resolve())] = case
            link(case, folder)
    added = 0
    for format in FORMATS:
        # Named: what is damaged at its beginning cannot be told.
        result = ingest(tmp_path / "src" / format, tmp_path / "lake", spark=spark, format=format, final=True)
        assert {error.status for error in result.errors} <= {"conflict"}
        added += result.records
    damage: dict[str, list[dict[str, Any]]] = {}
    for row in rows(tmp_path / "lake", "damage"):
        damage.setdefault(row["path"], []).append(row)
    known = {format: table(tmp_path / "lake", format) for format in FORMATS}
    values: dict[str, set[str]] = {}
    for found in known.values():
        for source, value in zip(found["source"].to_pylist(), found["value"].to_pylist(), strict=True):
            values.setdefault(source, set()).add(repr(shown(value)))
    listed = rows(tmp_path / "lake", "files")
    assert {row["path"] for row in listed} == set(files)
    sums: Counter[str] = Counter()
    damaged = 0
    for row in listed:
        case = files[row["path"]]
        own = sorted(damage.get(row["path"], []), key=lambda row: row["start"])
        if row["status"] == "conflict":
            assert (row["added"], own) == (0, [])
            continue
        sums[row["source"]] += row["added"]
        assert (row["records"], row["nbytes"]) == (len(case.records()), case.expected["size"])
        assert {repr(record["value"]) for record in case.records()} <= values.get(row["source"], set())
        assert [[each[name] for name in ("start", "end", "kind", "cause")] for each in own] == damage_of(case)
        content = case.path.read_bytes()
        assert [each["raw"] for each in own] == [content[each["start"] : each["end"]] for each in own]
        damaged += row["status"] == "damaged"
    assert damaged > 160
    assert added == sum(sums.values())
    for format, found in known.items():
        key = {"active": "uuid", "sealed": "uuid", "chunked": "offset"}.get(format, "position")
        keys = Counter(zip(found["source"].to_pylist(), found[key].to_pylist(), strict=True))
        if format != "tenant":  # records of a block have its position
            assert max(keys.values()) == 1
    arrived = Counter(source for found in known.values() for source in found["source"].to_pylist())
    assert arrived == +sums


def test_a_dangling_record_is_in_records_and_in_damage(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "d.oplog"
    shutil.copy(VECTORS / "oplog" / "reference_forward_11.bin", path)
    result = ingest(path, tmp_path / "lake", spark=spark, options={"dialect": "draft-1.1"})
    assert (result.records, result.statuses["damaged"], result.exit_status) == (4, 1, 1)
    records = table(tmp_path / "lake", "oplog").to_pylist()
    assert [entry["key"] is None for entry in records[2]["clock"]] == [False, True]
    (damage,) = rows(tmp_path / "lake", "damage")
    assert (damage["start"], damage["end"], damage["kind"]) == (145, 177, "record")
    assert (damage["cause"], damage["raw"]) == ("dangling_reference", path.read_bytes()[145:177])
    (file,) = rows(tmp_path / "lake", "files")
    assert (file["record_bytes"], file["corrupt_bytes"], file["status"]) == (237, 0, "damaged")


def test_another_dialect_with_other_columns_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    dst = tmp_path / "lake"
    SAMPLES["draft"].write(tmp_path / "draft.oplog")
    SAMPLES["autobase"].write(tmp_path / "autobase.oplog")
    SAMPLES["active"].write(tmp_path / "a.active")
    assert ingest(tmp_path / "draft.oplog", dst, spark=spark).exit_status == 0
    before = sorted(dst.rglob("*.parquet"))
    for format in (None, "oplog"):
        with pytest.raises(IngestError, match=r"/oplog: its records have other .* dialect autobase: draft"):
            ingest(tmp_path / "autobase.oplog", dst, spark=spark, options={"dialect": "autobase"}, format=format)
    assert sorted(dst.rglob("*.parquet")) == before
    assert list((dst / "_staging").iterdir()) == []
    # What is no oplog is not concerned, and another destination takes it.
    assert ingest(tmp_path / "a.active", dst, spark=spark, options={"dialect": "autobase"}).exit_status == 0
    assert (
        ingest(tmp_path / "autobase.oplog", tmp_path / "other", spark=spark, options={"dialect": "autobase"}).records
        == 20
    )


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            {"options": {"dialect": "draft-2"}},
            ValueError,
            'dialect is "draft-2": expected one of draft, draft-1.1, autobase',
        ),
        ({"format": "active", "options": {"dialect": "draft"}}, IngestError, "dialect does not concern active files"),
        (
            {"format": "oplog", "options": {"chunk_bytes": 5}},
            IngestError,
            "chunk_bytes does not concern oplog files",
        ),
        ({"options": {"record_bytes": 0}}, ValueError, "record_bytes is 0: expected at least 1"),
        ({"options": {"chunk_bytes": -1}}, ValueError, "chunk_bytes is -1: expected at least 0, in bytes"),
        ({"options": {"record_bytes": "5"}}, TypeError, "record_bytes must be an int or a bool, not str"),
        (
            {"options": {"batch_bytes": 5}},
            ValueError,
            "there is no option 'batch_bytes' here: there are record_bytes, ",
        ),
    ],
)
def test_wrong_arguments_are_refused_before_spark_starts(
    tmp_path: Path, arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    SAMPLES["draft"].write(tmp_path / "a.oplog")
    with pytest.raises(error, match=message):
        ingest(tmp_path / "a.oplog", tmp_path / "lake", spark=lambda: pytest.fail("Spark starts"), **arguments)
    assert not (tmp_path / "lake").exists()


def test_a_limit_makes_a_file_unreadable_and_stops_no_other(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("chunked", "draft"):
        SAMPLES[name].write(tmp_path / "src" / f"{name}.{SAMPLES[name].extension}")
    result = ingest(tmp_path / "src", tmp_path / "lake", spark=spark, options={"chunk_bytes": 10})
    assert (result.records, len(result.errors)) == (20, 1)
    assert result.errors[0].path.endswith("chunked.chunks")
    assert result.errors[0].status == "limit"
    assert "chunk_bytes" in result.errors[0].error


def test_tables_without_a_log_are_not_added_to(spark: SparkSession, tmp_path: Path) -> None:
    SAMPLES["draft"].write(tmp_path / "a.oplog")
    foreign = tmp_path / "lake" / "files" / "mine.parquet"
    foreign.parent.mkdir(parents=True)
    pq.write_table(pa.table({"mine": [1]}), foreign)
    with pytest.raises(IngestError, match=r"lake/files: expected no table, as there is no log of a lake"):
        ingest(tmp_path / "a.oplog", tmp_path / "lake", spark=spark)
