"""The durable log: written, read, followed and recovered from Python."""

from __future__ import annotations

import contextlib
import copy
import itertools
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

import seglake
from seglake import SegmentLog


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log"


def values(log: SegmentLog) -> list[bytes]:
    return [record.value for record in log]


@pytest.mark.parametrize("durability", ["fsync", "flush", "none"])
def test_what_is_written_is_read(path: Path, durability: str) -> None:
    with SegmentLog(path, durability=durability) as log:  # pyright: ignore[reportArgumentType]
        first = log.write("order.created", b"1")
        more = log.write_batch([("order.paid", b"2"), {"type": b"order.paid", "value": "3"}])
        log.sync()
        assert isinstance(first, UUID)
        assert [first, *more] == [record.uuid for record in log]
        assert [record.type for record in log] == ["order.created", "order.paid", "order.paid"]
        assert values(log) == [b"1", b"2", b"3"]
        found = log.get(more[0])
        assert found is not None
        assert found.value == b"2"
        assert log.get(seglake.uuid6()) is None
        assert [record.value for record in log.range([("type", "==", "order.paid"), ("uuid", ">", more[0])])] == [b"3"]
        assert log.synced is not None
        assert (log.synced.sequence, log.synced.last) == (1, more[1])
    assert log.closed
    with pytest.raises(ValueError, match="closed"):
        log.write("a", b"")
    with SegmentLog(path, readonly=True) as log:
        assert values(log) == [b"1", b"2", b"3"]
        assert "readonly=True" in repr(log)
        with pytest.raises(ValueError, match="readonly"):
            log.write("a", b"")


def test_times_and_uuids_are_taken_and_ascend(path: Path) -> None:
    with SegmentLog(path) as log:
        start = datetime(2024, 1, 1, tzinfo=UTC)
        first = log.write("a", b"", timestamp=start)
        assert next(iter(log)).timestamp == start
        second = log.write("a", b"", uuid=seglake.uuid6(start + timedelta(seconds=1)))
        assert second > first
        for given in ({"uuid": first}, {"timestamp": start}):
            with pytest.raises(ValueError, match="does not ascend"):
                log.write("a", b"", **given)  # pyright: ignore[reportArgumentType]
        with pytest.raises(ValueError, match="not that of the UUID"):
            log.write("a", b"", uuid=seglake.uuid6(), timestamp=start)
        with pytest.raises(ValueError, match="255"):
            log.write("a" * 256, b"")
        with pytest.raises(TypeError):
            log.write("a", 1)  # pyright: ignore[reportArgumentType]
        assert len(values(log)) == 2


def test_arrow_is_written_and_scanned(path: Path) -> None:
    table = pa.table({"type": ["a"] * 1000, "value": [f"{number}".encode() for number in range(1000)]})
    with SegmentLog(path, segment_bytes=10_000) as log:
        uuids = log.write_batch(table)
        assert len(uuids) == 1000
        assert uuids == sorted(uuids)
        log.wait_sealed()
        kinds = [segment.kind for segment in log.segments()]
        assert kinds == ["sealed"] * (len(kinds) - 1) + ["active"]
        assert len(kinds) > 3
        assert values(log) == table["value"].to_pylist()
        with pytest.raises(ValueError, match='no "other"'):
            log.write_batch(table.append_column("other", [["x"] * 1000]))
        with pytest.raises(ValueError, match="value is missing"):
            log.write_batch(table.select(["type"]))
    for segment in SegmentLog(path, readonly=True).segments():
        assert seglake.verify(segment.path).ok


