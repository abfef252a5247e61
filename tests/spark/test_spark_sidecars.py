"""Files that Spark reads by their parity sidecars: the options `parity` and `repair`."""

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from cli_samples import EXTENSIONS, RECORDS, sample
from pyspark.sql import SparkSession

import seglake
import seglake.spark
from seglake.spark.options import ReadOptions
from seglake.spark.source import SegmentDataSource


def rows(path: Path, **options: str) -> tuple[list[bytes], list[tuple[Any, ...]]]:
    """The values of records, and the reported ranges, as an executor decodes them."""
    source = SegmentDataSource({"path": str(path), **options})
    reader = source.reader(source.schema())
    batches = [batch for partition in reader.partitions() for batch in reader.read(partition)]  # pyright: ignore
    if not batches:
        return [], []
    table: Any = pa.Table.from_batches(batches)
    found = table.to_pylist()
    reports = [row["_corrupt_record"] for row in found if row.get("_corrupt_record") is not None]
    values = [row["value"] for row in found if row["value"] is not None]
    return values, [(own["start"], own["end"], own["kind"], own["cause"]) for own in reports]


def struck(folder: Path, format: str, **how: Any) -> tuple[Path, int]:
    """A file with a sidecar and a changed byte in a value, and where that is."""
    path = sample(folder, format, **how)
    seglake.protect(path)
    with seglake.open(path) as reader:
        record = list(reader)[RECORDS // 2]
    content = bytearray(path.read_bytes())
    at = record.position + 2 if format == "chunked" else content.index(record.value, record.position)
    content[at] ^= 1
    path.write_bytes(content)
    return path, at


# Without checksums of their own, these give changed values unnoticed.
UNCHECKED: list[tuple[str, dict[str, Any]]] = [
    ("oplog", {}),
    ("sealed", {"options": {"trailer": False}}),
    ("tenant", {"options": {"version": 1}}),
]


@pytest.mark.parametrize(("format", "how"), UNCHECKED)
def test_changed_bytes_of_a_file_without_checksums_are_damage(tmp_path: Path, format: str, how: dict[str, Any]) -> None:
    path, at = struck(tmp_path, format, **how)
    wrong, nothing = rows(path, sidecar="none")
    assert (len(wrong), nothing) == (RECORDS, [])
    values, reports = rows(path)
    assert len(values) == RECORDS - 1
    assert set(values) < {b"%d" % number for number in range(RECORDS)}
    assert reports == [(at, at + 1, "repaired", "checksum_mismatch")]
    assert rows(path, sidecar="auto") == (values, reports)
    assert rows(path, mode="DROPMALFORMED") == (values, [])
    with pytest.raises(seglake.DamageError, match="parity sidecar") as raised:
        rows(path, mode="FAILFAST")
    assert raised.value.byte_offset == at


@pytest.mark.parametrize(("format", "how"), [*UNCHECKED, *((format, {}) for format in EXTENSIONS)])
@pytest.mark.parametrize("mode", ["PERMISSIVE", "DROPMALFORMED"])
def test_repair_gives_the_records_that_a_sidecar_restores(
    tmp_path: Path, format: str, how: dict[str, Any], mode: str
) -> None:
    path, at = struck(tmp_path, format, **how)
    before = path.read_bytes()
    values, reports = rows(path, mode=mode, repair="true")
    assert values == [b"%d" % number for number in range(RECORDS)]
    assert [report[:3] for report in reports] == ([(at, at + 1, "repaired")] if mode == "PERMISSIVE" else [])
    assert path.read_bytes() == before


def test_what_cannot_be_restored_stays_damage(tmp_path: Path) -> None:
    path = tmp_path / "large.active"
    with seglake.create(path, format="active") as writer:
        for number in range(200):
            writer.write(type="t", value=b"%d" % number * 100)
    seglake.protect(path)
    content = path.read_bytes()
    half = len(content) // 2
    path.write_bytes(bytes(byte ^ 0x55 for byte in content[:half]) + content[half:])
    values, reports = rows(path, repair="true")
    assert 50 < len(values) < 200
    assert {report[2] for report in reports} == {"corrupt"}


def test_the_sidecar_of_one_file_may_be_elsewhere(tmp_path: Path) -> None:
    path, at = struck(tmp_path, "oplog")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    Path(f"{path}.par").rename(elsewhere / "x.par")
    assert rows(path)[1] == []
    assert rows(path, sidecar=str(elsewhere / "x.par"))[1] == [(at, at + 1, "repaired", "checksum_mismatch")]
    shutil.copy(path, tmp_path / "second.oplog")
    with pytest.raises(ValueError, match="option sidecar names the sidecar of one file, and there are 2"):
        rows(tmp_path, sidecar=str(elsewhere / "x.par"), pathGlobFilter="*.oplog")
    stream = SegmentDataSource({"path": str(tmp_path), "sidecar": "x.par", "segmentFormat": "active"})
    with pytest.raises(ValueError, match="and this is a stream"):
        stream.streamReader(stream.schema()).initialOffset()  # pyright: ignore[reportUnknownMemberType]


def test_parts_of_a_file_are_read_by_its_sidecar(tmp_path: Path) -> None:
    path, at = struck(tmp_path, "sealed")
    how = {"maxPartitionBytes": "256", "openCostInBytes": "0", "minPartitionNum": "8"}
    source = SegmentDataSource({"path": str(path), **how})
    assert len(source.reader(source.schema()).partitions()) > 1
    assert rows(path, **how)[1] == [(at, at + 1, "repaired", "checksum_mismatch")]
    assert len(rows(path, repair="true", **how)[0]) == RECORDS


@pytest.mark.parametrize("format", ["active", "tenant"])
def test_a_format_that_the_file_does_not_tell_any_more_is_told_by_the_sidecar(tmp_path: Path, format: str) -> None:
    path = sample(tmp_path, format)
    seglake.protect(path)
    unnamed = path.rename(tmp_path / "segment")
    Path(f"{path}.par").rename(f"{unnamed}.par")
    content = unnamed.read_bytes()
    unnamed.write_bytes(bytes(32) + content[32:])
    assert seglake.detect(unnamed).format != format
    assert len(rows(unnamed, repair="true")[0]) == RECORDS
    with pytest.raises(seglake.FormatError, match="cannot tell the format"):
        rows(unnamed, sidecar="none")


def test_a_link_is_read_by_the_sidecar_of_what_it_leads_to(tmp_path: Path) -> None:
    path, at = struck(tmp_path, "oplog")
    (tmp_path / "links").mkdir()
    link = tmp_path / "links" / "current.oplog"
    link.symlink_to(path)
    assert rows(link)[1] == [(at, at + 1, "repaired", "checksum_mismatch")]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"repair": "true", "mode": "FAILFAST"}, "option repair does not go with mode FAILFAST"),
        ({"repair": "true", "sidecar": "none"}, "option repair needs sidecars"),
        ({"repair": "perhaps"}, "option repair is 'perhaps'"),
        ({"sidecar": ""}, "option sidecar is ''"),
    ],
)
def test_wrong_options_are_named(options: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ReadOptions.parse({"path": "/x", **options})


def test_options_without_case() -> None:
    assert ReadOptions.parse({"path": "/x"}).sidecar == "auto"
    assert ReadOptions.parse({"path": "/x", "SIDECAR": "AUTO"}).sidecar == "auto"
    assert ReadOptions.parse({"path": "/x", "sidecar": "None"}).sidecar is None
    assert ReadOptions.parse({"path": "/x", "sidecar": "/Disk/X.par"}).sidecar == "/Disk/X.par"


@pytest.mark.spark
def test_spark_reads_by_sidecars(spark: SparkSession, tmp_path: Path) -> None:
    path, at = struck(tmp_path, "oplog")
    load = spark.read.format("seglake")
    damage = load.load(str(path)).where("_corrupt_record IS NOT NULL").select("_corrupt_record.*").collect()
    assert [(row["start"], row["end"], row["kind"]) for row in damage] == [(at, at + 1, "repaired")]
    repaired = load.option("repair", "true").load(str(path)).where("seq IS NOT NULL").orderBy("seq")
    values = [bytes(row["value"]) for row in repaired.select("value").collect()]
    assert values == [b"%d" % number for number in range(RECORDS)]


def test_the_ingest_reads_by_sidecars_on_every_engine(tmp_path: Path, spark: SparkSession) -> None:
    path, at = struck(tmp_path, "oplog")
    for on_damage, records in (("repair", RECORDS), ("skip", RECORDS - 1)):
        found: list[Any] = []
        for engine in ("local", "spark"):
            lake = tmp_path / f"{engine} {on_damage}"
            how: dict[str, Any] = {"on_damage": on_damage}
            result = (
                seglake.spark.ingest(path, lake, spark=spark, **how)
                if engine == "spark"
                else seglake.ingest(path, lake, **how)
            )
            assert (result.records, result.exit_status) == (records, 1)
            damage = ds.dataset(str(lake / "damage")).to_table().drop_columns(["run"]).to_pylist()
            table = ds.dataset(str(lake / "oplog")).to_table()
            found.append((damage, sorted(map(str, table.to_pylist()))))
        assert found[0] == found[1]
        [(row,), _] = found[0]
        assert (row["start"], row["kind"], row["raw"]) == (at, "repaired", path.read_bytes()[at : at + 1])
    as_it_is = seglake.spark.ingest(path, tmp_path / "none", spark=spark, sidecar=None)
    assert (as_it_is.records, as_it_is.exit_status) == (RECORDS, 0)
