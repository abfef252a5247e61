"""Batches of executors at their bounds, without Spark: each damaged range is one row, however many there are."""

import logging
import os
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from segments import flip, write_segment

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


@pytest.mark.parametrize("mode", ["PERMISSIVE", "DROPMALFORMED"])
def test_what_a_process_has_set_stays_as_it_is(segment: Path, mode: str) -> None:
    """Workers live on, and run what else their users have."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        filters, variables, handlers = list(warnings.filters), dict(os.environ), list(logging.getLogger().handlers)
        assert read(segment, mode=mode)
        assert (warnings.filters, dict(os.environ), logging.getLogger().handlers) == (filters, variables, handlers)
    assert caught == []
