"""What importing the data source takes. Without Spark."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

# What https://spark.apache.org/docs/latest/api/python/reference lists: all other modules change without notice.
PUBLIC = {
    "pyspark",
    "pyspark.errors",
    "pyspark.sql",
    "pyspark.sql.datasource",
    "pyspark.sql.functions",
    "pyspark.sql.streaming.datasource",
    "pyspark.sql.types",
}

WITHOUT_FCNTL = """
import importlib, pkgutil, sys
import pyspark.sql.datasource

sys.modules["fcntl"] = None  # as on Windows: importing it raises ImportError
import seglake.spark, pyspark_seglake

modules = [each.name for each in pkgutil.walk_packages(seglake.spark.__path__, "seglake.spark.")]
assert "seglake.spark.ingest_job" in modules and "seglake.spark.write.job" in modules, modules
for name in modules:
    # PySpark 4.0 has no filters, and no limits of what a batch of a stream may take before 4.2.
    has_filters, has_limits = (hasattr(pyspark.sql.datasource, own) for own in ("Filter", "ReadLimit"))
    lacks = {"seglake.spark.filters": not has_filters, "seglake.spark.stream.reader": not has_limits}
    if not lacks.get(name):
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


def test_no_private_module_of_pyspark_is_imported() -> None:
    imported: dict[str, set[str]] = {}
    for path in (ROOT / "python").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            for name in names:
                if name.partition(".")[0] == "pyspark":
                    imported.setdefault(name, set()).add(path.name)
    assert {"pyspark.sql.datasource", "pyspark.sql.types"} <= imported.keys()
    assert imported.keys() <= PUBLIC, imported
