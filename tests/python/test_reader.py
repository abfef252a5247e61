"""Reading: bounds, columns, look-ups, warnings, errors, pickling, closing, and other libraries."""

import io
import operator
import os
import pickle
import signal
import sys
import threading
import uuid
import warnings
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa
import pytest

import seglake

START = datetime(2024, 2, 29, 12, tzinfo=UTC)


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    """Ten records, one a second, of types a and b in turn."""
    path = tmp_path / "ten.active"
    with seglake.create(path, format="active") as writer:
        for second in range(10):
            time = START + timedelta(seconds=second)
            writer.write(uuid=seglake.uuid6(time), type="ab"[second % 2], value=f"{second}")
    return path


@pytest.fixture
def damaged(segment: Path) -> Path:
    """The same with a bit flipped in the body of the fourth record."""
    data = bytearray(segment.read_bytes())
    data[[record.position for record in seglake.open(segment)][3] + 22] ^= 1
    segment.write_bytes(data)
    return segment


def values(reader: seglake.Reader) -> list[int]:
    return [int(record.value) for record in reader]


def filtered(segment: Path, *filters: Any, prune: bool = False) -> list[int]:
    return values(seglake.open(segment, filters=filters and [*filters], prune=prune))


def test_bounds_are_half_open(segment: Path) -> None:
    since, until = START + timedelta(seconds=2), START + timedelta(seconds=5)
    both: list[Any] = [("timestamp", ">=", since), ("timestamp", "<", until)]
    assert filtered(segment, *both) == [2, 3, 4]
    uuids = [record.uuid for record in seglake.open(segment)]
    assert filtered(segment, ("uuid", ">=", uuids[2]), ("uuid", "<", uuids[5])) == [2, 3, 4]
    assert filtered(segment, ("timestamp", "<", START)) == []
    assert filtered(segment, ("timestamp", ">=", datetime(9999, 12, 31, tzinfo=UTC))) == []
    assert filtered(segment, ("timestamp", "<", datetime(9999, 12, 31, tzinfo=UTC))) == list(range(10))
    assert filtered(segment, ("timestamp", ">=", datetime(1, 1, 1, tzinfo=UTC))) == list(range(10))
    table = pa.table(seglake.open(segment, filters=both, columns=["value"]))
    assert table["value"].to_pylist() == [b"2", b"3", b"4"]


@pytest.mark.parametrize("prune", [False, True])
def test_filters_compare_as_python_does(segment: Path, prune: bool) -> None:
    records = list(seglake.open(segment))
    compare: dict[str, Callable[[Any, Any], bool]] = {
        "==": operator.eq,
        "=": operator.eq,
        "!=": operator.ne,
        "<": operator.lt,
        "<=": operator.le,
        ">": operator.gt,
        ">=": operator.ge,
    }
    for name, function in compare.items():
        for record in records[::3]:
            for column in ("uuid", "timestamp", "type", "value"):
                bound = getattr(record, column)
                expected = [int(own.value) for own in records if function(getattr(own, column), bound)]
                assert filtered(segment, (column, name, bound), prune=prune) == expected, (column, name)
    some = [record.timestamp for record in records[2:5]]
    assert filtered(segment, ("timestamp", "in", some), prune=prune) == [2, 3, 4]
    assert filtered(segment, ("timestamp", "not in", some), prune=prune) == [0, 1, 5, 6, 7, 8, 9]
    assert filtered(segment, ("timestamp", "in", []), prune=prune) == []
    assert filtered(segment, ("timestamp", "==", records[7].timestamp_us), prune=prune) == [7]


