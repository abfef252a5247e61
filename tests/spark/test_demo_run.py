"""The demo from end to end, on a few days of the year: all of its checks hold, and it fails where one does not."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import SparkSession
from rich.console import Console

import demo
import seglake.spark
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
    lines = shown.splitlines()
    arrived = lines[1 + next(number for number, line in enumerate(lines) if "every undamaged message" in line)]
    # Of the oplogs a flight is torn, and an acknowledgement behind it.
    assert arrived.split()[:2] + arrived.split()[-1:] == [f"{len(days) - 6:,}", f"{len(days) - 1:,}", "643"]
    assert "United Air Lines Inc." in shown
    assert "written to" in shown

    files = {path: path.stat().st_mtime_ns for path in (tmp_path / "segments").rglob("*")}
    status, shown = run(tmp_path, days)
    assert status == 0, shown
    assert "still as an earlier run left them" in shown
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "segments").rglob("*")} == files


@pytest.mark.sampled(2)
@pytest.mark.parametrize("format", ["active", "oplog"])
def test_the_demo_fails_where_a_file_is_left_out(
    format: str, spark: SparkSession, tmp_path: Path, days: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    def leave_one_out(sources: Sequence[Path], dst: Path, **options: Any) -> seglake.spark.IngestResult:
        first = min((tmp_path / "segments" / format).iterdir())
        every = [path for source in sources for path in source.iterdir()]
        some = [path for path in every if path != first and path.suffix != ".index"]
        return seglake.spark.ingest(some, dst, **options)

    monkeypatch.setattr(demo, "ingest", leave_one_out)
    status, shown = run(tmp_path, days)
    assert status == 1
    lines = shown.splitlines()
    failed = [number for number, line in enumerate(lines) if "✗" in line]
    assert [lines[number].strip() for number in failed] == [
        "✗ every undamaged message arrived, unchanged, once",
        "✗ every file is listed, and the damaged ones are known",
        "✗ SQL over the lake and the public table give the same answer",
    ]
    # Only the format that lacks a file is named.
    assert all(lines[number + 1].startswith(f"    {format}: ") for number in failed)
    assert "Something above does not hold" in shown
