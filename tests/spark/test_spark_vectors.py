"""The golden files of all formats through Spark: records, damage and errors as the vectors have them."""

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from golden import FORMATS
from golden_files import CASES, GROUPS, PLACE, Case, damage_of, link, record_of, spark_options
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

import seglake
from seglake.spark.source import SegmentDataSource

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("group", GROUPS)
def test_records_and_damage(spark: SparkSession, group: str, tmp_path: Path) -> None:
    """One query over all files that can be read with the same options."""
    files = {str(link(case, tmp_path)): case for case in GROUPS[group]}
    options = spark_options(GROUPS[group][0])
    own = SegmentDataSource({"path": str(tmp_path), **options}).schema()
    frame = (
        spark.read.format("seglake").options(**options).schema(StructType([*own.fields, *PLACE])).load(str(tmp_path))
    )
    if "timestamp" in frame.columns:  # which Python cannot show beyond the years 1 to 9999
        frame = frame.selectExpr("*", "unix_micros(timestamp) AS micros").drop("timestamp")
    records: dict[str, list[dict[str, Any]]] = defaultdict(list)
    damage: dict[str, list[list[Any]]] = defaultdict(list)
    for row in frame.collect():
        span = row._corrupt_record
        if span is not None:
            damage[span.path].append([span.start, span.end, span.kind, span.cause])
        if row.path is not None:
            records[row.path].append(record_of(row))
            assert span is None or (span.path, span.start) == (row.path, row.position)
        else:
            assert set(row.asDict().values()) == {None, span}
    for path, case in files.items():
        assert records[path] == case.records(), case.id
        assert sorted(damage[path]) == damage_of(case), case.id


def decode(case: Case, folder: Path, **options: str) -> list[pa.RecordBatch]:
    """What the executors would do, without Spark: errors of many files would take as many jobs."""
    path = link(case, folder)
    source = SegmentDataSource({"path": str(path), **spark_options(case), **options})
    schema = StructType([*source.schema().fields, *PLACE])
    reader = source.reader(schema)
    return [batch for partition in reader.partitions() for batch in reader.read(partition)]  # pyright: ignore


def strict(case: Case, folder: Path) -> None:
    expected = case.expected["strict_error"]
    if expected is None:
        assert sum(batch.num_rows for batch in decode(case, folder, mode="FAILFAST")) == len(case.records())
        return
    with pytest.raises(seglake.DamageError) as error:
        decode(case, folder, mode="FAILFAST")
    assert (error.value.byte_offset, error.value.cause) == (expected["offset"], expected["cause"])
    assert error.value.path == str(folder / Path(error.value.path or "").name)


def without_damage(case: Case, folder: Path) -> None:
    if seglake.verify(case.path, **case.options).wrong_key:
        assert sum(batch.num_rows for batch in decode(case, folder, mode="DROPMALFORMED")) == 0
        return
    in_records = {start for start, _, kind, _ in damage_of(case) if kind == "record"}
    positions = [row for batch in decode(case, folder, mode="DROPMALFORMED") for row in batch["position"].to_pylist()]
    assert positions == [each["position"] for each in case.records() if each["position"] not in in_records]


@pytest.mark.parametrize("check", [strict, without_damage], ids=["failfast", "dropmalformed"])
@pytest.mark.parametrize("format", FORMATS)
def test_other_modes(
    format: str, check: Callable[[Case, Path], None], tmp_path: Path, subtests: pytest.Subtests
) -> None:
    cases = [case for case in CASES if case.format == format]
    assert len(cases) > 20
    for case in cases:
        folder = tmp_path / case.path.stem
        folder.mkdir()
        with subtests.test(case.id):
            check(case, folder)