def test_bounds_that_cannot_be_meant(segment: Path) -> None:
    wrong: list[tuple[Any, type[Exception], str]] = [
        (("timestamp", ">=", START.replace(tzinfo=None)), ValueError, "time zone"),
        (("uuid", "<", uuid.uuid4()), ValueError, "another version than 6"),
        (("timestamp", ">=", "2024"), ValueError, "'2024': expected a time such as"),
        (("timestamp", ">=", 1.5), TypeError, "timestamp must be an aware datetime"),
        (("timestamp", ">=", None), ValueError, 'with None, which equals nothing: the operators are "is null"'),
        (("timestamp", "~", START), ValueError, 'operator "~": there are =='),
        (("type", "in", "abc"), TypeError, "a list of values"),
        (("offset", "==", 5), ValueError, "cannot filter active records by offset"),
        (("type", "=="), TypeError, "filters takes conditions"),
        ("type", ValueError, "expected COLUMN OP VALUE"),
    ]
    for condition, error, text in wrong:
        with pytest.raises(error, match=text):
            seglake.open(segment, filters=[condition])


def test_columns(segment: Path) -> None:
    reader = seglake.open(segment, columns=["path", "type"])
    assert reader.schema.names == ["path", "type"]
    assert pa.table(reader).to_pylist()[:2] == [
        {"path": str(segment), "type": "a"},
        {"path": str(segment), "type": "b"},
    ]
    assert sum(pa.record_batch(batch).num_rows for batch in seglake.open(segment, columns=[]).batches()) == 10
    with pytest.raises(ValueError, match="valeu"):
        seglake.open(segment, columns=["valeu"])
    with pytest.raises(ValueError, match="twice"):
        seglake.open(segment, columns=["value", "value"])
    for kind, first in {"uuid": pa.binary(16), "binary": pa.binary(), "string": pa.string()}.items():
        table = pa.table(seglake.open(segment, columns=["uuid"], uuid_type=kind))  # pyright: ignore[reportArgumentType]
        assert table.schema.field("uuid").type == first
    assert table["uuid"][0].as_py() == str(next(iter(seglake.open(segment))).uuid)


def test_batches_are_bounded(segment: Path) -> None:
    assert [batch.num_rows for batch in seglake.open(segment).batches(4)] == [4, 4, 2]
    assert [batch.value_bytes for batch in seglake.open(segment, options={"batch_bytes": 3}).batches()] == [3, 3, 3, 1]
    with pytest.raises(ValueError, match="batch_size"):
        seglake.open(segment).batches(batch_size=0)


def test_batches_made_ahead_are_the_same(damaged: Path) -> None:
    def read(reader: seglake.Reader, ahead: bool) -> tuple[list[Any], int]:
        batches = reader.batches(3, warn=False, ahead=ahead)
        found = [(pa.record_batch(batch).to_pylist(), batch.damage) for batch in batches]
        return found, batches.report.records

    with seglake.open(damaged, on_damage="skip") as reader:
        again = pickle.loads(pickle.dumps(reader))
        assert read(reader, ahead=True) == read(reader, ahead=False) == read(again, ahead=True)
    with seglake.open(io.BytesIO(damaged.read_bytes()), on_damage="skip") as reader:
        batches = reader.batches(1, ahead=True)
        assert next(batches).num_rows == 1
        del batches  # while the thread reads from a Python object
        assert read(reader, ahead=True) == read(reader, ahead=False)
    with seglake.open(damaged) as reader:
        batches = reader.batches(3, ahead=True)
        with pytest.raises(seglake.DamageError):
            list(batches)
        assert list(batches) == []


def test_unsigned_numbers_as_other_types(tmp_path: Path) -> None:
    path = tmp_path / "a.oplog"
    with seglake.create(path, format="oplog") as writer:
        for length in (1, (1 << 63) - 1, 1 << 63):
            clock = [{"key": bytes(32), "length": length}]
            writer.write(version=1, checkpointer=1, clock=clock, abi=0, batch=1, value=b"v")
    with seglake.open(path) as reader:
        for kind, length in (("uint64", pa.uint64()), ("decimal", pa.decimal128(20, 0))):
            (batch,) = reader.batches(uint64_type=kind)  # pyright: ignore[reportArgumentType]
            table = pa.Table.from_batches([pa.record_batch(batch)])
            assert table.schema.field("clock").type.value_type.field("length").type == length
            assert table.schema.field("batch").type == length
            assert [clock[0]["length"] for clock in table["clock"].to_pylist()] == [1, (1 << 63) - 1, 1 << 63]
        with pytest.raises(
            seglake.exceptions.LimitError,
            match=r"a\.oplog: seq 2, field clock\.length: 9223372036854775808 is above 2\^63-1",
        ) as error:
            list(reader.batches(uint64_type="int64"))
        assert error.value.option == "uint64_type"
        with pytest.raises(ValueError, match="uint64_type is"):
            reader.batches(uint64_type="bigint")  # pyright: ignore[reportArgumentType]


