"""Batches of a stream of files, without Spark: each record once, whatever grows, is renamed, sealed and restarted."""

import itertools
import os
import random
import re
import shutil
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import seglake
from seglake import SegmentLog
from seglake.stores import find_files

pytest.importorskip("seglake.spark.stream.reader", reason="streams need PySpark 4.2")

from pyspark.sql.streaming.datasource import ReadAllAvailable
from stream_query import Query
from stream_segment import Segment

ALL = ReadAllAvailable()
VALUE_BYTES = 40


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "files"
    folder.mkdir()
    return folder


def stream(folder: Path, **options: str) -> Query:
    return Query(folder, **{"stateLocation": str(folder.parent / "states"), "segmentFormat": "active", **options})


def unnamed(folder: Path, **options: str) -> Query:
    query = {"stateLocation": str(folder.parent / "states"), **options}
    return Query(folder, **query)


def test_new_files_and_what_others_grew_by_come_once(folder: Path) -> None:
    a, b = Segment(folder / "a.active"), Segment(folder / "b.active")
    first = a.grow(3)
    query = stream(folder)
    assert query.batch() == first
    assert query.batch() == []
    more = a.grow(2)
    new = b.grow(1)
    assert sorted(query.batch()) == sorted(more + new)
    assert query.batch() == []


def test_a_batch_is_read_again_after_its_files_grew_were_renamed_and_sealed(folder: Path) -> None:
    a, b, c = (Segment(folder / f"{name}.active") for name in "abc")
    rows = a.grow(3) + b.grow(2) + c.grow(2)
    query = unnamed(folder)
    assert query.batch() == rows
    rows = a.grow(2) + b.grow(3) + c.grow(1)
    assert query.plan()
    assert query.read() == rows
    later = a.grow(4) + b.grow(1)
    assert query.read() == rows
    b.path.rename(folder / "z.active")
    seglake.seal(c.path, folder / "c.sealed")
    c.path.unlink()
    query.restart()
    assert query.read() == rows
    assert sorted(query.batch()) == sorted(later)
    assert query.batch() == []


@pytest.mark.parametrize("trailers", [(True, True), (False, False), (True, False), (False, True)])
@pytest.mark.parametrize("moves", [False, True])
def test_a_segment_that_is_sealed_anew_with_more_records_goes_on(
    folder: Path, trailers: tuple[bool, bool], moves: bool
) -> None:
    values = [f"value {number}" for number in range(30)]
    uuids = [record.uuid for record in seglake.open(segment_of(folder.parent / "all", values))]
    query = stream(folder, segmentFormat="sealed")

    def seal(turn: int, count: int) -> None:
        for path in folder.iterdir():
            path.unlink()
        path = folder / (f"{turn}.sealed" if moves else "a.sealed")
        with seglake.create(path, format="sealed", options={"trailer": trailers[turn % 2]}) as writer:
            for uuid, value in zip(uuids[:count], values[:count], strict=True):
                writer.write(uuid=uuid, type="t", value=value.encode())

    seal(0, 4)
    assert query.batch() == values[:4]
    # Each batch is read again after the segment has more.
    for turn, (read, count) in enumerate(itertools.pairwise((4, 9, 17)), 1):
        seal(turn, count)
        assert query.plan()
        assert query.read() == values[read:count]
        seal(turn + 1, count + 2)
        query.restart()
        assert query.read() == values[read:count]
    assert query.batch() == values[17:19]
    assert query.batch() == []
    query.restart()
    assert query.batch() == []
    # The first batch too.
    seal(0, 5)
    again = stream(folder, segmentFormat="sealed", stateLocation=str(folder.parent / "other"))
    assert again.plan()
    seal(1, 30)
    assert again.read() == values[:5]
    assert again.batch() == values[5:]


def segment_of(path: Path, values: list[str]) -> Path:
    """Writes an active segment of these values."""
    with seglake.create(path, format="active") as writer:
        for value in values:
            writer.write(type="t", value=value.encode())
    return path


def test_a_file_of_a_batch_that_is_gone_is_an_error(folder: Path) -> None:
    a = Segment(folder / "a.active")
    a.grow(3)
    query = stream(folder)
    assert query.plan()
    a.path.rename(folder.parent / "elsewhere.active")
    with pytest.raises(FileNotFoundError, match=r"no file with its records is there now.*a\.active"):
        query.read()
    query.options["ignoreMissingFiles"] = "true"
    query.restart()
    assert query.read() == []


@pytest.mark.parametrize("grown", [False, True])
def test_a_batch_is_read_again_after_its_file_was_rotated(folder: Path, grown: bool) -> None:
    a = Segment(folder / "a.active")
    query = stream(folder)
    if grown:
        a.grow(2)
        query.batch()
    rows = a.grow(3)
    assert query.plan()
    a.path.rename(folder / "a.1.active")
    new = Segment(a.path, "b").grow(a.number)  # of the same layout
    assert query.read() == rows
    assert query.batch() == new


