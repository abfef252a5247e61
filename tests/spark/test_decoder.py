"""Batches of executors at their bounds, without Spark: each damaged range is one row, however many there are."""

import logging
import os
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import BinaryType, StructField, StructType
from segments import OTHER_KEY, flip, write_segment

import seglake
from seglake.spark import decode
from seglake.spark.source import SegmentDataSource

RANGES = 7


def read(path: Path, **options: str) -> list[pa.RecordBatch]:
    source = SegmentDataSource({"path": str(path), "segmentFormat": "active", **options})
    reader = source.reader(source.schema())
    return [batch for partition in reader.partitions() for batch in reader.read(partition)]  # pyright: ignore


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    """A segment in which every second record is damaged, from the second on."""
    path = tmp_path / "a.active"
    for number, written in enumerate(write_segment(path, 2 * RANGES + 1)):
        if number % 2:
            flip(path, written.end - 9)
    return path


@pytest.mark.parametrize("rows", [1, 2, 3, RANGES - 1, RANGES, RANGES + 1])
def test_every_damaged_range_is_one_row(segment: Path, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode, "_DAMAGE_ROWS", rows)
    expected = [(span.start, span.end, span.kind, span.cause) for span in seglake.verify(segment).damage]
    assert len(expected) == RANGES
    batches = read(segment, mode="PERMISSIVE")
    table: Any = pa.Table.from_batches(batches)
    reports = [report for report in table["_corrupt_record"].to_pylist() if report is not None]
    found = [(report["start"], report["end"], report["kind"], report["cause"]) for report in reports]
    assert sorted(found) == expected
    assert table.num_rows == RANGES + RANGES + 1
    damage = [batch.num_rows for batch in batches if batch.column("value").null_count == batch.num_rows]
    assert max(damage) == min(rows, RANGES)
    assert sum(damage) == RANGES


def test_damage_is_left_out_on_request(segment: Path, caplog: pytest.LogCaptureFixture) -> None:
    batches = read(segment, mode="DROPMALFORMED")
    assert sum(batch.num_rows for batch in batches) == RANGES + 1
    (span, *_) = seglake.verify(segment).damage
    assert [record.getMessage() for record in caplog.records] == [
        f"{segment}: damage is left out, first {span.cause} at offset {span.start}; `seglake verify` lists all of it"
    ]


def test_damage_is_an_error_on_request(segment: Path) -> None:
    with pytest.raises(seglake.DamageError, match="Mode PERMISSIVE reads what is sound"):
        read(segment, mode="FAILFAST")


@pytest.fixture
def bad(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of five sound files, three of another key, two that are no segments, and one that fails to be read."""
    folder = tmp_path / "files"
    folder.mkdir()
    for number in range(5):
        write_segment(folder / f"{number}.active", 2)
    for number in range(3):
        write_segment(folder / f"key{number}.active", 2, key=OTHER_KEY)
    (folder / "!README.txt").write_text("what is in here")
    (folder / "upload.tmp").write_bytes(b"half of something")
    write_segment(folder / "disk.active", 2)
    opened = seglake.open

    def failing(source: Any, **how: Any) -> Any:
        if str(source).endswith("disk.active"):
            raise OSError(5, "Input/output error", str(source))
        return opened(source, **how)

    monkeypatch.setattr(seglake, "open", failing)
    return folder


def values_and_damage(folder: Path, **options: str) -> tuple[int, dict[str, str]]:
    source = SegmentDataSource({"path": str(folder), "minPartitionNum": "1", **options})
    reader = source.reader(source.schema())
    batches = [batch for each in reader.partitions() for batch in reader.read(each)]
    rows = [row for batch in batches for row in pa.record_batch(batch).to_pylist()]  # pyright: ignore
    reports = [row["_corrupt_record"] for row in rows if row.get("_corrupt_record") is not None]
    return len(rows) - len(reports), {Path(report["path"]).name: report["cause"] for report in reports}


BAD = {"!README.txt": "not_a_segment", "upload.tmp": "not_a_segment", "disk.active": "unreadable"}
OTHERS = dict.fromkeys(["key0.active", "key1.active", "key2.active"], "checksum_mismatch")


def test_files_that_cannot_be_read_are_rows(bad: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert values_and_damage(bad) == (10, BAD | OTHERS)
    (message,) = caplog.messages
    assert message.endswith("All of it is reported as damage (2 more files likewise)")


@pytest.mark.parametrize(
    "options",
    [{"mode": "DROPMALFORMED"}, *({"ignoreCorruptFiles": "true", "mode": mode} for mode in ("FAILFAST", "PERMISSIVE"))],
)
def test_files_that_cannot_be_read_are_left_out_with_a_line_each_kind(
    bad: Path, options: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    assert values_and_damage(bad, **options) == (10, {})
    assert len(caplog.messages) == 3
    assert sum("more files likewise)" in message for message in caplog.messages) == 2


def test_with_the_keys_of_all_files_they_are_read(bad: Path) -> None:
    for name, key in (("usual", bytes(32)), ("other", OTHER_KEY)):
        (bad.parent / name).write_bytes(key)
    files = f"{bad.parent / 'usual'}, {bad.parent / 'other'}"
    assert values_and_damage(bad, keyFile=files) == (16, BAD)


def test_such_files_are_errors_in_mode_failfast(bad: Path) -> None:
    with pytest.raises(seglake.FormatError, match=r"README\.txt: cannot tell the format.*pathGlobFilter"):
        values_and_damage(bad, mode="FAILFAST")
    with pytest.raises(seglake.WrongKeyError, match=r"key0\.active"):
        values_and_damage(bad, mode="FAILFAST", pathGlobFilter="k*.active")
    with pytest.raises(OSError, match=r"Input/output error.*disk\.active"):
        values_and_damage(bad, mode="FAILFAST", pathGlobFilter="d*.active")


def test_without_a_column_for_damage_such_files_are_errors(bad: Path) -> None:
    source = SegmentDataSource({"path": str(bad)})
    reader = source.reader(StructType([StructField("value", BinaryType())]))
    with pytest.raises(
        seglake.FormatError, match=r"README\.txt: nothing of it can be read: not_a_segment.*add _corrupt"
    ):
        [batch for each in reader.partitions() for batch in reader.read(each)]


@pytest.mark.parametrize("mode", ["PERMISSIVE", "DROPMALFORMED"])
def test_what_a_process_has_set_stays_as_it_is(segment: Path, mode: str) -> None:
    """Workers live on, and run what else their users have."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        filters, variables, handlers = list(warnings.filters), dict(os.environ), list(logging.getLogger().handlers)
        assert read(segment, mode=mode)
        assert (warnings.filters, dict(os.environ), logging.getLogger().handlers) == (filters, variables, handlers)
    assert caught == []