def test_record(segment: Path) -> None:
    record = next(iter(seglake.open(segment)))
    assert record.timestamp == START
    assert record.timestamp_us == int(START.timestamp()) * 1_000_000
    assert isinstance(record.uuid, uuid.UUID)
    assert record.uuid.version == 6
    names = {"uuid", "timestamp", "timestamp_us", "type", "type_bytes", "value", "position"}
    assert set(record.to_dict()) == names
    assert all(record.to_dict()[name] == getattr(record, name) for name in names)
    assert "1 bytes" in repr(record)


def test_get(damaged: Path) -> None:
    with pytest.warns(seglake.exceptions.DamageWarning):
        uuids = [record.uuid for record in seglake.open(damaged, on_damage="skip")]
    strict, lenient = seglake.open(damaged), seglake.open(damaged, on_damage="skip")
    first = strict.get(uuids[0])
    assert first is not None
    assert first.value == b"0"
    last = lenient.get(uuids[-1])
    assert last is not None
    assert last.value == b"9"
    with pytest.raises(seglake.DamageError):
        strict.get(uuids[-1])
    with pytest.warns(seglake.exceptions.DamageWarning, match="a record that was not found may be where"):
        assert lenient.get(seglake.uuid6()) is None
    assert lenient.get(uuid.uuid4()) is None
    for same in (str(uuids[0]), uuids[0].hex, uuids[0].bytes):
        assert strict.get(same) == first
    for other in ("no UUID", str(uuids[0])[:-1], uuids[0].bytes[:-1]):
        with pytest.raises(ValueError, match="expected a UUID's text or its 16 bytes"):
            strict.get(other)
    with pytest.raises(TypeError, match=r"a uuid\.UUID, not int"):
        strict.get(5)


def test_skipping_warns_once_for_each_reader(damaged: Path) -> None:
    reader = seglake.open(damaged, on_damage="skip")
    with pytest.warns(seglake.exceptions.DamageWarning, match="checksum_mismatch at offset") as caught:
        assert values(reader) == [0, 1, 2, 4, 5, 6, 7, 8, 9]
        pa.table(reader)
        list(reader.batches())
    assert len(caught) == 1
    assert reader.report.damage == [span for span in reader.ledger() if span.cause]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(seglake.exceptions.DamageWarning):
            values(seglake.open(damaged, on_damage="skip"))
        with pytest.raises(pa.ArrowInvalid, match="damage is skipped"):
            pa.table(seglake.open(damaged, on_damage="skip"))


def test_strict_reading_gives_what_is_before_the_damage(damaged: Path) -> None:
    iterator = iter(seglake.open(damaged))
    assert [next(iterator).value for _ in range(3)] == [b"0", b"1", b"2"]
    with pytest.raises(seglake.DamageError):
        next(iterator)
    batches = seglake.open(damaged).batches()
    assert next(batches).num_rows == 3
    with pytest.raises(seglake.DamageError):
        next(batches)


def test_damage_in_batches(damaged: Path) -> None:
    batches = seglake.open(damaged, on_damage="skip").batches()
    with pytest.warns(seglake.exceptions.DamageWarning):
        spans = [span for batch in batches for span in batch.damage]
    assert spans == batches.report.damage == seglake.verify(damaged).damage
    assert batches.report.records == 9
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        batches = seglake.open(damaged, on_damage="skip").batches(warn=False)
        assert [span for batch in batches for span in batch.damage] == spans


