"""A stream over a log in Spark itself: checkpoints, restarts, triggers, and a writer at work."""

import itertools
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import seglake
from seglake import SegmentLog

pytest.importorskip("seglake.spark.stream.reader", reason="streams need PySpark 4.2")
pytestmark = pytest.mark.spark


def write(log: SegmentLog, first: int, end: int) -> None:
    log.write_batch([("t", str(number)) for number in range(first, end)])


class Sink:
    """A query that appends the numbers of a log, or of other files, to a Parquet table."""

    def __init__(self, spark: SparkSession, log: Path, folder: Path, **options: str) -> None:
        self.spark = spark
        self.log = log
        self.options = options
        self.table = folder / "table"
        self.checkpoint = folder / "checkpoint"

    def begin(self, options: dict[str, str], *, available: bool = True) -> Any:
        stream = self.spark.readStream.format("seglake").options(**self.options, **options).load(str(self.log))
        written = stream.selectExpr("int(string(value)) AS number").writeStream.format("parquet")
        written = written.option("checkpointLocation", str(self.checkpoint))
        written = written.trigger(availableNow=True) if available else written.trigger(processingTime="0 seconds")
        return written.start(str(self.table))

    def run(self, **options: str) -> None:
        """Reads what there is, and ends."""
        query = self.begin(options)
        assert query.awaitTermination(120)

    def numbers(self) -> list[int]:
        files = self.table.glob("part-*.parquet")
        columns: list[list[Any]] = [pq.ParquetFile(file).read()["number"].to_pylist() for file in files]
        return sorted(itertools.chain(*columns))

    def forget(self, batch: int) -> None:
        """Takes a batch and those after it back, as if it had been planned only; and begins another table."""
        for folder in (self.checkpoint / "commits", self.checkpoint / "offsets"):
            for path in folder.iterdir():
                number = int(path.name.removeprefix(".").removesuffix(".crc"))
                if number > batch or (number == batch and folder.name == "commits"):
                    path.unlink()
        self.table = self.table.with_name(f"table-from-{batch}")

    def batches(self) -> int:
        return len([path for path in (self.checkpoint / "commits").iterdir() if path.name.isdigit()])


@pytest.fixture
def sink(spark: SparkSession, tmp_path: Path) -> Sink:
    return Sink(spark, tmp_path / "log", tmp_path)


def test_what_is_added_comes_with_the_next_run(sink: Sink) -> None:
    with SegmentLog(sink.log) as log:
        write(log, 0, 10)
        sink.run()
        assert sink.numbers() == list(range(10))
        write(log, 10, 15)
        log.roll()
        log.wait_sealed()
        write(log, 15, 20)
        sink.run()
        assert sink.numbers() == list(range(20))
        sink.run()
    assert sink.numbers() == list(range(20))


def test_batches_are_as_large_as_they_may_be(sink: Sink) -> None:
    with SegmentLog(sink.log) as log:
        for number in range(4):
            write(log, number, number + 1)
            log.roll()
    sink.run(maxFilesPerTrigger="2")
    assert (sink.numbers(), sink.batches()) == ([0, 1, 2, 3], 2)


def test_a_batch_that_was_not_finished_is_read_again(sink: Sink) -> None:
    """As after the end of the process between the plan of a batch and its commit."""
    with SegmentLog(sink.log) as log:
        write(log, 0, 5)
        sink.run(startingFrom="now")
        write(log, 5, 10)
        sink.run(startingFrom="now")
        assert sink.numbers() == list(range(5, 10))
        for batch in (1, 0):
            # Back to where the batch was planned, and its rows lost.
            sink.forget(batch)
            log.roll()
            log.wait_sealed()
            sink.run(startingFrom="now")
            assert sink.numbers() == list(range(5, 10)), batch
        write(log, 10, 12)
        sink.run(startingFrom="now")
    assert sink.numbers() == list(range(5, 12))


def test_it_follows_a_writer(sink: Sink) -> None:
    with SegmentLog(sink.log, segment_bytes=2000) as log:
        write(log, 0, 1)
        query = sink.begin({}, available=False)
        try:
            for first in range(1, 101, 20):
                write(log, first, first + 20)
                query.processAllAvailable()
            write(log, 101, 130)
            query.processAllAvailable()
        finally:
            query.stop()
    assert sink.numbers() == list(range(130))