def test_a_refused_row_of_a_batch_is_numbered_and_those_before_it_are_written(path: Path) -> None:
    good = {"type": "a", "value": b"1"}
    early = seglake.uuid6(datetime(2000, 1, 1, tzinfo=UTC))
    refused: list[tuple[dict[str, object], str]] = [
        ({"type": "a" * 256, "value": b""}, "255"),
        ({"type": "a", "value": b"", "uuid": early}, "does not ascend"),
        ({"type": "a"}, "value is missing"),
        ({"type": "a", "value": 1}, "int"),
        ({"type": "a", "value": b"", "other": 1}, 'no "other"'),
    ]
    with SegmentLog(path) as log:
        for number, (record, words) in enumerate(refused, 1):
            with pytest.raises(seglake.exceptions.RowError, match=words) as error:
                log.write_batch([good, good, record, good])
            assert error.value.row == 2
            assert len(values(log)) == 2 * number
        before = len(values(log))
        table = pa.table({"type": ["a"] * 30 + ["b" * 256], "value": [b""] * 31})
        with pytest.raises(seglake.exceptions.RowError) as error:
            log.write_batch(pa.Table.from_batches(table.to_batches(max_chunksize=20)))
        assert error.value.row == 30
        assert len(values(log)) == before + 30


@pytest.mark.parametrize("is_arrow", [False, True])
def test_the_first_records_of_a_batch_are_named_where_the_others_cannot_be_written(path: Path, is_arrow: bool) -> None:
    uuids = [seglake.uuid6() for _ in range(6)]
    # Each batch of Arrow is written by itself.
    batches = [
        pa.record_batch({"uuid": [uuid.bytes for uuid in uuids[at : at + 3]], "type": ["a"] * 3, "value": [b"1"] * 3})
        for at in (0, 3)
    ]
    rows = [{"uuid": uuid, "type": "a", "value": b"1"} for uuid in uuids]
    taken = path / f"{3:020}-{uuids[4]}.active"
    with contextlib.suppress(OSError), SegmentLog(path, segment_bytes=80) as log:  # two records
        taken.touch()
        with pytest.raises(
            seglake.exceptions.PartialWriteError, match=r"4 record\(s\) of the batch are in the log"
        ) as error:
            log.write_batch(pa.Table.from_batches(batches) if is_arrow else rows)
        assert error.value.written == uuids[:4]
        assert error.value.path == str(path)
        assert isinstance(error.value.__cause__, FileExistsError)
        assert pickle.loads(pickle.dumps(error.value)).written == uuids[:4]
        with pytest.raises(OSError, match="move it elsewhere"):
            log.write_batch(rows[4:])
    taken.unlink()
    with SegmentLog(path) as log:
        assert log.write_batch(rows[4:]) == uuids[4:]
        assert [record.uuid for record in log] == uuids


INTERRUPTED = """
import signal, sys
import seglake

with seglake.SegmentLog(sys.argv[1], seal=False, durability="none") as log:
    for _ in range(8):
        log.write("a", bytes(8 << 20))  # to seal it takes longer than the timer, on any disk
        log.roll()
log = seglake.SegmentLog(sys.argv[1])  # they are sealed now
signal.signal(signal.SIGALRM, signal.default_int_handler)
for wait in (log.wait_sealed, log.close, log.close):
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.01)  # within: it may ring before the next line is reached
        wait()
    except KeyboardInterrupt:
        print("interrupted", flush=True)
try:
    seglake.SegmentLog(sys.argv[1])
except OSError as error:
    print("has it open" in str(error), flush=True)
log.close()
with seglake.SegmentLog(sys.argv[1]) as log:
    print({segment.kind for segment in log.segments()}, sum(1 for _ in log), flush=True)
"""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no timers that send signals")
def test_waiting_for_sealing_can_be_interrupted_and_closing_goes_on(path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, path], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["interrupted"] * 3 + ["True", "{'sealed'} 8"]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(5, "of the source"), RuntimeError("of the source")])
def test_nothing_is_written_where_the_iterable_fails(path: Path, error: BaseException) -> None:
    """Who tries again would else write the first records twice."""

    def records() -> Iterator[tuple[str, bytes]]:
        yield "type", b"value"
        raise error

    with seglake.SegmentLog(path) as log:
        with pytest.raises(type(error)) as raised:
            log.write_batch(records())
        assert raised.value is error
        assert list(log) == []


