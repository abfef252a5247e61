"""Damaged files through Spark: many in one load, each of which must read as it does without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

from pyspark.sql import Row, SparkSession
from pyspark.sql.types import LongType, StringType, StructField, StructType

from . import surfaces
from .judge import Verdict
from .layouts import Layout
from .trial import Trial

_REPORT = "_corrupt_record"


def run(spark: SparkSession, folder: Path, trials: Sequence[Trial]) -> list[tuple[Trial, Verdict]]:
    """Write the damaged files of trials, all of one layout, into an empty folder, load them, and compare each."""
    layout = trials[0].specimen.layout
    for number, trial in enumerate(trials):
        (folder / f"{number:04d}").write_bytes(trial.damaged().data)
    rows: dict[str, list[Row]] = {}
    for row in load(spark, folder, layout):
        report = row[_REPORT]
        rows.setdefault(Path(row["path"] or report["path"]).name, []).append(row)
    return [
        (trial, _compare(layout, folder / f"{number:04d}", rows.get(f"{number:04d}", [])))
        for number, trial in enumerate(trials)
    ]


def _columns(layout: Layout) -> list[str]:
    return [*(name.removesuffix("_bytes") for name in layout.identity), "value"]


def load(spark: SparkSession, folder: Path, layout: Layout) -> list[Row]:
    """The rows of the files of a folder, those of damage among them."""
    reader = spark.read.format("seglake").option("segmentFormat", layout.format)
    for name, value in layout.reading.get("options", {}).items():
        reader = reader.option(name, value)
    inferred = reader.load(str(folder)).schema
    added = [StructField("path", StringType()), StructField("position", LongType())]
    schema = StructType([*(inferred[name] for name in (*_columns(layout), _REPORT)), *added])
    return reader.schema(schema).load(str(folder)).collect()


def _compare(layout: Layout, path: Path, rows: Iterable[Row]) -> Verdict:
    """Spark gives no order: what it gives is put into the file's."""
    reading = surfaces.read(path, layout)
    columns = _columns(layout)
    found = [(row["position"], *(_plain(row[name]) for name in columns)) for row in rows if row["position"] is not None]
    records = [(at, *(_plain(fields[name]) for name in columns)) for at, fields in reading.records]
    damage = [tuple(row[_REPORT])[1:] for row in rows if row[_REPORT] is not None]
    verdict = Verdict(records=len(records), good=len(records))
    if sorted(found, key=str) != sorted(records, key=str):
        verdict.faults.append(f"{len(found)} rows in Spark, {len(records)} records without, or not the same")
    if sorted(damage) != reading.damage:
        verdict.faults.append(f"Spark reports other damage than the ledger: {sorted(damage)[:3]}")
    verdict.kept = verdict.right = len(set(found) & set(records))
    return verdict


def _plain(value: Any) -> Any:
    """A value as it is told from others: Spark has its own bytes, and shows a UUID as text."""
    return bytes(value) if isinstance(value, bytearray) else str(value) if isinstance(value, UUID) else value