def test_report_grows_with_the_reading(segment: Path) -> None:
    reader = seglake.open(segment)
    assert (reader.report.records, reader.report.nbytes) == (0, 0)
    values(reader)
    assert (reader.report.records, reader.report.nbytes) == (10, segment.stat().st_size)


def test_a_report_names_the_first_damaged_ranges_and_counts_all(tmp_path: Path) -> None:
    path = tmp_path / "many.active"
    positions: list[int] = []
    with seglake.create(path, format="active") as writer:
        for _ in range(20_002):
            positions.append(writer.position)
            writer.write(type="t", value="v")
    data = bytearray(path.read_bytes())
    for position in positions[::2]:
        data[position + 22] ^= 1
    path.write_bytes(data)
    report = seglake.verify(path)
    assert (len(report.damage), report.damage_truncated, report.records) == (10_000, True, 10_001)
    assert sum(total.ranges for total in report.totals if total.cause) == 10_001
    assert "damaged ranges=10001" in repr(report)


def test_reading_from_a_position(segment: Path) -> None:
    reader = seglake.open(segment)
    position = list(reader)[6].position
    assert [int(record.value) for record in reader.records_from(position)] == [6, 7, 8, 9]
    with pytest.raises(seglake.DamageError) as raised:
        list(reader.records_from(position + 1))
    assert raised.value.byte_offset == position + 1
    with pytest.raises(ValueError, match="offset"):
        reader.records_from(10**6)


def test_read_bytes(segment: Path) -> None:
    reader = seglake.open(segment)
    assert reader.read_bytes(3, 50) == segment.read_bytes()[3:50]
    for start, end in [(5, 4), (0, 10**6)]:
        with pytest.raises(ValueError, match="range"):
            reader.read_bytes(start, end)


def test_other_libraries_take_a_reader_more_than_once(segment: Path) -> None:
    duckdb, pl = pytest.importorskip("duckdb"), pytest.importorskip("polars")
    reader = seglake.open(segment)
    for _ in range(2):
        assert pa.table(reader).num_rows == 10
        assert pl.DataFrame(reader).height == 10
        assert duckdb.sql("SELECT count(*), sum(value::VARCHAR::INT) FROM reader").fetchall() == [(10, 45)]
        assert pa.schema(reader.schema).names == ["uuid", "timestamp", "type", "value"]


