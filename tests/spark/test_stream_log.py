"""Batches of a stream over a log, without Spark: each record once, whatever is sealed, removed and restarted."""

import pickle
import random
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import pytest

import seglake
from seglake import SegmentLog
from seglake.spark.source import SegmentDataSource

pytest.importorskip("pyspark.sql.streaming.datasource", reason="streams need PySpark 4.2")
pytest.importorskip("seglake.spark.stream.reader", reason="streams need PySpark 4.2")

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxFiles
from stream_query import Query

ALL = ReadAllAvailable()


def write(log: SegmentLog, first: int, end: int) -> list[UUID]:
    return [log.write("t", str(number)) for number in range(first, end)]


def texts(first: int, end: int) -> list[str]:
    return [str(number) for number in range(first, end)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log"


def test_records_come_once_as_they_are_written(path: Path) -> None:
    with SegmentLog(path) as log:
        write(log, 0, 3)
        query = Query(path)
        assert query.batch() == texts(0, 3)
        assert query.batch() == []
        write(log, 3, 5)
        assert query.batch() == texts(3, 5)
        log.roll()
        assert query.batch() in ([], query.rows[:0])
        write(log, 5, 9)
        assert query.batch() == texts(5, 9)
        log.wait_sealed()
        assert query.batch() == []
        write(log, 9, 10)
        assert query.batch() == texts(9, 10)
    assert query.rows == texts(0, 10)


def test_a_segment_that_is_sealed_between_two_batches(path: Path) -> None:
    with SegmentLog(path) as log:
        write(log, 0, 3)
        query = Query(path)
        assert query.batch() == texts(0, 3)
        write(log, 3, 5)
        log.roll()
        log.wait_sealed()
        write(log, 5, 6)
        assert query.batch() == texts(3, 6)


def test_a_batch_is_read_again_after_its_segment_was_sealed_and_grew(path: Path) -> None:
    with SegmentLog(path) as log:
        write(log, 0, 3)
        query = Query(path)
        assert query.batch() == texts(0, 3)
        write(log, 3, 5)
        assert query.plan()
        assert query.read() == texts(3, 5)
        write(log, 5, 8)
        assert query.read() == texts(3, 5)
        log.roll()
        log.wait_sealed()
        query.restart()
        assert query.read() == texts(3, 5)
        assert query.batch() == texts(5, 8)


def test_an_empty_log_waits(path: Path) -> None:
    with SegmentLog(path) as log:
        query = Query(path)
        assert query.batch() == []
        write(log, 0, 2)
        assert query.batch() == texts(0, 2)


@pytest.mark.parametrize("limit", [ReadMaxFiles(2), None])
def test_a_batch_takes_no_more_segments_than_it_may(path: Path, limit: Any) -> None:
    with SegmentLog(path) as log:
        for number in range(5):
            write(log, number, number + 1)
            log.roll()
        log.wait_sealed()
    query = Query(path, maxFilesPerTrigger="2")
    batches = [query.batch(limit) for _ in range(4)]
    assert batches == [texts(0, 2), texts(2, 4), texts(4, 5), []]
    assert Query(path, maxFilesPerTrigger="2").batch(ALL) == texts(0, 5)


def test_a_batch_takes_no_more_bytes_than_it_may(path: Path) -> None:
    with SegmentLog(path) as log:
        for number in range(4):
            log.write("t", str(number) + "x" * 1000)
            log.roll()
        log.wait_sealed()
    size = seglake.SegmentLog(path, readonly=True).segments()[0]
    nbytes = Path(size.path).stat().st_size
    query = Query(path, maxBytesPerTrigger=str(2 * nbytes + 10))
    assert isinstance(query.reader.getDefaultReadLimit(), ReadMaxBytes)
    assert [len(query.batch()) for _ in range(3)] == [2, 2, 0]
    small = Query(path, maxBytesPerTrigger="1")
    assert [len(small.batch()) for _ in range(5)] == [1, 1, 1, 1, 0]


def test_it_begins_now(path: Path) -> None:
    with SegmentLog(path) as log:
        write(log, 0, 3)
        query = Query(path, startingFrom="now")
        assert query.reader.initialOffset() == query.reader.initialOffset()
        assert query.batch() == []
        assert len(query.offsets) == 1
        query.restart()
        write(log, 3, 5)
        query.reader.initialOffset()
        assert query.batch() == texts(3, 5)
        assert query.batch() == []


def test_a_first_batch_is_read_again_from_where_it_began(path: Path) -> None:
    with SegmentLog(path) as log:
        write(log, 0, 3)
        query = Query(path, startingFrom="now")
        query.reader.initialOffset()
        write(log, 3, 5)
        assert query.plan()
        assert query.read() == texts(3, 5)
        # It was not finished: Spark has noted its end, and asks again for where it begins.
        write(log, 5, 7)
        query.restart()
        query.previous = query.reader.initialOffset()
        assert query.read() == texts(3, 5)
        assert query.batch() == texts(5, 7)


def test_it_begins_after_a_record(path: Path) -> None:
    with SegmentLog(path) as log:
        uuids = write(log, 0, 3)
        log.roll()
        uuids += write(log, 3, 6)
        log.wait_sealed()
        for number in range(6):
            query = Query(path, startingFrom=str(uuids[number]))
            assert query.batch() == texts(number + 1, 6), number
        before = UUID(int=uuids[0].int - 1)
        assert Query(path, startingFrom=str(before)).batch() == texts(0, 6)


def test_available_now_ends_where_the_log_ended(path: Path) -> None:
    with SegmentLog(path) as log:
        write(log, 0, 2)
        log.roll()
        write(log, 2, 4)
        query = Query(path, maxFilesPerTrigger="1")
        query.reader.prepareForTriggerAvailableNow()
        write(log, 4, 6)
        assert [query.batch() for _ in range(3)] == [texts(0, 2), texts(2, 4), []]
        query.restart()
        query.reader.prepareForTriggerAvailableNow()
        assert [query.batch() for _ in range(2)] == [texts(4, 6), []]


def test_a_segment_that_was_removed_before_it_was_read_is_an_error(path: Path) -> None:
    with SegmentLog(path) as log:
        for number in range(4):
            write(log, number, number + 1)
            log.roll()
        log.wait_sealed()
        query = Query(path, maxFilesPerTrigger="1")
        assert query.batch() == texts(0, 1)
        assert query.plan()
        log.retain(bytes=0)
        with pytest.raises(seglake.exceptions.SegmentGoneError, match="segment 2 was removed"):
            query.read()
        with pytest.raises(seglake.exceptions.SegmentGoneError, match="segment 3 was removed"):
            query.plan()


def test_segments_that_were_read_may_be_removed(path: Path) -> None:
    with SegmentLog(path) as log:
        for number in range(3):
            write(log, number, number + 1)
            log.roll()
        log.wait_sealed()
        query = Query(path)
        assert query.batch() == texts(0, 3)
        write(log, 3, 4)
        log.roll()
        log.wait_sealed()
        log.retain(bytes=0)
        assert query.batch() == texts(3, 4)


def test_another_log_in_the_folder_is_an_error(path: Path) -> None:
    with SegmentLog(path) as log:
        write(log, 0, 3)
    query = Query(path)
    assert query.batch() == texts(0, 3)
    shutil.rmtree(path)
    with SegmentLog(path) as log:
        write(log, 0, 5)
    with pytest.raises(seglake.FormatError, match=r"the stream has read segment .* found 0000") as raised:
        query.plan()
    assert "another checkpoint" in str(raised.value)


def test_a_mark_before_the_end_of_a_batch_is_an_error(path: Path) -> None:
    """A loss of power takes marks that were not synced, and no records: until a writer has proven these, they wait."""
    with SegmentLog(path) as log:
        write(log, 0, 3)
        mark = (path / "_mark").read_bytes()
        write(log, 3, 5)
        query = Query(path)
        assert query.batch() == texts(0, 5)
    (path / "_mark").write_bytes(mark)
    with pytest.raises(seglake.FormatError, match="open the log for writing once"):
        query.read()
    SegmentLog(path).close()
    assert query.read() == texts(0, 5)


def test_what_is_left_out_is_said_once(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with SegmentLog(path) as log:
        write(log, 0, 3)
        mark = (path / "_mark").read_bytes()
        write(log, 3, 5)
    (path / "_mark").write_bytes(mark)
    query = Query(path)
    assert query.batch() == texts(0, 3)
    assert not query.plan()
    [said] = [record for record in caplog.records if record.name == "seglake.spark.stream.log"]
    assert said.getMessage().startswith(f"{path}: 2 records are not read")


def test_damage_is_reported_once(path: Path) -> None:
    def damaged() -> list[int]:
        assert query.plan()
        tasks = query.reader.partitions(query.previous, query.start())
        batches = [batch for task in tasks for batch in query.reader.read(task)]
        reports = [row for batch in batches for row in batch.column("_corrupt_record").to_pylist()]
        return [report["start"] for report in reports if report is not None]

    with SegmentLog(path) as log:
        write(log, 0, 3)
        query = Query(path, segmentFormat="active")
        file = Path(log.segments()[0].path)
        length = cast("seglake.types.LogMark", log.synced).byte_offset
        flip(file, 20)
        assert damaged() == [0]
        write(log, 3, 6)
        flip(file, length + 20)
        assert damaged() == [length]


def flip(file: Path, offset: int) -> None:
    with file.open("r+b") as stream:
        stream.seek(offset)
        byte = stream.read(1)[0]
        stream.seek(offset)
        stream.write(bytes([byte ^ 1]))


@pytest.mark.parametrize("seed", range(20))
def test_each_record_once_whatever_happens_in_between(path: Path, seed: int) -> None:
    chosen = random.Random(seed)
    with SegmentLog(path, segment_bytes=chosen.choice([80, 300, 10_000])) as log:
        number = 0
        query = Query(path, startingFrom="start", maxFilesPerTrigger=str(chosen.randint(1, 4)))

        def grow() -> None:
            nonlocal number
            more = chosen.randint(1, 12)
            write(log, number, number + more)
            number += more

        def again() -> None:
            if query.offsets:
                last = query.read()
                assert query.rows[len(query.rows) - len(last) :] == last

        steps: list[Callable[[], object]] = [grow, grow, query.batch, log.roll, log.wait_sealed, query.restart, again]
        for _ in range(40):
            chosen.choice(steps)()
        while query.batch():
            pass
    assert query.rows == texts(0, number)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"startingFrom": "yesterday"}, "option startingFrom is 'yesterday': expected start, now, or a UUID"),
        ({"maxFilesPerTrigger": "0"}, "option maxFilesPerTrigger"),
        ({"pathGlobFilter": "*.sealed"}, "a stream reads a whole log"),
        ({"modifiedAfter": "2024-01-01T00:00:00Z"}, "a stream reads a whole log"),
        ({"ignoreMissingFiles": "true"}, "a stream reads a whole log"),
        ({"ignoreCorruptFiles": "true"}, "a stream reads a whole log"),
        ({"maxRecordsPerFile": "7"}, "option maxRecordsPerFile is for writing"),
    ],
)
def test_wrong_options(path: Path, options: dict[str, str], message: str) -> None:
    SegmentLog(path).close()
    with pytest.raises(ValueError, match=message):
        Query(path, **options)


