"""What importing the data source takes. Without Spark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

WITHOUT_FCNTL = """
import importlib, pkgutil, sys

sys.modules["fcntl"] = None  # as on Windows: importing it raises ImportError
import seglake.spark, pyspark_seglake

modules = [each.name for each in pkgutil.walk_packages(seglake.spark.__path__, "seglake.spark.")]
assert "seglake.spark.ingestion.lock" in modules and "seglake.spark.write.manifest" in modules, modules
for name in modules:
    importlib.import_module(name)

from pyspark.sql.types import BinaryType, StringType, StructField, StructType
from seglake.spark.source import SegmentDataSource

source = SegmentDataSource({"path": sys.argv[1], "segmentFormat": "active"})
try:
    source.writer(StructType([StructField("type", StringType()), StructField("value", BinaryType())]), False)
except OSError as error:
    print(error)
"""


def test_the_source_is_imported_where_there_are_no_file_locks(tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = [sys.executable, "-c", WITHOUT_FCNTL, str(out)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    assert "writing segments with Spark needs Linux or macOS" in done.stdout
    assert not out.exists()
