"""Files and logs are written by the same calls."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import seglake

TIME = datetime(2024, 1, 10, 16, tzinfo=UTC)
TARGETS = ["active", "sealed", "log"]


def opened(path: Path, target: str) -> Any:
    return seglake.SegmentLog(path / "log") if target == "log" else seglake.create(path / f"a.{target}")


def read(path: Path, target: str) -> list[Any]:
    source = seglake.SegmentLog(path / "log", readonly=True) if target == "log" else seglake.open(path / f"a.{target}")
    return list(source)


@pytest.mark.parametrize("target", TARGETS)
def test_type_and_value_come_first(tmp_path: Path, target: str) -> None:
    own = seglake.uuid6(TIME - timedelta(days=1))
    with opened(tmp_path, target) as writer:
        assert writer.write("first", b"1", uuid=own) == own
        for _ in range(2):
            writer.write("second", "2", timestamp=TIME)
        writer.write(b"third", value=b"3")
        writer.write(type="fourth", value=b"4", timestamp=None, uuid=None)
        for early in (TIME, TIME - timedelta(days=7)):
            with pytest.raises(ValueError, match="does not ascend"):
                writer.write("early", b"", timestamp=early)
        with pytest.raises(ValueError, match="is not that of the UUID"):
            writer.write("other", b"", timestamp=TIME, uuid=seglake.uuid6())
        with pytest.raises(ValueError, match="UUID"):
            writer.write("never", b"", timestamp=datetime(1500, 1, 1, tzinfo=UTC))
        with pytest.raises(ValueError, match="aware datetime"):
            writer.write("naive", b"", timestamp=datetime(2024, 1, 1))
        for wrong in ((), ("t",), ("t", b"v", TIME)):
            with pytest.raises((TypeError, ValueError)):
                writer.write(*wrong)
        with pytest.raises(TypeError, match=r"twice|multiple values"):
            writer.write("t", b"v", type="t")
        with pytest.raises((TypeError, ValueError), match="offset"):
            writer.write("t", b"v", offset=1)
    records = read(tmp_path, target)
    assert [(record.type, record.value) for record in records] == [
        ("first", b"1"), ("second", b"2"), ("second", b"2"), ("third", b"3"), ("fourth", b"4"),
    ]  # fmt: skip
    assert [record.timestamp for record in records[1:3]] == [TIME, TIME]


@pytest.mark.parametrize("target", TARGETS)
def test_rows_of_every_kind(tmp_path: Path, target: str) -> None:
    with seglake.create(tmp_path / "other.active") as writer:
        writer.write("record", b"0", timestamp=TIME)
    (record,) = seglake.open(tmp_path / "other.active")
    later = TIME + timedelta(seconds=1)
    table = pa.table({"type": ["table"], "value": [b"4"], "timestamp": pa.array([later], pa.timestamp("us", "UTC"))})
    with opened(tmp_path, target) as writer:
        rows = [record, {"type": "dict", "value": "1", "timestamp": TIME + timedelta(milliseconds=1)}]
        written = writer.write_batch(rows)
        assert (len(written) if target == "log" else written) == 2
        writer.write_batch(table)
        writer.write_batch(("tuple", value) for value in (b"2", b"3"))
        writer.write_batch([])
    assert [(record.type, record.value) for record in read(tmp_path, target)] == [
        ("record", b"0"), ("dict", b"1"), ("table", b"4"), ("tuple", b"2"), ("tuple", b"3"),
    ]  # fmt: skip
    assert read(tmp_path, target)[2].timestamp == later


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (("t",), "two fields, type and value, not 1"),
        (("t", b"", b""), "two fields, type and value, not 3"),
        (("t" * 256, b""), "255"),
        (("t", None), "value is missing"),
        ({"type": "t"}, "value is missing"),
        ({"type": "t", "value": b"", "offset": 1}, "offset"),
        ("t", "a record is a Record, a mapping, or a tuple"),
        (5, "a record is a Record, a mapping, or a tuple"),
    ],
)
def test_a_bad_row_is_numbered_and_those_before_it_are_written(
    tmp_path: Path, target: str, bad: Any, said: str
) -> None:
    with opened(tmp_path, target) as writer:
        for rows in ([("a", b"1"), ("a", b"2"), bad, ("a", b"3")], iter([("b", b"1"), ("b", b"2"), bad])):
            with pytest.raises(seglake.exceptions.RowError, match=said) as raised:
                writer.write_batch(rows)
            assert raised.value.row == 2
    assert [record.value for record in read(tmp_path, target)] == [b"1", b"2"] * 2


def test_an_iterable_that_fails(tmp_path: Path) -> None:
    def rows() -> Iterator[tuple[str, bytes]]:
        yield "t", b"1"
        raise OSError("of the source")

    with seglake.create(tmp_path / "a.active") as writer:
        with pytest.raises(OSError, match="of the source"):
            writer.write_batch(rows())
        assert writer.last is not None
    assert [record.value for record in seglake.open(tmp_path / "a.active")] == [b"1"]


def test_other_formats_name_their_fields(tmp_path: Path) -> None:
    with seglake.create(tmp_path / "a.chunks") as writer:
        for wrong in ((0, b"v"), (b"v",), (0, 0, b"v")):
            with pytest.raises(TypeError, match=r"fields by their names \(offset, timestamp, value\)$"):
                writer.write(*wrong)
        expected = "row 1: expected a Record, a mapping, or fields by their names"
        with pytest.raises(seglake.exceptions.RowError, match=expected):
            writer.write_batch([{"timestamp": 0, "value": b"1"}, (0, b"v")])
        assert writer.write_batch([{"timestamp": 1, "value": b"2"}]) == 1
    assert [record.value for record in seglake.open(tmp_path / "a.chunks")] == [b"1", b"2"]


def test_a_record_and_fields_are_not_given_both(tmp_path: Path) -> None:
    with seglake.create(tmp_path / "a.active") as writer:
        with pytest.raises(TypeError, match="not both"):
            writer.write({"type": "t", "value": b""}, value=b"")
        with pytest.raises(TypeError, match="not both"):
            writer.write({"type": "t", "value": b""}, b"")


def test_the_extension_is_the_format(tmp_path: Path) -> None:
    for format in seglake.formats():
        with seglake.create(tmp_path / f"a.{format.extension}") as writer:
            assert writer.format == format.name
    for name in ("a", "a.txt", "a.ACTIVE"):
        with pytest.raises(ValueError, match=r"the extension is none of .*: name the format with `format`"):
            seglake.create(tmp_path / name)
        assert not (tmp_path / name).exists()
    with seglake.create(tmp_path / "a.txt", format="active") as writer:
        assert writer.format == "active"