def test_options_of_streams_are_none_of_loads(path: Path) -> None:
    with SegmentLog(path) as log:
        write(log, 0, 1)
    source = SegmentDataSource({"path": str(path), "maxFilesPerTrigger": "1"})
    with pytest.raises(ValueError, match="options of streams were given, and this is a load"):
        source.reader(source.schema())


def test_other_files_in_the_folder_are_an_error(path: Path) -> None:
    with SegmentLog(path) as log:
        write(log, 0, 1)
    (path / "more.active").write_bytes(b"")
    with pytest.raises(ValueError, match=r"more.active: expected nothing but the segments of a log"):
        Query(path)


def test_an_older_pyspark_is_an_error(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    SegmentLog(path).close()
    monkeypatch.delitem(sys.modules, "seglake.spark.stream.reader", raising=False)
    monkeypatch.setitem(sys.modules, "pyspark.sql.streaming.datasource", None)
    with pytest.raises(NotImplementedError, match=r"streams need PySpark 4.2 or newer, this is 4\."):
        Query(path)


def test_a_key_is_used(path: Path) -> None:
    key = bytes(range(32))
    with SegmentLog(path, key=key) as log:
        write(log, 0, 3)
        query = Query(path, secretKey=key.hex())
        assert query.batch() == texts(0, 3)
        write(log, 3, 4)
        assert query.batch() == texts(3, 4)
    assert key.hex() not in repr(pickle.dumps(query.reader.initialOffset()))
    with pytest.raises(seglake.WrongKeyError):
        Query(path)


def test_records_are_chosen_by_options(path: Path) -> None:
    with SegmentLog(path) as log:
        log.write("a", "0")
        log.write("b", "1")
        query = Query(path, types="b")
        assert query.batch() == ["1"]
        log.write("b", "2")
        log.write("a", "3")
        assert query.batch() == ["2"]


def test_what_is_no_log_is_an_error(tmp_path: Path, path: Path) -> None:
    with seglake.create(tmp_path / "plain.active", format="active") as writer:
        writer.write(type="t", value=b"1")
    for named in (tmp_path, tmp_path / "*.active"):
        with pytest.raises(ValueError, match="expected the folder of a log") as raised:
            Query(named)
        assert f'.option("stateLocation", "{tmp_path}-states")' in str(raised.value)
    with pytest.raises(ValueError, match=r'a stream reads a whole log.* add \.option\("stateLocation", '):
        Query(tmp_path, pathGlobFilter="*.active")


@pytest.mark.parametrize("offset", [{}, {"version": 2, "segment": None}, {"version": 1, "segment": "x"}, [], "1"])
def test_an_offset_of_another_source_is_an_error(path: Path, offset: Any) -> None:
    with SegmentLog(path) as log:
        write(log, 0, 1)
    with pytest.raises(ValueError, match=r"checkpoint|badly formed"):
        Query(path).reader.latestOffset(offset, ALL)