@pytest.mark.parametrize("ignored", ["false", "true"])
@pytest.mark.parametrize("format", ["active", "chunked", "oplog", "sealed"])
def test_a_file_of_a_batch_that_is_another_by_now(
    folder: Path, format: str, ignored: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Of the same layout, so that only its content tells."""

    def write(value: bytes) -> None:
        (folder / "a").unlink(missing_ok=True)
        fields: dict[str, Any] = {
            "active": {"type": "t"},
            "sealed": {"type": "t"},
            "chunked": {"offset": 1},
            "oplog": {"version": 1, "clock": [], "batch": 0, "checkpointer": 1, "abi": 0},
        }[format]
        with seglake.create(folder / "a", format=format) as writer:
            writer.write(value=value, **fields)
        (folder / "a.index").unlink(missing_ok=True)

    write(b"old")
    query = stream(folder, segmentFormat=format, ignoreMissingFiles=ignored)
    assert query.plan()
    write(b"new")
    if ignored == "false":
        with pytest.raises(seglake.exceptions.ReplacedError, match=r"/a: .*when the batch was planned"):
            query.read()
        return
    assert query.read() == []
    assert caplog.messages[0].endswith("It is left out")
    assert query.batch() == ["new"]


def test_a_file_with_records_that_are_not_wanted_is_no_other(folder: Path) -> None:
    a = Segment(folder / "a.active")
    rows = a.grow(2)
    time.sleep(0.01)
    until = datetime.now(UTC)
    a.grow(3)
    query = stream(folder, until=until.isoformat())
    assert query.batch() == rows
    a.grow(1)
    assert query.batch() == []


@pytest.mark.parametrize("value_bytes", [1, 31, 130, 2030])
@pytest.mark.parametrize("format", ["active", "sealed"])
def test_filters_may_change_between_starts(folder: Path, format: str, value_bytes: int) -> None:
    """What was read of a file does not depend on the filters that it is read with."""
    bounds: list[datetime] = []
    for name in "abcd":
        with seglake.create(folder / name, format=format) as writer:
            for type in ("t", "t", "u", "t"):
                writer.write(type=type, value=f"{name}{type}".ljust(value_bytes).encode())
        time.sleep(0.002)
        bounds.append(datetime.now(UTC))
    query = stream(folder, segmentFormat=format, maxFilesPerTrigger="1")
    found: list[list[str]] = []
    for options in ({"types": "u"}, {"since": bounds[0].isoformat()}, {"until": bounds[0].isoformat()}, {"types": "t"}):
        query.options = {"stateLocation": query.options["stateLocation"], "segmentFormat": format, **options}
        query.options["maxFilesPerTrigger"] = "1"
        query.restart()
        found.append([value.strip() for value in query.batch()])
    assert found == [["au"], ["bt", "bt", "bu", "bt"], [], ["dt", "dt", "dt"]]
    assert query.batch() == []


def test_a_restart_goes_on(folder: Path) -> None:
    a = Segment(folder / "a.active")
    a.grow(3)
    query = stream(folder)
    query.batch()
    for _ in range(5):
        rows = a.grow(2)
        query.restart()
        assert query.batch() == rows
    query.restart()
    assert query.batch() == []


def test_an_unfinished_record_waits(folder: Path) -> None:
    a = Segment(folder / "a.active")
    rows = a.grow(3)
    whole = a.path.read_bytes()
    a.path.write_bytes(whole[:-5])
    query = stream(folder)
    assert query.batch() == rows[:2]
    assert query.batch() == []
    a.path.write_bytes(whole)
    assert query.batch() == rows[2:]


def test_what_is_written_into_preallocated_space_comes_once(folder: Path) -> None:
    a = Segment(folder.parent / "a.active")
    rows = a.grow(3)
    size = a.path.stat().st_size
    rows += a.grow(3)
    whole = a.path.read_bytes()
    path = folder / "a.active"
    path.write_bytes(whole[:size] + bytes(5000))
    query = stream(folder)
    assert query.plan()
    path.write_bytes(whole + bytes(5000 - len(whole) + size))
    assert query.read() == rows[:3]
    query.restart()
    assert query.read() == rows[:3]
    assert query.batch() == rows[3:]
    assert query.batch() == []


@pytest.mark.parametrize("format", ["sealed", "chunked", "tenant", "oplog"])
def test_files_of_all_formats(folder: Path, format: str) -> None:
    def write(name: str, first: int, end: int, if_exists: str = "error") -> list[str]:
        more: dict[str, Any] = {"if_exists": if_exists} if format in ("chunked", "oplog") else {}
        with seglake.create(folder / name, format=format, **more) as writer:
            for number in range(first, end):
                fields: dict[str, Any] = {
                    "sealed": {"type": "t"},
                    "chunked": {"offset": number},
                    "tenant": {"partition": 1, "tenant": "a"},
                    "oplog": {"version": 1, "clock": [], "batch": 0, "checkpointer": 1, "abi": 0},
                }[format]
                writer.write(value=str(number).encode(), **fields)
        return [str(number) for number in range(first, end)]

    rows = write("a", 0, 5)
    query = stream(folder, segmentFormat=format)
    assert query.batch() == rows
    rows = write("b", 5, 9)
    if format in ("chunked", "oplog"):
        rows += write("a", 9, 12, "append")
    query.restart()
    assert sorted(query.batch()) == sorted(rows)
    assert query.batch() == []
    query.restart()
    assert query.batch() == []


def test_a_large_file_that_is_complete_is_read_by_several_tasks(folder: Path) -> None:
    with seglake.create(folder / "a.sealed", format="sealed") as writer:
        for number in range(1000):
            writer.write(type="t", value=f"{number:0100}".encode())
    query = stream(folder, segmentFormat="sealed", maxPartitionBytes="20k", openCostInBytes="0")
    assert query.plan()
    assert len(query.reader.partitions(query.previous, query.start())) > 3
    assert [int(row) for row in query.read()] == list(range(1000))
    (folder / "a.sealed").rename(folder / "b.sealed")
    assert [int(row) for row in query.read()] == list(range(1000))


def test_a_file_with_another_name_is_the_same(folder: Path) -> None:
    a = Segment(folder / "a.active")
    query = stream(folder)
    rows = a.grow(3)
    assert query.batch() == rows
    a.path = a.path.rename(folder / "b.active")
    assert query.batch() == []
    rows = a.grow(2)
    assert query.batch() == rows
    query.restart()
    a.path = a.path.rename(folder / "c.active")
    rows = a.grow(2)
    assert query.batch() == rows


def test_a_copy_is_read_once_and_what_it_has_more_too(folder: Path) -> None:
    a = Segment(folder / "b.active", "a")
    rows = a.grow(3)
    short = a.path.read_bytes()
    rows += a.grow(3)
    query = stream(folder)
    assert query.batch() == rows
    (folder / "a.active").write_bytes(short)
    assert query.batch() == []
    shutil.copyfile(a.path, folder / "c.active")
    a.path = folder / "c.active"
    more = a.grow(2)
    assert query.batch() == more
    assert query.batch() == []
    query.restart()
    assert query.batch() == []


def test_two_files_that_only_begin_alike_conflict(folder: Path) -> None:
    a = Segment(folder / "a.active")
    a.grow(2)
    short = a.path.read_bytes()
    a.grow(3)
    (folder / "b.active").write_bytes(short)
    Segment(folder / "b.active", "b").grow(1)
    with pytest.raises(
        seglake.exceptions.ReplacedError, match=r"b\.active: .*a\.active, which begins with the same .*of its own$"
    ):
        stream(folder, mode="FAILFAST").batch()
    query = stream(folder)
    assert query.batch() == [f"a-{number}" for number in range(5)]
    assert [(Path(report["path"]).name, report["cause"]) for report in query.damage] == [("b.active", "conflict")]
    assert not query.plan()
    query.restart()
    assert not query.plan()


def test_a_file_in_the_place_of_another(folder: Path) -> None:
    a = Segment(folder / "a.active")
    query = stream(folder)
    rows = a.grow(3)
    assert query.batch() == rows
    # It goes on under another name: a log that is rotated.
    a.path.rename(folder / "a.1.active")
    new = Segment(folder / "a.active", "new")
    rows = new.grow(2)
    assert query.batch() == rows
    # It is gone.
    new.path.unlink()
    rows = Segment(folder / "a.active", "newer").grow(2)
    assert query.batch() == rows
    assert query.batch() == []


def test_a_file_that_was_cut_conflicts_until_it_is_back(folder: Path) -> None:
    a = Segment(folder / "a.active")
    query = stream(folder)
    a.grow(1)
    size = a.path.stat().st_size
    a.grow(2)
    query.batch()
    whole = a.path.read_bytes()
    os.truncate(a.path, size)
    assert query.batch() == []
    assert [report["cause"] for report in query.damage] == ["conflict"]
    a.path.write_bytes(whole)
    rows = a.grow(1)
    assert query.batch() == rows


def test_a_change_that_keeps_size_and_time_is_seen_while_it_is_young(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    a = Segment(folder / "a.active")
    rows = a.grow(2)
    size = a.path.stat().st_size
    rows += a.grow(1)
    whole = a.path.read_bytes()
    a.path.write_bytes(whole[:size].ljust(len(whole), b"\0"))
    clock.stamp(a.path)
    query = stream(folder)
    assert query.batch() == rows[:2]
    a.path.write_bytes(whole)
    clock.stamp(a.path)
    assert query.batch() == rows[2:]


def test_files_that_did_not_change_are_not_opened(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "abc":
        Segment(folder / f"{name}.active").grow(2)
        os.utime(folder / f"{name}.active", (time.time() - 60,) * 2)
    query = stream(folder)
    query.batch()
    opened: list[Any] = []
    resume = seglake.incremental.resume
    monkeypatch.setattr(
        seglake.incremental, "resume", lambda *given, **more: opened.append(given) or resume(*given, **more)
    )
    for _ in range(3):
        assert query.batch() == []
        query.restart()
    assert opened == []


def test_a_batch_takes_no_more_than_it_may(folder: Path) -> None:
    rows = [Segment(folder / f"{name}.active").grow(2) for name in "abcde"]
    query = stream(folder, maxFilesPerTrigger="2")
    assert [query.batch() for _ in range(4)] == [rows[0] + rows[1], rows[2] + rows[3], rows[4], []]
    assert sorted(stream(folder, maxFilesPerTrigger="2").batch(ALL)) == sorted(itertools.chain(*rows))
    size = (folder / "a.active").stat().st_size
    query = stream(folder, maxBytesPerTrigger=str(size * 3 // 2))
    assert [len(query.batch()) for _ in range(5)] == [3, 3, 3, 1, 0]
    query = stream(folder, maxBytesPerTrigger="1")
    assert [len(query.batch()) for _ in range(11)] == [1] * 10 + [0]


def test_empty_files_take_no_room_of_a_batch(folder: Path) -> None:
    empty = [Segment(folder / f"{number:03}.active") for number in range(50)]
    for segment in empty:
        segment.path.touch()
    rows = Segment(folder / "z.active").grow(2)
    query = stream(folder, maxFilesPerTrigger="1", maxBytesPerTrigger="1")
    assert [query.batch(), query.batch(), query.batch()] == [rows[:1], rows[1:], []]
    rows = [segment.grow(1)[0] for segment in empty]
    assert [query.batch() for _ in range(51)] == [*([row] for row in rows), []]


def test_threads_look_no_further_than_the_batch_may_reach(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seglake.spark.stream.plan.SMALL_BYTES", 0)
    resume, threads = seglake.incremental.resume, set[str]()
    looked: list[str] = []

    def noted(source: Any, *given: Any, **more: Any) -> seglake.Reader:
        looked.append(Path(source).stem)
        threads.add(threading.current_thread().name)
        return resume(source, *given, **more)

    monkeypatch.setattr(seglake.incremental, "resume", noted)
    rows = [Segment(folder / f"{number:02}.active").grow(1)[0] for number in range(12)]
    query = stream(folder, maxFilesPerTrigger="2")
    assert query.plan()
    assert sorted(looked) == ["00", "01"]
    looked.clear()
    threads.clear()
    query = stream(folder)
    assert query.plan()
    assert sorted(looked) == [row[:2] for row in rows]
    assert "MainThread" not in threads
    looked.clear()
    # Where bytes have a limit, it depends on each file how much of the next one is looked at.
    query = stream(folder, maxBytesPerTrigger="50")
    threads.clear()
    assert query.plan()
    assert threads == {"MainThread"}


def test_an_error_of_a_file_that_threads_look_at_is_raised(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seglake.spark.stream.plan.SMALL_BYTES", 0)
    for name in "abc":
        Segment(folder / f"{name}.active").grow(2)
    query = stream(folder, mode="FAILFAST")
    query.batch()
    os.truncate(folder / "b.active", 40)
    with pytest.raises(seglake.exceptions.ReplacedError, match=r"b\.active"):
        query.batch()


def test_a_complete_file_is_taken_whole(folder: Path) -> None:
    for name in "abc":
        with seglake.create(folder / f"{name}.sealed", format="sealed") as writer:
            for number in range(3):
                writer.write(type="t", value=f"{name}{number}".encode())
    size = (folder / "a.sealed").stat().st_size
    query = stream(folder, segmentFormat="sealed", maxBytesPerTrigger=str(size * 3 // 2))
    assert [len(query.batch()) for _ in range(4)] == [3, 3, 3, 0]
    query = stream(folder, segmentFormat="sealed", maxBytesPerTrigger="1")
    assert [len(query.batch()) for _ in range(4)] == [3, 3, 3, 0]


def test_a_file_that_grows_fast_does_not_keep_others_waiting(folder: Path) -> None:
    a, b = Segment(folder / "a.active"), Segment(folder / "b.active")
    a.grow(1)
    query = stream(folder, maxFilesPerTrigger="1")
    query.batch()
    rows = b.grow(1)
    a.grow(1)
    assert query.batch() == rows


def test_it_begins_now(folder: Path) -> None:
    a = Segment(folder / "a.active")
    a.grow(3)
    query = stream(folder, startingFrom="now")
    assert query.batch() == []
    assert len(query.offsets) == 1
    rows = a.grow(2) + Segment(folder / "b.active").grow(1)
    query.restart()
    assert sorted(query.batch()) == rows


def test_it_begins_now_also_where_there_is_nothing(folder: Path) -> None:
    query = stream(folder, startingFrom="now")
    assert query.batch() == []
    assert len(query.offsets) == 1
    rows = Segment(folder / "a.active").grow(2)
    query.restart()
    assert query.batch() == rows


def test_available_now_ends_though_a_preallocated_file_grows(folder: Path) -> None:
    a = Segment(folder.parent / "a.active")
    rows = a.grow(1)
    path = folder / "a.active"
    path.write_bytes(a.path.read_bytes() + bytes(1000))
    query = stream(folder)
    query.reader.prepareForTriggerAvailableNow()
    assert query.batch() == rows
    more = a.grow(1)
    whole = a.path.read_bytes()
    path.write_bytes(whole.ljust(path.stat().st_size, b"\0"))
    assert query.batch() == []
    query.restart()
    assert query.batch() == more


def test_available_now_ends(folder: Path) -> None:
    a, b = Segment(folder / "a.active"), Segment(folder / "b.active")
    rows = [a.grow(2), b.grow(2)]
    query = stream(folder, maxFilesPerTrigger="1")
    query.reader.prepareForTriggerAvailableNow()
    assert query.batch() == rows[0]
    later = a.grow(1) + Segment(folder / "c.active").grow(1)
    assert [query.batch(), query.batch()] == [rows[1], []]
    query.restart()
    query.reader.prepareForTriggerAvailableNow()
    assert sorted(query.batch() + query.batch()) == sorted(later)


def test_a_batch_that_spark_did_not_note_stays_as_it_was_planned(folder: Path) -> None:
    a = Segment(folder / "a.active")
    a.grow(2)
    query = stream(folder)
    query.batch()
    rows = a.grow(1)
    assert query.plan()
    query.offsets.pop()
    later = a.grow(1)
    assert query.batch() == rows
    query.offsets.pop()
    query.restart()
    assert query.batch() == rows
    assert query.batch() == later


def test_damage_is_reported_once(folder: Path) -> None:
    def starts() -> list[int]:
        assert query.plan()
        tasks = query.reader.partitions(query.previous, query.start())
        batches = [batch for task in tasks for batch in query.reader.read(task)]
        reports = [row for batch in batches for row in batch.column("_corrupt_record").to_pylist()]
        return [report["start"] for report in reports if report is not None]

    a = Segment(folder / "a.active")
    a.grow(3)
    size = a.path.stat().st_size
    flip(a.path, size // 3 + 20)
    query = stream(folder)
    assert starts() == [size // 3]
    a.grow(3)
    flip(a.path, size + 20)
    assert starts() == [size]


def damaged_sealed(path: Path) -> None:
    """A complete file in which nothing is sound, so that nothing identifies it."""
    with seglake.create(path, format="sealed") as writer:
        writer.write(type="t", value=path.stem.encode() * 10)
    flip(path, 60)


def reports(query: Query) -> list[str]:
    """The files whose damage the next batch tells."""
    if not query.plan():
        return []
    tasks = query.reader.partitions(query.previous, query.start())
    batches = [batch for task in tasks for batch in query.reader.read(task)]
    return [Path(row["path"]).name for batch in batches for row in batch.column("_corrupt_record").to_pylist()]


def test_damage_of_a_file_that_nothing_identifies_is_told_once_whatever_its_name(folder: Path) -> None:
    path, other = folder / "a.sealed", folder / "b.sealed"
    damaged_sealed(path)
    query = stream(folder, segmentFormat="sealed")
    assert reports(query) == ["a.sealed"]
    path = path.rename(folder / "c.sealed")
    assert reports(query) == []
    # A listing misses it while it gets another name; a batch is planned meanwhile.
    path = path.rename(folder / "_c.sealed")
    damaged_sealed(other)
    assert reports(query) == ["b.sealed"]
    path = path.rename(folder / "c.sealed")
    assert reports(query) == []
    query.restart()
    # Two files with the same bytes are two, as there is nothing to tell them by.
    shutil.copyfile(path, folder / "d.sealed")
    assert reports(query) == ["d.sealed"]
    # Another file with the name of one that is gone.
    path.unlink()
    with seglake.create(folder / "e.sealed", format="sealed") as writer:
        writer.write(type="t", value=b"e")
    assert query.batch() == ["e"]
    damaged_sealed(folder / "f.sealed")
    (folder / "f.sealed").rename(path)
    assert reports(query) == ["c.sealed"]
    assert reports(query) == []


def test_damage_that_an_oplog_waits_at_is_said(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    def grow(first: int, end: int) -> None:
        with seglake.create(folder / "a", format="oplog", if_exists="append") as writer:
            for number in range(first, end):
                fields: dict[str, Any] = {"version": 1, "clock": [], "batch": 0, "checkpointer": 1, "abi": 0}
                writer.write(value=str(number).encode(), **fields)

    grow(0, 3)
    size = (folder / "a").stat().st_size
    grow(3, 4)
    whole = (folder / "a").read_bytes()
    (folder / "a").write_bytes(whole[:-1])
    query = stream(folder, segmentFormat="oplog")
    assert query.batch() == ["0", "1", "2"]
    assert caplog.messages == []  # an unfinished message waits, as everywhere
    (folder / "a").write_bytes(whole)
    grow(4, 6)
    content = (folder / "a").read_bytes()
    flip(folder / "a", size + 2)
    for _ in range(2):
        assert query.batch() == []
    assert len(caplog.messages) == 1
    assert re.search(rf"/a: \w+ at offset {size}: ", caplog.messages[0])
    assert "The stream waits there" in caplog.messages[0]
    with pytest.raises(seglake.DamageError, match=f"offset {size}"):
        stream(folder, segmentFormat="oplog", mode="FAILFAST").batch()
    (folder / "a").write_bytes(content)
    assert query.batch() == ["3", "4", "5"]


def flip(file: Path, offset: int) -> None:
    content = bytearray(file.read_bytes())
    content[offset] ^= 1
    file.write_bytes(content)


KEY = bytes(range(32))


def bad_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A sound file, and one of each kind of which nothing can be read; returns the records of the first."""
    clock = Clock(monkeypatch)
    rows = Segment(folder / "b.active").grow(2)
    for name, key in (("a.active", KEY), ("c.sealed", KEY), ("e.active", None)):
        with seglake.create(folder / name, format=name[2:], key=key) as writer:  # pyright: ignore
            writer.write(type="t", value=name.encode())
    (folder / "README.txt").write_text("what is in here")
    with seglake.create(folder / "d.chunks", format="chunked") as writer:
        writer.write(offset=1, value=b"1")
    for path in folder.iterdir():
        clock.stamp(path)
    clock.seconds += 60
    for look in (seglake.incremental.identity, seglake.incremental.resume):

        def failing(source: Any, *given: Any, look: Any = look, **how: Any) -> Any:
            if str(source).endswith("e.active"):
                raise OSError(5, "Input/output error", str(source))
            return look(source, *given, **how)

        monkeypatch.setattr(seglake.incremental, look.__name__, failing)
    return rows


CAUSES = {
    "README.txt": "not_a_segment",
    "a.active": "wrong_key",
    "c.sealed": "wrong_key",
    "d.chunks": "not_a_segment",
    "e.active": "unreadable",
}


@pytest.mark.parametrize("quota", [{}, {"maxFilesPerTrigger": "1"}])
def test_files_that_cannot_be_read_are_rows_once_and_tried_again(
    folder: Path, quota: dict[str, str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    rows = bad_files(folder, monkeypatch)
    query = unnamed(folder, **quota)
    found: list[str] = []
    damage: list[Any] = []
    while query.plan():
        assert (query.read(), query.damage) == (query.read(), query.damage)  # as Spark may do
        found += query.read()
        damage += query.damage
    assert found == rows
    assert {Path(row["path"]).name: row["cause"] for row in damage} == CAUSES
    assert len(damage) == len(CAUSES)
    assert all((row["start"], row["kind"]) == (0, "file") for row in damage)
    assert all(row["end"] == Path(row["path"]).stat().st_size > 0 for row in damage)
    assert len(caplog.messages) == (3 if not quota else 5)
    caplog.clear()
    query.restart()
    assert query.batch() == []
    assert not caplog.messages
    # What can be read by now comes, once.
    monkeypatch.undo()
    keys = [folder.parent / "usual", folder.parent / "other"]
    for path, key in zip(keys, (bytes(32), KEY), strict=True):
        path.write_bytes(key)
    (folder / "README.txt").unlink()
    shutil.copyfile(folder / "b.active", folder / "README.txt")
    query.options |= {"keyFile": ",".join(map(str, keys))}
    query.restart()
    while query.batch():
        pass
    assert sorted(query.rows) == ["a.active", "c.sealed", "e.active"]
    more = Segment(folder / "b.active").grow(1)
    assert more[0] in {*query.batch(), *more}


@pytest.mark.parametrize("options", [{"mode": "DROPMALFORMED"}, {"ignoreCorruptFiles": "true", "mode": "FAILFAST"}])
def test_files_that_cannot_be_read_are_counted_in_the_log(
    folder: Path, options: dict[str, str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    rows = bad_files(folder, monkeypatch)
    query = unnamed(folder, **options)
    assert query.batch() == rows
    assert query.batch() == []
    assert len(caplog.messages) == 3
    assert sum("1 more files likewise" in message for message in caplog.messages) == 2
    query.options |= {"secretKey": KEY.hex()}
    query.restart()
    assert sorted(query.batch()) == ["a.active", "c.sealed"]


def test_a_key_that_is_wrong_for_a_while_loses_nothing(folder: Path) -> None:
    path = folder / "a.active"
    with seglake.create(path, format="active", key=KEY) as writer:
        writer.write(type="t", value=b"1")
    query = stream(folder, secretKey=KEY.hex())
    assert query.batch() == ["1"]
    with seglake.create(path, format="active", key=KEY, if_exists="append") as writer:
        for value in (b"2", b"3", b"4"):
            writer.write(type="t", value=value)
    query.options["secretKey"] = bytes(32).hex()
    query.restart()
    assert query.batch() == []
    query.options["secretKey"] = KEY.hex()
    query.restart()
    assert query.batch() == ["2", "3", "4"]


@pytest.mark.parametrize(
    ("bad", "error"), [("a.active", r"WrongKeyError: .*keyFile"), ("README.txt", "FormatError: .*pathGlob")]
)
def test_such_a_file_is_an_error_in_mode_failfast(
    folder: Path, bad: str, error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad_files(folder, monkeypatch)
    for name in CAUSES.keys() - {bad}:
        (folder / name).unlink()
    with pytest.raises(seglake.SeglakeError) as raised:
        unnamed(folder, mode="FAILFAST").batch()
    assert re.match(error, f"{type(raised.value).__name__}: {raised.value}")


def test_a_file_that_is_no_segment_is_told_when_it_has_settled(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    Segment(folder / "a.active").grow(1)
    (folder / "empty").touch()
    (folder / "zeros").write_bytes(bytes(100))
    for path in folder.iterdir():
        clock.stamp(path)
    clock.seconds += 60
    (folder / "young").write_bytes(b"text")
    clock.stamp(folder / "young")
    query = unnamed(folder)
    assert len(query.batch()) == 1
    clock.seconds += 60
    assert query.batch() == []
    assert [row["cause"] for row in query.damage] == ["not_a_segment"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"startingFrom": "1eeafd69-9b8a-6cee-b9f1-1b8e6a30ade3"}, "a UUID is a place in a log"),
        ({"stateLocation": "file://host/states"}, "expected a folder of this machine"),
        ({"minStatesToRetain": "1"}, "option minStatesToRetain"),
        ({"maxFilesPerTrigger": "0"}, "option maxFilesPerTrigger is '0': expected a whole number from 1"),
        ({"maxBytesPerTrigger": "0"}, "option maxBytesPerTrigger is '0': expected at least one byte"),
    ],
)
def test_wrong_options(folder: Path, options: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        stream(folder, **options)


def test_what_is_wrong_with_folders(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no files to read in .* With option segmentFormat"):
        unnamed(folder)
    with SegmentLog(folder / "log") as log:
        log.write("t", "1")
    with pytest.raises(ValueError, match="this is the folder of a log"):
        stream(folder, recursiveFileLookup="true").batch()
    with pytest.raises(ValueError, match="expected a folder outside of those that are streamed"):
        stream(folder, stateLocation=str(folder / "states")).batch()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"segmentFormat": "chunked"}, "option segmentFormat is 'chunked': expected 'active'"),
        ({"stateLocation": "/nowhere"}, "expected state 1 of stream .* which the checkpoint has, found none"),
    ],
)
def test_a_restart_with_other_options_is_an_error(folder: Path, change: dict[str, str], message: str) -> None:
    Segment(folder / "a.active").grow(1)
    query = stream(folder)
    query.batch()
    query.options.update(change)
    query.restart()
    with pytest.raises(ValueError, match=message):
        query.batch()
    with pytest.raises(ValueError, match=message):
        query.read()


def test_a_restart_with_another_path_is_an_error(folder: Path, tmp_path: Path) -> None:
    Segment(folder / "a.active").grow(1)
    query = stream(folder)
    query.batch()
    query.path = tmp_path / "other"
    query.path.mkdir()
    query.restart()
    with pytest.raises(ValueError, match=r"path is \[.*other'\]: expected \[.*files'\], with which the checkpoint"):
        query.batch()


@pytest.mark.parametrize(
    "offset",
    [
        {},
        {"version": 2},
        {"version": 1, "state": 1, "stream": "../x", "hash": "0"},
        [],
        "1",
        {"version": 1, "segment": None},
    ],
)
def test_an_offset_of_another_source_is_an_error(folder: Path, offset: Any) -> None:
    Segment(folder / "a.active").grow(1)
    with pytest.raises(ValueError, match="checkpoint"):
        stream(folder).reader.latestOffset(offset, ALL)


@pytest.mark.parametrize("size", [0, 30])
def test_a_state_that_was_cut_is_an_error(folder: Path, size: int) -> None:
    Segment(folder / "a.active").grow(1)
    query = stream(folder)
    query.batch()
    (state,) = (folder.parent / "states").glob("*/_log/*")
    os.truncate(state, size)
    query.restart()
    for call in (query.batch, query.read):
        with pytest.raises(ValueError, match=r"_log/0+1\.json: expected an entry of the log: .*Restore it"):
            call()


def test_two_queries_may_share_a_folder_of_states(folder: Path) -> None:
    a = Segment(folder / "a.active")
    rows = a.grow(1)
    queries = [stream(folder, minStatesToRetain="2") for _ in range(2)]
    for step in range(10):
        for query in queries:
            if chosen := step % 3 == 0 or query is queries[0]:
                query.batch()
            if chosen and step % 2:
                query.restart()
        rows += a.grow(1)
    for query in queries:
        query.batch()
        assert query.rows == rows


def test_a_query_with_a_copy_of_a_checkpoint_goes_on_or_says_why_not(folder: Path) -> None:
    a = Segment(folder / "a.active")
    rows = a.grow(1)
    query = stream(folder, minStatesToRetain="2")
    query.batch()
    other = stream(folder, minStatesToRetain="2")
    other.offsets, other.rows = [*query.offsets], [*query.rows]
    for _ in range(2):
        rows += a.grow(1)
        query.batch()
        other.batch()
    assert query.rows == other.rows == rows
    for _ in range(4):
        a.grow(1)
        query.batch()
    other.restart()
    with pytest.raises(ValueError, match=r"expected state 3 of stream .* which the checkpoint has, found none"):
        other.batch()


def test_old_states_are_removed_and_few_files_tell_all(folder: Path) -> None:
    segments = [Segment(folder / f"{number}.active") for number in range(4)]
    query = stream(folder, minStatesToRetain="3")
    rows: list[str] = []
    for number in range(12):
        rows += segments[number % 4].grow(1)
        query.batch()
        names = [path.name for path in (folder.parent / "states").glob("*/_log/*")]
        assert sum(name.endswith(".json") for name in names) in range(min(number + 1, 3), 7)
        assert sum(name.endswith(".checkpoint") for name in names) <= 2
    assert query.rows == rows
    query.restart()
    assert query.batch() == []


def test_a_segment_that_is_not_listed_for_a_while_is_not_new(folder: Path) -> None:
    a, b = Segment(folder / "a.active"), Segment(folder / "b.active")
    rows = a.grow(1) + b.grow(1)
    query = stream(folder, minStatesToRetain="3")
    assert query.batch() == rows
    for batches, read in ((3, []), (5, ["a-0"])):
        hidden = a.path.rename(folder / "_a")
        for _ in range(batches):
            rows = b.grow(1)
            assert query.batch() == rows
        hidden.rename(a.path)
        assert query.batch() == read
    a.path.rename(hidden)
    rows = b.grow(1)
    assert query.batch() == rows
    query.restart()
    hidden.rename(a.path)
    assert query.batch() == []


@pytest.mark.parametrize("seed", range(20))
def test_each_record_once_whatever_happens_in_between(folder: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if seed % 2:
        monkeypatch.setattr("seglake.spark.stream.plan.SMALL_BYTES", 0)  # threads look at each file
    chosen = random.Random(seed)
    segments: list[Segment] = []
    rows: list[str] = []
    limits = (
        {"maxFilesPerTrigger": str(chosen.randint(1, 3))} if chosen.random() < 0.5 else {"maxBytesPerTrigger": "100"}
    )
    Segment(folder / "first.active").grow(1)
    rows.append("first-0")
    query = unnamed(folder, **limits)
    last: list[str] = []
    names = itertools.count()

    def create() -> None:
        name = f"s{next(names)}"
        segments.append(Segment(folder / f"{chosen.randint(0, 99):02}-{name}.active", name))
        rows.extend(segments[-1].grow(chosen.randint(1, 3)))

    def grow() -> None:
        if segments:
            rows.extend(chosen.choice(segments).grow(chosen.randint(1, 4)))

    def rename() -> None:
        if segments:
            segment = chosen.choice(segments)
            segment.path = segment.path.rename(folder / f"{chosen.randint(0, 999):03}-{next(names)}.active")

    def seal() -> None:
        if segments:
            segment = segments.pop(chosen.randrange(len(segments)))
            seglake.seal(segment.path, segment.path.with_suffix(".sealed"))
            if chosen.random() < 0.7:
                segment.path.unlink()

    def rotate() -> None:
        if segments:
            segment = segments[chosen.randrange(len(segments))]
            path, name = segment.path, f"s{next(names)}"
            segment.path = path.rename(folder / f"{chosen.randint(0, 999):03}-{next(names)}.active")
            segments.append(Segment(path, name))
            rows.extend(segments[-1].grow(chosen.randint(1, 3)))

    def copy() -> None:
        if segments:
            content = chosen.choice(segments).path.read_bytes()
            records = [record.position for record in seglake.open(content)] + [len(content)]
            end = chosen.choice(records[1:])  # as it is, or as a backup has it
            (folder / f"{chosen.randint(0, 99):02}-copy-{next(names)}.active").write_bytes(content[:end])

    def batch() -> None:
        nonlocal last
        if query.plan():
            last = query.read()
            query.rows.extend(last)

    def again() -> None:
        if query.offsets:
            assert sorted(query.read()) == sorted(last)

    steps: list[Callable[[], object]] = [
        create,
        grow,
        grow,
        rename,
        rotate,
        copy,
        seal,
        batch,
        batch,
        query.restart,
        again,
    ]
    for _ in range(60):
        chosen.choice(steps)()
    while query.batch():
        pass
    assert sorted(query.rows) == sorted(rows)


class Clock:
    """A clock of whole seconds that is put forward and back. Files get their times from it, and listings too."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds = 1_700_000_000

        def find(*given: Any) -> Any:
            listing = find_files(*given)
            listing.listed_ns = self.seconds * 10**9
            return listing

        monkeypatch.setattr("seglake.spark.stream.folder.find_files", find)
        monkeypatch.setattr("seglake.spark.stream.look.time", SimpleNamespace(time_ns=lambda: self.seconds * 10**9))

    def stamp(self, path: Path) -> None:
        os.utime(path, (self.seconds, self.seconds))


def test_a_file_may_have_one_time_twice_once_the_clock_was_put_back(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    a = Segment(folder.parent / "a.active")

    def grow() -> list[str]:
        rows = a.grow(1)
        (folder / "a.active").write_bytes(a.path.read_bytes().ljust(1000, b"\0"))
        clock.stamp(folder / "a.active")
        return rows

    query = stream(folder)
    rows = grow()
    clock.seconds += 60
    assert query.batch() == rows
    assert query.batch() == []
    clock.seconds -= 60
    rows = grow()
    assert query.batch() == rows


@pytest.mark.parametrize("seed", range(3))
def test_each_record_once_whatever_the_clock_does(folder: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Into preallocated files, whose sizes tell nothing."""
    chosen, clock = random.Random(seed), Clock(monkeypatch)
    segments = [Segment(folder.parent / f"{name}.active") for name in "abc"]
    rows: list[str] = []

    def grow(segment: Segment) -> None:
        rows.extend(segment.grow(1))
        path = folder / segment.path.name
        path.write_bytes(segment.path.read_bytes().ljust(20_000, b"\0"))
        clock.stamp(path)

    grow(segments[0])
    query = stream(folder)
    for _ in range(60):
        for segment in segments:
            if chosen.random() < 0.5:
                grow(segment)
        query.batch()
        # A jump, or a second or none.
        clock.seconds += chosen.choice([0, 0, 1, 3, -3, -1, 120, -120])
        if chosen.random() < 0.2:
            query.batch()
            query.restart()
    clock.seconds += 10_000
    query.batch()
    assert sorted(query.rows) == sorted(rows)


def parted(folder: Path, count: int) -> list[Segment]:
    """Makes segments of one record each: the parts of one file, as an active file is nothing but its records."""
    segments = [Segment(folder / f"{number:05}.active") for number in range(count)]
    whole = folder.parent / "whole.active"
    with seglake.create(whole, format="active") as writer:
        for segment in segments:
            writer.write(type="t", value=f"{segment.name}-0".encode())
    content = whole.read_bytes()
    bounds = [*(record.position for record in seglake.open(whole)), len(content)]
    for segment, (start, end) in zip(segments, itertools.pairwise(bounds), strict=True):
        segment.path.write_bytes(content[start:end])
        segment.number = 1
    return segments


def test_two_thousand_files_that_come_late_move_are_cut_and_replaced(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count, chosen, clock = 2_000, random.Random(1), Clock(monkeypatch)
    segments = parted(folder, count)
    for segment in segments:
        clock.stamp(segment.path)
    clock.seconds += 3600
    query = stream(folder)
    assert query.plan()  # reading is like reading a few
    for step in range(4):
        # Minutes forward, and back before the files were written.
        clock.seconds += chosen.choice([300, -600])
        rows: list[str] = []
        some = chosen.sample(segments, 50)
        for segment in some[:10]:  # grown
            rows += segment.grow(1)
            clock.stamp(segment.path)
        for segment in some[10:20]:  # renamed
            segment.path = segment.path.rename(folder / f"moved-{step}-{segment.name}.active")
        for segment in some[20:30]:  # renamed and grown
            segment.path = segment.path.rename(folder / f"moved-{step}-{segment.name}.active")
            rows += segment.grow(1)
            clock.stamp(segment.path)
        for segment in some[30:40]:  # replaced by another of the same layout
            segment.path.unlink()
            name = "r" + segment.name[1:]
            rows += Segment(segment.path, name).grow(segment.number)
            clock.stamp(segment.path)
            segments.remove(segment)
        for segment in some[40:]:  # cut
            os.truncate(segment.path, 30)
            clock.stamp(segment.path)
            segments.remove(segment)
        for number in range(10):  # late, and older than all others
            segments.append(Segment(folder / f"late-{step}-{number}.active"))
            rows += segments[-1].grow(2)
            os.utime(segments[-1].path, (1_600_000_000,) * 2)
        if step % 2:
            query.restart()
        assert sorted(query.batch()) == sorted(rows)
        assert query.batch() == []


def test_complete_files_are_read_by_their_sidecars(folder: Path) -> None:
    path = folder / "a.sealed"
    values = [f"value {number}" for number in range(20)]
    with seglake.create(path, format="sealed", options={"trailer": False}) as writer:
        for value in values:
            writer.write(type="t", value=value.encode())
    seglake.protect(path)
    content = path.read_bytes()
    at = content.index(b"value 7")
    path.write_bytes(content[:at] + b"X" + content[at + 1 :])
    expected = {
        "none": [value if value != "value 7" else "Xalue 7" for value in values],
        "auto": [value for value in values if value != "value 7"],
    }
    for parity, found in expected.items():
        states = str(folder.parent / f"states-{parity}")
        assert (
            stream(folder, segmentFormat="sealed", sidecar=parity, stateLocation=states, mode="DROPMALFORMED").batch()
            == found
        )
    states = str(folder.parent / "states-repair")
    query = stream(folder, segmentFormat="sealed", repair="true", stateLocation=states, mode="DROPMALFORMED")
    assert query.batch() == values
    assert query.batch() == []


def test_offsets_say_what_was_read_and_what_waits(folder: Path) -> None:
    segments = [Segment(folder / f"{name}.active") for name in "abc"]
    for segment in segments:
        segment.grow(2)
    os.utime(segments[0].path, (2_000_000_000,) * 2)
    sizes = [segment.path.stat().st_size for segment in segments]
    query = stream(folder, maxFilesPerTrigger="2")
    assert query.reader.reportLatestOffset() is None
    assert query.plan()
    offset = query.start()
    assert offset == query.reader.reportLatestOffset()
    shown = {name: offset[name] for name in ("files", "bytes", "backlogFiles", "backlogBytes", "newestFile")}
    newest = str(segments[0].path.resolve())
    assert shown == {
        "files": 2,
        "bytes": sum(sizes[:2]),
        "backlogFiles": 1,
        "backlogBytes": sizes[2],
        "newestFile": newest,
    }
    assert query.plan()
    offset = query.start()
    assert (offset["files"], offset["bytes"], offset["backlogFiles"]) == (3, sum(sizes), 0)


def test_a_sealed_copy_of_a_file_that_goes_on_moves_nothing(folder: Path) -> None:
    a = Segment(folder / "a.active")
    query = stream(folder)
    rows = a.grow(3)
    older = a.path.read_bytes()
    assert query.batch() == rows
    seglake.seal(a.path, folder / "z.sealed")
    assert query.batch() == []
    rows = a.grow(2)
    assert query.batch() == rows
    (folder / "z.sealed").unlink()
    (folder.parent / "older.active").write_bytes(older)
    seglake.seal(folder.parent / "older.active", folder / "b.sealed")  # of a backup
    assert query.batch() == []
    rows = a.grow(1)
    assert query.batch() == rows
    a.path.unlink()
    query.restart()
    assert query.batch() == []


def test_a_renamed_file_and_a_copy_with_more_come_once(folder: Path) -> None:
    a = Segment(folder / "a.active")
    a.grow(3)
    query = stream(folder)
    query.batch()
    a.path = a.path.rename(folder / "b.active")
    more = Segment(folder / "c.active", "a")
    more.number = a.number
    more.path.write_bytes(a.path.read_bytes())
    rows = more.grow(2)
    assert query.batch() == rows
    query.restart()
    assert query.batch() == []


def test_a_file_that_is_rotated_after_the_listing_loses_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a = Segment(folder / "a.active")
    rows = a.grow(3)
    os.utime(a.path, (1_600_000_000,) * 2)
    find, is_first = find_files, [True]

    def rotated(*given: Any) -> Any:
        listing = find(*given)
        if is_first.pop() if is_first else False:
            a.path = a.path.rename(folder / "a.1.active")
            rows.extend(Segment(folder / "a.active", "b").grow(2))
        return listing

    monkeypatch.setattr("seglake.spark.stream.folder.find_files", rotated)
    query = stream(folder)
    is_first[:] = [True]
    query.batch()
    query.batch()
    assert sorted(query.rows) == sorted(rows)


@pytest.mark.parametrize("format", ["oplog", "tfrecord"])
def test_another_file_that_ends_alike_is_another(folder: Path, format: str) -> None:
    def write(values: list[bytes]) -> None:
        fields: dict[str, Any] = {"version": 1, "clock": [], "batch": 0, "checkpointer": 1, "abi": 0}
        with seglake.create(folder / "new", format=format) as writer:
            for value in values:
                writer.write(value=value, **(fields if format == "oplog" else {}))
        (folder / "new").rename(folder / "a")

    write([b"x1", b"same"])
    query = stream(folder, segmentFormat=format)
    assert query.batch() == ["x1", "same"]
    write([b"y1", b"same", b"z1"])
    assert query.batch() == ["y1", "same", "z1"]
    assert query.batch() == []
