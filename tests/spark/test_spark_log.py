"""The folder of a log in Spark and in the ingest: one moment of it, whenever its segments are opened."""

import pickle
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import seglake
import seglake.spark
from seglake import SegmentLog
from seglake.lake.log import LakeState
from seglake.lake.options import IngestOptions
from seglake.lake.parquet import staged_name
from seglake.lake.plan import plan_files
from seglake.lake.progress import Progress
from seglake.lake.task import TaskRunner
from seglake.spark.source import SegmentDataSource
from seglake.stores import FileFilter, find_files
from seglake.tracking.place import LocalPlace

pytestmark = pytest.mark.spark

KEY = bytes(range(32))
OPTIONS = IngestOptions.of(target_file_size=1 << 20, sidecar=None)


def write(log: SegmentLog, first: int, end: int) -> None:
    log.write_batch([("even" if number % 2 == 0 else "odd", str(number)) for number in range(first, end)])


def seal(path: Path, first: int, end: int) -> None:
    with SegmentLog(path) as log:
        write(log, first, end)
        log.roll()
        log.wait_sealed()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A log of two sealed segments and an active one with records after its synced mark."""
    path = tmp_path / "log"
    for first in (0, 10):
        seal(path, first, first + 10)
    with SegmentLog(path) as log:
        write(log, 20, 30)
    mark = (path / "_mark").read_bytes()
    with SegmentLog(path) as log:
        write(log, 1000, 1005)
    (path / "_mark").write_bytes(mark)
    return path


def planned(path: Path, **options: str) -> tuple[Any, list[Any]]:
    """A reader and its partitions, as tasks get them."""
    source = SegmentDataSource({"path": str(path), **options})
    reader = source.reader(source.schema())
    return pickle.loads(pickle.dumps(reader)), pickle.loads(pickle.dumps(list(reader.partitions())))


def read(reader: Any, partitions: list[Any], column: str = "value") -> list[Any]:
    batches = [batch for partition in partitions for batch in reader.read(partition)]
    return [value for batch in batches for value in batch.column(column).to_pylist()]


def numbers(found: list[Any]) -> list[int]:
    return sorted(int(value) for value in found if value is not None)


def ingested(lake: Path) -> list[int]:
    tables = [pq.ParquetFile(file).read(columns=["value"]) for file in lake.glob("*/date=*/*.parquet")]
    return numbers([value for table in tables for value in table["value"].to_pylist()])


def test_a_load_is_one_log(spark: SparkSession, path: Path) -> None:
    frame = spark.read.format("seglake").option("metadataColumns", "path").load(str(path))
    assert frame.count() == 30
    rows = frame.selectExpr("int(string(value)) AS number", "path", "_corrupt_record AS damage").collect()
    assert sorted(row.number for row in rows) == list(range(30))
    assert {row.path for row in rows} == {file.path for file in seglake.scan(path).files()}
    assert all(row.damage is None for row in rows)
    assert frame.where("type = 'odd'").count() == 15
    sealed = spark.read.format("seglake").option("pathGlobFilter", "*.sealed").load(str(path))
    assert sealed.count() == 20


@pytest.mark.parametrize("options", [{}, {"maxPartitionBytes": "1", "openCostInBytes": "1"}])
def test_tasks_read_what_was_planned_also_when_it_is_sealed_since(path: Path, options: dict[str, str]) -> None:
    reader, partitions = planned(path, **options)
    assert numbers(read(reader, partitions)) == list(range(30))
    seal(path, 40, 50)
    assert not list(path.glob("*.active"))
    assert numbers(read(reader, partitions)) == list(range(30))
    assert len(numbers(read(*planned(path)))) == 45


def test_segments_that_retention_removed_since_are_an_error(path: Path) -> None:
    reader, partitions = planned(path)
    lenient = planned(path, ignoreMissingFiles="true")
    seal(path, 40, 50)
    with SegmentLog(path) as log:
        write(log, 50, 51)
        log.retain(bytes=0)
    with pytest.raises(seglake.exceptions.SegmentGoneError, match="segment 1 was removed"):
        read(reader, partitions)
    assert read(*lenient) == []


def test_damage_in_front_of_the_mark_is_a_row(path: Path) -> None:
    [newest] = path.glob("*.active")
    with newest.open("r+b") as file:
        file.seek(30)
        file.write(b"\xff")
    reader, partitions = planned(path)
    assert numbers(read(reader, partitions)) == [number for number in range(30) if number != 20]
    [damage] = [row for row in read(reader, partitions, "_corrupt_record") if row is not None]
    assert (damage["path"], damage["start"]) == (str(newest), 0)
    with pytest.raises(seglake.DamageError):
        read(*planned(path, mode="FAILFAST"))


def test_the_driver_needs_the_key_of_a_log(tmp_path: Path) -> None:
    path, key = tmp_path / "log", tmp_path / "key"
    key.write_text(KEY.hex())
    with SegmentLog(path, key=KEY) as log:
        write(log, 0, 10)
    assert numbers(read(*planned(path, keyFile=str(key)))) == list(range(10))
    with pytest.raises(seglake.WrongKeyError):
        planned(path)
    with pytest.raises(FileNotFoundError, match=r"keyFile: .*none: there is no such file on"):
        planned(path, keyFile=str(tmp_path / "none"))


def test_logs_and_files_of_another_format_are_refused_together(path: Path) -> None:
    with seglake.create(path.parent / "z.active", format="active") as segment:
        segment.write(type="odd", value=b"31")
    assert len(numbers(read(*planned(path.parent, recursiveFileLookup="true")))) == 31
    with seglake.create(path.parent / "z.tenant", format="tenant") as segment:
        segment.write(tenant="a", partition=0, value=b"32")
    with seglake.create(path.parent / "z.sealed", format="sealed") as segment:
        segment.write(type="odd", value=b"33")
    assert (
        len(numbers(read(*planned(path.parent, recursiveFileLookup="true", pathGlobFilter="*.{active,sealed}")))) == 32
    )
    with pytest.raises(
        seglake.FormatError, match=r"z\.tenant: is tenant, while .*z\.active is active: .*pathGlobFilter"
    ):
        planned(path.parent, recursiveFileLookup="true")
    with pytest.raises(seglake.FormatError, match="is active by now, not sealed"):
        read(*planned(path, segmentFormat="sealed"))


def test_an_ingest_of_a_log_has_its_records_once(spark: SparkSession, path: Path, tmp_path: Path) -> None:
    done = seglake.spark.ingest(path, tmp_path / "lake", spark=spark)
    assert (done.records, done.files, done.statuses["sound"]) == (30, 3, 3)
    assert ingested(tmp_path / "lake") == list(range(30))
    files = pq.read_table(tmp_path / "lake" / "files").to_pylist()
    files = [row for row in files if row["format"] == "active"]
    scanned = seglake.scan(path).files()[-1]
    assert [(row["path"], row["nbytes"], row["records"]) for row in files] == [(scanned.path, scanned.nbytes, 10)]


def test_an_ingest_reads_what_was_planned_also_when_it_is_sealed_since(path: Path, tmp_path: Path) -> None:
    listing = find_files([str(path)], FileFilter(recursive=True))
    plan = plan_files(
        listing,
        LakeState(),
        final=False,
        identify=lambda file: seglake.incremental.identity(file.segment),  # pyright: ignore
        sidecar=lambda _: None,
        files_with=lambda *_: [],
    )
    seal(path, 40, 50)
    place = LocalPlace(tmp_path / "lake")
    outcome = TaskRunner(place, "run", OPTIONS).run(0, pickle.loads(pickle.dumps(plan.groups)), Progress())
    found = [row.state for row in outcome.files]
    assert [(state.sums.records, state.status, state.error, state.format) for state in found] == [
        (10, "sound", None, "sealed")
    ] * 3
    assert [state.path for state in found] == [file.path for file in listing.files]
    tables = [pq.ParquetFile(place.uri(staged_name("run", file.path))).read() for file in outcome.data["sealed"]]
    assert sorted(int(value) for table in tables for value in table["value"].to_pylist()) == list(range(30))


_WRITER = """
import sys, time
from pathlib import Path
import seglake
path, stop, told = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
log = seglake.SegmentLog(path, segment_bytes=3000, durability="flush")
number = 0
while not stop.exists():
    log.write_batch([("t", str(n)) for n in range(number, number + 5)])
    number += 5
    if number % 3 == 0:
        log.sync()
        told.with_suffix(".new").write_text(str(number))
        told.with_suffix(".new").replace(told)
    time.sleep(0.01)  # some 8 segments a second: the readers have to keep up
