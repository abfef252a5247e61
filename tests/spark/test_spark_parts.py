"""Large files are read by several tasks, and give the same rows as read by one."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jobs import task_count
from pyspark.sql import DataFrame, SparkSession
from samples import SAMPLES

import seglake.spark
from seglake.spark.source import SegmentDataSource

RECORDS = 59
SPLIT = ("sealed", "tenant", "chunked")


def inner(tmp_path: Path, format: str) -> bytes:
    """A whole file, to stand within values."""
    sample = SAMPLES[format]
    path = tmp_path / f"inner.{sample.extension}"
    sample.write(path, 20)
    content = path.read_bytes()
    path.unlink()
    return content


def write(tmp_path: Path, format: str, records: int = RECORDS, name: str = "large", **options: Any) -> Path:
    """Writes a file whose values contain whole files of its format."""
    sample = SAMPLES[format]
    content = inner(tmp_path, format)
    path = tmp_path / "files" / f"{name}.{sample.extension}"
    path.parent.mkdir(exist_ok=True)
    options = {**sample.write_options, **options}
    with seglake.create(path, format=sample.format, **options) as writer:
        for number in range(records):
            fields = sample.make(number)
            if format == "tenant":
                fields["tenant"] = f"carrier {number % 10}"
            writer.write(**{**fields, "value": b"%d " % number + content})
    return path


def damage(path: Path) -> None:
    """Damages values, behind what says where they are."""
    data = bytearray(path.read_bytes())
    for at in range(len(data) // 4, len(data) * 3 // 4, len(data) // 9):
        data[at // 128 * 128 + 60] ^= 1
    path.write_bytes(data)


def load(spark: SparkSession, path: Path, **options: str) -> DataFrame:
    return spark.read.format("seglake").options(**options).load(str(path))


def split(spark: SparkSession, path: Path, **options: str) -> DataFrame:
    return load(spark, path, maxPartitionBytes="8k", openCostInBytes="0", **options)


def rows(frame: DataFrame) -> list[str]:
    return sorted(str(row) for row in frame.collect())


@pytest.fixture(autouse=True)
def _registered(spark: SparkSession) -> None:
    seglake.spark.register(spark)


@pytest.mark.parametrize("format", SPLIT)
@pytest.mark.parametrize("mode", ["PERMISSIVE", "DROPMALFORMED"])
def test_parts_give_the_rows_of_the_whole(spark: SparkSession, tmp_path: Path, format: str, mode: str) -> None:
    path = write(tmp_path, format)
    damage(path)
    whole = load(spark, path, mode=mode, maxPartitionBytes="1g", minPartitionNum="1")
    parts = split(spark, path, mode=mode)
    assert task_count(whole) == 1
    assert task_count(parts) > 4
    assert rows(parts) == rows(whole)
    if mode == "PERMISSIVE":
        assert parts.filter("_corrupt_record is not null").count() > 0


@pytest.mark.parametrize("format", SPLIT)
def test_damage_in_a_part_fails_a_strict_load(spark: SparkSession, tmp_path: Path, format: str) -> None:
    path = write(tmp_path, format)
    damage(path)
    with pytest.raises(Exception, match="DamageError"):
        split(spark, path, mode="FAILFAST").count()


@pytest.mark.parametrize("format", ["active", "draft"])
def test_files_of_other_formats_stay_whole(tmp_path: Path, format: str) -> None:
    path = write(tmp_path, format)
    assert tasks(path) == [[True]]


def tasks(path: Path, **options: str) -> list[list[bool]]:
    """Of each task, whether it reads all of each file."""
    source = SegmentDataSource({"path": str(path), "openCostInBytes": "0", "maxPartitionBytes": "8k", **options})
    partitions: Any = source.reader(source.schema()).partitions()
    return [[slice.part is None for slice in partition.slices] for partition in partitions]


def test_small_files_are_packed_and_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    large = write(tmp_path, "sealed", 40)
    for number in range(6):
        write(tmp_path, "sealed", 1, f"small{number}")
    opened: list[str] = []
    real: Callable[..., seglake.Reader] = seglake.open

    def counted(path: Any, **options: Any) -> seglake.Reader:
        opened.extend([path] if isinstance(path, str) else [])  # schemas are made of empty buffers
        return real(path, **options)

    monkeypatch.setattr(seglake, "open", counted)
    packed = tasks(large.parent, segmentFormat="sealed")
    assert opened == [str(large)]
    assert packed[0] == [False]
    assert sum(len(task) for task in packed) > len(packed) >= 3
    assert sum(whole for task in packed for whole in task) == 6


def test_a_file_that_changed_since_the_plan_is_an_error(tmp_path: Path) -> None:
    """Without Spark, because in between planning and reading there is no place for a test."""
    path = write(tmp_path, "chunked")
    source = SegmentDataSource({"path": str(path), "maxPartitionBytes": "8k", "openCostInBytes": "0"})
    reader = source.reader(source.schema())
    partitions = reader.partitions()
    assert len(partitions) > 4
    with path.open("ab") as file:
        file.write(b"more")
    for partition in partitions:
        with pytest.raises(ValueError, match=r"large\.chunks: .*the file has changed.*load it anew.*maxPartitionBytes"):
            list(reader.read(partition))


def test_files_under_a_secret_key_are_split_without_it(spark: SparkSession, tmp_path: Path) -> None:
    key = bytes(range(32))
    path = write(tmp_path, "sealed", key=key)
    (tmp_path / "key").write_bytes(key)
    options = {"keyFile": str(tmp_path / "key")}
    parts = split(spark, path, **options)
    assert task_count(parts) > 4
    assert rows(parts) == rows(load(spark, path, maxPartitionBytes="1g", minPartitionNum="1", **options))
    assert parts.filter("_corrupt_record is not null").count() == 0