def append(path: Path, first: int, end: int) -> None:
    with seglake.create(path, format="active", if_exists="append") as writer:
        for number in range(first, end):
            writer.write(type="t", value=str(number).encode())


def test_files_that_are_no_log(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    sink = Sink(spark, folder, tmp_path, stateLocation=str(tmp_path / "states"))
    append(folder / "a.active", 0, 5)
    sink.run()
    assert sink.numbers() == list(range(5))
    append(folder / "a.active", 5, 8)
    append(folder / "b.active", 8, 10)
    sink.run(maxFilesPerTrigger="1")
    assert (sink.numbers(), sink.batches()) == (list(range(10)), 3)
    # Back to where the last batch was planned, and its rows lost.
    sink.forget(2)
    (folder / "a.active").rename(folder / "c.active")
    append(folder / "c.active", 10, 12)
    for _ in range(2):
        sink.run()
        assert sink.numbers() == [5, 6, 7, 10, 11]
    with pytest.raises(Exception, match=r"option segmentFormat is 'chunked': expected 'active'"):
        sink.begin({"segmentFormat": "chunked"}).awaitTermination(120)
    sink.options["stateLocation"] = str(tmp_path / "others")
    with pytest.raises(Exception, match=r"option stateLocation.*expected state 4"):
        sink.begin({}).awaitTermination(120)


def test_files_that_grow_are_followed(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    append(folder / "a.active", 0, 1)
    sink = Sink(spark, folder, tmp_path, stateLocation=str(tmp_path / "states"))
    query = sink.begin({}, available=False)
    try:
        for first in range(1, 41, 10):
            append(folder / "a.active", first, first + 5)
            append(folder / f"{first}.active", first + 5, first + 10)
            query.processAllAvailable()
    finally:
        query.stop()
    assert sink.numbers() == list(range(41))


def test_what_is_no_stream_is_said_plainly(spark: SparkSession, tmp_path: Path) -> None:
    append(tmp_path / "a.active", 0, 1)
    sink = Sink(spark, tmp_path, tmp_path / "own")
    with pytest.raises(Exception, match=r"expected the folder of a log.*\.option\(\"stateLocation\", ") as raised:
        sink.begin({}).awaitTermination(120)
    assert "UnboundLocalError" not in str(raised.value)


def test_a_stream_is_written_by_foreach_batch(spark: SparkSession, tmp_path: Path) -> None:
    """A batch that is written again replaces what it has written before."""
    folder, written = tmp_path / "files", tmp_path / "written"
    folder.mkdir()
    sink = Sink(spark, folder, tmp_path, stateLocation=str(tmp_path / "states"))
    append(folder / "a.active", 0, 5)
    stream = spark.readStream.format("seglake").options(**sink.options).load(str(folder))
    own = {"segmentFormat": "sealed", "checkpointLocation": str(sink.checkpoint)}
    with pytest.raises(Exception, match=r"not a sink of streams.*writeStream.foreachBatch"):
        stream.writeStream.format("seglake").options(**own).start(str(written)).awaitTermination(120)
    assert not written.exists()

    def write(frame: DataFrame, number: int) -> None:
        sound = frame.where("_corrupt_record IS NULL")
        sound.write.format("seglake").option("segmentFormat", "sealed").mode("overwrite").save(f"{written}/{number}")

    for _ in range(2):
        query = stream.writeStream.foreachBatch(write).option("checkpointLocation", str(sink.checkpoint))
        assert query.trigger(availableNow=True).start().awaitTermination(120)
        assert seglake.scan(written).to_table()["value"].to_pylist() == [b"0", b"1", b"2", b"3", b"4"]
        sink.forget(0)


def test_an_error_says_what_to_do(sink: Sink, tmp_path: Path) -> None:
    with SegmentLog(sink.log) as log:
        write(log, 0, 5)
        sink.run()
    sink.log.rename(tmp_path / "elsewhere")
    with SegmentLog(sink.log) as log:
        write(log, 0, 50)
    query = sink.begin({})
    with pytest.raises(Exception, match=r"found 00000000000000000001-.*give the query another checkpoint"):
        query.awaitTermination(120)