log.close()
"""


def test_loads_beside_a_writer_are_prefixes(spark: SparkSession, tmp_path: Path) -> None:
    path, stop, told = tmp_path / "log", tmp_path / "stop", tmp_path / "told"
    writer = subprocess.Popen([sys.executable, "-c", _WRITER, path, stop, told])
    try:
        while not told.exists():
            assert writer.poll() is None
            time.sleep(0.01)
        for _ in range(3):
            least = int(told.read_text())
            frame = spark.read.format("seglake").load(str(path))
            found = sorted(row.number for row in frame.selectExpr("int(string(value)) AS number").collect())
            assert found == list(range(len(found)))
            assert len(found) >= least
        least = int(told.read_text())
        done = seglake.spark.ingest(path, tmp_path / "lake", spark=spark)
        assert done.errors == ()
        assert done.records >= least
        assert writer.poll() is None
    finally:
        stop.touch()
        writer.wait(60)
    assert ingested(tmp_path / "lake") == list(range(done.records))


def test_what_is_not_read_is_logged(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    planned(path)
    [record] = caplog.records
    assert record.levelname == "WARNING"
    assert f"{path}: 5 records are not read" in record.getMessage()
    caplog.clear()
    with SegmentLog(path):
        planned(path)
    assert caplog.records == []