def test_an_iterable_is_written_in_pieces(path: Path) -> None:
    """So that it need not be in memory. What was written of one that fails is told."""

    def records(written: list[int]) -> Iterator[tuple[str, bytes]]:
        for _ in range(50):
            yield "type", b"v" * (1 << 20)
            written.append(0 if log.synced is None else sum(1 for _ in log))
        raise OSError("of the source")

    with seglake.SegmentLog(path) as log:
        written: list[int] = []
        with pytest.raises(seglake.exceptions.PartialWriteError, match="of the source") as raised:
            log.write_batch(records(written))
        assert written[0] == 0
        assert 30 < written[-1] < 50
        assert raised.value.written == [record.uuid for record in log]
        assert isinstance(raised.value.__cause__, OSError)
        uuids = log.write_batch(itertools.repeat(("type", b"v" * (1 << 20)), 40))
        assert [record.uuid for record in log][-40:] == uuids


def test_a_refused_row_of_a_later_piece_has_its_number(path: Path) -> None:
    rows = [*itertools.repeat(("type", b"v" * (1 << 20)), 30), ("t" * 256, b"")]
    with seglake.SegmentLog(path) as log:
        with pytest.raises(seglake.exceptions.RowError) as raised:
            log.write_batch(iter(rows))
        assert raised.value.row == 30
        assert sum(1 for _ in log) == 30


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("segment_bytes", 100),
        ("segment_age", 1),
        ("durability", "fsync"),
        ("mark_interval", 1),
        ("retention", {}),
        ("seal", True),
        ("protect", "128+8"),
    ],
)
def test_options_of_a_writer_are_refused_of_a_reader(path: Path, option: str, value: Any) -> None:
    seglake.SegmentLog(path, **{option: value}).close()
    with pytest.raises(ValueError, match=f"readonly=True opens the log to read, where {option} would say nothing"):
        seglake.SegmentLog(path, readonly=True, **{option: value})


@pytest.mark.parametrize("number", [-1, 1 << 64, -(1 << 70)])
def test_quantities_that_cannot_be_are_refused(path: Path, number: int) -> None:
    how: list[dict[str, Any]] = [{"segment_bytes": number}, {"retention": {"bytes": number}}]
    for options in how:
        with pytest.raises(ValueError, match=rf"bytes is {number}: it is at (least [01]|most [0-9]+)"):
            seglake.SegmentLog(path, **options)
    with (
        seglake.SegmentLog(path) as log,
        pytest.raises(ValueError, match=f"bytes is {number}: it is at (least 0|most)"),
    ):
        log.retain(bytes=number)
    with pytest.raises(ValueError, match="segment_bytes is 0: it is at least 1"):
        seglake.SegmentLog(path, segment_bytes=0)


def test_a_stream_that_fails_says_what_is_written(path: Path) -> None:
    batch = pa.record_batch({"type": ["first", "second"], "value": [b"1", b"2"]})

    def batches() -> Iterator[pa.RecordBatch]:
        yield batch
        raise OSError("of the source")

    with seglake.SegmentLog(path) as log:
        with pytest.raises(seglake.exceptions.PartialWriteError, match="of the source") as raised:
            log.write_batch(pa.RecordBatchReader.from_batches(batch.schema, batches()))
        assert isinstance(raised.value.__cause__, ValueError)
        assert raised.value.written == [record.uuid for record in log]
        assert len(raised.value.written) == 2


def test_two_columns_of_one_name_are_refused(path: Path) -> None:
    columns = [pa.array(["type"]), pa.array([b"first"]), pa.array([b"second"])]
    table = pa.Table.from_arrays(columns, names=["type", "value", "value"])
    with seglake.SegmentLog(path) as log:
        with pytest.raises(ValueError, match="expected one column value, found two"):
            log.write_batch(table)
        assert list(log) == []


