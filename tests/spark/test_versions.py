"""Whatever is sent to executors says so where they have another version of the package. Without Spark."""

import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

import seglake
from seglake.lake.options import IngestOptions
from seglake.lake.task import TaskRunner
from seglake.read.formats import FormatOptions, native_schema
from seglake.spark.functions import MessageDecoder
from seglake.spark.ingest_job import SentRunner
from seglake.spark.source import SegmentDataSource
from seglake.tracking.place import LocalPlace

OPTIONS = IngestOptions.of(target_file_size=1 << 20, sidecar=None)


def reader(folder: Path) -> object:
    source = SegmentDataSource({"path": str(folder), "segmentFormat": "active"})
    return source.reader(source.schema())


def writer(folder: Path) -> object:
    source = SegmentDataSource({"path": str(folder / "out"), "segmentFormat": "active"})
    return source.writer(StructType([StructField("type", StringType()), StructField("value", BinaryType())]), False)


def decoder(_: Path) -> object:
    fields = native_schema("oplog", ["version", "value"], "binary", FormatOptions(dialect="autobase"))
    return MessageDecoder("autobase", fields, fields, None)


def runner(folder: Path) -> object:
    return SentRunner(TaskRunner(LocalPlace(folder), "run", OPTIONS))


@pytest.mark.parametrize("make", [reader, writer, decoder, runner])
def test_an_executor_with_another_version_says_so(
    make: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = make(tmp_path)
    packed = pickle.dumps(sent)
    received = pickle.loads(packed)
    assert type(received) is type(sent)
    if make in (decoder, runner):
        assert received == sent
    monkeypatch.setattr(seglake, "__version__", "99.0")
    with pytest.raises(RuntimeError, match=r"the driver has seglake \S+, and the executor on \S+ has 99\.0 in /"):
        pickle.loads(packed)
