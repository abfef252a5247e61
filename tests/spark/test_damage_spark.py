"""Damaged files through Spark, in mode PERMISSIVE: it must return what is read without it."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.damage import spark as damage
from tests.damage.kinds import KINDS
from tests.damage.trial import Trial

pytestmark = pytest.mark.spark


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "name", ["active", "sealed", "tenant", "chunked", "oplog", "oplog-draft-1.1", "oplog-autobase"]
)
def test_damaged_files_in_spark(spark: SparkSession, tmp_path: Path, name: str) -> None:
    found = damage.run(spark, tmp_path, [Trial(name, kind, 1) for kind in KINDS])
    assert len(found) == len(KINDS)
    assert {str(trial): verdict.faults for trial, verdict in found if not verdict.ok} == {}
    assert sum(verdict.records for _, verdict in found) > 1000


def test_other_rows_in_spark_are_found(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trial = Trial("active", "scramble", 1)
    rows = damage.load(spark, _written(tmp_path, trial), trial.specimen.layout)
    for fewer in (rows[1:], rows[:-1]):
        monkeypatch.setattr(damage, "load", lambda *_, fewer=fewer: fewer)
        ((_, verdict),) = damage.run(spark, tmp_path, [trial])
        assert len(verdict.faults) == 1


def _written(folder: Path, trial: Trial) -> Path:
    (folder / "0000").write_bytes(trial.damaged().data)
    return folder