def test_a_log_stays_where_it_is_when_the_process_works_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative path is one of the moment when the log is opened."""
    monkeypatch.chdir(tmp_path)
    with seglake.SegmentLog("log", mark_interval=0) as log:
        log.write("type", b"before")
        tail = log.tail("start")
        (tmp_path / "log" / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "log" / "elsewhere")
        log.roll()
        log.write("type", b"after")
        log.wait_sealed()
        assert [record.value for record in log] == [b"before", b"after"]
        assert [record.value for record in iter(tail.poll, None)] == [b"before", b"after"]
    assert log.path == "log"


def test_one_writer(path: Path) -> None:
    with SegmentLog(path), pytest.raises(OSError, match=f"process {os.getpid()}"):
        SegmentLog(path)
    SegmentLog(path).close()
    with pytest.raises(FileNotFoundError):
        SegmentLog(path / "missing", readonly=True)
    with pytest.raises(TypeError, match="retention must be a dict, such as"):
        SegmentLog(path, retention=5)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="durability"):
        SegmentLog(path, durability="always")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="retention"):
        SegmentLog(path, retention={"count": 3})  # pyright: ignore[reportArgumentType]


def test_an_unclosed_log_warns_and_is_closed(path: Path) -> None:
    log = SegmentLog(path, durability="none")
    log.write("a", b"1")
    with pytest.warns(ResourceWarning, match="unclosed log"):
        del log
    assert values(SegmentLog(path, readonly=True)) == [b"1"]


def test_sealed_segments_are_protected(path: Path) -> None:
    with pytest.raises(ValueError, match=r"128\+9"):
        SegmentLog(path, protect="128+9")  # pyright: ignore[reportArgumentType]
    with SegmentLog(path, segment_bytes=100, protect="128+16") as log:
        for number in range(9):
            log.write("type", f"value {number}")
        log.wait_sealed()
        sealed = [segment.path for segment in log.segments() if segment.kind == "sealed"]
        assert len(sealed) > 1
        for name in sealed:
            protected = seglake.protect(name)
            assert (protected.change, protected.profile) == ("unchanged", "128+16")


def test_durations_as_text(path: Path) -> None:
    long_ago = datetime.now(UTC) - timedelta(days=30)
    with SegmentLog(path, segment_age="12h", max_clock_ahead="2d", retention={"age": "3w"}) as log:
        for hours in (0, 11, 13, 26, 24 * 30):
            log.write("type", b"", timestamp=long_ago + timedelta(hours=hours))
        log.wait_sealed()
        assert len(log.segments()) == 2
        assert len(list(log)) == 2
    for text in ("7", "1 month", "-1h", ""):
        with pytest.raises(ValueError, match=f"segment_age is '{text}': expected a duration such as 90s"):
            SegmentLog(path, segment_age=text)
        with pytest.raises(ValueError, match="retention age is"):
            SegmentLog(path, retention={"age": text})
    with pytest.raises(TypeError, match='segment_age must be seconds, a timedelta or text such as "7d", not list'):
        SegmentLog(path, segment_age=[])  # pyright: ignore[reportArgumentType]


def test_retention(path: Path) -> None:
    with SegmentLog(path, segment_bytes=100, retention={"bytes": 1000}) as log:
        log.write_batch([("a", bytes(50))] * 100)
        log.wait_sealed()
        sealed = [segment for segment in log.segments() if segment.kind == "sealed"]
        assert sum(Path(segment.path).stat().st_size for segment in sealed) <= 1000
        tail = log.tail("start")
        assert tail.poll() is not None
        assert log.retain(age="7d") == []
        removed = log.retain(age="0s")
        assert [segment.sequence for segment in removed] == [segment.sequence for segment in sealed]
        log.write("a", b"")
        with pytest.raises(seglake.exceptions.SegmentGoneError) as gone:
            while tail.poll() is not None:
                pass
        copy = pickle.loads(pickle.dumps(gone.value))
        assert (copy.sequence, copy.path, str(copy)) == (gone.value.sequence, os.fspath(path), str(gone.value))


def test_the_age_of_the_last_sealed_segment_ends_where_the_next_began(path: Path) -> None:
    """Not where the one that is being written is now, which a log that seldom rolls writes for long."""
    now = datetime.now(UTC)
    with seglake.SegmentLog(path, segment_bytes=200) as log:
        for days in (30, 20, 0):
            log.write("type", bytes(170 if days == 30 else 1), timestamp=now - timedelta(days=days))
        log.wait_sealed()
        assert len(log.segments()) == 2
        assert log.retain(age=timedelta(days=25)) == []
        assert len(log.retain(age=timedelta(days=10))) == 1


def test_a_wrong_key_changes_nothing(path: Path) -> None:
    with SegmentLog(path, key=bytes([1] * 32)) as log:
        log.write("a", b"1")
    with pytest.raises(seglake.WrongKeyError):
        SegmentLog(path, key=bytes([2] * 32))
    with SegmentLog(path, key=bytes([1] * 32)) as log:
        assert log.recovered == []
        assert values(log) == [b"1"]


def test_threads_share_syncs(path: Path) -> None:
    with SegmentLog(path) as log:

        def write(thread: int) -> None:
            for number in range(50):
                log.write("a", f"{thread} {number}")

        threads = [threading.Thread(target=write, args=(thread,)) for thread in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found = values(log)
    assert len(found) == 400
    for thread in range(8):
        own = [value for value in found if value.startswith(b"%d " % thread)]
        assert own == [b"%d %d" % (thread, number) for number in range(50)]


WRITER = """
import sys
import seglake
log = seglake.SegmentLog(sys.argv[1], segment_bytes=20_000, durability=sys.argv[2])
number = int(sys.argv[3])
while True:
    log.write("a", str(number))
    print(number, flush=True)
    number += 1