def test_pickling_opens_the_file_again(segment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = seglake.open(segment, filters=[("timestamp", ">=", START + timedelta(seconds=8))], columns=["value"])
    again = pickle.loads(pickle.dumps(reader))
    assert (values(again), again.schema.names) == ([8, 9], ["value"])
    conditions = [("timestamp", "<", START + timedelta(seconds=2))]
    by_iterator = seglake.open(segment, filters=iter(conditions))  # pyright: ignore[reportArgumentType]
    changed = seglake.open(segment, filters=conditions)
    conditions.clear()
    for reader in (by_iterator, changed):
        assert values(reader) == values(pickle.loads(pickle.dumps(reader))) == [0, 1]
    key = tmp_path / "key"
    key.write_bytes(bytes(32))
    assert values(pickle.loads(pickle.dumps(seglake.open(segment, key=key)))) == list(range(10))
    monkeypatch.setenv("SEGLAKE_KEY", "00" * 32)
    assert b"00" * 32 not in pickle.dumps(seglake.open(segment))
    for refused in (seglake.open(segment, key=bytes(32)), seglake.open(segment, key=[bytes(32)])):
        with pytest.raises(TypeError, match="key"):
            pickle.dumps(refused)
    with pytest.raises(TypeError, match="path"):
        pickle.dumps(seglake.open(segment.read_bytes()))


def test_errors_pickle(damaged: Path) -> None:
    with pytest.raises(seglake.DamageError) as raised:
        list(seglake.open(damaged))
    again = pickle.loads(pickle.dumps(raised.value))
    assert type(again) is seglake.DamageError
    assert (vars(again), str(again)) == (vars(raised.value), str(raised.value))
    limit = seglake.exceptions.LimitError("too much", option="record_bytes", path="a", next="raise it")
    limit.add_note("a note")
    again = pickle.loads(pickle.dumps(limit))
    assert (vars(again), str(again)) == (vars(limit), "a: too much: raise it")


def test_errors_have_fields(segment: Path, damaged: Path, tmp_path: Path) -> None:
    with pytest.raises(seglake.DamageError) as damage:
        list(seglake.open(damaged))
    found = damage.value
    assert found.path == str(damaged)
    assert found.reason == (
        f"{found.cause} at offset {found.byte_offset}: expected {found.expected}, found {found.actual}"
    )
    assert str(found) == f"{damaged}: {found.reason}. {found.next}"
    with pytest.raises(seglake.FormatError) as unknown:
        seglake.open(b"what is this?")
    assert (unknown.value.path, unknown.value.next) == (
        None,
        "name it with `format`, or by the file's extension, if you know it. seglake reads only these formats; any "
        "other file can be protected with the format `raw`",
    )
    assert str(unknown.value) == f"{unknown.value.reason}: {unknown.value.next}"
    with pytest.raises(seglake.exceptions.LimitError) as limit:
        list(seglake.open(segment, options={"record_bytes": 10}))
    assert (limit.value.path, limit.value.option) == (str(segment), "record_bytes")
    with pytest.raises(seglake.exceptions.ColumnsError) as columns:
        seglake.convert(segment, tmp_path / "new.chunks")
    assert (columns.value.lost, columns.value.missing, columns.value.path) == (["uuid", "type"], [], None)


def test_options_are_dicts(tmp_path: Path) -> None:
    given: Any = ["record_bytes"]
    for call in (seglake.open, seglake.verify):
        with pytest.raises(TypeError, match="options must be a dict, not list"):
            call(b"", options=given)
    with pytest.raises(TypeError, match="options must be a dict, not list"):
        seglake.create(tmp_path / "new", format="sealed", options=given)


def test_columns_that_a_record_does_not_have(segment: Path) -> None:
    record = next(iter(seglake.open(segment)))
    for name in ("partition", "tenant_bytes", "offset_us", "value_bytes", "nonsense"):
        expected = f"^active records have no {name}: they have uuid, timestamp, type, value, position and cause$"
        with pytest.raises(AttributeError, match=expected):
            getattr(record, name)


def test_every_column_is_an_attribute_with_a_docstring() -> None:
    dialects: list[Any] = ["draft", "draft-1.1", "autobase"]
    for format in (own for dialect in dialects for own in seglake.formats(options={"dialect": dialect})):
        for column in format.columns:
            derived = {"timestamp": ["timestamp_us"], "text": [f"{column.name}_bytes"]}.get(column.kind, [])
            for name in (column.name, *derived):
                assert vars(seglake.Record)[name].__doc__, name


def test_what_is_shown(segment: Path, vectors: Path, tmp_path: Path) -> None:
    about = f'"{segment}", format="active"'
    nbytes = segment.stat().st_size
    with seglake.open(segment) as reader:
        for thing in (reader, iter(reader), reader.batches(), reader.ledger()):
            assert repr(thing) == f"{type(thing).__name__}({about}, nbytes={nbytes})"
    assert repr(reader) == f"Reader({about}, nbytes={nbytes}, closed)"
    assert repr(seglake.verify(segment)) == f"Report({about}, nbytes={nbytes}, records=10, damaged ranges=0, ok)"
    assert repr(seglake.verify(vectors / "active" / "flip_message.bin")).endswith("damaged ranges=1, damaged)")
    assert repr(seglake.open(segment.read_bytes())) == f'Reader(<buffer>, format="active", nbytes={nbytes})'
    with seglake.create(tmp_path / "new.active", format="active") as writer:
        assert repr(writer) == f'Writer("{tmp_path / "new.active"}", format="active")'
    assert repr(writer).endswith(", closed)")
    assert repr(next(iter(seglake.open(segment)))).startswith('Record(format="active", uuid=UUID(')


def test_limits(segment: Path) -> None:
    with pytest.raises(seglake.exceptions.LimitError, match="record_bytes") as raised:
        list(seglake.open(segment, options={"record_bytes": 10}))
    assert raised.value.option == "record_bytes"
    assert seglake.verify(segment).ok
    assert pa.table(seglake.open(segment, options={"record_bytes": 10}, columns=["uuid"])).num_rows == 10


def test_closing(segment: Path) -> None:
    with seglake.open(segment) as reader:
        iterator, batches, ledger = iter(reader), reader.batches(), reader.ledger()
        next(iterator)
    assert reader.closed
    for use in (
        lambda: next(iterator),
        lambda: next(batches),
        lambda: next(ledger),
        lambda: iter(reader),
        reader.batches,
    ):
        with pytest.raises(ValueError, match="closed"):
            use()


def test_sources_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as raised:
        seglake.open(tmp_path / "absent.active")
    assert raised.value.filename == str(tmp_path / "absent.active")
    with pytest.raises(IsADirectoryError):
        seglake.open(tmp_path)
    with pytest.raises(TypeError, match="int"):
        seglake.open(5)  # pyright: ignore[reportArgumentType]
    with pytest.raises(OSError, match="binary mode"):
        seglake.open(io.StringIO("text" * 20))  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="memory_map"):
        seglake.open(b"", memory_map=True)
    with pytest.raises(seglake.FormatError, match="`format`"):
        seglake.open(b"neither this nor that, by its content")
    with pytest.raises(ValueError, match='no format "other"'):
        seglake.open(b"", format="other")  # pyright: ignore[reportArgumentType]


