"""The demo from end to end, on a few days of the year: all of its checks hold, and it fails where one does not."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import SparkSession
from rich.console import Console

import seglake.spark

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

import demo
from flights import source

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def days() -> pd.DataFrame:
    """The first three days of a month that stays sound and of those that are broken."""
    flights = source.load_flights()
    return flights[flights["month"].isin([1, 3, 6, 9, 12]) & (flights["day"] <= 3)]


def run(folder: Path, days: pd.DataFrame) -> tuple[int, str]:
    shown = io.StringIO()
    status = demo.run(folder, days, Console(file=shown, width=120, color_system=None))
    return status, shown.getvalue()


def test_the_demo_holds_and_can_be_repeated(spark: SparkSession, tmp_path: Path, days: pd.DataFrame) -> None:
    status, shown = run(tmp_path, days)
    assert status == 0, shown
    assert shown.count("✓") == 6
    assert "✗" not in shown
    assert f"{len(days):,} written - 6 damaged = {len(days) - 6:,} expected, {len(days) - 6:,} arrived" in shown
    assert "United Air Lines Inc." in shown
    assert "written to" in shown

    segments = {path: path.stat().st_mtime_ns for path in (tmp_path / "segments").iterdir()}
    status, shown = run(tmp_path, days)
    assert status == 0, shown
    assert "still as an earlier run left them" in shown
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "segments").iterdir()} == segments


def test_the_demo_fails_where_a_segment_is_left_out(
    spark: SparkSession, tmp_path: Path, days: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    def leave_one_out(sources: Path, dst: Path, **options: Any) -> seglake.spark.IngestResult:
        some = sorted(sources.glob("*.active"))[1:]
        return seglake.spark.ingest(some, dst, **options)

    monkeypatch.setattr(demo, "ingest", leave_one_out)
    status, shown = run(tmp_path, days)
    assert status == 1
    failed = [line.strip() for line in shown.splitlines() if "✗" in line]
    assert failed == [
        "✗ every undamaged flight arrived, unchanged, once",
        "✗ every file is listed, and the damaged ones are known",
        "✗ SQL over the lake and the public table give the same answer",
    ]
    assert "Something above does not hold" in shown