"""


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
@pytest.mark.parametrize("durability", ["fsync", "flush"])
def test_what_was_acknowledged_survives_kills_and_is_followed_once(path: Path, durability: str) -> None:
    SegmentLog(path).close()
    reader = SegmentLog(path, readonly=True)
    tail, followed, stop = reader.tail("start"), list[int](), threading.Event()

    def follow() -> None:
        while not stop.is_set():
            while (record := tail.poll(0.02)) is not None:
                followed.append(int(record.value))

    follower = threading.Thread(target=follow)
    follower.start()
    acknowledged = -1
    try:
        for round in range(12):
            command = [sys.executable, "-c", WRITER, os.fspath(path), durability, str(acknowledged + 1)]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
                assert writer.stdout is not None
                while int(writer.stdout.readline()) < acknowledged + 1 + 37 * round:
                    pass
                os.kill(writer.pid, signal.SIGKILL)
                lines = writer.stdout.read().splitlines()
            with SegmentLog(path) as log:
                found = [int(value) for value in values(log)]
            # Records that nobody was told of may be there, once; then the next writer begins after them.
            last = max([acknowledged, *(int(line) for line in lines if line)])
            assert found == sorted(set(found))
            assert found == list(range(len(found)))
            assert len(found) > last
            acknowledged = len(found) - 1
        deadline = time.monotonic() + 30
        while len(followed) <= acknowledged and time.monotonic() < deadline:
            time.sleep(0.01)
    finally:
        stop.set()
        follower.join()
    assert followed == list(range(acknowledged + 1))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_fork_writes_nothing(path: Path) -> None:
    with SegmentLog(path) as log:
        log.write("a", b"1")
        pid = os.fork()
        if pid == 0:
            try:
                log.write("a", b"2")
            except OSError as error:
                os._exit(0 if "fork" in str(error) else 2)
            except BaseException:
                os._exit(3)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        log.write("a", b"3")
        assert values(log) == [b"1", b"3"]


def test_a_tail_waits(path: Path) -> None:
    with SegmentLog(path) as log:
        tail = log.tail()
        assert tail.poll() is None
        began = time.monotonic()
        assert tail.poll(0.2) is None
        assert time.monotonic() - began > 0.1
        timer = threading.Timer(0.1, lambda: log.write("a", b"1"))
        timer.start()
        record = next(iter(tail))
        assert record.value == b"1"
        assert tail.last == record.uuid
        timer.join()
        timer = threading.Timer(0.1, lambda: log.write("a", b"2"))
        timer.start()
        waited = tail.poll(timeout=None)
        assert waited is not None
        assert waited.value == b"2"
        timer.join()
        assert [record.value for record in iter(log.tail(start="start").poll, None)] == [b"1", b"2"]
        assert log.tail(start=waited.uuid).poll() is None
        for wrong in (-1, float("nan"), float("inf")):
            with pytest.raises(ValueError, match="timeout"):
                tail.poll(wrong)
        with pytest.raises(ValueError, match="UUID"):
            log.tail("end")


def test_a_log_is_read_as_arrow(path: Path) -> None:
    with SegmentLog(path, segment_bytes=300) as log:
        assert pa.table(log).num_rows == 0
        uuids = [log.write(f"type.{number % 3}", f"value {number}") for number in range(20)]
        log.wait_sealed()
        assert {segment.kind for segment in log.segments()} == {"active", "sealed"}
        table = pa.table(log)
        assert table.schema == pa.schema(log)  # pyright: ignore[reportArgumentType]
        assert table.column_names == ["uuid", "timestamp", "type", "value"]
        assert table.column("value").to_pylist() == [f"value {number}".encode() for number in range(20)]
        assert table.column("uuid").to_pylist() == [uuid.bytes for uuid in uuids]

        batches = list(log.batches(columns=["type", "position"], filters=[("uuid", ">", uuids[4])], batch_size=4))
        assert all(batch.num_rows <= 4 for batch in batches)
        rows = pa.Table.from_batches([pa.record_batch(batch) for batch in batches])
        assert rows.column("type").to_pylist() == [f"type.{number % 3}" for number in range(5, 20)]
        assert rows.column("position").to_pylist() == [record.position for record in log][5:]
        [batch] = log.batches(columns=["uuid"], uuid_type="string", filters=[("type", "==", "type.0")])
        assert pa.record_batch(batch).column(0).to_pylist() == [str(uuid) for uuid in uuids[::3]]

        with pytest.raises(ValueError, match="batch_size"):
            log.batches(batch_size=0)
        with pytest.raises(ValueError, match='no column "offset"'):
            log.batches(columns=["offset"])
        stream = pa.RecordBatchReader.from_stream(log)
    with pytest.raises(ValueError, match="closed"):
        log.batches()
    # What was begun is read on, like records are.
    assert stream.read_all().num_rows == 20


def test_arrow_of_a_log_ends_with_the_damage(path: Path) -> None:
    with SegmentLog(path) as log:
        for number in range(3):
            log.write("type", f"value {number}")
    [segment] = path.glob("*.active")
    damaged = bytearray(segment.read_bytes())
    at = damaged.index(b"value 1")
    damaged[at] ^= 1
    segment.write_bytes(damaged)
    log = SegmentLog(path, readonly=True)
    batches = log.batches(columns=["value"])
    assert pa.record_batch(next(batches)).column(0).to_pylist() == [b"value 0"]
    with pytest.raises(seglake.DamageError, match="checksum"):
        next(batches)


def test_a_snapshot_is_a_log_of_its_own(path: Path, tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    with SegmentLog(path, segment_bytes=100) as log:
        for number in range(8):
            log.write("type", f"value {number}")
        log.snapshot(taken)
        log.write("type", b"later")
        with pytest.raises(FileExistsError):
            log.snapshot(taken)
    with pytest.raises(ValueError, match="closed"):
        log.snapshot(tmp_path / "other")
    with SegmentLog(taken) as log:
        assert log.recovered == []
        log.write("type", b"own")
        assert values(log) == [*(f"value {number}".encode() for number in range(8)), b"own"]
    assert values(SegmentLog(path, readonly=True))[-1] == b"later"
    assert sorted(tmp_path.iterdir()) == [path, taken]


def test_the_uuids_of_a_batch_are_a_sequence(path: Path) -> None:
    with SegmentLog(path, durability="none") as log:
        uuids = log.write_batch([("a", b"")] * 9)
        log.sync()
        expected = [record.uuid for record in log]
    assert isinstance(uuids, seglake.types.Uuids)
    assert isinstance(uuids, Sequence)
    assert len(uuids) == 9
    assert list(uuids) == [uuids[number] for number in range(9)] == expected
    assert [uuids[number] for number in range(-9, 0)] == expected
    for cut in (slice(2, 5), slice(None, None, -2), slice(-2, 99), slice(5, 2), slice(None, None, 10**18)):
        assert isinstance(uuids[cut], seglake.types.Uuids)
        assert list(uuids[cut]) == expected[cut]
    assert list(reversed(uuids)) == expected[::-1]
    assert uuids.index(expected[3]) == uuids.index(expected[3], -6, 4) == 3
    assert (uuids.count(expected[3]), uuids.count("other")) == (1, 0)
    assert expected[3] in uuids
    for missing in (seglake.uuid6(), str(expected[3]), None):
        assert missing not in uuids
        with pytest.raises(ValueError, match="not among"):
            uuids.index(missing)
    for bounds in ((4,), (0, 3), (0, -6)):
        with pytest.raises(ValueError, match="not among"):
            uuids.index(expected[3], *bounds)
    for beyond in (9, -10):
        with pytest.raises(IndexError):
            uuids[beyond]
    with pytest.raises(TypeError):
        uuids["1"]  # pyright: ignore[reportArgumentType, reportCallIssue]


def test_the_uuids_of_a_batch_compare_and_travel(path: Path) -> None:
    with SegmentLog(path, durability="none") as log:
        uuids = log.write_batch([("a", b"")] * 7)
    expected = list(uuids)
    assert uuids == expected
    assert expected == uuids
    assert uuids == uuids[:]
    for other in (expected[:-1], [*expected[:-1], expected[0]], tuple(expected), uuids[1:], uuids[:-1], None):
        assert uuids != other
        assert not uuids == other  # noqa: SIM201
    with pytest.raises(TypeError):
        hash(uuids)
    assert pickle.loads(pickle.dumps(uuids)) == uuids == copy.copy(uuids)
    assert seglake.types.Uuids.from_bytes(uuids.to_bytes()) == uuids
    with pytest.raises(ValueError, match="multiple of 16"):
        seglake.types.Uuids.from_bytes(bytes(17))
    array = pa.array(uuids)
    assert array.type == pa.uuid()
    assert array.to_pylist() == expected
    assert pa.array(uuids[:0]).to_pylist() == []
    shown = [repr(uuid) for uuid in expected]
    assert repr(uuids) == f"Uuids([{', '.join(shown[:3])}, ..., {', '.join(shown[-3:])}])"
    assert repr(uuids[:6]) == f"Uuids([{', '.join(shown[:6])}])"
    assert repr(uuids[:0]) == "Uuids([])"


def test_a_batch_of_nulls_needs_no_memory_for_its_rows(path: Path) -> None:
    nulls = pa.Array.from_buffers(pa.null(), 1 << 62, [None])
    with SegmentLog(path) as log:
        with pytest.raises(seglake.exceptions.RowError, match="type is missing") as error:
            log.write_batch(pa.record_batch([nulls, nulls], ["type", "value"]))
        assert error.value.row == 0


def test_rows_of_arrow_are_as_those_of_tuples(path: Path) -> None:
    types = ["a", "", "b\\x41", "\\x5c", "c" * 255]
    values = [b"1", b"", b"\\x41", bytes(300), b"5"]
    columns: list[tuple[pa.DataType, pa.DataType]] = [
        (pa.string(), pa.binary()),
        (pa.large_string(), pa.large_binary()),
        (pa.string_view(), pa.binary_view()),
        (pa.dictionary(pa.int32(), pa.string()), pa.binary()),
    ]
    with SegmentLog(path, durability="none") as log:
        log.write_batch(list(zip(types, values, strict=True)))
        for text, binary in columns[:3]:
            table = pa.table({"type": pa.array(types, text), "value": pa.array(values, binary)})
            assert len(log.write_batch(table.slice(0, 2))) == 2
            assert len(log.write_batch(table.slice(2))) == 3
        with pytest.raises(seglake.exceptions.RowError, match="cast it to") as error:
            log.write_batch(pa.table({"type": pa.array(types, columns[3][0]), "value": pa.array(values, pa.binary())}))
        assert error.value.row == 0
        with pytest.raises(seglake.exceptions.RowError, match="value is missing") as error:
            log.write_batch(pa.table({"type": ["a", "a"], "value": [b"1", None]}))
        assert error.value.row == 1
        log.sync()
        found = [(record.type_bytes, record.value) for record in log]
    assert [type_ for type_, _ in found[:5]] == [b"a", b"", b"bA", b"\\", b"c" * 255]
    assert found == found[:5] * 4 + [(b"a", b"1")]