@pytest.mark.skipif(sys.platform == "win32", reason="there are no named pipes in the file system")
def test_a_pipe_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file"):
        seglake.open(tmp_path / "pipe")


def test_a_file_that_shrinks_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "shrinking.active"
    with seglake.create(path, format="active") as writer:
        for _ in range(100):
            writer.write(type="t", value=bytes(100_000))
    reader = iter(seglake.open(path))
    next(reader)
    os.truncate(path, 1000)
    with pytest.raises(OSError, match="shrank"):
        list(reader)


@pytest.mark.skipif(sys.platform != "linux", reason="file names are Unicode there")
def test_paths_that_are_not_unicode(segment: Path) -> None:
    path = os.fsdecode(os.fsencode(segment) + b"\xff.active")
    segment.rename(path)
    reader = seglake.open(path, columns=["path"])
    assert reader.path == seglake.verify(path).path == path
    assert pa.table(reader)["path"][0].as_py() == os.fsdecode(os.fsencode(segment)) + r"\xff.active"
    os.truncate(path, 5)
    with pytest.raises(seglake.DamageError) as raised:
        list(seglake.open(path))
    assert raised.value.path == path
    Path(path).unlink()
    with pytest.raises(FileNotFoundError) as missing:
        seglake.open(path)
    assert (missing.value.filename, missing.value.strerror) == (path, "cannot open: No such file or directory")


def test_detect(segment: Path, tmp_path: Path) -> None:
    assert (seglake.detect(segment).format, seglake.detect(segment).confidence) == ("active", "certain")
    assert seglake.detect(segment, key=bytes([1] * 32)).confidence == "likely"
    unknown = seglake.detect(b"neither this nor that, by its content")
    assert (unknown.format, unknown.confidence) == (None, "unknown")
    assert repr(unknown).startswith("Detection(format=None, ")
    assert repr(seglake.detect(segment)).startswith('Detection(format="active", ')
    empty = tmp_path / "empty.active"
    empty.touch()
    assert (seglake.detect(empty).format, seglake.detect(empty).confidence) == ("active", "likely")


def test_progress(tmp_path: Path, segment: Path) -> None:
    told: list[tuple[int, int]] = []
    seglake.verify(segment, progress=lambda done, total: told.append((done, total)))
    size = segment.stat().st_size
    assert told[-1] == (size, size)

    def stop(done: int, total: int) -> None:
        raise RuntimeError(f"stop at {done} of {total}")

    with pytest.raises(RuntimeError, match="stop at"):
        seglake.verify(segment, progress=stop)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there is no timer signal")
def test_signals_stop_long_calls(tmp_path: Path) -> None:
    path = tmp_path / "zeros.active"
    path.touch()
    os.truncate(path, 1 << 38)  # sparse: hours of zeros, no disk

    class Stopped(Exception):
        pass

    def stop(number: int, frame: FrameType | None) -> None:
        raise Stopped

    before = signal.signal(signal.SIGALRM, stop)
    try:
        for call in (
            lambda: seglake.verify(path),
            lambda: list(seglake.open(path)),
            lambda: next(seglake.open(path).batches()),
        ):
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            with pytest.raises(Stopped):
                call()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_threads_share_a_reader(damaged: Path) -> None:
    reader = seglake.open(damaged, on_damage="skip")
    shared = iter(reader)
    own: list[list[int]] = []
    together: list[int] = []

    def read() -> None:
        own.append(values(reader))
        together.extend(int(record.value) for record in shared)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        threads = [threading.Thread(target=read) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    expected = [0, 1, 2, 4, 5, 6, 7, 8, 9]
    assert own == [expected] * 8
    assert sorted(together) == expected


@pytest.mark.parametrize(
    "key",
    [bytes(31), [], [b""], [bytes(32), bytes(31)], "00" * 32, 5, [[bytes(32)]], [5]],
)
def test_keys_that_are_none(segment: Path, key: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="key"):
        seglake.open(segment, key=key)


def test_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = bytes(range(32))
    path, raw, text = tmp_path / "keyed.active", tmp_path / "raw", tmp_path / "text"
    raw.write_bytes(secret)
    text.write_text(secret.hex() + "\n")
    with seglake.create(path, format="active", key=text) as writer:
        for _ in range(3):
            writer.write(type="t", value="v")
    ways: list[Any] = [secret, bytearray(secret), raw, str(text), [bytes(32), secret], [bytes(32), text], (raw,)]
    for key in ways:
        assert seglake.verify(path, key=key).ok
    with pytest.raises(seglake.WrongKeyError, match="wrong key"):
        list(seglake.open(path))
    report = seglake.verify(path)
    assert report.wrong_key
    assert not report.ok
    with pytest.warns(seglake.exceptions.DamageWarning, match="wrong key"):
        assert list(seglake.open(path, on_damage="skip")) == []
    monkeypatch.setenv("SEGLAKE_KEY", secret.hex())
    assert seglake.verify(path).ok
    monkeypatch.setenv("SEGLAKE_KEY", "not a key, but secret")
    with pytest.raises(ValueError, match="SEGLAKE_KEY") as raised:
        seglake.verify(path)
    assert "secret" not in str(raised.value)
    text.write_text("not a key, but secret")
    with pytest.raises(ValueError, match="64 hexadecimal digits") as raised:
        seglake.verify(path, key=text)
    assert "secret" not in str(raised.value)
    with pytest.raises(FileNotFoundError):
        seglake.verify(path, key=tmp_path / "absent")


def test_tables(segment: Path) -> None:
    with seglake.open(segment, columns=["value", "position"]) as reader:
        assert reader.to_table().equals(pa.table(reader))
        assert reader.report.records == 10
        for rows in (0, 1, 3, 4, 10, 11, 1 << 40):
            assert reader.head(rows).equals(pa.table(reader).slice(0, rows)), rows
        assert reader.head().num_rows == 5
        with pytest.raises(ValueError, match="rows is -1: it is at least 0"):
            reader.head(-1)
        assert reader.count_rows() == 10
    assert repr(reader).endswith(", closed)")
    for use in (reader.to_table, reader.head, reader.count_rows):
        with pytest.raises(ValueError, match="closed"):
            use()
    late: list[Any] = [("timestamp", ">=", START + timedelta(seconds=8))]
    assert seglake.open(segment, filters=late, prune=True).count_rows() == 2


def test_tables_of_damaged_files(damaged: Path) -> None:
    with seglake.open(damaged) as reader:
        for use in (reader.to_table, reader.count_rows):
            with pytest.raises(seglake.DamageError):
                use()
    for name in ("to_table", "count_rows"):
        with pytest.warns(seglake.exceptions.DamageWarning), seglake.open(damaged, on_damage="skip") as reader:
            found = getattr(reader, name)()
            assert (found if name == "count_rows" else found.num_rows) == 9
            assert not reader.report.ok


def test_head_reads_little(tmp_path: Path) -> None:
    path = tmp_path / "large.active"
    with seglake.create(path, format="active") as writer:
        for _ in range(300):
            writer.write(type="t", value=bytes(100_000))
    content = bytearray(path.read_bytes())
    content[-100] ^= 1  # damage that is not met
    path.write_bytes(content)
    with seglake.open(path) as reader:
        assert reader.head(2).num_rows == 2
        assert reader.report.nbytes < len(content) // 5


def test_all_is_read_with_threads_and_interrupts(segment: Path, tmp_path: Path) -> None:
    """Reading runs Python's signal handlers, which takes the GIL."""
    path = tmp_path / "many.sealed"
    with seglake.create(path, format="sealed") as writer:
        for number in range(20_000):
            writer.write(type="t", value=b"%d" % number)
    one = seglake.open(path, columns=["value"]).to_table()
    assert one["value"].to_pylist() == [b"%d" % number for number in range(20_000)]
    with seglake.open(path, columns=["value"], threads=3, options={"batch_bytes": 2000}) as reader:
        assert reader.to_table().equals(one)
        assert reader.count_rows() == 20_000


def test_uuids_as_arrows_own_type(segment: Path) -> None:
    duckdb, pl = pytest.importorskip("duckdb"), pytest.importorskip("polars")
    ids = [record.uuid for record in seglake.open(segment)]
    reader = seglake.open(segment, uuid_type="arrow.uuid", columns=["uuid", "value"])
    assert pa.schema(reader.schema).field("uuid").type == pa.uuid()
    table = reader.to_table()
    assert table.schema == pa.schema(reader.schema)
    assert table["uuid"].to_pylist() == ids
    assert list(table.to_pandas()["uuid"]) == ids
    assert duckdb.sql("SELECT uuid FROM reader").fetchall() == [(each,) for each in ids]
    assert duckdb.sql("SELECT typeof(uuid) FROM reader LIMIT 1").fetchall() == [("UUID",)]
    assert pl.DataFrame(reader)["uuid"].to_list() == [each.bytes for each in ids]
    found = pa.record_batch(reader.get_many(pa.array([each.bytes for each in ids[:2]], pa.binary(16))))
    assert found["uuid"].to_pylist() == ids[:2]
    again = pickle.loads(pickle.dumps(reader))
    assert again.to_table().equals(table)
    with pytest.raises(ValueError, match=r'uuid_type is "uuid", .* not "fixed"'):
        seglake.open(segment, uuid_type="fixed")  # pyright: ignore[reportArgumentType]


def test_the_path_of_a_file_as_bytes_is_not_read_as_content(segment: Path) -> None:
    with pytest.raises(TypeError, match="these are the path of a file: give that as str"):
        seglake.open(os.fsencode(segment))


def test_what_was_looked_up_has_its_size(segment: Path) -> None:
    with seglake.open(segment) as reader:
        uuids = [record.uuid for record in reader]
        found = reader.get_many(pa.array([str(uuid) for uuid in uuids[:2]]))
        assert found.value_bytes == sum(len(reader.get(uuid).value) for uuid in uuids[:2])
        assert found.value_bytes > 0
